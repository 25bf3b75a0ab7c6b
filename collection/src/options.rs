//! How a collection is kept.
//!
//! Sans-I/O.

use std::path::PathBuf;
use std::time::Duration;

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
    /// Memory for what of the key index is not on disk yet, in bytes.
    pub keys_table_bytes_max: usize,
    /// The list of what is suppressed; `None`: `suppressed.soif` in the collection's folder. Beside the
    /// folder, it is not set back when the folder is restored.
    pub suppressed: Option<PathBuf>,
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
        }
    }
}

impl Options {
    /// The horizon in milliseconds.
    pub(crate) fn horizon_ms(&self) -> u64 {
        millis(self.horizon)
    }

    /// The usual time-to-live in milliseconds.
    pub(crate) fn ttl_default_ms(&self) -> u64 {
        millis(self.ttl_default)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
