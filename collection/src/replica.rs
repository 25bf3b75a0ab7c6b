//! Replicas of a collection: its log as a folder of few files, copied from an origin.
//!
//! An origin follows a collection's feed and stores its members byte by byte ([`Follower`]): first
//! a snapshot, the *base*, then commits in serial order, the *log*. The folder is replicated as a
//! directory of files that never change once they are closed. It includes the [`Chain`] of hashes:
//! whoever has a part of the log can check whether new files continue that part ([`check`]). A
//! [`Replica`] serves the origin's feed from the folder, under the origin's (epoch, serial), so
//! consumers can change between instances with their cursors. Key index and full-text index are not
//! copied: each instance builds its own.
//!
//! When the log has grown longer than the base (by [`FOLD_BYTES_MIN`]), it is *folded*: a new base
//! is made from both. The result depends only on the members, so each replica makes it for itself,
//! and nothing of it is sent.
//!
//! After a *purge* of the origin's collection, which its feed reports (`Harvest-Purged`), the log
//! is folded even if it is short. Suppressed changes are superseded, so after that no file has
//! their bytes. [`Chain`] records how far the purge has come, so whoever has former states of the
//! log knows which of them must be removed ([`holds_purged`]).
//!
//! Source: ARCHITECTURE.md, "The one idea"; TR §8 (the replicator).

mod chain;
mod fold;
mod folder;
mod follow;
mod reader;
pub(crate) mod writer;

#[cfg(test)]
mod tests;

pub use chain::{CHAIN_BYTES_MAX, Chain, FILES_MAX, Link, LogFile, LogPart, ParseChainError};
pub use fold::{FOLD_BYTES_MIN, fold_into};
pub use folder::{CHAIN, check, holds_purged};
pub use follow::Follower;
pub use reader::Replica;
