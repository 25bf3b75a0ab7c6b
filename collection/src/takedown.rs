//! Takedowns: suppressed objects are deleted and refused, and consumers get signed tombstones.
//!
//! The notice is added to the list first (suppressed.rs). Then its objects are deleted from the
//! log. Besides, the notice gets a tombstone of its own, the carrier, which has no object and stays
//! for ever. A note in the log records how much of the list was carried out. The note lags behind
//! after a crash, a full disk, or the restore of a backup. Then the opening, or the next pull,
//! takedown or purge, carries out the rest.
//!
//! Source: ours.

pub(crate) mod purge;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::change::{Change, Note, Oid, Stamp};
use crate::collection::ttl::DELETES_MAX;
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{Holders, SUPPRESSED, note_key};
use crate::log::Tail;
use crate::notice::{Author, Notice, REASON_BYTES_MAX, Subject};
use crate::suppressed::{HELD_BY_MAX, Mark, Scope, Suppression, Takedowns};

/// Maximum number of key prefixes that are searched; for more, all keys are searched.
const PREFIXES_MAX: usize = 10_000;
/// Maximum number of objects found at a time.
const FOUND_MAX: usize = 100_000;

/// The part of the list to carry out again, besides the notices that are not carried out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recheck {
    None,
    /// Suppressed objects may be live nevertheless.
    LiveObjects,
    /// Tombstones may be lost.
    Tombstones,
    /// Anything may be lost, tombstones included.
    All,
}

/// The outcome of a takedown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenDown {
    /// The notice that consumers get.
    pub notice: Notice,
    /// Number of deleted objects.
    pub objects: u64,
    /// The sources that held them; at most 100.
    pub held_by: Vec<String>,
}

impl Collection {
    /// Suppresses `subject`: deletes its live objects, whoever holds them; refuses their updates
    /// from every source; and informs consumers by a notice that `author` signs.
    ///
    /// # Errors
    ///
    /// [`Error::Subject`]: the reason is too long. Otherwise as for [`commit`](Self::commit); the
    /// next opening carries out the notices that are on the list by then.
    pub fn suppress(
        &self,
        author: &Author,
        subject: Subject,
        reason: &str,
        now: Stamp,
    ) -> Result<TakenDown, Error> {
        if REASON_BYTES_MAX < reason.len() {
            let reason = "the reason has more than 1,000 bytes";
            return Err(Error::Subject { text: subject.to_string(), reason });
        }
        let mut tail = self.inner.tail();
        tail.ensure_writable(&self.inner.log)?;
        let notice = self.inner.sign(author, subject, false, reason, now);
        let mut new = Suppression::here(notice.clone());
        let wanted = |oid: &Oid| new.covers(oid).then(|| notice.clone());
        let found = self.inner.live(&new.keys_from(), wanted)?;
        let holders = self.inner.sources_holding(found.keys())?;
        new.held_by.extend(holders.into_iter().take(HELD_BY_MAX));
        let held_by = new.held_by.clone();
        self.inner.add(new)?;
        let objects = self.inner.apply_list(&mut tail, &HashSet::new(), Recheck::None, now)?;
        Ok(TakenDown { notice, objects, held_by })
    }

    /// Lifts all notices on exactly `subject`, local and foreign. Refused objects are fetched
    /// again, because all sources are read from the start. After an error, call it again.
    ///
    /// # Errors
    ///
    /// [`Error::NotSuppressed`]; otherwise as for [`suppress`](Self::suppress), or
    /// [`Error::Outdated`].
    pub fn lift(&self, author: &Author, subject: Subject, now: Stamp) -> Result<Notice, Error> {
        let mut tail = self.inner.tail();
        tail.ensure_writable(&self.inner.log)?;
        if !self.inner.suppressed().on_subject(&subject).any(|it| it.active) {
            // An earlier call may have put the lift on the list, but not have carried it out.
            let undone = self.inner.undone()?.into_iter().rev();
            let mut lifts = undone.filter(|it| it.scope == Scope::Here && it.notice.lifted);
            let Some(lift) = lifts.find(|it| it.notice.subject == subject) else {
                return Err(Error::NotSuppressed { subject: subject.to_string() });
            };
            self.inner.apply_list(&mut tail, &HashSet::new(), Recheck::None, now)?;
            return Ok(lift.notice);
        }
        let notice = self.inner.sign(author, subject, true, "", now);
        self.inner.add(Suppression::here(notice.clone()))?;
        self.inner.apply_list(&mut tail, &HashSet::new(), Recheck::None, now)?;
        Ok(notice)
    }

