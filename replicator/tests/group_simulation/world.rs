//! A simulated world of members, connections, faults and time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use replicator::group::charter::Charter;
use replicator::group::{Action, Alarm, Group, Message};
use replicator::id::MemberId;
use replicator::version::{Name, Namespace, Number};

use super::liar;
use super::links::{Connection, DEAD, KEPT};
use super::member::{Conduct, Member};

/// Time for which no links to a liar are made.
const SHUNNED: Duration = Duration::from_mins(1);

pub(crate) enum Event {
    Wake { member: usize },
    Dial { from: usize, to: usize, life: u32 },
    Dialed { from: usize, to: usize, life: u32 },
    Deliver { connection: usize, to: usize, message: Message },
    Lost { connection: usize, at: usize },
    Answered { from: usize, to: usize, life: u32, took: Option<Duration>, probe: bool },
    Tidy { member: usize, life: u32 },
    Start { member: usize },
    Crash { member: usize, is_torn: bool, is_disk_lost: bool },
    CrashLeader { until: Duration },
    RestartAll,
    Pause { member: usize, until: Duration },
    Stalled { member: usize },
    Resume { member: usize },
    Part { sides: Vec<u8> },
    Cut { pair: [usize; 2], is_cut: bool },
    Break { pair: [usize; 2] },
    ChangeSettings { member: usize },
    Hold { member: usize },
}

struct ScheduledEvent(Duration, u64, Event);

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for ScheduledEvent {}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

pub(crate) struct World {
    pub dice: Rng,
    pub now: Duration,
    pub members: Vec<Member>,
    pub places: BTreeMap<MemberId, usize>,
    /// Round trip and bytes a second, by pair.
    pub pairs: BTreeMap<[usize; 2], (Duration, u64)>,
    /// Pairs that can never connect.
    pub blocked: BTreeSet<[usize; 2]>,
    /// Pairs that cannot connect now.
    cut: BTreeSet<[usize; 2]>,
    sides: Vec<u8>,
    /// Percent of calls that are not answered.
    pub loss: u8,
    /// Queues lengthen a round trip by at most this share of it.
    pub queues: f64,
    /// Messages over links and their bytes, by kind.
    pub traffic: BTreeMap<&'static str, (u64, u64)>,
    pub connections: Vec<Connection>,
    events: BinaryHeap<Reverse<ScheduledEvent>>,
    count: u64,
    /// Members that must not be in the group.
    pub denied: BTreeSet<MemberId>,
    /// The last sequence of a member that an observer has heard, in one life of the observer.
    pub seen: BTreeMap<(usize, u32, MemberId), u64>,
    /// The member whose actions are printed, with the alarms of all.
    pub traced: Option<usize>,
}

pub(crate) fn pair(a: usize, b: usize) -> [usize; 2] {
    [a.min(b), a.max(b)]
}

impl World {
    pub(crate) fn with(
        dice: Rng,
        members: Vec<Member>,
        pairs: BTreeMap<[usize; 2], (Duration, u64)>,
    ) -> Self {
        let places = members.iter().enumerate().map(|(at, it)| (it.id, at)).collect();
        Self {
            dice,
            now: Duration::ZERO,
            places,
            pairs,
            blocked: BTreeSet::new(),
            cut: BTreeSet::new(),
            sides: vec![0; members.len()],
            loss: 0,
            queues: 0.5,
            traffic: BTreeMap::new(),
            connections: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            denied: BTreeSet::new(),
            seen: BTreeMap::new(),
            traced: std::env::var("HARVEST_REPLICATION_TRACE").ok().map(|it| it.parse().unwrap()),
            members,
        }
    }

    pub(crate) fn schedule(&mut self, at: Duration, event: Event) {
        self.count += 1;
        self.events.push(Reverse(ScheduledEvent(at.max(self.now), self.count, event)));
    }

    pub(crate) fn run(&mut self, until: Duration) {
        while self.events.peek().is_some_and(|it| it.0.0 <= until) {
            let Some(Reverse(ScheduledEvent(at, _, event))) = self.events.pop() else { break };
            self.now = at;
            self.handle(event);
        }
        self.now = until;
    }

