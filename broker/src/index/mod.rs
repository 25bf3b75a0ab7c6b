//! The full-text index: a cursor on the collection, and the answers to queries.
//!
//! The index can be built from the collection at any time and holds nothing else. How far it is,
//! an (epoch, serial), is kept in its commits, so that the two cannot disagree: when the collection
//! has another epoch, or ends before that serial, the index is built anew.
//!
//! Compaction is the engine's: small segments are merged in the background as they come (merging.rs).

mod compile;
mod deadline;
mod document;
mod fault;
mod folder;
mod forms;
mod inflection;
mod lookup;
mod merging;
mod purge;
mod rank;
mod schema;
mod search;
mod tally;
mod verify;
mod words;
mod writer;
pub mod yardstick;

use std::fmt;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::{Collection, Oid, Scanned, Version};
use query::QueryError;
use soif::Record;
use tantivy::indexer::{IndexWriterOptions, UserOperation};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyError};
use tokio::sync::watch;

use crate::answer::{Answer, SEARCH_TIME_MAX, SearchRequest};
use crate::error::Error;
use deadline::Deadline;
use fault::{is_corruption, is_damage, is_lock_of_disk, is_suspicious};
use merging::Merging;
use schema::Fields;
use search::Refusal;
use writer::{Applier, Chunk, Written, read_payload};

pub use fault::Failure;
pub(crate) use folder::Place;

/// How the index is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Memory of the writer, in bytes, whatever the size of the index; all its threads together.
    /// At least 15 MB a thread.
    pub heap_bytes: usize,
    /// Threads that index; at least 1.
    pub threads: usize,
    /// Objects in one commit at most.
    pub commit_changes_max: usize,
}

impl Default for IndexOptions {
    /// 64 MiB, 2 threads, 10,000 objects.
    fn default() -> Self {
        Self { heap_bytes: 64 << 20, threads: 2, commit_changes_max: 10_000 }
    }
}

/// Figures of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct IndexStats {
    /// Objects.
    pub documents: u64,
    /// Segments.
    pub segments: u64,
    /// Size on disk, in bytes.
    pub bytes: u64,
}

/// The full-text index of one collection. Clones share it.
#[derive(Clone)]
pub struct Index {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    place: Place,
    options: IndexOptions,
    engine: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    /// `None` after a failure, until the next apply makes it anew.
    writer: Mutex<Option<IndexWriter>>,
    covered: watch::Sender<Option<Version>>,
    /// The newest serial as it last began to be built anew: before that it has only a part of what it had.
    goal: AtomicU64,
    /// Nothing is taken in any more.
    closed: AtomicBool,
    /// Its files have to be verified.
    suspect: AtomicBool,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("dir", &self.inner.dir)
            .field("covered", &self.covered())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index in `dir`, or makes an empty one there.
    ///
    /// An index of an older layout or with damage is dropped: the next [`apply`](Self::apply) builds
    /// it from the collection. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or another process has it open.
    pub fn open(dir: &Path, options: IndexOptions) -> Result<Self, Error> {
        Self::open_at(dir, options, Place::Folder)
    }

    /// [`open`](Self::open) where `place` says; `dir` names it.
    pub(crate) fn open_at(dir: &Path, options: IndexOptions, place: Place) -> Result<Self, Error> {
        let failed = |source| Failure { dir: dir.to_owned(), source };
        match Self::open_as_is(dir, options, place.clone()) {
            Err(error) if is_damage(&error) => {
                tracing::warn!(dir = %dir.display(), %error, "index dropped, to be built anew");
                place.clear(dir).map_err(|source| Error::Io {
                    action: "remove",
                    path: dir.to_owned(),
                    source,
                })?;
                Ok(Self::open_as_is(dir, options, place).map_err(failed)?)
            }
            other => Ok(other.map_err(failed)?),
        }
    }

