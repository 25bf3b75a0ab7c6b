//! The summarizer: it keeps the content summary of this broker, and serves it as a part of the feed.
//!
//! The summary is an object of a collection of its own, so no search, list or count of the broker finds it, and no
//! consumer gets it that has not asked. It is made anew when the index has changed: as long as all of them together took no
//! longer than a hundredth of the indexing and ten seconds, else every hour.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::{Batch, Change, Collection, Options, Stamp, Version};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};
use url::Url;

use crate::blocking::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::indexer::Indexer;
use crate::route::summary::{Content, Summary};

/// Folder of its collection in the data directory.
const FOLDER: &str = "summary";
/// Time after which an index without objects is not taken for one that has only begun.
const BEGINNING: Duration = Duration::from_secs(10);
/// Shortest time between two summaries.
const PAUSE: Duration = Duration::from_secs(2);
/// Time after which a summary that is not of the present is made anew, whatever that costs.
const LATEST: Duration = Duration::from_secs(3_600);
/// What share of the time of indexing they may take besides the first seconds.
const SHARE: u32 = 100;
const FIRST: Duration = Duration::from_secs(10);

/// What summaries have cost.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    all: Duration,
    last: Duration,
}

impl Costs {
    /// Returns whether there is time for one more, after indexing for so long.
    fn allow(&self, indexed: Duration) -> bool {
        self.all + self.last <= FIRST + indexed / SHARE
    }

    fn add(&mut self, took: Duration) {
        (self.all, self.last) = (self.all + took, took);
    }
}

/// The summarizer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Summarizer(Arc<Summarizing>);

#[derive(Debug)]
struct Summarizing {
    collection: Collection,
    engine: Engine,
    id: String,
    name: String,
    url: Option<Url>,
    content: watch::Sender<Arc<Content>>,
    costs: Mutex<Costs>,
}

impl Summarizer {
    /// Opens the summary of the broker with this id and name, which is asked at `url`. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used.
    pub(crate) fn open(
        data: &Path,
        engine: Engine,
        (id, name): (&str, &str),
        url: Option<Url>,
    ) -> Result<Self, Error> {
        let now = Stamp(clock::now_ms());
        let (collection, _) = Collection::open(&data.join(FOLDER), Options::default(), now)?;
        let oid = collection::Oid::new(id, &crate::route::summary::url_of(id));
        let known = collection.get(&oid)?.and_then(|it| Summary::read(&it.record));
        let content = known.map(|it| it.content).unwrap_or_default();
        let (id, name) = (id.to_owned(), name.to_owned());
        let content = watch::Sender::new(Arc::new(content));
        Ok(Self(Arc::new(Summarizing {
            collection,
            engine,
            id,
            name,
            url,
            content,
            costs: Mutex::default(),
        })))
    }

    /// Returns the collection that has the summary alone.
    pub(crate) fn collection(&self) -> Collection {
        self.0.collection.clone()
    }

    /// Returns the version of the summary; `None` until there is one.
    pub(crate) fn version(&self) -> Option<String> {
        (!self.0.collection.is_empty()).then(|| self.0.collection.version().to_string())
    }

    /// Returns a receiver that gets what the broker has whenever it is known anew.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Content>> {
        self.0.content.subscribe()
    }

    /// Returns how long this process has made summaries so far.
    pub(crate) fn spent(&self) -> Duration {
        self.costs().all
    }

    fn costs(&self) -> MutexGuard<'_, Costs> {
        self.0.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the summary until the shutdown starts. Calls `told` whenever it is another one.
    pub(crate) async fn run(&self, indexer: &Indexer, told: impl Fn(), shutdown: Shutdown) {
        let mut covered = indexer.watch();
        tokio::select! {
            () = shutdown.started() => {}
            () = self.begun(indexer.watch()) => {}
        }
        let (mut is_anew, mut latest) = (true, clock::monotonic());
        loop {
            let changed = async {
                if !std::mem::take(&mut is_anew) {
                    // The index lives as long as its watch.
                    let _gone = covered.changed().await;
                }
                // What is indexed meanwhile allows for more.
                while !self.costs().allow(indexer.spent()) {
                    match timeout_at(latest.into(), covered.changed()).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) | Err(_) => break,
                    }
                }
            };
            tokio::select! {
                () = shutdown.started() => break,
                () = changed => {}
            }
            covered.borrow_and_update();
            let (this, stop, began) = (self.clone(), shutdown.clone(), clock::monotonic());
            latest = began + LATEST;
            let made = blocking("summary", move || this.make(&|| stop.is_started())).await;
            match made {
                Ok(true) => told(),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the content summary is not made; tried again");
                    is_anew = true;
                }
            }
            self.costs().add(clock::monotonic().duration_since(began));
            tokio::select! {
                () = shutdown.started() => break,
                () = sleep(PAUSE) => {}
            }
        }
        let collection = self.0.collection.clone();
        let close = move || {
            collection.close();
            Ok::<_, Error>(())
        };
        if let Err(error) = blocking("closing", close).await {
            tracing::warn!(%error, "the content summary was not closed");
        }
    }

    /// Waits until the index has objects, or has had the time to get some: whoever is told that a broker has nothing
    /// does not ask it.
    async fn begun(&self, mut covered: watch::Receiver<Option<Version>>) {
        let end = clock::monotonic() + BEGINNING;
        while self.0.engine.is_empty() {
            let Ok(Ok(())) = timeout_at(end.into(), covered.changed()).await else { return };
        }
    }

    /// Makes the summary anew; returns whether it is another one. Blocks.
    fn make(&self, is_cancelled: &dyn Fn() -> bool) -> Result<bool, Error> {
        let Summarizing { collection, engine, id, name, url, content, .. } = &*self.0;
        let Some(made) = engine.content(is_cancelled)? else { return Ok(false) };
        if **content.borrow() == made && !collection.is_empty() {
            return Ok(false);
        }
        let now_ms = clock::now_ms();
        let (id, name, url) = (id.clone(), name.clone(), url.clone());
        let summary = Summary { id, name, url, content: made, excess: BTreeSet::new() };
        let record = summary.to_record(now_ms / 1_000);
        let changes = vec![Change::Update(record)];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(now_ms))?;
        collection.compact_if_due(Stamp(now_ms))?;
        content.send_replace(Arc::new(summary.content));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_take_a_hundredth_of_the_time_of_indexing() {
        let (second, mut costs) = (Duration::from_secs(1), Costs::default());
        for _ in 0..5 {
            assert!(costs.allow(Duration::ZERO), "the first ones");
            costs.add(2 * second);
        }
        assert!(!costs.allow(199 * second));
        assert!(costs.allow(200 * second));
        costs.add(2 * second);
        assert!(!costs.allow(399 * second));
    }
}
