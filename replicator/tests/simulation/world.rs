//! A simulated world of members, links, faults and time.
//!
//! Messages over one link arrive in order, over several links in any order. Messages on their way
//! are lost when the link is cut. Every member's clock runs at its own rate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::time::Duration;

use fastrand::Rng;
use replicator::id::{GroupId, MemberId};
use replicator::message::{Announcement, Message, Route};
use replicator::version::{Name, Namespace, Number, Version};

use super::conduct::{Conduct, Past};
use super::links::{Line, Link};
use super::making;
use super::node::Node;

pub(crate) enum Event {
    Deliver { link: usize, life: u32, from: usize, bytes: Vec<u8> },
    Down { link: usize, life: u32 },
    Up { link: usize },
    Crash { member: usize },
    Restart { member: usize },
    Switched { member: usize, version: Version, life: u32 },
    Publish { space: usize },
    Rearrange,
    Wake { member: usize },
}

/// Ranges of the number of an update's chunks, and of their bytes.
pub(crate) type Sizes = (std::ops::Range<usize>, std::ops::Range<usize>);

/// A namespace with its versions.
pub(crate) struct SimulatedSpace {
    pub origin: usize,
    pub name: Name,
    pub namespace: Namespace,
    pub groups: Vec<usize>,
    pub last: Option<Version>,
    /// All versions that its origin has signed.
    pub made: Vec<Version>,
    pub chunks: Vec<Vec<u8>>,
    pub to_come: usize,
}

pub(crate) struct World {
    pub dice: Rng,
    pub now: Duration,
    pub nodes: Vec<Node>,
    pub conduct: Vec<Conduct>,
    pub groups: Vec<BTreeSet<usize>>,
    pub spaces: Vec<SimulatedSpace>,
    /// Lines by their ends; those of other links are random.
    pub lines: HashMap<[usize; 2], Line>,
    /// Number of a version's new chunks, and their bytes.
    pub sizes: Sizes,
    pub links: Vec<Link>,
    /// Links by their ends.
    pub between: HashMap<[usize; 2], usize>,
    /// Links of each member.
    pub links_of: Vec<Vec<usize>>,
    events: BinaryHeap<Reverse<(Duration, u64, usize)>>,
    pending: BTreeMap<usize, Event>,
    count: u64,
    lives: Vec<u32>,
    wakes: Vec<Duration>,
    /// Messages that each member may repeat.
    past: Vec<Past>,
    /// When a slow member has sent all its chunks, by sender and receiver.
    pub slow: BTreeMap<(usize, usize), Duration>,
    /// Rate of each member's clock, in percent.
    pub rates: Vec<u32>,
    pub members_of: BTreeMap<MemberId, usize>,
    pub messages: usize,
    /// Chunks that each member has sent.
    pub chunks_sent: Vec<usize>,
    /// Chunks that were requested from each member.
    pub chunks_asked: Vec<usize>,
    /// Messages over links and their bytes, by the first byte of the message.
    pub sent: BTreeMap<u8, (u64, u64)>,
    /// When each member last switched.
    pub switched: Vec<Duration>,
}

impl World {
    /// Makes members, overlapping groups, and namespaces in several groups.
    pub(crate) fn new(seed: u64, faulty: Conduct) -> Self {
        let mut dice = Rng::with_seed(seed);
        let members = dice.usize(3..9);
        let nodes: Vec<Node> = (0..members as u64).map(Node::new).collect();
        let mut conduct = vec![Conduct::Honest; members];
        conduct[dice.usize(..members)] = faulty;
        let groups = making::groups(&mut dice, members);
        let spaces = making::spaces(&mut dice, &nodes, &groups, &conduct);
        Self::with(dice, nodes, groups, spaces, conduct)
    }

    /// Makes a world of one group, whose first member is the origin of one namespace.
    pub(crate) fn of(members: usize) -> Self {
        let nodes: Vec<Node> = (0..members as u64).map(Node::new).collect();
        let name = Name::new("tree").unwrap();
        let namespace = Namespace { origin: nodes[0].id, name: name.clone() };
        let space = SimulatedSpace {
            origin: 0,
            name,
            namespace,
            groups: vec![0],
            last: None,
            made: Vec::new(),
            chunks: Vec::new(),
            to_come: 0,
        };
        let (groups, conduct) = (vec![(0..members).collect()], vec![Conduct::Honest; members]);
        Self::with(Rng::with_seed(1), nodes, groups, vec![space], conduct)
    }

    fn with(
        dice: Rng,
        nodes: Vec<Node>,
        groups: Vec<BTreeSet<usize>>,
        spaces: Vec<SimulatedSpace>,
        conduct: Vec<Conduct>,
    ) -> Self {
        Self::over(HashMap::new(), dice, nodes, groups, spaces, conduct)
    }

