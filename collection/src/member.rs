//! The member codec: changes to gzip members and back, in pieces of any size.
//!
//! A member is one gzip member (RFC 1952), so a segment or a feed is a gzip file. The fields that
//! Harvest reads are in the header's extra field, subfield `HV`, all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format, 1 |
//! | 1 | flags: 1 end of commit, 2 local, 4 end mark, 8 start of commit |
//! | 8 | epoch |
//! | 4 | length of the compressed bytes |
//! | 8 | checksum: xxh3-64 of the compressed bytes and the gzip trailer |
//! | … | LEB128: commit, base, number of changes, then for each the serial's and the stamp's distance from the one before (from base, and from 0) |
//! | 4 | header checksum: low half of the xxh3-64 of all header bytes before it |
//!
//! The header has its own checksum so that its length field can be trusted. That distinguishes a
//! truncated member from a damaged one.
//!
//! Source: docs/collection.md, "A member"; RFC 1952 §2.3.1.1.
//!
//! Sans-I/O.

pub(crate) mod content;
mod decoder;
pub(crate) mod pack;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::change::{Epoch, Note, Scanned, Stamp, Version};
use crate::error::Damage;

use content::{CHANGES_MAX, Draft};
pub use decoder::Decoder;
use pack::{Packed, Packer};

/// Largest member that is accepted, in bytes, packed or plain.
pub const MEMBER_BYTES_MAX: usize = 64 << 20;
/// The only format that this release writes and reads.
pub const FORMAT: u8 = 1;

/// The start of a gzip header: magic number, deflate, an extra field and no other; no time, unknown
/// system.
const GZIP: [u8; 10] = [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255];
/// Offset of the extra field's contents, which begin with our subfield.
const EXTRA: usize = 12;
/// Offset of the format byte.
const FIELDS: usize = EXTRA + 4;
/// Offset of the varints.
const VARINTS: usize = FIELDS + 1 + 1 + 8 + 4 + 8;
/// Length of the header checksum.
const SEAL: usize = 4;
/// Number of bytes of a large member that are checked at a time.
const PART_BYTES: usize = 128 << 10;
/// Length of gzip's trailer: CRC-32 and size.
const TRAILER: usize = 8;

const END_OF_COMMIT: u8 = 1;
const LOCAL: u8 = 2;
const END_MARK: u8 = 4;
const START_OF_COMMIT: u8 = 8;

/// The fields in the extra field of a member's gzip header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether a commit starts with this member.
    pub start_of_commit: bool,
    /// Whether a commit ends with this member.
    pub end_of_commit: bool,
    /// Whether the member holds notes (local state) and is never served.
    pub local: bool,
    /// Whether the member is the end mark of a feed or a snapshot: then it holds no changes, and
    /// `base` is the serial reached.
    pub end_mark: bool,
    /// The epoch in which it was written; the collection may have begun a newer one since.
    pub epoch: Epoch,
    /// The number of its commit; the last one, if compaction has joined several.
    pub commit: u64,
    /// A serial below all serials of this member, but not below any of the members before it.
    pub base: u64,
    /// Serial and stamp of every change, in ascending order.
    pub entries: Vec<(u64, Stamp)>,
}

