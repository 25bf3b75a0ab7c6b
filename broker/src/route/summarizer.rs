//! The summarizer: it keeps the content summary of this broker, and serves it as a part of the feed.
//!
//! The summary is an object of a collection of its own, so no search, list or count of the broker finds it, and no
//! consumer gets it that has not asked. It is made anew when the index has changed, and not sooner than after a hundred
//! times as long as the last one took.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use collection::{Batch, Change, Collection, Options, Stamp};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::sleep;
use url::Url;

use crate::blocking::blocking;
use crate::engine::Engine;
use crate::error::Error;
use crate::indexer::Indexer;
use crate::route::summary::{Content, Summary};

/// Folder of its collection in the data directory.
const FOLDER: &str = "summary";
/// Shortest time between two summaries.
const PAUSE: Duration = Duration::from_secs(2);
/// How many times as long as the last one took the broker does something else before the next one.
const SHARE: u32 = 100;
/// Longest such time.
const PAUSE_MAX: Duration = Duration::from_secs(3_600);

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
        Ok(Self(Arc::new(Summarizing { collection, engine, id, name, url, content })))
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

    /// Keeps the summary until the shutdown starts. Calls `told` whenever it is another one.
    pub(crate) async fn run(&self, indexer: &Indexer, told: impl Fn(), shutdown: Shutdown) {
        let mut covered = indexer.watch();
        let mut is_anew = true;
        loop {
            let changed = async {
                if !std::mem::take(&mut is_anew) {
                    // The index lives as long as its watch.
                    let _gone = covered.changed().await;
                }
            };
            tokio::select! {
                () = shutdown.started() => break,
                () = changed => {}
            }
            covered.borrow_and_update();
            let (this, stop, began) = (self.clone(), shutdown.clone(), clock::monotonic());
            let made = blocking("summary", move || this.make(&|| stop.is_started())).await;
            match made {
                Ok(true) => told(),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(%error, "the content summary is not made; tried again");
                    is_anew = true;
                }
            }
            let pause = (began.elapsed() * SHARE).clamp(PAUSE, PAUSE_MAX);
            tokio::select! {
                () = shutdown.started() => break,
                () = sleep(pause) => {}
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

    /// Makes the summary anew; returns whether it is another one. Blocks.
    fn make(&self, is_cancelled: &dyn Fn() -> bool) -> Result<bool, Error> {
        let Summarizing { collection, engine, id, name, url, content } = &*self.0;
        let Some(made) = engine.content(is_cancelled)? else { return Ok(false) };
        if **content.borrow() == made && !collection.is_empty() {
            return Ok(false);
        }
        let now_ms = clock::now_ms();
        let summary =
            Summary { id: id.clone(), name: name.clone(), url: url.clone(), content: made };
        let record = summary.to_record(now_ms / 1_000);
        let changes = vec![Change::Update(record)];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(now_ms))?;
        collection.compact_if_due(Stamp(now_ms))?;
        content.send_replace(Arc::new(summary.content));
        Ok(true)
    }
}
