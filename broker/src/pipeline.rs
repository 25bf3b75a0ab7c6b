//! The broker's route of an object, on one screen: from the sources' feeds to pages and to the
//! broker's own feed. Owned values go down; only cursors and back-pressure go up.

use std::time::Duration;

use collection::Collection;
use exchange::push::Notifier;
use exchange::repository::Repository;
use net::shutdown::Shutdown;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::blocking::blocking;
use crate::catalog::Catalog;
use crate::collect::Collector;
use crate::engine::Engine;
use crate::error::Error;
use crate::indexer::Indexer;

/// How long requests in progress may go on after the shutdown starts.
pub(crate) const REQUESTS_DRAIN: Duration = Duration::from_millis(1_000);

/// How long the stages may take to stop; what has not ended then is dropped.
const DRAIN: Duration = Duration::from_millis(1_200);

/// How long the data directory may take to be free after that; a commit under way is then left to
/// end by itself, or is lost with the process, to be done again at the next start. Both times and
/// what the process needs to end are less than two seconds.
const CLOSE: Duration = Duration::from_millis(400);

/// What is stored, and let go of at the end.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) collection: Collection,
    pub(crate) engine: Engine,
}

impl Store {
    /// Frees the data directory, whoever still holds clones.
    async fn close(self) {
        let close = move || {
            // Not before the engine: its index reads the collection for what it commits.
            self.engine.close();
            self.collection.close();
            Ok::<(), Error>(())
        };
        match timeout(CLOSE, blocking("closing", close)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the data directory was not closed"),
            Err(_late) => tracing::warn!("a commit has not ended in time; not waiting for it"),
        }
    }
}

/// The stages between the listeners. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    pub(crate) collector: Collector,
    pub(crate) catalog: Catalog,
    pub(crate) indexer: Indexer,
    pub(crate) notifier: Notifier,
    pub(crate) repository: Repository,
}

/// Runs every stage until the shutdown starts or one of them fails, then stops them all and frees
/// the data directory.
///
/// # Errors
///
/// The failure of the stage that ended first; the others have been stopped.
pub(crate) async fn run<F>(
    stages: Stages,
    store: Store,
    serve: impl FnOnce(Shutdown) -> F,
    shutdown: Shutdown,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), daemon::Error>> + Send + 'static,
{
    let Stages { collector, catalog, indexer, notifier, repository } = stages;
    // Stops when the caller says so, or when one stage fails.
    let stop = shutdown.child();
    let mut running = JoinSet::new();

    let pulling = collector.clone();
    // sources → collection. The schedule says who; changes and cursor are one commit.
    let until = stop.clone();
    running.spawn(async move {
        collector.run(until).await;
        Ok(())
    });
    // collection → collection. What expires goes; what is superseded is dropped.
    let until = stop.clone();
    running.spawn(async move {
        // A source that has just been removed needs no pull.
        let pull = |source: &str| drop(pulling.request(Some(source)));
        catalog.run(until, pull, || pulling.has_pulled_all()).await;
        Ok(())
    });
    // collection → index. The index is a cursor on the log.
    let until = stop.clone();
    running.spawn(async move {
        indexer.run(until).await;
        Ok(())
    });
    // collection → subscribers. Who asked for it is told of each commit.
    let until = stop.clone();
    running.spawn(async move {
        notifier.run(until).await;
        Ok(())
    });
    // collection → sets of the OAI-PMH repository.
    let until = stop.clone();
    running.spawn(async move {
        repository.keep(until).await;
        Ok(())
    });
    // index → query → answer → page; collection → feed, snapshot, object, repository; and beside them status,
    // metrics, commands.
    let serving = serve(stop.clone());
    running.spawn(async move { Ok(serving.await?) });

    let mut outcome = Ok(());
    tokio::select! {
        () = stop.started() => {}
        Some(ended) = running.join_next() => outcome = flatten(ended),
    }
    stop.start();
    store.collection.begin_close();
    let drain = async {
        while let Some(ended) = running.join_next().await {
            let ended = flatten(ended);
            if outcome.is_ok() {
                outcome = ended;
            }
        }
    };
    if timeout(DRAIN, drain).await.is_err() {
        tracing::warn!(stages = running.len(), "not everything stopped in time");
        running.abort_all();
    }
    store.close().await;
    outcome
}

fn flatten(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    ended.unwrap_or_else(|error| Err(Error::Worker { what: error.to_string() }))
}
