//! Tests of web sites, and of archives of FTP, Gopher and News, as roots: how they are asked, and what their
//! answers change.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../../../net/tests/certificates/mod.rs"]
mod certificates;
#[path = "../../../net/tests/peers/inn.rs"]
mod inn;
#[path = "../../../net/tests/peers/nginx.rs"]
mod nginx;
#[path = "../../../net/tests/peers/peer.rs"]
mod peer;
#[path = "../../../net/tests/peers/servers.rs"]
mod servers;
#[path = "../support/mod.rs"]
mod support;

mod breaking;
mod crawling;
mod enumerating;
mod explaining;
mod hostile_archives;
mod hostile_sites;
mod keeping;
mod killed;
mod leading;
mod manners;
mod protocols;
mod proxied;
mod recrawling;
mod redirected;
mod relay;
mod served;
mod shortage;
mod twins;
mod walls;

// The servers have certificates.
use rcgen as _;
