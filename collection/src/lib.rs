//! Records by object identifier and one change log, under an (epoch, serial) version.
//!
//! A gatherer's production database and a broker's storage are [`Collection`]s, a [`replica`] is a
//! copy of a collection's log, and every consumer has a cursor on the log. On disk a collection is
//! a directory of segments, append-only files of gzip members; the bytes on disk are the bytes on
//! the wire.
//!
//! Each module uses those before it in this list, and none after it. [`member`], `log` and `keys`
//! hold the changes on the disk; `recover` repairs them after a crash; `suppressed` is the list of
//! takedowns. `collection` comes next, and after it `takedown`, `heal`, `sources` and `open`, which
//! use it. Then `wire`, the protocol between a feed and its consumers, and [`replica`]; last
//! [`feed`], and [`pull`], the client of a feed.
//!
//! Source: ARCHITECTURE.md, "The one idea".

mod change;
mod collection;
mod error;
pub mod feed;
#[cfg(fuzzing)]
pub mod fuzzing;
mod heal;
mod holders;
mod keys;
mod log;
pub mod member;
mod notice;
mod open;
mod options;
pub mod pull;
mod recover;
pub mod replica;
mod report;
mod sources;
mod subset;
mod suppressed;
mod takedown;
#[cfg(test)]
mod tests;
mod wire;

pub use change::{
    Batch, Change, Epoch, GATHERER_ID, GATHERER_ROOT, Note, ORIGIN_PATH, ORIGIN_VERSION, Oid,
    Scanned, Stamp, Stored, Version,
};
pub use collection::Collection;
pub use collection::pick::Picked;
pub use error::{Damage, Error};
pub use feed::consumers::Consumer;
pub use feed::purge::PurgeReport;
pub use heal::Healing;
pub use holders::{Cursor, Owner, Part, Progress, Pulled};
pub use log::scan::Scan;
pub use notice::{Author, Notice, REASON_BYTES_MAX, Subject};
pub use options::Options;
pub use report::{
    Applied, Compacted, Cut, Health, Problem, Recovery, Report, SourceStats, Stats, Swept,
};
pub use sources::harvested::{HarvestCheckpoint, Harvested};
pub use sources::restraint;
pub use subset::{KeptSubset, Serials, Subset};
pub use suppressed::{FILE_NAME as SUPPRESSED_FILE, Scope, Suppression, Takedowns, has_list};
pub use takedown::TakenDown;
pub use takedown::purge::Purged;
