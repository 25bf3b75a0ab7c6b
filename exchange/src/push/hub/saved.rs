//! Saved subscriptions, for a restart. They include secrets, which only the hub may read.
//!
//! Sans-I/O.

use serde::{Deserialize, Serialize};
use url::Url;

use super::super::request::{Mode, SubscriptionRequest, URL_BYTES_MAX};
use super::super::signature::Secret;
use super::subscription::{Intent, Subscription};
use super::{Hub, Key, Limits, host_of};

/// The saved part of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedHub {
    /// All verified subscriptions.
    pub subscriptions: Vec<SavedSubscription>,
}

/// The saved part of a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSubscription {
    /// The topic.
    pub topic: String,
    /// The address of the subscriber.
    pub callback: Url,
    /// The host whose limits apply to the subscription, if it is not the callback's host name.
    #[serde(default)]
    pub host: Option<String>,
    /// The key of signatures.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// The consumer that subscribed, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// End of the lease, Unix milliseconds.
    pub lease_until_ms: u64,
    /// The version that the subscriber acknowledged last; `told` in files of older versions.
    #[serde(default, alias = "told")]
    pub notified: Option<String>,
}

impl Hub {
    /// Returns a hub with the saved subscriptions, as far as leases and limits allow.
    pub fn restored(limits: Limits, saved: SavedHub, now_ms: u64) -> Self {
        let mut hub = Self::new(limits);
        for one in saved.subscriptions {
            let (topic, callback) = (one.topic, one.callback);
            let key = Key::new(&topic, &callback);
            let longest_ms = now_ms.saturating_add(limits.lease_secs_max.saturating_mul(1_000));
            let fits = topic.len() <= URL_BYTES_MAX && now_ms < one.lease_until_ms;
            let host = one.host.unwrap_or_else(|| host_of(&callback));
            if !fits || hub.has_room(&key, &host, Mode::Subscribe).is_err() {
                continue;
            }
            let asked = SubscriptionRequest {
                mode: Mode::Subscribe,
                topic,
                callback,
                lease_secs: None,
                secret: one.secret,
                consumer: one.consumer,
            };
            let intent = Intent::new(asked, String::new(), host, 0, now_ms);
            let notified = one.notified.and_then(|it| it.parse().ok());
            let mut subscription = Subscription::new(intent, notified, now_ms);
            // A clock that was set back must not make a lease longer.
            subscription.lease_until_ms = one.lease_until_ms.min(longest_ms);
            hub.subscriptions.insert(key, subscription);
        }
        hub
    }

    /// Returns the part to save.
    pub fn saved(&self) -> SavedHub {
        let one = |(key, it): (&Key, &Subscription)| SavedSubscription {
            topic: key.topic.to_string(),
            callback: it.callback.clone(),
            host: Some(it.host.clone()),
            secret: it.secret.clone(),
            consumer: it.consumer.clone(),
            lease_until_ms: it.lease_until_ms,
            notified: it.notified.map(|it| it.to_string()),
        };
        SavedHub { subscriptions: self.subscriptions.iter().map(one).collect() }
    }

    /// Returns whether subscriptions were added, removed or renewed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
}
