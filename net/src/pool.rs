//! Kept connections for later requests to the same destination.
//!
//! Their number is limited for each destination and in total. The newest connection is taken first,
//! since the peer is least likely to have closed that one.
//!
//! Sans-I/O.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::proxy::Proxy;
use crate::guard::Policy;
use crate::tls::ClientFiles;

/// Maximum number of connections kept in total.
const KEPT_MAX: usize = 256;

/// The destination of a connection. The policy is part of it: a connection that an administrator's
/// URL opened into a private network must not carry a stranger's request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Destination {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) allow_private: bool,
    /// The certificate shown to the host; a request without it must not use this connection.
    pub(crate) shown: Option<Arc<ClientFiles>>,
    /// The proxy in between, with our credentials there: a tunnel through it leads to one host. A
    /// connection that ends at it has no host, and carries requests for any.
    proxy: Option<Proxy>,
}

impl Destination {
    pub(crate) fn new(
        secure: bool,
        host: String,
        port: u16,
        policy: Policy,
        shown: Option<Arc<ClientFiles>>,
    ) -> Self {
        Self {
            secure,
            host,
            port,
            allow_private: policy == Policy::AllowPrivate,
            shown,
            proxy: None,
        }
    }

    /// Returns the destination of a tunnel through `proxy` to this one.
    pub(crate) fn through(self, proxy: Proxy) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// Returns the destination of a connection to a proxy that resolves hosts itself. Each request
    /// over it is vetted by the name of its host, before a connection is taken.
    pub(crate) fn of_proxy(proxy: Proxy) -> Self {
        let plain = Self::new(proxy.is_secure(), String::new(), 0, Policy::AllowPrivate, None);
        plain.through(proxy)
    }
}

/// Unused connections.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    kept: BTreeMap<Destination, Vec<(Instant, T)>>,
    per_destination_max: usize,
    age_max: Duration,
}

impl<T> Pool<T> {
    pub(crate) fn new(per_destination_max: usize, age_max: Duration) -> Self {
        Self { kept: BTreeMap::new(), per_destination_max, age_max }
    }

    /// Takes a connection to `destination` that is not too old, if there is one.
    pub(crate) fn take(&mut self, destination: &Destination, now: Instant) -> Option<T> {
        self.expire(now);
        let connections = self.kept.get_mut(destination)?;
        let newest = connections.pop().map(|(_, connection)| connection);
        if connections.is_empty() {
            self.kept.remove(destination);
        }
        newest
    }

    /// Keeps a connection. Beyond the limit of its destination the oldest is dropped, beyond the
    /// total limit this one.
    pub(crate) fn keep(&mut self, destination: Destination, connection: T, now: Instant) {
        self.expire(now);
        if self.kept.values().map(Vec::len).sum::<usize>() >= KEPT_MAX {
            return;
        }
        let connections = self.kept.entry(destination).or_default();
        connections.push((now, connection));
        if self.per_destination_max < connections.len() {
            connections.remove(0);
        }
    }

    fn expire(&mut self, now: Instant) {
        let age_max = self.age_max;
        self.kept.retain(|_, connections| {
            connections.retain(|(since, _)| now.saturating_duration_since(*since) < age_max);
            !connections.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;
    use crate::fetch::Login;

    const AGE: Duration = Duration::from_secs(20);

    fn destination(host: &str, policy: Policy) -> Destination {
        Destination::new(false, host.to_owned(), 80, policy, None)
    }

    #[test]
    fn gives_the_newest_of_one_destination_until_it_is_too_old() {
        let now = monotonic();
        let mut pool = Pool::new(2, AGE);
        let (a, b) = (destination("a", Policy::Public), destination("b", Policy::Public));
        for n in 1..=3 {
            pool.keep(a.clone(), n, now + Duration::from_secs(n));
        }
        assert_eq!(pool.take(&b, now), None);
        assert_eq!(pool.take(&destination("a", Policy::AllowPrivate), now), None);
        assert_eq!(pool.take(&a, now + Duration::from_secs(4)), Some(3));
        assert_eq!(pool.take(&a, now + Duration::from_secs(2) + AGE), None);
    }

    #[test]
    fn connections_are_shared_neither_with_other_proxies_nor_with_none() {
        let now = monotonic();
        let mut pool = Pool::new(4, AGE);
        let proxy = |url: &str, name: Option<&str>| {
            let login = name.map(|name| Login { name: name.to_owned(), password: "p".to_owned() });
            Proxy::new(url::Url::parse(url).unwrap(), login.as_ref()).unwrap()
        };
        let one = proxy("https://a/", Some("u"));
        let all = [
            destination("a", Policy::AllowPrivate),
            destination("a", Policy::AllowPrivate).through(one.clone()),
            destination("b", Policy::AllowPrivate).through(one.clone()),
            destination("a", Policy::AllowPrivate).through(proxy("https://a/", None)),
            destination("a", Policy::AllowPrivate).through(proxy("https://a:1/", Some("u"))),
            Destination::of_proxy(one),
            Destination::of_proxy(proxy("https://a/", Some("v"))),
            Destination::of_proxy(proxy("http://a/", Some("u"))),
        ];
        for (n, it) in all.iter().enumerate() {
            pool.keep(it.clone(), n, now);
        }
        for (n, it) in all.iter().enumerate() {
            assert_eq!((pool.take(it, now), pool.take(it, now)), (Some(n), None));
        }
    }

    #[test]
    fn keeps_no_more_than_its_bounds() {
        let now = monotonic();
        let mut pool = Pool::new(1, AGE);
        for n in 0..2 * KEPT_MAX {
            pool.keep(destination(&n.to_string(), Policy::Public), n, now);
        }
        assert_eq!(pool.kept.len(), KEPT_MAX);
        pool.keep(destination("0", Policy::Public), 0, now + AGE);
        assert_eq!(pool.kept.len(), 1);
    }
}
