use super::*;

fn tree(writer: u8, name: &str, kind: Kind) -> GroupTree {
    GroupTree { writer: [writer; 32], name: Name::new(name).unwrap(), kind }
}

fn id(writer: u8) -> MemberId {
    MemberId::of(&[writer; 32])
}

fn listers(all: &[(u8, u8)]) -> Vec<Lister> {
    let lister = |it: &(u8, u8)| Lister { member: id(it.0), distance: it.1 };
    let mut all: Vec<Lister> = all.iter().map(lister).collect();
    all.sort_unstable_by_key(|it| it.member);
    all
}

/// Compares trees with the expected ones: each with its listers and their distances.
#[track_caller]
fn check(all: &[Listed], expected: &[(GroupTree, &[(u8, u8)])]) {
    let listed =
        |(tree, by): &(GroupTree, &[(u8, u8)])| Listed { tree: tree.clone(), by: listers(by) };
    assert_eq!(all, expected.iter().map(listed).collect::<Vec<_>>());
    assert!(are_in_order(all.iter().map(|it| &it.tree)));
    assert!(all.iter().all(|it| it.is_sound(|_| true)));
}

/// Trees carried from the group of the writer.
fn near(trees: &[&GroupTree]) -> impl Iterator<Item = (GroupTree, u8)> {
    at(1, trees)
}

fn at(distance: u8, trees: &[&GroupTree]) -> impl Iterator<Item = (GroupTree, u8)> {
    let trees: Vec<GroupTree> = trees.iter().map(|it| (*it).clone()).collect();
    trees.into_iter().map(move |it| (it, distance))
}

#[test]
fn a_tree_stays_as_long_as_anybody_carries_it() {
    let (one, two) = (tree(9, "one", Kind::Tree), tree(9, "two", Kind::Tree));
    let mut all = Vec::new();
    assert!(list(&mut all, id(1), near(&[&one, &two])));
    assert!(list(&mut all, id(2), near(&[&two])));
    check(&all, &[(one.clone(), &[(1, 1)]), (two.clone(), &[(1, 1), (2, 1)])]);
    assert!(are_settled(&all, id(1), near(&[&one, &two])));
    // The first member drops the second tree.
    assert!(!are_settled(&all, id(1), near(&[&one])));
    list(&mut all, id(1), near(&[&one]));
    check(&all, &[(one.clone(), &[(1, 1)]), (two.clone(), &[(2, 1)])]);
    keep(&mut all, |it, _| it != id(1));
    check(&all, &[(two.clone(), &[(2, 1)])]);
    assert!(!are_settled(&all, id(1), near(&[&one, &two])));
    list(&mut all, id(2), [].into_iter());
    check(&all, &[]);
}

#[test]
fn a_writer_that_joins_later_sets_the_kind_and_gets_a_place_among_the_listers() {
    let (claimed, own) = (tree(9, "tree", Kind::Collection), tree(9, "tree", Kind::Tree));
    let mut all = Vec::new();
    for carrier in 1..=4 {
        list(&mut all, id(carrier), near(&[&claimed]));
        // The fourth carrier need not be on record.
        assert!(are_settled(&all, id(carrier), near(&[&claimed])));
    }
    check(&all, &[(claimed.clone(), &[(1, 1), (2, 1), (3, 1)])]);
    assert!(!are_settled(&all, id(9), at(0, &[&own])));
    list(&mut all, id(9), at(0, &[&own]));
    assert!(are_settled(&all, id(9), at(0, &[&own])));
    assert_eq!((all[0].tree.clone(), all[0].by.len()), (own.clone(), LISTERS_MAX));
    assert!(all[0].lister(id(9)).is_some());
    // The kind that others give no longer counts, and the tree stays when its writer leaves.
    list(&mut all, id(4), near(&[&claimed]));
    assert_eq!(all[0].tree, own);
    keep(&mut all, |it, _| it != id(9));
    assert_eq!((all[0].tree.clone(), all[0].by.len()), (own, LISTERS_MAX - 1));
    // Now there is room for a carrier that was not on record.
    let carriers = (1..=4).filter(|it| !are_settled(&all, id(*it), near(&[&claimed])));
    assert_eq!(carriers.count(), 2);
}

#[test]
fn the_listers_at_the_least_distance_are_on_record() {
    let it = tree(9, "tree", Kind::Tree);
    let mut all = Vec::new();
    for (carrier, distance) in [(1, 5), (2, 3), (3, 4)] {
        list(&mut all, id(carrier), at(distance, &[&it]));
    }
    assert!(are_settled(&all, id(4), at(5, &[&it])), "it is no nearer than all that are noted");
    assert!(!are_settled(&all, id(4), at(4, &[&it])), "it is nearer than one");
    list(&mut all, id(4), at(1, &[&it]));
    check(&all, &[(it.clone(), &[(2, 3), (3, 4), (4, 1)])]);
    assert!(are_settled(&all, id(1), at(5, &[&it])));
    // A carrier whose distance has grown must request it.
    assert!(!are_settled(&all, id(4), at(2, &[&it])));
    list(&mut all, id(4), at(6, &[&it]));
    check(&all, &[(it.clone(), &[(2, 3), (3, 4), (4, 6)])]);
}

#[test]
fn only_its_writer_lists_a_tree_at_distance_0() {
    let it = tree(9, "tree", Kind::Tree);
    for (member, distance, expected) in
        [(9, 0, true), (9, 1, false), (1, 0, false), (1, 1, true), (1, 17, false)]
    {
        let listed = Listed { tree: it.clone(), by: listers(&[(member, distance)]) };
        assert_eq!(listed.is_sound(|_| true), expected, "{member} at {distance}");
        let mut bytes = Vec::new();
        Carried { tree: it.clone(), distance }.write(&mut bytes);
        let is_read = Carried::read(&mut Reader(&bytes)).is_some();
        assert_eq!(is_read, (1..=DISTANCE_MAX).contains(&distance));
    }
}

#[test]
fn trees_above_the_bound_are_not_listed() {
    let many = |count: usize| {
        let one = |it: usize| (tree(1, &format!("{it:0>4}"), Kind::Tree), 0);
        (0..count).map(one).collect::<Vec<_>>()
    };
    let far = |count: usize| many(count).into_iter().map(|it| (it.0, 1));
    let mut all = Vec::new();
    assert!(list(&mut all, id(1), many(TREES_MAX).into_iter()));
    assert!(list(&mut all, id(2), far(9)));
    let own = tree(2, "own", Kind::Tree);
    assert!(!list(&mut all, id(2), at(0, &[&own])));
    assert_eq!(all.len(), TREES_MAX);
    assert!(!are_settled(&all, id(2), at(0, &[&own])));
}
