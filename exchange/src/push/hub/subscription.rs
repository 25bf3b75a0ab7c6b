//! One subscription, verified or not.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::Version;
use url::Url;

use super::super::request::{Question, SubscriptionRequest};
use super::super::signature::Secret;
use super::Ticket;

/// Wait after a first failed attempt, milliseconds; it doubles with each further one.
const RETRY_MS: u64 = 1_000;

/// Longest wait between two attempts, milliseconds.
const RETRY_MS_MAX: u64 = 300_000;

/// Longest wait that a subscriber may ask for, milliseconds.
const RETRY_AFTER_MS_MAX: u64 = 3_600_000;

/// Shortest time between the beginnings of two unproven notifications, milliseconds.
const UNPROVEN_GAP_MS: u64 = 10_000;

/// Maximum number of attempts at a notification, with waits of about nine minutes in all.
pub(super) const ATTEMPTS_MAX: u32 = 10;

/// Longest time without any answer of a subscriber, milliseconds. The limit is needed because the
/// name of a callback can be pointed to another machine after its verification.
const SILENT_MS_MAX: u64 = 86_400_000;

/// Maximum number of attempts at a verification.
pub(super) const VERIFICATIONS_MAX: u32 = 3;

/// Returns the wait after this number of failures in a row, in milliseconds.
fn back_off_ms(failures: u32) -> u64 {
    let doubled = RETRY_MS.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    doubled.min(RETRY_MS_MAX)
}

/// A request with a pending verification.
#[derive(Debug)]
pub(super) struct Intent {
    pub(super) asked: SubscriptionRequest,
    pub(super) host: String,
    /// The verification under way, if any. Answers to earlier ones are ignored.
    pub(super) asking: Option<Ticket>,
    pub(super) due_ms: u64,
    challenge: String,
    lease_secs: u64,
    failures: u32,
}

impl Intent {
    pub(super) fn new(
        asked: SubscriptionRequest,
        challenge: String,
        host: String,
        lease_secs: u64,
        now_ms: u64,
    ) -> Self {
        let (asking, due_ms, failures) = (None, now_ms, 0);
        Self { asked, host, asking, due_ms, challenge, lease_secs, failures }
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.asking.is_none().then_some(self.due_ms)
    }

    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        self.due().is_some_and(|it| it <= now_ms)
    }

    pub(super) fn handle_jump(&mut self, now_ms: u64) {
        self.due_ms = self.due_ms.min(now_ms.saturating_add(RETRY_MS_MAX));
    }

    /// Begins the verification; returns the address to request, and the confirming body.
    pub(super) fn begin(&mut self, ticket: Ticket) -> (Url, String) {
        self.asking = Some(ticket);
        let (mode, topic) = (self.asked.mode, self.asked.topic.clone());
        let (challenge, lease_secs) = (self.challenge.clone(), self.lease_secs);
        let question = Question::Intent { mode, topic, challenge, lease_secs };
        (question.url(&self.asked.callback), self.challenge.clone())
    }

    /// Handles a missing answer; returns false after the last attempt.
    pub(super) fn handle_silence(&mut self, now_ms: u64) -> bool {
        self.asking = None;
        self.failures += 1;
        self.due_ms = now_ms.saturating_add(back_off_ms(self.failures));
        self.failures < VERIFICATIONS_MAX
    }
}

/// A verified subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) callback: Url,
    pub(super) host: String,
    pub(super) secret: Option<Secret>,
    pub(super) consumer: Option<String>,
    pub(super) lease_until_ms: u64,
    /// The version that the subscriber acknowledged last.
    pub(super) notified: Option<Version>,
    due_ms: u64,
    /// The change to notify of next, if any.
    owed: Option<News>,
    /// The change whose notification is under way.
    sending: Option<News>,
    /// Beginning of the last notification.
    begun_ms: Option<u64>,
    answered_ms: u64,
    failures: u32,
}

/// The consequence of an unacknowledged notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The notification is tried again.
    Waits,
    /// The notification is given up.
    GivenUp,
    /// The subscription is given up as well.
    Lost,
}

/// A change of a topic, with its version if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct News {
    version: Option<Version>,
    /// Whether the change is certain, and not only claimed.
    is_proven: bool,
}

impl News {
    /// Merges two changes. A proven later one replaces the earlier one. If the later one is only
    /// claimed, the higher of two versions of one epoch stays; otherwise the result has no version.
    fn and(self, later: Self) -> Self {
        match (self.version, later.version) {
            (Some(one), Some(other)) if !later.is_proven => {
                let version = (one.epoch == other.epoch).then_some(one.max(other));
                Self { version, ..later }
            }
            (None, Some(_)) if !later.is_proven => self,
            _ => later,
        }
    }
}

/// Returns whether a subscriber that acknowledged `notified` knows of `version`.
fn has(notified: Option<Version>, version: Version) -> bool {
    notified.is_some_and(|it| it.epoch == version.epoch && version.serial <= it.serial)
}

