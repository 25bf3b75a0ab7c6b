//! A model test: a collection gives the same answers as a map after random commits, reopening,
//! compaction and sweeps. Its log and key index agree throughout.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use collection::{
    Author, Batch, Change, Collection, Note, Oid, Options, Scanned, Stamp, Subject, Swept,
};
use net::identity::Identity;
use proptest::prelude::*;
use soif::Record;

const TTL: u64 = 1000;

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, Act)>, Vec<(u8, Option<u8>)>),
    Reopen,
    Compact,
    CompactTail,
    Sweep,
    Suppress(u8),
    Lift(u8),
    Purge,
    Wait(u64),
}

#[derive(Clone, Debug)]
enum Act {
    Update(u16),
    Refresh,
    Delete,
    Confirm,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        4 => (0..2000_u16).prop_map(Act::Update),
        1 => Just(Act::Refresh),
        2 => Just(Act::Delete),
        1 => Just(Act::Confirm),
    ];
    let changes = prop::collection::vec((0..20_u8, act), 0..30);
    let notes = prop::collection::vec((0..6_u8, prop::option::of(any::<u8>())), 0..4);
    let step = prop_oneof![
        6 => (changes, notes).prop_map(|(changes, notes)| Step::Commit(changes, notes)),
        1 => Just(Step::Reopen),
        1 => Just(Step::Compact),
        1 => Just(Step::CompactTail),
        1 => Just(Step::Sweep),
        1 => (0..20_u8).prop_map(Step::Suppress),
        1 => (0..20_u8).prop_map(Step::Lift),
        1 => Just(Step::Purge),
        1 => (0..800_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..25)
}

#[derive(Clone, Debug, PartialEq)]
struct Object {
    size: u16,
    serial: u64,
    stamp: u64,
    seen: u64,
}

#[derive(Default)]
struct Model {
    objects: BTreeMap<u8, Object>,
    suppressed: BTreeSet<u8>,
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    confirmed: [u64; 2],
    serial: u64,
    stamp: u64,
    now: u64,
}

fn options() -> Options {
    Options {
        segment_bytes_max: 6 << 10,
        member_bytes_max: 2 << 10,
        horizon: Duration::from_millis(3 * TTL),
        ttl_default: Duration::from_millis(TTL),
        ..Options::default()
    }
}

fn url(n: u8) -> String {
    format!("http://host/{n}")
}

fn root(n: u8) -> String {
    format!("http://root/{}", n % 2)
}

fn change(n: u8, act: &Act, now: u64) -> Change {
    match act {
        Act::Update(size) => {
            let mut record = Record::new("FILE", url(n));
            record.push("Gatherer-Id", "g");
            record.push("Gatherer-Root", root(n));
            record.push("Body", vec![n; usize::from(*size)]);
            Change::Update(record)
        }
        Act::Refresh => Change::Refresh(Oid::new("g", &url(n)), None),
        Act::Delete => Change::Delete(Oid::new("g", &url(n))),
        Act::Confirm => Change::Confirm { gatherer: "g".into(), root: root(n), at: Stamp(now) },
    }
}

impl Model {
    fn commit(&mut self, changes: &[(u8, Act)], notes: &[(u8, Option<u8>)]) {
        let refused =
            |it: &&(u8, Act)| matches!(it.1, Act::Update(_)) && self.suppressed.contains(&it.0);
        let kept: Vec<_> = changes.iter().filter(|it| !refused(it)).cloned().collect();
        for (n, act) in &kept {
            self.serial += 1;
            let (serial, now) = (self.serial, self.now.max(self.stamp));
            self.stamp = now;
            match act {
                Act::Update(size) => {
                    let object = Object { size: *size, serial, stamp: now, seen: now };
                    self.objects.insert(*n, object);
                }
                Act::Refresh => {
                    if let Some(object) = self.objects.get_mut(n) {
                        object.seen = now;
                    }
                }
                Act::Delete => drop(self.objects.remove(n)),
                Act::Confirm => self.confirmed[usize::from(n % 2)] = self.now,
            }
        }
        for (key, value) in notes {
            match value {
                Some(value) => self.notes.insert(vec![*key], vec![*value; 3]),
                None => self.notes.remove(&vec![*key]),
            };
        }
    }

    /// The notice is in the tombstone of the object, if it is live, and in one without an object.
    fn suppress(&mut self, n: u8) {
        self.serial += 1 + u64::from(self.objects.remove(&n).is_some());
        self.suppressed.insert(n);
        self.stamp = self.stamp.max(self.now);
    }

    /// Returns whether there was anything to lift.
    fn lift(&mut self, n: u8) -> bool {
        let lifted = self.suppressed.remove(&n);
        self.serial += u64::from(lifted);
        if lifted {
            self.stamp = self.stamp.max(self.now);
        }
        lifted
    }

    fn sweep(&mut self) -> u64 {
        let (now, confirmed) = (self.now, self.confirmed);
        let before = self.objects.len();
        let seen = |n: &u8, it: &Object| it.seen.max(confirmed[usize::from(n % 2)]);
        self.objects.retain(|n, it| now < seen(n, it) + TTL);
        let gone = (before - self.objects.len()) as u64;
        self.serial += gone;
        if gone != 0 {
            self.stamp = self.stamp.max(now);
        }
        gone
    }
}

