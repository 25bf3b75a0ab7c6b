//! The store of one tree, or of the log of one collection: its generations, and staged chunks of
//! the next version.
//!
//! ```text
//! DATA/trees/NAME@ORIGIN/      or DATA/collections/NAME@ORIGIN/
//!     current          link to generations/…/tree of the newest
//!     generations/     see `generation`
//!     staged           chunks that came
//!     LOCK             allows one process only
//! ```
//!
//! All functions block; call them on a blocking thread.

mod options;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use collection::replica;
use disk::Disk;
use disk::lock::{self, Lock};

pub use self::options::{ENTRIES_MAX, GENERATIONS_KEPT, Options, TREE_BYTES_MAX};
use super::access::{Access, FILE, FOLDER, Gate, set_mode};
use super::building::{Building, StopFlag, building_dir};
use super::error::Error;
use super::folding::{FoldFailure, Folding};
use super::generation::{ChunkRead, Generation, LastFile, Meta, TREE, dir_name, lock_out};
use super::listing::Listing;
use super::mode::Mode;
use super::opening::{gone_dir, open_all};
use super::staging::Staging;
use crate::version::{Hash, Kind};

/// Maximum number of new files and directories that are synced one by one; if there are more, the
/// whole file system is synced.
const SYNCS_MAX: usize = 64;
/// Maximum number of damaged files that are listed.
pub(super) const DAMAGED_MAX: usize = 100;
/// At the start of a fetch, all staged chunks are dropped if they have more than this number of
/// times the bytes of the version, and more than [`STAGED_BYTES_MIN`].
const STAGED_VERSIONS_MAX: u64 = 2;
/// Number of staged bytes that are kept in any case.
const STAGED_BYTES_MIN: u64 = 256 << 20;
const CURRENT: &str = "current";
const CURRENT_NEW: &str = "current.new";
const GENERATIONS: &str = "generations";
const STAGED: &str = "staged";

/// The store of a tree. Chunks may be read and added while a generation is built.
#[derive(Debug)]
pub struct Store {
    disk: Disk,
    dir: PathBuf,
    options: Options,
    gate: Gate,
    syncs_max: usize,
    staging: Mutex<Staging>,
    /// The newest is the last.
    generations: RwLock<Vec<Arc<Generation>>>,
    /// The greatest serial so far.
    serial: Mutex<u64>,
    /// The number of the last build.
    begun: Mutex<u64>,
    /// Directories to remove, which only take room. That of the last build is not among them.
    leftovers: Mutex<Vec<PathBuf>>,
    damaged: Mutex<Vec<PathBuf>>,
    folding: Folding,
    stop: StopFlag,
    _lock: Lock,
}

