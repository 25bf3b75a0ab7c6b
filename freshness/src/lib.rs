//! Pull scheduling: update rates from pulls, intervals from rates, and a queue of due sources.
//!
//! Sources: N. Adly, "Harvesting OAI-PMH repositories using adaptive synchronization"; Liu, Maly,
//! Zubair and Nelson, "Repository synchronization in the OAI framework". A harvester wants its
//! collection to be at least θ fresh, and each pull costs the source and itself. Sources that
//! change often are pulled often, but the number of pulls grows only with the square root of their
//! rate.
//!
//! Rates are in updates a second, intervals in seconds, numbers of elements are integers. The
//! formulas hold for any unit of time, as long as it is the same everywhere.
//!
//! Sans-I/O.

pub mod date;
pub mod expect;
pub mod history;
pub mod interval;
pub mod metrics;
pub mod queue;
pub mod rate;
pub mod schedule;
pub mod syndication;
