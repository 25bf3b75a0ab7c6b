//! The flood: announcements of versions, passed on to all neighbors, and the sources of content.
//!
//! Source: TR §8 (flood-d): a new version goes over all links of a group's topology, once over
//! each. A member of two groups carries it across.
//!
//! A version comes into a group by its *entry*: the origin itself in the origin's own groups,
//! elsewhere the member that carried it. All members of a group agree on the least [`Route`], and
//! pull from their neighbor in the tree toward its entry. So none wait for each other in a circle.
//!
//! # Differences from the paper
//!
//! * Versions are signed, so a member can hold one back, but not change it.
//! * Two different versions of one number are kept as evidence and passed on. They end their epoch:
//!   no version of it is taken any more ([`Flood::target`]). An origin that made an honest mistake,
//!   because it was restored from a backup, goes on in the next epoch.
//!
//! Sans-I/O.

mod reconcile;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, MemberId};
use crate::message::{Announcement, Message, NAMESPACES_MAX, Route};
use crate::topology::Topology;
use crate::version::{Namespace, Version, VersionError};

/// Maximum number of groups that a version may cross.
pub const DISTANCE_MAX: u8 = 16;

/// A group's members, links and namespaces.
#[derive(Clone, Debug, Default)]
pub struct Neighborhood {
    /// The members in the order of ids. The topology numbers them in this order, from 0.
    pub members: Vec<MemberId>,
    /// The group's topology.
    pub topology: Topology,
    /// The group's namespaces with their writers' keys. Only the first [`NAMESPACES_MAX`] are used.
    pub writers: BTreeMap<Namespace, [u8; 32]>,
}

impl Neighborhood {
    fn position(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search(&member).ok()
    }

    /// Returns the neighbors of a member, those of the tree first.
    pub fn neighbors(&self, member: MemberId) -> impl Iterator<Item = MemberId> {
        let position = self.position(member);
        let positions = position.into_iter().flat_map(|it| self.topology.neighbors(it));
        positions.filter_map(|it| self.members.get(it).copied())
    }

    /// Returns the neighbor of `member` in the tree through which it reaches `entry`.
    fn toward(&self, entry: MemberId, member: MemberId) -> Option<MemberId> {
        let (entry, member) = (self.position(entry)?, self.position(member)?);
        let next = *self.topology.toward(entry).get(member)?;
        self.members.get(next?).copied()
    }
}

/// A namespace: its newest version and the routes to it.
#[derive(Debug, Default)]
struct Space {
    newest: Option<Version>,
    /// The best route of the newest version into each group.
    routes: BTreeMap<GroupId, Route>,
    contradiction: Option<Box<(Version, Version)>>,
}

/// The result of taking in a version or evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The version is newer than any before.
    News(Namespace),
    /// The newest version came on a better route than before.
    Nearer(Namespace),
    /// The version or evidence is known already, or out of date.
    Nothing,
    /// The namespace's origin contradicts itself: report it to the administrator.
    Contradiction(Namespace),
    /// The version or evidence is refused; the sender may be out of date, faulty, or a liar.
    Refused(Refusal),
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sender or this member is not in that group.
    #[error("it is of a group that sender and receiver do not share")]
    Group,
    /// The group has no such namespace: its leader may have added it meanwhile.
    #[error("the group has no such namespace")]
    Namespace,
    /// The version or its signature is invalid.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The route does not exist.
    #[error("it came on a route that does not exist")]
    Route,
    /// The two versions are no contradiction.
    #[error("the evidence proves nothing: its two versions do not contradict each other")]
    Evidence,
}

/// The versions that a member knows, and the announcements that it passes on.
#[derive(Debug)]
pub struct Flood {
    me: MemberId,
    groups: BTreeMap<GroupId, Neighborhood>,
    spaces: BTreeMap<Namespace, Space>,
    /// Messages to send, in order; the caller takes them after each call.
    out: Vec<(MemberId, Message)>,
}

impl Flood {
    /// Makes the flood of a member that knows no versions yet.
    pub fn new(me: MemberId) -> Self {
        Self { me, groups: BTreeMap::new(), spaces: BTreeMap::new(), out: Vec::new() }
    }

