//! Kinds of failed pulls: status and metrics count the failures of each source by kind.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::Error as Cause;
use net::Error as Link;
use net::error::Stage;
use oai::harvest::{Failure as Harvest, Remedy};

use crate::error::{OVER_LIMIT_REST, retry_after};
use crate::status::Errors;

#[derive(Clone, Debug)]
pub(crate) struct FailedPull {
    pub(crate) failure: Failure,
    /// Message for people; it names the source.
    pub(crate) message: String,
    /// Shortest pause before the next pull.
    pub(crate) retry_after: Option<Duration>,
}

impl From<Cause> for FailedPull {
    fn from(error: Cause) -> Self {
        let retry_after = retry_after(&error);
        Self { failure: Failure::of(&error), message: error.to_string(), retry_after }
    }
}

impl FailedPull {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The host does not answer, or the settings forbid to connect to it.
    Unreachable,
    /// The answer, its next bytes or its end took too long.
    TooSlow,
    /// The answer broke off, or was not HTTP.
    BrokenOff,
    /// The source answered with an error: it does not allow the request, is busy, or failed.
    Refused,
    /// The answer is no feed.
    NotAFeed,
    /// The source offers only formats that the broker does not read.
    OtherFormat,
    /// The data does not match its checksums or its announced values.
    Corrupt,
    /// Data at the source is damaged and not yet replaced.
    Damaged,
    /// The pull exceeds a limit, before or after decompression.
    OverLimit,
    /// The epoch of the source went back.
    WrongEpoch,
    /// The pull would delete most of the source's objects.
    Loss,
    /// The list of a repository has no end, or cannot be continued.
    Tokens,
    /// The fault is in this broker, such as in its disk or its collection.
    Ours,
}

impl Failure {
    /// Returns whether another replica of the source may do better.
    pub(crate) fn is_of_one_place(self) -> bool {
        matches!(
            self,
            Self::Unreachable
                | Self::TooSlow
                | Self::BrokenOff
                | Self::Refused
                | Self::NotAFeed
                | Self::Corrupt
                | Self::Damaged
                | Self::WrongEpoch
        )
    }

    /// Returns the kind's name in status and metrics.
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
            Harvest::NoFormat { .. } | Harvest::NoSet { .. } => Self::OtherFormat,
            Harvest::OverLimit { .. } => Self::OverLimit,
            Harvest::TimeUp { .. } => Self::TooSlow,
        }
    }

    /// Counts one failure in the status of a source.
    pub(crate) fn count(self, errors: &mut Errors, message: String, back_off_ms: u64, now_ms: u64) {
        errors.count += 1;
        *errors.by_kind.entry(self.name().to_owned()).or_default() += 1;
        errors.in_a_row = errors.in_a_row.saturating_add(1);
        (errors.last, errors.last_ms) = (Some(message), Some(now_ms));
        errors.back_off_seconds = Duration::from_millis(back_off_ms).as_secs_f64();
    }

    /// Returns whether the source now waits for an administrator's confirmation.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Self::WrongEpoch | Self::Loss)
    }
}
