//! Along which links the updates of a group go: a spanning tree of low cost for what is large, and links
//! beside it, so that a member that is lost cuts nobody off.
//!
//! Source: TR §8: "take a minimum spanning tree and add low cost links until the graph's connectivity
//! requirement is met".
//!
//! Every member computes the same topology from the same costs: only whole numbers are compared, and
//! members are numbered in the order of their ids.
//!
//! # Differences from the paper
//!
//! * A link costs the time that an update takes over it, two round trips and its bytes over the bandwidth
//!   ([`cost`]), and little is good. The paper has the ratio of bandwidth to delay, which is no time, and
//!   whose sum along a path says nothing.
//! * The tree is no deeper, and no member of it has more neighbors, than [`Bounds`] say, as far as there
//!   are other links: the minimum spanning tree of 300 members may be 33 links deep, and one
//!   well-connected member would serve all others.
//! * *k*-connected is meant of members (vertices), which also holds for links.
//! * A topology that is nearly as good as the best stays as it is ([`next`]): who changes neighbors begins
//!   transfers anew.
//!
//! Sans-I/O.

mod blocks;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use blocks::Blocks;

/// A link that nobody has measured, or that is down.
pub const UNREACHABLE: u32 = u32::MAX;
/// Most members of a topology.
pub const MEMBERS_MAX: usize = 4_096;
/// Members whose next topology costs no less than this share of what it costs now keep what they have.
const WORTH_CHANGING: f64 = 0.85;
/// Of each member the links to so many others are tried first, since they nearly always suffice.
const NEAREST: usize = 24;

/// Returns what a link costs: the time that an update of `bytes` takes over it, in microseconds, with two
/// round trips to ask for it; `bandwidth` is in bytes a second.
pub fn cost(round_trip: Duration, bandwidth: u64, bytes: u64) -> u32 {
    let sending = u128::from(bytes) * 1_000_000 / u128::from(bandwidth.max(1));
    let all = 2 * round_trip.as_micros() + sending;
    // Whatever takes more than an hour is there all the same.
    u32::try_from(all).unwrap_or(UNREACHABLE).clamp(1, UNREACHABLE - 1)
}

/// What the links between members cost, in microseconds, the same both ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    members: usize,
    /// Of each member, to each: both halves, as rows are read one after another.
    between: Vec<u32>,
}

impl Costs {
    /// Makes the costs of `members` members, at most [`MEMBERS_MAX`], none of which reaches another.
    pub fn new(members: usize) -> Self {
        let members = members.min(MEMBERS_MAX);
        Self { members, between: vec![UNREACHABLE; members * members] }
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Says what the link between two members costs. Members that there are not, and a member's link to
    /// itself, are ignored.
    pub fn set(&mut self, a: usize, b: usize, cost: u32) {
        if a == b || self.members <= a.max(b) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            self.between[from * self.members + to] = cost;
        }
    }

    /// What the link between two members costs; [`UNREACHABLE`] where there is none.
    pub fn get(&self, a: usize, b: usize) -> u32 {
        if self.members <= a.max(b) { UNREACHABLE } else { self.row(a)[b] }
    }

    /// What the links of a member cost.
    fn row(&self, member: usize) -> &[u32] {
        &self.between[member * self.members..][..self.members]
    }

    fn of(&self, links: &[Link]) -> u64 {
        links.iter().map(|it| u64::from(self.get(it.a(), it.b()))).sum()
    }
}

/// A link between two members; the one with the smaller number first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(u16, u16);

impl Link {
    fn new(a: usize, b: usize) -> Self {
        // Members are at most MEMBERS_MAX.
        let number = |it: usize| u16::try_from(it).unwrap_or(u16::MAX);
        Self(number(a.min(b)), number(a.max(b)))
    }

    /// The member with the smaller number.
    pub fn a(self) -> usize {
        usize::from(self.0)
    }

    /// The other.
    pub fn b(self) -> usize {
        usize::from(self.1)
    }
}

/// How many members can be lost without the others losing each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// None: the tree alone.
    Tree,
    /// One.
    Two,
    /// Any two.
    Three,
}

/// Bounds of the tree; held as far as there are links to hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Most links from the tree's center to a member: no path has more than twice as many.
    pub depth_max: usize,
    /// Most neighbors of a member in the tree. With the links beside it, it has at most twice as many.
    pub degree_max: usize,
}

impl Bounds {
    /// What a group has by default.
    pub const DEFAULT: Self = Self { depth_max: 6, degree_max: 8 };
    /// None at all.
    pub const NONE: Self = Self { depth_max: usize::MAX, degree_max: usize::MAX };
}

