//! Power cuts at any disk operation: unsynced data is lost wholly or partly, and every acknowledged
//! change must still be in the log exactly once.
//!
//! `HARVEST_CRASH_ROUNDS` is the number of cuts (default 6); `HARVEST_CRASH_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;

use disk::Disk;
use disk::faulty::{Faulty, Target, World, restore, world};
use soif::Record;
use tempfile::TempDir;

use crate::change::{Batch, Change, Epoch, GATHERER_ID, Note, Oid, Stamp};
use crate::collection::Collection;
use crate::error::Error;
use crate::holders::{Cursor, Pulled};
use crate::options::Options;
use crate::recover::Mode;

/// The points of the cuts: the phase, a word in the operation's name, and the highest number of
/// operations before the cut.
const CUT_POINTS: [(&str, &str, usize); 9] = [
    ("append", "", 120),
    ("append", "sync segment", 40),
    ("append", "MANIFEST", 12),
    ("compaction", "", 60),
    ("tail", "", 60),
    ("snapshot", "", 60),
    ("append", "run-", 60),
    ("", "db", 20),
    ("open", "", 8),
];
const STEPS: u64 = 120;
const OBJECTS: usize = 30;

fn options() -> Options {
    Options {
        segment_bytes_max: 12 << 10,
        member_bytes_max: 2 << 10,
        keys_table_bytes_max: 16 << 10,
        ..Options::default()
    }
}

/// The acknowledged state.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// The step that made each object.
    objects: BTreeMap<String, u64>,
    notes: BTreeMap<Vec<u8>, Vec<u8>>,
    cursor: u64,
}

/// The state of one run.
struct Run {
    random: u64,
    model: Model,
    /// The last step begun; its number is not used again, whatever the outcome.
    step: u64,
}

impl Run {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 11).unwrap() % below.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.random(251).to_le_bytes()[0]
    }

    fn update(&mut self, url: &str) -> Change {
        let mut record = Record::new("FILE", url);
        record.push(GATHERER_ID, "g");
        record.push("Step", self.step.to_string());
        let length = self.random(900);
        record.push("Body", (0..length).map(|_| self.byte()).collect::<Vec<u8>>());
        Change::Update(record)
    }

    /// Commits, as a gatherer does; returns the model after the commit, and the outcome.
    fn commit(&mut self, collection: &Collection) -> (Model, Result<(), Error>) {
        self.step += 1;
        let mut model = self.model.clone();
        let mut batch = Batch::default();
        let numbers: BTreeSet<usize> =
            (0..1 + self.random(12)).map(|_| self.random(OBJECTS)).collect();
        for n in numbers {
            let url = format!("http://object/{n}");
            if self.random(5) == 0 {
                batch.changes.push(Change::Delete(Oid::new("g", &url)));
                model.objects.remove(&url);
            } else {
                batch.changes.push(self.update(&url));
                model.objects.insert(url, self.step);
            }
        }
        let key = vec![b'n', self.byte() % 5];
        let value = (self.random(4) != 0).then(|| self.step.to_string().into_bytes());
        match &value {
            Some(value) => model.notes.insert(key.clone(), value.clone()),
            None => model.notes.remove(&key),
        };
        batch.notes.push(Note { key, value });
        (model, collection.commit(batch, Stamp(self.step)).map(drop))
    }

    /// Applies a pull, as a broker does.
    fn apply(&mut self, collection: &Collection) -> (Model, Result<(), Error>) {
        self.step += 1;
        let mut model = self.model.clone();
        let url = format!("http://pulled/{}", self.random(OBJECTS));
        let changes = vec![(self.step, self.update(&url))];
        model.objects.insert(url, self.step);
        model.cursor = self.step;
        let (epoch, source) = (Epoch(1), "s".to_owned());
        let cursor = Cursor { epoch, serial: self.step, snapshot: None, part: None };
        let pulled = Pulled { source, id: None, epoch, changes, cursor, end_of_snapshot: None };
        (model, collection.apply(pulled, Stamp(self.step)).map(drop))
    }

    /// Performs one action; returns the collection's model after a complete action.
    fn act(&mut self, faulty: &Faulty, collection: &Collection) -> (Model, Result<(), Error>) {
        let same = self.model.clone();
        // At so early a time no delete is older than the horizon, so every delete stays.
        let now = Stamp(1);
        match self.random(20) {
            0 => {
                faulty.enter("compaction");
                (same, collection.compact(now).map(drop))
            }
            1 => {
                faulty.enter("tail");
                (same, collection.compact_tail(now).map(drop))
            }
            2 => {
                faulty.enter("snapshot");
                let pinned = collection.inner.log.view();
                let outcome = collection.compact(now).map(drop);
                drop(pinned);
                (same, outcome)
            }
            3..8 => {
                faulty.enter("append");
                self.apply(collection)
            }
            _ => {
                faulty.enter("append");
                self.commit(collection)
            }
        }
    }

    /// Works until the power is cut; returns the model with the interrupted action.
    fn work(&mut self, faulty: &Faulty, collection: &Collection) -> Model {
        for _ in 0..STEPS {
            let (model, outcome) = self.act(faulty, collection);
            match outcome {
                Ok(()) => self.model = model,
                Err(error) => {
                    assert!(faulty.is_cut(), "{error}");
                    return model;
                }
            }
            if faulty.is_cut() {
                break;
            }
        }
        faulty.cut();
        self.model.clone()
    }
}

