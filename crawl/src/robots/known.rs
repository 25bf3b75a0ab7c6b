//! Knowledge of a host's robots.txt: its rules, or why there are none, and since when.
//!
//! Source: RFC 9309 §2.3.1 (access), §2.4 (caching).
//!
//! Sans-I/O.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::{Rule, Rules};

/// Number of redirects that whoever fetches a robots.txt follows, even to other hosts
/// (RFC 9309 §2.3.1.2).
pub const REDIRECTS: usize = 5;

/// Time after which a robots.txt is fetched again, in milliseconds (RFC 9309 §2.4).
pub const FETCH_MS: u64 = 24 * 60 * 60 * 1000;

/// Time after which one that could not be had is asked for again, in milliseconds.
pub const RETRY_MS: u64 = 60 * 60 * 1000;

/// Time for which a robots.txt must have been unreachable to be taken for missing, in milliseconds:
/// 30 days (RFC 9309 §2.3.1.4).
pub const LOST_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// What came of fetching a robots.txt. A bot wall instead of the file counts as unreachable.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The file, with a status of 200 to 299; its first [`BYTES_MAX`](super::BYTES_MAX) bytes.
    Body(&'a [u8]),
    /// Another status. A redirect means that there were more than [`REDIRECTS`].
    Status(u16),
    /// There was no answer, or none that says anything.
    Unreachable,
}

/// What is known of a robots.txt at one time. In its stored form it outlasts a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The last rules that were read. `None`: there was no file.
    rules: Option<Rules>,
    /// Time of the last fetch.
    fetched_ms: u64,
    /// Time from which on no fetch succeeded.
    unreachable_since_ms: Option<u64>,
}

/// What a robots.txt means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Its rules hold.
    Rules(&'a Rules),
    /// There is none: everything is allowed.
    Missing,
    /// It cannot be had: nothing is allowed.
    Unreachable {
        /// Time from which on it could not be had.
        since_ms: u64,
    },
}

/// What a robots.txt says of one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// A line decides.
    Line(&'a Rule),
    /// No line matches: allowed.
    NoLine,
    /// The URL is that of a robots.txt: allowed.
    Itself,
    /// There is no robots.txt: allowed.
    Missing,
    /// It cannot be had: disallowed for now.
    Unreachable {
        /// Time from which on it could not be had.
        since_ms: u64,
    },
}

impl Decision<'_> {
    /// Returns whether the URL may be fetched.
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Line(rule) => rule.allow,
            Self::NoLine | Self::Itself | Self::Missing => true,
            Self::Unreachable { .. } => false,
        }
    }
}

impl fmt::Display for Decision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(rule) => write!(f, "robots.txt, {rule}"),
            Self::NoLine => f.write_str("robots.txt has no line for it"),
            Self::Itself => f.write_str("robots.txt itself is always allowed"),
            Self::Missing => f.write_str("the host has no robots.txt"),
            Self::Unreachable { .. } => f.write_str("robots.txt cannot be had"),
        }
    }
}

impl Known {
    /// Returns what a first answer means for a product.
    pub fn new(answer: Answer<'_>, product: &str, now_ms: u64) -> Self {
        let mut known = Self { rules: None, fetched_ms: now_ms, unreachable_since_ms: None };
        known.update(answer, product, now_ms);
        known
    }

    /// Takes a later answer into account. Rules that were read before outlast a time in which the
    /// file cannot be had.
    pub fn update(&mut self, answer: Answer<'_>, product: &str, now_ms: u64) {
        self.fetched_ms = now_ms;
        let rules = match answer {
            Answer::Body(body) => Some(Rules::parse(body, product)),
            Answer::Status(429 | 500..) | Answer::Unreachable => {
                self.unreachable_since_ms.get_or_insert(now_ms);
                return;
            }
            Answer::Status(_) => None,
        };
        (self.rules, self.unreachable_since_ms) = (rules, None);
    }

    /// Returns what the file means now. One that was unreachable for longer than [`LOST_MS`] means
    /// what it meant before.
    pub fn state(&self, now_ms: u64) -> State<'_> {
        match (&self.rules, self.unreachable_since_ms) {
            (_, Some(since_ms)) if now_ms.saturating_sub(since_ms) <= LOST_MS => {
                State::Unreachable { since_ms }
            }
            (Some(rules), _) => State::Rules(rules),
            (None, _) => State::Missing,
        }
    }

    /// Returns whether the file was had at `since_ms` or later, and need not be fetched before it decides anything.
    pub fn is_fresh(&self, since_ms: u64, now_ms: u64) -> bool {
        self.unreachable_since_ms.is_none() && since_ms <= self.fetched_ms && now_ms < self.due_ms()
    }

    /// Returns the time from which on the file must be fetched before it decides anything.
    pub fn due_ms(&self) -> u64 {
        let wait_ms = if self.unreachable_since_ms.is_some() { RETRY_MS } else { FETCH_MS };
        self.fetched_ms.saturating_add(wait_ms)
    }

    /// Returns whether a URL of the same host may be fetched, and why.
    pub fn decide(&self, url: &Url, now_ms: u64) -> Decision<'_> {
        match self.state(now_ms) {
            // RFC 9309 §2.2.2: the file itself is implicitly allowed.
            _ if url.path() == "/robots.txt" && url.query().is_none() => Decision::Itself,
            State::Rules(rules) => rules.rule(url).map_or(Decision::NoLine, Decision::Line),
            State::Missing => Decision::Missing,
            State::Unreachable { since_ms } => Decision::Unreachable { since_ms },
        }
    }
}
