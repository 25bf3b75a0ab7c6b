//! Feeds over real connections: waiting, cut, damaged, passed on, requested by many at once.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod broken;
mod foreign;
mod owners;
mod pulling;
mod replica;
mod rotten;
mod selected;
mod serving;
mod support;
