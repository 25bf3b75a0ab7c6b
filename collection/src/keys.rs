//! The key index finds objects and notes by key. It can always be rebuilt from the segments.
//!
//! Each commit is one batch that includes the watermark, so the index is always at a commit, never
//! between two. Acknowledging a commit does not depend on the index: a commit is durable before it
//! is indexed, and after any error the index is dropped and rebuilt. Commits whose index entries
//! are lost in a crash are replayed.
//!
//! | key | value |
//! |---|---|
//! | `e` due (big-endian ms), oid | – : the expiry queue |
//! | `m` MD5, oid | – |
//! | `n` note key | value |
//! | `o` oid | serial, seen, time-to-live, due, root, MD5 |
//! | `r` hash of gatherer and root | serial and time of the last confirmation |
//! | `s` source | number of objects held |
//! | `v` key of a source's cursor | value |
//!
//! Keys of the first four kinds are about as many as objects, and are stored in sorted runs. The
//! other keys are few, and are stored in sled (see [`store`]).
//!
//! Source: docs/collection.md, "The key index".

mod bloom;
mod layers;
mod listing;
pub(crate) mod live_set;
mod merge;
mod run;
mod store;

use std::fs;
use std::mem;
use std::path::Path;

use disk::Disk;
use soif::digest::Md5;
use xxhash_rust::xxh3::xxh3_64;

use crate::change::{Change, Epoch, GATHERER_ID, GATHERER_ROOT, Note, Oid, Stamp};
use crate::holders::{CURSOR, HOLDERS, Holders};
use crate::member::{get, put};
use crate::options::Options;
use layers::Table;
pub(crate) use listing::describe;
use live_set::LiveSetDelta;
use store::Store;

const OBJECT: u8 = b'o';
const MD5: u8 = b'm';
const EXPIRY: u8 = b'e';
const ROOT: u8 = b'r';
const NOTE: u8 = b'n';
const SOURCE: u8 = b's';
const SOURCE_CURSOR: u8 = b'v';

/// Maximum time-to-live, in milliseconds: 100 years.
const TTL_MS_MAX: u64 = 100 * 365 * 86_400_000;

/// Maximum number of keys written at once when objects are moved back in the expiry queue.
const MOVES_MAX: usize = 4096;

/// The version that the index has reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watermark {
    pub(crate) epoch: Epoch,
    pub(crate) commit: u64,
    pub(crate) serial: u64,
    /// Number of live objects.
    pub(crate) live: u64,
}

impl Watermark {
    fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        for number in [self.epoch.0, self.commit, self.serial, self.live] {
            put(&mut out, number);
        }
        out
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let epoch = Epoch(get(bytes)?);
        Some(Self { epoch, commit: get(bytes)?, serial: get(bytes)?, live: get(bytes)? })
    }
}

/// The index entry of a live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// The serial of its last update.
    pub(crate) serial: u64,
    /// When it was last updated or refreshed, in Unix milliseconds.
    pub(crate) seen: u64,
    /// Its time-to-live, in milliseconds.
    pub(crate) ttl: u64,
    /// Its position in the expiry queue, in Unix milliseconds; never later than its expiry.
    pub(crate) due: u64,
    /// Hash of its gatherer and root; 0 if it has no root.
    pub(crate) root: u64,
    md5: Option<[u8; 16]>,
}

impl Object {
    /// Returns whether its record has this `MD5`.
    pub(crate) fn has_md5(&self, md5: &Md5) -> bool {
        self.md5 == Some(md5.0)
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(56);
        for number in [self.serial, self.seen, self.ttl, self.due] {
            put(&mut out, number);
        }
        out.extend_from_slice(&self.root.to_le_bytes());
        out.extend_from_slice(self.md5.as_ref().map_or(&[], |it| it));
        out
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let (serial, seen, ttl, due) = (get(rest)?, get(rest)?, get(rest)?, get(rest)?);
        let (root, md5) = rest.split_first_chunk::<8>()?;
        Some(Self {
            serial,
            seen,
            ttl,
            due,
            root: u64::from_le_bytes(*root),
            md5: if md5.is_empty() { None } else { Some(md5.try_into().ok()?) },
        })
    }
}

