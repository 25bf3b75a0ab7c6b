//! The gate: the access check in front of everything that a daemon offers to others.
//!
//! The gate decides by [`access`](crate::access), answers refused clients, and counts requests by
//! consumer. A token may also be sent as a password (RFC 7617), as browsers and many harvesters of
//! OAI-PMH do, but only to read, since a browser also sends passwords with requests that foreign
//! pages cause.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use net::server::Peer;
use net::tls::ClientCertificate;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Requester, Resource, Verdict};
use crate::credentials::{bearer, password};
use crate::metrics::Sample;

/// The challenge to unknown clients.
const CHALLENGE: &str =
    r#"Bearer, Basic realm="a token of this server, with any name", charset="UTF-8""#;

/// Counts of one consumer's requests. Unknown clients are counted as `unknown`, those from
/// addresses that are not allowed as `address`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visits {
    /// Allowed requests for resources that only known consumers may have.
    pub allowed: u64,
    /// Refused requests.
    pub refused: u64,
}

/// The name of the consumer that makes a request: an extension of the request, if known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor(pub String);

/// The view to which the client of a request is limited: an extension of the request. Without it, it is not limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit(pub String);

/// The gate of a daemon. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    access: RwLock<Arc<Access>>,
    /// The counts, by name of the consumer; the number of consumers is limited.
    visits: Mutex<BTreeMap<String, Visits>>,
}

impl Gate {
    /// Returns a gate that decides by `access`.
    pub fn new(access: Access) -> Self {
        let gate = Self::default();
        gate.set(access);
        gate
    }

    /// Puts other settings in force, and logs each resource that they open to everybody.
    pub fn set(&self, access: Access) {
        let mut current = self.0.access.write().unwrap_or_else(PoisonError::into_inner);
        for resource in access.opened_since(&current) {
            let resource = resource.name();
            tracing::warn!(
                resource,
                "everybody may have this now: no consumer is listed for it any more"
            );
        }
        *current = Arc::new(access);
    }

    /// Returns whether the consumer of that name may have `resource`; `None` is an unknown client.
    /// Addresses are not considered.
    pub(crate) fn may(&self, consumer: Option<&str>, resource: Resource) -> bool {
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner);
        access.is_free(resource)
            || access.consumers.iter().any(|it| {
                consumer.is_some_and(|name| it.name == name) && it.may.contains(&resource)
            })
    }

    /// Returns the counts of requests, by consumer.
    pub fn visits(&self) -> BTreeMap<String, Visits> {
        self.0.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the gate in front of `router`.
    pub fn before(&self, router: Router) -> Router {
        router.layer(axum::middleware::from_fn_with_state(self.clone(), pass))
    }

    fn is_for_some(&self, path: &str) -> bool {
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner);
        Resource::at(path).is_some_and(|it| access.is_for_some(it))
    }

    /// Judges a request: returns its consumer if that is known and the view to which it is limited, or the answer if
    /// the request is refused.
    fn judge(&self, request: &Request) -> Result<(Option<Visitor>, Option<Limit>), Box<Response>> {
        let Some(resource) = Resource::at(request.uri().path()) else { return Ok((None, None)) };
        let access = Arc::clone(&self.0.access.read().unwrap_or_else(PoisonError::into_inner));
        let (headers, extensions) = (request.headers(), request.extensions());
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let password = reads.then(|| password(headers)).flatten();
        // Requests made within this process have no address and count as from this machine.
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let requester = Requester {
            address: extensions.get().map_or(here, |Peer(address)| *address),
            token: bearer(headers).or(password.as_deref()),
            shown: extensions.get::<ClientCertificate>(),
        };
        let verdict = access.judge(resource, &requester);
        let limit = access.view(verdict, resource, &requester).map(|it| Limit(it.to_owned()));
        let name = |at: usize| access.consumers.get(at).map(|it| it.name.as_str());
        let (who, refusal) = match verdict {
            Verdict::Free => {
                let known = access.known(&requester).next();
                return Ok((known.map(|(_, it)| Visitor(it.name.clone())), limit));
            }
            Verdict::Known(at) => (name(at), None),
            Verdict::Address => {
                (Some("address"), Some(forbidden("your address is not allowed here")))
            }
            Verdict::Unknown => (Some("unknown"), Some(unknown(resource))),
            Verdict::Lacking(at) => {
                let named = name(at).unwrap_or_default();
                let message = format!("{named:?} may not have {:?} here", resource.name());
                (name(at), Some(forbidden(&message)))
            }
        };
        let who = who.unwrap_or_default().to_owned();
        let mut visits = self.0.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let visits = visits.entry(who.clone()).or_default();
        match refusal {
            None => {
                visits.allowed += 1;
                Ok((Some(Visitor(who)), limit))
            }
            Some(refusal) => {
                visits.refused += 1;
                Err(Box::new(refusal))
            }
        }
    }
}

/// Keeps shared caches from giving restricted answers to other clients: RFC 9111 §3.5.
fn keep_private(response: &mut Response) {
    let value = response.headers().get(CACHE_CONTROL).and_then(|it| it.to_str().ok());
    let kept = value.unwrap_or_default().replace("public", "private");
    let kept = if kept.is_empty() { "private".to_owned() } else { kept };
    let is_private = ["private", "no-store"].iter().any(|it| kept.contains(it));
    let kept = if is_private { kept } else { format!("private, {kept}") };
    // The value was valid before a word was changed.
    if let Ok(kept) = HeaderValue::try_from(kept) {
        response.headers_mut().insert(CACHE_CONTROL, kept);
    }
}

