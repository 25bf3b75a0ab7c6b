//! The collection: one writer at a time, any number of readers, on one directory.
//!
//! A commit is packed before the writer's lock is taken, appended and synced under it, then put in
//! the key index, and only then shown to readers.
//!
//! Source: DESIGN.md, "The one idea".

use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use roaring::RoaringTreemap;
use soif::digest::Md5;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::change::{Batch, Change, Note, Oid, Stamp, Stored, Version};
use crate::error::Error;
use crate::heal::Mending;
use crate::holders::{USER, note_key};
use crate::index::Slot;
use crate::keys::lives::Lives;
use crate::log::due::due;
use crate::log::scan::{Pinned, Scan};
use crate::log::segment::{Entry, Segment};
use crate::log::{Appended, Log, Tail};
use crate::member::content;
use crate::member::pack::{self, Packed};
use crate::options::Options;
use crate::recover::{self};
use crate::report::{Extents, Stats};
use crate::room;
use crate::suppressed::Suppressed;

/// Compression of commits: fast.
const LEVEL_COMMIT: u32 = 1;
/// How often a look-up is tried that compaction may have overtaken; the last time with new keys.
const GET_TRIES: usize = 4;

/// Records by object identifier and one change log, on one directory.
///
/// Cheap to clone; all clones are the same collection. Methods block (on the disk, and writers on
/// one another): call them from `spawn_blocking`.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) dir: PathBuf,
    pub(crate) options: Options,
    pub(crate) log: Log,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) slot: RwLock<Slot>,
    pub(crate) live: AtomicU64,
    /// Which updates the live objects have their records from.
    pub(crate) lives: Lives,
    pub(crate) announce: watch::Sender<Version>,
    /// Held while compacting: one compaction at a time. What the last one replaced, if for want of
    /// space it ended early.
    pub(crate) compacting: Mutex<Vec<Weak<Segment>>>,
    /// What is known of damage, and what was done about it.
    pub(crate) mending: Mutex<Mending>,
    /// What is suppressed.
    pub(crate) suppressed: Mutex<Suppressed>,
    /// It is to be closed: nothing that takes long is to go on.
    pub(crate) closing: AtomicBool,
    /// Locked for as long as the collection is open; `None` where it is only read, and there is no lock.
    pub(crate) lock: Option<File>,
    /// Where the key index is written of what is only read.
    pub(crate) overlay: Option<TempDir>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

impl Collection {
    /// Returns the version of the last commit.
    #[must_use]
    pub fn version(&self) -> Version {
        self.inner.log.version()
    }

    /// Whether all that has changed since `version` is in the log: otherwise whoever has come there begins anew.
    #[must_use]
    pub fn goes_on_from(&self, version: Version) -> bool {
        self.inner.log.view().goes_on_from(version)
    }

    /// Returns the version of the last commit; waits for one that is under way. What can be looked up by
    /// key, a cursor for one, may be of a commit that [`version`](Self::version) does not name yet: behind
    /// this it does. Blocks.
    #[must_use]
    pub fn committed(&self) -> Version {
        self.inner.tail().version()
    }

