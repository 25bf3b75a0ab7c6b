//! A purge of a served collection: drops snapshots and cached answers first, and names the
//! consumers that may have copies.
//!
//! Source: ours.

use std::time::Duration;

use net::clock;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::FeedServer;
use super::consumers::Consumer;
use super::instance::Instance;
use crate::change::{Stamp, Version};
use crate::error::Error;
use crate::notice::Subject;
use crate::takedown::purge::Purged;
use crate::wire::joined;

/// Maximum number of checks for readers of files that are not in the log any more; most answers in
/// progress end before the last one.
const READERS_TRIES: u32 = 10;
/// Pause between two checks.
const READERS_PAUSE: Duration = Duration::from_millis(50);

/// The report of a purge of a daemon's collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// The purge of the collection.
    pub purged: Purged,
    /// Number of deleted documents and old files that the full-text index still has; `None` if
    /// there is no index, or if it will be rebuilt.
    pub index_left: Option<u64>,
    /// Consumers of the feed that have not passed the last tombstone yet: they may have copies.
    pub consumers: Vec<Consumer>,
    /// The time since which all consumers are known, in Unix milliseconds; `None` if no consumers
    /// are known.
    pub since_ms: Option<u64>,
}

impl FeedServer {
    /// Drops snapshots and cached answers of a replica after a purge: readers of a snapshot request
    /// a new one, and consumers that keep the log are woken. Blocks.
    pub fn drop_old_states(&self) {
        self.shared.snapshots.blocking_lock().clear();
        self.shared.answers.clear();
        self.shared.selections.clear();
        self.shared.purges.notify_waiters();
    }

    /// Purges suppressed subjects (all of them, or just `only`) from the collection, after dropping
    /// snapshots and cached answers: readers of a snapshot request a new one. Names the consumers
    /// that may have copies.
    ///
    /// # Errors
    ///
    /// As for [`Collection::purge`](crate::Collection::purge). [`Error::LogFolder`]: the feed is a
    /// replica's; purge at its origin.
    pub async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Error> {
        let shared = &self.shared;
        let Instance::Own(collection) = &shared.log else {
            let what = "it is a replica: purge the collection at its origin".to_owned();
            return Err(Error::LogFolder { dir: shared.log.dir(), what });
        };
        shared.snapshots.lock().await.clear();
        shared.answers.clear();
        shared.selections.clear();
        let purging = collection.clone();
        let purge = move || purging.purge(only.as_ref(), Stamp(clock::now_ms()));
        let mut purged = joined(spawn_blocking(purge)).await?;
        // Snapshots that were requested during the purge contain old files.
        shared.snapshots.lock().await.clear();
        shared.answers.clear();
        shared.selections.clear();
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