/// Returns the samples of a gate's counts.
pub fn samples(visits: &BTreeMap<String, Visits>) -> impl Iterator<Item = Sample> + '_ {
    let help = "Requests for resources of known consumers, and requests refused by address.";
    visits.iter().flat_map(move |(name, visits)| {
        [("allowed", visits.allowed), ("refused", visits.refused)].map(|(outcome, count)| {
            Sample::counter("harvest_access_requests_total", help, count as f64)
                .with("consumer", name.as_str())
                .with("outcome", outcome)
        })
    })
}

async fn pass(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    match gate.judge(&request) {
        Ok((visitor, limit)) => {
            let known = request.extensions_mut();
            drop(visitor.map(|it| known.insert(it)));
            drop(limit.map(|it| known.insert(it)));
            let is_private = gate.is_for_some(request.uri().path());
            let mut response = next.run(request).await;
            if is_private {
                keep_private(&mut response);
            }
            response
        }
        Err(refusal) => *refusal,
    }
}

fn unknown(resource: Resource) -> Response {
    let message = format!(
        "{:?} needs a token that this server's administrator gives: as `Authorization: Bearer TOKEN`, or in a \
         browser as the password, with any name",
        resource.name()
    );
    let mut response = refused(StatusCode::UNAUTHORIZED, &message);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
    response
}

fn forbidden(message: &str) -> Response {
    refused(StatusCode::FORBIDDEN, &format!("{message}; ask this server's administrator"))
}

fn refused(status: StatusCode, message: &str) -> Response {
    let body = axum::Json(serde_json::json!({ "error": { "message": message } }));
    let fresh = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, fresh, body).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http::header::AUTHORIZATION;
    use settings::Document;
    use tower::ServiceExt as _;

    use super::*;

    fn access(text: &str) -> Access {
        let document = Document::parse(text).unwrap();
        let access = Access::read(&document.root(), false);
        document.finish().unwrap();
        access
    }

    #[tokio::test]
    async fn known_consumers_pass_and_others_learn_why_not() {
        let gate = Gate::new(access(
            "[access]\ndeny = ['192.0.2.7']\n\
             [[consumer]]\nname = 'union'\ntoken = 'aaaaaaaaaaaaaaaa'\nmay = ['feed']\n\
             [[consumer]]\nname = 'oai'\ntoken = 'bbbbbbbbbbbbbbbb'\nmay = ['oai']\n",
        ));
        let it = || async { ([(CACHE_CONTROL, "public, max-age=9")], "it") };
        let route = || get(it).post(it);
        let router = ["/", "/feed", "/oai", "/healthz", "/hub"]
            .into_iter()
            .fold(Router::new(), |router, path| router.route(path, route()));
        let router = gate.before(router);
        let check = async |from: &str, method: Method, path: &str, shown: &str, expected: u16| {
            let request = http::Request::builder().method(method).uri(path);
            let request = request.header(AUTHORIZATION, shown).body(Body::empty());
            let mut request = request.unwrap();
            request.extensions_mut().insert(Peer(from.parse().unwrap()));
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected, "{from} {path} {shown}");
            assert_eq!(response.headers().contains_key(WWW_AUTHENTICATE), expected == 401);
        };
        let (get, post) = (Method::GET, Method::POST);
        let bearer = |letter: &str| format!("Bearer {}", letter.repeat(16));
        // `any:aaaaaaaaaaaaaaaa`
        let basic = "Basic YW55OmFhYWFhYWFhYWFhYWFhYWE=";
        check("192.0.2.1", get.clone(), "/", "x", 200).await;
        check("192.0.2.1", get.clone(), "/feed", "x", 401).await;
        check("192.0.2.1", get.clone(), "/feed", &bearer("a"), 200).await;
        check("192.0.2.1", get.clone(), "/feed", basic, 200).await;
        check("192.0.2.1", post.clone(), "/feed", basic, 401).await;
        check("192.0.2.1", post, "/feed", &bearer("a"), 200).await;
        check("192.0.2.1", get.clone(), "/feed", &bearer("b"), 403).await;
        check("192.0.2.1", get.clone(), "/oai", &bearer("b"), 200).await;
        // Publishers show a token that only the hub knows.
        check("192.0.2.1", Method::POST, "/hub", "Bearer of-a-publisher", 200).await;
        check("192.0.2.7", Method::POST, "/hub", "Bearer of-a-publisher", 403).await;
        check("192.0.2.7", get.clone(), "/", "x", 403).await;
        check("192.0.2.7", get.clone(), "/feed", &bearer("a"), 403).await;
        check("192.0.2.7", get.clone(), "/healthz", "x", 200).await;
        let cached = async |path: &str| {
            let request = http::Request::get(path).header(AUTHORIZATION, bearer("a"));
            let request = request.body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            response.headers().get(CACHE_CONTROL).cloned()
        };
        assert_eq!(cached("/feed").await.unwrap(), "private, max-age=9");
        assert_eq!(cached("/healthz").await.unwrap(), "public, max-age=9");
        let counts = |visits: &Visits| (visits.allowed, visits.refused);
        let visits: Vec<_> = gate.visits().into_iter().map(|(n, it)| (n, counts(&it))).collect();
        let expected =
            [("address", (0, 3)), ("oai", (1, 1)), ("union", (4, 0)), ("unknown", (0, 2))];
        assert_eq!(visits, expected.map(|(name, counts)| (name.to_owned(), counts)));
        let all: Vec<_> = samples(&gate.visits()).collect();
        let text = crate::metrics::render(&all);
        let line = r#"harvest_access_requests_total{consumer="oai",outcome="refused"} 1"#;
        assert!(text.lines().any(|it| it == line), "{text}");
        gate.set(Access::default());
        check("192.0.2.7", get, "/feed", "x", 200).await;
    }
}