    /// Returns all notices on the list, oldest first, lifted ones included.
    #[must_use]
    pub fn suppressions(&self) -> Vec<Suppression> {
        self.inner.suppressed().list.clone()
    }

    /// Returns whether the object is suppressed.
    #[must_use]
    pub fn is_suppressed(&self, oid: &Oid) -> bool {
        self.inner.suppressed().covering(oid).is_some()
    }

    /// Returns the counts of notices and refused records.
    #[must_use]
    pub fn takedowns(&self) -> Takedowns {
        self.inner.suppressed().takedowns()
    }

    /// Sets the sources whose takedowns count for the objects of every source. The takedowns of
    /// other sources count if they are signed by the objects' own gatherer.
    pub fn trust_takedowns(&self, sources: BTreeSet<String>) {
        self.inner.suppressed().trust.trusted = sources;
    }

    /// Sets the key of local notices. If the list was lost or restored, and these notices come back
    /// from others, they count for all.
    pub fn own_key(&self, key: &str) {
        self.source_key("", key);
    }

    /// Notes that `source` names `key` as its own: if its takedowns count for all, so does every
    /// notice signed with this key, whoever passes it on.
    pub fn source_key(&self, source: &str, key: &str) {
        let keys = &mut self.inner.suppressed().trust.keys;
        if keys.get(source).is_none_or(|it| it != key) {
            keys.insert(source.to_owned(), key.to_owned());
        }
    }

    /// Returns the key that a source has named as its own since this start.
    pub fn key_of_source(&self, source: &str) -> Option<String> {
        self.inner.suppressed().trust.keys.get(source).cloned()
    }

    /// Carries out the notices that are not carried out yet, or whose effects may be lost.
    pub(crate) fn suppress_again(&self, recheck: Recheck, now: Stamp) -> Result<(), Error> {
        let mut tail = self.inner.tail();
        let objects = self.inner.apply_list(&mut tail, &HashSet::new(), recheck, now)?;
        if objects != 0 {
            let dir = self.inner.dir.display();
            tracing::warn!(%dir, objects, "suppressed objects were deleted again");
        }
        Ok(())
    }
}

impl Inner {
    /// Signs a notice, dated after all earlier ones by the same signer on the same subject.
    fn sign(
        &self,
        author: &Author,
        subject: Subject,
        lifted: bool,
        reason: &str,
        now: Stamp,
    ) -> Notice {
        let list = self.suppressed();
        let own = list.on_subject(&subject).filter(|it| it.notice.key == author.identity.key());
        let last = own.map(|it| it.notice.at.0).max();
        let at = Stamp(now.0.max(last.map_or(0, |it| it.saturating_add(1))));
        drop(list);
        Notice::sign(author, subject, lifted, reason, at)
    }

    /// Adds a local notice to the list, durably.
    fn add(&self, new: Suppression) -> Result<(), Error> {
        let subject = new.notice.subject.to_string();
        if !self.suppressed().stage(new) {
            return Err(Error::Outdated { subject });
        }
        self.write_list()
    }

