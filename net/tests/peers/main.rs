//! Tests of the clients of Gopher, NNTP, FTP, and HTTP behind a proxy: against servers that others
//! wrote, and against scripted ones.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../certificates/mod.rs"]
mod certificates;
mod ftp;
mod ftp_scripted;
mod gopher;
mod inn;
mod nntp;
mod peer;
mod proxied;
mod servers;
