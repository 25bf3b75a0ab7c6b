//! The subscriber: its subscriptions at hubs, and the check of the notifications that arrive.
//!
//! Source: WebSub §4 (discovery), §5 (subscribing), §7.1 (authenticated content distribution).
//!
//! A state machine: the shell makes the requests of [`Subscriber::poll`] and reports their results.
//! It passes on the requests to a callback: [`Subscriber::handle_question`] for a GET,
//! [`Subscriber::handle_notice`] for a POST. Times are Unix milliseconds.
//!
//! # Differences from the standard
//!
//! * Every subscription has a secret. A notification without a valid signature is refused with an
//!   error, where the standard would answer with success and ignore the notification.
//! * Discovery is repeated at each renewal, after two thirds of the lease: hubs move.
//! * A first subscription, or one after the end of a lease, has missed earlier changes: the source
//!   must be pulled once.
//! * A hub that names no lease, or one of 0 s, grants the requested one.
//! * There is no unsubscription: the callback of a removed source answers 410, and the hub then
//!   ends the subscription.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use url::Url;

use super::link::Discovery;
use super::request::{Mode, Question, SubscriptionRequest};
use super::signature::{self, Refused, Secret};

/// Wait after a first failure, milliseconds; it doubles with each further one.
const RETRY_MS: u64 = 5_000;

/// Maximum wait, milliseconds. It also applies after a denial, and if the source names no hub.
const RETRY_MS_MAX: u64 = 3_600_000;

/// Time limit for a hub to verify a request, milliseconds.
const VERIFY_MS: u64 = 120_000;

/// The problem that is reported if the hub does not verify the request.
const NOT_ASKED: &str = "the hub has not asked back: can it reach this daemon's base_url, and does its \
    push.allow_private allow that?";

/// Share of a lease after which it is renewed: numerator and denominator.
const RENEW_AFTER: (u64, u64) = (2, 3);

/// Shortest time between two renewals, milliseconds, however short the lease.
const RENEW_MS_MIN: u64 = 60_000;

/// Minimum time between two new subscriptions of a source, milliseconds: each causes a pull.
const NEW_MS_MIN: u64 = 3_600_000;

/// Longest accepted lease, seconds.
const LEASE_SECS_MAX: u64 = 365 * 86_400;

/// Longest stored reason for a denial, in characters.
const REASON_CHARS_MAX: usize = 200;

/// A source to subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub source: String,
    /// The token of its callback, which nobody can guess.
    pub token: String,
    /// The callback that the hub gets: a URL that contains the token.
    pub callback: Url,
    /// The key for the hub's signatures.
    pub secret: Secret,
}

/// State of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubscriptionState {
    /// The subscription is being requested.
    Asking,
    /// The hub announces changes, until the end of the lease.
    Active {
        /// End of the lease, Unix milliseconds.
        until_ms: u64,
    },
    /// The subscription failed, for this reason; it is tried again later.
    Failed(String),
}

/// Counts of a source's notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted ones.
    pub notices: u64,
    /// Unsigned ones.
    pub unsigned: u64,
    /// Ones with a wrong or unknown signature.
    pub forged: u64,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200 with the challenge as its body.
    Yes {
        /// The challenge.
        challenge: String,
        /// The source's name.
        source: String,
        /// Whether the subscription is new: earlier changes may be missed, so pull the source.
        is_new: bool,
    },
    /// 200 without a body.
    Noted,
    /// 404: the subscription was not requested, or the request is no question.
    No,
}

/// The verdict on a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The notification is genuine; answer 202.
    Believed {
        /// The source's name.
        source: String,
    },
    /// The notification is refused; answer 403.
    Refused(Refused),
    /// There is no such callback; answer 410.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waiting for the time of the next discovery.
    Idle,
    /// A request to the source is under way.
    Asking,
    /// The hub has to ask back.
    AwaitingQuestion,
}

#[derive(Debug)]
struct Subscription {
    wanted: Wanted,
    phase: Phase,
    due_ms: u64,
    /// Length of the wait that ends at `due_ms`.
    wait_ms: u64,
    topic: Option<String>,
    /// End of the lease; 0 without one.
    until_ms: u64,
    lease_ms: u64,
    /// Time before which no subscription is new.
    new_ms: u64,
    failures: u32,
    problem: Option<String>,
    counters: Counters,
}

/// The subscriptions of a daemon. Their number is that of the sources.
#[derive(Debug, Default)]
pub struct Subscriber {
    by_source: BTreeMap<String, Subscription>,
    /// Sources by token.
    by_token: BTreeMap<String, String>,
    /// The lease to ask for, seconds.
    lease_secs: u64,
    seen_ms: u64,
}

