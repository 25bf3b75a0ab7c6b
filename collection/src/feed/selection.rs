//! Selections: the feed of those records alone that a predicate takes.
//!
//! The caller says which, under a name that stands for what decides: the collection knows no queries.
//! The answers are those of the whole feed, in the same form, with its epochs and serials. An object that
//! changed and is not, or is no longer, among the selected ones is in a delta as a release; who never had
//! it ignores that. Of a [`KeptSubset`] only those are that have left it. `Harvest-View` is the name, in answers and
//! in requests that continue: another name means a snapshot.
//!
//! Answers are made on a thread of their own, once for each selection and state of the log, and kept as
//! files within bounds. While a large one is being made, requests get 503 and ask again; whoever asks for it
//! then gets it, though the log may have gone on.
//!
//! Source: TR §5.2 (a broker collects from another one what a query selects).

mod making;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
use crate::change::{Epoch, Version};
use crate::error::Error;
use crate::log::holes::Holes;
use crate::log::served;
use crate::log::{SegmentRange, View};
use crate::member;
use crate::subset::{KeptSubset, Subset};
use crate::wire::{OBJECTS, VIEW, set_missing, value};
use making::Making;

/// Maximum number of selections whose answers are kept; of more, the one asked for longest ago goes.
const SELECTIONS_MAX: usize = 64;
/// Maximum number of answers that are kept of one selection.
const MADE_MAX: usize = 8;
/// Maximum number of snapshots that are kept of one selection.
const SNAPSHOTS_MAX: usize = 2;
/// Largest size of all answers that are kept, in bytes, but for those of the latest selection.
const BYTES_MAX: u64 = 4 << 30;
/// Maximum number of answers that are made at once: short and long ones.
const MAKING_MAX: [usize; 2] = [2, 1];
/// Maximum number of either that are being made or wait for that.
const WAITING_MAX: usize = 16;
/// Number of changes from which on an answer is long. It keeps no short one waiting.
const LONG: u64 = 100_000;

/// How long an answer waits for a subset that it can do without.
const OPTIONAL_WAIT: Duration = Duration::from_secs(1);

/// Which records a consumer wants of a feed.
#[derive(Clone)]
pub struct Selection {
    /// Its name on the wire, which is another one for anything else that is selected: visible ASCII.
    pub name: String,
    /// Whether a record belongs to it; always the same for the same record.
    pub takes: Arc<dyn Fn(&Record) -> bool + Send + Sync>,
    /// Of whose objects alone it is. Of all others nothing is said, unless an answer does without it.
    pub among: Option<KeptSubset>,
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// It has all objects: a snapshot.
    All,
    /// It has what changed after this serial.
    After(u64),
}

/// Selected changes, packed.
#[derive(Debug)]
pub(super) struct Made {
    start: Start,
    /// The log of which they are, up to its version.
    pub(super) view: View,
    pub(super) parts: Vec<SegmentRange>,
    /// Number of records among them.
    pub(super) objects: u64,
    /// Serials that are missing here.
    pub(super) missing: Holes,
    /// The whole answer of a delta, if it is small enough.
    file: Option<MemoryFile>,
    /// Whether somebody has got it.
    is_taken: AtomicBool,
}

