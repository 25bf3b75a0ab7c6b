//! The indexer: it keeps the full-text index up to date with the collection.
//!
//! The index is a cursor on the change log. Every commit of the collection wakes the indexer;
//! commits that come while it works are indexed together. The index stores the version that it
//! covers in its own commit, so after a crash it goes on from that version, without repair. If the
//! index may be damaged, its files are verified first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collection::{Collection, Version};
use daemon::health::Check;
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::sleep;
use web::templates::grouped;

use crate::blocking::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::index::Index;

/// Pause between two rounds, so that changes that come in quick succession are indexed together.
const PAUSE: Duration = Duration::from_millis(50);

/// Pause after the first failure; it doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_secs(1);

const RETRY_MAX: Duration = Duration::from_secs(60);

/// The indexer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Indexer {
    collection: Collection,
    index: Index,
    problem: Arc<Mutex<Option<String>>>,
    spent_us: Arc<AtomicU64>,
}

impl Indexer {
    pub(crate) fn new(collection: Collection, engine: &Engine) -> Self {
        let Engine::Index(index) = engine.clone();
        Self { collection, index, problem: Arc::default(), spent_us: Arc::default() }
    }

    /// Indexes every change until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let mut versions = self.collection.watch();
        let mut covered = self.index.watch();
        let mut retry = RETRY_MIN;
        while !shutdown.is_started() {
            // The versions must be equal: a collection restored from a copy is behind its index,
            // which is then built anew. An index that a search finds damaged is built anew, too.
            let there = *covered.borrow_and_update() == Some(*versions.borrow_and_update());
            if there && !self.index.is_suspect() {
                tokio::select! {
                    () = shutdown.started() => {}
                    changed = versions.changed() => if changed.is_err() { return },
                    changed = covered.changed() => if changed.is_err() { return },
                }
                continue;
            }
            let pause = match self.apply(&shutdown).await {
                Ok(()) => {
                    retry = RETRY_MIN;
                    PAUSE
                }
                Err(error) => {
                    tracing::warn!(%error, "the changes were not indexed; tried again");
                    *self.problem.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(error.to_string());
                    let pause = retry;
                    retry = (retry * 2).min(RETRY_MAX);
                    pause
                }
            };
            tokio::select! {
                () = shutdown.started() => {}
                () = sleep(pause) => {}
            }
        }
    }

    async fn apply(&self, shutdown: &Shutdown) -> Result<(), Error> {
        let (index, collection) = (self.index.clone(), self.collection.clone());
        let stop = shutdown.clone();
        let cancelled = move || stop.is_started();
        let spent_us = Arc::clone(&self.spent_us);
        let work = move || {
            if index.is_suspect() {
                index.verify(&cancelled)?;
            }
            let began = clock::monotonic();
            let outcome = index.apply(&collection, &cancelled);
            let took = clock::monotonic().duration_since(began).as_micros();
            spent_us.fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Ordering::Relaxed);
            outcome
        };
        blocking("index", work).await?;
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Waits until the index covers the present version of the collection. Set a time limit: if the
    /// index keeps failing, this never returns.
    ///
    /// # Errors
    ///
    /// None while the index exists.
    pub(crate) async fn caught_up(&self) -> Result<(), Error> {
        let version = self.collection.version();
        let mut covered = self.index.watch();
        let waited = covered.wait_for(|it| it.is_some_and(|it| version <= it)).await;
        waited.map(drop).map_err(|_closed| Error::Worker { what: "index".to_owned() })
    }

    /// Returns how long this process has indexed so far.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_micros(self.spent_us.load(Ordering::Relaxed))
    }

    /// Returns a receiver that is notified whenever the index covers more.
    pub(crate) fn watch(&self) -> watch::Receiver<Option<Version>> {
        self.index.watch()
    }

    pub(crate) fn covered(&self) -> Option<Version> {
        self.index.covered()
    }

    /// While the index is built anew, returns the serial that it covers and the serial to reach;
    /// otherwise `None`.
    fn unfinished(&self) -> Option<(u64, u64)> {
        self.index.unfinished(self.collection.version())
    }

    /// Returns whether searches find all objects, as a check of `/readyz`.
    pub(crate) fn check(&self) -> Check {
        let unfinished = || {
            let (reached, goal) = self.unfinished().filter(|_| !self.collection.is_empty())?;
            let (reached, goal) = (grouped(reached), grouped(goal));
            Some(format!("the full-text index is being built: {reached} of {goal} changes"))
        };
        let message = "the full-text index fails or is built anew: searches do not find all objects; \
                       it is tried again automatically";
        Check::new("answers-searches", message, self.problem().or_else(unfinished))
    }

    /// Returns the last problem; `None` once indexing has succeeded again.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
