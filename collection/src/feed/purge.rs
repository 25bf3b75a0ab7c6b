//! Purging where a feed is served: what is kept of former states goes first, and it is told who may still
//! have copies.
//!
//! Source: ours.

use std::time::Duration;

use net::clock;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::FeedServer;
use super::consumers::Consumer;
use super::instance::Instance;
use crate::change::{Stamp, Version};
use crate::collection::Collection;
use crate::error::Error;
use crate::notice::Subject;
use crate::takedown::purge::Purged;

/// How often it is looked whether anybody still reads what is no part of the log any more: who was just
/// about to be answered is done in no time.
const READERS_TRIES: u32 = 10;
/// Pause between two looks.
const READERS_PAUSE: Duration = Duration::from_millis(50);

/// All that is known after a purge of a daemon's collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// What was done to the collection.
    pub purged: Purged,
    /// Documents, and old files, that the full-text index still has; `None` where there is no index,
    /// or it will be made anew.
    pub index_left: Option<u64>,
    /// Consumers of the feed that have not asked past the last tombstone yet: they may have copies.
    pub consumers: Vec<Consumer>,
    /// Since when consumers have been noted, in Unix milliseconds; `None`: not at all.
    pub since_ms: Option<u64>,
}

impl FeedServer {
    /// Lets go of all that is kept of former states of a replica, since more has been purged from the present one: who
    /// fetches a snapshot asks for a new one, and who keeps the log hears of it. Blocks.
    pub fn let_go(&self) {
        self.shared.snapshots.blocking_lock().clear();
        self.shared.hot.clear();
        self.shared.purges.notify_waiters();
    }

    /// Purges the collection of what is suppressed (all of it, or just `only`), after letting go of
    /// what is kept of it: who fetches a snapshot asks for a new one. Says who may still have copies.
    ///
    /// # Errors
    ///
    /// As for [`Collection::purge`]. [`Error::LogFolder`]: the feed is of a replica, which has nothing of its
    /// own to purge; purge at its origin.
    pub async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Error> {
        let shared = &self.shared;
        let Instance::Own(collection) = &shared.log else {
            let what = "it is another's, and is purged by whoever writes it".to_owned();
            return Err(Error::LogFolder { dir: shared.log.dir(), what });
        };
        shared.snapshots.lock().await.clear();
        shared.hot.clear();
        let mut purged = purge(collection.clone(), only).await?;
        // Who has asked meanwhile was given what was there.
        shared.snapshots.lock().await.clear();
        shared.hot.clear();
        for tries in 0..READERS_TRIES {
            purged.still_read = collection.inner.retired()?;
            if purged.still_read.is_empty() || tries + 1 == READERS_TRIES {
                break;
            }
            sleep(READERS_PAUSE).await;
        }
        shared.purges.notify_waiters();
        let epoch = collection.version().epoch;
        let (consumers, since_ms) =
            shared.consumers.behind(Version { epoch, serial: purged.told_at });
        Ok(PurgeReport { purged, index_left: None, consumers, since_ms: Some(since_ms) })
    }
}

/// [`Collection::purge`] where it holds up nobody.
async fn purge(collection: Collection, only: Option<Subject>) -> Result<Purged, Error> {
    let work = move || collection.purge(only.as_ref(), Stamp(clock::now_ms()));
    match tokio::task::spawn_blocking(work).await {
        Ok(purged) => purged,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}
