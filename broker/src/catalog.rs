//! The catalog: what the collection holds, from whom, and for how long (the TR's "Registry").
//!
//! An object is known by its OID (URL and gatherer). Several sources may bring one OID: each is a
//! holder, and the object goes with the last. Objects that nobody confirms expire by their
//! time-to-live. Objects of the same MD5 under other OIDs are the same thing found elsewhere; their
//! provenance is kept, none is dropped.
//!
//! Source: TR §4.3 (the registry: OID, TTL, duplicates, garbage collection).
//!
//! # Differences from the TR
//!
//! * The TR drops duplicates by MD5 and gatherer; we keep each with where it was found, and let the
//!   answer show one and name the others.
//! * A sweep that would take more than a tenth of all objects waits for an admin's word: more
//!   often it means that a clock or a link is broken than that so much is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collection::{Batch, Collection, Compacted, Healing, Note, Oid, Stamp, Swept};
use net::clock;
use net::shutdown::Shutdown;
use soif::digest::Md5;

use crate::blocking::blocking;
use crate::config::Config;
use crate::error::Error;
use crate::memory;
use crate::status::Held;

/// How often expired objects are looked for.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// How often the collection is looked after: compaction, remains of removed sources.
pub(crate) const UPKEEP_EVERY: Duration = Duration::from_secs(60);

/// The first pause while something is damaged; each is twice the one before.
const HEAL_PAUSE_MIN: Duration = Duration::from_secs(1);

/// How much of the log is checked at every upkeep, in bytes: 10 GB take ten hours.
const SCRUB_BYTES: u64 = 16 << 20;

/// Largest share of all objects that a sweep takes without being told to.
pub(crate) const SWEEP_SHARE_MAX: f64 = 0.1;

/// Keeps the catalog. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    collection: Collection,
    view: Arc<Mutex<View>>,
    /// The sources of the settings.
    named: Arc<Mutex<BTreeSet<String>>>,
    /// One sweep, compaction or release at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// What the catalog says of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) held: Option<Held>,
    pub(crate) problem: Option<String>,
    /// Objects expired since the start.
    pub(crate) expired: u64,
    /// Compactions since the start.
    pub(crate) compactions: u64,
}

impl Catalog {
    pub(crate) fn new(collection: Collection) -> Self {
        Self { collection, view: Arc::default(), named: Arc::default(), turn: Arc::default() }
    }

    /// Sweeps, heals and compacts at their times until the shutdown starts; has sources pulled that are
    /// to bring again what was damaged. `is_caught_up` says whether each source was pulled since the start.
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
                    // What was damaged may have been brought again long before it is time.
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

