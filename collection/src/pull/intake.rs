//! The intake of a source's stream: members are decoded, verified and applied as they come.
//!
//! Whole commits of the source are gathered until they are worth a commit of our own, and applied
//! together with their cursor. If the stream ends early, the good part before it is applied, and
//! the next request continues from there.
//!
//! One commit of ours may contain several commits of the source, or a part of a very large one. A
//! consumer is consistent at the end mark all the same, and a thousand small commits cost one
//! fsync.
//!
//! Source: docs/collection.md, "On the wire".

use bytes::Bytes;
use net::clock;
use tokio::sync::mpsc;

use super::first_changes::FirstChanges;
use crate::change::{Change, Epoch, Oid, Stamp};
use crate::collection::Collection;
use crate::error::{Damage, Error};
use crate::holders::{Cursor, Owner, Part, Progress, Pulled};
use crate::member::{Decoder, MEMBER_BYTES_MAX, Member};
use crate::report::Applied;
use crate::sources::restraint::{RATIO_MAX, Released, UnpackRatio, is_loss};
use crate::wire::client::Piece;

/// Number of changes from which a commit of ours is worthwhile.
const APPLY_CHANGES: usize = 4_096;
/// Number of plain bytes from which a commit of ours is worthwhile.
const APPLY_BYTES: usize = 4 << 20;

/// Number of plain bytes from which a commit of the source is split.
const SPLIT_BYTES: usize = 16 << 20;

/// The kind and the start of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Delta,
    /// The changes after a snapshot that ended. At their end, objects that neither the snapshot nor
    /// these changes name are released.
    Rest(Progress),
    /// A snapshot from byte `offset` on.
    Snapshot {
        id: String,
        generation: u64,
        offset: u64,
    },
}

impl Stream {
    /// Returns the stream of a delta after `cursor`.
    pub(crate) fn after(cursor: &Cursor) -> Self {
        cursor.taken().map_or(Self::Delta, |taken| Self::Rest(taken.clone()))
    }
}

/// The counts of a pull, over all of its streams.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Updates and deletes.
    pub(crate) changes: u64,
    /// Those of them that brought a new record of the same content.
    pub(crate) remade: u64,
    /// The sum of the stamps of the others, in milliseconds since 1970.
    pub(crate) stamps_ms: u128,
    /// The objects whose changes came in deltas.
    pub(crate) seen: FirstChanges,
    /// Number of changes that were the first of their object.
    pub(crate) firsts: u64,
    /// The sum of their stamps.
    pub(crate) first_stamps_ms: u128,
    /// Changes of any kind.
    pub(crate) records: u64,
    pub(crate) applied: Applied,
    /// The unpack ratio over all requests of the pull.
    pub(crate) ratio: UnpackRatio,
}

/// The intake of one stream.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) collection: Collection,
    pub(crate) source: String,
    pub(crate) id: Option<Owner>,
    pub(crate) url: String,
    pub(crate) stream: Stream,
    /// The epoch of the stream.
    pub(crate) epoch: Epoch,
    /// The serial that the stream has to reach.
    pub(crate) to: u64,
    /// The last serial taken in.
    pub(crate) serial: u64,
    /// The part of the source that the stream is of.
    pub(crate) part: Option<Part>,
    /// The source's cursor in the collection.
    pub(crate) stored: Option<Cursor>,
    /// Bytes to skip at the beginning of the stream.
    pub(crate) skip: u64,
    /// Maximum number of changes to take, those of earlier streams included.
    pub(crate) records_max: u64,
    /// Number of objects that the source held before.
    pub(crate) held: u64,
    /// Whether changes are missing, damaged at the source; then nothing is released.
    pub(crate) in_part: bool,
    /// Whether no changes follow the snapshot: then unnamed objects are released at its end.
    pub(crate) is_newest: bool,
    /// Whether an administrator has confirmed any loss.
    pub(crate) confirmed: bool,
    /// Of a part: how many objects it had when its deltas began to let some go, and how many these are. They are
    /// counted until a pull has come to its end.
    pub(crate) released: Released,
    decoder: Decoder,
    batch: Vec<(u64, Change)>,
    batch_bytes: usize,
    ended: bool,
    /// The counts of this stream and of those before it.
    pub(crate) tally: Tally,
}