/// The key index of one collection.
#[derive(Debug)]
pub(crate) struct Keys {
    store: Store,
    ttl_default_ms: u64,
}

type Outcome<T> = Result<T, sled::Error>;

impl Keys {
    /// Opens the index in `dir`, in its last durable state.
    pub(crate) fn open(disk: &Disk, dir: &Path, options: &Options) -> Outcome<Self> {
        let store = Store::open(disk, dir, options.keys_table_bytes_max)?;
        Ok(Self { store, ttl_default_ms: options.ttl_default_ms() })
    }

    pub(crate) fn remove(dir: &Path) -> Outcome<()> {
        match fs::remove_dir_all(dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn flush(&self) -> Outcome<()> {
        self.store.flush()
    }

    /// Spills the table and merges runs if that is due; call this after every commit. Long work
    /// ends early when `goes_on` returns false.
    pub(crate) fn maintain(&self, goes_on: &dyn Fn() -> bool) -> Outcome<()> {
        self.store.maintain(goes_on)
    }

    /// Returns the approximate number of bytes still to be written to the disk.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        self.store.unwritten_bytes()
    }

    /// Returns whether the index has to be rebuilt: after a failed sync its files may lack entries.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.store.core.is_incomplete()
    }

    pub(crate) fn watermark(&self) -> Option<Watermark> {
        self.store.watermark()
    }

    /// Returns the entry of the object with that key; `None` if the object is not live.
    pub(crate) fn object(&self, oid_key: &[u8]) -> Outcome<Option<Object>> {
        Ok(self.store.get(&keyed(OBJECT, &[oid_key]))?.and_then(|it| Object::decode(&it)))
    }

    pub(crate) fn note(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        self.store.get(&stored_note_key(key))
    }

    /// Returns the notes whose keys start with `prefix`, by key.
    pub(crate) fn notes(
        &self,
        prefix: &[u8],
    ) -> impl Iterator<Item = Outcome<(Vec<u8>, Vec<u8>)>> + use<> {
        self.notes_from(prefix, prefix)
    }

    /// Returns [`notes`](Self::notes) from the key `from` on, which starts with `prefix`.
    pub(crate) fn notes_from(
        &self,
        prefix: &[u8],
        from: &[u8],
    ) -> impl Iterator<Item = Outcome<(Vec<u8>, Vec<u8>)>> + use<> {
        let entries = self.store.scan(&keyed(NOTE, &[prefix]), &keyed(NOTE, &[from]));
        entries.map(|it| {
            it.map(|(mut key, value)| {
                key.remove(0);
                (key, value)
            })
        })
    }

    /// Returns the sources' cursors: their notes' keys and values, by key.
    pub(crate) fn cursors(&self) -> Outcome<Vec<(Vec<u8>, Vec<u8>)>> {
        let found = self.store.few(&[SOURCE_CURSOR])?;
        Ok(found.into_iter().map(|(key, value)| (key[1..].to_vec(), value)).collect())
    }

    pub(crate) fn oids_with_md5(&self, md5: &Md5) -> Outcome<Vec<Oid>> {
        let prefix = keyed(MD5, &[&md5.0]);
        let mut found = Vec::new();
        for item in self.store.scan(&prefix, &prefix) {
            found.extend(Oid::from_key(&item?.0[prefix.len()..]));
        }
        Ok(found)
    }

