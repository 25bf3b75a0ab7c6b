//! The tree list of a charter: the trees that a group carries, and the members that list them.
//!
//! A tree is listed by its writer, if that is a member, and by members that bring it in from
//! another group. It stays as long as any member lists it. Its kind is the one that its writer
//! gives, or else the first one given.
//!
//! Each member states the group's distance from the writer. The writer itself states 0. A member
//! that brings the tree in states one more than the least distance in the other group (`carry`), at
//! most [`DISTANCE_MAX`]. So if a tree circulates among groups after its writer has left all of
//! them, its distance rises with each round, until nobody may list it.
//!
//! # Differences from the paper
//!
//! A flood-d carries everything that any of its groups brings. Here the leader knows the writers,
//! so that nobody has to accept trees that are not meant for the group.
//!
//! Sans-I/O.

use crate::flood::DISTANCE_MAX;
use crate::id::MemberId;
use crate::version::{Kind, Name, Namespace};
use crate::wire::{Reader, put_list, put_text};

/// Maximum number of trees and collections of a group.
pub const TREES_MAX: usize = 1_024;
/// Maximum number of members on record as listing one tree: its writer, and those at the least
/// distance. When one of them leaves, another takes its place.
pub const LISTERS_MAX: usize = 3;

/// A tree or a collection that the group carries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupTree {
    /// Key of its only writer.
    pub writer: [u8; 32],
    /// Its name among the trees of its writer.
    pub name: Name,
    /// Tree or collection.
    pub kind: Kind,
}

impl GroupTree {
    /// Returns the namespace of its versions.
    pub fn namespace(&self) -> Namespace {
        Namespace { origin: MemberId::of(&self.writer), name: self.name.clone() }
    }

    /// Returns its key within a group.
    pub(in super::super) fn id(&self) -> (&[u8; 32], &Name) {
        (&self.writer, &self.name)
    }

    pub(in super::super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.writer);
        put_text(bytes, self.name.as_str());
        bytes.push(self.kind.number());
    }

    pub(in super::super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { writer: from.array()?, name: from.name()?, kind: Kind::of_number(from.u8()?)? })
    }
}

/// A tree of another group that a member brings in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carried {
    /// The tree.
    pub tree: GroupTree,
    /// Number of groups that it came through, its writer's included: 1 to [`DISTANCE_MAX`].
    pub distance: u8,
}

impl Carried {
    pub(in super::super) fn write(&self, bytes: &mut Vec<u8>) {
        self.tree.write(bytes);
        bytes.push(self.distance);
    }

    pub(in super::super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let it = Self { tree: GroupTree::read(from)?, distance: from.u8()? };
        it.is_sound().then_some(it)
    }

    pub(in super::super) fn is_sound(&self) -> bool {
        (1..=DISTANCE_MAX).contains(&self.distance)
    }
}

/// A member that lists a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lister {
    /// Its id.
    pub member: MemberId,
    /// Number of groups that the tree came through: 0 if this member is its writer.
    pub distance: u8,
}

/// Returns whether trees are in the order of writer and name, each one once.
pub(in super::super) fn are_in_order<'a>(mut trees: impl Iterator<Item = &'a GroupTree>) -> bool {
    let Some(mut last) = trees.next() else { return true };
    trees.all(|it| std::mem::replace(&mut last, it).id() < it.id())
}

/// A tree of a group, with the members that list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The tree.
    pub tree: GroupTree,
    /// The members in the order of their ids: at least one, at most [`LISTERS_MAX`].
    pub by: Vec<Lister>,
}

impl Listed {
    /// Writes writer, name, kind, and the positions and distances of the members that list it.
    pub(super) fn write(&self, bytes: &mut Vec<u8>, position: impl Fn(MemberId) -> Option<usize>) {
        self.tree.write(bytes);
        put_list(bytes, &self.by, |bytes, it| {
            let position = position(it.member).and_then(|it| u16::try_from(it).ok());
            bytes.extend(position.unwrap_or(u16::MAX).to_be_bytes());
            bytes.push(it.distance);
        });
    }

