//! The front: index, search API and pages over the collection of another daemon in the process.
//!
//! `harvest up` puts it before its gatherer. The front is one more cursor on that collection: it
//! writes no change, holds no object, and stores nothing but its index. Takedowns, expiry,
//! compaction and repair of the collection are its owner's; their changes come by the log as all
//! others do. If the collection was restored from a copy or lost its end, the index is built anew.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use collection::Collection;
use daemon::health::Check;
use net::shutdown::Shutdown;
use tokio::time::timeout;
use web::{Pages, Site};

use crate::blocking::blocking;
use crate::engine::{Engine, Storage};
use crate::error::Error;
use crate::indexer::Indexer;
use crate::page::{self, PageState, Surroundings};

/// Time for closing the index. A commit that takes longer is lost with the process, and done again
/// at the next start.
const CLOSE: Duration = Duration::from_millis(400);

/// A front over one collection. Clones share it.
#[derive(Clone, Debug)]
pub struct Front {
    engine: Engine,
    indexer: Indexer,
    state: PageState,
}

impl Front {
    /// Opens the index in the folder `data` for `collection`; pages show `name`, and what `around`
    /// tells. Blocks.
    ///
    /// # Errors
    ///
    /// The index's folder cannot be used, or another process has it open.
    pub fn open(
        collection: Collection,
        data: &Path,
        name: &str,
        around: Arc<dyn Surroundings>,
    ) -> Result<Self, Error> {
        let engine = Engine::open(data, Storage::Folder, &collection)?;
        let pages = Pages::new(Site::new(name), page::TEMPLATES, None)?;
        let indexer = Indexer::new(collection.clone(), &engine);
        let state = PageState::new(engine.clone(), collection, pages).within(around);
        Ok(Self { engine, indexer, state })
    }

    /// Returns the routes of the pages and of the search API, with 404 and 405 for all other
    /// requests.
    pub fn routes(&self) -> Router {
        page::routes(self.state.clone())
    }

    /// Indexes every change until the shutdown starts, then closes the index.
    ///
    /// # Errors
    ///
    /// A thread of the index panicked.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        self.indexer.run(shutdown).await;
        let close = move || {
            self.engine.close();
            Ok::<_, Error>(())
        };
        timeout(CLOSE, blocking("closing", close)).await.unwrap_or_else(|_late| {
            tracing::warn!("a commit of the index has not ended in time; not waiting for it");
            Ok(())
        })
    }

    /// Waits until the index covers the present version of the collection. Set a time limit: if the
    /// index keeps failing, this never returns.
    ///
    /// # Errors
    ///
    /// None while the index exists.
    pub async fn caught_up(&self) -> Result<(), Error> {
        self.indexer.caught_up().await
    }

    /// Returns the last problem of the index; `None` once indexing has succeeded again.
    pub fn problem(&self) -> Option<String> {
        self.indexer.problem()
    }

    /// Returns whether searches find all objects, as a check of `/readyz`.
    pub fn check(&self) -> Check {
        self.indexer.check()
    }
}
