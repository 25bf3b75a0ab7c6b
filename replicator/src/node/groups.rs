//! The groups of a member: the answers that they give together, and the input that they all get.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use net::identity::Identity;

use super::invitations::{InvitationLine, forget_first, invite_first};
use super::notes::Notes;
use super::own::Own;
use crate::config::{Config, GroupConfig, GroupEntry};
use crate::error::Error;
use crate::estimate::Estimate;
use crate::fetch::Window;
use crate::flood::Neighborhood;
use crate::group::access::Access;
use crate::group::charter::{Body, Carried, Member};
use crate::group::invited::VALID;
use crate::group::join;
use crate::group::{self, Action, Group};
use crate::id::{GroupId, InvitationId, MemberId};
use crate::link::frame::Reason;
use crate::link::{Link, Neighbor};
use crate::message::Message;
use crate::replica::Replica;
use crate::version::{Kind, Name, Namespace};

/// First bytes of the messages to the state machine of a group.
const CHARTER: u8 = 0;
const ROW: u8 = 1;
const JOIN: u8 = 2;
const REFUSED: u8 = 3;

/// Returns a message of a group's state machine in the form for links.
pub(super) fn to_message(group: GroupId, message: &group::Message) -> Message {
    let (tag, bytes) = match message {
        group::Message::Charter(bytes) => (CHARTER, bytes),
        group::Message::Row(bytes) => (ROW, bytes),
        group::Message::Join(bytes) => (JOIN, bytes),
        group::Message::Refused(bytes) => (REFUSED, bytes),
    };
    Message::Group { group, bytes: [&[tag], bytes.as_ref()].concat() }
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    all: BTreeMap<GroupId, Group>,
    /// For each group in the settings that has `carry`: the trees that are brought into it from
    /// other groups.
    carrying: Vec<Vec<Carried>>,
}

impl Groups {
    /// Opens the saved groups, and founds new ones. Blocks.
    pub(super) fn open(own: &Own, notes: &mut Notes) -> Result<Self, Error> {
        let mut groups = Self::default();
        for group in &own.config.groups {
            let id = group.entry.group(&own.key());
            groups.all.insert(id, open(id, group, own, notes)?);
        }
        Ok(groups)
    }

    pub(super) fn get(&self, id: GroupId) -> Option<&Group> {
        self.all.get(&id)
    }

    pub(super) fn ids(&self) -> Vec<GroupId> {
        self.all.keys().copied().collect()
    }

    pub(super) fn poll_action(&mut self, id: GroupId) -> Option<Action> {
        self.all.get_mut(&id)?.poll_action()
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.all.values().map(Group::poll_timeout).min()
    }

    pub(super) fn handle_timeout(&mut self, replica: &Replica, now: Duration) {
        for group in self.all.values_mut().filter(|it| it.poll_timeout() <= now) {
            group.handle_held(replica.holdings(), now);
            group.handle_timeout(now);
        }
    }

    /// Gives all groups the time of day: the clock may have been set.
    pub(super) fn set_clocks(&mut self, now: Duration) {
        let unix = net::clock::now_ms() / 1_000;
        self.all.values_mut().for_each(|it| it.handle_clock(unix, now));
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.all.values_mut()
    }

    /// Passes a round trip to the groups that measured it; returns the shortest known round trip.
    pub(super) fn handle_round_trip(
        &mut self,
        of: &BTreeSet<GroupId>,
        member: MemberId,
        took: Duration,
        now: Duration,
    ) -> Duration {
        let mut shortest = took;
        for group in self.all_mut().filter(|it| of.contains(&it.id())) {
            group.handle_round_trip(member, took, now);
            let known = group.estimate(member).and_then(Estimate::round_trip);
            shortest = shortest.min(known.unwrap_or(shortest));
        }
        shortest
    }

