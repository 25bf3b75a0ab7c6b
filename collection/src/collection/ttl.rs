//! Expiry: objects that stay unconfirmed for longer than their time-to-live are deleted.
//!
//! An object's time-to-live counts from its last update or refresh, or from the last confirmation
//! of its root if that is later. The expiry queue does not know confirmations. An object that
//! reaches the front of the queue although its root was confirmed later is moved back in the queue.
//!
//! Only time in which an object could be confirmed counts. If the last sweep is more than six hours
//! ago, the clock has jumped, the machine slept, or the daemon was down. Then nothing expires for
//! as long again, but at most for a day, unless an administrator orders it. After the clock is set
//! back, objects live longer, which is harmless.
//!
//! Source: TR §3 (Time-to-Live); docs/faults.md.

use super::{Collection, Inner};
use crate::change::{Change, Note, Oid, Stamp};
use crate::error::Error;
use crate::holders::Holders;
use crate::log::Tail;
use crate::report::Swept;

/// Maximum time between two sweeps that counts towards expiry, in milliseconds: six hours.
const PAUSE_MS_MAX: u64 = 6 * 3_600_000;
/// Maximum time without expiry after a longer pause of sweeps, in milliseconds: a day.
const HOLD_MS_MAX: u64 = 24 * 3_600_000;
/// Minimum time between two notes of the sweep time in the manifest, in milliseconds: one hour.
const NOTED_MS: u64 = 3_600_000;
/// Maximum number of objects deleted in one commit.
pub(crate) const DELETES_MAX: usize = 4096;

impl Collection {
    /// Deletes the objects whose time-to-live has run out, unless they are more than the share
    /// `max_share` (0 to 1) of all objects. After a period in which objects could not be confirmed,
    /// it deletes nothing for some time, unless `max_share` is 1: an administrator's order.
    pub fn sweep(&self, now: Stamp, max_share: f64) -> Result<Swept, Error> {
        let mut tail = self.inner.tail();
        let until = self.unswept_until(&mut tail, now)?;
        if now.0 < until && max_share < 1.0 {
            return Ok(Swept::Waiting { until: Stamp(until) });
        }
        let (would_expire, of) = (self.count_expired(now)?, self.len());
        if !is_within(would_expire, of, max_share) {
            return Ok(Swept::Held { would_expire, of });
        }
        let mut expired = 0;
        let mut from = Some(Vec::new());
        while let Some(begin) = from.take() {
            let (oids, next) = self.first_expired(now, &begin)?;
            expired += oids.len() as u64;
            let notes = self.inner.released(&oids)?;
            let changes: Vec<Change> = oids.into_iter().map(Change::Delete).collect();
            self.inner.commit(&mut tail, &changes, &notes, now)?;
            from = next;
        }
        Ok(Swept::Done { expired })
    }

    /// Notes the time of the sweep, and returns the time (in Unix milliseconds) until which nothing
    /// may expire without an administrator's order.
    fn unswept_until(&self, tail: &mut Tail, now: Stamp) -> Result<u64, Error> {
        let mut manifest = tail.manifest_now();
        let last = match (manifest.swept, tail.stamp.0) {
            // A new collection has had no time without sweeps.
            (0, 0) => now.0,
            (0, stamp) => stamp,
            (swept, _) => swept,
        };
        let passed = now.0.saturating_sub(last);
        if PAUSE_MS_MAX < passed {
            manifest.unswept_until = now.0.saturating_add(passed.min(HOLD_MS_MAX));
        } else if HOLD_MS_MAX < manifest.unswept_until.saturating_sub(now.0) {
            // The clock was ahead when the time was recorded.
            manifest.unswept_until = 0;
        }
        let until = manifest.unswept_until;
        if manifest.swept == 0 || now.0 < last || NOTED_MS <= passed {
            manifest.swept = now.0.max(1);
            tail.ensure_writable(&self.inner.log)?;
            tail.replace(manifest, &self.inner.log)?;
        }
        Ok(until)
    }

    fn count_expired(&self, now: Stamp) -> Result<u64, Error> {
        let inner = &self.inner;
        let count = inner.read_keys(|keys| {
            let mut count = 0;
            let handle = |_oid| {
                count += 1;
                true
            };
            keys.expired(now.0, &[], || inner.check_open().is_ok(), handle)?;
            Ok(count)
        })?;
        inner.check_open().map(|()| count)
    }