    /// Returns the sources that hold objects, each with the number of its objects, by name.
    pub(crate) fn sources(&self) -> Outcome<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for (key, value) in self.store.few(&[SOURCE])? {
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            found.push((name, get(&mut &value[..]).unwrap_or(0)));
        }
        Ok(found)
    }

    /// Returns the serial and time of a root's last confirmation; `None` if it was never confirmed.
    pub(crate) fn confirmed(&self, gatherer: &str, root: &str) -> Outcome<Option<(u64, u64)>> {
        self.confirmation(root_hash(gatherer, root))
    }

    fn confirmation(&self, hash: u64) -> Outcome<Option<(u64, u64)>> {
        let value = self.store.get(&keyed(ROOT, &[&hash.to_le_bytes()]))?;
        Ok(value.and_then(|value| {
            let rest = &mut &value[..];
            Some((get(rest)?, get(rest)?))
        }))
    }

    /// Calls `handle` with the objects that have expired at `now_ms`, from the position `from` in
    /// the queue on, until `handle` returns false; then returns the position of that object.
    /// Returns `None` at the end, or when `goes_on` returns false. Objects that expire later than
    /// their position says are moved back in the queue.
    pub(crate) fn expired(
        &self,
        now_ms: u64,
        from: &[u8],
        goes_on: impl Fn() -> bool,
        mut handle: impl FnMut(Oid) -> bool,
    ) -> Outcome<Option<Vec<u8>>> {
        let mut moved = Table::new();
        let mut next = None;
        for item in self.store.scan(&[EXPIRY], &keyed(EXPIRY, &[from])) {
            let (key, _) = item?;
            let Some((due, oid_key)) = key[1..].split_first_chunk::<8>() else { continue };
            if now_ms < u64::from_be_bytes(*due) || !goes_on() {
                break;
            }
            let Some(mut object) = self.object(oid_key)? else { continue };
            let confirmed = match object.root {
                0 => None,
                root => self.confirmation(root)?,
            };
            let seen = confirmed.map_or(0, |(_, at)| at).max(object.seen);
            let due = seen.saturating_add(object.ttl);
            if due <= now_ms {
                if Oid::from_key(oid_key).is_some_and(|oid| !handle(oid)) {
                    next = Some(key[1..].to_vec());
                    break;
                }
                continue;
            }
            object.due = due;
            moved.insert(keyed(EXPIRY, &[&due.to_be_bytes(), oid_key]), Some(Vec::new()));
            moved.insert(keyed(OBJECT, &[oid_key]), Some(object.encode()));
            moved.insert(key, None);
            if MOVES_MAX <= moved.len() {
                self.store.apply(mem::take(&mut moved), None, 0);
                self.store.maintain(&goes_on)?;
            }
        }
        self.store.apply(moved, None, 0);
        Ok(next)
    }

    /// Begins a batch of writes.
    pub(crate) fn writes(&self) -> Writes<'_> {
        let watermark = self.watermark().unwrap_or_default();
        Writes { keys: self, pending: Table::new(), replay_bytes: 0, delta: None, watermark }
    }
}

fn keyed(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|it| it.len()).sum::<usize>());
    key.push(kind);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

fn stored_note_key(key: &[u8]) -> Vec<u8> {
    keyed(if key.first() == Some(&CURSOR) { SOURCE_CURSOR } else { NOTE }, &[key])
}

fn root_hash(gatherer: &str, root: &str) -> u64 {
    xxh3_64(&Oid::new(gatherer, root).key()).max(1)
}

/// A batch of changes to the index. Reads through the batch already see these changes.
#[derive(Debug)]
pub(crate) struct Writes<'a> {
    keys: &'a Keys,
    pending: Table,
    /// Plain bytes of the changes' values and of the notes, which a start would have to replay.
    replay_bytes: u64,
    /// The changes to the live set; `None` if they are not needed.
    pub(crate) delta: Option<LiveSetDelta>,
    pub(crate) watermark: Watermark,
}

