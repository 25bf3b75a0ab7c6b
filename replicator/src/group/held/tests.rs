use net::identity::Identity;
use proptest::prelude::*;

use super::super::rows::{BURST_ROWS, PAUSE_ROWS, RowMessage, read};
use super::*;
use crate::version::Name;

const GROUP: GroupId = GroupId(5);
const NOW: Duration = Duration::from_secs(100);

fn identity() -> Identity {
    Identity::of(&[1; 32]).unwrap()
}

fn member() -> MemberId {
    MemberId::of(&identity().public())
}

fn tree(number: usize) -> Namespace {
    Namespace { origin: MemberId(7), name: Name::new(&format!("tree-{number}")).unwrap() }
}

fn version(sequence: u64) -> Number {
    Number { epoch: 1_700_000_000, sequence }
}

/// Returns empty holdings in a group of this many trees.
fn among(trees: usize) -> Holdings {
    let listed = (0..trees).map(|it| Tag::of(&tree(it))).collect();
    Holdings { listed, ..Holdings::default() }
}

impl Holdings {
    fn hold(&mut self, all: &[(usize, u64)], now: Duration) {
        let all: Vec<_> = all.iter().map(|it| (tree(it.0), version(it.1))).collect();
        self.set_own(all.iter().map(|it| (&it.0, it.1)), now);
    }

    /// Returns the message that is sent now, if any.
    fn send(&mut self, sequence: u64, now: Duration) -> Option<Signed> {
        let signed = Signed::sign(&identity(), GROUP, sequence, self.poll(now)?);
        self.sent = Some((signed.clone(), now));
        Some(signed)
    }

    fn receive(&mut self, bytes: &[u8], now: Duration) -> Intake {
        let Some(RowMessage::Held(signed)) = read(bytes) else { panic!("{bytes:?}") };
        self.take(signed, (GROUP, &identity().public()), now)
    }
}

fn message(sequence: u64, all: &[(usize, u64)]) -> Signed {
    let mut holdings = among(9);
    holdings.hold(all, NOW);
    holdings.send(sequence, NOW).unwrap()
}

#[test]
fn holdings_are_sent_only_when_they_change() {
    let mut here = among(2);
    let first = here.send(1, NOW).unwrap();
    assert_eq!((first.entries.len(), first.left_out), (0, 0));
    // The third tree is not of the group.
    here.hold(&[(0, 1), (1, 4), (2, 9)], NOW + PAUSE / 2);
    assert_eq!(here.send(2, NOW + PAUSE / 2), None);
    let second = here.send(2, NOW + PAUSE).unwrap();
    let numbers = [0, 1, 2].map(|it| second.number(Tag::of(&tree(it))));
    assert_eq!(numbers, [Some(version(1)), Some(version(4)), None]);
    for minutes in 1..100 {
        let now = NOW + Duration::from_mins(minutes);
        here.hold(&[(0, 1), (1, 4), (2, 10 + minutes)], now);
        assert_eq!(here.send(3, now), None);
    }
    // A tree that this member has lost is no longer named.
    let later = NOW + Duration::from_mins(100);
    here.hold(&[(1, 4)], later);
    assert_eq!(here.send(3, later).unwrap().number(Tag::of(&tree(0))), None);
    // In a large group the pause is longer.
    here.members = 300;
    here.hold(&[(1, 5)], later + PAUSE * 2);
    assert_eq!(here.send(4, later + PAUSE * 2), None);
    let later = later + PAUSE_EACH * 300 + Duration::from_secs(1);
    assert!(here.send(4, later).is_some());
    // A tree that the group no longer lists is not sent, even if it is on disk.
    here.listed.clear();
    assert_eq!(here.send(5, later + Duration::from_mins(2)).unwrap().entries, []);
}

#[test]
fn a_member_with_many_trees_stays_within_the_byte_rate() {
    for trees in [1, 9, ENTRIES_MAX, 1_000] {
        let mut here = among(trees);
        let (mut bytes, mut count) = (0, 0);
        for second in 0..3_600_u64 {
            let now = NOW + Duration::from_secs(second);
            let all: Vec<(usize, u64)> = (0..trees).map(|it| (it, second)).collect();
            here.hold(&all, now);
            if let Some(signed) = here.send(second + 1, now) {
                assert!(signed.bytes.len() <= HELD_BYTES_MAX);
                assert_eq!(usize::from(signed.left_out), trees.saturating_sub(ENTRIES_MAX));
                (bytes, count) = (bytes + signed.bytes.len(), count + 1);
            }
        }
        assert!(2 <= count && bytes <= 30 * 3_600, "{trees} trees: {count}, {bytes} bytes");
    }
}

