//! Records by object identifier and one change log, under an (epoch, serial) version.
//!
//! A gatherer's production database, a broker's storage, a replica: all are a [`Collection`], and
//! everything that reads one is a cursor on its log. On disk a collection is a directory of
//! segments, append-only files of gzip members; the bytes on disk are the bytes on the wire.
//!
//! Source: DESIGN.md, "The one idea".

mod change;
mod collection;
#[cfg(test)]
mod damage_model;
mod error;
pub mod feed;
mod firsts;
#[cfg(fuzzing)]
pub mod fuzzing;
mod harvested;
mod heal;
mod holders;
mod intake;
mod keys;
mod log;
pub mod member;
mod notice;
mod open;
mod options;
#[cfg(test)]
mod power_cut;
pub mod pull;
mod purge;
mod recover;
pub mod replica;
mod report;
pub mod restraint;
mod sources;
mod suppress;
mod suppressed;
mod verify;
mod wire;

pub use change::{
    Batch, Change, Epoch, GATHERER_ID, GATHERER_ROOT, Note, ORIGIN_VERSION, Oid, Scanned, Stamp,
    Stored, Version,
};
pub use collection::Collection;
pub use collection::pick::Picked;
pub use error::{Damage, Error};
pub use feed::consumers::Consumer;
pub use harvested::{HarvestCheckpoint, Harvested};
pub use heal::Healing;
pub use holders::{Cursor, Progress, Pulled};
pub use log::scan::{Pinned, Scan};
pub use notice::{Author, Notice, REASON_BYTES_MAX, Subject};
pub use options::Options;
pub use purge::{PurgeReport, Purged};
pub use report::{
    Applied, Compacted, Cut, Extents, Health, Problem, Recovery, Report, SourceStats, Stats, Swept,
};
pub use suppress::TakenDown;
pub use suppressed::{FILE_NAME as SUPPRESSED_FILE, Scope, Suppression, Takedowns, has_list};
