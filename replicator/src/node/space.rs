//! What a member does on disk for one namespace: one thing at a time, off the thread that decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::tree::error::Error;
use crate::tree::fetch::{Fetch, WANTED_MAX};
use crate::tree::levels::Wanted;
use crate::tree::store::Store;
use crate::version::{Hash, Number, Version};

/// So much is written at once, in bytes.
const WRITE_BYTES: usize = 256 << 10;

/// The disk's side of a namespace.
#[derive(Debug)]
pub(super) struct Space {
    store: Arc<Store>,
    /// What is being fetched.
    version: Option<Version>,
    /// How far; none before it is begun, and while a job has it.
    fetch: Option<Fetch>,
    /// Chunks that came and are not on disk yet.
    fresh: BTreeMap<Hash, Bytes>,
    queue: Vec<Hash>,
    queue_bytes: usize,
    /// What was said to be wanted and has not come, of so many.
    open: BTreeSet<Hash>,
    said: usize,
    is_asking: bool,
    is_switching: bool,
    is_busy: bool,
}

/// What is to be done on disk. Blocks.
#[derive(Debug)]
pub(super) enum Work {
    /// Keep these chunks, then say what is wanted.
    Keep {
        store: Arc<Store>,
        puts: Vec<(Hash, Bytes)>,
        version: Option<Version>,
        fetch: Option<Fetch>,
        is_asking: bool,
    },
    /// Have readers see what was fetched.
    Switch(Fetch),
}

/// What came of a job.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Of [`Work::Keep`].
    Kept {
        put: Vec<Hash>,
        version: Option<Version>,
        fetch: Option<Fetch>,
        wanted: Result<Option<Vec<Wanted>>, Error>,
    },
    /// Of [`Work::Switch`]: whether readers see it; if not, something is missing after all.
    Switched(Fetch, Result<bool, Error>),
}

impl Work {
    /// Does it.
    pub(super) fn run(self) -> Outcome {
        match self {
            Self::Keep { store, puts, version, mut fetch, is_asking } => {
                // Their hashes were taken as they came.
                let kept = store.put_all(puts.iter().map(|(hash, bytes)| (hash, &bytes[..])));
                let asked = version.as_ref().filter(|_| is_asking);
                let wanted = kept.and_then(|()| match asked {
                    Some(version) => wanted(&store, version, &mut fetch).map(Some),
                    None => Ok(None),
                });
                let put = puts.into_iter().map(|it| it.0).collect();
                Outcome::Kept { put, version, fetch, wanted }
            }
            Self::Switch(mut fetch) => {
                let switched = fetch.switch().map(|it| it.is_some());
                Outcome::Switched(fetch, switched)
            }
        }
    }
}

fn wanted(
    store: &Arc<Store>,
    version: &Version,
    fetch: &mut Option<Fetch>,
) -> Result<Vec<Wanted>, Error> {
    let begun = match fetch {
        Some(fetch) => fetch,
        None => fetch.insert(Fetch::begin(store, version)?),
    };
    begun.wanted(WANTED_MAX)
}

/// What the member has to know after a job.
#[derive(Debug)]
pub(super) enum Said {
    /// These are wanted, and perhaps more after them.
    Wanted(Vec<(Hash, u32)>),
    /// All is there.
    Whole,
    /// Readers see it.
    Switched,
    /// It cannot be had.
    Failed(Error),
}

