//! What the log of a collection is folded to: made here, so that it does not have to come from others.
//!
//! What comes out depends on the log alone ([`fold_into`]): who has all of it makes the same files as its origin, and
//! who lacks its end makes most of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use collection::replica::{FILES_MAX, fold_into};
use net::clock;

use super::chunk::{Chunker, FILE};
use super::error::Error;
use super::generation::Generation;
use super::listing::Listing;
use super::passage::make_private;

/// Where the files are made, beside the generations.
const FOLDED: &str = "folded";
/// What the names of files of a base begin with.
const BASE: &str = "base-";
/// What is read at once, in bytes.
const READ_BYTES: usize = 256 << 10;

/// Has the chunks of a log that is folded.
type Stage<'a> = &'a mut dyn FnMut(&[u8]) -> Result<(), Error>;

/// What was folded in a store.
#[derive(Debug, Default)]
pub(super) struct Folding {
    /// The serial of the last generation whose log was folded.
    serial: Mutex<u64>,
    /// That could not be done.
    failure: Mutex<Option<Unfolded>>,
}

/// A log could not be folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfolded {
    /// Why.
    pub why: String,
    /// When, in Unix milliseconds.
    pub at_ms: u64,
}

impl Folding {
    /// Hands on the chunks of what the present log is folded to, if that is what a version has whose entries these are:
    /// files of a base that the present one has not. Once is enough for what is present. `store`: its folder.
    ///
    /// # Errors
    ///
    /// The log is damaged, or the system's: go on without, all of it comes from others.
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
        let failed = |error: &Error| Unfolded { why: error.to_string(), at_ms: clock::now_ms() };
        *lock(&self.failure) = outcome.as_ref().err().map(failed);
        outcome
    }

    /// Why a log could not be folded the last time.
    pub(super) fn failure(&self) -> Option<Unfolded> {
        lock(&self.failure).clone()
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands on the chunks of what a log is folded to, by way of a directory.
fn fold(log: &Path, dir: &Path, stage: Stage<'_>) -> Result<(), Error> {
    clear(dir)?;
    make_private(dir)?;
    fold_into(log, dir)?.iter().try_for_each(|it| cut(it, stage))
}

/// Hands on the chunks of a file.
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

/// The files of a log's base.
fn bases(listing: &mut Listing) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    while let Some(listed) = listing.next_entry()? {
        let name = listed.entry.path.as_str();
        // No log has as many; what is none is refused in the end.
        if name.starts_with(BASE) && names.len() < FILES_MAX {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}

/// Removes a directory, if it is there.
fn clear(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io(dir)),
    }
}
