//! Does what the machines of the groups want done.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::core::Core;
use crate::config::{Entry, GroupConfig};
use crate::fetch::Window;
use crate::flood::Neighborhood;
use crate::group::charter::{Carried, Member};
use crate::group::join;
use crate::group::{self, Action, Alarm, Group};
use crate::id::{GroupId, MemberId};
use crate::link::frame::Reason;
use crate::link::{Link, Neighbor};
use crate::message::Message;
use crate::version::{Namespace, Version};

/// What a message to the machine of a group begins with.
const CHARTER: u8 = 0;
const ROW: u8 = 1;
const JOIN: u8 = 2;
const REFUSED: u8 = 3;

fn to_message(group: GroupId, message: &group::Message) -> Message {
    let (tag, bytes) = match message {
        group::Message::Charter(bytes) => (CHARTER, bytes),
        group::Message::Row(bytes) => (ROW, bytes),
        group::Message::Join(bytes) => (JOIN, bytes),
        group::Message::Refused(bytes) => (REFUSED, bytes),
    };
    Message::Group { group, bytes: [&[tag], bytes.as_ref()].concat() }
}

impl Core {
    pub(super) fn handle_group_action(&mut self, id: GroupId, action: Action) {
        let now = self.now();
        match action {
            Action::Persist(bytes) => match self.own.kept.put_group(id, &bytes) {
                Ok(()) => self.handle_kept(id, &bytes),
                Err(error) => {
                    self.notes.add(format!("what is known of a group is not kept: {error}"), now);
                }
            },
            Action::Send { to, message } => {
                let message = to_message(id, &message).to_bytes();
                for member in to {
                    self.links.send(member, message.clone().into());
                }
            }
            Action::Connect { key, address } => {
                let neighbor = Neighbor { address: address.to_string(), key: Some(key) };
                self.links.connect(neighbor);
            }
            Action::Measure { member, probe } => self.measure(id, member, probe, now),
            Action::NewCharter => self.handle_charter(id, now),
            Action::Part(member) => {
                if !self.is_member(member) && self.links.close(member, Reason::Denied) {
                    let name = self.own.group_name(id);
                    self.notes
                        .add(format!("group {name} denies {member}: its link is closed"), now);
                }
            }
            Action::Admitted => {
                self.notes.add(format!("in group {}", self.own.group_name(id)), now)
            }
            Action::Refused(reason) => {
                let name = self.own.group_name(id);
                self.notes.add(format!("group {name} does not let this member in: {reason}"), now);
            }
            Action::Alarm(alarm) => {
                self.notes.add(format!("group {}: {alarm}", self.own.group_name(id)), now);
                if let Alarm::Lied(member) = alarm {
                    self.links.close(member, Reason::Malformed);
                }
            }
        }
    }

    /// Lets go of the secret of the first invitation, once the charter that has it is on disk: state ends with that.
    fn handle_kept(&mut self, id: GroupId, state: &[u8]) {
        let charter = self.groups.get(&id).and_then(Group::charter);
        if charter.is_some_and(|it| state.ends_with(&it.to_bytes())) {
            self.forget_first(id);
        }
    }

    pub(super) fn handle_group_message(
        &mut self,
        link: &Link,
        id: GroupId,
        bytes: &[u8],
        now: Duration,
    ) {
        let from = link.member();
        let Some(group) = self.groups.get_mut(&id) else {
            if bytes.first() == Some(&JOIN) {
                let answer = to_message(id, &join::not_here(from)).to_bytes();
                self.links.send(from, answer.into());
            }
            return;
        };
        match bytes.split_first() {
            Some((&CHARTER, rest)) => group.handle_charter(from, rest, now),
            Some((&ROW, rest)) => group.handle_row(from, rest, now),
            Some((&JOIN, rest)) => {
                let seen = link.address().ip().to_canonical();
                group.handle_join(from, Some(seen), rest, now);
            }
            Some((&REFUSED, rest)) => group.handle_refused(from, rest, now),
            Some(_) | None => link.close(Reason::Malformed),
        }
    }