    fn open_as_is(dir: &Path, options: IndexOptions, place: Place) -> tantivy::Result<Self> {
        fs::create_dir_all(dir)?;
        let (schema, fields) = schema::build();
        let engine = tantivy::Index::builder().schema(schema).open_or_create(place.open(dir)?)?;
        words::register(engine.tokenizers());
        let writer = match make_writer(&engine, options) {
            // It answers from what it has; the next apply tries again, and says so if it fails.
            Err(error) if is_lock_of_disk(&error) => None,
            writer => Some(writer?),
        };
        let reader = engine.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (covered, goal) = read_metas(&engine)?;
        let inner = Inner {
            // An index that is empty has nothing to verify.
            suspect: AtomicBool::new(!verify::take_mark(dir) && covered.is_some()),
            dir: dir.to_owned(),
            place,
            options,
            engine,
            fields,
            reader,
            writer: Mutex::new(writer),
            covered: watch::Sender::new(covered),
            goal: AtomicU64::new(goal),
            closed: AtomicBool::new(false),
        };
        let index = Self { inner: Arc::new(inner) };
        index.warm();
        Ok(index)
    }

    /// How much of the collection the index covers; `None` when it has to be built anew.
    pub fn covered(&self) -> Option<Version> {
        *self.inner.covered.borrow()
    }

    /// How far it is, and how far it has to get, while it is being built anew for a collection that is at `version`:
    /// searches find a part of what they found.
    pub fn unfinished(&self, version: Version) -> Option<(u64, u64)> {
        let goal = self.inner.goal.load(Ordering::Acquire);
        match self.covered() {
            Some(it) if it.epoch == version.epoch => {
                (it.serial < goal).then_some((it.serial, goal))
            }
            _ => Some((0, version.serial)),
        }
    }

    /// Returns what tells of every change of [`covered`](Self::covered).
    pub fn watch(&self) -> watch::Receiver<Option<Version>> {
        self.inner.covered.subscribe()
    }

    /// Has the next [`apply`](Self::apply) build the index anew if the collection does not go on from what it covers,
    /// as `goes_on` says of a version: a copy was put back, or the end of the log lost, and what follows
    /// is not what is covered.
    pub fn hold_to(&self, goes_on: impl Fn(Version) -> bool) {
        self.inner.covered.send_if_modified(|covered| {
            let beyond = covered.is_some_and(|it| !goes_on(it));
            if beyond {
                *covered = None;
            }
            beyond
        });
    }

