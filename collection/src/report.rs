//! Reports of a collection's operations: opening, compaction, verification, pulls.

use std::fmt;
use std::ops::AddAssign;
use std::path::PathBuf;

use crate::change::{Oid, Stamp, Version};
use crate::error::Damage;

/// The rest of an unfinished commit at the end of the log. It was never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// The start of the rest, in bytes.
    pub offset: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The damage that shows that the commit is unfinished.
    pub why: Damage,
}

/// The findings and actions of an opening.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Unfinished commits that were cut, in log order; empty after a clean stop.
    pub cut: Vec<Cut>,
    /// Damaged or missing members, as far as they are found without reading all of the log. They
    /// stay in place until their live objects have been fetched or gathered again.
    pub damaged: Vec<Problem>,
    /// The reason why the key index was rebuilt from the segments; `None` if it was not.
    pub keys_rebuilt: Option<String>,
    /// Number of changes replayed into the key index.
    pub replayed: u64,
    /// Whether the contents of a damaged or missing member are unknown. Then the cursors of all
    /// sources are forgotten, so that the sources are read from the start; a gatherer must gather
    /// everything again.
    pub lost: bool,
}

/// The outcome of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Number of segments read, and number written in their place.
    pub segments: (u64, u64),
    /// Bytes of the segments read, and of those written.
    pub bytes: (u64, u64),
    /// Changes kept.
    pub kept: u64,
    /// Changes dropped: superseded ones, and tombstones before the horizon.
    pub dropped: u64,
}

impl AddAssign for Compacted {
    fn add_assign(&mut self, other: Self) {
        let add = |one: (u64, u64), other: (u64, u64)| (one.0 + other.0, one.1 + other.1);
        self.segments = add(self.segments, other.segments);
        self.bytes = add(self.bytes, other.bytes);
        self.kept += other.kept;
        self.dropped += other.dropped;
    }
}

/// A fault in a collection's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The offset in the file, in bytes; 0 for the key index and for changes that are missing.
    pub offset: u64,
    /// The fault.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.offset, self.message)
    }
}

/// The outcome of `verify`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments read.
    pub segments: u64,
    /// Members read.
    pub members: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Changes seen.
    pub changes: u64,
    /// Live objects.
    pub objects: u64,
    /// The faults, in log order; at most 1,000 are listed.
    pub problems: Vec<Problem>,
    /// Live objects with damaged or missing records, to be gathered or fetched again from their
    /// root or source; at most 100,000 together with `lost`.
    pub healable: Vec<Oid>,
    /// Live objects with damaged or missing records, but without a root or a source.
    pub lost: Vec<Oid>,
    /// Whether the contents of a damaged or missing member are unknown: then everything has to be
    /// fetched or gathered again.
    pub unknown: bool,
}

/// The health of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Known damage that is not healed yet, in log order.
    pub damaged: Vec<Problem>,
    /// Members found damaged since the collection was opened.
    pub damaged_total: u64,
    /// The reason why the last commit was refused, if it may pass by itself.
    pub refusing: Option<String>,
}

/// The figures of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Its version.
    pub version: Version,
    /// Live objects.
    pub objects: u64,
    /// Changes in the log.
    pub changes: u64,
    /// Members of the log, local ones included.
    pub members: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Deletes up to this serial may be forgotten: a lower cursor gets a snapshot.
    pub horizon: u64,
    /// Whether [`compact_if_due`](crate::Collection::compact_if_due) has something to do.
    pub compaction_due: bool,
}

/// The outcome of a sweep of expired objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// Expired objects were deleted.
    Done {
        /// Number of objects.
        expired: u64,
    },
    /// The clock has jumped, or no sweep ran for a long time: nothing was deleted, so that live
    /// objects can be confirmed first.
    Waiting {
        /// The end of the wait.
        until: Stamp,
    },
    /// Too large a share of the objects has expired: nothing was deleted. A sweep that allows a
    /// larger share, ordered by an administrator, deletes them.
    Held {
        /// Objects that would be deleted.
        would_expire: u64,
        /// Live objects.
        of: u64,
    },
}

/// The changes to a collection by a pull, or by another application of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The collection's version after it.
    pub version: Version,
    /// Objects new or changed.
    pub updated: u64,
    /// Objects (and roots) confirmed unchanged.
    pub refreshed: u64,
    /// Objects deleted: their last holder released them, or a notice suppresses them.
    pub deleted: u64,
    /// Changes without effect: older than the stored version, about unknown objects, repeated, or
    /// without an identifier.
    pub ignored: u64,
    /// Updates refused because their objects are suppressed.
    pub refused: u64,
    /// Updates left out because their records are too large for a commit; the log names them.
    pub oversized: u64,
}

impl AddAssign for Applied {
    /// Adds another outcome: sums the counts, and keeps the newest version.
    fn add_assign(&mut self, other: Self) {
        self.version = self.version.max(other.version);
        self.updated += other.updated;
        self.refreshed += other.refreshed;
        self.deleted += other.deleted;
        self.ignored += other.ignored;
        self.refused += other.refused;
        self.oversized += other.oversized;
    }
}

/// The number of objects that a source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStats {
    /// The source's name.
    pub source: String,
    /// Live objects that it holds, alone or with others.
    pub objects: u64,
}
