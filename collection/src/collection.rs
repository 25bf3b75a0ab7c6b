//! The collection: one writer at a time, any number of readers, on one directory.
//!
//! This file has the shared state; the operations are in the files of the folder.
//!
//! Source: ARCHITECTURE.md, "The one idea".

mod close;
mod commit;
mod compact;
mod index;
pub(crate) mod pick;
mod read;
pub(crate) mod repairs;
mod room;
pub(crate) mod slot;
mod ttl;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use tempfile::TempDir;
use tokio::sync::watch;

use crate::change::{Stamp, Version};
use crate::error::Error;
use crate::keys::live_set::LiveSet;
use crate::log::segment::Segment;
use crate::log::{Log, Tail};
use crate::options::Options;
use crate::suppressed::Suppressed;
use repairs::Repairs;
use slot::Slot;

/// Records by object identifier and one change log, on one directory.
///
/// Cheap to clone; all clones are the same collection. Methods block (on the disk, and writers on
/// one another): call them from `spawn_blocking`.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(crate) inner: Arc<Inner>,
}

/// The state that all clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) log: Log,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) slot: RwLock<Slot>,
    pub(crate) live: AtomicU64,
    /// The serials of the updates that hold the live objects' records.
    pub(crate) live_set: LiveSet,
    pub(crate) announce: watch::Sender<Version>,
    /// Locked during a compaction: one at a time. Holds the segments that the last one replaced, if
    /// it ended early for want of space.
    pub(crate) compacting: Mutex<Vec<Weak<Segment>>>,
    /// Known damage, and the progress of its repair.
    pub(crate) repairs: Mutex<Repairs>,
    /// The list of suppressed objects.
    pub(crate) suppressed: Mutex<Suppressed>,
    /// Set when the collection is to be closed: long work ends.
    pub(crate) closing: AtomicBool,
    /// Set once everything that takes room has been looked at since the opening.
    pub(crate) caught_up: AtomicBool,
    /// The file lock, held while the collection is open; `None` if it is opened to read and has no
    /// lock.
    pub(crate) lock: Option<disk::lock::Lock>,
    /// The temporary folder with the key index of a collection that is opened to read.
    pub(crate) overlay: Option<TempDir>,
}

impl Collection {
    /// Returns the version of the last commit.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.log.version()
    }

    /// Whether the log has all changes since `version`; otherwise a consumer at `version` begins
    /// anew.
    #[must_use]
    pub fn continues_from(&self, version: Version) -> bool {
        self.inner.log.view().continues_from(version)
    }

    /// Returns the version of the last commit; waits for a commit in progress. A lookup by key (of
    /// a cursor, for example) may already see a commit that [`version`](Self::version) does not
    /// name yet; it never sees one after this version. Blocks.
    #[must_use]
    pub fn committed(&self) -> Version {
        self.inner.tail().version()
    }

    /// Returns the serial up to which deletes may be forgotten: a consumer behind it reads from the
    /// start.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        self.inner.log.view().horizon
    }

    /// Returns the last moment, at most `at`, up to which every change is visible. No change with
    /// an earlier stamp follows: all later stamps are greater, whatever the clock says. `at` must
    /// not be after the present time.
    #[must_use]
    pub fn settle(&self, at: Stamp) -> Stamp {
        self.inner.log.settled.settle(at)
    }

    /// Returns a receiver of every new version.
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

    /// Locks the knowledge of damage.
    pub(crate) fn repairs(&self) -> MutexGuard<'_, Repairs> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the list of suppressed objects; after the writer's lock, if both are needed.
    pub(crate) fn suppressed(&self) -> MutexGuard<'_, Suppressed> {
        self.suppressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends long work once the collection is to be closed.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]: pass it on.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
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
