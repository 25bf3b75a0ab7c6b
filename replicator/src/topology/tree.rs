//! A spanning tree of low cost, bounded in depth and degree.
//!
//! Source: Prim's algorithm over a full matrix, O(n²). Shallower trees come from its variant by
//! C. J. Alpert et al. ("Prim-Dijkstra tradeoffs for improved performance-driven routing tree
//! design", IEEE Transactions on CAD 14, 1995): a link costs more the deeper it hangs, here by a
//! share of its cost for each link above it. So a site, whose links cost nearly the same, turns
//! from a chain into a star before a second slow link leads to it.
//!
//! Sans-I/O.

use super::{Bounds, Costs, Link, UNREACHABLE, adjacency};

/// Slopes (see [`Growth`]) that are tried in order until the tree is shallow enough.
const SLOPES: [u64; 5] = [0, 2, 8, 32, 128];

/// Returns the links of a spanning tree for each part of connected members, in order.
pub(super) fn spanning(costs: &Costs, bounds: Bounds) -> Vec<Link> {
    let free = Growth::new(costs, Bounds::NONE, 0).grow(&[]);
    let neighbors = |links: &[Link]| adjacency(costs.members(), links.iter().copied());
    let adjacency = neighbors(&free);
    let middles = centers(&adjacency);
    let is_shallow = |depth: usize| depth <= bounds.depth_max.saturating_mul(2);
    let is_free = middles.iter().all(|(_, path)| is_shallow(*path))
        && adjacency.iter().all(|it| it.len() <= bounds.degree_max);
    let mut links = free;
    if !is_free {
        let roots: Vec<usize> = middles.iter().map(|(center, _)| *center).collect();
        let any_depth = Bounds { depth_max: usize::MAX, ..bounds };
        let mut sloped = SLOPES.iter().map(|it| Growth::new(costs, any_depth, *it).grow(&roots));
        let shallow = |it: &Vec<Link>| centers(&neighbors(it)).iter().all(|it| is_shallow(it.1));
        links = sloped
            .find(shallow)
            .unwrap_or_else(|| Growth::new(costs, bounds, SLOPES[SLOPES.len() - 1]).grow(&roots));
    }
    links.sort_unstable();
    links
}

/// Returns the middle of each part's longest path, and the number of links of the path.
fn centers(adjacency: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut seen = vec![false; adjacency.len()];
    let mut centers = Vec::new();
    for member in 0..adjacency.len() {
        if seen[member] {
            continue;
        }
        let (all, _) = walk(adjacency, member);
        for it in all {
            seen[it] = true;
        }
        let path = longest_path(adjacency, member);
        let middle = path.get(path.len() / 2).copied().unwrap_or(member);
        centers.push((middle, path.len() - 1));
    }
    centers
}

/// Returns the longest path of the part that `member` is in.
pub(super) fn longest_path(adjacency: &[Vec<usize>], member: usize) -> Vec<usize> {
    let far = |from: usize| walk(adjacency, from).0.last().copied().unwrap_or(from);
    let end = far(member);
    let (all, before) = walk(adjacency, end);
    let mut path: Vec<usize> = all.last().copied().into_iter().collect();
    while let Some(next) = path.last().and_then(|it| before[*it]) {
        path.push(next);
    }
    path
}

/// Returns the members that a tree's member reaches, the nearest first, and their predecessors.
fn walk(adjacency: &[Vec<usize>], from: usize) -> (Vec<usize>, Vec<Option<usize>>) {
    let (mut order, mut before) = (vec![from], vec![None; adjacency.len()]);
    let mut done = 0;
    while let Some(&at) = order.get(done) {
        done += 1;
        for &next in &adjacency[at] {
            if before[at] != Some(next) {
                before[next] = Some(at);
                order.push(next);
            }
        }
    }
    (order, before)
}

/// More than any cost.
const NEVER: u64 = u64::MAX;

/// A growing tree. Each member outside it knows its cheapest attachment.
struct Growth<'a> {
    costs: &'a Costs,
    bounds: Bounds,
    outside: Vec<usize>,
    inside: Vec<usize>,
    /// Sixteenths of a link's cost that each link above it adds.
    slope: u64,
    /// The weighted cost to attach each member, and the member to attach it to.
    best: Vec<(u64, usize)>,
    depths: Vec<usize>,
    degrees: Vec<usize>,
}

impl<'a> Growth<'a> {
    fn new(costs: &'a Costs, bounds: Bounds, slope: u64) -> Self {
        let members = costs.members();
        Self {
            costs,
            bounds,
            outside: (0..members).collect(),
            inside: Vec::new(),
            slope,
            best: vec![(NEVER, 0); members],
            depths: vec![0; members],
            degrees: vec![0; members],
        }
    }

    /// Grows until no member is outside: from a root, and from further ones in parts out of reach.
    fn grow(mut self, roots: &[usize]) -> Vec<Link> {
        let mut links = Vec::new();
        let mut roots = roots.iter().copied();
        while !self.outside.is_empty() {
            let Some((index, to)) = self.cheapest() else {
                // No member within the bounds reaches any other: drop the bounds.
                if self.bounds != Bounds::NONE && !self.inside.is_empty() {
                    self.bounds = Bounds::NONE;
                    for member in self.outside.clone() {
                        self.update_best(member);
                    }
                    if self.cheapest().is_some() {
                        continue;
                    }
                }
                let root = roots.find(|it| self.outside.contains(it));
                let index = root.and_then(|it| self.outside.iter().position(|other| *other == it));
                self.enter(index.unwrap_or(0), 0);
                continue;
            };
            let member = self.outside[index];
            if !self.has_room(to) {
                self.update_best(member);
                continue;
            }
            let depth = self.depths[to] + 1;
            for end in [member, to] {
                self.degrees[end] += 1;
            }
            links.push(Link::new(member, to));
            self.enter(index, depth);
        }
        links
    }

    /// Returns the cheapest attachment: the index in `outside`, and the member to attach it to.
    fn cheapest(&self) -> Option<(usize, usize)> {
        let outside = self.outside.iter().enumerate();
        let (index, member) = outside.min_by_key(|(_, it)| (self.best[**it].0, **it))?;
        let (cost, to) = self.best[*member];
        (cost != NEVER).then_some((index, to))
    }

    /// Returns the cost of a link weighted by the depth of its upper end.
    fn weight(&self, cost: u32, depth: usize) -> u64 {
        if cost == UNREACHABLE {
            return NEVER;
        }
        u64::from(cost) * (16 + self.slope * depth as u64)
    }

    fn has_room(&self, member: usize) -> bool {
        self.degrees[member] < self.bounds.degree_max && self.depths[member] < self.bounds.depth_max
    }

    /// Finds the cheapest attachment of a member anew, because the last one has no room any more.
    fn update_best(&mut self, member: usize) {
        let row = self.costs.row(member);
        let mut best = (NEVER, 0);
        for &it in &self.inside {
            let this = (self.weight(row[it], self.depths[it]), it);
            if this < best && self.has_room(it) {
                best = this;
            }
        }
        self.best[member] = best;
    }

    fn enter(&mut self, index: usize, depth: usize) {
        let member = self.outside.swap_remove(index);
        self.inside.push(member);
        self.depths[member] = depth;
        if !self.has_room(member) {
            return;
        }
        let row = self.costs.row(member);
        for &other in &self.outside {
            self.best[other] = self.best[other].min((self.weight(row[other], depth), member));
        }
    }
}