/// Links that are no topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinksError {
    /// Of a member that there is not, or of one with itself.
    #[error("a link from member {0} to member {1} is none")]
    Ends(u16, u16),
    /// Not in ascending order, or twice.
    #[error("a link from member {0} to member {1} is not in order, or there twice")]
    Order(u16, u16),
    /// The tree has a circle.
    #[error("with a link from member {0} to member {1} the tree is none")]
    Circle(u16, u16),
}

/// The links over which a group's members are neighbors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    members: usize,
    tree: Vec<Link>,
    beside: Vec<Link>,
}

impl Topology {
    /// Computes the topology of least cost that is found. Members that no link reaches stay alone.
    pub fn new(costs: &Costs, connectivity: Connectivity, bounds: Bounds) -> Self {
        let tree = tree::spanning(costs, bounds);
        let mut all = Self { members: costs.members(), tree, beside: Vec::new() };
        all.connect(costs, connectivity, bounds);
        all.beside.sort_unstable();
        all
    }

    /// Takes the links of a topology of `members` members that somebody else has computed: pairs of members, the
    /// smaller number first, those of the tree and those beside it each in ascending order.
    ///
    /// # Errors
    ///
    /// They are no topology: whoever sent them is broken, or lies.
    pub fn from_links(
        members: usize,
        tree: &[(u16, u16)],
        beside: &[(u16, u16)],
    ) -> Result<Self, LinksError> {
        let mut tops: Vec<u16> =
            (0..members.min(MEMBERS_MAX)).filter_map(|it| it.try_into().ok()).collect();
        for &(a, b) in tree.iter().chain(beside) {
            if b <= a || tops.len() <= usize::from(b) {
                return Err(LinksError::Ends(a, b));
            }
        }
        for list in [tree, beside] {
            if let Some([_, (a, b)]) = list.array_windows().find(|[one, next]| next <= one) {
                return Err(LinksError::Order(*a, *b));
            }
        }
        if let Some((a, b)) = beside.iter().find(|it| tree.binary_search(it).is_ok()) {
            return Err(LinksError::Order(*a, *b));
        }
        for &(a, b) in tree {
            let (top_a, top_b) = (top(&mut tops, a), top(&mut tops, b));
            if top_a == top_b {
                return Err(LinksError::Circle(a, b));
            }
            tops[usize::from(top_a)] = top_b;
        }
        let links = |list: &[(u16, u16)]| list.iter().map(|it| Link(it.0, it.1)).collect();
        Ok(Self { members: tops.len(), tree: links(tree), beside: links(beside) })
    }

    /// Adds the links that it lacks to be as connected as is asked for.
    fn connect(&mut self, costs: &Costs, connectivity: Connectivity, bounds: Bounds) {
        let wanted = match connectivity {
            Connectivity::Tree => 0,
            Connectivity::Two => 1,
            Connectivity::Three => 2,
        };
        let degree_max = bounds.degree_max.saturating_mul(2);
        let near = nearest(costs);
        for lost in 0..wanted {
            // With any member gone that was to be spared before, the rest is to stay whole without one more.
            let gone: Vec<Option<usize>> =
                if lost == 0 { vec![None] } else { (0..costs.members()).map(Some).collect() };
            for gone in gone {
                self.thicken(costs, gone, degree_max, &near);
            }
        }
    }

    /// Adds the cheapest links that are needed so that without `gone` no single member cuts off others.
    fn thicken(&mut self, costs: &Costs, gone: Option<usize>, degree_max: usize, near: &[Link]) {
        let mut blocks = Blocks::new(self, gone);
        if blocks.is_whole() {
            return;
        }
        let mut degrees = vec![0_usize; self.members];
        for link in self.links() {
            for end in [link.a(), link.b()] {
                degrees[end] += 1;
            }
        }
        let mut every = Vec::new();
        // First those at hand, then all, then all whatever the bound says.
        for round in 0..3 {
            if round == 1 {
                every = sorted(costs, |_, _| true);
            }
            for link in if round == 0 { near } else { &every } {
                let (a, b) = (link.a(), link.b());
                let is_full = degree_max <= degrees[a].max(degrees[b]);
                if (is_full && round < 2) || !blocks.join(a, b) {
                    continue;
                }
                self.beside.push(*link);
                for end in [a, b] {
                    degrees[end] += 1;
                }
                if blocks.is_whole() {
                    return;
                }
            }
        }
    }

    /// How many members it is of.
    pub fn members(&self) -> usize {
        self.members
    }

    /// The links of the tree, in order.
    pub fn tree(&self) -> &[Link] {
        &self.tree
    }

