//! One process at a time in a directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use super::error::Error;
use super::passage::{FILE, set_mode};

const LOCK: &str = "LOCK";

/// Has this process alone be in a directory, for as long as what is returned is open.
///
/// # Errors
///
/// [`Error::InUse`]; the system's.
pub(crate) fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join(LOCK);
    let open = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = open.map_err(Error::io(&path))?;
    set_mode(&path, FILE)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse(dir.to_owned())),
        Err(TryLockError::Error(error)) => Err(Error::io(path)(error)),
    }
}
