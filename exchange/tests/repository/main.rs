//! Tests of a collection as a repository: every response is checked against the schemas.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../support/schemas.rs"]
mod schemas;

mod continuity;
mod errors;
mod lists;
mod support;
