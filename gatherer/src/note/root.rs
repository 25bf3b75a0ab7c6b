//! Notes of roots.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use crate::progress::Hold;

/// Beginning of the key of every tree's note.
pub const ROOT: &str = "root ";

/// Beginning of the key of every repository's note.
pub const REPOSITORY: &str = "repository ";

/// Beginning of the key of every note of a robots.txt.
const ROBOTS: &str = "robots ";

/// Note of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootNote {
    /// Device of the root at the end of its last pass without a hold.
    pub device: Option<u64>,
    /// End of the tree's last finished pass, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Maximum number of known files since the end of the last pass without a hold.
    pub files: u64,
    /// Number of files lost since that time.
    pub lost: u64,
    /// Whether the collection has lost records of this root. Then every file is published again,
    /// whatever its note, until a pass has finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regather: bool,
    /// Reason for a hold on deletions, if there is one.
    pub hold: Option<Hold>,
    /// Number of files that are gone, at the time of the hold.
    pub held: u64,
    /// Begin of the crawl under way, in Unix milliseconds: a process that is started again goes on
    /// with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crawl_began: Option<u64>,
}

/// Whether and how the repository is harvested in full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regather {
    /// It is not.
    #[default]
    No,
    /// The next harvest begins from the start.
    Asked,
    /// The harvest under way has begun from the start, and goes on from its checkpoint.
    UnderWay,
}

/// Note of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryNote {
    /// End of the repository's last finished harvest, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Fingerprint of the settings that the repository's records depend on.
    pub settings: u64,
    /// Whether the repository is harvested in full again because the collection has lost its
    /// records.
    #[serde(default)]
    pub regather: Regather,
    /// Reason for a hold on deletions, if there is one.
    pub hold: Option<Hold>,
    /// Number of records that are gone, at the time of the hold.
    pub held: u64,
}

/// Returns the key of a tree's note.
pub fn root_key(root: &str) -> Vec<u8> {
    format!("{ROOT}{root}").into_bytes()
}

/// Returns the URL of the tree whose note has this key; `None` for other keys.
pub fn root_of(key: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?.to_owned())
}

/// Returns the key of the note of what is known of the robots.txt at `url`, under a root.
pub(crate) fn robots_key(root: &str, url: &str) -> Vec<u8> {
    format!("{ROBOTS}{root} {url}").into_bytes()
}

/// Returns the beginning of the keys of all notes of robots.txt under a root.
pub(crate) fn robots_prefix(root: &str) -> Vec<u8> {
    robots_key(root, "")
}

/// Returns the key of a repository's note.
pub fn repository_key(url: &str) -> Vec<u8> {
    format!("{REPOSITORY}{url}").into_bytes()
}

/// Returns the URL of the repository whose note has this key; `None` for other keys.
pub fn repository_of(key: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(key).ok()?.strip_prefix(REPOSITORY)?.to_owned())
}
