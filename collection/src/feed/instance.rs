//! The source of a feed: a collection that is written here, or a replica.

use std::path::PathBuf;

use tokio::sync::watch;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::log::View;
use crate::replica::Replica;

/// A collection's log, at its origin or at a replica.
#[derive(Clone, Debug)]
pub(crate) enum Instance {
    /// A collection that is written here.
    Own(Collection),
    /// A copy of another collection's log.
    Replica(Replica),
}

impl Instance {
    pub(crate) fn view(&self) -> View {
        match self {
            Self::Own(collection) => collection.inner.log.view(),
            Self::Replica(replica) => replica.view(),
        }
    }

    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Own(collection) => collection.version(),
            Self::Replica(replica) => replica.version(),
        }
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Version> {
        match self {
            Self::Own(collection) => collection.watch(),
            Self::Replica(replica) => replica.watch(),
        }
    }

    pub(crate) fn objects(&self) -> u64 {
        match self {
            Self::Own(collection) => collection.len(),
            Self::Replica(replica) => replica.objects(),
        }
    }

    /// Returns the id and public key of a replica's origin; `None` for an own collection.
    pub(crate) fn owner(&self) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Replica(replica) => replica.owner(),
        }
    }

    /// Handles a consumer whose cursor is among the serials that were skipped after an unclean
    /// stop. At a replica nothing has to be done: the origin handles its own consumers.
    pub(crate) fn handle_skipped_cursor(&self, cursor: Version) -> Result<(), Error> {
        match self {
            Self::Own(collection) => collection.handle_skipped_cursor(cursor),
            Self::Replica(_) => Ok(()),
        }
    }

    pub(crate) fn dir(&self) -> PathBuf {
        match self {
            Self::Own(collection) => collection.inner.dir.clone(),
            Self::Replica(replica) => replica.dir(),
        }
    }
}
