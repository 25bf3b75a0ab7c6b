//! The common parts of all daemons: a data folder with an id, a key and a token; two listeners;
//! health, readiness and metrics.
//!
//! - [`Settings`] are the common settings.
//! - [`Data`] opens the data folder; [`auth`] guards administration by the token in it.
//! - [`Listeners`] are the public and the administration listener; [`opening`] answers at them
//!   until the daemon can. [`gate`] checks each public request by [`access`].
//! - [`overview`] is the first page of the administration.
//! - [`describe`] publishes a description of the daemon; [`announce`] tells registries of it.
//! - [`session`] knows the browser of the daemon's user.
//! - [`metrics`] renders samples for Prometheus; [`health`] answers `/healthz`, `/readyz` and
//!   `/metrics`.

pub mod access;
pub mod announce;
pub mod auth;
mod control;
mod credentials;
mod data;
pub mod describe;
mod error;
pub mod gate;
pub mod health;
mod listeners;
pub mod metrics;
pub mod opening;
pub mod overview;
pub mod session;
mod settings;
mod token;

pub use control::{Control, ListenerStatus};
pub use credentials::proxy_token;
pub use data::Data;
pub use error::Error;
pub use listeners::{Listener, Listeners};
pub use settings::Settings;
pub use token::{Token, client_certificate};
