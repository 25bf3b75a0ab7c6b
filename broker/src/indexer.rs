//! Keeps the full-text index covering the collection: the index is a cursor on the change log.
//!
//! Woken by every commit; commits that come while the index works are taken together. The index
//! keeps the version that it covers in its own commit, so there is nothing to repair here after a
//! crash: it goes on from there. Where the index may be damaged its files are verified first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collection::{Collection, Version};
use net::shutdown::Shutdown;
use tokio::time::sleep;

use crate::blocking::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::index::Index;

/// Pause between two rounds: changes that come in a stream are indexed together.
const PAUSE: Duration = Duration::from_millis(50);

/// First wait after a failure; doubled with every further one.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Longest wait after a failure.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Keeps the index up to date. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Indexer {
    collection: Collection,
    index: Index,
    problem: Arc<Mutex<Option<String>>>,
}

impl Indexer {
    pub(crate) fn new(collection: Collection, engine: &Engine) -> Self {
        let Engine::Index(index) = engine.clone();
        Self { collection, index, problem: Arc::default() }
    }

    /// Takes every change into the index until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let mut versions = self.collection.watch();
        let mut covered = self.index.watch();
        let mut retry = RETRY_MIN;
        while !shutdown.is_started() {
            // Not "at least": a collection put back from a copy is behind its index, which is then
            // built anew. So it is when a search finds it damaged.
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
                    tracing::warn!(%error, "the index did not take the changes; tried again");
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
        let work = move || {
            if index.is_suspect() {
                index.verify(&cancelled)?;
            }
            index.apply(&collection, &cancelled)
        };
        blocking("index", work).await?;
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    /// Waits until the index covers what the collection holds now.
    ///
    /// # Errors
    ///
    /// None while the index runs; it may never come if the index keeps failing, so set a time.
    pub(crate) async fn caught_up(&self) -> Result<(), Error> {
        let version = self.collection.version();
        let mut covered = self.index.watch();
        let waited = covered.wait_for(|it| it.is_some_and(|it| version <= it)).await;
        waited.map(drop).map_err(|_closed| Error::Worker { what: "index".to_owned() })
    }

    /// Returns the version that the index covers.
    pub(crate) fn covered(&self) -> Option<Version> {
        self.index.covered()
    }

    /// How far the index is, and how far it has to get, while it is being built anew.
    pub(crate) fn unfinished(&self) -> Option<(u64, u64)> {
        self.index.unfinished(self.collection.version())
    }

    /// Returns what last went wrong; `None` once it went well again.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
