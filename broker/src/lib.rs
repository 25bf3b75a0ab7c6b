//! The broker: collects from gatherers and other brokers, catalogs, indexes, answers queries.
//!
//! [`server::Server`] is the daemon; [`config::Config`] its settings, [`status::Status`] what it
//! says of itself. It knows nothing of gatherers but their feed.

pub mod answer;
pub mod api;
pub mod config;
pub mod error;
pub mod index;
pub mod measure;
pub mod metrics;
pub mod page;
pub mod query;
pub mod rank;
pub mod schedule;
pub mod server;
pub mod snippet;
pub mod source;
pub mod status;
