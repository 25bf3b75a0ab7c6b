//! The sets, kept current: made of the log in the background, brought up to the present by whoever needs
//! them, saved now and then.
//!
//! A request brings the sets up to the version that it answers for, so that a list lacks no change before its
//! `responseDate`; what is left for the background is to begin, and to leave requests little to do.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use collection::{Collection, Error, Version};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;

use super::saved;
use super::sets::{Member, Present, Sets};

/// So many changes a request reads itself; more are left to the background.
const REQUEST_CHANGES_MAX: u64 = 50_000;

/// So many changes are taken in at once.
const STEP_CHANGES: usize = 4_096;

/// How long the background leaves commits alone before it reads them.
const PAUSE: Duration = Duration::from_secs(10);

/// How often the sets are saved at most.
const SAVE_EVERY: Duration = Duration::from_secs(10 * 60);

/// Why a list cannot be made now.
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

/// The sets of a collection. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Current {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    collection: Collection,
    path: PathBuf,
    /// `None` until they have come up to the log once.
    sets: RwLock<Option<Sets>>,
    /// Held by whoever reads the log for them.
    turn: Mutex<Saved>,
    /// Wakes the background.
    asked: Notify,
}

/// What is on the disk.
#[derive(Debug, Default)]
struct Saved {
    version: Version,
    at: Option<Instant>,
}

impl Current {
    /// Those of `collection`, saved at `path`.
    pub(super) fn new(collection: Collection, path: PathBuf) -> Self {
        let (sets, turn, asked) = (RwLock::default(), Mutex::default(), Notify::new());
        Self { inner: Arc::new(Inner { collection, path, sets, turn, asked }) }
    }

    fn turn(&self) -> MutexGuard<'_, Saved> {
        self.inner.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sets(&self) -> RwLockReadGuard<'_, Option<Sets>> {
        self.inner.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, sets: Option<Sets>) {
        *self.inner.sets.write().unwrap_or_else(PoisonError::into_inner) = sets;
    }

    /// Whether lists can be made.
    pub(super) fn is_ready(&self) -> bool {
        self.sets().is_some()
    }

    /// Calls `look` with the sets, which have come up to `version` at least, and what lives. Blocks.
    ///
    /// # Errors
    ///
    /// [`Unready`].
    pub(super) fn with<T>(
        &self,
        version: Version,
        look: impl FnOnce(&Sets, Present<'_>) -> T,
    ) -> Result<T, Unready> {
        if !self.reaches(version)? {
            let _turn = self.turn();
            // Another may have done it.
            if !self.reaches(version)? {
                self.read_on(version, &|| false)?;
            }
        }
        let sets = self.sets();
        let sets = sets.as_ref().ok_or(Unready::Making)?;
        let horizon = self.inner.collection.horizon();
        Ok(self.inner.collection.with_live(|live| look(sets, Present { live, horizon }))?)
    }

    /// The sets that a record's header names, by the sets as they are.
    pub(super) fn of_record(&self, gatherer: &str, kind: Option<&str>) -> Vec<String> {
        self.sets().as_ref().map_or_else(Vec::new, |it| it.of_record(gatherer, kind))
    }

    /// Whether the sets have come up to `version`.
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

    /// Reads the log from where the sets are to the present, at least to `version`, or until `stops`.
    /// The caller has the turn.
    fn read_on(&self, version: Version, stops: &dyn Fn() -> bool) -> Result<(), Unready> {
        let Some(reached) = self.sets().as_ref().map(|it| it.reached) else {
            return Err(Unready::Making);
        };
        let mut step = Step::default();
        for scanned in self.inner.collection.scan(reached.serial)? {
            step.take(&scanned?);
            if STEP_CHANGES <= step.changes {
                self.apply(std::mem::take(&mut step));
                if stops() {
                    return Ok(());
                }
            }
        }
        self.apply(step);
        // What was read last need not be the last serial: compaction may have dropped that.
        let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(sets) = sets.as_mut() {
            sets.reached = sets.reached.max(version);
        }
        Ok(())
    }

    fn apply(&self, step: Step) {
        let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(sets) = sets.as_mut() {
            step.apply(sets);
        }
    }

    /// Makes the sets, from those on the disk if they fit, and reads on to the present. Blocks.
    fn refresh(&self, stops: &dyn Fn() -> bool) -> Result<(), Unready> {
        let mut saved = self.turn();
        let collection = &self.inner.collection;
        let version = collection.version();
        let reached = self.sets().as_ref().map(|it| it.reached);
        if reached.is_some_and(|it| it.epoch == version.epoch) {
            self.read_on(version, stops)?;
        } else {
            self.put(None);
            let found = saved::load(&self.inner.path).filter(|it| {
                it.reached.epoch == version.epoch && it.reached.serial <= version.serial
            });
            saved.version = found.as_ref().map(|it| it.reached).unwrap_or_default();
            let begun = Version { epoch: version.epoch, serial: 0 };
            let mut sets = found.unwrap_or_else(|| Sets { reached: begun, ..Sets::default() });
            for scanned in collection.scan(sets.reached.serial)? {
                let mut step = Step::default();
                step.take(&scanned?);
                step.apply(&mut sets);
                if stops() {
                    return Ok(());
                }
            }
            sets.reached = sets.reached.max(version);
            // So that no request waits for what lives, and the sets are the largest from the first.
            let horizon = collection.horizon();
            collection.with_live(|live| sets.prune(Present { live, horizon }))?;
            tracing::info!(version = %sets.reached, "the repository's sets are ready");
            self.put(Some(sets));
        }
        let due = saved.at.is_none_or(|it| SAVE_EVERY <= clock::monotonic().duration_since(it));
        if due { self.save(&mut saved) } else { Ok(()) }
    }

    /// Drops what the sets need not have, and writes them to the disk if they have changed. Requests wait for
    /// the first alone.
    fn save(&self, saved: &mut Saved) -> Result<(), Unready> {
        if self.sets().as_ref().is_none_or(|it| it.reached == saved.version) {
            return Ok(());
        }
        let horizon = self.inner.collection.horizon();
        self.inner.collection.with_live(|live| {
            let mut sets = self.inner.sets.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(sets) = sets.as_mut() {
                sets.prune(Present { live, horizon });
            }
        })?;
        let made = self.sets().as_ref().map(|it| (it.reached, saved::bytes(it)));
        let Some((reached, bytes)) = made else { return Ok(()) };
        // Without the file the next start takes longer, nothing else.
        if let Err(error) = bytes.and_then(|it| saved::save(it, &self.inner.path)) {
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
                // Whoever asks meanwhile does not make it better.
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = shutdown.started() => {}
                }
            }
            let changed = async {
                // No more versions: the collection is gone, and the shutdown near.
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

/// Changes that have been read and are to be taken in.
#[derive(Default)]
struct Step {
    members: Vec<Member>,
    /// How many changes were read.
    changes: usize,
    /// The serial of the last one.
    last: u64,
}

impl Step {
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
