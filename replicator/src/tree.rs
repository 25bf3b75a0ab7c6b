//! Trees: what a directory with all that is below it is on the wire.
//!
//! A tree is a *manifest*, which lists its entries in order, with the chunks of its files (`manifest`, `chunk`);
//! a manifest is cut in chunks itself, of which the root names the others (`levels`).

pub mod chunk;
pub mod levels;
pub mod manifest;
pub mod order;
pub mod path;
