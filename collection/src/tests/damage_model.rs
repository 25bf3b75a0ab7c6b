//! The damage model: damage of all kinds at any moment, over a gatherer, a broker that pulls from
//! it, and a second broker that pulls from the first. No consumer loses an object that the origin
//! has, no serial is used twice, and once everything is healed all three have the same objects as
//! the tree.
//!
//! Everything runs in one process; feeds are passed without sockets. `HARVEST_DAMAGE_SEEDS` is the
//! number of simulated worlds (default 300), `HARVEST_DAMAGE_SEED` the seed of the first one.

mod harm;
mod member;

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use harm::{Harm, Random};
use member::{Kind, Member};

use crate::change::Epoch;
use crate::error::Error;

/// Number of steps before the final healing.
const STEPS: u64 = 24;
/// Maximum number of rounds of the final healing.
const ROUNDS_MAX: usize = 40;
/// Number of objects that change, but are never removed: all members must have them at any time.
const STABLE: u64 = 12;
/// Number of objects that are added and removed.
const OTHERS: u64 = 20;

/// URL and content.
type Tree = BTreeMap<String, u64>;

struct World {
    random: Random,
    tree: Tree,
    /// Gatherer, broker, second broker.
    members: [Member; 3],
    /// The members whose data was damaged; until they are healed, objects may be missing there.
    harmed: [bool; 3],
    /// The stable objects that were committed at each member since its damage; they must stay.
    fresh: [BTreeSet<String>; 3],
    /// The actions so far, for failure messages.
    history: Vec<String>,
    next: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
        let mut member = |kind| Member::new(kind, random.below(u64::MAX));
        let members = [Kind::Gatherer, Kind::Broker, Kind::Broker].map(&mut member);
        let (harmed, fresh) = ([false; 3], Default::default());
        let mut world =
            Self { random, tree: Tree::new(), members, harmed, fresh, history: vec![], next: 0 };
        for n in 0..STABLE {
            world.put(format!("http://stable/{n}"));
        }
        world.change_tree();
        world.pass_and_pull();
        world
    }

    fn put(&mut self, url: String) {
        self.next += 1;
        self.tree.insert(url, self.next);
    }

    fn change_tree(&mut self) {
        for _ in 0..1 + self.random.below(6) {
            let url = format!("http://other/{}", self.random.below(OTHERS));
            let stable = format!("http://stable/{}", self.random.below(STABLE));
            match self.random.below(8) {
                0 | 1 => drop(self.tree.remove(&url)),
                2 => self.put(stable),
                _ => self.put(url),
            }
        }
    }

    /// Pulls from the previous member; the source may lack changes.
    fn pull(&mut self, at: usize) {
        let (before, rest) = self.members.split_at_mut(at);
        match rest[0].pull(&before[at - 1]) {
            Ok(()) | Err(Error::Missing { .. } | Error::SetBack { .. }) => {}
            // Damage was found during the pull, at the source or here.
            Err(Error::Stream { .. } | Error::Damaged { .. } | Error::Keys { .. }) => {}
            Err(error) => panic!("{error:?}\n{:#?}", self.history),
        }
    }

    fn pass_and_pull(&mut self) {
        let tree = self.tree.clone();
        self.members[0].pass(&tree);
        self.pull(1);
        self.pull(2);
    }

    fn step(&mut self, harm: Option<(usize, Harm)>) {
        if let Some((at, harm)) = harm {
            self.harmed[at] = true;
            self.fresh[at].clear();
            self.members[at].note_harm();
            let done = self.members[at].harm(&harm, &mut self.random);
            self.history.push(format!("{at}: {harm:?}: {done}"));
            self.check();
            return;
        }
        let at = usize::try_from(self.random.below(3)).unwrap();
        let what = self.random.below(20);
        self.history.push(format!("{at}: {what}"));
        match what {
            0..4 => self.change_tree(),
            4..8 => {
                let tree = self.tree.clone();
                self.members[0].pass(&tree);
            }
            8..11 => self.pull(1),
            11..14 => self.pull(2),
            14 => self.members[at].compact(),
            15 => self.members[at].restart(true),
            16 => self.members[at].restart(false),
            17 => self.members[at].serve_newcomer(),
            _ => {
                let tree = self.tree.clone();
                self.members[at].heal(&tree);
            }
        }
        self.check();
    }

    fn check(&mut self) {
        for (at, member) in self.members.iter_mut().enumerate() {
            member.check_version();
            let mut missing = vec![];
            for n in 0..STABLE {
                let url = format!("http://stable/{n}");
                match member.is_fresh(&url) {
                    // Without a key index this is unknown.
                    Err(_) => {}
                    Ok(Some(true)) => drop(self.fresh[at].insert(url)),
                    Ok(Some(false)) => {}
                    Ok(None) => missing.push(url),
                }
            }
            missing.retain(|it| !self.harmed[at] || self.fresh[at].contains(it));
            assert!(missing.is_empty(), "{at} lacks {missing:?}: {:#?}", self.history);
        }
    }

    fn heal(&mut self) {
        for round in 0.. {
            for at in 0..3 {
                let tree = self.tree.clone();
                self.members[at].heal(&tree);
            }
            self.pass_and_pull();
            self.check();
            let is_well = self.members.iter().all(Member::is_well);
            let found = self.members.each_ref().map(Member::content);
            if is_well && found.iter().all(|it| *it == self.tree) {
                return;
            }
            let state = self.members.each_ref().map(Member::describe);
            assert!(
                round < ROUNDS_MAX,
                "not well: {state:#?}\n{:?}\n{found:#?}\n{:#?}",
                self.tree,
                self.history
            );
        }
    }
}

