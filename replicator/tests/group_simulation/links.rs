//! Links of the simulated world: connecting, closing and losing them.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::member::Wanted;
use super::world::{Event, World, pair};

/// Maximum wait for a member that does not answer.
const DIAL_MAX: Duration = Duration::from_secs(5);
/// Longest time without messages after which a link is given up.
pub(crate) const DEAD: Duration = Duration::from_secs(15);
/// Time for which a link to a member that is not a neighbor is kept.
pub(crate) const KEPT: Duration = Duration::from_mins(1);
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(2);

pub(crate) struct Connection {
    pub ends: [usize; 2],
    dialer: usize,
    pub is_alive: bool,
    /// Time of the last arrival in each direction, which keeps the order.
    pub last: [Duration; 2],
}

impl World {
    /// Ends connections without notice.
    pub(crate) fn kill(&mut self, is_killed: impl Fn(&Self, [usize; 2]) -> bool) {
        for connection in 0..self.connections.len() {
            let ends = self.connections[connection].ends;
            if self.connections[connection].is_alive && is_killed(self, ends) {
                self.connections[connection].is_alive = false;
                for at in ends {
                    let after = match self.dice.bool() {
                        true => Duration::from_millis(self.dice.u64(1..100)),
                        false => Duration::from_millis(self.dice.u64(100..DEAD.as_millis() as u64)),
                    };
                    self.schedule(self.now + after, Event::Lost { connection, at });
                }
            }
        }
    }

    /// Closes a connection; both ends notice it soon.
    pub(crate) fn close(&mut self, connection: usize) {
        if std::mem::take(&mut self.connections[connection].is_alive) {
            for at in self.connections[connection].ends {
                let after = Duration::from_millis(self.dice.u64(1..50));
                self.schedule(self.now + after, Event::Lost { connection, at });
            }
        }
    }

    pub(crate) fn other(&self, connection: usize, at: usize) -> usize {
        let [a, b] = self.connections[connection].ends;
        if a == at { b } else { a }
    }

    pub(crate) fn lose(&mut self, connection: usize, at: usize) {
        let other = self.other(connection, at);
        if self.members[at].links.get(&other) != Some(&connection) {
            return;
        }
        if let Some(until) = self.members[at].paused {
            return self.schedule(until, Event::Lost { connection, at });
        }
        self.members[at].links.remove(&other);
        let id = self.members[other].id;
        self.call(at, |group, now| group.handle_link_down(id, now));
        self.want(at, other);
    }

    /// Plans the next attempt to connect to a wanted member.
    fn want(&mut self, from: usize, to: usize) {
        let it = &mut self.members[from];
        let Some(wanted) = it.wanted.get_mut(&to).filter(|_| !it.links.contains_key(&to)) else {
            return;
        };
        let pause = wanted.pause;
        wanted.pause = (pause * 2).min(PAUSE_MAX);
        let life = it.life;
        let after = pause / 2 + pause.mul_f64(self.dice.f64() / 2.0);
        self.schedule(self.now + after, Event::Dial { from, to, life });
    }

    /// Makes a member want links to exactly its neighbors.
    pub(crate) fn renew(&mut self, member: usize) {
        let Some(group) = &self.members[member].group else { return };
        let places = group.neighbors().filter_map(|it| self.places.get(&it.id()).copied());
        let neighbors: BTreeSet<usize> = places.collect();
        let it = &mut self.members[member];
        it.wanted.retain(|to, _| neighbors.contains(to));
        let life = it.life;
        for to in neighbors {
            if let Entry::Vacant(entry) = self.members[member].wanted.entry(to) {
                entry.insert(Wanted { pause: PAUSE_MIN });
                self.schedule(self.now, Event::Dial { from: member, to, life });
            }
        }
    }

    /// Closes links that a member has dialed and does not want any more.
    pub(crate) fn tidy(&mut self, member: usize, life: u32) {
        if self.members[member].life != life {
            return;
        }
        let now = self.now;
        self.members[member].once.retain(|_, until| now < *until);
        let it = &self.members[member];
        let unwanted = it.links.iter().filter(|(to, connection)| {
            self.connections[**connection].dialer == member
                && !it.wanted.contains_key(to)
                && !it.once.contains_key(to)
        });
        let unwanted: Vec<usize> = unwanted.map(|it| *it.1).collect();
        unwanted.into_iter().for_each(|it| self.close(it));
        self.schedule(now + KEPT / 2, Event::Tidy { member, life });
    }

    pub(crate) fn dial(&mut self, from: usize, to: usize, life: u32) {
        let it = &self.members[from];
        let is_wanted = it.wanted.contains_key(&to) || it.once.contains_key(&to);
        if it.life == life && is_wanted && !it.links.contains_key(&to) {
            let takes = match self.is_reachable(from, to) {
                true => self.pairs[&pair(from, to)].0 * 2,
                false => DIAL_MAX.mul_f64(self.dice.f64()),
            };
            self.schedule(self.now + takes, Event::Dialed { from, to, life });
        }
    }

    pub(crate) fn dialed(&mut self, from: usize, to: usize, life: u32) {
        if self.members[from].life != life || self.members[from].links.contains_key(&to) {
            return;
        }
        let is_there = [from, to].iter().all(|it| self.members[*it].paused.is_none());
        if !is_there || !self.is_reachable(from, to) {
            let id = self.members[to].id;
            self.call(from, |group, now| group.handle_link_down(id, now));
            return self.want(from, to);
        }
        let connection = self.connections.len();
        let last = [self.now; 2];
        let ends = pair(from, to);
        self.connections.push(Connection { ends, dialer: from, is_alive: true, last });
        for (at, other) in [(from, to), (to, from)] {
            // This end may not have noticed that an older connection was lost.
            if let Some(old) = self.members[at].links.insert(other, connection) {
                self.connections[old].is_alive = false;
            }
            if let Some(wanted) = self.members[at].wanted.get_mut(&other) {
                wanted.pause = PAUSE_MIN;
            }
            let id = self.members[other].id;
            self.call(at, |group, now| group.handle_link_up(id, now));
        }
    }
}
