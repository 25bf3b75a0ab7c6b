//! A run: keys and their values in one sorted file that never changes.
//!
//! | part | contents |
//! |---|---|
//! | blocks | about 8 KiB each: entries, then their xxh3 (8 bytes) |
//! | entry | varints: bytes shared with the key before it in the block, bytes of its own, value bytes + 1 (0: the key is removed); then key and value |
//! | index | of each block: varint length of a key that separates it from the block before, that key, varint length of the block |
//! | filter | a Bloom filter of all keys |
//! | end | offsets of index and filter, number of entries, xxh3 of all that follows the blocks, a magic number (8 bytes each) |
//!
//! Numbers of fixed length are little-endian. Index and filter stay in memory: about 2 bytes a key.
//!
//! Source: the sorted tables of O'Neil et al., "The log-structured merge-tree" (1996).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use disk::{Disk, File};
use xxhash_rust::xxh3::xxh3_64;

use super::bloom::Bloom;
use crate::member::{get, put};

/// Size at which a block is closed, in bytes.
const BLOCK_BYTES: usize = 8 << 10;
/// Number of bytes that are written at once.
const WRITE_BYTES: usize = 256 << 10;
const MAGIC: [u8; 8] = *b"hrvkeys1";
const CHECKSUM_BYTES: usize = 8;
const END_BYTES: usize = 40;

pub(super) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("run-{number}"))
}

/// Returns the number in the name of a run's file; `None` for another name.
pub(super) fn number(name: &str) -> Option<u64> {
    name.strip_prefix("run-")?.parse().ok()
}

/// The first key of each block, cut after the first byte that differs from the last key before.
#[derive(Debug, Default)]
struct Index {
    keys: Vec<u8>,
    /// The end of each key in `keys`.
    key_ends: Vec<usize>,
    /// The end of each block in the file.
    block_ends: Vec<u64>,
}

impl Index {
    fn push(&mut self, key: &[u8], block_end: u64) {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        self.block_ends.push(block_end);
    }

    fn key(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |it| self.key_ends[it]);
        &self.keys[start..self.key_ends[block]]
    }

    fn block(&self, block: usize) -> Option<(u64, u64)> {
        let start = block.checked_sub(1).map_or(0, |it| self.block_ends[it]);
        Some((start, *self.block_ends.get(block)?))
    }

    /// Returns the number of the only block that may have `key`.
    fn find(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.key_ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        for block in 0..self.key_ends.len() {
            let key = self.key(block);
            put(out, key.len() as u64);
            out.extend_from_slice(key);
            let (start, end) = self.block(block).unwrap_or_default();
            put(out, end - start);
        }
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let mut index = Self::default();
        let mut end = 0_u64;
        while !bytes.is_empty() {
            let length = usize::try_from(get(bytes)?).ok()?;
            let (key, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            end = end.checked_add(get(bytes)?)?;
            index.push(key, end);
        }
        Some(index)
    }
}

#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    number: u64,
    disk: Disk,
    file: File,
    written: u64,
    /// Bytes to be written next.
    unwritten: Vec<u8>,
    block: Vec<u8>,
    /// The key prefix that separates the open block from the one before.
    separator: Vec<u8>,
    last: Vec<u8>,
    index: Index,
    filter: Bloom,
    entries: u64,
}

impl Writer {
    /// Begins the run `number`, which will have at most `entries_max` entries.
    pub(super) fn create(
        disk: &Disk,
        dir: &Path,
        number: u64,
        entries_max: u64,
    ) -> io::Result<Self> {
        let path = path(dir, number);
        Ok(Self {
            disk: disk.clone(),
            file: disk.create(&path)?,
            unwritten: Vec::with_capacity(WRITE_BYTES + 2 * BLOCK_BYTES),
            path,
            number,
            written: 0,
            block: Vec::with_capacity(2 * BLOCK_BYTES),
            separator: Vec::new(),
            last: Vec::new(),
            index: Index::default(),
            filter: Bloom::new(entries_max),
            entries: 0,
        })
    }

