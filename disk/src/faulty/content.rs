//! What a file has for certain, and what a power cut leaves of the rest.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::SystemTime;

/// What a disk writes as a whole, in bytes.
const SECTOR: usize = 512;
/// What the system writes as a whole, in bytes.
const PAGE: usize = 4096;

/// What a file has, and the part of its metadata that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its mode without its kind.
    pub mode: u32,
    /// When it was modified.
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

/// Dice that fall the same for the same seed.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Seeds that are near to each other have them fall otherwise.
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
pub(super) struct Platter {
    /// What it has for certain.
    durable: Content,
    /// The shortest that it has been since, in bytes: what lies before is in its place, old or new.
    shortest: usize,
    /// Pages that could not be made durable, as they were then: what the disk has of them is unknown until they are
    /// written again.
    ruined: BTreeMap<usize, Vec<u8>>,
    /// What it had when its last name was removed.
    pub(super) removed: Option<Content>,
}

impl Platter {
    pub(super) fn new(durable: Content) -> Self {
        let shortest = durable.bytes.len();
        Self { durable, shortest, ruined: BTreeMap::new(), removed: None }
    }

    /// Makes all of it durable but what was lost before.
    pub(super) fn sync(&mut self, now: Content) {
        self.forget_rewritten(&now.bytes);
        let known = std::mem::replace(&mut self.durable, now);
        for page in self.ruined.keys() {
            put_page(&mut self.durable.bytes, *page, page_of(&known.bytes, *page));
        }
        self.shortest = self.durable.bytes.len();
    }

    /// Notes that what was to be made durable could not be.
    pub(super) fn ruin(&mut self, now: &[u8]) {
        let pages = (0..now.len().div_ceil(PAGE)).map(|page| (page, page_of(now, page)));
        let lost = pages.filter(|(page, bytes)| page_of(&self.durable.bytes, *page) != *bytes);
        self.ruined.extend(lost.map(|(page, bytes)| (page, bytes.to_vec())));
    }

    /// Notes that bytes were written, and so are made durable by the next sync.
    pub(super) fn written(&mut self, at: u64, bytes: usize) {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.saturating_add(bytes);
        self.ruined
            .retain(|page, _| end <= page * PAGE || (page + 1) * PAGE <= start || bytes == 0);
    }

    /// Notes that the file ends at a byte, which writes nothing again.
    pub(super) fn set_length(&mut self, bytes: u64) {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.shortest = self.shortest.min(length);
        self.ruined.retain(|page, then| {
            then.truncate(length.saturating_sub(page * PAGE));
            !then.is_empty()
        });
    }

    /// Notes what others have written, as far as it shows.
    fn forget_rewritten(&mut self, now: &[u8]) {
        self.ruined.retain(|page, then| page_of(now, *page) == *then);
    }

    /// Returns what a power cut leaves.
    pub(super) fn cut(&mut self, now: Option<Content>, dice: &mut Dice) -> Content {
        let durable = self.durable.clone();
        let mut now = now.or_else(|| self.removed.take()).unwrap_or_else(|| durable.clone());
        self.forget_rewritten(&now.bytes);
        for page in self.ruined.keys() {
            put_page(&mut now.bytes, *page, page_of(&durable.bytes, *page));
        }
        let mut bytes = self.torn(&now.bytes, dice);
        for page in self.ruined.keys() {
            let length = page_of(&bytes, *page).len();
            if dice.below(2) == 0 {
                put_page(&mut bytes, *page, &vec![0; length]);
            }
        }
        let metadata = if dice.below(2) == 0 { durable } else { now };
        Content { bytes, ..metadata }
    }

    /// Returns what is left of `now`, of which only what is durable is certain.
    fn torn(&self, now: &[u8], dice: &mut Dice) -> Vec<u8> {
        let (durable, shortest) = (&self.durable.bytes, self.shortest.min(now.len()));
        let how = if durable == now { 0 } else { dice.below(6) };
        let sectors = durable.len().max(now.len()).div_ceil(SECTOR);
        let until = dice.below(sectors * SECTOR + 1);
        let mut bytes = now.to_vec();
        match how {
            0 => {}
            1 => bytes.clone_from(durable),
            2 => {
                bytes.truncate(until);
                bytes.extend(durable.iter().skip(bytes.len()));
            }
            // Where it was cut, what was there is gone.
            3 => bytes.truncate(shortest + until % (now.len() - shortest + 1)),
            // Its length is known before its bytes are.
            4 => bytes[shortest..].fill(0),
            _ => {
                // A sector that was never written is zeros where a later one was.
                bytes.clone_from(durable);
                for (at, sector) in now.chunks(SECTOR).enumerate() {
                    if dice.below(2) == 0 {
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

/// Returns what there is of a page.
fn page_of(bytes: &[u8], page: usize) -> &[u8] {
    let rest = bytes.get(page * PAGE..).unwrap_or_default();
    &rest[..rest.len().min(PAGE)]
}

/// Puts other bytes in a page, as far as it is there, and zeros where they end.
fn put_page(bytes: &mut [u8], page: usize, other: &[u8]) {
    let there = bytes.get_mut(page * PAGE..).unwrap_or_default();
    let length = there.len().min(PAGE);
    let known = length.min(other.len());
    there[..known].copy_from_slice(&other[..known]);
    there[known..length].fill(0);
}
