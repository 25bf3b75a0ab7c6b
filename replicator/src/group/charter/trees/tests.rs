use super::*;

fn tree(writer: u8, name: &str, kind: Kind) -> Tree {
    Tree { writer: [writer; 32], name: Name::new(name).unwrap(), kind }
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

/// Compares trees with what is expected: of each, who lists it and how far it is.
#[track_caller]
fn check(all: &[Listed], expected: &[(Tree, &[(u8, u8)])]) {
    let listed = |(tree, by): &(Tree, &[(u8, u8)])| Listed { tree: tree.clone(), by: listers(by) };
    assert_eq!(all, expected.iter().map(listed).collect::<Vec<_>>());
    assert!(are_in_order(all.iter().map(|it| &it.tree)));
    assert!(all.iter().all(|it| it.is_sound(|_| true)));
}

/// Carried from the group of the writer.
fn near(trees: &[&Tree]) -> impl Iterator<Item = (Tree, u8)> {
    at(1, trees)
}

fn at(distance: u8, trees: &[&Tree]) -> impl Iterator<Item = (Tree, u8)> {
    let trees: Vec<Tree> = trees.iter().map(|it| (*it).clone()).collect();
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
    // It no longer wants the second, and then goes.
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
fn a_writer_that_comes_later_has_its_word_and_its_place() {
    let (said, own) = (tree(9, "tree", Kind::Collection), tree(9, "tree", Kind::Tree));
    let mut all = Vec::new();
    for carrier in 1..=4 {
        list(&mut all, id(carrier), near(&[&said]));
        // The fourth need not be noted.
        assert!(are_settled(&all, id(carrier), near(&[&said])));
    }
    check(&all, &[(said.clone(), &[(1, 1), (2, 1), (3, 1)])]);
    assert!(!are_settled(&all, id(9), at(0, &[&own])));
    list(&mut all, id(9), at(0, &[&own]));
    assert!(are_settled(&all, id(9), at(0, &[&own])));
    assert_eq!((all[0].tree.clone(), all[0].by.len()), (own.clone(), LISTERS_MAX));
    assert!(all[0].lister(id(9)).is_some());
    // What others say of it counts no more, and it stays when its writer goes.
    list(&mut all, id(4), near(&[&said]));
    assert_eq!(all[0].tree, own);
    keep(&mut all, |it, _| it != id(9));
    assert_eq!((all[0].tree.clone(), all[0].by.len()), (own, LISTERS_MAX - 1));
    // And now there is room for one that was not noted.
    let carriers = (1..=4).filter(|it| !are_settled(&all, id(*it), near(&[&said])));
    assert_eq!(carriers.count(), 2);
}

#[test]
fn those_that_have_it_from_nearer_are_noted() {
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
    // Who is farther than it was says so.
    assert!(!are_settled(&all, id(4), at(2, &[&it])));
    list(&mut all, id(4), at(6, &[&it]));
    check(&all, &[(it.clone(), &[(2, 3), (3, 4), (4, 6)])]);
}

#[test]
fn only_its_writer_says_that_a_tree_is_here() {
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
fn there_is_an_end_of_trees() {
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
