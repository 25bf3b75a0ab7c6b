use petgraph::algo::{connected_components, min_spanning_tree};
use petgraph::data::FromElements as _;
use petgraph::graph::UnGraph;
use proptest::prelude::*;

use super::*;

#[path = "../../benches/worlds.rs"]
mod worlds;

use worlds::{Dice, WORLDS, World};

fn costs(world: World, members: usize, seed: u64) -> Costs {
    let mut costs = Costs::new(members);
    worlds::make(world, members, seed, |a, b, cost| costs.set(a, b, cost));
    costs
}

fn graph(costs: &Costs) -> UnGraph<(), u32> {
    let links = sorted(costs, |_, _| true);
    let links = links.iter().map(|it| (it.0.into(), it.1.into(), costs.get(it.a(), it.b())));
    with_members(costs.members(), links)
}

fn with_members(members: usize, links: impl Iterator<Item = (u32, u32, u32)>) -> UnGraph<(), u32> {
    let mut graph = UnGraph::new_undirected();
    (0..members).for_each(|_| {
        graph.add_node(());
    });
    graph.extend_with_edges(links);
    graph
}

/// Into how many parts the members fall without those who are gone.
fn parts(topology: &Topology, gone: &[usize]) -> usize {
    let stays = |it: &Link| !gone.contains(&it.a()) && !gone.contains(&it.b());
    let links = topology.links().filter(stays).map(|it| (it.0.into(), it.1.into(), 0));
    connected_components(&with_members(topology.members(), links)) - gone.len()
}

fn degrees(links: &[Link], members: usize) -> Vec<usize> {
    lists(members, links.iter().copied()).iter().map(Vec::len).collect()
}

#[test]
fn a_link_costs_the_time_of_an_update() {
    let ms = Duration::from_millis;
    for (round_trip, bandwidth, bytes, expected) in [
        (ms(40), 6_250_000, 1_000_000, 80_000 + 160_000),
        (ms(40), 0, 0, 80_000),
        (Duration::ZERO, u64::MAX, 1, 1),
        (ms(1), 1, u64::MAX, UNREACHABLE - 1),
    ] {
        assert_eq!(cost(round_trip, bandwidth, bytes), expected, "{round_trip:?} {bandwidth}");
    }
}

#[test]
fn without_bounds_the_tree_is_a_minimum_spanning_tree() {
    for world in WORLDS {
        for members in [0, 1, 2, 3, 17, 100] {
            let costs = costs(world, members, members as u64);
            let graph = graph(&costs);
            let oracle = UnGraph::<(), u32>::from_elements(min_spanning_tree(&graph));
            let expected: u64 = oracle.edge_weights().map(|it| u64::from(*it)).sum();
            let topology = Topology::new(&costs, Connectivity::Tree, Bounds::NONE);
            assert_eq!(topology.cost(&costs), expected, "{world:?} of {members}");
            assert_eq!(parts(&topology, &[]), connected_components(&graph), "{world:?}");
        }
    }
}

#[test]
fn bounds_hold_where_there_are_links() {
    for world in [World::Square, World::Sites, World::Lines, World::Any] {
        let costs = costs(world, 300, 7);
        let bounds = Bounds::DEFAULT;
        let topology = Topology::new(&costs, Connectivity::Two, bounds);
        let (tree, all) = (topology.tree(), topology.links().collect::<Vec<_>>());
        assert!(degrees(tree, 300).iter().all(|it| *it <= bounds.degree_max), "{world:?}");
        assert!(degrees(&all, 300).iter().all(|it| *it <= 2 * bounds.degree_max), "{world:?}");
        assert!(topology.diameter() <= 2 * bounds.depth_max, "{world:?}: {}", topology.diameter());
    }
}

#[test]
fn bounds_give_way_where_there_are_no_other_links() {
    // A chain of 40, and a star of 40 that hangs on its end.
    let mut costs = Costs::new(80);
    (1..40).for_each(|it| costs.set(it - 1, it, 10));
    (40..80).for_each(|it| costs.set(39, it, 10));
    let topology = Topology::new(&costs, Connectivity::Three, Bounds::DEFAULT);
    assert_eq!((topology.tree().len(), topology.beside().len()), (79, 0));
    assert_eq!(topology.diameter(), 40);
}

#[test]
fn each_site_is_reached_by_one_link_of_the_tree() {
    let costs = costs(World::Sites, 30, 1);
    let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
    let is_long = |it: &&Link| it.a() / 10 != it.b() / 10;
    assert_eq!(topology.tree().iter().filter(is_long).count(), 2);
}

#[test]
fn updates_come_through_the_tree() {
    let costs = costs(World::Square, 50, 3);
    let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
    for origin in [0, 20, 49] {
        let toward = topology.toward(origin);
        for (member, next) in toward.iter().enumerate() {
            let Some(next) = *next else {
                assert_eq!(member, origin);
                continue;
            };
            assert!(topology.tree().contains(&Link::new(member, next)));
            let way = std::iter::successors(Some(member), |it| toward[*it]);
            assert_eq!(way.take(51).last(), Some(origin));
        }
    }
    assert!(topology.toward(50).iter().all(Option::is_none));
    let neighbors: Vec<usize> = topology.neighbors(4).collect();
    assert!(
        2 <= neighbors.len()
            && neighbors.iter().all(|it| topology.neighbors(*it).any(|it| it == 4))
    );
}

