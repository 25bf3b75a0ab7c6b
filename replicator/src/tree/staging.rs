//! Staging: the chunks of unfinished versions, appended to one file as they come, and a table of
//! their positions in memory.
//!
//! At the start the file is read, and cut off before the first damaged chunk, so that earlier
//! chunks need not be fetched again. In memory each chunk takes 17 bytes of a table whose size
//! doubles when it is full: 71 MB for 3,000,000 chunks.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;

use super::error::Error;
use super::output::Output;
use crate::version::Hash;

/// Maximum length of a chunk, in bytes.
pub(super) const CHUNK_BYTES_MAX: u32 = 64 << 10;

/// Number of bytes in one write.
const WRITE_BYTES: u64 = 256 << 10;
/// Bytes of the hash and the length before each chunk.
const HEAD_BYTES: usize = 32 + 4;
/// Number of bits of the length in a packed position; the offset has the other bits.
const LENGTH_BITS: u32 = 17;

/// The staged chunks. The key of a position is the first 8 bytes of the chunk's hash, or on a
/// collision the next free number.
#[derive(Debug)]
pub(super) struct Staging {
    out: Output,
    positions: HashMap<u64, u64>,
}

/// A staged chunk, which can be read without blocking writers.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    file: Arc<File>,
    hash: Hash,
    offset: u64,
    bytes: usize,
}

impl Staged {
    /// Reads the chunk; `None` if it is damaged.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; self.bytes];
        self.file.read_exact_at(&mut bytes, self.offset).ok()?;
        (Hash::of(&bytes) == self.hash).then_some(bytes)
    }
}

impl Staging {
    pub(super) fn open(disk: &Disk, path: &Path) -> Result<Self, Error> {
        let out = Output::open(disk, path).map_err(Error::io(path))?;
        let mut staging = Self { out, positions: HashMap::new() };
        let mut input =
            BufReader::with_capacity(1 << 20, File::open(path).map_err(Error::io(path))?);
        let mut end = 0;
        let mut head = [0; HEAD_BYTES];
        let mut chunk = Vec::new();
        while input.read_exact(&mut head).is_ok() {
            let Some((hash, length)) = parse(&head) else { break };
            chunk.resize(length, 0);
            if input.read_exact(&mut chunk).is_err() || Hash::of(&chunk) != hash {
                break;
            }
            staging.insert(&hash, end, length);
            end += (HEAD_BYTES + length) as u64;
        }
        if end < staging.out.position() {
            staging.out.set_length(end).map_err(Error::io(path))?;
        }
        Ok(staging)
    }

    fn insert(&mut self, hash: &Hash, offset: u64, length: usize) {
        let mut key = start(hash);
        // A position that is known for the same hash is replaced, because the chunk there is
        // damaged.
        while self.positions.get(&key).is_some_and(|it| self.hash_at(*it) != Some(*hash)) {
            key = key.wrapping_add(1);
        }
        self.positions.insert(key, (offset << LENGTH_BITS) | length as u64);
    }

    fn hash_at(&self, position: u64) -> Option<Hash> {
        let mut head = [0; HEAD_BYTES];
        self.out.file().read_exact_at(&mut head, position >> LENGTH_BITS).ok()?;
        parse(&head).map(|(hash, _)| hash)
    }

    /// Forgets the position of a chunk that is damaged.
    pub(super) fn forget(&mut self, staged: &Staged) {
        self.insert(&staged.hash, staged.offset - HEAD_BYTES as u64, 0);
    }

    pub(super) fn find(&self, hash: &Hash) -> Option<Staged> {
        let mut key = start(hash);
        while let Some(position) = self.positions.get(&key) {
            if self.hash_at(*position) == Some(*hash) {
                let offset = (position >> LENGTH_BITS) + HEAD_BYTES as u64;
                let bytes = usize::try_from(position & ((1 << LENGTH_BITS) - 1)).unwrap_or(0);
                let file = self.out.file().clone();
                return (bytes != 0).then_some(Staged { file, hash: *hash, offset, bytes });
            }
            key = key.wrapping_add(1);
        }
        None
    }

