//! The index of a generation: the location of each chunk, in a file of fixed-size records sorted by
//! the start of the hash.
//!
//! Hashes are spread evenly, so a record's position can be estimated from its hash. A lookup among
//! 3,000,000 records takes about two reads of 4 KB, and keeps nothing in memory. The record has
//! only the start of the hash, so whoever reads the chunk must check the whole hash. The writer
//! needs 38 MB of memory, however long the file is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use disk::Disk;

use super::error::Error;
use super::output::Output;
use crate::version::Hash;

/// Bytes of a record: the start of the hash, the number of the file, the offset and the length of
/// the chunk.
const RECORD_BYTES: usize = KEY_BYTES + 8 + 8 + 4;
const KEY_BYTES: usize = 16;
/// Number of records in one read.
const BLOCK_RECORDS: usize = 113;
/// Maximum number of records sorted in memory at once.
const RUN_RECORDS_MAX: usize = 1 << 20;
/// Number of the file of nodes; numbers of entries are smaller.
const NODES: u64 = u64::MAX;
/// Number of the manifest; numbers of entries are smaller.
const MANIFEST: u64 = u64::MAX - 1;

type Record = [u8; RECORD_BYTES];

/// The file that contains a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkFile {
    /// The manifest.
    Manifest,
    /// The nodes that lead to the manifest, and the root.
    Nodes,
    /// The file whose entry is at this offset of the manifest.
    Entry(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) file: ChunkFile,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// Returns the number of a file: for a file of the tree, the offset of its entry.
pub(super) fn file_number(file: ChunkFile) -> u64 {
    match file {
        ChunkFile::Manifest => MANIFEST,
        ChunkFile::Nodes => NODES,
        ChunkFile::Entry(at) => at,
    }
}

/// Writes the record of a chunk with this hash.
fn record(hash: &Hash, location: Location) -> Record {
    // The key, the file, the offset and the length come in this order, so that sorting the bytes
    // sorts the records.
    let mut record = [0; RECORD_BYTES];
    let [file, offset] = [file_number(location.file), location.offset].map(u64::to_be_bytes);
    let all = hash.0.iter().take(KEY_BYTES).chain(&file).chain(&offset);
    let bytes = location.bytes.to_be_bytes();
    record.iter_mut().zip(all.chain(&bytes)).for_each(|(to, from)| *to = *from);
    record
}

fn location(record: &Record) -> Option<Location> {
    let (file, rest) = record.get(KEY_BYTES..)?.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let file = match u64::from_be_bytes(*file) {
        NODES => ChunkFile::Nodes,
        MANIFEST => ChunkFile::Manifest,
        at => ChunkFile::Entry(at),
    };
    let bytes = u32::from_be_bytes(*rest.first_chunk()?);
    Some(Location { file, offset: u64::from_be_bytes(*offset), bytes })
}

fn key(record: &[u8]) -> Option<&[u8; KEY_BYTES]> {
    record.first_chunk()
}

/// Writes an index. Of several locations of a chunk, the one with the smallest record stays.
#[derive(Debug)]
pub(super) struct Writer {
    disk: Disk,
    path: PathBuf,
    run_records_max: usize,
    records: Vec<Record>,
    runs: Vec<PathBuf>,
}

impl Writer {
    pub(super) fn new(disk: &Disk, path: PathBuf) -> Self {
        let (disk, run_records_max) = (disk.clone(), RUN_RECORDS_MAX);
        Self { disk, path, run_records_max, records: Vec::new(), runs: Vec::new() }
    }

    pub(super) fn push(&mut self, hash: &Hash, location: Location) -> Result<(), Error> {
        self.records.push(record(hash, location));
        if self.records.len() < self.run_records_max { Ok(()) } else { self.end_run() }
    }

    fn end_run(&mut self) -> Result<(), Error> {
        let path = self.path.with_extension(self.runs.len().to_string());
        self.records.sort_unstable();
        write(&self.disk, &path, self.records.drain(..).map(Ok))?;
        self.runs.push(path);
        Ok(())
    }

    /// Writes the file, without making it durable.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        if self.runs.is_empty() {
            self.records.sort_unstable();
            return write(&self.disk, &self.path, self.records.drain(..).map(Ok));
        }
        self.end_run()?;
        let mut inputs = Vec::new();
        for path in &self.runs {
            inputs.push(BufReader::new(File::open(path).map_err(Error::io(path))?));
        }
        let mut heads = BinaryHeap::new();
        for (run, input) in inputs.iter_mut().enumerate() {
            heads.extend(next(input).map_err(Error::io(&self.path))?.map(|it| Reverse((it, run))));
        }
        let merged = std::iter::from_fn(|| {
            let Reverse((record, run)) = heads.pop()?;
            match inputs.get_mut(run).map_or(Ok(None), next) {
                Ok(head) => heads.extend(head.map(|it| Reverse((it, run)))),
                Err(error) => return Some(Err(error)),
            }
            Some(Ok(record))
        });
        write(&self.disk, &self.path, merged)?;
        self.runs.iter().try_for_each(|it| self.disk.remove_file(it).map_err(Error::io(it)))
    }
}

