//! The catalog: it maintains the collection, its holders and its expiry (the TR's "Registry").
//!
//! The key of an object is its OID (URL and gatherer). Several sources may bring the same OID: each
//! is a holder, and the object is deleted with its last holder. Objects that no source confirms
//! expire after their time-to-live. Objects with the same MD5 and different OIDs are duplicates;
//! all are kept, each with its provenance.
//!
//! Source: TR §4.3 (the registry: OID, TTL, duplicates, garbage collection).
//!
//! # Differences from the TR
//!
//! * The TR drops duplicates by MD5 and gatherer; we keep every duplicate with its provenance, and
//!   an answer shows one and names the others.
//! * A sweep that would delete more than a tenth of all objects waits for an administrator: a
//!   broken clock or link is a more likely cause than a real loss of so many objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collection::{Batch, Collection, Compacted, Healing, Note, Stamp, Swept};
use net::clock;
use net::shutdown::Shutdown;

use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::memory;
use crate::status::Held;

/// Interval between two searches for expired objects.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// Interval between two rounds of upkeep: compaction, and removal of what removed sources left.
pub(crate) const UPKEEP_EVERY: Duration = Duration::from_secs(60);

/// First pause between repairs while there is damage; it doubles up to [`UPKEEP_EVERY`].
const HEAL_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Number of bytes of the log that each round of upkeep checks: a log of 10 GB takes ten hours.
const SCRUB_BYTES: u64 = 16 << 20;

/// Largest share of all objects that a sweep deletes without confirmation.
pub(crate) const SWEEP_SHARE_MAX: f64 = 0.1;

/// The catalog. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    collection: Collection,
    view: Arc<Mutex<View>>,
    /// Names of the sources in the settings.
    named: Arc<Mutex<BTreeSet<String>>>,
    /// Locked by each work on the collection (sweep, release, search for damage, healing,
    /// compaction), so that one runs at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) held: Option<Held>,
    pub(crate) problem: Option<String>,
    /// Number of objects expired since the start.
    pub(crate) expired: u64,
    /// Number of compactions since the start.
    pub(crate) compactions: u64,
}

impl Catalog {
    pub(crate) fn new(collection: Collection) -> Self {
        Self { collection, view: Arc::default(), named: Arc::default(), turn: Arc::default() }
    }

    /// Sweeps, heals and compacts at the set intervals until the shutdown starts. Calls `pull` for
    /// sources that must bring damaged objects again. `is_caught_up` returns whether each source
    /// was pulled since the start.
    pub(crate) async fn run(
        &self,
        shutdown: Shutdown,
        pull: impl Fn(&str),
        is_caught_up: impl Fn() -> bool,
    ) {
        let mut sweeps = tokio::time::interval(SWEEP_EVERY);
        let mut upkeep = tokio::time::interval(UPKEEP_EVERY);
        let mut healing = HEAL_PAUSE_MIN;
        loop {
            let outcome = tokio::select! {
                () = shutdown.started() => return,
                _ = sweeps.tick() => self.sweep(SWEEP_SHARE_MAX).await.map(drop),
                _ = upkeep.tick() => {
                    let caught_up = if is_caught_up() { self.catch_up().await } else { Ok(()) };
                    let outcome = self.upkeep(&pull).await.and(caught_up);
                    // A pull may replace damaged objects long before the next upkeep.
                    if self.collection.health().damaged.is_empty() {
                        healing = HEAL_PAUSE_MIN;
                    } else {
                        upkeep.reset_after(healing);
                        healing = (healing * 2).min(UPKEEP_EVERY);
                    }
                    outcome
                }
            };
            if !shutdown.is_started() {
                self.note_problem(outcome.err());
            }
        }
    }

