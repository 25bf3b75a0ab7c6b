//! Records of the store: one stored object, or the note that objects of a URL are gone.
//!
//! | bytes | record (little-endian) |
//! |---|---|
//! | 0–3 | `HOC1` |
//! | 4 | kind: 1 object, 2 removal |
//! | 5–7 | 0 |
//! | 8–15 | sequence, which rises with each record of a store |
//! | 16–23 | hash of the URL |
//! | 24–27 | length of the head |
//! | 28–31 | hash of the headers of the request on which the answer depends |
//! | 32–39 | length of the body |
//! | 40–47 | checksum of the body, if it has at most 1 MiB; or else 0 |
//! | 48–55 | checksum of the head and of bytes 0–47 |
//! | 56– | head, then body |
//!
//! A *head* has the URL, the status, the times, the headers on which the answer depends with their
//! values, the headers, and the checksums of each 256 KiB of a longer body, which is read in these
//! *blocks*. Checksums are XXH3-64. A removal has the URL alone as its head; it is
//! about all earlier records of the URL.
//!
//! Sans-I/O.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::policy::freshness::{Rules, Terms, Times};
use crate::policy::storing::Head;
use crate::policy::vary::Vary;

/// Length of the fixed front, in bytes.
pub const FRONT_BYTES: usize = 56;

/// Longest head, in bytes: URLs, heads of answers and of requests are bounded below it.
pub const HEAD_BYTES_MAX: usize = 1 << 20;

/// Length of a block of a long body, in bytes.
pub const BLOCK_BYTES: usize = 256 << 10;

/// Longest body that is read as a whole, in bytes.
pub const WHOLE_BYTES_MAX: usize = 1 << 20;

const MAGIC: [u8; 4] = *b"HOC1";

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    Object,
    /// The note that all earlier objects of its URL are gone.
    Removal,
}

/// The fixed front of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// Kind.
    pub kind: Kind,
    /// Sequence.
    pub sequence: u64,
    /// Hash of the URL.
    pub hash: u64,
    /// Hash of the headers of the request on which the answer depends.
    pub variant: u32,
    /// Length of the head, in bytes; at most [`HEAD_BYTES_MAX`].
    pub head_bytes: u32,
    /// Length of the body, in bytes.
    pub body_bytes: u64,
    body_sum: u64,
    sum: u64,
}

impl Front {
    /// Reads a front; `None`: it is none.
    pub fn read(bytes: &[u8; FRONT_BYTES]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let is_ours = bytes.take(4)? == MAGIC;
        let kind = match bytes.take(4)? {
            [1, 0, 0, 0] => Kind::Object,
            [2, 0, 0, 0] => Kind::Removal,
            _ => return None,
        };
        let (sequence, hash, head_bytes) = (bytes.u64()?, bytes.u64()?, bytes.u32()?);
        let variant = bytes.u32()?;
        let (body_bytes, body_sum, sum) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let is_sound = is_ours && head_bytes as usize <= HEAD_BYTES_MAX;
        is_sound.then_some(Self {
            kind,
            sequence,
            hash,
            variant,
            head_bytes,
            body_bytes,
            body_sum,
            sum,
        })
    }

    /// Returns the length of the record, in bytes.
    pub fn record_bytes(&self) -> u64 {
        FRONT_BYTES as u64 + u64::from(self.head_bytes) + self.body_bytes
    }

    /// Returns whether the head is as it was written.
    pub fn is_head(&self, head: &[u8]) -> bool {
        head.len() == self.head_bytes as usize && self.sum == head_sum(&self.bytes(), head)
    }

    /// Returns whether the body is long, and is read in blocks.
    pub fn has_blocks(&self) -> bool {
        WHOLE_BYTES_MAX as u64 <= self.body_bytes && self.body_sum == 0
    }

    /// Returns whether a body that is read as a whole is as it was written.
    pub fn is_body(&self, body: &[u8]) -> bool {
        body.len() as u64 == self.body_bytes && self.body_sum == xxh3_64(body)
    }

    fn bytes(&self) -> [u8; FRONT_BYTES] {
        let kind = match self.kind {
            Kind::Object => 1,
            Kind::Removal => 2,
        };
        let mut out = Vec::with_capacity(FRONT_BYTES);
        out.extend(MAGIC);
        out.extend([kind, 0, 0, 0]);
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.hash.to_le_bytes());
        out.extend(self.head_bytes.to_le_bytes());
        out.extend(self.variant.to_le_bytes());
        out.extend(self.body_bytes.to_le_bytes());
        out.extend(self.body_sum.to_le_bytes());
        out.extend(self.sum.to_le_bytes());
        let mut front = [0; FRONT_BYTES];
        front.iter_mut().zip(out).for_each(|(to, from)| *to = from);
        front
    }
}

