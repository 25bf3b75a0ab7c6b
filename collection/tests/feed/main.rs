//! Feeds over real connections: whole, waited for, cut anywhere, damaged, passed on, and asked for
//! by many at once.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod broken;
mod foreign;
mod pulling;
mod pushed;
mod replica;
mod rotten;
mod serving;
mod support;
