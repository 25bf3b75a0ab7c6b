//! Tests of the clients of Gopher, NNTP and FTP: against servers that others wrote, and against
//! scripted ones.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../certificates/mod.rs"]
mod certificates;
mod ftp;
mod ftp_scripted;
mod gopher;
mod inn;
mod nntp;
mod peer;
mod servers;
