//! What is asked for: a client's request, as it is answered and as it is passed on.
//!
//! Sans-I/O.

use http::{HeaderMap, HeaderValue, Method, header};

use crate::policy::control::RequestControl;
use crate::policy::freshness::Rules;
use crate::policy::hops;
use crate::policy::storing::Ask;
use crate::target;

/// Headers by which a client wants a part, or makes conditions of its own.
pub(crate) const CONDITIONS: [header::HeaderName; 6] = [
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
    /// Headers for the origin.
    pub(crate) outgoing: HeaderMap,
    pub(crate) rules: Rules,
}

impl Asked {
    /// Returns the request, as far as the policy looks at it.
    pub(crate) fn ask(&self) -> Ask<'_> {
        Ask { method: &self.method, headers: &self.headers }
    }

    /// Returns whether the answer to somebody else's request may be an answer to this one.
    pub(crate) fn may_join(&self) -> bool {
        let control = RequestControl::of(&self.headers);
        let is_fussy = control.no_cache || control.no_store || control.max_age == Some(0);
        let mut own = CONDITIONS.iter().skip(1).chain(&[header::AUTHORIZATION]);
        !is_fussy && !own.any(|it| self.headers.contains_key(it))
    }
}

/// Returns the headers with which a request is passed on by the cache `name`.
pub(crate) fn outgoing(headers: &HeaderMap, name: &str) -> HeaderMap {
    let mut outgoing = headers.clone();
    hops::remove(&mut outgoing);
    for name in [header::PROXY_AUTHORIZATION, header::EXPECT, header::HOST] {
        outgoing.remove(name);
    }
    if let Ok(via) = HeaderValue::try_from(format!("1.1 {name}")) {
        outgoing.append(header::VIA, via);
    }
    outgoing
}
