//! A disk with faults, for tests: it knows what has been made durable, and can cut the power after
//! any act, or fail as full and read-only disks do.
//!
//! It works on real files, so that what was written can be read before it is durable. What a power
//! cut leaves of the rest is drawn by lot: all or nothing of a file's bytes, those up to some
//! place, or some of its sectors; of names none, all, the first few, or some.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::File;

/// Names what a path stood for, whatever it is called since.
pub(crate) type Id = usize;

/// What a disk writes as a whole, in bytes.
const SECTOR: usize = 512;

/// Files by path, relative to the directory.
pub(crate) type World = BTreeMap<PathBuf, Vec<u8>>;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no space.
    Full,
    /// Nothing may be written.
    ReadOnly,
    /// No file can be opened.
    NoFiles,
    /// What was written cannot be made durable.
    Unsynced,
}

/// Where the power is to be cut: after so many further acts of a phase whose description has a word.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) phase: &'static str,
    pub(crate) word: &'static str,
    pub(crate) acts: u64,
}

#[derive(Debug, Default)]
struct State {
    phase: &'static str,
    target: Option<Target>,
    fault: Option<Fault>,
    free_bytes: Option<u64>,
    random: u64,
    /// What each file has for certain.
    durable: Vec<Vec<u8>>,
    /// What removed files had.
    removed: BTreeMap<Id, Vec<u8>>,
    /// Names as they are now, and as they are for certain.
    names: BTreeMap<PathBuf, Id>,
    kept: BTreeMap<PathBuf, Id>,
    renamings: Vec<Naming>,
    /// Opened directories.
    directories: BTreeMap<Id, PathBuf>,
    /// Where the power was cut, and what that left.
    left: Option<(String, World)>,
}

#[derive(Clone, Debug)]
enum Naming {
    Put(PathBuf, Id),
    Move(PathBuf, PathBuf, Id),
    Remove(PathBuf),
}

/// A disk with faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    dir: PathBuf,
    state: Mutex<State>,
    me: Weak<Self>,
}