impl Intake {
    pub(crate) fn new(collection: Collection, source: String, stream: Stream) -> Self {
        Self {
            collection,
            source,
            id: None,
            url: String::new(),
            stream,
            epoch: Epoch::default(),
            to: 0,
            serial: 0,
            part: None,
            stored: None,
            skip: 0,
            records_max: u64::MAX,
            held: 0,
            in_part: false,
            is_newest: false,
            confirmed: false,
            released: Released::default(),
            decoder: Decoder::new(MEMBER_BYTES_MAX),
            batch: Vec::new(),
            batch_bytes: 0,
            ended: false,
            tally: Tally::default(),
        }
    }

    /// Gives a new snapshot a higher generation than that of the interrupted one in `cursor`,
    /// whatever the clock says.
    pub(crate) fn begin_after(&mut self, cursor: Option<&Cursor>) {
        if let (Stream::Snapshot { generation, .. }, Some(last)) =
            (&mut self.stream, cursor.and_then(|it| it.snapshot.as_ref()))
        {
            *generation = (*generation).max(last.generation + 1);
        }
    }

    /// Takes the pieces of a stream until its end. Blocks.
    ///
    /// # Errors
    ///
    /// [`Error::Stream`]: the stream is damaged or cut short; the part before the damage is
    /// applied. So is the part before [`Error::OverLimit`], [`Error::Swollen`] and [`Error::Loss`].
    /// Any other error is the collection's own.
    pub(crate) fn run(mut self, mut pieces: mpsc::Receiver<Piece>) -> (Tally, Result<(), Error>) {
        if let Err(error) = self.note_held() {
            return (self.tally, Err(error));
        }
        let outcome = loop {
            match pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => {
                    if let Err(error) = self.feed(&bytes) {
                        break Err(error);
                    }
                }
                Some(Piece::End) => break Ok(()),
                // The pull was dropped; another may have begun, so this one must not write.
                None => return (self.tally, Ok(())),
            }
        };
        // After other errors everything is applied, or applying has failed: then the cursor must
        // not pass the changes that were not applied.
        let is_cut = matches!(outcome, Ok(()) | Err(Error::Stream { .. }));
        if !self.ended && is_cut {
            let applied = self.apply();
            let cut = self.damage(Damage::Truncated);
            return (self.tally, applied.and(outcome).and(Err(cut)));
        }
        (self.tally, outcome)
    }

    /// Records how many objects the source held at the beginning of a snapshot.
    fn note_held(&self) -> Result<(), Error> {
        let Stream::Snapshot { generation, offset: 0, .. } = self.stream else { return Ok(()) };
        let interrupted = self.stored.as_ref().and_then(|it| it.snapshot.as_ref());
        let interrupted = interrupted.map(|it| it.generation);
        self.collection.remember_held(&self.source, generation, self.held, interrupted)
    }

    fn feed(&mut self, piece: &Bytes) -> Result<(), Error> {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(piece.len());
        self.skip -= u64::try_from(skip).unwrap_or(self.skip);
        self.decoder.feed(piece.get(skip..).unwrap_or_default());
        loop {
            match self.decoder.next_member() {
                Ok(Some(member)) => self.take(&member)?,
                Ok(None) => return Ok(()),
                Err(Error::Stream { what, .. }) => return Err(self.damage(what)),
                Err(other) => return Err(other),
            }
        }
    }

    fn take(&mut self, member: &Member) -> Result<(), Error> {
        let header = &member.header;
        let at = self.start() + member.offset;
        let damage = |what| Error::Stream { offset: at, what };
        if self.ended {
            return Err(damage(Damage::Content));
        }
        if header.end_mark {
            if (header.epoch, header.base) != (self.epoch, self.to) || self.to < self.serial {
                return Err(damage(Damage::Content));
            }
            self.check_loss(at)?;
            self.serial = self.to;
            self.ended = true;
            return self.apply();
        }
        // A local member is never served.
        if header.local {
            return Err(damage(Damage::Content));
        }
        if header.last() < self.serial || self.to < header.last() {
            return Err(damage(Damage::Order));
        }
        if !self.tally.ratio.add(member.length, member.plain.len()) {
            self.apply_to(at)?;
            let (name, url) = (self.source.clone(), self.url.clone());
            return Err(Error::Swollen { name, url, ratio_max: RATIO_MAX });
        }
        for scanned in member.changes().map_err(damage)? {
            // The first member of a delta may hold known changes.
            if scanned.serial <= self.serial {
                continue;
            }
            self.serial = scanned.serial;
            self.tally.records += 1;
            self.count(scanned.stamp, &scanned.change);
            self.check_release(&scanned.change)?;
            let change = match scanned.change {
                Change::Refresh(oid, None) => Change::Refresh(oid, Some(scanned.stamp)),
                other => other,
            };
            self.batch.push((scanned.serial, change));
        }
        self.batch_bytes += member.plain.len();
        let worth_it = APPLY_CHANGES <= self.batch.len() || APPLY_BYTES <= self.batch_bytes;
        let over = self.records_max < self.tally.records;
        if over || SPLIT_BYTES <= self.batch_bytes || (header.end_of_commit && worth_it) {
            self.apply()?;
        }
        if over {
            let what = format!("more than {} changes at once", self.records_max);
            return Err(Error::OverLimit {
                name: self.source.clone(),
                what,
                setting: "records_max",
            });
        }
        Ok(())
    }

    /// Counts a change, for the source's change rate and the age of our copies. When a source makes all its
    /// records anew, as after an upgrade, its objects have not changed.
    fn count(&mut self, stamp: Stamp, change: &Change) {
        if matches!(change, Change::Refresh(..) | Change::Confirm { .. }) {
            return;
        }
        self.tally.changes += 1;
        // An object in a snapshot may have changed long ago.
        let in_delta = !matches!(self.stream, Stream::Snapshot { .. });
        if in_delta && matches!(change, Change::Update(it) if self.collection.has_content_of(it)) {
            self.tally.remade += 1;
            return;
        }
        let stamp_ms = u128::from(stamp.0);
        self.tally.stamps_ms += stamp_ms;
        if in_delta && self.tally.seen.is_first(change) {
            self.tally.firsts += 1;
            self.tally.first_stamps_ms += stamp_ms;
        }
    }

    /// Checks at the end mark, at byte `at`, that the stream does not release most of the objects
    /// that the source held, unless an administrator has confirmed that.
    fn check_loss(&mut self, at: u64) -> Result<(), Error> {
        let Some(generation) = self.released_generation() else { return Ok(()) };
        // Even the loss of all its objects would be allowed.
        if self.confirmed || !is_loss(self.held, self.held) {
            return Ok(());
        }
        self.apply_to(at)?;
        self.collection.check_loss(&self.source, generation, self.held)
    }

    /// Checks that a delta does not let go most of a part: a query may match far less all of a sudden, by a change of
    /// its source's or of the records. What a gatherer deletes it has held itself, if it was much.
    fn check_release(&mut self, change: &Change) -> Result<(), Error> {
        let is_delta = matches!(self.stream, Stream::Delta | Stream::Rest(_));
        let is_counted = self.part.is_some() && !self.confirmed && is_delta;
        if !is_counted {
            return Ok(());
        }
        let oid = match change {
            Change::Delete(oid) => oid,
            Change::Update(record) if self.released.lost != 0 => {
                let comes = Oid::of(record).map(|it| self.collection.holds(&self.source, &it));
                let comes = !comes.transpose()?.unwrap_or(true);
                self.released.lost -= u64::from(comes);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if self.collection.holds(&self.source, oid)? {
            if self.released.lost == 0 {
                let since_ms = Some(clock::now_ms());
                self.released = Released { lost: 0, of: self.held, since_ms };
            }
            let Released { lost, of, .. } = &mut self.released;
            *lost += 1;
            if is_loss(*lost, *of) {
                let (name, lost, of) = (self.source.clone(), *lost, *of);
                return Err(Error::Loss { name, lost, of });
            }
        }
        Ok(())
    }

    /// Applies the changes taken so far, with their cursor.
    fn apply(&mut self) -> Result<(), Error> {
        self.apply_to(self.start() + self.decoder.offset())
    }

    /// Applies the changes taken so far, with the cursor at byte `offset` of the stream.
    fn apply_to(&mut self, offset: u64) -> Result<(), Error> {
        let (epoch, to, serial) = (self.epoch, self.to, self.serial);
        let end_of_snapshot = self.released_generation().filter(|_| self.ended);
        let snapshot = match &self.stream {
            _ if end_of_snapshot.is_some() => None,
            Stream::Delta => None,
            Stream::Rest(taken) => Some(taken.clone()),
            Stream::Snapshot { id, generation, .. } => {
                let (id, generation) = (id.clone(), *generation);
                let offset = match () {
                    () if !self.ended => offset,
                    () if self.in_part => Progress::IN_PART,
                    () => Progress::TAKEN,
                };
                Some(Progress { id, offset, to, generation })
            }
        };
        let part =
            self.part.clone().map(|it| Part { is_new: it.is_new && snapshot.is_some(), ..it });
        let cursor = Cursor { epoch, serial, snapshot, part };
        let is_new =
            self.stored.as_ref() != Some(&cursor) && (self.ended || offset != self.start());
        if self.batch.is_empty() && end_of_snapshot.is_none() && !is_new {
            return Ok(());
        }
        self.batch_bytes = 0;
        let pulled = Pulled {
            source: self.source.clone(),
            id: self.id.clone(),
            epoch,
            changes: std::mem::take(&mut self.batch),
            cursor: cursor.clone(),
            end_of_snapshot,
        };
        let now = Stamp(clock::now_ms());
        let Released { lost, since_ms, .. } = self.released;
        let lost = if self.ended && self.confirmed { 0 } else { lost };
        let since_ms = since_ms.filter(|_| self.ended);
        let released = Released { lost, since_ms, ..self.released };
        let has_counted = self.released != Released::default();
        let notes = has_counted.then(|| released.note(&self.source));
        let is_known = |cursor: Option<&Cursor>| self.stored.as_ref() == cursor;
        let applied =
            self.collection.apply_if(is_known, pulled, notes.into_iter().collect(), now)?;
        self.tally.applied += applied;
        self.stored = Some(cursor);
        Ok(())
    }

    /// Returns the generation whose objects are kept when all others are released at the end of
    /// this stream; `None` if nothing is released then.
    fn released_generation(&self) -> Option<u64> {
        match &self.stream {
            _ if self.in_part => None,
            Stream::Rest(taken) => Some(taken.generation),
            Stream::Snapshot { generation, .. } if self.is_newest => Some(*generation),
            Stream::Snapshot { .. } | Stream::Delta => None,
        }
    }

    /// Returns the offset of the decoder's first byte in the whole stream.
    fn start(&self) -> u64 {
        match self.stream {
            Stream::Delta | Stream::Rest(_) => 0,
            Stream::Snapshot { offset, .. } => offset,
        }
    }

    fn damage(&self, what: Damage) -> Error {
        Error::Stream { offset: self.start() + self.decoder.offset(), what }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use soif::Record;

    use super::*;
    use crate::change::{Batch, GATHERER_ID, Note, Version};
    use crate::member::end_mark;
    use crate::options::Options;

    const OBJECTS: u64 = 60;

    fn open(dir: &Path) -> Collection {
        let options = Options { member_bytes_max: 512, ..Options::default() };
        Collection::open(dir, options, Stamp(1)).unwrap().0
    }

    /// Returns a stream without its end mark, the offsets of its members, and its version.
    fn stream() -> (Vec<u8>, Vec<usize>, Version) {
        let dir = tempfile::tempdir().unwrap();
        let source = open(dir.path());
        let updates = (1..=OBJECTS).map(|n| {
            let mut record = Record::new("FILE", format!("http://h/{n}"));
            record.push("Title", n.to_string());
            record.push(GATHERER_ID, "00000000000000aa");
            Change::Update(record)
        });
        let batch = Batch { changes: updates.collect(), notes: Vec::new() };
        let version = source.commit(batch, Stamp(2)).unwrap();
        let bytes = crate::tests::served(&source, 0);
        let mut decoder = Decoder::new(MEMBER_BYTES_MAX);
        decoder.feed(&bytes);
        let mut starts = Vec::new();
        while let Some(member) = decoder.next_member().unwrap() {
            starts.push(usize::try_from(member.offset).unwrap());
        }
        (bytes, starts, version)
    }

    /// Takes `bytes` as a delta for an empty collection; returns the outcome, the number of
    /// objects, and the serial reached.
    fn take_in(bytes: &[u8], to: Version, records_max: u64) -> (Result<(), Error>, u64, u64) {
        let dir = tempfile::tempdir().unwrap();
        take_into(&open(dir.path()), "source", bytes, to, records_max)
    }

    fn take_into(
        collection: &Collection,
        source: &str,
        bytes: &[u8],
        to: Version,
        records_max: u64,
    ) -> (Result<(), Error>, u64, u64) {
        let mut intake = Intake::new(collection.clone(), source.to_owned(), Stream::Delta);
        (intake.epoch, intake.to, intake.records_max) = (to.epoch, to.serial, records_max);
        let pieces: Vec<_> = bytes.chunks(100).map(Bytes::copy_from_slice).collect();
        let (sender, receiver) = mpsc::channel(pieces.len() + 1);
        for piece in pieces {
            sender.try_send(Piece::Bytes(piece)).unwrap();
        }
        sender.try_send(Piece::End).unwrap();
        let (tally, outcome) = intake.run(receiver);
        let cursor = collection.cursor(source).unwrap().map_or(0, |it| it.serial);
        assert_eq!(tally.applied.updated, collection.len());
        (outcome, collection.len(), cursor)
    }

    fn check(bytes: &[u8], to: Version, expected: Damage, at: usize, objects: u64) {
        let (outcome, found, cursor) = take_in(bytes, to, u64::MAX);
        let Err(Error::Stream { offset, what }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((what, usize::try_from(offset).unwrap()), (expected, at));
        assert_eq!((found, cursor), (objects, objects), "the good part and no more");
    }

    #[test]
    fn a_whole_stream_is_applied_and_reaches_its_end() {
        let (bytes, _, to) = stream();
        let whole = [bytes, end_mark(to)].concat();
        let (outcome, objects, cursor) = take_in(&whole, to, u64::MAX);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!((objects, cursor), (OBJECTS, OBJECTS));
    }

    #[test]
    fn a_malformed_stream_is_applied_up_to_the_fault() {
        let (bytes, starts, to) = stream();
        let whole = [bytes.as_slice(), &end_mark(to)].concat();
        check(&bytes, to, Damage::Truncated, bytes.len(), OBJECTS);
        let last = *starts.last().unwrap();
        let (_, before_last, _) = take_in(&bytes[..last], to, u64::MAX);
        check(&bytes[..bytes.len() - 1], to, Damage::Truncated, last, before_last);

        // The end mark has another version, or a later one than the source has.
        let other = Version { serial: to.serial + 1, ..to };
        let wrong = [bytes.as_slice(), &end_mark(other)].concat();
        check(&wrong, to, Damage::Content, bytes.len(), OBJECTS);
        // Members come in decreasing order, or one is past the version of the answer.
        let again = [bytes.as_slice(), &bytes[..starts[1]]].concat();
        check(&again, to, Damage::Order, bytes.len(), OBJECTS);
        let less = Version { serial: to.serial - 1, ..to };
        check(&whole, less, Damage::Order, last, before_last);
    }

    #[test]
    fn a_member_that_is_never_served_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let note = Note { key: b"k".to_vec(), value: Some(b"v".to_vec()) };
        let batch = Batch { changes: Vec::new(), notes: vec![note] };
        open(dir.path()).commit(batch, Stamp(2)).unwrap();
        let local = std::fs::read(dir.path().join("segment-00000001.gz")).unwrap();
        let (bytes, _, to) = stream();
        let whole = [bytes.as_slice(), &local, &end_mark(to)].concat();
        check(&whole, to, Damage::Content, bytes.len(), OBJECTS);
    }

    #[test]
    fn nothing_may_follow_the_end_mark() {
        let (bytes, starts, to) = stream();
        let more = [bytes.as_slice(), &end_mark(to), &bytes[..starts[1]]].concat();
        let (outcome, objects, _) = take_in(&more, to, u64::MAX);
        assert!(matches!(outcome, Err(Error::Stream { what: Damage::Content, .. })), "{outcome:?}");
        assert_eq!(objects, OBJECTS);
    }

    #[test]
    fn a_changed_byte_is_found_and_the_part_before_it_is_applied() {
        let (bytes, mut starts, to) = stream();
        starts.push(bytes.len());
        let whole = [bytes, end_mark(to)].concat();
        for at in (0..whole.len()).step_by(whole.len() / 20) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let (outcome, objects, cursor) = take_in(&damaged, to, u64::MAX);
            let Err(Error::Stream { offset, .. }) = outcome else { panic!("{at}: {outcome:?}") };
            let member = starts.iter().rfind(|it| **it <= at).unwrap();
            assert_eq!(usize::try_from(offset).unwrap(), *member, "byte {at}");
            assert_eq!(objects, cursor, "byte {at}");
            assert_eq!(objects == OBJECTS, *member == *starts.last().unwrap(), "byte {at}");
        }
    }

    #[test]
    fn the_limit_of_changes_applies_the_part_before_it() {
        let (bytes, _, to) = stream();
        let whole = [bytes, end_mark(to)].concat();
        let (outcome, objects, cursor) = take_in(&whole, to, 10);
        assert!(matches!(outcome, Err(Error::OverLimit { setting: "records_max", .. })));
        assert!((11..OBJECTS).contains(&objects) && objects == cursor, "{objects} {cursor}");
    }

    #[test]
    fn a_cursor_that_was_set_back_meanwhile_stays_so() {
        let to = Version { epoch: Epoch(7), serial: 9 };
        let dir = tempfile::tempdir().unwrap();
        let collection = open(dir.path());
        let at = |serial| Cursor { epoch: to.epoch, serial, snapshot: None, part: None };
        let pulled = |serial| Pulled {
            source: "s".to_owned(),
            id: None,
            epoch: to.epoch,
            changes: Vec::new(),
            cursor: at(serial),
            end_of_snapshot: None,
        };
        collection.apply_after(pulled(5), None, Stamp(2)).unwrap();
        collection.apply_after(pulled(6), Some(&at(5)), Stamp(2)).unwrap();
        // The cursor has changed since the pull read it.
        for behind in [at(5), at(7)] {
            let outcome = collection.apply_after(pulled(8), Some(&behind), Stamp(2));
            assert!(matches!(outcome, Err(Error::SetBack { .. })), "{outcome:?}");
            assert_eq!(collection.cursor("s").unwrap(), Some(at(6)));
        }
        let mut tail = collection.inner.tail();
        collection.inner.forget_cursors(&mut tail, Stamp(2)).unwrap();
        drop(tail);
        let outcome = collection.apply_after(pulled(8), Some(&at(6)), Stamp(2));
        assert!(matches!(outcome, Err(Error::SetBack { .. })), "{outcome:?}");
        assert_eq!(collection.cursor("s").unwrap(), None);
    }

    #[test]
    fn the_cursor_does_not_pass_changes_that_could_not_be_applied() {
        let (bytes, _, to) = stream();
        let whole = [bytes, end_mark(to)].concat();
        let dir = tempfile::tempdir().unwrap();
        // The note of the cursor fits, but the note of an object with its holder does not.
        let source = "s".repeat(400);
        let options = Options { record_bytes_max: 470, ..Options::default() };
        let (collection, _) = Collection::open(dir.path(), options, Stamp(1)).unwrap();
        for records_max in [10, u64::MAX] {
            let (outcome, objects, cursor) =
                take_into(&collection, &source, &whole, to, records_max);
            assert!(matches!(outcome, Err(Error::Refused { .. })), "{outcome:?}");
            assert_eq!((objects, cursor), (0, 0));
        }
    }
}
