//! Takedown: what is suppressed is gone, stays away whoever brings it, and says so to consumers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod hostile;
mod purging;
mod support;
mod taking;
