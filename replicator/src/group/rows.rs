//! Rows and beats: a member's signed estimates of its links, and its signs of life between them.
//!
//! In addition to its estimates, a row has the last value of a chain, in which each value is the
//! hash of the one before it. Each beat reveals the next value, going backward along the chain. So
//! a member that knows the row can check by one hash that only the row's member can have sent the
//! beat. A signature would take 64 bytes and a thousand times as long to check (L. Lamport,
//! "Password authentication with insecure communication", CACM 24, 1981).
//!
//! A member is alive as long as its rows and beats *advance*: each newer one comes after the last
//! at about the pace at which they are sent. The first one after a silence may be old, since others
//! pass it on; only the next one is a sign of life. Known and older ones are dropped, so that
//! others' copies do not revive a dead member.
//!
//! # Differences from the paper
//!
//! flood-d floods its measurements unsigned. A site from which nothing comes counts as silent.
//!
//! Sans-I/O.

mod budget;
mod message;
mod own;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::charter::MEMBERS_MAX;
use crate::id::{GroupId, MemberId};
pub(super) use budget::Budgets;
use message::{Beat, Signed, ahead};
pub(super) use message::{Digest, HELD, RowMessage, read};
pub(super) use own::OwnRow;

/// Maximum number of beats after a row.
pub const BEATS_MAX: u16 = 120;
/// Shortest average pause between accepted rows of one member. After a longer time without rows, up
/// to [`BURST_ROWS`] are accepted at once.
pub const PAUSE_ROWS: Duration = Duration::from_secs(4);
/// See [`PAUSE_ROWS`].
pub const BURST_ROWS: u32 = 8;
/// Shortest time between a sign of life and the row or beat before it: a member that catches up
/// gets many of them at once.
pub const GAP_MIN: Duration = Duration::from_secs(3);
/// Longest time between a sign of life and the row or beat before it: after a longer silence the
/// first one may be old.
pub const GAP_MAX: Duration = Duration::from_mins(1);
/// Length of the longest row message, in bytes.
pub const ROW_BYTES_MAX: usize = 1 + 32 + 18 + MEMBERS_MAX * 14 + 64;

/// How far a member's messages have come: the sequence of its row, and the number of the last beat
/// after it.
pub(super) type Mark = (u64, u16);

/// Last known row of a member, with its last beat.
#[derive(Clone, Debug)]
pub(super) struct KnownRow {
    pub(super) signed: Signed,
    /// Number and value of the last beat; before the first beat, 0 and the chain's last value.
    beat: (u16, [u8; 32]),
    /// Time at which the last new row or beat came.
    news: Duration,
    /// Time of the last sign of life.
    advanced: Option<Duration>,
}

impl KnownRow {
    fn new(signed: Signed, now: Duration) -> Self {
        let beat = (0, signed.anchor);
        Self { signed, beat, news: now, advanced: None }
    }

    /// Records that a new row or beat came.
    fn note(&mut self, now: Duration) {
        if (GAP_MIN..=GAP_MAX).contains(&now.saturating_sub(self.news)) {
            self.advanced = Some(now);
        }
        self.news = now;
    }

    pub(super) fn mark(&self) -> Mark {
        (self.signed.row.sequence, self.beat.0)
    }

    /// Returns the messages after `mark`, in order: those that a member with this mark lacks.
    fn after(&self, mark: Mark) -> impl Iterator<Item = Arc<[u8]>> {
        let row = (mark.0 < self.signed.row.sequence).then(|| Arc::clone(&self.signed.bytes));
        let has_beat = self.beat.0 != 0 && mark < self.mark();
        let beat = has_beat.then(|| {
            let (number, value) = self.beat;
            let row = &self.signed.row;
            Beat { from: MemberId(row.from), sequence: row.sequence, number, value }.to_bytes()
        });
        row.into_iter().chain(beat)
    }
}

/// Result of taking in a row or a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// The message is new: pass it on.
    New,
    /// The message is known, or older than the known one.
    Old,
    /// The beat's row is not known: ask for it.
    Lacking,
    /// The message is not from the member that it names.
    Forged,
    /// The member that it names sends too many messages.
    TooOften,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    latest: BTreeMap<MemberId, KnownRow>,
    budgets: Budgets,
}

