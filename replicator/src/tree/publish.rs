//! How an origin makes a version: it walks a directory, cuts what is in it, and copies it into a generation that
//! readers see once the version has been signed.
//!
//! A file that is as it was when the present generation was made is not read again, but linked: its size, times,
//! device and inode are remembered. One that was changed less than [`TRUSTED_AFTER_SECONDS`] before the walk began
//! is read once more the next time, as it may have been changed again within the same tick of the clock. For the same
//! reason one that was changed right before it is read has to be read twice with the same result.
//!
//! Each directory and file is opened by its name alone in the directory above it, and symbolic links are not
//! followed: whatever somebody moves meanwhile, nothing from outside of the directory is published.

mod look;
mod source;
mod spool;
mod walk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::source::Source;
use self::walk::Maker;
use super::building::Building;
use super::error::Error;
use super::generation::{Generation, Meta};
use super::manifest::{Format, Totals};
use super::problems::Problems;
use super::store::Store;
use crate::version::{Hash, Kind, Version};

/// How long before the walk a file must have been changed for the next walk to trust its times, in seconds.
pub const TRUSTED_AFTER_SECONDS: i64 = 2;
/// How often a file is read that changes meanwhile.
pub const READS_MAX: usize = 3;
/// A tree of fewer entries may lose any of them.
pub const LOSS_ENTRIES_MIN: u64 = 100;

/// What to do about what may be a mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// Publish without what cannot be replicated. Otherwise nothing is published if there is any.
    pub leaves_out: bool,
    /// Publish though more than 30 % of at least [`LOSS_ENTRIES_MIN`] entries are gone. Otherwise a directory that
    /// is not mounted would empty all replicas.
    pub accepts_loss: bool,
}

/// A generation that waits for its version: readers do not see it before. A store has one at a time; what another
/// has begun is lost.
#[derive(Debug)]
pub struct Draft {
    store: Arc<Store>,
    content: Content,
    root: Hash,
    totals: Totals,
    left_out: Problems,
}

/// What there is of a draft.
#[derive(Debug)]
enum Content {
    Made(Box<Building>),
    /// Nothing: the directory is as it was. Should it be committed all the same, it is made of this.
    Same(PathBuf, Publishing, i64),
}

impl Draft {
    /// Makes a draft of what is in `directory`.
    ///
    /// # Errors
    ///
    /// [`Error::Problems`], [`Error::Loss`]: see [`Publishing`]. [`Error::Own`], [`Error::Bounds`],
    /// [`Error::TooLong`]: the directory is the wrong one, or too large. [`Error::Full`]: free some room. All is as it
    /// was.
    pub fn make(
        store: &Arc<Store>,
        directory: &Path,
        publishing: Publishing,
    ) -> Result<Self, Error> {
        Self::make_with(store, directory, publishing, TRUSTED_AFTER_SECONDS)
    }

    pub(super) fn make_with(
        store: &Arc<Store>,
        directory: &Path,
        publishing: Publishing,
        trusted_after: i64,
    ) -> Result<Self, Error> {
        refuse_own(store, directory)?;
        let top = source::open_top(directory).map_err(Error::io(directory))?;
        if look::is_same(store, &top)?
            && let Some(current) = store.current()
        {
            let (root, totals) = (current.meta().root, current.meta().totals);
            let content = Content::Same(directory.to_owned(), publishing, trusted_after);
            let (store, left_out) = (store.clone(), Problems::default());
            return Ok(Self { store, content, root, totals, left_out });
        }
        Self::build(store, directory, publishing, trusted_after)
    }

    /// Makes all of it.
    fn build(
        store: &Arc<Store>,
        directory: &Path,
        publishing: Publishing,
        trusted_after: i64,
    ) -> Result<Self, Error> {
        let top = source::open_top(directory).map_err(Error::io(directory))?;
        let format = format_for(store.kind(), &top).map_err(Error::io(directory))?;
        let building = store.begin()?;
        let dir = building.dir().to_owned();
        let made = Maker::new(store, building, format, (directory, publishing), trusted_after)
            .and_then(|it| it.make(&top));
        if made.is_err() {
            store.give_up(&dir);
        }
        made
    }

    /// What the version has to say: its root.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.root
    }

    /// Entries, and what the version has to say of bytes.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What its version has to be of.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.store.kind()
    }

    /// Whether it is other than the present generation, or that is damaged: whether to commit it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        let is_damaged = !self.store.damaged().is_empty();
        is_damaged || self.store.current().is_none_or(|it| it.meta().root != self.root)
    }

    /// What was left out.
    #[must_use]
    pub fn left_out(&self) -> &Problems {
        &self.left_out
    }

    /// Makes it the present generation under this version, which is durable with it.
    ///
    /// # Errors
    ///
    /// [`Error::OtherVersion`]: that version is not of this draft. The system's: readers see what they saw, or the
    /// draft, if all but the last step was done. Sign the next one with a later number.
    pub fn commit(self, version: &Version) -> Result<Arc<Generation>, Error> {
        let Self { store, content, root, totals, .. } = self;
        let building = match content {
            Content::Made(building) => *building,
            Content::Same(directory, publishing, trusted_after) => {
                let made = Self::build(&store, &directory, publishing, trusted_after)?;
                return made.commit(version);
            }
        };
        let dir = building.dir().to_owned();
        let is_it =
            version.root == root && version.bytes == totals.bytes && version.kind == store.kind();
        let switched = if is_it {
            store.switch(building, &Meta::new(version, totals))
        } else {
            Err(Error::OtherVersion(version.number))
        };
        if switched.is_err() {
            store.give_up(&dir);
        }
        switched
    }

    /// Gives up. What was learned of files that are as they were is kept, so that they are not read again.
    pub fn discard(self) {
        let is_changed = self.is_changed();
        let Content::Made(mut building) = self.content else { return };
        if let Some(current) = self.store.current().filter(|_| !is_changed) {
            // Otherwise they are read again the next time.
            let _ = building.hand_over_sources(&current);
        }
        self.store.give_up(building.dir());
    }
}

/// The format in which a directory is published. The log of a collection is nobody's business but its owner's at all
/// members, so its modes need not travel, and members that do not know them take it as well.
fn format_for(kind: Kind, top: &Source) -> io::Result<Format> {
    Ok(match kind {
        Kind::Tree => Format::Two(top.mode()?),
        Kind::Collection => Format::One,
    })
}

/// Refuses a directory that is in the store, or the store in it.
fn refuse_own(store: &Store, directory: &Path) -> Result<(), Error> {
    let top = fs::canonicalize(directory).map_err(Error::io(directory))?;
    let own = fs::canonicalize(store.dir()).map_err(Error::io(store.dir()))?;
    if top.starts_with(&own) || own.starts_with(&top) {
        return Err(Error::Own(directory.to_owned()));
    }
    Ok(())
}
