//! Tests of caches over loopback: what they answer, whom they ask, what they keep, and who administers them.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../../net/tests/certificates/mod.rs"]
mod certificates;
#[path = "../common/mod.rs"]
mod common;
#[path = "../../../net/tests/peers/inn.rs"]
mod inn;
#[path = "../common/members.rs"]
mod members;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
#[path = "../common/peers.rs"]
mod peers;
#[path = "../../../net/tests/peers/servers.rs"]
mod servers;

mod administration;
mod copies;
mod faults;
mod hierarchy;
mod joining;
mod mirrors;
mod neighbors;
mod proxy;
mod rebinding;
mod resolving;
mod schemes;
mod stale;
mod tls;
