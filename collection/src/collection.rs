//! The collection: one writer at a time, any number of readers, on one directory.
//!
//! Here is what all of it shares; what is done with that is in the files of the folder.
//!
//! Source: DESIGN.md, "The one idea".

mod close;
mod commit;
mod compact;
mod index;
pub(crate) mod mending;
pub(crate) mod pick;
mod read;
mod room;
pub(crate) mod slot;
mod ttl;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use tempfile::TempDir;
use tokio::sync::watch;

use crate::change::{Stamp, Version};
use crate::error::Error;
use crate::keys::lives::Lives;
use crate::log::segment::Segment;
use crate::log::{Log, Tail};
use crate::options::Options;
use crate::suppressed::Suppressed;
use mending::Mending;
use slot::Slot;

/// Records by object identifier and one change log, on one directory.
///
/// Cheap to clone; all clones are the same collection. Methods block (on the disk, and writers on
/// one another): call them from `spawn_blocking`.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) log: Log,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) slot: RwLock<Slot>,
    pub(crate) live: AtomicU64,
    /// Which updates the live objects have their records from.
    pub(crate) lives: Lives,
    pub(crate) announce: watch::Sender<Version>,
    /// Held while compacting: one compaction at a time. What the last one replaced, if for want of
    /// space it ended early.
    pub(crate) compacting: Mutex<Vec<Weak<Segment>>>,
    /// What is known of damage, and what was done about it.
    pub(crate) mending: Mutex<Mending>,
    /// What is suppressed.
    pub(crate) suppressed: Mutex<Suppressed>,
    /// It is to be closed: nothing that takes long is to go on.
    pub(crate) closing: AtomicBool,
    /// All that fills it has been looked at since it was opened.
    pub(crate) caught_up: AtomicBool,
    /// Locked for as long as the collection is open; `None` where it is only read, and there is no lock.
    pub(crate) lock: Option<File>,
    /// Where the key index is written of what is only read.
    pub(crate) overlay: Option<TempDir>,
}

impl Collection {
    /// Returns the version of the last commit.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.log.version()
    }

    /// Whether all that has changed since `version` is in the log: otherwise whoever has come there begins anew.
    #[must_use]
    pub fn goes_on_from(&self, version: Version) -> bool {
        self.inner.log.view().goes_on_from(version)
    }

    /// Returns the version of the last commit; waits for one that is under way. What can be looked up by
    /// key, a cursor for one, may be of a commit that [`version`](Self::version) does not name yet: behind
    /// this it does. Blocks.
    #[must_use]
    pub fn committed(&self) -> Version {
        self.inner.tail().version()
    }

    /// Returns the serial up to which deletes may be forgotten: who has read less far than that reads
    /// from the start.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        self.inner.log.view().horizon
    }

    /// Returns the last moment, at most `at`, such that every change with a stamp up to it is visible, now
    /// and for good: stamps given from now on are later, whatever the clock says. `at` is not after the
    /// present time.
    #[must_use]
    pub fn settle(&self, at: Stamp) -> Stamp {
        self.inner.log.settled.settle(at)
    }

    /// Returns a receiver that hears of every new version.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Version> {
        self.inner.announce.subscribe()
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.inner.live.load(Ordering::Acquire)
    }

    /// Whether there is no live object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    /// Takes the writer's lock.
    pub(crate) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of damage.
    pub(crate) fn mending(&self) -> MutexGuard<'_, Mending> {
        self.mending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock of the list; after the writer's, if both are needed.
    pub(crate) fn suppressed(&self) -> MutexGuard<'_, Suppressed> {
        self.suppressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what takes long once the collection is to be closed.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]: pass it on.
    pub(crate) fn go_on(&self) -> Result<(), Error> {
        if self.closing.load(Ordering::Acquire) {
            return Err(Error::Stopped { dir: self.dir.clone() });
        }
        Ok(())
    }

    /// Shows the last commit to readers.
    pub(crate) fn publish(&self, tail: &Tail) {
        let version = tail.version();
        self.log.change_view(|view| view.version = version);
        self.announce.send_if_modified(|known| {
            let newer = *known != version;
            *known = version;
            newer
        });
    }
}
