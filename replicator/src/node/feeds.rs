//! The feeds of the collections that are here: those that this member publishes, and replicas of others.
//!
//! They are found by the name of the collection, with that of its origin behind it if several have one of that name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use collection::Version;
use collection::feed::{Counters, FeedOptions, FeedServer};
use collection::replica::Replica;
use net::shutdown::Shutdown;

use super::core::{Core, Done};
use crate::version::{Kind, Namespace};

/// The feeds of a member; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feeds {
    all: Arc<RwLock<BTreeMap<Namespace, Feed>>>,
}

/// A collection's.
#[derive(Clone, Debug)]
struct Feed {
    replica: Replica,
    server: FeedServer,
}

/// Why there is no feed of a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoFeed {
    /// There is no such collection, or nothing of it has come yet.
    #[error("no collection {0} is here; /status lists those that are")]
    Unknown(String),
    /// Several origins have one of this name.
    #[error("there are several collections of this name: ask for one of {}", .0.join(", "))]
    Several(Vec<String>),
}

/// How far a collection has come, and what its feed has done here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    pub(super) version: Version,
    pub(super) objects: u64,
    pub(super) counters: Counters,
    /// Whether its files may have what was purged at the origin.
    pub(super) holds_purged: bool,
}

impl Feeds {
    /// The feed of `NAME@ORIGIN`, or of `NAME` while only one origin has a collection of that name.
    ///
    /// # Errors
    ///
    /// There is none, or there are several: tell who asks.
    pub(crate) fn find(&self, text: &str) -> Result<FeedServer, NoFeed> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = super::places::parse_namespace(text).and_then(|it| all.get(&it)) {
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

    /// Has a feed say what is in this directory from now on. Blocks.
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
                // Snapshots of before keep what was purged on disk, though under no name.
                server.let_go();
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

/// Which feeds are being renewed, one thing at a time for each: whether there is something newer already.
pub(super) type Renewing = BTreeMap<Namespace, bool>;

/// A feed has been renewed, or not.
pub(super) struct Renewed {
    of: Namespace,
    outcome: Result<(), collection::Error>,
}

impl Core {
    /// Has the feed of a collection say what readers of its directory see now.
    pub(super) fn renew_feed(&mut self, of: &Namespace) {
        let Some(store) = self.spaces.get(of).map(|it| it.store().clone()) else { return };
        if store.kind() != Kind::Collection {
            return;
        }
        if let Some(again) = self.renewing.get_mut(of) {
            *again = true;
            return;
        }
        self.renewing.insert(of.clone(), false);
        let (of, feeds, stop) = (of.clone(), self.feeds.clone(), self.stop.clone());
        self.jobs.spawn_blocking(move || {
            let present = store.current();
            let renewed = present.map(|it| feeds.renew(&of, &it.tree(), &stop));
            Done::Renewed(Renewed { of, outcome: renewed.unwrap_or(Ok(())) })
        });
    }

    pub(super) fn renew_all_feeds(&mut self) {
        let all: BTreeSet<Namespace> = self.spaces.keys().cloned().collect();
        all.iter().for_each(|it| self.renew_feed(it));
    }

    pub(super) fn handle_renewed(&mut self, renewed: Renewed, now: Duration) {
        let Renewed { of, outcome } = renewed;
        let again = self.renewing.remove(&of).unwrap_or_default();
        if let Err(error) = outcome {
            self.notes.add(format!("the feed of {of} stays as it was: {error}"), now);
        }
        if again {
            self.renew_feed(&of);
        }
    }
}
