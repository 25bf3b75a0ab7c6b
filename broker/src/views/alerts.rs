//! Alerts: the webhooks of views are told of what comes and leaves.
//!
//! Nothing is queued. Each webhook has a cursor, a note of the collection, and is told of what the view has after it;
//! the cursor moves once the receiver has answered. So nothing is lost over a restart, a receiver that is away costs
//! nothing, and a message may come twice. A failure is tried again after 1, 2, 4 … 300 s, without end; an answer 410
//! ends a webhook until the next start or change of its view.
//!
//! Requests follow no redirect, and reach private networks only if `allow_private` of `[push]` says so.
//!
//! Source: ours.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::{Batch, Collection, Note, Stamp, Version};
use daemon::Control;
use exchange::push::signature::{self, HEADER, Method};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use net::client::{Client, Request, Timeouts};
use net::clock;
use net::shutdown::Shutdown;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;

use super::View;
use super::membership::{Membership, Present};
use super::webhook::{Cursor, Message, Webhook, part};
use crate::blocking::blocking;
use crate::error::Error;

/// Beginning of the keys of the cursors.
const CURSOR: &[u8] = b"views/told/";
/// Number of serials without anything to tell after which the cursor is written nevertheless.
const IDLE_SERIALS_MAX: u64 = 10_000;
/// The same time, so that no cursor falls behind the horizon.
const IDLE_MAX: Duration = Duration::from_secs(3_600);
/// Longest pause between attempts.
const RETRY_MAX: Duration = Duration::from_secs(300);
/// Pause before it is seen again whether a view is known.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    header: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    total: Some(Duration::from_secs(20)),
};

/// How it goes with a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookStatus {
    /// The host that is told.
    pub host: String,
    /// Number of messages that were taken since the start, or since the view changed.
    pub told: u64,
    /// The version up to which it is told; `None`: it is not known yet what the view has.
    pub to: Option<String>,
    /// Why the last attempt failed; `None`: it did not.
    pub problem: Option<String>,
}

/// The webhooks of all views. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct Alerts(Arc<Telling>);

#[derive(Debug)]
struct Telling {
    collection: Collection,
    membership: Membership,
    views: Present,
    client: Client,
    allow_private: bool,
    states: Mutex<BTreeMap<String, WebhookStatus>>,
}

/// What came of an attempt.
enum Outcome {
    /// Everything is told up to a version.
    Idle(Version),
    /// A message was taken. There may be more.
    Told(Version),
    /// The view is not known.
    Unknown,
    Failed(String),
    /// The receiver wants no more.
    Over,
}

impl Alerts {
    pub(crate) fn new(
        collection: Collection,
        (membership, views): (Membership, Present),
        control: &Control,
        allow_private: bool,
    ) -> Self {
        let settings = net::client::Settings {
            timeouts: TIMEOUTS,
            redirects_max: 0,
            response_bytes_max: ANSWER_BYTES_MAX,
            ..control.client_settings()
        };
        let (client, states) = (Client::new(settings), Mutex::default());
        Self(Arc::new(Telling { collection, membership, views, client, allow_private, states }))
    }

    /// Returns how it goes with each webhook, by the names of their views.
    pub(crate) fn status(&self) -> BTreeMap<String, WebhookStatus> {
        self.states().clone()
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<String, WebhookStatus>> {
        self.0.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the webhooks until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let mut defined = self.0.views.watch();
        while !shutdown.is_started() {
            let views = defined.borrow_and_update().clone();
            let told: Vec<View> = views.all().filter(|it| it.webhook.is_some()).cloned().collect();
            let names: Vec<String> = told.iter().map(|it| it.name.clone()).collect();
            self.states().clear();
            let this = self.clone();
            if let Err(error) = blocking("webhooks", move || this.forget(&names)).await {
                tracing::warn!(%error, "the cursors of former webhooks stay");
            }
            let mut tasks = JoinSet::new();
            for view in told {
                let this = self.clone();
                tasks.spawn(async move { this.tell(view).await });
            }
            tokio::select! {
                () = shutdown.started() => {}
                _ = defined.changed() => {}
            }
            tasks.shutdown().await;
        }
    }

    /// Tells one webhook of everything; ends when its receiver wants no more.
    async fn tell(&self, view: View) {
        let Some(webhook) = &view.webhook else { return };
        let host = webhook.url.host_str().unwrap_or_default().to_owned();
        self.states().insert(view.name.clone(), WebhookStatus { host, ..WebhookStatus::default() });
        let (mut reached, mut failures) = (self.0.membership.watch(), 0_u32);
        let mut written = clock::monotonic();
        loop {
            reached.borrow_and_update();
            let is_due = IDLE_MAX <= clock::monotonic().duration_since(written);
            written = if is_due { clock::monotonic() } else { written };
            let outcome = match self.step(&view, webhook, is_due).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::Failed(error.to_string()),
            };
            let problem = match &outcome {
                Outcome::Failed(problem) => Some(problem.clone()),
                Outcome::Over => Some("its receiver wants no more messages".to_owned()),
                _ => None,
            };
            if let Some(problem) = &problem {
                tracing::warn!(view = view.name, problem, "a webhook is not told");
            }
            if let Some(state) = self.states().get_mut(&view.name) {
                state.told += u64::from(matches!(outcome, Outcome::Told(_)));
                state.problem = problem;
                if let Outcome::Idle(to) | Outcome::Told(to) = &outcome {
                    state.to = Some(to.to_string());
                }
            }
            failures = if matches!(outcome, Outcome::Failed(_)) { failures + 1 } else { 0 };
            match outcome {
                Outcome::Told(_) => {}
                Outcome::Idle(_) => drop(timeout(IDLE_MAX, reached.changed()).await),
                Outcome::Unknown => sleep(UNKNOWN).await,
                Outcome::Failed(_) => {
                    let pause = Duration::from_secs(1 << (failures - 1).min(16)).min(RETRY_MAX);
                    sleep(pause).await;
                }
                Outcome::Over => return,
            }
        }
    }