impl Header {
    /// Returns the last serial of the member, or `base` if it has none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.entries.last().map_or(self.base, |(serial, _)| *serial)
    }

    /// Appends the member of `packed` under this header.
    pub(crate) fn write(&self, packed: &Packed, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&GZIP);
        out.extend_from_slice(&[0, 0, b'H', b'V', 0, 0, FORMAT, self.flags()]);
        out.extend_from_slice(&self.epoch.0.to_le_bytes());
        out.extend_from_slice(&packed.deflate_bytes.to_le_bytes());
        out.extend_from_slice(&packed.checksum.to_le_bytes());
        put(out, self.commit);
        put(out, self.base);
        put(out, self.entries.len() as u64);
        let (mut serial_before, mut stamp_before) = (self.base, 0);
        for (serial, stamp) in &self.entries {
            put(out, serial.wrapping_sub(serial_before));
            put(out, stamp.0.wrapping_sub(stamp_before));
            (serial_before, stamp_before) = (*serial, stamp.0);
        }
        let subfield = out.len() + SEAL - start - FIELDS;
        let extra = u16::try_from(subfield + FIELDS - EXTRA).unwrap_or(u16::MAX).to_le_bytes();
        let subfield = u16::try_from(subfield).unwrap_or(u16::MAX).to_le_bytes();
        if let Some(header) = out.get_mut(start..) {
            header[10..12].copy_from_slice(&extra);
            header[14..16].copy_from_slice(&subfield);
            let seal = seal(header);
            out.extend_from_slice(&seal);
        }
        out.extend_from_slice(&packed.bytes);
    }

    fn flags(&self) -> u8 {
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        flag(self.end_of_commit, END_OF_COMMIT)
            | flag(self.local, LOCAL)
            | flag(self.end_mark, END_MARK)
            | flag(self.start_of_commit, START_OF_COMMIT)
    }

    /// Reads the header at the start of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Frame, Damage> {
        let magic = bytes.len().min(GZIP.len());
        if bytes[..magic] != GZIP[..magic] {
            return Err(Damage::Header);
        }
        if bytes.len() < FIELDS {
            return Ok(Frame::More(FIELDS));
        }
        let extra = usize::from(u16::from_le_bytes([bytes[10], bytes[11]]));
        let subfield = usize::from(u16::from_le_bytes([bytes[14], bytes[15]]));
        if &bytes[12..14] != b"HV" || extra != subfield + 4 || EXTRA + extra < VARINTS + SEAL {
            return Err(Damage::Header);
        }
        let end = EXTRA + extra;
        let Some((sealed, seal_read)) = bytes.get(..end).map(|it| it.split_at(end - SEAL)) else {
            return Ok(Frame::More(end));
        };
        if seal(sealed) != seal_read {
            return Err(Damage::HeaderChecksum);
        }
        let mut fields = Fields(&sealed[FIELDS..]);
        let parsed = fields.header().ok_or(Damage::Header)?;
        match parsed {
            Err(damage) => Err(damage),
            Ok((header, deflate_bytes, checksum)) => Ok(Frame::Whole(MemberLayout {
                header,
                header_bytes: end,
                deflate_bytes: deflate_bytes as usize,
                checksum,
            })),
        }
    }
}

fn seal(header: &[u8]) -> [u8; SEAL] {
    let sum = xxh3_64(header).to_le_bytes();
    [sum[0], sum[1], sum[2], sum[3]]
}

/// The outcome of reading the start of a member.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The header is incomplete: at least this many bytes of it are needed to go on.
    More(usize),
    /// The header is complete and sound.
    Whole(MemberLayout),
}

/// A member's header and the sizes of its parts.
#[derive(Debug)]
pub(crate) struct MemberLayout {
    pub(crate) header: Header,
    /// Length of the header, in bytes.
    header_bytes: usize,
    deflate_bytes: usize,
    checksum: u64,
}

impl MemberLayout {
    /// Returns the length of the member, in bytes.
    pub(crate) fn member_bytes(&self) -> usize {
        self.header_bytes + self.deflate_bytes + TRAILER
    }

    /// Checks the packed bytes, a part at a time. `read` fills a buffer from an offset in the
    /// member.
    pub(crate) fn check_read(
        &self,
        mut read: impl FnMut(&mut [u8], usize) -> std::io::Result<()>,
    ) -> std::io::Result<Result<(), Damage>> {
        let (mut at, end) = (self.header_bytes, self.member_bytes());
        let mut sum = Xxh3::new();
        let mut part = vec![0; PART_BYTES.min(end - at)];
        while at < end {
            let take = part.len().min(end - at);
            read(&mut part[..take], at)?;
            sum.update(&part[..take]);
            at += take;
        }
        Ok(if sum.digest() == self.checksum { Ok(()) } else { Err(Damage::Checksum) })
    }