impl Space {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            version: None,
            fetch: None,
            fresh: BTreeMap::new(),
            queue: Vec::new(),
            queue_bytes: 0,
            open: BTreeSet::new(),
            said: 0,
            is_asking: false,
            is_switching: false,
            is_busy: false,
        }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// A chunk that is not on disk yet.
    pub(super) fn fresh(&self, hash: &Hash) -> Option<&Bytes> {
        self.fresh.get(hash)
    }

    pub(super) fn fresh_bytes(&self) -> usize {
        self.fresh.values().map(Bytes::len).sum()
    }

    /// How many bytes of files are to come, as far as is known.
    pub(super) fn missing_bytes(&self) -> Option<u64> {
        self.fetch.as_ref()?.missing_bytes()
    }

    /// Begins to fetch a version.
    pub(super) fn begin(&mut self, version: &Version) {
        self.stop();
        self.version = Some(version.clone());
        self.is_asking = true;
    }

    /// Stops fetching; what has come is kept for a version to come.
    pub(super) fn stop(&mut self) {
        (self.version, self.fetch) = (None, None);
        self.open.clear();
        (self.is_asking, self.is_switching) = (false, false);
    }

    /// Takes in a chunk.
    pub(super) fn keep(&mut self, hash: Hash, bytes: Bytes) {
        self.open.remove(&hash);
        self.is_asking |= self.version.is_some() && self.open.len() <= self.said / 2;
        let length = bytes.len();
        if self.fresh.insert(hash, bytes).is_none() {
            self.queue.push(hash);
            self.queue_bytes += length;
        }
    }

    /// Looks again what is wanted.
    pub(super) fn look(&mut self) {
        self.is_asking |= self.version.is_some() && !self.is_switching;
    }

    /// Has readers see what was fetched, next.
    pub(super) fn switch(&mut self) {
        self.is_switching = true;
    }

    /// Whether what came is to be written now: what is little waits for more, as long as more is to come and
    /// nothing waits for it. With every look it is written in any case.
    fn has_to_write(&self) -> bool {
        let is_last = self.version.is_none() || self.open.is_empty() || self.is_switching;
        !self.queue.is_empty() && (is_last || WRITE_BYTES <= self.queue_bytes)
    }

    /// What is to be done next, if anything can be.
    pub(super) fn next_work(&mut self) -> Option<Work> {
        if self.is_busy {
            return None;
        }
        let store = self.store.clone();
        let work = if self.is_switching && self.queue.is_empty() && self.fetch.is_some() {
            Work::Switch(self.fetch.take()?)
        } else if self.is_asking || self.has_to_write() {
            self.queue_bytes = 0;
            let queue = std::mem::take(&mut self.queue).into_iter();
            let puts = queue.filter_map(|it| Some((it, self.fresh.get(&it)?.clone()))).collect();
            let (version, fetch) = (self.version.clone(), self.fetch.take());
            let is_asking = std::mem::take(&mut self.is_asking);
            Work::Keep { store, puts, version, fetch, is_asking }
        } else {
            return None;
        };
        self.is_busy = true;
        Some(work)
    }

    /// Takes in what came of a job; returns of which version that says what.
    pub(super) fn handle_outcome(&mut self, outcome: Outcome) -> Option<(Number, Said)> {
        self.is_busy = false;
        match outcome {
            Outcome::Kept { put, version, fetch, wanted } => {
                put.iter().for_each(|it| drop(self.fresh.remove(it)));
                let version = version.filter(|it| self.version.as_ref() == Some(it))?;
                self.fetch = fetch;
                let said = match wanted {
                    Err(error) => Said::Failed(error),
                    Ok(None) => return None,
                    Ok(Some(wanted)) if wanted.is_empty() => Said::Whole,
                    Ok(Some(wanted)) => self.say(&wanted),
                };
                Some((version.number, said))
            }
            Outcome::Switched(fetch, switched) => {
                let number = self.version.as_ref().filter(|it| *it == fetch.version())?.number;
                match switched {
                    Ok(true) => {
                        self.stop();
                        Some((number, Said::Switched))
                    }
                    Ok(false) => {
                        self.fetch = Some(fetch);
                        (self.is_asking, self.is_switching) = (true, false);
                        None
                    }
                    Err(error) => Some((number, Said::Failed(error))),
                }
            }
        }
    }

    fn say(&mut self, wanted: &[Wanted]) -> Said {
        let missing = wanted.iter().filter(|it| !self.fresh.contains_key(&it.hash));
        let chunks: Vec<(Hash, u32)> = missing.map(|it| (it.hash, it.bytes)).collect();
        self.open = chunks.iter().map(|it| it.0).collect();
        self.said = chunks.len();
        // What is missing on disk has come meanwhile.
        self.is_asking |= chunks.is_empty();
        Said::Wanted(chunks)
    }
}
