use net::identity::Identity;
use proptest::prelude::*;

use super::super::rows::{BURST_ROWS, PAUSE_ROWS, Said, read};
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

/// A member of a group of so many trees.
fn among(trees: usize) -> Holdings {
    let listed = (0..trees).map(|it| Tag::of(&tree(it))).collect();
    Holdings { listed, ..Holdings::default() }
}

impl Holdings {
    fn hold(&mut self, all: &[(usize, u64)], now: Duration) {
        let all: Vec<_> = all.iter().map(|it| (tree(it.0), version(it.1))).collect();
        self.set_own(all.iter().map(|it| (&it.0, it.1)), now);
    }

    /// What it says now, if it says anything.
    fn say(&mut self, sequence: u64, now: Duration) -> Option<Signed> {
        let signed = Signed::sign(&identity(), GROUP, sequence, self.poll(now)?);
        self.told = Some((signed.clone(), now));
        Some(signed)
    }

    fn hear(&mut self, bytes: &[u8], now: Duration) -> Taken {
        let Some(Said::Held(signed)) = read(bytes) else { panic!("{bytes:?}") };
        self.take(signed, (GROUP, &identity().public()), now)
    }
}

fn said(sequence: u64, all: &[(usize, u64)]) -> Signed {
    let mut holdings = among(9);
    holdings.hold(all, NOW);
    holdings.say(sequence, NOW).unwrap()
}

#[test]
fn what_changes_is_said_and_nothing_else() {
    let mut here = among(2);
    let first = here.say(1, NOW).unwrap();
    assert_eq!((first.entries.len(), first.left_out), (0, 0));
    // The third is none of the group's.
    here.hold(&[(0, 1), (1, 4), (2, 9)], NOW + PAUSE / 2);
    assert_eq!(here.say(2, NOW + PAUSE / 2), None);
    let second = here.say(2, NOW + PAUSE).unwrap();
    let numbers = [0, 1, 2].map(|it| second.number(Tag::of(&tree(it))));
    assert_eq!(numbers, [Some(version(1)), Some(version(4)), None]);
    for minutes in 1..100 {
        let now = NOW + Duration::from_mins(minutes);
        here.hold(&[(0, 1), (1, 4), (2, 10 + minutes)], now);
        assert_eq!(here.say(3, now), None);
    }
    // What is lost is not held any more.
    let later = NOW + Duration::from_mins(100);
    here.hold(&[(1, 4)], later);
    assert_eq!(here.say(3, later).unwrap().number(Tag::of(&tree(0))), None);
    // In a large group it waits longer.
    here.members = 300;
    here.hold(&[(1, 5)], later + PAUSE * 2);
    assert_eq!(here.say(4, later + PAUSE * 2), None);
    let later = later + PAUSE_EACH * 300 + Duration::from_secs(1);
    assert!(here.say(4, later).is_some());
    // A tree that no group lists any more is not spoken of, whatever is on disk.
    here.listed.clear();
    assert_eq!(here.say(5, later + Duration::from_mins(2)).unwrap().entries, []);
}

#[test]
fn who_has_much_says_no_more_than_so_many_bytes() {
    for trees in [1, 9, ENTRIES_MAX, 1_000] {
        let mut here = among(trees);
        let (mut bytes, mut count) = (0, 0);
        for second in 0..3_600_u64 {
            let now = NOW + Duration::from_secs(second);
            let all: Vec<(usize, u64)> = (0..trees).map(|it| (it, second)).collect();
            here.hold(&all, now);
            if let Some(signed) = here.say(second + 1, now) {
                assert!(signed.bytes.len() <= HELD_BYTES_MAX);
                assert_eq!(usize::from(signed.left_out), trees.saturating_sub(ENTRIES_MAX));
                (bytes, count) = (bytes + signed.bytes.len(), count + 1);
            }
        }
        assert!(2 <= count && bytes <= 30 * 3_600, "{trees} trees: {count}, {bytes} bytes");
    }
}

#[test]
fn what_has_changed_last_is_named() {
    let mut here = among(ENTRIES_MAX + 2);
    let all = |changed: &[usize]| {
        let number = |it: usize| u64::from(changed.contains(&it));
        (0..ENTRIES_MAX + 2).map(|it| (it, number(it))).collect::<Vec<_>>()
    };
    here.hold(&all(&[]), NOW);
    let unsaid = |here: &Holdings| {
        let (entries, left_out) = here.entries();
        assert_eq!(usize::from(left_out), 2);
        let is_said = |it: usize| entries.iter().any(|said| said.tag == Tag::of(&tree(it)));
        (0..ENTRIES_MAX + 2).filter(|it| !is_said(*it)).collect::<Vec<_>>()
    };
    let before = unsaid(&here);
    assert_eq!(before.len(), 2);
    here.hold(&all(&before), NOW + PAUSE);
    assert!(unsaid(&here).iter().all(|it| !before.contains(it)));
}

