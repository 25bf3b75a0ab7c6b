//! Trees: directories with their content, on the wire and on disk.
//!
//! The *manifest* of a tree lists its entries in order, with the chunks of its files (`manifest`,
//! `chunk`). The manifest is itself cut into chunks, and its root chunk leads to the others
//! (`levels`). A member keeps versions as *generations*: directories that never change; the link
//! `current` leads to the newest (`store`). A member makes generations from a directory of its own
//! (`publish`) or from the chunks of other members (`fetch`).
//!
//! `docs/replication.md` describes the formats byte by byte.

pub(crate) mod access;
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
pub mod path;
pub mod problems;
pub mod publish;
mod staging;
pub mod store;
#[cfg(test)]
mod tests;
pub mod verify;
