//! The feed: a collection's change log over HTTP.
//!
//! `GET /feed?since=S&epoch=E&wait=SECONDS` answers with the members after serial `S` as they lie
//! on the disk: a look-up and a file copy, no compression per request. An unknown epoch, or a
//! serial that the log does not reach back or up to, is sent to a *snapshot* (snapshot.rs) with
//! 303. `wait` (at most 60 s) holds the answer until there is something newer. Either stream ends in
//! an *end mark*, a member without changes that names the version reached: a consumer that has not
//! seen it has not seen all.
//!
//! Headers of both: `Harvest-Kind` (`delta` or `snapshot`), `Harvest-Format`, `Harvest-Epoch`,
//! `Harvest-From` and `Harvest-To` (serials: after the one, up to the other), `Harvest-Objects`
//! (live objects); `Harvest-Purged`, if anything was: what was suppressed up to that serial is not in the
//! stream any more. A request that says `Harvest-Purged` is not held once more has been purged. A
//! request may list the formats that it understands in `Harvest-Accept-Format`;
//! 406 names those spoken here.
//!
//! What is damaged is not served before it has been replaced. A delta ends before it and says what is
//! missing (`Harvest-Missing`: first and last serials, `A-B[,C-D]`); whoever stands there gets 503 with the
//! same header. A snapshot is made of the rest, and has that header too.
//!
//! Source: DESIGN.md, "Feed" and "Snapshot"; TR §5.3 for the stream that is compressed ahead of time.
//!
//! # Differences from the TR
//!
//! The TR keeps one compressed file for the whole collection, its "common-case cache", and makes
//! every other answer afresh. Here every answer is a part of the log.

pub(crate) mod consumers;
mod counters;
mod hot;
mod instance;
pub(crate) mod purge;
mod request;
mod snapshot;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use net::body::{self, Body};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::time::timeout;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::log::View;
use crate::log::holes::Holes;
use crate::log::scan::Pinned;
use crate::log::served;
use crate::member;
use crate::replica::Replica;
use crate::wire::{KEY, describe, lack, value};

use consumers::Readers;
pub use counters::Counters;
use counters::{Counts, add};
use hot::Hot;
use instance::Instance;
use request::{Query, Refusal, negotiate, purged, text};
use snapshot::{Snapshot, Snapshots};

/// Longest `wait`, in seconds.
pub const WAIT_SECS_MAX: u64 = 60;

/// So often an answer is put together that turns out to be damaged.
const TRIES: usize = 3;

/// How a feed is served. [`Default`] suits all but tests.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// Most requests held by `wait` at once; others are answered at once. Default 1,024.
    pub waiting_max: usize,
    /// How long newcomers get the same snapshot. Default 1 h.
    pub snapshot_shared: Duration,
    /// How long a snapshot can be fetched. Default 24 h.
    pub snapshot_kept: Duration,
    /// Most snapshots kept; the oldest goes. Default 25: as many as come into being by the hour.
    pub snapshots_max: usize,
    /// Ends all waiting when it starts.
    pub shutdown: Shutdown,
    /// Whose feed it is: id and public key, as `ID KEY`. Consumers that trust this source know by the
    /// key what it has signed itself. Default: none is told.
    pub owner: Option<String>,
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self {
            waiting_max: 1_024,
            snapshot_shared: Duration::from_secs(60 * 60),
            snapshot_kept: Duration::from_secs(24 * 60 * 60),
            snapshots_max: 25,
            shutdown: Shutdown::new(),
            owner: None,
        }
    }
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
    hot: Hot,
    waiting: Semaphore,
    /// Wakes who keeps what was purged.
    purges: Notify,
    counts: Counts,
    consumers: Readers,
}

impl FeedServer {
    /// Returns a server of `collection`'s feed.
    #[must_use]
    pub fn new(collection: Collection, options: FeedOptions) -> Self {
        Self::of(Instance::Own(collection), options)
    }

