//! Compound files: the file system inside documents from before 2007, and its property sets.
//!
//! Source: Microsoft's \[MS-CFB\] 2.1 to 2.6, and \[MS-OLEPS\] 2.20 and 3.1 for the property sets.
//!
//! # Differences from the specification
//!
//! * No chain of sectors may be longer than the file, so that loops end. The colors of the directory's trees
//!   are not checked.

use super::{OfficeDraft, codepage};
use crate::numbers::{le_len32, le16, le32};
use crate::text::front;

/// Maximum number of bytes of a stream that are read.
const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of entries of the directory.
const ENTRIES_MAX: usize = 16 * 1024;
/// Bytes of an entry of the directory.
const ENTRY_BYTES: usize = 128;
/// Bytes of a sector of small streams.
const SMALL_SECTOR_BYTES: usize = 64;
/// Longest table of small sectors, in bytes: four for each sector of the longest stream.
const SMALL_TABLE_BYTES_MAX: usize = STREAM_BYTES_MAX / SMALL_SECTOR_BYTES * 4;
/// Streams shorter than this many bytes are in small sectors.
const SMALL_BYTES: usize = 4096;
/// Lowest sector number with a special meaning: the end, or none.
const LAST_SECTOR: u32 = 0xffff_fffa;
/// Maximum number of properties of a set.
const PROPERTIES_MAX: usize = 256;
/// Longest property, in bytes.
const PROPERTY_BYTES_MAX: usize = 4 * 1024;
/// Seconds from 1601, the beginning of Microsoft's time, to 1970.
const EPOCH_SECONDS: i64 = 11_644_473_600;

/// A compound file that is open.
pub(super) struct Compound<'a> {
    bytes: &'a [u8],
    sector_bytes: usize,
    /// The sector that follows each sector.
    table: Vec<u32>,
    small_table: Vec<u32>,
    /// The content of all small sectors.
    small: Vec<u8>,
    directory: Vec<u8>,
}

pub(super) fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0.into_owned()
}

impl<'a> Compound<'a> {
    /// Opens the file; returns `None` if its directory cannot be read.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let shift = u32::from(le16(bytes, 0x1e)?);
        let sector_bytes = 1_usize << if shift == 12 { 12 } else { 9 };
        let mut file = Self {
            bytes,
            sector_bytes,
            table: Vec::new(),
            small_table: Vec::new(),
            small: Vec::new(),
            directory: Vec::new(),
        };
        file.read_table()?;
        file.directory = file.chain(le32(bytes, 0x30)?, ENTRIES_MAX * ENTRY_BYTES);
        let small_table = file.chain(le32(bytes, 0x3c)?, SMALL_TABLE_BYTES_MAX);
        file.small_table = numbers(&small_table).collect();
        let root = le32(file.entry(0)?, 116)?;
        file.small = file.chain(root, STREAM_BYTES_MAX);
        Some(file)
    }

    fn sector(&self, number: u32) -> Option<&'a [u8]> {
        let start = usize::try_from(number).ok()?.checked_add(1)?.checked_mul(self.sector_bytes)?;
        let rest = self.bytes.get(start..).filter(|it| !it.is_empty())?;
        // The last one may be shorter.
        rest.get(..self.sector_bytes).or(Some(rest))
    }

    /// Reads the table of each sector's next one. The sectors of the table are listed in the
    /// header, and in further sectors, each of which ends with the number of the next.
    fn read_table(&mut self) -> Option<()> {
        let sectors_max = self.bytes.len() / self.sector_bytes + 1;
        let mut listed: Vec<u32> = numbers(self.bytes.get(0x4c..0x200)?).collect();
        let mut next = le32(self.bytes, 0x44)?;
        for _ in 0..sectors_max {
            let Some(sector) = self.sector(next).filter(|_| next < LAST_SECTOR) else { break };
            let (list, last) = sector.split_at(sector.len().saturating_sub(4));
            listed.extend(numbers(list));
            next = le32(last, 0).unwrap_or(LAST_SECTOR);
            if sectors_max < listed.len() {
                break;
            }
        }
        for number in listed.into_iter().filter(|it| *it < LAST_SECTOR) {
            if sectors_max <= self.table.len() {
                break;
            }
            let sector = self.sector(number).unwrap_or_default();
            self.table.extend(numbers(sector));
        }
        Some(())
    }

    /// Returns the content of the sectors from `first` on.
    fn chain(&self, first: u32, bytes_max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut next = first;
        for _ in 0..=self.table.len() {
            let Some(sector) = self.sector(next).filter(|_| next < LAST_SECTOR) else { break };
            bytes.extend_from_slice(sector);
            if bytes_max <= bytes.len() {
                break;
            }
            let follower = usize::try_from(next).ok().and_then(|it| self.table.get(it));
            next = follower.copied().unwrap_or(LAST_SECTOR);
        }
        bytes.truncate(bytes_max);
        bytes
    }

    fn small_chain(&self, first: u32, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut next = first;
        while bytes.len() < size {
            let at = usize::try_from(next).unwrap_or(usize::MAX);
            let start = at.saturating_mul(SMALL_SECTOR_BYTES);
            let Some(rest) = self.small.get(start..).filter(|it| !it.is_empty()) else { break };
            bytes.extend_from_slice(rest.get(..SMALL_SECTOR_BYTES).unwrap_or(rest));
            next = self.small_table.get(at).copied().unwrap_or(LAST_SECTOR);
        }
        bytes.truncate(size);
        bytes
    }

    fn entry(&self, number: usize) -> Option<&[u8]> {
        let start = number.checked_mul(ENTRY_BYTES)?;
        self.directory.get(start..)?.get(..ENTRY_BYTES)
    }

    /// Returns the stream of this name right below the root; deeper ones are of embedded documents.
    pub(super) fn stream(&self, name: &str) -> Option<Vec<u8>> {
        let mut open = vec![le32(self.entry(0)?, 76)?];
        for _ in 0..ENTRIES_MAX {
            let number = open.pop()?;
            let Some(entry) = usize::try_from(number).ok().and_then(|it| self.entry(it)) else {
                continue;
            };
            let name_bytes = usize::from(le16(entry, 64)?).clamp(2, 64) - 2;
            if entry.get(66) == Some(&2) && utf16(entry.get(..name_bytes)?) == name {
                let size = le_len32(entry, 120)?.min(STREAM_BYTES_MAX);
                let first = le32(entry, 116)?;
                return Some(if size < SMALL_BYTES {
                    self.small_chain(first, size)
                } else {
                    self.chain(first, size)
                });
            }
            open.extend([le32(entry, 68)?, le32(entry, 72)?]);
        }
        None
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it))
}