    /// Checks the packed bytes of `member`, header included, against the checksum.
    pub(crate) fn check(&self, member: &[u8]) -> Result<(), Damage> {
        let body = member.get(self.header_bytes..self.member_bytes()).ok_or(Damage::Truncated)?;
        if xxh3_64(body) == self.checksum { Ok(()) } else { Err(Damage::Checksum) }
    }
}

/// A reader of numbers from the front of a slice.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.take()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && 1 < bits {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Reads all fields. They match the checksum, so `None` means that their writer is faulty.
    fn header(&mut self) -> Option<Result<(Header, u32, u64), Damage>> {
        let [format, flags] = self.take()?;
        if format != FORMAT {
            return Some(Err(Damage::Format(format)));
        }
        let epoch = Epoch(u64::from_le_bytes(self.take()?));
        let deflate_bytes = u32::from_le_bytes(self.take()?);
        let checksum = u64::from_le_bytes(self.take()?);
        let (commit, base) = (self.varint()?, self.varint()?);
        let count = usize::try_from(self.varint()?).ok().filter(|it| *it <= CHANGES_MAX)?;
        let mut entries = Vec::with_capacity(count);
        let (mut serial, mut stamp) = (base, 0_u64);
        for _ in 0..count {
            let (further, later) = (self.varint()?, self.varint()?);
            if further == 0 {
                return Some(Err(Damage::Order));
            }
            serial = serial.checked_add(further)?;
            stamp = stamp.checked_add(later)?;
            entries.push((serial, Stamp(stamp)));
        }
        let header = Header {
            start_of_commit: flags & START_OF_COMMIT != 0,
            end_of_commit: flags & END_OF_COMMIT != 0,
            local: flags & LOCAL != 0,
            end_mark: flags & END_MARK != 0,
            epoch,
            commit,
            base,
            entries,
        };
        self.0.is_empty().then_some(Ok((header, deflate_bytes, checksum)))
    }
}

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while 0x80 <= value {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Reads a number written by [`put`] from the front of `bytes`, and removes it there; `None` if it
/// is malformed.
pub(crate) fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut fields = Fields(bytes);
    let value = fields.varint()?;
    *bytes = fields.0;
    Some(value)
}

/// Makes the end mark of a feed or a snapshot up to `version`.
#[must_use]
pub fn end_mark(version: Version) -> Vec<u8> {
    let header = Header {
        start_of_commit: true,
        end_of_commit: true,
        end_mark: true,
        epoch: version.epoch,
        base: version.serial,
        ..Header::default()
    };
    let mut out = Vec::new();
    header.write(&Packer::new(1).pack(&Draft::default()), &mut out);
    out
}

/// One verified member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its header.
    pub header: Header,
    /// Its plain bytes: a SOIF update stream.
    pub plain: Vec<u8>,
    /// Its offset in the stream, in bytes.
    pub offset: u64,
    /// Its length in bytes, with header and trailer.
    pub length: u64,
}

impl Member {
    /// Returns the changes, in serial order; none for a local member or an end mark.
    ///
    /// # Errors
    ///
    /// The plain bytes do not match the header: treat the member as damaged.
    pub fn changes(&self) -> Result<Vec<Scanned>, Damage> {
        if self.header.local {
            return Ok(Vec::new());
        }
        content::changes(&self.plain, &self.header.entries, 0..CHANGES_MAX)
    }

    /// Returns the change with `serial`; `None` if the member does not hold it.
    pub fn change(&self, serial: u64) -> Result<Option<Scanned>, Damage> {
        match self.header.entries.binary_search_by_key(&serial, |(it, _)| *it) {
            Err(_) => Ok(None),
            Ok(at) => Ok(content::changes(&self.plain, &self.header.entries, at..at + 1)?.pop()),
        }
    }

    /// Returns the notes; none unless the member is local.
    ///
    /// # Errors
    ///
    /// The plain bytes are not notes: treat the member as damaged.
    pub fn notes(&self) -> Result<Vec<Note>, Damage> {
        if self.header.local { content::notes(&self.plain) } else { Ok(Vec::new()) }
    }
}

