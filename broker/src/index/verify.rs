//! Verification: compares every file of the index with its checksum.
//!
//! It runs once after an unclean stop, after an unexplained failure of the engine, and at the
//! request of an administrator. The indexer verifies before it applies further changes, because a
//! merge would copy damaged bytes into a new file with a correct checksum. Searches go on
//! meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use tantivy::directory::Directory as _;
use tantivy::directory::error::OpenReadError;

use super::fault::is_corruption;
use super::{Index, locked};
use crate::error::Error;

/// File in the index's folder that marks a clean stop.
const CLOSED: &str = "closed";

/// Removes the mark of a clean stop; returns whether the mark existed and was removed. In a
/// read-only folder the mark stays, but then nothing else is written either.
pub(super) fn take_mark(dir: &Path) -> bool {
    fs::remove_file(dir.join(CLOSED)).is_ok()
}

/// Marks a clean stop. If that fails, the next start verifies every file.
pub(super) fn leave_mark(dir: &Path) {
    if let Err(error) = fs::File::create(dir.join(CLOSED)).and_then(|file| file.sync_all()) {
        tracing::debug!(dir = %dir.display(), %error, "the index's clean stop was not marked");
    }
}

impl Index {
    /// Returns whether the index's files must be [verified](Self::verify).
    pub fn is_suspect(&self) -> bool {
        self.inner.suspect.load(Ordering::Acquire)
    }

    /// Makes the indexer verify the index's files.
    pub fn suspect(&self) {
        self.inner.suspect.store(true, Ordering::Release);
        self.inner.covered.send_modify(|_| ());
    }

    /// Compares every file of the last commit with its checksum, and returns the damaged files. If
    /// there are any, the next [`apply`](Self::apply) builds the index anew. Waits for a running
    /// apply. Blocks.
    ///
    /// Stops early and returns an empty list once `cancelled` returns true.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when the files cannot be read for a reason other than damage; call again.
    pub fn verify(&self, cancelled: &dyn Fn() -> bool) -> Result<Vec<PathBuf>, Error> {
        let _slot = locked(&self.inner.writer);
        // While the list exists, its files are not deleted.
        let metas = match self.inner.engine.load_metas() {
            Ok(metas) => metas,
            Err(error) if is_corruption(&error) => {
                self.handle_damage(&error.to_string());
                self.inner.suspect.store(false, Ordering::Release);
                return Ok(vec![PathBuf::from("meta.json")]);
            }
            Err(source) => return Err(self.failed(source)),
        };
        let directory = self.inner.engine.directory();
        let mut damaged = Vec::new();
        for path in metas.list_segment_files() {
            if cancelled() {
                return Ok(Vec::new());
            }
            // Not every segment has a file of every kind.
            if !directory.exists(&path).map_err(|source| self.failed(source.into()))? {
                continue;
            }
            match directory.validate_checksum(&path) {
                Ok(true) => {}
                Ok(false) => damaged.push(path),
                Err(OpenReadError::IoError { io_error, .. }) if is_of_footer(&io_error) => {
                    damaged.push(path);
                }
                Err(source) => return Err(self.failed(source.into())),
            }
        }
        if let Some(first) = damaged.first() {
            self.handle_damage(&format!("the checksum of {} is wrong", first.display()));
        }
        self.inner.suspect.store(false, Ordering::Release);
        Ok(damaged)
    }
}

/// Returns whether the error means that a file's footer, which has the checksum, is damaged.
fn is_of_footer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