    /// Writes added notices to the list's file; if that fails, removes them from the list. The
    /// caller holds the writer's lock.
    pub(crate) fn write_list(&self) -> Result<(), Error> {
        let Some(writing) = self.suppressed().writing() else { return Ok(()) };
        let written = writing.run();
        let mut list = self.suppressed();
        match written {
            Ok(file) => list.written(&writing, file, None),
            Err(error) => {
                list.withdraw();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the state of the list's file up to which all notices are carried out, if known.
    fn done(&self) -> Result<Option<Mark>, Error> {
        let key = note_key(SUPPRESSED, &[]);
        let value = self.read_keys(|keys| keys.note(&key))?;
        Ok(value.and_then(|it| Mark::decode(&it)))
    }

    /// Returns the notices that are not carried out yet, in their order.
    fn undone(&self) -> Result<Vec<Suppression>, Error> {
        let done = self.done()?.unwrap_or_default();
        let list = self.suppressed();
        Ok(if done == list.mark() { Vec::new() } else { list.after(done.before(list.mark())) })
    }

    /// Carries out the notices that are not carried out yet: deletes their live objects, commits
    /// their carriers (except those in `carried`, by signature), has sources read again after
    /// lifts, and records the progress. Returns the number of deleted objects.
    pub(crate) fn apply_list(
        &self,
        tail: &mut Tail,
        carried: &HashSet<String>,
        recheck: Recheck,
        now: Stamp,
    ) -> Result<u64, Error> {
        let undone = match recheck {
            Recheck::All => self.suppressed().after(0),
            Recheck::None | Recheck::LiveObjects | Recheck::Tombstones => self.undone()?,
        };
        let suspect = match recheck {
            Recheck::LiveObjects => prefixes(&self.suppressed().list),
            Recheck::None | Recheck::Tombstones | Recheck::All => prefixes(&undone),
        };
        let uncarried = match recheck {
            Recheck::Tombstones => self.suppressed().after(0),
            Recheck::None | Recheck::LiveObjects | Recheck::All => undone.clone(),
        };
        let mut objects = 0;
        for prefix in suspect {
            objects += self.delete_suppressed(tail, &prefix, now)?;
        }
        let uncarried = uncarried.iter().filter(|it| !carried.contains(&it.notice.signature));
        let carry =
            |it: &Suppression| Change::Suppress(it.notice.carrier(), Box::new(it.notice.clone()));
        let carriers: Vec<Change> = uncarried.map(carry).collect();
        for part in carriers.chunks(DELETES_MAX) {
            self.commit(tail, part, &[], now)?;
        }
        // A gatherer that lifts a notice on its own objects sends these again by itself.
        if undone.iter().any(|it| it.notice.lifted && it.scope != Scope::Own) {
            self.forget_cursors(tail, now)?;
        }
        self.tidy_list()?;
        let mark = self.suppressed().mark();
        if self.done()?.unwrap_or_default() != mark {
            let note = Note { key: note_key(SUPPRESSED, &[]), value: Some(mark.encode()) };
            self.commit(tail, &[], &[note], now)?;
        }
        Ok(objects)
    }

    /// Deletes the suppressed objects whose keys begin with `prefix`; returns their number.
    fn delete_suppressed(&self, tail: &mut Tail, prefix: &[u8], now: Stamp) -> Result<u64, Error> {
        let mut objects = 0;
        loop {
            let by = |oid: &Oid| self.suppressed().covering(oid).map(|it| it.notice.clone());
            let all: Vec<_> = self.live(prefix, by)?.into_iter().collect();
            for part in all.chunks(DELETES_MAX) {
                let notes = self.released(part.iter().map(|(oid, _)| oid))?;
                let change = |(oid, notice): &(Oid, Notice)| {
                    Change::Suppress(oid.clone(), Box::new(notice.clone()))
                };
                let changes: Vec<Change> = part.iter().map(change).collect();
                self.commit(tail, &changes, &notes, now)?;
            }
            objects += all.len() as u64;
            if all.len() < FOUND_MAX {
                return Ok(objects);
            }
        }
    }

    /// Rewrites the list's file if most of it is superseded.
    fn tidy_list(&self) -> Result<(), Error> {
        let Some((writing, spans)) = self.suppressed().rewriting() else { return Ok(()) };
        let file = writing.run()?;
        self.suppressed().written(&writing, file, Some(spans));
        Ok(())
    }

    /// Returns the live objects whose keys begin with `prefix` and for which `wanted` returns a
    /// notice, with that notice; at most [`FOUND_MAX`].
    fn live(
        &self,
        prefix: &[u8],
        wanted: impl Fn(&Oid) -> Option<Notice>,
    ) -> Result<BTreeMap<Oid, Notice>, Error> {
        let found = self.read_keys(|keys| {
            let mut found = BTreeMap::new();
            for item in keys.objects_from(prefix) {
                let (key, _) = item?;
                if FOUND_MAX <= found.len() || self.check_open().is_err() {
                    break;
                }
                let Some(oid) = Oid::from_key(&key) else { continue };
                if let Some(notice) = wanted(&oid) {
                    found.insert(oid, notice);
                }
            }
            Ok(found)
        })?;
        self.check_open().map(|()| found)
    }

    /// Returns the sources that hold any of `oids`.
    fn sources_holding<'a>(
        &self,
        oids: impl Iterator<Item = &'a Oid>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for oid in oids {
            let key = Holders::note_key(oid);
            let value = self.read_keys(|keys| keys.note(&key))?;
            let holders = value.as_deref().and_then(Holders::decode).unwrap_or_default();
            names.extend(holders.list.into_iter().map(|it| it.source));
        }
        Ok(names)
    }

    /// Forgets all cursors, so that every source is read from the start.
    pub(crate) fn forget_cursors(&self, tail: &mut Tail, now: Stamp) -> Result<(), Error> {
        let found = self.read_keys(|keys| keys.cursors())?;
        let notes: Vec<Note> =
            found.into_iter().map(|(key, _)| Note { key, value: None }).collect();
        self.commit(tail, &[], &notes, now).map(drop)
    }
}

/// Returns the key prefixes of the objects to check; none begins with another. If they are too
/// many, returns only the empty one, for all objects.
fn prefixes(list: &[Suppression]) -> Vec<Vec<u8>> {
    let active = list.iter().filter(|it| it.active);
    let mut found: Vec<Vec<u8>> = active.map(Suppression::keys_from).collect();
    found.sort();
    found.dedup_by(|next, kept| next.starts_with(kept));
    if PREFIXES_MAX < found.len() {
        found = vec![Vec::new()];
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use disk::Disk;
    use disk::faulty::Faulty;
    use net::identity::Identity;
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Epoch, GATHERER_ID};
    use crate::holders::{Cursor, Pulled};
    use crate::options::Options;
    use crate::recover::Mode;
    use crate::report::Applied;

    fn author() -> Author {
        let identity = Identity::of(&[1; 32]).unwrap();
        Author { id: identity.id(), identity }
    }

    fn subject(text: &str) -> Subject {
        Subject::parse(text).unwrap()
    }

    fn update(url: &str) -> Change {
        let mut record = Record::new("FILE", url);
        record.push(GATHERER_ID, author().id);
        Change::Update(record)
    }

    fn open(dir: &Path) -> (Collection, Arc<Faulty>) {
        let faulty = Faulty::new(dir, 1);
        let disk = Disk::Faulty(faulty.clone());
        let opened = Collection::open_on(&disk, dir, Options::default(), Stamp(1), Mode::Write);
        (opened.unwrap().0, faulty)
    }

    fn apply(
        collection: &Collection,
        source: &str,
        changes: Vec<Change>,
    ) -> Result<Applied, Error> {
        let before = collection.cursor(source).unwrap().map_or(0, |it| it.serial);
        let changes: Vec<_> = (before + 1..).zip(changes).collect();
        let cursor = Cursor { epoch: Epoch(9), serial: before + 9, snapshot: None, part: None };
        let source = source.to_owned();
        let pulled =
            Pulled { source, id: None, epoch: Epoch(9), changes, cursor, end_of_snapshot: None };
        collection.apply(pulled, Stamp(2))
    }

    fn carried(collection: &Collection) -> Vec<Notice> {
        let all = collection.scan(0).unwrap().map(|it| it.unwrap().change);
        all.filter_map(|it| match it {
            Change::Suppress(oid, notice) if oid == notice.carrier() => Some(*notice),
            _ => None,
        })
        .collect()
    }

    /// Free space for a write of the list, but not for a commit, in bytes.
    const LIST_FITS: u64 = 1 << 10;

    #[test]
    fn a_takedown_interrupted_by_a_full_disk_is_done_by_the_next_pull() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        apply(&collection, "other", vec![update("http://h/1"), update("http://h/2")]).unwrap();
        let notice = Notice::sign(&author(), subject("http://h/*"), false, "", Stamp(2));
        let carrier = Change::Suppress(notice.carrier(), Box::new(notice.clone()));
        faulty.leave_free(Some(LIST_FITS));
        let error = apply(&collection, "direct", vec![carrier.clone()]).unwrap_err();
        assert!(matches!(error, Error::NoRoom { .. }), "{error}");
        assert_eq!((collection.len(), collection.takedowns().active), (2, 1));
        faulty.leave_free(None);
        apply(&collection, "direct", vec![carrier]).unwrap();
        assert_eq!(collection.len(), 0);
        assert_eq!(carried(&collection), [notice], "it is passed on");
    }