    /// Returns the objects to delete in one commit, from the position `from` in the queue on, and
    /// the position to go on from; `None` at the end.
    fn first_expired(&self, now: Stamp, from: &[u8]) -> Result<(Vec<Oid>, Option<Vec<u8>>), Error> {
        let inner = &self.inner;
        let found = inner.read_keys(|keys| {
            let mut oids = Vec::new();
            let handle = |oid| {
                oids.push(oid);
                oids.len() < DELETES_MAX
            };
            let next = keys.expired(now.0, from, || inner.check_open().is_ok(), handle)?;
            Ok((oids, next))
        })?;
        inner.check_open().map(|()| found)
    }
}

impl Inner {
    /// Returns the notes that remove the holders of these objects.
    pub(crate) fn released<'a>(
        &self,
        oids: impl IntoIterator<Item = &'a Oid>,
    ) -> Result<Vec<Note>, Error> {
        let mut notes = Vec::new();
        for oid in oids {
            let key = Holders::note_key(oid);
            if self.read_keys(|keys| keys.note(&key))?.is_some() {
                notes.push(Note { key, value: None });
            }
        }
        Ok(notes)
    }
}

/// Returns whether `part` is at most the share `share` (0 to 1) of `of`.
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
        filled_with(dir, OBJECTS)
    }

    fn filled_with(dir: &std::path::Path, objects: u64) -> Collection {
        let (collection, _) = Collection::open(dir, Options::default(), Stamp(0)).unwrap();
        let updates = (0..objects).map(|n| {
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
    fn many_objects_expire_in_several_commits() {
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

    fn confirmed(collection: &Collection, at: u64) {
        let (gatherer, root) = ("g".to_owned(), "http://h/".to_owned());
        let confirm = Change::Confirm { gatherer, root, at: Stamp(at) };
        let batch = Batch { changes: vec![confirm], notes: Vec::new() };
        collection.commit(batch, Stamp(at)).unwrap();
    }

    #[test]
    fn a_clock_set_forward_or_back_lets_nothing_expire_early() {
        const HOUR: u64 = DAY / 24;
        const STEP: usize = 5 * 3_600_000;
        let dir = tempfile::tempdir().unwrap();
        let mut collection = filled_with(dir.path(), 10);
        // The objects stay unconfirmed until half a day before their expiry, with a sweep every
        // five hours.
        let begin = 29 * DAY + DAY / 2;
        let sweep = |collection: &Collection, at: u64| collection.sweep(Stamp(at), 0.9).unwrap();
        for at in (0..=begin).step_by(STEP) {
            assert_eq!(sweep(&collection, at), Swept::Done { expired: 0 });
        }
        // The clock goes a day forward: the sweep waits, also after a restart.
        for at in (begin + DAY..begin + DAY + DAY / 2).step_by(STEP) {
            let until = Stamp(begin + 2 * DAY);
            assert_eq!(sweep(&collection, at), Swept::Waiting { until });
            drop(collection);
            collection = Collection::open(dir.path(), Options::default(), Stamp(at)).unwrap().0;
        }
        let stamp = collection.inner.tail().stamp;
        // The clock is set back: nothing has changed, and stamps do not decrease.
        let again = begin + HOUR;
        assert_eq!(sweep(&collection, again), Swept::Done { expired: 0 });
        confirmed(&collection, again);
        assert!(stamp <= collection.inner.tail().stamp);
        for at in (again..again + 29 * DAY).step_by(STEP) {
            assert_eq!(sweep(&collection, at), Swept::Done { expired: 0 });
        }
        // Objects whose time-to-live has really passed are deleted; an administrator's order takes
        // effect at once.
        let gone = Swept::Done { expired: 10 };
        assert!(matches!(sweep(&collection, again + 60 * DAY), Swept::Waiting { .. }));
        assert_eq!(collection.sweep(Stamp(again + 60 * DAY), 1.0).unwrap(), gone);
    }

    #[test]
    fn a_confirmation_made_while_the_clock_was_ahead_lasts() {
        let dir = tempfile::tempdir().unwrap();
        let collection = filled(dir.path());
        collection.sweep(Stamp(1), 0.9).unwrap();
        confirmed(&collection, 5 * DAY);
        confirmed(&collection, 4 * DAY);
        assert_eq!(collection.inner.tail().stamp, Stamp(5 * DAY));
        assert_eq!(collection.sweep(Stamp(33 * DAY), 1.0).unwrap(), Swept::Done { expired: 0 });
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
