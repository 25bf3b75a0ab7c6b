//! Subscriptions as they are kept over a restart. With their secrets: for the hub's eyes alone.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};
use url::Url;

use super::super::request::{Asked, Content, Mode, URL_BYTES_MAX};
use super::super::signature::Secret;
use super::subscription::{Intent, Subscription};
use super::{Hub, Key, Limits, host_of};

/// What is kept of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Every subscription that was verified.
    pub subscriptions: Vec<SavedSubscription>,
}

/// What is kept of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSubscription {
    /// Of what.
    pub topic: String,
    /// Whom to tell.
    pub callback: Url,
    /// What its host counts as, where that is not its name.
    #[serde(default)]
    pub host: Option<String>,
    /// What to sign with.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// What it wants to get.
    #[serde(default)]
    pub content: Content,
    /// Who has subscribed, if it was somebody known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// Until when, Unix milliseconds.
    pub lease_until_ms: u64,
    /// The version that it was told of last.
    #[serde(default)]
    pub told: Option<String>,
}

impl Hub {
    /// A hub with what was kept of one, as far as leases and limits allow.
    pub fn restored(limits: Limits, saved: Saved, now_ms: u64) -> Self {
        let mut hub = Self::new(limits);
        for one in saved.subscriptions {
            let (topic, callback) = (one.topic, one.callback);
            let key = Key::new(&topic, &callback);
            let longest_secs = limits.longest_secs(one.content);
            let longest_ms = now_ms.saturating_add(longest_secs.saturating_mul(1_000));
            let fits = topic.len() <= URL_BYTES_MAX && now_ms < one.lease_until_ms;
            let host = one.host.unwrap_or_else(|| host_of(&callback));
            if !fits || hub.has_room(&key, &host, Mode::Subscribe).is_err() {
                continue;
            }
            let (mode, lease_secs) = (Mode::Subscribe, None);
            let (secret, content, consumer) = (one.secret, one.content, one.consumer);
            let asked = Asked { mode, topic, callback, lease_secs, secret, content, consumer };
            let intent = Intent::new(asked, String::new(), host, 0, now_ms);
            let told = one.told.and_then(|it| it.parse().ok());
            let mut subscription = Subscription::new(intent, told, now_ms);
            // A clock that was set back must not make a lease longer.
            subscription.lease_until_ms = one.lease_until_ms.min(longest_ms);
            hub.subscriptions.insert(key, subscription);
        }
        hub
    }

    /// What is to be kept now.
    pub fn saved(&self) -> Saved {
        let one = |(key, it): (&Key, &Subscription)| SavedSubscription {
            topic: key.topic.to_string(),
            callback: it.callback.clone(),
            host: Some(it.host.clone()),
            secret: it.secret.clone(),
            content: it.content,
            consumer: it.consumer.clone(),
            lease_until_ms: it.lease_until_ms,
            told: it.told.map(|it| it.to_string()),
        };
        Saved { subscriptions: self.subscriptions.iter().map(one).collect() }
    }

    /// Whether subscriptions have come or gone, or were renewed, since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}
