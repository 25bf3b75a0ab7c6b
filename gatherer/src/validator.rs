//! Validators: cheap signs that an object is unchanged and need not be read again.
//!
//! A validator is stored in the object's note: the names and forms of its parts must not change.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

/// The validator of a file: its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stat {
    /// Size in bytes.
    #[serde(rename = "s")]
    pub size: u64,
    /// Modification time: seconds since 1970, may be negative.
    #[serde(rename = "t")]
    pub modified: i64,
    /// Modification time: nanoseconds within the second.
    #[serde(rename = "n")]
    pub modified_nanos: u32,
    /// Inode number.
    #[serde(rename = "i")]
    pub inode: u64,
}
