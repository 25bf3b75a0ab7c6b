//! The shell of the hub: `/hub`, the hub's own requests, and the notifications after a collection's
//! commits.
//!
//! Source: WebSub §5 to §7; [`hub`](super::hub) makes the decisions.
//!
//! Because anybody can name a callback, requests go through a separate client, which follows no
//! redirects, and reaches private networks only if the settings allow it.
//!
//! # Differences from the standard
//!
//! * A change of a ListRecords is announced up to a second after its commit, when it is listed
//!   (OAI-PMH §2.7.1: bounds are seconds, and inclusive): a harvest before that would find nothing.
//! * Publishing needs no proof unless the settings ask for a token. Without one, a false claim can
//!   only make subscribers pull, every ten seconds at most. Claims are passed on without a
//!   comparison with earlier ones, so that a guess at the next version does not hide it. A
//!   publisher with the token is believed, and its announcements are passed on at once.

mod hosts;
mod publish;
mod routes;

pub(crate) use routes::text;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use collection::{Collection, Version};
use daemon::Control;
use http::{HeaderName, HeaderValue, StatusCode, header};
use net::client::{Client, Request, Timeouts};
use net::clock;
use net::guard::Refusal;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::sleep;
use url::Url;

use hosts::Hosts;

use super::hub::{Action, Answer, Counters, Delivery, Hub, Verdict};
use super::notice;
use super::request::CHALLENGE_BYTES_MAX;
use super::settings::{HubChoice, Settings};
use super::signature::{self, Method};
use super::store;
use super::topic::{OwnTopic, Topic, Topics};

/// Timeouts of a question: anybody can cause one, and a real subscriber answers at once.
const QUESTION_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    header: Duration::from_secs(5),
    idle: Duration::from_secs(5),
    total: Some(Duration::from_secs(8)),
};

/// Timeouts of a notification.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    header: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    total: Some(Duration::from_secs(20)),
};

/// Maximum length of a sleep. It limits the delay that a jump of the wall clock causes.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Pause after a failed attempt to save the subscriptions.
const UNSAVED: Duration = Duration::from_secs(10);

const SECOND_MS: u64 = 1_000;

/// Margin added to the wait for the end of a second, so that it does not end too early.
const MARGIN_MS: u64 = 20;

/// Status of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// The hub for this daemon's changes: `nobody`, `self`, or the URL of a hub.
    pub hub: String,
    /// Number of subscriptions.
    pub subscriptions: u64,
    /// Number of pending verifications.
    pub unverified: u64,
    /// Number of acknowledged notifications since the start.
    pub delivered: u64,
    /// Number of notifications that were given up since the start.
    pub given_up: u64,
    /// The reason why the other hub does not get this daemon's changes, or why subscriptions are
    /// not saved; both, if both apply.
    pub problem: Option<String>,
}

/// Notifies subscribers of a collection's changes. Clones share their state.
#[derive(Clone, Debug)]
pub struct Notifier {
    shared: Arc<NotifierInner>,
}

#[derive(Debug)]
struct NotifierInner {
    topics: Topics,
    control: Control,
    settings: Settings,
    base_url: Option<Url>,
    data: PathBuf,
    collection: Collection,
    client: Client,
    /// The client for verifications and denials.
    questions: Client,
    hub: Mutex<Hub>,
    hosts: Hosts,
    changed: Notify,
    /// The reason why the other hub did not get changes.
    unpublished: Mutex<Option<String>>,
    /// The reason why subscriptions are not saved.
    unsaved: Mutex<Option<String>>,
}

