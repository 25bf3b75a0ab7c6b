//! Trees: what a directory with all that is below it is, on the wire and on disk.
//!
//! A tree is a *manifest*, which lists its entries in order, with the chunks of its files (`manifest`); a
//! manifest is cut in chunks itself, of which the root names the others (`levels`).
//!
//! `docs/replication.md` has the formats byte by byte.

pub mod chunk;
pub mod manifest;
pub mod order;
pub mod path;
