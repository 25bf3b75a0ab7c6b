//! Compound files: the file system inside documents from before 2007, and its property sets.
//!
//! Source: Microsoft's \[MS-CFB\] 2.1 to 2.6, and \[MS-OLEPS\] 2.20 and 3.1 for the property sets.
//!
//! # Differences from the specification
//!
//! * No chain of sectors may be longer than the file, so that loops end. Every entry of the directory is in
//!   the first storage that leads to it. The colors of the directory's trees are not checked.
//! * Case is ignored in names as in ASCII: all names that are looked for are ASCII.

pub(super) mod programs;
pub(super) mod tree;

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::{OfficeDraft, codepage};
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32};
use crate::object::ProblemKind;
use crate::text::front;

/// Bytes of an entry of the directory.
const ENTRY_BYTES: usize = 128;
/// Bytes of a sector of small streams.
const SMALL_SECTOR_BYTES: usize = 64;
/// Streams shorter than this many bytes are in small sectors.
const SMALL_BYTES: usize = 4096;
/// Kinds of entries of the directory.
const KIND_STORAGE: u8 = 1;
const KIND_STREAM: u8 = 2;
const KIND_ROOT: u8 = 5;
/// Lowest sector number with a special meaning: the end, or none.
const LAST_SECTOR: u32 = 0xffff_fffa;
/// Seconds from 1601, the beginning of Microsoft's time, to 1970.
const EPOCH_SECONDS: i64 = 11_644_473_600;

/// The number of the root storage.
pub(super) const ROOT: usize = 0;

/// A stream or storage in the directory.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) is_storage: bool,
    /// The number of its entry.
    pub(super) number: usize,
    /// The number of the storage that it is in.
    parent: usize,
}

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
    /// All streams and storages, by the storages that they are in.
    nodes: Vec<Node>,
    /// Whether all entries that others lead to are there.
    is_whole: bool,
    /// Limits that it goes beyond, as far as [`Compound::cut`] has not said so.
    cuts: RefCell<BTreeSet<Limit>>,
}

pub(super) fn utf16(bytes: &[u8]) -> String {
    encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0.into_owned()
}

