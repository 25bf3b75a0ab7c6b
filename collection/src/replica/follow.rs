//! The follower of a feed: it writes the log folder of a replicated collection at its origin.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use disk::Disk;
use http::StatusCode;
use net::client::Response;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::chain::parse_owner;
use super::writer::{Stream, Writer};
use crate::change::Version;
use crate::error::Error;
use crate::wire::client::{Answer, FeedClient, Kind, PIECES_AHEAD, PullLimits, forward};
use crate::wire::{self, joined, value};

/// Maximum time that a request waits for new changes.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A follower of one feed into a log folder of its own. Disk work runs on blocking threads.
///
/// A stream that breaks off is fetched again from its start. The folder is always whole.
#[derive(Debug)]
pub struct Follower {
    feed: FeedClient,
    dir: PathBuf,
    /// Locked while a call writes. After a call was dropped, its work may still run for a moment.
    writer: Arc<Mutex<Writer>>,
    reached: Option<FolderState>,
}

#[derive(Clone, Copy, Debug)]
struct FolderState {
    version: Version,
    objects: u64,
    /// The serial of the source's last known purge.
    purged: u64,
}

impl Follower {
    /// Opens the folder `dir`, or makes it if there is none, for the changes of `feed`.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or made; the message says why.
    pub async fn open(feed: FeedClient, dir: PathBuf) -> Result<Self, Error> {
        let folder = dir.clone();
        let opened = joined(spawn_blocking(move || Writer::open(&Disk::System, &folder))).await?;
        let writer = Arc::new(Mutex::new(opened));
        let mut follower = Self { feed, dir, writer, reached: None };
        follower.with(|_| Ok(())).await?;
        Ok(follower)
    }

    /// Returns the version that the folder reaches; `None` before the first snapshot.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.reached.map(|it| it.version)
    }

    /// Returns the number of live objects in the collection, by the feed's header.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.reached.map_or(0, |it| it.objects)
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Folds the log, if it has grown longer than its base by
    /// [`FOLD_BYTES_MIN`](super::FOLD_BYTES_MIN), or has changes that were purged at its source.
    /// Returns whether the log was folded. May be dropped at any point; the folding then continues,
    /// and the next call waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::LogFolder`], [`Error::Damaged`]: the folder is damaged: remove it. Any other error
    /// is the file system's, such as a full disk: try again later. The folder is unchanged, and can
    /// be written further.
    pub async fn fold_if_due(&mut self) -> Result<bool, Error> {
        self.with(Writer::fold_if_due).await
    }

    /// Requests the feed once, and waits up to `wait` (whole seconds, at most 60) for new changes.
    /// Returns whether the folder has changed. May be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`Error::Source`], [`Error::Missing`], [`Error::Corrupt`]: try again later; the folder is
    /// unchanged. [`Error::NotAFeed`], [`Error::Format`], [`Error::OverLimit`]: an administrator
    /// has to correct something. Any other error is the file system's.
    pub async fn follow(&mut self, wait: Duration) -> Result<bool, Error> {
        let have = self.version();
        // Without a version, the source sends the snapshot at once.
        let wait = have.map_or(Duration::ZERO, |_| wait.min(WAIT_MAX));
        let total = PullLimits::default().time_max + wait;
        let known = self.reached.map_or(0, |it| it.purged);
        let request = self.feed.get(&self.feed.path(have, wait), wait, total);
        let request = request.header(wire::PURGED, value(known));
        let mut response =
            self.feed.client.send(request).await.map_err(|error| self.feed.failed(error))?;
        if response.status != StatusCode::OK {
            return Err(self.feed.refused(response).await);
        }
        // The folder must be complete.
        if let Some(missing) = self.feed.missing(&response) {
            return Err(missing);
        }
        let answer = self.feed.answer(&response)?;
        let life = match (answer.kind, have) {
            (Kind::Delta, Some(have)) if follows(&answer, have) => None,
            (Kind::Delta, _) => {
                let what = "the delta does not begin at the requested serial".to_owned();
                return Err(self.feed.no_feed(&response.url, what));
            }
            (Kind::Snapshot, _) => Some(getrandom::u64().unwrap_or(answer.to.epoch.0)),
        };
        let purged = answer.purged;
        if life.is_none() && Some(answer.to) == have {
            return self.with(move |it| it.note_purged(purged)).await;
        }
        let owner = response.headers.get(wire::KEY).and_then(|it| parse_owner(it.to_str().ok()?));
        let stream = Stream { life, to: answer.to, objects: answer.objects, owner, purged };
        self.transfer(&mut response, stream).await
    }

    async fn transfer(&mut self, response: &mut Response, stream: Stream) -> Result<bool, Error> {
        let (pieces, waiting) = mpsc::channel(PIECES_AHEAD);
        let writer = Arc::clone(&self.writer);
        let worker = spawn_blocking(move || {
            writer.lock().unwrap_or_else(PoisonError::into_inner).take(&stream, waiting)
        });
        let fetched = forward(response, &pieces).await;
        let taken = joined(worker).await;
        self.with(|_| Ok(())).await?;
        self.feed.transferred(&response.url, taken, fetched)
    }

    /// Runs `work` on the folder, and takes over the state after it.
    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let writer = Arc::clone(&self.writer);
        let worked = spawn_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut writer);
            let reached = writer.chain().map(|it| FolderState {
                version: it.version,
                objects: it.objects,
                purged: it.purged,
            });
            (done, reached)
        });
        let (done, reached) = joined(worked).await;
        self.reached = reached;
        done
    }
}

/// Returns whether the delta begins at `have`.
fn follows(answer: &Answer, have: Version) -> bool {
    (answer.to.epoch, answer.from) == (have.epoch, have.serial) && have.serial <= answer.to.serial
}
