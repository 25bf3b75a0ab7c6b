//! The end of a zip's directory: its number of entries, and where the archive begins in the file.
//!
//! Source: PKWARE's APPNOTE, §4.3.14 to §4.3.16.
//!
//! Both are checked before the `zip` crate opens an archive. It takes memory for as many entries as are
//! declared, and would search the whole file for an archive that does not begin at its front.

use std::io::{self, Read, Seek, SeekFrom};

use crate::numbers::{le16, le32, le64};

/// First bytes of each directory entry.
const ENTRY: &[u8] = b"PK\x01\x02";
/// First bytes of the record at the end of the directory.
const END: &[u8] = b"PK\x05\x06";
/// First bytes of its 64-bit form.
const END_64: &[u8] = b"PK\x06\x06";
/// First bytes of the locator of the 64-bit form, which stands right before the record.
const LOCATOR: &[u8] = b"PK\x06\x07";
/// Length of the record at the end, in bytes, without its comment.
const END_BYTES: u64 = 22;
/// Length of the 64-bit form, in bytes, without extensions.
const END_64_BYTES: u64 = 56;
/// Length of the locator, in bytes.
const LOCATOR_BYTES: usize = 20;
/// Length of the end of the file in which the record stands: its comment may have 65,535 bytes.
const TAIL_BYTES: u64 = LOCATOR_BYTES as u64 + END_BYTES + 65_535;
/// Length of the part of a file that is searched for the first entry, in bytes.
const SEARCH_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The end of a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryEnd {
    /// Position of the archive in the file: other bytes may precede it.
    pub(super) offset: u64,
    /// Number of entries; the largest if several records can be meant.
    pub(super) entries: u64,
    /// Its declared size, in bytes.
    pub(super) bytes: u64,
}

/// A record that may be the end of the directory.
struct Record {
    at: u64,
    entries: u16,
    size: u32,
    /// Position of the directory in the archive.
    directory: u32,
    /// Position of the locator in the file, and of the 64-bit form in the archive.
    locator: Option<(u64, u64)>,
}

/// Returns the end of the directory in `reader`; zeros if there is none.
pub(super) fn find(reader: &mut (impl Read + Seek)) -> io::Result<DirectoryEnd> {
    let size = reader.seek(SeekFrom::End(0))?;
    let from = size.saturating_sub(TAIL_BYTES);
    let tail = bytes_at(reader, from, TAIL_BYTES)?;
    let found = memchr::memmem::rfind_iter(&tail, END);
    let records: Vec<Record> = found.filter_map(|at| Record::read(&tail, at, from)).collect();
    let mut end = DirectoryEnd::default();
    for (index, record) in records.iter().enumerate() {
        if let Some(offset) = record.offset(reader, index == 0)? {
            (end.offset, end.bytes) = (offset, record.size(reader, offset)?.1);
            break;
        }
    }
    for record in &records {
        end.entries = end.entries.max(record.size(reader, end.offset)?.0);
    }
    Ok(end)
}

impl Record {
    /// Reads the record at `at` in `tail`, which begins at `from` in the file.
    fn read(tail: &[u8], at: usize, from: u64) -> Option<Self> {
        let (entries, size) = (le16(tail, at + 10)?, le32(tail, at + 12)?);
        let directory = le32(tail, at + 16)?;
        let is_full = entries == u16::MAX || size == u32::MAX || directory == u32::MAX;
        let before = at.checked_sub(LOCATOR_BYTES).filter(|_| is_full);
        let before = before.filter(|it| tail.get(*it..).is_some_and(|it| it.starts_with(LOCATOR)));
        let locator = before.and_then(|it| Some((from + it as u64, le64(tail, it + 8)?)));
        Some(Self { at: from + at as u64, entries, size, directory, locator })
    }

    /// Returns the position of the archive in the file if the record is the end of a directory.
    /// `searches` tells whether to look for a directory that is not where it should be.
    fn offset(&self, reader: &mut (impl Read + Seek), searches: bool) -> io::Result<Option<u64>> {
        if let Some((at, end)) = self.locator {
            for begin in [Some(end), at.checked_sub(END_64_BYTES)].into_iter().flatten() {
                if bytes_at(reader, begin, 4)? == END_64 && end <= begin {
                    return Ok(Some(begin - end));
                }
            }
            return Ok(None);
        }
        let directory = u64::from(self.directory);
        if self.entries == 0 {
            return Ok(Some(self.at.saturating_sub(directory)));
        }
        let before = self.at.checked_sub(self.size.into()).filter(|it| directory <= *it);
        for begin in [before, Some(directory)].into_iter().flatten() {
            if bytes_at(reader, begin, 4)? == ENTRY {
                return Ok(Some(begin - directory));
            }
        }
        let count = self.at.saturating_sub(directory).min(SEARCH_BYTES_MAX);
        let searched = if searches { bytes_at(reader, directory, count)? } else { Vec::new() };
        Ok(memchr::memmem::find(&searched, ENTRY).map(|it| it as u64))
    }

    /// Returns the number of entries, and their size in bytes, if the archive begins at `offset`.
    fn size(&self, reader: &mut (impl Read + Seek), offset: u64) -> io::Result<(u64, u64)> {
        let small = (self.entries.into(), self.size.into());
        let Some((_, end)) = self.locator else { return Ok(small) };
        let record = bytes_at(reader, end.saturating_add(offset), END_64_BYTES)?;
        let large = le64(&record, 32).zip(le64(&record, 40));
        Ok(large.filter(|_| record.starts_with(END_64)).unwrap_or(small))
    }
}

/// Returns the bytes at `at`, fewer than `count` at the end of the file.
fn bytes_at(reader: &mut (impl Read + Seek), at: u64, count: u64) -> io::Result<Vec<u8>> {
    reader.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}
