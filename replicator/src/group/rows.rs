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

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use net::identity::{Identity, verify_raw};

use super::charter::MEMBERS_MAX;
use super::wire::Reader;
use crate::estimate::{Entry, Row};
use crate::id::{GroupId, MemberId};
use crate::version::Hash;

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

const ROW: u8 = 1;
const BEAT: u8 = 2;
const DIGEST: u8 = 3;
/// Kind, member, sequence, number, value.
const BEAT_BYTES: usize = 1 + 8 + 8 + 2 + 32;
/// What is signed begins with this, so that no signature serves for anything else.
const DOMAIN: &[u8] = b"harvest replicator row\0";
const DOMAIN_SEED: &[u8] = b"harvest replicator beats\0";

/// How far a member is: its row's sequence, and the last beat since.
pub(super) type Mark = (u64, u16);

/// A message about rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said<'a> {
    /// A row, still to be checked.
    Row(Signed),
    /// A beat, still to be checked.
    Beat(Beat),
    /// What the sender knows.
    Digest(Digest<'a>),
}

/// Reads a message; none if it is wrong.
pub(super) fn read(bytes: &[u8]) -> Option<Said<'_>> {
    match *bytes.first()? {
        ROW => Signed::from_bytes(bytes).map(Said::Row),
        BEAT => Beat::from_bytes(bytes).map(Said::Beat),
        DIGEST => Digest::from_bytes(bytes).map(Said::Digest),
        _ => None,
    }
}

/// A row, its chain's end, and the signature over both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) row: Row,
    anchor: [u8; 32],
    bytes: Arc<[u8]>,
}

impl Signed {
    fn signed(group: GroupId, unsigned: &[u8]) -> Vec<u8> {
        [DOMAIN, &group.0.to_be_bytes(), unsigned].concat()
    }

    /// Reads kind, chain's end, row, signature.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if ROW_BYTES_MAX < bytes.len() {
            return None;
        }
        let (unsigned, _) = bytes.split_last_chunk::<64>()?;
        let mut from = Reader(unsigned);
        from.u8()?;
        let anchor = from.array()?;
        let row = Row::from_bytes(from.0).ok()?;
        Some(Self { row, anchor, bytes: bytes.into() })
    }

    pub(super) fn is_signed(&self, group: GroupId, key: &[u8; 32]) -> bool {
        self.bytes.split_last_chunk().is_some_and(|(unsigned, signature)| {
            verify_raw(key, &Self::signed(group, unsigned), signature)
        })
    }
}

/// That a member is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) from: MemberId,
    /// Of the row whose chain it is of.
    pub(super) sequence: u64,
    /// Its place, from 1 on.
    pub(super) number: u16,
    value: [u8; 32],
}

impl Beat {
    fn to_bytes(self) -> Arc<[u8]> {
        let mut bytes = Vec::with_capacity(BEAT_BYTES);
        bytes.push(BEAT);
        bytes.extend(self.from.0.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.value);
        bytes.into()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        from.u8()?;
        let member = MemberId(from.u64()?);
        let (sequence, number, value) = (from.u64()?, from.u16()?, from.array()?);
        from.end()?;
        let is_one = (1..=BEATS_MAX).contains(&number);
        is_one.then_some(Self { from: member, sequence, number, value })
    }
}

/// What somebody knows: of which charter, and how far each member is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Digest<'a> {
    /// Whether it is the answer to another, to which there is none.
    pub(super) is_answer: bool,
    pub(super) epoch: u64,
    pub(super) revision: u64,
    pub(super) charter: Hash,
    /// Of each member that it has a row of 18 bytes.
    marks: &'a [u8],
}

const MARK_BYTES: usize = 8 + 8 + 2;

impl<'a> Digest<'a> {
    /// Writes kind, whether it is an answer, epoch, revision, charter's hash, and for each member id, sequence of its
    /// row and number of its last beat.
    pub(super) fn write(
        is_answer: bool,
        (epoch, revision, charter): (u64, u64, Hash),
        marks: impl Iterator<Item = (MemberId, Mark)>,
    ) -> Arc<[u8]> {
        let mut bytes = vec![DIGEST, u8::from(is_answer)];
        bytes.extend(epoch.to_be_bytes());
        bytes.extend(revision.to_be_bytes());
        bytes.extend(charter.0);
        for (member, (sequence, beat)) in marks {
            bytes.extend(member.0.to_be_bytes());
            bytes.extend(sequence.to_be_bytes());
            bytes.extend(beat.to_be_bytes());
        }
        bytes.into()
    }

    fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        from.u8()?;
        let is_answer = match from.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        };
        let (epoch, revision) = (from.u64()?, from.u64()?);
        let charter = Hash(from.array()?);
        let marks = from.0;
        let is_whole =
            marks.len().is_multiple_of(MARK_BYTES) && marks.len() <= MEMBERS_MAX * MARK_BYTES;
        is_whole.then_some(Self { is_answer, epoch, revision, charter, marks })
    }

    pub(super) fn marks(&self) -> BTreeMap<MemberId, Mark> {
        let read = |it: &[u8]| {
            let mut from = Reader(it);
            Some((MemberId(from.u64()?), (from.u64()?, from.u16()?)))
        };
        self.marks.chunks_exact(MARK_BYTES).filter_map(read).collect()
    }
}

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
    /// How many more rows of a member are taken, and since when that is counted.
    budgets: BTreeMap<MemberId, (u32, Duration)>,
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
        self.budgets.retain(|it, _| is_member(*it));
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
        if !self.has_budget(from, now) {
            return Taken::TooOften;
        }
        if !signed.is_signed(group, key) {
            return Taken::Forged;
        }
        self.spend(from, now);
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

    fn has_budget(&self, member: MemberId, now: Duration) -> bool {
        self.budgets.get(&member).is_none_or(|it| 0 < earned(*it, now).0)
    }

    fn spend(&mut self, member: MemberId, now: Duration) {
        let (left, since) = earned(*self.budgets.entry(member).or_insert((BURST_ROWS, now)), now);
        self.budgets.insert(member, (left.saturating_sub(1), since));
    }
}

/// What a budget is now.
fn earned((left, since): (u32, Duration), now: Duration) -> (u32, Duration) {
    let pauses = now.saturating_sub(since).as_secs() / PAUSE_ROWS.as_secs();
    let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
    match left.saturating_add(pauses) {
        left if BURST_ROWS <= left => (BURST_ROWS, now),
        left => (left, since + PAUSE_ROWS * pauses),
    }
}

/// The hash of the hash … of a value.
fn ahead(value: [u8; 32], times: u16) -> [u8; 32] {
    (0..times).fold(value, |value, _| Hash::of(&value).0)
}

/// One's own row, with the beats that come after it.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) row: Row,
    bytes: Arc<[u8]>,
    seed: [u8; 32],
    beats: u16,
}

impl Own {
    pub(super) fn sign(
        identity: &Identity,
        group: GroupId,
        sequence: u64,
        entries: Vec<Entry>,
    ) -> Self {
        let row = Row { from: MemberId::of(&identity.public()).0, sequence, entries };
        // Nobody else can make this signature, and there is no other use for it.
        let text =
            [DOMAIN_SEED, &group.0.to_be_bytes(), sequence.to_be_bytes().as_slice()].concat();
        let seed = Hash::of(&identity.sign_raw(&text)).0;
        let mut bytes = vec![ROW];
        bytes.extend(ahead(seed, BEATS_MAX));
        bytes.extend(row.to_bytes());
        let signature = identity.sign_raw(&Signed::signed(group, &bytes));
        bytes.extend(signature);
        Self { row, bytes: bytes.into(), seed, beats: 0 }
    }

    pub(super) fn mark(&self) -> Mark {
        (self.row.sequence, self.beats)
    }

    pub(super) fn bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The next beat; none if a row is due.
    pub(super) fn beat(&mut self) -> Option<Arc<[u8]>> {
        if self.beats == BEATS_MAX {
            return None;
        }
        self.beats += 1;
        Some(self.last())
    }

    fn last(&self) -> Arc<[u8]> {
        let (number, sequence) = (self.beats, self.row.sequence);
        let value = ahead(self.seed, BEATS_MAX - number);
        Beat { from: MemberId(self.row.from), sequence, number, value }.to_bytes()
    }

    /// What to send to somebody who is as far as `mark`.
    pub(super) fn after(&self, mark: Mark) -> impl Iterator<Item = Arc<[u8]>> {
        let row = (mark.0 < self.row.sequence).then(|| self.bytes());
        let beat = (self.beats != 0 && mark < self.mark()).then(|| self.last());
        row.into_iter().chain(beat)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::Estimate;

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
            marks in prop::collection::btree_map(any::<u64>(), any::<Mark>(), 0..20),
        ) {
            let marks: BTreeMap<MemberId, Mark> =
                marks.into_iter().map(|(id, mark)| (MemberId(id), mark)).collect();
            let number = (epoch, revision, Hash(charter));
            let bytes = Digest::write(is_answer, number, marks.iter().map(|it| (*it.0, *it.1)));
            let Some(Said::Digest(digest)) = read(&bytes) else { panic!("no digest") };
            prop_assert_eq!((digest.epoch, digest.revision, digest.charter), number);
            prop_assert_eq!((digest.is_answer, digest.marks()), (is_answer, marks));
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
