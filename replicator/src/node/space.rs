//! What a member does on disk for one namespace: one thing at a time, off the thread that decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::tree::error::Error;
use crate::tree::fetch::Fetch;
use crate::tree::levels::Wanted;
use crate::tree::store::Store;
use crate::version::{Hash, Number, Version};

/// Most chunks that are said to be wanted of one namespace at once.
const WANTED_MAX: usize = 2_048;

/// The disk's side of a namespace.
#[derive(Debug)]
pub(crate) struct Space {
    store: Arc<Store>,
    /// What is being fetched; none while a job has it.
    fetch: Option<Fetch>,
    fetching: Option<Number>,
    /// Chunks that came and are not on disk yet.
    fresh: BTreeMap<Hash, Bytes>,
    queue: Vec<Hash>,
    /// What is said to be wanted and has not come.
    open: BTreeSet<Hash>,
    said: usize,
    is_asking: bool,
    is_switching: bool,
    is_busy: bool,
    publishing: Option<Publishing>,
}

/// Something of a publisher's that a space does in its turn.
pub(crate) type Publishing = Box<dyn FnOnce(Arc<Store>) + Send>;

/// What is to be done on disk. Blocks.
pub(crate) enum Job {
    /// Keep these, then say what is wanted.
    Work { store: Arc<Store>, fetch: Option<Fetch>, puts: Vec<(Hash, Bytes)>, is_asking: bool },
    /// Have readers see what was fetched.
    Switch { fetch: Fetch },
    /// What a publisher does.
    Publish { store: Arc<Store>, work: Publishing },
}

/// What came of a job.
pub(crate) enum Outcome {
    /// Of [`Job::Work`].
    Worked {
        fetch: Option<Fetch>,
        put: Vec<Hash>,
        failed: Option<Error>,
        wanted: Option<Result<Vec<Wanted>, Error>>,
    },
    /// Of [`Job::Switch`]: whether readers see it; if not, something is missing after all.
    Switched { number: Number, outcome: Result<bool, Error>, fetch: Fetch },
    /// Of [`Job::Publish`].
    Published,
}

impl Job {
    /// Does it.
    pub(crate) fn run(self) -> Outcome {
        match self {
            Self::Work { store, mut fetch, puts, is_asking } => {
                let mut failed = None;
                let mut put = Vec::new();
                for (hash, bytes) in puts {
                    put.push(hash);
                    if failed.is_none() {
                        failed = store.put(&hash, &bytes).err();
                    }
                }
                let asked = fetch.as_mut().filter(|_| is_asking && failed.is_none());
                let wanted = asked.map(|it| it.wanted(WANTED_MAX));
                Outcome::Worked { fetch, put, failed, wanted }
            }
            Self::Switch { mut fetch } => {
                let number = fetch.version().number;
                let outcome = fetch.switch().map(|it| it.is_some());
                Outcome::Switched { number, outcome, fetch }
            }
            Self::Publish { store, work } => {
                work(store);
                Outcome::Published
            }
        }
    }
}

/// What the member has to know after a job.
#[derive(Debug)]
pub(crate) enum Said {
    /// These are wanted, and perhaps more after them.
    Wanted { number: Number, chunks: Vec<(Hash, u32)>, is_all: bool },
    /// All is there.
    Whole(Number),
    /// Readers see it.
    Switched(Number),
    /// It cannot be had.
    Failed(Number, Error),
}

impl Space {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            fetch: None,
            fetching: None,
            fresh: BTreeMap::new(),
            queue: Vec::new(),
            open: BTreeSet::new(),
            said: 0,
            is_asking: false,
            is_switching: false,
            is_busy: false,
            publishing: None,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// A chunk that is not on disk yet.
    pub(crate) fn fresh(&self, hash: &Hash) -> Option<&Bytes> {
        self.fresh.get(hash)
    }

    pub(crate) fn fresh_bytes(&self) -> usize {
        self.fresh.values().map(Bytes::len).sum()
    }