#[test]
fn what_is_nearly_as_good_stays() {
    let bounds = Bounds::DEFAULT;
    let of = |costs: &Costs| Topology::new(costs, Connectivity::Two, bounds);
    let before = costs(World::Square, 40, 5);
    let current = of(&before);
    let mut after = before.clone();
    let mut dice = Dice(1);
    for link in sorted(&before, |_, _| true) {
        let cost = u64::from(before.get(link.a(), link.b()));
        let new = cost * (90 + dice.below(21)) / 100;
        after.set(link.a(), link.b(), u32::try_from(new).unwrap());
    }
    assert_ne!(of(&after), current, "else nothing is tested");
    assert_eq!(next(&current, &after, Connectivity::Two, bounds), current);
    // A link of it that is down, or ten times as slow as all the others, is left.
    for cost in [UNREACHABLE, u32::MAX / 2] {
        let link = current.tree()[0];
        let mut after = before.clone();
        after.set(link.a(), link.b(), cost);
        let new = next(&current, &after, Connectivity::Two, bounds);
        assert!(!new.links().any(|it| it == link));
    }
    // One of other members is none to go on from.
    let fewer = of(&costs(World::Square, 30, 5));
    assert_eq!(next(&fewer, &before, Connectivity::Two, bounds), current);
    // And so is a topology that holds less together than is asked for.
    let thin = Topology::new(&before, Connectivity::Tree, bounds);
    assert_eq!(next(&thin, &before, Connectivity::Two, bounds), current);
}

#[test]
fn a_better_tree_is_taken_though_all_links_stay() {
    let mut costs = Costs::new(3);
    for (a, b, cost) in [(0, 1, 10), (0, 2, 10), (1, 2, 11)] {
        costs.set(a, b, cost);
    }
    let before = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
    assert_eq!(pairs(before.tree()), [(0, 1), (0, 2)]);
    costs.set(0, 2, 300);
    let after = next(&before, &costs, Connectivity::Two, Bounds::DEFAULT);
    assert_eq!((pairs(after.tree()), pairs(after.beside())), (vec![(0, 1), (1, 2)], vec![(0, 2)]));
    assert_eq!(next(&after, &costs, Connectivity::Two, Bounds::DEFAULT), after);
}

fn pairs(links: &[Link]) -> Vec<(u16, u16)> {
    links.iter().map(|it| (it.0, it.1)).collect()
}

#[test]
fn links_of_others_are_checked() {
    for (tree, beside, expected) in [
        (&[(0, 3)][..], &[][..], LinksError::Ends(0, 3)),
        (&[], &[(1, 1)], LinksError::Ends(1, 1)),
        (&[(1, 0)], &[], LinksError::Ends(1, 0)),
        (&[(0, 2), (0, 1)], &[], LinksError::Order(0, 1)),
        (&[(0, 1), (0, 1)], &[], LinksError::Order(0, 1)),
        (&[(0, 1)], &[(0, 1)], LinksError::Order(0, 1)),
        (&[(0, 1), (0, 2), (1, 2)], &[], LinksError::Circle(1, 2)),
    ] {
        assert_eq!(Topology::from_links(3, tree, beside), Err(expected));
    }
    for world in WORLDS {
        let topology = Topology::new(&costs(world, 60, 3), Connectivity::Two, Bounds::DEFAULT);
        let (tree, beside) = (pairs(topology.tree()), pairs(topology.beside()));
        assert_eq!(Topology::from_links(60, &tree, &beside), Ok(topology), "{world:?}");
    }
}

#[test]
fn members_that_are_not_there_are_ignored() {
    let mut costs = Costs::new(2);
    costs.set(0, 0, 5);
    costs.set(1, 2, 5);
    assert_eq!((costs.get(0, 0), costs.get(1, 2)), (UNREACHABLE, UNREACHABLE));
    assert_eq!(Costs::new(MEMBERS_MAX + 1).members(), MEMBERS_MAX);
}

proptest! {
    #[test]
    fn without_any_one_or_two_members_the_others_stay_together(
        world in 0..WORLDS.len(), members in 1..24_usize, seed: u64, depth_max in 1..5_usize,
    ) {
        let costs = costs(WORLDS[world], members, seed);
        let bounds = Bounds { depth_max, degree_max: 3 };
        let all: Vec<Link> = sorted(&costs, |_, _| true);
        // What holds of all links together can be asked for.
        let every = Topology { members, tree: all, beside: Vec::new() };
        let three = Topology::new(&costs, Connectivity::Three, bounds);
        let two = Topology::new(&costs, Connectivity::Two, bounds);
        for a in 0..members {
            prop_assert_eq!(parts(&two, &[a]), parts(&every, &[a]));
            for b in 0..a {
                prop_assert_eq!(parts(&three, &[a, b]), parts(&every, &[a, b]));
            }
        }
        prop_assert_eq!(two.tree(), three.tree());
    }
}

#[test]
fn bounds_and_links_beside_the_tree_cost_little() {
    // Over the minimum spanning tree, in hundredths: the tree, and with what makes it two-connected.
    for (world, tree, all) in
        [(World::Square, 190, 290), (World::Sites, 101, 190), (World::Lines, 115, 230)]
    {
        let costs = costs(world, 300, 9);
        let free = Topology::new(&costs, Connectivity::Tree, Bounds::NONE).cost(&costs);
        let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
        let times = |cost: u64| cost * 100 / free;
        let found = (times(costs.of(topology.tree())), times(topology.cost(&costs)));
        assert!(found.0 <= tree && found.1 <= all, "{world:?}: {found:?}");
    }
}
