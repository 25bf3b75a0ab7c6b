//! Copies: what is stored of an object, as a page of the cache's own, for a reader who does not use it as a
//! proxy. A broker links them for when an object's home is down.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use net::body::Body;
use net::clock;
use url::{Url, form_urlencoded};

use super::{Proxy, client_of, used};
use crate::answer::CACHE_STATUS;
use crate::config::Config;
use crate::counts::From;
use crate::policy::freshness::Terms;
use crate::policy::storing::Head;
use crate::request::Asked;
use crate::target::{self, Target};

/// Headers of an object that are shown with its copy. Others would act on the cache's own site: pin it to
/// TLS, clear what browsers keep of it, or let strangers' scripts read it.
const SHOWN: [HeaderName; 13] = [
    header::AGE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::DATE,
    header::ETAG,
    header::EXPIRES,
    header::LAST_MODIFIED,
    header::VIA,
    CACHE_STATUS,
];

/// Path of the page.
pub(super) const PATH: &str = "/copy";

impl Proxy {
    /// Answers with the copy of the URL that the query names, however stale, unless its origin forbids to use
    /// it so. Nobody is asked for it.
    pub(super) async fn copy(
        &self,
        config: &Config,
        request: Request<Body>,
    ) -> (From, Response<Body>) {
        let answers = &self.0.answers;
        let refused = |status, message: &str| (From::Own, answers.refused(status, message, None));
        if self.objection(config, &request, false).is_some() {
            let message = "copies are for those who may use the cache, by their address";
            return refused(StatusCode::FORBIDDEN, message);
        }
        if is_embedded(request.headers()) {
            return refused(StatusCode::FORBIDDEN, "copies are no part of other sites' pages");
        }
        let (name, client) = (answers.name(), client_of(request.extensions()));
        let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
        let url = query.into_iter().find(|(name, _)| name == "url");
        let uri = url.and_then(|(_, it)| Url::parse(&it).ok()?.as_str().parse().ok());
        let Some(uri) = uri else {
            let message = "name the object: /copy?url=http%3A%2F%2Fwww.example.org%2F";
            return refused(StatusCode::BAD_REQUEST, message);
        };
        let headers = HeaderMap::new();
        let object = match target::of(&Method::GET, &uri, &headers, &self.0.own, config) {
            Ok(Target::Object(object)) => object,
            Ok(Target::Own | Target::Tunnel(_)) => {
                return refused(
                    StatusCode::BAD_REQUEST,
                    "of its own pages the cache has no copies",
                );
            }
            Err(refusal) => return refused(refusal.status(), &refusal.to_string()),
        };
        let rules = config.rules(&object.url, object.is_before_origin());
        let stored = self.0.objects.get(object.url.as_str(), rules).await;
        let heads = stored.iter().flat_map(|it| it.iter()).map(|it| (it.head(), it.body.clone()));
        let now_ms = clock::now_ms();
        // What must be validated may be for some readers alone.
        let may = |it: &Terms| it.is_fresh(now_ms, 0) || it.may_be_stale(now_ms, u32::MAX);
        let is_copy = |head: &Head| {
            head.status == StatusCode::OK && head.vary.answers(&headers) && may(&head.terms)
        };
        let newest = heads.filter(|it| is_copy(&it.0)).max_by_key(|it| it.0.times.came_ms);
        let Some((head, body)) = newest else {
            let message = format!("no copy of {} is stored here", object.url);
            return refused(StatusCode::NOT_FOUND, &message);
        };
        let source = used(&head, head.terms.left_ms(now_ms) < 0);
        let asked =
            Asked { method: Method::GET, object, headers, name, client, rules, is_alone: true };
        let mut response = answers.stored(&asked, head, &body, source);
        let all = std::mem::take(response.headers_mut());
        for name in SHOWN {
            for value in all.get_all(&name) {
                response.headers_mut().append(&name, value.clone());
            }
        }
        // It is somebody else's page: its scripts do not run, and it is no part of this site.
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, "sandbox"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        (From::Hit, response)
    }
}

/// Returns whether a page of another site asks for something to be a part of it. It could learn from the
/// answer who has read what: people follow links alone.
fn is_embedded(headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    says("sec-fetch-site", "cross-site") && !says("sec-fetch-mode", "navigate")
}
