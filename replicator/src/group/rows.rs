//! What members say of their links, and that they are there: rows that are signed, and beats between them.
//!
//! A row has, beside its estimates, the last of a chain of hashes, each the hash of the one before it. A beat
//! is the next one of the chain, backward: whoever knows the row can tell that its member alone can have
//! sent it, for one hash, where a signature takes 64 bytes and a thousand times as long (L. Lamport,
//! "Password authentication with insecure communication", CACM 24, 1981).
//!
//! A member is alive as long as its rows and beats *advance*, one after another, at about the pace at which they are
//! sent: the first that is heard of it, or is heard again, may be as old as who passes it on, and
//! says only from where on to count. What is not newer than that is dropped, so that what others
//! still know of a dead member does not revive it.
//!
//! # Differences from the paper
//!
//! flood-d floods what it measured, unsigned, and a site is silent when nothing comes.
//!
//! Sans-I/O.

mod budget;
mod own;
mod said;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::charter::MEMBERS_MAX;
use crate::id::{GroupId, MemberId};
pub(super) use budget::Budgets;
pub(super) use own::Own;
use said::{Beat, Signed, ahead};
pub(super) use said::{Digest, HELD, Said, read};

/// Beats that a row is good for.
pub const BEATS_MAX: u16 = 120;
/// A member's rows are taken at most so often, one after another, and as many at once as [`BURST_ROWS`].
pub const PAUSE_ROWS: Duration = Duration::from_secs(4);
/// See [`PAUSE_ROWS`].
pub const BURST_ROWS: u32 = 8;
/// Between a sign of life and the news before it lies at least as much: who catches up gets much at once.
pub const GAP_MIN: Duration = Duration::from_secs(3);
/// And at most as much: after a longer silence the first news may be old.
pub const GAP_MAX: Duration = Duration::from_mins(1);
/// Longest row, in bytes, with all that is around it.
pub const ROW_BYTES_MAX: usize = 1 + 32 + 18 + MEMBERS_MAX * 14 + 64;

/// How far a member is: its row's sequence, and the last beat since.
pub(super) type Mark = (u64, u16);

/// What is known of a member by its rows and beats.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) signed: Signed,
    /// Of the last beat: number and value; the chain's end before the first.
    beat: (u16, [u8; 32]),
    /// When anything newer came than was known.
    news: Duration,
    /// When the last came that was a sign of life.
    advanced: Option<Duration>,
}

impl Heard {
    fn new(signed: Signed, now: Duration) -> Self {
        let beat = (0, signed.anchor);
        Self { signed, beat, news: now, advanced: None }
    }

    /// Takes note that something newer came.
    fn note(&mut self, now: Duration) {
        if (GAP_MIN..=GAP_MAX).contains(&now.saturating_sub(self.news)) {
            self.advanced = Some(now);
        }
        self.news = now;
    }

    pub(super) fn mark(&self) -> Mark {
        (self.signed.row.sequence, self.beat.0)
    }

    /// What to send to somebody who is as far as `mark`, in order.
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

/// What came of a row or a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is new: pass it on.
    New,
    /// It is known, or older than what is known.
    Old,
    /// It is of a row that is not here: ask for it.
    Lacking,
    /// It is not of the member that it says.
    Forged,
    /// Its member says too much.
    TooOften,
}

/// What the members of a group have said.
#[derive(Debug, Default)]
pub(super) struct Rows {
    heard: BTreeMap<MemberId, Heard>,
    budgets: Budgets,
}

impl Rows {
    pub(super) fn get(&self, member: MemberId) -> Option<&Heard> {
        self.heard.get(&member)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (MemberId, &Heard)> {
        self.heard.iter().map(|(id, it)| (*id, it))
    }

    /// When a member last was alive, as far as is known.
    pub(super) fn advanced(&self, member: MemberId) -> Option<Duration> {
        self.get(member)?.advanced
    }

    /// Forgets who is no member any more.
    pub(super) fn keep(&mut self, is_member: impl Fn(MemberId) -> bool) {
        self.heard.retain(|it, _| is_member(*it));
        self.budgets.keep(is_member);
    }

    /// What to send to somebody who is as far as `marks` say.
    pub(super) fn after(
        &self,
        marks: &BTreeMap<MemberId, Mark>,
    ) -> impl Iterator<Item = Arc<[u8]>> {
        self.iter().flat_map(|(id, it)| it.after(marks.get(&id).copied().unwrap_or_default()))
    }

    /// Whether `marks` are ahead of what is known of any of the members.
    pub(super) fn lacks(
        &self,
        marks: &BTreeMap<MemberId, Mark>,
        is_member: impl Fn(MemberId) -> bool,
    ) -> bool {
        let known = |id: &MemberId| self.get(*id).map(Heard::mark).unwrap_or_default();
        marks.iter().any(|(id, mark)| known(id) < *mark && is_member(*id))
    }

    /// Takes in the row of a member.
    pub(super) fn take_row(
        &mut self,
        signed: Signed,
        (group, key): (GroupId, &[u8; 32]),
        now: Duration,
    ) -> Taken {
        let from = MemberId(signed.row.from);
        let known = self.heard.get(&from);
        if known.is_some_and(|it| signed.row.sequence <= it.signed.row.sequence) {
            return Taken::Old;
        }
        let taken = self.budgets.take(from, now, || signed.is_signed(group, key));
        if taken != Taken::New {
            return taken;
        }
        let mut heard = Heard::new(signed, now);
        if let Some(Heard { news, advanced, .. }) = self.heard.remove(&from) {
            heard = Heard { news, advanced, ..heard };
            heard.note(now);
        }
        self.heard.insert(from, heard);
        Taken::New
    }

    /// Takes in a beat of a member.
    pub(super) fn take_beat(&mut self, beat: &Beat, now: Duration) -> Taken {
        let known = self.heard.get_mut(&beat.from);
        let Some(heard) = known.filter(|it| beat.sequence <= it.signed.row.sequence) else {
            return Taken::Lacking;
        };
        let (number, value) = heard.beat;
        if beat.sequence < heard.signed.row.sequence || beat.number <= number {
            return Taken::Old;
        }
        if ahead(beat.value, beat.number - number) != value {
            return Taken::Forged;
        }
        heard.beat = (beat.number, beat.value);
        heard.note(now);
        Taken::New
    }
}

#[cfg(test)]
mod tests {
    use net::identity::Identity;
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::{Entry, Estimate};
    use crate::version::Hash;