    /// Begins to fetch a version.
    pub(crate) fn begin(&mut self, version: &Version) {
        self.fetching = Some(version.number);
        self.fetch = Some(Fetch::new(self.store.clone(), version.clone()));
        self.open.clear();
        (self.is_asking, self.is_switching) = (true, false);
    }

    /// Stops fetching; what has come is kept for a version to come.
    pub(crate) fn stop(&mut self) {
        (self.fetching, self.fetch) = (None, None);
        self.open.clear();
        (self.is_asking, self.is_switching) = (false, false);
    }

    /// Takes in a chunk.
    pub(crate) fn keep(&mut self, hash: Hash, bytes: Bytes) {
        self.open.remove(&hash);
        self.is_asking |= self.fetching.is_some() && self.open.len() <= self.said / 2;
        if self.fresh.insert(hash, bytes).is_none() {
            self.queue.push(hash);
        }
    }

    /// Looks again what is wanted, if nothing is on its way.
    pub(crate) fn look(&mut self) {
        self.is_asking |= self.fetching.is_some() && !self.is_switching;
    }

    pub(crate) fn switch(&mut self) {
        self.is_switching = true;
    }

    /// Has a publisher's work done next; whether there was none in its place.
    pub(crate) fn publish(&mut self, work: Publishing) -> bool {
        let is_free = self.publishing.is_none();
        if is_free {
            self.publishing = Some(work);
        }
        is_free
    }

    /// What is to be done next, if anything can be.
    pub(crate) fn next_job(&mut self) -> Option<Job> {
        if self.is_busy {
            return None;
        }
        let store = self.store.clone();
        let job = if let Some(work) = self.publishing.take() {
            Job::Publish { store, work }
        } else if self.is_switching && self.queue.is_empty() {
            let fetch = self.fetch.take()?;
            Job::Switch { fetch }
        } else if !self.queue.is_empty() || self.is_asking {
            let took = std::mem::take(&mut self.queue).into_iter();
            let puts = took.filter_map(|it| Some((it, self.fresh.get(&it)?.clone()))).collect();
            let is_asking = std::mem::take(&mut self.is_asking);
            Job::Work { store, fetch: self.fetch.take(), puts, is_asking }
        } else {
            return None;
        };
        self.is_busy = true;
        Some(job)
    }

    /// Takes in what came of a job.
    pub(crate) fn handle_outcome(&mut self, outcome: Outcome) -> Option<Said> {
        self.is_busy = false;
        match outcome {
            Outcome::Worked { fetch, put, failed, wanted } => {
                for hash in put {
                    self.fresh.remove(&hash);
                }
                let fetch = fetch?;
                let number = fetch.version().number;
                if self.fetching != Some(number) || self.fetch.is_some() {
                    return None;
                }
                self.fetch = Some(fetch);
                if let Some(error) = failed {
                    return Some(Said::Failed(number, error));
                }
                match wanted? {
                    Ok(wanted) if wanted.is_empty() => Some(Said::Whole(number)),
                    Ok(wanted) => Some(self.say(number, &wanted)),
                    Err(error) => Some(Said::Failed(number, error)),
                }
            }
            Outcome::Switched { number, outcome, fetch } => {
                if self.fetching != Some(number) {
                    return None;
                }
                match outcome {
                    Ok(true) => {
                        self.stop();
                        Some(Said::Switched(number))
                    }
                    Ok(false) => {
                        self.fetch = Some(fetch);
                        (self.is_asking, self.is_switching) = (true, false);
                        None
                    }
                    Err(error) => Some(Said::Failed(number, error)),
                }
            }
            Outcome::Published => None,
        }
    }

    fn say(&mut self, number: Number, wanted: &[Wanted]) -> Said {
        let missing = wanted.iter().filter(|it| !self.fresh.contains_key(&it.hash));
        let chunks: Vec<(Hash, u32)> = missing.map(|it| (it.hash, it.bytes)).collect();
        self.open = chunks.iter().map(|it| it.0).collect();
        self.said = chunks.len();
        // What is missing on disk has come meanwhile.
        self.is_asking |= chunks.is_empty();
        Said::Wanted { number, chunks, is_all: wanted.len() < WANTED_MAX }
    }
}
