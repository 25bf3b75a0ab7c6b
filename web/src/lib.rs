//! What all daemons share towards people: pages, administration, health.
//!
//! - [`auth`] guards state-changing requests with a bearer token.
//! - [`chart`] draws charts as SVG text.
//! - [`metrics`] renders samples for Prometheus; [`health`] answers `/healthz`, `/readyz` and `/metrics`, and
//!   [`opening`] the first two until a daemon can.
//! - [`layout`] renders pages from [`templates`], with the style and icon of `/assets/`, and frames a
//!   daemon's routes with what all answer alike: [`failure`] and [`headers`].

mod assets;
pub mod auth;
pub mod chart;
pub mod error;
pub mod failure;
pub mod headers;
pub mod health;
pub mod layout;
pub mod metrics;
pub mod opening;
pub mod templates;

pub use error::Error;
pub use layout::{Pages, Site};
