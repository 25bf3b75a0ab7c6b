//! The shell of the subscriber: `/push/TOKEN`, where hubs verify and notify, and requests to hubs.
//!
//! Source: WebSub §4, §5, §7; [`subscriber`](super::subscriber) makes the decisions.
//!
//! The owner of the sources provides their addresses and handles notifications, in [`Hooks`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use collection::Version;
use http::{HeaderValue, Method, StatusCode, header};
use net::client::{Client, Credentials, Request};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use super::link;
use super::notice;
use super::notifier::text;
use super::signature;
use super::subscriber::{Counters, Reply, Subscriber, SubscriptionState, Verdict, Wanted};

/// Maximum number of requests to sources and hubs at once.
const REQUESTS_MAX: usize = 8;

/// Maximum length of a sleep. It limits the delay that a jump of the wall clock causes.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Maximum length of a notification's body, in bytes. Hubs of others may send the topic's content,
/// which has to be read for the signature.
const BODY_BYTES_MAX: usize = 257 * 1024;

/// Where and how a source can be asked for its hub.
#[derive(Clone, Debug)]
pub struct Address {
    /// The page whose `Link` header names the hub.
    pub url: Url,
    /// Credentials for the source, and for its hub at the same origin.
    pub credentials: Credentials,
    /// Whether source and hub may be in a private network or on this machine.
    pub allow_private: bool,
}

impl Address {
    /// Returns whether the source's hub may be in a private network. `is_inside` says that the hub
    /// is at the source's origin, or that the source was reached in a private network. A public
    /// source must not lead into a private network, neither by its hub nor by redirects.
    fn may_lead_inside(&self, is_inside: bool) -> bool {
        self.allow_private && is_inside
    }
}

/// Returns the address of a source by its name; `None` while it is unknown. May block.
pub type FindSource = Box<dyn Fn(&str) -> Option<Address> + Send + Sync>;

/// Handles a notification with a valid signature, or a new subscription: the source of this name
/// has a new version, which is given if known.
pub type OnNotice = Box<dyn Fn(&str, Option<Version>) + Send + Sync>;

/// Callbacks by which a [`Listener`] reaches the owner of the sources.
pub struct Hooks {
    /// Finds a source.
    pub find: FindSource,
    /// Handles the notifications of a source.
    pub on_notice: OnNotice,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// Subscribes to sources, and receives notifications of their changes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Listener {
    shared: Arc<ListenerInner>,
}

#[derive(Debug)]
struct ListenerInner {
    client: Client,
    hooks: Hooks,
    subscriber: Mutex<Subscriber>,
    changed: Notify,
}

