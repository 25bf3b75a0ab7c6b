//! Selections: the feed of those records alone that a predicate takes.
//!
//! The caller says which, under a name that stands for what decides: the collection knows no queries.
//! The answers are those of the whole feed, in the same form, with its epochs and serials. An object that
//! changed and is not, or is no longer, among the selected ones is in a delta as a release; who never had
//! it ignores that. `Harvest-View` is the name, in answers and in requests that continue: another name
//! means a snapshot.
//!
//! Answers are made on a thread of their own, once for each selection and state of the log, and kept as
//! files within bounds. While a large one is being made, requests get 503 and ask again.
//!
//! Source: TR §5.2 (a broker collects from another one what a query selects).

mod making;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use net::body::Body;
use net::clock;
use net::sendfile::{Memory, MemoryFile};
use soif::Record;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::answers;
use super::request::{Query, Refusal, negotiate, purged};
use super::snapshot::{Snapshot, Snapshots};
use super::{FeedServer, Instance, redirect};
use crate::change::{Epoch, Oid, Version};
use crate::error::Error;
use crate::log::holes::Holes;
use crate::log::served;
use crate::log::{SegmentRange, View};
use crate::member;
use crate::wire::{VIEW, set_missing, value};
use making::Making;

/// Maximum number of selections whose answers are kept; of more, the one asked for longest ago goes.
const SELECTIONS_MAX: usize = 64;
/// Maximum number of deltas that are kept of one selection.
const DELTAS_MAX: usize = 8;
/// Maximum number of snapshots that are kept of one selection.
const SNAPSHOTS_MAX: usize = 2;
/// Largest size of all answers that are kept, in bytes, but for those of the latest selection.
const BYTES_MAX: u64 = 4 << 30;
/// Maximum number of answers that are made at once.
const MAKING_MAX: usize = 2;

/// Which records a consumer wants of a feed.
#[derive(Clone)]
pub struct Selection {
    /// Its name on the wire, which is another one for anything else that is selected: visible ASCII.
    pub name: String,
    /// Whether a record belongs to it; always the same for the same record.
    pub takes: Arc<dyn Fn(&Record) -> bool + Send + Sync>,
    /// Who has left it, if somebody keeps that: a delta names these alone, and not all that do not belong to it.
    pub leavers: Option<Leavers>,
}

/// Those that have left a selection.
#[derive(Clone)]
pub struct Leavers {
    /// Returns the version up to which they are known; `None`: just not.
    pub reached: Arc<dyn Fn() -> Option<Version> + Send + Sync>,
    /// Returns those that left after a serial, up to another one; `None`: they are not known of that time.
    pub left: Arc<dyn Fn(u64, u64) -> Option<HashSet<Oid>> + Send + Sync>,
}

impl fmt::Debug for Leavers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leavers").finish_non_exhaustive()
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The selected changes after a serial, packed.
#[derive(Debug)]
pub(super) struct Made {
    /// The serial before them; 0: this is a snapshot.
    pub(super) since: u64,
    /// The log of which they are, up to its version.
    pub(super) view: View,
    pub(super) parts: Vec<SegmentRange>,
    /// Number of records among them.
    pub(super) objects: u64,
    /// Serials that are missing here.
    pub(super) missing: Holes,
    /// The whole answer of a delta, if it is small enough.
    file: Option<MemoryFile>,
}

impl Made {
    /// Puts a small answer in memory. Blocks.
    fn in_memory(mut self, memory: &Memory) -> Result<Self, Error> {
        if self.since != 0 {
            let tail = Bytes::from(member::end_mark(self.view.version));
            let file = answers::in_memory(memory, &self.parts, &tail);
            let path = self.parts.first().map(|it| it.segment.path.clone()).unwrap_or_default();
            self.file = file.map_err(|error| Error::io("cannot read", &path, error))?;
        }
        Ok(self)
    }

    fn bytes(&self) -> u64 {
        served::bytes_of(&self.parts)
    }

    /// Returns whether it has the same changes as one that is made now of `view`.
    fn is_of(&self, since: u64, view: &View) -> bool {
        (self.since, self.view.version, self.view.compacted)
            == (since, view.version, view.compacted)
            && !self.parts.iter().any(|it| it.segment.is_damaged())
    }
}

/// The selections that are asked for.
#[derive(Debug)]
pub(super) struct Selections {
    /// The latest at the end.
    list: Mutex<Vec<(String, Arc<Kept>)>>,
    turns: Arc<Semaphore>,
    /// The memory of small answers.
    memory: Memory,
}

