//! Trees of storages and streams, written as compound files: documents that are embedded in others become
//! files of their own.
//!
//! Source: Microsoft's \[MS-CFB\] 2.2 (the header of version 4), 2.3 to 2.6.
//!
//! # Differences from the specification
//!
//! * All entries of the directory are black: their trees are balanced, but not always as the colors demand.
//! * Times and state bits of storages are left out.

use super::{Compound, ENTRY_BYTES, KIND_ROOT, KIND_STORAGE, KIND_STREAM, ROOT};
use super::{SMALL_BYTES, SMALL_SECTOR_BYTES};
use crate::office::COMPOUND;

/// Bytes of a sector. Sectors of version 4 are so long that the header has room for the whole table.
const SECTOR_BYTES: usize = 4096;
/// Number of sectors of the table that the header lists.
const LISTED: usize = 109;
/// A number that stands for no entry, or for a free sector.
const NONE: u32 = u32::MAX;
/// The end of a chain of sectors.
const END: u32 = 0xffff_fffe;
/// The mark of a sector with a part of the table.
const TABLE: u32 = 0xffff_fffd;
/// Longest name, in units of UTF-16.
const NAME_UNITS_MAX: usize = 31;

struct TreeEntry {
    name: Vec<u16>,
    kind: u8,
    content: Vec<u8>,
    children: Vec<usize>,
    left: u32,
    right: u32,
    child: u32,
}

/// A tree to write; its root has the number [`ROOT`].
pub(in crate::office) struct Tree {
    entries: Vec<TreeEntry>,
    class: Vec<u8>,
}

impl Tree {
    pub(in crate::office) fn new() -> Self {
        let mut tree = Self { entries: Vec::new(), class: vec![0; 16] };
        tree.push("Root Entry", KIND_ROOT, Vec::new());
        tree
    }

    fn push(&mut self, name: &str, kind: u8, content: Vec<u8>) -> usize {
        let name = name.encode_utf16().take(NAME_UNITS_MAX).collect();
        let (children, none) = (Vec::new(), NONE);
        let entry =
            TreeEntry { name, kind, content, children, left: none, right: none, child: none };
        self.entries.push(entry);
        self.entries.len() - 1
    }

    /// Adds a stream, or a storage if it has no content, to the storage `parent`; returns its number.
    pub(in crate::office) fn add(
        &mut self,
        parent: usize,
        name: &str,
        content: Option<Vec<u8>>,
    ) -> usize {
        let kind = if content.is_some() { KIND_STREAM } else { KIND_STORAGE };
        let number = self.push(name, kind, content.unwrap_or_default());
        if let Some(parent) = self.entries.get_mut(parent) {
            parent.children.push(number);
        }
        number
    }

    /// Adds what is in a storage of a file. Returns `None` if that is more than the whole file: then its
    /// streams overlap.
    pub(in crate::office) fn copy(
        &mut self,
        file: &Compound<'_>,
        storage: usize,
        into: usize,
    ) -> Option<()> {
        let mut left = file.bytes.len();
        let mut open = vec![(storage, into)];
        while let Some((from, into)) = open.pop() {
            for node in file.children(from) {
                let content = || file.content(node.number).unwrap_or_default();
                let content = (!node.is_storage).then(content);
                left = left.checked_sub(content.as_ref().map_or(0, Vec::len))?;
                let number = self.add(into, &node.name, content);
                open.extend(node.is_storage.then_some((node.number, number)));
            }
        }
        if into == ROOT {
            self.class = file.entry(storage)?.get(80..96)?.to_vec();
        }
        Some(())
    }

    /// Returns the content of a stream right below the root.
    pub(in crate::office) fn stream_mut(&mut self, name: &str) -> Option<&mut Vec<u8>> {
        let root = self.entries.get(ROOT)?.children.clone();
        let is_named =
            |it: &TreeEntry| String::from_utf16_lossy(&it.name).eq_ignore_ascii_case(name);
        let number = root.into_iter().find(|it| self.entries.get(*it).is_some_and(is_named))?;
        self.entries.get_mut(number).map(|it| &mut it.content)
    }

