//! The broker: collects from gatherers and other brokers, catalogs, indexes, answers queries.
//!
//! [`server::Server`] is the daemon; [`config::Config`] its settings, [`status::Status`] what it
//! says of itself. It knows nothing of gatherers but their feed.

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
mod live;
mod memory;
pub mod metrics;
pub mod page;
mod pipeline;
pub mod pull_log;

pub mod schedule;
pub mod server;
pub mod snippet;
pub mod source;
pub mod status;
mod under_way;
