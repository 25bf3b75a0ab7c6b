//! What a hub takes on, and what it counts.
//!
//! Sans-I/O.

use super::super::request::Content;

/// What a hub takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most subscriptions. Default 1,000.
    pub subscriptions_max: usize,
    /// Most of them whose callbacks are on one host. Default 100.
    pub per_host_max: usize,
    /// Most requests whose intent is still to be verified, besides those that renew a subscription or end
    /// one. Default 100.
    pub intents_max: usize,
    /// Most of them whose callbacks are on one host. Default 25.
    pub intents_per_host_max: usize,
    /// Most requests a minute to verify with one host, besides those of who is subscribed. Default 60.
    pub intents_per_host_per_minute_max: u32,
    /// Most requests of the hub's own under way; half of them may be verifications. Default 32.
    pub requests_max: usize,
    /// Most of them to one host; half of them may be verifications. Default 4.
    pub requests_per_host_max: usize,
    /// Shortest lease, seconds. Default a minute.
    pub lease_secs_min: u64,
    /// Lease of who asks for none, seconds. Default a day.
    pub lease_secs_default: u64,
    /// Longest lease, seconds. Default 10 days.
    pub lease_secs_max: u64,
    /// Longest lease of who is sent what has changed, seconds. Default a day.
    pub lease_secs_fat_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            subscriptions_max: 1_000,
            per_host_max: 100,
            intents_max: 100,
            intents_per_host_max: 25,
            intents_per_host_per_minute_max: 60,
            requests_max: 32,
            requests_per_host_max: 4,
            lease_secs_min: 60,
            lease_secs_default: 86_400,
            lease_secs_max: 10 * 86_400,
            lease_secs_fat_max: 86_400,
        }
    }
}

impl Limits {
    /// Longest lease of who is sent that, in seconds.
    pub(super) fn longest_secs(&self, content: Content) -> u64 {
        match content {
            Content::Thin => self.lease_secs_max,
            Content::Fat => self.lease_secs_max.min(self.lease_secs_fat_max),
        }
    }
}

/// What a hub has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests by subscribers.
    pub requests: u64,
    /// Of those, refused for what they ask or for what there is already.
    pub refused: u64,
    /// Subscriptions and their ends that were verified.
    pub verified: u64,
    /// Those that were not.
    pub unverified: u64,
    /// Subscriptions whose lease ended, and those whose subscribers answered nothing for too long.
    pub expired: u64,
    /// Changes of topics that somebody had subscribed to.
    pub changes: u64,
    /// Notifications that were put into one with a later one.
    pub coalesced: u64,
    /// Notifications acknowledged.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Notifications given up.
    pub given_up: u64,
}
