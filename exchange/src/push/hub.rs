//! The hub: who has subscribed to what, and what they are still to be told.
//!
//! Source: WebSub §5 (subscribing: denial, verification of intent, leases), §6 (publishing), §7 (content
//! distribution).
//!
//! Machine: the shell hands in what it was asked ([`Hub::handle_request`]) and what has changed
//! ([`Hub::handle_change`]), performs what [`Hub::poll`] returns, and reports what came of it
//! ([`Hub::handle_verified`], [`Hub::handle_delivered`]). Times are Unix milliseconds.
//!
//! # Differences from the standard
//!
//! * A subscriber is owed the newest version and nothing in between: however many changes come while it is
//!   away or slow, one notification waits for it. A fat one has all since the last that it acknowledged.
//! * Who has not answered for so many times is left alone until the next change, which is then tried once,
//!   and thin; if it has answered nothing for a day by then, its subscription ends.
//! * The lease of who is sent what has changed is a day at most, since it is a lot to send to who has not asked.
//! * Everything is bounded: subscriptions, those of one host, requests under way, and requests to one host.
//!   Anybody may have a callback verified, so verifications come last: they have half of the requests that
//!   may be under way, and those that renew what there is come before the others.
//! * A host is whatever its callbacks' names lead to, as the shell finds: many names of one machine are one.
//! * Who asks to end a subscription that there is not is told yes, and nobody is asked.
//! * A lease counts only time in which the clock was looked at: one that leaps ahead, or a machine that
//!   slept, ends none.
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

use super::request::{Asked, Content, Mode, Question};
use super::signature::Secret;

pub use limits::{Counters, Limits};
use pace::Pace;
pub use saved::{Saved, SavedSubscription};
use subscription::{Fallen, Intent, Subscription};
use subscriptions::Subscriptions;

/// Longest time between two looks at the clock, milliseconds: the shell looks each minute. What is beyond
/// is time that nobody saw pass.
const LOOK_MS_MAX: u64 = 600_000;

/// Why a hub does not take a subscription. Shown to who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There are as many as there may be. Try again later.
    #[error("this hub has as many subscriptions as it may have")]
    Full,
    /// There are as many from that host as there may be.
    #[error("this hub has as many subscriptions of that host as it may have")]
    HostFull,
    /// There are as many requests to verify as there may be. Try again soon.
    #[error("this hub has as many subscriptions to verify as it may have")]
    Busy,
    /// That host was to be asked too often. Try again later.
    #[error("this hub asks that host no more often than it does; try again in a minute")]
    Often,
}

/// Names a request of the hub's own until it has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// A request for the shell to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// GET `url`: 2xx with `challenge` as its body says yes. Report with [`Hub::handle_verified`].
    Verify {
        /// What to report with.
        ticket: Ticket,
        /// What to ask.
        url: Url,
        /// What says yes.
        challenge: String,
    },
    /// GET `url`, whatever comes of it. Report with [`Hub::handle_verified`].
    Deny {
        /// What to report with.
        ticket: Ticket,
        /// What to ask.
        url: Url,
    },
    /// POST a notification. Report with [`Hub::handle_delivered`].
    Deliver(Delivery),
}

/// A notification to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// What to report with.
    pub ticket: Ticket,
    /// Of which topic.
    pub topic: String,
    /// Where to.
    pub callback: Url,
    /// What to sign with.
    pub secret: Option<Secret>,
    /// What it is to have in it.
    pub content: Content,
    /// The version that the subscriber has acknowledged last, if one is known.
    pub from: Option<Version>,
    /// The version that there is, if it is known.
    pub to: Option<Version>,
}

/// How a subscriber answered a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With the challenge.
    Yes,
    /// With anything else.
    No,
    /// Not at all: it may be asked again.
    Silent,
}

/// How a subscriber answered a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 2xx; it has been told of that version (that of the delivery, or, of a fat one, what it reached).
    Taken(Option<Version>),
    /// 410: it is not there any more.
    Gone,
    /// Anything else, or nothing, and when it wants to be asked again.
    Failed(Option<Duration>),
}

/// Names a subscription: topic and callback.
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

/// Who has subscribed to what. Bounded by its [`Limits`].
#[derive(Debug)]
pub struct Hub {
    limits: Limits,
    subscriptions: Subscriptions,
    pace: Pace,
    intents: BTreeMap<Key, Intent>,
    denials: VecDeque<(String, Url)>,
    flights: BTreeMap<Ticket, (String, Flight)>,
    next_ticket: u64,
    /// When it looked at the clock last, if it has.
    seen_ms: Option<u64>,
    counters: Counters,
    /// Whether what is saved is not what there is any more.
    changed: bool,
}

