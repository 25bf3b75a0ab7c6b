//! zip files that have lost their end, and with it their directory: it is made anew of the headers that stand
//! before the entries.
//!
//! Source: PKWARE's APPNOTE, §4.3.7 (local headers), §4.3.9 (data descriptors), §4.3.12 (directory).

use bytes::Bytes;

use crate::limit::Limit;
use crate::numbers::{le_len32, le16, slice};
use crate::object::Object;

/// First bytes of the header before an entry, of the descriptor after it, and of an entry of the directory.
const HEADER: &[u8] = b"PK\x03\x04";
const DESCRIPTOR: &[u8] = b"PK\x07\x08";
const ENTRY: &[u8] = b"PK\x01\x02";
/// First bytes of the end of the directory.
const END: &[u8] = b"PK\x05\x06";
/// Bytes of the header before an entry without its name.
const HEADER_BYTES: usize = 30;
/// The flag of an entry whose sizes stand after it.
const SIZES_FOLLOW: u16 = 8;
/// A size that stands elsewhere.
const ELSEWHERE: usize = u32::MAX as usize;

/// Returns the front of the object that is read, with a new directory; `None` if no entry is there.
pub(crate) fn repaired(object: &Object) -> Option<Object> {
    let bytes = &*object.bytes;
    let (mut directory, mut count, mut at) = (Vec::new(), 0_u16, 0);
    // The numbers of a directory without the 64-bit form.
    let count_max = u16::try_from(Limit::Entries.bound()).unwrap_or(u16::MAX - 1);
    while let Some(start) = find(bytes, at, HEADER)
        && count < count_max
    {
        let Some((entry, end)) = entry(bytes, start) else { break };
        directory.extend(entry);
        count += 1;
        at = end;
    }
    let (begin, size) = (u32::try_from(bytes.len()).ok()?, u32::try_from(directory.len()).ok()?);
    let end = [END, &[0; 4], &count.to_le_bytes(), &count.to_le_bytes()].concat();
    let end = [&end[..], &size.to_le_bytes(), &begin.to_le_bytes(), &[0; 2]].concat();
    let whole: Bytes = [bytes, &directory, &end].concat().into();
    let size = whole.len() as u64;
    let repaired = Object { bytes: whole, size, truncated: false, rest: None, ..object.clone() };
    (0 < count).then_some(repaired)
}

fn find(bytes: &[u8], from: usize, mark: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes.get(from..)?, mark).map(|it| from + it)
}

/// Returns the directory's entry for the one whose header is at `start`, and where that ends.
fn entry(bytes: &[u8], start: usize) -> Option<(Vec<u8>, usize)> {
    let header = slice(bytes, start, HEADER_BYTES)?;
    let name_bytes = usize::from(le16(header, 26)?);
    let name = slice(bytes, start + HEADER_BYTES, name_bytes)?;
    let content = start + HEADER_BYTES + name_bytes + usize::from(le16(header, 28)?);
    let size = le_len32(header, 18)?;
    let (sums, end) = if le16(header, 6)? & SIZES_FOLLOW != 0 || size == ELSEWHERE {
        sizes_behind(bytes, content)
    } else {
        // The last entry may be cut.
        let there = size.min(bytes.len().saturating_sub(content));
        let packed = u32::try_from(there).ok()?.to_le_bytes();
        ([header.get(14..18)?, &packed, header.get(22..26)?].concat(), content + there)
    };
    let position = u32::try_from(start).ok()?.to_le_bytes();
    let name_size = u16::try_from(name_bytes).ok()?.to_le_bytes();
    let fixed = [ENTRY, &[20, 0], header.get(4..14)?, &sums, &name_size, &[0; 12], &position];
    Some(([&fixed.concat(), name].concat(), end))
}

/// Returns the checksum and the sizes of the entry whose content is at `content`, and where it ends: at
/// its descriptor, or else at the next header.
fn sizes_behind(bytes: &[u8], content: usize) -> (Vec<u8>, usize) {
    let rest = bytes.get(content..).unwrap_or_default();
    for at in memchr::memmem::find_iter(rest, b"PK") {
        let mark = rest.get(at..).unwrap_or_default();
        if mark.starts_with(DESCRIPTOR) && le_len32(mark, 8) == Some(at) {
            return (mark.get(4..16).unwrap_or(&[0; 12]).to_vec(), content + at);
        }
        if mark.starts_with(HEADER) || mark.starts_with(ENTRY) {
            return (unknown(at), content + at);
        }
    }
    (unknown(rest.len()), bytes.len())
}

/// Returns the sums of an entry of which only the packed size is known.
fn unknown(packed: usize) -> Vec<u8> {
    let packed = u32::try_from(packed).unwrap_or(u32::MAX).to_le_bytes();
    // Not the largest number, which would stand for the 64-bit form.
    [[0; 4], packed, (u32::MAX - 1).to_le_bytes()].concat()
}
