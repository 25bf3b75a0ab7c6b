//! Tests of the product as its users run it: the real binary, real files, real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod access;
mod cache;
#[path = "../../net/tests/certificates/mod.rs"]
mod certificates;
mod daemons;
mod damage;
mod data_folders;
mod essence;
mod examples;
mod freshness;
mod harness;
mod health;
mod newcomer;
mod oai;
mod opening;
#[path = "../../net/tests/peers/peer.rs"]
mod peer;
mod push;
mod replicator;
mod report;
#[path = "../../net/tests/peers/servers.rs"]
mod servers;
mod shell;
mod soak;
mod takedown;
mod tutorial;
mod up;
mod up_again;
mod up_manners;
mod web;
