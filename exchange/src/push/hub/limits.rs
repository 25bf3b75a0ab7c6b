//! Limits and counters of a hub.
//!
//! Sans-I/O.

/// Limits of a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of subscriptions.
    pub subscriptions_max: usize,
    /// Maximum number of subscriptions whose callbacks are on one host.
    pub per_host_max: usize,
    /// Maximum number of pending verifications, without those of existing subscriptions.
    pub intents_max: usize,
    /// Maximum number of pending verifications whose callbacks are on one host, without those of
    /// existing subscriptions.
    pub intents_per_host_max: usize,
    /// Maximum number of requests in a minute that cause a verification at one host, without those
    /// of known subscribers.
    pub intents_per_host_per_minute_max: u32,
    /// Maximum number of requests by the hub under way; half of them may verify or deny.
    pub requests_max: usize,
    /// Maximum number of requests by the hub to one host at once; half of them may verify or deny.
    pub requests_per_host_max: usize,
    /// Shortest lease, seconds.
    pub lease_secs_min: u64,
    /// Lease if the request has none, seconds.
    pub lease_secs_default: u64,
    /// Longest lease, seconds.
    pub lease_secs_max: u64,
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
        }
    }
}

/// Counters of a hub since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were refused.
    pub refused: u64,
    /// Verified subscriptions and ends of subscriptions.
    pub verified: u64,
    /// Requests that were not verified.
    pub unverified: u64,
    /// Subscriptions that ended with their lease, or because their subscriber was silent for too
    /// long.
    pub expired: u64,
    /// Notifications that were merged with a later one.
    pub coalesced: u64,
    /// Notifications acknowledged.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Notifications given up.
    pub given_up: u64,
}
