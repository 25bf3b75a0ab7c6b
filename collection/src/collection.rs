//! The collection: one writer at a time, any number of readers, on one directory.
//!
//! This file has the shared state; the operations are in the files of the folder.
//!
//! Source: ARCHITECTURE.md, "The one idea".

mod close;
mod commit;
mod compact;
pub(crate) mod index;
pub(crate) mod pick;
mod read;
pub(crate) mod repairs;
mod room;
pub(crate) mod ttl;

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
use index::Slot;
use repairs::Repairs;

/// Records by object identifier and one change log, on one directory.
///
/// Cheap to clone; all clones are the same collection. Methods block (all wait for the disk, and
/// writers wait for each other): call them from `spawn_blocking`. A look-up by key fails only if
/// the key index failed and cannot be rebuilt now. Methods that write have the errors of
/// [`commit`](Self::commit).
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
    /// Locked during a compaction, so that only one runs at a time. Holds the segments that the
    /// last compaction replaced, if it ended early because the disk was full.
    pub(crate) compacting: Mutex<Vec<Weak<Segment>>>,
    pub(crate) repairs: Mutex<Repairs>,
    /// The list of suppressed objects.
    pub(crate) suppressed: Mutex<Suppressed>,
    /// Set when the collection is about to be closed: long operations then end early.
    pub(crate) closing: AtomicBool,
    /// Set once every root or source has been visited since the opening.
    pub(crate) caught_up: AtomicBool,
    /// The lock of the directory; `None` if the collection is opened only to read, without one.
    pub(crate) lock: Option<disk::lock::Lock>,
    /// The temporary folder with the key index of a collection that is opened only to read.
    pub(crate) overlay: Option<TempDir>,
}

impl Collection {
    /// Returns the version of the last commit.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.log.version()
    }

    /// Returns whether the log has all changes after `version` that are not superseded. If not, a
    /// consumer at `version` begins anew with a snapshot.
    #[must_use]
    pub fn continues_from(&self, version: Version) -> bool {
        self.inner.log.view().continues_from(version)
    }

    /// Returns the version of the last commit; waits for a commit in progress. A look-up by key (of
    /// a cursor, for example) may see a commit before [`version`](Self::version) includes it. A
    /// look-up made before this call never sees a commit after the returned version. Blocks.
    #[must_use]
    pub fn committed(&self) -> Version {
        self.inner.tail().version()
    }

    /// Returns the serial up to which deletes may be forgotten: a consumer whose cursor is below it
    /// begins anew with a snapshot.
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

    /// Returns a receiver that gets every new version.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Version> {
        self.inner.announce.subscribe()
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.inner.live.load(Ordering::Acquire)
    }

    /// Returns whether there is no live object.
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

    pub(crate) fn repairs(&self) -> MutexGuard<'_, Repairs> {
        self.repairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the takedown list. If both locks are needed, take the writer's lock first.
    pub(crate) fn suppressed(&self) -> MutexGuard<'_, Suppressed> {
        self.suppressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the collection is not being closed; long operations do so at each step.
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
