//! One subscription, or one that is still to be verified.
//!
//! Sans-I/O.

use std::time::Duration;

use collection::Version;
use url::Url;

use super::super::request::{Asked, Content, Question};
use super::super::signature::Secret;
use super::Ticket;

/// Wait after a first attempt that failed, milliseconds; doubled with each.
const RETRY_MS: u64 = 1_000;

/// Longest wait between two attempts, milliseconds.
const RETRY_MS_MAX: u64 = 300_000;

/// Longest wait that a subscriber may ask for, milliseconds.
const RETRY_AFTER_MS_MAX: u64 = 3_600_000;

/// Least time between the beginnings of two notifications of what anybody may publish, milliseconds.
const UNPROVEN_GAP_MS: u64 = 10_000;

/// Attempts at a notification: about a quarter of an hour.
pub(super) const ATTEMPTS_MAX: u32 = 10;

/// For how long a subscriber may leave everything unanswered, milliseconds. Whoever has verified a callback
/// can have its name lead elsewhere.
const SILENT_MS_MAX: u64 = 86_400_000;

/// Attempts at a verification.
pub(super) const VERIFICATIONS_MAX: u32 = 3;

/// How long to wait after so many failures in a row.
fn back_off_ms(failures: u32) -> u64 {
    let doubled = RETRY_MS.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    doubled.min(RETRY_MS_MAX)
}

/// A request that is to be verified.
#[derive(Debug)]
pub(super) struct Intent {
    pub(super) asked: Asked,
    pub(super) host: String,
    /// The verification that is under way: the answer to one before is not to this request.
    pub(super) asking: Option<Ticket>,
    pub(super) due_ms: u64,
    challenge: String,
    lease_secs: u64,
    failures: u32,
}

impl Intent {
    pub(super) fn new(
        asked: Asked,
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

    /// The clock was set.
    pub(super) fn handle_jump(&mut self, now_ms: u64) {
        self.due_ms = self.due_ms.min(now_ms.saturating_add(RETRY_MS_MAX));
    }

    /// The verification begins; returns what to ask, and what says yes.
    pub(super) fn begin(&mut self, ticket: Ticket) -> (Url, String) {
        self.asking = Some(ticket);
        let (mode, topic) = (self.asked.mode, self.asked.topic.clone());
        let (challenge, lease_secs) = (self.challenge.clone(), self.lease_secs);
        let question = Question::Intent { mode, topic, challenge, lease_secs };
        (question.url(&self.asked.callback), self.challenge.clone())
    }

    /// Nobody answered; false if that is it.
    pub(super) fn handle_silence(&mut self, now_ms: u64) -> bool {
        self.asking = None;
        self.failures += 1;
        self.due_ms = now_ms.saturating_add(back_off_ms(self.failures));
        self.failures < VERIFICATIONS_MAX
    }
}

/// A subscription that was verified.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) callback: Url,
    pub(super) host: String,
    pub(super) secret: Option<Secret>,
    pub(super) content: Content,
    pub(super) consumer: Option<String>,
    pub(super) lease_until_ms: u64,
    /// What it has been told last.
    pub(super) told: Option<Version>,
    /// When it is to be told next.
    due_ms: u64,
    /// What it is to be told.
    owed: Option<News>,
    /// What it is being told.
    sending: Option<News>,
    /// When it was being told last.
    begun_ms: Option<u64>,
    /// When it answered last.
    answered_ms: u64,
    failures: u32,
}

/// What comes of a notification that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallen {
    /// It is tried again.
    Waits,
    /// It is given up.
    GivenUp,
    /// So is the subscriber.
    Lost,
}

/// That there is something new, and which version, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct News {
    version: Option<Version>,
    /// Whether that is so, and not only what somebody says.
    is_proven: bool,
}

