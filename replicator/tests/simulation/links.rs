//! Links of the simulated world: their making, their delays, and the messages over them.

use std::collections::BTreeSet;
use std::time::Duration;

use replicator::fetch::Window;
use replicator::flood::Neighborhood;
use replicator::group::links::UPDATE_BYTES;
use replicator::id::{GroupId, MemberId};
use replicator::message::Message;
use replicator::topology::{self, Bounds, Connectivity, Costs, Topology};

use super::conduct::Conduct;
use super::world::{Event, World};

/// Window of a link that is not measured.
const NARROW: Window = Window { bytes: 2_000, chunks: 40 };

/// A line between two members: the round trip, and bytes a second.
pub(crate) type Line = (Duration, u64);

pub(crate) struct Link {
    pub ends: [usize; 2],
    delay: Duration,
    /// Bytes a second.
    bandwidth: u64,
    /// The time at which each direction is free again.
    free: [Duration; 2],
    pub is_up: bool,
    /// Number of cuts so far.
    pub life: u32,
}

impl World {
    /// Gives every group a topology, from the lines or from random costs.
    pub(crate) fn form_groups(&mut self) {
        for (at, group) in self.groups.clone().into_iter().enumerate() {
            let mut members: Vec<MemberId> = group.iter().map(|it| self.nodes[*it].id).collect();
            members.sort_unstable();
            let mut costs = Costs::new(members.len());
            for a in 0..members.len() {
                for b in 0..a {
                    costs.set(a, b, self.cost(members[a], members[b]));
                }
            }
            let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
            let here = self.spaces.iter().filter(|it| it.groups.contains(&at));
            let writers = here
                .map(|it| (it.namespace.clone(), self.nodes[it.origin].identity.public()))
                .collect();
            let neighborhood = Neighborhood { members, topology, writers };
            for member in group {
                let now = self.clock(member);
                self.nodes[member].set_group(GroupId(at as u64), neighborhood.clone(), now);
                self.drain(member);
            }
        }
    }

    fn cost(&mut self, one: MemberId, other: MemberId) -> u32 {
        match self.lines.get(&self.ends(self.members_of[&one], self.members_of[&other])) {
            Some((round_trip, bandwidth)) => topology::cost(*round_trip, *bandwidth, UPDATE_BYTES),
            None => self.dice.u32(1..1_000),
        }
    }

    fn ends(&self, one: usize, other: usize) -> [usize; 2] {
        [one.min(other), one.max(other)]
    }

    /// Makes links between all present neighbors, and closes the others.
    pub(crate) fn form_links(&mut self) {
        let mut wanted = BTreeSet::new();
        for a in 0..self.nodes.len() {
            let neighbors = self.nodes[a].neighbors();
            wanted.extend(neighbors.iter().map(|it| self.ends(a, self.members_of[it])));
        }
        for link in 0..self.links.len() {
            if !wanted.contains(&self.links[link].ends) {
                self.cut(link);
            }
        }
        for ends in wanted {
            let known = self.between.get(&ends).copied();
            let link = known.unwrap_or_else(|| self.lay(ends));
            self.schedule(Duration::ZERO, Event::Up { link });
        }
    }

    fn lay(&mut self, ends: [usize; 2]) -> usize {
        let (delay, bandwidth) = match self.lines.get(&ends) {
            Some((round_trip, bandwidth)) => (*round_trip / 2, *bandwidth),
            None => (Duration::from_millis(self.dice.u64(1..120)), self.dice.u64(2_000..200_000)),
        };
        let link = self.links.len();
        let (free, is_up, life) = ([Duration::ZERO; 2], false, 0);
        self.links.push(Link { ends, delay, bandwidth, free, is_up, life });
        self.between.insert(ends, link);
        ends.iter().for_each(|it| self.links_of[*it].push(link));
        link
    }

    pub(crate) fn reset(&mut self, link: usize) {
        self.cut(link);
        self.schedule(Duration::from_secs(1), Event::Up { link });
    }

    pub(crate) fn cut(&mut self, link: usize) {
        if !std::mem::take(&mut self.links[link].is_up) {
            return;
        }
        self.links[link].life += 1;
        let [a, b] = self.links[link].ends;
        for (from, to) in [(a, b), (b, a)] {
            let id = self.nodes[to].id;
            if self.nodes[from].is_up {
                let now = self.clock(from);
                self.nodes[from].handle_down(id, now);
                self.drain(from);
            }
        }
    }

    pub(crate) fn raise(&mut self, link: usize) {
        let [a, b] = self.links[link].ends;
        let is_wanted = self.nodes[a].neighbors().contains(&self.nodes[b].id);
        let are_up = self.nodes[a].is_up && self.nodes[b].is_up;
        if self.links[link].is_up || !are_up || !is_wanted {
            return;
        }
        self.links[link].is_up = true;
        self.links[link].free = [self.now; 2];
        let line = self.lines.get(&[a, b]);
        let window = line.map_or(NARROW, |it| Window::of(it.0, it.1));
        for (from, to) in [(a, b), (b, a)] {
            let id = self.nodes[to].id;
            let now = self.clock(from);
            self.nodes[from].handle_up(id, window, now);
            self.drain(from);
        }
    }

    /// Sends a message over the link to a member, if it is up.
    pub(crate) fn send(&mut self, from: usize, to: usize, message: &Message) {
        let link = self.between.get(&self.ends(from, to)).copied();
        let Some(link) = link.filter(|it| self.links[*it].is_up) else { return };
        let bytes = message.to_bytes();
        let sent = self.sent.entry(bytes[0]).or_default();
        *sent = (sent.0 + 1, sent.1 + bytes.len() as u64);
        let it = &mut self.links[link];
        let is_slow = self.conduct[from] == Conduct::Slow && matches!(message, Message::Chunk(_));
        // A member that sends chunks slowly sends other messages in between.
        let (free, bandwidth) = if is_slow {
            (self.slow.entry((from, to)).or_default(), 1)
        } else {
            (&mut it.free[usize::from(from > to)], it.bandwidth)
        };
        *free = (*free).max(self.now)
            + Duration::from_micros(bytes.len() as u64 * 1_000_000 / bandwidth);
        let (after, life) = (*free + it.delay - self.now, it.life);
        self.schedule(after, Event::Deliver { link, life, from, bytes });
    }
}
