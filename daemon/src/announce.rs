//! Announcing: a daemon tells its registries that it is there.
//!
//! An announcement is a ping: it says an id and an address, and proves nothing. The registry reads the signed
//! [description](crate::describe) at that address, and believes this alone. So whatever is in an announcement, only the
//! daemon itself can be listed, and only as what it says of itself. Announcements come again and again; when they stop,
//! the registry lists the daemon as dead. One that ends says goodbye, signed.
//!
//! Source: TR §3 (servers register themselves); ours.

mod gathering;
mod keeping;
mod registries;

use serde::{Deserialize, Serialize};
use url::Url;

pub use gathering::{GATHERS_PATH, Gathering, gatherers_of};
pub use keeping::{Announcing, Sign};
pub use registries::{Registries, address, addresses};

/// Path of announcements, below a registry's address.
pub const PATH: &str = "announce";
/// Path of goodbyes, below a registry's address.
pub const GOODBYE_PATH: &str = "goodbye";

/// An announcement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// The daemon's id.
    pub id: String,
    /// The address at which its description is.
    pub base_url: Url,
}

/// A goodbye. It is signed as a description is, by the header [`crate::describe::SIGNATURE`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goodbye {
    /// The id of the daemon that ends.
    pub goodbye: String,
    /// A number of the sequence of its descriptions, higher than those before.
    pub sequence: u64,
}

/// What a registry makes of an announcement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The daemon is listed.
    Listed,
    /// It waits until an administrator of the registry approves it.
    Waiting,
    /// It was not looked at: the registry has much to do. It says when to come again.
    Later,
    /// It is refused, for the reason that is given.
    #[default]
    Refused,
}

/// The answer to an announcement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// What is made of it.
    pub state: State,
    /// Why it is refused, or not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When to announce the next time, in seconds.
    pub every_secs: u64,
}

/// How it goes with one registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// The registry's address.
    pub registry: Url,
    /// What it made of the last announcement at which it looked; `None`: there has been no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Why the last announcement failed, or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The time of the last answer, in Unix milliseconds; 0: there has been none.
    #[serde(default)]
    pub answered_ms: u64,
    /// Who else gathers what this daemon gathers, each a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}
