//! A spanning tree of low cost, bounded in depth and degree.
//!
//! Source: Prim's algorithm over a full matrix, O(n²), and for shallower trees what C. J. Alpert et al. make of
//! it ("Prim-Dijkstra tradeoffs for improved performance-driven routing tree design", IEEE Transactions on
//! CAD 14, 1995): who is deeper counts as further away, here by a share of the link's cost for each
//! link above it. So a site turns from a chain into a star, where links cost much the same, before a
//! second slow link is taken to it.
//!
//! Sans-I/O.

use super::{Bounds, Costs, Link, UNREACHABLE, lists};

/// Sixteenths of a link's cost that each link above it adds, one after another until the tree is shallow
/// enough.
const SLOPES: [u64; 5] = [0, 2, 8, 32, 128];

/// Returns the links of a spanning tree, or of one for each part of members that reach each other, in order.
pub(super) fn spanning(costs: &Costs, bounds: Bounds) -> Vec<Link> {
    let free = Growth::new(costs, Bounds::NONE, 0).grow(&[]);
    let of = |links: &[Link]| lists(costs.members(), links.iter().copied());
    let lists = of(&free);
    let middles = centers(&lists);
    let is_shallow = |depth: usize| depth <= bounds.depth_max.saturating_mul(2);
    let is_free = middles.iter().all(|(_, path)| is_shallow(*path))
        && lists.iter().all(|it| it.len() <= bounds.degree_max);
    let mut links = free;
    if !is_free {
        let roots: Vec<usize> = middles.iter().map(|(center, _)| *center).collect();
        let any_depth = Bounds { depth_max: usize::MAX, ..bounds };
        let mut sloped = SLOPES.iter().map(|it| Growth::new(costs, any_depth, *it).grow(&roots));
        let shallow = |it: &Vec<Link>| centers(&of(it)).iter().all(|it| is_shallow(it.1));
        links = sloped
            .find(shallow)
            .unwrap_or_else(|| Growth::new(costs, bounds, SLOPES[SLOPES.len() - 1]).grow(&roots));
    }
    links.sort_unstable();
    links
}

/// Returns the center of each part, in the middle of its longest path, and how many links that path has.
fn centers(lists: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let mut seen = vec![false; lists.len()];
    let mut centers = Vec::new();
    for member in 0..lists.len() {
        if seen[member] {
            continue;
        }
        let (all, _) = walk(lists, member);
        for it in all {
            seen[it] = true;
        }
        let path = longest_path(lists, member);
        let middle = path.get(path.len() / 2).copied().unwrap_or(member);
        centers.push((middle, path.len() - 1));
    }
    centers
}

/// Returns the longest path of the part that `member` is in.
pub(super) fn longest_path(lists: &[Vec<usize>], member: usize) -> Vec<usize> {
    let far = |from: usize| walk(lists, from).0.last().copied().unwrap_or(from);
    let end = far(member);
    let (all, before) = walk(lists, end);
    let mut path: Vec<usize> = all.last().copied().into_iter().collect();
    while let Some(next) = path.last().and_then(|it| before[*it]) {
        path.push(next);
    }
    path
}

/// Returns who is reached from a member, the nearest first, and of each the one before it.
fn walk(lists: &[Vec<usize>], from: usize) -> (Vec<usize>, Vec<Option<usize>>) {
    let (mut order, mut before) = (vec![from], vec![None; lists.len()]);
    let mut done = 0;
    while let Some(&at) = order.get(done) {
        done += 1;
        for &next in &lists[at] {
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

/// A tree that grows. Members that are not in it know the one in it that they would be attached to.
struct Growth<'a> {
    costs: &'a Costs,
    bounds: Bounds,
    outside: Vec<usize>,
    inside: Vec<usize>,
    /// Sixteenths of a link's cost that each link above it adds.
    slope: u64,
    /// What it costs to attach a member, with what its depth adds, and to whom.
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

    /// Grows until all are in it, from the first root and, in parts that it does not reach, from others.
    fn grow(mut self, roots: &[usize]) -> Vec<Link> {
        let mut links = Vec::new();
        let mut roots = roots.iter().copied();
        while !self.outside.is_empty() {
            let Some((place, to)) = self.cheapest() else {
                // Nobody who has room reaches anybody: then those without room do.
                if self.bounds != Bounds::NONE && !self.inside.is_empty() {
                    self.lift();
                    if self.cheapest().is_some() {
                        continue;
                    }
                }
                let root = roots.find(|it| self.outside.contains(it));
                let place = root.and_then(|it| self.outside.iter().position(|other| *other == it));
                self.enter(place.unwrap_or(0), 0);
                continue;
            };
            let member = self.outside[place];
            if !self.has_room(to) {
                self.look(member);
                continue;
            }
            let depth = self.depths[to] + 1;
            for end in [member, to] {
                self.degrees[end] += 1;
            }
            links.push(Link::new(member, to));
            self.enter(place, depth);
        }
        links
    }

    /// Whoever is attached most cheaply: its place outside, and to whom.
    fn cheapest(&self) -> Option<(usize, usize)> {
        let outside = self.outside.iter().enumerate();
        let (place, member) = outside.min_by_key(|(_, it)| (self.best[**it].0, **it))?;
        let (cost, to) = self.best[*member];
        (cost != NEVER).then_some((place, to))
    }

    /// What it counts to attach a member to one at this depth.
    fn weight(&self, cost: u32, depth: usize) -> u64 {
        if cost == UNREACHABLE {
            return NEVER;
        }
        u64::from(cost) * (16 + self.slope * depth as u64)
    }

    fn has_room(&self, member: usize) -> bool {
        self.degrees[member] < self.bounds.degree_max && self.depths[member] < self.bounds.depth_max
    }

    /// Looks anew for whom a member is attached to, as the one that it was has no room any more.
    fn look(&mut self, member: usize) {
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

    /// Takes a member in.
    fn enter(&mut self, place: usize, depth: usize) {
        let member = self.outside.swap_remove(place);
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

    /// Lets go of the bounds for the rest.
    fn lift(&mut self) {
        self.bounds = Bounds::NONE;
        for member in self.outside.clone() {
            self.look(member);
        }
    }
}