    /// Takes in a message to a group; returns the immediate answer, if any.
    pub(super) fn handle_message(
        &mut self,
        link: &Link,
        id: GroupId,
        bytes: &[u8],
        now: Duration,
    ) -> Option<Message> {
        let from = link.member();
        let Some(group) = self.all.get_mut(&id) else {
            let asks = bytes.first() == Some(&JOIN);
            return asks.then(|| to_message(id, &join::not_here(from)));
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
        None
    }

    /// Deletes the secret of the first invitation once the group's present charter is on disk,
    /// which means that the saved `state` ends with it.
    pub(super) fn handle_saved(&self, id: GroupId, state: &[u8], own: &Own, notes: &mut Notes) {
        let charter = self.get(id).and_then(Group::charter);
        if charter.is_some_and(|it| state.ends_with(&it.to_bytes())) {
            forget_first(id, own, notes);
        }
    }

    fn bodies(&self) -> impl Iterator<Item = &Body> {
        self.all.values().filter_map(|it| it.charter()).map(|it| it.body())
    }

    fn member(&self, member: MemberId) -> Option<&Member> {
        self.bodies().find_map(|it| it.member(member))
    }

    pub(super) fn is_member(&self, member: MemberId) -> bool {
        self.member(member).is_some()
    }

    /// Returns the site of a member; none if it is in no group.
    pub(super) fn site(&self, member: MemberId) -> Option<&Name> {
        self.member(member).map(|it| &it.site)
    }

    /// Returns the address and key of a member; none if it is in no group.
    pub(super) fn neighbor(&self, member: MemberId) -> Option<Neighbor> {
        self.member(member).map(to_neighbor)
    }

    /// Returns the members to have links with.
    pub(super) fn neighbors(&self) -> Vec<Neighbor> {
        let mut neighbors = Vec::new();
        for neighbor in self.all.values().flat_map(Group::neighbors).map(to_neighbor) {
            if !neighbors.contains(&neighbor) {
                neighbors.push(neighbor);
            }
        }
        neighbors
    }

    /// Returns the ids of the members to have links with.
    pub(super) fn needed(&self) -> HashSet<MemberId> {
        self.all.values().flat_map(Group::neighbors).map(Member::id).collect()
    }

    pub(super) fn keys(&self) -> HashSet<[u8; 32]> {
        self.bodies().flat_map(|it| &it.members).map(|it| *it.key()).collect()
    }

    /// Returns the members that all groups deny.
    pub(super) fn denied(&self) -> HashSet<MemberId> {
        let denied = |it: &Group| -> HashSet<MemberId> {
            let bodies = it.charter().into_iter().map(|it| it.body());
            bodies.flat_map(|it| it.access.denied_members()).collect()
        };
        self.all.values().map(denied).reduce(|all, it| &all & &it).unwrap_or_default()
    }

    /// Returns the writers of all listed trees.
    pub(super) fn writers(&self) -> BTreeMap<Namespace, [u8; 32]> {
        self.all.values().flat_map(|it| neighborhood(it).writers).collect()
    }

    /// Returns this member's neighborhood in a group, from the charter; none if this member is not
    /// in the group.
    pub(super) fn neighborhood(&self, id: GroupId) -> Option<Neighborhood> {
        self.get(id).filter(|it| it.is_member()).map(neighborhood)
    }

    /// Returns how much data may be on its way from a member.
    pub(super) fn window(&self, member: MemberId) -> Window {
        let known = self.all.values().filter_map(|it| {
            Some(Window::of(it.estimate(member)?.round_trip()?, it.bandwidth(member)?))
        });
        known.max_by_key(|it| it.bytes).unwrap_or(Window::DEFAULT)
    }

    /// Brings the trees of groups into others, as the settings say, if these trees have changed.
    pub(super) fn carry(&mut self, own: &Own, now: Duration) {
        let carried = own.config.groups.iter().filter(|it| !it.carry.is_empty());
        let carried: Vec<Vec<Carried>> = carried.map(|it| self.carried(it, own)).collect();
        if carried != self.carrying {
            self.carrying = carried;
            self.settle(own, now);
        }
    }

    /// Returns the trees that this member brings into a group from others, without its own trees,
    /// which it lists in any case.
    fn carried(&self, group: &GroupConfig, own: &Own) -> Vec<Carried> {
        let machine = |it: &GroupConfig| self.get(it.entry.group(&own.key()));
        let from = own.config.groups.iter().filter(|it| group.carry.contains(it.entry.name()));
        let Some(into) = machine(group) else { return Vec::new() };
        from.filter_map(machine).flat_map(|it| into.brought_from(it)).collect()
    }

    pub(super) fn settle(&mut self, own: &Own, now: Duration) {
        for group in &own.config.groups {
            let settings = settings(&own.config, group, self.carried(group, own));
            let id = group.entry.group(&own.key());
            let Some(machine) = self.all.get_mut(&id) else { continue };
            if let GroupEntry::Join(invitation) = &group.entry {
                machine.handle_invitation(invitation.clone());
            }
            machine.handle_settings(settings, now);
        }
    }

    fn by_name(&mut self, name: Option<&Name>, own: &Own) -> Result<(&mut Group, Name), String> {
        let (id, name) = own.group_by_name(name)?;
        let group = self.all.get_mut(&id).ok_or_else(|| format!("{name} is not open"))?;
        Ok((group, name))
    }

    pub(super) fn invite(
        &mut self,
        name: Option<&Name>,
        valid: Option<Duration>,
        own: &Own,
    ) -> Result<InvitationLine, String> {
        let (group, name) = self.by_name(name, own)?;
        let (mut secret, mut ends) = (None, None);
        // Without a secret, the line only names the member to ask; it admits members on the access
        // list.
        if group.is_leader() || valid.is_some() {
            let made = net::identity::random_secret().map_err(|error| error.to_string())?;
            let key = Identity::of(&made).ok_or("the secret is no key: try again")?.public();
            let invited = group.invite(key, valid.unwrap_or(VALID), own.now());
            ends = Some(invited.map_err(|error| error.to_string())?.ends);
            secret = Some(made);
        }
        let invitation = group.invitation(secret);
        let invitation = invitation.ok_or_else(|| format!("this member is not in {name} yet"))?;
        Ok(InvitationLine { invitation, ends })
    }

    pub(super) fn revoke(
        &mut self,
        name: Option<&Name>,
        id: InvitationId,
        own: &Own,
    ) -> Result<InvitationId, String> {
        let (group, _) = self.by_name(name, own)?;
        group.revoke(id, own.now()).map_err(|error| error.to_string())?;
        Ok(id)
    }

    /// Makes this member lead a group. Returns the group's name.
    pub(super) fn lead(&mut self, name: Option<&Name>, own: &Own) -> Result<String, String> {
        let (group, name) = self.by_name(name, own)?;
        group.lead(own.now()).map_err(|error| error.to_string())?;
        Ok(name.to_string())
    }
}

fn open(id: GroupId, group: &GroupConfig, own: &Own, notes: &mut Notes) -> Result<Group, Error> {
    let now = own.now();
    let settings = settings(&own.config, group, Vec::new());
    let (identity, name) = (own.identity.clone(), group.entry.name().clone());
    let saved = own.files.group(id)?;
    let invitation = match &group.entry {
        GroupEntry::Found(_) if saved.is_none() => {
            let found = Group::found(identity, name.clone(), settings, now);
            let mut found = found.map_err(|error| Error::Found(name, error))?;
            found.handle_clock(net::clock::now_ms() / 1_000, now);
            invite_first(id, &mut found, own, notes)?;
            return Ok(found);
        }
        GroupEntry::Found(_) => None,
        GroupEntry::Join(invitation) => Some(invitation.clone()),
    };
    forget_first(id, own, notes);
    let opened = Group::open(identity, settings, saved.as_deref(), invitation, now);
    opened.map_err(|error| Error::Open(name, error))
}

/// Returns the settings of a group's state machine.
fn settings(config: &Config, group: &GroupConfig, carried: Vec<Carried>) -> group::Settings {
    let name = group.entry.name();
    let is_in = |groups: &BTreeSet<Name>| groups.is_empty() || groups.contains(name);
    let trees = config.trees.iter().filter(|it| is_in(&it.groups));
    let trees = trees.map(|it| (it.name.clone(), Kind::Tree));
    let collections = config.collections.iter().filter(|it| is_in(&it.groups));
    let collections = collections.map(|it| (it.name.clone(), Kind::Collection));
    // The founder's settings apply even if they have no list: so the founder can clear the list.
    let has_list = !group.allow.is_empty() || !group.deny.is_empty();
    let is_settled = has_list || matches!(group.entry, GroupEntry::Found(_));
    let access =
        is_settled.then(|| Access { allow: group.allow.clone(), deny: group.deny.clone() });
    group::Settings {
        address: config.address.clone(),
        site: config.site.clone(),
        trees: trees.chain(collections).collect(),
        carried,
        connectivity: group.connectivity,
        deputies: group.deputies.clone(),
        access,
    }
}

fn to_neighbor(member: &Member) -> Neighbor {
    Neighbor { address: member.address.to_string(), key: Some(*member.key()) }
}

/// Returns this member's neighborhood in a group, from the charter; an empty one without a charter.
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
