//! The hub at work: `/hub`, the requests that it makes, and what a collection's commits set off.
//!
//! Source: WebSub §5 to §7; see [`hub`](super::hub) for what is decided.
//!
//! Requests go through a client of their own, which follows no redirects and reaches private networks only
//! if the settings say so: callbacks are named by anybody.
//!
//! # Differences from the standard
//!
//! * Of others' topics, a hub of ours tells that they have changed and not what is in them: it fetches
//!   nothing on anybody's word.
//! * Publishing needs no proof unless the settings ask for a token. Without, all that a false word can do is to have subscribers look, every ten seconds at
//!   most: what is published is passed on, and not compared with what was before, so that a guess at the next
//!   version does not stand in its way. Who shows the token is taken at its word, and passed on at once.

mod hosts;
mod publish;
mod records;
mod routes;

pub(crate) use routes::text;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
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
use records::Said;

use super::hub::{Action, Answer, Counters, Delivery, Hub, Verdict};
use super::notice::{FAT_BYTES_MAX, Notice};
use super::request::{CHALLENGE_BYTES_MAX, Content};
use super::settings::{Settings, Teller};
use super::signature::{self, Method};
use super::store;
use super::topic::{Served, Topic, Topics};
use crate::repository::Repository;

/// How long a question may take: anybody can have one asked, and who wants to be told answers at once.
const QUESTION_TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(3),
    header: Duration::from_secs(5),
    idle: Duration::from_secs(5),
    total: Some(Duration::from_secs(8)),
};

/// How long a notification may take.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    header: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    total: Some(Duration::from_secs(20)),
};

/// Longest sleep: bounds what a jump of the wall clock can do.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// How long to wait before subscriptions that could not be written are written again.
const UNSAVED: Duration = Duration::from_secs(10);

/// Media type of a list of records.
const RECORDS_TYPE: &str = "text/xml; charset=utf-8";

/// How a hub fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// Who tells of this daemon's changes: `nobody`, `self`, or the URL of a hub.
    pub hub: String,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Subscriptions that are still to be verified.
    pub unverified: u64,
    /// Notifications acknowledged, since the start.
    pub delivered: u64,
    /// Notifications given up, since the start.
    pub given_up: u64,
    /// Why the other hub could not be told; or why subscriptions are not written.
    pub problem: Option<String>,
}

/// Tells whoever has subscribed of a collection's changes. Clones are the same.
#[derive(Clone, Debug)]
pub struct Notifier {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    topics: Topics,
    control: Control,
    settings: Settings,
    base_url: Option<Url>,
    data: PathBuf,
    collection: Collection,
    client: Client,
    /// For verifications and denials.
    questions: Client,
    hub: Mutex<Hub>,
    hosts: Hosts,
    /// What answers ListRecords, once the daemon serves it.
    records: OnceLock<Repository>,
    /// There is something to do.
    changed: Notify,
    /// Why the other hub was not told.
    untold: Mutex<Option<String>>,
    /// Why subscriptions are not written.
    unsaved: Mutex<Option<String>>,
}

