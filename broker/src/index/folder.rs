//! The index's folder, as the engine sees it.
//!
//! Differences from the engine's own:
//!
//! * The engine replaces its list of segments and then deletes what the old list named; the
//!   replacement is on disk for good only with the next sync of the folder, which may come after the
//!   deletions. A power cut in between would leave the old list and not its files: an index to be built
//!   anew. Here the replacement is synced before anything else is done.
//! * What a commit wrote that a power cut undid may lie about, under a name that the engine will
//!   want again: it counts commits on from the last that is in its list. Such a file is replaced; the
//!   engine would fail for good.
//! * The lock that keeps files from being deleted while they are opened is one of this process, as the
//!   index is: a file of its own could not be locked on a read-only disk.
//! * What hits show is read from its file instead of being mapped into memory: every hit is somewhere
//!   else in the largest file of a segment, of which little is worth keeping.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tantivy::HasLen;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, META_LOCK, MmapDirectory, OwnedBytes,
    WatchCallback, WatchHandle, WritePtr,
};

/// The engine's list of segments.
const META: &str = "meta.json";

/// Extension of the files that have what hits show.
const STORE: &str = "store";

/// Longest part of such a file that is read rather than mapped, in bytes; only merges ask for more.
const READ_BYTES_MAX: usize = 1 << 20;

/// A folder whose list of segments is never older than its files.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    inner: Box<dyn Directory>,
    /// Where its files are; `None` if they are none of the system's.
    dir: Option<PathBuf>,
    opening: Arc<Opening>,
}

/// A file that is read in small parts and mapped for large ones.
#[derive(Debug)]
struct Store {
    file: File,
    mapped: Arc<dyn FileHandle>,
}

impl HasLen for Store {
    fn len(&self) -> usize {
        self.mapped.len()
    }
}

impl FileHandle for Store {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if READ_BYTES_MAX < range.len() {
            return self.mapped.read_bytes(range);
        }
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

/// Whether somebody opens files or deletes them.
#[derive(Debug, Default)]
struct Opening {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Lets the next one in when it is dropped.
struct Turn(Arc<Opening>);

impl Turn {
    fn wait(opening: &Arc<Opening>) -> Self {
        let mut taken = opening.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            taken = opening.free.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken = true;
        Self(Arc::clone(opening))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.free.notify_one();
    }
}

impl Folder {
    fn new(inner: Box<dyn Directory>, dir: Option<PathBuf>) -> Self {
        Self { inner, dir, opening: Arc::default() }
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let mapped = self.inner.get_file_handle(path)?;
        match &self.dir {
            Some(dir) if path.extension().is_some_and(|it| it == STORE) => {
                let file = File::open(dir.join(path))
                    .map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()))?;
                Ok(Arc::new(Store { file, mapped }))
            }
            _ => Ok(mapped),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        match self.inner.open_write(path) {
            Err(OpenWriteError::FileAlreadyExists(_)) => {
                self.inner.delete(path).map_err(|error| {
                    OpenWriteError::wrap_io_error(io::Error::other(error), path.to_owned())
                })?;
                self.inner.open_write(path)
            }
            opened => opened,
        }
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)?;
        if path == Path::new(META) { self.inner.sync_directory() } else { Ok(()) }
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        if lock.filepath == META_LOCK.filepath {
            return Ok(DirectoryLock::from(Box::new(Turn::wait(&self.opening))));
        }
        self.inner.acquire_lock(lock)
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}

/// Where an index is kept.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In its folder.
    Folder,
    /// On a disk that fails when told to.
    #[cfg(test)]
    Disk(super::tests::disk::Disk),
}

impl Place {
    /// Opens the place; `dir` is the index's folder.
    pub(super) fn open(&self, dir: &Path) -> tantivy::Result<Folder> {
        Ok(match self {
            Self::Folder => Folder::new(Box::new(MmapDirectory::open(dir)?), Some(dir.to_owned())),
            #[cfg(test)]
            Self::Disk(disk) => Folder::new(Box::new(disk.clone()), None),
        })
    }

    /// Removes what is there.
    pub(super) fn clear(&self, dir: &Path) -> io::Result<()> {
        match self {
            Self::Folder => fs::remove_dir_all(dir),
            #[cfg(test)]
            Self::Disk(disk) => disk.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_store_are_the_same_read_or_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(READ_BYTES_MAX + 5_000).collect();
        fs::write(dir.path().join("a.store"), &bytes).unwrap();
        let store = Place::Folder.open(dir.path()).unwrap();
        let store = store.get_file_handle(Path::new("a.store")).unwrap();
        assert_eq!(store.len(), bytes.len());
        for range in [0..0, 0..1, 70..4_000, 5_000..bytes.len(), 0..bytes.len()] {
            assert_eq!(store.read_bytes(range.clone()).unwrap().as_slice(), &bytes[range]);
        }
        // Not the whole of it, and not a panic.
        fs::write(dir.path().join("a.store"), b"cut").unwrap();
        assert!(store.read_bytes(70..80).is_err());
    }
}
