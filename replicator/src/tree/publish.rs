//! Publishing: an origin walks a directory, cuts its files, and copies them into a generation,
//! which readers see once the version is signed.
//!
//! A file that is unchanged since the present generation was made is linked instead of read: its
//! size, times, device and inode are remembered. A file that was changed less than
//! [`TRUSTED_AFTER_SECONDS`] before the walk is read again at the next walk, because it may change
//! again within the same tick of the clock. For the same reason, a file that was changed right
//! before it is read has to be read twice with the same result.
//!
//! Each directory and file is opened by its name in the directory above it, and symbolic links are
//! not followed. So files outside of the directory are never published, even if somebody moves
//! directories meanwhile.

mod look;
mod source;
mod spool;
mod walk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::source::Folder;
use self::walk::DraftMaker;
use super::building::Building;
use super::error::Error;
use super::generation::{Generation, Meta};
use super::manifest::{Format, Totals};
use super::problems::Problems;
use super::store::Store;
use crate::version::{Hash, Kind, Version};

/// The next walk trusts the times of a file only if the file was changed more than this many
/// seconds before the present walk.
pub const TRUSTED_AFTER_SECONDS: i64 = 2;
/// Maximum number of times that a file is read if it changes meanwhile.
pub const READS_MAX: usize = 3;
/// A tree of fewer entries may lose any number of them.
pub const LOSS_ENTRIES_MIN: u64 = 100;

/// Options that allow publishing in spite of possible mistakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// Leaves out entries that cannot be replicated. Without it, any such entry prevents
    /// publishing.
    pub leaves_out: bool,
    /// Publishes even if more than 30 % of at least [`LOSS_ENTRIES_MIN`] entries are gone. Without
    /// it, such a loss prevents publishing, so that a directory that is not mounted does not empty
    /// all replicas.
    pub accepts_loss: bool,
}

/// A generation that waits for its signed version; readers do not see it yet. A store has one draft
/// at a time: a new one ends the one before.
#[derive(Debug)]
pub struct Draft {
    store: Arc<Store>,
    content: Content,
    root: Hash,
    totals: Totals,
    left_out: Problems,
}

#[derive(Debug)]
enum Content {
    Made(Box<Building>),
    /// The directory is unchanged, and nothing was built. A commit builds it with these arguments.
    Same(PathBuf, Publishing, i64),
}

impl Draft {
    /// Makes a draft of `directory`.
    ///
    /// # Errors
    ///
    /// [`Error::Problems`], [`Error::Loss`]: see [`Publishing`]. [`Error::Own`], [`Error::Bounds`],
    /// [`Error::TooLong`]: the directory is the wrong one, or too large. [`Error::Full`]: free some
    /// room on the disk. Nothing has changed.
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
        let made = DraftMaker::new(store, building, format, (directory, publishing), trusted_after)
            .and_then(|it| it.make(&top));
        if made.is_err() {
            store.give_up(&dir);
        }
        made
    }

    /// Returns the hash of the root, for the version.
    pub fn root(&self) -> Hash {
        self.root
    }

    /// Returns the numbers of entries and bytes, for the version.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the kind of the content, for the version.
    pub fn kind(&self) -> Kind {
        self.store.kind()
    }

    /// Returns whether the draft should be committed: it differs from the present generation, or
    /// the present generation is damaged.
    pub fn is_changed(&self) -> bool {
        let is_damaged = !self.store.damaged().is_empty();
        is_damaged || self.store.current().is_none_or(|it| it.meta().root != self.root)
    }

    /// Returns the entries that were left out.
    pub fn left_out(&self) -> &Problems {
        &self.left_out
    }

    /// Makes the draft the present generation under this version, and stores the version with it.
    ///
    /// # Errors
    ///
    /// [`Error::OtherVersion`]: the version is not one of this draft. If the system refuses an
    /// operation, readers still see what they saw before, or see the draft if only the last step
    /// failed. Sign the next version with a later number.
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

    /// Gives up the draft. If it equals the present generation, that takes over the stamps, so that
    /// unchanged files are not read again.
    pub fn discard(self) {
        let is_changed = self.is_changed();
        let Content::Made(mut building) = self.content else { return };
        if let Some(current) = self.store.current().filter(|_| !is_changed) {
            // If this fails, the files are read again the next time.
            let _ = building.hand_over_stamps(&current);
        }
        self.store.give_up(building.dir());
    }
}

/// Returns the format for a directory. The log of a collection is private at all members, so it
/// needs no modes, and can be in format 1 for older members that know no other.
fn format_for(kind: Kind, top: &Folder) -> io::Result<Format> {
    Ok(match kind {
        Kind::Tree => Format::Two(top.mode()?),
        Kind::Collection => Format::One,
    })
}

/// Refuses a directory that is inside the store or contains it.
fn refuse_own(store: &Store, directory: &Path) -> Result<(), Error> {
    let top = fs::canonicalize(directory).map_err(Error::io(directory))?;
    let own = fs::canonicalize(store.dir()).map_err(Error::io(store.dir()))?;
    if top.starts_with(&own) || own.starts_with(&top) {
        return Err(Error::Own(directory.to_owned()));
    }
    Ok(())
}
