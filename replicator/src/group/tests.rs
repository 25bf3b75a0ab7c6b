//! Tests of a group: a few members on links that never fail.

mod carried;
mod circle;
mod gone;
mod holding;
mod inviting;
mod measuring;

use std::collections::BTreeMap;

use super::join::Reason;
use super::*;
use crate::group::access::{Access, Rule};
use crate::group::charter::Address;
use crate::group::charter::GroupTree;
use crate::version::{Namespace, Number};

/// Members that reach each other at once, unless they are cut off.
struct TestNet {
    now: Duration,
    groups: BTreeMap<MemberId, Group>,
    saved: BTreeMap<MemberId, Vec<u8>>,
    links: Vec<(MemberId, MemberId)>,
    alarms: Vec<Alarm>,
    /// Members that are cut off from all others, but not from each other.
    cut: Vec<MemberId>,
    /// Members that have links, but do not answer calls.
    mute: Vec<MemberId>,
    /// Probes: by whom, of whom, and when.
    probes: Vec<(MemberId, MemberId, Duration)>,
    /// Versions that readers see at each member.
    held: BTreeMap<MemberId, BTreeMap<Namespace, Number>>,
    /// All requests of members, as sent.
    joins: Vec<(MemberId, Arc<[u8]>)>,
    /// Refused members, with the reasons.
    refused: Vec<(MemberId, Reason)>,
    /// Links to close: by whom, and to whom.
    parted: Vec<(MemberId, MemberId)>,
}

fn identity(seed: u8) -> Arc<Identity> {
    Arc::new(Identity::of(&[seed; 32]).unwrap())
}

fn id(seed: u8) -> MemberId {
    MemberId::of(&identity(seed).public())
}

fn settings(seed: u8, access: Option<Access>) -> Settings {
    Settings {
        address: Address::new(&format!("host-{seed}:4000")).unwrap(),
        site: Name::new("here").unwrap(),
        trees: vec![(Name::new("tree").unwrap(), crate::version::Kind::Tree)],
        carried: Vec::new(),
        connectivity: None,
        deputies: Vec::new(),
        access,
    }
}

impl TestNet {
    /// Member 1 founds a group, and the others up to `count` join it.
    fn new(count: u8) -> Self {
        Self::of(&(1..=count).collect::<Vec<u8>>(), 1)
    }

    /// The same, with the members spread over `sites` sites.
    fn in_sites(count: u8, sites: u8) -> Self {
        Self::of(&(1..=count).collect::<Vec<u8>>(), sites)
    }

    /// The first member founds a group, and the others join it.
    fn of(seeds: &[u8], sites: u8) -> Self {
        let settings = |seed: u8, access: Option<Access>| Settings {
            site: Name::new(&format!("site-{}", seed % sites)).unwrap(),
            ..settings(seed, access)
        };
        let (first, others) = (seeds[0], &seeds[1..]);
        let allow = seeds.iter().map(|it| Rule::Member(id(*it))).collect();
        let settled = settings(first, Some(Access { allow, ..Access::default() }));
        let name = Name::new("group").unwrap();
        let founder = Group::found(identity(first), name, settled, Duration::ZERO).unwrap();
        let invitation = founder.invitation(None).unwrap();
        let mut groups = BTreeMap::from([(id(first), founder)]);
        for seed in others.iter().copied() {
            let invited = Some(invitation.clone());
            let group =
                Group::open(identity(seed), settings(seed, None), None, invited, Duration::ZERO);
            groups.insert(id(seed), group.unwrap());
        }
        Self {
            now: Duration::ZERO,
            groups,
            saved: BTreeMap::new(),
            links: Vec::new(),
            alarms: Vec::new(),
            cut: Vec::new(),
            mute: Vec::new(),
            probes: Vec::new(),
            held: BTreeMap::new(),
            joins: Vec::new(),
            refused: Vec::new(),
            parted: Vec::new(),
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(500);
            self.keep_links();
            let all: Vec<MemberId> = self.groups.keys().copied().collect();
            for member in all {
                let group = self.groups.get_mut(&member).unwrap();
                if group.poll_timeout() <= self.now {
                    let held = self.held.entry(member).or_default();
                    group.handle_held(held.iter().map(|(of, number)| (of, *number)), self.now);
                    group.handle_timeout(self.now);
                }
                self.act(member);
            }
        }
    }

    fn keep_links(&mut self) {
        let wanted: Vec<(MemberId, MemberId)> = self
            .groups
            .iter()
            .flat_map(|(id, it)| it.neighbors().map(|other| (*id, other.id())))
            .collect();
        for (a, b) in wanted {
            self.link(a, b);
        }
    }

    fn link(&mut self, a: MemberId, b: MemberId) {
        let ends = (a.min(b), a.max(b));
        let now = self.now;
        if !self.groups.contains_key(&b) || self.is_cut(a, b) {
            self.groups.get_mut(&a).unwrap().handle_link_down(b, now);
        } else if a != b && !self.links.contains(&ends) {
            self.links.push(ends);
            for (from, to) in [(a, b), (b, a)] {
                self.groups.get_mut(&from).unwrap().handle_link_up(to, now);
            }
        }
    }

