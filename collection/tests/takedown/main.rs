//! Takedowns: suppressed objects are deleted and refused, and consumers are informed.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod hostile;
mod purging;
mod support;
mod taking;
