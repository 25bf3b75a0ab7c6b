//! A failing disk for tests: a folder in memory that loses unsynced writes at a power cut, and
//! returns errors on demand.
//!
//! Syncs work as in POSIX: a file's bytes are synced once the file is terminated (the engine's own
//! directory calls fsync there), names once the folder is synced.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, Directory, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Nothing can be written: EROFS.
    ReadOnly,
    /// Only the given number of further bytes can be written; then ENOSPC.
    Full(usize),
    /// No file can be opened: EMFILE.
    NoFiles,
    /// The power is cut after the given number of further writes, syncs and changes of names:
    /// nothing later reaches the disk.
    CutAfter(usize),
}

/// The part of unsynced writes that remains after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing remains.
    Whole,
    /// Some of the bytes remain, perhaps with zeros in place of the rest, and some of the names.
    Halves,
}

/// A disk. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    state: Arc<Mutex<DiskState>>,
}

#[derive(Debug, Default)]
struct DiskState {
    files: BTreeMap<PathBuf, File>,
    /// Names that changed since the folder was synced, in order, each with the file that it named
    /// before.
    names: Vec<(PathBuf, Option<File>)>,
    locks: BTreeSet<PathBuf>,
    fault: Fault,
    cut: bool,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// The content, shared with readers.
    bytes: Arc<Vec<u8>>,
    synced: bool,
}

/// A pseudo-random sequence that its seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

fn error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EIO: i32 = 5;

impl DiskState {
    /// Returns the error of a write of `bytes` bytes if the disk has a fault; `opens`: whether the
    /// write also opens a file.
    fn writes(&mut self, bytes: usize, opens: bool) -> io::Result<()> {
        match &mut self.fault {
            Fault::None => {}
            Fault::ReadOnly => return Err(error(EROFS)),
            Fault::Full(left) if *left < bytes => {
                *left = 0;
                return Err(error(ENOSPC));
            }
            Fault::Full(left) => *left -= bytes,
            Fault::NoFiles if opens => return Err(error(EMFILE)),
            Fault::NoFiles => {}
            Fault::CutAfter(left) => match left.checked_sub(1) {
                Some(less) => *left = less,
                None => self.cut = true,
            },
        }
        if self.cut {
            return Err(error(EIO));
        }
        Ok(())
    }

    fn reads(&self) -> io::Result<()> {
        if self.fault == Fault::NoFiles { Err(error(EMFILE)) } else { Ok(()) }
    }

    fn rename(&mut self, path: &Path, file: Option<File>) -> Option<File> {
        let before = match file {
            Some(file) => self.files.insert(path.to_owned(), file),
            None => self.files.remove(path),
        };
        self.names.push((path.to_owned(), before.clone()));
        before
    }
}

impl Disk {
    pub(crate) fn fail(&self, fault: Fault) {
        self.state().fault = fault;
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.state().cut
    }

    /// Deletes everything, for good.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let mut state = self.state();
        state.writes(0, false)?;
        state.files.clear();
        state.names.clear();
        Ok(())
    }

    /// Returns the disk after the power is back.
    pub(crate) fn after_power_cut(&self, loss: Loss, random: &mut Random) -> Self {
        let state = self.state();
        let mut files = state.files.clone();
        // Each name is in the state of some moment between the last sync and the cut.
        let mut kept: BTreeMap<&Path, bool> = BTreeMap::new();
        for (path, before) in state.names.iter().rev() {
            let stays = kept.entry(path).or_insert(false);
            *stays = *stays || (loss == Loss::Halves && random.below(2) == 0);
            if !*stays {
                match before {
                    Some(file) => drop(files.insert(path.clone(), file.clone())),
                    None => drop(files.remove(path)),
                }
            }
        }
        for file in files.values_mut().filter(|file| !file.synced) {
            let mut bytes = file.bytes.to_vec();
            let len = bytes.len();
            bytes.truncate(if loss == Loss::Whole { 0 } else { random.below(len + 1) });
            if loss == Loss::Halves && random.below(2) == 0 {
                bytes.resize(len, 0);
            }
            *file = File { bytes: Arc::new(bytes), synced: true };
        }
        let state = DiskState { files, ..DiskState::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Flips one bit of the file whose name ends in `suffix`, and syncs the file; returns false if
    /// there is no such file.
    pub(crate) fn flip(&self, suffix: &str, random: &mut Random) -> bool {
        let mut state = self.state();
        let mut files = state.files.iter_mut();
        let Some((_, file)) = files.find(|(path, _)| path.to_string_lossy().ends_with(suffix))
        else {
            return false;
        };
        let mut bytes = file.bytes.to_vec();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        file.bytes = Arc::new(bytes);
        true
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap()
    }
}

struct Writer {
    disk: Disk,
    path: PathBuf,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.writes(bytes.len(), false)?;
        if let Some(file) = state.files.get_mut(&self.path) {
            Arc::make_mut(&mut file.bytes).extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Writer {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut state = self.disk.state();
        state.writes(0, false)?;
        if let Some(file) = state.files.get_mut(&self.path) {
            file.synced = true;
        }
        Ok(())
    }
}

/// Frees the lock when it is dropped.
struct Held {
    disk: Disk,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.path);
    }
}

impl Directory for Disk {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(OwnedBytes::new(self.atomic_read(path)?)))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let mut state = self.state();
        state.writes(0, false).map_err(|error| DeleteError::IoError {
            io_error: Arc::new(error),
            filepath: path.to_owned(),
        })?;
        let before = state.rename(path, None);
        before.map(drop).ok_or_else(|| DeleteError::FileDoesNotExist(path.to_owned()))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.state().files.contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let mut state = self.state();
        state
            .writes(0, true)
            .map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        if state.files.contains_key(path) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        state.rename(path, Some(File::default()));
        let writer = Writer { disk: self.clone(), path: path.to_owned() };
        Ok(BufWriter::new(Box::new(writer)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let state = self.state();
        state.reads().map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))?;
        let file = state.files.get(path);
        let file = file.ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))?;
        Ok(file.bytes.to_vec())
    }

    fn atomic_write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        state.writes(bytes.len(), true)?;
        let file = File { bytes: Arc::new(bytes.to_vec()), synced: true };
        state.rename(path, Some(file));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        let mut state = self.state();
        state.writes(0, true)?;
        state.names.clear();
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        loop {
            {
                let mut state = self.state();
                if matches!(state.fault, Fault::ReadOnly | Fault::NoFiles) {
                    let refused = state.writes(0, true).err().unwrap();
                    return Err(LockError::wrap_io_error(refused));
                }
                if state.locks.insert(lock.filepath.clone()) {
                    break;
                }
            }
            if !lock.is_blocking {
                return Err(LockError::LockBusy);
            }
            thread::yield_now();
        }
        let held = Held { disk: self.clone(), path: lock.filepath.clone() };
        Ok(DirectoryLock::from(Box::new(held)))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