impl Subscriber {
    /// Returns a subscriber without sources, which asks for leases of `lease_secs`.
    pub fn new(lease_secs: u64) -> Self {
        Self { lease_secs: lease_secs.clamp(1, LEASE_SECS_MAX), ..Self::default() }
    }

    /// Sets the sources to subscribe to. Those that are unchanged keep their subscriptions.
    pub fn handle_sources(&mut self, wanted: impl IntoIterator<Item = Wanted>, now_ms: u64) {
        let mut before = std::mem::take(&mut self.by_source);
        self.by_token.clear();
        for wanted in wanted {
            let (source, token) = (wanted.source.clone(), wanted.token.clone());
            let known = before.remove(&source).filter(|it| it.wanted == wanted);
            self.by_source
                .insert(source.clone(), known.unwrap_or_else(|| Subscription::new(wanted, now_ms)));
            self.by_token.insert(token, source);
        }
    }

    /// Returns the name of a source to ask for its hub now; `None` if there is none. Report with
    /// [`handle_discovered`](Self::handle_discovered).
    pub fn poll(&mut self, now_ms: u64) -> Option<String> {
        if now_ms < self.seen_ms {
            self.by_source.values_mut().for_each(|it| it.handle_past(now_ms));
        }
        self.seen_ms = now_ms;
        loop {
            let due = self.by_source.values_mut().filter(|it| it.due() <= now_ms);
            let subscription = due.min_by_key(|it| it.due_ms)?;
            if subscription.phase == Phase::AwaitingQuestion {
                // After the failure, the subscription is due later.
                subscription.fail(NOT_ASKED.to_owned(), now_ms);
                continue;
            }
            subscription.phase = Phase::Asking;
            return Some(subscription.wanted.source.clone());
        }
    }

    /// Returns when [`poll`](Self::poll) will name a source if nothing else happens; `None` for
    /// never.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.by_source.values().map(Subscription::due).min().filter(|it| *it < u64::MAX)
    }

    /// Handles the result of a source's discovery, or the reason of its failure. Returns the hub's
    /// address and the form to POST there, if there is a request to make; report with
    /// [`handle_asked`](Self::handle_asked).
    pub fn handle_discovered(
        &mut self,
        source: &str,
        found: Result<Discovery, String>,
        now_ms: u64,
    ) -> Option<(Url, String)> {
        let lease_secs = Some(self.lease_secs);
        let subscription = self.by_source.get_mut(source)?;
        if subscription.phase != Phase::Asking {
            return None;
        }
        let (hub, topic) = match found {
            Ok(Discovery { hub: Some(hub), topic: Some(topic) }) => (hub, topic),
            Ok(_) => {
                subscription.fail("it names no hub".to_owned(), now_ms);
                subscription.wait(RETRY_MS_MAX, now_ms);
                return None;
            }
            Err(problem) => {
                subscription.fail(problem, now_ms);
                return None;
            }
        };
        let Wanted { callback, secret, .. } = subscription.wanted.clone();
        let (mode, topic) = (Mode::Subscribe, topic.to_string());
        subscription.topic = Some(topic.clone());
        let (secret, consumer) = (Some(secret), None);
        let asked = SubscriptionRequest { mode, topic, callback, lease_secs, secret, consumer };
        // The hub may ask back before it answers.
        subscription.phase = Phase::AwaitingQuestion;
        subscription.wait(VERIFY_MS, now_ms);
        Some((hub, asked.form()))
    }

    /// Handles the hub's answer to a request. `problem` is `None` for success.
    pub fn handle_asked(&mut self, source: &str, problem: Option<String>, now_ms: u64) {
        let Some(subscription) = self.by_source.get_mut(source) else { return };
        if let (Some(problem), Phase::AwaitingQuestion) = (problem, subscription.phase) {
            subscription.fail(problem, now_ms);
        }
    }

    /// Handles a question to the callback of `token`.
    pub fn handle_question(&mut self, token: &str, query: &str, now_ms: u64) -> Reply {
        let asked_secs = self.lease_secs;
        let found = self.by_token.get(token).and_then(|it| self.by_source.get_mut(it));
        let (Some(subscription), Some(question)) = (found, Question::read(query)) else {
            return Reply::No;
        };
        match question {
            Question::Intent { mode: Mode::Subscribe, topic, challenge, lease_secs }
                if subscription.wants(&topic) =>
            {
                let lease_secs = if lease_secs == 0 { asked_secs } else { lease_secs };
                let is_new = subscription.begin(lease_secs.min(LEASE_SECS_MAX), now_ms);
                let source = subscription.wanted.source.clone();
                Reply::Yes { challenge, source, is_new }
            }
            Question::Denied { topic, reason } if subscription.topic.as_ref() == Some(&topic) => {
                let reason: String =
                    reason.chars().filter(|it| !it.is_control()).take(REASON_CHARS_MAX).collect();
                subscription.fail(format!("the hub says no: {reason}"), now_ms);
                subscription.wait(RETRY_MS_MAX, now_ms);
                subscription.until_ms = 0;
                Reply::Noted
            }
            Question::Intent { .. } | Question::Denied { .. } => Reply::No,
        }
    }

    /// Handles a notification at the callback of `token`.
    pub fn handle_notice(&mut self, token: &str, signature: Option<&str>, body: &[u8]) -> Verdict {
        let found = self.by_token.get(token).and_then(|it| self.by_source.get_mut(it));
        let Some(subscription) = found else { return Verdict::Unknown };
        let counters = &mut subscription.counters;
        match signature::verify(&subscription.wanted.secret, signature, body) {
            Ok(()) => {
                counters.notices += 1;
                Verdict::Believed { source: subscription.wanted.source.clone() }
            }
            Err(refused) => {
                let count = match refused {
                    Refused::Unsigned => &mut counters.unsigned,
                    Refused::Malformed | Refused::Forged => &mut counters.forged,
                };
                *count += 1;
                Verdict::Refused(refused)
            }
        }
    }

    /// Returns the state and the counters of a source's subscription; `None` if it is not wanted.
    pub fn view(&self, source: &str, now_ms: u64) -> Option<(SubscriptionState, Counters)> {
        let subscription = self.by_source.get(source)?;
        let state = match &subscription.problem {
            _ if now_ms < subscription.until_ms => {
                SubscriptionState::Active { until_ms: subscription.until_ms }
            }
            Some(problem) => SubscriptionState::Failed(problem.clone()),
            None => SubscriptionState::Asking,
        };
        Some((state, subscription.counters))
    }

    /// Returns the counters over all sources.
    pub fn counters(&self) -> Counters {
        self.by_source.values().fold(Counters::default(), |sum, it| Counters {
            notices: sum.notices + it.counters.notices,
            unsigned: sum.unsigned + it.counters.unsigned,
            forged: sum.forged + it.counters.forged,
        })
    }
}

