//! The topology of a group: a spanning tree of low cost for content, and links beside it, so that
//! the loss of a member cuts nobody off.
//!
//! Source: TR §8: "take a minimum spanning tree and add low cost links until the graph's
//! connectivity requirement is met".
//!
//! Every member computes the same topology from the same costs: only whole numbers are compared,
//! and members are numbered in the order of their ids.
//!
//! # Differences from the paper
//!
//! * A link costs the time that an update takes over it: two round trips and its bytes over the
//!   bandwidth ([`cost`]). The paper takes the ratio of bandwidth to delay, which is not a time,
//!   and whose sum along a path has no meaning.
//! * [`Bounds`] limit the tree's depth and each member's neighbors in it, as far as the links
//!   allow. Without bounds a tree of 300 members may be 33 links deep, or one member may serve all.
//! * *k*-connected refers to members (vertices); *k*-connectivity of links follows from it.
//! * A topology that is nearly as good as the best stays as it is ([`next`]), because a member that
//!   changes neighbors begins its transfers anew.
//!
//! Sans-I/O.

mod blocks;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use blocks::Blocks;

/// Cost of a link that nobody has measured, or that is down.
pub const UNREACHABLE: u32 = u32::MAX;
/// Maximum number of members of a topology.
pub const MEMBERS_MAX: usize = 4_096;
/// A new topology counts as clearly cheaper if it costs less than this share of the current cost.
const WORTH_CHANGING: f64 = 0.85;
/// Number of each member's cheapest links, which are tried first: they nearly always suffice.
const NEAREST: usize = 24;

/// Returns the cost of a link: the time in microseconds that an update of `bytes` takes over it,
/// with two round trips for the request. `bandwidth` is in bytes a second.
pub fn cost(round_trip: Duration, bandwidth: u64, bytes: u64) -> u32 {
    let sending = u128::from(bytes) * 1_000_000 / u128::from(bandwidth.max(1));
    let all = 2 * round_trip.as_micros() + sending;
    // Even a link on which an update takes more than an hour is reachable.
    u32::try_from(all).unwrap_or(UNREACHABLE).clamp(1, UNREACHABLE - 1)
}

/// The costs of the links between members, in microseconds, equal in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    members: usize,
    /// The whole matrix, row by row: both halves are stored, because rows are read as slices.
    between: Vec<u32>,
}

impl Costs {
    /// Makes costs of this many members, at most [`MEMBERS_MAX`], with all links [`UNREACHABLE`].
    pub fn new(members: usize) -> Self {
        let members = members.min(MEMBERS_MAX);
        Self { members, between: vec![UNREACHABLE; members * members] }
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Sets the cost of the link between two members. Unknown and equal members are ignored.
    pub fn set(&mut self, a: usize, b: usize, cost: u32) {
        if a == b || self.members <= a.max(b) {
            return;
        }
        for (from, to) in [(a, b), (b, a)] {
            self.between[from * self.members + to] = cost;
        }
    }

    /// Returns the cost of the link between two members; [`UNREACHABLE`] if there is none.
    pub fn get(&self, a: usize, b: usize) -> u32 {
        if self.members <= a.max(b) { UNREACHABLE } else { self.row(a)[b] }
    }

    /// Returns the costs of a member's links.
    fn row(&self, member: usize) -> &[u32] {
        &self.between[member * self.members..][..self.members]
    }

    fn sum(&self, links: &[Link]) -> u64 {
        links.iter().map(|it| u64::from(self.get(it.a(), it.b()))).sum()
    }
}

/// A link between two members, the one with the smaller number first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(u16, u16);

impl Link {
    fn new(a: usize, b: usize) -> Self {
        // Numbers of members are below MEMBERS_MAX.
        let number = |it: usize| u16::try_from(it).unwrap_or(u16::MAX);
        Self(number(a.min(b)), number(a.max(b)))
    }

