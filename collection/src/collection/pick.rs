//! Reads of chosen changes of the log, and the search for the first change of a time span.
//!
//! Source: ours. Stamps never fall, so the changes of a time span are a range of serials.

use std::vec::IntoIter;

use super::Collection;
use crate::change::{Scanned, Stamp};
use crate::error::{Damage, Error};
use crate::log::View;
use crate::log::segment::{Entry, Segment};
use crate::member::content;
use crate::member::{MEMBER_BYTES_MAX, Member, Unpacker};

/// Iterator over the changes with chosen serials; see [`Collection::pick`]. Ends after an error.
#[derive(Debug)]
pub struct Picked {
    view: View,
    /// The serials still to be read, ascending.
    wanted: IntoIter<u64>,
    ahead: IntoIter<Scanned>,
    unpacker: Unpacker,
}

impl Picked {
    /// Reads the next member that may hold a wanted change; `None` at the end.
    fn refill(&mut self) -> Option<Result<Vec<Scanned>, Error>> {
        let first = self.wanted.next()?;
        let Some((segment, entry)) = self.view.find(first) else { return Some(Ok(Vec::new())) };
        let rest = self.wanted.as_slice();
        let here = rest.partition_point(|it| *it <= entry.last);
        let mut wanted = vec![first];
        wanted.extend(self.wanted.by_ref().take(here));
        let damaged = |what| segment.fault(&entry, what);
        let read = segment.read(&entry, &mut self.unpacker);
        Some(read.and_then(|member| changes_of(&member, &wanted).map_err(damaged)))
    }
}