    /// Adds a chunk, unless it is staged already. Refuses bytes with another hash.
    pub(super) fn put(&mut self, hash: &Hash, bytes: &[u8]) -> Result<(), Error> {
        if Hash::of(bytes) != *hash {
            return Err(Error::WrongHash(*hash));
        }
        self.put_all([(hash, bytes)])
    }

    /// Adds those chunks that are not staged, with one write for [`WRITE_BYTES`]. The hashes are
    /// not checked here, because each read checks them. After an error (a chunk is too long or
    /// empty, or there is no room) only the chunks of earlier writes stay.
    pub(super) fn put_all<'a>(
        &mut self,
        chunks: impl IntoIterator<Item = (&'a Hash, &'a [u8])>,
    ) -> Result<(), Error> {
        let mut added = Vec::new();
        for (hash, bytes) in chunks {
            let begun = self.begin(hash, bytes, &mut added);
            let Some(first) = added.first().map(|it: &(Hash, u64, usize)| it.1) else {
                begun?;
                continue;
            };
            if begun.is_err() {
                // If this fails, the incomplete end is cut off when the file is opened again.
                let _ = self.out.set_length(first);
                return begun;
            }
            if WRITE_BYTES <= self.out.position() - first {
                self.finish(&mut added)?;
            }
        }
        self.finish(&mut added)
    }

    fn begin(
        &mut self,
        hash: &Hash,
        bytes: &[u8],
        added: &mut Vec<(Hash, u64, usize)>,
    ) -> Result<(), Error> {
        let length = u32::try_from(bytes.len()).ok();
        let length = length.filter(|it| (1..=CHUNK_BYTES_MAX).contains(it));
        let length = length.ok_or(Error::WrongHash(*hash))?;
        if self.find(hash).is_some_and(|it| it.read().is_some()) {
            return Ok(());
        }
        added.push((*hash, self.out.position(), bytes.len()));
        for part in [&hash.0[..], &length.to_le_bytes(), bytes] {
            self.out.write(part).map_err(Error::io(self.out.path()))?;
        }
        Ok(())
    }

    /// Writes the added chunks, and adds them to the table, so that they can be found.
    fn finish(&mut self, added: &mut Vec<(Hash, u64, usize)>) -> Result<(), Error> {
        let Some(first) = added.first().map(|it| it.1) else { return Ok(()) };
        if let Err(error) = self.out.flush() {
            let _ = self.out.set_length(first);
            return Err(Error::io(self.out.path())(error));
        }
        added.drain(..).for_each(|(hash, at, length)| self.insert(&hash, at, length));
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.out.position()
    }

    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.positions = HashMap::new();
        let cut = self.out.set_length(0);
        cut.map_err(Error::io(self.out.path()))
    }
}

fn start(hash: &Hash) -> u64 {
    u64::from_le_bytes(hash.first())
}