impl Store {
    /// Opens the directory of a tree, and makes it if it is missing. Staged chunks are read and
    /// checked, which takes about a second for a gigabyte. Unfinished builds and removals are
    /// removed before the next version is begun, or by [`Store::remove_old`], because that may take
    /// minutes.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`], or the system refuses an operation.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Self::open_on(&Disk::System, dir, options, SYNCS_MAX)
    }

    pub(super) fn open_on(
        disk: &Disk,
        dir: &Path,
        options: Options,
        syncs_max: usize,
    ) -> Result<Self, Error> {
        disk.make_directories(dir, Some(FOLDER)).map_err(Error::io(dir))?;
        let lock = lock::take(dir)?;
        let all = dir.join(GENERATIONS);
        let mode = Mode::EXECUTABLE.of_folder(options.kind);
        if !all.exists() {
            disk.make_directory(&all, Some(mode)).map_err(Error::io(&all))?;
            disk.sync(dir).map_err(Error::io(dir))?;
        }
        set_mode(&all, mode)?;
        let new = dir.join(CURRENT_NEW);
        disk.remove_tree(&new).map_err(Error::io(new))?;
        let opened = open_all(disk, &all, options.kind)?;
        let store = Self {
            disk: disk.clone(),
            dir: dir.to_owned(),
            options,
            gate: Gate::default(),
            syncs_max,
            staging: Mutex::new(Staging::open(disk, &dir.join(STAGED))?),
            generations: RwLock::new(opened.all),
            serial: Mutex::new(opened.serial),
            begun: Mutex::new(opened.begun),
            leftovers: Mutex::new(opened.leftovers),
            damaged: Mutex::new(opened.damaged),
            folding: Folding::default(),
            stop: StopFlag::default(),
            _lock: lock,
        };
        if let Some(newest) = store.current() {
            let is_there = fs::read_link(dir.join(CURRENT)).is_ok_and(|it| it == target(&newest));
            if !is_there {
                store.point_to(&newest)?;
                store.disk.sync(dir).map_err(Error::io(dir))?;
            }
        }
        set_mode(&dir.join(STAGED), FILE)?;
        store.want_access(options.access);
        store.open_gate()?;
        Ok(store)
    }

    /// Returns the newest generation, whose [`Meta`] has the signed version. If the newest one is
    /// damaged when the store is opened, it is removed and listed in [`Store::damaged`], and the
    /// one before is returned. So an origin has to keep its last number elsewhere, too, or it could
    /// sign another version with that number. `None` if there is no generation.
    pub fn current(&self) -> Option<Arc<Generation>> {
        self.all().pop()
    }

    /// Returns the link that readers open: see [`super::generation::Lease`].
    pub fn current_link(&self) -> PathBuf {
        self.dir.join(CURRENT)
    }

    fn all(&self) -> Vec<Arc<Generation>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends running and later operations with [`Error::Stopped`], because the daemon ends: a draft,
    /// a switch or a verification of a large tree would delay its end.
    pub fn stop(&self) {
        self.stop.stop();
    }

    pub(super) fn check_stop(&self) -> Result<(), Error> {
        self.stop.check()
    }

    /// Returns the kind of its versions.
    pub fn kind(&self) -> Kind {
        self.options.kind
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sets the wanted access to the tree; [`Store::open_gate`] applies it.
    pub fn want_access(&self, access: Access) {
        self.gate.want(match self.kind() {
            Kind::Tree => access,
            Kind::Collection => Access::default(),
        });
    }

    /// Applies the wanted access. A new group is set on all files first, which takes a while for
    /// many files.
    ///
    /// # Errors
    ///
    /// The system refuses it, for example because the process's user may not give files to that
    /// group. Then only the owner reaches the tree.
    pub fn open_gate(&self) -> Result<(), Error> {
        self.gate.open(&self.dir)
    }

    /// Returns the present access to the tree.
    pub fn access(&self) -> Access {
        self.gate.access()
    }

    /// Returns whether a chunk is here. Reads it only if its file may be damaged.
    pub fn has(&self, hash: &Hash) -> Result<bool, Error> {
        if self.is_staged(hash) {
            return Ok(true);
        }
        // Linked files share their damage.
        let mut is_doubtful = false;
        for generation in self.all().iter().rev() {
            let Some(is_damaged) = generation.find(hash)? else { continue };
            is_doubtful |= is_damaged;
            if !is_doubtful || matches!(generation.read(hash)?, ChunkRead::Bytes(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a chunk; `None` if it is not here, or is damaged. If it is damaged, its file is then
    /// among the [damaged](Self::damaged).
    pub fn read(&self, hash: &Hash) -> Result<Option<Vec<u8>>, Error> {
        self.read_with(hash, &mut LastFile::default())
    }

    /// Reads a chunk as [`Store::read`] does; faster for many chunks in a row, which often are in
    /// the same file, because `opened` keeps the last file open.
    pub fn read_with(&self, hash: &Hash, opened: &mut LastFile) -> Result<Option<Vec<u8>>, Error> {
        if let Some(bytes) = self.read_staged(hash) {
            return Ok(Some(bytes));
        }
        loop {
            let all = self.all();
            for generation in all.iter().rev() {
                match generation.read_with(hash, opened) {
                    Ok(ChunkRead::Bytes(bytes)) => return Ok(Some(bytes)),
                    Ok(ChunkRead::Unlisted) => {}
                    // The generation may have been removed meanwhile.
                    _ if !generation.dir().exists() => {}
                    Ok(ChunkRead::Damaged(path)) => self.note_damaged(path),
                    Err(error) => return Err(error),
                }
            }
            let newest = |it: &[Arc<Generation>]| it.last().map(|it| it.serial());
            // A generation that was made meanwhile may have the chunk.
            if newest(&all) == newest(&self.all()) {
                return Ok(None);
            }
        }
    }

    pub(super) fn is_staged(&self, hash: &Hash) -> bool {
        self.staging().find(hash).is_some()
    }

    pub(super) fn read_staged(&self, hash: &Hash) -> Option<Vec<u8>> {
        // The lock is held during the lookup, but not during the read.
        let found = self.staging().find(hash)?;
        let bytes = found.read();
        if bytes.is_none() {
            self.staging().forget(&found);
        }
        bytes
    }

    /// Stages a chunk of the next version. It can be read at once.
    ///
    /// # Errors
    ///
    /// [`Error::WrongHash`]: ask another member. [`Error::Full`]: try again later.
    pub fn put(&self, hash: &Hash, bytes: &[u8]) -> Result<(), Error> {
        self.staging().put(hash, bytes)
    }

    /// Stages chunks whose hashes the caller has checked. This costs less than calling
    /// [`Store::put`] for each. The chunks can be read at once.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: try again later. Some of the chunks may have been staged.
    pub fn put_all<'a>(
        &self,
        chunks: impl IntoIterator<Item = (&'a Hash, &'a [u8])>,
    ) -> Result<(), Error> {
        self.staging().put_all(chunks)
    }

    /// Stages the chunks of the folded present log: see [`Folding::fold`].
    pub(super) fn stage_folded(&self, listing: &mut Listing) -> Result<(), Error> {
        let Some(present) = self.current() else { return Ok(()) };
        self.folding.fold(&present, listing, &self.dir, &mut |chunk| {
            self.check_stop()?;
            let hash = Hash::of(chunk);
            if self.has(&hash)? { Ok(()) } else { self.put(&hash, chunk) }
        })
    }

    /// Returns the failure of the last folding here; `None` if it succeeded, or there was none.
    /// After a failure all chunks come from others.
    pub fn fold_failure(&self) -> Option<FoldFailure> {
        self.folding.failure()
    }

    /// Drops the staged chunks if they are many more than a version of this many bytes can use, so
    /// that the chunks of outdated versions do not fill the disk.
    pub(super) fn trim_staged(&self, bytes: u64) -> Result<(), Error> {
        let mut staging = self.staging();
        let bytes_max = bytes.saturating_mul(STAGED_VERSIONS_MAX).max(STAGED_BYTES_MIN);
        if bytes_max < staging.bytes() { staging.clear() } else { Ok(()) }
    }

    /// Returns damaged files or generations, at most 100. Fetching the present version once more
    /// repairs them.
    pub fn damaged(&self) -> Vec<PathBuf> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_damaged(&self, path: PathBuf) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() < DAMAGED_MAX && !damaged.contains(&path) {
            damaged.push(path);
        }
    }

    /// Begins a generation, and removes an earlier build.
    pub(super) fn begin(&self) -> Result<Building, Error> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.dir.join(GENERATIONS);
        self.remove_leftovers()?;
        self.remove(&building_dir(&all, *begun))?;
        *begun += 1;
        let dir = building_dir(&all, *begun);
        let access = self.access();
        let of = (self.kind(), access);
        let building = Building::begin(&self.disk, dir.clone(), of, self.syncs_max, &self.stop);
        if building.is_err() {
            self.give_up(&dir);
        }
        building
    }

    /// Removes a build that is given up, as far as possible.
    pub(super) fn give_up(&self, dir: &Path) {
        // If this fails, the next build removes it first.
        let _ = self.remove(dir);
    }

    /// Removes a directory with its content. An interrupted removal can be repeated.
    fn remove(&self, dir: &Path) -> Result<(), Error> {
        let is_gone = self.disk.remove_tree_while(dir, &|| self.check_stop().is_ok());
        if is_gone.map_err(Error::io(dir))? { Ok(()) } else { Err(Error::Stopped) }
    }

    /// Removes the leftovers of earlier builds and removals.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(path) = leftovers.last() {
            self.remove(path)?;
            leftovers.pop();
        }
        Ok(())
    }

    /// Completes a generation and makes it the present one. Drops all staged chunks. The log of a
    /// collection must be valid, and must continue the present log unless that is damaged.
    pub(super) fn switch(&self, building: Building, meta: &Meta) -> Result<Arc<Generation>, Error> {
        if self.kind() == Kind::Collection {
            self.check_log(&building.dir().join(TREE))?;
        }
        let mut serial = self.serial.lock().unwrap_or_else(PoisonError::into_inner);
        *serial += 1;
        let given = building.group();
        let dir = building.finish(meta, &dir_name(*serial, meta.number))?;
        let access = self.access();
        // The settings may have changed since the build began.
        let given = if access.other_group() == given { Ok(()) } else { access.give(&dir) };
        let opened = given.and_then(|()| Generation::open(&dir, self.kind()));
        let pointed = opened.and_then(|it| {
            self.point_to(&it)?;
            Ok(Arc::new(it))
        });
        let generation = match pointed {
            Ok(generation) => generation,
            Err(error) => {
                // No reader has seen this generation. If the removal fails, the next opening of the
                // store takes it to be the newest.
                let _ = self.disk.remove_tree(&dir);
                return Err(error);
            }
        };
        let mut all = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        all.push(generation.clone());
        drop(all);
        self.disk.sync(&self.dir).map_err(Error::io(&self.dir))?;
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The switch is done. If this fails, the next switch drops the chunks.
        let _ = self.staging().clear();
        Ok(generation)
    }

    fn check_log(&self, log: &Path) -> Result<(), Error> {
        let present = self.current().map(|it| it.tree());
        match replica::check(log, present.as_deref()) {
            // The present log is damaged; the new one repairs it.
            Err(collection::Error::LogFolder { dir, .. }) if Some(&dir) == present.as_ref() => {
                self.note_damaged(dir.join(replica::CHAIN));
                Ok(replica::check(log, None)?)
            }
            checked => Ok(checked?),
        }
    }

    fn point_to(&self, generation: &Generation) -> Result<(), Error> {
        let (new, link) = (self.dir.join(CURRENT_NEW), self.dir.join(CURRENT));
        self.disk.remove_tree(&new).map_err(Error::io(&new))?;
        self.disk.symlink(&target(generation), &new).map_err(Error::io(&new))?;
        self.disk.rename(&new, &link).map_err(Error::io(link))
    }

    /// Removes old generations beyond those to keep, and logs with purged records, unless a reader
    /// has a lease on them. Returns the number of those with a lease. Call it after each switch,
    /// and from time to time.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`], or the system refuses an operation. The rest is removed the next time.
    pub fn remove_old(&self) -> Result<usize, Error> {
        self.remove_leftovers()?;
        let all = self.all();
        let Some((present, former)) = all.split_last() else { return Ok(0) };
        let old = former.len().saturating_sub(self.options.generations_kept);
        let is_old = |it: &(usize, &Arc<Generation>)| it.0 < old || it.1.holds_purged(present);
        let old: Vec<_> = former.iter().enumerate().filter(is_old).map(|it| it.1).collect();
        let mut left = old.len();
        for generation in old {
            let dir = generation.dir();
            let Some(_locked) = lock_out(dir)? else { continue };
            let mut all = self.generations.write().unwrap_or_else(PoisonError::into_inner);
            all.retain(|it| it.serial() != generation.serial());
            drop(all);
            let gone = gone_dir(dir);
            self.disk.rename(dir, &gone).map_err(Error::io(dir))?;
            // Without this sync, a power cut could leave half of the directory under its old name.
            let above = self.dir.join(GENERATIONS);
            self.disk.sync(&above).map_err(Error::io(&above))?;
            if let Err(error) = self.remove(&gone) {
                self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(gone);
                return Err(error);
            }
            left -= 1;
        }
        Ok(left)
    }
}

/// Returns the target of the link `current`.
fn target(generation: &Generation) -> PathBuf {
    let name = generation.dir().file_name().unwrap_or_default();
    Path::new(GENERATIONS).join(name).join(TREE)
}
