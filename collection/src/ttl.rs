//! Expiry: objects that nobody has confirmed for longer than their time-to-live are deleted.
//!
//! An object's time-to-live counts from its last update or refresh, or from the last confirmation
//! of its root if that is later. The expiry queue knows only the former; what comes up for expiry
//! too early because of the latter is moved on in the queue.
//!
//! Source: TR §3 (Time-to-Live); DESIGN.md, "Life" and "Restraint".

use crate::change::{Change, Note, Oid, Stamp};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::Holders;
use crate::report::Swept;

/// Objects deleted in one commit.
const DELETES_MAX: usize = 4096;

impl Collection {
    /// Deletes the objects whose time-to-live has run out, unless more than `max_share` (0 to 1) of
    /// all have.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
    pub fn sweep(&self, now: Stamp, max_share: f64) -> Result<Swept, Error> {
        let mut tail = self.inner.tail();
        let (would_expire, of) = (self.count_expired(now)?, self.len());
        if !is_within(would_expire, of, max_share) {
            return Ok(Swept::Held { would_expire, of });
        }
        let mut expired = 0;
        let mut from = Some(Vec::new());
        while let Some(begin) = from.take() {
            let (oids, next) = self.first_expired(now, &begin)?;
            expired += oids.len() as u64;
            let notes = self.holders_of(&oids)?;
            let changes: Vec<Change> = oids.into_iter().map(Change::Delete).collect();
            self.inner.commit(&mut tail, &changes, &notes, now)?;
            from = next;
        }
        Ok(Swept::Done { expired })
    }

    fn count_expired(&self, now: Stamp) -> Result<u64, Error> {
        let inner = &self.inner;
        let count = inner.read_keys(|keys| {
            let mut count = 0;
            let handle = |_oid| {
                count += 1;
                true
            };
            keys.expired(now.0, &[], || inner.go_on().is_ok(), handle)?;
            Ok(count)
        })?;
        inner.go_on().map(|()| count)
    }

    /// Returns the objects to be deleted in one commit, from a place in the queue on, and where to go
    /// on after it.
    fn first_expired(&self, now: Stamp, from: &[u8]) -> Result<(Vec<Oid>, Option<Vec<u8>>), Error> {
        let inner = &self.inner;
        let found = inner.read_keys(|keys| {
            let mut oids = Vec::new();
            let handle = |oid| {
                oids.push(oid);
                oids.len() < DELETES_MAX
            };
            let next = keys.expired(now.0, from, || inner.go_on().is_ok(), handle)?;
            Ok((oids, next))
        })?;
        inner.go_on().map(|()| found)
    }

    /// Returns the notes that remove what is known of these objects' holders.
    pub(crate) fn holders_of(&self, oids: &[Oid]) -> Result<Vec<Note>, Error> {
        let mut notes = Vec::new();
        for oid in oids {
            let key = Holders::note_key(oid);
            if self.inner.read_keys(|keys| keys.note(&key))?.is_some() {
                notes.push(Note { key, value: None });
            }
        }
        Ok(notes)
    }
}

/// Whether `part` of `of` is at most `share`.
fn is_within(part: u64, of: u64, share: f64) -> bool {
    part == 0 || part as f64 <= share * of as f64
}

#[cfg(test)]
mod tests {
    use soif::Record;

    use super::*;
    use crate::change::{Batch, GATHERER_ID, GATHERER_ROOT};
    use crate::options::Options;

    const DAY: u64 = 86_400_000;
    const OBJECTS: u64 = DELETES_MAX as u64 + 1;

    fn filled(dir: &std::path::Path) -> Collection {
        let (collection, _) = Collection::open(dir, Options::default(), Stamp(0)).unwrap();
        let updates = (0..OBJECTS).map(|n| {
            let mut record = Record::new("FILE", format!("http://h/{n}"));
            record.push(GATHERER_ID, "g");
            record.push(GATHERER_ROOT, "http://h/");
            Change::Update(record)
        });
        let batch = Batch { changes: updates.collect(), notes: Vec::new() };
        collection.commit(batch, Stamp(0)).unwrap();
        collection
    }

    #[test]
    fn many_are_deleted_and_moved_on_a_part_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let (gatherer, root) = ("g".to_owned(), "http://h/".to_owned());
        let confirm = Change::Confirm { gatherer, root, at: Stamp(10 * DAY) };
        let batch = Batch { changes: vec![confirm], notes: Vec::new() };
        collection.commit(batch, Stamp(10 * DAY)).unwrap();
        let swept = |days| collection.sweep(Stamp(days * DAY), 1.0).unwrap();
        assert_eq!(swept(39), Swept::Done { expired: 0 });
        assert_eq!(collection.verify().unwrap().problems, []);
        let before = collection.stats().members;
        assert_eq!(swept(40), Swept::Done { expired: OBJECTS });
        assert!(before + 2 <= collection.stats().members);
        assert!(collection.is_empty());
        assert_eq!(collection.verify().unwrap().problems, []);
    }

    #[test]
    fn a_sweep_ends_when_the_collection_is_to_be_closed() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        let asked = std::cell::Cell::new(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let count = collection.inner.read_keys(|keys| {
            let mut count = 0;
            let handle = |_oid| {
                count += 1;
                true
            };
            keys.expired(u64::MAX, &[], goes_on, handle).map(|_next| count)
        });
        assert_eq!(count.unwrap(), 2);
        collection.begin_close();
        let outcome = collection.sweep(Stamp(99 * DAY), 1.0);
        assert!(matches!(outcome, Err(Error::Stopped { .. })), "{outcome:?}");
        assert_eq!(collection.len(), OBJECTS);
    }
}