    /// Takes the messages to send now.
    pub fn take_messages(&mut self) -> Vec<(MemberId, Message)> {
        std::mem::take(&mut self.out)
    }

    /// Joins a group, or takes in its changes. Routes whose entry has left are forgotten.
    pub fn set_group(&mut self, group: GroupId, mut neighborhood: Neighborhood) {
        let over = neighborhood.writers.keys().nth(NAMESPACES_MAX).cloned();
        if let Some(over) = over {
            neighborhood.writers.split_off(&over);
        }
        for (namespace, space) in &mut self.spaces {
            let stays = |route: &Route| neighborhood.position(route.entry).is_some();
            if !neighborhood.writers.contains_key(namespace)
                || !space.routes.get(&group).is_none_or(stays)
            {
                space.routes.remove(&group);
            }
        }
        self.groups.insert(group, neighborhood);
        self.forget_namespaces();
    }

    /// Leaves a group.
    pub fn remove_group(&mut self, group: GroupId) {
        self.groups.remove(&group);
        for space in self.spaces.values_mut() {
            space.routes.remove(&group);
        }
        self.forget_namespaces();
    }

    /// Forgets namespaces that no group has any more.
    fn forget_namespaces(&mut self) {
        let groups = &self.groups;
        self.spaces
            .retain(|namespace, _| groups.values().any(|it| it.writers.contains_key(namespace)));
    }

    /// Returns whether any group has the namespace.
    pub fn is_listed(&self, namespace: &Namespace) -> bool {
        self.sharing(namespace).next().is_some()
    }

    /// Returns whether a member may have a namespace's content: only members of its groups may.
    pub fn serves(&self, member: MemberId, namespace: &Namespace) -> bool {
        self.groups
            .values()
            .any(|it| it.writers.contains_key(namespace) && it.position(member).is_some())
    }

    /// Returns the newest known version, even if its epoch has ended.
    pub fn newest(&self, namespace: &Namespace) -> Option<&Version> {
        self.spaces.get(namespace)?.newest.as_ref()
    }

    /// Returns two different versions of one number, the greatest such number, if any are known.
    pub fn contradiction(&self, namespace: &Namespace) -> Option<&(Version, Version)> {
        self.spaces.get(namespace)?.contradiction.as_deref()
    }

    /// Returns the version to fetch: the newest, unless the origin has contradicted itself in that
    /// version's epoch or a later one.
    pub fn target(&self, namespace: &Namespace) -> Option<&Version> {
        let space = self.spaces.get(namespace)?;
        let ended = space.contradiction.as_ref().map(|it| it.0.number.epoch);
        space.newest.as_ref().filter(|it| ended.is_none_or(|epoch| epoch < it.number.epoch))
    }

    /// Returns the neighbors to ask for the content of a namespace, the best first: those toward an
    /// entry, then the others in groups that have the namespace.
    pub fn sources(&self, namespace: &Namespace) -> Vec<MemberId> {
        let sharing = self.groups.values().filter(|it| it.writers.contains_key(namespace));
        let mut sources = self.ways(namespace);
        self.add(sharing.flat_map(|it| it.neighbors(self.me)), &mut sources);
        sources
    }

    /// Returns the [`sources`](Self::sources) toward an entry, at most one for each group: none for
    /// a group while its topology does not reach the entry.
    pub fn ways(&self, namespace: &Namespace) -> Vec<MemberId> {
        let routes = self.spaces.get(namespace).into_iter().flat_map(|it| &it.routes);
        let mut routes: Vec<(Route, GroupId)> = routes.map(|(group, it)| (*it, *group)).collect();
        routes.sort_unstable();
        let all = routes
            .iter()
            .filter_map(|(route, group)| self.groups.get(group)?.toward(route.entry, self.me));
        let mut ways = Vec::new();
        self.add(all, &mut ways);
        ways
    }

    fn add(&self, members: impl Iterator<Item = MemberId>, to: &mut Vec<MemberId>) {
        for member in members {
            if member != self.me && !to.contains(&member) {
                to.push(member);
            }
        }
    }

