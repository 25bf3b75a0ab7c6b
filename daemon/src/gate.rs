//! The gate: what stands before everything that a daemon has for others, and asks who comes.
//!
//! It decides by [`access`](crate::access), answers who may not, and counts both by consumer. Who has a token may
//! send it as a password as well (RFC 7617), as browsers and many harvesters of OAI-PMH do: to read, that is. A
//! browser sends passwords for foreign pages, too.

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
use net::tls::Shown;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Asker, Thing, Verdict};
use crate::credentials::{bearer, password};
use crate::metrics::Sample;

/// What is asked of who is not known.
const CHALLENGE: &str =
    r#"Bearer, Basic realm="a token of this server, with any name", charset="UTF-8""#;

/// Who asked so often, and was let in or refused. The name of nobody known is `unknown`, and `address` that of
/// whoever comes from an address that is not let in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visits {
    /// Requests that were let in for what only those have who are known.
    pub allowed: u64,
    /// Requests that were refused.
    pub refused: u64,
}

/// The name of the consumer whose request it is: an extension of requests of who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor(pub String);

/// The gate of a daemon. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    access: RwLock<Arc<Access>>,
    /// By the names of consumers, of whom there are a bounded number.
    visits: Mutex<BTreeMap<String, Visits>>,
}

impl Gate {
    /// Returns a gate that lets in whom `access` says.
    pub fn new(access: Access) -> Self {
        let gate = Self::default();
        gate.set(access);
        gate
    }

    /// Puts other settings in force.
    pub fn set(&self, access: Access) {
        let mut current = self.0.access.write().unwrap_or_else(PoisonError::into_inner);
        for thing in access.opened_since(&current) {
            let thing = thing.name();
            tracing::warn!(
                thing,
                "everybody may have it now: no consumer is listed for it any more"
            );
        }
        *current = Arc::new(access);
    }

    /// Whether the consumer of that name, or whoever is nobody known, may have `thing`.
    pub(crate) fn may(&self, consumer: Option<&str>, thing: Thing) -> bool {
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner);
        access.is_free(thing)
            || access
                .consumers
                .iter()
                .any(|it| consumer.is_some_and(|name| it.name == name) && it.may.contains(&thing))
    }

    /// Returns who asked how often, by name.
    pub fn visits(&self) -> BTreeMap<String, Visits> {
        self.0.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts the gate in front of `router`.
    pub fn before(&self, router: Router) -> Router {
        router.layer(axum::middleware::from_fn_with_state(self.clone(), pass))
    }

    fn is_for_some(&self, path: &str) -> bool {
        let access = self.0.access.read().unwrap_or_else(PoisonError::into_inner);
        Thing::at(path).is_some_and(|it| access.is_for_some(it))
    }

    /// Judges a request: whose it is, if it is somebody's who is known; or the answer, if it is refused.
    fn judge(&self, request: &Request) -> Result<Option<Visitor>, Box<Response>> {
        let Some(thing) = Thing::at(request.uri().path()) else { return Ok(None) };
        let access = Arc::clone(&self.0.access.read().unwrap_or_else(PoisonError::into_inner));
        let (headers, extensions) = (request.headers(), request.extensions());
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let password = reads.then(|| password(headers)).flatten();
        // Whoever is asked in this process has no address, and is this machine.
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let asker = Asker {
            address: extensions.get().map_or(here, |Peer(address)| *address),
            token: bearer(headers).or(password.as_deref()),
            shown: extensions.get::<Shown>(),
        };
        let verdict = access.judge(thing, &asker);
        let name = |at: usize| access.consumers.get(at).map(|it| it.name.as_str());
        let (who, refusal) = match verdict {
            Verdict::Free => {
                let known = access.known(&asker).next();
                return Ok(known.map(|(_, it)| Visitor(it.name.clone())));
            }
            Verdict::Known(at) => (name(at), None),
            Verdict::Address => {
                (Some("address"), Some(forbidden("your address is not let in here")))
            }
            Verdict::Unknown => (Some("unknown"), Some(unknown(thing))),
            Verdict::Lacking(at) => {
                let named = name(at).unwrap_or_default();
                let message = format!("{named:?} may not have {:?} here", thing.name());
                (name(at), Some(forbidden(&message)))
            }
        };
        let who = who.unwrap_or_default().to_owned();
        let mut visits = self.0.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let visits = visits.entry(who.clone()).or_default();
        match refusal {
            None => {
                visits.allowed += 1;
                Ok(Some(Visitor(who)))
            }
            Some(refusal) => {
                visits.refused += 1;
                Err(Box::new(refusal))
            }
        }
    }
}

/// Keeps caches that many share from answering others with what is for some: RFC 9111 §3.5.
fn keep_private(response: &mut Response) {
    let said = response.headers().get(CACHE_CONTROL).and_then(|it| it.to_str().ok());
    let kept = said.unwrap_or_default().replace("public", "private");
    let kept = if kept.is_empty() { "private".to_owned() } else { kept };
    let is_told = ["private", "no-store"].iter().any(|it| kept.contains(it));
    let kept = if is_told { kept } else { format!("private, {kept}") };
    // It was one, but for a word.
    if let Ok(kept) = HeaderValue::try_from(kept) {
        response.headers_mut().insert(CACHE_CONTROL, kept);
    }
}

/// The samples of what a gate counts.
pub fn samples(visits: &BTreeMap<String, Visits>) -> impl Iterator<Item = Sample> + '_ {
    let help = "Requests for what only known consumers may have, and those refused by address.";
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
        Ok(visitor) => {
            if let Some(visitor) = visitor {
                request.extensions_mut().insert(visitor);
            }
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

fn unknown(thing: Thing) -> Response {
    let message = format!(
        "{:?} needs a token that this server's administrator gives: as `Authorization: Bearer TOKEN`, or in a \
         browser as the password, with any name",
        thing.name()
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
    async fn who_is_known_is_let_in_and_the_others_are_told_why_not() {
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
        // Publishers show the hub a token of their own.
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
        let said = |visits: &Visits| (visits.allowed, visits.refused);
        let visits: Vec<_> = gate.visits().into_iter().map(|(n, it)| (n, said(&it))).collect();
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