    /// Appends an entry. Its key must be greater than the last one. `None` as the value means that
    /// the key is removed.
    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let mut shared = shared(&self.last, key);
        if self.block.is_empty() {
            self.separator.clear();
            self.separator.extend_from_slice(&key[..key.len().min(shared + 1)]);
            shared = 0;
        }
        put(&mut self.block, shared as u64);
        put(&mut self.block, (key.len() - shared) as u64);
        put(&mut self.block, value.map_or(0, |it| it.len() as u64 + 1));
        self.block.extend_from_slice(&key[shared..]);
        self.block.extend_from_slice(value.unwrap_or_default());
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        self.filter.insert(key);
        self.entries += 1;
        if BLOCK_BYTES <= self.block.len() {
            self.close_block()?;
        }
        Ok(())
    }

    fn close_block(&mut self) -> io::Result<()> {
        let checksum = xxh3_64(&self.block);
        self.block.extend_from_slice(&checksum.to_le_bytes());
        self.unwritten.append(&mut self.block);
        self.index.push(&self.separator, self.end());
        if self.unwritten.len() < WRITE_BYTES { Ok(()) } else { self.write() }
    }

    /// Returns the offset of the next byte.
    fn end(&self) -> u64 {
        self.written + self.unwritten.len() as u64
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.unwritten, self.written)?;
        self.written += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// Ends the run and makes it durable.
    pub(super) fn finish(mut self) -> io::Result<Run> {
        if !self.block.is_empty() {
            self.close_block()?;
        }
        let mut rest = Vec::new();
        self.index.encode(&mut rest);
        let end = self.end();
        let filter_at = end + rest.len() as u64;
        self.filter.encode(&mut rest);
        for number in [end, filter_at, self.entries] {
            rest.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&rest);
        rest.extend_from_slice(&checksum.to_le_bytes());
        rest.extend_from_slice(&MAGIC);
        self.write()?;
        self.file.write_all_at(&rest, end)?;
        self.file.sync_all()?;
        Ok(Run {
            file: self.disk.open_to_read(&self.path)?,
            path: self.path,
            number: self.number,
            index: self.index,
            filter: self.filter,
            entries: self.entries,
        })
    }

    pub(super) fn abandon(self) -> io::Result<()> {
        self.disk.remove_file(&self.path)
    }
}

/// Returns how many bytes two keys have in common at their start.
fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[derive(Debug)]
pub(super) struct Run {
    file: File,
    path: PathBuf,
    pub(super) number: u64,
    index: Index,
    filter: Bloom,
    pub(super) entries: u64,
}

impl Run {
    /// Opens the run `number`, and reads its index and filter.
    pub(super) fn open(disk: &Disk, dir: &Path, number: u64) -> io::Result<Self> {
        let path = path(dir, number);
        let file = disk.open_to_read(&path)?;
        let length = file.length()?;
        let damaged = |what: &str| damaged(&path, length, what);
        let mut end = [0; END_BYTES];
        let end_at = length.checked_sub(END_BYTES as u64).ok_or_else(|| damaged("is cut short"))?;
        file.read_exact_at(&mut end, end_at)?;
        let (numbers, _) = end.as_chunks::<8>();
        let [index_at, filter_at, entries, checksum, _] =
            [0, 1, 2, 3, 4].map(|it: usize| u64::from_le_bytes(numbers[it]));
        if numbers[4] != MAGIC || filter_at < index_at || end_at < filter_at {
            return Err(damaged("has no run trailer at its end"));
        }
        let size =
            usize::try_from(end_at + 24 - index_at).map_err(|_big| damaged("is too large"))?;
        let mut rest = vec![0; size];
        file.read_exact_at(&mut rest, index_at)?;
        if xxh3_64(&rest) != checksum {
            return Err(damaged("has a wrong checksum at its end"));
        }
        let parts = usize::try_from(filter_at - index_at);
        let parts = parts.ok().and_then(|it| rest[..size - 24].split_at_checked(it));
        let (index, filter) = parts.ok_or_else(|| damaged("is too large"))?;
        let index = Index::decode(index).ok_or_else(|| damaged("has no index"))?;
        let filter = Bloom::decode(filter).ok_or_else(|| damaged("has no filter"))?;
        Ok(Self { file, number, index, filter, entries, path })
    }

