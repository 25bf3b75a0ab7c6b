//! The feed: a collection's change log over HTTP.
//!
//! `GET /feed?since=S&epoch=E&wait=SECONDS` answers with the members after serial `S` as they are
//! on the disk: this costs a look-up and a file copy, but no compression per request. A request
//! without a serial, with another epoch, or with a serial outside of the log is redirected with 303
//! to a *snapshot* (snapshot.rs). `wait` (at most 60 s) delays the answer until there is a newer
//! version. Both kinds of streams end with an *end mark*, a member without changes that names the
//! version reached. A stream without an end mark is incomplete.
//!
//! Headers of both kinds of streams: `Harvest-Kind` (`delta` or `snapshot`), `Harvest-Format`,
//! `Harvest-Epoch`, `Harvest-From` and `Harvest-To` (the changes have serials above the first and
//! up to the second), `Harvest-Objects` (live objects); `Harvest-Purged`, if there was a purge:
//! objects suppressed up to that serial are not in the stream any more. A request with
//! `Harvest-Purged`, the last purge that the consumer knows, does not wait if there was a later
//! one. A request may list its formats in `Harvest-Accept-Format`; the status 406 lists the formats
//! of this server.
//!
//! Damaged members are not served. A delta ends before the first of them and names the missing
//! serials (`Harvest-Missing`: first and last serials, `A-B[,C-D]`); a consumer at that point gets
//! 503 with the same header. A snapshot leaves out the damaged members, and has that header too.
//!
//! Source: docs/collection.md, "On the wire"; TR §5.3 for the stream that is compressed ahead of
//! time.
//!
//! # Differences from the TR
//!
//! The TR keeps one compressed file for the whole collection, its "common-case cache", and computes
//! every other answer anew. Here every answer is a part of the log.

mod answers;
pub(crate) mod consumers;
mod instance;
pub(crate) mod purge;
mod request;
pub(crate) mod selection;
mod snapshot;

use std::pin::pin;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use net::body::{self, Body};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::JoinError;
use tokio::time::timeout;
use url::Url;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::log::View;
use crate::log::holes::Holes;
use crate::log::served;
use crate::member;
use crate::notice::Author;
use crate::replica::Replica;
use crate::wire::site::is_provable;
use crate::wire::{KEY, SITE, set_missing, set_stream_headers, value};

use answers::AnswerCache;
use consumers::SharedConsumers;
use instance::Instance;
use request::{Query, Refusal, negotiate, purged, text};
pub use selection::Selection;
use selection::Selections;
use snapshot::{Snapshot, Snapshots};

pub use crate::wire::site::proof_of_site;

/// Largest value of `wait`, in seconds.
pub const WAIT_SECS_MAX: u64 = 60;

/// Maximum number of attempts to make an answer, if damage is found in each.
const TRIES: usize = 3;

/// The options of a feed server. The [`Default`] is right except for tests.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// Maximum number of waiting requests; others are answered at once. Default 1,024.
    pub waiting_max: usize,
    /// Time for which new consumers get the same snapshot. Default 1 h.
    pub snapshot_shared: Duration,
    /// Time for which a snapshot can be fetched. Default 24 h.
    pub snapshot_kept: Duration,
    /// Maximum number of snapshots kept; beyond it the oldest is dropped. Default 25: one per hour
    /// for a day, and one more.
    pub snapshots_max: usize,
    /// Time for which a request waits for what it selects to be put together. Default 10 s.
    pub patience: Duration,
    /// The signal that ends all waiting at a shutdown.
    pub shutdown: Shutdown,
    /// The feed's owner: id and public key, as `ID KEY`. Consumers that trust this source recognize
    /// its own notices by the key. Default: no owner is sent.
    pub owner: Option<String>,
    /// The proof that the feed is the owner's own, by [`proof_of_site`]. Default: none is sent.
    pub site: Option<String>,
}

