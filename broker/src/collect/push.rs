//! Sources whose hubs tell of changes.
//!
//! Source: Liu et al. §3 (subscribe/notify, and push); WebSub, by [`exchange::push`].
//!
//! What a hub says only makes the source due, under the bounds that hold for every pull; what it sends is
//! taken in where it follows what there is, as a pull of its own that asks nobody, and dropped where not.
//! So a notification that is lost, late, twice there or out of order changes nothing but the time at which
//! a change is found, and the source's own interval goes on whatever its hub does.

use std::sync::Arc;

use collection::Version;
use collection::pull::{Puller, Pushed, Summary};
use exchange::push::request::Content;
use exchange::push::subscriber::{Counters, State as Standing, Wanted};
use exchange::push::{Address, Hooks, Keys, Listener, Notice};
use net::clock;
use net::host;
use url::Url;

use super::{Collector, State};
use crate::live::Live;
use crate::source::Source;
use crate::status::Pushing;

/// Most parts of one source that wait to be taken in.
const PUSHED_MAX: usize = 16;

/// Most bytes of all sources that wait to be taken in.
const PUSHED_BYTES_MAX: usize = 32 << 20;

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

/// What there is for a pull to take in.
#[derive(Debug)]
pub(super) enum Next {
    /// Nothing: the source is to be asked.
    Nothing,
    /// Only what is there already: nothing is to be done.
    Known,
    /// This.
    Changes(Pushed),
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
            token: source.token.as_ref().map(|it| it.secret().to_owned()),
            allow_private: source.allow_private,
        })
    }

    /// Takes in what a source's hub says; false where there is no room for it now.
    fn handle_notice(&self, name: &str, notice: Notice) -> bool {
        let now_ms = clock::now_ms();
        let mut state = self.state();
        let State { schedule, live, pushed_bytes, .. } = &mut *state;
        let Some(live) = live.get_mut(name) else { return true };
        match notice {
            // Versions are of feeds.
            _ if live.source.oai.is_some() => drop(schedule.handle_notice(name, now_ms)),
            Notice::Thin(Some(version)) if has(live, version) => return true,
            Notice::Thin(_) => drop(schedule.handle_notice(name, now_ms)),
            Notice::Fat(pushed) if has(live, pushed.to) => return true,
            Notice::Fat(pushed) => {
                let bytes = *pushed_bytes + pushed.members.len();
                if PUSHED_MAX <= live.pushed.len() || PUSHED_BYTES_MAX < bytes {
                    return false;
                }
                *pushed_bytes = bytes;
                live.pushed.push_back(pushed);
                // It asks nothing of the source.
                schedule.handle_request(name, now_ms);
            }
        }
        drop(state);
        self.inner.changed.notify_one();
        true
    }

    /// Returns what a pull of a source that begins is to take in.
    pub(super) fn next_pushed(&self, name: &str) -> Next {
        let mut state = self.state();
        let State { live, pushed_bytes, .. } = &mut *state;
        let Some(live) = live.get_mut(name) else { return Next::Nothing };
        let mut next = Next::Nothing;
        while let Some(pushed) = live.pushed.pop_front() {
            *pushed_bytes = pushed_bytes.saturating_sub(pushed.members.len());
            if !has(live, pushed.to) {
                return Next::Changes(pushed);
            }
            next = Next::Known;
        }
        next
    }

    /// Takes in what a source has sent. `None` where it does not follow what there is, or is damaged: then
    /// the source is to be asked, as soon as it bears it.
    pub(super) async fn take(
        &self,
        puller: &Puller,
        pushed: &Pushed,
        name: &str,
        pulled: &mut Summary,
    ) -> Option<Result<(), collection::Error>> {
        match puller.take(pushed, pulled).await {
            Ok(true) => return Some(Ok(())),
            Ok(false) => tracing::debug!(source = name, "what was sent leaves a gap"),
            Err(error @ collection::Error::Corrupt { .. }) => {
                tracing::warn!(source = name, %error, "what was sent is damaged");
            }
            Err(error) => return Some(Err(error)),
        }
        self.drop_pushed(name);
        self.state().schedule.handle_notice(name, clock::now_ms());
        None
    }

    /// Has what else a source has sent taken in next.
    pub(super) fn go_on(&self, name: &str) {
        let mut state = self.state();
        let State { schedule, live, .. } = &mut *state;
        if live.get(name).is_some_and(|it| !it.pushed.is_empty()) {
            schedule.handle_request(name, clock::now_ms());
            drop(state);
            self.inner.changed.notify_one();
        }
    }

    /// Forgets what a source has sent.
    pub(super) fn drop_pushed(&self, name: &str) {
        let mut state = self.state();
        let State { live, pushed_bytes, .. } = &mut *state;
        let Some(live) = live.get_mut(name) else { return };
        let bytes: usize = live.pushed.drain(..).map(|it| it.members.len()).sum();
        *pushed_bytes = pushed_bytes.saturating_sub(bytes);
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
