//! The route `/hub` for subscribers and publishers.

use std::net::Ipv4Addr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use daemon::access::Resource;
use daemon::gate::Visitor;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use net::clock;
use net::guard::{self, Policy, Refusal};
use url::{Host, Url};

use super::super::request::{self, FORM_BYTES_MAX, HubRequest, SubscriptionRequest};
use super::super::signature::{self, Method, Secret, hex};
use super::super::topic::{OwnTopic, Topic};
use super::{Notifier, advice};
use crate::repository::Repository;

/// Pause after a refusal for lack of room, in seconds.
const RETRY_SECS: u64 = 60;

/// Number of random bytes in a challenge.
const CHALLENGE_BYTES: usize = 16;

impl Notifier {
    /// Returns the routes of the hub; none without a hub.
    pub fn routes(&self) -> Router {
        if !self.shared.settings.has_hub() {
            return Router::new();
        }
        Router::new().route("/hub", post(hub)).with_state(self.clone())
    }

    /// Returns the routes of an OAI-PMH repository, with links to the hub that announces changes of
    /// its lists.
    pub fn linked(&self, repository: &Repository) -> Router {
        repository.routes().layer(middleware::from_fn_with_state(self.clone(), link_records))
    }

    /// Ends the subscriptions of consumers that have lost their access under new settings.
    pub fn handle_access(&self) {
        let may =
            |topic: &str, consumer: Option<&str>| self.may(topic, None, consumer) == Some(true);
        self.hub().handle_topics(may, "this hub no longer serves you this topic");
        self.shared.changed.notify_one();
    }

    /// Returns whether a consumer, or an anonymous client, has access to a topic; `None` if this
    /// hub does not serve the topic. `host` is the requested host.
    fn may(&self, topic: &str, host: Option<&str>, consumer: Option<&str>) -> Option<bool> {
        let thing = match self.shared.topics.find(topic, host)? {
            Topic::Own(OwnTopic::Records) => Resource::Oai,
            Topic::Own(OwnTopic::Feed) | Topic::Others => Resource::Feed,
        };
        Some(self.shared.control.may(consumer, thing))
    }

    async fn subscribe(&self, asked: SubscriptionRequest, host: Option<&str>) -> Response {
        let may = self.may(&asked.topic, host, asked.consumer.as_deref());
        if may != Some(true) {
            self.hub().handle_refusal();
            let (status, whom) = match may {
                None => (StatusCode::NOT_FOUND, ""),
                Some(_) if asked.consumer.is_none() => (StatusCode::UNAUTHORIZED, " you"),
                Some(_) => (StatusCode::FORBIDDEN, " you"),
            };
            let message = format!("this hub does not tell{whom} of {}", asked.topic);
            let mut response = text(status, &message);
            if status == StatusCode::UNAUTHORIZED {
                ask_for_token(&mut response);
            }
            return response;
        }
        let policy = Policy::from_allow_private(self.shared.settings.allow_private);
        if let Some(refusal) = refused(&asked.callback, policy) {
            self.hub().handle_refusal();
            let (host, advice) = (asked.callback.host_str().unwrap_or_default(), advice(refusal));
            let message = format!("this hub does not ask {host}: {refusal}{advice}");
            return text(StatusCode::FORBIDDEN, &message);
        }
        let mut challenge = [0; CHALLENGE_BYTES];
        if getrandom::fill(&mut challenge).is_err() {
            return text(StatusCode::INTERNAL_SERVER_ERROR, "no random numbers are available");
        }
        let is_known = self.hub().has(&asked);
        let host =
            if is_known { String::new() } else { self.shared.hosts.key(&asked.callback).await };
        let taken = self.hub().handle_request(asked, &host, hex(&challenge), clock::now_ms());
        self.shared.changed.notify_one();
        match taken {
            Ok(()) => text(StatusCode::ACCEPTED, "your callback will be asked"),
            Err(refused) => {
                let mut response = text(StatusCode::SERVICE_UNAVAILABLE, &refused.to_string());
                let value = HeaderValue::from(RETRY_SECS);
                response.headers_mut().insert(header::RETRY_AFTER, value);
                response
            }
        }
    }

