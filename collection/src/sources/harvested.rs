//! Harvested changes: those of a foreign repository, a source without serials, applied in parts.
//!
//! Records get serials in their order of arrival, in an epoch that is made for the source. So the
//! later one of two versions of an object wins. The harvest's checkpoint is committed with each
//! part. So, after any interruption, the next harvest neither loses nor repeats a part. Records
//! that come again unchanged (after a restart, in the overlap of two harvests, or in a full
//! harvest) are not counted as changes.
//!
//! A full harvest is a snapshot: its objects get its generation, and all others are released at its
//! end. The same [`restraint`](crate::restraint) applies.
//!
//! Source: ARCHITECTURE.md, "Invariants".

use std::collections::HashSet;

use soif::Record;
use soif::digest::Md5;

use super::restraint::is_loss;
use crate::change::{Change, Epoch, Note, ORIGIN_PATH, ORIGIN_VERSION, Oid, Stamp, Version};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::{Cursor, Holders, Progress, Pulled, USER, note_key};
use crate::member::{get, put};
use crate::report::Applied;

/// A part of a harvest, to be applied together with the checkpoint after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Harvested {
    /// The source's name.
    pub source: String,
    /// Updates and deletes in their order of arrival; of several for one object the last counts.
    pub changes: Vec<Change>,
    /// The number of the full harvest, higher than all before; 0 for a harvest of changes.
    pub generation: u64,
    /// Whether the harvest ends with this part.
    pub last: bool,
    /// Whether the full harvest that ends here was complete: then all other objects are released.
    pub release: bool,
    /// The position of the harvest after this part, in bytes of the harvester's own format.
    pub checkpoint: Vec<u8>,
    /// Whether an administrator has confirmed any loss.
    pub confirmed: bool,
    /// Whether the harvest starts again here, although the collection has a checkpoint.
    pub anew: bool,
}

/// The position at which a harvest continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarvestCheckpoint {
    /// The bytes of the last part's checkpoint.
    pub bytes: Vec<u8>,
    /// Whether the records up to this position are still there. If not, everything has to be
    /// harvested again, beginning with a part that has [`Harvested::anew`].
    pub is_intact: bool,
}

/// Returns the key of the note with a source's checkpoint.
fn key_of(source: &str) -> Vec<u8> {
    [b"harvest/", source.as_bytes()].concat()
}

impl Collection {
    /// Returns where the harvest of `source` continues; `None` if there was no harvest.
    pub fn harvest_checkpoint(&self, source: &str) -> Result<Option<HarvestCheckpoint>, Error> {
        let serial = self.cursor(source)?.map(|it| it.serial);
        let noted = self.stored_checkpoint(source)?;
        Ok(noted.map(|(at, bytes)| HarvestCheckpoint { bytes, is_intact: serial == Some(at) }))
    }

