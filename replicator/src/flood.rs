//! Which versions there are, who passes them on to whom, and from which side their content comes.
//!
//! Source: TR §8 (flood-d): what is new goes over all links of a group's topology, once over each. A member of
//! two groups carries it across.
//!
//! A version comes into a group by its *entry*: the origin itself in the origin's own groups, elsewhere the
//! member that carried it. All members of a group agree on the least [`Route`], and pull from their neighbor in
//! the tree that is nearer to its entry, so that nobody waits for each other in a circle.
//!
//! # Differences from the paper
//!
//! * Versions are signed, so whoever passes one on can hold it back, but not change it.
//! * Two different versions of one number are kept as evidence, passed on, and end the epoch they are of:
//!   nothing of it is taken any more ([`Flood::target`]). An origin that made an honest mistake, because it was
//!   restored from a backup, goes on in the next epoch.
//!
//! Sans-I/O.

mod reconcile;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{GroupId, MemberId};
use crate::message::{Announcement, Message, NAMESPACES_MAX, Route};
use crate::topology::Topology;
use crate::version::{Namespace, ParseError, Version};

/// Groups that a version may cross.
pub const DISTANCE_MAX: u8 = 16;

/// One's place in a group.
#[derive(Clone, Debug, Default)]
pub struct Neighborhood {
    /// The members in order; the topology counts them so.
    pub members: Vec<MemberId>,
    /// Its links.
    pub topology: Topology,
    /// The namespaces of the group, and the keys of those who write to them; at most
    /// [`NAMESPACES_MAX`] count.
    pub writers: BTreeMap<Namespace, [u8; 32]>,
}

impl Neighborhood {
    fn place(&self, member: MemberId) -> Option<usize> {
        self.members.binary_search(&member).ok()
    }

    /// The neighbors of a member, those of the tree first.
    pub fn neighbors(&self, member: MemberId) -> impl Iterator<Item = MemberId> {
        let place = self.place(member);
        let places = place.into_iter().flat_map(|it| self.topology.neighbors(it));
        places.filter_map(|it| self.members.get(it).copied())
    }

    /// The neighbor of `member` in the tree through which it reaches `entry`.
    fn toward(&self, entry: MemberId, member: MemberId) -> Option<MemberId> {
        let (entry, member) = (self.place(entry)?, self.place(member)?);
        let next = *self.topology.toward(entry).get(member)?;
        self.members.get(next?).copied()
    }
}

/// What is known of a namespace.
#[derive(Debug, Default)]
struct Space {
    newest: Option<Version>,
    /// How the newest came into each group.
    routes: BTreeMap<GroupId, Route>,
    contradiction: Option<Box<(Version, Version)>>,
}

/// What somebody has said of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A version that is newer than any before.
    News(Namespace),
    /// A better way to the newest one.
    Nearer(Namespace),
    /// What is known already, or out of date.
    Nothing,
    /// Its origin contradicts itself: say so to whoever watches.
    Contradiction(Namespace),
    /// It is refused; the sender may be behind, broken, or a liar.
    Refused(Refusal),
}

/// Why something was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sender is not in that group, or one is not in it oneself.
    #[error("it is of a group that sender and receiver do not share")]
    Group,
    /// The group has no such namespace: its leader may have added it meanwhile.
    #[error("the group has no such namespace")]
    Namespace,
    /// No version, or none of its origin.
    #[error(transparent)]
    Version(#[from] ParseError),
    /// The way that it says it came does not exist.
    #[error("it came on a route that does not exist")]
    Route,
    /// What it calls a contradiction is none.
    #[error("what it calls evidence proves nothing")]
    Evidence,
}

/// What a member knows of versions, and passes on.
#[derive(Debug)]
pub struct Flood {
    me: MemberId,
    groups: BTreeMap<GroupId, Neighborhood>,
    spaces: BTreeMap<Namespace, Space>,
    /// What to send, in order; whoever handles something takes it at once.
    out: Vec<(MemberId, Message)>,
}

impl Flood {
    /// Knows nothing yet.
    pub fn new(me: MemberId) -> Self {
        Self { me, groups: BTreeMap::new(), spaces: BTreeMap::new(), out: Vec::new() }
    }

    /// Takes what is to be sent now.
    pub fn take_messages(&mut self) -> Vec<(MemberId, Message)> {
        std::mem::take(&mut self.out)
    }

