//! Time and quality of topologies: `cargo bench -p replicator --bench topology`.
//!
//! For model groups it prints: the median time to compute the topology; the cost of its tree and
//! of all its links, relative to the minimum spanning tree; and the most links between two members
//! in its tree and in the minimum spanning tree.

#![allow(clippy::print_stdout, reason = "the benchmark prints its results")]
#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![allow(clippy::unwrap_used, reason = "a measurement that fails may panic")]

mod group_models;

use std::time::Instant;

use replicator::topology::{Bounds, Connectivity, Costs, Link, Topology};

const TURNS: usize = 9;

fn main() {
    println!("members  links      model        time      tree    all   deep   of minimum");
    for (members, connectivity) in [
        (30, Connectivity::Tree),
        (30, Connectivity::Two),
        (300, Connectivity::Tree),
        (300, Connectivity::Two),
        (300, Connectivity::Three),
        (3_000, Connectivity::Tree),
        (3_000, Connectivity::Two),
    ] {
        for model in group_models::MODELS {
            let mut costs = Costs::new(members);
            group_models::make(model, members, 9, |a, b, cost| costs.set(a, b, cost));
            let mut times: Vec<_> = (0..TURNS)
                .map(|_| {
                    let began = Instant::now();
                    let found = Topology::new(&costs, connectivity, Bounds::DEFAULT);
                    (began.elapsed(), found.members())
                })
                .collect();
            times.sort_unstable();
            let topology = Topology::new(&costs, connectivity, Bounds::DEFAULT);
            let free = Topology::new(&costs, Connectivity::Tree, Bounds::NONE);
            let sum = |links: &mut dyn Iterator<Item = Link>| -> f64 {
                links.map(|it| f64::from(costs.get(it.a(), it.b()))).sum()
            };
            let least = sum(&mut free.links());
            println!(
                "{members:7}  {connectivity:<9?}  {model:<8?} {:8.2} ms {:6.2} x {:5.2} x {:5} {:6}",
                times[TURNS / 2].0.as_secs_f64() * 1e3,
                sum(&mut topology.tree().iter().copied()) / least,
                sum(&mut topology.links()) / least,
                topology.diameter(),
                free.diameter(),
            );
        }
    }
}