    /// Takes over what a charter says: who may come in, with whom to have links, and what is replicated.
    fn handle_charter(&mut self, id: GroupId, now: Duration) {
        let Some(group) = self.groups.get(&id) else { return };
        if group.is_member() {
            self.replica.set_group(id, neighborhood(group), now);
        } else {
            self.replica.remove_group(id, now);
        }
        let mut keys = HashSet::new();
        let mut neighbors: Vec<Neighbor> = Vec::new();
        for group in self.groups.values() {
            let bodies = group.charter().into_iter().map(|it| it.body());
            keys.extend(bodies.flat_map(|it| &it.members).map(Member::key));
            for member in group.neighbors() {
                let address = member.address.to_string();
                let neighbor = Neighbor { address, key: Some(*member.key()) };
                if !neighbors.contains(&neighbor) {
                    neighbors.push(neighbor);
                }
            }
        }
        let denied = |it: &Group| -> HashSet<MemberId> {
            let bodies = it.charter().into_iter().map(|it| it.body());
            bodies.flat_map(|it| it.access.denied_members()).collect()
        };
        let denied = self.groups.values().map(denied).reduce(|all, it| &all & &it);
        self.links.let_in(keys, denied.unwrap_or_default());
        self.links.want(neighbors);
        self.meet(now);
        self.restore(now);
        self.carry(now);
    }

    /// Brings trees of one group into others, if they are not those that were.
    fn carry(&mut self, now: Duration) {
        let carried = self.own.config.groups.iter().filter(|it| !it.carry.is_empty());
        let carried: Vec<Vec<Carried>> = carried.map(|it| self.carried(it)).collect();
        if carried != self.carrying {
            self.carrying = carried;
            self.settle_groups(now);
        }
    }

    /// Begins with those who are members now, and ends with those who are none any more.
    fn meet(&mut self, now: Duration) {
        let linked: Vec<MemberId> = self.links.members().collect();
        let members = linked.into_iter().filter(|it| self.is_member(*it)).collect();
        for (member, is_member) in self.links.set_members(&members) {
            if is_member {
                self.replica.handle_up(member, self.window(member), now);
            } else {
                self.replica.handle_down(member, now);
            }
        }
    }

    /// Takes in what was known before the start of namespaces that a group lists now.
    fn restore(&mut self, now: Duration) {
        let writers: BTreeMap<Namespace, [u8; 32]> =
            self.groups.values().flat_map(|it| neighborhood(it).writers).collect();
        let flood = self.replica.flood();
        let due =
            self.spaces.take_known(|it| writers.contains_key(it), |it| flood.newest(it).is_some());
        for (namespace, bytes) in due {
            let Some(key) = writers.get(&namespace) else { continue };
            match Version::from_bytes(&bytes, key) {
                Ok(version) => {
                    let held = self.spaces.current(&namespace);
                    let is_held = held.is_some_and(|it| it.meta().number == version.number);
                    self.replica.restore(&version, is_held);
                }
                Err(error) => self.notes.add(format!("{namespace}: {error}"), now),
            }
        }
        self.replica.handle_timeout(now);
    }

    /// How many chunks may be on their way from a member.
    pub(super) fn window(&self, member: MemberId) -> Window {
        let known = self.groups.values().filter_map(|it| {
            Some(Window::of(it.estimate(member)?.round_trip()?, it.bandwidth(member)?))
        });
        known.max_by_key(|it| it.bytes).unwrap_or(Window::DEFAULT)
    }

    pub(super) fn set_window(&mut self, member: MemberId) {
        let window = self.window(member);
        self.replica.set_window(member, window);
    }

    /// The trees that this member brings into a group from others. Its own come in by themselves.
    fn carried(&self, group: &GroupConfig) -> Vec<Carried> {
        let key = self.own.key();
        let from = self.own.config.groups.iter().filter(|it| group.carry.contains(it.entry.name()));
        let from = from.filter_map(|it| self.groups.get(&it.entry.group(&key)));
        let Some(into) = self.groups.get(&group.entry.group(&key)) else { return Vec::new() };
        from.flat_map(|it| into.brought_from(it)).collect()
    }

    /// Takes over other settings.
    pub(super) fn settle_groups(&mut self, now: Duration) {
        let key = self.own.key();
        for group in self.own.config.groups.clone() {
            let carried = self.carried(&group);
            let settings = super::settings(&self.own.config, &group, carried);
            let Some(machine) = self.groups.get_mut(&group.entry.group(&key)) else { continue };
            if let Entry::Join(invitation) = group.entry {
                machine.handle_invitation(invitation);
            }
            machine.handle_settings(settings, now);
        }
    }
}

/// A member's place in a group, as its charter says.
fn neighborhood(group: &Group) -> Neighborhood {
    let Some(charter) = group.charter() else { return Neighborhood::default() };
    let body = charter.body();
    let writers = group.trees().map(|it| (it.namespace(), it.writer));
    Neighborhood {
        members: body.members.iter().map(Member::id).collect(),
        topology: body.topology.clone(),
        writers: writers.collect(),
    }
}
