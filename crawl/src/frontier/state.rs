//! States of URLs, with their reasons: what `explain` says.
//!
//! Sans-I/O.

use std::fmt;

use super::traps::TrapKind;
use crate::walls::Wall;

/// The state of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has named it yet, and it would be taken.
    Unknown,
    /// It is in, and next when its turn comes.
    In,
    /// It is in, and its host has to wait.
    Waiting {
        /// Time of the end, in milliseconds since 1970 UTC; `None`: when something happens.
        until_ms: Option<u64>,
        /// The reason.
        why: Wait,
    },
    /// It is being fetched.
    Fetching,
    /// It was fetched in this pass.
    Done,
    /// It was tried, and is not there or cannot be had.
    Failed(Failure),
    /// It is kept out.
    Out(Out),
}

/// The reason why a host waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Its robots.txt is asked for.
    Robots,
    /// The delay between two requests.
    Delay,
    /// It asked for it (`Retry-After`).
    RetryAfter,
    /// It failed, and is left alone for longer each time.
    BackOff,
    /// It is paused.
    Paused(Pause),
}

/// The reason why a host is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// An administrator paused it.
    Asked,
    /// It answers with a bot wall.
    Wall(Wall),
    /// It failed too often without a success in between.
    Failing,
    /// Its robots.txt cannot be had.
    Robots,
}

/// The reason why a URL failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A status other than success.
    Status(u16),
    /// No answer.
    Unreachable,
    /// A page that says "not found" with success ([`crate::walls::Sample`]).
    SoftMissing,
    /// A page that asks who the user is ([`crate::walls::is_login`]).
    Login,
    /// An answer that cannot be read.
    Unreadable,
}

/// The reason why a URL is kept out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Out {
    /// It is of another scheme than those of the root.
    Scheme,
    /// It is longer than [`URL_BYTES_MAX`](crate::key::URL_BYTES_MAX).
    TooLong,
    /// A rule of the root, by the number that the filter gave.
    Rule(u16),
    /// A line of robots.txt, from 1.
    Robots(u32),
    /// It is farther from the start than `depth_max`.
    Depth,
    /// There are `urls_max` URLs.
    UrlsMax,
    /// There are `hosts_max` hosts.
    HostsMax,
    /// It is in a trap.
    Trap(TrapKind),
}

/// What came of a request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is there, unchanged, or redirected; the caller pushes where to. Time of the answer in
    /// milliseconds.
    Done {
        /// Time from the request to the end of the answer, in milliseconds.
        took_ms: u64,
    },
    /// It is not there, or cannot be had. Some failures are tried again ([`tries_max`](super::Settings::tries_max)).
    Failed {
        /// The reason.
        failure: Failure,
        /// Time at which the host may be asked again, if it said so (`Retry-After`).
        retry_at_ms: Option<u64>,
    },
    /// A wall answered. The URL stays in the queue, and the host is paused.
    Wall(Wall),
}

/// Numbers of URLs by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In the queue, or waiting.
    pub queued: usize,
    /// Being fetched.
    pub fetching: usize,
    /// Fetched.
    pub done: usize,
    /// Tried without success.
    pub failed: usize,
    /// Kept out by robots.txt. Others that are kept out are not counted.
    pub out: usize,
}

impl Failure {
    /// Returns the failure as a number: its status, or more.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Status(status) => status.into(),
            Self::Unreachable => 1 << 16,
            Self::SoftMissing => 2 << 16,
            Self::Login => 3 << 16,
            Self::Unreadable => 4 << 16,
        }
    }

    pub(super) fn by_code(code: u32) -> Self {
        match code >> 16 {
            0 => Self::Status(u16::try_from(code).unwrap_or_default()),
            1 => Self::Unreachable,
            2 => Self::SoftMissing,
            3 => Self::Login,
            _ => Self::Unreadable,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown: no page or list has named it"),
            Self::In => f.write_str("in: it is fetched when its turn comes"),
            Self::Waiting { why, .. } => write!(f, "waiting: {why}"),
            Self::Fetching => f.write_str("being fetched"),
            Self::Done => f.write_str("done"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
            Self::Out(out) => write!(f, "out: {out}"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Robots => f.write_str("the host's robots.txt comes first"),
            Self::Delay => f.write_str("for the delay between two requests to the host"),
            Self::RetryAfter => f.write_str("as long as the host asked (Retry-After)"),
            Self::BackOff => f.write_str("since the host failed"),
            Self::Paused(Pause::Asked) => f.write_str("an administrator paused the host"),
            Self::Paused(Pause::Wall(wall)) => wall.fmt(f),
            Self::Paused(Pause::Failing) => f.write_str("the host failed too often in this pass"),
            Self::Paused(Pause::Robots) => f.write_str("the host's robots.txt cannot be had"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Unreachable => f.write_str("no answer"),
            Self::SoftMissing => f.write_str("a page that says \"not found\" with success"),
            Self::Login => f.write_str("a page that asks who the user is"),
            Self::Unreadable => f.write_str("an answer that cannot be read"),
        }
    }
}

impl fmt::Display for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("a scheme that this root does not have"),
            Self::TooLong => f.write_str("the URL is too long"),
            Self::Rule(number) => write!(f, "rule {number}"),
            Self::Robots(line) => write!(f, "line {line} of robots.txt"),
            Self::Depth => f.write_str("too many links from the start (depth)"),
            Self::UrlsMax => f.write_str("there are as many URLs as allowed (urls_max)"),
            Self::HostsMax => f.write_str("there are as many hosts as allowed (hosts_max)"),
            Self::Trap(TrapKind::Calendar) => f.write_str("a calendar without end"),
            Self::Trap(TrapKind::Endless) => f.write_str("a path without end"),
            Self::Trap(TrapKind::Session) => f.write_str("the same page under names of sessions"),
            Self::Trap(TrapKind::Crowd) => {
                f.write_str("too many URLs in one folder or of one page")
            }
        }
    }
}
