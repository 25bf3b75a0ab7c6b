//! The current sets: built from the log in the background, updated by requests, and saved at times.
//!
//! A request updates the sets to its own version, so that a list lacks no change before its
//! `responseDate`. A background task builds the sets and keeps them nearly current, so that
//! requests have little to do.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use collection::{Collection, Error, Version};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;

use super::sets::{LiveView, Member, Sets};
use super::sets_file;

/// Maximum number of changes that a request reads itself; more are left to the background task.
const REQUEST_CHANGES_MAX: u64 = 50_000;

/// Number of changes that are applied under one lock.
const STEP_CHANGES: usize = 4_096;

/// Pause of the background task before it reads new commits.
const PAUSE: Duration = Duration::from_secs(10);

/// Shortest time between two saves of the sets.
const SAVE_EVERY: Duration = Duration::from_secs(10 * 60);

/// The reason why a list cannot be made now.
#[derive(Debug)]
pub(super) enum Unready {
    /// The sets are being made; ask again.
    Making,
    /// The log cannot be read.
    Failed(Error),
}

impl From<Error> for Unready {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The sets of a collection. Clones share their state.
#[derive(Clone, Debug)]
pub(super) struct CurrentSets {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    collection: Collection,
    path: PathBuf,
    /// The sets; `None` until they have reached the end of the log once.
    sets: RwLock<Option<Sets>>,
    /// Only the task that has this lock reads the log.
    turn: Mutex<SavedVersion>,
    /// Wakes the background task.
    asked: Notify,
}

#[derive(Debug, Default)]
struct SavedVersion {
    version: Version,
    at: Option<Instant>,
}

impl CurrentSets {
    pub(super) fn new(collection: Collection, path: PathBuf) -> Self {
        let (sets, turn, asked) = (RwLock::default(), Mutex::default(), Notify::new());
        Self { inner: Arc::new(Inner { collection, path, sets, turn, asked }) }
    }

    fn turn(&self) -> MutexGuard<'_, SavedVersion> {
        self.inner.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sets(&self) -> RwLockReadGuard<'_, Option<Sets>> {
        self.inner.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, sets: Option<Sets>) {
        *self.inner.sets.write().unwrap_or_else(PoisonError::into_inner) = sets;
    }

    /// Returns whether lists can be made.
    pub(super) fn is_ready(&self) -> bool {
        self.sets().is_some()
    }