    /// Applies a part of a harvest, atomically with its checkpoint. Apply only one part of a source
    /// at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Loss`]: the part's changes are kept, but the checkpoint is unchanged. Harvest
    /// again, [`confirmed`](Harvested::confirmed) if the loss is intended. [`Error::SetBack`]: read
    /// [`harvest_checkpoint`](Self::harvest_checkpoint) again. Any other error as for
    /// [`apply`](Self::apply).
    pub fn apply_harvested(&self, harvested: Harvested, now: Stamp) -> Result<Applied, Error> {
        let (source, generation) = (harvested.source, harvested.generation);
        let known = self.cursor(&source)?;
        let noted = self.stored_checkpoint(&source)?;
        let (before, old) = noted.clone().unwrap_or_default();
        let is_set_back = noted.is_some() && known.as_ref().is_none_or(|it| it.serial != before);
        if is_set_back && !harvested.anew {
            return Err(Error::SetBack { name: source });
        }
        let random =
            u64::from_be_bytes(*Md5::of(source.as_bytes()).0.first_chunk().unwrap_or(&[0; 8]));
        let epoch = known.as_ref().map_or_else(|| Epoch::new(now, random), |it| it.epoch);
        // The serials are above all those ever given to this source.
        let first = known.as_ref().map_or(0, |it| it.serial).max(before);
        let changes: Vec<(u64, Change)> = (first + 1..)
            .zip(last_of_each(harvested.changes))
            .map(|(serial, change)| (serial, self.with_stored_version(&source, change)))
            .collect();
        let serial = changes.last().map_or(first, |(serial, _)| *serial);
        let held = self.begin_generation(&source, generation, known.as_ref())?;
        let (id, offset, to) = ("harvest".to_owned(), 0, 0);
        let snapshot = (generation != 0).then_some(Progress { id, offset, to, generation });
        let part = |changes, snapshot, end_of_snapshot| {
            let cursor = Cursor { epoch, serial, snapshot, part: None };
            Pulled { source: source.clone(), id: None, epoch, changes, cursor, end_of_snapshot }
        };
        let note = |checkpoint: &[u8]| {
            let mut value = Vec::with_capacity(checkpoint.len() + 10);
            put(&mut value, serial);
            value.extend_from_slice(checkpoint);
            vec![Note { key: note_key(USER, &key_of(&source)), value: Some(value) }]
        };
        let is_end = generation != 0 && harvested.last;
        let checkpoint = if is_end { &old } else { &harvested.checkpoint };
        let first = part(changes, snapshot, None);
        let then = first.cursor.clone();
        let is_known = |cursor: Option<&Cursor>| cursor == known.as_ref();
        let mut applied = self.apply_if(is_known, first, note(checkpoint), now)?;
        if !is_end {
            return Ok(applied);
        }
        // All objects of the harvest have its generation now.
        if harvested.release && !harvested.confirmed && is_loss(held, held) {
            self.check_loss(&source, generation, held)?;
        }
        let end = part(Vec::new(), None, harvested.release.then_some(generation));
        let is_next = |cursor: Option<&Cursor>| cursor == Some(&then);
        applied += self.apply_if(is_next, end, note(&harvested.checkpoint), now)?;
        Ok(applied)
    }

    /// Returns how many objects the source holds; records it when a full harvest begins.
    fn begin_generation(
        &self,
        source: &str,
        generation: u64,
        known: Option<&Cursor>,
    ) -> Result<u64, Error> {
        let held = self.held_by(source)?;
        let last = known.and_then(|it| it.snapshot.as_ref()).map(|it| it.generation);
        if generation != 0 && last != Some(generation) {
            self.remember_held(source, generation, held, last)?;
        }
        Ok(held)
    }

    /// Returns the stored checkpoint, if there is one, and the serial at which it was stored.
    fn stored_checkpoint(&self, source: &str) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let value = self.note(&key_of(source))?.unwrap_or_default();
        let mut rest = &value[..];
        Ok(get(&mut rest).map(|serial| (serial, rest.to_vec())))
    }

    /// Gives an update the stored version if its object is stored with the same record.
    fn with_stored_version(&self, source: &str, change: Change) -> Change {
        let Change::Update(mut record) = change else { return change };
        let version = Oid::of(&record).and_then(|oid| {
            let key = Holders::note_key(&oid);
            let held = self.inner.read_keys(|keys| keys.note(&key)).ok()??;
            let held = Holders::decode(&held)?;
            if held.list.iter().all(|it| it.source != source) {
                return None;
            }
            // A record that cannot be read is taken anew.
            let stored = self.get(&oid).ok()??.record;
            is_same(&stored, &record).then_some(held.version)
        });
        if let Some(version) = version.filter(|it| *it != Version::default()) {
            record.set(ORIGIN_VERSION, version.to_string());
        }
        Change::Update(record)
    }
}

