//! Blocks of a graph (biconnected components), kept up to date as links are added.
//!
//! If all links of a graph are in one block, any two members stay connected when any third is lost
//! (Menger). The links of a spanning tree are kept in disjoint sets, one for each block. A link
//! beside the tree unites all sets on the path between its ends. Each set knows its top member, so
//! a path is climbed set by set.
//!
//! Source: J. Westbrook and R. E. Tarjan, "Maintaining bridge-connected and biconnected components
//! on-line" (Algorithmica 7, 1992); this is the case with a fixed tree.
//!
//! Sans-I/O.

use super::{Topology, adjacency};

/// The blocks of a graph without one of its members.
pub(super) struct Blocks {
    /// The depth of each member below the root of its part.
    depths: Vec<usize>,
    /// The root of each member's part.
    roots: Vec<usize>,
    /// The union-find parent of each member. A member stands for its link upward in the tree.
    sets: Vec<usize>,
    /// The top member of each set, indexed by the set's representative.
    tops: Vec<usize>,
    /// Number of sets beyond one for each part.
    surplus: usize,
}

impl Blocks {
    pub(super) fn new(graph: &Topology, gone: Option<usize>) -> Self {
        let members = graph.members();
        let adjacency = adjacency(members, graph.links());
        let mut it = Self {
            depths: vec![0; members],
            roots: vec![usize::MAX; members],
            sets: (0..members).collect(),
            tops: (0..members).collect(),
            surplus: 0,
        };
        for root in 0..members {
            if Some(root) != gone && it.roots[root] == usize::MAX {
                it.plant(root, gone, &adjacency);
            }
        }
        for link in graph.links().filter(|it| Some(it.a()) != gone && Some(it.b()) != gone) {
            it.join(link.a(), link.b());
        }
        it
    }

    /// Visits the part with this root breadth first, and makes its spanning tree.
    fn plant(&mut self, root: usize, gone: Option<usize>, adjacency: &[Vec<usize>]) {
        self.roots[root] = root;
        let mut order = vec![root];
        let mut done = 0;
        while let Some(&at) = order.get(done) {
            done += 1;
            for &next in &adjacency[at] {
                if Some(next) == gone || self.roots[next] != usize::MAX {
                    continue;
                }
                self.roots[next] = root;
                self.tops[next] = at;
                self.depths[next] = self.depths[at] + 1;
                order.push(next);
            }
        }
        // The tree of n members has n - 1 links, each a set of its own at first.
        self.surplus += order.len().saturating_sub(2);
    }

    /// Returns whether every part is one block.
    pub(super) fn is_whole(&self) -> bool {
        self.surplus == 0
    }

    /// Adds a link. Returns whether it has united blocks. Links between parts and links of the
    /// removed member change nothing.
    pub(super) fn join(&mut self, a: usize, b: usize) -> bool {
        let root = self.roots[a];
        if root == usize::MAX || root != self.roots[b] {
            return false;
        }
        let (mut a, mut b) = (a, b);
        let mut all: Option<usize> = None;
        let before = self.surplus;
        while a != b {
            if self.depths[a] < self.depths[b] {
                std::mem::swap(&mut a, &mut b);
            }
            let set = self.find(a);
            a = self.tops[set];
            all = Some(all.map_or(set, |all| self.unite(all, set)));
        }
        self.surplus < before
    }

    /// Returns the representative of a member's set.
    fn find(&mut self, member: usize) -> usize {
        let mut at = member;
        loop {
            let next = self.sets[at];
            if next == at {
                return at;
            }
            // Path halving.
            self.sets[at] = self.sets[next];
            at = self.sets[at];
        }
    }

    fn unite(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return a;
        }
        let (top_a, top_b) = (self.tops[a], self.tops[b]);
        let is_a = self.depths[top_a] <= self.depths[top_b];
        self.tops[a] = if is_a { top_a } else { top_b };
        self.sets[b] = a;
        self.surplus -= 1;
        a
    }
}