    #[test]
    fn an_interrupted_takedown_is_done_by_the_next_purge_and_a_lift_by_a_repeat() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        let changes = vec![update("http://h/1"), update("http://h/2")];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        apply(&collection, "s", Vec::new()).unwrap();
        faulty.leave_free(Some(LIST_FITS));
        collection.suppress(&author(), subject("http://h/1"), "", Stamp(3)).unwrap_err();
        faulty.leave_free(None);
        let purged = collection.purge(None, Stamp(4)).unwrap();
        assert_eq!((collection.len(), purged.left, carried(&collection).len()), (1, 0, 1));

        faulty.leave_free(Some(LIST_FITS));
        collection.lift(&author(), subject("http://h/1"), Stamp(5)).unwrap_err();
        faulty.leave_free(None);
        assert!(collection.cursor("s").unwrap().is_some());
        let lift = collection.lift(&author(), subject("http://h/1"), Stamp(6)).unwrap();
        assert_eq!(lift.at, Stamp(5), "it was lifted then");
        assert_eq!(carried(&collection).last(), Some(&lift));
        assert_eq!(collection.cursor("s").unwrap(), None);
        let again = collection.lift(&author(), subject("http://h/1"), Stamp(7));
        assert!(matches!(again, Err(Error::NotSuppressed { .. })));
    }

    #[test]
    fn a_notice_that_could_not_be_written_is_not_on_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let (collection, faulty) = open(dir.path());
        let changes = vec![update("http://h/1")];
        collection.commit(Batch { changes, notes: Vec::new() }, Stamp(2)).unwrap();
        let before = collection.suppress(&author(), subject("http://h/2"), "", Stamp(3)).unwrap();
        faulty.fail(Some(disk::faulty::Fault::Full));
        collection.suppress(&author(), subject("http://h/1"), "", Stamp(4)).unwrap_err();
        collection.lift(&author(), subject("http://h/2"), Stamp(4)).unwrap_err();
        faulty.fail(None);
        let list: Vec<_> = collection.suppressions().into_iter().map(|it| it.notice).collect();
        assert_eq!((list, collection.takedowns().active), (vec![before.notice], 1));
        collection.suppress(&author(), subject("http://h/1"), "", Stamp(5)).unwrap();
        assert_eq!(collection.len(), 0);
    }
}
