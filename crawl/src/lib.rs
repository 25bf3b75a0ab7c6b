//! Gathering over HTTP: what may be fetched, when, and what an answer means. Times are in
//! milliseconds since 1970 UTC and come in as `now_ms`.
//!
//! Sans-I/O.

mod date;
pub mod directives;
pub mod frontier;
pub mod key;
mod percent;
pub mod robots;
pub mod sitemap;
pub mod walls;
