//! Faults of the engine: damaged files, a passing shortage, or neither.

use std::io;
use std::path::{Path, PathBuf};

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};

/// Error numbers for "too many open files" in the process and in the system, on every Unix.
const MFILE: [i32; 2] = [24, 23];

/// A failure of an index; the message says what to do. The index can be built anew from the
/// collection at any time.
#[derive(Debug, thiserror::Error)]
#[error("{}", describe(dir, source))]
pub struct Failure {
    pub(super) dir: PathBuf,
    pub(super) source: TantivyError,
}

/// Describes the failure of the index in `dir`, with advice for the administrator.
fn describe(dir: &Path, error: &TantivyError) -> String {
    let dir = dir.display();
    if let Some(error) = io_error(error) {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => {
                return format!(
                    "no space left for the full-text index in {dir}: free some space; the index then goes on by itself"
                );
            }
            ReadOnlyFilesystem | PermissionDenied => {
                return format!(
                    "the full-text index in {dir} cannot be written: {error}; make the folder \
                     writable; the index then goes on by itself"
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
        "full-text index in {dir}: {error}; if this does not pass, stop the broker, remove the folder \
         and start again to rebuild it"
    )
}

/// Returns the system's error that caused an engine's error, or an error with the same number if
/// the engine has kept only its text; `None` if the system caused none.
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
    // The system's error may be wrapped in one with less information.
    let mut innermost = error;
    while let Some(inner) = innermost.get_ref().and_then(|it| it.downcast_ref::<io::Error>()) {
        innermost = inner;
    }
    let text = innermost.to_string();
    let number = innermost.raw_os_error().map(io::Error::from_raw_os_error);
    let same = || io::Error::new(innermost.kind(), text.clone());
    Some(number.or_else(|| os_error(&text)).unwrap_or_else(same))
}

/// Reads the error number at the end of the text that the standard library gives to a system error;
/// `None` if there is no number.
fn os_error(text: &str) -> Option<io::Error> {
    let (_, after) = text.rsplit_once("(os error ")?;
    let (number, _) = after.split_once(')')?;
    number.parse().ok().map(io::Error::from_raw_os_error)
}

/// Returns whether the writer's lock failed because of the disk, not because of another process.
pub(super) fn is_lock_of_disk(error: &TantivyError) -> bool {
    matches!(error, TantivyError::LockFailure(LockError::IoError(_), _))
}

/// Returns whether an index that fails to open with this error should be dropped and rebuilt.
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

/// Returns whether the index's files are damaged. No query can cause such an error.
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

/// Returns whether the engine failed without a known cause, so that its files may be damaged.
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
