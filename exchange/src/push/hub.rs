//! The hub: the subscriptions, and the notifications that each of them still has to receive.
//!
//! Source: WebSub §5 (subscribing: denial, verification of intent, leases), §6 (publishing), §7
//! (content distribution).
//!
//! A state machine: the shell passes in requests ([`Hub::handle_request`]) and changes
//! ([`Hub::handle_change`]), performs the actions of [`Hub::poll`], and reports the results
//! ([`Hub::handle_verified`], [`Hub::handle_delivered`]). Times are Unix milliseconds.
//!
//! # Differences from the standard
//!
//! * A subscriber gets the newest version only: however many changes come while it is away or slow,
//!   one notification waits for it.
//! * A subscriber that fails too often gets nothing until the next change, for which one
//!   notification is tried. If it has not answered for a day by then, its subscription ends.
//! * Everything is bounded: subscriptions, those of one host, requests under way, and requests to
//!   one host. Anybody may cause verifications, so they come last: they may take at most half of
//!   the requests under way, and renewals come before new subscriptions.
//! * A host is the machine to which the names in callbacks resolve, as the shell finds out. Many
//!   names of one machine are one host.
//! * A request to end an unknown subscription is accepted without a verification.
//! * A lease runs only while the clock is watched: no leap ahead and no sleep ends it.
//!
//! Sans-I/O.

mod limits;
mod pace;
mod saved;
mod subscription;
mod subscriptions;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use collection::Version;
use url::Url;

use super::request::{Mode, Question, SubscriptionRequest};
use super::signature::Secret;

pub use limits::{Counters, Limits};
use pace::Pace;
pub use saved::{SavedHub, SavedSubscription};
use subscription::{Intent, Outcome, Subscription};
use subscriptions::Subscriptions;

/// Maximum time between two looks at the clock, milliseconds; a longer time does not reduce leases.
/// The shell looks at the clock each minute.
const LOOK_MS_MAX: u64 = 600_000;

/// The reason why a hub refuses a subscription, shown to the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The hub is full. Try again later.
    #[error("this hub has as many subscriptions as it may have")]
    Full,
    /// The hub has no room for more subscriptions of that host.
    #[error("this hub has as many subscriptions of that host as it may have")]
    HostFull,
    /// The hub has no room for more pending verifications. Try again soon.
    #[error("this hub has as many subscriptions to verify as it may have")]
    Busy,
    /// Too many requests named that host in the last minute. Try again later.
    #[error("this hub has sent that host its most requests in a minute; try again in a minute")]
    Often,
}

/// Id of a request by the hub, until its result is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// A request for the shell to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// GET `url`: 2xx with `challenge` as its body confirms. Report with [`Hub::handle_verified`].
    Verify {
        /// The id for the report of the result.
        ticket: Ticket,
        /// The address to request.
        url: Url,
        /// The body that confirms.
        challenge: String,
    },
    /// GET `url`; the answer does not matter. Report with [`Hub::handle_verified`].
    Deny {
        /// The id for the report of the result.
        ticket: Ticket,
        /// The address to request.
        url: Url,
    },
    /// POST a notification. Report with [`Hub::handle_delivered`].
    Deliver(Delivery),
}

/// A notification to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The id for the report of the result.
    pub ticket: Ticket,
    /// The topic.
    pub topic: String,
    /// The address of the subscriber.
    pub callback: Url,
    /// The key of the signature.
    pub secret: Option<Secret>,
    /// The new version, if known.
    pub version: Option<Version>,
}

/// A subscriber's answer to a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The challenge: confirmed.
    Yes,
    /// Anything else: denied.
    No,
    /// No answer: it may be asked again.
    Silent,
}

/// A subscriber's answer to a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 2xx: the subscriber knows of this version.
    Taken(Option<Version>),
    /// 410: the subscriber is gone.
    Gone,
    /// Any other answer, with the pause that it asks for, or no answer.
    Failed(Option<Duration>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    topic: Arc<str>,
    callback: Arc<str>,
}

impl Key {
    fn new(topic: &str, callback: &Url) -> Self {
        Self { topic: Arc::from(topic), callback: Arc::from(callback.as_str()) }
    }
}

/// A request under way.
#[derive(Clone, Debug)]
enum Flight {
    Verify(Key),
    Deny,
    Deliver(Key),
}