    /// Deletes expired objects, unless they are more than `share_max` of all objects. With a share
    /// below 1, also waits for some time after a period in which objects could not be confirmed.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) async fn sweep(&self, share_max: f64) -> Result<Swept, Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        let now = Stamp(clock::now_ms());
        let swept = blocking("sweep", move || collection.sweep(now, share_max)).await?;
        let mut view = self.lock_view();
        match swept {
            Swept::Done { expired } => {
                view.held = None;
                view.expired += expired;
                if 0 < expired {
                    tracing::info!(expired, "objects expired");
                }
            }
            Swept::Waiting { until } => {
                tracing::info!(
                    until_ms = until.0,
                    "expiry waits: the clock jumped, or the broker was not running"
                );
            }
            Swept::Held { would_expire, of } => {
                if view.held.is_none() {
                    tracing::warn!(would_expire, of, "an expiry is held; confirm it or look why");
                }
                view.held = Some(Held { would_expire, of });
            }
        }
        Ok(swept)
    }

    /// Releases objects of removed sources, heals damage, and rewrites the collection without
    /// superseded changes.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; the steps before the failing one stay done.
    pub(crate) async fn compact(&self, pull: &impl Fn(&str)) -> Result<Compacted, Error> {
        self.release().await?;
        self.scrub().await?;
        self.heal(pull).await?;
        let compacted = self.work("compaction", |it, now| it.compact(now)).await?;
        self.note_compaction(&compacted);
        Ok(compacted)
    }

    fn note_compaction(&self, compacted: &Compacted) {
        self.lock_view().compactions += 1;
        tracing::info!(kept = compacted.kept, dropped = compacted.dropped, "compacted");
    }

    /// Runs `work` on the collection while no other work of the catalog runs.
    async fn work<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Collection, Stamp) -> Result<T, collection::Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        blocking(what, move || work(&collection, Stamp(clock::now_ms()))).await
    }

    /// Notes in the collection that the sources brought all changes lost at the last stop again.
    async fn catch_up(&self) -> Result<(), Error> {
        let collection = self.collection.clone();
        blocking("catching up", move || collection.handle_caught_up()).await
    }

    /// Checks the next part of the log for damage.
    async fn scrub(&self) -> Result<(), Error> {
        self.work("search for damage", |it, _| it.scrub(SCRUB_BYTES)).await
    }

    /// Repairs known damage, or calls `pull` for the sources that can replace it.
    async fn heal(&self, pull: &impl Fn(&str)) -> Result<(), Error> {
        match self.work("healing", |it, now| it.heal(now)).await? {
            None => {}
            Some(Healing::Done { members }) => tracing::info!(members, "damage is made good"),
            Some(Healing::Waiting { lost, sources }) => {
                tracing::warn!(objects = lost.len(), ?sources, "damaged: to be fetched again");
                sources.iter().for_each(|it| pull(it));
            }
        }
        Ok(())
    }

    /// Releases objects of removed sources (a pull that ends late may leave some), searches for
    /// damage, heals it, and compacts if that is due. Each step runs even if another fails, since
    /// on a full disk the later steps free space. Returns the first error.
    async fn upkeep(&self, pull: &impl Fn(&str)) -> Result<(), Error> {
        let (released, searched) = (self.release().await, self.scrub().await);
        let (healed, compacted) = (self.heal(pull).await, self.compact_if_due().await);
        released.and(searched).and(healed).and(compacted)
    }

    async fn compact_if_due(&self) -> Result<(), Error> {
        // If compacting the tail of the log suffices, the rest is not rewritten.
        let done = self.work("compaction", |it, now| it.compact_if_due(now)).await?;
        done.iter().for_each(|it| self.note_compaction(it));
        Ok(())
    }

    /// Sets the sources that the settings name, and releases the objects of all other sources.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; the next upkeep releases the remaining objects.
    pub(crate) async fn handle_sources(&self, config: &Config) -> Result<(), Error> {
        let own = config.role.own_source.map(str::to_owned);
        let named = config.sources.iter().map(|it| it.name.clone()).chain(own).collect();
        *self.named.lock().unwrap_or_else(PoisonError::into_inner) = named;
        self.release().await
    }

    /// Releases objects of sources that the settings do not name, and objects without a holder
    /// after a loss of changes.
    async fn release(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let collection = self.collection.clone();
        blocking("release of sources", move || {
            for it in collection.sources()?.into_iter().filter(|it| !named.contains(&it.source)) {
                if it.objects == 0 && collection.cursor(&it.source)?.is_none() {
                    continue;
                }
                let now = Stamp(clock::now_ms());
                let applied = collection.remove_source(&it.source, now)?;
                let forget = Note { key: memory::key(&it.source), value: None };
                collection.commit(Batch { changes: Vec::new(), notes: vec![forget] }, now)?;
                tracing::info!(source = it.source, deleted = applied.deleted, "source released");
            }
            collection.release_unheld(&named, Stamp(clock::now_ms()))?;
            Ok::<_, Error>(())
        })
        .await
    }

    /// Returns the number of objects that each source holds. Blocks.
    ///
    /// # Errors
    ///
    /// The collection's keys cannot be read.
    pub(crate) fn held_by_source(&self) -> Result<BTreeMap<String, u64>, Error> {
        let sources = self.collection.sources()?;
        Ok(sources.into_iter().map(|it| (it.source, it.objects)).collect())
    }

    pub(crate) fn view(&self) -> View {
        self.lock_view().clone()
    }

    fn note_problem(&self, error: Option<Error>) {
        if let Some(error) = &error {
            tracing::warn!(%error, "the catalog's upkeep failed; it is tried again");
        }
        self.lock_view().problem = error.map(|it| it.to_string());
    }

    fn lock_view(&self) -> std::sync::MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