impl Notifier {
    /// Loads the subscriptions in `data` to the changes of `collection`; `base_url` is the daemon's
    /// public address. Blocks. Fails if the file of subscriptions cannot be read.
    pub fn open(
        data: &Path,
        base_url: Option<Url>,
        settings: Settings,
        collection: Collection,
        control: &Control,
    ) -> Result<Self, store::Error> {
        let topics = Topics::new(base_url.clone(), settings.clone());
        let now_ms = clock::now_ms();
        let hub = Hub::restored(settings.limits, store::load(data)?, now_ms);
        let calling = control.client_settings();
        let [client, questions] = [TIMEOUTS, QUESTION_TIMEOUTS].map(|timeouts| {
            Client::new(net::client::Settings {
                timeouts,
                redirects_max: 0,
                response_bytes_max: 64 * 1024,
                ..calling.clone()
            })
        });
        let shared = NotifierInner {
            topics,
            control: control.clone(),
            settings,
            base_url,
            data: data.to_owned(),
            collection,
            client,
            questions,
            hub: Mutex::new(hub),
            hosts: Hosts::default(),
            changed: Notify::new(),
            unpublished: Mutex::default(),
            unsaved: Mutex::default(),
        };
        let notifier = Self { shared: Arc::new(shared) };
        notifier.handle_access();
        Ok(notifier)
    }

    /// Adds a link to the hub that announces changes of this page, if there is a hub. `query` is
    /// that of the request; `depth` is the number of folders between the page and the daemon's
    /// root.
    pub fn link<B>(
        &self,
        served: OwnTopic,
        query: &str,
        depth: usize,
        response: &mut http::Response<B>,
    ) {
        let line = self.shared.topics.link(served, query, depth);
        if let Some(value) = line.and_then(|it| HeaderValue::try_from(it).ok()) {
            response.headers_mut().append(header::LINK, value);
        }
    }

    /// Returns the hub's counters since the start.
    pub fn counters(&self) -> Counters {
        self.hub().counters()
    }

    /// Returns the status of the hub.
    pub fn status(&self) -> Status {
        let hub = self.hub();
        let ((subscriptions, unverified), counters) = (hub.len(), hub.counters());
        drop(hub);
        let problems = [&self.shared.unpublished, &self.shared.unsaved].map(|it| lock(it).clone());
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        Status {
            hub: match &self.shared.settings.hub {
                HubChoice::Nobody => "nobody".to_owned(),
                HubChoice::Own => "self".to_owned(),
                HubChoice::Other(url) => url.to_string(),
            },
            subscriptions: subscriptions as u64,
            unverified: unverified as u64,
            delivered: counters.delivered,
            given_up: counters.given_up,
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
        }
    }

    /// Sends notifications until the shutdown starts.
    pub async fn run(&self, shutdown: Shutdown) {
        tokio::join!(self.run_hub(&shutdown), self.run_publish(&shutdown));
        // Without a hub both tasks end at once; wait here instead.
        shutdown.started().await;
    }

    async fn run_hub(&self, shutdown: &Shutdown) {
        if !self.shared.settings.has_hub() && self.hub().poll_timeout().is_none() {
            return;
        }
        let mut versions = self.shared.collection.watch();
        let mut requests = JoinSet::new();
        // Time of the next save: at once, or later after a failure.
        let mut save_at: Option<Instant> = None;
        self.announce(*versions.borrow_and_update());
        while !shutdown.is_started() {
            let action = self.hub().poll(clock::now_ms());
            if let Some(action) = action {
                requests.spawn(self.clone().perform(action));
                continue;
            }
            let now = clock::monotonic();
            if self.hub().take_changed() {
                save_at = save_at.or(Some(now));
            }
            if save_at.is_some_and(|it| it <= now) {
                save_at = (!self.save().await).then(|| clock::monotonic() + UNSAVED);
            }
            let unsaved = save_at.map(|it| it.saturating_duration_since(clock::monotonic()));
            let pause = self.pause().min(unsaved.unwrap_or(SLEEP_MAX));
            tokio::select! {
                () = shutdown.started() => {}
                changed = versions.changed() => {
                    let version = *versions.borrow_and_update();
                    // The collection is closed, and the daemon stops soon.
                    if changed.is_err() { break }
                    self.announce(version);
                }
                () = self.shared.changed.notified() => {}
                Some(_) = requests.join_next() => {}
                () = sleep(pause) => {}
            }
        }
        requests.shutdown().await;
        self.save().await;
    }