    /// Returns the member with the smaller number.
    pub fn a(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the member with the greater number.
    pub fn b(self) -> usize {
        usize::from(self.1)
    }
}

/// The number of members that can be lost without separating the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// None: the tree alone.
    Tree,
    /// Any one member.
    Two,
    /// Any two members.
    Three,
}

impl Connectivity {
    /// Returns how many members have to fail before the others may lose each other: 1 to 3.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Tree => 1,
            Self::Two => 2,
            Self::Three => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Tree, Self::Two, Self::Three].into_iter().find(|it| it.number() == number)
    }
}

/// Bounds of the tree, kept as far as the links allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of links from the tree's center to a member; a path has at most twice this.
    pub depth_max: usize,
    /// Maximum number of a member's neighbors in the tree; with the links beside it, twice this.
    pub degree_max: usize,
}

impl Bounds {
    /// The default of a group.
    pub const DEFAULT: Self = Self { depth_max: 6, degree_max: 8 };
    /// No bounds.
    pub const NONE: Self = Self { depth_max: usize::MAX, degree_max: usize::MAX };
}

/// The links over which a group's members are neighbors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    members: usize,
    tree: Vec<Link>,
    beside: Vec<Link>,
}

impl Topology {
    /// Computes a topology of low cost. Members that no link reaches stay alone.
    pub fn new(costs: &Costs, connectivity: Connectivity, bounds: Bounds) -> Self {
        let tree = tree::spanning(costs, bounds);
        let mut all = Self { members: costs.members(), tree, beside: Vec::new() };
        all.connect(costs, connectivity, bounds);
        all.beside.sort_unstable();
        all
    }

    /// Makes a topology of `members` members from links that another member computed: pairs of
    /// members, the smaller number first, in ascending order both in the tree and beside it. `None`
    /// if they do not form a topology: an end is unknown, they are out of order or repeated, or the
    /// tree has a circle.
    pub fn from_links(members: usize, tree: &[(u16, u16)], beside: &[(u16, u16)]) -> Option<Self> {
        let mut tops: Vec<u16> =
            (0..members.min(MEMBERS_MAX)).filter_map(|it| it.try_into().ok()).collect();
        let is_link = |&(a, b): &(u16, u16)| a < b && usize::from(b) < tops.len();
        let is_ordered = |list: &[(u16, u16)]| list.array_windows().all(|[one, next]| one < next);
        if !tree.iter().chain(beside).all(is_link)
            || !is_ordered(tree)
            || !is_ordered(beside)
            || beside.iter().any(|it| tree.binary_search(it).is_ok())
        {
            return None;
        }
        for &(a, b) in tree {
            let (top_a, top_b) = (top(&mut tops, a), top(&mut tops, b));
            if top_a == top_b {
                return None;
            }
            tops[usize::from(top_a)] = top_b;
        }
        let links = |list: &[(u16, u16)]| list.iter().map(|it| Link(it.0, it.1)).collect();
        Some(Self { members: tops.len(), tree: links(tree), beside: links(beside) })
    }

    /// Adds the links that `connectivity` needs.
    fn connect(&mut self, costs: &Costs, connectivity: Connectivity, bounds: Bounds) {
        let degree_max = bounds.degree_max.saturating_mul(2);
        let near = nearest(costs);
        for lost in 1..connectivity.number() {
            // For three-connectivity the members have to be two-connected without any one of them.
            let gone: Vec<Option<usize>> =
                if lost == 1 { vec![None] } else { (0..costs.members()).map(Some).collect() };
            for gone in gone {
                self.thicken(costs, gone, degree_max, &near);
            }
        }
    }

    /// Adds the cheapest links that are needed so that, without `gone`, the loss of no single
    /// member separates others.
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
        // First the nearest links, then all, then all without the bound on degrees.
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

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the links of the tree, in order.
    pub fn tree(&self) -> &[Link] {
        &self.tree
    }