/// A reader of whole members.
#[derive(Debug)]
pub(crate) struct Unpacker {
    inflate: Decompress,
    /// Largest member, in bytes.
    bytes_max: usize,
}

impl Unpacker {
    /// Makes an unpacker that refuses members above `bytes_max` bytes, packed or plain.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { inflate: Decompress::new(false), bytes_max }
    }

    /// Verifies and unpacks the member at the start of `bytes`.
    pub(crate) fn unpack(
        &mut self,
        layout: MemberLayout,
        bytes: &[u8],
        offset: u64,
    ) -> Result<Member, Damage> {
        layout.check(bytes)?;
        let body = &bytes[layout.header_bytes..layout.member_bytes()];
        let (deflate, trailer) = body.split_at(layout.deflate_bytes);
        let size =
            usize::try_from(u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]]))
                .unwrap_or(usize::MAX);
        if self.bytes_max < size {
            return Err(Damage::TooLarge);
        }
        self.inflate.reset(false);
        let mut plain = Vec::with_capacity(size + 1);
        let status = self.inflate.decompress_vec(deflate, &mut plain, FlushDecompress::Finish);
        let mut crc = Crc::new();
        crc.update(&plain);
        let whole = matches!(status, Ok(Status::StreamEnd))
            && self.inflate.total_in() == deflate.len() as u64
            && plain.len() == size
            && crc.sum().to_le_bytes() == trailer[..4];
        if !whole {
            return Err(Damage::Deflate);
        }
        let length = layout.member_bytes() as u64;
        Ok(Member { header: layout.header, plain, offset, length })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    proptest! {
        #[test]
        fn a_number_reads_back(value: u64, rest: Vec<u8>) {
            let mut out = Vec::new();
            put(&mut out, value);
            out.extend_from_slice(&rest);
            let bytes = &mut out.as_slice();
            prop_assert_eq!(get(bytes), Some(value));
            prop_assert_eq!(*bytes, rest.as_slice());
        }

        #[test]
        fn a_header_reads_back(
            flags in 0..16_u8,
            numbers: (u64, u64),
            base in 0..u64::MAX / 2,
            steps in prop::collection::vec((1..1_u64 << 33, 0..1_u64 << 42), 0..CHANGES_MAX),
        ) {
            let mut entries = Vec::new();
            let mut last = (base, Stamp(0));
            for (further, later) in steps {
                last = (last.0 + further, Stamp(last.1.0 + later));
                entries.push(last);
            }
            let header = Header {
                start_of_commit: flags & 1 != 0,
                end_of_commit: flags & 2 != 0,
                local: flags & 4 != 0,
                end_mark: flags & 8 != 0,
                epoch: Epoch(numbers.0),
                commit: numbers.1,
                base,
                entries,
            };
            let mut out = Vec::new();
            header.write(&Packer::new(1).pack(&Draft::default()), &mut out);
            let Ok(Frame::Whole(layout)) = Header::read(&out) else { panic!("no header") };
            prop_assert_eq!(layout.member_bytes(), out.len());
            prop_assert_eq!(layout.check(&out), Ok(()));
            prop_assert_eq!(layout.header, header);
        }
    }

    #[test]
    fn bytes_that_are_no_member_give_the_same_error_in_any_pieces() {
        let check = |noise: &[u8], expected: Damage| {
            for piece in 1..=noise.len() {
                let mut decoder = Decoder::new(1 << 16);
                let mut read = || {
                    for bytes in noise.chunks(piece) {
                        decoder.feed(bytes);
                        while decoder.next_member()?.is_some() {}
                    }
                    decoder.finish()
                };
                let error = read().unwrap_err();
                assert!(matches!(error, Error::Stream { what, .. } if what == expected), "{error}");
            }
        };
        check(&[0x1f, 0x8b, 0xff, 0xff], Damage::Header);
        check(&[0x1f, 0x8b, 8, 4], Damage::Truncated);
    }

    #[test]
    fn a_number_of_too_many_bytes_is_refused() {
        assert_eq!(get(&mut &[0xff; 11][..]), None);
        assert_eq!(get(&mut &[0x80][..]), None);
    }
}
