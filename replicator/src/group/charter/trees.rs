//! Whose trees a group carries, and who brings them into it.
//!
//! A tree is listed by its writer, if that is a member, and by members that carry it across from another group. It
//! stays as long as anybody lists it, and is of the kind that its writer says, or else of the one that was said
//! first.
//!
//! # Differences from the paper
//!
//! A flood-d carries what any of its groups brings. Here the leader knows the writers, so that nobody has to take
//! in what is not meant for the group.
//!
//! Sans-I/O.

use super::super::wire::{Reader, put_list, put_text};
use crate::id::MemberId;
use crate::version::{Kind, Name, Namespace};

/// Most trees and collections of a group.
pub const TREES_MAX: usize = 1_024;
/// Most members that are noted as those that list a tree. The writer always is; of the others it does not matter
/// which, and when one of them goes, another is noted in its place.
pub const LISTERS_MAX: usize = 3;

/// A tree or a collection that the group carries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tree {
    /// The key of who alone writes to it.
    pub writer: [u8; 32],
    /// Its name among those of its writer.
    pub name: Name,
    /// What it is.
    pub kind: Kind,
}

impl Tree {
    /// What there are versions of.
    #[must_use]
    pub fn namespace(&self) -> Namespace {
        Namespace { origin: MemberId::of(&self.writer), name: self.name.clone() }
    }

    /// What tells it from the others of a group.
    pub(in super::super) fn id(&self) -> (&[u8; 32], &Name) {
        (&self.writer, &self.name)
    }

    pub(in super::super) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.writer);
        put_text(bytes, self.name.as_str());
        put_kind(bytes, self.kind);
    }

    pub(in super::super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self { writer: from.array()?, name: from.name()?, kind: read_kind(from)? })
    }
}

/// Whether trees are in the order of writer and name, and none is there twice.
pub(in super::super) fn are_in_order<'a>(mut trees: impl Iterator<Item = &'a Tree>) -> bool {
    let Some(mut last) = trees.next() else { return true };
    trees.all(|it| std::mem::replace(&mut last, it).id() < it.id())
}

pub(in super::super) fn put_kind(bytes: &mut Vec<u8>, kind: Kind) {
    bytes.push(match kind {
        Kind::Tree => 0,
        Kind::Collection => 1,
    });
}

pub(in super::super) fn read_kind(from: &mut Reader<'_>) -> Option<Kind> {
    match from.u8()? {
        0 => Some(Kind::Tree),
        1 => Some(Kind::Collection),
        _ => None,
    }
}

/// A tree of a group, and who lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The tree.
    pub tree: Tree,
    /// In the order of their ids; at least one and at most [`LISTERS_MAX`].
    pub by: Vec<MemberId>,
}

impl Listed {
    /// Writes writer, name, kind, and the places of those that list it.
    pub(super) fn write(&self, bytes: &mut Vec<u8>, place: impl Fn(MemberId) -> Option<usize>) {
        self.tree.write(bytes);
        let places = self.by.iter().filter_map(|it| u16::try_from(place(*it)?).ok());
        put_list(bytes, &places.collect::<Vec<_>>(), |bytes, it| bytes.extend(it.to_be_bytes()));
    }

    pub(super) fn read(
        from: &mut Reader<'_>,
        id: impl Fn(usize) -> Option<MemberId>,
    ) -> Option<Self> {
        let tree = Tree::read(from)?;
        let by = from.list(LISTERS_MAX, |from| id(from.u16()?.into()))?;
        Some(Self { tree, by })
    }

    pub(super) fn is_sound(&self, is_member: impl Fn(MemberId) -> bool) -> bool {
        (1..=LISTERS_MAX).contains(&self.by.len())
            && self.by.is_sorted_by(|one, next| one < next)
            && self.by.iter().all(|it| is_member(*it))
    }

    /// Whether a member that lists the tree need not say so.
    fn is_settled_for(&self, member: MemberId) -> bool {
        let is_writer = MemberId::of(&self.tree.writer) == member;
        self.by.contains(&member) || (!is_writer && LISTERS_MAX <= self.by.len())
    }

    fn add(&mut self, member: MemberId, kind: Kind) {
        let writer = MemberId::of(&self.tree.writer);
        if member == writer {
            self.tree.kind = kind;
        }
        if self.is_settled_for(member) {
            return;
        }
        if LISTERS_MAX <= self.by.len() {
            self.by.pop();
        }
        self.by.push(member);
        self.by.sort_unstable();
    }
}

/// Has a member list these trees and no others, as far as there is room, and says whether there was.
pub(in super::super) fn list(
    all: &mut Vec<Listed>,
    member: MemberId,
    trees: impl Iterator<Item = Tree>,
) -> bool {
    keep(all, |it, _| it != member);
    let mut is_room = true;
    for tree in trees {
        match all.binary_search_by(|it| it.tree.id().cmp(&tree.id())) {
            Ok(at) => all.iter_mut().skip(at).take(1).for_each(|it| it.add(member, tree.kind)),
            Err(at) if all.len() < TREES_MAX => all.insert(at, Listed { tree, by: vec![member] }),
            Err(_) => is_room = false,
        }
    }
    is_room
}

