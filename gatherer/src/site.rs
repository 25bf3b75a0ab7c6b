//! What all parts of a running gatherer share: the collection, what is known of each root, counters,
//! problems, and the progress that others watch.

mod annotations;
mod fingerprint;
pub(crate) mod plan;
mod repositories;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use collection::{Batch, Collection, Note, Stamp, Version};
use essence::worker;
use essence::worker::pool::Pool;
use essence::worker::program::Programs;
use net::clock;
use tokio::sync::watch;

use self::annotations::Annotating;
use self::plan::Plan;
use self::repositories::Repositories;
use crate::known::{Known, Walk};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::note::{self, Brief, RootNote};
use crate::problems::{Entry, Problems};
use crate::progress::{Phase, Progress, RootStatus};
use crate::spec::Root;

/// Notes that are read at once when a root's are loaded, and how often that before they are looked at.
const CHUNK_NOTES: usize = 1_024;
const CHUNKS_MAX: usize = 16;

/// What is known of a root.
#[derive(Debug, Default)]
pub(crate) struct Tract {
    pub(crate) known: Mutex<Known>,
    pub(crate) note: Mutex<RootNote>,
    /// Held while a batch is committed: what is compared with what is known stays true until then.
    pub(crate) commit: Mutex<()>,
    /// Held while an order ends: one at a time changes the root's note.
    pub(crate) finish: Mutex<()>,
}

/// Counts of the pass under way, or of the last one.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) seen: AtomicU64,
    pub(crate) done: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) updated: AtomicU64,
    pub(crate) deleted: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    pub(crate) by_type: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    /// Starts again from nothing.
    pub(crate) fn clear(&self) {
        let all =
            [&self.seen, &self.done, &self.bytes, &self.updated, &self.deleted, &self.unchanged];
        for count in all {
            count.store(0, Relaxed);
        }
        lock(&self.by_type).clear();
    }
}

/// What all parts of a running gatherer share.
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
    /// Where objects are summarized.
    pub(crate) workers: Pool,
    /// What runs the site's programs; `None` where this program does not know how to start them.
    pub(crate) programs: Option<Programs>,
    pub(crate) annotating: Annotating,
    phase: Mutex<Phase>,
    walks: AtomicU32,
    /// The loss for which every root is published again: the epoch that began with it.
    pub(crate) distrusted: Mutex<Option<Version>>,
    /// The roots of the settings that were not gone through to their end since the collection was opened.
    unseen: Mutex<BTreeSet<String>>,
    /// By root URL.
    tracts: Mutex<BTreeMap<String, Arc<Tract>>>,
}

impl Site {
    /// Returns the shared state of the gatherer `id` with this collection, which gathers those `roots`, and whose
    /// workers are started so.
    pub(crate) fn new(
        id: String,
        collection: Collection,
        roots: &[Root],
        (worker, programs): (Option<worker::Program>, Option<Programs>),
    ) -> Self {
        Self {
            id,
            collection,
            metrics: Metrics::default(),
            problems: Mutex::default(),
            counts: Counts::default(),
            progress: watch::Sender::new(Progress::default()),
            passes: AtomicU64::new(0),
            repositories: Repositories::default(),
            workers: Pool::new(worker, clock::monotonic),
            programs,
            annotating: Annotating::default(),
            phase: Mutex::default(),
            walks: AtomicU32::new(0),
            distrusted: Mutex::default(),
            unseen: Mutex::new(roots.iter().map(Root::url).collect()),
            tracts: Mutex::default(),
        }
    }