/// Removes changes that a later one of the same object supersedes: an earlier update would win over
/// a last one that is already stored. Updates with an origin's version stay, since that version
/// orders them.
fn last_of_each(changes: Vec<Change>) -> Vec<Change> {
    let mut seen = HashSet::new();
    let mut kept: Vec<Change> = Vec::with_capacity(changes.len());
    for change in changes.into_iter().rev() {
        let (oid, has_version) = match &change {
            Change::Update(it) => (Oid::of(it), it.text(ORIGIN_VERSION).is_some()),
            Change::Delete(oid) => (Some(oid.clone()), false),
            _ => (None, true),
        };
        let is_void = oid.is_some_and(|it| !seen.insert(it)) && !has_version;
        if !is_void {
            kept.push(change);
        }
    }
    kept.reverse();
    kept
}

/// Returns whether two records have the same written form, apart from their versions.
fn is_same(a: &Record, b: &Record) -> bool {
    let plain = |it: &Record| {
        let mut it = it.clone();
        it.remove(ORIGIN_VERSION);
        it.remove(ORIGIN_PATH);
        let mut bytes = Vec::new();
        soif::write_record(&mut bytes, &it);
        bytes
    };
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::change::GATHERER_ID;
    use crate::options::Options;

    fn open(dir: &Path) -> Collection {
        Collection::open(dir, Options::default(), Stamp(1)).unwrap().0
    }

    fn update(n: u64, text: &str) -> Change {
        let mut record = Record::new("FILE", format!("oai:x:{n}"));
        record.push("Title", text);
        record.push(GATHERER_ID, "00000000000000aa");
        Change::Update(record)
    }

    fn delete(n: u64) -> Change {
        Change::Delete(Oid::new("00000000000000aa", &format!("oai:x:{n}")))
    }

    fn part(changes: Vec<Change>, checkpoint: &str) -> Harvested {
        let (source, checkpoint) = ("s".to_owned(), checkpoint.as_bytes().to_vec());
        Harvested { source, changes, checkpoint, ..Harvested::default() }
    }

    fn checkpoint(collection: &Collection) -> Option<(String, bool)> {
        let found = collection.harvest_checkpoint("s").unwrap()?;
        Some((String::from_utf8(found.bytes).unwrap(), found.is_intact))
    }

    #[test]
    fn a_part_and_its_checkpoint_are_committed_together() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        assert_eq!(checkpoint(&collection), None);
        let changes = vec![update(1, "a"), update(2, "b"), update(2, "c")];
        collection.apply_harvested(part(changes, "one"), Stamp(10)).unwrap();
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (2, Some(("one".to_owned(), true)))
        );
        let oid = Oid::new("00000000000000aa", "oai:x:2");
        assert_eq!(collection.get(&oid).unwrap().unwrap().record.text("Title").unwrap(), "c");
        // A record that comes again unchanged is not a change.
        let version = collection.version();
        let again = vec![update(1, "a"), update(2, "c")];
        let applied = collection.apply_harvested(part(again, "two"), Stamp(11)).unwrap();
        assert_eq!((applied.updated, applied.ignored), (0, 2));
        assert_eq!(collection.version(), version);
        let changes = vec![update(1, "d"), delete(2)];
        let applied = collection.apply_harvested(part(changes, "three"), Stamp(12)).unwrap();
        assert_eq!((applied.updated, applied.deleted), (1, 1));
        collection.close();
        let collection = open(dir.path());
        assert_eq!(checkpoint(&collection), Some(("three".to_owned(), true)));
        assert_eq!(collection.len(), 1);
    }

    #[test]
    fn of_an_object_that_comes_twice_in_a_part_the_last_counts() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        let title = || {
            let oid = Oid::new("00000000000000aa", "oai:x:1");
            let found = collection.get(&oid).unwrap();
            found.map(|it| it.record.text("Title").unwrap().into_owned())
        };
        let mut at = 10;
        let mut apply = |changes| {
            at += 1;
            collection.apply_harvested(part(changes, "one"), Stamp(at)).unwrap();
            title()
        };
        assert_eq!(apply(vec![update(1, "a")]).as_deref(), Some("a"));
        // The last update is the stored one.
        assert_eq!(apply(vec![update(1, "b"), update(1, "a")]).as_deref(), Some("a"));
        assert_eq!(apply(vec![delete(1), update(1, "a")]).as_deref(), Some("a"));
        assert_eq!(apply(vec![update(1, "a"), update(1, "b")]).as_deref(), Some("b"));
        assert_eq!(apply(vec![update(1, "c"), delete(1)]), None);
    }

    fn full(changes: Vec<Change>, generation: u64, release: bool) -> Harvested {
        let last = release;
        Harvested { generation, last, release, ..part(changes, "full") }
    }

    #[test]
    fn objects_missing_from_a_full_harvest_are_released_at_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        let all = (0..10).map(|it| update(it, "a")).collect();
        collection.apply_harvested(part(all, "one"), Stamp(10)).unwrap();
        let first = (0..4).map(|it| update(it, "a")).collect();
        collection.apply_harvested(full(first, 7, false), Stamp(11)).unwrap();
        assert_eq!(collection.len(), 10);
        let last = (4..8).map(|it| update(it, "b")).collect();
        let applied = collection.apply_harvested(full(last, 7, true), Stamp(12)).unwrap();
        assert_eq!((applied.updated, applied.deleted, collection.len()), (4, 2, 8));
        let without = Harvested { release: false, ..full(vec![update(0, "a")], 8, true) };
        collection.apply_harvested(without, Stamp(13)).unwrap();
        assert_eq!(collection.len(), 8, "records may be missing");
    }

    #[test]
    fn a_full_harvest_that_brings_much_less_waits_for_a_confirmation() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        let all = (0..300).map(|it| update(it, "a")).collect();
        collection.apply_harvested(part(all, "one"), Stamp(10)).unwrap();
        let few = || (0..10).map(|it| update(it, "b")).collect();
        let refused = collection.apply_harvested(full(few(), 7, true), Stamp(11));
        assert!(matches!(refused, Err(Error::Loss { lost: 290, of: 300, .. })), "{refused:?}");
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (300, Some(("one".to_owned(), true)))
        );
        let confirmed = Harvested { confirmed: true, ..full(few(), 8, true) };
        collection.apply_harvested(confirmed, Stamp(12)).unwrap();
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (10, Some(("full".to_owned(), true)))
        );
    }

    #[test]
    fn after_a_local_loss_everything_is_harvested_again() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        let changes = vec![update(1, "a"), update(2, "b")];
        collection.apply_harvested(part(changes, "one"), Stamp(10)).unwrap();
        // The cursor is set back as in healing.
        let cursor = collection.cursor("s").unwrap().unwrap();
        let lower = Cursor { serial: 0, ..cursor };
        let key = note_key(crate::holders::CURSOR, b"s");
        let note = Note { key, value: Some(lower.encode()) };
        collection.inner.commit(&mut collection.inner.tail(), &[], &[note], Stamp(11)).unwrap();
        assert_eq!(checkpoint(&collection), Some(("one".to_owned(), false)));
        let refused = collection.apply_harvested(part(vec![update(1, "c")], "two"), Stamp(12));
        assert!(matches!(refused, Err(Error::SetBack { .. })), "{refused:?}");
        let anew = Harvested { anew: true, ..full(vec![update(1, "c")], 7, true) };
        collection.apply_harvested(anew, Stamp(13)).unwrap();
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (1, Some(("full".to_owned(), true)))
        );
    }

    #[test]
    fn a_removed_source_has_no_valid_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        collection.apply_harvested(part(vec![update(1, "a")], "one"), Stamp(10)).unwrap();
        collection.remove_source("s", Stamp(11)).unwrap();
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (0, Some(("one".to_owned(), false)))
        );
        let anew = Harvested { anew: true, ..part(vec![update(1, "a")], "two") };
        collection.apply_harvested(anew, Stamp(12)).unwrap();
        assert_eq!(
            (collection.len(), checkpoint(&collection)),
            (1, Some(("two".to_owned(), true)))
        );
    }
}