impl Rows {
    pub(super) fn get(&self, member: MemberId) -> Option<&KnownRow> {
        self.latest.get(&member)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (MemberId, &KnownRow)> {
        self.latest.iter().map(|(id, it)| (*id, it))
    }

    /// Returns the time of a member's last known sign of life, if there was one.
    pub(super) fn advanced(&self, member: MemberId) -> Option<Duration> {
        self.get(member)?.advanced
    }

    pub(super) fn keep(&mut self, is_member: impl Fn(MemberId) -> bool) {
        self.latest.retain(|it, _| is_member(*it));
        self.budgets.keep(is_member);
    }

    /// Returns the messages after `marks`: those that a member with these marks lacks.
    pub(super) fn after(
        &self,
        marks: &BTreeMap<MemberId, Mark>,
    ) -> impl Iterator<Item = Arc<[u8]>> {
        self.iter().flat_map(|(id, it)| it.after(marks.get(&id).copied().unwrap_or_default()))
    }

    /// Returns whether `marks` are ahead of the known row of any id for which `is_member` holds.
    pub(super) fn lacks(
        &self,
        marks: &BTreeMap<MemberId, Mark>,
        is_member: impl Fn(MemberId) -> bool,
    ) -> bool {
        let known = |id: &MemberId| self.get(*id).map(KnownRow::mark).unwrap_or_default();
        marks.iter().any(|(id, mark)| known(id) < *mark && is_member(*id))
    }

    pub(super) fn take_row(
        &mut self,
        signed: Signed,
        (group, key): (GroupId, &[u8; 32]),
        now: Duration,
    ) -> Intake {
        let from = MemberId(signed.row.from);
        let known = self.latest.get(&from);
        if known.is_some_and(|it| signed.row.sequence <= it.signed.row.sequence) {
            return Intake::Old;
        }
        let taken = self.budgets.take(from, now, || signed.is_signed(group, key));
        if taken != Intake::New {
            return taken;
        }
        let mut row = KnownRow::new(signed, now);
        if let Some(KnownRow { news, advanced, .. }) = self.latest.remove(&from) {
            row = KnownRow { news, advanced, ..row };
            row.note(now);
        }
        self.latest.insert(from, row);
        Intake::New
    }

    pub(super) fn take_beat(&mut self, beat: &Beat, now: Duration) -> Intake {
        let known = self.latest.get_mut(&beat.from);
        let Some(row) = known.filter(|it| beat.sequence <= it.signed.row.sequence) else {
            return Intake::Lacking;
        };
        let (number, value) = row.beat;
        if beat.sequence < row.signed.row.sequence || beat.number <= number {
            return Intake::Old;
        }
        if ahead(beat.value, beat.number - number) != value {
            return Intake::Forged;
        }
        row.beat = (beat.number, beat.value);
        row.note(now);
        Intake::New
    }
}

#[cfg(test)]
mod tests {
    use net::identity::Identity;
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::{Estimate, LinkEstimate};
    use crate::version::Hash;

    const GROUP: GroupId = GroupId(5);
    const NOW: Duration = Duration::from_secs(100);

    fn identity() -> Identity {
        Identity::of(&[1; 32]).unwrap()
    }

    fn own(sequence: u64) -> OwnRow {
        let entry = LinkEstimate::new(7, &Estimate::default(), NOW);
        OwnRow::sign(&identity(), GROUP, sequence, vec![entry])
    }