    /// Makes a world with these lines.
    pub(crate) fn over(
        lines: HashMap<[usize; 2], Line>,
        mut dice: Rng,
        nodes: Vec<Node>,
        groups: Vec<BTreeSet<usize>>,
        spaces: Vec<SimulatedSpace>,
        conduct: Vec<Conduct>,
    ) -> Self {
        let members = nodes.len();
        let members_of = nodes.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
        let rates = (0..members).map(|_| dice.u32(50..200)).collect();
        let mut world = Self {
            rates,
            dice,
            now: Duration::ZERO,
            conduct,
            groups,
            spaces,
            lines,
            sizes: (1..12, 1..60),
            links: Vec::new(),
            between: HashMap::new(),
            links_of: vec![Vec::new(); members],
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            count: 0,
            lives: vec![0; members],
            wakes: vec![Duration::MAX; members],
            past: (0..members).map(|_| Past::default()).collect(),
            slow: BTreeMap::new(),
            nodes,
            members_of,
            messages: 0,
            chunks_sent: vec![0; members],
            chunks_asked: vec![0; members],
            sent: BTreeMap::new(),
            switched: vec![Duration::ZERO; members],
        };
        world.form_groups();
        world.form_links();
        world
    }

    /// Plans faults and publications before `end`.
    pub(crate) fn plan(&mut self, end: Duration, faults: usize) {
        let before = |dice: &mut Rng| Duration::from_millis(dice.u64(..end.as_millis() as u64));
        for _ in 0..faults {
            let at = before(&mut self.dice);
            let until = at + (end - at).mul_f64(self.dice.f64());
            if self.dice.bool() {
                let member = self.dice.usize(..self.nodes.len());
                self.schedule(at, Event::Crash { member });
                self.schedule(until, Event::Restart { member });
            } else {
                let link = self.dice.usize(..self.links.len());
                let life = u32::MAX;
                self.schedule(at, Event::Down { link, life });
                self.schedule(until, Event::Up { link });
            }
        }
        for space in 0..self.spaces.len() {
            for _ in 0..self.spaces[space].to_come {
                let at = before(&mut self.dice);
                self.schedule(at, Event::Publish { space });
            }
        }
        if 0 < faults {
            let at = before(&mut self.dice);
            self.schedule(at, Event::Rearrange);
        }
        // At `end`, all faults end.
        for member in 0..self.nodes.len() {
            self.schedule(end, Event::Restart { member });
        }
        for link in 0..self.links.len() {
            self.schedule(end, Event::Up { link });
        }
    }

    pub(crate) fn schedule(&mut self, after: Duration, event: Event) {
        self.count += 1;
        let key = self.count as usize;
        self.pending.insert(key, event);
        self.events.push(Reverse((self.now + after, self.count, key)));
    }

    /// Runs all events until this time.
    pub(crate) fn run(&mut self, until: Duration) {
        while let Some(Reverse((at, _, key))) = self.events.peek().copied() {
            if until < at {
                break;
            }
            self.events.pop();
            self.now = at;
            if let Some(event) = self.pending.remove(&key) {
                self.handle(event);
            }
        }
        self.now = until;
    }