/// Returns the live objects after a replay of a scan.
fn replayed(collection: &Collection) -> BTreeMap<String, u64> {
    let mut live = BTreeMap::new();
    let mut last = (0, Stamp(0));
    for Scanned { serial, stamp, change } in collection.scan(0).unwrap().map(Result::unwrap) {
        assert!(last.0 < serial && last.1 <= stamp);
        last = (serial, stamp);
        match change {
            Change::Update(record) => drop(live.insert(record.url, serial)),
            Change::Delete(oid) | Change::Withdraw(oid, _) | Change::Suppress(oid, _) => {
                live.remove(&oid.url);
            }
            Change::Refresh(..) | Change::Confirm { .. } => {}
        }
    }
    live
}

fn compare(collection: &Collection, model: &Model) {
    assert_eq!(collection.version().serial, model.serial);
    assert_eq!(collection.len(), model.objects.len() as u64);
    for n in 0..20 {
        let stored = collection.get(&Oid::new("g", &url(n))).unwrap();
        let found = stored.map(|it| (it.record.get("Body").unwrap().len(), it.serial, it.stamp.0));
        let object = model.objects.get(&n);
        assert_eq!(found, object.map(|it| (usize::from(it.size), it.serial, it.stamp)), "{n}");
    }
    let notes: BTreeMap<_, _> = collection.notes(b"").map(Result::unwrap).collect();
    assert_eq!(notes, model.notes);
    for n in &model.suppressed {
        assert!(collection.is_suppressed(&Oid::new("g", &url(*n))));
    }
    assert_eq!(collection.takedowns().active, model.suppressed.len() as u64);
    let live: BTreeMap<_, _> = model.objects.iter().map(|(n, it)| (url(*n), it.serial)).collect();
    assert_eq!(replayed(collection), live);
    let report = collection.verify().unwrap();
    assert_eq!(report.problems, []);
}

fn subject(n: u8) -> Subject {
    Subject::object(&Oid::new("g", &url(n)))
}

fn take_down(collection: &Collection, model: &mut Model, step: &Step) {
    let author = Author { id: "g".to_owned(), identity: Identity::of(&[1; 32]).unwrap() };
    let now = Stamp(model.now);
    match step {
        Step::Suppress(n) => {
            let done = collection.suppress(&author, subject(*n), "because", now).unwrap();
            assert_eq!(done.objects, u64::from(model.objects.contains_key(n)));
            model.suppress(*n);
        }
        Step::Lift(n) => {
            let lifted = collection.lift(&author, subject(*n), now);
            assert_eq!(lifted.is_ok(), model.lift(*n));
        }
        _ => {
            let purged = collection.purge(None, now).unwrap();
            assert_eq!((purged.left, purged.still_read), (0, Vec::new()));
            assert_eq!(purged.subjects.len(), model.suppressed.len());
        }
    }
}

fn check(steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let mut model = Model { now: 10_000, ..Model::default() };
    let open = |now| Collection::open(dir.path(), options(), Stamp(now)).unwrap();
    let (mut collection, _) = open(model.now);
    for step in steps {
        match step {
            Step::Commit(changes, notes) => {
                let batch = Batch {
                    changes: changes.iter().map(|(n, it)| change(*n, it, model.now)).collect(),
                    notes: notes
                        .iter()
                        .map(|(key, value)| Note {
                            key: vec![*key],
                            value: value.map(|it| vec![it; 3]),
                        })
                        .collect(),
                };
                collection.commit(batch, Stamp(model.now)).unwrap();
                model.commit(changes, notes);
            }
            Step::Reopen => {
                drop(collection);
                let (again, recovery) = open(model.now);
                assert_eq!(
                    (recovery.cut, recovery.keys_rebuilt, recovery.lost),
                    (vec![], None, false)
                );
                collection = again;
            }
            Step::Compact => {
                collection.compact(Stamp(model.now)).unwrap();
            }
            Step::CompactTail => {
                collection.compact_tail(Stamp(model.now)).unwrap();
            }
            Step::Sweep => {
                let expired = model.sweep();
                assert_eq!(
                    collection.sweep(Stamp(model.now), 1.0).unwrap(),
                    Swept::Done { expired }
                );
            }
            Step::Suppress(_) | Step::Lift(_) | Step::Purge => {
                take_down(&collection, &mut model, step);
            }
            Step::Wait(ms) => model.now += ms,
        }
        compare(&collection, &model);
    }
    drop(collection);
    // The keys can be rebuilt from the compacted log.
    std::fs::remove_dir_all(dir.path().join("keys")).unwrap();
    compare(&open(model.now).0, &model);
}

/// A case opens and verifies a collection dozens of times, so there are a tenth of the usual cases.
fn config() -> ProptestConfig {
    let cases = (ProptestConfig::default().cases / 10).max(1);
    ProptestConfig {
        cases,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_collection_behaves_as_a_map(steps in steps()) {
        check(&steps);
    }
}

/// A delete would be lost if its tombstone were dropped while an older update is still in the log.
#[test]
fn a_delete_outlives_the_update_it_deletes() {
    let update =
        Step::Commit(vec![(1, Act::Update(1500)), (2, Act::Update(1500))], vec![(1, Some(1))]);
    let delete = Step::Commit(vec![(1, Act::Delete)], vec![(1, None)]);
    let wait = Step::Wait(10 * TTL);
    check(&[update.clone(), Step::Compact, delete, wait, Step::CompactTail, Step::Compact, update]);
}
