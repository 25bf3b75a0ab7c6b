//! A disk with faults, for tests of whoever stores: it knows what has been made durable, and can cut the power after
//! any act, or fail as full, read-only and worn disks do.
//!
//! It works on real files below a directory, so that what was written can be read before it is durable, and so that
//! tests may damage them. What a power cut leaves of the rest is drawn by lot: of a file all or nothing, its start, some
//! of its sectors, or zeros in their place; of the names in each directory none, all, the first few, or some, whatever
//! became of those in others. What could not be synced once is not written by a later sync, and what the disk had in its
//! place may be gone, until it is written again: so do Linux and the disks (Rebello et al., "Can applications recover
//! from fsync failures?", USENIX ATC 2020).
//!
//! Modes and owners of directories are as they are found: no power cut changes them.

mod content;
mod state;
mod world;

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Act;
pub use content::Content;
use state::State;
pub use world::{Item, World, restore, world};

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no space: of bytes half are written, and names are taken or not, by lot.
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

impl Fault {
    fn error(self) -> io::Error {
        match self {
            Self::Full | Self::FullLate => io::ErrorKind::StorageFull.into(),
            Self::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
            Self::NoFiles => io::Error::from_raw_os_error(24),
            Self::Unsynced => io::Error::from_raw_os_error(5),
        }
    }
}

/// Where the power is to be cut: after so many further acts of a phase whose description has a word; an empty phase is
/// any. An act is described by what is done and the path below the directory, as in `sync segment-1`.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// See [`Faulty::enter`].
    pub phase: &'static str,
    /// The word.
    pub word: &'static str,
    /// At least 1.
    pub acts: u64,
}

/// A disk with faults.
#[derive(Debug)]
pub struct Faulty {
    state: Mutex<State>,
}

impl Faulty {
    /// Takes what is in `dir` as durable. The same seed has the same lots drawn.
    #[must_use]
    pub fn new(dir: &Path, seed: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(dir, seed)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is done from here on.
    pub fn enter(&self, phase: &'static str) {
        self.state().phase = phase;
    }

    /// Has the power be cut there.
    pub fn cut_at(&self, target: Target) {
        self.state().target = Some(target);
    }

    /// Has this fail from now on, or nothing.
    pub fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault.map(|it| (it, 0));
    }

    /// Has this fail once so many acts are done, of all since the disk was made.
    pub fn fail_after(&self, fault: Fault, acts: u64) {
        self.state().fault = Some((fault, acts));
    }

    /// Lets reading these bytes fail from now on.
    pub fn fail_reading(&self, path: &Path, bytes: Range<u64>) {
        self.state().unreadable.push((path.to_owned(), bytes));
    }

    /// Says how much space there is, in bytes, whatever the system says; from then on, what is written takes of it, and
    /// what is removed gives back.
    pub fn leave_free(&self, bytes: Option<u64>) {
        self.state().free_bytes = bytes;
    }

    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.state().free_bytes
    }

    /// How many acts were done.
    pub fn acts(&self) -> u64 {
        self.state().acts
    }

    /// Whether the power is cut.
    pub fn is_cut(&self) -> bool {
        self.state().left.is_some()
    }

    /// Cuts the power now, unless it is cut; returns where that was and what it left.
    pub fn cut(&self) -> (String, World) {
        let mut state = self.state();
        if state.left.is_none() {
            state.cut("at the end".to_owned());
        }
        state.left.clone().unwrap_or_default()
    }

    /// Does what `act` says and takes it in, unless there is a fault.
    pub(super) fn act<T>(
        &self,
        act: Act<'_>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut state = self.state();
        let is_change = !matches!(act, Act::Open { .. });
        if is_change && state.left.is_some() {
            return Err(cut_off());
        }
        if let Err(refused) = state.refuse(act) {
            state.note_refused(act, &refused);
            return Err(refused);
        }
        let point = if is_change { state.count(act) } else { None };
        // What is to be made durable just then may be so in part.
        if let Some(point) = &point
            && matches!(act, Act::Sync(_) | Act::SyncAll)
        {
            state.cut(point.clone());
            return Err(cut_off());
        }
        state.note_before(act)?;
        let done = work()?;
        state.note(act)?;
        let Some(point) = point else { return Ok(done) };
        state.cut(point);
        Err(cut_off())
    }

    /// Which file or directory has this name.
    pub(super) fn id(&self, path: &Path) -> usize {
        self.state().id(path)
    }

    pub(super) fn read(&self, real: &fs::File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut end = offset + bytes.len() as u64;
        let state = self.state();
        if !state.unreadable.is_empty() {
            let path = path_of(real);
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
}

fn cut_off() -> io::Error {
    io::Error::other("the power is cut")
}

/// What an open file is called now.
fn path_of(real: &fs::File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    fs::read_link(format!("/proc/self/fd/{}", real.as_raw_fd())).unwrap_or_default()
}