    pub(super) fn read(
        from: &mut Reader<'_>,
        id: impl Fn(usize) -> Option<MemberId>,
    ) -> Option<Self> {
        let tree = GroupTree::read(from)?;
        let by = from.list(LISTERS_MAX, |from| {
            Some(Lister { member: id(from.u16()?.into())?, distance: from.u8()? })
        })?;
        Some(Self { tree, by })
    }

    pub(super) fn is_sound(&self, is_member: impl Fn(MemberId) -> bool) -> bool {
        let writer = MemberId::of(&self.tree.writer);
        (1..=LISTERS_MAX).contains(&self.by.len())
            && self.by.is_sorted_by(|one, next| one.member < next.member)
            && self.by.iter().all(|it| {
                let is_writer = it.member == writer;
                is_member(it.member)
                    && it.distance <= DISTANCE_MAX
                    && is_writer == (it.distance == 0)
            })
    }

    fn lister(&self, member: MemberId) -> Option<&Lister> {
        self.by.iter().find(|it| it.member == member)
    }

    /// Returns whether `lister` need not request its entry: it is on record with this distance, or
    /// all places are taken by members at no greater distance.
    fn is_settled_for(&self, lister: Lister) -> bool {
        match self.lister(lister.member) {
            Some(noted) => noted.distance == lister.distance,
            None => {
                let is_nearer = |it: &Lister| it.distance <= lister.distance;
                LISTERS_MAX <= self.by.len() && self.by.iter().all(is_nearer)
            }
        }
    }

    fn add(&mut self, lister: Lister, kind: Kind) {
        if lister.distance == 0 {
            self.tree.kind = kind;
        }
        if self.is_settled_for(lister) {
            return;
        }
        if LISTERS_MAX <= self.by.len() {
            let farthest = self.by.iter().map(|it| (it.distance, it.member)).max();
            self.by.retain(|it| Some((it.distance, it.member)) != farthest);
        }
        self.by.push(lister);
        self.by.sort_unstable_by_key(|it| it.member);
    }
}

/// Makes a member list exactly these trees with their distances. Returns whether all had room.
pub(in super::super) fn list(
    all: &mut Vec<Listed>,
    member: MemberId,
    trees: impl Iterator<Item = (GroupTree, u8)>,
) -> bool {
    keep(all, |it, _| it != member);
    let mut is_room = true;
    for (tree, distance) in trees {
        let lister = Lister { member, distance };
        match all.binary_search_by(|it| it.tree.id().cmp(&tree.id())) {
            Ok(at) => all.iter_mut().skip(at).take(1).for_each(|it| it.add(lister, tree.kind)),
            Err(at) if all.len() < TREES_MAX => all.insert(at, Listed { tree, by: vec![lister] }),
            Err(_) => is_room = false,
        }
    }
    is_room
}

/// Keeps the listers for which `stays` holds, and the trees that still have a lister.
pub(in super::super) fn keep(all: &mut Vec<Listed>, stays: impl Fn(MemberId, &GroupTree) -> bool) {
    all.retain_mut(|Listed { tree, by }| {
        by.retain(|it| stays(it.member, tree));
        !by.is_empty()
    });
}

/// Returns whether a member lists exactly these trees at these distances, or need not list them.
pub(in super::super) fn are_settled(
    all: &[Listed],
    member: MemberId,
    trees: impl Iterator<Item = (GroupTree, u8)>,
) -> bool {
    let mut count = 0;
    for (tree, distance) in trees {
        let found = all.binary_search_by(|it| it.tree.id().cmp(&tree.id()));
        let Some(it) = found.ok().and_then(|at| all.get(at)) else { return false };
        let is_settled = it.is_settled_for(Lister { member, distance });
        if !is_settled || (distance == 0 && it.tree.kind != tree.kind) {
            return false;
        }
        count += usize::from(it.lister(member).is_some());
    }
    count == all.iter().filter(|it| it.lister(member).is_some()).count()
}

#[cfg(test)]
mod tests;