    fn take(rows: &mut Rows, bytes: &[u8], now: Duration) -> Intake {
        match read(bytes) {
            Some(RowMessage::Row(signed)) => {
                rows.take_row(signed, (GROUP, &identity().public()), now)
            }
            Some(RowMessage::Beat(beat)) => rows.take_beat(&beat, now),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_first_message_is_no_sign_of_life() {
        let (mut rows, mut one) = (Rows::default(), own(1));
        let member = MemberId(one.row.from);
        let beats: Vec<_> = (0..4).filter_map(|_| one.beat()).collect();
        assert_eq!(take(&mut rows, &beats[0], NOW), Intake::Lacking);
        // Another member passes on all that it knows.
        assert_eq!(take(&mut rows, &one.bytes(), NOW), Intake::New);
        assert_eq!(take(&mut rows, &beats[0], NOW + GAP_MIN / 2), Intake::New);
        assert_eq!(rows.advanced(member), None);
        let alive = NOW + GAP_MIN * 2;
        assert_eq!(take(&mut rows, &beats[1], alive), Intake::New);
        assert_eq!(rows.advanced(member), Some(alive));
        // Old messages count for nothing. The first new one after a silence is no sign of life.
        let later = alive + GAP_MAX * 2;
        for old in [&beats[0], &beats[1], &one.bytes()] {
            assert_eq!(take(&mut rows, old, later), Intake::Old);
        }
        assert_eq!(take(&mut rows, &beats[2], later), Intake::New);
        assert_eq!(take(&mut rows, &own(2).bytes(), later), Intake::New);
        assert_eq!(rows.advanced(member), Some(alive));
        // The member is back.
        assert_eq!(take(&mut rows, &beats[3], later + GAP_MAX), Intake::Old);
        assert_eq!(take(&mut rows, &own(2).beat().unwrap(), later + GAP_MAX), Intake::New);
        assert_eq!(rows.advanced(member), Some(later + GAP_MAX));
    }

    #[test]
    fn forged_rows_and_beats_are_rejected() {
        let (mut rows, mut one) = (Rows::default(), own(1));
        take(&mut rows, &one.bytes(), NOW);
        let beat = one.beat().unwrap();
        for at in [30, 50] {
            let mut forged = beat.to_vec();
            forged[at] ^= 1;
            assert_eq!(take(&mut rows, &forged, NOW), Intake::Forged);
        }
        // A beat with another number: the known values are valid for no later beat.
        let mut forged = beat.to_vec();
        forged[18] = 2;
        assert_eq!(take(&mut rows, &forged, NOW), Intake::Forged);
        let next = own(2).bytes();
        for at in [1, 33 + 8, next.len() - 1] {
            let mut forged = next.to_vec();
            forged[at] ^= 4;
            assert_eq!(take(&mut rows, &forged, NOW), Intake::Forged, "{at}");
        }
        // A row of another group.
        let other = OwnRow::sign(&identity(), GroupId(6), 3, Vec::new());
        assert_eq!(take(&mut rows, &other.bytes(), NOW), Intake::Forged);
    }

    #[test]
    fn a_member_that_sends_too_often_is_ignored() {
        let mut rows = Rows::default();
        let mut taken = |sequence: u64, now: Duration| take(&mut rows, &own(sequence).bytes(), now);
        for sequence in 1..=u64::from(BURST_ROWS) {
            assert_eq!(taken(sequence, NOW), Intake::New);
        }
        assert_eq!(taken(100, NOW), Intake::TooOften);
        assert_eq!(taken(101, NOW + PAUSE_ROWS), Intake::New);
        assert_eq!(taken(102, NOW + PAUSE_ROWS), Intake::TooOften);
        assert_eq!(taken(103, NOW + 2 * PAUSE_ROWS), Intake::New);
    }

    #[test]
    fn a_member_that_missed_messages_receives_them() {
        let (mut rows, mut one) = (Rows::default(), own(4));
        take(&mut rows, &one.bytes(), NOW);
        (0..5).for_each(|_| {
            take(&mut rows, &one.beat().unwrap(), NOW);
        });
        let member = MemberId(one.row.from);
        for (mark, expected) in [((0, 0), 2), ((3, 9), 2), ((4, 0), 1), ((4, 5), 0), ((5, 0), 0)] {
            let marks = [(member, mark)].into();
            let sent: Vec<_> = rows.after(&marks).collect();
            assert_eq!(sent.len(), expected, "{mark:?}");
            assert_eq!(one.after(mark).collect::<Vec<_>>(), sent);
            assert_eq!(rows.lacks(&marks, |_| true), (4, 5) < mark);
            let mut others = Rows::default();
            for it in sent.iter().filter(|_| expected == 2) {
                assert_eq!(take(&mut others, it, NOW), Intake::New);
            }
        }
        assert_eq!((0..BEATS_MAX).filter_map(|_| one.beat()).count(), usize::from(BEATS_MAX - 5));
    }

    proptest! {
        #[test]
        fn digests_are_read_as_they_were_written(
            is_answer: bool, epoch: u64, revision: u64, charter: [u8; 32],
            all in prop::collection::btree_map(any::<u64>(), any::<(Mark, u64)>(), 0..20),
        ) {
            let all = || all.iter().map(|(id, (mark, held))| (MemberId(*id), *mark, *held));
            let marks: BTreeMap<MemberId, Mark> = all().map(|it| (it.0, it.1)).collect();
            let held: BTreeMap<MemberId, u64> = all().map(|it| (it.0, it.2)).collect();
            let number = (epoch, revision, Hash(charter));
            let bytes = Digest::write(is_answer, number, all());
            let Some(RowMessage::Digest(digest)) = read(&bytes) else { panic!("no digest") };
            prop_assert_eq!((digest.epoch, digest.revision, digest.charter), number);
            let found = (digest.is_answer, digest.marks(), digest.held());
            prop_assert_eq!(found, (is_answer, marks, held));
        }

        #[test]
        fn random_bytes_are_never_taken_as_rows(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut rows = Rows::default();
            if let Some(RowMessage::Row(signed)) = read(&bytes) {
                rows.take_row(signed, (GROUP, &identity().public()), NOW);
            }
            prop_assert_eq!(rows.iter().count(), 0);
        }
    }
}
