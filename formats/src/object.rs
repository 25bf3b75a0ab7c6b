//! What goes down the route after fetching: an object's bytes, and what was wrong with it.
//!
//! Source: TR §4 ("The Gatherer Subsystem"). An object is one thing that has a URL: a file, a page,
//! a member of an archive. A broken object is data (a record plus problems), never an aborted run.
//!
//! Sans-I/O.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;

/// One fetched object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Where users find it: absolute, already mapped to the public prefix. Members of an archive
    /// carry the container's URL, `#` and the member's percent-encoded path.
    pub url: String,
    /// Its file name without directories, lossy UTF-8; what typing by name looks at.
    pub name: String,
    /// Its content, or the front of it when `truncated`.
    pub bytes: Bytes,
    /// Last modification, in Unix seconds, when known.
    pub modified: Option<u64>,
    /// Its whole size in bytes; more than `bytes.len()` when `truncated`.
    pub size: u64,
    /// Whether `bytes` is only the front of the object.
    pub truncated: bool,
    /// MD5 of the whole object when the fetcher has computed it already; otherwise it is computed
    /// from `bytes` (and left out of the record when `truncated`).
    pub md5: Option<Md5>,
}

impl Object {
    /// Returns an object that is all there, with the last segment of `url` as its name.
    pub fn whole(url: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let (url, bytes) = (url.into(), bytes.into());
        let last = url.rsplit('/').next().unwrap_or_default();
        let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
        let size = bytes.len() as u64;
        Self { url, name, bytes, modified: None, size, truncated: false, md5: None }
    }
}

/// What could be said about one object: a record with its content attributes, and what went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The record: `FILE` template, the object's URL, and content attributes only (`Type`, `Title`,
    /// `Author`, `Description`, `Keywords`, `Abstract`, `Partial-Text` or `Full-Text`,
    /// `URL-References`, `File-Size`, `MD5`, `Last-Modification-Time`, `Nested-Filename`).
    pub record: Record,
    /// What went wrong, in the order it was met. The record is still worth publishing.
    pub problems: Vec<Problem>,
    /// What a program of the site is still to be given, whose word counts more than the record's.
    pub given: Option<Given>,
}

/// An object as a program of the site reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Its file name, as [`Object::name`].
    pub name: String,
    /// Its content, opened where it was packed.
    pub bytes: Bytes,
}

/// Something wrong with one object, for the list that admins read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// URL of the object, or of the archive member, that is wrong.
    pub object: String,
    /// What sort of thing is wrong.
    pub kind: ProblemKind,
    /// What exactly, lower-case, without the URL and without a full stop.
    pub message: String,
}

impl Problem {
    /// Returns a problem of the object at `url`.
    pub fn new(url: impl Into<String>, kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { object: url.into(), kind, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.message)
    }
}

/// What sort of thing is wrong with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The bytes are not what the type promises; what could be read was read.
    Broken,
    /// The content is locked by a password, or its opening would be unsafe.
    Locked,
    /// A limit on bytes, members, ratio or depth was reached; the rest was left out.
    Limit,
    /// Time was up, or the run was stopped; the rest was left out.
    Time,
    /// The summarizer itself failed: a fault of ours. The record is by name only.
    Fault,
    /// A program of the site failed on it: the record is what is built in.
    Program,
    /// What reads it could not be started, as the system was short of something: it is tried again.
    Start,
}

impl ProblemKind {
    /// Returns the word for status pages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Locked => "locked",
            Self::Limit => "limit",
            Self::Time => "time",
            Self::Fault => "fault",
            Self::Program => "program",
            Self::Start => "start",
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
