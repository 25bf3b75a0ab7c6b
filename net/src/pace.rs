//! Requests to one host, one after the other, whatever protocol they are of: roots and sources share hosts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Queue, OwnedMutexGuard};
use tokio::time::sleep;

use crate::clock;

/// So many hosts are remembered before those are forgotten that may be asked at once.
const HOSTS_MANY: usize = 1_024;

/// When a host may be asked next. Whoever has the lock has the turn.
type Host = Arc<Queue<Instant>>;

/// When each host may be asked next. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    hosts: Arc<Mutex<HashMap<String, Host>>>,
}

/// A turn at a host: nobody else has one until this is dropped, and for its delay after that.
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
    /// Waits for a turn at a host, in the order in which turns were asked for; once it is dropped the host is
    /// left alone for `delay`. If this is given up before, it is as if nobody had asked.
    pub async fn turn(&self, host: &str, delay: Duration) -> Turn {
        let next = self.host(host).lock_owned().await;
        let wait = next.saturating_duration_since(clock::monotonic());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Turn { next, delay }
    }

    fn host(&self, name: &str) -> Host {
        let now = clock::monotonic();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if HOSTS_MANY <= hosts.len() {
            // One that somebody waits for is locked, or has its turn before it.
            let is_free = |it: &Host| {
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

    /// The turn, if there is one now.
    async fn now(hosts: &Hosts, host: &str, delay: Duration) -> Option<Turn> {
        let mut turn = pin!(unconstrained(hosts.turn(host, delay)));
        poll_fn(|context| match turn.as_mut().poll(context) {
            Poll::Ready(turn) => Poll::Ready(Some(turn)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn turns_at_a_host_are_apart_whoever_takes_them() {
        let hosts = Hosts::default();
        let other = hosts.clone();
        let first = now(&hosts, "a", Duration::ZERO).await.unwrap();
        assert!(now(&other, "a", LONG).await.is_none(), "one at a time");
        assert!(now(&other, "b", LONG).await.is_some());
        drop(first);
        // Who has given up before takes no turn.
        let second = now(&other, "a", LONG).await.unwrap();
        let before = clock::monotonic();
        drop(second);
        assert!(now(&hosts, "a", LONG).await.is_none());
        // The pause is counted from the turn's end.
        assert!(before + LONG <= *hosts.host("a").try_lock().unwrap());
    }

    #[tokio::test]
    async fn no_more_hosts_are_remembered_than_may_not_be_asked() {
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
