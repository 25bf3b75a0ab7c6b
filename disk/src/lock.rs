//! The lock of a directory: a lock file that holds the process's number.
//!
//! The operating system has the lock, and ends it with the process, however that ends. The number
//! in the file is for people. The file belongs to the owner alone, so that no other user can keep a
//! daemon from starting.
//!
//! Source: ours.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The name of the lock file.
pub const NAME: &str = "LOCK";
const MODE: u32 = 0o600;

/// The reason that a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has it: stop that process, or use another directory.
    #[error("{dir} is in use by process {pid}")]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The number of the process, or `unknown`.
        pid: String,
    },
    /// The system refused the lock.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The lock of a directory, held until it is dropped.
///
/// A child that is being started has a copy of the open file for a moment, which would keep the
/// lock. So dropping this unlocks the file, and does not only close it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Releases the lock before it is dropped.
    ///
    /// # Errors
    ///
    /// The system's. Then the lock ends with the process.
    pub fn release(&self) -> io::Result<()> {
        self.0.unlock()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the lock ends with the last copy of the file.
        let _ = self.release();
    }
}

/// Takes the lock of a directory.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub fn take(dir: &Path) -> Result<Lock, Error> {
    let path = dir.join(NAME);
    let refused = |source| Error::Io { path: path.clone(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(MODE);
    let mut file = options.open(&path).map_err(refused)?;
    check(file.try_lock(), dir, &mut file)?;
    let is_private = |it: std::fs::Metadata| it.permissions().mode() & 0o7777 == MODE;
    if !file.metadata().is_ok_and(is_private) {
        file.set_permissions(Permissions::from_mode(MODE)).map_err(refused)?;
    }
    // The number is for people only: on a full disk the directory can still be read.
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(Lock(file))
}

/// Takes a shared lock of a directory for reading, if there is a lock file.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub fn take_to_read(dir: &Path) -> Result<Option<Lock>, Error> {
    let path = dir.join(NAME);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| Error::Io { path, source })?,
    };
    check(file.try_lock_shared(), dir, &mut file)?;
    Ok(Some(Lock(file)))
}

fn check(tried: Result<(), TryLockError>, dir: &Path, file: &mut File) -> Result<(), Error> {
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The holder may be writing its number now.
            let _ = file.read_to_string(&mut pid);
            let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
            Err(Error::InUse { dir: dir.to_owned(), pid })
        }
        Err(TryLockError::Error(source)) => Err(Error::Io { path: dir.join(NAME), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn one_process_locks_a_directory_or_several_read_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(take_to_read(dir.path()).unwrap().is_none(), "no lock file is made");
        fs::write(dir.path().join(NAME), "what was there").unwrap();
        let held = take(dir.path()).unwrap();
        let mode = held.0.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "of an existing file, too");
        let own = std::process::id().to_string();
        for refused in [take(dir.path()).map(Some), take_to_read(dir.path())] {
            let error = refused.unwrap_err();
            assert!(matches!(&error, Error::InUse { pid, .. } if *pid == own), "{error}");
        }
        drop(held);
        let readers = [take_to_read(dir.path()).unwrap(), take_to_read(dir.path()).unwrap()];
        assert!(matches!(take(dir.path()), Err(Error::InUse { .. })));
        drop(readers);
        take(dir.path()).unwrap();
    }

    #[test]
    fn a_copy_of_the_open_file_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = take(dir.path()).unwrap();
        let _copy = held.0.try_clone().unwrap();
        drop(held);
        take(dir.path()).unwrap();
    }
}
