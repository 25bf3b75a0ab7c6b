//! One holder a directory: a lock file that names the process.
//!
//! The lock is the system's and goes with the process, however that ends; the number in the file is for people. It is
//! the owner's alone, so that nobody else can keep a daemon from starting.
//!
//! Source: ours.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What the lock file is called.
pub const NAME: &str = "LOCK";
const MODE: u32 = 0o600;

/// Why a directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has it: stop that, or use another directory.
    #[error("{dir} is in use by process {pid}")]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The number of the process, or `unknown`.
        pid: String,
    },
    /// The system refused it.
    #[error("cannot lock {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Takes the lock of a directory, for as long as the file that is returned is open.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub fn take(dir: &Path) -> Result<File, Error> {
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
    // For people alone: a disk without room for it can still be read from.
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Takes the lock of a directory that is only read, if there is one: others may have it so too.
///
/// # Errors
///
/// [`Error::InUse`], naming the holder; the system's.
pub fn take_to_read(dir: &Path) -> Result<Option<File>, Error> {
    let path = dir.join(NAME);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| Error::Io { path, source })?,
    };
    check(file.try_lock_shared(), dir, &mut file)?;
    Ok(Some(file))
}

fn check(tried: Result<(), TryLockError>, dir: &Path, file: &mut File) -> Result<(), Error> {
    match tried {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The holder may be writing its number just now.
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
    fn one_holds_a_directory_or_several_read_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(take_to_read(dir.path()).unwrap().is_none(), "nothing is made to read");
        fs::write(dir.path().join(NAME), "what was there").unwrap();
        let held = take(dir.path()).unwrap();
        let mode = held.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "of one that was there before, too");
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
}
