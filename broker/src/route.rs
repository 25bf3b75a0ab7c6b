//! Routing: searches of several brokers, and what they need to know of each other.
//!
//! Each broker makes a [`summary`] of what it has. A search everywhere asks the brokers whose summaries promise most
//! ([`choose`]), and makes one answer of theirs. Engines of other makes are asked beside them ([`foreign`]).
//!
//! Source: TR §10 and §11.

mod asking;
pub(crate) mod bloom;
pub mod choose;
pub mod directory;
mod everywhere;
mod excess;
pub mod foreign;
mod merge;
mod named;
mod paces;
pub(crate) mod peers;
pub mod polling;
pub(crate) mod routing;
pub mod settings;
pub(crate) mod summarizer;
pub mod summary;

pub use everywhere::DEPTH_MAX;