    /// Returns whether a request may publish: only with the token, if the settings name one.
    fn may_publish(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.shared.settings.token else { return true };
        let shown = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
        let shown = shown.and_then(|it| it.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some(shown) = shown.and_then(|(_, it)| Secret::new(it)) else { return false };
        // Comparing signatures takes the same time for every wrong token.
        let signed = signature::sign(&shown, Method::Sha256, b"");
        signature::verify(token, Some(&signed), b"").is_ok()
    }

    fn publish_of(&self, topics: &[String], version: Option<collection::Version>) -> Response {
        let is_others = |it: &&String| self.shared.topics.find(it, None) == Some(Topic::Others);
        let known: Vec<&String> = topics.iter().filter(is_others).collect();
        if known.is_empty() {
            self.hub().handle_refusal();
            let message = "this hub serves none of these topics: add a prefix of theirs to \
                           push.publishers in its settings";
            return text(StatusCode::FORBIDDEN, message);
        }
        let now_ms = clock::now_ms();
        // A publisher that gets here has shown the token, if there is one.
        let is_proven = self.shared.settings.token.is_some();
        let mut hub = self.hub();
        for topic in known {
            if is_proven {
                hub.handle_change(topic, version, now_ms);
            } else {
                hub.handle_published(topic, version, now_ms);
            }
        }
        drop(hub);
        self.shared.changed.notify_one();
        StatusCode::NO_CONTENT.into_response()
    }
}

async fn link_records(State(notifier): State<Notifier>, request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    let depth = usize::from(request.uri().path().ends_with('/'));
    let mut response = next.run(request).await;
    notifier.link(OwnTopic::Records, &query, depth, &mut response);
    response
}

async fn hub(State(notifier): State<Notifier>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(form) = axum::body::to_bytes(body, FORM_BYTES_MAX).await else {
        notifier.hub().handle_refusal();
        return text(StatusCode::PAYLOAD_TOO_LARGE, &request::FormError::TooLong.to_string());
    };
    match request::read(&form) {
        Ok(HubRequest::Subscription(asked)) => {
            let consumer = parts.extensions.get().map(|Visitor(name)| name.clone());
            let asked = SubscriptionRequest { consumer, ..asked };
            notifier.subscribe(asked, host(&parts.headers)).await
        }
        Ok(HubRequest::Publish { .. }) if !notifier.may_publish(&parts.headers) => {
            notifier.hub().handle_refusal();
            let message =
                "this hub needs a token: set push.token alike in its settings and the publisher's";
            let mut response = text(StatusCode::UNAUTHORIZED, message);
            ask_for_token(&mut response);
            response
        }
        Ok(HubRequest::Publish { topics, version }) => notifier.publish_of(&topics, version),
        Err(wrong) => {
            notifier.hub().handle_refusal();
            text(StatusCode::BAD_REQUEST, &wrong.to_string())
        }
    }
}

/// Returns the reason why a callback is refused without a lookup of its host; `None` if there is no
/// such reason.
fn refused(url: &Url, policy: Policy) -> Option<Refusal> {
    let ip = match url.host()? {
        Host::Ipv4(it) => it.into(),
        Host::Ipv6(it) => it.into(),
        Host::Domain(name) if name == "localhost" || name.ends_with(".localhost") => {
            Ipv4Addr::LOCALHOST.into()
        }
        Host::Domain(_) => return None,
    };
    guard::vet(ip, policy).err()
}

fn ask_for_token(response: &mut Response) {
    let scheme = HeaderValue::from_static("Bearer");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

pub(crate) fn text(status: StatusCode, message: &str) -> Response {
    let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = [(header::CONTENT_TYPE, media_type)];
    (status, headers, Body::from(format!("{message}\n"))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_given_only_if_a_setting_helps() {
        let helps = |url: &str, allow_private| {
            let policy = Policy::from_allow_private(allow_private);
            refused(&url.parse().unwrap(), policy).map(|it| !advice(it).is_empty())
        };
        for inside in ["http://10.1.2.3/", "http://[::1]/", "http://a.localhost/"] {
            assert_eq!([false, true].map(|it| helps(inside, it)), [Some(true), None], "{inside}");
        }
        let link = "http://169.254.169.254/";
        assert_eq!([false, true].map(|it| helps(link, it)), [Some(false), Some(false)]);
        assert_eq!(helps("http://192.88.98.1/", false), None);
        assert_eq!(helps("http://www.orchard.example/", false), None);
    }
}
