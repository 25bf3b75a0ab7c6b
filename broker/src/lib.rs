//! The broker: collects from gatherers and other brokers, catalogs, indexes, answers queries.
//!
//! [`server::Server`] is the daemon, [`config::Config`] its settings, [`status::Status`] its status.
//! The crate knows nothing of gatherers but their feed.

mod admin;
pub mod answer;
pub mod api;
mod blocking;
mod catalog;
mod collect;
pub mod config;
pub mod engine;
pub mod error;
mod failure;
mod highlight;
pub mod index;
mod indexer;
mod memory;
pub mod metrics;
pub mod page;
mod pipeline;
pub mod pull_log;
mod running;
pub mod schedule;
pub mod server;
pub mod snippet;
pub mod source;
mod source_state;
pub mod status;