fn head_sum(front: &[u8; FRONT_BYTES], head: &[u8]) -> u64 {
    let mut sum = Xxh3::new();
    sum.update(front.get(..FRONT_BYTES - 8).unwrap_or_default());
    sum.update(head);
    sum.digest()
}

/// What a record is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Its sequence.
    pub sequence: u64,
    /// Hash of the URL.
    pub hash: u64,
    /// Hash of the headers of the request on which the answer depends.
    pub variant: u32,
}

/// Returns a record. `None`: its head is too long.
pub fn write(kind: Kind, ids: Ids, head: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let mut record = begin(kind, ids, head, (body.len() as u64, xxh3_64(body)))?;
    record.extend_from_slice(body);
    Some(record)
}

/// Returns the front and the head of a record, before its body; `body` is its
/// length and checksum. `None`: the head is too long.
pub fn begin(
    kind: Kind,
    Ids { sequence, hash, variant }: Ids,
    head: &[u8],
    (body_bytes, body_sum): (u64, u64),
) -> Option<Vec<u8>> {
    let head_bytes = u32::try_from(head.len()).ok().filter(|_| head.len() <= HEAD_BYTES_MAX)?;
    let mut front =
        Front { kind, sequence, hash, variant, head_bytes, body_bytes, body_sum, sum: 0 };
    front.sum = head_sum(&front.bytes(), head);
    Some([&front.bytes(), head].concat())
}

/// Puts the front of a record, which is there with its head, under another sequence. `None`: it is
/// damaged.
pub fn with_sequence(mut record: Vec<u8>, sequence: u64) -> Option<Vec<u8>> {
    let front = Front::read(record.first_chunk()?)?;
    let head = record.get(FRONT_BYTES..FRONT_BYTES + front.head_bytes as usize)?;
    if !front.is_head(head) {
        return None;
    }
    let mut front = Front { sequence, ..front };
    front.sum = head_sum(&front.bytes(), head);
    *record.first_chunk_mut()? = front.bytes();
    Some(record)
}

/// Returns the head of a removal.
pub fn write_removal(url: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, url.as_bytes());
    out
}

/// Returns the head of an object's record; `sums` are the checksums of its blocks.
pub fn write_head(url: &str, head: &Head, sums: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    put(&mut out, url.as_bytes());
    out.extend(head.status.as_u16().to_le_bytes());
    out.extend(head.times.sent_ms.to_le_bytes());
    out.extend(head.times.came_ms.to_le_bytes());
    count(&mut out, head.vary.parts().len());
    for (name, value) in head.vary.parts() {
        put(&mut out, name.as_str().as_bytes());
        out.push(u8::from(value.is_some()));
        put(&mut out, value.as_deref().unwrap_or_default().as_bytes());
    }
    // The age that it came with is no header of what is stored, but that of the times.
    let age = HeaderValue::from(head.terms.age(head.times.came_ms));
    count(&mut out, head.headers.len() + 1);
    put(&mut out, header::AGE.as_str().as_bytes());
    put(&mut out, age.as_bytes());
    for (name, value) in &head.headers {
        put(&mut out, name.as_str().as_bytes());
        put(&mut out, value.as_bytes());
    }
    add_sums(&mut out, sums);
    out
}

/// Ends the head of an object's record with the checksums of its blocks.
pub fn add_sums(head: &mut Vec<u8>, sums: &[u64]) {
    sums.iter().for_each(|it| head.extend(it.to_le_bytes()));
}

/// Reads the URL of a head.
pub fn read_url(head: &[u8]) -> Option<&str> {
    std::str::from_utf8(Reader(head).text()?).ok()
}

/// Reads the head of an object's record; the terms follow from the present `rules`. `None`: it is none.
pub fn read_head(
    bytes: &[u8],
    rules: impl FnOnce(&str) -> Rules,
) -> Option<(String, Head, Vec<u64>)> {
    let mut bytes = Reader(bytes);
    let url = std::str::from_utf8(bytes.text()?).ok()?.to_owned();
    let status = StatusCode::from_u16(bytes.u16()?).ok()?;
    let times = Times { sent_ms: bytes.u64()?, came_ms: bytes.u64()? };
    let mut parts = Vec::new();
    for _ in 0..bytes.u16()? {
        let name = HeaderName::from_bytes(bytes.text()?).ok()?;
        let is_there = bytes.take(1)? == [1];
        let value = std::str::from_utf8(bytes.text()?).ok()?;
        parts.push((name, is_there.then(|| value.to_owned())));
    }
    let mut headers = HeaderMap::new();
    for _ in 0..bytes.u16()? {
        let name = HeaderName::from_bytes(bytes.text()?).ok()?;
        headers.try_append(name, HeaderValue::from_bytes(bytes.text()?).ok()?).ok()?;
    }
    let (sums, rest) = bytes.0.as_chunks();
    if !rest.is_empty() {
        return None;
    }
    let sums = sums.iter().map(|it| u64::from_le_bytes(*it)).collect();
    let terms = Terms::of(status, &headers, times, &rules(&url));
    headers.remove(header::AGE);
    Some((url, Head { status, headers, times, terms, vary: Vary::from_parts(parts) }, sums))
}