impl Subscription {
    pub(super) fn new(intent: Intent, version: Option<Version>, now_ms: u64) -> Self {
        let Intent { asked, host, lease_secs, .. } = intent;
        Self {
            callback: asked.callback,
            host,
            secret: asked.secret,
            consumer: asked.consumer,
            lease_until_ms: now_ms.saturating_add(lease_secs.saturating_mul(1_000)),
            notified: version,
            due_ms: now_ms,
            owed: None,
            sending: None,
            begun_ms: None,
            answered_ms: now_ms,
            failures: 0,
        }
    }

    /// Renews the subscription: the acknowledged version stays, and the failures are forgotten.
    pub(super) fn renew(&mut self, intent: Intent, now_ms: u64) {
        let Self { notified, owed, sending, begun_ms, .. } = *self;
        *self = Self { owed, sending, begun_ms, ..Self::new(intent, notified, now_ms) };
        self.wait_if_unproven();
    }

    /// Handles a jump of the clock: nothing waits for years, and each lease is extended by the
    /// unobserved time, `unseen_ms`. `longest_ms` is the longest lease.
    pub(super) fn handle_jump(&mut self, unseen_ms: u64, longest_ms: u64, now_ms: u64) {
        let lease_until_ms = self.lease_until_ms.saturating_add(unseen_ms);
        self.lease_until_ms = lease_until_ms.min(now_ms.saturating_add(longest_ms));
        self.due_ms = self.due_ms.min(now_ms.saturating_add(RETRY_MS_MAX));
        self.begun_ms = self.begun_ms.map(|it| it.min(now_ms));
        self.answered_ms = self.answered_ms.saturating_add(unseen_ms).min(now_ms);
    }

    pub(super) fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    /// Records a change; returns false if the subscriber has it already.
    pub(super) fn owe(&mut self, version: Option<Version>, now_ms: u64) -> bool {
        if version.is_some_and(|it| has(self.notified, it)) {
            return false;
        }
        self.note(News { version, is_proven: true }, now_ms);
        true
    }

    /// Records a claimed change, even if its version was claimed before: the earlier claim may have
    /// been a guess, and the version may exist only now. Notifications of claims are limited in
    /// rate.
    pub(super) fn owe_unproven(&mut self, version: Option<Version>, now_ms: u64) {
        self.note(News { version, is_proven: false }, now_ms);
        self.wait_if_unproven();
    }

    fn note(&mut self, news: News, now_ms: u64) {
        // A pending attempt keeps its time.
        if !self.is_owed() {
            self.due_ms = now_ms;
        }
        self.owed = Some(self.owed.map_or(news, |it| it.and(news)));
    }

    fn wait_if_unproven(&mut self) {
        if let (Some(News { is_proven: false, .. }), Some(begun_ms)) = (self.owed, self.begun_ms) {
            self.due_ms = self.due_ms.max(begun_ms.saturating_add(UNPROVEN_GAP_MS));
        }
    }

    pub(super) fn due(&self) -> Option<u64> {
        (self.is_owed() && self.sending.is_none()).then_some(self.due_ms)
    }

    /// Begins a delivery; returns the version to announce. Later changes need another delivery.
    pub(super) fn begin(&mut self, now_ms: u64) -> Option<Version> {
        self.sending = self.owed.take();
        self.begun_ms = Some(now_ms);
        self.sending?.version
    }

    /// Handles the acknowledgment of `version`.
    pub(super) fn handle_taken(&mut self, version: Option<Version>, now_ms: u64) {
        self.answered_ms = now_ms;
        let is_proven = self.sending.is_some_and(|it| it.is_proven);
        (self.sending, self.failures, self.due_ms) = (None, 0, now_ms);
        if is_proven {
            // The answer to a notification of an earlier subscription must not set the version
            // back.
            self.notified = version.max(self.notified);
        }
        // The notification may have named a later version than the owed one.
        let notified = self.notified;
        let is_known =
            |it: &mut News| it.is_proven && it.version.is_some_and(|it| has(notified, it));
        self.owed.take_if(is_known);
        self.wait_if_unproven();
    }

    pub(super) fn handle_failure(&mut self, retry_after: Option<Duration>, now_ms: u64) -> Outcome {
        let failed = self.sending.take();
        self.failures = (self.failures + 1).min(ATTEMPTS_MAX);
        let asked_ms =
            retry_after.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let wait_ms = back_off_ms(self.failures).max(asked_ms.min(RETRY_AFTER_MS_MAX));
        self.due_ms = now_ms.saturating_add(wait_ms);
        if self.failures == ATTEMPTS_MAX {
            // A change that came during these attempts is tried once.
            let silent_ms = now_ms.saturating_sub(self.answered_ms);
            return if silent_ms < SILENT_MS_MAX { Outcome::GivenUp } else { Outcome::Lost };
        }
        self.owed = match (failed, self.owed) {
            (Some(failed), Some(owed)) => Some(failed.and(owed)),
            (failed, owed) => owed.or(failed),
        };
        Outcome::Waits
    }
}
