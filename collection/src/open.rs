//! Opening a collection: to work with it, to rebuild its manifest, or to read it.
//!
//! Source: ours.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use disk::{Disk, lock};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::change::Stamp;
use crate::collection::index::Slot;
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::heal::verify;
use crate::keys::Keys;
use crate::keys::live_set::LiveSet;
use crate::log::Halt;
use crate::options::Options;
use crate::recover::read_only;
use crate::recover::replay;
use crate::recover::{self, Mode};
use crate::report::Recovery;
use crate::suppressed::{self, Suppressed};
use crate::takedown::Recheck;

/// Folder of the files in which selected changes are, in the collection's.
pub(crate) const SELECTED: &str = "selected";

impl Collection {
    /// Opens the collection in `dir`, or makes it if there is none; repairs the effects of a crash.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`]: another process has it open. [`Error::Manifest`]:
    /// [`rebuild`](Self::rebuild) it. Otherwise the file system reports an error.
    pub fn open(dir: &Path, options: Options, now: Stamp) -> Result<(Self, Recovery), Error> {
        Self::open_on(&Disk::System, dir, options, now, Mode::Write)
    }

    /// Opens a collection, if necessary without its manifest: checks every member, and rebuilds the
    /// key index. Begins a new epoch. Use this also for a directory restored from a backup, since
    /// its consumers may know other changes with the same serials.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn rebuild(dir: &Path, options: Options, now: Stamp) -> Result<(Self, Recovery), Error> {
        Self::open_on(&Disk::System, dir, options, now, Mode::Rebuild)
    }

    /// Opens a collection only to read it. Nothing in its folder is changed, so the folder may be
    /// on a read-only disk. The key index is brought up to date with the log in a temporary folder.
    /// Every write ends with [`Error::Stopped`].
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_to_read(
        dir: &Path,
        options: Options,
        now: Stamp,
    ) -> Result<(Self, Recovery), Error> {
        Self::open_on(&Disk::System, dir, options, now, Mode::Read)
    }

    pub(crate) fn open_on(
        disk: &Disk,
        dir: &Path,
        options: Options,
        now: Stamp,
        mode: Mode,
    ) -> Result<(Self, Recovery), Error> {
        let (lock, overlay) = match mode {
            Mode::Read => (lock::take_to_read(dir)?, Some(read_only::overlay(dir)?)),
            Mode::Write | Mode::Rebuild => {
                let made = disk.make_directories(dir, None);
                made.map_err(|error| Error::io("cannot create", dir, error))?;
                (Some(lock::take(dir)?), None)
            }
        };
        let home = overlay.as_ref().map_or(dir, TempDir::path);
        clear(disk, (dir, home), mode)?;
        let existing = match mode {
            Mode::Rebuild => Err("a rebuild was requested".to_owned()),
            Mode::Write | Mode::Read => replay::existing(disk, home, &options),
        };
        let reached = existing.as_ref().ok().and_then(Keys::watermark);
        let mut opened = recover::open(disk, dir, now, mode, reached)?;
        if mode == Mode::Read {
            opened.tail.halt = Some(Halt::Closed);
        }
        let (log, tail) = (&opened.log, &mut opened.tail);
        let indexed = replay::open_keys(home, &options, log, tail, existing)?;
        let recovery = Recovery {
            cut: opened.cut,
            damaged: opened.damaged,
            keys_rebuilt: indexed.rebuilt,
            replayed: indexed.replayed,
            lost: opened.tail.manifest.lost,
        };
        let list = options.suppressed.clone();
        let list = list.unwrap_or_else(|| dir.join(suppressed::FILE_NAME));
        let suppressed = Mutex::new(Suppressed::open(disk, list)?);
        let version = opened.tail.version();
        let inner = Inner {
            dir: dir.to_owned(),
            options,
            log: opened.log,
            tail: Mutex::new(opened.tail),
            live: AtomicU64::new(indexed.live),
            live_set: LiveSet::default(),
            slot: RwLock::new(Slot::new(indexed.keys)),
            announce: watch::Sender::new(version),
            compacting: Mutex::default(),
            repairs: Mutex::default(),
            suppressed,
            closing: AtomicBool::new(false),
            caught_up: AtomicBool::new(false),
            lock,
            overlay,
        };
        let collection = Self { inner: Arc::new(inner) };
        let recheck = match () {
            () if recovery.lost || mode == Mode::Rebuild => Recheck::All,
            () if recovery.keys_rebuilt.is_some() => Recheck::LiveObjects,
            // Consumers that get the rest of the log must also get the tombstones.
            () if collection.inner.log.view().has_holes() => Recheck::Tombstones,
            () => Recheck::None,
        };
        if mode == Mode::Read {
            return Ok((collection, recovery));
        }
        collection.inner.suppressed().copy_if_missing();
        match collection.handle_loss(recheck, now) {
            // The collection is served nevertheless, unless it may contain suppressed objects.
            Err(error) if error.may_pass() && collection.suppressions().is_empty() => {
                tracing::warn!(dir = %dir.display(), %error, "sources are not read again yet");
            }
            done => done?,
        }
        Ok((collection, recovery))
    }
}

/// Removes what killed processes have left in a collection's folder, and in that of its key index.
fn clear(disk: &Disk, (dir, home): (&Path, &Path), mode: Mode) -> Result<(), Error> {
    // A verification: a second key index, as large as the first.
    let model = home.join(verify::MODEL);
    Keys::remove(&model).map_err(|source| Error::keys(model, source))?;
    if mode == Mode::Read {
        return Ok(());
    }
    // A feed of selections.
    let selected = dir.join(SELECTED);
    let removed = disk.remove_tree(&selected);
    removed.map_err(|error| Error::io("cannot remove", &selected, error))
}