    /// Removes its file; open readers go on.
    pub(super) fn remove(&self, disk: &Disk) -> io::Result<()> {
        disk.remove_file(&self.path)
    }

    /// Looks up a key. `Some(None)`: it is removed in this run; `None`: the run does not have it.
    pub(super) fn get(&self, key: &[u8]) -> io::Result<Option<Option<Vec<u8>>>> {
        if !self.filter.may_have(key) {
            return Ok(None);
        }
        let mut block = Block::default();
        if !self.read(self.index.find(key), &mut block)? {
            return Ok(None);
        }
        while block.advance().map_err(|at| self.misread(at))? {
            if key <= block.key.as_slice() {
                let found = block.key == key;
                return Ok(found.then(|| block.value().map(<[u8]>::to_vec)));
            }
        }
        Ok(None)
    }

    /// Reads a block; returns false if there is no block of that number.
    fn read(&self, number: usize, block: &mut Block) -> io::Result<bool> {
        let Some((start, end)) = self.index.block(number) else { return Ok(false) };
        let size = usize::try_from(end - start).unwrap_or(usize::MAX);
        block.bytes.resize(size, 0);
        self.file.read_exact_at(&mut block.bytes, start)?;
        let sum = block.bytes.split_last_chunk::<CHECKSUM_BYTES>();
        let good = sum.is_some_and(|(plain, sum)| xxh3_64(plain) == u64::from_le_bytes(*sum));
        if !good {
            return Err(damaged(&self.path, start, "has a wrong checksum"));
        }
        block.bytes.truncate(size - CHECKSUM_BYTES);
        (block.at, block.value) = (0, None);
        block.key.clear();
        Ok(true)
    }

    fn misread(&self, at: usize) -> io::Error {
        damaged(&self.path, at as u64, "has a malformed block")
    }
}

fn damaged(path: &Path, at: u64, what: &str) -> io::Error {
    let message = format!("{} {what} (at byte {at})", path.display());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// A block that is being read.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    at: usize,
    key: Vec<u8>,
    /// The position of the present entry's value.
    value: Option<(usize, usize)>,
}

impl Block {
    fn value(&self) -> Option<&[u8]> {
        self.value.map(|(start, end)| &self.bytes[start..end])
    }

    /// Goes to the next entry; returns false if there is none. The error is the position of a
    /// malformed entry.
    fn advance(&mut self) -> Result<bool, usize> {
        if self.at == self.bytes.len() {
            return Ok(false);
        }
        let at = self.at;
        let next = Self::entry(&self.bytes[at..], self.key.len());
        let (shared, own, value, header) = next.ok_or(at)?;
        let start = at + header;
        self.key.truncate(shared);
        self.key.extend_from_slice(&self.bytes[start..start + own]);
        let start = start + own;
        self.at = start + value.unwrap_or(0);
        self.value = value.map(|length| (start, start + length));
        Ok(true)
    }

    /// Reads an entry's lengths in bytes: of the part of the key shared with the key before, which
    /// has `known` bytes; of the rest of the key; of the value (`None`: the key is removed); of
    /// these numbers themselves. Returns `None` if the entry is malformed.
    fn entry(bytes: &[u8], known: usize) -> Option<(usize, usize, Option<usize>, usize)> {
        let mut rest = bytes;
        let mut length = || usize::try_from(get(&mut rest)?).ok();
        let (shared, own, value) = (length()?, length()?, length()?.checked_sub(1));
        let needed = own.checked_add(value.unwrap_or(0))?;
        (shared <= known && needed <= rest.len())
            .then(|| (shared, own, value, bytes.len() - rest.len()))
    }
}

/// A position in a run, for reading on from there.
#[derive(Debug)]
pub(super) struct Cursor {
    run: Arc<Run>,
    next_block: usize,
    block: Block,
    ended: bool,
}