impl Iterator for Picked {
    type Item = Result<Scanned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(scanned) = self.ahead.next() {
                return Some(Ok(scanned));
            }
            match self.refill()? {
                Ok(changes) => self.ahead = changes.into_iter(),
                Err(error) => {
                    self.wanted = Vec::new().into_iter();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Collection {
    /// Returns the changes with these serials, in serial order; the serials must ascend. Serials
    /// that the log does not have, or has dropped, are left out.
    #[must_use]
    pub fn pick(&self, serials: Vec<u64>) -> Picked {
        let unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        let ahead = Vec::new().into_iter();
        Picked { view: self.inner.log.view(), wanted: serials.into_iter(), ahead, unpacker }
    }

    /// Checks that no change with a serial in `first..=last` is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`]: some changes are missing until they are fetched or gathered again.
    pub fn is_whole(&self, first: u64, last: u64) -> Result<(), Error> {
        let view = self.inner.log.view();
        match view.possible_holes().after(first.saturating_sub(1)) {
            Some((base, _)) if base < last => view.is_sound(base).and(Err(view.gap())),
            _ => Ok(()),
        }
    }

    /// Returns the first serial with stamp `stamp` or later: every change before it has an earlier
    /// stamp. The serial may be that of the next change to come, or of a change that compaction has
    /// dropped.
    ///
    /// # Errors
    ///
    /// The segment that would hold this serial is damaged or unreadable.
    pub fn first_since(&self, stamp: Stamp) -> Result<u64, Error> {
        let view = self.inner.log.view();
        let end = view.version.serial + 1;
        let is_before = |at: usize| match view.segments.get(at).map(|it| (it, served(it, end))) {
            Some((segment, entries)) => match entries.last() {
                Some(last) => Ok(last_stamp(segment, last)? < stamp),
                // This segment has only notes, so the next one decides.
                None => Ok(false),
            },
            None => Ok(false),
        };
        let mut at = partition(view.segments.len(), is_before)?;
        // A segment without changes may be followed by segments with changes.
        while let Some(segment) = view.segments.get(at) {
            let entries = served(segment, end);
            let is_before = |at: usize| match entries.get(at) {
                Some(entry) => Ok(last_stamp(segment, entry)? < stamp),
                None => Ok(false),
            };
            if let Some(entry) = entries.get(partition(entries.len(), is_before)?) {
                let header = segment.header(entry)?;
                let first = header.entries.iter().find(|(_, it)| stamp <= *it);
                return Ok(first.map_or(entry.last, |(serial, _)| *serial));
            }
            at += 1;
        }
        Ok(end)
    }

    /// Returns the stamp of the first change that the log has; `None` if it has none.
    pub fn first_stamp(&self) -> Result<Option<Stamp>, Error> {
        let view = self.inner.log.view();
        let end = view.version.serial + 1;
        for segment in &view.segments {
            if let Some(entry) = served(segment, end).first() {
                return Ok(segment.header(entry)?.entries.first().map(|(_, stamp)| *stamp));
            }
        }
        Ok(None)
    }
}

/// Returns the member's changes with one of `serials`, which ascend.
fn changes_of(member: &Member, serials: &[u64]) -> Result<Vec<Scanned>, Damage> {
    let (Some(first), Some(last)) = (serials.first(), serials.last()) else {
        return Ok(Vec::new());
    };
    let entries = &member.header.entries;
    let from = entries.partition_point(|(it, _)| it < first);
    let to = entries.partition_point(|(it, _)| it <= last);
    if member.header.local || to <= from {
        return Ok(Vec::new());
    }
    let mut found = content::changes(&member.plain, entries, from..to)?;
    found.retain(|it| serials.binary_search(&it.serial).is_ok());
    Ok(found)
}

/// Returns the members of a segment that have changes, all of them before serial `end`.
fn served(segment: &Segment, end: u64) -> Vec<Entry> {
    let is_served = |it: &&Entry| !it.local && it.changes != 0 && it.last < end;
    segment.entries().iter().filter(is_served).copied().collect()
}

fn last_stamp(segment: &Segment, entry: &Entry) -> Result<Stamp, Error> {
    Ok(segment.header(entry)?.entries.last().map(|(_, stamp)| *stamp).unwrap_or_default())
}

/// Returns the first index for which the predicate is false, or `length` if there is none. The
/// predicate must be true for all indexes before it, and false from there on.
fn partition(
    length: usize,
    is_before: impl Fn(usize) -> Result<bool, Error>,
) -> Result<usize, Error> {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use soif::Record;

    use super::*;
    use crate::change::{Batch, Change, GATHERER_ID, Note};
    use crate::options::Options;

    fn update(n: usize) -> Change {
        let mut record = Record::new("FILE", format!("http://h/{n}"));
        record.push(GATHERER_ID, "g");
        Change::Update(record)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        /// Some commits have only notes; there are pauses; objects change again.
        #[test]
        fn changes_are_found_by_time_and_by_serial(
            commits in prop::collection::vec((0_u64..4, prop::collection::vec(0_usize..9, 0..6)), 0..12),
            segment_bytes_max in prop::sample::select(vec![1_u64, 400, 1 << 20]),
            member_bytes_max in prop::sample::select(vec![60_usize, 1 << 16]),
            wanted in prop::collection::btree_set(0_u64..40, 0..20), compact in any::<bool>(),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let options = Options { segment_bytes_max, member_bytes_max, ..Options::default() };
            let (collection, _) = Collection::open(dir.path(), options, Stamp(1)).unwrap();
            let mut now = 10;
            for (pause, objects) in commits {
                now += pause;
                let notes = vec![Note { key: b"k".to_vec(), value: Some(vec![1]) }];
                let changes = objects.into_iter().map(update).collect();
                collection.commit(Batch { changes, notes }, Stamp(now)).unwrap();
            }
            if compact {
                collection.compact(Stamp(now)).unwrap();
            }
            let all: Vec<Scanned> = collection.scan(0).unwrap().map(Result::unwrap).collect();
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let picked: Vec<Scanned> = collection.pick(wanted.clone()).map(Result::unwrap).collect();
            let expected: Vec<Scanned> =
                all.iter().filter(|it| wanted.contains(&it.serial)).cloned().collect();
            prop_assert_eq!(picked, expected);
            prop_assert_eq!(collection.first_stamp().unwrap(), all.first().map(|it| it.stamp));
            for stamp in 9..now + 2 {
                let first = collection.first_since(Stamp(stamp)).unwrap();
                prop_assert!(all.iter().all(|it| (it.serial < first) == (it.stamp < Stamp(stamp))));
                prop_assert!(first <= collection.version().serial + 1);
            }
        }
    }
}
