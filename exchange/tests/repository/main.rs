//! A collection as a repository, as whoever harvests it finds it: every response against the schemas.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/schemas.rs"]
mod schemas;

mod errors;
mod lasting;
mod lists;
mod support;