    const GROUP: GroupId = GroupId(5);
    const NOW: Duration = Duration::from_secs(100);

    fn identity() -> Identity {
        Identity::of(&[1; 32]).unwrap()
    }

    fn own(sequence: u64) -> Own {
        let entry = Entry::new(7, &Estimate::default(), NOW);
        Own::sign(&identity(), GROUP, sequence, vec![entry])
    }

    fn take(rows: &mut Rows, bytes: &[u8], now: Duration) -> Taken {
        match read(bytes) {
            Some(Said::Row(signed)) => rows.take_row(signed, (GROUP, &identity().public()), now),
            Some(Said::Beat(beat)) => rows.take_beat(&beat, now),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_heard_first_says_nothing_of_life() {
        let (mut rows, mut one) = (Rows::default(), own(1));
        let member = MemberId(one.row.from);
        let beats: Vec<_> = (0..4).filter_map(|_| one.beat()).collect();
        assert_eq!(take(&mut rows, &beats[0], NOW), Taken::Lacking);
        // Somebody tells all that it knows.
        assert_eq!(take(&mut rows, &one.bytes(), NOW), Taken::New);
        assert_eq!(take(&mut rows, &beats[0], NOW + GAP_MIN / 2), Taken::New);
        assert_eq!(rows.advanced(member), None);
        let alive = NOW + GAP_MIN * 2;
        assert_eq!(take(&mut rows, &beats[1], alive), Taken::New);
        assert_eq!(rows.advanced(member), Some(alive));
        // What is old, and what somebody else has heard meanwhile.
        let later = alive + GAP_MAX * 2;
        for old in [&beats[0], &beats[1], &one.bytes()] {
            assert_eq!(take(&mut rows, old, later), Taken::Old);
        }
        assert_eq!(take(&mut rows, &beats[2], later), Taken::New);
        assert_eq!(take(&mut rows, &own(2).bytes(), later), Taken::New);
        assert_eq!(rows.advanced(member), Some(alive));
        // It is there again.
        assert_eq!(take(&mut rows, &beats[3], later + GAP_MAX), Taken::Old);
        assert_eq!(take(&mut rows, &own(2).beat().unwrap(), later + GAP_MAX), Taken::New);
        assert_eq!(rows.advanced(member), Some(later + GAP_MAX));
    }

    #[test]
    fn nobody_makes_up_rows_or_beats() {
        let (mut rows, mut one) = (Rows::default(), own(1));
        take(&mut rows, &one.bytes(), NOW);
        let beat = one.beat().unwrap();
        for at in [30, 50] {
            let mut forged = beat.to_vec();
            forged[at] ^= 1;
            assert_eq!(take(&mut rows, &forged, NOW), Taken::Forged);
        }
        // A beat says of itself which one it is; the values that are known serve for no later one.
        let mut forged = beat.to_vec();
        forged[18] = 2;
        assert_eq!(take(&mut rows, &forged, NOW), Taken::Forged);
        let next = own(2).bytes();
        for at in [1, 33 + 8, next.len() - 1] {
            let mut forged = next.to_vec();
            forged[at] ^= 4;
            assert_eq!(take(&mut rows, &forged, NOW), Taken::Forged, "{at}");
        }
        // That of another group.
        let other = Own::sign(&identity(), GroupId(6), 3, Vec::new());
        assert_eq!(take(&mut rows, &other.bytes(), NOW), Taken::Forged);
    }

    #[test]
    fn who_says_too_much_is_not_heard() {
        let mut rows = Rows::default();
        let mut taken = |sequence: u64, now: Duration| take(&mut rows, &own(sequence).bytes(), now);
        for sequence in 1..=u64::from(BURST_ROWS) {
            assert_eq!(taken(sequence, NOW), Taken::New);
        }
        assert_eq!(taken(100, NOW), Taken::TooOften);
        assert_eq!(taken(101, NOW + PAUSE_ROWS), Taken::New);
        assert_eq!(taken(102, NOW + PAUSE_ROWS), Taken::TooOften);
        assert_eq!(taken(103, NOW + 2 * PAUSE_ROWS), Taken::New);
    }

    #[test]
    fn who_has_missed_some_is_told() {
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
                assert_eq!(take(&mut others, it, NOW), Taken::New);
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
            let Some(Said::Digest(digest)) = read(&bytes) else { panic!("no digest") };
            prop_assert_eq!((digest.epoch, digest.revision, digest.charter), number);
            let found = (digest.is_answer, digest.marks(), digest.held());
            prop_assert_eq!(found, (is_answer, marks, held));
        }

        #[test]
        fn any_bytes_are_something_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut rows = Rows::default();
            if let Some(Said::Row(signed)) = read(&bytes) {
                rows.take_row(signed, (GROUP, &identity().public()), NOW);
            }
            prop_assert_eq!(rows.iter().count(), 0);
        }
    }
}