fn next(input: &mut BufReader<File>) -> io::Result<Option<Record>> {
    let mut record = [0; RECORD_BYTES];
    match input.read_exact(&mut record) {
        Ok(()) => Ok(Some(record)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes sorted records, but of records with equal keys only the first.
fn write(
    disk: &Disk,
    path: &Path,
    records: impl Iterator<Item = io::Result<Record>>,
) -> Result<(), Error> {
    let mut out = Output::create(disk, path).map_err(Error::io(path))?;
    let mut last = None;
    for record in records {
        let record = record.map_err(Error::io(path))?;
        if last.as_ref().and_then(|it: &Record| key(it)) != key(&record) {
            out.write(&record).map_err(Error::io(path))?;
        }
        last = Some(record);
    }
    out.flush().map_err(Error::io(path))
}

#[derive(Debug)]
pub(super) struct Index {
    file: File,
    records: u64,
}

impl Index {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let records = file.metadata()?.len() / RECORD_BYTES as u64;
        Ok(Self { file, records })
    }

    pub(super) fn find(&self, hash: &Hash) -> io::Result<Option<Location>> {
        let Some(wanted) = key(&hash.0) else { return Ok(None) };
        let (mut low, mut high) = (0, self.records);
        let mut buffer = [0; RECORD_BYTES * BLOCK_RECORDS];
        let records_max = BLOCK_RECORDS as u64;
        // The expected position, if hashes are spread evenly.
        let mut guess = share(wanted, self.records);
        let mut is_halving = false;
        while low < high {
            let begin = guess.saturating_sub(records_max / 2).clamp(low, high - 1);
            let count = records_max.min(high - begin);
            let length = usize::try_from(count).unwrap_or(0) * RECORD_BYTES;
            let block = buffer.get_mut(..length).unwrap_or_default();
            self.file.read_exact_at(block, begin * RECORD_BYTES as u64)?;
            let (records, _) = block.as_chunks::<RECORD_BYTES>();
            let (Some(first), Some(last)) =
                (records.first().and_then(|it| key(it)), records.last().and_then(|it| key(it)))
            else {
                break;
            };
            if wanted < first {
                high = begin;
                guess = begin.saturating_sub(apart(first, wanted, self.records));
            } else if last < wanted {
                low = begin + count;
                guess = low.saturating_add(apart(wanted, last, self.records));
            } else {
                let found = records.binary_search_by(|it| key(it).cmp(&Some(wanted)));
                return Ok(found.ok().and_then(|it| location(records.get(it)?)));
            }
            // Somebody may choose chunks whose hashes begin alike, so every second step halves the
            // range: the search always ends soon.
            if is_halving {
                guess = low.midpoint(high);
            }
            is_halving = !is_halving;
        }
        Ok(None)
    }
}

/// Returns the expected number of records below a key.
fn share(key: &[u8; KEY_BYTES], records: u64) -> u64 {
    let share = u128::from_be_bytes(*key) >> 64;
    u64::try_from((share * u128::from(records)) >> 64).unwrap_or(records)
}

/// Returns the expected number of records between two keys.
fn apart(greater: &[u8; KEY_BYTES], smaller: &[u8; KEY_BYTES], records: u64) -> u64 {
    share(greater, records).saturating_sub(share(smaller, records))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_records_are_found_with_one_run_and_with_many() {
        let dir = tempfile::tempdir().unwrap();
        for (name, run_records_max, all) in
            [("one", 1 << 20, 500), ("many", 64, 1000), ("none", 9, 0)]
        {
            let path = dir.path().join(name);
            let mut writer = Writer::new(&Disk::System, path.clone());
            writer.run_records_max = run_records_max;
            let hash = |n: u64| Hash::of(&n.to_le_bytes());
            let location = |n: u64| {
                let file = match n % 3 {
                    0 => ChunkFile::Manifest,
                    1 => ChunkFile::Nodes,
                    _ => ChunkFile::Entry(n),
                };
                Location { file, offset: n * 7, bytes: u32::try_from(n).unwrap() }
            };
            for n in (0..all).chain(0..all / 2) {
                writer.push(&hash(n), location(n)).unwrap();
            }
            writer.finish().unwrap();
            let index = Index::open(&path).unwrap();
            assert_eq!(index.records, all);
            for n in 0..all {
                assert_eq!(index.find(&hash(n)).unwrap(), Some(location(n)), "{name} {n}");
                assert_eq!(index.find(&hash(n + all)).unwrap(), None);
            }
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no run is left");
    }

    #[test]
    fn unevenly_spread_hashes_are_found() {
        let dir = tempfile::tempdir().unwrap();
        // All hashes begin alike, except for the first nine.
        let hash = |n: u64| {
            let mut hash = [if n < 9 { 0 } else { 0x7f }; 32];
            hash[8..16].copy_from_slice(&(n * 3).to_be_bytes());
            Hash(hash)
        };
        let mut writer = Writer::new(&Disk::System, dir.path().join("index"));
        let location = |n: u64| Location { file: ChunkFile::Entry(n), offset: n, bytes: 1 };
        (0..40_000).for_each(|n| writer.push(&hash(n), location(n)).unwrap());
        writer.finish().unwrap();
        let index = Index::open(&dir.path().join("index")).unwrap();
        for n in (0..40_000).step_by(77) {
            assert_eq!(index.find(&hash(n)).unwrap(), Some(location(n)), "{n}");
            let mut other = hash(n);
            other.0[15] ^= 1;
            let is_there = other.0[8..16] == hash(n + 1).0[8..16];
            assert_eq!(index.find(&other).unwrap().is_some(), is_there, "{n}");
        }
        for outside in [Hash([0; 32]), Hash([0xff; 32])] {
            assert!(index.find(&outside).unwrap().is_none_or(|it| it == location(0)));
        }
    }
}