impl News {
    /// What is to be said of both: the newer, or only that there is something where neither is known to be.
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

/// Whether who has come to `told` has `version`.
fn has(told: Option<Version>, version: Version) -> bool {
    told.is_some_and(|it| it.epoch == version.epoch && version.serial <= it.serial)
}

impl Subscription {
    pub(super) fn new(intent: Intent, version: Option<Version>, now_ms: u64) -> Self {
        let Intent { asked, host, lease_secs, .. } = intent;
        Self {
            callback: asked.callback,
            host,
            secret: asked.secret,
            content: asked.content,
            consumer: asked.consumer,
            lease_until_ms: now_ms.saturating_add(lease_secs.saturating_mul(1_000)),
            told: version,
            due_ms: now_ms,
            owed: None,
            sending: None,
            begun_ms: None,
            answered_ms: now_ms,
            failures: 0,
        }
    }

    /// It is asked for once more: what it has been told stays, and it is there again.
    pub(super) fn renew(&mut self, intent: Intent, now_ms: u64) {
        let Self { told, owed, sending, begun_ms, .. } = *self;
        *self = Self { owed, sending, begun_ms, ..Self::new(intent, told, now_ms) };
        self.wait_if_unproven();
    }

    /// The clock was set: what was to be soon is not to be in years, and `unseen_ms` that nobody saw pass end
    /// no lease. `longest_ms`: the longest lease.
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

    /// There is something new; false if it has been told of it.
    pub(super) fn owe(&mut self, version: Option<Version>, now_ms: u64) -> bool {
        if version.is_some_and(|it| has(self.told, it)) {
            return false;
        }
        self.note(News { version, is_proven: true }, now_ms);
        true
    }

    /// Somebody says that there is something new. That may be false: a version that was named before may be
    /// a guess at one that comes only now, so it is told again; but not as often as somebody likes.
    pub(super) fn owe_unproven(&mut self, version: Option<Version>, now_ms: u64) {
        self.note(News { version, is_proven: false }, now_ms);
        self.wait_if_unproven();
    }

    fn note(&mut self, news: News, now_ms: u64) {
        // What waits for its next attempt goes on waiting.
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

    /// What it is to get: what may be large, only if it took the last one.
    pub(super) fn content_now(&self) -> Content {
        if self.failures == 0 { self.content } else { Content::Thin }
    }

    /// A delivery begins; returns what it has been told, and what it is told now. What is new from here on
    /// is owed besides.
    pub(super) fn begin(&mut self, now_ms: u64) -> (Option<Version>, Option<Version>) {
        self.sending = self.owed.take();
        self.begun_ms = Some(now_ms);
        (self.told, self.sending.and_then(|it| it.version))
    }

    /// It has been told of `version`.
    pub(super) fn handle_taken(&mut self, version: Option<Version>, now_ms: u64) {
        self.answered_ms = now_ms;
        let is_proven = self.sending.is_some_and(|it| it.is_proven);
        (self.sending, self.failures, self.due_ms) = (None, 0, now_ms);
        if is_proven {
            // Never back, by an answer to what was sent before it was subscribed anew.
            self.told = version.max(self.told);
        }
        // A fat one may have had more in it than there was as it began.
        let told = self.told;
        let is_told = |it: &mut News| it.is_proven && it.version.is_some_and(|it| has(told, it));
        self.owed.take_if(is_told);
        self.wait_if_unproven();
    }

    /// It has not.
    pub(super) fn handle_failure(&mut self, retry_after: Option<Duration>, now_ms: u64) -> Fallen {
        let failed = self.sending.take();
        self.failures = (self.failures + 1).min(ATTEMPTS_MAX);
        let asked_ms =
            retry_after.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX));
        let wait_ms = back_off_ms(self.failures).max(asked_ms.min(RETRY_AFTER_MS_MAX));
        self.due_ms = now_ms.saturating_add(wait_ms);
        if self.failures == ATTEMPTS_MAX {
            // What came meanwhile is one more change, to be tried once.
            let silent_ms = now_ms.saturating_sub(self.answered_ms);
            return if silent_ms < SILENT_MS_MAX { Fallen::GivenUp } else { Fallen::Lost };
        }
        self.owed = match (failed, self.owed) {
            (Some(failed), Some(owed)) => Some(failed.and(owed)),
            (failed, owed) => owed.or(failed),
        };
        Fallen::Waits
    }
}