    /// Takes in that a root was gone through to its end, and nothing of it is held. Once all were, what the last stop
    /// may have lost is there again. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) fn handle_seen(&self, root: &str) -> Result<(), collection::Error> {
        let is_all = {
            let mut unseen = lock(&self.unseen);
            unseen.remove(root);
            unseen.is_empty()
        };
        if is_all { self.collection.handle_caught_up() } else { Ok(()) }
    }

    /// Sees which fences there are where programs of the site are run: workers may never be needed.
    /// Blocks.
    pub(crate) fn probe_fences(&self, plans: &[Plan]) {
        let making = plan::trees(plans).map(|it| &it.making).find(|it| it.runs_programs());
        if let Some(making) = making {
            self.workers.probe(&making.essence, making.settings);
        }
    }

    /// Returns the number of the next walk.
    pub(crate) fn next_walk(&self) -> Walk {
        self.walks.fetch_add(1, Relaxed) + 1
    }

    /// Returns what is known of a root, read from its notes the first time. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read or written.
    pub(crate) fn tract(&self, url: &str) -> Result<Arc<Tract>, collection::Error> {
        if let Some(tract) = lock(&self.tracts).get(url) {
            return Ok(tract.clone());
        }
        let stored = self.collection.note(&note::root_key(url))?;
        let root: Option<RootNote> = stored.as_deref().and_then(note::from_bytes);
        let known = self.known(url)?;
        if root.is_none() {
            // So that the root is known by name should its first pass never finish.
            self.remember_root(url, &RootNote::default())?;
        }
        let root = root.unwrap_or_default();
        let tract = Arc::new(Tract {
            known: Mutex::new(known),
            note: Mutex::new(root),
            ..Tract::default()
        });
        lock(&self.tracts).insert(url.to_owned(), tract.clone());
        Ok(tract)
    }

    /// Reads what the notes of a root's objects say: one thread reads them, another makes sense of them,
    /// since a new gatherer of many objects waits for this.
    fn known(&self, url: &str) -> Result<Known, collection::Error> {
        let mut known = Known::default();
        let (sender, chunks) = sync_channel(CHUNKS_MAX);
        let mut notes = self.collection.notes(&note::objects_prefix(url)).fuse();
        let read = move || -> Result<(), collection::Error> {
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
                    known.learn(&object, brief.known_by(), brief.print(), 0);
                }
            }
            reader.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault))
        })?;
        Ok(known)
    }

    /// Forgets a root that was removed.
    pub(crate) fn forget_tract(&self, url: &str) {
        lock(&self.tracts).remove(url);
    }

    /// Commits a root's note alone. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be written.
    pub(crate) fn remember_root(
        &self,
        url: &str,
        note: &RootNote,
    ) -> Result<(), collection::Error> {
        let batch = Batch { changes: Vec::new(), notes: vec![root_note(url, note)] };
        self.collection.commit(batch, Stamp(clock::now_ms())).map(|_version| ())
    }

    /// Notes that no walk is under way.
    pub(crate) fn handle_quiet(&self) {
        for tract in lock(&self.tracts).values() {
            lock(&tract.known).handle_quiet();
        }
    }

    /// Returns the URLs of all roots that the collection knows, by URL. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub(crate) fn known_roots(&self) -> Result<Vec<String>, collection::Error> {
        let mut urls = Vec::new();
        for entry in self.collection.notes(&note::roots_prefix()) {
            urls.extend(note::root_of(&entry?.0));
        }
        Ok(urls)
    }

    /// Puts a problem on the list.
    pub(crate) fn problem(&self, object: String, kind: &str, message: String) {
        lock(&self.problems).push(entry(object, kind, message));
    }

    /// Puts a problem of an object on the list that `walk` has met, until a later one does not.
    pub(crate) fn problem_met(&self, walk: Walk, object: String, kind: &str, message: String) {
        lock(&self.problems).push_met(entry(object, kind, message), walk);
    }

    /// Takes the problems of the object at `url`, which is published as `public`, off the list: it is
    /// gathered anew, or gone.
    pub(crate) fn resolve(&self, url: &str, public: &str) {
        let mut problems = lock(&self.problems);
        problems.resolve(url);
        if public != url {
            problems.resolve(public);
        }
    }

    /// Says what the gatherer does now, and tells those who watch.
    pub(crate) fn enter(&self, phase: Phase) {
        *lock(&self.phase) = phase;
        self.publish();
    }

    /// Tells those who watch how far the gatherer is, if there is news.
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
            files_done: counts.done.load(Relaxed),
            bytes: counts.bytes.load(Relaxed),
            by_type: lock(&counts.by_type).clone(),
            problems: lock(&self.problems).total(),
            updated: counts.updated.load(Relaxed),
            deleted: counts.deleted.load(Relaxed),
            unchanged: counts.unchanged.load(Relaxed),
            harvests_due: self.repositories.due(),
        }
    }

    /// Returns the status of all roots: those of the plans in their order, then what is left of others.
    pub(crate) fn roots(&self, plans: &[Plan]) -> Vec<RootStatus> {
        let planned = plans.iter().map(|plan| match plan {
            Plan::Tree(plan) => self.tree(&plan.url),
            Plan::Repository(plan) => self.repository(plan.repository.url()),
        });
        let is_left = |url: &String| plans.iter().all(|plan| plan.url() != url);
        let trees: Vec<String> = lock(&self.tracts).keys().cloned().collect();
        let trees = trees.into_iter().filter(is_left).map(|url| self.tree(&url));
        let repositories = self.repositories.known().into_iter().filter(is_left);
        let repositories = repositories.map(|url| self.repository(&url));
        planned.chain(trees).chain(repositories).collect()
    }

    fn tree(&self, url: &str) -> RootStatus {
        let tract = lock(&self.tracts).get(url).cloned().unwrap_or_default();
        let note = lock(&tract.note).clone();
        RootStatus {
            url: url.to_owned(),
            files: lock(&tract.known).len(),
            confirmed: note.confirmed.map(|ms| ms / 1_000),
            hold: note.hold,
            held: note.held,
        }
    }

    fn repository(&self, url: &str) -> RootStatus {
        let note = self.repositories.note(url);
        RootStatus {
            url: url.to_owned(),
            files: self.held_of(url).unwrap_or_default(),
            confirmed: note.confirmed.map(|ms| ms / 1_000),
            hold: note.hold,
            held: note.held,
        }
    }

    /// Returns how many objects a repository has brought that live.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub(crate) fn held_of(&self, url: &str) -> Result<u64, collection::Error> {
        let sources = self.collection.sources()?;
        Ok(sources.into_iter().find(|it| it.source == url).map_or(0, |it| it.objects))
    }
}

fn entry(object: String, kind: &str, message: String) -> Entry {
    tracing::debug!(object, kind, message, "problem");
    Entry { object, kind: kind.to_owned(), message, at: clock::now_ms() / 1_000 }
}

/// Returns a root's note as a collection takes it.
pub(crate) fn root_note(url: &str, root: &RootNote) -> Note {
    Note { key: note::root_key(url), value: Some(note::to_bytes(root)) }
}
