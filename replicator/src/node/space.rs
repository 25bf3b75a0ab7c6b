//! One namespace on disk: its store, with one piece of work at a time outside the core's thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::tree::error::Error;
use crate::tree::fetch::{Fetch, WANTED_MAX};
use crate::tree::levels::Wanted;
use crate::tree::store::Store;
use crate::version::{Hash, Number, Version};

/// Number of queued bytes from which chunks are written without waiting for more.
const WRITE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Space {
    store: Arc<Store>,
    /// The version being fetched.
    version: Option<Version>,
    /// Progress of fetching that version; none before it has begun, and while a job has it.
    fetch: Option<Fetch>,
    /// Chunks that have come and are not on disk yet.
    fresh: BTreeMap<Hash, Bytes>,
    queue: Vec<Hash>,
    queue_bytes: usize,
    /// Chunks of the last request that have not come.
    open: BTreeSet<Hash>,
    /// Number of chunks in the last request.
    requested: usize,
    is_asking: bool,
    is_switching: bool,
    is_busy: bool,
}

/// Work on disk. Blocks.
#[derive(Debug)]
pub(super) enum Work {
    /// Write these chunks; then, if `is_asking`, find the chunks of the version that are wanted.
    Keep {
        store: Arc<Store>,
        puts: Vec<(Hash, Bytes)>,
        version: Option<Version>,
        fetch: Option<Fetch>,
        is_asking: bool,
    },
    Switch(Fetch),
}

#[derive(Debug)]
pub(super) enum Outcome {
    Written {
        put: Vec<Hash>,
        version: Option<Version>,
        fetch: Option<Fetch>,
        wanted: Result<Option<Vec<Wanted>>, Error>,
    },
    /// Result of [`Work::Switch`]: whether readers see the version; if not, something is missing
    /// after all.
    Switched(Fetch, Result<bool, Error>),
}

impl Work {
    pub(super) fn run(self) -> Outcome {
        match self {
            Self::Keep { store, puts, version, mut fetch, is_asking } => {
                // The chunks' hashes were checked when they came.
                let kept = store.put_all(puts.iter().map(|(hash, bytes)| (hash, &bytes[..])));
                let asked = version.as_ref().filter(|_| is_asking);
                let wanted = kept.and_then(|()| match asked {
                    Some(version) => wanted(&store, version, &mut fetch).map(Some),
                    None => Ok(None),
                });
                let put = puts.into_iter().map(|it| it.0).collect();
                Outcome::Written { put, version, fetch, wanted }
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

/// Result of work on disk, for the core.
#[derive(Debug)]
pub(super) enum SpaceEvent {
    /// These chunks are wanted, and perhaps more after them.
    Wanted(Vec<(Hash, u32)>),
    /// All chunks of the version are here.
    Whole,
    /// Readers see the version.
    Switched,
    /// The version cannot be fetched, or readers cannot be switched to it.
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
            requested: 0,
            is_asking: false,
            is_switching: false,
            is_busy: false,
        }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns a chunk that has come and is not on disk yet; `None` for any other.
    pub(super) fn fresh(&self, hash: &Hash) -> Option<&Bytes> {
        self.fresh.get(hash)
    }

    pub(super) fn fresh_bytes(&self) -> usize {
        self.fresh.values().map(Bytes::len).sum()
    }

    pub(super) fn missing_bytes(&self) -> Option<u64> {
        self.fetch.as_ref()?.missing_bytes()
    }

    pub(super) fn begin(&mut self, version: &Version) {
        self.stop();
        self.version = Some(version.clone());
        self.is_asking = true;
    }

    /// Stops fetching; chunks that have come stay for a later version.
    pub(super) fn stop(&mut self) {
        (self.version, self.fetch) = (None, None);
        self.open.clear();
        (self.is_asking, self.is_switching) = (false, false);
    }

    pub(super) fn keep(&mut self, hash: Hash, bytes: Bytes) {
        self.open.remove(&hash);
        self.is_asking |= self.version.is_some() && self.open.len() <= self.requested / 2;
        let length = bytes.len();
        if self.fresh.insert(hash, bytes).is_none() {
            self.queue.push(hash);
            self.queue_bytes += length;
        }
    }

    /// Makes the next work check again which chunks are wanted.
    pub(super) fn look(&mut self) {
        self.is_asking |= self.version.is_some() && !self.is_switching;
    }

    /// Makes the next work show the fetched version to readers.
    pub(super) fn switch(&mut self) {
        self.is_switching = true;
    }

    /// Returns whether the queued chunks have to be written now. If they are few, they wait as long
    /// as more are expected and no switch waits for them. The regular check ([`Space::look`]) ends
    /// this wait.
    fn has_to_write(&self) -> bool {
        let is_last = self.version.is_none() || self.open.is_empty() || self.is_switching;
        !self.queue.is_empty() && (is_last || WRITE_BYTES <= self.queue_bytes)
    }

    /// Returns the next work, if any is possible.
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

    /// Takes in the outcome of work; returns the version's number and the result, unless the core
    /// need not know it.
    pub(super) fn handle_outcome(&mut self, outcome: Outcome) -> Option<(Number, SpaceEvent)> {
        self.is_busy = false;
        match outcome {
            Outcome::Written { put, version, fetch, wanted } => {
                put.iter().for_each(|it| drop(self.fresh.remove(it)));
                let version = version.filter(|it| self.version.as_ref() == Some(it))?;
                self.fetch = fetch;
                let event = match wanted {
                    Err(error) => SpaceEvent::Failed(error),
                    Ok(None) => return None,
                    Ok(Some(wanted)) if wanted.is_empty() => SpaceEvent::Whole,
                    Ok(Some(wanted)) => self.request_wanted(&wanted),
                };
                Some((version.number, event))
            }
            Outcome::Switched(fetch, switched) => {
                let number = self.version.as_ref().filter(|it| *it == fetch.version())?.number;
                match switched {
                    Ok(true) => {
                        self.stop();
                        Some((number, SpaceEvent::Switched))
                    }
                    Ok(false) => {
                        self.fetch = Some(fetch);
                        (self.is_asking, self.is_switching) = (true, false);
                        None
                    }
                    Err(error) => Some((number, SpaceEvent::Failed(error))),
                }
            }
        }
    }

    fn request_wanted(&mut self, wanted: &[Wanted]) -> SpaceEvent {
        let missing = wanted.iter().filter(|it| !self.fresh.contains_key(&it.hash));
        let chunks: Vec<(Hash, u32)> = missing.map(|it| (it.hash, it.bytes)).collect();
        self.open = chunks.iter().map(|it| it.0).collect();
        self.requested = chunks.len();
        // If none is missing, the wanted chunks have come meanwhile: check again.
        self.is_asking |= chunks.is_empty();
        SpaceEvent::Wanted(chunks)
    }
}