impl FeedOptions {
    /// Names the owner, with the proof that it serves at its `base_url`. Without a URL, and with
    /// one of this machine alone, there is no proof.
    #[must_use]
    pub fn owned_by(self, owner: &Author, base_url: Option<&Url>) -> Self {
        let Author { id, identity } = owner;
        let site = base_url.filter(|it| is_provable(it)).map(|it| proof_of_site(identity, it));
        Self { owner: Some(format!("{id} {}", identity.key())), site, ..self }
    }
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self {
            waiting_max: 1_024,
            snapshot_shared: Duration::from_secs(60 * 60),
            snapshot_kept: Duration::from_secs(24 * 60 * 60),
            snapshots_max: 25,
            patience: Duration::from_secs(10),
            shutdown: Shutdown::new(),
            owner: None,
            site: None,
        }
    }
}

/// The counts of a feed since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Answers with a delta, empty ones included.
    pub deltas: u64,
    /// Deltas whose requests waited, and which then had new changes.
    pub woken: u64,
    /// Requests redirected to a snapshot.
    pub redirects: u64,
    /// Snapshots made.
    pub snapshots: u64,
    /// Answers with a snapshot, or with a part of one.
    pub snapshot_answers: u64,
    /// Requests answered with an error: malformed, with an unknown format or path, for a snapshot
    /// that is gone, at a hole, or failed here.
    pub refused: u64,
    /// Bytes of all bodies whose transfer has begun; consumers may not have fetched all of them.
    pub bytes: u64,
    /// Requests that wait at present.
    pub waiting: u64,
}

/// Serves a collection's feed and snapshots; clones share them.
#[derive(Clone, Debug)]
pub struct FeedServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    log: Instance,
    options: FeedOptions,
    snapshots: Mutex<Snapshots>,
    answers: AnswerCache,
    selections: Selections,
    waiting: Semaphore,
    /// Wakes the waiting requests of consumers that sent `Harvest-Purged`, after a purge.
    purges: Notify,
    counters: std::sync::Mutex<Counters>,
    consumers: SharedConsumers,
}

impl FeedServer {
    /// Returns a server of `collection`'s feed.
    #[must_use]
    pub fn new(collection: Collection, options: FeedOptions) -> Self {
        Self::of(Instance::Own(collection), options)
    }

    /// Returns a server of a replica's feed, under its origin's (epoch, serial): a consumer can
    /// change between origin and replica at any version.
    #[must_use]
    pub fn of_replica(replica: Replica, options: FeedOptions) -> Self {
        Self::of(Instance::Replica(replica), options)
    }

    fn of(log: Instance, options: FeedOptions) -> Self {
        let snapshots = Mutex::new(Snapshots::new(
            options.snapshot_shared,
            options.snapshot_kept,
            options.snapshots_max,
        ));
        let waiting = Semaphore::new(options.waiting_max);
        Self {
            shared: Arc::new(Shared {
                log,
                options,
                snapshots,
                answers: AnswerCache::default(),
                selections: Selections::default(),
                waiting,
                purges: Notify::new(),
                counters: std::sync::Mutex::default(),
                consumers: SharedConsumers::default(),
            }),
        }
    }