    /// The links beside the tree, in order.
    pub fn beside(&self) -> &[Link] {
        &self.beside
    }

    /// All links.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.tree.iter().chain(&self.beside).copied()
    }

    /// The neighbors of a member, those of the tree first.
    pub fn neighbors(&self, member: usize) -> impl Iterator<Item = usize> {
        self.links().filter_map(move |it| match (it.a() == member, it.b() == member) {
            (true, _) => Some(it.b()),
            (_, true) => Some(it.a()),
            _ => None,
        })
    }

    /// Returns of each member the neighbor in the tree through which it is reached from `origin`: whom it
    /// pulls from. None for the origin, and for those that it does not reach.
    pub fn toward(&self, origin: usize) -> Vec<Option<usize>> {
        let lists = lists(self.members, self.tree.iter().copied());
        let mut toward = vec![None; self.members];
        let mut queue = VecDeque::from([origin]);
        while let Some(at) = queue.pop_front() {
            for &next in lists.get(at).into_iter().flatten() {
                let it = toward.get_mut(next).filter(|it| it.is_none() && next != origin);
                if let Some(it) = it {
                    *it = Some(at);
                    queue.push_back(next);
                }
            }
        }
        toward
    }

    /// The most links of the tree between two members.
    pub fn diameter(&self) -> usize {
        tree::longest_path(&lists(self.members, self.tree.iter().copied()), 0).len().max(1) - 1
    }

    /// What it costs; more than any other where a link of it is down.
    fn cost(&self, costs: &Costs) -> u64 {
        if self.links().any(|it| costs.get(it.a(), it.b()) == UNREACHABLE) {
            return u64::MAX;
        }
        costs.of(&self.tree) + costs.of(&self.beside)
    }

    /// Whether it reaches, between the members that it is of, whatever the other reaches.
    fn reaches_as(&self, other: &Self) -> bool {
        (self.members, self.tree.len()) == (other.members, other.tree.len())
    }
}

/// Returns the topology that comes after `current`, which is of the same members: `current` itself, unless
/// another costs clearly less, in its tree or in all, a link of it is down, or it is less connected than is asked
/// for.
pub fn next(
    current: &Topology,
    costs: &Costs,
    connectivity: Connectivity,
    bounds: Bounds,
) -> Topology {
    let new = Topology::new(costs, connectivity, bounds);
    let old_cost = current.cost(costs);
    let is_less = |new: u64, old: u64| (new as f64) < old as f64 * WORTH_CHANGING;
    // Content goes over the tree: where all links are used anyway, which of them are the tree's still matters.
    let is_worth_it =
        is_less(new.cost(costs), old_cost) || is_less(costs.of(&new.tree), costs.of(&current.tree));
    if !current.reaches_as(&new) || old_cost == u64::MAX || is_worth_it {
        return new;
    }
    let mut connected = current.clone();
    connected.connect(costs, connectivity, bounds);
    if connected == *current { connected } else { new }
}

/// Returns who stands for the part of the tree that a member is in.
fn top(tops: &mut [u16], member: u16) -> u16 {
    let mut at = member;
    loop {
        let next = tops[usize::from(at)];
        if next == at {
            return at;
        }
        // Halves the way for who comes after.
        tops[usize::from(at)] = tops[usize::from(next)];
        at = next;
    }
}

/// The neighbors of each member over these links.
fn lists(members: usize, links: impl Iterator<Item = Link>) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); members];
    for link in links {
        for (from, to) in [(link.a(), link.b()), (link.b(), link.a())] {
            lists[from].push(to);
        }
    }
    lists
}

/// Returns the links of each member to those that are nearest to it, the cheapest first.
fn nearest(costs: &Costs) -> Vec<Link> {
    let reach: Vec<u32> = (0..costs.members())
        .map(|member| {
            let mut row = costs.row(member).to_vec();
            let at = NEAREST.min(row.len() - 1);
            *row.select_nth_unstable(at).1
        })
        .collect();
    let within = |a: usize, b: usize| {
        let cost = costs.get(a, b);
        cost <= reach[a].max(reach[b])
    };
    sorted(costs, within)
}

/// Returns all links that there are and that are `wanted`, the cheapest first.
fn sorted(costs: &Costs, wanted: impl Fn(usize, usize) -> bool) -> Vec<Link> {
    let mut all = Vec::new();
    for a in 0..costs.members() {
        for (b, &cost) in costs.row(a).iter().enumerate().skip(a + 1) {
            if cost != UNREACHABLE && wanted(a, b) {
                all.push((cost, Link::new(a, b)));
            }
        }
    }
    all.sort_unstable();
    all.into_iter().map(|(_, link)| link).collect()
}
