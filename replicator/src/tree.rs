//! Trees: what a directory with all that is below it is, on the wire and on disk.
//!
//! A tree is a *manifest*, which lists its entries in order, with the chunks of its files (`manifest`, `chunk`);
//! a manifest is cut in chunks itself, of which the root names the others (`levels`). A member keeps versions
//! as *generations*: directories that never change, of which `current` leads to the newest (`store`). It makes
//! them from a directory of its own (`publish`) or from chunks that others have (`fetch`).
//!
//! `docs/replication.md` has the formats byte by byte.

mod building;
pub mod chunk;
pub mod error;
pub mod fetch;
pub mod folding;
pub mod generation;
mod index;
pub mod levels;
mod listing;
pub mod manifest;
pub mod mode;
mod opening;
pub mod order;
mod output;
pub(crate) mod passage;
pub mod path;
pub mod problems;
pub mod publish;
mod staging;
pub mod store;
#[cfg(test)]
mod tests;
pub mod verify;