    /// Takes in a version that this member knew before a restart or has just published, and passes
    /// it on. Versions of namespaces that no group has are refused.
    pub fn handle_own(&mut self, version: &Version) -> Outcome {
        let namespace = version.namespace.clone();
        let groups: Vec<GroupId> = self.sharing(&namespace).collect();
        let mut outcome = Outcome::Refused(Refusal::Namespace);
        for group in groups {
            let route = Route { distance: 0, entry: namespace.origin };
            let is_mine = namespace.origin == self.me;
            outcome = self.take(version, is_mine.then_some((group, route)), None);
        }
        outcome
    }

    /// Returns the groups that have a namespace.
    fn sharing(&self, namespace: &Namespace) -> impl Iterator<Item = GroupId> {
        let has = |it: &&Neighborhood| it.writers.contains_key(namespace);
        self.groups.iter().filter(move |(_, it)| has(it)).map(|(group, _)| *group)
    }

    /// Takes in a neighbor's announcement.
    pub fn handle_announcement(&mut self, from: MemberId, announced: &Announcement) -> Outcome {
        match self.check(from, announced) {
            Ok(version) => {
                let route = (announced.route.entry != self.me).then_some(announced.route);
                self.take(&version, route.map(|it| (announced.group, it)), Some(from))
            }
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn check(&self, from: MemberId, announced: &Announcement) -> Result<Version, Refusal> {
        let group = self.groups.get(&announced.group).ok_or(Refusal::Group)?;
        if group.position(from).is_none() || group.position(self.me).is_none() {
            return Err(Refusal::Group);
        }
        let version = self.verify(group, &announced.version)?;
        let Route { distance, entry } = announced.route;
        let begins_there = distance == 0;
        if DISTANCE_MAX < distance
            || group.position(entry).is_none()
            || begins_there != (entry == version.namespace.origin)
        {
            return Err(Refusal::Route);
        }
        Ok(version)
    }

    fn verify(&self, group: &Neighborhood, bytes: &[u8]) -> Result<Version, Refusal> {
        let form = VersionError::Form(bytes.len());
        let namespace = Version::namespace_of(bytes).ok_or(form)?;
        let key = group.writers.get(&namespace).ok_or(Refusal::Namespace)?;
        // Most announcements are repeated: comparing bytes is faster than verifying a signature.
        match self.newest(&namespace).filter(|it| it.to_bytes() == bytes) {
            Some(known) => Ok(known.clone()),
            None => Ok(Version::from_bytes(bytes, key)?),
        }
    }

    /// Takes in a verified version. If it is new or has a better route, announces it to all
    /// neighbors but `from`.
    fn take(
        &mut self,
        version: &Version,
        route: Option<(GroupId, Route)>,
        from: Option<MemberId>,
    ) -> Outcome {
        let namespace = &version.namespace;
        let space = self.spaces.entry(namespace.clone()).or_default();
        match &space.newest {
            Some(known) if known.contradicts(version) => {
                // The sender knows only one of the two.
                let both = (known.clone(), version.clone());
                return self.take_contradiction(both, None);
            }
            Some(known) if version.number < known.number => {
                if let (Some(from), Some((group, _))) = (from, route) {
                    self.announce_to(from, group, &namespace.clone());
                }
                return Outcome::Nothing;
            }
            Some(known) if version.number == known.number => {}
            Some(_) | None => {
                space.newest = Some(version.clone());
                space.routes = self
                    .groups
                    .iter()
                    .filter(|(_, it)| it.writers.contains_key(namespace))
                    .filter(|(_, it)| it.position(namespace.origin).is_some())
                    .map(|(group, _)| (*group, Route { distance: 0, entry: namespace.origin }))
                    .collect();
                if let Some((group, route)) = route {
                    // In an origin's own groups no route is better than its own.
                    space.routes.entry(group).or_insert(route);
                }
                self.pass_on(namespace, from);
                return Outcome::News(namespace.clone());
            }
        }
        let Some((group, route)) = route else { return Outcome::Nothing };
        let before = space.routes.get(&group);
        if before.is_some_and(|it| *it <= route) {
            return Outcome::Nothing;
        }
        space.routes.insert(group, route);
        self.announce(group, namespace, from);
        self.carry(namespace);
        Outcome::Nearer(namespace.clone())
    }

    /// Passes the newest version on in all groups that have it.
    fn pass_on(&mut self, namespace: &Namespace, from: Option<MemberId>) {
        let known = self.spaces.get(namespace).map(|it| it.routes.clone()).unwrap_or_default();
        for group in known.into_keys() {
            self.announce(group, namespace, from);
        }
        self.carry(namespace);
    }

    /// Carries the newest version across, into the groups whose best entry is this member. All
    /// neighbors there get it, also those that announced it in another group, because all have to
    /// agree on the route.
    fn carry(&mut self, namespace: &Namespace) {
        let groups: Vec<GroupId> = self.sharing(namespace).collect();
        for group in groups {
            let Some(space) = self.spaces.get_mut(namespace) else { return };
            let others = space.routes.iter().filter(|(it, route)| {
                **it != group && route.entry != self.me && route.distance < DISTANCE_MAX
            });
            let Some(nearest) = others.map(|(_, route)| route.distance).min() else { continue };
            let route = Route { distance: nearest + 1, entry: self.me };
            if space.routes.get(&group).is_none_or(|it| route < *it) {
                space.routes.insert(group, route);
                self.announce(group, namespace, None);
            }
        }
    }

    /// Announces the newest version to all neighbors in a group but `from`.
    fn announce(&mut self, group: GroupId, namespace: &Namespace, from: Option<MemberId>) {
        let Some(neighborhood) = self.groups.get(&group) else { return };
        let neighbors: Vec<MemberId> = neighborhood.neighbors(self.me).collect();
        for to in neighbors.into_iter().filter(|it| Some(*it) != from) {
            self.announce_to(to, group, namespace);
        }
    }

    fn announce_to(&mut self, to: MemberId, group: GroupId, namespace: &Namespace) {
        let Some(space) = self.spaces.get(namespace) else { return };
        let Some(newest) = &space.newest else { return };
        // Without a known route this member is the entry.
        let own = Route { distance: u8::from(namespace.origin != self.me), entry: self.me };
        let route = space.routes.get(&group).copied().unwrap_or(own);
        self.out.push((to, Message::Announce(Announcement::new(group, route, newest))));
    }

    /// Takes in evidence from a neighbor.
    pub fn handle_evidence(
        &mut self,
        from: MemberId,
        group: GroupId,
        first: &[u8],
        second: &[u8],
    ) -> Outcome {
        let check = || {
            let group = self.groups.get(&group).ok_or(Refusal::Group)?;
            group.position(from).ok_or(Refusal::Group)?;
            let both = (self.verify(group, first)?, self.verify(group, second)?);
            if both.0.contradicts(&both.1) { Ok(both) } else { Err(Refusal::Evidence) }
        };
        match check() {
            Ok(both) => self.take_contradiction(both, Some(from)),
            Err(refusal) => Outcome::Refused(refusal),
        }
    }

    fn take_contradiction(&mut self, both: (Version, Version), from: Option<MemberId>) -> Outcome {
        let namespace = both.0.namespace.clone();
        let space = self.spaces.entry(namespace.clone()).or_default();
        let known = space.contradiction.as_ref().map(|it| it.0.number);
        if known.is_some_and(|it| both.0.number <= it) {
            return Outcome::Nothing;
        }
        space.contradiction = Some(Box::new(both));
        let groups: Vec<GroupId> = self.sharing(&namespace).collect();
        for group in groups {
            let within = self.groups.get(&group).into_iter();
            let neighbors: BTreeSet<MemberId> =
                within.flat_map(|it| it.neighbors(self.me)).collect();
            for to in neighbors.into_iter().filter(|it| Some(*it) != from) {
                self.show_evidence(to, group, &namespace);
            }
        }
        Outcome::Contradiction(namespace)
    }

    fn show_evidence(&mut self, to: MemberId, group: GroupId, namespace: &Namespace) {
        let Some((first, second)) = self.contradiction(namespace) else { return };
        let (first, second) = (first.to_bytes(), second.to_bytes());
        self.out.push((to, Message::Evidence { group, first, second }));
    }
}
