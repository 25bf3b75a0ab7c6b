//! Answers of a registry's API about servers.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

/// A server, as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name for people.
    pub name: String,
    /// Its kind: `gatherer`, `broker`, `cache`, `replicator`, `registry`.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Its address.
    pub url: String,
    /// How it stands: `alive`, `dead`; `relayed` if another registry lists it, from which this one pulls. To
    /// administrators also `waiting` and `revoked`.
    pub state: String,
    /// When its description was last read, in Unix seconds; of a relayed one, the time of its description.
    pub last_seen: u64,
    /// Number of its objects; `None`: that is not known, as to an administrator's list, which knows no records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// What it gathers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathers: Vec<String>,
}

/// What an administrator sees of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overview {
    /// All servers that have announced themselves, or were revoked.
    pub servers: Vec<Listed>,
    /// Number of announcements that were refused since the start, by reason; `summary`: of content summaries.
    pub refused: std::collections::BTreeMap<String, u64>,
    /// The last of them, 200 at most, and 10 of one address.
    pub refusals: Vec<Refused>,
}

/// What was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approved {
    /// The key of the server.
    pub key: String,
    /// The address at which it is asked.
    pub url: String,
}

/// An announcement that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// When, in Unix seconds.
    pub at: u64,
    /// The address that announced.
    pub from: String,
    /// The id that was announced.
    pub id: String,
    /// The address that was announced.
    pub url: String,
    /// Why.
    pub reason: String,
    /// The key that was found there, if an administrator can approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
