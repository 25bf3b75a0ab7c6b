use petgraph::algo::{connected_components, min_spanning_tree};
use petgraph::data::FromElements as _;
use petgraph::graph::UnGraph;
use proptest::prelude::*;

use super::*;

#[path = "../../benches/group_models.rs"]
mod group_models;

use group_models::{Dice, MODELS, Model};

fn costs(model: Model, members: usize, seed: u64) -> Costs {
    let mut costs = Costs::new(members);
    group_models::make(model, members, seed, |a, b, cost| costs.set(a, b, cost));
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

/// Returns the number of parts of the topology without the members `gone`.
fn parts(topology: &Topology, gone: &[usize]) -> usize {
    let stays = |it: &Link| !gone.contains(&it.a()) && !gone.contains(&it.b());
    let links = topology.links().filter(stays).map(|it| (it.0.into(), it.1.into(), 0));
    connected_components(&with_members(topology.members(), links)) - gone.len()
}

fn degrees(links: &[Link], members: usize) -> Vec<usize> {
    adjacency(members, links.iter().copied()).iter().map(Vec::len).collect()
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
    for model in MODELS {
        for members in [0, 1, 2, 3, 17, 100] {
            let costs = costs(model, members, members as u64);
            let graph = graph(&costs);
            let oracle = UnGraph::<(), u32>::from_elements(min_spanning_tree(&graph));
            let expected: u64 = oracle.edge_weights().map(|it| u64::from(*it)).sum();
            let topology = Topology::new(&costs, Connectivity::Tree, Bounds::NONE);
            assert_eq!(topology.cost(&costs), expected, "{model:?} of {members}");
            assert_eq!(parts(&topology, &[]), connected_components(&graph), "{model:?}");
        }
    }
}

#[test]
fn bounds_hold_if_links_allow_it() {
    for model in [Model::Square, Model::Sites, Model::Lines, Model::Any] {
        let costs = costs(model, 300, 7);
        let bounds = Bounds::DEFAULT;
        let topology = Topology::new(&costs, Connectivity::Two, bounds);
        let (tree, all) = (topology.tree(), topology.links().collect::<Vec<_>>());
        assert!(degrees(tree, 300).iter().all(|it| *it <= bounds.degree_max), "{model:?}");
        assert!(degrees(&all, 300).iter().all(|it| *it <= 2 * bounds.degree_max), "{model:?}");
        assert!(topology.diameter() <= 2 * bounds.depth_max, "{model:?}: {}", topology.diameter());
    }
}

#[test]
fn bounds_are_dropped_if_there_are_no_other_links() {
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
    let costs = costs(Model::Sites, 30, 1);
    let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
    let is_long = |it: &&Link| it.a() / 10 != it.b() / 10;
    assert_eq!(topology.tree().iter().filter(is_long).count(), 2);
}

#[test]
fn every_member_pulls_along_the_tree() {
    let costs = costs(Model::Square, 50, 3);
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
fn a_topology_that_is_nearly_as_good_stays() {
    let bounds = Bounds::DEFAULT;
    let of = |costs: &Costs| Topology::new(costs, Connectivity::Two, bounds);
    let before = costs(Model::Square, 40, 5);
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
    // A link that is down or much slower than all others is dropped.
    for cost in [UNREACHABLE, u32::MAX / 2] {
        let link = current.tree()[0];
        let mut after = before.clone();
        after.set(link.a(), link.b(), cost);
        let new = next(&current, &after, Connectivity::Two, bounds);
        assert!(!new.links().any(|it| it == link));
    }
    // A topology of other members is replaced.
    let fewer = of(&costs(Model::Square, 30, 5));
    assert_eq!(next(&fewer, &before, Connectivity::Two, bounds), current);
    // A topology that is less connected than required is replaced.
    let thin = Topology::new(&before, Connectivity::Tree, bounds);
    assert_eq!(next(&thin, &before, Connectivity::Two, bounds), current);
}

#[test]
fn a_better_tree_is_taken_even_if_all_links_stay() {
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
    for (tree, beside) in [
        // Unknown or equal ends.
        (&[(0, 3)][..], &[][..]),
        (&[], &[(1, 1)]),
        (&[(1, 0)], &[]),
        // Out of order or repeated.
        (&[(0, 2), (0, 1)], &[]),
        (&[(0, 1), (0, 1)], &[]),
        (&[(0, 1)], &[(0, 1)]),
        // A circle.
        (&[(0, 1), (0, 2), (1, 2)], &[]),
    ] {
        assert_eq!(Topology::from_links(3, tree, beside), None, "{tree:?}, {beside:?}");
    }
    for model in MODELS {
        let topology = Topology::new(&costs(model, 60, 3), Connectivity::Two, Bounds::DEFAULT);
        let (tree, beside) = (pairs(topology.tree()), pairs(topology.beside()));
        assert_eq!(Topology::from_links(60, &tree, &beside), Some(topology), "{model:?}");
    }
}

#[test]
fn unknown_members_are_ignored() {
    let mut costs = Costs::new(2);
    costs.set(0, 0, 5);
    costs.set(1, 2, 5);
    assert_eq!((costs.get(0, 0), costs.get(1, 2)), (UNREACHABLE, UNREACHABLE));
    assert_eq!(Costs::new(MEMBERS_MAX + 1).members(), MEMBERS_MAX);
}

proptest! {
    #[test]
    fn the_others_stay_connected_without_any_one_or_two_members(
        model in 0..MODELS.len(), members in 1..24_usize, seed: u64, depth_max in 1..5_usize,
    ) {
        let costs = costs(MODELS[model], members, seed);
        let bounds = Bounds { depth_max, degree_max: 3 };
        let all: Vec<Link> = sorted(&costs, |_, _| true);
        // No topology stays better connected than the graph of all links.
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
    // Percent of the minimum spanning tree's cost: the tree, and the tree with the links beside it.
    for (model, tree, all) in
        [(Model::Square, 190, 290), (Model::Sites, 101, 190), (Model::Lines, 115, 230)]
    {
        let costs = costs(model, 300, 9);
        let free = Topology::new(&costs, Connectivity::Tree, Bounds::NONE).cost(&costs);
        let topology = Topology::new(&costs, Connectivity::Two, Bounds::DEFAULT);
        let times = |cost: u64| cost * 100 / free;
        let found = (times(costs.sum(topology.tree())), times(topology.cost(&costs)));
        assert!(found.0 <= tree && found.1 <= all, "{model:?}: {found:?}");
    }
}