impl Writes<'_> {
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Writes the batch; from then on the index covers everything up to `commit` and `serial`.
    pub(crate) fn commit(self, epoch: Epoch, commit: u64, serial: u64) {
        let watermark = Watermark { epoch, commit, serial, live: self.watermark.live };
        self.keys.store.apply(self.pending, Some(watermark), self.replay_bytes);
    }

    fn read(&self, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        match self.pending.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.keys.store.get(key),
        }
    }

    fn object(&self, oid_key: &[u8]) -> Outcome<Option<Object>> {
        Ok(self.read(&keyed(OBJECT, &[oid_key]))?.and_then(|it| Object::decode(&it)))
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.pending.insert(key, Some(value));
    }

    fn remove(&mut self, key: Vec<u8>) {
        self.pending.insert(key, None);
    }

    pub(crate) fn change(&mut self, serial: u64, stamp: Stamp, change: &Change) -> Outcome<()> {
        match change {
            Change::Update(record) => {
                let values = record.attributes().iter().map(|it| it.value.len() as u64);
                self.replay_bytes += values.sum::<u64>();
                let Some(oid) = Oid::of(record) else { return Ok(()) };
                let ttl = record.number("Time-to-Live").filter(|it| *it != 0);
                let ttl = ttl.map_or(self.keys.ttl_default_ms, |it| it.saturating_mul(1000));
                let root = record.text(GATHERER_ROOT);
                let gatherer = record.text(GATHERER_ID).unwrap_or_default();
                let object = Object {
                    serial,
                    seen: stamp.0,
                    ttl: ttl.min(TTL_MS_MAX),
                    due: stamp.0.saturating_add(ttl.min(TTL_MS_MAX)),
                    root: root.map_or(0, |root| root_hash(gatherer.trim(), &root)),
                    md5: record.get("MD5").and_then(Md5::from_hex).map(|it| it.0),
                };
                self.replace(&oid.key(), Some(object))
            }
            Change::Refresh(oid, _) => {
                let key = oid.key();
                match self.object(&key)? {
                    None => Ok(()),
                    Some(object) => {
                        let due = stamp.0.saturating_add(object.ttl);
                        self.replace(&key, Some(Object { seen: stamp.0, due, ..object }))
                    }
                }
            }
            Change::Confirm { gatherer, root, at } => {
                let mut value = Vec::with_capacity(16);
                put(&mut value, serial);
                // A gatherer's clock may run ahead of ours.
                put(&mut value, at.0.min(stamp.0));
                let hash = root_hash(gatherer, root);
                self.put(keyed(ROOT, &[&hash.to_le_bytes()]), value);
                Ok(())
            }
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                self.replace(&oid.key(), None)
            }
        }
    }

    fn replace(&mut self, oid_key: &[u8], mut new: Option<Object>) -> Outcome<()> {
        let old = self.object(oid_key)?;
        let (before, after) = (old.map(|it| it.serial), new.map(|it| it.serial));
        if let Some(delta) = self.delta.as_mut().filter(|_| before != after) {
            delta.added.extend(after);
            delta.removed.extend(before);
        }
        // The object keeps its position in the queue unless that position is too late. A position
        // that has become too early is corrected only once, when its time comes, however often the
        // object changes until then.
        let place = old.map(|it| it.due).filter(|due| new.is_some_and(|new| *due <= new.due));
        if let (Some(new), Some(due)) = (&mut new, place) {
            new.due = due;
        }
        if let Some(old) = old {
            if place.is_none() {
                self.remove(keyed(EXPIRY, &[&old.due.to_be_bytes(), oid_key]));
            }
            if let Some(md5) = old.md5.filter(|it| new.and_then(|new| new.md5) != Some(*it)) {
                self.remove(keyed(MD5, &[&md5, oid_key]));
            }
        }
        if let Some(new) = new {
            if place.is_none() {
                self.put(keyed(EXPIRY, &[&new.due.to_be_bytes(), oid_key]), Vec::new());
            }
            if let Some(md5) = new.md5.filter(|it| old.and_then(|old| old.md5) != Some(*it)) {
                self.put(keyed(MD5, &[&md5, oid_key]), Vec::new());
            }
            self.put(keyed(OBJECT, &[oid_key]), new.encode());
        } else if old.is_some() {
            self.remove(keyed(OBJECT, &[oid_key]));
        }
        let live = &mut self.watermark.live;
        *live = (*live + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some()));
        Ok(())
    }

    pub(crate) fn note(&mut self, note: &Note) -> Outcome<()> {
        let key = stored_note_key(&note.key);
        self.replay_bytes += note.value.as_ref().map_or(0, |it| it.len() as u64);
        if note.key.first() == Some(&HOLDERS) {
            let old = self.read(&key)?;
            self.count(old.as_deref(), note.value.as_deref())?;
        }
        self.pending.insert(key, note.value.clone());
        Ok(())
    }

    /// Updates the number of objects of each source that an object has lost or gained as a holder.
    fn count(&mut self, old: Option<&[u8]>, new: Option<&[u8]>) -> Outcome<()> {
        let sources = |value: Option<&[u8]>| -> Vec<String> {
            let holders = value.and_then(Holders::decode).unwrap_or_default();
            holders.list.into_iter().map(|it| it.source).collect()
        };
        let (old, new) = (sources(old), sources(new));
        for gone in old.iter().filter(|it| !new.contains(it)) {
            self.add(gone, false)?;
        }
        for fresh in new.iter().filter(|it| !old.contains(it)) {
            self.add(fresh, true)?;
        }
        Ok(())
    }

    fn add(&mut self, source: &str, one_more: bool) -> Outcome<()> {
        let key = keyed(SOURCE, &[source.as_bytes()]);
        let count = self.read(&key)?.and_then(|it| get(&mut it.as_slice())).unwrap_or(0);
        let count = if one_more { count + 1 } else { count.saturating_sub(1) };
        if count == 0 {
            self.remove(key);
        } else {
            let mut value = Vec::new();
            put(&mut value, count);
            self.put(key, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::holders::Holder;

    fn update(url: &str, text: &str) -> Change {
        let mut record = soif::Record::new("FILE", url);
        record.push(GATHERER_ID, "g");
        record.push("MD5", Md5::of(text.as_bytes()).to_string());
        record.push("Time-to-Live", "1");
        Change::Update(record)
    }

    /// Indexes the batches, and compares the objects due at `now_ms` and the live count.
    fn check(
        batches: &[&[Change]],
        now_ms: u64,
        expected: (&[&str], u64),
    ) -> (tempfile::TempDir, Keys) {
        let dir = tempfile::tempdir().unwrap();
        let ttl_default = Duration::from_secs(5);
        let options = Options { ttl_default, ..Options::default() };
        let keys = Keys::open(&Disk::System, dir.path(), &options).unwrap();
        let mut serial = 0;
        for (commit, changes) in (1..).zip(batches) {
            let mut writes = keys.writes();
            for change in *changes {
                serial += 1;
                writes.change(serial, Stamp(1000 * commit), change).unwrap();
            }
            writes.commit(Epoch(1), commit, serial);
        }
        let mut due = Vec::new();
        let handle = |oid: Oid| {
            due.push(oid.url);
            true
        };
        keys.expired(now_ms, &[], || true, handle).unwrap();
        assert_eq!(due, expected.0);
        assert_eq!(keys.watermark().unwrap().live, expected.1);
        (dir, keys)
    }

    #[test]
    fn the_queue_follows_updates_refreshes_and_deletes() {
        let refresh = Change::Refresh(Oid::new("g", "b"), None);
        let delete = Change::Delete(Oid::new("g", "c"));
        let first = [update("a", "1"), update("b", "1"), update("c", "1")];
        check(&[&first], 1999, (&[], 3));
        check(&[&first], 2000, (&["a", "b", "c"], 3));
        check(&[&first, &[refresh, delete.clone(), delete]], 2000, (&["a"], 2));
        check(&[&[update("a", "1"), update("a", "2")], &[update("a", "3")]], 2999, (&[], 1));
    }

    #[test]
    fn an_md5_finds_the_objects_that_have_it_now() {
        let batches: [&[Change]; 2] = [&[update("a", "1"), update("b", "1")], &[update("a", "2")]];
        let (_dir, keys) = check(&batches, 0, (&[], 2));
        let found = |text: &str| keys.oids_with_md5(&Md5::of(text.as_bytes())).unwrap();
        assert_eq!(found("1"), [Oid::new("g", "b")]);
        assert_eq!(found("2"), [Oid::new("g", "a")]);
    }

    #[test]
    fn each_source_counts_the_objects_that_it_holds() {
        let (_dir, keys) = check(&[&[]], 0, (&[], 0));
        let mut holders = Holders::default();
        let mut steps = Vec::new();
        let mut note = |holders: &Holders, url: &str| {
            let key = Holders::note_key(&Oid::new("g", url));
            let value = (!holders.list.is_empty()).then(|| holders.encode());
            steps.push(Note { key, value });
        };
        let hold = |source: &str| Holder { source: source.to_owned(), ..Holder::default() };
        holders.hold(hold("a"));
        note(&holders, "1");
        note(&holders, "2");
        holders.hold(hold("b"));
        note(&holders, "2");
        note(&Holders::default(), "1");
        let mut writes = keys.writes();
        steps.iter().for_each(|it| writes.note(it).unwrap());
        writes.commit(Epoch(1), 2, 0);
        assert_eq!(keys.sources().unwrap(), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
    }
}