impl Hub {
    /// A hub without subscriptions.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            subscriptions: Subscriptions::default(),
            pace: Pace::default(),
            intents: BTreeMap::new(),
            denials: VecDeque::new(),
            flights: BTreeMap::new(),
            next_ticket: 0,
            seen_ms: None,
            counters: Counters::default(),
            changed: false,
        }
    }

    /// Whether that is subscribed to already, so that it is known what to count it with.
    pub fn has(&self, asked: &Asked) -> bool {
        self.subscriptions.has(&Key::new(&asked.topic, &asked.callback))
    }

    /// Takes in what a subscriber asks, of a topic that the hub tells of. Whether it means it is verified
    /// next, with `challenge`, which nobody can have guessed. `host`: what it counts as.
    ///
    /// # Errors
    ///
    /// [`Refused`]: 503, with what it says; nothing has changed.
    pub fn handle_request(
        &mut self,
        asked: Asked,
        host: &str,
        challenge: String,
        now_ms: u64,
    ) -> Result<(), Refused> {
        self.look(now_ms);
        self.counters.requests += 1;
        let key = Key::new(&asked.topic, &asked.callback);
        let known = self.subscriptions.get(&key).map(|it| it.host.clone());
        if known.is_none() && !self.intents.contains_key(&key) && asked.mode == Mode::Unsubscribe {
            return Ok(());
        }
        let per_minute = self.limits.intents_per_host_per_minute_max;
        let room = self.has_room(&key, host, asked.mode).and_then(|()| {
            // Whoever is subscribed has proven that it wants to be asked.
            let admits = known.is_some() || self.pace.handle(host, per_minute, now_ms);
            if admits { Ok(()) } else { Err(Refused::Often) }
        });
        if let Err(refused) = room {
            self.counters.refused += 1;
            return Err(refused);
        }
        let lease_secs = asked.lease_secs.unwrap_or(self.limits.lease_secs_default);
        // The longest counts where both bounds contradict each other.
        let lease_secs =
            lease_secs.max(self.limits.lease_secs_min).min(self.limits.longest_secs(asked.content));
        let host = known.unwrap_or_else(|| host.to_owned());
        // Of several requests for one subscription the last counts.
        self.intents.insert(key, Intent::new(asked, challenge, host, lease_secs, now_ms));
        Ok(())
    }

    /// Counts a request that was refused before it came here.
    pub fn handle_refusal(&mut self) {
        self.counters.requests += 1;
        self.counters.refused += 1;
    }

    fn has_room(&self, key: &Key, host: &str, mode: Mode) -> Result<(), Refused> {
        // One that is counted already. Of those there are no more than subscriptions and intents, so no crowd
        // keeps a subscriber from renewing.
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

    /// Takes in that a topic has changed, to a version if there is one to name. Returns how many are to be
    /// told.
    pub fn handle_change(&mut self, topic: &str, version: Option<Version>, now_ms: u64) -> usize {
        self.look(now_ms);
        let (mut count, mut coalesced) = (0, 0);
        self.subscriptions.change_topic(topic, |it| {
            let was_owed = it.is_owed();
            if it.owe(version, now_ms) {
                count += 1;
                coalesced += u64::from(was_owed);
            }
        });
        self.counters.coalesced += coalesced;
        self.counters.changes += u64::from(0 < count);
        count
    }

    /// Takes in that somebody says that a topic of others has changed, to a version if they name one.
    pub fn handle_published(&mut self, topic: &str, version: Option<Version>, now_ms: u64) {
        self.look(now_ms);
        let (mut count, mut coalesced) = (0, 0);
        self.subscriptions.change_topic(topic, |it| {
            coalesced += u64::from(it.is_owed());
            it.owe_unproven(version, now_ms);
            count += 1;
        });
        self.counters.coalesced += coalesced;
        self.counters.changes += u64::from(0 < count);
    }

    /// The topics that somebody has subscribed to, each once.
    pub fn topics(&self) -> Vec<String> {
        let mut topics: Vec<&str> = self.subscriptions.iter().map(|(key, _)| &*key.topic).collect();
        topics.dedup();
        topics.into_iter().map(str::to_owned).collect()
    }

    /// Ends the subscriptions to topics that are told of no more to whoever has them (the second is its name, if it
    /// is somebody known), and says so to those.
    pub fn handle_topics(&mut self, is_told: impl Fn(&str, Option<&str>) -> bool, reason: &str) {
        let (denials, changed) = (&mut self.denials, &mut self.changed);
        self.subscriptions.retain(|key, subscription| {
            let stays = is_told(&key.topic, subscription.consumer.as_deref());
            if !stays {
                let (topic, reason) = (key.topic.to_string(), reason.to_owned());
                let url = Question::Denied { topic, reason }.url(&subscription.callback);
                denials.push_back((subscription.host.clone(), url));
                *changed = true;
            }
            stays
        });
        self.intents.retain(|key, it| is_told(&key.topic, it.asked.consumer.as_deref()));
    }

    /// Returns a request to make now, if there is one and not too many are under way.
    pub fn poll(&mut self, now_ms: u64) -> Option<Action> {
        self.look(now_ms);
        if self.limits.requests_max <= self.flights.len() {
            return None;
        }
        // Whoever has been verified comes before whoever has not.
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
        let key = due.filter(|(_, key, it)| self.may_tell(key, it)).map(|(_, key, _)| key).next();
        let key = key?.clone();
        let (from, to) = self.subscriptions.change(&key, |it| it.begin(now_ms))?;
        let subscription = self.subscriptions.get(&key)?;
        let host = subscription.host.clone();
        let (callback, secret) = (subscription.callback.clone(), subscription.secret.clone());
        let (topic, content) = (key.topic.to_string(), subscription.content_now());
        let ticket = self.begin(host, Flight::Deliver(key));
        Some(Action::Deliver(Delivery { ticket, topic, callback, secret, content, from, to }))
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

    /// Whether one more request may go to that host.
    fn admits(&self, host: &str) -> bool {
        let there = self.flights.values().filter(|(it, _)| it == host).count();
        there < self.limits.requests_per_host_max
    }

    /// Whether one more question may go to that host: to whom, anybody can say. No more than half of what
    /// may be under way, so that there is always room for notifications.
    fn may_ask(&self, host: &str) -> bool {
        let is_question = |flight: &Flight| !matches!(flight, Flight::Deliver(_));
        let questions = self.flights.values().filter(|(_, it)| is_question(it));
        let there = questions.clone().filter(|(it, _)| it == host).count();
        questions.count() < self.limits.requests_max.div_ceil(2)
            && there < self.limits.requests_per_host_max.div_ceil(2)
            && self.admits(host)
    }

    fn may_tell(&self, key: &Key, subscription: &Subscription) -> bool {
        self.admits(&subscription.host) && !self.is_being_told(key)
    }

    /// Whether a notification is on its way, if only to one who had subscribed before.
    fn is_being_told(&self, key: &Key) -> bool {
        self.flights.values().any(|(_, it)| matches!(it, Flight::Deliver(it) if it == key))
    }

    /// Returns when [`poll`](Self::poll) will have something, if nothing else happens. What waits for a request
    /// under way to end is left out: once one has, look again.
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.limits.requests_max <= self.flights.len() {
            return None;
        }
        let intents = self.intents.values().filter(|it| self.may_ask(&it.host));
        let intents = intents.filter_map(Intent::due);
        let owed = self.subscriptions.due().filter(|(_, key, it)| self.may_tell(key, it));
        let owed = owed.map(|(due_ms, ..)| due_ms).next();
        let denials = self.denials.iter().filter(|(host, _)| self.may_ask(host)).map(|_| 0);
        intents.chain(owed).chain(denials).min()
    }

    /// Takes in how a subscriber answered a verification or a denial. `version`: that of the topic now, if
    /// it is known; a subscription tells of what comes after it.
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

    /// Takes in how a subscriber answered a notification.
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
                self.counters.given_up += u64::from(fallen != Fallen::Waits);
                if fallen == Fallen::Lost {
                    self.counters.expired += 1;
                    self.changed |= self.subscriptions.remove(&key);
                }
            }
        }
    }

    /// Looks at the clock: leases end. Where it was set back, nothing waits for longer than it may; where it
    /// leaps ahead, what passed without anybody's looking does not count.
    fn look(&mut self, now_ms: u64) {
        let seen_ms = self.seen_ms.replace(now_ms).unwrap_or(now_ms);
        let unseen_ms = now_ms.saturating_sub(seen_ms);
        if now_ms < seen_ms || LOOK_MS_MAX < unseen_ms {
            let longest_ms = |it| self.limits.longest_secs(it).saturating_mul(1_000);
            let [thin_ms, fat_ms] = [Content::Thin, Content::Fat].map(longest_ms);
            self.subscriptions.change_all(|it| {
                let longest_ms = if it.content == Content::Fat { fat_ms } else { thin_ms };
                it.handle_jump(unseen_ms, longest_ms, now_ms);
            });
            self.intents.values_mut().for_each(|it| it.handle_jump(now_ms));
        }
        let ended = self.subscriptions.expire(now_ms);
        self.counters.expired += ended as u64;
        self.changed |= 0 < ended;
    }

    /// What it has done since it started.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many subscriptions there are, and how many are to be verified.
    pub fn len(&self) -> (usize, usize) {
        (self.subscriptions.len(), self.intents.len())
    }

    /// Whether there is neither.
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }
}

/// The host of a callback by its name, where nobody knows better.
fn host_of(callback: &Url) -> String {
    callback.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
