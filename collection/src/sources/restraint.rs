//! Restraint: limits on a source that grows without end, or no longer names most of its objects.
//!
//! A source may answer with another collection than before: a wrong address, a wiped disk, a
//! neighbor's gatherer under the same name. It then begins a snapshot under a new generation, and
//! its objects are taken. Before the other objects are released, the loss is checked: if it exceeds
//! both [`LOSS_SHARE_MAX`] and [`LOSS_OBJECTS_MIN`], the objects are kept until an administrator
//! confirms the loss. Every later pull checks again at the snapshot's end, so pulls continue
//! without a confirmation once the source is restored.
//!
//! A part of a source can match far less from one commit to the next. So what the deltas of a part let go within an
//! hour is counted, too, and beyond the same limits it waits for a confirmation.

use net::clock;
use soif::Record;

use crate::change::{Batch, Note, Oid, Stamp};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::{HOLDERS, Holders, USER, note_key};
use crate::member::{get, put};

/// Largest share of a source's objects that a snapshot releases without a confirmation.
pub const LOSS_SHARE_MAX: f64 = 0.3;

/// Maximum number of objects that are released without a confirmation, whatever their share.
pub const LOSS_OBJECTS_MIN: u64 = 100;

/// Largest ratio of plain to packed bytes of a stream: ten times that of usual summaries.
pub const RATIO_MAX: u64 = 200;

/// Number of plain bytes that are taken whatever the ratio is (64 MiB).
pub const RATIO_FREE_BYTES: u64 = 64 << 20;

/// Time in which what a part lets go is counted together, in milliseconds.
const COUNTED_MS: u64 = 3_600_000;

/// Returns the key of the note with the number of objects that a source held.
fn held_key(source: &str) -> Vec<u8> {
    [b"held-before/", source.as_bytes()].concat()
}

/// Returns the key of the note with what a source has let go of a part.
fn released_key(source: &str) -> Vec<u8> {
    [b"released/", source.as_bytes()].concat()
}

/// What a source has let go of a part within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Released {
    /// Number of objects that went.
    pub(crate) lost: u64,
    /// Number of objects that it had before.
    pub(crate) of: u64,
    /// When the first of them went, in Unix milliseconds; `None`: the last delta was not taken to its end, so that they
    /// count however long ago it was.
    pub(crate) since_ms: Option<u64>,
}

impl Released {
    /// Returns the note of it, which removes the one before if nothing went.
    pub(crate) fn note(self, source: &str) -> Note {
        let mut value = Vec::new();
        put(&mut value, self.lost);
        put(&mut value, self.of);
        self.since_ms.iter().for_each(|it| put(&mut value, *it));
        let key = note_key(USER, &released_key(source));
        Note { key, value: (self.lost != 0).then_some(value) }
    }
}

/// The packed and plain bytes of a pull.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnpackRatio {
    packed: u64,
    plain: u64,
}

impl UnpackRatio {
    /// Counts a member, and returns whether the ratio is still within its limit.
    pub(crate) fn add(&mut self, packed: u64, plain: usize) -> bool {
        self.packed = self.packed.saturating_add(packed);
        self.plain = self.plain.saturating_add(u64::try_from(plain).unwrap_or(u64::MAX));
        self.plain <= RATIO_FREE_BYTES.max(self.packed.saturating_mul(RATIO_MAX))
    }
}

/// Returns whether the release of `lost` of `held` objects needs a confirmation.
pub(crate) fn is_loss(lost: u64, held: u64) -> bool {
    LOSS_OBJECTS_MIN < lost && LOSS_SHARE_MAX * (held as f64) < lost as f64
}

impl Collection {
    pub(crate) fn held_by(&self, source: &str) -> Result<u64, Error> {
        let sources = self.inner.read_keys(|keys| keys.sources())?;
        Ok(sources.into_iter().find(|(name, _)| name == source).map_or(0, |(_, count)| count))
    }

    /// Returns what `source` has let go of a part so far, if it still counts.
    pub(crate) fn released(&self, source: &str, now_ms: u64) -> Result<Released, Error> {
        let value = self.note(&released_key(source))?.unwrap_or_default();
        let rest = &mut &value[..];
        let read = get(rest).and_then(|lost| Some((lost, get(rest)?)));
        let read = read.map(|(lost, of)| Released { lost, of, since_ms: get(rest) });
        let counts =
            |it: &Released| it.since_ms.is_none_or(|it| now_ms < it.saturating_add(COUNTED_MS));
        Ok(read.filter(counts).unwrap_or_default())
    }

    /// Returns whether `source` holds an object.
    pub(crate) fn holds(&self, source: &str, oid: &Oid) -> Result<bool, Error> {
        let value = self.inner.read_keys(|keys| keys.note(&Holders::note_key(oid)))?;
        let holders = value.and_then(|it| Holders::decode(&it)).unwrap_or_default();
        Ok(holders.list.iter().any(|it| it.source == source))
    }