impl<'a> Compound<'a> {
    /// Opens the file; returns `None` if its directory cannot be read.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let mut file = Self::directory_of(bytes)?;
        // The table has four bytes for each small sector.
        let small_table_bytes = Limit::Stream.bound() / SMALL_SECTOR_BYTES * 4;
        let small_table = file.chain(le32(bytes, 0x3c)?, small_table_bytes);
        file.small_table = numbers(&small_table).collect();
        let root = file.entry(ROOT)?;
        let (first, size) = (le32(root, 116)?, le_len32(root, 120)?);
        file.bounded(size);
        file.small = file.chain(first, Limit::Stream.bound());
        Some(file)
    }

    /// Opens the directory alone; small streams cannot be read.
    pub(super) fn directory_of(bytes: &'a [u8]) -> Option<Self> {
        let shift = u32::from(le16(bytes, 0x1e)?);
        let sector_bytes = 1_usize << if shift == 12 { 12 } else { 9 };
        let mut file = Self {
            bytes,
            sector_bytes,
            table: Vec::new(),
            small_table: Vec::new(),
            small: Vec::new(),
            directory: Vec::new(),
            nodes: Vec::new(),
            is_whole: true,
            cuts: RefCell::default(),
        };
        file.read_table()?;
        let directory_bytes = (Limit::Streams.bound() + 1) * ENTRY_BYTES;
        file.directory = file.chain(le32(bytes, 0x30)?, directory_bytes);
        file.entry(ROOT).filter(|it| it.get(66) == Some(&KIND_ROOT))?;
        file.read_directory();
        if !file.is_whole && file.directory.len() == directory_bytes {
            file.cuts.get_mut().insert(Limit::Streams);
        }
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

    /// Reads the streams and storages: each storage has a tree of entries.
    fn read_directory(&mut self) {
        let mut seen = vec![false; self.directory.len() / ENTRY_BYTES];
        let mut open = vec![(ROOT, self.link(ROOT, 76))];
        while let Some((parent, number)) = open.pop() {
            let Some(number) = number else { continue };
            let Some(is_seen) = seen.get_mut(number).filter(|it| !**it && number != ROOT) else {
                self.is_whole &= number < seen.len();
                continue;
            };
            *is_seen = true;
            open.extend([(parent, self.link(number, 68)), (parent, self.link(number, 72))]);
            let Some(entry) = self.entry(number) else { continue };
            let is_storage = entry.get(66) == Some(&KIND_STORAGE);
            if is_storage || entry.get(66) == Some(&KIND_STREAM) {
                let name_bytes = le16(entry, 64).map_or(0, usize::from).clamp(2, 64) - 2;
                let name = utf16(entry.get(..name_bytes).unwrap_or_default());
                self.nodes.push(Node { name, is_storage, number, parent });
            }
            if is_storage {
                open.push((number, self.link(number, 76)));
            }
        }
        self.nodes.sort_by_key(|it| it.parent);
    }

    /// Returns the number at this offset of an entry, which leads to another one; `None` for none.
    fn link(&self, number: usize, at: usize) -> Option<usize> {
        le_len32(self.entry(number)?, at).filter(|it| *it != u32::MAX as usize)
    }

    /// Returns the class identifier of the root, which shows the program that wrote the file.
    pub(super) fn class(&self) -> &[u8] {
        self.entry(ROOT).and_then(|it| it.get(80..96)).unwrap_or_default()
    }

    /// Returns the streams and storages right in a storage.
    pub(super) fn children(&self, storage: usize) -> impl Iterator<Item = &Node> {
        let start = self.nodes.partition_point(|it| it.parent < storage);
        self.nodes.iter().skip(start).take_while(move |it| it.parent == storage)
    }

    /// Returns the stream or storage of this name in a storage.
    pub(super) fn child(&self, storage: usize, name: &str) -> Option<&Node> {
        self.children(storage).find(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// Returns the stream of this name right below the root; deeper ones are of embedded documents.
    pub(super) fn stream(&self, name: &str) -> Option<Vec<u8>> {
        self.stream_in(ROOT, name)
    }

    pub(super) fn stream_in(&self, storage: usize, name: &str) -> Option<Vec<u8>> {
        let node = self.child(storage, name).filter(|it| !it.is_storage)?;
        self.content(node.number)
    }

    /// Returns the content of the stream at this entry.
    pub(super) fn content(&self, number: usize) -> Option<Vec<u8>> {
        let entry = self.entry(number)?;
        let size = le_len32(entry, 120)?;
        let first = le32(entry, 116)?;
        let bytes_max = self.bounded(size);
        Some(if size < SMALL_BYTES {
            self.small_chain(first, bytes_max)
        } else {
            self.chain(first, bytes_max)
        })
    }

    /// Returns how many bytes the streams right in a storage have together.
    pub(super) fn bytes_in(&self, storage: usize) -> usize {
        let streams = self.children(storage).filter(|it| !it.is_storage);
        let sizes = streams.filter_map(|it| le_len32(self.entry(it.number)?, 120));
        sizes.fold(0, usize::saturating_add)
    }

    /// Returns how much is read of a stream of this size.
    fn bounded(&self, size: usize) -> usize {
        let most = Limit::Stream.bound();
        if most < size.min(self.bytes.len()) {
            self.cuts.borrow_mut().insert(Limit::Stream);
        }
        size.min(most)
    }

    /// Returns the problem if a stream or the directory was longer than is read; says each once.
    pub(super) fn cut(&self) -> Option<(ProblemKind, String)> {
        self.cuts.borrow_mut().pop_first().map(|it| it.cut().problem())
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it))
}

/// Adds a set of properties: the first has title and authors, the second the company.
pub(super) fn properties(set: &[u8], is_first: bool, document: &mut OfficeDraft) -> Option<()> {
    let section = set.get(le_len32(set, 44)?..)?;
    let count = le_len32(section, 4)?.min(section.len() / 8);
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
            let kept = front(&value, Limit::Property.bound());
            if kept.len() < value.len() {
                document.cuts.insert(Limit::Property);
            }
            document.properties.add(name, kept);
        }
    }
    Some(())
}

/// Returns the value of a property as text.
fn property(bytes: &[u8], page: i64) -> Option<String> {
    let size = || le_len32(bytes, 4);
    let value = match le32(bytes, 0)? {
        3 => le32(bytes, 4).filter(|it| 0 < *it)?.to_string(),
        30 => {
            let text = bytes.get(8..)?;
            let text = text.get(..size()?).unwrap_or(text);
            codepage::of_number(page).decode_without_bom_handling(text).0.into_owned()
        }
        31 => {
            let text = bytes.get(8..)?;
            utf16(text.get(..size()?.checked_mul(2)?).unwrap_or(text))
        }
        64 => time(i64::from_le_bytes(*bytes.get(4..)?.first_chunk()?))?,
        _ => return None,
    };
    Some(value.split('\0').next()?.to_owned())
}

/// Returns Microsoft's time, in tenths of microseconds since 1601, as RFC 3339 has it.
pub(super) fn time(ticks: i64) -> Option<String> {
    let seconds = ticks / 10_000_000 - EPOCH_SECONDS;
    // Programs without a clock write no time, or the first day.
    let time = jiff::Timestamp::from_second(seconds).ok().filter(|_| 0 < seconds)?;
    Some(time.to_string())
}
