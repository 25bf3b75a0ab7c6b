//! The registry: a broker of servers, which announce themselves (the Harvest Server Registry).
//!
//! A daemon [announces](daemon::announce) that it is there; the registry reads its signed description, and makes an object
//! of it. So people, and machines, find the gatherers, brokers, caches and replicators of a community as they find
//! anything: by searching. All else that a broker has, a registry has: pages, feed, views, OAI-PMH; registries pull each
//! other as brokers do.
//!
//! [`server::Server`] is the daemon, [`config::Config`] its settings. What decides is apart from what does:
//! [`proof`] (what is believed), [`leases`] (who is there) and [`admission`] (whom to ask now) use no socket, disk or clock;
//! [`keeper`] does what they decide.
//!
//! Source: TR §3 (the HSR).

pub mod admission;
pub mod answer;
pub mod config;
pub mod divide;
pub mod keeper;
pub mod leases;
pub mod proof;
pub mod reach;
pub mod refusals;
mod serve;
pub mod server;
pub mod summaries;
