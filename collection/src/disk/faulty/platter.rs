//! What a disk with faults has for certain, and what a power cut leaves of the rest.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Fault, Id, Target, World, world};

/// What a disk writes as a whole, in bytes.
const SECTOR: usize = 512;
/// What the system writes as a whole, in bytes.
const PAGE: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) phase: &'static str,
    pub(super) target: Option<Target>,
    pub(super) fault: Option<Fault>,
    pub(super) free_bytes: Option<u64>,
    pub(super) random: u64,
    /// What each file has for certain.
    pub(super) durable: Vec<Vec<u8>>,
    /// Pages that could not be made durable, as they were then: what the disk has of them is unknown
    /// until they are written again.
    pub(super) ruined: BTreeMap<Id, BTreeMap<usize, Vec<u8>>>,
    /// Places that cannot be read.
    pub(super) unreadable: Vec<(PathBuf, Range<u64>)>,
    /// What removed files had.
    pub(super) removed: BTreeMap<Id, Vec<u8>>,
    /// Names as they are now, and as they are for certain.
    pub(super) names: BTreeMap<PathBuf, Id>,
    pub(super) kept: BTreeMap<PathBuf, Id>,
    pub(super) renamings: Vec<Naming>,
    /// Opened directories.
    pub(super) directories: BTreeMap<Id, PathBuf>,
    /// Where the power was cut, and what that left.
    pub(super) left: Option<(String, World)>,
}

#[derive(Clone, Debug)]
pub(super) enum Naming {
    Put(PathBuf, Id),
    Move(PathBuf, PathBuf, Id),
    Remove(PathBuf),
}

impl State {
    /// Takes space.
    pub(super) fn take(&mut self, bytes: u64) -> io::Result<()> {
        if let Some(free) = &mut self.free_bytes {
            *free = free.checked_sub(bytes).ok_or(io::ErrorKind::StorageFull)?;
        }
        Ok(())
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        if let Some(free) = &mut self.free_bytes {
            *free += bytes;
        }
    }

    /// Notes that what of a file was to be made durable could not be.
    pub(super) fn ruin(&mut self, id: Id, real: &fs::File) -> io::Result<()> {
        if self.directories.contains_key(&id) {
            return Ok(());
        }
        let now = contents(real)?;
        let pages = (0..now.len().div_ceil(PAGE)).map(|page| (page, page_of(&now, page)));
        let lost = pages.filter(|(page, bytes)| page_of(&self.durable[id], *page) != *bytes);
        let lost: Vec<_> = lost.map(|(page, bytes)| (page, bytes.to_vec())).collect();
        self.ruined.entry(id).or_default().extend(lost);
        Ok(())
    }

    /// Notes that bytes of a file were written, and so are made durable by the next sync.
    pub(super) fn written_again(&mut self, id: Id, offset: u64, bytes: usize) {
        if let Some(ruined) = self.ruined.get_mut(&id)
            && bytes != 0
        {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let pages = start / PAGE..=(start + bytes - 1) / PAGE;
            ruined.retain(|page, _| !pages.contains(page));
        }
    }

    /// Notes that a file ends at a byte, which writes nothing again.
    pub(super) fn shortened(&mut self, id: Id, length: u64) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if let Some(ruined) = self.ruined.get_mut(&id) {
            ruined.retain(|page, then| {
                then.truncate(length.saturating_sub(page * PAGE));
                !then.is_empty()
            });
        }
    }

    /// Notes what others have written of a file, as far as it shows.
    pub(super) fn forget_rewritten(&mut self, id: Id, now: &[u8]) {
        if let Some(ruined) = self.ruined.get_mut(&id) {
            ruined.retain(|page, then| page_of(now, *page) == *then);
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 11).unwrap_or(0) % below.max(1)
    }

    pub(super) fn cut(&mut self, dir: &Path, point: String) {
        let mut names = self.kept.clone();
        let renamings = self.renamings.clone();
        let (how, first) = (self.random(4), self.random(renamings.len() + 1));
        let renamings: Vec<Naming> = match how {
            0 => Vec::new(),
            1 => renamings,
            2 => renamings[..first].to_vec(),
            _ => renamings.into_iter().filter(|_| self.random(2) == 0).collect(),
        };
        apply(&mut names, renamings);
        let mut left = World::new();
        for (path, id) in names {
            let now = match self.names.iter().find(|(_, it)| **it == id) {
                Some((path, _)) => fs::read(path).ok(),
                None => self.removed.get(&id).cloned(),
            };
            let durable = self.durable[id].clone();
            let mut now = now.unwrap_or_else(|| durable.clone());
            self.forget_rewritten(id, &now);
            let ruined = self.ruined.get(&id).cloned().unwrap_or_default();
            for page in ruined.keys() {
                put_page(&mut now, *page, page_of(&durable, *page));
            }
            let mut bytes = self.torn(&durable, &now);
            for page in ruined.keys() {
                let length = page_of(&bytes, *page).len();
                if self.random(2) == 0 {
                    put_page(&mut bytes, *page, &vec![0; length]);
                }
            }
            let path = path.strip_prefix(dir).unwrap_or(&path).to_owned();
            left.insert(path, bytes);
        }
        // What others write without telling us.
        for (path, bytes) in world(dir) {
            let is_known = self.names.contains_key(&dir.join(&path)) || left.contains_key(&path);
            if !is_known && self.random(8) != 0 {
                left.insert(path, bytes);
            }
        }
        self.left = Some((point, left));
    }

    /// Returns what is left of `now`, of which only `durable` is certain.
    fn torn(&mut self, durable: &[u8], now: &[u8]) -> Vec<u8> {
        let how = if durable == now { 1 } else { self.random(4) };
        let sectors = durable.len().max(now.len()).div_ceil(SECTOR);
        let until = self.random(sectors * SECTOR + 1);
        match how {
            0 => durable.to_vec(),
            1 => now.to_vec(),
            2 => {
                let mut bytes = now[..until.min(now.len())].to_vec();
                bytes.extend(durable.iter().skip(bytes.len()));
                bytes
            }
            _ => {
                // A sector that was never written is zeros where a later one was.
                let mut bytes = durable.to_vec();
                for (at, sector) in now.chunks(SECTOR).enumerate() {
                    if self.random(2) == 0 {
                        let (start, end) = (at * SECTOR, at * SECTOR + sector.len());
                        bytes.resize(bytes.len().max(end), 0);
                        bytes[start..end].copy_from_slice(sector);
                    }
                }
                bytes
            }
        }
    }
}

/// Returns what there is of a page.
pub(super) fn page_of(bytes: &[u8], page: usize) -> &[u8] {
    let rest = bytes.get(page * PAGE..).unwrap_or_default();
    &rest[..rest.len().min(PAGE)]
}

/// Puts other bytes in a page, as far as it is there, and zeros where they end.
pub(super) fn put_page(bytes: &mut [u8], page: usize, other: &[u8]) {
    let there = bytes.get_mut(page * PAGE..).unwrap_or_default();
    let length = there.len().min(PAGE);
    let known = length.min(other.len());
    there[..known].copy_from_slice(&other[..known]);
    there[known..length].fill(0);
}

pub(super) fn apply(names: &mut BTreeMap<PathBuf, Id>, renamings: Vec<Naming>) {
    for naming in renamings {
        match naming {
            Naming::Put(path, id) => drop(names.insert(path, id)),
            Naming::Move(from, to, id) => {
                names.remove(&from);
                names.insert(to, id);
            }
            Naming::Remove(path) => drop(names.remove(&path)),
        }
    }
}

pub(super) fn contents(file: &fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