#[test]
fn nobody_makes_up_what_others_hold() {
    let mut here = Holdings::default();
    let first = said(5, &[(1, 1), (2, 1)]);
    assert_eq!(here.hear(&first.bytes, NOW), Taken::New);
    let next = said(6, &[(1, 2), (2, 1)]);
    for at in 1..next.bytes.len() {
        let mut forged = next.bytes.to_vec();
        forged[at] ^= 1;
        // It may be older, of somebody else, or nothing at all; but it is never taken.
        let taken = match read(&forged) {
            Some(Said::Held(signed)) => here.take(signed, (GROUP, &identity().public()), NOW),
            _ => Taken::Forged,
        };
        assert!(matches!(taken, Taken::Forged | Taken::Old), "{at}: {taken:?}");
    }
    let elsewhere = Signed::sign(&identity(), GroupId(6), 7, (Vec::new(), 0));
    assert_eq!(here.hear(&elsewhere.bytes, NOW), Taken::Forged);
    assert_eq!(here.heard[&member()].0, first);
}

#[test]
fn what_is_old_is_not_taken_again() {
    let mut here = Holdings::default();
    let all: Vec<Signed> = (1..=3).map(|it| said(it, &[(1, it)])).collect();
    for (at, expected) in [(1, Taken::New), (0, Taken::Old), (1, Taken::Old), (2, Taken::New)] {
        assert_eq!(here.hear(&all[at].bytes, NOW), expected);
    }
    // A later start has a greater sequence, whatever it holds then.
    let anew = said(1 << 32, &[]);
    assert_eq!(here.hear(&anew.bytes, NOW), Taken::New);
    assert_eq!(here.hear(&all[2].bytes, NOW), Taken::Old);
    assert_eq!(here.heard[&member()].0, anew);
}

#[test]
fn who_says_too_much_is_not_heard() {
    let mut here = Holdings::default();
    for sequence in 1..=u64::from(BURST_ROWS) {
        assert_eq!(here.hear(&said(sequence, &[]).bytes, NOW), Taken::New);
    }
    assert_eq!(here.hear(&said(100, &[]).bytes, NOW), Taken::TooOften);
    assert_eq!(here.hear(&said(100, &[]).bytes, NOW + PAUSE_ROWS), Taken::New);
}

#[test]
fn who_has_missed_some_is_told() {
    let mut here = among(9);
    here.hold(&[(1, 1)], NOW);
    let told = here.say(4, NOW).unwrap();
    for (known, expected) in [(0, 1), (3, 1), (4, 0), (5, 0)] {
        let known = BTreeMap::from([(member(), known)]);
        assert_eq!(here.after(&known).count(), expected, "{known:?}");
        assert_eq!(here.lacks(&known, |_| true), 4 < known[&member()]);
        assert!(!here.lacks(&known, |_| false));
    }
    let mut other = Holdings::default();
    for bytes in here.after(&BTreeMap::new()) {
        assert_eq!(other.hear(&bytes, NOW), Taken::New);
    }
    assert_eq!(other.after(&BTreeMap::new()).collect::<Vec<_>>(), [told.bytes]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_held_is_read_as_it_was_written(
        sequence: u64,
        all in prop::collection::btree_map(any::<u64>(), any::<(u64, u64)>(), 0..ENTRIES_MAX),
    ) {
        let number = |it: (u64, u64)| Number { epoch: it.0, sequence: it.1 };
        let entry = |it: (u64, (u64, u64))| Entry { tag: Tag(it.0), number: number(it.1) };
        let entries: Vec<Entry> = all.into_iter().map(entry).collect();
        let signed = Signed::sign(&identity(), GROUP, sequence, (entries, 0));
        let Some(Said::Held(found)) = read(&signed.bytes) else { panic!("it is not read") };
        prop_assert!(found.is_signed(GROUP, &identity().public()));
        prop_assert_eq!(found, signed);
    }

    #[test]
    fn any_bytes_are_held_by_nobody(mut bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        bytes[0] = super::super::rows::HELD;
        let mut here = Holdings::default();
        if let Some(Said::Held(signed)) = read(&bytes) {
            prop_assert_eq!(here.take(signed, (GROUP, &identity().public()), NOW), Taken::Forged);
        }
    }
}
