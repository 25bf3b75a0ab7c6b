//! A collection that is replicated: its log as a folder of few files, which an origin keeps and others get.
//!
//! An origin follows the feed of a collection and keeps what it says, members byte by byte ([`Follower`]): first a
//! snapshot, the *base*, then commits in serial order, the *log*. The folder is what is replicated, as a directory
//! of files that are never changed once they are closed; with it goes the [`Chain`] of hashes by which whoever has
//! a part of the log knows whether what comes continues it ([`check`]). A [`Replica`] serves the origin's feed from
//! the folder, under the origin's (epoch, serial), so that consumers can go from one instance to another with their
//! cursors. Nobody gets anything of key index or full-text index: each makes its own.
//!
//! When the log has grown longer than the base, it is *folded*: the base is made anew from both. What comes out
//! depends on the members alone, so that each replica makes it for itself, and none of it travels.
//!
//! When the origin's collection has been *purged*, its feed says so (`Harvest-Purged`), and the log is folded however
//! short it is: what was suppressed is superseded, so no file has its bytes then. [`Chain`] says how far that
//! goes, so that whoever keeps former states of the log knows which of them must go ([`holds_purged`]).
//!
//! Source: DESIGN.md, "The one idea" ("index, replicator, OAI-PMH view and cascading brokers are cursors on it");
//! TR §8 (the replicator).

mod chain;
mod fold;
mod folder;
mod follow;
mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod power_cut;
#[cfg(test)]
mod tests;

pub use chain::{CHAIN_BYTES_MAX, Chain, FILES_MAX, Link, LogFile, ParseChainError, Part};
pub use fold::{FOLD_BYTES_MIN, fold_into};
pub use folder::{CHAIN, check, holds_purged};
pub use follow::Follower;
pub use reader::Replica;
