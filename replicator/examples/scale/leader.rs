//! How long a topology takes: that of all members in one group, which is more than a leader ever has to do where groups
//! are stitched.

#[path = "../../benches/worlds.rs"]
#[allow(dead_code, reason = "the bench needs more of it")]
mod worlds;

use std::time::Instant;

use replicator::topology::{Bounds, Connectivity, Costs, Topology};

const TURNS: usize = 9;

/// Prints the median of some turns.
pub(crate) fn print(members: usize) {
    let mut costs = Costs::new(members);
    worlds::make(worlds::World::Sites, members, 9, |a, b, cost| costs.set(a, b, cost));
    let median = |connectivity: Connectivity| {
        let mut times: Vec<f64> = (0..TURNS).map(|_| time(&costs, connectivity)).collect();
        times.sort_by(f64::total_cmp);
        times[TURNS / 2]
    };
    println!(
        "{members:5} members in one graph: tree {:.2} ms, 2-connected {:.2} ms; {} kB of costs",
        median(Connectivity::Tree),
        median(Connectivity::Two),
        members * members * 4 / 1_000,
    );
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn time(costs: &Costs, connectivity: Connectivity) -> f64 {
    let began = Instant::now();
    let found = Topology::new(costs, connectivity, Bounds::DEFAULT);
    assert_eq!(found.members(), costs.members());
    began.elapsed().as_secs_f64() * 1e3
}