/// The subscriptions of a hub. Bounded by its [`Limits`].
#[derive(Debug, Default)]
pub struct Hub {
    limits: Limits,
    subscriptions: Subscriptions,
    pace: Pace,
    intents: BTreeMap<Key, Intent>,
    denials: VecDeque<(String, Url)>,
    flights: BTreeMap<Ticket, (String, Flight)>,
    next_ticket: u64,
    /// Time of the hub's last look at the clock, if any.
    seen_ms: Option<u64>,
    counters: Counters,
    /// Whether subscriptions have changed since they were saved.
    changed: bool,
}

impl Hub {
    /// Returns a hub without subscriptions.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns whether the subscription exists. If so, the hub knows its host.
    pub fn has(&self, asked: &SubscriptionRequest) -> bool {
        self.subscriptions.has(&Key::new(&asked.topic, &asked.callback))
    }

    /// Handles a request for a topic of this hub. The hub verifies it next, with `challenge`, which
    /// must not be guessable. The limits of `host` apply to it, unless the subscription exists.
    ///
    /// # Errors
    ///
    /// [`Refused`]: answer 503 with its text; nothing has changed.
    pub fn handle_request(
        &mut self,
        asked: SubscriptionRequest,
        host: &str,
        challenge: String,
        now_ms: u64,
    ) -> Result<(), Refused> {
        self.look(now_ms);
        let key = Key::new(&asked.topic, &asked.callback);
        let known = self.subscriptions.get(&key).map(|it| it.host.clone());
        if known.is_none() && !self.intents.contains_key(&key) && asked.mode == Mode::Unsubscribe {
            return Ok(());
        }
        let per_minute = self.limits.intents_per_host_per_minute_max;
        let room = self.has_room(&key, host, asked.mode).and_then(|()| {
            // A known subscriber has proven that it wants to be asked.
            let admits = known.is_some() || self.pace.handle(host, per_minute, now_ms);
            if admits { Ok(()) } else { Err(Refused::Often) }
        });
        if let Err(refused) = room {
            self.counters.refused += 1;
            return Err(refused);
        }
        let lease_secs = asked.lease_secs.unwrap_or(self.limits.lease_secs_default);
        // If the minimum exceeds the maximum, the maximum applies.
        let lease_secs = lease_secs.max(self.limits.lease_secs_min).min(self.limits.lease_secs_max);
        let host = known.unwrap_or_else(|| host.to_owned());
        // A later request for the same subscription replaces an earlier one.
        self.intents.insert(key, Intent::new(asked, challenge, host, lease_secs, now_ms));
        Ok(())
    }

    /// Counts a request that the shell has refused.
    pub fn handle_refusal(&mut self) {
        self.counters.refused += 1;
    }

    fn has_room(&self, key: &Key, host: &str, mode: Mode) -> Result<(), Refused> {
        // A known key has its place already, so that strangers keep nobody from renewing. The
        // number of known keys is bounded.
        let counts = self.subscriptions.has(key) || self.intents.contains_key(key);
        if counts || mode == Mode::Unsubscribe {
            return Ok(());
        }
        let intents = self.intents.iter().filter(|(key, _)| !self.subscriptions.has(key));
        let intents = intents.map(|(_, it)| it);
        let pending = intents.clone().filter(|it| it.host == host).count();
        if self.limits.intents_max <= intents.clone().count()
            || self.limits.intents_per_host_max <= pending
        {
            return Err(Refused::Busy);
        }
        if self.limits.subscriptions_max <= self.subscriptions.len() + intents.count() {
            return Err(Refused::Full);
        }
        let of_host = self.subscriptions.iter().filter(|(_, it)| it.host == host).count() + pending;
        if self.limits.per_host_max <= of_host { Err(Refused::HostFull) } else { Ok(()) }
    }

    /// Records that a topic has changed, to a version if it has one. Returns the number of
    /// subscribers to notify.
    pub fn handle_change(&mut self, topic: &str, version: Option<Version>, now_ms: u64) -> usize {
        self.change(topic, now_ms, |it| it.owe(version, now_ms))
    }

    /// Records an unproven claim that a foreign topic has changed, to a version if it names one.
    pub fn handle_published(&mut self, topic: &str, version: Option<Version>, now_ms: u64) {
        self.change(topic, now_ms, |it| {
            it.owe_unproven(version, now_ms);
            true
        });
    }

