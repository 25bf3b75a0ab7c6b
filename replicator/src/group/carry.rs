//! Which trees a member of two groups brings from one into the other.
//!
//! # Differences from the paper
//!
//! A flood-d of two groups passes on all that comes. Here a tree is listed in the group into which it is brought, with how
//! far it has come (`charter/trees.rs`): what nobody publishes any more in the group where it began, and only goes round
//! between others, is soon too far for any of them.
//!
//! Sans-I/O.

use super::Group;
use super::charter::{Carried, Listed};
use crate::flood::DISTANCE_MAX;
use crate::id::MemberId;

impl Group {
    /// The trees of another group, in which this member is as well, that it brings into this one: all but those of
    /// members of this one, who list them themselves, or do not any more; those that it alone has brought there; and
    /// those that have come too far.
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
