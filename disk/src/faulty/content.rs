//! The durable contents of a file, and what may remain of later writes after a power cut.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

/// Unit in which the disk writes, in bytes.
const SECTOR: usize = 512;
/// Unit in which the system writes to the disk, in bytes.
const PAGE: usize = 4096;

/// The contents of a file, and the metadata that is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its mode without the file type.
    pub mode: u32,
    /// Its modification time.
    pub modified: SystemTime,
}

impl Content {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        Self::of(&fs::File::open(path)?)
    }

    pub(super) fn of(file: &fs::File) -> io::Result<Self> {
        let found = file.metadata()?;
        let mut bytes = vec![0; usize::try_from(found.len()).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(Self { bytes, mode: found.mode() & 0o7777, modified: found.modified()? })
    }
}

/// A random number generator: the same seed gives the same numbers.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Spreads the seed, so that neighboring seeds give different numbers.
    pub(super) fn new(seed: u64) -> Self {
        let spread = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((spread ^ spread >> 32).max(1))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or(0) % bound.max(1)
    }
}

/// A file as the disk has it.
#[derive(Debug)]
pub(super) struct StoredFile {
    /// The durable contents.
    durable: Content,
    /// The file's shortest length since `durable`, in bytes: bytes before it remain, old or new.
    shortest: usize,
    /// Pages whose sync failed, by number, with their bytes at that time. Until a page is written
    /// again, its bytes on the disk are unknown.
    ruined: BTreeMap<usize, Vec<u8>>,
    /// Its contents when its last name was removed.
    pub(super) removed: Option<Content>,
}

impl StoredFile {
    pub(super) fn new(durable: Content) -> Self {
        let shortest = durable.bytes.len();
        Self { durable, shortest, ruined: BTreeMap::new(), removed: None }
    }

    /// Makes all of it durable, except the pages of a failed sync.
    pub(super) fn sync(&mut self, now: Content) {
        self.forget_rewritten(&now.bytes);
        let known = std::mem::replace(&mut self.durable, now);
        for page in self.ruined.keys() {
            put_page(&mut self.durable.bytes, *page, page_of(&known.bytes, *page));
        }
        self.shortest = self.durable.bytes.len();
    }

    /// Notes a failed sync.
    pub(super) fn ruin(&mut self, now: &[u8]) {
        let pages = (0..now.len().div_ceil(PAGE)).map(|page| (page, page_of(now, page)));
        let lost = pages.filter(|(page, bytes)| page_of(&self.durable.bytes, *page) != *bytes);
        self.ruined.extend(lost.map(|(page, bytes)| (page, bytes.to_vec())));
    }

    /// Notes a write: the next sync makes its pages durable, even those whose sync failed.
    pub(super) fn written(&mut self, at: u64, bytes: usize) {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes);
        self.ruined
            .retain(|page, _| end <= page * PAGE || (page + 1) * PAGE <= start || bytes == 0);
    }

    /// Notes a change of the length, which does not write pages again whose sync failed.
    pub(super) fn set_length(&mut self, bytes: u64) {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.shortest = self.shortest.min(length);
        self.ruined.retain(|page, then| {
            then.truncate(length.saturating_sub(page * PAGE));
            !then.is_empty()
        });
    }

    /// Notes pages that others have written again, as far as different bytes show it.
    fn forget_rewritten(&mut self, now: &[u8]) {
        self.ruined.retain(|page, then| page_of(now, *page) == *then);
    }

    /// Returns the contents after a power cut.
    pub(super) fn cut(&mut self, now: Option<Content>, random: &mut Random) -> Content {
        let durable = self.durable.clone();
        let mut now = now.or_else(|| self.removed.take()).unwrap_or_else(|| durable.clone());
        self.forget_rewritten(&now.bytes);
        for page in self.ruined.keys() {
            put_page(&mut now.bytes, *page, page_of(&durable.bytes, *page));
        }
        let mut bytes = self.torn(&now.bytes, random);
        for page in self.ruined.keys() {
            let length = page_of(&bytes, *page).len();
            if random.below(2) == 0 {
                put_page(&mut bytes, *page, &vec![0; length]);
            }
        }
        let metadata = if random.below(2) == 0 { durable } else { now };
        Content { bytes, ..metadata }
    }

    /// Returns the remains of `now`; only the durable part is certain.
    fn torn(&self, now: &[u8], random: &mut Random) -> Vec<u8> {
        let (durable, shortest) = (&self.durable.bytes, self.shortest.min(now.len()));
        let how = if durable == now { 0 } else { random.below(6) };
        let sectors = durable.len().max(now.len()).div_ceil(SECTOR);
        let until = random.below(sectors * SECTOR + 1);
        let mut bytes = now.to_vec();
        match how {
            0 => {}
            1 => bytes.clone_from(durable),
            2 => {
                bytes.truncate(until);
                bytes.extend(durable.iter().skip(bytes.len()));
            }
            // The file is cut, and the bytes after the cut are gone.
            3 => bytes.truncate(shortest + until % (now.len() - shortest + 1)),
            // The length can be durable before the bytes.
            4 => bytes[shortest..].fill(0),
            _ => {
                // An unwritten sector before a written one is zeros.
                bytes.clone_from(durable);
                for (at, sector) in now.chunks(SECTOR).enumerate() {
                    if random.below(2) == 0 {
                        let (start, end) = (at * SECTOR, at * SECTOR + sector.len());
                        bytes.resize(bytes.len().max(end), 0);
                        bytes[start..end].copy_from_slice(sector);
                    }
                }
            }
        }
        bytes
    }
}

/// Returns the existing part of a page.
fn page_of(bytes: &[u8], page: usize) -> &[u8] {
    let rest = bytes.get(page * PAGE..).unwrap_or_default();
    &rest[..rest.len().min(PAGE)]
}

/// Replaces the existing part of a page; zeros follow the end of `other`.
fn put_page(bytes: &mut [u8], page: usize, other: &[u8]) {
    let there = bytes.get_mut(page * PAGE..).unwrap_or_default();
    let length = there.len().min(PAGE);
    let known = length.min(other.len());
    there[..known].copy_from_slice(&other[..known]);
    there[known..length].fill(0);
}
