//! Damage of all kinds at any moment, over a gatherer, a broker that pulls from it, and one that pulls from
//! that: nobody downstream loses what the origin has, no serial is used twice, and once all is healed
//! the three are what the tree is.
//!
//! All of it runs in one process; feeds are handed across without sockets. `HARVEST_DAMAGE_SEEDS` says how
//! many worlds (default 300), `HARVEST_DAMAGE_SEED` which is the first.

mod harm;
mod member;

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use harm::{Harm, Random};
use member::{Kind, Member};

use crate::change::Epoch;
use crate::error::Error;

/// Things done before everything is to be healed.
const STEPS: u64 = 24;
/// So often all is seen to until it has to be well.
const ROUNDS_MAX: usize = 40;
/// Objects that change, but never go: they must be at every place at any time.
const STABLE: u64 = 12;
/// Names of those that come and go.
const OTHERS: u64 = 20;

/// URL and content.
type Tree = BTreeMap<String, u64>;

struct World {
    random: Random,
    tree: Tree,
    /// Gatherer, broker, broker of that.
    members: [Member; 3],
    /// Whose data was damaged: until it is healed it may lack what it had.
    harmed: [bool; 3],
    /// The stable objects that were committed there since: they stay.
    fresh: [BTreeSet<String>; 3],
    /// What was done, for whoever has to find out.
    told: Vec<String>,
    next: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1));
        let mut member = |kind| Member::new(kind, random.below(u64::MAX));
        let members = [Kind::Gatherer, Kind::Broker, Kind::Broker].map(&mut member);
        let (harmed, fresh) = ([false; 3], Default::default());
        let mut world =
            Self { random, tree: Tree::new(), members, harmed, fresh, told: vec![], next: 0 };
        for n in 0..STABLE {
            world.put(format!("http://stable/{n}"));
        }
        world.change_tree();
        world.everybody_once();
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

    /// The pull of a broker: from the one before it. What cannot be told just now is no error.
    fn pull(&mut self, at: usize) {
        let (before, rest) = self.members.split_at_mut(at);
        match rest[0].pull(&before[at - 1]) {
            Ok(()) | Err(Error::Missing { .. } | Error::SetBack { .. }) => {}
            // Something was found damaged on the way, here or there.
            Err(Error::Stream { .. } | Error::Damaged { .. } | Error::Keys { .. }) => {}
            Err(error) => panic!("{error:?}\n{:#?}", self.told),
        }
    }

    fn everybody_once(&mut self) {
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
            let done = self.members[at].suffer(&harm, &mut self.random);
            self.told.push(format!("{at}: {harm:?}: {done}"));
            self.check();
            return;
        }
        let at = usize::try_from(self.random.below(3)).unwrap();
        let what = self.random.below(20);
        self.told.push(format!("{at}: {what}"));
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
            17 => self.members[at].meet_newcomer(),
            _ => {
                let tree = self.tree.clone();
                self.members[at].heal(&tree);
            }
        }
        self.check();
    }

    /// What holds at any time.
    fn check(&mut self) {
        for (at, member) in self.members.iter_mut().enumerate() {
            member.check_version();
            let mut lacks = vec![];
            for n in 0..STABLE {
                let url = format!("http://stable/{n}");
                match member.is_fresh(&url) {
                    // Without a key index nobody can tell.
                    Err(_) => {}
                    Ok(Some(true)) => drop(self.fresh[at].insert(url)),
                    Ok(Some(false)) => {}
                    Ok(None) => lacks.push(url),
                }
            }
            lacks.retain(|it| !self.harmed[at] || self.fresh[at].contains(it));
            assert!(lacks.is_empty(), "{at} lacks {lacks:?}: {:#?}", self.told);
        }
    }

    /// Sees to everything until all is well.
    fn heal(&mut self) {
        for round in 0.. {
            for at in 0..3 {
                let tree = self.tree.clone();
                self.members[at].heal(&tree);
            }
            self.everybody_once();
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
                self.told
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
    let mut is_list_hit = false;
    for step in 0..STEPS {
        if when.first() == Some(&step) {
            when.remove(0);
            let at = usize::try_from(world.random.below(3)).unwrap();
            let mut harm = Harm::by_lot(&mut world.random);
            while harm.is_of_list() && is_list_hit {
                harm = Harm::by_lot(&mut world.random);
            }
            is_list_hit |= harm.is_of_list();
            world.step(Some((at, harm)));
        }
        world.step(None);
    }
    world.heal();
    world.harmed = [false; 3];
    world.check();
    // And all of it stays so over a restart.
    for member in &mut world.members {
        member.restart(true);
    }
    world.heal();
    let after: Vec<Epoch> = world.members.iter().map(Member::epoch).collect();
    assert_eq!(epochs, after, "no epoch begins: {:#?}", world.told);
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
fn a_snapshot_that_is_older_than_what_was_taken_takes_nothing_away() {
    let mut world = World::new(1);
    world.members[0].meet_newcomer();
    for n in 0..300 {
        world.put(format!("http://later/{n}"));
    }
    world.everybody_once();
    world.members[1].forget_cursor();
    let before = world.members[1].changes();
    world.pull(1);
    assert_eq!(world.members[1].changes(), before, "nothing was deleted, nor came again");
    assert_eq!(world.members[1].content(), world.tree);
    // What is gone goes with that all the same.
    world.tree.retain(|it, _| !it.starts_with("http://later/1"));
    world.members[1].forget_cursor();
    world.everybody_once();
    assert_eq!(world.members[1].content(), world.tree);
}

#[test]
fn what_the_last_stop_has_lost_is_released_by_nobody() {
    let mut world = World::new(1);
    let had = world.members[1].content();
    world.members[0].lose_end();
    assert!(world.members[0].content().len() < had.len(), "it had one commit");
    // A newcomer may have got all that there is, and whoever comes next the same.
    world.members[0].meet_newcomer();
    for _ in 0..2 {
        world.pull(1);
        world.pull(2);
        assert_eq!(world.members.each_ref().map(Member::content)[1..], [had.clone(), had.clone()]);
        // It is remembered.
        world.members[0].restart(true);
    }
    world.tree.retain(|it, _| it.starts_with("http://stable/"));
    world.heal();
}
