//! The pipeline: the stages from the sources' feeds to the broker's pages and its own feed.
//!
//! Owned values pass from each stage to the next; only cursors and back-pressure go the other way.

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
use crate::route::peers::Peers;
use crate::route::summarizer::Summarizer;
use crate::views::alerts::Alerts;
use crate::views::membership::Membership;

/// Time that requests in progress have to finish after the shutdown starts.
pub(crate) const REQUESTS_DRAIN: Duration = Duration::from_millis(1_000);

/// Time that the stages have to stop; stages still running after it are dropped.
const DRAIN: Duration = Duration::from_millis(1_200);

/// Time for closing the data directory after the stages. A commit that takes longer is not waited
/// for: it ends on its own, or is lost with the process and done again at the next start.
/// [`DRAIN`], this time and the end of the process take less than two seconds together.
const CLOSE: Duration = Duration::from_millis(400);

/// The data directory's content, which is closed at the end.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) collection: Collection,
    pub(crate) engine: Engine,
}

impl Store {
    /// Closes the data directory, even if clones exist.
    async fn close(self) {
        let close = move || {
            // The engine is closed first: its index reads the collection for its commit.
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

/// The stages between the listeners. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    pub(crate) collector: Collector,
    pub(crate) catalog: Catalog,
    pub(crate) indexer: Indexer,
    pub(crate) membership: Membership,
    pub(crate) alerts: Alerts,
    pub(crate) notifier: Notifier,
    pub(crate) repository: Repository,
    pub(crate) summarizer: Summarizer,
    pub(crate) peers: Peers,
}

/// Runs every stage until the shutdown starts or one of them fails, then stops them all and closes
/// the data directory.
///
/// # Errors
///
/// The failure of the stage that ended first; the others have been stopped.
pub(crate) async fn run<F>(
    (stages, told): (Stages, impl Fn() + Send + 'static),
    store: Store,
    serve: impl FnOnce(Shutdown) -> F,
    shutdown: Shutdown,
) -> Result<(), Error>
where
    F: Future<Output = Result<(), daemon::Error>> + Send + 'static,
{
    // Started by the caller's shutdown, or when one stage fails.
    let stop = shutdown.child();
    let mut running = spawn(stages, told, &stop);
    // index → query → answer → page; collection → feed, snapshot, object, repository; and status,
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
        tracing::warn!(stages = running.len(), "some stages did not stop in time");
        running.abort_all();
    }
    store.close().await;
    outcome
}

/// Starts every stage but the listeners.
fn spawn(
    stages: Stages,
    told: impl Fn() + Send + 'static,
    stop: &Shutdown,
) -> JoinSet<Result<(), Error>> {
    let Stages {
        collector,
        catalog,
        indexer,
        membership,
        alerts,
        notifier,
        repository,
        summarizer,
        peers,
    } = stages;
    let mut running = JoinSet::new();

    let pulling = collector.clone();
    // sources → collection. The schedule sets the times; changes and cursor are one commit.
    let until = stop.clone();
    running.spawn(async move {
        collector.run(until).await;
        Ok(())
    });
    // collection → collection. Expired objects are deleted; superseded changes are dropped.
    let until = stop.clone();
    running.spawn(async move {
        // A source that has just been removed needs no pull.
        let pull = |source: &str| drop(pulling.request(Some(source)));
        catalog.run(until, pull, || pulling.has_pulled_all()).await;
        Ok(())
    });
    // index → content summary, which registries are told of.
    let (until, summarized) = (stop.clone(), indexer.clone());
    running.spawn(async move {
        summarizer.run(&summarized, told, until).await;
        Ok(())
    });
    // registries → peers, for searches everywhere.
    let until = stop.clone();
    running.spawn(async move {
        peers.run(until).await;
        Ok(())
    });
    // collection → index. The index is a cursor on the log.
    let until = stop.clone();
    running.spawn(async move {
        indexer.run(until).await;
        Ok(())
    });
    // collection → views. Each commit is percolated.
    let until = stop.clone();
    running.spawn(async move {
        membership.run(until).await;
        Ok(())
    });
    // views → webhooks.
    let until = stop.clone();
    running.spawn(async move {
        alerts.run(until).await;
        Ok(())
    });
    // collection → subscribers. Each commit is announced to them.
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
    running
}

fn flatten(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    ended.unwrap_or_else(|error| Err(Error::Worker { what: error.to_string() }))
}