    /// Returns the time until the next possible action, if no request ends before.
    fn pause(&self) -> Duration {
        let due_ms = self.hub().poll_timeout();
        let wait_ms = due_ms.map(|it| it.saturating_sub(clock::now_ms()));
        wait_ms.map_or(SLEEP_MAX, Duration::from_millis).min(SLEEP_MAX)
    }

    /// Passes a change of the daemon's own topics to the hub.
    fn announce(&self, version: Version) {
        let now_ms = clock::now_ms();
        let mut hub = self.hub();
        for topic in hub.topics() {
            if matches!(self.shared.topics.find(&topic, None), Some(Topic::Own(_))) {
                hub.handle_change(&topic, Some(version), now_ms);
            }
        }
    }

    async fn save(&self) -> bool {
        let (saved, data) = (self.hub().saved(), self.shared.data.clone());
        let stored = tokio::task::spawn_blocking(move || store::store(&data, &saved)).await;
        let problem = match stored {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = &problem {
            tracing::warn!(%problem, "subscriptions are not written");
        }
        let is_saved = problem.is_none();
        *lock(&self.shared.unsaved) = problem;
        is_saved
    }

    async fn perform(self, action: Action) {
        match action {
            Action::Verify { ticket, url, challenge } => {
                let topic = url.query_pairs().find(|(name, _)| name == "hub.topic");
                let topic = topic.map(|(_, topic)| topic.into_owned()).unwrap_or_default();
                let own = matches!(self.shared.topics.find(&topic, None), Some(Topic::Own(_)));
                let version = own.then(|| self.shared.collection.version());
                let verdict = self.verify(url, &challenge).await;
                let now_ms = clock::now_ms();
                let mut hub = self.hub();
                hub.handle_verified(ticket, verdict, version, now_ms);
                // Commits since the verification was asked were announced before the subscription
                // existed.
                if own {
                    hub.handle_change(&topic, Some(self.shared.collection.version()), now_ms);
                }
            }
            Action::Deny { ticket, url } => {
                let verdict = self.verify(url, "").await;
                self.hub().handle_verified(ticket, verdict, None, clock::now_ms());
            }
            Action::Deliver(delivery) => {
                let ticket = delivery.ticket;
                let answer = self.deliver(delivery).await;
                self.hub().handle_delivered(ticket, answer, clock::now_ms());
            }
        }
    }

    async fn verify(&self, url: Url, challenge: &str) -> Verdict {
        let host = url.host_str().unwrap_or_default().to_owned();
        let request = Request::get(url).allow_private(self.shared.settings.allow_private);
        let response = match self.shared.questions.send(request).await {
            Ok(response) => response,
            Err(error) => return failed_question(&host, &error),
        };
        if response.status.is_server_error() {
            return Verdict::Silent;
        }
        let success = response.status.is_success();
        match response.bytes(CHALLENGE_BYTES_MAX as u64).await {
            Ok(body) if success && body == challenge.as_bytes() => Verdict::Yes,
            _ => Verdict::No,
        }
    }

    async fn deliver(&self, delivery: Delivery) -> Answer {
        let version = self.version_to_announce(&delivery).await;
        let body = notice::body(version);
        let signed =
            delivery.secret.as_ref().map(|it| signature::sign(it, Method::Sha256, body.as_bytes()));
        let mut request = Request::post(delivery.callback.clone(), body)
            .allow_private(self.shared.settings.allow_private)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(notice::MEDIA_TYPE));
        if let Some(value) = signed.and_then(|it| HeaderValue::try_from(it).ok()) {
            request = request.header(HeaderName::from_static(signature::HEADER), value);
        }
        if let Ok(value) = HeaderValue::try_from(self.link_of(&delivery.topic)) {
            request = request.header(header::LINK, value);
        }
        let host = delivery.callback.host_str().unwrap_or_default().to_owned();
        let response = match self.shared.client.send(request).await {
            Ok(response) => response,
            Err(net::Error::Redirects { .. }) => {
                tracing::info!(
                    topic = delivery.topic,
                    host,
                    "a subscriber redirects a notification, which is not followed"
                );
                return Answer::Failed(None);
            }
            Err(error) => {
                tracing::info!(%error, topic = delivery.topic, "a subscriber did not get its notification");
                return Answer::Failed(None);
            }
        };
        match response.status {
            status if status.is_success() => {
                tracing::debug!(topic = delivery.topic, host, "a subscriber was notified");
                Answer::Taken(version)
            }
            StatusCode::GONE => Answer::Gone,
            status => {
                tracing::info!(%status, topic = delivery.topic, host, "a subscriber did not get its notification");
                match response.into_error().await {
                    net::Error::Status { retry_after, .. } => Answer::Failed(retry_after),
                    _ => Answer::Failed(None),
                }
            }
        }
    }

