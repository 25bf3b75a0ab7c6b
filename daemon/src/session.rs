//! The session of the browser that a daemon's user has opened: a cookie, given by a one-time link.
//!
//! Source: RFC 6265 §4.1.2 and §8.5, draft-ietf-httpbis-rfc6265bis (SameSite), RFC 6454 §7
//! (Origin). Cookies do not keep the ports of a host apart: a browser also sends them to other
//! servers of this machine, which may be another user's. So a cookie alone proves nothing about the
//! user of a request; see `gatherer/src/serve/open/neighbor.rs`.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::{COOKIE, ORIGIN};
use http::{HeaderMap, HeaderValue};
use net::identity;
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::Error;

/// How long a one-time link is valid: a browser may have to start.
const LINK_LIFE: Duration = Duration::from_secs(60);

/// Maximum number of links that are valid at once; the oldest end first.
const LINKS_MAX: usize = 16;

/// The session of one process. It ends with the process, or with the browser.
pub struct Session {
    /// The cookie's name: one for each port, as the host's cookies are common to all ports.
    name: String,
    secret: String,
    /// The origin of the page that may act.
    origin: String,
    links: Mutex<VecDeque<(String, Instant)>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Session {
    /// Returns a session for requests from `page`.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(page: &Url) -> Result<Self, Error> {
        Ok(Self {
            name: format!("harvest-{}", page.port_or_known_default().unwrap_or_default()),
            secret: secret()?,
            origin: page.origin().ascii_serialization(),
            links: Mutex::default(),
        })
    }

    /// Returns the key of a new link, valid once and for a minute from `now` on.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn add_link(&self, now: Instant) -> Result<String, Error> {
        let key = secret()?;
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.truncate(LINKS_MAX - 1);
        links.push_front((key.clone(), now + LINK_LIFE));
        Ok(key)
    }

    /// Uses up the link with this key; returns the value of `Set-Cookie`, or `None` if the link is
    /// not valid at `now`.
    pub fn redeem(&self, key: &str, now: Instant) -> Option<HeaderValue> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|(_, end)| now < *end);
        let at = links.iter().position(|(it, _)| it.as_bytes().ct_eq(key.as_bytes()).into())?;
        links.remove(at)?;
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.name, self.secret);
        let mut value = HeaderValue::try_from(cookie).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Returns whether a request has the session's cookie. The time does not depend on the position
    /// at which a wrong one differs.
    pub fn has(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut cookies = lines.flat_map(|it| it.split(';')).filter_map(|it| it.split_once('='));
        cookies.any(|(name, value)| {
            name.trim() == self.name && value.trim().as_bytes().ct_eq(self.secret.as_bytes()).into()
        })
    }

    /// Returns whether a request comes from the session's page, as its browser says. Requests
    /// without exactly one `Origin` do not.
    pub fn is_from_page(&self, headers: &HeaderMap) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = (origins.next(), origins.next());
        matches!(origin, (Some(origin), None) if origin.as_bytes() == self.origin.as_bytes())
    }
}

fn secret() -> Result<String, Error> {
    Ok(identity::random_secret()?.iter().map(|it| format!("{it:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use net::clock;

    use super::*;

    fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_link_gives_the_cookie_once() {
        let page = Url::parse("http://127.0.0.1:8501/").unwrap();
        let (session, now) = (Session::new(&page).unwrap(), clock::monotonic());
        let key = session.add_link(now).unwrap();
        assert!(session.redeem("", now).is_none() && session.redeem(&key[1..], now).is_none());
        let set = session.redeem(&key, now).unwrap();
        let set = set.to_str().unwrap();
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
        assert!(session.redeem(&key, now).is_none(), "only once");
        let late = session.add_link(now).unwrap();
        assert!(session.redeem(&late, now + LINK_LIFE).is_none(), "only for a minute");
        let cookie = set.split(';').next().unwrap();
        assert!(cookie.starts_with("harvest-8501=") && session.has(&headers(&[(COOKIE, cookie)])));
        let among = format!("a=b; {cookie};c=d");
        assert!(session.has(&headers(&[(COOKIE, "x=y"), (COOKIE, &among)])));
        let other = Session::new(&page).unwrap();
        for wrong in ["harvest-8501=", &cookie[..cookie.len() - 1], &cookie.replace("8501", "8502")]
        {
            assert!(!session.has(&headers(&[(COOKIE, wrong)])), "{wrong}");
        }
        assert!(!other.has(&headers(&[(COOKIE, cookie)])), "of another process");
        assert!(!format!("{session:?}").contains(&session.secret));
    }

    #[test]
    fn only_few_links_are_valid_at_once() {
        let page = Url::parse("http://127.0.0.1:8501/").unwrap();
        let (session, now) = (Session::new(&page).unwrap(), clock::monotonic());
        let keys: Vec<String> = (0..=LINKS_MAX).map(|_| session.add_link(now).unwrap()).collect();
        assert!(session.redeem(&keys[0], now).is_none());
        assert!(keys[1..].iter().all(|it| session.redeem(it, now).is_some()));
    }

    #[test]
    fn only_the_page_acts() {
        let page = Url::parse("http://127.0.0.1:8501/?q=x").unwrap();
        let session = Session::new(&page).unwrap();
        let check = |origins: &[&str], expected: bool| {
            let pairs: Vec<_> = origins.iter().map(|it| (ORIGIN, *it)).collect();
            assert_eq!(session.is_from_page(&headers(&pairs)), expected, "{origins:?}");
        };
        check(&["http://127.0.0.1:8501"], true);
        check(&[], false);
        check(&["null"], false);
        check(&["http://127.0.0.1:8502"], false);
        check(&["https://127.0.0.1:8501"], false);
        check(&["http://127.0.0.1:8501.example.org"], false);
        check(&["http://127.0.0.1:8501", "http://127.0.0.1:8501"], false);
    }
}
