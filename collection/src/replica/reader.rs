//! The reader of a log folder: a feed under the origin's (epoch, serial).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use disk::Disk;
use tokio::sync::watch;

use super::chain::{Chain, LogFile, LogPart};
use super::folder::{open_file, read_chain, wrong};
use crate::change::Version;
use crate::error::Error;
use crate::log::View;
use crate::log::segment::Segment;

/// A copy of another collection, which is only read.
///
/// Cheap to clone; all clones are the same replica. Its files stay open, so running reads are not
/// affected when the folder is removed.
#[derive(Clone, Debug)]
pub struct Replica {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    present: Mutex<ReplicaState>,
    versions: watch::Sender<Version>,
}

#[derive(Debug)]
struct ReplicaState {
    dir: PathBuf,
    chain: Chain,
    view: View,
}

impl Replica {
    /// Opens a log folder. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::LogFolder`]: `dir` is not a log folder, or is damaged. Otherwise the system's
    /// error.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let present = ReplicaState::open(dir, None)?;
        let versions = watch::Sender::new(present.chain.version);
        Ok(Self { shared: Arc::new(Shared { present: Mutex::new(present), versions }) })
    }

    /// Returns the version that a folder's log reaches, without opening it. Blocks.
    pub fn reached(dir: &Path) -> Result<Version, Error> {
        let chain = read_chain(&Disk::System, dir)?.ok_or_else(|| wrong(dir, "it has no CHAIN"))?;
        Ok(chain.version)
    }

    /// Changes to another folder: a newer state of the same log, or a log that was begun anew.
    /// Files that are in both are not read again. Wakes the requests that wait for a new version.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open); the old folder is still served.
    pub fn renew(&self, dir: &Path) -> Result<(), Error> {
        let before = self.with(|it| (it.chain.clone(), it.view.clone()));
        let present = ReplicaState::open(dir, Some(&before))?;
        let version = present.chain.version;
        *self.shared.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        self.shared.versions.send_if_modified(|known| {
            let newer = *known != version;
            *known = version;
            newer
        });
        Ok(())
    }

    /// Returns the version of the collection.
    #[must_use]
    pub fn version(&self) -> Version {
        self.with(|it| it.chain.version)
    }

    /// Returns its number of live objects.
    #[must_use]
    pub fn objects(&self) -> u64 {
        self.with(|it| it.chain.objects)
    }

    /// Returns the id and the public key of the collection's owner, `None` if its feed did not name
    /// them. Notices signed with that key are the origin's.
    #[must_use]
    pub fn owner(&self) -> Option<String> {
        self.with(|it| it.chain.owner.clone())
    }

    /// Returns whether the files may have bytes that were purged at the origin, because the folding
    /// that removes them has not been done yet.
    #[must_use]
    pub fn holds_purged(&self) -> bool {
        self.with(|it| it.chain.holds_purged(&it.chain))
    }

    /// Returns the serial up to which suppressed objects are purged at the origin and here.
    #[must_use]
    pub fn purged(&self) -> u64 {
        self.with(|it| it.view.purged)
    }

    /// Returns the number of bytes of all members.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.with(|it| it.chain.bytes(LogPart::Base) + it.chain.bytes(LogPart::Log))
    }

    pub(crate) fn view(&self) -> View {
        self.with(|it| it.view.clone())
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.with(|it| it.dir.clone())
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Version> {
        self.shared.versions.subscribe()
    }

    fn with<T>(&self, read: impl FnOnce(&ReplicaState) -> T) -> T {
        read(&self.shared.present.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReplicaState {
    fn open(dir: &Path, before: Option<&(Chain, View)>) -> Result<Self, Error> {
        let disk = Disk::System;
        let chain = read_chain(&disk, dir)?.ok_or_else(|| wrong(dir, "it has no CHAIN"))?;
        let known: HashMap<u64, (&LogFile, &Arc<Segment>)> = match before {
            Some((old, view)) if old.life == chain.life => {
                let both = old.files.iter().zip(&view.segments);
                both.map(|(file, segment)| (file.number, (file, segment))).collect()
            }
            _ => HashMap::new(),
        };
        let mut after = 0;
        let mut segments = Vec::with_capacity(chain.files.len());
        for file in &chain.files {
            let same = known.get(&file.number).filter(|it| it.0 == file);
            segments.push(match same {
                Some((_, segment)) => Arc::clone(segment),
                None => Arc::new(open_file(&disk, dir, file, after)?),
            });
            after = file.to;
        }
        let view = View {
            doubt: 0,
            missing: Arc::default(),
            skips: Arc::default(),
            segments,
            version: chain.version,
            horizon: chain.base,
            // Folding changes the bytes of a version, as a compaction does.
            compacted: chain.base,
            residue: 0,
            // A purge is reported only after the folding.
            purged: chain.purged.min(chain.clean),
        };
        Ok(Self { dir: dir.to_owned(), chain, view })
    }
}
