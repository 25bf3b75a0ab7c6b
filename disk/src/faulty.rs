//! A disk with faults, for tests of storage code. It knows which data is durable, and can cut the
//! power at any operation, or fail as full, read-only and worn disks do.
//!
//! It works on real files below a directory, so written data can be read before it is durable, and
//! tests can damage the files. What a power cut leaves of data that is not durable is random. Of a
//! file: all or nothing, the start, some sectors, or zeros in their place. Of the new names in a
//! directory: none, all, the first few, or some, independent of other directories. After a failed
//! sync, later syncs do not write its data, and the disk's old data may be gone too, until the data
//! is written again. Linux and disks behave in this way (Rebello et al., "Can applications recover
//! from fsync failures?", USENIX ATC 2020).
//!
//! Modes and owners of directories are not simulated: no power cut changes them.

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

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is no space: half of the bytes are written, and new names fail at random.
    Full,
    /// There is no space, but only a sync fails.
    FullLate,
    /// Nothing may be written.
    ReadOnly,
    /// No file can be opened.
    NoFiles,
    /// No sync succeeds.
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

/// The point of a power cut: after a number of further operations of a phase whose description
/// contains a word. A description has the phase, the operation, and the path below the directory,
/// as in `append: sync segment-1`. Opening a file does not count.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The phase (see [`Faulty::enter`]); empty: any.
    pub phase: &'static str,
    /// The word.
    pub word: &'static str,
    /// Number of operations, at least 1: the last one is cut.
    pub acts: u64,
}

/// A disk with faults.
#[derive(Debug)]
pub struct Faulty {
    state: Mutex<State>,
}

impl Faulty {
    /// Takes the files in `dir` as durable. The same seed gives the same random choices.
    #[must_use]
    pub fn new(dir: &Path, seed: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::new(dir, seed)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the phase of the following operations.
    pub fn enter(&self, phase: &'static str) {
        self.state().phase = phase;
    }

    /// Sets the point of the power cut.
    pub fn cut_at(&self, target: Target) {
        self.state().target = Some(target);
    }

    /// Sets the fault from now on; `None`: none.
    pub fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault.map(|it| (it, 0));
    }

    /// Sets a fault that begins once [`acts`](Self::acts) has reached this number.
    pub fn fail_after(&self, fault: Fault, acts: u64) {
        self.state().fault = Some((fault, acts));
    }

    /// Makes these bytes unreadable from now on.
    pub fn fail_reading(&self, path: &Path, bytes: Range<u64>) {
        self.state().unreadable.push((path.to_owned(), bytes));
    }

    /// Sets the free space in bytes, instead of the system's. From then on writes reduce it, and
    /// removals increase it. `None`: the system's.
    pub fn leave_free(&self, bytes: Option<u64>) {
        self.state().free_bytes = bytes;
    }

    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.state().free_bytes
    }

    /// Returns the number of operations so far; opened files and failures do not count.
    pub fn acts(&self) -> u64 {
        self.state().acts
    }

    /// Returns whether the power has been cut.
    pub fn is_cut(&self) -> bool {
        self.state().left.is_some()
    }

    /// Cuts the power, if it is not cut yet; returns the point of the cut and the state after it.
    pub fn cut(&self) -> (String, World) {
        let mut state = self.state();
        if state.left.is_none() {
            state.cut("at the end".to_owned());
        }
        state.left.clone().unwrap_or_default()
    }

    /// Performs `act` and notes its effects, unless there is a fault.
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
        // A sync at the point of the cut may be done in part.
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

    /// Returns the number of the file or directory with this name.
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

/// Returns the present path of an open file.
fn path_of(real: &fs::File) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    fs::read_link(format!("/proc/self/fd/{}", real.as_raw_fd())).unwrap_or_default()
}
