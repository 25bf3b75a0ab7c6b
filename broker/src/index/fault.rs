//! What an error of the engine means for the index: damage, a shortage that passes, or neither.

use std::io;
use std::path::{Path, PathBuf};

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};

/// "Too many open files", of the process and of the system, on every Unix.
const MFILE: [i32; 2] = [24, 23];

/// Why an index failed; the message says what to do. It can be built anew from the collection at any
/// time.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(dir, source))]
pub struct Failure {
    /// The index's folder.
    pub(super) dir: PathBuf,
    /// What the engine said.
    pub(super) source: TantivyError,
}

/// Says what failed in the index in `dir`, and what an admin can do about it.
fn said(dir: &Path, error: &TantivyError) -> String {
    let dir = dir.display();
    if let Some(error) = io_error(error) {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => {
                return format!(
                    "no space left for the full-text index in {dir}: free some, then it goes on by itself"
                );
            }
            ReadOnlyFilesystem | PermissionDenied => {
                return format!(
                    "the full-text index in {dir} cannot be written: {error}; make the folder \
                     writable, then it goes on by itself"
                );
            }
            _ if error.raw_os_error().is_some_and(|code| MFILE.contains(&code)) => {
                return format!(
                    "too many open files for the full-text index in {dir}: raise the limit of open \
                     files; it goes on by itself once there are fewer"
                );
            }
            _ => {}
        }
    }
    if matches!(error, TantivyError::LockFailure(LockError::LockBusy, _)) {
        return format!(
            "another process has the lock of the full-text index in {dir}; stop it, or name another \
             data directory"
        );
    }
    format!(
        "full-text index in {dir}: {error}; if it stays so, stop the broker, remove the folder and \
         start again to rebuild it"
    )
}

/// What the system said, if it was the system: the error itself, or one of the same number where the
/// engine has kept the text only.
fn io_error(error: &TantivyError) -> Option<io::Error> {
    let error: &io::Error = match error {
        TantivyError::IoError(error)
        | TantivyError::LockFailure(LockError::IoError(error), _)
        | TantivyError::OpenDirectoryError(OpenDirectoryError::IoError {
            io_error: error, ..
        })
        | TantivyError::OpenReadError(OpenReadError::IoError { io_error: error, .. })
        | TantivyError::OpenWriteError(OpenWriteError::IoError { io_error: error, .. }) => error,
        TantivyError::InternalError(text)
        | TantivyError::SystemError(text)
        | TantivyError::ErrorInThread(text) => return os_error(text),
        _ => return None,
    };
    // It may have been wrapped by one that knows less.
    let mut innermost = error;
    while let Some(inner) = innermost.get_ref().and_then(|it| it.downcast_ref::<io::Error>()) {
        innermost = inner;
    }
    let text = innermost.to_string();
    let number = innermost.raw_os_error().map(io::Error::from_raw_os_error);
    let same = || io::Error::new(innermost.kind(), text.clone());
    Some(number.or_else(|| os_error(&text)).unwrap_or_else(same))
}

/// Reads the number that the standard library ends the text of a system's error with.
fn os_error(text: &str) -> Option<io::Error> {
    let (_, after) = text.rsplit_once("(os error ")?;
    let (number, _) = after.split_once(')')?;
    number.parse().ok().map(io::Error::from_raw_os_error)
}

/// Whether the writer's lock could not be had because of the disk, not because of another process.
pub(super) fn is_lock_of_disk(error: &TantivyError) -> bool {
    matches!(error, TantivyError::LockFailure(LockError::IoError(_), _))
}

/// Whether an index that fails to open so is best dropped: it can be made again.
pub(super) fn is_damage(error: &TantivyError) -> bool {
    let of_another_layout = matches!(
        error,
        TantivyError::SchemaError(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::DeserializeError(_)
            | TantivyError::InternalError(_)
            | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_))
    );
    (of_another_layout && io_error(error).is_none()) || is_corruption(error)
}

/// Whether the index's files are not what was written. Whatever a query says, it is not that.
pub(super) fn is_corruption(error: &TantivyError) -> bool {
    let is_of_bytes = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
    };
    match error {
        TantivyError::DataCorruption(_)
        | TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_)) => true,
        error => io_error(error).as_ref().is_some_and(is_of_bytes),
    }
}

/// Whether the engine broke without saying why: its files may be damaged.
pub(super) fn is_suspicious(error: &TantivyError) -> bool {
    let broke = matches!(
        error,
        TantivyError::ErrorInThread(_)
            | TantivyError::InternalError(_)
            | TantivyError::SystemError(_)
            | TantivyError::Poisoned
    );
    broke && io_error(error).is_none()
}
