//! Feeds of this member's own collections and of its replicas of others' collections.
//!
//! A feed is found by `NAME@ORIGIN`, or by the collection's name alone while no other has that
//! name.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use collection::Version;
use collection::feed::{Counters, FeedOptions, FeedServer};
use collection::replica::Replica;
use net::shutdown::Shutdown;

use super::notes::Notes;
use crate::tree::store::Store;
use crate::version::{Kind, Namespace};

/// The feeds of a member; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feeds {
    all: Arc<RwLock<BTreeMap<Namespace, Feed>>>,
}

#[derive(Clone, Debug)]
struct Feed {
    replica: Replica,
    server: FeedServer,
}

/// Reason why there is no feed of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoFeed {
    /// There is no such collection, or no version of it is here yet.
    #[error("no collection {0} is here; /status lists those that are")]
    Unknown(String),
    /// Several origins have a collection of this name.
    #[error("there are several collections of this name: ask for one of {}", .0.join(", "))]
    Several(Vec<String>),
}

/// The served version of a collection, and its feed's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    pub(super) version: Version,
    pub(super) objects: u64,
    pub(super) counters: Counters,
    /// Whether its files may hold data that was purged at the origin.
    pub(super) holds_purged: bool,
}

impl Feeds {
    /// Returns the feed of `NAME@ORIGIN`, or of `NAME` while only one origin has a collection of
    /// that name.
    pub(crate) fn find(&self, text: &str) -> Result<FeedServer, NoFeed> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = Namespace::parse(text).and_then(|it| all.get(&it)) {
            return Ok(feed.server.clone());
        }
        let named: Vec<_> = all.iter().filter(|it| it.0.name.as_str() == text).collect();
        match named.as_slice() {
            [(_, feed)] => Ok(feed.server.clone()),
            [] => Err(NoFeed::Unknown(text.to_owned())),
            several => Err(NoFeed::Several(several.iter().map(|it| it.0.to_string()).collect())),
        }
    }

    fn get(&self, of: &Namespace) -> Option<Feed> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).get(of).cloned()
    }

    pub(super) fn reached(&self, of: &Namespace) -> Option<Reached> {
        let Feed { replica, server } = self.get(of)?;
        let (version, objects) = (replica.version(), replica.objects());
        let (counters, holds_purged) = (server.counters(), replica.holds_purged());
        Some(Reached { version, objects, counters, holds_purged })
    }

    /// Makes the feed of a collection serve the log in this directory from now on. Blocks.
    fn renew(
        &self,
        of: &Namespace,
        directory: &Path,
        shutdown: &Shutdown,
    ) -> Result<(), collection::Error> {
        if let Some(Feed { replica, server }) = self.get(of) {
            let before = replica.purged();
            replica.renew(directory)?;
            if replica.purged() != before {
                // Older snapshots keep purged data on disk, in files that have no name any more.
                server.drop_old_states();
            }
            return Ok(());
        }
        let replica = Replica::open(directory)?;
        let options = FeedOptions { shutdown: shutdown.clone(), ..FeedOptions::default() };
        let server = FeedServer::of_replica(replica.clone(), options);
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(of.clone(), Feed { replica, server });
        Ok(())
    }
}

/// The feeds, and the collections whose feeds are being renewed; each has at most one renewal at a
/// time.
#[derive(Debug, Default)]
pub(super) struct Feeding {
    feeds: Feeds,
    /// The collections whose feeds are being renewed; true if another renewal has to follow.
    busy: BTreeMap<Namespace, bool>,
    stop: Shutdown,
}

/// Job: make the feed of a collection serve the version that readers of its directory see now.
#[derive(Debug)]
pub(super) struct Renewing {
    of: Namespace,
    store: Arc<Store>,
    feeds: Feeds,
    stop: Shutdown,
}

impl Renewing {
    /// Renews the feed. Blocks.
    pub(super) fn run(self) -> (Namespace, Result<(), collection::Error>) {
        let Self { of, store, feeds, stop } = self;
        let present = store.current();
        let renewed = present.map(|it| feeds.renew(&of, &it.tree(), &stop));
        (of, renewed.unwrap_or(Ok(())))
    }
}

impl Feeding {
    /// Returns an empty set of feeds, which end when `stop` starts.
    pub(super) fn new(stop: Shutdown) -> Self {
        Self { stop, ..Self::default() }
    }

    pub(super) fn feeds(&self) -> &Feeds {
        &self.feeds
    }

    /// Returns the job that renews the feed of a collection; none for a tree, and none while the
    /// feed is being renewed: then another renewal follows.
    pub(super) fn renew(&mut self, of: &Namespace, store: &Arc<Store>) -> Option<Renewing> {
        if store.kind() != Kind::Collection {
            return None;
        }
        if let Some(again) = self.busy.get_mut(of) {
            *again = true;
            return None;
        }
        self.busy.insert(of.clone(), false);
        let (store, feeds, stop) = (store.clone(), self.feeds.clone(), self.stop.clone());
        Some(Renewing { of: of.clone(), store, feeds, stop })
    }

    /// Takes in the result of a renewal; returns whether the feed has to be renewed again.
    pub(super) fn handle_renewed(
        &mut self,
        of: &Namespace,
        outcome: Result<(), collection::Error>,
        now: Duration,
        notes: &mut Notes,
    ) -> bool {
        if let Err(error) = outcome {
            notes.add(format!("the feed of {of} stays as it was: {error}"), now);
        }
        self.busy.remove(of).unwrap_or_default()
    }
}
