//! More tests of web sites as roots: how their servers are asked, and what their answers change.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../../net/tests/certificates/mod.rs"]
mod certificates;
#[path = "../../../net/tests/peers/nginx.rs"]
mod nginx;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
#[path = "../support/mod.rs"]
mod support;

mod keeping;
mod killed;
mod leading;
mod manners;
mod served;

// The servers have certificates.
use rcgen as _;
