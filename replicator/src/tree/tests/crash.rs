//! Tests of power cuts and full disks at any operation of the disk.
//!
//! `HARVEST_CRASH_ROUNDS` sets the number of rounds of six cuts (default 6); `HARVEST_CRASH_SEED`
//! sets the seed of the first round.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;
use disk::faulty::{Fault, Faulty, Target, World, restore};

use super::super::error::Error;
use super::super::publish::{Draft, Publishing};
use super::super::store::{Options, Store};
use super::{Origin, TRUSTED_AT_ONCE, Tree, current, fetch, sample, write};
use crate::replica::Failure;
use crate::version::Version;

/// Versions that are published or fetched in a round.
const VERSIONS: u64 = 4;

/// Returns the seeds of the rounds.
fn rounds() -> std::ops::Range<u64> {
    let number = |name| env::var(name).ok().map(|it| it.parse::<u64>().expect(name));
    let first = number("HARVEST_CRASH_SEED").unwrap_or_else(|| fastrand::u32(..).into());
    first..first + number("HARVEST_CRASH_ROUNDS").unwrap_or(6)
}

/// Makes a disk whose power is cut after this number of operations.
fn cut_at(dir: &Path, seed: u64, acts: u64) -> Arc<Faulty> {
    let faulty = Faulty::new(dir, seed);
    faulty.cut_at(Target { acts, ..Target::default() });
    faulty
}

/// Opens a store after a power cut, and cuts the power again after a few operations.
fn cut_again(remains: &World, dir: &Path, random: &mut fastrand::Rng) -> World {
    fs::create_dir(dir).unwrap();
    restore(remains, dir).unwrap();
    let faulty = cut_at(dir, random.u64(1..), random.u64(1..=12));
    drop(Store::open_on(&Disk::Faulty(faulty.clone()), dir, Options::default(), 64));
    faulty.cut().1
}

/// The member whose disk fails.
enum Role {
    Origin,
    Replica,
}

struct Round {
    seed: u64,
    role: Role,
    trees: Vec<Tree>,
    origin: Origin,
    versions: Vec<Version>,
    top: tempfile::TempDir,
}

impl Round {
    fn new(seed: u64) -> Self {
        let top = tempfile::tempdir().unwrap();
        let origin = Origin::new(top.path());
        let role = if seed.is_multiple_of(2) { Role::Replica } else { Role::Origin };
        let trees: Vec<Tree> = (0..VERSIONS).map(|n| sample(seed * VERSIONS + n)).collect();
        let versions = trees.iter().zip(1..).map(|(it, n)| origin.publish(it, n)).collect();
        Self { seed, role, trees, origin, versions, top }
    }

    fn open(&self, disk: &Disk, dir: &Path) -> Result<Arc<Store>, Error> {
        // Half of the rounds sync files one by one, the others the whole file system.
        let syncs_max = if (self.seed / 2).is_multiple_of(2) { 64 } else { 1 };
        Store::open_on(disk, dir, Options { generations_kept: 1, ..Options::default() }, syncs_max)
            .map(Arc::new)
    }

    /// Continues from the version after `held`. Returns the number of the last acknowledged
    /// version.
    fn run(&self, store: &Arc<Store>, held: usize) -> (usize, Result<(), Error>) {
        let mut acknowledged = held;
        for (version, tree) in self.versions.iter().zip(&self.trees).skip(held) {
            let done = match self.role {
                Role::Replica => fetch(&self.origin.store, store, version).map(drop),
                Role::Origin => self.publish(store, tree, version),
            };
            if let Err(error) = done {
                return (acknowledged, Err(error));
            }
            acknowledged += 1;
            if let Err(error) = store.remove_old() {
                return (acknowledged, Err(error));
            }
        }
        (acknowledged, Ok(()))
    }

    fn publish(&self, store: &Arc<Store>, tree: &Tree, version: &Version) -> Result<(), Error> {
        write(&self.origin.directory, tree);
        let publishing = Publishing::default();
        let draft = Draft::make_with(store, &self.origin.directory, publishing, TRUSTED_AT_ONCE)?;
        // The same tree has the same root in every store, so this version fits.
        draft.commit(version).map(drop)
    }

    /// Opens the store after a power cut, checks it and continues.
    fn check(&self, dir: &Path, acknowledged: usize, at: &str) {
        let context = format!("seed {}, cut at {at}, {acknowledged} acknowledged", self.seed);
        let store = self.open(&Disk::Hasty, dir).expect(&context);
        let held = store.current().map_or(0, |it| it.meta().number.sequence);
        let held = usize::try_from(held).unwrap();
        assert!((acknowledged..=acknowledged + 1).contains(&held), "{context}: {held} is held");
        assert_eq!(store.current_link().exists(), held != 0, "{context}");
        if let Some(last) = held.checked_sub(1) {
            assert_eq!(current(&store), self.trees[last], "{context}");
            assert_eq!(store.current().unwrap().meta().version, self.versions[last].to_bytes());
            assert_eq!(store.verify().unwrap().damaged_count, 0, "{context}");
        }
        let (all, done) = self.run(&store, held);
        done.expect(&context);
        assert_eq!((all, current(&store)), (self.trees.len(), self.trees[all - 1].clone()));
        assert_eq!(store.verify().unwrap().damaged_count, 0, "{context}");
    }
}

