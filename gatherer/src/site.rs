//! The shared state of a running gatherer: the collection, the state of each root, counters,
//! problems, and the published progress.

mod fingerprint;
pub(crate) mod plan;
mod repositories;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use ::crawl::frontier::Frontier;
use collection::{Batch, Change, Collection, Error, Note, Oid, Stamp, Version};
use essence::fingerprint::fingerprint_of;
use essence::worker;
use essence::worker::pool::Pool;
use essence::worker::program::Programs;
use net::clock;
use tokio::sync::watch;

use self::plan::{Plan, RemotePlan};
use self::repositories::Repositories;
use crate::annotating::AnnotationState;
use crate::crawls;
use crate::known::{KnownSet, Walk};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::note::{self, Brief, Published, RootNote};
use crate::problems::{self, Entry, Problems};
use crate::progress::{CrawlStatus, Phase, Progress, RootStatus};
use crate::spec::Root;
use crate::turns::Turns;

/// Name of the folder, in the gatherer's data folder, of what crawls have fetched and not committed yet.
const SPOOLS: &str = "spool";

/// Number of notes in a chunk when a root's notes are loaded.
const CHUNK_NOTES: usize = 1_024;
/// Maximum number of chunks that wait to be parsed.
const CHUNKS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct RootState {
    pub(crate) known: Mutex<KnownSet>,
    pub(crate) note: Mutex<RootNote>,
    /// Locked while a batch is committed, so that comparisons with the known set stay valid.
    pub(crate) commit: Mutex<()>,
    /// Locked while an order ends, so that only one order at a time changes the root's note.
    pub(crate) finish: Mutex<()>,
    /// The frontier of the crawl under way, or of the last one since the start.
    pub(crate) frontier: Mutex<Option<Arc<Mutex<Frontier>>>>,
}

/// Counts of the pass under way, or of the last one.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) seen: AtomicU64,
    pub(crate) expected: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) updated: AtomicU64,
    pub(crate) deleted: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    pub(crate) by_type: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    pub(crate) fn clear(&self) {
        let files = [&self.seen, &self.expected, &self.done, &self.unchanged];
        for count in files.into_iter().chain([&self.bytes, &self.updated, &self.deleted]) {
            count.store(0, Relaxed);
        }
        lock(&self.by_type).clear();
    }
}

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) id: String,
    pub(crate) collection: Collection,
    pub(crate) metrics: Metrics,
    pub(crate) problems: Mutex<Problems>,
    pub(crate) counts: Counts,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) passes: AtomicU64,
    pub(crate) repositories: Repositories,
    pub(crate) workers: Pool,
    /// Runner of the site's programs; `None` if this process cannot start them.
    pub(crate) programs: Option<Programs>,
    pub(crate) annotating: AnnotationState,
    /// Names of the hosts that an administrator has paused since the start.
    pub(crate) paused_hosts: Mutex<BTreeSet<String>>,
    /// Turns of all crawls at hosts.
    pub(crate) turns: Arc<Turns>,
    /// The file of the problems.
    problems_file: PathBuf,
    /// The folder of what crawls have fetched and not committed yet.
    spools: PathBuf,
    phase: Mutex<Phase>,
    walks: AtomicU32,
    /// Version at which a loss of records was found, if every root has been marked since then to be
    /// published again.
    pub(crate) distrusted: Mutex<Option<Version>>,
    /// Roots in the settings that have had no finished pass since the collection was opened.
    unfinished: Mutex<BTreeSet<String>>,
    root_states: Mutex<BTreeMap<String, Arc<RootState>>>,
}

