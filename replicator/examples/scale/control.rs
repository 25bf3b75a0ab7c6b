//! Control traffic: messages about members and links, in the simulated world of groups.

#[path = "../../tests/group_simulation/liar.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod liar;
#[path = "../../tests/group_simulation/links.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod links;
#[path = "../../tests/group_simulation/member.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod member;
#[path = "../../tests/group_simulation/plan.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod plan;
#[path = "../../tests/group_simulation/properties.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod properties;
#[path = "../../tests/group_simulation/traffic.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod traffic;
#[path = "../../tests/group_simulation/world.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod world;

use std::fs;
use std::time::{Duration, Instant};

use fastrand::Rng;
use member::{Member, settings};
use replicator::group::Group;
use replicator::group::access::{Access, Rule};
use replicator::group::charter::Charter;
use replicator::group::held::Tag;
use replicator::id::MemberId;
use replicator::topology::Connectivity;
use replicator::version::Number;
use world::World;

pub(crate) use plan::pairs;

/// Time before which all members start.
const STARTED: Duration = Duration::from_mins(2);
/// Longest wait until all members agree, know each other's versions or follow a deputy.
const PATIENCE: Duration = Duration::from_mins(15);
/// Members that publish a tree.
const WRITERS: usize = 10;
/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;
/// Turns of a measurement. The fastest is printed, because other processes slow down the rest.
const TURNS: usize = 9;
/// Kinds of messages, as the simulation counts them.
const KINDS: [&str; 6] = ["beats", "rows", "digests", "holdings", "null calls", "charters"];
const STEP: Duration = Duration::from_secs(1);
/// Time after which all have heard of all.
const HEARD: Duration = Duration::from_mins(4);
/// Bytes of pings and answers on a link in a minute: each with its header and TLS (docs/links.md).
const PING_BYTES: f64 = 2.0 * 2.0 * (4.0 + 8.0 + 22.0) * 12.0;

/// A group whose members agree on its charter.
pub(crate) struct Settled {
    world: World,
    members: usize,
    /// Time to agree after the last start.
    took: Duration,
}

/// Messages at rest for each member and minute, and the number of all new charters together.
#[derive(Debug)]
pub(crate) struct Rest {
    kinds: Vec<(&'static str, f64, f64)>,
    pub bytes: f64,
    pings: f64,
    /// Processor time, in seconds.
    work: f64,
    charters: u64,
}

/// Returns the processor time of this process, in seconds.
pub(crate) fn processor() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split(' ').skip(12).take(2).filter_map(|it| it.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// Returns the memory for each member of a group, in bytes. Call it in a new process.
pub(crate) fn memory(members: usize) -> u64 {
    let before = resident();
    let mut group = settle(members, 1);
    // By then each member knows of all others.
    group.world.run(Duration::from_mins(8));
    resident().saturating_sub(before) / members as u64
}

fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
    pages.unwrap_or_default() * 4_096
}

/// Founds a group of this many members.
pub(crate) fn settle(members: usize, seed: u64) -> Settled {
    let mut dice = Rng::with_seed(seed);
    let sites: Vec<usize> = (0..members).map(|it| it / super::SITE).collect();
    let allow: Vec<Rule> =
        (0..members).map(|it| Rule::Member(MemberId::of(&member::identity(it).public()))).collect();
    let all = sites.iter().enumerate().map(|(at, site)| {
        let access = Access { allow: allow.clone(), ..Access::default() };
        let mut settings = settings(at, *site, (at == 0).then_some(access));
        settings.connectivity = (at == 0).then_some(Connectivity::Two);
        if WRITERS <= at {
            settings.trees.clear();
        }
        Member::new(at, settings, 100)
    });
    let all = all.collect();
    let pairs = pairs(&mut dice, &sites);
    let mut world = World::with(dice, all, pairs);
    world.found(false);
    world.join_before(STARTED);
    world.run(STARTED);
    while !agree(&world, members) && world.now < STARTED + PATIENCE {
        world.run(world.now + STEP);
    }
    assert!(agree(&world, members), "{members} members do not agree");
    let took = world.now - STARTED;
    Settled { world, members, took }
}

/// Returns whether all members that are up have one charter, in which this many are not silent.
fn agree(world: &World, members: usize) -> bool {
    let up = (0..world.members.len()).filter(|it| world.members[*it].is_up());
    let charters: Vec<_> = up.map(|it| world.charter(it)).collect();
    let Some(Some(first)) = charters.first() else { return false };
    let there = first.body().members.iter().filter(|it| it.silent.is_none()).count();
    there == members && charters.iter().all(|it| it.is_some_and(|it| it == *first))
}

impl Settled {
    fn leader(&self) -> usize {
        let leads = |it: &Member| it.group.as_ref().is_some_and(Group::is_leader);
        self.world.members.iter().position(leads).expect("a leader")
    }

    fn charter(&self) -> &Charter {
        self.world.charter(self.leader()).expect("a charter")
    }

    pub(crate) fn charter_bytes(&self) -> usize {
        self.charter().to_bytes().len()
    }