/// Checks that after a power cut, when the disk drops all writes that were not durable, all
/// acknowledged versions are there, and readers see no incomplete version.
#[test]
fn a_power_cut_at_any_act_loses_nothing_acknowledged() {
    for seed in rounds() {
        let round = Round::new(seed);
        let dir = round.top.path().join("whole");
        fs::create_dir(&dir).unwrap();
        let sound = Faulty::new(&dir, seed);
        let store = round.open(&Disk::Faulty(sound.clone()), &dir).unwrap();
        assert_eq!(round.run(&store, 0).0, round.trees.len());
        let acts = sound.acts();
        assert!(100 < acts, "{acts} acts are no test");
        // At the end everything is durable.
        let left = round.top.path().join("left");
        fs::create_dir(&left).unwrap();
        restore(&sound.cut().1, &left).unwrap();
        round.check(&left, round.trees.len(), "the end");

        let mut random = fastrand::Rng::with_seed(seed);
        for cut in 0..6 {
            let cut_at = random.u64(1..=acts);
            let dir = round.top.path().join(format!("cut{cut}"));
            fs::create_dir(&dir).unwrap();
            let faulty = self::cut_at(&dir, random.u64(1..), cut_at);
            let acknowledged = match round.open(&Disk::Faulty(faulty.clone()), &dir) {
                Ok(store) => round.run(&store, 0).0,
                Err(_) => 0,
            };
            // The first run may have had more operations, because it read some files twice.
            assert!(faulty.is_cut() || acknowledged == round.trees.len(), "seed {seed}");
            let (at, mut world) = faulty.cut();
            if cut < 2 {
                let dir = round.top.path().join(format!("again{cut}"));
                world = cut_again(&world, &dir, &mut random);
            }
            let left = round.top.path().join(format!("left{cut}"));
            fs::create_dir(&left).unwrap();
            restore(&world, &left).unwrap();
            round.check(&left, acknowledged, &format!("{cut_at} of {acts}, {at}"));
        }
    }
}

#[test]
fn a_full_disk_is_named_and_changes_nothing() {
    for seed in 0..2 {
        let round = Round::new(seed);
        let dir = round.top.path().join("full");
        fs::create_dir(&dir).unwrap();
        let faulty = Faulty::new(&dir, seed);
        let store = round.open(&Disk::Faulty(faulty.clone()), &dir).unwrap();
        let next = |store: &Arc<Store>, n: usize| match round.role {
            Role::Replica => fetch(&round.origin.store, store, &round.versions[n]).map(drop),
            Role::Origin => round.publish(store, &round.trees[n], &round.versions[n]),
        };
        next(&store, 0).unwrap();
        let before = faulty.acts();
        next(&store, 1).unwrap();
        let acts = faulty.acts() - before;
        let mut held = 1;
        for lot in 0..12 {
            let from = faulty.acts() + acts * lot / 12;
            faulty.fail_after(Fault::Full, from);
            let goal = if held == 1 { 2 } else { 1 };
            let found = next(&store, goal);
            faulty.fail(None);
            match found {
                // Going back to the version before takes fewer operations, so it may succeed.
                Ok(()) => held = goal,
                Err(error) => {
                    assert!(matches!(&error, Error::Full { .. }), "seed {seed}, {lot}: {error}");
                    assert_eq!(error.failure(), Failure::Disk);
                    assert!(error.to_string().contains("full/"), "{error}");
                }
            }
            assert_eq!(current(&store), round.trees[held], "seed {seed}, {lot}");
            let left = fs::read_dir(dir.join("generations")).unwrap();
            let names = left.map(|it| it.unwrap().file_name().into_string().unwrap());
            assert_eq!(names.filter(|it| it.starts_with('.')).count(), 0, "seed {seed}, {lot}");
            next(&store, goal).unwrap();
            held = goal;
            store.remove_old().unwrap();
        }
    }
}

/// Checks that leftovers do not delay a member's start: the removal of a large tree takes minutes.
#[test]
fn leftovers_of_a_crash_are_removed_before_the_next_version_and_not_at_the_opening() {
    let top = tempfile::tempdir().unwrap();
    let origin = Origin::new(top.path());
    let versions: Vec<Version> = (1..=3).map(|n| origin.publish(&sample(n), n)).collect();
    let dir = top.path().join("replica");
    let options = Options { generations_kept: 0, ..Options::default() };
    let store = Arc::new(super::hasty(&dir, options).unwrap());
    fetch(&origin.store, &store, &versions[0]).unwrap();
    drop(store);
    let generations = dir.join("generations");
    let left = ["1", "2", "7"].map(|it| format!(".building-{it}"));
    let left = left.into_iter().chain([".gone-000001-1.1".to_owned()]);
    let left: Vec<_> = left.map(|it| generations.join(it)).collect();
    left.iter().for_each(|it| fs::create_dir_all(it.join("tree/d")).unwrap());
    let left_count = |it: &[std::path::PathBuf]| it.iter().filter(|it| it.exists()).count();

    let store = Arc::new(super::hasty(&dir, options).unwrap());
    assert_eq!((left_count(&left), current(&store)), (4, sample(1)));
    fetch(&origin.store, &store, &versions[1]).unwrap();
    assert_eq!((left_count(&left), current(&store)), (0, sample(2)));

    // A store that is stopped during a removal continues it after the next opening.
    store.stop();
    assert!(matches!(store.remove_old(), Err(Error::Stopped)));
    drop(store);
    let store = Arc::new(super::hasty(&dir, options).unwrap());
    assert_eq!(fs::read_dir(&generations).unwrap().count(), 2);
    assert_eq!(store.remove_old().unwrap(), 0);
    assert_eq!(fs::read_dir(&generations).unwrap().count(), 1);
    fetch(&origin.store, &store, &versions[2]).unwrap();
    assert_eq!(current(&store), sample(3));
}