    /// Takes the collection's changes up to its present version into the index and returns how far
    /// it is; they are found from then on. Blocks.
    ///
    /// Stops early, well under a second after `cancelled` says so or the index is closed; what is
    /// not committed then is done again by the next call.
    ///
    /// # Errors
    ///
    /// [`Error::Collection`] when the log cannot be read, [`Error::Index`] when the index cannot be
    /// written (a full disk, mostly). The index is at its last commit; call again.
    pub fn apply(
        &self,
        collection: &Collection,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Version, Error> {
        let target = collection.version();
        let get = |oid: &Oid| match collection.get(oid) {
            Ok(stored) => stored.map(|stored| stored.record),
            Err(error) => {
                tracing::warn!(%oid, %error, "object not read for its duplicates");
                None
            }
        };
        self.apply_log(
            (collection.horizon(), target),
            &|since| Ok(collection.scan(since)?.map(|it| Ok(it?))),
            &get,
            cancelled,
        )
    }

    /// [`apply`](Self::apply) for any log, which may have forgotten deletes up to the `horizon`: `scan` gives the changes after a serial, `get` a live object.
    fn apply_log<Scan: Iterator<Item = Result<Scanned, Error>>>(
        &self,
        (horizon, target): (u64, Version),
        scan: &dyn Fn(u64) -> Result<Scan, Error>,
        get: &dyn Fn(&Oid) -> Option<Record>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Version, Error> {
        let closed = || self.inner.closed.load(Ordering::Acquire);
        let cancelled = &|| closed() || cancelled();
        let mut slot = locked(&self.inner.writer);
        if closed() {
            return Ok(self.covered().unwrap_or_default());
        }
        if self.covered() == Some(target) {
            return Ok(target);
        }
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => self.start_over().map_err(|source| self.failed(source))?,
        };
        let reaches = |it: &Version| {
            it.epoch == target.epoch && (horizon..=target.serial).contains(&it.serial)
        };
        let covered = self.covered().filter(reaches);
        if covered.is_none() {
            self.inner.goal.store(target.serial, Ordering::Release);
        }
        let outcome = self.run(&mut writer, covered, target, scan, get, cancelled);
        match outcome {
            // What has been added but not committed must not slip into the next commit.
            Err(error) => {
                drop(writer);
                Err(error)
            }
            Ok((version, Written::Cancelled)) => {
                drop(writer);
                Ok(version)
            }
            Ok((version, Written::Committed)) => {
                *slot = Some(writer);
                Ok(version)
            }
        }
    }

    /// Makes a writer after a failure, and goes by what is on the disk: the commit that failed may be
    /// there nevertheless.
    fn start_over(&self) -> tantivy::Result<IndexWriter> {
        let inner = &self.inner;
        let writer = make_writer(&inner.engine, inner.options)?;
        if self.covered().is_some() {
            inner.reader.reload()?;
            let (there, goal) = read_metas(&inner.engine)?;
            inner.goal.store(goal, Ordering::Release);
            inner.covered.send_if_modified(|covered| {
                let differs = *covered != there;
                *covered = there;
                differs
            });
        }
        Ok(writer)
    }

    fn run<Scan: Iterator<Item = Result<Scanned, Error>>>(
        &self,
        writer: &mut IndexWriter,
        covered: Option<Version>,
        target: Version,
        scan: &dyn Fn(u64) -> Result<Scan, Error>,
        get: &dyn Fn(&Oid) -> Option<Record>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Version, Written), Error> {
        let mut said = self.covered();
        let mut at = covered.unwrap_or(Version { epoch: target.epoch, serial: 0 });
        if covered.is_none() {
            writer.delete_all_documents().map_err(|source| self.failed(source))?;
        }
        let mut anew = covered.is_none();
        let mut changes = scan(at.serial)?.peekable();
        loop {
            let before = at;
            let mut chunk = Chunk::default();
            while !chunk.is_full(self.inner.options.commit_changes_max)
                && !cancelled()
                && let Some(scanned) = changes.next()
            {
                let scanned = scanned?;
                at.serial = scanned.serial;
                chunk.add(scanned);
            }
            if cancelled() {
                return Ok((before, Written::Cancelled));
            }
            let ends = changes.peek().is_none();
            if ends {
                at.serial = at.serial.max(target.serial);
            }
            if anew || !chunk.is_empty() {
                let searcher = (!anew).then(|| self.inner.reader.searcher());
                let fields = &self.inner.fields;
                let goal = self.inner.goal.load(Ordering::Acquire);
                let mut applier = Applier { fields, writer, goal, searcher, get, cancelled };
                let written = applier.write(&chunk, at).map_err(|source| self.failed(source))?;
                if written == Written::Cancelled {
                    return Ok((before, written));
                }
                self.inner.reader.reload().map_err(|source| self.failed(source))?;
                self.warm();
                anew = false;
            }
            // A stretch without anything to index is not worth a commit: after a restart it is
            // looked through once more.
            let is_said = self.inner.covered.send_if_modified(|covered| {
                let same = *covered == said;
                if same {
                    *covered = Some(at);
                }
                same
            });
            if !is_said {
                // A search has met damage meanwhile: what was built on it is no better.
                return Ok((before, Written::Cancelled));
            }
            said = Some(at);
            if ends || cancelled() {
                return Ok((at, Written::Committed));
            }
        }
    }

    /// Lets go of the folder, for all clones, so that it can be opened anew: waits for the commit
    /// under way; what has not been committed is dropped. Searches go on, from the last commit.
    /// Blocks.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        let mut slot = locked(&self.inner.writer);
        let whole = slot.take().is_some() && !self.is_suspect();
        if whole && matches!(self.inner.place, Place::Folder) {
            verify::leave_mark(&self.inner.dir);
        }
    }