impl Notifier {
    /// Takes up the subscriptions kept in `data` to what `collection` has, of a daemon that others reach at
    /// `base_url`. Blocks.
    ///
    /// # Errors
    ///
    /// The file of subscriptions cannot be read.
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
        let calling = control.calling();
        let [client, questions] = [TIMEOUTS, QUESTION_TIMEOUTS].map(|timeouts| {
            Client::new(net::client::Settings {
                timeouts,
                redirects_max: 0,
                response_bytes_max: 64 * 1024,
                ..calling.clone()
            })
        });
        let shared = Shared {
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
            records: OnceLock::new(),
            changed: Notify::new(),
            untold: Mutex::default(),
            unsaved: Mutex::default(),
        };
        let notifier = Self { shared: Arc::new(shared) };
        notifier.handle_access();
        Ok(notifier)
    }

    /// Says in the head of an answer who tells of changes to it, if anybody does. `query`: that of the
    /// request; `depth`: how many folders below the daemon's root it is.
    pub fn link<B>(
        &self,
        served: Served,
        query: &str,
        depth: usize,
        response: &mut http::Response<B>,
    ) {
        let line = self.shared.topics.link(served, query, depth);
        if let Some(value) = line.and_then(|it| HeaderValue::try_from(it).ok()) {
            response.headers_mut().append(header::LINK, value);
        }
    }

    /// What the hub has done since it started.
    pub fn counters(&self) -> Counters {
        self.hub().counters()
    }

    /// What status says of it.
    pub fn status(&self) -> Status {
        let hub = self.hub();
        let ((subscriptions, unverified), counters) = (hub.len(), hub.counters());
        drop(hub);
        let problems = [&self.shared.untold, &self.shared.unsaved].map(|it| of(it).clone());
        let problems: Vec<String> = problems.into_iter().flatten().collect();
        Status {
            hub: match &self.shared.settings.teller {
                Teller::Nobody => "nobody".to_owned(),
                Teller::Own => "self".to_owned(),
                Teller::Other(url) => url.to_string(),
            },
            subscriptions: subscriptions as u64,
            unverified: unverified as u64,
            delivered: counters.delivered,
            given_up: counters.given_up,
            problem: (!problems.is_empty()).then(|| problems.join("; ")),
        }
    }

    /// Tells of changes until the shutdown starts.
    pub async fn run(&self, shutdown: Shutdown) {
        tokio::join!(self.run_hub(&shutdown), self.run_publish(&shutdown));
        // Where nobody is to be told.
        shutdown.started().await;
    }

    async fn run_hub(&self, shutdown: &Shutdown) {
        if !self.shared.settings.has_hub() && self.hub().poll_timeout().is_none() {
            return;
        }
        let mut versions = self.shared.collection.watch();
        let mut requests = JoinSet::new();
        // When what is not saved is to be saved: at once, or after a failure a while later.
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
                    // The collection is closed: so is all else, soon.
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

    /// How long nothing can be begun, if no request ends.
    fn pause(&self) -> Duration {
        let due_ms = self.hub().poll_timeout();
        let wait_ms = due_ms.map(|it| it.saturating_sub(clock::now_ms()));
        wait_ms.map_or(SLEEP_MAX, Duration::from_millis).min(SLEEP_MAX)
    }

    /// The daemon's own topics have changed.
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
        *of(&self.shared.unsaved) = problem;
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
                // What was committed since it was asked was announced before it was there.
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
            Err(error) => return unasked(&host, &error),
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
        let (body, media_type, told) = match self.content(&delivery).await {
            (Some((body, media_type)), told) => (body, media_type, told),
            (None, told) => return Answer::Taken(told),
        };
        let mut request = Request::post(delivery.callback.clone(), body.clone())
            .allow_private(self.shared.settings.allow_private)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        if let Some(secret) = &delivery.secret {
            let signed = signature::sign(secret, Method::Sha256, &body);
            if let Ok(value) = HeaderValue::try_from(signed) {
                request = request.header(HeaderName::from_static(signature::HEADER), value);
            }
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
                    "a subscriber sends us on; it is not told"
                );
                return Answer::Failed(None);
            }
            Err(error) => {
                tracing::info!(%error, topic = delivery.topic, "a subscriber was not told");
                return Answer::Failed(None);
            }
        };
        match response.status {
            status if status.is_success() => {
                tracing::debug!(topic = delivery.topic, host, "a subscriber was told");
                Answer::Taken(told)
            }
            StatusCode::GONE => Answer::Gone,
            status => {
                tracing::info!(%status, topic = delivery.topic, host, "a subscriber was not told");
                match response.into_error().await {
                    net::Error::Status { retry_after, .. } => Answer::Failed(retry_after),
                    _ => Answer::Failed(None),
                }
            }
        }
    }

    /// What is to be sent, its media type, and up to which version that tells; nothing where what has changed
    /// is none of the subscriber's business.
    async fn content(
        &self,
        delivery: &Delivery,
    ) -> (Option<(Bytes, &'static str)>, Option<Version>) {
        let is_list =
            self.shared.topics.find(&delivery.topic, None) == Some(Topic::Own(Served::Records));
        if !is_list {
            let (notice, told) = self.notice(delivery).await;
            return (Some((notice.body(), notice.media_type())), told);
        }
        let version = self.shared.collection.version();
        records::listed().await;
        let said = match (delivery.content, delivery.from) {
            (Content::Fat, Some(from)) => self.records(&delivery.topic, from).await,
            _ => Said::Changed,
        };
        let content = match said {
            Said::Page(page) => Some((page, RECORDS_TYPE)),
            Said::Nothing => None,
            Said::Changed => {
                let notice = Notice::Thin(Some(version));
                Some((notice.body(), notice.media_type()))
            }
        };
        (content, Some(version))
    }

    /// What is to be said of a feed, or of a topic of others, and up to which version that is.
    async fn notice(&self, delivery: &Delivery) -> (Notice, Option<Version>) {
        let topic = self.shared.topics.find(&delivery.topic, None);
        if topic != Some(Topic::Own(Served::Feed)) {
            return (Notice::Thin(delivery.to), delivery.to);
        }
        if let (Content::Fat, Some(from)) = (delivery.content, delivery.from) {
            let collection = self.shared.collection.clone();
            let changes = move || collection.changes_since(from, FAT_BYTES_MAX);
            match tokio::task::spawn_blocking(changes).await {
                Ok(Ok(Some(pushed))) => {
                    let to = pushed.to;
                    return (Notice::Fat(pushed), Some(to));
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "changes cannot be sent"),
                Err(error) => tracing::warn!(%error, "changes cannot be sent"),
            }
        }
        let version = self.shared.collection.version();
        (Notice::Thin(Some(version)), Some(version))
    }

    /// The links of a notification: this hub, and the topic under the name that the subscriber has for it.
    fn link_of(&self, topic: &str) -> String {
        let base = self.shared.base_url.clone().or_else(|| Url::parse(topic).ok());
        let hub = base.and_then(|it| it.join("hub").ok()).map_or_else(String::new, String::from);
        super::link::written(&hub, topic)
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        // A panic in here leaves a subscriber untold, never half of one.
        self.shared.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong, if anything is.
fn of(problem: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    problem.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an administrator can do about an address that may not be asked.
fn advice(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Private | Refusal::Loopback => {
            ": push.allow_private = true in this hub's settings lets it"
        }
        _ => "",
    }
}

/// What it says of a subscriber that it could not be asked. Not more than its host is named: who knows a
/// callback can end the subscription.
fn unasked(host: &str, error: &net::Error) -> Verdict {
    match error {
        // It is there, and sends us on to who has not asked for anything.
        net::Error::Redirects { .. } | net::Error::LedInside { .. } => {
            tracing::info!(host, "a subscriber that is to be asked sends us on; it is not told");
            Verdict::No
        }
        net::Error::Refused { refusal, .. } => {
            let advice = advice(*refusal);
            tracing::warn!(host, "a subscriber may not be asked, since it is at {refusal}{advice}");
            Verdict::No
        }
        error => {
            tracing::info!(%error, "a subscriber cannot be asked");
            Verdict::Silent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only who may be there another time is asked again.
    #[test]
    fn who_may_not_be_asked_is_not_asked_again() {
        let (host, address) = ("h".to_owned(), std::net::Ipv4Addr::LOCALHOST.into());
        let refused = net::Error::Refused { host, address, refusal: Refusal::Loopback };
        assert_eq!(unasked("h", &refused), Verdict::No);
        let url = "http://h/a-secret".to_owned();
        let sent_on = net::Error::Redirects { url, redirects_max: 0 };
        assert_eq!(unasked("h", &sent_on), Verdict::No);
        let (host, source) = ("h".to_owned(), std::io::Error::other("away"));
        assert_eq!(unasked("h", &net::Error::Connect { host, source }), Verdict::Silent);
    }
}