impl Site {
    /// Returns the shared state of the gatherer `id` with this collection and these `roots`;
    /// `worker` is the command that starts its workers, and `bandwidth` the bytes a second of all crawls. Takes the problems that are stored in the folder
    /// `data`. Blocks.
    pub(crate) fn new(
        id: String,
        collection: Collection,
        (roots, data, bandwidth): (&[Root], &Path, Option<u64>),
        (worker, programs): (Option<worker::Program>, Option<Programs>),
    ) -> Self {
        let problems_file = data.join(problems::FILE);
        Self {
            id,
            collection,
            metrics: Metrics::default(),
            problems: Mutex::new(problems::read(&problems_file)),
            problems_file,
            spools: data.join(SPOOLS),
            counts: Counts::default(),
            progress: watch::Sender::new(Progress::default()),
            passes: AtomicU64::new(0),
            repositories: Repositories::default(),
            workers: Pool::new(worker, clock::monotonic),
            programs,
            annotating: AnnotationState::default(),
            paused_hosts: Mutex::default(),
            turns: Arc::new(Turns::new(bandwidth)),
            phase: Mutex::default(),
            walks: AtomicU32::new(0),
            distrusted: Mutex::default(),
            unfinished: Mutex::new(roots.iter().map(Root::url).collect()),
            root_states: Mutex::default(),
        }
    }

    /// Notes that a pass or harvest of a root has finished without a hold. After this has happened
    /// for all roots, the collection again has the records that the last stop may have lost.
    /// Blocks.
    pub(crate) fn handle_finished_root(&self, root: &str) -> Result<(), Error> {
        let is_all = {
            let mut unfinished = lock(&self.unfinished);
            unfinished.remove(root);
            unfinished.is_empty()
        };
        if is_all { self.collection.handle_caught_up() } else { Ok(()) }
    }

    /// If programs of the site are run, starts a worker: only workers report which fences the
    /// system lacks, and objects may need none. Blocks.
    pub(crate) fn probe_fences(&self, plans: &[Plan]) {
        let summarizing =
            plan::summarized(plans).map(|it| &it.summarizing).find(|it| it.runs_programs());
        if let Some(summarizing) = summarizing {
            self.workers.probe(&summarizing.essence, summarizing.settings);
        }
    }

    /// Counts committed changes of records.
    pub(crate) fn count_changes(&self, updated: u64, deleted: u64) {
        self.metrics.updated.fetch_add(updated, Relaxed);
        self.metrics.deleted.fetch_add(deleted, Relaxed);
        self.counts.updated.fetch_add(updated, Relaxed);
        self.counts.deleted.fetch_add(deleted, Relaxed);
    }

    /// Returns the folder of what the crawl of a root has fetched and not committed yet.
    pub(crate) fn spool_folder(&self, root: &str) -> PathBuf {
        self.spools.join(format!("{:016x}", fingerprint_of(&[root.as_bytes()])))
    }

    pub(crate) fn next_walk(&self) -> Walk {
        self.walks.fetch_add(1, Relaxed) + 1
    }

    /// Returns the state of a root; the first time, it is read from the root's notes. Blocks.
    pub(crate) fn root_state(&self, url: &str) -> Result<Arc<RootState>, Error> {
        if let Some(root_state) = lock(&self.root_states).get(url) {
            return Ok(root_state.clone());
        }
        let stored = self.collection.note(&note::root_key(url))?;
        let root: Option<RootNote> = stored.as_deref().and_then(note::from_bytes);
        let known = self.known(url)?;
        if root.is_none() {
            // So the root is known even if its first pass never finishes.
            self.remember_root(url, &RootNote::default())?;
        }
        let root = root.unwrap_or_default();
        let root_state = Arc::new(RootState {
            known: Mutex::new(known),
            note: Mutex::new(root),
            ..RootState::default()
        });
        lock(&self.root_states).insert(url.to_owned(), root_state.clone());
        Ok(root_state)
    }