impl Subscription {
    fn new(wanted: Wanted, now_ms: u64) -> Self {
        Self {
            wanted,
            phase: Phase::Idle,
            due_ms: now_ms,
            wait_ms: 0,
            topic: None,
            until_ms: 0,
            lease_ms: 0,
            new_ms: 0,
            failures: 0,
            problem: None,
            counters: Counters::default(),
        }
    }

    fn due(&self) -> u64 {
        if self.phase == Phase::Asking { u64::MAX } else { self.due_ms }
    }

    /// Returns whether a question about this topic is expected.
    fn wants(&self, topic: &str) -> bool {
        self.phase == Phase::AwaitingQuestion && self.topic.as_deref() == Some(topic)
    }

    /// Begins a lease; returns true if earlier changes may have been missed.
    fn begin(&mut self, lease_secs: u64, now_ms: u64) -> bool {
        let is_new = self.until_ms <= now_ms && self.new_ms <= now_ms;
        if is_new {
            self.new_ms = now_ms.saturating_add(NEW_MS_MIN);
        }
        let lease_ms = lease_secs.saturating_mul(1_000);
        (self.phase, self.failures, self.problem) = (Phase::Idle, 0, None);
        (self.until_ms, self.lease_ms) = (now_ms.saturating_add(lease_ms), lease_ms);
        let (share, whole) = RENEW_AFTER;
        let renew_ms = (lease_ms / whole * share).max(RENEW_MS_MIN);
        self.wait(renew_ms, now_ms);
        is_new
    }

    /// Records a failure, and schedules another attempt.
    fn fail(&mut self, problem: String, now_ms: u64) {
        (self.phase, self.problem) = (Phase::Idle, Some(problem));
        let doubled = RETRY_MS.checked_shl(self.failures).unwrap_or(u64::MAX);
        self.failures = (self.failures + 1).min(20);
        self.wait(doubled.min(RETRY_MS_MAX), now_ms);
    }

    fn wait(&mut self, ms: u64, now_ms: u64) {
        (self.due_ms, self.wait_ms) = (now_ms.saturating_add(ms), ms);
    }

    /// Handles a clock that was set back to `now_ms`, so that no wait becomes longer by the
    /// difference.
    fn handle_past(&mut self, now_ms: u64) {
        self.due_ms = self.due_ms.min(now_ms.saturating_add(self.wait_ms));
        self.until_ms = self.until_ms.min(now_ms.saturating_add(self.lease_ms));
        self.new_ms = self.new_ms.min(now_ms.saturating_add(NEW_MS_MIN));
    }
}

#[cfg(test)]
mod tests;
