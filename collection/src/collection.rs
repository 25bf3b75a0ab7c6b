//! The collection: one writer, any number of readers, on one directory.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use soif::digest::Md5;
use tokio::sync::watch;

use crate::change::{Batch, Oid, Scanned, Stamp, Stored, Version};
use crate::error::Error;
use crate::holders::{Cursor, Pulled};
use crate::report::{Applied, Compacted, Extents, Recovery, Report, SourceStats, Stats, Swept};

/// How a collection is kept. [`Default`] suits all but tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A segment is sealed once it is this large, in bytes.
    pub segment_bytes_max: u64,
    /// Plain bytes of a member, unless one record is larger.
    pub member_bytes_max: usize,
    /// Plain bytes of one record at most; larger ones are refused.
    pub record_bytes_max: usize,
    /// How long deletes are remembered, at least.
    pub horizon: Duration,
    /// How long an object lives unconfirmed when it does not say so itself.
    pub ttl_default: Duration,
    /// Memory for the key index's cache, in bytes.
    pub keys_cache_bytes: u64,
    /// The key index is made durable at a commit when it last was so long ago.
    pub keys_flush_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes_max: 64 << 20,
            member_bytes_max: 64 << 10,
            record_bytes_max: 32 << 20,
            horizon: Duration::from_secs(60 * 86_400),
            ttl_default: Duration::from_secs(30 * 86_400),
            keys_cache_bytes: 32 << 20,
            keys_flush_interval: Duration::from_secs(5),
        }
    }
}

/// Records by object identifier and one change log, on one directory.
///
/// Cheap to clone; all clones are the same collection. Methods block (on the disk, and writers on
/// one another): call them from `spawn_blocking`.
#[derive(Clone, Debug)]
pub struct Collection {
    inner: Arc<()>,
}

impl Collection {
    /// Opens the collection in `dir`, making it if there is none, and repairs what a crash left.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`]: another process has it. [`Error::Manifest`]: run a rebuild. Otherwise the
    /// file system refused.
    pub fn open(_dir: &Path, _options: Options, _now: Stamp) -> Result<(Self, Recovery), Error> {
        unimplemented!()
    }

    /// Returns the version of the last commit.
    #[must_use]
    pub fn version(&self) -> Version {
        unimplemented!()
    }