    /// Returns the time of a member's own clock.
    pub(crate) fn clock(&self, member: usize) -> Duration {
        self.now * self.rates[member] / 100
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver { link, life, from, bytes } => self.deliver(link, life, from, &bytes),
            Event::Down { link, life } if life == u32::MAX || life == self.links[link].life => {
                self.cut(link);
            }
            Event::Down { .. } => {}
            Event::Up { link } => self.raise(link),
            Event::Crash { member } => self.crash(member),
            Event::Restart { member } => self.restart(member),
            Event::Switched { member, version, life } => {
                if life == self.lives[member] {
                    assert!(self.is_made(&version), "nobody has signed this version");
                    let now = self.clock(member);
                    self.switched[member] = self.now;
                    self.nodes[member].finish_switch(&version, now);
                    self.drain(member);
                }
            }
            Event::Publish { space } => self.publish(space),
            Event::Rearrange => {
                self.form_groups();
                self.form_links();
            }
            Event::Wake { member } => {
                if self.wakes[member] <= self.now && self.nodes[member].is_up {
                    let now = self.clock(member);
                    self.wakes[member] = Duration::MAX;
                    self.nodes[member].handle_timeout(now);
                    self.drain(member);
                }
            }
        }
    }

    fn deliver(&mut self, link: usize, life: u32, from: usize, bytes: &[u8]) {
        let Link { ends, life: alive, is_up, .. } = self.links[link];
        if !is_up || alive != life {
            return;
        }
        let to = ends[usize::from(ends[0] == from)];
        self.messages += 1;
        // An unreadable message closes the link.
        let Ok(message) = Message::from_bytes(bytes) else { return self.reset(link) };
        if let Message::Request(request) = &message {
            self.chunks_asked[to] += request.chunks.len();
        }
        let (id, now) = (self.nodes[from].id, self.clock(to));
        self.nodes[to].handle_message(id, message, now);
        self.drain(to);
    }

    fn is_made(&self, version: &Version) -> bool {
        self.spaces.iter().any(|it| it.made.contains(version))
    }

    pub(crate) fn crash(&mut self, member: usize) {
        if !self.nodes[member].is_up {
            return;
        }
        self.links_of[member].clone().into_iter().for_each(|it| self.cut(it));
        self.lives[member] += 1;
        self.wakes[member] = Duration::MAX;
        self.nodes[member].crash(&mut self.dice);
    }

    pub(crate) fn restart(&mut self, member: usize) {
        if self.nodes[member].is_up {
            return;
        }
        let now = self.clock(member);
        self.nodes[member].restart(now);
        self.drain(member);
        self.links_of[member].clone().into_iter().for_each(|it| self.raise(it));
    }

    /// Returns the number of a member's neighbors in the trees of its groups.
    pub(crate) fn tree_neighbors(&self, member: usize) -> usize {
        self.nodes[member].tree().len()
    }

    pub(crate) fn publish(&mut self, space: usize) {
        let before = self.spaces[space].last.as_ref().map(|it| it.number).unwrap_or_default();
        let number = Number { epoch: before.epoch, sequence: before.sequence + 1 };
        self.publish_as(space, number);
    }

    fn publish_as(&mut self, space: usize, number: Number) {
        let SimulatedSpace { origin, .. } = self.spaces[space];
        if !self.nodes[origin].is_up {
            return;
        }
        let SimulatedSpace { name, last, made, chunks, .. } = &mut self.spaces[space];
        // Some chunks stay, some are removed, some are new.
        chunks.retain(|_| self.dice.u8(..) < 200);
        let (count, lengths) = self.sizes.clone();
        for _ in 0..self.dice.usize(count) {
            let length = self.dice.usize(lengths.clone());
            chunks.push((0..length).map(|_| self.dice.u8(..)).collect());
        }
        let version = self.nodes[origin].make(name, number, chunks);
        *last = Some(version.clone());
        made.push(version.clone());
        let now = self.clock(origin);
        self.nodes[origin].publish(&version, now);
        self.drain(origin);
    }

    /// Has an origin sign two different next versions: one for some neighbors, the other for all.
    pub(crate) fn equivocate(&mut self, space: usize) {
        let SimulatedSpace { origin, ref name, ref last, ref groups, .. } = self.spaces[space];
        let before = last.as_ref().map(|it| it.number).unwrap_or_default();
        let number = Number { epoch: before.epoch, sequence: before.sequence + 1 };
        let (name, group, here) =
            (name.clone(), GroupId(groups[0] as u64), self.groups[groups[0]].clone());
        let other = self.nodes[origin].make(&name, number, &[vec![1, 2, 3]]);
        let route = Route { distance: 0, entry: self.nodes[origin].id };
        let message = Message::Announce(Announcement::new(group, route, &other));
        self.spaces[space].made.push(other);
        let mut neighbors = self.nodes[origin].neighbors();
        neighbors.retain(|it| here.contains(&self.members_of[it]));
        let count = self.dice.usize(1..=neighbors.len());
        for to in neighbors.iter().take(count) {
            self.send(origin, self.members_of[to], &message);
        }
        self.publish(space);
    }

    /// Has an origin go on in the next epoch.
    pub(crate) fn publish_anew(&mut self, space: usize) {
        if let Some(last) = &self.spaces[space].last {
            let epoch = last.number.epoch + 1;
            self.publish_as(space, Number { epoch, sequence: 0 });
        }
    }

    /// Sends a member's messages, and plans its next wake-up.
    pub(crate) fn drain(&mut self, member: usize) {
        if !self.nodes[member].is_up {
            return;
        }
        for version in std::mem::take(&mut self.nodes[member].switches) {
            let after = Duration::from_millis(self.dice.u64(1..50));
            let life = self.lives[member];
            self.schedule(after, Event::Switched { member, version, life });
        }
        for (to, message) in std::mem::take(&mut self.nodes[member].sent) {
            let node = (self.nodes[member].id, &self.nodes[member].replica);
            let past = &mut self.past[member];
            for message in self.conduct[member].spoil(node, message, past, &mut self.dice) {
                self.chunks_sent[member] += usize::from(matches!(message, Message::Chunk(_)));
                self.send(member, self.members_of[&to], &message);
            }
        }
        // Rounded up, so that it is due by the member's own clock.
        let at = self.nodes[member].replica.poll_timeout();
        let at = (at * 100 / self.rates[member] + Duration::from_nanos(99)).max(self.now);
        if at < self.wakes[member] {
            self.wakes[member] = at;
            self.schedule(at - self.now, Event::Wake { member });
        }
    }
}