    /// Returns the serial up to which deletes may be forgotten: who has read less far than that reads
    /// from the start.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        self.inner.log.view().horizon
    }

    /// Returns the last moment, at most `at`, such that every change with a stamp up to it is visible, now
    /// and for good: stamps given from now on are later, whatever the clock says. `at` is not after the
    /// present time.
    #[must_use]
    pub fn settle(&self, at: Stamp) -> Stamp {
        self.inner.log.settled.settle(at)
    }

    /// Returns a receiver that hears of every new version.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Version> {
        self.inner.announce.subscribe()
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.inner.live.load(Ordering::Acquire)
    }

    /// Whether there is no live object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `batch` as one commit: after a crash all of it is there, or nothing. Durable when it
    /// returns. An empty batch commits nothing. Updates of suppressed objects are left out and counted.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: correct or drop that change. [`Error::Stopped`]: it is closed. After any
    /// other nothing of it is kept; where it [`may pass`](Error::may_pass), commit it again later.
    pub fn commit(&self, batch: impl Borrow<Batch>, now: Stamp) -> Result<Version, Error> {
        let batch = batch.borrow();
        let (kept, seen) = self.inner.without_suppressed(&batch.changes);
        let own = |note: &Note| Note { key: note_key(USER, &note.key), value: note.value.clone() };
        let notes: Vec<Note> = batch.notes.iter().map(own).collect();
        let packed = self.inner.pack(&kept, &notes)?;
        let mut tail = self.inner.tail();
        if self.inner.suppressed().revision != seen {
            // More has been suppressed meanwhile.
            let (kept, _) = self.inner.without_suppressed(&kept);
            return self.inner.commit(&mut tail, &kept, &notes, now);
        }
        self.inner.commit_packed(&mut tail, &kept, &notes, &packed, now)
    }

    /// Returns the live object `oid`.
    ///
    /// # Errors
    ///
    /// The segment is damaged or unreadable.
    pub fn get(&self, oid: &Oid) -> Result<Option<Stored>, Error> {
        let key = oid.key();
        for tries in 1..=GET_TRIES {
            let made = self.inner.keys_made();
            let Some(object) = self.inner.read_keys(|keys| keys.object(&key))? else {
                return Ok(None);
            };
            // Between the two look-ups the object may have changed and the log been compacted.
            if let Some(found) = self.inner.log.view().change(object.serial)?
                && let Change::Update(record) = found.change
            {
                return Ok(Some(Stored { record, serial: found.serial, stamp: found.stamp }));
            }
            if tries + 1 == GET_TRIES {
                let why = "it names a change that the log does not have";
                self.inner.rebuild_keys(made, why)?;
            }
        }
        Ok(None)
    }

    /// Returns the serial of the live object `oid`: that of its newest change. Reads no segment.
    ///
    /// # Errors
    ///
    /// The key index cannot be read.
    pub fn serial(&self, oid: &Oid) -> Result<Option<u64>, Error> {
        let key = oid.key();
        let object = self.inner.read_keys(|keys| keys.object(&key))?;
        Ok(object.map(|it| it.serial))
    }

    /// Returns the value of a note.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn note(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let key = note_key(USER, key);
        self.inner.read_keys(|keys| keys.note(&key))
    }

    /// Returns the notes whose keys start with `prefix`, by key. Notes committed meanwhile may or
    /// may not be among them.
    pub fn notes(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Error>> + use<> {
        let prefix = note_key(USER, prefix);
        let path = self.inner.keys_dir();
        let (notes, failed) = match self.inner.read_keys(|keys| Ok(keys.notes(&prefix))) {
            Ok(notes) => (Some(notes), None),
            Err(error) => (None, Some(Err(error))),
        };
        let bare = move |item: Result<(Vec<u8>, Vec<u8>), sled::Error>| match item {
            Ok((mut key, value)) => {
                key.drain(..key.len().min(1));
                Ok((key, value))
            }
            Err(source) => Err(Error::keys(path.clone(), source)),
        };
        failed.into_iter().chain(notes.into_iter().flatten().map(bare))
    }

    /// Returns the changes after serial `since` up to the present version, in serial order;
    /// superseded ones may be absent.
    ///
    /// # Errors
    ///
    /// None at present; the iterator's items may be errors.
    pub fn scan(&self, since: u64) -> Result<Scan, Error> {
        Ok(Scan::new(self.inner.log.view(), since))
    }

    /// Returns the live objects whose record has this `MD5`, in identifier order.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn oids_with_md5(&self, md5: &Md5) -> Result<Vec<Oid>, Error> {
        self.inner.read_keys(|keys| keys.oids_with_md5(md5))
    }

    /// Calls `look` with the serials of the updates that the live objects have their records from. The
    /// first time, and after the key index was made anew, this takes as long as going through the
    /// key index. Commits do not wait for `look`, which does not see what they change.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn with_live<T>(&self, look: impl FnOnce(&RoaringTreemap) -> T) -> Result<T, Error> {
        let Some(lives) = self.inner.lives.now(|| self.make_lives())? else {
            let why = "it is made anew again and again".to_owned();
            return Err(Error::keys(self.inner.keys_dir(), sled::Error::Unsupported(why)));
        };
        Ok(look(&lives))
    }

    /// Goes through the key index for what lives.
    pub(crate) fn make_lives(&self) -> Result<RoaringTreemap, Error> {
        let mut lives = RoaringTreemap::new();
        let objects = self.inner.read_keys(|keys| Ok(keys.objects()))?;
        for object in objects {
            let (_, object) = object.map_err(|it| Error::keys(self.inner.keys_dir(), it))?;
            self.inner.go_on()?;
            lives.insert(object.serial);
        }
        Ok(lives)
    }

    /// Writes all live objects as plain SOIF, in serial order, but for those whose records are damaged;
    /// returns how many were written. [`len`](Self::len) says how many there are.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or `out` refused.
    pub fn export(&self, mut out: impl io::Write) -> Result<u64, Error> {
        let refused = |error| Error::io("cannot write", Path::new("the export"), error);
        let mut count = 0;
        let mut plain = Vec::new();
        for scanned in Scan::of_sound(self.inner.log.view()) {
            let scanned = scanned?;
            let Change::Update(record) = scanned.change else { continue };
            let Some(oid) = Oid::of(&record) else { continue };
            let object = self.inner.read_keys(|keys| keys.object(&oid.key()))?;
            if object.is_some_and(|it| it.serial == scanned.serial) {
                plain.clear();
                soif::write_record(&mut plain, &record);
                out.write_all(&plain).map_err(refused)?;
                count += 1;
            }
        }
        out.flush().map_err(refused)?;
        Ok(count)
    }

    /// Returns the collection's figures.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let view = self.inner.log.view();
        let mut stats = Stats {
            version: view.version,
            objects: self.len(),
            segments: view.segments.len() as u64,
            horizon: view.horizon,
            ..Stats::default()
        };
        for segment in &view.segments {
            let entries = segment.entries();
            stats.members += entries.len() as u64;
            stats.changes += entries.iter().map(|it| u64::from(it.changes)).sum::<u64>();
            stats.bytes += entries.last().map_or(0, Entry::end);
        }
        let no_room = self.inner.mending().no_room;
        stats.compaction_due = due(&view, stats.objects, no_room).is_some();
        stats
    }

    /// Begins a new epoch: every consumer starts over with a snapshot. For restore, import and
    /// rollback.
    ///
    /// # Errors
    ///
    /// The file system refused; the epoch is as it was.
    pub fn new_epoch(&self, now: Stamp) -> Result<Version, Error> {
        let mut tail = self.inner.tail();
        self.inner.go_on()?;
        tail.go_on(&self.inner.log)?;
        let mut manifest = tail.manifest_now();
        manifest.epoch = recover::fresh_epoch(now, manifest.epoch);
        tail.replace(manifest, &self.inner.log)?;
        let (epoch, commit, serial) = (tail.manifest.epoch, tail.commit, tail.serial);
        let indexed = self.inner.read_keys(|keys| {
            keys.writes().commit(epoch, commit, serial);
            keys.flush()
        });
        if let Err(error) = indexed {
            self.inner.give_up_keys(&error);
        }
        self.inner.publish(&tail);
        Ok(tail.version())
    }

    /// Returns the members after serial `since` as file ranges, without the local ones; `None` if
    /// `since` lies before the horizon or past the end (then a snapshot is due).
    ///
    /// # Errors
    ///
    /// None at present; the signature leaves room.
    pub fn extents(&self, since: u64) -> Result<Option<Extents>, Error> {
        let view = self.inner.log.view();
        let known = view.horizon <= since && since <= view.version.serial;
        Ok(known.then(|| view.extents(since)))
    }

    /// Pins the whole log as it is: its files stay until the pin is dropped.
    ///
    /// # Errors
    ///
    /// None at present; the signature leaves room.
    pub fn pin(&self) -> Result<Pinned, Error> {
        Ok(Pinned::new(self.inner.log.view()))
    }
}

