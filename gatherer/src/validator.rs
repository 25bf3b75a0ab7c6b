//! Validators: cheap signs that an object is unchanged and need not be read again.
//!
//! A validator is stored in the object's note, so the names and forms of its parts must not change.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

/// A file's metadata.
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

/// Validator of an object; its form depends on the kind of its root.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Validator {
    /// A file's metadata.
    File(Stat),
    /// Answer of a server.
    Http {
        /// The entity tag as received, with its quotes (RFC 9110 §8.8.3); of FTP the size in bytes, of
        /// News the number of the article.
        #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
        etag: Option<String>,
        /// The date of its last modification as received; of FTP in seconds since 1970.
        #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
        last_modified: Option<String>,
        /// MD5 of the received bytes, in hex: the only sign of a change if the server gives no
        /// other.
        #[serde(rename = "h")]
        md5: String,
    },
}

impl Validator {
    /// Returns the object's size in bytes, if it is known without reading all of it.
    pub fn size(&self) -> Option<u64> {
        match self {
            Self::File(stat) => Some(stat.size),
            Self::Http { .. } => None,
        }
    }

    /// Returns whether both validators give the object the same date, which is in its record.
    pub fn is_dated_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(own), Self::File(other)) => own.modified == other.modified,
            (Self::Http { last_modified: own, .. }, Self::Http { last_modified: other, .. }) => {
                own == other
            }
            (Self::File(_), Self::Http { .. }) | (Self::Http { .. }, Self::File(_)) => false,
        }
    }
}
