//! Subscriptions: sources whose hubs announce or send changes.
//!
//! Source: Liu et al. §3 (subscribe/notify, and push); WebSub, implemented in [`exchange::push`].
//!
//! A thin notification only makes the source due, within the bounds that hold for every pull. A fat
//! notification carries a part: it is stored if it follows the last known version, and dropped
//! otherwise. Storing a part is not a pull: the statistics of pulls (time, cost, failures) and the
//! due time stay as they were. The changes of the part are counted with the next pull.
//!
//! So a notification that is lost, late, repeated or out of order affects only the time at which a
//! change is found, and the source is pulled at its own interval whatever its hub does.

use std::sync::Arc;

use collection::Version;
use collection::pull::{Pushed, Summary};
use exchange::push::request::Content;
use exchange::push::subscriber::{Counters, SubscriptionState as Standing, Wanted};
use exchange::push::{Address, Hooks, Keys, Listener, Notice};
use net::clock;
use net::host;
use url::Url;

use super::parts::PartCounters;
use super::pending::PendingChanges;
use super::{Collector, CollectorState, puller};
use crate::source::Source;
use crate::source_state::SourceState;
use crate::status::Pushing;

/// Lease of a subscription, seconds (a day).
const LEASE_SECS: u64 = 86_400;

/// The listener for hubs, with its keys.
#[derive(Debug)]
pub(super) struct Subscribing {
    listener: Listener,
    keys: Keys,
    /// Base URL at which others reach the broker.
    base: Url,
}

/// Marks a source as storing a part until the guard is dropped, which happens even after a panic.
struct StoringGuard<'a> {
    collector: &'a Collector,
    source: &'a str,
}

impl Drop for StoringGuard<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.collector.state().sources.get_mut(self.source) {
            entry.taking = false;
        }
        self.collector.notify();
    }
}

impl Collector {
    /// Subscribes to the sources with `push`, now and with every change of the settings; `base` is
    /// the URL at which others reach the broker.
    pub(crate) fn listen(&self, base: Url, keys: Keys) {
        let collector = Arc::downgrade(&self.inner);
        let of = move || collector.upgrade().map(|inner| Self { inner });
        let told = of.clone();
        let hooks = Hooks {
            find: Box::new(move |name| of()?.address(name)),
            on_notice: Box::new(move |name, notice| {
                told().is_some_and(|it| it.handle_notice(name, notice))
            }),
        };
        let listener = Listener::new(self.inner.client.clone(), LEASE_SECS, hooks);
        let subscribing = Subscribing { listener, keys, base };
        if self.inner.subscribing.set(subscribing).is_ok() {
            self.subscribe();
        }
    }

    /// Returns the listener, once the collector [listens](Self::listen).
    pub(crate) fn listener(&self) -> Option<&Listener> {
        self.inner.subscribing.get().map(|it| &it.listener)
    }

    /// Subscribes to the present sources.
    pub(super) fn subscribe(&self) {
        let Some(Subscribing { listener, keys, base }) = self.inner.subscribing.get() else {
            return;
        };
        let wanted = |source: &Source| {
            let (name, url) = (&source.name, &source.url);
            let token = keys.token(name, url);
            let callback = host::join(base, &format!("push/{token}"));
            let (source, secret) = (name.clone(), keys.secret(name, url)?);
            // A repository has fat notifications, too: an unchanged list then causes no
            // notification.
            Some(Wanted { source, token, callback, secret, content: Content::Fat })
        };
        let sources: Vec<Wanted> = {
            let state = self.state();
            let told = state.sources.values().filter(|it| it.source.push);
            told.filter_map(|it| wanted(&it.source)).collect()
        };
        listener.handle_sources(sources);
    }

    /// Returns the address whose answer names the source's hub: Identify of a repository, otherwise
    /// the feed after the cursor. `None` before the first pull of a feed.
    fn address(&self, name: &str) -> Option<Address> {
        let source = self.state().sources.get(name)?.source.clone();
        let url = if source.oai.is_some() {
            let mut url = source.url.clone();
            url.query_pairs_mut().append_pair("verb", "Identify");
            url
        } else {
            let cursor = self.inner.collection.cursor(name).ok()??;
            let path = format!("feed?since={}&epoch={}", cursor.serial, cursor.epoch);
            host::join(&source.url, &path)
        };
        Some(Address {
            url,
            credentials: source.credentials(),
            allow_private: source.allow_private,
        })
    }