    /// Returns a server of the feed of a replica, under its origin's (epoch, serial): who has read a part of the
    /// one goes on with the other.
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
        let counts = Counts::default();
        Self {
            shared: Arc::new(Shared {
                log,
                options,
                snapshots,
                hot: Hot::default(),
                waiting,
                purges: Notify::new(),
                counts,
                consumers: Readers::default(),
            }),
        }
    }

    /// Answers `GET` and `HEAD` of `/feed` and `/snapshot/ID`; 404 for all else.
    pub async fn respond(&self, request: Request<()>) -> Response<Body> {
        let answer = match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/feed") => self.feed(&request).await,
            (&Method::GET | &Method::HEAD, path) => match path.strip_prefix("/snapshot/") {
                Some(id) => self.snapshot(id, &request).await,
                None => Err(Refusal::new(StatusCode::NOT_FOUND, "no such page")),
            },
            _ => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are served")),
        };
        let mut response = answer.unwrap_or_else(|refusal| {
            add(&self.shared.counts.refused, 1);
            refusal.response()
        });
        // What a replica's origin has signed is known by its key, wherever it is read.
        let owner = self.shared.options.owner.clone().or_else(|| self.shared.log.owner());
        if let Some(owner) = owner {
            response.headers_mut().insert(KEY, value(owner));
        }
        if request.method() == Method::HEAD {
            *response.body_mut() = body::empty();
        } else {
            add(&self.shared.counts.bytes, content_length(&response));
        }
        response
    }

    /// Returns what the feed has done since it started.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let free = self.shared.waiting.available_permits();
        let waiting = self.shared.options.waiting_max.saturating_sub(free);
        self.shared.counts.read(u64::try_from(waiting).unwrap_or(u64::MAX))
    }

    async fn feed(&self, request: &Request<()>) -> Result<Response<Body>, Refusal> {
        negotiate(request.headers())?;
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        self.shared.consumers.note(request, query.version.unwrap_or_default());
        if let Some(have) = query.version {
            let woken = self.wait(have, query.wait, purged(request.headers())).await;
            if let Some(found) = self.look_up(have).await? {
                self.expire_snapshots();
                add(&self.shared.counts.deltas, 1);
                add(&self.shared.counts.woken, u64::from(woken));
                return Ok(found);
            }
        }
        let snapshot = self.current_snapshot().await?;
        add(&self.shared.counts.redirects, 1);
        // Relative, so that it holds behind a proxy that puts a path in front.
        let mut response = text(StatusCode::SEE_OTHER, "fetch the snapshot first");
        response.headers_mut().insert(header::LOCATION, value(format!("snapshot/{}", snapshot.id)));
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(response)
    }

    /// Waits until there is something newer than `have`, or more has been purged than the asker knows of, who keeps it
    /// then; returns whether there is something newer after a wait.
    async fn wait(&self, have: Version, wait: Duration, known: Option<u64>) -> bool {
        let mut versions = self.shared.log.watch();
        if wait.is_zero() || *versions.borrow_and_update() != have {
            return false;
        }
        let Ok(_permit) = self.shared.waiting.try_acquire() else { return false };
        let mut purged = pin!(self.shared.purges.notified());
        // What is purged from here on is heard.
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

    /// Returns the answer with what follows `have`; `None` if a snapshot is due.
    async fn look_up(&self, have: Version) -> Result<Option<Response<Body>>, Refusal> {
        let view = self.shared.log.view();
        if !view.goes_on_from(have) {
            if view.has_skipped(have) {
                let log = self.shared.log.clone();
                blocking(move || log.handle_told(have)).await?;
            }
            return Ok(None);
        }
        if let Some(file) = self.shared.hot.find(&view, have.serial) {
            let mut response = self.delta(have, &view, file.len());
            file.answer(&mut response);
            return Ok(Some(response));
        }
        // A commit wakes many who then want the same: one puts it together, and the others find it.
        let _turn = self.shared.hot.turn().await;
        let this = self.clone();
        match blocking(move || this.assemble(have)).await? {
            Told::Delta(response) => Ok(Some(response)),
            Told::Snapshot => Ok(None),
            Told::Missing(holes) => Err(Refusal::missing(&holes)),
        }
    }

    /// Puts together the answer with what follows `have`, up to the first hole.
    fn assemble(&self, have: Version) -> Result<Told, Error> {
        let mut failed = None;
        for _ in 0..TRIES {
            let mut view = self.shared.log.view();
            if !view.goes_on_from(have) {
                return Ok(Told::Snapshot);
            }
            let holes = view.holes();
            let is_whole = match holes.after(have.serial) {
                None => true,
                Some((base, _)) if have.serial < base => {
                    view.version.serial = base;
                    false
                }
                Some(_) => return Ok(Told::Missing(holes)),
            };
            let parts = view.parts(have.serial).0;
            let tail = Bytes::from(member::end_mark(view.version));
            let length = served::bytes_of(&parts) + tail.len() as u64;
            let mut response = self.delta(have, &view, length);
            if !is_whole {
                lack(response.headers_mut(), &holes);
                *response.body_mut() = served::body(&parts, &tail, 0, length);
                return Ok(Told::Delta(response));
            }
            match self.shared.hot.make(&view, have.serial, &parts, &tail) {
                Ok(Some(file)) => file.answer(&mut response),
                Ok(None) => *response.body_mut() = served::body(&parts, &tail, 0, length),
                // What is damaged is known by now.
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            }
            return Ok(Told::Delta(response));
        }
        let error = failed.unwrap_or_else(|| std::io::ErrorKind::Other.into());
        Err(Error::io("cannot read a segment in", &self.shared.log.dir(), error))
    }

    /// Makes an answer with a delta of `length` bytes, but for its body.
    fn delta(&self, have: Version, view: &View, length: u64) -> Response<Body> {
        let mut response = Response::new(body::empty());
        let headers = response.headers_mut();
        let objects = self.shared.log.objects();
        describe(headers, "delta", have.serial, view, objects);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
        headers.insert(header::CONTENT_LENGTH, value(length));
        response
    }

    async fn snapshot(&self, id: &str, request: &Request<()>) -> Result<Response<Body>, Refusal> {
        negotiate(request.headers())?;
        let epoch = self.shared.log.version().epoch;
        let found = self.shared.snapshots.lock().await.get(id, epoch, clock::monotonic());
        let gone = "no such snapshot any more; ask /feed for the present one";
        let snapshot = found.ok_or_else(|| Refusal::new(StatusCode::GONE, gone))?;
        if !snapshot.is_sound() {
            // One that does without what is damaged is of use.
            tracing::warn!(snapshot = snapshot.id, "snapshot given up: a part of it is damaged");
            return Err(Refusal::new(StatusCode::GONE, gone));
        }
        add(&self.shared.counts.snapshot_answers, 1);
        Ok(snapshot::answer(&snapshot, request.method(), request.headers()))
    }

    /// Lets go of the files of snapshots that are too old, which compaction may have made
    /// superfluous long since: no newcomer may come for months.
    fn expire_snapshots(&self) {
        let epoch = self.shared.log.version().epoch;
        // Whoever has the lock does it as well.
        if let Ok(mut snapshots) = self.shared.snapshots.try_lock() {
            snapshots.expire(epoch, clock::monotonic());
        }
    }

    /// Returns the snapshot for newcomers, made now if there is none or it is too old.
    async fn current_snapshot(&self) -> Result<Arc<Snapshot>, Refusal> {
        let mut snapshots = self.shared.snapshots.lock().await;
        let now = clock::monotonic();
        let epoch = self.shared.log.version().epoch;
        let view = self.shared.log.view();
        if let Some(snapshot) = snapshots.current(epoch, now)
            && view.goes_on_from(snapshot.to)
            && snapshot.is_as_whole_as(&view)
        {
            return Ok(snapshot);
        }
        let log = self.shared.log.clone();
        let pinned = blocking(move || Ok((Pinned::new(log.view()), log.objects())));
        let (pinned, objects) = pinned.await?;
        add(&self.shared.counts.snapshots, 1);
        tracing::info!(snapshot = %pinned.id, to = %pinned.to, bytes = pinned.bytes, "snapshot pinned");
        Ok(snapshots.add(Snapshot::new(pinned, objects, now)))
    }
}

/// Runs what may wait for the disk where it holds up nobody.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "the feed cannot be read");
        Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the collection cannot be read; see the log",
        )
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(&error)),
        Err(error) => Err(failed(&error)),
    }
}

/// What there is to tell to one who has come somewhere.
enum Told {
    Delta(Response<Body>),
    /// All of it.
    Snapshot,
    /// Nothing before these holes are closed.
    Missing(Holes),
}

fn content_length(response: &Response<Body>) -> u64 {
    let length = response.headers().get(header::CONTENT_LENGTH);
    length.and_then(|it| it.to_str().ok()?.parse().ok()).unwrap_or(0)
}
