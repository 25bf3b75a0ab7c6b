//! What a member has of one tree, or of the log of one collection: its generations, and chunks of a version to come.
//!
//! ```text
//! DATA/trees/NAME@ORIGIN/      or DATA/collections/NAME@ORIGIN/
//!     current          leads to generations/…/tree of the newest
//!     generations/     see `generation`
//!     staged           chunks that came
//!     LOCK             one process has it
//! ```
//!
//! Everything blocks: call it where that is no harm.

mod options;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use collection::replica;
use disk::{Disk, lock};

pub use self::options::{ENTRIES_MAX, GENERATIONS_KEPT, Options, TREE_BYTES_MAX};
use super::building::{Building, Stop, building_dir};
use super::error::Error;
use super::folding::{Folding, Unfolded};
use super::generation::{Found, Generation, LastFile, Meta, TREE, dir_name, lock_out};
use super::listing::Listing;
use super::mode::Mode;
use super::opening::{gone_dir, open_all};
use super::passage::{FILE, FOLDER, Gate, Passage, set_mode};
use super::staging::Staging;
use crate::version::{Hash, Kind};

/// Beyond so many files and directories that are new, all of the file system is made durable at once.
const SYNCS_MAX: usize = 64;
/// Most files that are named as damaged.
pub(super) const DAMAGED_MAX: usize = 100;
/// When what is staged has so many times the bytes of the version that is begun, it goes.
const STAGED_VERSIONS_MAX: u64 = 2;
/// So much may be staged in any case, in bytes.
const STAGED_BYTES_MIN: u64 = 256 << 20;
const CURRENT: &str = "current";
const CURRENT_NEW: &str = "current.new";
const GENERATIONS: &str = "generations";
const STAGED: &str = "staged";

/// What there is of a tree. Chunks may be read and put while a generation is made.
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
    /// The last serial that was given.
    serial: Mutex<u64>,
    /// The number of the generation that was begun last.
    begun: Mutex<u64>,
    /// What is to be removed, but for the generation that was begun last: it is in nobody's way but that it takes room.
    left: Mutex<Vec<PathBuf>>,
    damaged: Mutex<Vec<PathBuf>>,
    folding: Folding,
    stop: Stop,
    _lock: File,
}