    /// Joins a group, or learns how it has changed. Routes whose entry is gone are forgotten.
    pub fn set_group(&mut self, group: GroupId, mut neighborhood: Neighborhood) {
        let over = neighborhood.writers.keys().nth(NAMESPACES_MAX).cloned();
        if let Some(over) = over {
            neighborhood.writers.split_off(&over);
        }
        for (namespace, space) in &mut self.spaces {
            let stays = |route: &Route| neighborhood.place(route.entry).is_some();
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

    /// Forgets what no group has any more.
    fn forget_namespaces(&mut self) {
        let groups = &self.groups;
        self.spaces
            .retain(|namespace, _| groups.values().any(|it| it.writers.contains_key(namespace)));
    }

    /// All neighbors, of all groups.
    pub fn neighbors(&self) -> BTreeSet<MemberId> {
        self.groups.values().flat_map(|it| it.neighbors(self.me)).collect()
    }

    /// Whether any group has it.
    pub fn is_listed(&self, namespace: &Namespace) -> bool {
        self.sharing(namespace).next().is_some()
    }

    /// Whether a member may have the content of a namespace: only those of its groups.
    pub fn serves(&self, member: MemberId, namespace: &Namespace) -> bool {
        self.groups
            .values()
            .any(|it| it.writers.contains_key(namespace) && it.place(member).is_some())
    }

    /// The newest version that is known, whether it may be taken or not.
    pub fn newest(&self, namespace: &Namespace) -> Option<&Version> {
        self.spaces.get(namespace)?.newest.as_ref()
    }

    /// The two versions of one number, if there are any.
    pub fn contradiction(&self, namespace: &Namespace) -> Option<&(Version, Version)> {
        self.spaces.get(namespace)?.contradiction.as_deref()
    }

    /// The version to have: the newest, unless its origin has contradicted itself in that epoch or in a later one.
    pub fn target(&self, namespace: &Namespace) -> Option<&Version> {
        let space = self.spaces.get(namespace)?;
        let is_spoilt = |of: &Version| {
            let spoilt = space.contradiction.as_ref().map(|it| it.0.number.epoch);
            spoilt.is_some_and(|epoch| of.number.epoch <= epoch)
        };
        space.newest.as_ref().filter(|it| !is_spoilt(it))
    }

    /// Whom to ask for the content of a namespace, the best first: the neighbor on the way to its entry, then the
    /// other neighbors with which one shares it.
    pub fn sources(&self, namespace: &Namespace) -> Vec<MemberId> {
        let sharing = self.groups.values().filter(|it| it.writers.contains_key(namespace));
        let mut sources = self.ways(namespace);
        self.add(sharing.flat_map(|it| it.neighbors(self.me)), &mut sources);
        sources
    }

    /// Of [`sources`](Self::sources) those on the way to an entry, one for each group: none as long as the topology
    /// does not reach it.
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

    /// Takes in a version that was known before a restart, or that one has just made oneself: then it is passed
    /// on. Of namespaces that no group has it is ignored.
    pub fn handle_own(&mut self, version: &Version) -> Heard {
        let namespace = version.namespace.clone();
        let groups: Vec<GroupId> = self.sharing(&namespace).collect();
        let mut heard = Heard::Refused(Refusal::Namespace);
        for group in groups {
            let route = Route { distance: 0, entry: namespace.origin };
            let is_mine = namespace.origin == self.me;
            heard = self.take(version, is_mine.then_some((group, route)), None);
        }
        heard
    }

    /// The groups that have a namespace.
    fn sharing(&self, namespace: &Namespace) -> impl Iterator<Item = GroupId> {
        let has = |it: &&Neighborhood| it.writers.contains_key(namespace);
        self.groups.iter().filter(move |(_, it)| has(it)).map(|(group, _)| *group)
    }

    /// Takes in what a neighbor has announced.
    pub fn handle_announcement(&mut self, from: MemberId, announced: &Announcement) -> Heard {
        match self.check(from, announced) {
            Ok(version) => {
                let route = (announced.route.entry != self.me).then_some(announced.route);
                self.take(&version, route.map(|it| (announced.group, it)), Some(from))
            }
            Err(refusal) => Heard::Refused(refusal),
        }
    }

    fn check(&self, from: MemberId, announced: &Announcement) -> Result<Version, Refusal> {
        let group = self.groups.get(&announced.group).ok_or(Refusal::Group)?;
        if group.place(from).is_none() || group.place(self.me).is_none() {
            return Err(Refusal::Group);
        }
        let version = self.verify(group, &announced.version)?;
        let Route { distance, entry } = announced.route;
        let begins_there = distance == 0;
        if DISTANCE_MAX < distance
            || group.place(entry).is_none()
            || begins_there != (entry == version.namespace.origin)
        {
            return Err(Refusal::Route);
        }
        Ok(version)
    }

    fn verify(&self, group: &Neighborhood, bytes: &[u8]) -> Result<Version, Refusal> {
        let form = ParseError::Form { bytes: bytes.len() };
        let namespace = Version::namespace_of(bytes).ok_or(form)?;
        let key = group.writers.get(&namespace).ok_or(Refusal::Namespace)?;
        // Most of what is heard is heard for the second time: signatures take a while.
        match self.newest(&namespace).filter(|it| it.to_bytes() == bytes) {
            Some(known) => Ok(known.clone()),
            None => Ok(Version::from_bytes(bytes, key)?),
        }
    }

    /// Takes in a version that has been checked, and passes it on, but not to whom it came from.
    fn take(
        &mut self,
        version: &Version,
        route: Option<(GroupId, Route)>,
        from: Option<MemberId>,
    ) -> Heard {
        let namespace = &version.namespace;
        let space = self.spaces.entry(namespace.clone()).or_default();
        match &space.newest {
            Some(known) if known.contradicts(version) => {
                // Whoever sent it knows one of them alone.
                let both = (known.clone(), version.clone());
                return self.take_contradiction(both, None);
            }
            Some(known) if version.number < known.number => {
                if let (Some(from), Some((group, _))) = (from, route) {
                    self.tell(from, group, &namespace.clone());
                }
                return Heard::Nothing;
            }
            Some(known) if version.number == known.number => {}
            Some(_) | None => {
                space.newest = Some(version.clone());
                space.routes = self
                    .groups
                    .iter()
                    .filter(|(_, it)| it.writers.contains_key(namespace))
                    .filter(|(_, it)| it.place(namespace.origin).is_some())
                    .map(|(group, _)| (*group, Route { distance: 0, entry: namespace.origin }))
                    .collect();
                if let Some((group, route)) = route {
                    // In an origin's own groups there is no better way than from it.
                    space.routes.entry(group).or_insert(route);
                }
                self.pass_on(namespace, from);
                return Heard::News(namespace.clone());
            }
        }
        let Some((group, route)) = route else { return Heard::Nothing };
        let before = space.routes.get(&group);
        if before.is_some_and(|it| *it <= route) {
            return Heard::Nothing;
        }
        space.routes.insert(group, route);
        self.announce(group, namespace, from);
        self.carry(namespace);
        Heard::Nearer(namespace.clone())
    }

    /// Passes the newest version on in all groups that have it.
    fn pass_on(&mut self, namespace: &Namespace, from: Option<MemberId>) {
        let known = self.spaces.get(namespace).map(|it| it.routes.clone()).unwrap_or_default();
        for group in known.into_keys() {
            self.announce(group, namespace, from);
        }
        self.carry(namespace);
    }

    /// Carries the newest version across, into the groups where one is its best entry. There everybody hears of
    /// it, also those who said so in another group: they have to agree on the way.
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

    /// Says to all neighbors in a group what is newest, but not to whom it came from.
    fn announce(&mut self, group: GroupId, namespace: &Namespace, from: Option<MemberId>) {
        let Some(neighborhood) = self.groups.get(&group) else { return };
        let neighbors: Vec<MemberId> = neighborhood.neighbors(self.me).collect();
        for to in neighbors.into_iter().filter(|it| Some(*it) != from) {
            self.tell(to, group, namespace);
        }
    }

    /// Says to one member what is newest.
    fn tell(&mut self, to: MemberId, group: GroupId, namespace: &Namespace) {
        let Some(space) = self.spaces.get(namespace) else { return };
        let Some(newest) = &space.newest else { return };
        // Whose route is not known any more may still say what there is: it is its own entry then.
        let own = Route { distance: u8::from(namespace.origin != self.me), entry: self.me };
        let route = space.routes.get(&group).copied().unwrap_or(own);
        self.out.push((to, Message::Announce(Announcement::new(group, route, newest))));
    }

    /// Takes in evidence that a neighbor sends.
    pub fn handle_evidence(
        &mut self,
        from: MemberId,
        group: GroupId,
        first: &[u8],
        second: &[u8],
    ) -> Heard {
        let check = || {
            let group = self.groups.get(&group).ok_or(Refusal::Group)?;
            group.place(from).ok_or(Refusal::Group)?;
            let both = (self.verify(group, first)?, self.verify(group, second)?);
            if both.0.contradicts(&both.1) { Ok(both) } else { Err(Refusal::Evidence) }
        };
        match check() {
            Ok(both) => self.take_contradiction(both, Some(from)),
            Err(refusal) => Heard::Refused(refusal),
        }
    }

    fn take_contradiction(&mut self, both: (Version, Version), from: Option<MemberId>) -> Heard {
        let namespace = both.0.namespace.clone();
        let space = self.spaces.entry(namespace.clone()).or_default();
        let known = space.contradiction.as_ref().map(|it| it.0.number);
        if known.is_some_and(|it| both.0.number <= it) {
            return Heard::Nothing;
        }
        space.contradiction = Some(Box::new(both));
        let groups: Vec<GroupId> = self.sharing(&namespace).collect();
        for group in groups {
            let neighbors: BTreeSet<MemberId> = self.neighbors_in(group);
            for to in neighbors.into_iter().filter(|it| Some(*it) != from) {
                self.show_evidence(to, group, &namespace);
            }
        }
        Heard::Contradiction(namespace)
    }

    fn neighbors_in(&self, group: GroupId) -> BTreeSet<MemberId> {
        self.groups.get(&group).into_iter().flat_map(|it| it.neighbors(self.me)).collect()
    }

    fn show_evidence(&mut self, to: MemberId, group: GroupId, namespace: &Namespace) {
        let Some((first, second)) = self.contradiction(namespace) else { return };
        let (first, second) = (first.to_bytes(), second.to_bytes());
        self.out.push((to, Message::Evidence { group, first, second }));
    }
}