    /// Runs up to `from`, then for `time`. Returns the messages of that `time`.
    pub(crate) fn rest(&mut self, from: Duration, time: Duration) -> Rest {
        self.world.run(from);
        self.world.traffic.clear();
        let (before, worked) = (self.charter().revision(), processor());
        self.world.run(from + time);
        let work = (processor() - worked) / self.members as f64;
        let minutes = time.as_secs_f64() / 60.0;
        let share = self.members as f64 * minutes;
        let each = |it: (&&'static str, &(u64, u64))| {
            (*it.0, it.1.0 as f64 / share, it.1.1 as f64 / share)
        };
        let kinds: Vec<_> = self.world.traffic.iter().map(each).collect();
        let links = self.charter().body().topology.links().count() as f64;
        let pings = PING_BYTES * links / self.members as f64;
        let bytes = kinds.iter().map(|it| it.2).sum();
        let charters = self.charter().revision() - before;
        Rest { kinds, bytes, pings, work: work / minutes, charters }
    }

    /// Has all members switch to a version of one tree at once. Prints the time until each knows
    /// this of all others, and the messages for that.
    pub(crate) fn hold(&mut self) {
        self.world.run(self.world.now + HEARD);
        let tree = self.charter().body().trees.first().expect("a tree").tree.namespace();
        for it in &mut self.world.members {
            it.held.insert(tree.clone(), Number { epoch: 1, sequence: 1 });
        }
        let ids: Vec<_> = self.world.members.iter().map(|it| it.id).collect();
        let is_seen = |world: &World| {
            world.members.iter().filter_map(|it| it.group.as_ref()).all(|by| {
                let number = |it: &_| by.held_by(*it).and_then(|it| it.number(Tag::of(&tree)));
                ids.iter().filter(|it| **it != by.me()).all(|it| number(it).is_some())
            })
        };
        self.world.traffic.clear();
        let began = self.world.now;
        while !is_seen(&self.world) && self.world.now < began + PATIENCE {
            self.world.run(self.world.now + STEP);
        }
        let (count, bytes) = self.world.traffic.get("holdings").copied().unwrap_or_default();
        let share = |it: u64| it as f64 / self.members as f64;
        println!(
            "{} members: each knows {:.0} s later which version all others have; for that a member has sent {:.1} \
             messages of {:.0} bytes in all.",
            self.members,
            (self.world.now - began).as_secs_f64(),
            share(count),
            share(bytes),
        );
        assert!(is_seen(&self.world), "not all are known");
    }

    pub(crate) fn print_joined(&self) {
        let leader = self.world.group(self.leader());
        let next = fastest(|| assert!(leader.computed().is_some()));
        let (bytes, group) = (self.charter().to_bytes(), self.charter().group());
        let reading = fastest(|| assert!(Charter::from_bytes(&bytes, group, None).is_ok()));
        println!(
            "{} members agree {:.0} s after the last has started. The charter has {} bytes, and is read and checked \
             in {:.2} ms. To see whether another topology is better takes {:.2} ms.",
            self.members,
            self.took.as_secs_f64(),
            self.charter_bytes(),
            reading.as_secs_f64() * 1e3,
            next.as_secs_f64() * 1e3,
        );
    }

    /// Has the leader die, and prints when all others follow the next one.
    pub(crate) fn lose_leader(&mut self) {
        let rows: usize = self
            .world
            .group(self.leader())
            .all_rows()
            .iter()
            .map(|it| it.to_bytes().len() + 97)
            .sum();
        let (leader, began) = (self.leader(), self.world.now);
        let epoch = self.charter().epoch();
        self.world.crash(leader);
        let is_over = |world: &World| {
            (0..world.members.len())
                .filter(|it| *it != leader)
                .all(|it| world.charter(it).is_some_and(|it| it.epoch() == epoch + 1))
        };
        while !is_over(&self.world) && self.world.now < began + PATIENCE {
            self.world.run(self.world.now + STEP);
        }
        println!(
            "The rows of all members have {rows} bytes. All follow a deputy {:.0} s after the leader has died.\n",
            (self.world.now - began).as_secs_f64()
        );
    }
}

impl Rest {
    pub(crate) fn print_head() {
        print!("            ");
        for kind in KINDS {
            print!(" {kind:>16}");
        }
        println!("   in all  pings      work  charters");
    }

    /// Prints messages and bytes of each kind. The work is a member's share of all work done.
    pub(crate) fn print(&self, name: &str) {
        print!("{name:<12}");
        for kind in KINDS {
            let found = self.kinds.iter().find(|it| it.0 == kind);
            let (count, bytes) = found.map_or((0.0, 0.0), |it| (it.1, it.2));
            print!(" {count:7.1} {bytes:8.0}");
        }
        println!(
            " {:8.0} {:6.0} {:6.1} ms  {:8}",
            self.bytes,
            self.pings,
            self.work * 1e3,
            self.charters,
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn fastest(work: impl Fn()) -> Duration {
    let turn = |_| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    (0..TURNS).map(turn).min().unwrap_or_default()
}
