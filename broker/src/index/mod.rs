//! The full-text index: a cursor on the collection that answers queries.
//!
//! The index can be built from the collection at any time and holds nothing else. Each commit of
//! the index has the version of the collection that it covers. If the collection has another epoch,
//! or ends before the covered serial, the index is built anew, so the two cannot disagree.
//!
//! The engine merges small segments in the background (merging.rs).

mod compile;
mod content;
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
mod rerank;
mod schema;
mod search;
mod shown;
mod standing;
mod suggest;
mod tally;
mod telling;
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
use tantivy::indexer::{IndexWriterOptions, UserOperation};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyError};
use tokio::sync::watch;

use crate::answer::{Answer, SEARCH_CPU_MAX, SearchRequest};
use crate::error::Error;
use deadline::Deadline;
use fault::{is_corruption, is_damage, is_lock_of_disk, is_suspicious};
use merging::Merging;
use schema::Fields;
use search::Refusal;
use writer::{Applier, Chunk, Current, Written, read_payload};

pub use fault::Failure;
pub(crate) use folder::Storage;
pub use rank::{Factors, FieldWeight, Ranking};
pub(crate) use telling::feedback;

/// Options of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// Memory of the writer, in bytes, for all its threads together; it does not depend on the size
    /// of the index. At least 15 MB for each thread.
    pub heap_bytes: usize,
    /// Number of threads that index; at least 1.
    pub threads: usize,
    /// Maximum number of objects in one commit.
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
    store: Storage,
    options: IndexOptions,
    engine: tantivy::Index,
    fields: Fields,
    ranking: Mutex<Ranking>,
    reader: IndexReader,
    /// `None` after a failure, until the next apply makes a new one.
    writer: Mutex<Option<IndexWriter>>,
    covered: watch::Sender<Option<Version>>,
    /// Newest serial at the start of the last rebuild: below it, the index is incomplete.
    goal: AtomicU64,
    /// Whether the index is closed: no changes are indexed any more.
    closed: AtomicBool,
    /// Whether the files must be verified.
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
    /// An index of an older layout or with damage is dropped, and the next [`apply`](Self::apply)
    /// builds it from the collection. Blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or another process has the index open.
    pub fn open(dir: &Path, options: IndexOptions) -> Result<Self, Error> {
        Self::open_at(dir, options, Storage::Folder)
    }

    /// Opens the index in `store`, as [`open`](Self::open) does; `dir` names it in messages.
    pub(crate) fn open_at(
        dir: &Path,
        options: IndexOptions,
        store: Storage,
    ) -> Result<Self, Error> {
        let failed = |source| Failure { dir: dir.to_owned(), source };
        match Self::open_as_is(dir, options, store.clone()) {
            Err(error) if is_damage(&error) => {
                tracing::warn!(dir = %dir.display(), %error, "index dropped, to be built anew");
                store.clear(dir).map_err(|source| Error::Io { path: dir.to_owned(), source })?;
                Ok(Self::open_as_is(dir, options, store).map_err(failed)?)
            }
            other => Ok(other.map_err(failed)?),
        }
    }

    fn open_as_is(dir: &Path, options: IndexOptions, store: Storage) -> tantivy::Result<Self> {
        fs::create_dir_all(dir)?;
        let (schema, fields) = schema::build();
        let engine = tantivy::Index::builder().schema(schema).open_or_create(store.open(dir)?)?;
        words::register(engine.tokenizers());
        let writer = match make_writer(&engine, options) {
            // Searches work without a writer; the next apply tries again and reports a failure.
            Err(error) if is_lock_of_disk(&error) => None,
            writer => Some(writer?),
        };
        let reader = engine.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let (covered, goal) = read_metas(&engine)?;
        let inner = Inner {
            // An empty index needs no verification.
            suspect: AtomicBool::new(!verify::take_mark(dir) && covered.is_some()),
            dir: dir.to_owned(),
            store,
            options,
            engine,
            fields,
            ranking: Mutex::default(),
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

    /// Returns the version that the index covers; `None` when it must be built anew.
    pub fn covered(&self) -> Option<Version> {
        *self.inner.covered.borrow()
    }

    /// While the index is built anew for a collection at `version`, so that answers are incomplete,
    /// returns the covered serial and the serial to reach. Otherwise returns `None`.
    pub fn unfinished(&self, version: Version) -> Option<(u64, u64)> {
        let goal = self.inner.goal.load(Ordering::Acquire);
        match self.covered() {
            Some(it) if it.epoch == version.epoch => {
                (it.serial < goal).then_some((it.serial, goal))
            }
            _ => Some((0, version.serial)),
        }
    }

    /// Returns a receiver that is notified of every change of [`covered`](Self::covered).
    pub fn watch(&self) -> watch::Receiver<Option<Version>> {
        self.inner.covered.subscribe()
    }

    /// Makes the next [`apply`](Self::apply) build the index anew if `goes_on` returns false for
    /// the covered version: the collection does not continue that version, after a restore from a
    /// copy or a loss of the log's end.
    pub fn hold_to(&self, goes_on: impl Fn(Version) -> bool) {
        self.inner.covered.send_if_modified(|covered| {
            let beyond = covered.is_some_and(|it| !goes_on(it));
            if beyond {
                *covered = None;
            }
            beyond
        });
    }

    /// Indexes the collection's changes up to its present version, so that searches find them, and
    /// returns the version covered. Blocks.
    ///
    /// Stops early, well under a second after `cancelled` returns true or the index is closed. The
    /// next call repeats the uncommitted rest.
    ///
    /// # Errors
    ///
    /// [`Error::Collection`] when the log cannot be read, [`Error::Index`] when the index cannot be
    /// written (usually because the disk is full). The index is at its last commit; call again.
    pub fn apply(
        &self,
        collection: &Collection,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Version, Error> {
        let target = collection.version();
        let get = |oid: &Oid| match collection.get(oid) {
            Ok(stored) => stored.map(|it| (it.record, it.serial)),
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

    /// Indexes any log, as [`apply`](Self::apply) does. `scan` returns the changes after a serial,
    /// `get` a live object. The log may lack deletes up to the serial `horizon`.
    fn apply_log<Scan: Iterator<Item = Result<Scanned, Error>>>(
        &self,
        (horizon, target): (u64, Version),
        scan: &dyn Fn(u64) -> Result<Scan, Error>,
        get: &dyn Fn(&Oid) -> Option<Current>,
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
        // Unless all is committed, the writer is dropped: its additions must not enter the next
        // commit.
        let (version, written) = self.run(&mut writer, covered, target, scan, get, cancelled)?;
        if written == Written::Committed {
            *slot = Some(writer);
        }
        Ok(version)
    }

    /// Makes a writer after a failure, and reads the covered version from the disk, which may have
    /// the failed commit nevertheless.
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
        get: &dyn Fn(&Oid) -> Option<Current>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(Version, Written), Error> {
        let mut expected = self.covered();
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
            // Changes with nothing to index need no commit: they are read again after a restart.
            let is_unchanged = self.inner.covered.send_if_modified(|covered| {
                let same = *covered == expected;
                if same {
                    *covered = Some(at);
                }
                same
            });
            if !is_unchanged {
                // Damage was found meanwhile, so this commit is based on damaged files.
                return Ok((before, Written::Cancelled));
            }
            expected = Some(at);
            if ends || cancelled() {
                return Ok((at, Written::Committed));
            }
        }
    }

    /// Closes the folder for all clones, so that it can be opened again. Waits for a running
    /// commit; uncommitted changes are dropped. Searches go on, from the last commit. Blocks.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        let mut slot = locked(&self.inner.writer);
        let whole = slot.take().is_some() && !self.is_suspect();
        if whole && matches!(self.inner.store, Storage::Folder) {
            verify::leave_mark(&self.inner.dir);
        }
    }

    /// Answers a search, which may use the processor for [`SEARCH_CPU_MAX`]. Blocks: call it from
    /// `spawn_blocking`.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the request has a mistake, [`Error::Late`] when it needs more time,
    /// [`Error::Index`] when the index fails.
    pub fn search(&self, request: &SearchRequest) -> Result<Answer, Error> {
        self.search_within(request, SEARCH_CPU_MAX)
    }

    /// Answers a search, as [`search`](Self::search) does, that may use the processor for `cpu`.
    pub(crate) fn search_within(
        &self,
        request: &SearchRequest,
        cpu: Duration,
    ) -> Result<Answer, Error> {
        let start = net::clock::monotonic();
        let searcher = self.inner.reader.searcher();
        // The engine may panic on damaged files.
        let deadline = Deadline::after(cpu);
        let now = i64::try_from(net::clock::now_ms() / 1_000).unwrap_or(i64::MAX);
        let fields = self.weighed();
        let search = || search::search(&searcher, &fields, request, (now, deadline));
        let Ok(answer) = catch_unwind(AssertUnwindSafe(search)) else {
            self.suspect();
            return Err(Error::Worker { what: format!("the search for {:?}", request.text) });
        };
        let mut answer = answer.map_err(|refusal| self.refused(refusal))?;
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

    /// Opens the new files of the last commit, so that the next search need not.
    fn warm(&self) {
        if let Err(source) = search::warm(&self.inner.reader.searcher(), &self.inner.fields) {
            tracing::debug!(error = %self.failed(source), "the index was not warmed");
        }
    }

    fn refused(&self, refusal: Refusal) -> Error {
        match refusal {
            Refusal::Query(error) => Error::Query(error),
            Refusal::Late => Error::Late,
            Refusal::Engine(source) => self.failed(source),
        }
    }

    /// Adds the index's folder to an error of the engine. After an error about damaged files, the
    /// next [`apply`](Self::apply) builds the index anew.
    fn failed(&self, source: TantivyError) -> Error {
        if is_corruption(&source) {
            self.handle_damage(&source.to_string());
        } else if is_suspicious(&source) {
            self.suspect();
        }
        Error::Index(Failure { dir: self.inner.dir.clone(), source })
    }

    /// Makes the next [`apply`](Self::apply) build the index anew.
    fn handle_damage(&self, what: &str) {
        if self.inner.covered.send_replace(None).is_some() {
            let dir = self.inner.dir.display();
            tracing::warn!(%dir, what, "the index is damaged and will be built anew");
        }
    }
}

/// Locks a mutex whose value is valid at any time, even after a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the version of the last commit, and the serial that its rebuild must reach.
fn read_metas(engine: &tantivy::Index) -> tantivy::Result<(Option<Version>, u64)> {
    let read = engine.load_metas()?.payload.as_deref().and_then(read_payload);
    Ok(read.map_or((None, 0), |(version, goal)| (Some(version), goal)))
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
    // A new writer gives its first operation the number of the last commit. A merge that begins
    // before the next commit then treats that operation as a part of the last commit and may lose
    // it. So the first operation must not be a delete.
    writer.run(Vec::<UserOperation>::new())?;
    writer.set_merge_policy(Box::new(Merging::default()));
    Ok(writer)
}

#[cfg(test)]
pub(crate) mod tests;