    /// Records a change; `owe` returns whether its subscriber has to be notified.
    fn change(
        &mut self,
        topic: &str,
        now_ms: u64,
        owe: impl Fn(&mut Subscription) -> bool,
    ) -> usize {
        self.look(now_ms);
        let (mut count, mut coalesced) = (0, 0);
        self.subscriptions.change_topic(topic, |it| {
            let was_owed = it.is_owed();
            if owe(it) {
                count += 1;
                coalesced += u64::from(was_owed);
            }
        });
        self.counters.coalesced += coalesced;
        count
    }

    /// Returns the distinct topics with subscriptions.
    pub fn topics(&self) -> Vec<String> {
        let mut topics: Vec<&str> = self.subscriptions.iter().map(|(key, _)| &*key.topic).collect();
        topics.dedup();
        topics.into_iter().map(str::to_owned).collect()
    }

    /// Ends the subscriptions that `is_allowed` denies, and tells their subscribers so. Its
    /// arguments are the topic and the consumer's name, if known.
    pub fn handle_topics(&mut self, is_allowed: impl Fn(&str, Option<&str>) -> bool, reason: &str) {
        let (denials, changed) = (&mut self.denials, &mut self.changed);
        self.subscriptions.retain(|key, subscription| {
            let stays = is_allowed(&key.topic, subscription.consumer.as_deref());
            if !stays {
                let (topic, reason) = (key.topic.to_string(), reason.to_owned());
                let url = Question::Denied { topic, reason }.url(&subscription.callback);
                denials.push_back((subscription.host.clone(), url));
                *changed = true;
            }
            stays
        });
        self.intents.retain(|key, it| is_allowed(&key.topic, it.asked.consumer.as_deref()));
    }

    /// Returns a request to make now; `None` if there is none, or too many are under way.
    pub fn poll(&mut self, now_ms: u64) -> Option<Action> {
        self.look(now_ms);
        if self.limits.requests_max <= self.flights.len() {
            return None;
        }
        // Verified subscribers come before others.
        self.poll_deliver(now_ms).or_else(|| self.poll_verify(now_ms)).or_else(|| self.poll_deny())
    }

    fn poll_verify(&mut self, now_ms: u64) -> Option<Action> {
        let due = self.intents.iter().filter(|(_, it)| it.is_due(now_ms) && self.may_ask(&it.host));
        let is_new = |key: &Key| !self.subscriptions.has(key);
        let key = due.min_by_key(|(key, it)| (is_new(key), it.due_ms))?.0.clone();
        let host = self.intents.get(&key)?.host.clone();
        let ticket = self.begin(host, Flight::Verify(key.clone()));
        let (url, challenge) = self.intents.get_mut(&key)?.begin(ticket);
        Some(Action::Verify { ticket, url, challenge })
    }

    fn poll_deliver(&mut self, now_ms: u64) -> Option<Action> {
        let due = self.subscriptions.due().take_while(|(due_ms, ..)| *due_ms <= now_ms);
        let key = due.filter(|(_, key, it)| self.may_notify(key, it)).map(|(_, key, _)| key).next();
        let key = key?.clone();
        let version = self.subscriptions.change(&key, |it| it.begin(now_ms))?;
        let subscription = self.subscriptions.get(&key)?;
        let host = subscription.host.clone();
        let (callback, secret) = (subscription.callback.clone(), subscription.secret.clone());
        let topic = key.topic.to_string();
        let ticket = self.begin(host, Flight::Deliver(key));
        Some(Action::Deliver(Delivery { ticket, topic, callback, secret, version }))
    }

    fn poll_deny(&mut self) -> Option<Action> {
        let at = self.denials.iter().position(|(host, _)| self.may_ask(host))?;
        let (host, url) = self.denials.remove(at)?;
        let ticket = self.begin(host, Flight::Deny);
        Some(Action::Deny { ticket, url })
    }