impl Default for Selections {
    fn default() -> Self {
        let turns = Arc::new(Semaphore::new(MAKING_MAX));
        Self { list: Mutex::default(), turns, memory: Memory::default() }
    }
}

/// The answers of one selection.
#[derive(Debug)]
struct Kept {
    answers: Mutex<Answers>,
    /// What is being made.
    making: AsyncMutex<Option<JoinHandle<Result<Made, Error>>>>,
}

#[derive(Debug)]
struct Answers {
    /// The latest at the end.
    deltas: Vec<Arc<Made>>,
    snapshots: Snapshots,
}

impl Selections {
    fn list(&self) -> MutexGuard<'_, Vec<(String, Arc<Kept>)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is kept of a selection, which is now the latest.
    fn of(&self, name: &str, new: impl FnOnce() -> Kept) -> Arc<Kept> {
        let mut list = self.list();
        let known = list.iter().position(|it| it.0 == name).map(|at| list.remove(at).1);
        let kept = known.unwrap_or_else(|| Arc::new(new()));
        list.push((name.to_owned(), Arc::clone(&kept)));
        if SELECTIONS_MAX < list.len() {
            list.remove(0);
        }
        kept
    }

    /// Drops selections until the rest is small enough.
    fn shrink(&self) {
        let mut list = self.list();
        let mut sizes: Vec<u64> = list.iter().map(|it| it.1.answers().bytes()).collect();
        while 1 < list.len() && BYTES_MAX < sizes.iter().sum() {
            list.remove(0);
            sizes.remove(0);
        }
    }

    /// Returns a snapshot by its id.
    pub(super) fn snapshot(&self, id: &str, epoch: Epoch) -> Option<Arc<Snapshot>> {
        let now = clock::monotonic();
        self.list().iter().find_map(|it| it.1.answers().snapshots.get(id, epoch, now))
    }

    /// Drops all: what was made may have what has to be gone.
    pub(super) fn clear(&self) {
        drop(std::mem::take(&mut *self.list()));
    }
}

impl Kept {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answers {
    fn bytes(&self) -> u64 {
        self.deltas.iter().map(|it| it.bytes()).sum::<u64>() + self.snapshots.bytes()
    }

    fn find(&self, since: u64, view: &View) -> Option<Arc<Made>> {
        self.deltas.iter().find(|it| it.is_of(since, view)).map(Arc::clone)
    }

    /// Keeps an answer in place of those that nobody asks for any more.
    fn keep(&mut self, made: Arc<Made>) {
        self.deltas.retain(|it| it.is_of(it.since, &made.view) && it.since != made.since);
        self.deltas.push(made);
        if DELTAS_MAX < self.deltas.len() {
            self.deltas.remove(0);
        }
    }
}

impl FeedServer {
    /// Answers a request for the feed of a selection, as [`respond`](Self::respond) does for all.
    pub async fn respond_selected(
        &self,
        request: Request<()>,
        selection: &Selection,
    ) -> Response<Body> {
        let answer = self.selected_feed(&request, selection).await;
        self.finish(&request, answer)
    }

    async fn selected_feed(
        &self,
        request: &Request<()>,
        selection: &Selection,
    ) -> Result<Response<Body>, Refusal> {
        negotiate(request.headers())?;
        let query = Query::parse(request.uri().query().unwrap_or_default())?;
        self.shared.consumers.note(request, query.version.unwrap_or_default());
        let is_same = request.headers().get(VIEW).is_some_and(|it| *it == *selection.name);
        if let Some(have) = query.version.filter(|_| is_same) {
            let woken = self.wait(have, query.wait, purged(request.headers())).await;
            if let Some(mut response) = self.selected_delta(have, selection).await? {
                self.count(|it| {
                    it.deltas += 1;
                    it.woken += u64::from(woken);
                });
                response.headers_mut().insert(VIEW, value(&selection.name));
                return Ok(response);
            }
        }
        let snapshot = self.selected_snapshot(selection).await?;
        self.count(|it| it.redirects += 1);
        Ok(redirect(&snapshot.id))
    }

    fn kept(&self, selection: &Selection) -> Arc<Kept> {
        let options = &self.shared.options;
        let snapshots =
            || Snapshots::new(options.snapshot_shared, options.snapshot_kept, SNAPSHOTS_MAX);
        let answers = || Mutex::new(Answers { deltas: Vec::new(), snapshots: snapshots() });
        let new = || Kept { answers: answers(), making: AsyncMutex::default() };
        self.shared.selections.of(&selection.name, new)
    }

