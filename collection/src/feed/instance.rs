//! What a feed is of: a collection that is written here, or the replica of one.

use std::path::PathBuf;

use tokio::sync::watch;

use crate::change::Version;
use crate::collection::Collection;
use crate::error::Error;
use crate::log::View;
use crate::replica::Replica;

/// One of the places where a collection's log is.
#[derive(Clone, Debug)]
pub(crate) enum Instance {
    /// It is written here.
    Own(Collection),
    /// It comes from elsewhere.
    Replica(Replica),
}

impl Instance {
    /// The log as it is now.
    pub(crate) fn view(&self) -> View {
        match self {
            Self::Own(collection) => collection.inner.log.view(),
            Self::Replica(replica) => replica.view(),
        }
    }

    /// How far it has come.
    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Own(collection) => collection.version(),
            Self::Replica(replica) => replica.version(),
        }
    }

    /// Hears of every new version.
    pub(crate) fn watch(&self) -> watch::Receiver<Version> {
        match self {
            Self::Own(collection) => collection.watch(),
            Self::Replica(replica) => replica.watch(),
        }
    }

    /// How many objects live in it.
    pub(crate) fn objects(&self) -> u64 {
        match self {
            Self::Own(collection) => collection.len(),
            Self::Replica(replica) => replica.objects(),
        }
    }

    /// The id and the public key that a replica's origin says are its own; `None` of a collection that is written here.
    pub(crate) fn owner(&self) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Replica(replica) => replica.owner(),
        }
    }

    /// Takes in that somebody has come to `told`, which is among the serials that were skipped. A replica's origin
    /// is asked by others.
    ///
    /// # Errors
    ///
    /// It cannot be noted: nobody is to get a snapshot.
    pub(crate) fn handle_told(&self, told: Version) -> Result<(), Error> {
        match self {
            Self::Own(collection) => collection.handle_told(told),
            Self::Replica(_) => Ok(()),
        }
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> PathBuf {
        match self {
            Self::Own(collection) => collection.inner.dir.clone(),
            Self::Replica(replica) => replica.dir(),
        }
    }
}