    /// Posts the next message, if there is one.
    async fn step(&self, view: &View, webhook: &Webhook, is_due: bool) -> Result<Outcome, Error> {
        let (this, of) = (self.clone(), view.clone());
        let next = blocking("a webhook", move || this.next(&of, is_due)).await?;
        let Some((message, cursor)) = next else { return Ok(Outcome::Unknown) };
        let epoch = self.0.membership.watch().borrow().epoch;
        let to = Version { epoch, serial: cursor.serial };
        let Some(message) = message else { return Ok(Outcome::Idle(to)) };
        let body = serde_json::to_vec(&message).unwrap_or_default();
        let signed = signature::sign(&webhook.secret, Method::Sha256, &body);
        let mut request = Request::post(webhook.url.clone(), body)
            .allow_private(self.0.allow_private)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(signed) = HeaderValue::try_from(signed) {
            request = request.header(HeaderName::from_static(HEADER), signed);
        }
        let response = match self.0.client.send(request).await {
            Ok(response) => response,
            Err(error) => return Ok(Outcome::Failed(self.advised(&error, &webhook.url))),
        };
        if response.status == StatusCode::GONE {
            return Ok(Outcome::Over);
        }
        if !response.status.is_success() {
            return Ok(Outcome::Failed(format!("its receiver answers {}", response.status)));
        }
        let (this, name) = (self.clone(), view.name.clone());
        blocking("a webhook", move || this.commit(&name, &cursor)).await?;
        Ok(Outcome::Told(to))
    }

    /// Returns the next message, if there is one, and the cursor behind it; `None`: the view is not known. Blocks.
    fn next(&self, view: &View, is_due: bool) -> Result<Option<(Option<Message>, Cursor)>, Error> {
        let Telling { collection, membership, .. } = &*self.0;
        let reached = *membership.watch().borrow();
        let Some((of, kept)) = membership.subset(view) else { return Ok(None) };
        let Some(subset) = kept.now() else { return Ok(None) };
        let (key, to) = ([CURSOR, view.name.as_bytes()].concat(), reached.serial);
        let note = collection.note(&key)?.unwrap_or_default();
        let known = serde_json::from_slice::<Cursor>(&note).ok();
        let message = |to: u64| Message {
            view: view.name.clone(),
            title: view.title.clone(),
            to: Version { serial: to, ..reached }.to_string(),
            ..Message::default()
        };
        if reached.epoch != collection.version().epoch {
            return Ok(None);
        }
        let Some(mut cursor) = known else {
            // Who asks now is told of what comes from now on.
            let cursor = Cursor { of, serial: to };
            self.commit(&view.name, &cursor)?;
            return Ok(Some((None, cursor)));
        };
        if cursor.of != of {
            // The view, or the log, is another one: what left it meanwhile is not known.
            return Ok(Some((
                Some(Message { incomplete: true, ..message(to) }),
                Cursor { of, serial: to },
            )));
        }
        let from = cursor.serial;
        let incomplete = from < collection.horizon();
        loop {
            let part = part(&subset, cursor.serial, to);
            let mut message = Message { incomplete, more: part.more, ..message(part.to) };
            for scanned in collection.pick(part.serials) {
                message.add(&scanned?, &subset);
            }
            if *membership.watch().borrow() != reached {
                // What left by a change that another one has replaced is told with that one.
                return Ok(Some((None, Cursor { serial: from, ..cursor })));
            }
            cursor.serial = part.to;
            if !message.changed.is_empty() || !message.left.is_empty() || incomplete {
                return Ok(Some((Some(message), cursor)));
            }
            // What changed meanwhile comes with its new serial.
            if !part.more {
                break;
            }
        }
        if from + IDLE_SERIALS_MAX < cursor.serial || is_due && from < cursor.serial {
            self.commit(&view.name, &cursor)?;
        }
        Ok(Some((None, cursor)))
    }

    fn commit(&self, view: &str, cursor: &Cursor) -> Result<(), Error> {
        let key = [CURSOR, view.as_bytes()].concat();
        let value = Some(serde_json::to_vec(cursor).unwrap_or_default());
        self.write(vec![Note { key, value }])
    }

    /// Removes the cursors of views without a webhook.
    fn forget(&self, names: &[String]) -> Result<(), Error> {
        let mut notes = Vec::new();
        for note in self.0.collection.notes(CURSOR) {
            let (key, _) = note?;
            let name = key.get(CURSOR.len()..).unwrap_or_default();
            if !names.iter().any(|it| it.as_bytes() == name) {
                notes.push(Note { key, value: None });
            }
        }
        if notes.is_empty() { Ok(()) } else { self.write(notes) }
    }

    fn write(&self, notes: Vec<Note>) -> Result<(), Error> {
        let batch = Batch { changes: Vec::new(), notes };
        self.0.collection.commit(batch, Stamp(clock::now_ms()))?;
        Ok(())
    }

    /// Returns an error in words, with the setting that helps.
    fn advised(&self, error: &net::Error, url: &Url) -> String {
        let is_private =
            matches!(error, net::Error::Refused { .. } | net::Error::PrivateName { .. });
        let advice = match is_private && !self.0.allow_private {
            true => "; allow_private = true in [push] allows it",
            false => "",
        };
        // The URL may have a secret of the receiver's in it.
        let host = url.host_str().unwrap_or_default();
        format!("{}{advice}", error.to_string().replace(url.as_str(), host))
    }
}