    /// Returns the links beside the tree, in order.
    pub fn beside(&self) -> &[Link] {
        &self.beside
    }

    /// Returns all links, those of the tree first.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.tree.iter().chain(&self.beside).copied()
    }

    /// Returns the neighbors of a member, those of the tree first.
    pub fn neighbors(&self, member: usize) -> impl Iterator<Item = usize> {
        self.links().filter_map(move |it| match (it.a() == member, it.b() == member) {
            (true, _) => Some(it.b()),
            (_, true) => Some(it.a()),
            _ => None,
        })
    }

    /// Returns for each member its neighbor in the tree toward `origin`, from which it pulls.
    /// `None` for the origin and for members that the tree does not connect to it.
    pub fn toward(&self, origin: usize) -> Vec<Option<usize>> {
        let adjacency = adjacency(self.members, self.tree.iter().copied());
        let mut toward = vec![None; self.members];
        let mut queue = VecDeque::from([origin]);
        while let Some(at) = queue.pop_front() {
            for &next in adjacency.get(at).into_iter().flatten() {
                let it = toward.get_mut(next).filter(|it| it.is_none() && next != origin);
                if let Some(it) = it {
                    *it = Some(at);
                    queue.push_back(next);
                }
            }
        }
        toward
    }

    /// Returns the number of links of the tree's longest path, in the part that member 0 is in.
    pub fn diameter(&self) -> usize {
        tree::longest_path(&adjacency(self.members, self.tree.iter().copied()), 0).len().max(1) - 1
    }

    /// Returns the sum of the costs of all links; `u64::MAX` if a link is [`UNREACHABLE`].
    fn cost(&self, costs: &Costs) -> u64 {
        if self.links().any(|it| costs.get(it.a(), it.b()) == UNREACHABLE) {
            return u64::MAX;
        }
        costs.sum(&self.tree) + costs.sum(&self.beside)
    }
}

/// Returns the topology that follows `current`: `current` itself, unless another one reaches other
/// members or is clearly cheaper (all its links, or its tree), a link is down, or `connectivity` is
/// not reached.
pub fn next(
    current: &Topology,
    costs: &Costs,
    connectivity: Connectivity,
    bounds: Bounds,
) -> Topology {
    let new = Topology::new(costs, connectivity, bounds);
    let old_cost = current.cost(costs);
    let is_less = |new: u64, old: u64| (new as f64) < old as f64 * WORTH_CHANGING;
    // Content goes over the tree, so a cheaper tree is worth a change even if all links stay.
    let is_worth_it = is_less(new.cost(costs), old_cost)
        || is_less(costs.sum(&new.tree), costs.sum(&current.tree));
    let reaches_as = (current.members, current.tree.len()) == (new.members, new.tree.len());
    if !reaches_as || old_cost == u64::MAX || is_worth_it {
        return new;
    }
    let mut connected = current.clone();
    connected.connect(costs, connectivity, bounds);
    if connected == *current { connected } else { new }
}

/// Returns the representative of the part of the tree that a member is in (union-find).
fn top(tops: &mut [u16], member: u16) -> u16 {
    let mut at = member;
    loop {
        let next = tops[usize::from(at)];
        if next == at {
            return at;
        }
        // Path halving.
        tops[usize::from(at)] = tops[usize::from(next)];
        at = next;
    }
}

/// Returns the neighbors of each member over these links.
fn adjacency(members: usize, links: impl Iterator<Item = Link>) -> Vec<Vec<usize>> {
    let mut adjacency = vec![Vec::new(); members];
    for link in links {
        for (from, to) in [(link.a(), link.b()), (link.b(), link.a())] {
            adjacency[from].push(to);
        }
    }
    adjacency
}

/// Returns the [`NEAREST`] cheapest links of each member, in the order of cost.
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

/// Returns all links that are `wanted` and not [`UNREACHABLE`], the cheapest first.
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