/// Reads the collection's model; no update may be in the log twice.
fn read_model(collection: &Collection) -> Model {
    let mut model = Model::default();
    let (mut seen, mut serial) = (BTreeSet::new(), 0);
    for scanned in collection.scan(0).unwrap().map(Result::unwrap) {
        assert!(serial < scanned.serial);
        serial = scanned.serial;
        match scanned.change {
            Change::Update(record) => {
                let step = record.number("Step").unwrap();
                assert!(seen.insert((record.url.clone(), step)), "{} came twice", record.url);
                let stored = collection.get(&Oid::of(&record).unwrap()).unwrap();
                if stored.is_some_and(|it| it.serial == scanned.serial) {
                    model.objects.insert(record.url.clone(), step);
                }
            }
            Change::Delete(_)
            | Change::Withdraw(..)
            | Change::Suppress(..)
            | Change::Refresh(..)
            | Change::Confirm { .. } => {}
        }
    }
    assert_eq!(model.objects.len() as u64, collection.len());
    model.notes = collection.notes(b"n").map(Result::unwrap).collect();
    model.cursor = collection.cursor("s").unwrap().map_or(0, |it| it.serial);
    model
}

fn open(disk: &Disk, dir: &Path) -> Result<Collection, Error> {
    let (collection, recovery) = Collection::open_on(disk, dir, options(), Stamp(1), Mode::Write)?;
    assert!(!recovery.lost, "{recovery:?}");
    Ok(collection)
}

fn restored(world: &World) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    restore(world, dir.path()).unwrap();
    dir
}

/// Opens the state after a cut, with another cut after `acts` operations; returns its state.
fn cut_while_opening(left: &World, seed: u64, acts: u64) -> (String, World) {
    let dir = restored(left);
    let faulty = Faulty::new(dir.path(), seed);
    faulty.enter("open");
    faulty.cut_at(Target { phase: "open", word: "", acts });
    drop(open(&Disk::Faulty(faulty.clone()), dir.path()));
    faulty.cut()
}

#[test]
fn a_power_cut_at_any_act_loses_nothing_acknowledged() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let rounds = number("HARVEST_CRASH_ROUNDS").unwrap_or(6);
    let seed = number("HARVEST_CRASH_SEED").unwrap_or_else(|| getrandom::u64().unwrap()).max(1);
    let mut run = Run { random: seed, model: Model::default(), step: 0 };
    let mut left = World::new();
    let mut before = World::new();
    for round in 0..rounds {
        let dir = restored(&left);
        let faulty = Faulty::new(dir.path(), run.random(usize::MAX) as u64);
        let (phase, word, most) = CUT_POINTS[run.random(CUT_POINTS.len())];
        let acts = 1 + run.random(most) as u64;
        let is_open = phase == "open";
        let target = if is_open { ("append", "sync segment") } else { (phase, word) };
        faulty.cut_at(Target { phase: target.0, word: target.1, acts });
        faulty.enter("start");
        let maybe = match open(&Disk::Faulty(faulty.clone()), dir.path()) {
            Ok(collection) => run.work(&faulty, &collection),
            Err(error) => {
                assert!(faulty.is_cut(), "{error}");
                run.model.clone()
            }
        };
        let mut point;
        (point, left) = faulty.cut();
        if is_open {
            let (seed, acts) = (run.random(usize::MAX) as u64, 1 + run.random(most) as u64);
            let (then, again) = cut_while_opening(&left, seed, acts);
            (point, left) = (format!("{point}, then {then}"), again);
        }
        // The key index may also be gone (at every fifth cut it is), or be in an old state.
        let keys = if round % 5 == 4 { 1 } else { run.random(6) };
        if keys < 2 {
            left.retain(|path, _| !path.starts_with("keys"));
        }
        if keys == 0 {
            left.extend(before.clone().into_iter().filter(|(path, _)| path.starts_with("keys")));
        }
        println!("seed {seed}, round {round}: power cut at {point} (keys {keys})");
        let dir = restored(&left);
        let collection = open(&Disk::System, dir.path()).unwrap();
        let there = read_model(&collection);
        assert!(there == run.model || there == maybe, "{there:?}\n{:?}\n{maybe:?}", run.model);
        assert_eq!(collection.verify().unwrap().problems, []);
        run.model = there;
        drop(collection);
        left = world(dir.path());
        if round % 3 == 0 {
            before = left.clone();
        }
    }
}
