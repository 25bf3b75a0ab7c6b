//! How long a topology takes: that of all members in one group, which is more than a leader ever has to do where groups
//! are stitched.

#[path = "../../benches/worlds.rs"]
#[allow(dead_code, reason = "the bench needs more of it")]
mod worlds;

use replicator::topology::{Bounds, Connectivity, Costs, Topology};

use super::control::processor;

/// A processor works for so many seconds at least, so that its clock is fine enough.
const WORK_MIN: f64 = 0.3;

/// Prints how long it takes, on average.
pub(crate) fn print(members: usize) {
    let mut costs = Costs::new(members);
    worlds::make(worlds::World::Sites, members, 9, |a, b, cost| costs.set(a, b, cost));
    println!(
        "{members:5} members in one graph: tree {:.2} ms, 2-connected {:.2} ms; {} kB of costs",
        time(&costs, Connectivity::Tree),
        time(&costs, Connectivity::Two),
        members * members * 4 / 1_000,
    );
}

/// Milliseconds of a processor.
fn time(costs: &Costs, connectivity: Connectivity) -> f64 {
    let (began, mut turns) = (processor(), 0.0);
    while processor() - began < WORK_MIN {
        let found = Topology::new(costs, connectivity, Bounds::DEFAULT);
        assert_eq!(found.members(), costs.members());
        turns += 1.0;
    }
    (processor() - began) / turns * 1e3
}
