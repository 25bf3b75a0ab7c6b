//! Damage that nobody has read yet: every file of the index against its checksum.
//!
//! Done once after a stop that was not clean, after the engine broke without saying why, and when
//! an administrator asks. It is done by whoever keeps the index up to date, before it takes in
//! further changes: a merge would write damaged bytes again, with a checksum that is right.
//! Searches go on meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use tantivy::directory::Directory as _;
use tantivy::directory::error::OpenReadError;

use super::fault::is_corruption;
use super::{Index, locked};
use crate::error::Error;

/// What says in the index's folder that it was closed in order.
const CLOSED: &str = "closed";

/// Takes away the mark of a clean stop; returns whether it was there. Without a folder that can be
/// written it stays, but then nothing else is written either.
pub(super) fn take_mark(dir: &Path) -> bool {
    fs::remove_file(dir.join(CLOSED)).is_ok()
}

/// Marks a clean stop. Where that fails, the next start looks at every file.
pub(super) fn leave_mark(dir: &Path) {
    if let Err(error) = fs::File::create(dir.join(CLOSED)).and_then(|file| file.sync_all()) {
        tracing::debug!(dir = %dir.display(), %error, "the index's clean stop was not marked");
    }
}

impl Index {
    /// Whether its files have to be [verified](Self::verify).
    pub fn is_suspect(&self) -> bool {
        self.inner.suspect.load(Ordering::Acquire)
    }

    /// Has its files verified by whoever keeps it up to date.
    pub fn suspect(&self) {
        self.inner.suspect.store(true, Ordering::Release);
        self.inner.covered.send_modify(|_| ());
    }

    /// Compares every file of the last commit with its checksum, and returns the damaged ones. If
    /// there are any, the next [`apply`](Self::apply) builds the index anew. Waits for an apply under
    /// way. Blocks.
    ///
    /// Stops early, with nothing found, once `cancelled` says so.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when the files cannot be read for another reason; call again.
    pub fn verify(&self, cancelled: &dyn Fn() -> bool) -> Result<Vec<PathBuf>, Error> {
        let _slot = locked(&self.inner.writer);
        // These keep their files from being deleted.
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

/// Whether a file's end, which has the checksum, is not what was written.
fn is_of_footer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
