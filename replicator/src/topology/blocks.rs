//! Which links of a graph lie on a circle together: its blocks, kept up to date as links are added.
//!
//! Two members are still connected when any third is lost as long as all links of the graph are of one
//! block (Menger). The links of a spanning tree are kept in disjoint sets, one a block; a link beside the
//! tree makes one set of all that its ends are connected by. Each set knows the member at its top, so
//! a path is climbed set by set.
//!
//! Source: J. Westbrook and R. E. Tarjan, "Maintaining bridge-connected and biconnected components on-line"
//! (Algorithmica 7, 1992), of which this is the case in which the tree stays.
//!
//! Sans-I/O.

use super::{Topology, lists};

/// The blocks of a graph without one of its members.
pub(super) struct Blocks {
    /// Of each member, how many links it is below the top of the walk.
    depths: Vec<usize>,
    /// Of each member the top of the part that it is in.
    roots: Vec<usize>,
    /// The set that the link to the one above is in, by a member of the same.
    sets: Vec<usize>,
    /// Of a set, by the member that stands for it, the member at its top.
    tops: Vec<usize>,
    /// Sets beyond one for each part.
    surplus: usize,
}

impl Blocks {
    pub(super) fn new(graph: &Topology, gone: Option<usize>) -> Self {
        let members = graph.members();
        let lists = lists(members, graph.links());
        let mut it = Self {
            depths: vec![0; members],
            roots: vec![usize::MAX; members],
            sets: (0..members).collect(),
            tops: (0..members).collect(),
            surplus: 0,
        };
        for root in 0..members {
            if Some(root) != gone && it.roots[root] == usize::MAX {
                it.plant(root, gone, &lists);
            }
        }
        for link in graph.links().filter(|it| Some(it.a()) != gone && Some(it.b()) != gone) {
            it.join(link.a(), link.b());
        }
        it
    }

    /// Walks through a part, breadth first.
    fn plant(&mut self, root: usize, gone: Option<usize>, lists: &[Vec<usize>]) {
        self.roots[root] = root;
        let mut order = vec![root];
        let mut done = 0;
        while let Some(&at) = order.get(done) {
            done += 1;
            for &next in &lists[at] {
                if Some(next) == gone || self.roots[next] != usize::MAX {
                    continue;
                }
                self.roots[next] = root;
                self.tops[next] = at;
                self.depths[next] = self.depths[at] + 1;
                order.push(next);
            }
        }
        // Of n members the tree has n - 1 links, each a set of its own so far.
        self.surplus += order.len().saturating_sub(2);
    }

    /// Whether every part is one block.
    pub(super) fn is_whole(&self) -> bool {
        self.surplus == 0
    }

    /// Adds a link; returns whether anything is of one block now that was not. Links between parts, and those
    /// of the one who is gone, change nothing.
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

    /// Returns the member that stands for a member's set.
    fn find(&mut self, member: usize) -> usize {
        let mut at = member;
        loop {
            let next = self.sets[at];
            if next == at {
                return at;
            }
            // Halves the way for who comes after.
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