    /// Returns the present version of an own topic, once it can be requested, or the version that
    /// the publisher of a foreign topic has named.
    async fn version_to_announce(&self, delivery: &Delivery) -> Option<Version> {
        let Some(Topic::Own(served)) = self.shared.topics.find(&delivery.topic, None) else {
            return delivery.version;
        };
        let version = self.shared.collection.version();
        if served == OwnTopic::Records {
            let left_ms = SECOND_MS - clock::now_ms() % SECOND_MS;
            sleep(Duration::from_millis(left_ms + MARGIN_MS)).await;
        }
        Some(version)
    }

    /// Returns the links of a notification: this hub, and the topic under the URL that the
    /// subscriber uses.
    fn link_of(&self, topic: &str) -> String {
        let base = self.shared.base_url.clone().or_else(|| Url::parse(topic).ok());
        let hub = base.and_then(|it| it.join("hub").ok()).map_or_else(String::new, String::from);
        super::link::header_value(&hub, topic)
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        // A panic while the lock was held delays a notification, but leaves no half-made
        // subscription.
        self.shared.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock(problem: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    problem.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns advice for an administrator about a refused address; empty if no setting helps.
fn advice(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Private | Refusal::Loopback => {
            ": push.allow_private = true in this hub's settings allows it"
        }
        _ => "",
    }
}

/// Returns the verdict for a failed question. Logs name only the host: anybody who knows the
/// callback's URL can end the subscription.
fn failed_question(host: &str, error: &net::Error) -> Verdict {
    match error {
        // The callback redirects to a host that has not asked for anything.
        net::Error::Redirects { .. } | net::Error::PrivateRedirect { .. } => {
            tracing::info!(host, "a callback redirects its verification, and is refused");
            Verdict::No
        }
        net::Error::Refused { refusal, .. } => {
            let advice = advice(*refusal);
            tracing::warn!(host, "a callback is refused, since it is at {refusal}{advice}");
            Verdict::No
        }
        error => {
            tracing::info!(%error, "a callback cannot be reached");
            Verdict::Silent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that only a callback that may be reachable later is asked again.
    #[test]
    fn a_refused_callback_is_not_asked_again() {
        let (host, address) = ("h".to_owned(), std::net::Ipv4Addr::LOCALHOST.into());
        let refused = net::Error::Refused { host, address, refusal: Refusal::Loopback };
        assert_eq!(failed_question("h", &refused), Verdict::No);
        let url = "http://h/a-secret".to_owned();
        let sent_on = net::Error::Redirects { url, redirects_max: 0 };
        assert_eq!(failed_question("h", &sent_on), Verdict::No);
        let (host, source) = ("h".to_owned(), std::io::Error::other("away"));
        assert_eq!(failed_question("h", &net::Error::Connect { host, source }), Verdict::Silent);
    }
}
