//! The spread of an update to all members, in the simulated world of content.

#[path = "../../tests/simulation/conduct.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod conduct;
#[path = "../../tests/simulation/links.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod links;
#[path = "../../tests/simulation/making.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod making;
#[path = "../../tests/simulation/node.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod node;
#[path = "../../tests/simulation/world.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod world;

use std::collections::VecDeque;
use std::time::Duration;

use conduct::Conduct;
use node::{Node, Pool};
use replicator::version::{Name, Namespace};
use world::{SimulatedSpace, World};

/// Number of chunks of an update.
const CHUNKS: usize = 64;
/// Length of each chunk, in bytes.
const CHUNK_BYTES: usize = 16 << 10;
/// First byte of an announcement (`message/wire.rs`).
const ANNOUNCE: u8 = 2;
/// First byte of a chunk (`message/wire.rs`).
const CHUNK: u8 = 9;
/// Longest time until all members have an update.
const PATIENCE: Duration = Duration::from_hours(2);
/// Time without publications.
const REST: Duration = Duration::from_mins(10);

/// The cost of an update.
#[derive(Debug)]
pub(crate) struct Update {
    members: usize,
    /// Number of members that have the update.
    pub held: usize,
    pub links: u64,
    /// Length of the update with its root, in bytes.
    pub bytes: u64,
    pub announcements: u64,
    pub announcement_bytes: u64,
    /// Bytes of all messages over all links.
    pub sent: u64,
    chunk_bytes: u64,
    /// Time until the last member has the update.
    took: Duration,
    /// Time over the slowest path through the trees, if each member passes bytes on at once.
    least: Duration,
    /// Maximum number of links between the origin and a member, along the trees.
    depth: usize,
    /// Bytes that all members together send in a minute at rest.
    rest: f64,
}

/// Publishes an update in a world of this many members.
pub(crate) fn run(members: usize, seed: u64) -> Update {
    let mut world = make(members, seed);
    world.run(Duration::from_secs(30));
    world.sent.clear();
    let began = world.now;
    world.publish(0);
    let version = world.spaces[0].last.clone().expect("it is published");
    let namespace = version.namespace.clone();
    let holds = |node: &Node| node.held(&namespace).is_some_and(|it| it.number == version.number);
    while !world.nodes.iter().all(holds) && world.now < began + PATIENCE {
        world.run(world.now + Duration::from_secs(1));
    }
    let held = world.nodes.iter().filter(|it| holds(it)).count();
    let of = |kind: u8| world.sent.get(&kind).copied().unwrap_or_default();
    let (announcements, announcement_bytes) = of(ANNOUNCE);
    let (chunks, chunk_bytes) = of(CHUNK);
    let sent = world.sent.values().map(|it| it.1).sum();
    let took = world.switched.iter().max().map_or(Duration::ZERO, |it| it.saturating_sub(began));
    let bytes = (CHUNKS * CHUNK_BYTES) as u64 + (CHUNKS * 36 + 1) as u64;
    let (least, depth) = slowest(&world, bytes);
    assert!((members as u64 - 1) * (CHUNKS as u64 + 1) <= chunks || held < members);
    world.sent.clear();
    world.run(world.now + REST);
    let rest = world.sent.values().map(|it| it.1).sum::<u64>() as f64;
    Update {
        members,
        held,
        links: world.links.len() as u64,
        bytes,
        announcements,
        announcement_bytes,
        sent,
        chunk_bytes,
        took,
        least,
        depth,
        rest: rest / (REST.as_secs_f64() / 60.0),
    }
}

fn make(members: usize, seed: u64) -> World {
    let pool = Pool::default();
    let mut nodes: Vec<Node> = (0..members as u64).map(Node::new).collect();
    for node in &mut nodes {
        (node.pool, node.length) = (pool.clone(), CHUNK_BYTES as u32);
    }
    let groups: Vec<_> =
        super::groups(members).into_iter().map(|it| it.into_iter().collect()).collect();
    let name = Name::new("tree").expect("a name");
    let space = SimulatedSpace {
        origin: 0,
        namespace: Namespace { origin: nodes[0].id, name: name.clone() },
        name,
        groups: (0..groups.len()).collect(),
        last: None,
        made: Vec::new(),
        chunks: Vec::new(),
        to_come: 0,
    };
    let dice = fastrand::Rng::with_seed(seed);
    let conduct = vec![Conduct::Honest; members];
    let lines = super::lines(members, seed);
    let mut world = World::over(lines, dice, nodes, groups, vec![space], conduct);
    world.sizes = (CHUNKS..CHUNKS + 1, CHUNK_BYTES..CHUNK_BYTES + 1);
    world.rates.fill(100);
    world
}

/// Returns the least time in which this many bytes reach the last member along the trees, and the
/// maximum number of links to a member.
fn slowest(world: &World, bytes: u64) -> (Duration, usize) {
    let mut ways = vec![None; world.nodes.len()];
    ways[0] = Some((u64::MAX, Duration::ZERO, 0));
    let mut queue = VecDeque::from([0]);
    while let Some(at) = queue.pop_front() {
        let Some((width, delay, depth)) = ways[at] else { continue };
        for next in world.nodes[at].tree() {
            let next = world.members_of[&next];
            if ways[next].is_none() {
                let (round_trip, bandwidth) = world.lines[&[at.min(next), at.max(next)]];
                ways[next] = Some((bandwidth.min(width), delay + round_trip / 2, depth + 1));
                queue.push_back(next);
            }
        }
    }
    let all = ways.into_iter().flatten();
    all.fold((Duration::ZERO, 0), |(least, deepest), (width, delay, depth)| {
        let time = delay + Duration::from_secs_f64(bytes as f64 / width as f64);
        (least.max(time), deepest.max(depth))
    })
}

impl Update {
    pub(crate) fn print_head() {
        println!(
            "members  links  deep  announcements   bytes  all bytes  chunks   all have it  slowest way  at rest"
        );
    }

    /// Prints a line. Announcements and their bytes are for each member; all bytes and those of
    /// chunks are relative to the least possible; bytes at rest are for each member and minute.
    pub(crate) fn print(&self) {
        assert_eq!(self.held, self.members, "all have it");
        let members = self.members as f64;
        let minimum = (self.bytes * (self.members as u64 - 1)) as f64;
        println!(
            "{:7}  {:5}  {:4}  {:13.1}  {:6.0}  {:7.4} x  {:6.4} x  {:9.2} s  {:9.2} s  {:7.0}",
            self.members,
            self.links,
            self.depth,
            self.announcements as f64 / members,
            self.announcement_bytes as f64 / members,
            self.sent as f64 / minimum,
            self.chunk_bytes as f64 / minimum,
            self.took.as_secs_f64(),
            self.least.as_secs_f64(),
            self.rest / members,
        );
    }
}
