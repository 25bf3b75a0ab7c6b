//! Why a pull failed, in a word: what status and metrics count by, per source.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::Error as Cause;
use net::Error as Link;
use net::error::Stage;
use oai::harvest::{Failure as Harvest, Remedy};

use crate::error::{OVER_LIMIT_REST, retry_after};
use crate::status::Errors;

/// A pull that failed.
#[derive(Clone, Debug)]
pub(crate) struct Broke {
    pub(crate) failure: Failure,
    /// For people; it names the source.
    pub(crate) message: String,
    /// How long it is to be left alone at least.
    pub(crate) retry_after: Option<Duration>,
}

impl From<Cause> for Broke {
    fn from(error: Cause) -> Self {
        let retry_after = retry_after(&error);
        Self { failure: Failure::of(&error), message: error.to_string(), retry_after }
    }
}

impl Broke {
    /// The harvest of a source that ended before its end.
    pub(crate) fn harvest(source: &str, url: &str, failure: &Harvest) -> Self {
        let retry_after = match failure {
            Harvest::Busy { secs } => Some(Duration::from_secs(*secs)),
            Harvest::OverLimit { .. } => Some(OVER_LIMIT_REST),
            _ => None,
        };
        let message = format!("source {source}: {url}: {failure}");
        Self { failure: Failure::of_harvest(failure), message, retry_after }
    }
}

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
    /// A part of what it has is damaged there, and not replaced yet.
    Damaged,
    /// It brings more than it may, or swells without end.
    OverLimit,
    /// Its epoch went back.
    WrongEpoch,
    /// It would take most of what it brought away.
    Loss,
    /// Its list has no end, or cannot be gone on with.
    Tokens,
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
            Self::Damaged => "damaged",
            Self::OverLimit => "over_limit",
            Self::WrongEpoch => "wrong_epoch",
            Self::Loss => "loss",
            Self::Tokens => "tokens",
            Self::Ours => "ours",
        }
    }

    /// Says why a pull failed.
    pub(crate) fn of(error: &Cause) -> Self {
        match error {
            Cause::Source { error, .. } => Self::of_link(error),
            Cause::Corrupt { .. } => Self::Corrupt,
            Cause::Missing { .. } => Self::Damaged,
            Cause::NotAFeed { .. } | Cause::LogFolder { .. } => Self::NotAFeed,
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

    /// Says why a harvest did.
    pub(crate) fn of_harvest(failure: &Harvest) -> Self {
        match failure {
            Harvest::TokenLoop
            | Harvest::Endless { .. }
            | Harvest::TokenRefused(_)
            | Harvest::TokenSize { .. } => Self::Tokens,
            Harvest::Unreadable(_) | Harvest::Gaps { .. } => Self::Corrupt,
            Harvest::Status { .. } | Harvest::Busy { .. } | Harvest::Refused(_) => Self::Refused,
            Harvest::Transfer { remedy, .. } => match remedy {
                Remedy::Again | Remedy::None => Self::Unreachable,
                Remedy::AgainOrLess => Self::BrokenOff,
                Remedy::Less => Self::OverLimit,
            },
            Harvest::NoFormat { .. } => Self::OtherFormat,
            Harvest::OverLimit { .. } => Self::OverLimit,
            Harvest::TimeUp { .. } => Self::TooSlow,
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
