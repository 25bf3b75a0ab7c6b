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

use crate::limit::Cut;

pub use rest::{PIECE_BYTES, ReadAt, Rest};
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
    /// What a page says to a crawl, if there is one (`leads_max`).
    pub leads: Option<Box<Leads>>,
}

/// What a page says to those that crawl: where it leads, and what it asks of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leads {
    /// URLs to which the page links, resolved, each once, in order; without `rel=nofollow`, and at most
    /// [`Settings::leads_max`](crate::Settings::leads_max).
    pub links: Vec<String>,
    /// Names and contents of the `<meta>` elements that are for robots, in order.
    pub robots: Vec<(String, String)>,
    /// The URL that the page calls its own (`rel=canonical`), resolved.
    pub canonical: Option<String>,
}

impl Summary {
    /// Adds problems, and for each limit of the object itself a line of `Truncated`.
    pub fn add_problems(&mut self, problems: Vec<Problem>) {
        let own = problems.iter().filter(|it| it.object == self.record.url);
        let cuts = own.filter(|it| matches!(it.kind, ProblemKind::Limit(_)));
        let lines: Vec<String> = cuts.map(Problem::truncated).collect();
        self.add_truncated(lines);
        self.problems.extend(problems);
    }

    /// Adds lines to `Truncated`, each once.
    pub fn add_truncated(&mut self, lines: impl IntoIterator<Item = String>) {
        let before = self.record.text("Truncated").unwrap_or_default().into_owned();
        let mut all = before.clone();
        for line in lines {
            if !all.lines().any(|it| it == line) {
                all.push_str(if all.is_empty() { "" } else { "\n" });
                all.push_str(&line);
            }
        }
        if all != before {
            self.record.set("Truncated", all);
        }
    }
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
    #[serde(flatten)]
    pub kind: ProblemKind,
    /// The details, lower-case, without the URL and without a full stop.
    pub message: String,
}

impl Problem {
    /// Returns the problem of an object that goes beyond a limit.
    pub fn cut(url: impl Into<String>, cut: Cut) -> Self {
        let (kind, message) = cut.problem();
        Self::new(url, kind, message)
    }

    /// Returns the line of `Truncated`: the limit and how much was read, or the message.
    pub fn truncated(&self) -> String {
        match self.kind {
            ProblemKind::Limit(cut) => cut.to_string(),
            _ => self.message.clone(),
        }
    }

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
#[serde(tag = "kind")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The bytes do not follow the format; the readable part was read.
    Broken,
    /// The content needs a password, or opening it would be unsafe.
    Locked,
    /// There is more than a limit allows; the rest was left out.
    Limit(Cut),
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
    /// Returns whether both are of the same limit.
    pub(crate) fn is_same_limit(self, other: Self) -> bool {
        matches!((self, other), (Self::Limit(one), Self::Limit(two)) if one.limit == two.limit)
    }

    /// Returns the name in status pages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Locked => "locked",
            Self::Limit(_) => "limit",
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
