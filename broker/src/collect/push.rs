//! Sources whose hubs tell of changes.
//!
//! Source: Liu et al. §3 (subscribe/notify, and push); WebSub, by [`exchange::push`].
//!
//! What a hub says only makes the source due, under the bounds that hold for every pull; what it sends is
//! taken in where it follows what there is, and dropped where not. Taking in is no pull: the source was not
//! asked, so what is known of its pulls (when, at what cost, how many failed) stays as it was, and when it is
//! due, too. How much changed is reported with the next pull.
//!
//! So a notification that is lost, late, twice there or out of order changes nothing but the time at which
//! a change is found, and the source's own interval goes on whatever its hub does.

use std::sync::Arc;

use collection::Version;
use collection::pull::{Pushed, Summary};
use exchange::push::request::Content;
use exchange::push::subscriber::{Counters, State as Standing, Wanted};
use exchange::push::{Address, Hooks, Keys, Listener, Notice};
use net::clock;
use net::host;
use url::Url;

use super::brought::Brought;
use super::parts::PartCounters;
use super::{Collector, State, puller};
use crate::live::Live;
use crate::source::Source;
use crate::status::Pushing;

/// For how long to ask hubs to tell, seconds (a day).
const LEASE_SECS: u64 = 86_400;

/// What subscribing takes.
#[derive(Debug)]
pub(super) struct Subscribing {
    listener: Listener,
    keys: Keys,
    /// Where others reach the broker.
    base: Url,
}

/// A source's part is being taken in, until this goes: also where that breaks.
struct Taking<'a> {
    collector: &'a Collector,
    source: &'a str,
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        if let Some(live) = self.collector.state().live.get_mut(self.source) {
            live.taking = false;
        }
        self.collector.tell();
    }
}

impl Collector {
    /// Subscribes to the sources that are to tell of changes, now and with every change of the settings;
    /// `base` is where others reach the broker.
    pub(crate) fn listen(&self, base: Url, keys: Keys) {
        let collector = Arc::downgrade(&self.inner);
        let of = move || collector.upgrade().map(|inner| Self { inner });
        let told = of.clone();
        let hooks = Hooks {
            find: Box::new(move |name| of()?.address(name)),
            tell: Box::new(move |name, notice| {
                told().is_some_and(|it| it.handle_notice(name, notice))
            }),
        };
        let listener = Listener::new(self.inner.client.clone(), LEASE_SECS, hooks);
        let subscribing = Subscribing { listener, keys, base };
        if self.inner.subscribing.set(subscribing).is_ok() {
            self.subscribe();
        }
    }

    /// The listener, once the collector [listens](Self::listen).
    pub(crate) fn listener(&self) -> Option<&Listener> {
        self.inner.subscribing.get().map(|it| &it.listener)
    }

    /// Subscribes to the sources as they are now.
    pub(super) fn subscribe(&self) {
        let Some(Subscribing { listener, keys, base }) = self.inner.subscribing.get() else {
            return;
        };
        let wanted = |source: &Source| {
            let (name, url) = (&source.name, &source.url);
            let token = keys.token(name, url);
            let callback = host::join(base, &format!("push/{token}"));
            let (source, secret) = (name.clone(), keys.secret(name, url)?);
            // Of a repository, too: nothing comes then where none of the list has changed.
            Some(Wanted { source, token, callback, secret, content: Content::Fat })
        };
        let sources: Vec<Wanted> = {
            let state = self.state();
            let told = state.live.values().filter(|it| it.source.push);
            told.filter_map(|it| wanted(&it.source)).collect()
        };
        listener.handle_sources(sources);
    }

    /// Where a source is asked for its hub: a repository at its Identify, others at their feed from where we
    /// are, which there is none of before the first pull.
    fn address(&self, name: &str) -> Option<Address> {
        let source = self.state().live.get(name)?.source.clone();
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

    /// Takes in what a source's hub says; false where there is no room for it now.
    fn handle_notice(&self, name: &str, notice: Notice) -> bool {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        let State { schedule, live, parts, .. } = &mut *state;
        // The settings may have changed since it was subscribed to.
        let Some(live) = live.get_mut(name).filter(|it| it.source.push) else { return true };
        match notice {
            // Versions are of feeds.
            _ if live.source.oai.is_some() => drop(schedule.handle_notice(name, now_ms)),
            Notice::Thin(Some(version)) if has(live, version) => return true,
            Notice::Thin(_) => drop(schedule.handle_notice(name, now_ms)),
            Notice::Fat(part) if has(live, part.to) => {
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

    /// Returns the next part to [take](Self::take) in, of a source that is neither being pulled nor has
    /// another taken in; what is known by now is passed over.
    pub(super) fn next_part(&self) -> Option<(Source, Pushed)> {
        let mut state = self.state();
        let State { live, parts, .. } = &mut *state;
        loop {
            let (name, part) = parts.pop(|name| live.get(name).is_none_or(Live::may_take))?;
            let Some(live) = live.get_mut(&name) else { continue };
            if !has(live, part.to) {
                live.taking = true;
                return Some((live.source.clone(), part));
            }
            parts.counters.known += 1;
        }
    }

    /// Takes in what a source has sent. Where it does not follow what there is, is damaged, goes beyond a
    /// limit or cannot be kept, it is dropped with all that waits behind it, and the source is to be asked
    /// as soon as it bears it: its pull finds whatever is wrong.
    pub(super) async fn take(self, source: Source, part: Pushed) {
        let name = source.name.as_str();
        let _taking = Taking { collector: &self, source: name };
        let mut taken = Summary::default();
        let bytes = part.members.len() as u64;
        let sent = self.state().live.get(name).map_or(0, |it| it.sent_bytes);
        let is_whole = if source.bytes_max < sent.saturating_add(bytes) {
            tracing::warn!(source = name, "it has sent more than bytes_max since its last pull");
            false
        } else {
            match puller(&self.inner, &source).take(&part, &mut taken).await {
                Ok(true) => true,
                Ok(false) => {
                    tracing::debug!(source = name, "what was sent leaves a gap");
                    false
                }
                Err(error) => {
                    tracing::warn!(source = name, %error, "what was sent is not taken in");
                    false
                }
            }
        };
        self.handle_taken(&source, &taken, is_whole);
    }

    fn handle_taken(&self, source: &Source, taken: &Summary, is_whole: bool) {
        let (name, at) = (&source.name, clock::monotonic());
        let mut state = self.state();
        let State { schedule, live, parts, counters, .. } = &mut *state;
        if is_whole {
            parts.counters.taken += 1;
        } else {
            parts.counters.dropped += 1;
        }
        counters.changes += taken.changes;
        counters.bytes += taken.bytes;
        counters.applied += taken.applied;
        let Some(live) = live.get_mut(name).filter(|it| it.source == *source) else { return };
        live.sent_bytes = live.sent_bytes.saturating_add(taken.bytes);
        live.part = Some(live.brought(Brought::sent(taken, at)));
        if is_whole {
            live.reached = Some(taken.version.into());
            live.unwritten = true;
        } else {
            parts.forget(name);
            schedule.handle_notice(name, clock::now_ms());
        }
    }

    /// What became of all that sources have sent.
    pub(crate) fn part_counters(&self) -> PartCounters {
        self.state().parts.counters
    }

    /// What status says of a source's hub.
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

/// Whether a source has been read up to that version.
fn has(live: &Live, version: Version) -> bool {
    let epoch = version.epoch.to_string();
    live.reached.as_ref().is_some_and(|it| it.epoch == epoch && version.serial <= it.serial)
}

#[cfg(test)]
mod tests;
