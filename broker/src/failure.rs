//! Why a pull failed, in a word: what status and metrics count by, per source.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::Error as Cause;
use net::Error as Link;
use net::error::Stage;

use crate::status::Errors;

/// Why a pull failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nobody answers there, or we may not go there.
    Unreachable,
    /// It keeps us waiting: for its answer, for the next bytes, or for the end.
    TooSlow,
    /// The answer broke off, or was not HTTP.
    BrokenOff,
    /// It answered with an error: not allowed, busy, failed.
    Refused,
    /// What answers is no feed.
    NotAFeed,
    /// It speaks other formats only.
    OtherFormat,
    /// What came does not match its checksums, or is not what it was announced as.
    Corrupt,
    /// It brings more than it may, or swells without end.
    OverLimit,
    /// Its epoch went back.
    WrongEpoch,
    /// It would take most of what it brought away.
    Loss,
    /// The fault is this broker's: its disk, its collection.
    Ours,
}

impl Failure {
    /// Returns its name in status and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::TooSlow => "too_slow",
            Self::BrokenOff => "broken_off",
            Self::Refused => "refused",
            Self::NotAFeed => "not_a_feed",
            Self::OtherFormat => "other_format",
            Self::Corrupt => "corrupt",
            Self::OverLimit => "over_limit",
            Self::WrongEpoch => "wrong_epoch",
            Self::Loss => "loss",
            Self::Ours => "ours",
        }
    }

    /// Says why a pull failed.
    pub(crate) fn of(error: &Cause) -> Self {
        match error {
            Cause::Source { error, .. } => Self::of_link(error),
            Cause::Corrupt { .. } => Self::Corrupt,
            Cause::NotAFeed { .. } => Self::NotAFeed,
            Cause::Format { .. } => Self::OtherFormat,
            Cause::OverLimit { .. } | Cause::Swollen { .. } => Self::OverLimit,
            Cause::EpochBack { .. } => Self::WrongEpoch,
            Cause::Loss { .. } => Self::Loss,
            _ => Self::Ours,
        }
    }

    fn of_link(error: &Link) -> Self {
        match error {
            Link::Timeout { stage: Stage::Queue, .. } | Link::TlsSetup { .. } => Self::Ours,
            Link::Timeout { stage: Stage::Connect, .. }
            | Link::Url { .. }
            | Link::Refused { .. }
            | Link::Resolve { .. }
            | Link::Connect { .. }
            | Link::Tls { .. } => Self::Unreachable,
            Link::Timeout { .. } => Self::TooSlow,
            Link::Protocol { .. } | Link::Cut { .. } => Self::BrokenOff,
            Link::TooLarge { .. } => Self::OverLimit,
            Link::Status { .. } => Self::Refused,
            Link::Redirects { .. } | Link::Json { .. } => Self::NotAFeed,
            _ => Self::Ours,
        }
    }

    /// Counts one in what status says of a source.
    pub(crate) fn count(self, errors: &mut Errors, message: String, back_off_ms: u64, now_ms: u64) {
        errors.count += 1;
        *errors.by_kind.entry(self.name().to_owned()).or_default() += 1;
        errors.in_a_row = errors.in_a_row.saturating_add(1);
        (errors.last, errors.last_ms) = (Some(message), Some(now_ms));
        errors.back_off_seconds = Duration::from_millis(back_off_ms).as_secs_f64();
    }

    /// Whether it waits for an administrator's confirmation.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Self::WrongEpoch | Self::Loss)
    }
}