    /// Deletes what has expired, unless that is more than `share_max` of all objects.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) async fn sweep(&self, share_max: f64) -> Result<Swept, Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        let now = Stamp(clock::now_ms());
        let swept = blocking("sweep", move || collection.sweep(now, share_max)).await?;
        let mut known = self.known();
        match swept {
            Swept::Done { expired } => {
                known.held = None;
                known.expired += expired;
                if 0 < expired {
                    tracing::info!(expired, "objects expired");
                }
            }
            Swept::Waiting { until } => {
                tracing::info!(
                    until_ms = until.0,
                    "expiry waits: the clock jumped, or we were away"
                );
            }
            Swept::Held { would_expire, of } => {
                if known.held.is_none() {
                    tracing::warn!(would_expire, of, "an expiry is held; confirm it or look why");
                }
                known.held = Some(Held { would_expire, of });
            }
        }
        Ok(swept)
    }

    /// Rewrites the collection without what is superseded, and what was damaged and is replaced.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; it is as it was.
    pub(crate) async fn compact(&self, pull: &impl Fn(&str)) -> Result<Compacted, Error> {
        self.release().await?;
        self.scrub().await?;
        self.heal(pull).await?;
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        let now = Stamp(clock::now_ms());
        let compacted = blocking("compaction", move || collection.compact(now)).await?;
        self.known().compactions += 1;
        tracing::info!(kept = compacted.kept, dropped = compacted.dropped, "compacted");
        Ok(compacted)
    }

    /// What was lost at the last stop has been brought again by the sources.
    async fn catch_up(&self) -> Result<(), Error> {
        let collection = self.collection.clone();
        blocking("catching up", move || collection.handle_caught_up()).await
    }

    /// Looks for damage.
    async fn scrub(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        blocking("search for damage", move || collection.scrub(SCRUB_BYTES)).await
    }

    /// Sees to what is known to be damaged.
    async fn heal(&self, pull: &impl Fn(&str)) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        let now = Stamp(clock::now_ms());
        match blocking("healing", move || collection.heal(now)).await? {
            None => {}
            Some(Healing::Done { members }) => tracing::info!(members, "damage is made good"),
            Some(Healing::Waiting { lost, sources }) => {
                tracing::warn!(objects = lost.len(), ?sources, "damaged: to be fetched again");
                sources.iter().for_each(|it| pull(it));
            }
        }
        Ok(())
    }

    /// Releases what a pull that was given up too late may still have brought for a source that is
    /// gone, sees to damage, and compacts if that is worth its while: each whatever becomes of the
    /// others, since a full disk needs just what gives space back. The first error is returned.
    async fn upkeep(&self, pull: &impl Fn(&str)) -> Result<(), Error> {
        let (released, searched) = (self.release().await, self.scrub().await);
        let (healed, compacted) = (self.heal(pull).await, self.compact_if_due().await);
        released.and(searched).and(healed).and(compacted)
    }

    /// Compacts if that is worth its while.
    async fn compact_if_due(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let collection = self.collection.clone();
        let now = Stamp(clock::now_ms());
        // Not the whole log where its tail will do.
        let done = blocking("compaction", move || collection.compact_if_due(now)).await?;
        if let Some(compacted) = done {
            self.known().compactions += 1;
            tracing::info!(kept = compacted.kept, dropped = compacted.dropped, "compacted");
        }
        Ok(())
    }

    /// Takes over which sources there are, and releases whatever others hold.
    ///
    /// # Errors
    ///
    /// The collection cannot be written; what was released stays so, the rest is tried again.
    pub(crate) async fn handle_sources(&self, config: &Config) -> Result<(), Error> {
        let named = config.sources.iter().map(|it| it.name.clone()).collect();
        *self.named.lock().unwrap_or_else(PoisonError::into_inner) = named;
        self.release().await
    }

    /// Releases what is held by sources that the settings do not name; and by nobody, where changes
    /// were lost.
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

    /// Returns how many objects each source holds. Blocks.
    ///
    /// # Errors
    ///
    /// The collection's keys cannot be read.
    pub(crate) fn held_by_source(&self) -> Result<BTreeMap<String, u64>, Error> {
        let sources = self.collection.sources()?;
        Ok(sources.into_iter().map(|it| (it.source, it.objects)).collect())
    }

    /// Returns the other objects with the same content as `oid`, in OID order: same MD5, and not
    /// empty. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub(crate) fn duplicates(&self, oid: &Oid) -> Result<Vec<Oid>, Error> {
        let Some(stored) = self.collection.get(oid)? else { return Ok(Vec::new()) };
        let md5 = stored.record.get("MD5").and_then(|hex| Md5::from_hex(hex.trim_ascii()));
        let (Some(md5), Some(1..)) = (md5, stored.record.number("File-Size")) else {
            return Ok(Vec::new());
        };
        let all = self.collection.oids_with_md5(&md5)?;
        Ok(all.into_iter().filter(|it| it != oid).collect())
    }

    /// Returns what the catalog says of itself.
    pub(crate) fn view(&self) -> View {
        self.known().clone()
    }

    fn note_problem(&self, error: Option<Error>) {
        if let Some(error) = &error {
            tracing::warn!(%error, "the catalog's upkeep failed; it is tried again");
        }
        self.known().problem = error.map(|it| it.to_string());
    }

    fn known(&self) -> std::sync::MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
