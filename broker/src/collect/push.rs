//! Subscriptions: sources whose hubs announce changes.
//!
//! Source: Liu et al. §3 (subscribe/notify); WebSub, implemented in [`exchange::push`].
//!
//! A notification only makes the source due, within the bounds that hold for every pull. A
//! notification that is lost, late, repeated or out of order affects only the time at which a
//! change is found. Whatever its hub does, the source is pulled at its own interval.

use std::sync::Arc;

use collection::Version;
use exchange::push::subscriber::{Counters, SubscriptionState as Standing, Wanted};
use exchange::push::{Address, Hooks, Keys, Listener};
use net::clock;
use net::host;
use url::Url;

use super::{Collector, CollectorState};
use crate::source::Source;
use crate::source::state::SourceState;
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

impl Collector {
    /// Subscribes at the hubs of the sources with `push`, now and after each change of the
    /// settings; `base` is the URL at which others reach the broker.
    pub(crate) fn listen(&self, base: Url, keys: Keys) {
        let collector = Arc::downgrade(&self.inner);
        let present = move || collector.upgrade().map(|inner| Self { inner });
        let notified = present.clone();
        let hooks = Hooks {
            find: Box::new(move |name| present()?.address(name)),
            on_notice: Box::new(move |name, version| {
                if let Some(collector) = notified() {
                    collector.handle_notice(name, version);
                }
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

    /// Subscribes at the hubs of the present sources with `push`, and at no others.
    pub(super) fn subscribe(&self) {
        let Some(Subscribing { listener, keys, base }) = self.inner.subscribing.get() else {
            return;
        };
        let wanted = |source: &Source| {
            let (name, url) = (&source.name, &source.url);
            let token = keys.token(name, url);
            let callback = host::join(base, &format!("push/{token}"));
            let (source, secret) = (name.clone(), keys.secret(name, url)?);
            Some(Wanted { source, token, callback, secret })
        };
        let sources: Vec<Wanted> = {
            let state = self.state();
            let pushing = state.sources.values().filter(|it| it.source.push);
            pushing.filter_map(|it| wanted(&it.source)).collect()
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

    /// Handles a notification of a source's hub about a new version, with its number if known.
    fn handle_notice(&self, name: &str, version: Option<Version>) {
        let mut state = self.state();
        let CollectorState { schedule, sources, .. } = &mut *state;
        // The settings may have changed since the subscription.
        let Some(entry) = sources.get(name).filter(|it| it.source.push) else { return };
        // Only feeds have versions.
        if entry.source.oai.is_none() && version.is_some_and(|it| has(entry, it)) {
            return;
        }
        schedule.handle_notice(name, clock::now_ms());
        drop(state);
        self.inner.changed.notify_one();
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

/// Returns whether a source has been read up to the given version, in the same epoch.
fn has(entry: &SourceState, version: Version) -> bool {
    let epoch = version.epoch.to_string();
    entry.reached.as_ref().is_some_and(|it| it.epoch == epoch && version.serial <= it.serial)
}

#[cfg(test)]
mod tests;
