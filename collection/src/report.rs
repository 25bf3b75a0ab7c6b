//! What the operations of a collection say about what they did.

use std::fmt;
use std::fs::File;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::Arc;

use crate::change::{Oid, Stamp, Version};
use crate::error::Damage;

/// What an unfinished commit has left at the end of the log: nobody was told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: PathBuf,
    /// Where the part starts, in bytes.
    pub offset: u64,
    /// How long the part is, in bytes.
    pub bytes: u64,
    /// What shows that it is unfinished.
    pub why: Damage,
}

/// What opening a collection found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// What was cut, in log order; empty after a clean stop.
    pub cut: Vec<Cut>,
    /// What is damaged or not there, as far as that shows without reading all of the log. It stays
    /// in its place until what lived in it has been brought again.
    pub damaged: Vec<Problem>,
    /// Why the key index was made anew from the segments; `None` if it was not.
    pub keys_rebuilt: Option<String>,
    /// How many changes were replayed into the key index.
    pub replayed: u64,
    /// Whether nobody knows what was in something that is damaged or not there: sources' cursors are
    /// forgotten, so that they are fetched again; and a gatherer must gather again.
    pub lost: bool,
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// How many segments were read, and how many written in their place.
    pub segments: (u64, u64),
    /// Bytes of those segments before and after.
    pub bytes: (u64, u64),
    /// Changes kept.
    pub kept: u64,
    /// Changes dropped: superseded, or tombstones before the horizon.
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

/// Something wrong that `verify` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where in it, in bytes; 0 for the key index.
    pub offset: u64,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: byte {}: {}", self.file.display(), self.offset, self.message)
    }
}

/// What `verify` saw.
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
    /// What is wrong, in log order; at most 1,000 are listed.
    pub problems: Vec<Problem>,
    /// Live objects whose records are damaged or not there, and that came from a root or a source:
    /// whoever has them brings them again. At most 100,000.
    pub healable: Vec<Oid>,
    /// Such objects that came from nowhere that is known. At most 100,000.
    pub lost: Vec<Oid>,
    /// Whether nobody knows what was in something that is damaged or not there: everything has to be
    /// fetched or gathered again.
    pub unknown: bool,
}

/// How a collection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What is known to be damaged or not there, and not yet replaced, in log order.
    pub damaged: Vec<Problem>,
    /// Members found damaged since the collection was opened.
    pub damaged_total: u64,
    /// Why the last commit was refused, if it was for a reason that may pass.
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
    /// Deletes at or below this serial may be forgotten: feeds start above it or with a snapshot.
    pub horizon: u64,
    /// Whether [`compact`](crate::Collection::compact) is worth its while.
    pub compaction_due: bool,
}

/// What a sweep of expired objects did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// So many objects had expired and are deleted.
    Done {
        /// How many.
        expired: u64,
    },
    /// The clock has jumped, or nobody had looked for long: nothing was deleted, so that what lives
    /// can be confirmed first.
    Waiting {
        /// Until when.
        until: Stamp,
    },
    /// Too large a share has expired: nothing was deleted. A sweep with a greater share, at an
    /// admin's word, deletes them.
    Held {
        /// Objects that would be deleted.
        would_expire: u64,
        /// Live objects.
        of: u64,
    },
}

/// What applying a pull did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The collection's version after it.
    pub version: Version,
    /// Objects new or changed.
    pub updated: u64,
    /// Objects (and roots) confirmed unchanged.
    pub refreshed: u64,
    /// Objects deleted: their last holder released them.
    pub deleted: u64,
    /// Changes without effect: older than what is held, of unknown objects, repeated, unidentified.
    pub ignored: u64,
    /// Updates refused because their objects are suppressed.
    pub refused: u64,
    /// Updates left out because a commit does not take records so large; the log names them.
    pub oversized: u64,
}

impl AddAssign for Applied {
    /// Adds what came later, or elsewhere: the counts, and the newest version.
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

/// How much a source holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStats {
    /// The source's name.
    pub source: String,
    /// Live objects that it holds, alone or with others.
    pub objects: u64,
}

/// Members of the log to be served, as ranges of files.
#[derive(Clone, Debug)]
pub struct Extents {
    /// File, offset and length in bytes; in log order. The files stay readable whatever happens to
    /// the collection.
    pub files: Vec<(Arc<File>, u64, u64)>,
    /// The version that the ranges reach.
    pub to: Version,
    /// How many changes the ranges hold; the first member may hold some the reader already has.
    pub changes: u64,
}