    fn begin(&mut self, host: String, flight: Flight) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.flights.insert(ticket, (host, flight));
        ticket
    }

    /// Returns whether one more request may go to that host.
    fn admits(&self, host: &str) -> bool {
        let there = self.flights.values().filter(|(it, _)| it == host).count();
        there < self.limits.requests_per_host_max
    }

    /// Returns whether one more question may go to that host, which anybody can name. Questions
    /// take at most half of the requests under way, so that there is always room for notifications.
    fn may_ask(&self, host: &str) -> bool {
        let is_question = |flight: &Flight| !matches!(flight, Flight::Deliver(_));
        let questions = self.flights.values().filter(|(_, it)| is_question(it));
        let there = questions.clone().filter(|(it, _)| it == host).count();
        questions.count() < self.limits.requests_max.div_ceil(2)
            && there < self.limits.requests_per_host_max.div_ceil(2)
            && self.admits(host)
    }

    /// Returns whether one more notification may go to a subscription: none is under way, even of
    /// an earlier subscription with this key.
    fn may_notify(&self, key: &Key, subscription: &Subscription) -> bool {
        let is_it = |it: &Flight| matches!(it, Flight::Deliver(it) if it == key);
        self.admits(&subscription.host) && !self.flights.values().any(|(_, it)| is_it(it))
    }

    /// Returns when [`poll`](Self::poll) will have an action if nothing else happens; `None` for
    /// never. Actions that wait for the end of a request are left out: call again after each end.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.limits.requests_max <= self.flights.len() {
            return None;
        }
        let intents = self.intents.values().filter(|it| self.may_ask(&it.host));
        let intents = intents.filter_map(Intent::due);
        let owed = self.subscriptions.due().filter(|(_, key, it)| self.may_notify(key, it));
        let owed = owed.map(|(due_ms, ..)| due_ms).next();
        let denials = self.denials.iter().filter(|(host, _)| self.may_ask(host)).map(|_| 0);
        intents.chain(owed).chain(denials).min()
    }

    /// Handles the answer to a verification or a denial. `version` is the topic's present version,
    /// if known; the subscription begins after it.
    pub fn handle_verified(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        version: Option<Version>,
        now_ms: u64,
    ) {
        let Some((_, Flight::Verify(key))) = self.flights.remove(&ticket) else { return };
        let Some(intent) = self.intents.get_mut(&key).filter(|it| it.asking == Some(ticket)) else {
            return;
        };
        if verdict == Verdict::Silent && intent.handle_silence(now_ms) {
            return;
        }
        let Some(intent) = self.intents.remove(&key) else { return };
        if verdict != Verdict::Yes {
            self.counters.unverified += 1;
            return;
        }
        (self.counters.verified, self.changed) = (self.counters.verified + 1, true);
        if intent.asked.mode == Mode::Unsubscribe {
            self.subscriptions.remove(&key);
        } else if self.subscriptions.has(&key) {
            self.subscriptions.change(&key, |it| it.renew(intent, now_ms));
        } else {
            self.subscriptions.insert(key, Subscription::new(intent, version, now_ms));
        }
    }

    /// Handles the answer to a notification.
    pub fn handle_delivered(&mut self, ticket: Ticket, answer: Answer, now_ms: u64) {
        let Some((_, Flight::Deliver(key))) = self.flights.remove(&ticket) else { return };
        match answer {
            Answer::Taken(version) => {
                let taken = self.subscriptions.change(&key, |it| it.handle_taken(version, now_ms));
                self.counters.delivered += u64::from(taken.is_some());
            }
            Answer::Gone => self.changed |= self.subscriptions.remove(&key),
            Answer::Failed(retry_after) => {
                let failed = |it: &mut Subscription| it.handle_failure(retry_after, now_ms);
                let Some(fallen) = self.subscriptions.change(&key, failed) else { return };
                self.counters.failed += 1;
                self.counters.given_up += u64::from(fallen != Outcome::Waits);
                if fallen == Outcome::Lost {
                    self.counters.expired += 1;
                    self.changed |= self.subscriptions.remove(&key);
                }
            }
        }
    }

    /// Looks at the clock and ends leases. If the clock was set back, nothing waits longer than
    /// allowed. If it leapt ahead, leases are extended by the unobserved time.
    fn look(&mut self, now_ms: u64) {
        let seen_ms = self.seen_ms.replace(now_ms).unwrap_or(now_ms);
        let unseen_ms = now_ms.saturating_sub(seen_ms);
        if now_ms < seen_ms || LOOK_MS_MAX < unseen_ms {
            let longest_ms = self.limits.lease_secs_max.saturating_mul(1_000);
            self.subscriptions.change_all(|it| it.handle_jump(unseen_ms, longest_ms, now_ms));
            self.intents.values_mut().for_each(|it| it.handle_jump(now_ms));
        }
        let ended = self.subscriptions.expire(now_ms);
        self.counters.expired += ended as u64;
        self.changed |= 0 < ended;
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the numbers of subscriptions and of pending verifications.
    pub fn len(&self) -> (usize, usize) {
        (self.subscriptions.len(), self.intents.len())
    }
}

/// Returns the host name of a callback, for use if the resolved host is unknown.
fn host_of(callback: &Url) -> String {
    callback.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
