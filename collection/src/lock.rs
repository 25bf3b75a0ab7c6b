//! One holder a directory: a lock file that names the process.
//!
//! The lock is the system's and goes with the process, however that ends; the number in the file is
//! for people.
//!
//! Source: ours.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::error::Error;

/// Takes the lock of a directory that is only read, if there is one: others may have it so too.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub(crate) fn take_to_read(dir: &Path) -> Result<Option<File>, Error> {
    let path = dir.join("LOCK");
    let refused = |error| Error::io("cannot lock", &path, error);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(in_use(dir, &mut file)),
        Err(TryLockError::Error(error)) => Err(refused(error)),
    }
}

fn in_use(dir: &Path, lock: &mut File) -> Error {
    let mut pid = String::new();
    // The holder may be writing its number just now.
    let _ = lock.read_to_string(&mut pid);
    let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
    Error::InUse { dir: dir.to_owned(), pid }
}

/// Takes the lock of a directory, for as long as the file that is returned is open.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub(crate) fn take(dir: &Path) -> Result<File, Error> {
    let path = dir.join("LOCK");
    let refused = |error| Error::io("cannot lock", &path, error);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let mut file = file.map_err(refused)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(dir, &mut file)),
        Err(TryLockError::Error(error)) => return Err(refused(error)),
    }
    // For people alone: a disk without room for it can still be read from.
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}
