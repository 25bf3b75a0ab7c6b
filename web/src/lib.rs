//! What all daemons share towards people: pages, administration, settings files, health.
//!
//! - [`settings`] reads settings files and names every mistake in them.
//! - [`auth`] guards state-changing requests with a bearer token.
//! - [`metrics`] renders samples for Prometheus; [`health`] the answer to `/healthz`.
//! - [`layout`] renders pages from [`templates`], with the style and icon of [`assets`].

pub mod auth;
pub mod error;
pub mod metrics;
pub mod settings;

pub use error::Error;