impl Made {
    /// Puts a small delta in memory. Blocks.
    fn in_memory(mut self, memory: &Memory) -> Result<Self, Error> {
        if self.start != Start::All {
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
    fn is_of(&self, view: &View) -> bool {
        (self.view.version, self.view.compacted) == (view.version, view.compacted)
    }

    /// Returns whether it may be sent: it is right up to its own version, whatever came later.
    fn is_good(&self, view: &View) -> bool {
        self.view.version.epoch == view.version.epoch
            && !self.parts.iter().any(|it| it.segment.is_damaged())
    }
}

/// The selections that are asked for.
#[derive(Debug)]
pub(super) struct Selections {
    /// The latest at the end.
    list: Mutex<Vec<(String, Arc<Kept>)>>,
    short: Lane,
    long: Lane,
    /// The memory of small answers.
    memory: Memory,
}

/// Answers that take about as long as each other.
#[derive(Debug)]
struct Lane {
    turns: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Selections {
    fn default() -> Self {
        let [short, long] = MAKING_MAX.map(|turns| Lane {
            turns: Arc::new(Semaphore::new(turns)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
        });
        Self { list: Mutex::default(), short, long, memory: Memory::default() }
    }
}

/// An answer that is being made. A drop ends it, if its turn has not come yet.
#[derive(Debug)]
struct Pending(JoinHandle<Result<Made, Error>>);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The answers of one selection.
#[derive(Debug)]
struct Kept {
    answers: Mutex<Answers>,
    making: AsyncMutex<Option<Pending>>,
}

#[derive(Debug)]
struct Answers {
    /// The latest at the end.
    made: Vec<Arc<Made>>,
    snapshots: Snapshots,
}

impl Selections {
    fn list(&self) -> MutexGuard<'_, Vec<(String, Arc<Kept>)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where an answer of a log gets its turn.
    fn lane(&self, start: Start, version: Version) -> &Lane {
        match start {
            Start::After(since) if version.serial.saturating_sub(since) < LONG => &self.short,
            Start::After(_) | Start::All => &self.long,
        }
    }

    /// Returns what is kept of a selection, which is now the latest. `None`: it is a new one, and there is no place to
    /// make its answer.
    fn of(&self, name: &str, lane: &Lane, new: impl FnOnce() -> Kept) -> Option<Arc<Kept>> {
        let mut list = self.list();
        let known = list.iter().position(|it| it.0 == name).map(|at| list.remove(at).1);
        let kept = match known {
            Some(kept) => kept,
            None if lane.waiting.available_permits() == 0 => return None,
            None => Arc::new(new()),
        };
        list.push((name.to_owned(), Arc::clone(&kept)));
        if SELECTIONS_MAX < list.len() {
            list.remove(0);
        }
        Some(kept)
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
        self.made.iter().map(|it| it.bytes()).sum::<u64>() + self.snapshots.bytes()
    }

    /// Returns an answer that is as new as can be, or one that was made for a request that did not wait for it: else
    /// what takes long would never be had from a source that changes.
    fn find(&self, start: Start, view: &View) -> Option<Arc<Made>> {
        let fits = |it: &&Arc<Made>| {
            it.start == start
                && it.is_good(view)
                && (it.is_of(view) || !it.is_taken.load(Ordering::Relaxed))
        };
        let found = self.made.iter().rev().find(fits)?;
        found.is_taken.store(true, Ordering::Relaxed);
        Some(Arc::clone(found))
    }

    /// Keeps an answer in place of those that nobody asks for any more.
    fn keep(&mut self, made: Arc<Made>) {
        self.made.retain(|it| {
            it.start != made.start && (it.is_of(&made.view) || !it.is_taken.load(Ordering::Relaxed))
        });
        self.made.push(made);
        if MADE_MAX < self.made.len() {
            self.made.remove(0);
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
                if let Some(subset) = selection.among.as_ref().and_then(KeptSubset::now) {
                    let objects = value(subset.members.len().to_string());
                    response.headers_mut().insert(OBJECTS, objects);
                }
                return Ok(response);
            }
        }
        let snapshot = self.selected_snapshot(selection).await?;
        self.count(|it| it.redirects += 1);
        Ok(redirect(&snapshot.id))
    }

    fn kept(&self, selection: &Selection, start: Start) -> Result<Arc<Kept>, Refusal> {
        let options = &self.shared.options;
        let snapshots =
            || Snapshots::new(options.snapshot_shared, options.snapshot_kept, SNAPSHOTS_MAX);
        let answers = || Mutex::new(Answers { made: Vec::new(), snapshots: snapshots() });
        let new = || Kept { answers: answers(), making: AsyncMutex::default() };
        let selections = &self.shared.selections;
        let lane = selections.lane(start, self.shared.log.version());
        selections.of(&selection.name, lane, new).ok_or_else(later)
    }

    /// Returns the selected changes after `have`; `None` if the consumer needs a snapshot.
    async fn selected_delta(
        &self,
        have: Version,
        selection: &Selection,
    ) -> Result<Option<Response<Body>>, Refusal> {
        let view = self.shared.log.view();
        if !view.continues_from(have) {
            return Ok(None);
        }
        let holes = view.holes();
        if holes.after(have.serial).is_some_and(|(base, _)| base <= have.serial) {
            return Err(Refusal::missing(&holes));
        }
        let start = Start::After(have.serial);
        let kept = self.kept(selection, start)?;
        let making = self.made(&kept, selection, start);
        let made = timeout(self.shared.options.patience, making).await;
        let made = made.map_err(|_elapsed| later())??;
        let to = made.view.version;
        if to.epoch != have.epoch || to.serial < have.serial {
            return Ok(None);
        }
        // Before a hole nobody may tell of an object that left and changed again behind it.
        let among = selection.among.as_ref().and_then(KeptSubset::now);
        if !made.missing.is_empty() && among.is_some_and(|it| !it.left_before.is_empty()) {
            return Ok(None);
        }
        let tail = Bytes::from(member::end_mark(to));
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
        let kept = self.kept(selection, Start::All)?;
        let now = clock::monotonic();
        let current = |answers: &mut Answers| {
            let view = self.shared.log.view();
            let current = answers.snapshots.current(view.version.epoch, now);
            current.filter(|it| view.continues_from(it.to) && it.is_as_whole_as(&view))
        };
        if let Some(snapshot) = current(&mut kept.answers()) {
            return Ok(snapshot);
        }
        let making = self.made(&kept, selection, Start::All);
        let made = timeout(self.shared.options.patience, making).await;
        let made = made.map_err(|_elapsed| later())??;
        let mut answers = kept.answers();
        // Of several that waited, all get the same.
        if let Some(snapshot) = current(&mut answers) {
            return Ok(snapshot);
        }
        answers.made.retain(|it| it.start != Start::All);
        let snapshot = answers.snapshots.add(Snapshot::selected(&made, &selection.name, now));
        drop(answers);
        self.count(|it| it.snapshots += 1);
        tracing::info!(snapshot = %snapshot.id, view = selection.name, "snapshot made");
        Ok(snapshot)
    }

    /// Returns a state of the log, and that of the subset to which a selection is limited, which is at least as new, if
    /// it is known who left it since `start`.
    async fn basis(
        &self,
        selection: &Selection,
        start: Start,
    ) -> Result<(View, Option<Subset>), Refusal> {
        let view = self.shared.log.view();
        let is_of_use = |it: &&KeptSubset| match start {
            Start::All => !it.is_optional(),
            Start::After(serial) => it.is_of_use_after(serial),
        };
        let subset = match selection.among.as_ref().filter(is_of_use) {
            Some(kept) if kept.is_optional() => {
                timeout(OPTIONAL_WAIT, kept.at(view.version)).await.ok().flatten()
            }
            Some(kept) => Some(kept.at(view.version).await.ok_or_else(later)?),
            None => None,
        };
        Ok((view, subset))
    }

    /// Returns what is selected from `start` on; makes it if nobody did before. May be dropped: what is being made is
    /// there for the next one that asks.
    async fn made(
        &self,
        kept: &Kept,
        selection: &Selection,
        start: Start,
    ) -> Result<Arc<Made>, Refusal> {
        if let Some(made) = kept.answers().find(start, &self.shared.log.view()) {
            return Ok(made);
        }
        let mut turn = kept.making.lock().await;
        loop {
            if let Some(made) = kept.answers().find(start, &self.shared.log.view()) {
                return Ok(made);
            }
            let pending = match &mut *turn {
                Some(pending) => pending,
                none => {
                    let basis = self.basis(selection, start).await?;
                    none.insert(self.making(selection, start, basis)?)
                }
            };
            let outcome = (&mut pending.0).await;
            *turn = None;
            let made = super::outcome(outcome)?;
            kept.answers().keep(Arc::new(made));
            self.shared.selections.shrink();
        }
    }

    /// Begins to make an answer.
    fn making(
        &self,
        selection: &Selection,
        start: Start,
        (view, subset): (View, Option<Subset>),
    ) -> Result<Pending, Refusal> {
        let Instance::Own(collection) = &self.shared.log else {
            let message = "a replica serves all of its collection alone";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        };
        let selections = &self.shared.selections;
        let lane = selections.lane(start, view.version);
        let place = Arc::clone(&lane.waiting).try_acquire_owned().map_err(|_none| later())?;
        let (turns, memory) = (Arc::clone(&lane.turns), selections.memory.clone());
        let (collection, selection) = (collection.clone(), selection.clone());
        let shutdown = self.shared.options.shutdown.clone();
        Ok(Pending(tokio::spawn(async move {
            let _place = place;
            // The semaphore is never closed.
            let _turn = turns.acquire_owned().await;
            let make = move || {
                let making = Making::new(&collection.inner, &selection, subset, shutdown);
                making.of(view, start)?.in_memory(&memory)
            };
            crate::wire::joined(spawn_blocking(make)).await
        })))
    }
}

/// Returns the answer to a request whose answer is still being made.
fn later() -> Refusal {
    let message = "what you select is being put together; ask again";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}