/// Counts and lengths of texts are within [`HEAD_BYTES_MAX`], whose check comes at the end.
fn count(out: &mut Vec<u8>, count: usize) {
    out.extend(u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}

fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(text);
}

/// Reads values off the front of bytes; `None` at their end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }
}

/// An object's record, as it was read.
#[derive(Debug)]
pub struct Whole {
    /// The URL.
    pub url: String,
    /// The head.
    pub head: Head,
    /// The checksums of the blocks of a long body.
    pub sums: Vec<u64>,
    /// A body that is read as a whole; empty for a long one.
    pub body: Bytes,
}

/// Reads an object's record, of which the front and the head are there, and all of a body that is read
/// as a whole. `None`: it is none, or damaged.
pub fn read(record: &Bytes, rules: impl FnOnce(&str) -> Rules) -> Option<Whole> {
    let front = Front::read(record.first_chunk()?)?;
    let body_at = FRONT_BYTES + front.head_bytes as usize;
    let head = record.get(FRONT_BYTES..body_at)?;
    if front.kind != Kind::Object || !front.is_head(head) {
        return None;
    }
    let (url, head, sums) = read_head(head, rules)?;
    if front.has_blocks() {
        let is_sound = sums.len() as u64 == front.body_bytes.div_ceil(BLOCK_BYTES as u64);
        return is_sound.then_some(Whole { url, head, sums, body: Bytes::new() });
    }
    let is_sound = front.is_body(record.get(body_at..)?);
    is_sound.then(|| Whole { url, head, sums, body: record.slice(body_at..) })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use proptest::prelude::*;

    use super::*;
    use crate::policy::storing::{Ask, keep};

    const IDS: Ids = Ids { sequence: 7, hash: 9, variant: 3 };

    fn head(lines: &[(String, Vec<u8>)], vary: Option<&str>) -> Head {
        let mut answer = HeaderMap::new();
        answer.insert("cache-control", HeaderValue::from_static("max-age=60"));
        answer.insert("age", HeaderValue::from_static("7"));
        for (name, value) in lines {
            answer.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        if let Some(name) = vary {
            answer.insert("vary", HeaderValue::from_str(name).unwrap());
        }
        let request =
            HeaderMap::from_iter([("x".parse().unwrap(), HeaderValue::from_static("a, b"))]);
        let ask = Ask { method: &Method::GET, headers: &request };
        let times = Times { sent_ms: 1, came_ms: 2 };
        keep(ask, StatusCode::OK, &answer, times, &Rules::default()).unwrap()
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(
            url in "http://[a-z]{1,9}/[ -~]{0,30}",
            lines in prop::collection::vec(("x-[a-z]{1,5}", prop::collection::vec(b' '..=b'~', 0..20)), 0..6),
            vary in prop::option::of("[xy]"),
            body in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let head = head(&lines, vary.as_deref());
            let record = write(Kind::Object, IDS, &write_head(&url, &head, &[]), &body).unwrap();
            let front = Front::read(record.first_chunk().unwrap()).unwrap();
            prop_assert_eq!(front.record_bytes(), record.len() as u64);
            prop_assert_eq!((front.sequence, front.hash, front.variant, front.kind), (7, 9, 3, Kind::Object));
            let seen = read(&Bytes::from(record), |_| Rules::default()).unwrap();
            prop_assert_eq!((seen.url, seen.body.to_vec()), (url, body));
            prop_assert_eq!(seen.head.headers, head.headers);
            prop_assert_eq!((seen.head.vary, seen.head.terms), (head.vary, head.terms));
        }

        #[test]
        fn a_changed_byte_is_seen(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let head = head(&[], None);
            let mut record = write(Kind::Object, IDS, &write_head("http://h/", &head, &[]), b"body").unwrap();
            let at = at.index(record.len());
            record[at] ^= 1 << bit;
            prop_assert!(read(&Bytes::from(record), |_| Rules::default()).is_none());
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_head(&bytes, |_| Rules::default());
            prop_assert!(read(&Bytes::from(bytes), |_| Rules::default()).is_none());
        }
    }

    #[test]
    fn a_head_that_is_too_long_is_not_written() {
        assert!(write(Kind::Removal, IDS, &vec![0; HEAD_BYTES_MAX + 1], b"").is_none());
        let removal = write(Kind::Removal, IDS, &write_removal("u"), b"").unwrap();
        assert!(read(&Bytes::from(removal.clone()), |_| Rules::default()).is_none());
        assert_eq!(read_url(&removal[FRONT_BYTES..]), Some("u"));
    }
}
