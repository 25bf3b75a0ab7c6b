//! The subscriber: whom it has asked to be told, and whether what it is told may be believed.
//!
//! Source: WebSub §4 (discovery), §5 (subscribing), §7.1 (authenticated content distribution).
//!
//! Machine: the shell performs what [`Subscriber::poll`] returns and reports what came of it, and hands in
//! what reaches a callback: [`Subscriber::handle_question`] for a GET, [`Subscriber::handle_notice`] for a
//! POST. Times are Unix milliseconds.
//!
//! # Differences from the standard
//!
//! * Every subscription has a secret, and what is not signed with it is refused with an error, where the
//!   standard would let a subscriber say yes and do nothing.
//! * A subscription is looked for anew as it is renewed, after two thirds of its lease: hubs move.
//! * Who subscribes for the first time, or after a lease has ended, has missed what came before: the source
//!   is to be asked once.
//! * A hub that names no lease, or one of 0 s, gives what it was asked for.
//! * Changes themselves are asked for, and taken from, only a hub at the source's own origin: whoever else
//!   is named as a hub can say no more than that there is something new.
//! * Nobody unsubscribes: a callback of a source that is gone answers 410, and the hub ends it.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use url::Url;

use super::link::Found;
use super::request::{Asked, Content, Mode, Question};
use super::signature::{self, Refused, Secret};

/// Wait after a first failure, milliseconds; doubled with each.
const RETRY_MS: u64 = 5_000;

/// Longest wait, milliseconds: after many failures, a denial, or where no hub is named.
const RETRY_MS_MAX: u64 = 3_600_000;

/// How long a hub may take to verify what it was asked, milliseconds.
const VERIFY_MS: u64 = 120_000;

/// What is wrong where it does not.
const NOT_ASKED: &str = "the hub has not asked back: can it reach this daemon's base_url, and does its \
    push.allow_private let it?";

/// Of a lease, the share after which it is renewed: numerator and denominator.
const RENEW_AFTER: (u64, u64) = (2, 3);

/// Shortest time between two renewals, milliseconds, however short the lease.
const RENEW_MS_MIN: u64 = 60_000;

/// Shortest time between two subscriptions that count as new, milliseconds: each has the source asked.
const NEW_MS_MIN: u64 = 3_600_000;

/// Longest lease that is believed, seconds.
const LEASE_SECS_MAX: u64 = 365 * 86_400;

/// Longest reason for a denial that is kept, in characters.
const REASON_CHARS_MAX: usize = 200;

/// A source whose changes are to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub source: String,
    /// What its callback is known by: nobody can guess it.
    pub token: String,
    /// Where the hub is to tell it: a URL that has the token in it.
    pub callback: Url,
    /// What the hub is to sign with.
    pub secret: Secret,
    /// What to be told.
    pub content: Content,
}

/// A request for the shell to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the source which hub it has. Report with [`Subscriber::handle_discovered`].
    Discover {
        /// The source's name.
        source: String,
    },
    /// POST `form` to the hub. Report with [`Subscriber::handle_asked`].
    Subscribe {
        /// The source's name.
        source: String,
        /// Where.
        hub: Url,
        /// What.
        form: String,
    },
}

/// How a subscription stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being made.
    Asking,
    /// The hub tells of changes until then, Unix milliseconds, unless it is renewed.
    Active {
        /// When its lease ends.
        until_ms: u64,
    },
    /// It was not made, and why; it is tried again.
    Failed(String),
}

/// What notifications came of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Those that were believed.
    pub notices: u64,
    /// Those without a signature.
    pub unsigned: u64,
    /// Those with another's, or none that is understood.
    pub forged: u64,
}

/// What to answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200 with that body. `is_new`: what came before may have been missed; ask the source.
    Yes {
        /// The challenge.
        challenge: String,
        /// The source's name.
        source: String,
        /// Whether there was no subscription until now.
        is_new: bool,
    },
    /// 200, nothing more.
    Noted,
    /// 404: that was not asked for.
    No,
}

/// Whether to believe a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 202.
    Believed {
        /// Of that source.
        source: String,
        /// Whether its hub may say what has changed, or only that something has.
        content: Content,
    },
    /// 403.
    Refused(Refused),
    /// 410: there is no such callback, or no longer.
    Unknown,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To look for a hub once it is due.
    Idle,
    /// The source or its hub is being asked.
    Asking,
    /// The hub is to ask back.
    Asked,
}

#[derive(Debug)]
struct Subscription {
    wanted: Wanted,
    phase: Phase,
    due_ms: u64,
    /// How far ahead that was.
    wait_ms: u64,
    topic: Option<String>,
    /// When the lease ends; 0 where there is none.
    until_ms: u64,
    /// How long it is.
    lease_ms: u64,
    /// From when on it may count as new.
    new_ms: u64,
    /// What the hub that it was last asked of may say.
    content: Content,
    failures: u32,
    problem: Option<String>,
    counters: Counters,
}

/// Whom it has asked to be told. Holds as much as the sources that it is given.
#[derive(Debug, Default)]
pub struct Subscriber {
    by_source: BTreeMap<String, Subscription>,
    /// Whose token is which.
    by_token: BTreeMap<String, String>,
    /// For how long to ask, seconds.
    lease_secs: u64,
    /// The latest time that was seen.
    seen_ms: u64,
}

impl Subscriber {
    /// One without sources, that asks for leases of so many seconds.
    pub fn new(lease_secs: u64) -> Self {
        Self { lease_secs: lease_secs.clamp(1, LEASE_SECS_MAX), ..Self::default() }
    }

