//! Folding of a collection's log: a member makes the folded files itself, so that it need not get
//! them from others.
//!
//! The result depends on the log alone ([`fold_into`]). A member with the whole log makes the same
//! files as its origin, and a member that lacks the end of the log makes most of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use collection::replica::{FILES_MAX, fold_into};
use net::clock;

use super::access::make_private;
use super::chunk::{Chunker, FILE};
use super::error::Error;
use super::generation::Generation;
use super::listing::Listing;

/// The directory for folding, next to the generations.
const FOLDED: &str = "folded";
/// Prefix of the files of a base.
const BASE: &str = "base-";
const READ_BYTES: usize = 256 << 10;

/// Takes the chunks of a folded log.
type Stage<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// The state of folding in a store.
#[derive(Debug, Default)]
pub(super) struct Folding {
    /// The serial of the last generation whose log was folded.
    serial: Mutex<u64>,
    failure: Mutex<Option<FoldFailure>>,
}

/// A failure to fold a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldFailure {
    /// The error's text.
    pub why: String,
    /// The time, in Unix milliseconds.
    pub at_ms: u64,
}

impl Folding {
    /// Folds the log of the present generation and passes the resulting chunks to `stage`. Does
    /// this only if the new version was folded, which means that it lists files of a base that the
    /// present one lacks, and only once for each present generation. `store` is the folder of the
    /// store. After an error, continue without folding, because all chunks can come from others.
    pub(super) fn fold(
        &self,
        present: &Generation,
        listing: &mut Listing,
        store: &Path,
        stage: Stage<'_>,
    ) -> Result<(), Error> {
        let known = bases(&mut present.listing())?;
        let is_folded = !bases(listing)?.is_subset(&known);
        let serial = present.serial();
        if !is_folded || std::mem::replace(&mut *lock(&self.serial), serial) == serial {
            return Ok(());
        }
        let dir = store.join(FOLDED);
        let staged = fold(&present.tree(), &dir, stage);
        let outcome = clear(&dir).and(staged);
        let failed = |error: &Error| FoldFailure { why: error.to_string(), at_ms: clock::now_ms() };
        *lock(&self.failure) = outcome.as_ref().err().map(failed);
        outcome
    }

    /// Returns the failure of the last folding; `None` if it succeeded, or there was none.
    pub(super) fn failure(&self) -> Option<FoldFailure> {
        lock(&self.failure).clone()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Folds a log into a directory, and passes on the chunks of the result.
fn fold(log: &Path, dir: &Path, stage: Stage<'_>) -> Result<(), Error> {
    clear(dir)?;
    make_private(dir)?;
    fold_into(log, dir)?.iter().try_for_each(|it| cut(it, stage))
}

/// Passes on the chunks of a file.
fn cut(path: &Path, stage: Stage<'_>) -> Result<(), Error> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut buffer = vec![0; READ_BYTES];
    let mut chunker = Chunker::new(FILE);
    loop {
        let read = file.read(&mut buffer).map_err(Error::io(path))?;
        if read == 0 {
            break;
        }
        chunker.feed(buffer.get(..read).unwrap_or_default());
        while let Some(chunk) = chunker.next_chunk() {
            stage(chunk)?;
        }
    }
    while let Some(chunk) = chunker.finish() {
        stage(chunk)?;
    }
    Ok(())
}

/// Returns the names of the files of a log's base.
fn bases(listing: &mut Listing) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    while let Some(listed) = listing.next_entry()? {
        let name = listed.entry.path.as_str();
        // A log never has more of these files; a version that is not a log is refused later.
        if name.starts_with(BASE) && names.len() < FILES_MAX {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

fn clear(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(dir)),
    }
}