#[test]
fn trees_that_changed_last_are_named() {
    let mut here = among(ENTRIES_MAX + 2);
    let all = |changed: &[usize]| {
        let number = |it: usize| u64::from(changed.contains(&it));
        (0..ENTRIES_MAX + 2).map(|it| (it, number(it))).collect::<Vec<_>>()
    };
    here.hold(&all(&[]), NOW);
    let unsaid = |here: &Holdings| {
        let (entries, left_out) = here.entries();
        assert_eq!(usize::from(left_out), 2);
        let is_named = |it: usize| entries.iter().any(|entry| entry.0 == Tag::of(&tree(it)));
        (0..ENTRIES_MAX + 2).filter(|it| !is_named(*it)).collect::<Vec<_>>()
    };
    let before = unsaid(&here);
    assert_eq!(before.len(), 2);
    here.hold(&all(&before), NOW + PAUSE);
    assert!(unsaid(&here).iter().all(|it| !before.contains(it)));
}

#[test]
fn forged_holdings_are_rejected() {
    let mut here = Holdings::default();
    let first = message(5, &[(1, 1), (2, 1)]);
    assert_eq!(here.receive(&first.bytes, NOW), Intake::New);
    let next = message(6, &[(1, 2), (2, 1)]);
    for at in 1..next.bytes.len() {
        let mut forged = next.bytes.to_vec();
        forged[at] ^= 1;
        // The forged message may be older, of another member, or malformed; but it is never taken.
        let taken = match read(&forged) {
            Some(RowMessage::Held(signed)) => here.take(signed, (GROUP, &identity().public()), NOW),
            _ => Intake::Forged,
        };
        assert!(matches!(taken, Intake::Forged | Intake::Old), "{at}: {taken:?}");
    }
    let elsewhere = Signed::sign(&identity(), GroupId(6), 7, (Vec::new(), 0));
    assert_eq!(here.receive(&elsewhere.bytes, NOW), Intake::Forged);
    assert_eq!(here.received[&member()].0, first);
}

#[test]
fn old_holdings_are_not_taken_again() {
    let mut here = Holdings::default();
    let all: Vec<Signed> = (1..=3).map(|it| message(it, &[(1, it)])).collect();
    for (at, expected) in [(1, Intake::New), (0, Intake::Old), (1, Intake::Old), (2, Intake::New)] {
        assert_eq!(here.receive(&all[at].bytes, NOW), expected);
    }
    // A later start has a greater sequence, with any holdings.
    let anew = message(1 << 32, &[]);
    assert_eq!(here.receive(&anew.bytes, NOW), Intake::New);
    assert_eq!(here.receive(&all[2].bytes, NOW), Intake::Old);
    assert_eq!(here.received[&member()].0, anew);
}

#[test]
fn a_member_that_sends_too_often_is_ignored() {
    let mut here = Holdings::default();
    for sequence in 1..=u64::from(BURST_ROWS) {
        assert_eq!(here.receive(&message(sequence, &[]).bytes, NOW), Intake::New);
    }
    assert_eq!(here.receive(&message(100, &[]).bytes, NOW), Intake::TooOften);
    assert_eq!(here.receive(&message(100, &[]).bytes, NOW + PAUSE_ROWS), Intake::New);
}

#[test]
fn a_member_that_missed_holdings_receives_them() {
    let mut here = among(9);
    here.hold(&[(1, 1)], NOW);
    let sent = here.send(4, NOW).unwrap();
    for (known, expected) in [(0, 1), (3, 1), (4, 0), (5, 0)] {
        let known = BTreeMap::from([(member(), known)]);
        assert_eq!(here.after(&known).count(), expected, "{known:?}");
        assert_eq!(here.lacks(&known, |_| true), 4 < known[&member()]);
        assert!(!here.lacks(&known, |_| false));
    }
    let mut other = Holdings::default();
    for bytes in here.after(&BTreeMap::new()) {
        assert_eq!(other.receive(&bytes, NOW), Intake::New);
    }
    assert_eq!(other.after(&BTreeMap::new()).collect::<Vec<_>>(), [sent.bytes]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn holdings_are_read_as_they_were_written(
        sequence: u64,
        all in prop::collection::btree_map(any::<u64>(), any::<(u64, u64)>(), 0..ENTRIES_MAX),
    ) {
        let number = |it: (u64, u64)| Number { epoch: it.0, sequence: it.1 };
        let entry = |it: (u64, (u64, u64))| (Tag(it.0), number(it.1));
        let entries: Vec<(Tag, Number)> = all.into_iter().map(entry).collect();
        let signed = Signed::sign(&identity(), GROUP, sequence, (entries, 0));
        let Some(RowMessage::Held(found)) = read(&signed.bytes) else { panic!("it is not read") };
        prop_assert!(found.is_signed(GROUP, &identity().public()));
        prop_assert_eq!(found, signed);
    }

    #[test]
    fn random_bytes_are_never_taken_as_holdings(mut bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        bytes[0] = super::super::rows::HELD;
        let mut here = Holdings::default();
        if let Some(RowMessage::Held(signed)) = read(&bytes) {
            prop_assert_eq!(here.take(signed, (GROUP, &identity().public()), NOW), Intake::Forged);
        }
    }
}
