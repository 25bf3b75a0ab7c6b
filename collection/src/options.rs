//! Options of a collection: sizes, times and the place of its list of suppressed objects.
//!
//! Sans-I/O.

use std::path::PathBuf;
use std::time::Duration;

/// The sizes and times of a collection. The [`Default`] is right except for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// A segment is sealed once it is this large, in bytes.
    pub segment_bytes_max: u64,
    /// Maximum number of plain bytes of a member, unless one record is larger.
    pub member_bytes_max: usize,
    /// Maximum number of plain bytes of one record; larger records are refused.
    pub record_bytes_max: usize,
    /// Minimum time for which deletes are remembered.
    pub horizon: Duration,
    /// Time-to-live of an object whose record does not give one.
    pub ttl_default: Duration,
    /// Size in memory at which the newest part of the key index is written to disk, in bytes.
    pub keys_table_bytes_max: usize,
    /// The path of the list of suppressed objects; `None`: `suppressed.soif` in the collection's
    /// folder. A list outside of the folder keeps its state when the folder is restored from a
    /// backup.
    pub suppressed: Option<PathBuf>,
    /// The id of the collection's owner: what came through it before is not held; `None`: it has none.
    pub own_id: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes_max: 64 << 20,
            member_bytes_max: 64 << 10,
            record_bytes_max: 32 << 20,
            horizon: Duration::from_secs(60 * 86_400),
            ttl_default: Duration::from_secs(30 * 86_400),
            keys_table_bytes_max: 32 << 20,
            suppressed: None,
            own_id: None,
        }
    }
}

impl Options {
    pub(crate) fn horizon_ms(&self) -> u64 {
        millis(self.horizon)
    }

    pub(crate) fn ttl_default_ms(&self) -> u64 {
        millis(self.ttl_default)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