    /// Answers a search. Blocks: call it from `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the request cannot be answered (who asked can mend it) or not within
    /// [`SEARCH_TIME_MAX`], [`Error::Index`] when the index fails.
    pub fn search(&self, request: &SearchRequest) -> Result<Answer, Error> {
        self.search_within(request, SEARCH_TIME_MAX)
    }

    /// [`search`](Self::search) with a time of its own.
    fn search_within(&self, request: &SearchRequest, limit: Duration) -> Result<Answer, Error> {
        let start = net::clock::monotonic();
        let searcher = self.inner.reader.searcher();
        // The engine takes its files for sound: where they are not, it may panic.
        let deadline = Deadline::after(limit);
        let search = || search::search(&searcher, &self.inner.fields, request, deadline);
        let Ok(answer) = catch_unwind(AssertUnwindSafe(search)) else {
            self.suspect();
            return Err(Error::Worker { what: format!("the search for {:?}", request.text) });
        };
        let mut answer = answer.map_err(|refusal| self.refused(refusal, request))?;
        answer.took_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(answer)
    }

    /// Returns the index's figures. Blocks.
    pub fn stats(&self) -> IndexStats {
        let searcher = self.inner.reader.searcher();
        let files = fs::read_dir(&self.inner.dir).into_iter().flatten().flatten();
        let sizes = files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len());
        IndexStats {
            documents: searcher.num_docs(),
            segments: searcher.segment_readers().len() as u64,
            bytes: sizes.sum(),
        }
    }

    /// Opens what the last commit has brought, ahead of those who ask.
    fn warm(&self) {
        if let Err(source) = search::warm(&self.inner.reader.searcher(), &self.inner.fields) {
            tracing::debug!(error = %self.failed(source), "the index was not warmed");
        }
    }

    fn refused(&self, refusal: Refusal, request: &SearchRequest) -> Error {
        match refusal {
            Refusal::Query(error) => Error::Query(error),
            Refusal::Late => {
                let message = "the search took too long and was given up; ask for rarer words, or with \
                     fewer patterns (*, ~, /…/)";
                let len = request.text.len();
                Error::Query(QueryError { offset: 0, len, message: message.to_owned() })
            }
            Refusal::Engine(source) => self.failed(source),
        }
    }

    /// Names the index in an error of the engine. What damaged files say has the index built anew
    /// by the next [`apply`](Self::apply).
    fn failed(&self, source: TantivyError) -> Error {
        if is_corruption(&source) {
            self.handle_damage(&source.to_string());
        } else if is_suspicious(&source) {
            self.suspect();
        }
        Error::Index(Failure { dir: self.inner.dir.clone(), source })
    }

    /// Has the next [`apply`](Self::apply) build the index anew.
    fn handle_damage(&self, what: &str) {
        if self.inner.covered.send_replace(None).is_some() {
            let dir = self.inner.dir.display();
            tracing::warn!(%dir, what, "the index is damaged, to be built anew");
        }
    }
}

/// Locks what only holds values that are whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far the last commit reaches, and how far it has to get.
fn read_metas(engine: &tantivy::Index) -> tantivy::Result<(Option<Version>, u64)> {
    let said = engine.load_metas()?.payload.as_deref().and_then(read_payload);
    Ok(said.map_or((None, 0), |(version, goal)| (Some(version), goal)))
}

fn make_writer(engine: &tantivy::Index, options: IndexOptions) -> tantivy::Result<IndexWriter> {
    let threads = options.threads.max(1);
    let writer: IndexWriter = engine.writer_with_options(
        IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(options.heap_bytes / threads)
            .num_merge_threads(1)
            .build(),
    )?;
    // A new writer numbers its first operation like the last commit. A merge that begins before the next
    // one takes that operation for a part of the last, and may lose it: no delete may be the first.
    writer.run(Vec::<UserOperation>::new())?;
    writer.set_merge_policy(Box::new(Merging::default()));
    Ok(writer)
}

#[cfg(test)]
pub(crate) mod tests;
