//! Pacing of requests to each host, one request at a time, for all protocols, since several roots
//! and sources may be at one host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use tokio::time::sleep;

use crate::clock;

/// Number of remembered hosts from which on those that need not wait are forgotten.
const HOSTS_MANY: usize = 1_024;

/// The time from which a host may be sent a request again. The holder of the lock has the turn.
type HostQueue = Arc<Queue<Instant>>;

/// The time from which each host may be sent a request again. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    hosts: Arc<Mutex<HashMap<String, HostQueue>>>,
}

/// A turn at a host. Nobody else gets a turn until this one is dropped and its delay has passed.
#[derive(Debug)]
pub struct Turn {
    next: OwnedMutexGuard<Instant>,
    delay: Duration,
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.next = clock::monotonic() + self.delay;
    }
}

impl Hosts {
    /// Waits for a turn at a host, in the order of the calls. After the turn is dropped, the host
    /// is left alone for `delay`. A call that is canceled before its turn has no effect.
    pub async fn turn(&self, host: &str, delay: Duration) -> Turn {
        let next = self.host(host).lock_owned().await;
        let wait = next.saturating_duration_since(clock::monotonic());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Turn { next, delay }
    }

    fn host(&self, name: &str) -> HostQueue {
        let now = clock::monotonic();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if HOSTS_MANY <= hosts.len() {
            // A host that somebody waits for is locked, or its turn is still to come.
            let is_free = |it: &HostQueue| {
                Arc::strong_count(it) == 1 && it.try_lock().is_ok_and(|next| *next <= now)
            };
            hosts.retain(|_, it| !is_free(it));
        }
        let host = hosts.entry(name.to_owned());
        host.or_insert_with(|| Arc::new(Queue::new(now))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use tokio::task::unconstrained;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// Returns the turn if it comes at once; `None` otherwise.
    async fn now(hosts: &Hosts, host: &str, delay: Duration) -> Option<Turn> {
        let mut turn = pin!(unconstrained(hosts.turn(host, delay)));
        poll_fn(|context| match turn.as_mut().poll(context) {
            Poll::Ready(turn) => Poll::Ready(Some(turn)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn turns_at_a_host_are_apart_for_all_clones() {
        let hosts = Hosts::default();
        let other = hosts.clone();
        let first = now(&hosts, "a", Duration::ZERO).await.unwrap();
        assert!(now(&other, "a", LONG).await.is_none(), "one at a time");
        assert!(now(&other, "b", LONG).await.is_some());
        drop(first);
        // The canceled call took no turn.
        let second = now(&other, "a", LONG).await.unwrap();
        let before = clock::monotonic();
        drop(second);
        assert!(now(&hosts, "a", LONG).await.is_none());
        // The pause is counted from the turn's end.
        assert!(before + LONG <= *hosts.host("a").try_lock().unwrap());
    }

    #[tokio::test]
    async fn only_hosts_that_must_wait_are_remembered() {
        let hosts = Hosts::default();
        let kept = now(&hosts, "kept", Duration::ZERO).await.unwrap();
        drop(now(&hosts, "resting", LONG).await.unwrap());
        for n in 0..5_000_u32 {
            drop(now(&hosts, &n.to_string(), Duration::ZERO).await.unwrap());
        }
        assert!(hosts.hosts.lock().unwrap().len() <= HOSTS_MANY);
        assert!(now(&hosts, "kept", LONG).await.is_none());
        assert!(now(&hosts, "resting", LONG).await.is_none());
        drop(kept);
    }
}