    /// Handles a notification from a source's hub; returns false if there is no room for it now.
    fn handle_notice(&self, name: &str, notice: Notice) -> bool {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        let CollectorState { schedule, sources, parts, .. } = &mut *state;
        // The settings may have changed since the subscription.
        let Some(entry) = sources.get_mut(name).filter(|it| it.source.push) else { return true };
        match notice {
            // Only feeds have versions.
            _ if entry.source.oai.is_some() => drop(schedule.handle_notice(name, now_ms)),
            Notice::Thin(Some(version)) if has(entry, version) => return true,
            Notice::Thin(_) => drop(schedule.handle_notice(name, now_ms)),
            Notice::Fat(part) if has(entry, part.to) => {
                parts.counters.known += 1;
                return true;
            }
            Notice::Fat(part) => {
                if !parts.push(name, part) {
                    return false;
                }
            }
        }
        drop(state);
        self.inner.changed.notify_one();
        true
    }

    /// Takes the next part to [store](Self::take), from a source that has no running pull and no
    /// part being stored; skips known parts. `None` if there is no such part.
    pub(super) fn next_part(&self) -> Option<(Source, Pushed)> {
        let mut state = self.state();
        let CollectorState { sources, parts, .. } = &mut *state;
        loop {
            let (name, part) =
                parts.pop(|name| sources.get(name).is_none_or(SourceState::may_take))?;
            let Some(entry) = sources.get_mut(&name) else { continue };
            if !has(entry, part.to) {
                entry.taking = true;
                return Some((entry.source.clone(), part));
            }
            parts.counters.known += 1;
        }
    }

    /// Stores a part. If the part leaves a gap, is damaged, exceeds a limit or cannot be stored, it
    /// is dropped with all parts after it, and the source is pulled as soon as its bounds allow, to
    /// find the cause.
    pub(super) async fn take(self, source: Source, part: Pushed) {
        let name = source.name.as_str();
        let _taking = StoringGuard { collector: &self, source: name };
        let mut taken = Summary::default();
        let bytes = part.members.len() as u64;
        let sent = self.state().sources.get(name).map_or(0, |it| it.sent_bytes);
        let is_whole = if source.bytes_max < sent.saturating_add(bytes) {
            tracing::warn!(source = name, "source sent more than bytes_max since its last pull");
            false
        } else {
            match puller(&self.inner, &source).take(&part, &mut taken).await {
                Ok(true) => true,
                Ok(false) => {
                    tracing::debug!(source = name, "a sent part leaves a gap");
                    false
                }
                Err(error) => {
                    tracing::warn!(source = name, %error, "a sent part was not stored");
                    false
                }
            }
        };
        self.handle_taken(&source, &taken, is_whole);
    }

    fn handle_taken(&self, source: &Source, taken: &Summary, is_whole: bool) {
        let (name, at) = (&source.name, clock::monotonic());
        let mut state = self.state();
        let CollectorState { schedule, sources, parts, counters, .. } = &mut *state;
        if is_whole {
            parts.counters.taken += 1;
        } else {
            parts.counters.dropped += 1;
        }
        counters.changes += taken.changes;
        counters.bytes += taken.bytes;
        counters.applied += taken.applied;
        let Some(entry) = sources.get_mut(name).filter(|it| it.source == *source) else { return };
        entry.sent_bytes = entry.sent_bytes.saturating_add(taken.bytes);
        entry.pending = Some(entry.with_pending(PendingChanges::sent(taken, at)));
        if is_whole {
            entry.reached = Some(taken.version.into());
            entry.unwritten = true;
        } else {
            parts.forget(name);
            schedule.handle_notice(name, clock::now_ms());
        }
    }

    /// Returns the numbers of sent parts by outcome.
    pub(crate) fn part_counters(&self) -> PartCounters {
        self.state().parts.counters
    }

    /// Returns the status of a source's subscription; `None` if there is none.
    pub(super) fn pushing(&self, name: &str) -> Option<Pushing> {
        let (standing, counters) = self.listener()?.view(name)?;
        let Counters { notices, unsigned, forged } = counters;
        let (state, until_ms, problem) = match standing {
            Standing::Active { until_ms } => ("active", Some(until_ms), None),
            Standing::Asking => ("asking", None, None),
            Standing::Failed(problem) => ("failed", None, Some(problem)),
        };
        Some(Pushing { state: state.to_owned(), until_ms, problem, notices, unsigned, forged })
    }
}

/// Returns whether a source has been read up to the given version.
fn has(entry: &SourceState, version: Version) -> bool {
    let epoch = version.epoch.to_string();
    entry.reached.as_ref().is_some_and(|it| it.epoch == epoch && version.serial <= it.serial)
}

#[cfg(test)]
mod tests;