    fn act(&mut self, first: MemberId) {
        let mut queue = VecDeque::from([first]);
        while let Some(member) = queue.pop_front() {
            let now = self.now;
            while let Some(action) = self.groups.get_mut(&member).and_then(Group::poll_action) {
                match action {
                    Action::Persist(state) => drop(self.saved.insert(member, state)),
                    Action::Send { to, message } => {
                        if let Message::Join(bytes) = &message
                            && bytes.first() == Some(&0)
                        {
                            self.joins.push((member, Arc::clone(bytes)));
                        }
                        for to in to {
                            self.deliver(member, to, &message);
                            queue.push_back(to);
                        }
                    }
                    Action::Connect { key, .. } => {
                        let to = MemberId::of(&key);
                        self.link(member, to);
                        queue.push_back(to);
                    }
                    Action::Measure { member: to, probe } => {
                        let is_there = self.groups.contains_key(&to)
                            && !self.is_cut(member, to)
                            && !self.mute.contains(&to);
                        let group = self.groups.get_mut(&member).unwrap();
                        if is_there {
                            group.handle_round_trip(to, Duration::from_millis(10), now);
                            if probe {
                                group.handle_probe(to, 1_000_000, now);
                                self.probes.push((member, to, now));
                            }
                        } else {
                            group.handle_unanswered(to, now);
                        }
                    }
                    Action::Alarm(alarm) => self.alarms.push(alarm),
                    Action::Refused(reason) => self.refused.push((member, reason)),
                    Action::CloseLink(other) => self.parted.push((member, other)),
                    Action::NewCharter | Action::Admitted => {}
                }
            }
        }
    }

    fn deliver(&mut self, from: MemberId, to: MemberId, message: &Message) {
        let now = self.now;
        let is_up = self.links.contains(&(from.min(to), from.max(to)));
        let Some(group) = self.groups.get_mut(&to).filter(|_| is_up) else { return };
        match message {
            Message::Charter(bytes) => group.handle_charter(from, bytes, now),
            Message::Row(bytes) => group.handle_row(from, bytes, now),
            Message::Join(bytes) => group.handle_join(from, None, bytes, now),
            Message::Refused(bytes) => group.handle_refused(from, bytes, now),
        }
    }

    fn is_cut(&self, a: MemberId, b: MemberId) -> bool {
        self.cut.contains(&a) != self.cut.contains(&b)
    }

    fn kill(&mut self, member: MemberId) {
        self.groups.remove(&member);
        self.break_links(|_, a, b| a == member || b == member);
    }

    fn break_links(&mut self, is_broken: impl Fn(&Self, MemberId, MemberId) -> bool) {
        let (gone, saved) = self.links.iter().partition(|it| is_broken(self, it.0, it.1));
        self.links = saved;
        let gone: Vec<(MemberId, MemberId)> = gone;
        for (a, b) in gone {
            for (from, to) in [(a, b), (b, a)] {
                if let Some(group) = self.groups.get_mut(&from) {
                    group.handle_link_down(to, self.now);
                }
            }
        }
    }

    /// Returns the charter that all members have.
    #[track_caller]
    fn charter(&self) -> Arc<Charter> {
        let members = self.groups.values().filter(|it| it.is_member());
        let mut all = members.map(|it| it.charter().unwrap());
        let first = all.next().unwrap();
        for it in all {
            assert_eq!((it.epoch(), it.revision()), (first.epoch(), first.revision()));
            assert_eq!(it, first);
        }
        Arc::clone(first)
    }
}

const MINUTE: Duration = Duration::from_mins(1);

#[test]
fn allowed_members_join_and_all_have_the_same_charter() {
    let mut net = TestNet::new(6);
    net.run(3 * MINUTE);
    let charter = net.charter();
    assert_eq!((charter.body().members.len(), charter.body().trees.len()), (6, 6));
    assert_eq!(charter.body().topology.tree().len(), 5);
    assert_eq!(charter.deputies().len(), 2);
    for group in net.groups.values() {
        assert!(group.is_member() && 2 <= group.neighbors().count());
        assert_eq!(group.computed().as_ref(), Some(&charter.body().topology));
    }
    assert_eq!(net.alarms, []);
}

#[test]
fn a_deputy_takes_over_and_a_dead_member_loses_its_links() {
    let mut net = TestNet::new(6);
    net.run(3 * MINUTE);
    let before = net.charter();
    net.kill(id(1));
    net.run(6 * MINUTE);
    let charter = net.charter();
    assert_eq!(charter.leader(), MemberId::of(&before.deputies()[0]));
    assert_eq!(charter.epoch(), before.epoch() + 1);
    assert!(charter.body().member(id(1)).unwrap().silent.is_some());
    assert_eq!(charter.neighbors(id(1)).count(), 0);
    assert_eq!(charter.body().topology.tree().len(), 4);
    // The dead member comes back with its saved state: it follows, and has links again.
    let saved = net.saved[&id(1)].clone();
    let back = Group::open(identity(1), settings(1, None), Some(&saved), None, net.now).unwrap();
    net.groups.insert(id(1), back);
    net.run(4 * MINUTE);
    let charter = net.charter();
    assert_eq!(charter.leader(), MemberId::of(&before.deputies()[0]));
    assert_eq!(charter.body().member(id(1)).unwrap().silent, None);
    assert!(2 <= charter.neighbors(id(1)).count());
}