    /// These sources are to be told of, and no others; what is there already goes on.
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

    /// Returns a request to make now, if there is one.
    pub fn poll(&mut self, now_ms: u64) -> Option<Action> {
        if now_ms < self.seen_ms {
            self.by_source.values_mut().for_each(|it| it.handle_past(now_ms));
        }
        self.seen_ms = now_ms;
        loop {
            let due = self.by_source.values_mut().filter(|it| it.due() <= now_ms);
            let subscription = due.min_by_key(|it| it.due_ms)?;
            if subscription.phase == Phase::Asked {
                // Due again later.
                subscription.fail(NOT_ASKED.to_owned(), now_ms);
                continue;
            }
            subscription.phase = Phase::Asking;
            return Some(Action::Discover { source: subscription.wanted.source.clone() });
        }
    }

    /// Returns when [`poll`](Self::poll) will have something, if nothing else happens.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.by_source.values().map(Subscription::due).min().filter(|it| *it < u64::MAX)
    }

    /// Takes in what the source says of its hub; returns what to ask that.
    ///
    /// # Errors
    ///
    /// The source says that it has none, or could not be asked, and why.
    pub fn handle_discovered(
        &mut self,
        source: &str,
        found: Result<Found, String>,
        now_ms: u64,
    ) -> Option<Action> {
        let lease_secs = Some(self.lease_secs);
        let subscription = self.asking(source)?;
        let (hub, topic, is_own) = match found {
            Ok(Found { hub: Some(hub), topic: Some(topic), is_own }) => (hub, topic, is_own),
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
        let Wanted { callback, secret, content, .. } = subscription.wanted.clone();
        let content = if is_own { content } else { Content::Thin };
        subscription.content = content;
        let (mode, topic) = (Mode::Subscribe, topic.to_string());
        subscription.topic = Some(topic.clone());
        let secret = Some(secret);
        let consumer = None;
        let asked = Asked { mode, topic, callback, lease_secs, secret, content, consumer };
        // The hub may ask back before it has answered.
        subscription.ask(now_ms);
        Some(Action::Subscribe { source: source.to_owned(), hub, form: asked.form() })
    }

    /// Takes in what the hub answered: nothing, or what is wrong.
    pub fn handle_asked(&mut self, source: &str, problem: Option<String>, now_ms: u64) {
        let Some(subscription) = self.by_source.get_mut(source) else { return };
        if let (Some(problem), Phase::Asked) = (problem, subscription.phase) {
            subscription.fail(problem, now_ms);
        }
    }

    fn asking(&mut self, source: &str) -> Option<&mut Subscription> {
        self.by_source.get_mut(source).filter(|it| it.phase == Phase::Asking)
    }

    /// Takes in a question to the callback of `token`.
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

    /// Takes in a notification at the callback of `token`.
    pub fn handle_notice(&mut self, token: &str, signature: Option<&str>, body: &[u8]) -> Verdict {
        let found = self.by_token.get(token).and_then(|it| self.by_source.get_mut(it));
        let Some(subscription) = found else { return Verdict::Unknown };
        let counters = &mut subscription.counters;
        match signature::verify(&subscription.wanted.secret, signature, body) {
            Ok(()) => {
                counters.notices += 1;
                let (source, content) = (subscription.wanted.source.clone(), subscription.content);
                Verdict::Believed { source, content }
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

    /// How the subscription to a source stands, and what came of it; `None` where none is wanted.
    pub fn view(&self, source: &str, now_ms: u64) -> Option<(State, Counters)> {
        let subscription = self.by_source.get(source)?;
        let state = match &subscription.problem {
            _ if now_ms < subscription.until_ms => {
                State::Active { until_ms: subscription.until_ms }
            }
            Some(problem) => State::Failed(problem.clone()),
            None => State::Asking,
        };
        Some((state, subscription.counters))
    }

    /// What came of all sources.
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
            content: Content::Thin,
            failures: 0,
            problem: None,
            counters: Counters::default(),
        }
    }

    fn due(&self) -> u64 {
        if self.phase == Phase::Asking { u64::MAX } else { self.due_ms }
    }

    /// The hub is asked, and is to ask back.
    fn ask(&mut self, now_ms: u64) {
        self.phase = Phase::Asked;
        self.wait(VERIFY_MS, now_ms);
    }

    /// Whether this was asked for, and the hub is to say so now.
    fn wants(&self, topic: &str) -> bool {
        self.phase == Phase::Asked && self.topic.as_deref() == Some(topic)
    }

    /// The hub tells of changes from now on; true if what came before may have been missed.
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

    /// It did not work out, and is tried again.
    fn fail(&mut self, problem: String, now_ms: u64) {
        (self.phase, self.problem) = (Phase::Idle, Some(problem));
        let doubled = RETRY_MS.checked_shl(self.failures).unwrap_or(u64::MAX);
        self.failures = (self.failures + 1).min(20);
        self.wait(doubled.min(RETRY_MS_MAX), now_ms);
    }

    fn wait(&mut self, ms: u64, now_ms: u64) {
        (self.due_ms, self.wait_ms) = (now_ms.saturating_add(ms), ms);
    }

    /// It is `now_ms` again. A clock that was set back must not put anything off by as much.
    fn handle_past(&mut self, now_ms: u64) {
        self.due_ms = self.due_ms.min(now_ms.saturating_add(self.wait_ms));
        self.until_ms = self.until_ms.min(now_ms.saturating_add(self.lease_ms));
        self.new_ms = self.new_ms.min(now_ms.saturating_add(NEW_MS_MIN));
    }
}

#[cfg(test)]
mod tests;