/// Leaves of those that list trees the ones that are to stay, and of the trees those that anybody lists.
pub(in super::super) fn keep(all: &mut Vec<Listed>, stays: impl Fn(MemberId, &Tree) -> bool) {
    all.retain_mut(|Listed { tree, by }| {
        by.retain(|it| stays(*it, tree));
        !by.is_empty()
    });
}

/// Whether these trees, and no others, are listed by a member, or need not be.
pub(in super::super) fn are_settled(
    all: &[Listed],
    member: MemberId,
    trees: impl Iterator<Item = Tree>,
) -> bool {
    let mut count = 0;
    for tree in trees {
        let found = all.binary_search_by(|it| it.tree.id().cmp(&tree.id()));
        let Some(it) = found.ok().and_then(|at| all.get(at)) else { return false };
        let is_own = MemberId::of(&tree.writer) == member;
        if !it.is_settled_for(member) || (is_own && it.tree.kind != tree.kind) {
            return false;
        }
        count += usize::from(it.by.contains(&member));
    }
    count == all.iter().filter(|it| it.by.contains(&member)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(writer: u8, name: &str, kind: Kind) -> Tree {
        Tree { writer: [writer; 32], name: Name::new(name).unwrap(), kind }
    }

    fn id(writer: u8) -> MemberId {
        MemberId::of(&[writer; 32])
    }

    fn ids(writers: &[u8]) -> Vec<MemberId> {
        let mut ids: Vec<MemberId> = writers.iter().map(|it| id(*it)).collect();
        ids.sort_unstable();
        ids
    }

    #[track_caller]
    fn check(all: &[Listed], expected: &[(Tree, &[u8])]) {
        let listed = |(tree, by): &(Tree, &[u8])| Listed { tree: tree.clone(), by: ids(by) };
        assert_eq!(all, expected.iter().map(listed).collect::<Vec<_>>());
        assert!(are_in_order(all.iter().map(|it| &it.tree)));
        assert!(all.iter().all(|it| it.is_sound(|_| true)));
    }

    #[test]
    fn a_tree_stays_as_long_as_anybody_carries_it() {
        let (one, two) = (tree(9, "one", Kind::Tree), tree(9, "two", Kind::Tree));
        let both = || [one.clone(), two.clone()].into_iter();
        let mut all = Vec::new();
        assert!(list(&mut all, id(1), both()));
        assert!(list(&mut all, id(2), [two.clone()].into_iter()));
        check(&all, &[(one.clone(), &[1]), (two.clone(), &[1, 2])]);
        assert!(are_settled(&all, id(1), both()));
        // It no longer wants the second, and then goes.
        assert!(!are_settled(&all, id(1), [one.clone()].into_iter()));
        list(&mut all, id(1), [one.clone()].into_iter());
        check(&all, &[(one.clone(), &[1]), (two.clone(), &[2])]);
        keep(&mut all, |it, _| it != id(1));
        check(&all, &[(two.clone(), &[2])]);
        assert!(!are_settled(&all, id(1), both()));
        list(&mut all, id(2), [].into_iter());
        check(&all, &[]);
    }

    #[test]
    fn a_writer_that_comes_later_has_its_word_and_its_place() {
        let (said, own) = (tree(9, "tree", Kind::Collection), tree(9, "tree", Kind::Tree));
        let mut all = Vec::new();
        for carrier in 1..=4 {
            list(&mut all, id(carrier), [said.clone()].into_iter());
            // The fourth need not be noted.
            assert!(are_settled(&all, id(carrier), [said.clone()].into_iter()));
        }
        check(&all, &[(said.clone(), &[1, 2, 3])]);
        assert!(!are_settled(&all, id(9), [own.clone()].into_iter()));
        list(&mut all, id(9), [own.clone()].into_iter());
        assert!(are_settled(&all, id(9), [own.clone()].into_iter()));
        assert_eq!((all[0].tree.clone(), all[0].by.len()), (own.clone(), LISTERS_MAX));
        assert!(all[0].by.contains(&id(9)));
        // What others say of it counts no more, and it stays when its writer goes.
        list(&mut all, id(4), [said.clone()].into_iter());
        assert_eq!(all[0].tree, own);
        keep(&mut all, |it, _| it != id(9));
        assert_eq!((all[0].tree.clone(), all[0].by.len()), (own, LISTERS_MAX - 1));
        // And now there is room for one that was not noted.
        let carriers = (1..=4).filter(|it| !are_settled(&all, id(*it), [said.clone()].into_iter()));
        assert_eq!(carriers.count(), 2);
    }

    #[test]
    fn there_is_an_end_of_trees() {
        let many = |count: usize| {
            (0..count).map(|it| tree(1, &format!("{it:0>4}"), Kind::Tree)).collect::<Vec<_>>()
        };
        let mut all = Vec::new();
        assert!(list(&mut all, id(1), many(TREES_MAX).into_iter()));
        assert!(list(&mut all, id(2), many(9).into_iter()));
        assert!(!list(&mut all, id(2), [tree(2, "own", Kind::Tree)].into_iter()));
        assert_eq!(all.len(), TREES_MAX);
        assert!(!are_settled(&all, id(2), [tree(2, "own", Kind::Tree)].into_iter()));
    }
}
