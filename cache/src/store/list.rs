//! The list of a segment: where its records are, without their bytes.

use std::io;

use disk::File;
use xxhash_rust::xxh3::xxh3_64;

use super::index::UNIT;
use super::record::{FRONT_BYTES, Front, Kind};

/// Bytes of an entry of a list: hash, sequence, start, length in units, the record's kind and variant.
const ENTRY_BYTES: usize = 32;

/// A record of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) sequence: u64,
    pub(super) variant: u32,
    pub(super) at: u32,
    pub(super) length: u32,
    pub(super) kind: Kind,
}

/// Reads the records of a segment without a list, up to the first that is not whole. Returns them with
/// the place of their end, in bytes.
pub(super) fn scan(file: &File) -> io::Result<(Vec<Entry>, u64)> {
    let (mut entries, mut at, length) = (Vec::new(), 0, file.length()?);
    while at + FRONT_BYTES as u64 <= length {
        let Some((front, _)) = front_and_head(file, at, length)? else { break };
        let units = |bytes: u64| u32::try_from(bytes.div_ceil(UNIT)).ok();
        let (Some(start), Some(length)) = (units(at), units(front.record_bytes())) else { break };
        let (hash, sequence, kind) = (front.hash, front.sequence, front.kind);
        let variant = front.variant;
        entries.push(Entry { hash, sequence, variant, at: start, length, kind });
        at = (u64::from(start) + u64::from(length)) * UNIT;
    }
    Ok((entries, at))
}

/// Reads the front and the head of the record at a place; `None`: they are not whole, or the record would
/// not end within `length`.
pub(super) fn front_and_head(
    file: &File,
    at: u64,
    length: u64,
) -> io::Result<Option<(Front, Vec<u8>)>> {
    let mut front = [0; FRONT_BYTES];
    file.read_exact_at(&mut front, at)?;
    let Some(front) = Front::read(&front).filter(|it| at + it.record_bytes() <= length) else {
        return Ok(None);
    };
    let mut head = vec![0; front.head_bytes as usize];
    file.read_exact_at(&mut head, at + FRONT_BYTES as u64)?;
    Ok(front.is_head(&head).then_some((front, head)))
}

/// Returns the list of a segment.
pub(super) fn write_list(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + entries.len() * ENTRY_BYTES);
    for it in entries {
        out.extend(it.hash.to_le_bytes());
        out.extend(it.sequence.to_le_bytes());
        out.extend(it.at.to_le_bytes());
        out.extend(it.length.to_le_bytes());
        out.extend(u32::from(it.kind == Kind::Removal).to_le_bytes());
        out.extend(it.variant.to_le_bytes());
    }
    let sum = xxh3_64(&out);
    out.extend(sum.to_le_bytes());
    out
}

/// Reads a list; `None`: it is damaged.
pub(super) fn read_list(bytes: &[u8]) -> Option<Vec<Entry>> {
    let (bytes, sum) = bytes.split_last_chunk()?;
    if u64::from_le_bytes(*sum) != xxh3_64(bytes) || !bytes.len().is_multiple_of(ENTRY_BYTES) {
        return None;
    }
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let entry = |it: &[u8; ENTRY_BYTES]| {
        let number = |at: usize, count: usize| {
            let bytes = it.get(at..at + count).unwrap_or_default().iter().rev();
            bytes.fold(0, |number: u64, it| number << 8 | u64::from(*it))
        };
        let short = |at| u32::try_from(number(at, 4)).unwrap_or_default();
        let kind = if short(24) == 0 { Kind::Object } else { Kind::Removal };
        Entry {
            hash: number(0, 8),
            sequence: number(8, 8),
            variant: short(28),
            at: short(16),
            length: short(20),
            kind,
        }
    };
    Some(entries.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_or_not_at_all() {
        let entry = |hash: u64, kind| Entry {
            hash,
            sequence: hash * 3,
            variant: 9,
            at: 5,
            length: 7,
            kind,
        };
        let all = vec![entry(1, Kind::Object), entry(u64::MAX / 3, Kind::Removal)];
        let list = write_list(&all);
        assert_eq!(read_list(&list), Some(all));
        assert_eq!(read_list(&write_list(&[])), Some(Vec::new()));
        for at in 0..list.len() {
            let mut damaged = list.clone();
            damaged[at] ^= 1;
            assert_eq!(read_list(&damaged), None, "byte {at}");
            assert_eq!(read_list(&list[..at]), None, "cut at {at}");
        }
    }
}