    /// Answers `GET` and `HEAD` of `/feed` and `/snapshot/ID`; otherwise 404 or 405.
    pub async fn respond(&self, request: Request<()>) -> Response<Body> {
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/feed") => self.feed(&request).await,
            (&Method::GET | &Method::HEAD, path) => match path.strip_prefix("/snapshot/") {
                Some(id) => self.snapshot(id, &request).await,
                None => Err(Refusal::new(StatusCode::NOT_FOUND, "no such page")),
            },
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served")),
        };
        self.finish(&request, answer)
    }

    /// Completes an answer, and counts it.
    fn finish(
        &self,
        request: &Request<()>,
        answer: Result<Response<Body>, Refusal>,
    ) -> Response<Body> {
        let mut response = answer.unwrap_or_else(|refusal| {
            self.count(|it| it.refused += 1);
            refusal.response()
        });
        // A replica's consumers recognize the origin's notices by the origin's key.
        let FeedOptions { owner, site, .. } = &self.shared.options;
        let owner = owner.clone().or_else(|| self.shared.log.owner());
        if let Some(owner) = owner {
            response.headers_mut().insert(KEY, value(owner));
        }
        if let Some(site) = site {
            response.headers_mut().insert(SITE, value(site));
        }
        if request.method() == Method::HEAD {
            *response.body_mut() = body::empty();
        } else {
            self.count(|it| it.bytes += content_length(&response));
        }
        response
    }

    /// Returns the feed's counts since its start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let free = self.shared.waiting.available_permits();
        let waiting = self.shared.options.waiting_max.saturating_sub(free);
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        Counters { waiting, ..*self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn feed(&self, request: &Request<()>) -> Result<Response<Body>, Refusal> {
        negotiate(request.headers())?;
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        self.shared.consumers.note(request, query.version.unwrap_or_default());
        if let Some(have) = query.version {
            let woken = self.wait(have, query.wait, purged(request.headers())).await;
            if let Some(found) = self.look_up(have).await? {
                self.expire_snapshots();
                self.count(|it| {
                    it.deltas += 1;
                    it.woken += u64::from(woken);
                });
                return Ok(found);
            }
        }
        let snapshot = self.current_snapshot().await?;
        self.count(|it| it.redirects += 1);
        Ok(redirect(&snapshot.id))
    }

    /// Waits for a version after `have`, for at most `wait`. If the consumer sent `known`, the last
    /// purge that it knows, a later purge ends the wait, too. Returns whether it has waited and
    /// there is a newer version.
    async fn wait(&self, have: Version, wait: Duration, known: Option<u64>) -> bool {
        let mut versions = self.shared.log.watch();
        if wait.is_zero() || *versions.borrow_and_update() != have {
            return false;
        }
        let Ok(_permit) = self.shared.waiting.try_acquire() else { return false };
        let mut purged = pin!(self.shared.purges.notified());
        // Later purges wake this wait.
        purged.as_mut().enable();
        if known.is_some_and(|it| it < self.shared.log.view().purged) {
            return false;
        }
        let newer = versions.wait_for(|it| *it != have);
        tokio::select! {
            newer = timeout(wait, newer) => matches!(newer, Ok(Ok(_))),
            () = purged, if known.is_some() => false,
            () = self.shared.options.shutdown.started() => false,
        }
    }

    /// Returns the answer with the changes after `have`; `None` if the consumer needs a snapshot.
    async fn look_up(&self, have: Version) -> Result<Option<Response<Body>>, Refusal> {
        let view = self.shared.log.view();
        if !view.continues_from(have) {
            if view.has_skipped(have) {
                let log = self.shared.log.clone();
                blocking(move || log.handle_skipped_cursor(have)).await?;
            }
            return Ok(None);
        }
        if let Some(file) = self.shared.answers.find(&view, have.serial) {
            let mut response = self.delta(have, &view, file.len());
            file.answer(&mut response);
            return Ok(Some(response));
        }
        // A commit wakes many consumers with the same request: the first one makes the answer, and
        // the others find it in the cache.
        let _turn = self.shared.answers.turn().await;
        let this = self.clone();
        match blocking(move || this.assemble(have)).await? {
            FeedAnswer::Delta(response) => Ok(Some(response)),
            FeedAnswer::Snapshot => Ok(None),
            FeedAnswer::Missing(holes) => Err(Refusal::missing(&holes)),
        }
    }

    /// Makes the answer with the changes after `have`, up to the first hole.
    fn assemble(&self, have: Version) -> Result<FeedAnswer, Error> {
        let mut failed = None;
        for _ in 0..TRIES {
            let mut view = self.shared.log.view();
            if !view.continues_from(have) {
                return Ok(FeedAnswer::Snapshot);
            }
            let holes = view.holes();
            let is_whole = match holes.after(have.serial) {
                None => true,
                Some((base, _)) if have.serial < base => {
                    view.version.serial = base;
                    false
                }
                Some(_) => return Ok(FeedAnswer::Missing(holes)),
            };
            let parts = view.parts(have.serial);
            let tail = Bytes::from(member::end_mark(view.version));
            let length = served::bytes_of(&parts) + tail.len() as u64;
            let mut response = self.delta(have, &view, length);
            if !is_whole {
                set_missing(response.headers_mut(), &holes);
                *response.body_mut() = served::body(&parts, &tail, 0, length);
                return Ok(FeedAnswer::Delta(response));
            }
            match self.shared.answers.make(&view, have.serial, &parts, &tail) {
                Ok(Some(file)) => file.answer(&mut response),
                Ok(None) => *response.body_mut() = served::body(&parts, &tail, 0, length),
                // The damaged member is marked by now, so the next attempt leaves it out.
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            }
            return Ok(FeedAnswer::Delta(response));
        }
        let error = failed.unwrap_or_else(|| std::io::ErrorKind::Other.into());
        Err(Error::io("cannot read a segment in", &self.shared.log.dir(), error))
    }

    /// Makes the answer of a delta of `length` bytes, without its body.
    fn delta(&self, have: Version, view: &View, length: u64) -> Response<Body> {
        let mut response = Response::new(body::empty());
        let headers = response.headers_mut();
        let objects = self.shared.log.objects();
        set_stream_headers(headers, "delta", have.serial, view, objects);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        headers.insert(header::CONTENT_LENGTH, value(length));
        response
    }

    async fn snapshot(&self, id: &str, request: &Request<()>) -> Result<Response<Body>, Refusal> {
        negotiate(request.headers())?;
        let epoch = self.shared.log.version().epoch;
        let found = self.shared.snapshots.lock().await.get(id, epoch, clock::monotonic());
        let found = found.or_else(|| self.shared.selections.snapshot(id, epoch));
        let gone = "no such snapshot any more; ask /feed for the present one";
        let snapshot = found.ok_or_else(|| Refusal::new(StatusCode::GONE, gone))?;
        if !snapshot.is_sound() {
            // A new snapshot that leaves the damage out can be useful.
            tracing::warn!(snapshot = snapshot.id, "snapshot dropped: a part of it is damaged");
            return Err(Refusal::new(StatusCode::GONE, gone));
        }
        self.count(|it| it.snapshot_answers += 1);
        Ok(snapshot::answer(&snapshot, request.method(), request.headers()))
    }

    /// Drops snapshots that are too old, which frees the space of their files: compaction may have
    /// replaced these long ago, and the next new consumer may not come for months.
    fn expire_snapshots(&self) {
        let epoch = self.shared.log.version().epoch;
        // If the lock is taken, its holder expires the snapshots.
        if let Ok(mut snapshots) = self.shared.snapshots.try_lock() {
            snapshots.expire(epoch, clock::monotonic());
        }
    }

    /// Returns the snapshot for new consumers; makes a new one if necessary.
    async fn current_snapshot(&self) -> Result<Arc<Snapshot>, Refusal> {
        let mut snapshots = self.shared.snapshots.lock().await;
        let now = clock::monotonic();
        let epoch = self.shared.log.version().epoch;
        let view = self.shared.log.view();
        if let Some(snapshot) = snapshots.current(epoch, now)
            && view.continues_from(snapshot.to)
            && snapshot.is_as_whole_as(&view)
        {
            return Ok(snapshot);
        }
        let log = self.shared.log.clone();
        let made = blocking(move || Ok(Snapshot::new(log.view(), log.objects(), now))).await?;
        self.count(|it| it.snapshots += 1);
        tracing::info!(snapshot = %made.id, to = %made.to, bytes = made.bytes, "snapshot pinned");
        Ok(snapshots.add(made))
    }
}

/// Runs `work`, which may wait for the disk, on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    outcome(tokio::task::spawn_blocking(work).await)
}

/// Returns the answer that sends a consumer to a snapshot.
fn redirect(id: &str) -> Response<Body> {
    // The location is relative, so that it works behind a proxy that adds a path prefix.
    let mut response = text(StatusCode::SEE_OTHER, "fetch the snapshot first");
    response.headers_mut().insert(header::LOCATION, value(format!("snapshot/{id}")));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the outcome of work on another thread.
fn outcome<T>(done: Result<Result<T, Error>, JoinError>) -> Result<T, Refusal> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "the feed cannot be read");
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the collection cannot be read; see the log",
        )
    };
    match done {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}

/// The answer to a consumer that has a version.
enum FeedAnswer {
    Delta(Response<Body>),
    Snapshot,
    /// The consumer's version is just before, or in, one of these holes.
    Missing(Holes),
}

fn content_length(response: &Response<Body>) -> u64 {
    let length = response.headers().get(header::CONTENT_LENGTH);
    length.and_then(|it| it.to_str().ok()?.parse().ok()).unwrap_or(0)
}
