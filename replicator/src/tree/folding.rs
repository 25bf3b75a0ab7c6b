//! What the log of a collection is folded to: made here, so that it does not have to come from others.
//!
//! What comes out depends on the log alone ([`fold_if_due`]): who has all of it makes the same files as its origin,
//! and so has their chunks before they are announced.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use collection::replica::fold_if_due;

use super::chunk::{Chunker, FILE};
use super::error::Error;
use super::store::Store;
use crate::version::Hash;

/// Where the files are made, beside the generations.
const FOLDED: &str = "folded";
/// What is read at once, in bytes.
const READ_BYTES: usize = 256 << 10;

impl Store {
    /// Stages the chunks of what the present log is folded to, if that is due; returns how many bytes that are. The next
    /// version is of that then.
    ///
    /// # Errors
    ///
    /// The log is damaged, or the system's: go on without, all of it comes from others.
    pub fn stage_folded(&self) -> Result<u64, Error> {
        let Some(present) = self.current() else { return Ok(0) };
        let dir = self.dir().join(FOLDED);
        clear(&dir)?;
        fs::create_dir(&dir).map_err(Error::io(&dir))?;
        let staged = fold_if_due(&present.tree(), &dir)
            .map_err(Error::from)
            .and_then(|made| made.iter().map(|it| self.stage(it)).sum());
        clear(&dir).and(staged)
    }

    /// Stages the chunks of a file.
    fn stage(&self, path: &Path) -> Result<u64, Error> {
        let mut file = File::open(path).map_err(Error::io(path))?;
        let mut buffer = vec![0; READ_BYTES];
        let mut chunker = Chunker::new(FILE);
        let mut bytes = 0;
        loop {
            self.go_on()?;
            let read = file.read(&mut buffer).map_err(Error::io(path))?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            chunker.feed(buffer.get(..read).unwrap_or_default());
            while let Some(chunk) = chunker.next_chunk() {
                self.stage_chunk(chunk)?;
            }
        }
        while let Some(chunk) = chunker.finish() {
            self.stage_chunk(chunk)?;
        }
        Ok(bytes)
    }

    fn stage_chunk(&self, chunk: &[u8]) -> Result<(), Error> {
        let hash = Hash::of(chunk);
        if self.has(&hash)? { Ok(()) } else { self.put(&hash, chunk) }
    }
}

/// Removes a directory, if it is there.
fn clear(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(dir)),
    }
}
