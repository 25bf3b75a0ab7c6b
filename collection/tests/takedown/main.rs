//! Takedowns: suppressed objects are deleted, are refused from every source, and consumers are informed.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod hostile;
mod purging;
mod support;
mod taking;
