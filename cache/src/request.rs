//! A request of a client, as it is answered and as it is passed on.
//!
//! Sans-I/O.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use net::fetch::{Login, escaped};

use crate::policy::control::RequestControl;
use crate::policy::freshness::Rules;
use crate::policy::hops;
use crate::policy::range;
use crate::policy::storing::Ask;
use crate::target::{self, Scheme};

/// Headers by which a client wants a part, or makes conditions of its own.
pub(crate) const CONDITIONS: [HeaderName; 6] = [
    header::RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
];

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) object: target::Object,
    /// Headers, as the client sent them.
    pub(crate) headers: HeaderMap,
    /// The cache's name in `Via`.
    pub(crate) name: Arc<str>,
    /// The client.
    pub(crate) client: IpAddr,
    pub(crate) rules: Rules,
    /// Whether it is fetched for this client alone, whoever else asks for it.
    pub(crate) is_alone: bool,
}

impl Asked {
    /// Makes name and password of an `ftp` URL credentials of the request, so that its answer is for one
    /// user alone, and each user's objects have other URLs than everybody's.
    #[must_use]
    pub(crate) fn identified(mut self) -> Self {
        let Some(scheme) = Scheme::of(&self.object.url) else { return self };
        let shown = self.headers.remove(header::AUTHORIZATION);
        let login = self.object.login.take().map(|it| *it);
        let login = login.or_else(|| Login::of_basic(shown?.as_bytes()));
        let Some(login) = login.filter(|_| scheme == Scheme::Ftp) else { return self };
        if let Ok(mut value) = HeaderValue::try_from(login.basic())
            && self.object.url.set_username(&escaped(login.name.as_bytes())).is_ok()
        {
            value.set_sensitive(true);
            self.headers.insert(header::AUTHORIZATION, value);
        }
        self
    }

    /// Returns the request, as far as the policy looks at it.
    pub(crate) fn ask(&self) -> Ask<'_> {
        Ask { method: &self.method, headers: &self.headers }
    }

    /// Returns whether the answer to somebody else's request may be an answer to this one.
    pub(crate) fn may_join(&self) -> bool {
        let control = RequestControl::of(&self.headers);
        let is_fussy = control.no_cache || control.no_store || control.max_age == Some(0);
        let mut own = CONDITIONS.iter().skip(1).chain(&[header::AUTHORIZATION]);
        !self.is_alone && !is_fussy && !own.any(|it| self.headers.contains_key(it))
    }

    /// Returns the request for the object itself: with nobody's credentials, and without what its client wishes
    /// or forbids, since its answer is for all.
    #[must_use]
    pub(crate) fn for_all(mut self) -> Self {
        self.method = Method::GET;
        let own = [header::AUTHORIZATION, header::COOKIE, header::CACHE_CONTROL, header::PRAGMA];
        for name in own.iter().chain(&CONDITIONS) {
            self.headers.remove(name);
        }
        self
    }

    /// Returns the headers with which it is passed on. A site behind is told who asks, and under which
    /// name.
    pub(crate) fn outgoing(&self) -> HeaderMap {
        let mut outgoing = self.headers.clone();
        hops::remove(&mut outgoing);
        outgoing.remove(header::PROXY_AUTHORIZATION);
        outgoing.remove(header::EXPECT);
        // The whole costs its origin less than many parts, and the answer is cut here.
        if outgoing.contains_key(header::RANGE) && !range::is_passed_on(&outgoing) {
            outgoing.remove(header::RANGE);
            outgoing.remove(header::IF_RANGE);
        }
        let mut append = |name: HeaderName, text: String| {
            if let Ok(value) = HeaderValue::try_from(text) {
                outgoing.append(name, value);
            }
        };
        append(header::VIA, format!("1.1 {}", self.name));
        if self.object.is_before_origin() {
            append(HeaderName::from_static("x-forwarded-for"), self.client.to_string());
        } else {
            outgoing.remove(header::HOST);
        }
        outgoing
    }
}
