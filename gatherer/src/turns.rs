//! Turns at hosts: several roots can be at one host, and all of them together leave it alone as long as it asks.
//!
//! Within a crawl the frontier keeps the delays. A turn is taken on top of that, for each request, by the name of
//! the host. It also keeps what is sent within a number of bytes a second, on average: after an answer, the next
//! request waits as long as the bytes of that one should have taken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::clock;
use tokio::sync::{self, OwnedMutexGuard};
use tokio::time::sleep;

use crate::lock::lock;

/// Number of hosts from which on those that may be asked again are forgotten.
const HOSTS_MAX: usize = 1_000;

/// The time from which on a host may be asked again, in Unix milliseconds; held while it is asked.
type Next = Arc<sync::Mutex<u64>>;

/// The turns of all roots.
#[derive(Debug)]
pub(crate) struct Turns {
    hosts: Mutex<HashMap<String, Next>>,
    /// The time from which on anything may be asked for, in Unix milliseconds.
    all_ms: Mutex<u64>,
    /// Maximum number of bytes a second of all hosts; `None`: any.
    bandwidth: Option<u64>,
}

/// How a host is to be asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
    /// Time from the end of a request to the next one, in milliseconds. 0: requests need not wait for each other.
    pub(crate) delay_ms: u64,
    /// Maximum number of bytes a second; `None`: any.
    pub(crate) bandwidth: Option<u64>,
}

/// A turn at a host. When it ends, however it ends, the host is left alone for the delay.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    manners: Manners,
    next: Option<OwnedMutexGuard<u64>>,
    bytes: u64,
    not_before_ms: u64,
}

impl Turns {
    pub(crate) fn new(bandwidth: Option<u64>) -> Self {
        Self { hosts: Mutex::default(), all_ms: Mutex::default(), bandwidth }
    }

    /// Waits for a turn at the host with a name.
    pub(crate) async fn take(self: Arc<Self>, host: &str, manners: Manners) -> Turn {
        let next = if manners.delay_ms == 0 && manners.bandwidth.is_none() {
            None
        } else {
            // Those who wait come in the order in which they began to.
            let next = self.host(host).lock_owned().await;
            wait_until(*next).await;
            Some(next)
        };
        if self.bandwidth.is_some() {
            let all_ms = *lock(&self.all_ms);
            wait_until(all_ms).await;
        }
        Turn { turns: self, manners, next, bytes: 0, not_before_ms: 0 }
    }

    fn host(&self, name: &str) -> Next {
        let mut hosts = lock(&self.hosts);
        if HOSTS_MAX <= hosts.len() {
            let now_ms = clock::now_ms();
            hosts.retain(|_, it| it.try_lock().map_or(true, |next| now_ms < *next));
        }
        hosts.entry(name.to_owned()).or_default().clone()
    }
}

impl Turn {
    /// Notes that an answer had `bytes` as sent, and the time before which the host wants no request, if it names
    /// one.
    pub(crate) fn note_answer(&mut self, bytes: u64, retry_at_ms: Option<u64>) {
        self.bytes += bytes;
        self.not_before_ms = retry_at_ms.unwrap_or_default();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let now_ms = clock::now_ms();
        if let Some(next) = &mut self.next {
            let wait_ms = self.manners.delay_ms.max(time_ms(self.bytes, self.manners.bandwidth));
            **next = now_ms.saturating_add(wait_ms).max(self.not_before_ms);
        }
        let all = &mut *lock(&self.turns.all_ms);
        *all = (*all).max(now_ms).saturating_add(time_ms(self.bytes, self.turns.bandwidth));
    }
}

/// Returns the time that bytes take at a number of bytes a second, in milliseconds.
fn time_ms(bytes: u64, bandwidth: Option<u64>) -> u64 {
    bandwidth.map_or(0, |it| bytes.saturating_mul(1_000) / it.max(1))
}

async fn wait_until(at_ms: u64) {
    // The clock of the day may be put forward or back meanwhile: each wait is of a part.
    while let Some(left_ms) = at_ms.checked_sub(clock::now_ms()).filter(|it| 0 < *it) {
        sleep(Duration::from_millis(left_ms.min(1_000))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYED: Manners = Manners { delay_ms: 40, bandwidth: None };

    async fn ask(turns: &Arc<Turns>, host: &str, manners: Manners, bytes: u64) -> u64 {
        let mut turn = turns.clone().take(host, manners).await;
        turn.note_answer(bytes, None);
        clock::now_ms()
    }

    #[tokio::test]
    async fn requests_of_all_roots_to_a_host_come_one_after_the_other() {
        let turns = Arc::new(Turns::new(None));
        let (one, other, third) = tokio::join!(
            ask(&turns, "h", DELAYED, 0),
            ask(&turns, "h", DELAYED, 0),
            ask(&turns, "i", DELAYED, 0),
        );
        assert!(one + 40 <= other, "{one} {other}");
        assert!(third < one + 40, "another host: {one} {third}");
        let mut turn = turns.clone().take("h", DELAYED).await;
        let until_ms = clock::now_ms() + 80;
        turn.note_answer(0, Some(until_ms));
        drop(turn);
        assert!(until_ms <= ask(&turns, "h", DELAYED, 0).await);
    }

    #[tokio::test]
    async fn bytes_are_kept_within_the_bandwidth_of_a_host_and_of_all() {
        let manners = Manners { delay_ms: 0, bandwidth: Some(10_000) };
        let turns = Arc::new(Turns::new(None));
        let began = ask(&turns, "h", manners, 500).await;
        assert!(began + 50 <= ask(&turns, "h", manners, 0).await);
        let turns = Arc::new(Turns::new(Some(10_000)));
        let began = ask(&turns, "h", Manners::default(), 500).await;
        assert!(began + 50 <= ask(&turns, "i", Manners::default(), 0).await);
    }

    #[tokio::test]
    async fn hosts_that_may_be_asked_again_are_forgotten() {
        let turns = Arc::new(Turns::new(None));
        for number in 0..HOSTS_MAX {
            let quick = Manners { delay_ms: 0, bandwidth: Some(1) };
            ask(&turns, &number.to_string(), quick, 0).await;
        }
        ask(&turns, "h", DELAYED, 0).await;
        assert!(lock(&turns.hosts).len() <= 2);
    }
}
