//! The time for a topology of all members in one group. With several groups no leader computes it.

#[path = "../../benches/group_models.rs"]
#[allow(dead_code, reason = "the bench needs more of it")]
mod group_models;

use replicator::topology::{Bounds, Connectivity, Costs, Topology};

use super::control::processor;

/// Least processor time of a measurement, in seconds, because its clock is coarse.
const WORK_MIN: f64 = 0.3;

/// Prints the mean times for a tree and for a 2-connected topology.
pub(crate) fn print(members: usize) {
    let mut costs = Costs::new(members);
    group_models::make(group_models::Model::Sites, members, 9, |a, b, cost| costs.set(a, b, cost));
    println!(
        "{members:5} members in one graph: tree {:.2} ms, 2-connected {:.2} ms; {} kB of costs",
        time(&costs, Connectivity::Tree),
        time(&costs, Connectivity::Two),
        members * members * 4 / 1_000,
    );
}

/// Returns the mean processor time, in milliseconds.
fn time(costs: &Costs, connectivity: Connectivity) -> f64 {
    let (began, mut turns) = (processor(), 0.0);
    while processor() - began < WORK_MIN {
        let found = Topology::new(costs, connectivity, Bounds::DEFAULT);
        assert_eq!(found.members(), costs.members());
        turns += 1.0;
    }
    (processor() - began) / turns * 1e3
}
