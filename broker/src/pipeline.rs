//! The broker's route of an object, on one screen: from the sources' feeds to pages and to the
//! broker's own feed. Owned values go down; only cursors and back-pressure go up.

use std::time::Duration;

use net::shutdown::Shutdown;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::catalog::Catalog;
use crate::collect::Collector;
use crate::error::Error;
use crate::indexer::Indexer;
use crate::server::Front;

/// How long the stages may take to stop; a commit under way is then left to end by itself, and
/// one of the index is lost, to be done again at the next start.
pub(crate) const DRAIN: Duration = Duration::from_millis(1_800);

/// The stages between the listeners. Clones are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    pub(crate) collector: Collector,
    pub(crate) catalog: Catalog,
    pub(crate) indexer: Indexer,
}

/// Runs every stage until the shutdown starts or one of them fails, then stops them all.
///
/// # Errors
///
/// The failure of the stage that ended first; the others have been stopped.
pub(crate) async fn run(
    stages: Stages,
    public: Front,
    admin: Front,
    shutdown: Shutdown,
) -> Result<(), Error> {
    let Stages { collector, catalog, indexer } = stages;
    // Stops when the caller says so, or when one stage fails.
    let stop = shutdown.child();
    let mut running = JoinSet::new();

    // sources → collection. The schedule says who; changes and cursor are one commit.
    let until = stop.clone();
    running.spawn(async move {
        collector.run(until).await;
        Ok(())
    });
    // collection → collection. What expires goes; what is superseded is dropped.
    let until = stop.clone();
    running.spawn(async move {
        catalog.run(until).await;
        Ok(())
    });
    // collection → index. The index is a cursor on the log.
    let until = stop.clone();
    running.spawn(async move {
        indexer.run(until).await;
        Ok(())
    });
    // index → query → answer → page; collection → feed, snapshot, object.
    running.spawn(public.serve(stop.clone()));
    // status, metrics, commands.
    running.spawn(admin.serve(stop.clone()));

    let mut outcome = Ok(());
    tokio::select! {
        () = stop.started() => {}
        Some(ended) = running.join_next() => outcome = flatten(ended),
    }
    stop.start();
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
    outcome
}

fn flatten(ended: Result<Result<(), Error>, tokio::task::JoinError>) -> Result<(), Error> {
    ended.unwrap_or_else(|error| Err(Error::Worker { what: error.to_string() }))
}

/// Runs `work` where it may block, and waits for it.
///
/// # Errors
///
/// Those of `work`; [`Error::Worker`] if it panicked or the runtime is stopping.
pub(crate) async fn blocking<T, E>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    E: Send + 'static,
    Error: From<E>,
{
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(Error::from),
        Err(error) => Err(Error::Worker { what: format!("{what}: {error}") }),
    }
}
