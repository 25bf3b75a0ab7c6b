//! Following a feed into a log folder: what an origin of a replicated collection does.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use disk::Disk;
use http::StatusCode;
use net::client::Response;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::chain::known_owner;
use super::writer::{Stream, Writer};
use crate::change::Version;
use crate::error::{Damage, Error};
use crate::wire::asking::{Answer, Asking, Kind, PullLimits, forward};
use crate::wire::{self, value};

/// Pieces of a body that wait to be written; each is at most 256 KiB.
const PIECES_AHEAD: usize = 4;
/// Longest wait for something new.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Follows one feed into a log folder of its own. Blocks nobody: what takes the disk is done elsewhere.
///
/// A snapshot that breaks off begins again from its start; a delta as well. What is in the folder is always whole.
#[derive(Debug)]
pub struct Follower {
    ask: Asking,
    dir: PathBuf,
    /// Whoever writes has it; one who was given up may still do so for a moment.
    writer: Arc<Mutex<Writer>>,
    reached: Option<Reached>,
}

/// How far a folder reaches.
#[derive(Clone, Copy, Debug)]
struct Reached {
    version: Version,
    objects: u64,
    /// Up to which serial its source is known to have purged.
    purged: u64,
}

impl Follower {
    /// Opens the folder `dir`, making it if there is none, to follow what `ask` asks into it.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or made: see what it says.
    pub async fn open(ask: Asking, dir: PathBuf) -> Result<Self, Error> {
        let folder = dir.clone();
        let writer = match spawn_blocking(move || Writer::open(&Disk::System, &folder)).await {
            Ok(opened) => Arc::new(Mutex::new(opened?)),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let mut follower = Self { ask, dir, writer, reached: None };
        follower.with(|_| Ok(())).await?;
        Ok(follower)
    }

    /// How far the folder reaches; `None` before the first snapshot is there.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.reached.map(|it| it.version)
    }

    /// How many objects live in the collection, as the feed said.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.reached.map_or(0, |it| it.objects)
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Folds the log, if it has grown longer than its base, or has what was purged at its source. Returns whether it
    /// did. May be dropped at any point; it goes on then, and who comes next waits for its end.
    ///
    /// # Errors
    ///
    /// [`Error::LogFolder`], [`Error::Damaged`]: the folder is no log any more: remove it. Any other: the file system's,
    /// such as want of room: try again later. The folder is as it was, and can be followed into.
    pub async fn fold_if_due(&mut self) -> Result<bool, Error> {
        self.with(Writer::fold_if_due).await
    }

    /// Asks the feed once, and waits up to `wait` (whole seconds, at most 60) for something new. Returns whether the
    /// folder has changed. May be dropped at any point.
    ///
    /// # Errors
    ///
    /// [`Error::Source`], [`Error::Missing`], [`Error::Corrupt`]: try again later; the folder is as it was. [`Error::NotAFeed`],
    /// [`Error::Format`], [`Error::OverLimit`]: something must be changed by hand. Any other: the file system's.
    pub async fn follow(&mut self, wait: Duration) -> Result<bool, Error> {
        let have = self.version();
        // Who has nothing gets all, at once.
        let wait = have.map_or(Duration::ZERO, |_| wait.min(WAIT_MAX));
        let total = PullLimits::default().time_max + wait;
        let known = self.reached.map_or(0, |it| it.purged);
        let request = self.ask.get(&Asking::path(have, wait), wait, total);
        let request = request.header(wire::PURGED, value(known));
        let mut response =
            self.ask.client.send(request).await.map_err(|error| self.ask.failed(error))?;
        if response.status != StatusCode::OK {
            return Err(self.ask.refused(response).await);
        }
        // What is kept is always whole.
        if let Some(missing) = self.ask.missing(&response) {
            return Err(missing);
        }
        let answer = self.ask.answer(&response)?;
        let life = match (answer.kind, have) {
            (Kind::Delta, Some(have)) if follows(&answer, have) => None,
            (Kind::Delta, _) => {
                let what = "a delta to something else than what was asked for".to_owned();
                return Err(self.ask.no_feed(&response.url, what));
            }
            (Kind::Snapshot, _) => Some(getrandom::u64().unwrap_or(answer.to.epoch.0)),
        };
        let purged = answer.purged;
        if life.is_none() && Some(answer.to) == have {
            return self.with(move |it| it.note_purged(purged)).await;
        }
        let owner = response.headers.get(wire::KEY).and_then(|it| known_owner(it.to_str().ok()?));
        let stream = Stream { life, to: answer.to, objects: answer.objects, owner, purged };
        self.transfer(&mut response, stream).await
    }

    /// Takes in a body.
    async fn transfer(&mut self, response: &mut Response, stream: Stream) -> Result<bool, Error> {
        let (pieces, waiting) = mpsc::channel(PIECES_AHEAD);
        let writer = Arc::clone(&self.writer);
        let worker = spawn_blocking(move || {
            writer.lock().unwrap_or_else(PoisonError::into_inner).take(&stream, waiting)
        });
        let fetched = forward(response, &pieces).await;
        let taken = match worker.await {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        self.with(|_| Ok(())).await?;
        match (taken, fetched) {
            (Err(Error::Stream { what: Damage::Truncated, .. }), Err(error)) => {
                Err(self.ask.failed(error))
            }
            (Err(Error::Stream { offset, what }), _) => {
                let (name, url) = (self.ask.source.clone(), response.url.to_string());
                Err(Error::Corrupt { name, url, offset, what })
            }
            (taken, _) => taken,
        }
    }

    /// Does something with the folder, and sees how far it reaches then.
    async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let writer = Arc::clone(&self.writer);
        let worked = spawn_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut writer);
            let reached = writer.chain().map(|it| Reached {
                version: it.version,
                objects: it.objects,
                purged: it.purged,
            });
            (done, reached)
        });
        match worked.await {
            Ok((done, reached)) => {
                self.reached = reached;
                done
            }
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// Whether a delta goes on from there.
fn follows(answer: &Answer, have: Version) -> bool {
    (answer.to.epoch, answer.from) == (have.epoch, have.serial) && have.serial <= answer.to.serial
}