fn parse(head: &[u8; HEAD_BYTES]) -> Option<(Hash, usize)> {
    let (hash, rest) = head.split_first_chunk()?;
    let length = u32::from_le_bytes(*rest.first_chunk()?);
    let is_chunk = (1..=CHUNK_BYTES_MAX).contains(&length);
    is_chunk.then_some((Hash(*hash), usize::try_from(length).ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn chunk(n: usize) -> (Hash, Vec<u8>) {
        let bytes = vec![n.to_le_bytes()[0]; 1000 + n];
        (Hash::of(&bytes), bytes)
    }

    fn read(staging: &Staging, hash: &Hash) -> Option<Vec<u8>> {
        staging.find(hash).and_then(|it| it.read())
    }

    #[test]
    fn staged_chunks_survive_a_reopening_and_torn_tails_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pack");
        let mut staging = Staging::open(&Disk::System, &path).unwrap();
        for n in 0..20 {
            let (hash, bytes) = chunk(n);
            staging.put(&hash, &bytes).unwrap();
            staging.put(&hash, &bytes).unwrap();
            assert_eq!(read(&staging, &hash), Some(bytes));
        }
        assert_eq!(staging.bytes(), fs::metadata(&path).unwrap().len());
        let wrong = staging.put(&chunk(1).0, b"other");
        assert!(matches!(wrong, Err(Error::WrongHash(hash)) if hash == chunk(1).0));
        assert!(staging.put(&Hash::of(b""), b"").is_err());
        drop(staging);
        let all = fs::read(&path).unwrap();
        let tails = [all.len(), all.len() - 1, all.len() - 1060, 1, 0];
        for (end, kept) in tails.into_iter().zip([20, 19, 18, 0, 0]) {
            fs::write(&path, &all[..end]).unwrap();
            let mut staging = Staging::open(&Disk::System, &path).unwrap();
            let there = |it: &Staging| (0..20).filter(|n| read(it, &chunk(*n).0).is_some()).count();
            assert_eq!(there(&staging), kept, "{end}");
            let (hash, bytes) = chunk(30);
            staging.put(&hash, &bytes).unwrap();
            let again = Staging::open(&Disk::System, &path).unwrap();
            assert_eq!(read(&again, &hash), Some(bytes));
            assert_eq!(there(&again), kept);
        }
    }

    #[test]
    fn chunks_are_written_together() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pack");
        let mut staging = Staging::open(&Disk::System, &path).unwrap();
        let chunks: Vec<(Hash, Vec<u8>)> = (0..200)
            .map(|n: usize| vec![n.to_le_bytes()[0]; 9_000 + n])
            .map(|it| (Hash::of(&it), it))
            .collect();
        let all = || chunks.iter().map(|(hash, bytes)| (hash, &bytes[..]));
        staging.put_all(all()).unwrap();
        let length = staging.bytes();
        staging.put_all(all()).unwrap();
        assert_eq!(staging.bytes(), length, "they are staged already");
        for (hash, bytes) in &chunks {
            assert_eq!(read(&staging, hash).as_ref(), Some(bytes));
        }
        // Chunks that were written before an invalid one stay.
        staging.clear().unwrap();
        let bad = (Hash::of(b"none"), Vec::new());
        let result = staging.put_all(all().take(100).chain([(&bad.0, &bad.1[..])]).chain(all()));
        assert!(matches!(result, Err(Error::WrongHash(hash)) if hash == bad.0));
        let there = chunks.iter().filter(|it| read(&staging, &it.0).is_some()).count();
        assert!((60..100).contains(&there), "{there}");
        staging.put_all(all()).unwrap();
        let again = Staging::open(&Disk::System, &path).unwrap();
        assert!(chunks.iter().all(|it| read(&again, &it.0).as_ref() == Some(&it.1)));
    }

    #[test]
    fn hashes_with_equal_starts_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let mut staging = Staging::open(&Disk::System, &dir.path().join("pack")).unwrap();
        let (one, other) = (chunk(1), chunk(2));
        staging.put(&one.0, &one.1).unwrap();
        // Pretend that the hash of the other chunk begins with the same 8 bytes.
        let position = staging.positions.remove(&start(&one.0)).unwrap();
        staging.positions.insert(start(&other.0), position);
        assert!(staging.find(&other.0).is_none());
        staging.put(&other.0, &other.1).unwrap();
        assert_eq!(read(&staging, &other.0), Some(other.1));
    }

    #[test]
    fn a_damaged_chunk_is_not_returned() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pack");
        let mut staging = Staging::open(&Disk::System, &path).unwrap();
        let (hash, bytes) = chunk(1);
        staging.put(&hash, &bytes).unwrap();
        let mut all = fs::read(&path).unwrap();
        all[500] ^= 1;
        fs::write(&path, all).unwrap();
        assert_eq!(read(&staging, &hash), None);
        staging.put(&hash, &bytes).unwrap();
        assert_eq!(read(&staging, &hash), Some(bytes));
        assert!(staging.clear().is_ok() && staging.find(&hash).is_none());
    }
}