impl Inner {
    /// Takes the writer's lock.
    pub(crate) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packs what is to be committed.
    pub(crate) fn pack(&self, changes: &[Change], notes: &[Note]) -> Result<Vec<Packed>, Error> {
        let options = &self.options;
        let drafts =
            content::drafts(changes, notes, options.member_bytes_max, options.record_bytes_max)?;
        Ok(pack::pack(&drafts, LEVEL_COMMIT))
    }

    /// Commits under the writer's lock.
    pub(crate) fn commit(
        &self,
        tail: &mut Tail,
        changes: &[Change],
        notes: &[Note],
        now: Stamp,
    ) -> Result<Version, Error> {
        let packed = self.pack(changes, notes)?;
        self.commit_packed(tail, changes, notes, &packed, now)
    }

    fn commit_packed(
        &self,
        tail: &mut Tail,
        changes: &[Change],
        notes: &[Note],
        packed: &[Packed],
        now: Stamp,
    ) -> Result<Version, Error> {
        if packed.is_empty() {
            return Ok(tail.version());
        }
        let taken = self.append(tail, packed, now);
        self.mending().refused(taken.as_ref().err());
        let appended = taken.inspect_err(|_error| self.log.settled.end())?;
        self.index(tail, appended, changes, notes);
        self.publish(tail);
        self.log.settled.end();
        let goes_on = || self.go_on().is_ok();
        if let Err(error) = self.read_keys(|keys| keys.tend(&goes_on)) {
            self.give_up_keys(&error);
        }
        Ok(tail.version())
    }

    fn append(&self, tail: &mut Tail, packed: &[Packed], now: Stamp) -> Result<Appended, Error> {
        tail.go_on(&self.log)?;
        room::check(self, tail, packed)?;
        // What nobody could look up had better not be taken.
        self.read_keys(|_keys| Ok(()))?;
        self.log.append(tail, packed, now, self.options.segment_bytes_max)
    }

    /// Shows the last commit to readers.
    pub(crate) fn publish(&self, tail: &Tail) {
        let version = tail.version();
        self.log.change_view(|view| view.version = version);
        self.announce.send_if_modified(|known| {
            let newer = *known != version;
            *known = version;
            newer
        });
    }
}
