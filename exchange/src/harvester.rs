//! A repository as a source: the harvest of `oai`, performed over HTTP.
//!
//! A [`Repository`] answers single requests; [`Running`] is a whole harvest, which hands out part after
//! part; a [`Target`] is a collection that takes them, each in one commit with the checkpoint behind it.
//! Whoever stores records elsewhere takes the parts as they are, and keeps their checkpoints.
//!
//! Source: OAI-PMH §3.1 (HTTP embedding), RFC 9110 §8.4 (content codings), §15 (status).
//!
//! Bounded in memory by a page at a time ([`PAGE_BYTES_MAX`]), packed and unpacked, what its records take,
//! and what is held before it ([`HELD_BYTES_MAX`]); in time, silence, redirects and where requests may lead by `net`.

mod ask;
mod body;
mod run;
mod target;

pub use ask::{Access, Error, PAGE_BYTES_MAX, REQUEST_TIME_MAX, Repository, URL_BYTES_MAX};
pub use run::{Bounds, HELD_BYTES_MAX, HELD_RECORDS_MAX, Running, Step};
pub use target::{PROBLEMS_MAX, Stored, Target};