    /// Calls `look` with the sets, first read up to `version`, and the live serials. Blocks. Fails
    /// with [`Unready`] if the sets are being made, or the log cannot be read.
    pub(super) fn with<T>(
        &self,
        version: Version,
        look: impl FnOnce(&Sets, LiveView<'_>) -> T,
    ) -> Result<T, Unready> {
        if !self.reaches(version)? {
            let _turn = self.turn();
            // Another request may have read the log up to `version` meanwhile.
            if !self.reaches(version)? {
                self.read_on(version, &|| false)?;
            }
        }
        let sets = self.sets();
        let sets = sets.as_ref().ok_or(Unready::Making)?;
        let horizon = self.inner.collection.horizon();
        Ok(self.inner.collection.with_live(|live| look(sets, LiveView::new(live, horizon)))?)
    }

    /// Returns the names of a record's sets, according to the sets that exist now.
    pub(super) fn of_record(&self, gatherer: &str, kind: Option<&str>) -> Vec<String> {
        self.sets().as_ref().map_or_else(Vec::new, |it| it.of_record(gatherer, kind))
    }

    /// Returns whether the sets include `version`. If they lack too much, it wakes the background
    /// task and fails.
    fn reaches(&self, version: Version) -> Result<bool, Unready> {
        let sets = self.sets();
        let reached = sets.as_ref().map(|it| it.reached);
        let near = |it: &Version| {
            it.epoch == version.epoch
                && version.serial.saturating_sub(it.serial) <= REQUEST_CHANGES_MAX
        };
        match reached.filter(near) {
            Some(reached) => Ok(version.serial <= reached.serial),
            None => {
                self.inner.asked.notify_one();
                Err(Unready::Making)
            }
        }
    }

    /// Reads the log from the sets' version to the present, at least to `version`, or until `stops`
    /// returns true. The caller must hold `turn`.
    fn read_on(&self, version: Version, stops: &dyn Fn() -> bool) -> Result<(), Unready> {
        let Some(reached) = self.sets().as_ref().map(|it| it.reached) else {
            return Err(Unready::Making);
        };
        let mut pending = PendingChanges::default();
        for scanned in self.inner.collection.scan(reached.serial)? {
            pending.take(&scanned?);
            if STEP_CHANGES <= pending.changes {
                self.apply(std::mem::take(&mut pending));
                if stops() {
                    return Ok(());
                }
            }
        }
        self.apply(pending);
        // The last serial read need not be that of `version`: compaction may have dropped that
        // change.
        let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(sets) = sets.as_mut() {
            sets.reached = sets.reached.max(version);
        }
        Ok(())
    }

    fn apply(&self, pending: PendingChanges) {
        let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(sets) = sets.as_mut() {
            pending.apply(sets);
        }
    }

    /// Reads the log up to the present, and saves the sets if it is time. Without sets of the log's
    /// epoch it builds them first, from the saved ones if those are of that epoch. Blocks.
    fn refresh(&self, stops: &dyn Fn() -> bool) -> Result<(), Unready> {
        let mut saved = self.turn();
        let collection = &self.inner.collection;
        let version = collection.version();
        let reached = self.sets().as_ref().map(|it| it.reached);
        if reached.is_some_and(|it| it.epoch == version.epoch) {
            self.read_on(version, stops)?;
        } else {
            self.put(None);
            let found = sets_file::load(&self.inner.path).filter(|it| {
                it.reached.epoch == version.epoch && it.reached.serial <= version.serial
            });
            saved.version = found.as_ref().map(|it| it.reached).unwrap_or_default();
            let begun = Version { epoch: version.epoch, serial: 0 };
            let mut sets = found.unwrap_or_else(|| Sets { reached: begun, ..Sets::default() });
            for scanned in collection.scan(sets.reached.serial)? {
                let mut pending = PendingChanges::default();
                pending.take(&scanned?);
                pending.apply(&mut sets);
                if stops() {
                    return Ok(());
                }
            }
            sets.reached = sets.reached.max(version);
            // Prune now: no request has to wait for it, and bitmaps are largest before they are pruned
            // for the first time.
            let horizon = collection.horizon();
            collection.with_live(|live| sets.prune(LiveView::new(live, horizon)))?;
            tracing::info!(version = %sets.reached, "the repository's sets are ready");
            self.put(Some(sets));
        }
        let due = saved.at.is_none_or(|it| SAVE_EVERY <= clock::monotonic().duration_since(it));
        if due { self.save(&mut saved) } else { Ok(()) }
    }

    /// Prunes the sets, and writes them to the disk if they have changed. Requests wait only for
    /// the pruning.
    fn save(&self, saved: &mut SavedVersion) -> Result<(), Unready> {
        if self.sets().as_ref().is_none_or(|it| it.reached == saved.version) {
            return Ok(());
        }
        let horizon = self.inner.collection.horizon();
        self.inner.collection.with_live(|live| {
            let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(sets) = sets.as_mut() {
                sets.prune(LiveView::new(live, horizon));
            }
        })?;
        let made = self.sets().as_ref().map(|it| (it.reached, sets_file::bytes(it)));
        let Some((reached, bytes)) = made else { return Ok(()) };
        // Without the file the next start only takes longer.
        if let Err(error) = bytes.and_then(|it| sets_file::save(it, &self.inner.path)) {
            tracing::warn!(file = %self.inner.path.display(), %error, "the sets are not saved");
        }
        (saved.version, saved.at) = (reached, Some(clock::monotonic()));
        Ok(())
    }

    /// Keeps the sets current until the shutdown starts, then saves them.
    pub(super) async fn keep(self, shutdown: Shutdown) {
        let mut versions = self.inner.collection.watch();
        while !shutdown.is_started() {
            let (this, stop) = (self.clone(), shutdown.clone());
            let done = tokio::task::spawn_blocking(move || {
                versions.borrow_and_update();
                (this.refresh(&|| stop.is_started()), versions)
            });
            let Ok((outcome, again)) = done.await else { return };
            versions = again;
            if let Err(Unready::Failed(error)) = outcome {
                tracing::warn!(%error, "the repository's sets are not current");
                // After a failure, requests must not cause another attempt at once.
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = shutdown.started() => {}
                }
            }
            let changed = async {
                // The collection is closed: wait for the shutdown.
                if versions.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(PAUSE).await;
            };
            tokio::select! {
                () = changed => {}
                () = self.inner.asked.notified() => {}
                () = shutdown.started() => {}
            }
        }
        let saved = tokio::task::spawn_blocking(move || {
            let mut saved = self.turn();
            self.save(&mut saved)
        });
        if let Ok(Err(Unready::Failed(error))) = saved.await {
            tracing::info!(%error, "the sets are not saved");
        }
    }
}

/// Changes that have been read, but not applied.
#[derive(Default)]
struct PendingChanges {
    members: Vec<Member>,
    /// Number of read changes.
    changes: usize,
    /// The serial of the last one.
    last: u64,
}

impl PendingChanges {
    fn take(&mut self, scanned: &collection::Scanned) {
        self.members.extend(Member::of(scanned));
        self.changes += 1;
        self.last = scanned.serial;
    }

    fn apply(self, sets: &mut Sets) {
        self.members.into_iter().for_each(|it| sets.take(it));
        sets.reached.serial = sets.reached.serial.max(self.last);
    }
}
