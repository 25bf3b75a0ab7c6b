//! Carried trees: the trees that a member of two groups brings from one group into the other.
//!
//! # Differences from the paper
//!
//! A flood-d that is in two groups passes on everything. Here a tree is listed in the group into
//! which it is brought, with its distance from its writer (`charter/trees.rs`). A tree that is no
//! longer listed in its first group, and only circulates between other groups, soon exceeds the
//! greatest distance.
//!
//! Sans-I/O.

use super::Group;
use super::charter::{Carried, Listed};
use crate::flood::DISTANCE_MAX;
use crate::id::MemberId;

impl Group {
    /// Returns the trees that this member brings into this group from `other`, another of its
    /// groups. These are all trees of `other` except those written by members of this group (they
    /// list their trees themselves), those that only this member lists in `other`, and those beyond
    /// the greatest distance.
    pub fn brought_from<'a>(&self, other: &'a Self) -> impl Iterator<Item = Carried> + 'a {
        let (me, into) = (self.me, self.charter.clone());
        let is_theirs = move |it: &Listed| {
            let writer = MemberId::of(&it.tree.writer);
            into.as_ref().is_some_and(|it| it.body().member(writer).is_some())
        };
        let trees = other.charter.iter().flat_map(|it| &it.body().trees);
        trees.filter(move |it| !is_theirs(it)).filter_map(move |it| {
            let others = it.by.iter().filter(|it| it.member != me);
            let distance = others.map(|it| it.distance).min()? + 1;
            let tree = it.tree.clone();
            (distance <= DISTANCE_MAX).then_some(Carried { tree, distance })
        })
    }
}
