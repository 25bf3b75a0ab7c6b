//! Servers announce themselves to a registry, over HTTP: real brokers, and daemons that lie.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod common;
mod decisions;
mod everywhere;
mod honest;
mod lies;
mod page;
