//! The harvester: the harvest of `oai`, performed over HTTP.
//!
//! A [`Repository`] answers single requests. [`Running`] is a whole harvest, which hands out one
//! batch after the other. A [`Target`] is a collection that stores the batches, each in one commit
//! with its checkpoint. A caller that stores records elsewhere takes the batches itself, and keeps
//! their checkpoints.
//!
//! Source: OAI-PMH §3.1 (HTTP embedding), RFC 9110 §8.4 (content codings), §15 (status).
//!
//! Memory is bounded by one page ([`PAGE_BYTES_MAX`]), compressed and decompressed, its records,
//! and the records that wait before it ([`HELD_BYTES_MAX`]). `net` limits the time, the silence,
//! the redirects and the addresses of requests.

mod body;
mod client;
mod run;
mod target;

pub use client::{Access, Error, PAGE_BYTES_MAX, REQUEST_TIME_MAX, Repository, URL_BYTES_MAX};
pub use run::{Bounds, HELD_BYTES_MAX, HELD_RECORDS_MAX, Running, Step};
pub use target::{PROBLEMS_MAX, Stored, Target};