    /// Returns how many objects `source` holds, and of how many of them `takes` takes the record. Takes as long as
    /// reading all of them.
    ///
    /// # Errors
    ///
    /// The collection cannot be read, or is closed.
    pub fn count_held(
        &self,
        source: &str,
        takes: impl Fn(&Record) -> bool,
    ) -> Result<(u64, u64), Error> {
        let ((mut held, mut taken), mut from) = ((0, 0), Some(vec![HOLDERS]));
        while let Some(begin) = from.take() {
            let part = self.inner.held(source, None, &begin)?;
            held += part.oids.len() as u64;
            for oid in &part.oids {
                taken += u64::from(self.get(oid)?.is_some_and(|it| takes(&it.record)));
            }
            from = part.next;
        }
        Ok((held, taken))
    }

    /// Records how many objects `source` holds at the beginning of a snapshot. If the snapshot
    /// replaces one that was `interrupted` (its generation), records the number of that one
    /// instead, if it is lower: objects that interrupted snapshots have added do not count.
    pub(crate) fn remember_held(
        &self,
        source: &str,
        generation: u64,
        held: u64,
        interrupted: Option<u64>,
    ) -> Result<(), Error> {
        // Even the loss of all its objects would be allowed.
        if !is_loss(held, held) {
            return Ok(());
        }
        let before = match interrupted {
            Some(generation) => self.held_before(source, generation)?,
            None => None,
        };
        let mut value = Vec::new();
        put(&mut value, generation);
        put(&mut value, before.map_or(held, |it| it.min(held)));
        let note = Note { key: held_key(source), value: Some(value) };
        let batch = Batch { changes: Vec::new(), notes: vec![note] };
        self.commit(batch, Stamp(clock::now_ms())).map(drop)
    }

    /// Returns how many objects `source` held at the beginning of this generation's snapshot;
    /// `None` if the number is unknown.
    fn held_before(&self, source: &str, generation: u64) -> Result<Option<u64>, Error> {
        let value = self.note(&held_key(source))?.unwrap_or_default();
        let rest = &mut &value[..];
        Ok(get(rest).filter(|it| *it == generation).and_then(|_| get(rest)))
    }

    /// Checks that `source`, which holds `held` objects, does not lose too many when those of
    /// other generations are released.
    ///
    /// # Errors
    ///
    /// [`Error::Loss`]: an administrator has to confirm the loss.
    pub(crate) fn check_loss(&self, source: &str, generation: u64, held: u64) -> Result<(), Error> {
        let of = self.held_before(source, generation)?.unwrap_or(held);
        let (mut lost, mut from) = (0, Some(vec![HOLDERS]));
        while let Some(begin) = from.take() {
            let part = self.inner.held(source, Some(generation), &begin)?;
            lost += part.oids.len() as u64;
            from = part.next;
        }
        if is_loss(lost, of) {
            // `lost` may include objects that an interrupted snapshot has added.
            return Err(Error::Loss { name: source.to_owned(), lost: lost.min(of), of });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_number_and_share_is_a_loss() {
        for (lost, held, expected) in
            [(100, 100, false), (101, 101, true), (101, 336, true), (101, 337, false)]
        {
            assert_eq!(is_loss(lost, held), expected, "{lost} of {held}");
        }
    }

    #[test]
    fn what_went_counts_for_an_hour_and_longer_if_not_all_was_taken() {
        let folder = tempfile::tempdir().unwrap();
        let options = crate::options::Options::default();
        let collection = Collection::open(folder.path(), options, Stamp(1)).unwrap().0;
        let went = Released { lost: 7, of: 9, since_ms: Some(5) };
        for (released, later, expected) in [
            (went, 4 + COUNTED_MS, went),
            (went, 5 + COUNTED_MS, Released::default()),
            (Released { since_ms: None, ..went }, u64::MAX, Released { since_ms: None, ..went }),
        ] {
            let Note { value, .. } = released.note("a");
            let notes = vec![Note { key: released_key("a"), value }];
            collection.commit(Batch { changes: Vec::new(), notes }, Stamp(1)).unwrap();
            assert_eq!(collection.released("a", later).unwrap(), expected);
        }
    }

    #[test]
    fn a_stream_may_unpack_to_the_ratio_of_summaries_and_no_more() {
        let mut ratio = UnpackRatio::default();
        assert!(ratio.add(1, 64 << 20), "the first bytes are free");
        assert!(!ratio.add(0, 1));
        let mut ratio = UnpackRatio::default();
        assert!(ratio.add(1 << 20, 200 << 20));
        assert!(!ratio.add(1, 201));
    }
}
