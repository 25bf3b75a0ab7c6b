//! The state of one namespace at a member: the held version, and the one being fetched.
//!
//! Sans-I/O.

use std::time::Duration;

use crate::fetch::PRIORITIES;
use crate::version::{Number, Version};

/// Pause before a failed version is tried again; it doubles each time, up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(2);
/// The longest pause before another try.
const RETRY_MAX: Duration = Duration::from_mins(5);
/// If no chunk of a version comes for this time, it is given up for a newer one: members with parts
/// of it may wait for each other after its origin has removed it.
const GIVE_UP: Duration = Duration::from_secs(20);
/// Maximum size of an update of priority 0, in bytes; each further priority has four times that.
const URGENT_BYTES: u64 = 256 << 10;

/// The progress of fetching a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The version.
    pub version: Version,
    /// Bytes that have come.
    pub came: u64,
    /// Missing bytes, as last given to [`super::Replica::set_missing`].
    pub missing: u64,
    /// When the last chunk came, or else the beginning.
    pub last: Duration,
    /// Whether all of it is here, and readers are about to see it.
    pub is_whole: bool,
    /// Whether there is a newer version.
    pub is_outdated: bool,
}

/// The reason why a version could not be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No source has all of it: it is tried again later.
    Missing,
    /// The disk is full or faulty: it is tried again later.
    Disk,
    /// Its content is invalid or too large: it is never tried again.
    Content,
}

#[derive(Debug, Default)]
pub(super) struct Space {
    pub held: Option<Version>,
    pub fetching: Option<Progress>,
    /// Whether an event happened since the last call of [`Space::next`].
    pub is_due: bool,
    pub failures: u32,
    retry_at: Option<Duration>,
    /// The version that no source had whole: a newer one need not wait for [`Space::retry_at`].
    missing: Option<Number>,
    /// Versions up to this one have invalid content.
    invalid_upto: Option<Number>,
}

#[derive(Debug)]
pub(super) enum Next {
    Stay,
    Stop(Number),
    Begin(Version),
}

/// Returns the priority of an update of this many bytes.
pub(super) fn priority(bytes: u64) -> u8 {
    let mut priority = 0;
    let mut bytes = bytes;
    while URGENT_BYTES < bytes && priority + 1 < PRIORITIES {
        bytes /= 4;
        priority += 1;
    }
    priority
}

impl Space {
    pub(super) fn is_invalid(&self, number: Number) -> bool {
        self.invalid_upto.is_some_and(|it| number <= it)
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        let outdated = self.fetching.as_ref().filter(|it| it.is_outdated && !it.is_whole);
        outdated.map(|it| it.last + GIVE_UP).into_iter().chain(self.retry_at).min()
    }

    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.is_due || self.timeout().is_some_and(|it| it <= now)
    }

    pub(super) fn handle_failure(&mut self, number: Number, why: Failure, now: Duration) {
        match why {
            Failure::Content => self.invalid_upto = self.invalid_upto.max(Some(number)),
            Failure::Missing | Failure::Disk => {
                self.missing = (why == Failure::Missing).then_some(number);
                let pause = RETRY.saturating_mul(2_u32.saturating_pow(self.failures));
                self.retry_at = Some(now + pause.min(RETRY_MAX));
                self.failures = self.failures.saturating_add(1);
            }
        }
    }

    /// Takes in that a neighbor holds a version: a missing version can be tried again.
    pub(super) fn handle_held(&mut self, number: Number) {
        if self.missing.is_some_and(|it| it <= number) {
            self.retry_at = self.retry_at.and(Some(Duration::ZERO));
        }
    }

    /// Returns the next step, and records it as begun.
    pub(super) fn next(&mut self, is_mine: bool, target: Option<&Version>, now: Duration) -> Next {
        if let Some(progress) = &mut self.fetching {
            if progress.is_whole {
                return Next::Stay;
            }
            let number = progress.version.number;
            progress.is_outdated = target.is_some_and(|it| number < it.number);
            // The origin has contradicted itself, or no group has the namespace any more.
            let is_over = target.is_none_or(|it| it.number < number);
            if is_over || progress.is_outdated && progress.last + GIVE_UP <= now {
                self.fetching = None;
                return Next::Stop(number);
            }
            return Next::Stay;
        }
        let held = self.held.as_ref().map(|it| it.number);
        let wanted = target.filter(|it| {
            !is_mine && held.is_none_or(|held| held < it.number) && !self.is_invalid(it.number)
        });
        let Some(version) = wanted else {
            self.retry_at = None;
            return Next::Stay;
        };
        let is_newer = self.missing.is_some_and(|it| it < version.number);
        if !is_newer && self.retry_at.is_some_and(|it| now < it) {
            return Next::Stay;
        }
        self.retry_at = None;
        let version = version.clone();
        let progress = Progress {
            version: version.clone(),
            came: 0,
            missing: 0,
            last: now,
            is_whole: false,
            is_outdated: false,
        };
        self.fetching = Some(progress);
        Next::Begin(version)
    }
}
