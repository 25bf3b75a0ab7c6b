//! The index's folder: the engine's directory, made safe against power cuts.
//!
//! Differences from the engine's own directory:
//!
//! * The engine replaces its list of segments and then deletes the files of the old list. The
//!   replacement is durable only with the next sync of the folder, which may come after the
//!   deletions. A power cut in between would leave the old list without its files, and the index
//!   would have to be built anew. Here the replacement is synced at once.
//! * A power cut may undo a commit but leave one of its files. The engine later uses the name of
//!   that file again, since it numbers files from the last commit in its list. Such a file is
//!   replaced here; the engine's own directory would fail for good.
//! * The lock that prevents the deletion of files while they are being opened is held in memory,
//!   since only this process uses the index. A lock file could not be locked on a read-only disk.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, META_LOCK, MmapDirectory, WatchCallback,
    WatchHandle, WritePtr,
};

/// The engine's list of segments.
const META: &str = "meta.json";

/// A folder whose list of segments is never older than its files.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    inner: Box<dyn Directory>,
    opening: Arc<Opening>,
}

/// The lock for opening or deleting files.
#[derive(Debug, Default)]
struct Opening {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Guard of [`Opening`]: dropping it frees the lock.
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
    fn new(inner: Box<dyn Directory>) -> Self {
        Self { inner, opening: Arc::default() }
    }
}

impl Directory for Folder {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.inner.get_file_handle(path)
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

#[derive(Clone, Debug)]
pub(crate) enum Storage {
    Folder,
    #[cfg(test)]
    Disk(super::tests::disk::Disk),
}

impl Storage {
    /// Opens the storage; `dir` is the index's folder.
    pub(super) fn open(&self, dir: &Path) -> tantivy::Result<Folder> {
        Ok(Folder::new(match self {
            Self::Folder => Box::new(MmapDirectory::open(dir)?),
            #[cfg(test)]
            Self::Disk(disk) => Box::new(disk.clone()),
        }))
    }

    pub(super) fn clear(&self, dir: &Path) -> io::Result<()> {
        match self {
            Self::Folder => fs::remove_dir_all(dir),
            #[cfg(test)]
            Self::Disk(disk) => disk.clear(),
        }
    }
}
