//! What every daemon is: a data folder with an id, a key and a token; two listeners; whether it lives and is
//! ready, and what it counts.
//!
//! - [`Settings`] are the settings that all have.
//! - [`Data`] opens the data folder; [`auth`] guards what its administrator does by the token there.
//! - [`Fronts`] are the public and the administration listener; [`opening`] answers at them until the daemon
//!   can. [`gate`] stands before what is public, and asks [`access`] who may have it.
//! - [`overview`] is the first page of its administration.
//! - [`describe`] tells whoever asks what the daemon is.
//! - [`metrics`] renders samples for Prometheus; [`health`] answers `/healthz`, `/readyz` and `/metrics`.

pub mod access;
pub mod auth;
mod control;
mod credentials;
mod data;
pub mod describe;
mod error;
mod fronts;
pub mod gate;
pub mod health;
pub mod metrics;
pub mod opening;
pub mod overview;
mod settings;
mod token;

pub use control::{Control, Listening};
pub use data::Data;
pub use error::Error;
pub use fronts::{Front, Fronts};
pub use settings::Settings;
pub use token::{Token, client_certificate};