fn play(seed: u64) {
    let mut world = World::new(seed);
    let epochs: Vec<Epoch> = world.members.iter().map(Member::epoch).collect();
    let harms = 1 + world.random.below(2);
    let mut when: Vec<u64> = (0..harms).map(|_| world.random.below(STEPS)).collect();
    when.sort_unstable();
    let mut is_manifest_hit = false;
    for step in 0..STEPS {
        if when.first() == Some(&step) {
            when.remove(0);
            let at = usize::try_from(world.random.below(3)).unwrap();
            let mut harm = Harm::random(&mut world.random);
            while harm.hits_manifest() && is_manifest_hit {
                harm = Harm::random(&mut world.random);
            }
            is_manifest_hit |= harm.hits_manifest();
            world.step(Some((at, harm)));
        }
        world.step(None);
    }
    world.heal();
    world.harmed = [false; 3];
    world.check();
    // Everything must still be there after a restart.
    for member in &mut world.members {
        member.restart(true);
    }
    world.heal();
    let after: Vec<Epoch> = world.members.iter().map(Member::epoch).collect();
    assert_eq!(epochs, after, "no epoch begins: {:#?}", world.history);
    for member in &world.members {
        member.verify();
    }
}

#[test]
fn damage_costs_only_what_it_hit() {
    let number = |name: &str| env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seeds = number("HARVEST_DAMAGE_SEEDS").unwrap_or(300);
    let first = number("HARVEST_DAMAGE_SEED").unwrap_or(1);
    let next = std::sync::atomic::AtomicU64::new(first);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if first + seeds <= seed {
                        return;
                    }
                    let played = std::panic::catch_unwind(|| play(seed));
                    assert!(played.is_ok(), "HARVEST_DAMAGE_SEED={seed} HARVEST_DAMAGE_SEEDS=1");
                }
            });
        }
    });
}

#[test]
fn a_snapshot_that_is_older_than_the_last_pull_removes_nothing() {
    let mut world = World::new(1);
    world.members[0].serve_newcomer();
    for n in 0..300 {
        world.put(format!("http://later/{n}"));
    }
    world.pass_and_pull();
    world.members[1].forget_cursor();
    let before = world.members[1].changes();
    world.pull(1);
    assert_eq!(world.members[1].changes(), before, "nothing was deleted, nor came again");
    assert_eq!(world.members[1].content(), world.tree);
    // Objects that were removed are released nevertheless.
    world.tree.retain(|it, _| !it.starts_with("http://later/1"));
    world.members[1].forget_cursor();
    world.pass_and_pull();
    assert_eq!(world.members[1].content(), world.tree);
}

#[test]
fn changes_lost_at_the_last_stop_are_released_by_no_consumer() {
    let mut world = World::new(1);
    let had = world.members[1].content();
    world.members[0].lose_end();
    assert!(world.members[0].content().len() < had.len(), "it had one commit");
    // The present snapshot lacks the lost changes, and later consumers get the same snapshot.
    world.members[0].serve_newcomer();
    for _ in 0..2 {
        world.pull(1);
        world.pull(2);
        assert_eq!(world.members.each_ref().map(Member::content)[1..], [had.clone(), had.clone()]);
        // The loss is remembered.
        world.members[0].restart(true);
    }
    world.tree.retain(|it, _| it.starts_with("http://stable/"));
    world.heal();
}
