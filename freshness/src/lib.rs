//! When to pull whom: intervals from update rates, the rates from pulls, and a queue of what is due.
//!
//! Source: N. Adly, "Harvesting OAI-PMH repositories using adaptive synchronization". A harvester
//! wants its collection to be at least θ fresh, and each pull costs the source and itself. The
//! sources that change often are pulled often, but only with the square root of how often.
//!
//! Rates are in updates a second, intervals in seconds, numbers of elements are integers. The
//! formulas hold for any unit of time, as long as it is the same everywhere.
//!
//! Sans-I/O.

pub mod interval;
pub mod metrics;
pub mod queue;
pub mod rate;
pub mod schedule;
pub mod simulate;
pub mod study;

pub use interval::{Bounds, Model, Plan, Policy, Source, Workload, plan};
pub use metrics::Costs;
pub use queue::DueQueue;
pub use rate::{Estimator, Gain, Method};
pub use study::Study;
