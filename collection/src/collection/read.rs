//! Reads of a collection: objects and notes by key, the log in order, and figures.
//!
//! Source: ARCHITECTURE.md, "The one idea".

use std::io;
use std::path::Path;

use roaring::RoaringTreemap;
use soif::Record;
use soif::digest::Md5;

use super::{Collection, Inner};
use crate::change::{Change, Oid, Stored};
use crate::error::Error;
use crate::holders::{CURSOR, Cursor, USER, note_key};
use crate::log::due::due;
use crate::log::scan::Scan;
use crate::log::segment::Entry;
use crate::report::Stats;

/// Number of attempts of a look-up during compactions; the last uses a rebuilt key index.
const GET_TRIES: usize = 4;

impl Inner {
    /// Returns the live object `oid`; `None` if there is none.
    pub(crate) fn stored(&self, oid: &Oid) -> Result<Option<Stored>, Error> {
        let key = oid.key();
        for tries in 1..=GET_TRIES {
            let made = self.keys_made();
            let Some(object) = self.read_keys(|keys| keys.object(&key))? else {
                return Ok(None);
            };
            // Between the two look-ups the object may have changed and the log been compacted.
            if let Some(found) = self.log.view().change(object.serial)?
                && let Change::Update(record) = found.change
            {
                return Ok(Some(Stored { record, serial: found.serial, stamp: found.stamp }));
            }
            if tries + 1 == GET_TRIES {
                let why = "it names a change that the log does not have";
                self.rebuild_keys(made, why)?;
            }
        }
        Ok(None)
    }
}

impl Collection {
    /// Returns the live object `oid`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The segment is damaged or unreadable.
    pub fn get(&self, oid: &Oid) -> Result<Option<Stored>, Error> {
        self.inner.stored(oid)
    }

    /// Returns the serial of the last update of the object `oid`; `None` if it is not live. Reads
    /// no segment.
    pub fn serial(&self, oid: &Oid) -> Result<Option<u64>, Error> {
        let key = oid.key();
        let object = self.inner.read_keys(|keys| keys.object(&key))?;
        Ok(object.map(|it| it.serial))
    }

    /// Returns the value of a note; `None` if there is no such note.
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

    /// Returns the cursor of `source`; `None` if the source was never read.
    pub fn cursor(&self, source: &str) -> Result<Option<Cursor>, Error> {
        let key = note_key(CURSOR, source.as_bytes());
        let value = self.inner.read_keys(|keys| keys.note(&key))?;
        Ok(value.and_then(|it| Cursor::decode(&it)))
    }

    /// Returns the changes after serial `since` up to the present version, in serial order;
    /// superseded ones may be absent.
    pub fn scan(&self, since: u64) -> Result<Scan, Error> {
        Ok(Scan::new(self.inner.log.view(), since))
    }

    /// Returns the live objects whose record has this `MD5`, in identifier order.
    pub fn oids_with_md5(&self, md5: &Md5) -> Result<Vec<Oid>, Error> {
        self.inner.read_keys(|keys| keys.oids_with_md5(md5))
    }

    /// Returns whether the object of `record` is here with the same `MD5`; false if one has none.
    pub(crate) fn has_content_of(&self, record: &Record) -> bool {
        let Some(key) = Oid::of(record).map(|it| it.key()) else { return false };
        let Some(md5) = record.get("MD5").and_then(Md5::from_hex) else { return false };
        let object = self.inner.read_keys(|keys| keys.object(&key));
        object.is_ok_and(|it| it.is_some_and(|it| it.has_md5(&md5)))
    }

    /// Calls `look` with the serials of the updates that hold the live objects' records. The first
    /// call, and the first one after a rebuild of the key index, reads the whole key index. Commits
    /// do not wait for `look`, and it does not see their changes.
    pub fn with_live<T>(&self, look: impl FnOnce(&RoaringTreemap) -> T) -> Result<T, Error> {
        let Some(live_set) = self.inner.live_set.get_or_build(|| self.build_live_set())? else {
            let why = "it is rebuilt again and again".to_owned();
            return Err(Error::keys(self.inner.keys_dir(), sled::Error::Unsupported(why)));
        };
        Ok(look(&live_set))
    }

    pub(crate) fn build_live_set(&self) -> Result<RoaringTreemap, Error> {
        let mut live_set = RoaringTreemap::new();
        let objects = self.inner.read_keys(|keys| Ok(keys.objects()))?;
        for object in objects {
            let (_, object) = object.map_err(|it| Error::keys(self.inner.keys_dir(), it))?;
            self.inner.check_open()?;
            live_set.insert(object.serial);
        }
        Ok(live_set)
    }

    /// Writes all live objects as plain SOIF, in serial order, without those whose records are
    /// damaged. Returns the number of objects written, which may be less than [`len`](Self::len).
    ///
    /// # Errors
    ///
    /// The log cannot be read, or `out` cannot be written.
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
        let no_room = self.inner.repairs().no_room;
        stats.compaction_due = due(&view, stats.objects, no_room).is_some();
        stats
    }
}
