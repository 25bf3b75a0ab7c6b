//! The subscriber at work: `/push/TOKEN`, where hubs ask back and tell, and the requests that it makes.
//!
//! Source: WebSub §4, §5, §7; see [`subscriber`](super::subscriber) for what is decided.
//!
//! Which sources there are, where their feeds are, and what comes of a notification is said by whoever has
//! them, in [`Hooks`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request as Asked, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, Method, StatusCode, header};
use net::client::{Client, Credentials, Request};
use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use super::link;
use super::notice::{FAT_BYTES_MAX, Notice};
use super::notifier::text;
use super::request::Content;
use super::signature;
use super::subscriber::{Action, Counters, Reply, State as Standing, Subscriber, Verdict, Wanted};

/// Most requests to sources and hubs at once.
const REQUESTS_MAX: usize = 8;

/// Longest sleep: bounds what a jump of the wall clock can do.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Most bytes before the changes of a fat notification.
const HEAD_BYTES_MAX: u64 = 1_024;

/// When a hub may come again with what there is no room for, in seconds.
const RETRY_SECS: u64 = 1;

/// Where a source is asked for its hub.
#[derive(Clone, Debug)]
pub struct Address {
    /// What it is asked for: its `Link` header counts.
    pub url: Url,
    /// What says who asks, to the source, and to its hub where that is at the same origin.
    pub credentials: Credentials,
    /// Whether source and hub may be in a private network or on this machine.
    pub allow_private: bool,
}

impl Address {
    /// Whether its hub may be in a private network, where that is at the source's origin or the source itself
    /// was reached in one: a public source does not lead inside, as no redirect of one does.
    fn may_lead_inside(&self, is_inside: bool) -> bool {
        self.allow_private && is_inside
    }
}

/// Says where a source is asked for its hub, by its name; `None` while there is no telling. May block.
pub type Find = Box<dyn Fn(&str) -> Option<Address> + Send + Sync>;

/// Takes in what a source's hub says, which was signed as it must be; false where there is no room for it
/// now.
pub type Tell = Box<dyn Fn(&str, Notice) -> bool + Send + Sync>;

/// What whoever has the sources does for a [`Listener`].
pub struct Hooks {
    /// Finds a source.
    pub find: Find,
    /// Hears of its changes.
    pub tell: Tell,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// Subscribes to sources, and hears of their changes. Clones are the same.
#[derive(Clone, Debug)]
pub struct Listener {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    hooks: Hooks,
    subscriber: Mutex<Subscriber>,
    /// There is something to do.
    changed: Notify,
}

impl Listener {
    /// One without sources, that asks for leases of so many seconds.
    pub fn new(client: Client, lease_secs: u64, hooks: Hooks) -> Self {
        let subscriber = Mutex::new(Subscriber::new(lease_secs));
        let shared = Shared { client, hooks, subscriber, changed: Notify::new() };
        Self { shared: Arc::new(shared) }
    }

    /// These sources are to be subscribed to, and no others.
    pub fn handle_sources(&self, wanted: impl IntoIterator<Item = Wanted>) {
        self.subscriber().handle_sources(wanted, clock::now_ms());
        self.shared.changed.notify_one();
    }

    /// How the subscription to a source stands; `None` where none is wanted.
    pub fn view(&self, source: &str) -> Option<(Standing, Counters)> {
        self.subscriber().view(source, clock::now_ms())
    }

    /// What came of all sources.
    pub fn counters(&self) -> Counters {
        self.subscriber().counters()
    }

    /// The routes of the callbacks.
    pub fn routes(&self) -> Router {
        Router::new().route("/push/{token}", get(question).post(notice)).with_state(self.clone())
    }

    /// Subscribes and renews until the shutdown starts.
    pub async fn run(&self, shutdown: Shutdown) {
        let mut requests = JoinSet::new();
        while !shutdown.is_started() {
            let room = requests.len() < REQUESTS_MAX;
            let action = if room { self.subscriber().poll(clock::now_ms()) } else { None };
            if let Some(action) = action {
                requests.spawn(self.clone().perform(action));
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

    async fn perform(self, action: Action) {
        let Action::Discover { source } = action else { return };
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
        if let Some(Action::Subscribe { source, hub, form }) = next {
            let problem = self.subscribe(&address, is_private, hub, form).await.err();
            if let Some(problem) = &problem {
                tracing::info!(source, problem, "the hub was not asked");
            }
            self.subscriber().handle_asked(&source, problem, clock::now_ms());
        }
    }

    /// Asks a source which hub it has; true if it was reached in a private network or on this machine.
    async fn discover(&self, address: &Address) -> Result<(link::Found, bool), String> {
        let mut request = Request::get(address.url.clone())
            .credentials(address.credentials.clone())
            .allow_private(address.allow_private);
        request.method = Method::HEAD;
        let response = self.shared.client.send(request).await.map_err(|it| it.to_string())?;
        if !response.status.is_success() {
            return Err(response.into_error().await.to_string());
        }
        let lines = response.headers.get_all(header::LINK);
        let mut found = link::read(lines.iter().filter_map(|it| it.to_str().ok()), &response.url);
        // Where it leads elsewhere, that is not it.
        found.is_own &= response.url.origin() == address.url.origin();
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
        // A panic in here leaves a source that is subscribed to later, never half a subscription.
        self.shared.subscriber.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hub asks whether this was meant.
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
                (listener.shared.hooks.tell)(&source, Notice::Thin(None));
            }
            // No line end: the body is the challenge.
            let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, media_type)], challenge).into_response()
        }
        Reply::Noted => {
            listener.shared.changed.notify_one();
            StatusCode::OK.into_response()
        }
        Reply::No => text(StatusCode::NOT_FOUND, "that was not asked for"),
    }
}

/// A hub says that a source has changed.
async fn notice(
    State(listener): State<Listener>,
    Path(token): Path<String>,
    request: Asked,
) -> Response {
    let (parts, body) = request.into_parts();
    let bytes_max = usize::try_from(FAT_BYTES_MAX + HEAD_BYTES_MAX).unwrap_or(usize::MAX);
    let Ok(body) = axum::body::to_bytes(body, bytes_max).await else {
        let message = format!("a notification has at most {bytes_max} bytes here");
        return text(StatusCode::PAYLOAD_TOO_LARGE, &message);
    };
    let signed = parts.headers.get(signature::HEADER).and_then(|it| it.to_str().ok());
    let verdict = listener.subscriber().handle_notice(&token, signed, &body);
    match verdict {
        Verdict::Believed { source, content } => {
            let notice = match Notice::read(&body) {
                Notice::Fat(part) if content == Content::Thin => Notice::Thin(Some(part.to)),
                notice => notice,
            };
            if (listener.shared.hooks.tell)(&source, notice) {
                return StatusCode::ACCEPTED.into_response();
            }
            let mut response =
                text(StatusCode::SERVICE_UNAVAILABLE, "what came before has not been taken in yet");
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECS));
            response
        }
        Verdict::Refused(refused) => {
            tracing::warn!(%refused, "a notification is refused");
            text(StatusCode::FORBIDDEN, &refused.to_string())
        }
        Verdict::Unknown => text(StatusCode::GONE, "nobody is told here any more"),
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