    /// Reads the notes of a root's objects. One thread reads them and another parses them, since a
    /// gatherer of many objects waits for this at its start.
    fn known(&self, url: &str) -> Result<KnownSet, Error> {
        let mut known = KnownSet::default();
        let (sender, chunks) = sync_channel(CHUNKS_MAX);
        let mut notes = self.collection.notes(&note::objects_prefix(url)).fuse();
        let read = move || -> Result<(), Error> {
            loop {
                let chunk = notes.by_ref().take(CHUNK_NOTES).collect::<Result<Vec<_>, _>>()?;
                if chunk.is_empty() || sender.send(chunk).is_err() {
                    return Ok(());
                }
            }
        };
        thread::scope(|scope| {
            let reader = scope.spawn(read);
            for (key, value) in chunks.iter().flatten() {
                let object = note::url_of(url, &key);
                if let (Some(object), Some(brief)) = (object, Brief::of(&value)) {
                    known.learn(&object, brief.sure_validator(), brief.basis_fingerprint(), 0);
                }
            }
            reader.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault))
        })?;
        Ok(known)
    }

    pub(crate) fn forget_root_state(&self, url: &str) {
        lock(&self.root_states).remove(url);
    }

    /// Commits only a root's note. Blocks.
    pub(crate) fn remember_root(&self, url: &str, note: &RootNote) -> Result<(), Error> {
        commit_note(&self.collection, note::root_key(url), Some(note::to_bytes(note)))
    }

    /// Adds to `batch` that `root` lets go of the object at `url` and of its records. Those that another root has
    /// published since stay, and a root that has the object, too, reads it anew in its next pass. Blocks.
    pub(crate) fn let_go(
        &self,
        root: &str,
        url: &str,
        records: &[Published],
        batch: &mut Batch,
    ) -> Result<(), Error> {
        let others: Vec<(String, Arc<RootState>)> = {
            let all = lock(&self.root_states);
            let others = all.iter().filter(|it| it.0 != root);
            others.map(|(url, state)| (url.clone(), state.clone())).collect()
        };
        let mut claims = Vec::new();
        for (other, state) in others {
            let key = note::object_key(&other, url);
            if self.collection.note(&key)?.is_some() {
                claims.push((key, state));
            }
        }
        let mut is_lost = false;
        for record in records {
            let oid = Oid::new(&self.id, &record.url);
            let is_others = !claims.is_empty()
                && self.collection.get(&oid)?.is_some_and(|it| {
                    it.record.text(collection::GATHERER_ROOT).is_some_and(|it| it != root)
                });
            is_lost |= !is_others;
            batch.changes.extend((!is_others).then_some(Change::Delete(oid)));
        }
        for (key, state) in claims.into_iter().filter(|_| is_lost) {
            batch.notes.push(Note { key, value: None });
            lock(&state.known).forget(url, self.next_walk());
        }
        Ok(())
    }

    /// Returns the URLs of the roots that have been read from the collection, in order.
    pub(crate) fn loaded_roots(&self) -> Vec<String> {
        lock(&self.root_states).keys().cloned().collect()
    }

    /// Returns the frontiers of all crawls since the start.
    pub(crate) fn frontiers(&self) -> Vec<Arc<Mutex<Frontier>>> {
        lock(&self.root_states).values().filter_map(|it| lock(&it.frontier).clone()).collect()
    }

    /// Returns the state of the crawl of each root that has had one since the start.
    pub(crate) fn crawls(&self) -> Vec<CrawlStatus> {
        let root_states: Vec<Arc<RootState>> = lock(&self.root_states).values().cloned().collect();
        root_states.iter().filter_map(|it| crawls::status(it)).collect()
    }

    /// Notes that no walk is under way.
    pub(crate) fn handle_quiet(&self) {
        for root_state in lock(&self.root_states).values() {
            lock(&root_state.known).handle_quiet();
        }
    }

    /// Returns the URLs of all roots in the collection, in order. Blocks.
    pub(crate) fn known_roots(&self) -> Result<Vec<String>, Error> {
        let mut urls = Vec::new();
        for entry in self.collection.notes(note::ROOT.as_bytes()) {
            urls.extend(note::root_of(&entry?.0));
        }
        Ok(urls)
    }

    pub(crate) fn problem(&self, object: String, kind: &str, message: String) {
        lock(&self.problems).push(entry(object, kind, message), None);
    }

    /// Puts a problem found by `walk` on the list, where it stays until a later walk visits the
    /// same URL.
    pub(crate) fn problem_from_walk(
        &self,
        walk: Walk,
        object: String,
        kind: &str,
        message: String,
    ) {
        lock(&self.problems).push(entry(object, kind, message), Some(walk));
    }

    /// Ends a pass or harvest of a root: counts it, and stores the problems. Blocks.
    pub(crate) fn end_pass(&self) {
        self.metrics.passes.fetch_add(1, Relaxed);
        self.store_problems();
    }

    /// Stores the problems for the next start. Blocks.
    pub(crate) fn store_problems(&self) {
        let stored = lock(&self.problems).to_store();
        if let Err(error) = problems::write(&stored, &self.problems_file) {
            tracing::warn!(file = %self.problems_file.display(), %error, "the problems are not stored");
        }
    }

    /// Removes the problems of the object at `url`, which is published as `public`: the object was
    /// gathered anew, or is gone.
    pub(crate) fn resolve(&self, url: &str, public: &str) {
        let mut problems = lock(&self.problems);
        problems.resolve(url);
        if public != url {
            problems.resolve(public);
        }
    }

    /// Sets the phase, and publishes it.
    pub(crate) fn enter(&self, phase: Phase) {
        *lock(&self.phase) = phase;
        self.publish();
    }

    /// Publishes the progress if it has changed.
    pub(crate) fn publish(&self) {
        let now = self.count();
        self.progress.send_if_modified(|seen| {
            let news = *seen != now;
            *seen = now;
            news
        });
    }

    fn count(&self) -> Progress {
        let phase = *lock(&self.phase);
        let counts = &self.counts;
        Progress {
            phase,
            passes_done: self.passes.load(Relaxed),
            files_seen: counts.seen.load(Relaxed),
            files_expected: counts.expected.load(Relaxed),
            files_done: counts.done.load(Relaxed),
            bytes: counts.bytes.load(Relaxed),
            by_type: lock(&counts.by_type).clone(),
            problems: lock(&self.problems).total(),
            updated: counts.updated.load(Relaxed),
            deleted: counts.deleted.load(Relaxed),
            unchanged: counts.unchanged.load(Relaxed),
            harvests_due: self.repositories.due.load(Relaxed),
        }
    }

    /// Returns the status of all roots: those of the plans in their order, then remaining roots
    /// without a plan.
    pub(crate) fn roots(&self, plans: &[Plan]) -> Vec<RootStatus> {
        let planned = plans.iter().map(|plan| match plan {
            Plan::Tree(plan) => self.tree(&plan.root.url),
            Plan::Remote(plan) => match plan {
                RemotePlan::Web(plan) => self.tree(plan.web.url()),
                RemotePlan::Repository(plan) => self.repository(plan.repository.url()),
            },
        });
        let is_left = |url: &String| plans.iter().all(|plan| plan.url() != url);
        let trees: Vec<String> = lock(&self.root_states).keys().cloned().collect();
        let trees = trees.into_iter().filter(is_left).map(|url| self.tree(&url));
        let repositories = self.repositories.known().into_iter().filter(is_left);
        let repositories = repositories.map(|url| self.repository(&url));
        planned.chain(trees).chain(repositories).collect()
    }

    fn tree(&self, url: &str) -> RootStatus {
        let root_state = lock(&self.root_states).get(url).cloned().unwrap_or_default();
        let note = lock(&root_state.note).clone();
        RootStatus {
            url: url.to_owned(),
            files: lock(&root_state.known).len(),
            confirmed: note.confirmed.map(|ms| ms / 1_000),
            hold: note.hold,
            held: note.held,
            crawl: crawls::status(&root_state),
            harvest: None,
        }
    }

    fn repository(&self, url: &str) -> RootStatus {
        let note = self.repositories.note(url);
        RootStatus {
            url: url.to_owned(),
            files: self.count_records_of(url).unwrap_or_default(),
            confirmed: note.confirmed.map(|ms| ms / 1_000),
            hold: note.hold,
            held: note.held,
            crawl: None,
            harvest: self.repositories.activity(url),
        }
    }

    /// Returns the number of live records of a repository.
    pub(crate) fn count_records_of(&self, url: &str) -> Result<u64, Error> {
        let sources = self.collection.sources()?;
        Ok(sources.into_iter().find(|it| it.source == url).map_or(0, |it| it.objects))
    }
}

fn entry(object: String, kind: &str, message: String) -> Entry {
    tracing::debug!(object, kind, message, "problem");
    Entry { object, kind: kind.to_owned(), message, at: clock::now_ms() / 1_000 }
}

/// Commits one note alone; without a value, deletes it. Blocks.
pub(crate) fn commit_note(
    collection: &Collection,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
) -> Result<(), Error> {
    let batch = Batch { changes: Vec::new(), notes: vec![Note { key, value }] };
    collection.commit(batch, Stamp(clock::now_ms())).map(drop)
}
