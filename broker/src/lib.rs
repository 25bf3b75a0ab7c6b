//! The broker: it collects records from gatherers and other brokers, catalogs and indexes them, and
//! answers queries.
//!
//! [`server::Server`] is the daemon, [`config::Config`] its settings, [`status::Status`] its
//! status. All that the crate knows of gatherers is their feed.

pub mod admin;
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
pub mod route;
pub mod schedule;
pub mod server;
pub mod snippet;
pub mod source;
pub mod status;
pub mod views;