impl Cursor {
    /// Goes to the first key that is `from` or greater.
    pub(super) fn seek(run: Arc<Run>, from: &[u8]) -> io::Result<Self> {
        let next_block = run.index.find(from);
        let mut cursor = Self { run, next_block, block: Block::default(), ended: false };
        cursor.advance()?;
        while cursor.key().is_some_and(|it| it < from) {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    /// Returns the present key; `None` at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        (!self.ended).then_some(self.block.key.as_slice())
    }

    /// Returns the value of the present key; `None` if the key is removed.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.block.value()
    }

    pub(super) fn advance(&mut self) -> io::Result<()> {
        while !self.block.advance().map_err(|at| self.run.misread(at))? {
            if !self.run.read(self.next_block, &mut self.block)? {
                self.ended = true;
                return Ok(());
            }
            self.next_block += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    type Entries = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn write(dir: &Path, entries: &Entries) -> Run {
        let mut writer = Writer::create(&Disk::System, dir, 7, entries.len() as u64).unwrap();
        for (key, value) in entries {
            writer.push(key, value.as_deref()).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Makes enough entries for several blocks.
    fn many() -> Entries {
        let key = |n: u32| format!("{n:05}-{}", "x".repeat(n as usize % 50)).into_bytes();
        (0..3000).map(|n| (key(2 * n), (n % 3 != 0).then(|| n.to_be_bytes().to_vec()))).collect()
    }

    #[test]
    fn written_entries_are_found_and_listed() {
        let dir = tempfile::tempdir().unwrap();
        let entries = many();
        drop(write(dir.path(), &entries));
        let run = Arc::new(Run::open(&Disk::System, dir.path(), 7).unwrap());
        assert_eq!(run.entries, 3000);
        assert!(4 < run.index.key_ends.len());
        for (key, value) in &entries {
            assert_eq!(run.get(key).unwrap().as_ref(), Some(value));
            let absent = [key.as_slice(), b"?"].concat();
            assert_eq!(run.get(&absent).unwrap(), None);
        }
        for from in ["", "00777", "02000-", "zzz"].map(|it| it.as_bytes().to_vec()) {
            let mut cursor = Cursor::seek(run.clone(), &from).unwrap();
            for (key, value) in entries.range(from..) {
                assert_eq!((cursor.key(), cursor.value()), (Some(&key[..]), value.as_deref()));
                cursor.advance().unwrap();
            }
            assert_eq!(cursor.key(), None);
        }
    }

    #[test]
    fn damage_at_any_byte_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let entries = many();
        drop(write(dir.path(), &entries));
        let path = path(dir.path(), 7);
        let good = fs::read(&path).unwrap();
        let whole = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let run = Arc::new(Run::open(&Disk::System, dir.path(), 7)?);
            let mut cursor = Cursor::seek(run, &[])?;
            while cursor.key().is_some() {
                cursor.advance()?;
            }
            io::Result::Ok(())
        };
        whole(&good).unwrap();
        for at in (0..good.len()).step_by(97).chain(good.len() - 60..good.len()) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let error = whole(&bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "byte {at}: {error}");
        }
        for length in (0..good.len()).step_by(997) {
            assert!(whole(&good[..length]).is_err(), "cut to {length}");
        }
    }

    proptest! {
        #[test]
        fn any_keys_and_values_read_back(
            entries in prop::collection::btree_map(
                prop::collection::vec(any::<u8>(), 0..40),
                prop::option::of(prop::collection::vec(any::<u8>(), 0..3000)),
                0..60,
            ),
            from in prop::collection::vec(any::<u8>(), 0..3),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let run = Arc::new(write(dir.path(), &entries));
            for (key, value) in &entries {
                let found = run.get(key).unwrap();
                prop_assert_eq!(found.as_ref(), Some(value));
            }
            let mut cursor = Cursor::seek(run, &from).unwrap();
            for (key, _) in entries.range(from..) {
                prop_assert_eq!(cursor.key(), Some(&key[..]));
                cursor.advance().unwrap();
            }
            prop_assert_eq!(cursor.key(), None);
        }
    }
}
