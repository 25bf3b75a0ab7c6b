//! Notes of roots.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use crate::progress::Hold;

/// Beginning of the key of every tree's note.
const ROOT: &str = "root ";

/// Beginning of the key of every repository's note.
const REPOSITORY: &str = "repository ";

/// Note of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootNote {
    /// Device of the root.
    pub device: Option<u64>,
    /// End of its last finished pass, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Known files at the end of that pass, or later if there were more.
    pub files: u64,
    /// Files lost since then.
    pub lost: u64,
    /// Whether the collection has lost records of this root: every file is published again whatever its
    /// note, until a pass has finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regather: bool,
    /// Reason of a hold on deletions.
    pub hold: Option<Hold>,
    /// Number of files gone at that time.
    pub held: u64,
}

/// Whether the repository is harvested in full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regather {
    /// No.
    #[default]
    No,
    /// The next harvest begins anew.
    Asked,
    /// The harvest under way has begun anew, and goes on from its checkpoint.
    UnderWay,
}

/// Note of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryNote {
    /// End of its last finished harvest, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Fingerprint of the settings that its records depend on.
    pub settings: u64,
    /// Whether the collection has lost records of it.
    #[serde(default)]
    pub regather: Regather,
    /// Reason of a hold on deletions.
    pub hold: Option<Hold>,
    /// Number of records gone at that time.
    pub held: u64,
}

/// Returns the key of a tree's note.
pub fn root_key(root: &str) -> Vec<u8> {
    format!("{ROOT}{root}").into_bytes()
}

/// Returns the beginning of the keys of all trees' notes.
pub fn roots_prefix() -> Vec<u8> {
    ROOT.as_bytes().to_vec()
}

/// Returns the URL of the tree whose note has this key.
pub fn root_of(key: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?.to_owned())
}

/// Returns the key of a repository's note.
pub fn repository_key(url: &str) -> Vec<u8> {
    format!("{REPOSITORY}{url}").into_bytes()
}

/// Returns the beginning of the keys of all repositories' notes.
pub fn repositories_prefix() -> Vec<u8> {
    REPOSITORY.as_bytes().to_vec()
}

/// Returns the URL of the repository whose note has this key.
pub fn repository_of(key: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(key).ok()?.strip_prefix(REPOSITORY)?.to_owned())
}
