//! What is remembered of a root.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};

use crate::progress::Hold;

/// Begins the key of every tree's note.
const ROOT: &str = "root ";

/// Begins the key of every repository's note.
const REPOSITORY: &str = "repository ";

/// What is remembered of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootNote {
    /// The device that the root was on.
    pub device: Option<u64>,
    /// When its last finished pass ended, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Files known at the end of that pass, or later if there were more.
    pub files: u64,
    /// Files lost since.
    pub lost: u64,
    /// Whether the collection has lost records of this root, so that every file is to be published
    /// again whatever its note says, until a pass has finished.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regather: bool,
    /// Why deletions are held.
    pub hold: Option<Hold>,
    /// How many files were gone when they were.
    pub held: u64,
}

/// Whether everything is to be harvested again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regather {
    /// No.
    #[default]
    No,
    /// The next harvest is to begin anew.
    Asked,
    /// The harvest under way has begun anew, and goes on from its checkpoint.
    UnderWay,
}

/// What is remembered of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryNote {
    /// When its last finished harvest ended, in Unix milliseconds.
    pub confirmed: Option<u64>,
    /// Fingerprint of the settings that its records depend on.
    pub settings: u64,
    /// Whether the collection has lost records of it.
    #[serde(default)]
    pub regather: Regather,
    /// Why deletions are held.
    pub hold: Option<Hold>,
    /// How many records were gone when they were.
    pub held: u64,
}

/// Returns the key of a tree's note.
pub fn root_key(root: &str) -> Vec<u8> {
    format!("{ROOT}{root}").into_bytes()
}

/// Returns what the keys of all trees' notes begin with.
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

/// Returns what the keys of all repositories' notes begin with.
pub fn repositories_prefix() -> Vec<u8> {
    REPOSITORY.as_bytes().to_vec()
}

/// Returns the URL of the repository whose note has this key.
pub fn repository_of(key: &[u8]) -> Option<String> {
    Some(std::str::from_utf8(key).ok()?.strip_prefix(REPOSITORY)?.to_owned())
}
