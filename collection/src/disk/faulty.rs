//! A disk with faults, for tests: it knows what has been made durable, and can cut the power after
//! any act, or fail as full and read-only disks do.
//!
//! It works on real files, so that what was written can be read before it is durable. What a power
//! cut leaves of the rest is drawn by lot: all or nothing of a file's bytes, those up to some
//! place, or some of its sectors; of names none, all, the first few, or some. What could not be
//! synced once is not written by a later sync, and what the disk had in its place may be gone, until
//! it is written again: so do Linux and the disks (Rebello et al., "Can applications recover from
//! fsync failures?", USENIX ATC 2020).

mod platter;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::File;
use platter::{Naming, State, apply, contents, page_of, put_page};

/// Names what a path stood for, whatever it is called since.
pub(crate) type Id = usize;

/// Files by path, relative to the directory.
pub(crate) type World = BTreeMap<PathBuf, Vec<u8>>;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// There is no space.
    Full,
    /// There is none, which shows only when what was written is to be made durable.
    FullLate,
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

    /// Lets reading these bytes fail from now on.
    pub(crate) fn fail_reading(&self, path: &Path, bytes: Range<u64>) {
        self.state().unreadable.push((path.to_owned(), bytes));
    }

    /// Says how much space there is, whatever the system says; from then on, what is written takes of
    /// it, and what is removed gives back.
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
                Fault::Full | Fault::FullLate => io::ErrorKind::StorageFull.into(),
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

    /// Opens a file to read, and if it is `to_write`, to write.
    pub(super) fn open(&self, path: &Path, to_write: bool) -> io::Result<File> {
        let real = OpenOptions::new().read(true).write(to_write).open(path)?;
        let mut state = self.state();
        match state.fault {
            Some(Fault::NoFiles) => return Err(io::Error::from_raw_os_error(24)),
            Some(Fault::ReadOnly) if to_write => {
                return Err(io::ErrorKind::ReadOnlyFilesystem.into());
            }
            _ => {}
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
            state.give_back(fs::metadata(to).map_or(0, |it| it.len()));
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
            state.give_back(bytes.len() as u64);
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

    pub(super) fn read(&self, real: &fs::File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state();
        let mut end = offset + bytes.len() as u64;
        if !state.unreadable.is_empty() {
            let path = self.path_of(real);
            let of_it = state.unreadable.iter().filter(|(at, _)| *at == path);
            for (_, bad) in of_it.filter(|(_, bad)| offset < bad.end) {
                if bad.start <= offset {
                    return Err(io::Error::from_raw_os_error(5));
                }
                end = end.min(bad.start);
            }
        }
        drop(state);
        real.read_at(&mut bytes[..usize::try_from(end - offset).unwrap_or(0)], offset)
    }

    pub(super) fn write(
        &self,
        (real, id): (&fs::File, Id),
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        let (path, fails) = (self.path_of(real), [Fault::Full, Fault::ReadOnly]);
        let written = self.act("write", &path, &fails, |state| {
            let growth = (offset + bytes.len() as u64).saturating_sub(real.metadata()?.len());
            state.take(growth)?;
            real.write_all_at(bytes, offset)?;
            state.written_again(id, offset, bytes.len());
            Ok(())
        });
        written.inspect_err(|error| {
            // A full disk takes what still fits.
            if error.kind() == io::ErrorKind::StorageFull {
                let _ = real.write_all_at(&bytes[..bytes.len() / 2], offset);
                self.state().written_again(id, offset, bytes.len() / 2);
            }
        })
    }

    pub(super) fn set_len(&self, (real, id): (&fs::File, Id), bytes: u64) -> io::Result<()> {
        let path = self.path_of(real);
        self.act("cut", &path, &[Fault::ReadOnly], |state| {
            let before = real.metadata()?.len();
            real.set_len(bytes)?;
            state.give_back(before.saturating_sub(bytes));
            state.shortened(id, bytes);
            Ok(())
        })
    }

    pub(super) fn sync(&self, real: &fs::File, id: Id) -> io::Result<()> {
        let path = self.path_of(real);
        let fails = [Fault::Unsynced, Fault::FullLate, Fault::ReadOnly];
        let synced = self.act("sync", &path, &fails, |state| {
            let Some(dir) = state.directories.get(&id).cloned() else {
                let now = contents(real)?;
                state.forget_rewritten(id, &now);
                let known = std::mem::replace(&mut state.durable[id], now);
                for page in state.ruined.get(&id).into_iter().flat_map(BTreeMap::keys) {
                    put_page(&mut state.durable[id], *page, page_of(&known, *page));
                }
                return Ok(());
            };
            let (here, rest) = std::mem::take(&mut state.renamings).into_iter().partition(|it| {
                let (Naming::Put(path, _) | Naming::Move(_, path, _) | Naming::Remove(path)) = it;
                path.parent() == Some(&dir)
            });
            state.renamings = rest;
            apply(&mut state.kept, here);
            Ok(())
        });
        if synced.is_err() && !self.is_cut() {
            self.state().ruin(id, real)?;
        }
        synced
    }
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