impl Listener {
    /// Returns a listener without sources, which asks for leases of `lease_secs`.
    pub fn new(client: Client, lease_secs: u64, hooks: Hooks) -> Self {
        let subscriber = Mutex::new(Subscriber::new(lease_secs));
        let shared = ListenerInner { client, hooks, subscriber, changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Sets the sources to subscribe to.
    pub fn handle_sources(&self, wanted: impl IntoIterator<Item = Wanted>) {
        self.subscriber().handle_sources(wanted, clock::now_ms());
        self.shared.changed.notify_one();
    }

    /// Returns the state of the subscription to a source; `None` if it is not wanted.
    pub fn view(&self, source: &str) -> Option<(SubscriptionState, Counters)> {
        self.subscriber().view(source, clock::now_ms())
    }

    /// Returns the counters over all sources.
    pub fn counters(&self) -> Counters {
        self.subscriber().counters()
    }

    /// Returns the routes of the callbacks.
    pub fn routes(&self) -> Router {
        Router::new()
            .route("/push/{token}", get(question).post(notification))
            .with_state(self.clone())
    }

    /// Subscribes and renews until the shutdown starts.
    pub async fn run(&self, shutdown: Shutdown) {
        let mut requests = JoinSet::new();
        while !shutdown.is_started() {
            let room = requests.len() < REQUESTS_MAX;
            let source = if room { self.subscriber().poll(clock::now_ms()) } else { None };
            if let Some(source) = source {
                requests.spawn(self.clone().request(source));
                continue;
            }
            let pause = if room { self.pause() } else { SLEEP_MAX };
            tokio::select! {
                () = shutdown.started() => {}
                () = self.shared.changed.notified() => {}
                Some(_) = requests.join_next() => {}
                () = sleep(pause) => {}
            }
        }
        requests.shutdown().await;
    }

    fn pause(&self) -> Duration {
        let due_ms = self.subscriber().poll_timeout();
        let ahead = due_ms.map(|it| Duration::from_millis(it.saturating_sub(clock::now_ms())));
        ahead.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Finds the source's hub, and subscribes there.
    async fn request(self, source: String) {
        let (listener, name) = (self.clone(), source.clone());
        let address =
            tokio::task::spawn_blocking(move || (listener.shared.hooks.find)(&name)).await;
        let Ok(Some(address)) = address else {
            let problem = Err("it has not been pulled yet".to_owned());
            self.subscriber().handle_discovered(&source, problem, clock::now_ms());
            return;
        };
        let (found, is_private) = match self.discover(&address).await {
            Ok((found, is_private)) => (Ok(found), is_private),
            Err(problem) => (Err(problem), false),
        };
        let next = self.subscriber().handle_discovered(&source, found, clock::now_ms());
        if let Some((hub, form)) = next {
            let problem = self.subscribe(&address, is_private, hub, form).await.err();
            if let Some(problem) = &problem {
                tracing::info!(source, problem, "the request to the hub has failed");
            }
            self.subscriber().handle_asked(&source, problem, clock::now_ms());
        }
    }

    /// Asks a source for its hub; returns also whether it was reached in a private network or on
    /// this machine.
    async fn discover(&self, address: &Address) -> Result<(link::Discovery, bool), String> {
        let mut request = Request::get(address.url.clone())
            .credentials(address.credentials.clone())
            .allow_private(address.allow_private);
        request.method = Method::HEAD;
        let response = self.shared.client.send(request).await.map_err(|it| it.to_string())?;
        if !response.status.is_success() {
            return Err(response.into_error().await.to_string());
        }
        let lines = response.headers.get_all(header::LINK);
        let found = link::read(lines.iter().filter_map(|it| it.to_str().ok()), &response.url);
        Ok((found, response.is_private()))
    }

    async fn subscribe(
        &self,
        address: &Address,
        is_private: bool,
        hub: Url,
        form: String,
    ) -> Result<(), String> {
        let same = hub.origin() == address.url.origin();
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::post(hub, form)
            .credentials(if same { address.credentials.clone() } else { Credentials::default() })
            .allow_private(address.may_lead_inside(same || is_private))
            .header(header::CONTENT_TYPE, media_type);
        let response = self.shared.client.send(request).await.map_err(|it| it.to_string())?;
        response.require_success().await.map(drop).map_err(|it| it.to_string())
    }

    fn subscriber(&self) -> MutexGuard<'_, Subscriber> {
        // A panic while the lock was held delays one subscription, but leaves no half-made one.
        self.shared.subscriber.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles a verification by a hub.
async fn question(
    State(listener): State<Listener>,
    Path(token): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let reply = listener.subscriber().handle_question(&token, &query, clock::now_ms());
    match reply {
        Reply::Yes { challenge, source, is_new } => {
            listener.shared.changed.notify_one();
            tracing::info!(source, is_new, "subscribed");
            if is_new {
                (listener.shared.hooks.on_notice)(&source, None);
            }
            // The body is the challenge alone, without a line end.
            let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, media_type)], challenge).into_response()
        }
        Reply::Noted => {
            listener.shared.changed.notify_one();
            StatusCode::OK.into_response()
        }
        Reply::No => text(StatusCode::NOT_FOUND, "no such subscription was requested"),
    }
}

/// Handles a notification by a hub.
async fn notification(
    State(listener): State<Listener>,
    Path(token): Path<String>,
    request: HttpRequest,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_BYTES_MAX).await else {
        let message = format!("a notification has at most {BODY_BYTES_MAX} bytes here");
        return text(StatusCode::PAYLOAD_TOO_LARGE, &message);
    };
    let signed = parts.headers.get(signature::HEADER).and_then(|it| it.to_str().ok());
    let verdict = listener.subscriber().handle_notice(&token, signed, &body);
    match verdict {
        Verdict::Believed { source } => {
            (listener.shared.hooks.on_notice)(&source, notice::read(&body));
            StatusCode::ACCEPTED.into_response()
        }
        Verdict::Refused(refused) => {
            tracing::warn!(%refused, "a notification is refused");
            text(StatusCode::FORBIDDEN, &refused.to_string())
        }
        Verdict::Unknown => text(StatusCode::GONE, "this callback is no longer in use"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_source_does_not_lead_inside() {
        let url = Url::parse("http://source/feed").unwrap();
        let address = |allow_private| Address {
            url: url.clone(),
            credentials: Credentials::default(),
            allow_private,
        };
        assert!(address(true).may_lead_inside(true));
        assert!(!address(true).may_lead_inside(false));
        assert!(!address(false).may_lead_inside(true));
    }
}
