//! Kept control connections. When there are as many as allowed, the one that was used least
//! recently makes room.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::error::{Error, Stage};
use crate::fetch::{Login, Server};

/// The server of a connection, and who is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) server: Server,
    /// Whether TLS began with the connection.
    pub(super) is_implicit: bool,
    pub(super) login: Login,
}

/// Unused connections; clones share them.
#[derive(Debug)]
pub(super) struct Cache<T> {
    kept: Arc<Mutex<Vec<Kept<T>>>>,
    /// Number of calls that wait for room.
    waiting: Arc<AtomicUsize>,
    /// Room for connections, used and unused.
    room: Arc<Semaphore>,
    idle: Duration,
}

#[derive(Debug)]
struct Kept<T> {
    key: Key,
    used: Instant,
    connection: T,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        let (kept, room) = (Arc::clone(&self.kept), Arc::clone(&self.room));
        Self { kept, waiting: Arc::clone(&self.waiting), room, idle: self.idle }
    }
}

impl<T> Cache<T> {
    /// Returns a cache that has room for `connections_max` connections, and keeps unused ones for
    /// `idle`.
    pub(super) fn new(connections_max: usize, idle: Duration) -> Self {
        let room = Arc::new(Semaphore::new(connections_max.max(1)));
        Self { kept: Arc::default(), waiting: Arc::default(), room, idle }
    }

    /// Takes the connection of `key` that was used last, if there is one.
    pub(super) fn take(&self, key: &Key) -> Option<T> {
        let mut kept = self.kept();
        let at = kept.iter().rposition(|it| it.key == *key)?;
        Some(kept.remove(at).connection)
    }

    /// Keeps a connection, unless somebody waits for its room.
    pub(super) fn keep(&self, key: Key, connection: T, used: Instant) {
        let mut kept = self.kept();
        if self.waiting.load(Ordering::Relaxed) == 0 {
            kept.push(Kept { key, used, connection });
        }
    }

    /// Returns room for a new connection; the connection holds it. If there is none, the unused
    /// connection that was used least recently is closed; if all are used, one is waited for.
    ///
    /// # Errors
    ///
    /// [`Error::Timeout`] after `patience`.
    pub(super) async fn permit(
        &self,
        server: &Server,
        patience: Duration,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let _waiting = {
            let mut kept = self.kept();
            if self.room.available_permits() == 0 && !kept.is_empty() {
                kept.remove(0);
            }
            Waiting::begin(&self.waiting)
        };
        match timeout(patience, Arc::clone(&self.room).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                let host = format!("{}:{}", server.host, server.port);
                Err(Error::Timeout { host, stage: Stage::Queue, after: patience })
            }
        }
    }

    /// Returns the unused connections, the one that was used last at the end; those that are too
    /// old are closed.
    fn kept(&self) -> MutexGuard<'_, Vec<Kept<T>>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|it| now.duration_since(it.used) < self.idle);
        kept
    }
}

/// A call that waits for room.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use url::Host;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    fn key(name: &str) -> Key {
        let server = Server { host: Host::Domain("h".to_owned()), port: 21 };
        let login = Login { name: name.to_owned(), password: String::new() };
        Key { server, is_implicit: false, login }
    }

    /// Opens and keeps a connection of `name`.
    async fn keep(cache: &Cache<OwnedSemaphorePermit>, name: &str) {
        let permit = cache.permit(&key(name).server, LONG).await.unwrap();
        cache.keep(key(name), permit, Instant::now());
    }

    #[tokio::test]
    async fn the_least_recently_used_makes_room() {
        let cache = Cache::new(2, LONG);
        keep(&cache, "a").await;
        keep(&cache, "b").await;
        let a = cache.take(&key("a")).unwrap();
        cache.keep(key("a"), a, Instant::now());
        keep(&cache, "c").await;
        assert!(cache.take(&key("b")).is_none());
        let used = [cache.take(&key("a")).unwrap(), cache.take(&key("c")).unwrap()];
        let none = cache.permit(&key("d").server, Duration::ZERO).await.unwrap_err();
        assert!(matches!(none, Error::Timeout { stage: Stage::Queue, .. }), "{none}");
        drop(used);
        keep(&cache, "d").await;
    }

    #[tokio::test]
    async fn a_connection_that_is_given_back_makes_room_for_who_waits() {
        let cache = Cache::new(1, LONG);
        keep(&cache, "a").await;
        let used = cache.take(&key("a")).unwrap();
        let other = cache.clone();
        let mut waits = Box::pin(async move { keep(&other, "b").await });
        assert!(timeout(Duration::ZERO, &mut waits).await.is_err());
        cache.keep(key("a"), used, Instant::now());
        waits.await;
        assert!(cache.take(&key("b")).is_some());
    }

    #[tokio::test]
    async fn old_connections_are_closed() {
        let cache = Cache::new(1, Duration::ZERO);
        keep(&cache, "a").await;
        assert!(cache.take(&key("a")).is_none());
        keep(&cache, "b").await;
    }
}