    /// Returns the file.
    pub(in crate::office) fn into_bytes(mut self) -> Vec<u8> {
        for number in 0..self.entries.len() {
            let Some(entry) = self.entries.get_mut(number) else { break };
            let mut children = std::mem::take(&mut entry.children);
            children.sort_by_cached_key(|it| self.entries.get(*it).map(order));
            let child = self.link(&children);
            if let Some(entry) = self.entries.get_mut(number) {
                entry.child = child;
            }
        }
        let mut small = Sectors::new(SMALL_SECTOR_BYTES);
        let mut large = Sectors::new(SECTOR_BYTES);
        let mut directory = Vec::new();
        for entry in self.entries.iter().skip(1) {
            let sectors = if entry.content.len() < SMALL_BYTES { &mut small } else { &mut large };
            directory.extend(entry.bytes(sectors.add(&entry.content), entry.content.len()));
        }
        let root_first = large.add(&small.bytes);
        let root = self.entries.first().map(|it| it.bytes(root_first, small.bytes.len()));
        let mut root = root.unwrap_or_default();
        root.splice(80..96, self.class);
        directory.splice(..0, root);
        directory.resize(directory.len().next_multiple_of(SECTOR_BYTES), 0);
        let small_table: Vec<u8> = small.table.iter().flat_map(|it| it.to_le_bytes()).collect();
        let small_table = (large.add(&small_table), sectors_of(small_table.len()));
        let directory = (large.add(&directory), sectors_of(directory.len()));
        large.into_file(directory, small_table)
    }

    /// Links these entries, which are in order, to a balanced tree; returns the number of its top.
    fn link(&mut self, entries: &[usize]) -> u32 {
        let (before, rest) = entries.split_at(entries.len() / 2);
        let Some((number, after)) = rest.split_first() else { return NONE };
        let (left, right) = (self.link(before), self.link(after));
        if let Some(entry) = self.entries.get_mut(*number) {
            (entry.left, entry.right) = (left, right);
        }
        u32::try_from(*number).unwrap_or(NONE)
    }
}

/// Names are in order of their lengths, and of their letters without regard to case.
fn order(entry: &TreeEntry) -> (usize, String) {
    (entry.name.len(), String::from_utf16_lossy(&entry.name).to_uppercase())
}

fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

fn sectors_of(bytes: usize) -> u32 {
    number(bytes.div_ceil(SECTOR_BYTES))
}

impl TreeEntry {
    fn bytes(&self, first: u32, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.name.iter().flat_map(|it| it.to_le_bytes()).collect();
        let name_bytes = u16::try_from(bytes.len() + 2).unwrap_or(0);
        bytes.resize(64, 0);
        bytes.extend(name_bytes.to_le_bytes());
        bytes.extend([self.kind, 1]);
        bytes.extend([self.left, self.right, self.child].into_iter().flat_map(u32::to_le_bytes));
        bytes.resize(116, 0);
        let first = if self.kind == KIND_STORAGE { 0 } else { first };
        bytes.extend(first.to_le_bytes());
        bytes.extend(number(size).to_le_bytes());
        bytes.resize(ENTRY_BYTES, 0);
        bytes
    }
}

/// Sectors of one size, and the table of each one's next.
struct Sectors {
    sector_bytes: usize,
    bytes: Vec<u8>,
    table: Vec<u32>,
}

impl Sectors {
    fn new(sector_bytes: usize) -> Self {
        Self { sector_bytes, bytes: Vec::new(), table: Vec::new() }
    }

    /// Adds a chain of sectors; returns its first.
    fn add(&mut self, content: &[u8]) -> u32 {
        if content.is_empty() {
            return END;
        }
        let first = self.table.len();
        let after = first + content.len().div_ceil(self.sector_bytes);
        self.table.extend((first + 1..after).map(number));
        self.table.push(END);
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.table.len() * self.sector_bytes, 0);
        number(first)
    }

    /// Returns the file of these sectors, and of those with their table. The directory and the table of
    /// small sectors are given by their first sectors and their lengths.
    fn into_file(mut self, directory: (u32, u32), small_table: (u32, u32)) -> Vec<u8> {
        let in_sector = SECTOR_BYTES / 4;
        let first = self.table.len();
        // The table has a place for each of its own sectors, too.
        let count = first.div_ceil(in_sector - 1).min(LISTED);
        self.table.extend(std::iter::repeat_n(TABLE, count));
        self.table.resize(count * in_sector, NONE);
        // Versions, byte order, and the sizes of sectors as powers of two.
        let fixed = [0x0004_003e_u32, 0x000c_fffe, 6, 0];
        let (directory, directory_count) = directory;
        let (small_table, small_table_count) = small_table;
        let numbers = [
            directory_count,
            number(count),
            directory,
            0,
            number(SMALL_BYTES),
            small_table,
            small_table_count,
            END,
            0,
        ];
        let numbers = fixed.into_iter().chain(numbers).flat_map(u32::to_le_bytes);
        let mut header: Vec<u8> = [COMPOUND, &[0; 16]].concat();
        header.extend(numbers);
        header.extend((first..first + count).map(number).flat_map(u32::to_le_bytes));
        header.resize(0x200, 0xff);
        header.resize(SECTOR_BYTES, 0);
        let table = self.table.iter().flat_map(|it| it.to_le_bytes());
        header.into_iter().chain(self.bytes).chain(table).collect()
    }
}