    pub(crate) fn is_reachable(&self, a: usize, b: usize) -> bool {
        let pair = pair(a, b);
        self.members[a].is_up()
            && self.members[b].is_up()
            && self.sides[a] == self.sides[b]
            && !self.cut.contains(&pair)
            && !self.blocked.contains(&pair)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake { member } => self.wake(member),
            Event::Dial { from, to, life } => self.dial(from, to, life),
            Event::Dialed { from, to, life } => self.dialed(from, to, life),
            Event::Deliver { connection, to, message } => self.deliver(connection, to, message),
            Event::Lost { connection, at } => self.lose(connection, at),
            Event::Answered { from, to, life, took, probe } => {
                if self.members[from].life == life {
                    self.answer(from, to, took, probe);
                }
            }
            Event::Tidy { member, life } => self.tidy(member, life),
            Event::Start { member } => self.start(member),
            Event::Crash { member, is_torn, is_disk_lost } => {
                if is_torn && self.members[member].is_up() {
                    self.members[member].doom = Some(self.dice.usize(1..6));
                } else {
                    self.crash(member);
                }
                if is_disk_lost && !self.members[member].is_up() {
                    self.lose_disk(member);
                }
            }
            Event::CrashLeader { until } => {
                let leads = |it: &Member| it.group.as_ref().is_some_and(Group::is_leader);
                if let Some(member) = self.members.iter().position(leads) {
                    self.crash(member);
                    self.schedule(until, Event::Start { member });
                }
            }
            Event::RestartAll => self.restart_all(),
            Event::Pause { member, until } => {
                if self.members[member].is_up() {
                    self.members[member].paused = Some(until);
                    self.schedule(until, Event::Resume { member });
                    self.schedule(self.now + DEAD, Event::Stalled { member });
                }
            }
            Event::Stalled { member } => {
                if self.members[member].paused.is_some() {
                    self.kill(|_, ends| ends.contains(&member));
                }
            }
            Event::Resume { member } => {
                self.members[member].paused = None;
                self.wake(member);
            }
            Event::Part { sides } => {
                self.sides = sides;
                self.kill(|it, [a, b]| it.sides[a] != it.sides[b]);
            }
            Event::Cut { pair, is_cut: true } => {
                self.cut.insert(pair);
                self.kill(|_, it| it == pair);
            }
            Event::Cut { pair, is_cut: false } => drop(self.cut.remove(&pair)),
            Event::Break { pair } => self.kill(|_, it| it == pair),
            Event::ChangeSettings { member } => self.change_settings(member),
            Event::Hold { member } => self.hold(member),
        }
    }

    /// Calls a member's state machine, and does its actions.
    pub(crate) fn call(&mut self, member: usize, call: impl FnOnce(&mut Group, Duration)) {
        let now = self.members[member].clock(self.now);
        let it = &mut self.members[member];
        let time_of_day = it.time_of_day(self.now);
        if let Some(group) = &mut it.group {
            group.handle_clock(time_of_day, now);
            group.handle_held(it.held.iter().map(|(of, number)| (of, *number)), now);
            call(group, now);
        }
        self.act(member);
    }

    fn wake(&mut self, member: usize) {
        let it = &mut self.members[member];
        if it.wake <= self.now && it.paused.is_none() {
            it.wake = Duration::MAX;
            let clock = it.clock(self.now);
            if it.group.as_ref().is_some_and(|it| it.poll_timeout() <= clock) {
                self.call(member, Group::handle_timeout);
            } else {
                self.act(member);
            }
        }
    }

    /// Starts a member that does not run.
    pub(crate) fn start(&mut self, member: usize) {
        let it = &mut self.members[member];
        if it.is_up() || it.is_gone || (it.kept.is_none() && it.invitation.is_none()) {
            return;
        }
        let before = it.incarnation();
        it.open(self.now);
        let life = it.life;
        self.renew(member);
        self.act(member);
        assert!(before < self.members[member].incarnation(), "{member} forgets its incarnation");
        self.schedule(self.now + KEPT / 2, Event::Tidy { member, life });
    }

    pub(crate) fn crash(&mut self, member: usize) {
        self.members[member].stop();
        // Some members notice at once, others after a time-out.
        self.kill(|_, ends| ends.contains(&member));
    }

    pub(crate) fn restart_all(&mut self) {
        let all = 0..self.members.len();
        let running: Vec<usize> = all.filter(|it| self.members[*it].is_up()).collect();
        running.iter().for_each(|it| self.crash(*it));
        for member in running {
            let after = Duration::from_millis(self.dice.u64(..3_000));
            self.schedule(self.now + after, Event::Start { member });
        }
    }

    /// Deletes a member's disk; its administrator gets an invitation by another member.
    fn lose_disk(&mut self, member: usize) {
        let is_near = |it: usize| it != member && !self.blocked.contains(&pair(it, member));
        let others = self.members.iter().enumerate().filter(|it| is_near(it.0));
        let groups = others.filter_map(|it| it.1.group.as_ref());
        let settled: Vec<&Group> = groups.filter(|it| it.is_member()).collect();
        let secret = self.members[member].invitation.as_ref().and_then(|it| it.secret);
        let mut invitation = None;
        if !settled.is_empty() {
            let group = settled[self.dice.usize(..settled.len())];
            invitation = group.invitation(secret);
            // The invitation names that member's address.
            if let (Some(it), Some(body)) = (&mut invitation, group.charter().map(|it| it.body())) {
                let here = body.member(group.me()).unwrap();
                (it.address, it.key) = (here.address.clone(), *here.key());
            }
        }
        if let Some(invitation) = invitation {
            self.members[member].invitation = Some(invitation);
            self.members[member].kept = None;
        }
    }

    fn deliver(&mut self, connection: usize, to: usize, message: Message) {
        let from = self.other(connection, to);
        let is_up = self.connections[connection].is_alive
            && self.members[to].links.get(&from) == Some(&connection);
        if !is_up {
            return;
        }
        if let Some(until) = self.members[to].paused {
            return self.schedule(until, Event::Deliver { connection, to, message });
        }
        if self.members[to].conduct == Conduct::Liar {
            liar::remember(&mut self.members[to], &message, &mut self.dice);
        }
        let id = self.members[from].id;
        self.call(to, |group, now| match message {
            Message::Charter(bytes) => group.handle_charter(id, &bytes, now),
            Message::Row(bytes) => group.handle_row(id, &bytes, now),
            Message::Join(bytes) => group.handle_join(id, None, &bytes, now),
            Message::Refused(bytes) => group.handle_refused(id, &bytes, now),
        });
    }

    fn answer(&mut self, from: usize, to: usize, took: Option<Duration>, probe: bool) {
        let id = self.members[to].id;
        let bandwidth = self.pairs[&pair(from, to)].1;
        self.call(from, |group, now| match took {
            Some(took) => {
                group.handle_round_trip(id, took, now);
                if probe {
                    group.handle_probe(id, bandwidth, now);
                }
            }
            None => group.handle_unanswered(id, now),
        });
    }

    fn act(&mut self, member: usize) {
        while let Some(action) = self.members[member].group.as_mut().and_then(Group::poll_action) {
            if let Some(left) = &mut self.members[member].doom {
                *left -= 1;
                if *left == 0 {
                    return self.crash(member);
                }
            }
            if self.traced == Some(member) {
                eprintln!("{:?} {member}: {action:?}", self.now);
            }
            match action {
                Action::Persist(bytes) => {
                    self.members[member].kept = Some(bytes);
                }
                Action::Send { to, message } => {
                    let to = to.iter().map(|it| self.places[it]).collect::<Vec<_>>();
                    to.into_iter().for_each(|it| self.send(member, it, &message));
                }
                Action::Connect { key, .. } => {
                    self.connect(member, self.places[&MemberId::of(&key)]);
                }
                Action::Measure { member: to, probe } => {
                    self.measure(member, self.places[&to], probe);
                }
                Action::NewCharter => self.renew(member),
                Action::CloseLink(other) => {
                    let other = self.places[&other];
                    if let Some(connection) = self.members[member].links.get(&other) {
                        self.close(*connection);
                    }
                }
                Action::Admitted => {}
                Action::Refused(reason) => {
                    if self.traced.is_some() {
                        eprintln!("{:?} {member}: refused, {reason}", self.now);
                    }
                }
                Action::Alarm(alarm) => self.alarm(member, alarm),
            }
        }
        let it = &mut self.members[member];
        if let Some(group) = &it.group {
            let at = it.world_time(group.poll_timeout()).max(self.now);
            if at < it.wake {
                it.wake = at;
                self.schedule(at, Event::Wake { member });
            }
        }
    }

    fn alarm(&mut self, member: usize, alarm: Alarm) {
        if self.traced.is_some() {
            eprintln!("{:?} {member}: {alarm}", self.now);
        }
        if let Alarm::Lied(by) = alarm {
            *self.members[member].accused.entry(by).or_default() += 1;
            let by = self.places[&by];
            if let Some(connection) = self.members[member].links.get(&by) {
                self.close(*connection);
            }
            if let Some(wanted) = self.members[member].wanted.get_mut(&by) {
                wanted.pause = SHUNNED;
            }
        }
    }

    fn connect(&mut self, from: usize, to: usize) {
        let it = &mut self.members[from];
        it.once.insert(to, self.now + KEPT);
        let life = it.life;
        self.schedule(self.now, Event::Dial { from, to, life });
    }

    fn measure(&mut self, from: usize, to: usize, probe: bool) {
        let is_lost = self.dice.u8(..100) < self.loss || self.members[to].paused.is_some();
        let life = self.members[from].life;
        self.count_call();
        let (round_trip, _) = self.pairs[&pair(from, to)];
        let mut took = None;
        let mut after = Duration::from_secs(2);
        if self.is_reachable(from, to) && !is_lost {
            // Queues only lengthen a round trip.
            after = round_trip.mul_f64(1.0 + self.dice.f64() * self.queues);
            took = Some(after);
        }
        if self.members[from].conduct == Conduct::Liar {
            took = took.map(|it| it.mul_f64(0.01 + 10.0 * self.dice.f64()));
        }
        self.schedule(self.now + after, Event::Answered { from, to, life, took, probe });
    }

    fn send(&mut self, from: usize, to: usize, message: &Message) {
        let is_liar = self.members[from].conduct == Conduct::Liar;
        let all = match is_liar {
            true => liar::spoil(&mut self.members[from], message, &mut self.dice),
            false => vec![message.clone()],
        };
        let Some(connection) = self.members[from].links.get(&to).copied() else { return };
        for message in all {
            self.count_message(from, &message);
            let jitter = Duration::from_micros(self.dice.u64(..3_000));
            let at = self.now + self.pairs[&pair(from, to)].0 / 2 + jitter;
            let way = usize::from(from > to);
            let last = &mut self.connections[connection].last[way];
            *last = at.max(*last);
            let at = *last;
            self.schedule(at, Event::Deliver { connection, to, message });
        }
    }

    /// Has a member's administrator change settings.
    fn change_settings(&mut self, member: usize) {
        let carried = super::plan::some_carried(&mut self.dice);
        let is_renamed = self.dice.bool();
        let it = &mut self.members[member];
        it.settings.carried = carried;
        // A part of a site may get another name; its lines stay the same.
        if is_renamed {
            let name = it.settings.site.to_string();
            let other = name.strip_suffix("-b").map_or_else(|| format!("{name}-b"), str::to_owned);
            it.settings.site = Name::new(&other).unwrap();
        }
        let settings = it.settings.clone();
        self.call(member, |group, now| group.handle_settings(settings, now));
    }

    /// Changes the version of a tree that readers of a member see, or removes it.
    fn hold(&mut self, member: usize) {
        let writer = self.members[self.dice.usize(..self.members.len())].id;
        let namespace = Namespace { origin: writer, name: Name::new("tree").unwrap() };
        let held = &mut self.members[member].held;
        if self.dice.u8(..8) == 0 {
            held.remove(&namespace);
        } else {
            let number = held.entry(namespace).or_insert(Number { epoch: 1, sequence: 0 });
            number.sequence += 1;
        }
    }

    pub(crate) fn heal(&mut self) {
        self.sides.fill(0);
        self.cut.clear();
        self.loss = 0;
        for member in 0..self.members.len() {
            self.members[member].doom = None;
            self.start(member);
        }
    }

    pub(crate) fn charter(&self, member: usize) -> Option<&Arc<Charter>> {
        self.members[member].group.as_ref()?.charter()
    }
}