    /// Returns the selected changes after `have`; `None` if the consumer needs a snapshot.
    async fn selected_delta(
        &self,
        have: Version,
        selection: &Selection,
    ) -> Result<Option<Response<Body>>, Refusal> {
        let mut view = self.shared.log.view();
        if !view.continues_from(have) {
            return Ok(None);
        }
        // Later changes are for the next request.
        let kept = selection.leavers.as_ref().and_then(|it| (it.reached)());
        let kept = kept.filter(|it| it.epoch == have.epoch && have.serial <= it.serial);
        if let Some(kept) = kept {
            view.version.serial = view.version.serial.min(kept.serial);
        }
        let mut missing = view.holes();
        match missing.after(have.serial) {
            None => missing = Holes::default(),
            Some((base, _)) if have.serial < base => view.version.serial = base,
            Some(_) => return Err(Refusal::missing(&missing)),
        }
        let kept = self.kept(selection);
        let making = self.made(&kept, selection, view, (have.serial, missing));
        let made =
            timeout(self.shared.options.patience, making).await.map_err(|_elapsed| later())??;
        let tail = Bytes::from(member::end_mark(made.view.version));
        let length = made.bytes() + tail.len() as u64;
        let mut response = self.delta(have, &made.view, length);
        set_missing(response.headers_mut(), &made.missing);
        match &made.file {
            Some(file) => file.answer(&mut response),
            None => *response.body_mut() = served::body(&made.parts, &tail, 0, length),
        }
        Ok(Some(response))
    }

    async fn selected_snapshot(&self, selection: &Selection) -> Result<Arc<Snapshot>, Refusal> {
        let (kept, view) = (self.kept(selection), self.shared.log.view());
        let now = clock::monotonic();
        let current = kept.answers().snapshots.current(view.version.epoch, now);
        if let Some(snapshot) = current
            && view.continues_from(snapshot.to)
            && snapshot.is_as_whole_as(&view)
        {
            return Ok(snapshot);
        }
        let missing = view.possible_holes();
        let making = self.made(&kept, selection, view, (0, missing));
        let made =
            timeout(self.shared.options.patience, making).await.map_err(|_elapsed| later())??;
        let snapshot = Snapshot::selected(&made, &selection.name, now);
        self.count(|it| it.snapshots += 1);
        tracing::info!(snapshot = %snapshot.id, view = selection.name, "snapshot made");
        let snapshot = kept.answers().snapshots.add(snapshot);
        self.shared.selections.shrink();
        Ok(snapshot)
    }

    /// Returns what is selected after the serial `since` in `view`, which lacks what is `missing`; makes it if nobody
    /// did before. May be dropped: what is being made is made for the next one that asks.
    async fn made(
        &self,
        kept: &Kept,
        selection: &Selection,
        view: View,
        (since, missing): (u64, Holes),
    ) -> Result<Arc<Made>, Refusal> {
        if let Some(made) = kept.answers().find(since, &view) {
            return Ok(made);
        }
        let mut turn = kept.making.lock().await;
        loop {
            if let Some(made) = kept.answers().find(since, &view) {
                return Ok(made);
            }
            if turn.is_none() {
                *turn = Some(self.making(selection, view.clone(), since, missing.clone())?);
            }
            let Some(making) = &mut *turn else { continue };
            let outcome = making.await;
            *turn = None;
            let made = Arc::new(super::outcome(outcome)?);
            kept.answers().keep(Arc::clone(&made));
            if made.is_of(since, &view) {
                return Ok(made);
            }
        }
    }

    /// Begins to make an answer.
    fn making(
        &self,
        selection: &Selection,
        view: View,
        since: u64,
        missing: Holes,
    ) -> Result<JoinHandle<Result<Made, Error>>, Refusal> {
        let Instance::Own(collection) = &self.shared.log else {
            let message = "a replica serves all of its collection alone";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        };
        let (collection, selection) = (collection.clone(), selection.clone());
        let Selections { turns, memory, .. } = &self.shared.selections;
        let (turns, memory) = (Arc::clone(turns), memory.clone());
        let shutdown = self.shared.options.shutdown.clone();
        Ok(tokio::spawn(async move {
            // The semaphore is never closed.
            let _turn = turns.acquire_owned().await;
            let make = move || {
                let making = Making::new(&collection.inner, &selection, shutdown);
                making.of(view, since, missing)?.in_memory(&memory)
            };
            crate::wire::joined(spawn_blocking(make)).await
        }))
    }
}

/// Returns the answer to a request whose answer is still being made.
fn later() -> Refusal {
    let message = "what you select is being put together; ask again";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}