impl Faulty {
    /// Takes what is in `dir` as durable.
    pub(crate) fn new(dir: &Path, seed: u64) -> Arc<Self> {
        let mut state = State { random: seed.max(1), ..State::default() };
        for (path, bytes) in world(dir) {
            let path = dir.join(path);
            state.names.insert(path.clone(), state.durable.len());
            state.kept.insert(path, state.durable.len());
            state.durable.push(bytes);
        }
        let dir = dir.to_owned();
        Arc::new_cyclic(|me| Self { dir, state: Mutex::new(state), me: me.clone() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is done from here on.
    pub(crate) fn enter(&self, phase: &'static str) {
        self.state().phase = phase;
    }

    pub(crate) fn cut_at(&self, target: Target) {
        self.state().target = Some(target);
    }

    pub(crate) fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }

    /// Says how much space there is, whatever the system says.
    pub(crate) fn leave_free(&self, bytes: Option<u64>) {
        self.state().free_bytes = bytes;
    }

    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.state().free_bytes
    }

    /// Cuts the power now, unless it is cut.
    pub(crate) fn cut(&self) {
        let mut state = self.state();
        if state.left.is_none() {
            state.cut(&self.dir, "at the end".to_owned());
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state().left.is_some()
    }

    /// Returns where the power was cut and what that left.
    pub(crate) fn left(&self) -> (String, World) {
        self.state().left.clone().unwrap_or_default()
    }

    /// Does what `act` says and takes it in, unless there is a fault.
    fn act<T>(
        &self,
        act: &str,
        path: &Path,
        fails: &[Fault],
        work: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        if state.left.is_some() {
            return Err(io::Error::other("the power is cut"));
        }
        if let Some(fault) = state.fault.filter(|it| fails.contains(it)) {
            return Err(match fault {
                Fault::Full => io::ErrorKind::StorageFull.into(),
                Fault::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
                Fault::NoFiles => io::Error::from_raw_os_error(24),
                Fault::Unsynced => io::Error::from_raw_os_error(5),
            });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let point = format!("{}: {act} {name}", state.phase);
        let phase = state.phase;
        let is_it = state.target.as_mut().is_some_and(|it| {
            let counts = (it.phase.is_empty() || it.phase == phase) && point.contains(it.word);
            it.acts -= u64::from(counts && it.acts != 0);
            counts && it.acts == 0
        });
        // What is to be made durable just then may be so in part.
        if is_it && act == "sync" {
            state.cut(&self.dir, point);
            return Err(io::Error::other("the power is cut"));
        }
        let done = work(&mut state)?;
        if is_it {
            state.cut(&self.dir, point);
            return Err(io::Error::other("the power is cut"));
        }
        Ok(done)
    }

    fn file(&self, real: fs::File, id: Id) -> File {
        File { real: Arc::new(real), faulty: self.me.upgrade().map(|it| (it, id)) }
    }

    pub(super) fn create(&self, path: &Path) -> io::Result<File> {
        let fails = [Fault::NoFiles, Fault::ReadOnly];
        let (real, id) = self.act("create", path, &fails, |state| {
            let mut options = OpenOptions::new();
            let real = options.read(true).write(true).create(true).truncate(true).open(path)?;
            let id = state.durable.len();
            state.durable.push(Vec::new());
            state.names.insert(path.to_owned(), id);
            state.renamings.push(Naming::Put(path.to_owned(), id));
            Ok((real, id))
        })?;
        Ok(self.file(real, id))
    }

    pub(super) fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<File> {
        let real = options.open(path)?;
        let mut state = self.state();
        if state.fault == Some(Fault::NoFiles) {
            return Err(io::Error::from_raw_os_error(24));
        }
        let known = state.names.get(path).copied();
        let id = known.unwrap_or(state.durable.len());
        if known.is_none() {
            state.durable.push(Vec::new());
            if real.metadata()?.is_dir() {
                state.directories.insert(id, path.to_owned());
            } else {
                state.names.insert(path.to_owned(), id);
                state.renamings.push(Naming::Put(path.to_owned(), id));
            }
        }
        drop(state);
        Ok(self.file(real, id))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act("rename", from, &[Fault::ReadOnly], |state| {
            fs::rename(from, to)?;
            if let Some(id) = state.names.remove(from) {
                state.names.insert(to.to_owned(), id);
                state.renamings.push(Naming::Move(from.to_owned(), to.to_owned(), id));
            }
            Ok(())
        })
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        self.act("remove", path, &[Fault::ReadOnly], |state| {
            let bytes = fs::read(path)?;
            fs::remove_file(path)?;
            if let Some(id) = state.names.remove(path) {
                state.removed.insert(id, bytes);
                state.renamings.push(Naming::Remove(path.to_owned()));
            }
            Ok(())
        })
    }

    fn path_of(&self, real: &fs::File) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        let link = format!("/proc/self/fd/{}", real.as_raw_fd());
        fs::read_link(link).unwrap_or_else(|_gone| self.dir.clone())
    }

    pub(super) fn write(&self, real: &fs::File, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (path, fails) = (self.path_of(real), [Fault::Full, Fault::ReadOnly]);
        self.act("write", &path, &fails, |_state| real.write_all_at(bytes, offset)).inspect_err(
            |error| {
                // A full disk takes what still fits.
                if error.kind() == io::ErrorKind::StorageFull {
                    let _ = real.write_all_at(&bytes[..bytes.len() / 2], offset);
                }
            },
        )
    }

    pub(super) fn set_len(&self, real: &fs::File, bytes: u64) -> io::Result<()> {
        let path = self.path_of(real);
        self.act("cut", &path, &[Fault::ReadOnly], |_state| real.set_len(bytes))
    }

    pub(super) fn sync(&self, real: &fs::File, id: Id) -> io::Result<()> {
        let path = self.path_of(real);
        self.act("sync", &path, &[Fault::Unsynced], |state| {
            let Some(dir) = state.directories.get(&id).cloned() else {
                state.durable[id] = contents(real)?;
                return Ok(());
            };
            let (here, rest) = std::mem::take(&mut state.renamings).into_iter().partition(|it| {
                let (Naming::Put(path, _) | Naming::Move(_, path, _) | Naming::Remove(path)) = it;
                path.parent() == Some(&dir)
            });
            state.renamings = rest;
            apply(&mut state.kept, here);
            Ok(())
        })
    }
}

impl State {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 11).unwrap_or(0) % below.max(1)
    }

    fn cut(&mut self, dir: &Path, point: String) {
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
            let bytes = self.torn(&durable, &now.unwrap_or_else(|| durable.clone()));
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

fn apply(names: &mut BTreeMap<PathBuf, Id>, renamings: Vec<Naming>) {
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

fn contents(file: &fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Reads all files below a directory but the lock.
pub(crate) fn world(dir: &Path) -> World {
    fn read(dir: &Path, top: &Path, found: &mut World) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                read(&path, top, found);
            } else if entry.file_name() != "LOCK" {
                let name = path.strip_prefix(top).unwrap_or(&path).to_owned();
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = World::new();
    read(dir, dir, &mut found);
    found
}

/// Writes a world into an empty directory.
pub(crate) fn restore(world: &World, dir: &Path) {
    for (path, bytes) in world {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir)).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