impl Store {
    /// Opens the directory of a tree, and makes it if it is not there. Staged chunks that a crash left are read and
    /// checked, which takes a second or so for a gigabyte; what was being made or removed is removed before the next
    /// version is begun, or by [`Store::remove_old`], as that may take minutes.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`]; the system's.
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
            left: Mutex::new(opened.left),
            damaged: Mutex::new(opened.damaged),
            folding: Folding::default(),
            stop: Stop::default(),
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
        store.want_passage(options.passage);
        store.open_gate()?;
        Ok(store)
    }

    /// The newest generation, whose [`Meta`] has the signed version. One that is damaged when the store is opened is
    /// removed, and named in [`Store::damaged`]; then this is the one before: an origin is to keep its last number
    /// elsewhere too, lest it signs another version of that number.
    #[must_use]
    pub fn current(&self) -> Option<Arc<Generation>> {
        self.all().pop()
    }

    /// What readers open: see [`super::generation::Lease`].
    #[must_use]
    pub fn current_link(&self) -> PathBuf {
        self.dir.join(CURRENT)
    }

    fn all(&self) -> Vec<Arc<Generation>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is being done with [`Error::Stopped`], and whatever is begun: the daemon is about to end, which a
    /// draft, a switch or `verify` of a large tree would put off.
    pub fn stop(&self) {
        self.stop.stop();
    }

    pub(super) fn go_on(&self) -> Result<(), Error> {
        self.stop.check()
    }

    /// What versions are of.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.options.kind
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Says who is to get at the tree: [`Store::open_gate`] does it.
    pub fn want_passage(&self, passage: Passage) {
        self.gate.want(match self.kind() {
            Kind::Tree => passage,
            Kind::Collection => Passage::default(),
        });
    }

    /// Lets others through to the tree, or no more, as was said last; what is of another group than it is to be gets that
    /// first, which takes a while for many files.
    ///
    /// # Errors
    ///
    /// The system's: the user whose process this is may not give files to that group, say. Nobody but the owner gets
    /// at the tree then.
    pub fn open_gate(&self) -> Result<(), Error> {
        self.gate.open(&self.dir)
    }

    /// Who gets at the tree.
    #[must_use]
    pub fn passage(&self) -> Passage {
        self.gate.passage()
    }

    /// Whether a chunk is there, as far as can be said without reading it.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn has(&self, hash: &Hash) -> Result<bool, Error> {
        if self.is_staged(hash) {
            return Ok(true);
        }
        // Files that are linked share their damage.
        let mut is_doubtful = false;
        for generation in self.all().iter().rev() {
            let Some(is_damaged) = generation.find(hash)? else { continue };
            is_doubtful |= is_damaged;
            if !is_doubtful || matches!(generation.read(hash)?, Found::Bytes(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a chunk; none if it is nowhere, or not as it was: then its file is among the [damaged](Self::damaged).
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn read(&self, hash: &Hash) -> Result<Option<Vec<u8>>, Error> {
        self.read_with(hash, &mut LastFile::default())
    }

    /// As [`Store::read`], for many chunks one after another, which often are in the same file: `opened` is the last
    /// one.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn read_with(&self, hash: &Hash, opened: &mut LastFile) -> Result<Option<Vec<u8>>, Error> {
        if let Some(bytes) = self.read_staged(hash) {
            return Ok(Some(bytes));
        }
        loop {
            let all = self.all();
            for generation in all.iter().rev() {
                match generation.read_with(hash, opened) {
                    Ok(Found::Bytes(bytes)) => return Ok(Some(bytes)),
                    Ok(Found::No) => {}
                    // It may have been removed meanwhile.
                    _ if !generation.dir().exists() => {}
                    Ok(Found::Damaged(path)) => self.note_damaged(path),
                    Err(error) => return Err(error),
                }
            }
            let newest = |it: &[Arc<Generation>]| it.last().map(|it| it.serial());
            // Otherwise it may be in what was switched to meanwhile.
            if newest(&all) == newest(&self.all()) {
                return Ok(None);
            }
        }
    }

    pub(super) fn is_staged(&self, hash: &Hash) -> bool {
        self.staging().find(hash).is_some()
    }

    /// Reads a chunk of a version to come.
    pub(super) fn read_staged(&self, hash: &Hash) -> Option<Vec<u8>> {
        // Found under the lock, read without it.
        let found = self.staging().find(hash)?;
        let bytes = found.read();
        if bytes.is_none() {
            self.staging().forget(&found);
        }
        bytes
    }

    /// Adds a chunk of a version to come. From then on it can be read, and handed on.
    ///
    /// # Errors
    ///
    /// [`Error::WrongHash`]: ask somebody else. [`Error::Full`]: try again later.
    pub fn put(&self, hash: &Hash, bytes: &[u8]) -> Result<(), Error> {
        self.staging().put(hash, bytes)
    }

    /// Adds chunks of a version to come, which have these hashes: whoever calls has seen to that. It costs less than
    /// [`Store::put`] of each, and from then on they can be read, and handed on.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: try again later. Some of them may be there then.
    pub fn put_all<'a>(
        &self,
        chunks: impl IntoIterator<Item = (&'a Hash, &'a [u8])>,
    ) -> Result<(), Error> {
        self.staging().put_all(chunks)
    }

    /// Stages the chunks of what the present log is folded to: see [`Folding::fold`].
    pub(super) fn stage_folded(&self, listing: &mut Listing) -> Result<(), Error> {
        let Some(present) = self.current() else { return Ok(()) };
        self.folding.fold(&present, listing, &self.dir, &mut |chunk| {
            self.go_on()?;
            let hash = Hash::of(chunk);
            if self.has(&hash)? { Ok(()) } else { self.put(&hash, chunk) }
        })
    }

    /// Why a log could not be folded here the last time; all of it came from others then.
    #[must_use]
    pub fn unfolded(&self) -> Option<Unfolded> {
        self.folding.failure()
    }

    /// How many bytes the chunks of versions to come take on disk.
    #[must_use]
    pub fn staged_bytes(&self) -> u64 {
        self.staging().bytes()
    }

    /// Drops the chunks of versions to come if they are many more than one of so many bytes can use: what was
    /// staged for versions that others took the place of is not to fill the disk.
    pub(super) fn trim_staged(&self, bytes: u64) -> Result<(), Error> {
        let mut staging = self.staging();
        let bytes_max = bytes.saturating_mul(STAGED_VERSIONS_MAX).max(STAGED_BYTES_MIN);
        if bytes_max < staging.bytes() { staging.clear() } else { Ok(()) }
    }

    /// What is not as it was written, at most 100 files or generations. Fetching the present version once more mends
    /// it.
    #[must_use]
    pub fn damaged(&self) -> Vec<PathBuf> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_damaged(&self, path: PathBuf) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() < DAMAGED_MAX && !damaged.contains(&path) {
            damaged.push(path);
        }
    }

    /// Begins a generation; what there is of another is removed.
    pub(super) fn begin(&self) -> Result<Building, Error> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.dir.join(GENERATIONS);
        self.remove_left()?;
        self.remove(&building_dir(&all, *begun))?;
        *begun += 1;
        let dir = building_dir(&all, *begun);
        let passage = self.passage();
        let of = (self.kind(), passage);
        let building = Building::begin(&self.disk, dir.clone(), of, self.syncs_max, &self.stop);
        if building.is_err() {
            self.give_up(&dir);
        }
        building
    }

    /// Removes what there is of a generation that is not to be, as far as that can be done.
    pub(super) fn give_up(&self, dir: &Path) {
        // If not now, then before the next one begins.
        let _ = self.remove(dir);
    }

    /// Removes a directory with all that is below it, which is begun anew if it is broken off.
    fn remove(&self, dir: &Path) -> Result<(), Error> {
        let is_gone = self.disk.remove_tree_while(dir, &|| self.go_on().is_ok());
        if is_gone.map_err(Error::io(dir))? { Ok(()) } else { Err(Error::Stopped) }
    }

    /// Removes what was left when the store was opened.
    fn remove_left(&self) -> Result<(), Error> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(path) = left.last() {
            self.remove(path)?;
            left.pop();
        }
        Ok(())
    }

    /// Makes a generation whole, and the present one. What was staged goes. A log has to be one, and to go on from
    /// the present one.
    pub(super) fn switch(&self, building: Building, meta: &Meta) -> Result<Arc<Generation>, Error> {
        if self.kind() == Kind::Collection {
            self.check_log(&building.dir().join(TREE))?;
        }
        let mut serial = self.serial.lock().unwrap_or_else(PoisonError::into_inner);
        *serial += 1;
        let given = building.group();
        let dir = building.finish(meta, &dir_name(*serial, meta.number))?;
        let passage = self.passage();
        // The settings may have changed since it was begun.
        let given = if passage.other_group() == given { Ok(()) } else { passage.give(&dir) };
        let opened = given.and_then(|()| Generation::open(&dir, self.kind()));
        let pointed = opened.and_then(|it| {
            self.point_to(&it)?;
            Ok(Arc::new(it))
        });
        let generation = match pointed {
            Ok(generation) => generation,
            Err(error) => {
                // Nobody has seen it. What cannot be removed is taken for the newest by who opens the store next.
                let _ = self.disk.remove_tree(&dir);
                return Err(error);
            }
        };
        let mut all = self.generations.write().unwrap_or_else(PoisonError::into_inner);
        all.push(generation.clone());
        drop(all);
        self.disk.sync(&self.dir).map_err(Error::io(&self.dir))?;
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).clear();
        // The switch is done: what cannot be dropped now is dropped by the next one.
        let _ = self.staging().clear();
        Ok(generation)
    }

    fn check_log(&self, log: &Path) -> Result<(), Error> {
        let present = self.current().map(|it| it.tree());
        match replica::check(log, present.as_deref()) {
            // What is damaged here is no reason to refuse what mends it.
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

    /// Removes generations beyond those that are kept, and logs with what was purged since, unless a reader has a lease
    /// on them; returns how many are left that should go. Call it after a switch, and now and then.
    ///
    /// # Errors
    ///
    /// The system's, [`Error::Stopped`]; what is left is removed the next time.
    pub fn remove_old(&self) -> Result<usize, Error> {
        self.remove_left()?;
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
            // Otherwise a power cut could leave half of it under its name.
            let above = self.dir.join(GENERATIONS);
            self.disk.sync(&above).map_err(Error::io(&above))?;
            if let Err(error) = self.remove(&gone) {
                self.left.lock().unwrap_or_else(PoisonError::into_inner).push(gone);
                return Err(error);
            }
            left -= 1;
        }
        Ok(left)
    }
}

/// What `current` is to say.
fn target(generation: &Generation) -> PathBuf {
    let name = generation.dir().file_name().unwrap_or_default();
    Path::new(GENERATIONS).join(name).join(TREE)
}