#[test]
fn incarnations_rise_when_all_restart_at_once() {
    let mut net = TestNet::new(5);
    net.run(3 * MINUTE);
    net.links.clear();
    let (saved, now) = (net.saved.clone(), net.now);
    for seed in 1..=5 {
        let saved = Some(saved[&id(seed)].as_slice());
        let group = Group::open(identity(seed), settings(seed, None), saved, None, now).unwrap();
        net.groups.insert(id(seed), group);
    }
    net.run(6 * MINUTE);
    let charter = net.charter();
    assert!(charter.body().members.iter().all(|it| it.silent.is_none()));
    let heard = |seed: u8| net.groups[&id(1)].row_mark(id(seed)).unwrap();
    assert!((2..=5).all(|it| 2 << 32 <= heard(it).0));
    assert!(!net.alarms.iter().any(|it| matches!(it, Alarm::Lied(_))));
}

#[test]
fn parts_with_a_leader_each_merge_again() {
    let mut net = TestNet::new(7);
    net.run(3 * MINUTE);
    let before = net.charter();
    // Both deputies and a third member are cut off from the others, including the leader, and one
    // more member joins the leader's part.
    let deputies: Vec<MemberId> = before.deputies().iter().map(MemberId::of).collect();
    let third = (2..=7).map(id).find(|it| !deputies.contains(it)).unwrap();
    net.cut = [deputies, vec![third]].concat();
    net.break_links(TestNet::is_cut);
    let mut opened = settings(1, before.body().access.clone().into());
    opened.access.as_mut().unwrap().allow.push(Rule::Member(id(8)));
    let now = net.now;
    let founder = net.groups.get_mut(&id(1)).unwrap();
    founder.handle_settings(opened, now);
    let invitation = founder.invitation(None);
    let new = Group::open(identity(8), settings(8, None), None, invitation, now).unwrap();
    net.groups.insert(id(8), new);
    net.run(10 * MINUTE);
    let leader = |it: &TestNet, member: MemberId| it.groups[&member].charter().unwrap().leader();
    assert_eq!(leader(&net, id(1)), id(1));
    assert!(net.groups[&id(8)].is_member());
    assert_ne!(leader(&net, third), id(1));
    net.cut.clear();
    net.run(4 * MINUTE);
    let charter = net.charter();
    assert_eq!(
        (charter.leader(), charter.epoch()),
        (MemberId::of(&before.deputies()[0]), before.epoch() + 1)
    );
    let silent = charter.body().members.iter().filter(|it| it.silent.is_some()).count();
    assert_eq!(
        (silent, charter.body().topology.tree().len()),
        (0, charter.body().members.len() - 1)
    );
    // The old leader's settings do not apply until it leads again. Then they admit the new member.
    assert!(!net.groups[&id(8)].is_member());
    let now = net.now;
    let founder = net.groups.get_mut(&id(1)).unwrap();
    founder.lead(now).unwrap();
    net.run(6 * MINUTE);
    assert_eq!(net.charter().leader(), id(1));
    assert!(net.groups[&id(8)].is_member());
}

#[test]
fn a_member_that_did_not_answer_is_called_again_while_its_link_is_up() {
    let mut net = TestNet::new(3);
    net.mute = vec![id(2)];
    net.run(5 * MINUTE);
    assert!(net.groups[&id(1)].linked.contains_key(&id(2)));
    let round_trip = |it: &TestNet| it.groups[&id(1)].estimate(id(2)).unwrap().round_trip();
    assert_eq!(round_trip(&net), None);
    // Others are called as often as before.
    assert!(net.groups[&id(1)].estimate(id(3)).unwrap().round_trip().is_some());
    net.mute.clear();
    net.run(2 * MINUTE);
    assert!(round_trip(&net).is_some());
}

#[test]
fn a_member_that_has_lost_its_disk_asks_any_linked_member() {
    let mut net = TestNet::new(4);
    net.run(2 * MINUTE);
    // The member that its invitation names does not exist.
    let mut invitation = net.groups[&id(1)].invitation(None).unwrap();
    invitation.key = identity(99).public();
    net.kill(id(3));
    let now = net.now;
    let new = Group::open(identity(3), settings(3, None), None, Some(invitation), now).unwrap();
    net.groups.insert(id(3), new);
    net.run(2 * MINUTE);
    assert!(net.groups[&id(3)].is_member());
    assert_eq!(net.charter().body().member(id(3)).unwrap().silent, None);
}
