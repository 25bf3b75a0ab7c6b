//! The object between fetching and publishing: its bytes, its summary and its problems.
//!
//! Source: TR §4 ("The Gatherer Subsystem"). An object has a URL: it is a file, a page or a member of an
//! archive. A broken object gives a record and problems, and never aborts the run.

mod rest;

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;

pub use rest::{PIECE_BYTES, REST_BYTES_MAX, ReadAt, Rest};
pub(crate) use rest::{SeekReader, SeekState};

/// One fetched object.
#[derive(Clone, Debug)]
pub struct Object {
    /// The public URL: absolute, already mapped to the public prefix. A member of an archive has the
    /// container's URL, `#` and the member's percent-encoded path.
    pub url: String,
    /// Its file name without directories, as lossy UTF-8; typing by name reads it.
    pub name: String,
    /// Its content, or the front of it when `truncated`.
    pub bytes: Bytes,
    /// Last modification, in Unix seconds, when known.
    pub modified: Option<u64>,
    /// Its whole size in bytes; more than `bytes.len()` when `truncated`.
    pub size: u64,
    /// Whether `bytes` is only the front of the object.
    pub truncated: bool,
    /// The bytes behind the front when `truncated`, for formats that need them; `None` if they
    /// cannot be read.
    pub rest: Option<Rest>,
    /// MD5 of the whole object when the fetcher has computed it already; otherwise it is computed
    /// from `bytes` (and left out of the record when `truncated`).
    pub md5: Option<Md5>,
}

impl Object {
    /// Returns a whole object, with the last segment of `url` as its name.
    pub fn whole(url: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let (url, bytes) = (url.into(), bytes.into());
        let last = url.rsplit('/').next().unwrap_or_default();
        let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
        let size = bytes.len() as u64;
        Self { url, name, bytes, modified: None, size, truncated: false, rest: None, md5: None }
    }
}

/// The result of summarizing one object: a record with its content attributes, and problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The record: `FILE` template, the object's URL, and content attributes only (`Type`, `Title`,
    /// `Author`, `Description`, `Keywords`, `Abstract`, `Partial-Text` or `Full-Text`,
    /// `URL-References`, `File-Size`, `MD5`, `Last-Modification-Time`, `Nested-Filename`).
    pub record: Record,
    /// Problems, in order. The record is published all the same.
    pub problems: Vec<Problem>,
    /// The input of a site's program, which still has to run; its attributes replace the record's.
    pub given: Option<ProgramInput>,
}

/// An object as a site's program reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInput {
    /// Its file name, as [`Object::name`].
    pub name: String,
    /// Its content, unpacked.
    pub bytes: Bytes,
}

/// A problem with one object, for the list that administrators read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Problem {
    /// URL of the object, or of the member of an archive, that has the problem.
    pub object: String,
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The details, lower-case, without the URL and without a full stop.
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

/// The kind of a problem with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The bytes do not follow the format; the readable part was read.
    Broken,
    /// The content needs a password, or opening it would be unsafe.
    Locked,
    /// A limit on bytes, members, ratio or depth was reached; the rest was left out.
    Limit,
    /// Time was up, or the run was stopped; the rest was left out.
    Time,
    /// The summarizer itself failed: a fault of this program. The record has only the name.
    Fault,
    /// A site's program failed on the object: the record has the built-in summary.
    Program,
    /// The system was short of something, so that no worker could start; the object is tried again.
    Start,
}

impl ProblemKind {
    /// Returns the name in status pages and metric labels.
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