/// Adds a set of properties: the first has title and authors, the second the company.
pub(super) fn properties(set: &[u8], is_first: bool, document: &mut OfficeDraft) -> Option<()> {
    let section = set.get(le_len32(set, 44)?..)?;
    let count = le_len32(section, 4)?.min(PROPERTIES_MAX);
    let offset = |wanted: u32| {
        let of = |number: usize| {
            let at = 8 + 8 * number;
            let is_wanted = le32(section, at) == Some(wanted);
            is_wanted.then(|| le_len32(section, at + 4)).flatten()
        };
        (0..count).find_map(of)
    };
    let page = offset(1).and_then(|at| le16(section, at + 4)).map_or(1252, i64::from);
    let names: &[(u32, &str)] = if is_first {
        &[
            (2, "title"),
            (3, "subject"),
            (4, "creator"),
            (5, "keywords"),
            (6, "description"),
            (12, "created"),
            (13, "modified"),
            (14, "Pages"),
            (18, "Application"),
        ]
    } else {
        &[(2, "category"), (15, "Company")]
    };
    for (number, name) in names {
        if let Some(value) = offset(*number).and_then(|at| property(section.get(at..)?, page)) {
            document.properties.add(name, &value);
        }
    }
    Some(())
}

/// Returns the value of a property as text.
fn property(bytes: &[u8], page: i64) -> Option<String> {
    let size = || Some(le_len32(bytes, 4)?.min(PROPERTY_BYTES_MAX));
    let value = match le32(bytes, 0)? {
        3 => le32(bytes, 4).filter(|it| 0 < *it)?.to_string(),
        30 => {
            let text = bytes.get(8..)?;
            let text = text.get(..size()?).unwrap_or(text);
            codepage::of_number(page).decode_without_bom_handling(text).0.into_owned()
        }
        31 => {
            let text = bytes.get(8..)?;
            utf16(text.get(..size()? * 2).unwrap_or(text))
        }
        64 => {
            let ticks = i64::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
            let seconds = ticks / 10_000_000 - EPOCH_SECONDS;
            // Programs without a clock write no time, or the first day.
            let time = jiff::Timestamp::from_second(seconds).ok().filter(|_| 0 < seconds)?;
            time.to_string()
        }
        _ => return None,
    };
    Some(front(value.split('\0').next()?, PROPERTY_BYTES_MAX).to_owned())
}