    /// Returns a receiver that hears of every new version.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Version> {
        unimplemented!()
    }

    /// Returns the number of live objects.
    #[must_use]
    pub fn len(&self) -> u64 {
        unimplemented!()
    }

    /// Whether there is no live object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `batch` as one commit: after a crash all of it is there, or nothing. Durable when it
    /// returns. An empty batch commits nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: correct or drop that change. [`Error::Full`]: nothing of it is kept; free
    /// space and commit again. After any other error the collection stops writing: open it again.
    pub fn commit(&self, _batch: Batch, _now: Stamp) -> Result<Version, Error> {
        unimplemented!()
    }

    /// Returns the live object `oid`.
    ///
    /// # Errors
    ///
    /// The segment is damaged or unreadable.
    pub fn get(&self, _oid: &Oid) -> Result<Option<Stored>, Error> {
        unimplemented!()
    }

    /// Returns the value of a note.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn note(&self, _key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        unimplemented!()
    }

    /// Returns the notes whose keys start with `prefix`, by key. Notes committed meanwhile may or
    /// may not be among them.
    pub fn notes(
        &self,
        _prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Error>> + use<> {
        std::iter::empty()
    }

    /// Returns the changes after serial `since` up to the present version, in serial order;
    /// superseded ones may be absent.
    ///
    /// # Errors
    ///
    /// The log cannot be read.
    pub fn scan(&self, _since: u64) -> Result<Scan, Error> {
        unimplemented!()
    }

    /// Returns the live objects whose record has this `MD5`, in identifier order.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn oids_with_md5(&self, _md5: &Md5) -> Result<Vec<Oid>, Error> {
        unimplemented!()
    }

    /// Returns how far `source` has been read; `None` if never.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn cursor(&self, _source: &str) -> Result<Option<Cursor>, Error> {
        unimplemented!()
    }

    /// Applies what was pulled from a source, atomically with the source's cursor. The newest
    /// origin version of an object wins; a delete releases the source's hold, and the object goes
    /// with its last holder.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit); records without identity are ignored and counted, not refused.
    pub fn apply(&self, _pulled: Pulled, _now: Stamp) -> Result<Applied, Error> {
        unimplemented!()
    }

    /// Forgets a source: releases all that it holds, and its cursor.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub fn remove_source(&self, _source: &str, _now: Stamp) -> Result<Applied, Error> {
        unimplemented!()
    }

    /// Returns the sources that hold something or have a cursor, by name.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn sources(&self) -> Result<Vec<SourceStats>, Error> {
        unimplemented!()
    }

    /// Deletes the objects whose time-to-live has run out, unless more than `max_share` (0 to 1) of
    /// all have.
    ///
    /// # Errors
    ///
    /// As [`commit`](Self::commit).
    pub fn sweep(&self, _now: Stamp, _max_share: f64) -> Result<Swept, Error> {
        unimplemented!()
    }

    /// Rewrites the log without what is superseded. Commits go on meanwhile.
    ///
    /// # Errors
    ///
    /// The file system refused; the log is as it was.
    pub fn compact(&self, _now: Stamp) -> Result<Compacted, Error> {
        unimplemented!()
    }

    /// Checks every checksum, the order of the log, and the key index against one made anew.
    ///
    /// # Errors
    ///
    /// The file system refused. Damage is no error: the report lists it.
    pub fn verify(&self) -> Result<Report, Error> {
        unimplemented!()
    }

    /// Makes the key index anew from the segments.
    ///
    /// # Errors
    ///
    /// The file system refused, or a segment is damaged.
    pub fn rebuild(&self) -> Result<(), Error> {
        unimplemented!()
    }

    /// Writes all live objects as plain SOIF, in serial order; returns how many.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or `out` refused.
    pub fn export(&self, _out: impl io::Write) -> Result<u64, Error> {
        unimplemented!()
    }

    /// Returns the collection's figures.
    #[must_use]
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// Begins a new epoch: every consumer starts over with a snapshot. For restore, import and
    /// rollback.
    ///
    /// # Errors
    ///
    /// The file system refused; the epoch is as it was.
    pub fn new_epoch(&self, _now: Stamp) -> Result<Version, Error> {
        unimplemented!()
    }

    /// Returns the members after serial `since` as file ranges, without the local ones; `None` if
    /// `since` lies before the horizon or past the end (then a snapshot is due).
    ///
    /// # Errors
    ///
    /// None at present; the signature leaves room.
    pub fn extents(&self, _since: u64) -> Result<Option<Extents>, Error> {
        unimplemented!()
    }

    /// Pins the whole log as it is: its files stay until the pin is dropped.
    ///
    /// # Errors
    ///
    /// None at present; the signature leaves room.
    pub fn pin(&self) -> Result<Pinned, Error> {
        unimplemented!()
    }
}

/// Iterator over the log; see [`Collection::scan`].
#[derive(Debug)]
pub struct Scan {
    ahead: std::vec::IntoIter<Scanned>,
}

impl Iterator for Scan {
    type Item = Result<Scanned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.ahead.next().map(Ok)
    }
}

/// The log at one version, held for a snapshot.
#[derive(Debug)]
pub struct Pinned {
    /// Names the snapshot: unlike that of any other state of this or another collection.
    pub id: String,
    /// Its members as file ranges, without the local ones.
    pub extents: Extents,
    /// The version it is of.
    pub to: Version,
    /// Bytes of the ranges together.
    pub bytes: u64,
}
