//! The announcer of a daemon: it announces to each registry until the daemon ends, and says goodbye.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use net::client::{Client, Request, Timeouts};
use net::shutdown::Shutdown;
use net::{client, clock};
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;
use web::foreign::visible;

use super::gathering::gatherers_of;
use super::registries::{Registries, pause};
use super::{Announced, Announcement, GOODBYE_PATH, Goodbye, PATH, Reply, State};
use crate::Settings;
use crate::describe::{Describer, Facts, SIGNATURE};

/// Time that a registry has to answer. It asks back meanwhile.
const ANSWER: Duration = Duration::from_secs(30);
/// Time that a goodbye may take.
const GOODBYE: Duration = Duration::from_millis(500);
/// Time between two questions who else gathers the same.
const OTHERS_EVERY: Duration = Duration::from_secs(3_600);
/// Maximum number of sites that are asked about.
const SITES_MAX: usize = 50;
/// Time after which news is told, so that news in quick succession is told together.
const NEWS_AFTER: Duration = Duration::from_secs(3);
/// Longest answer, in bytes.
const REPLY_BYTES_MAX: u64 = 16 << 10;

/// Signs bytes with the daemon's key.
pub type Sign = Arc<dyn Fn(&[u8]) -> String + Send + Sync>;

/// Collects the facts about the daemon; may block for a moment.
type Look = Arc<dyn Fn() -> Facts + Send + Sync>;

/// What announces a daemon to its registries. Clones share it.
#[derive(Clone, Default)]
pub struct Announcing(Arc<Shared>);

#[derive(Default)]
struct Shared {
    registries: Registries,
    client: Option<Client>,
    /// The address of the daemon for others; none if nothing says which.
    address: OnceLock<Option<Url>>,
    daemon: OnceLock<Daemon>,
    announced: Mutex<BTreeMap<Url, Announced>>,
    /// Number of times that there was news, which registries are told at once.
    news: watch::Sender<u64>,
}

/// What the daemon says of itself.
struct Daemon {
    describer: Describer,
    look: Look,
    sign: Sign,
}

impl fmt::Debug for Announcing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Announcing").field(&self.0.registries).finish()
    }
}

impl Announcing {
    /// Returns what announces to the registries of the settings.
    pub(crate) fn new(settings: &Settings, client: &client::Settings) -> Self {
        let registries = settings.registry.clone();
        let timeouts = Timeouts { total: Some(ANSWER), ..client.timeouts };
        let client = client::Settings { timeouts, ..client.clone() };
        let client = (!registries.urls.is_empty()).then(|| Client::new(client));
        Self(Arc::new(Shared { registries, client, ..Shared::default() }))
    }

    /// Takes the address at which the daemon listens in public.
    pub(crate) fn listens_at(&self, settings: &Settings, address: SocketAddr) {
        let own = || format!("{}://{address}/", settings.scheme()).parse().ok();
        let concrete = (!address.ip().is_unspecified()).then(own).flatten();
        // It is set once; a daemon has one public listener.
        let _first = self.0.address.set(settings.base_url.clone().or(concrete));
    }

    /// Returns the address of the daemon for others.
    pub(crate) fn address(&self) -> Option<Url> {
        self.0.address.get().cloned().flatten()
    }

    /// Takes what describes the daemon, and what signs for it.
    pub(crate) fn is_described_by(&self, describer: &Describer, look: Look, sign: Sign) {
        let _first = self.0.daemon.set(Daemon { describer: describer.clone(), look, sign });
    }

    /// Has the registries told at once that the description is another one.
    pub(crate) fn again(&self) {
        self.0.news.send_modify(|it| *it += 1);
    }

    /// Returns how it goes with each registry.
    pub fn status(&self) -> Vec<Announced> {
        self.announced().values().cloned().collect()
    }

    fn announced(&self) -> MutexGuard<'_, BTreeMap<Url, Announced>> {
        self.0.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces until `stop` starts, then says goodbye.
    pub(crate) async fn run(&self, stop: &Shutdown) {
        let mut running = JoinSet::new();
        for registry in self.0.registries.urls.clone() {
            let (this, stop) = (self.clone(), stop.clone());
            running.spawn(async move { this.announce_to(&registry, &stop).await });
        }
        while running.join_next().await.is_some() {}
    }

    async fn announce_to(&self, registry: &Url, stop: &Shutdown) {
        let (Some(daemon), Some(client)) = (self.0.daemon.get(), &self.0.client) else { return };
        let describer = &daemon.describer;
        let (mut failures, mut is_listed, mut asked) = (0, false, None);
        let mut news = self.0.news.subscribe();
        loop {
            let outcome = tokio::select! {
                () = stop.started() => break,
                outcome = self.announce(client, registry, describer.id()) => outcome,
            };
            failures = if outcome.is_err() { failures + 1 } else { 0 };
            is_listed |= outcome.as_ref().is_ok_and(|it| it.state == State::Listed);
            self.note(registry, &outcome);
            let now = clock::monotonic();
            let is_due = asked.is_none_or(|it| OTHERS_EVERY <= now.saturating_duration_since(it));
            if is_due && outcome.is_ok() {
                asked = Some(now);
                tokio::select! {
                    () = stop.started() => break,
                    others = others(client, registry, daemon) => self.note_others(registry, others),
                }
            }
            let pause = pause(outcome.as_ref().ok().ok_or(failures), describer.spread(failures));
            // News does not hurry a registry that is to be left alone.
            let is_taken = |it: &Reply| matches!(it.state, State::Listed | State::Waiting);
            let news = outcome.is_ok_and(|it| is_taken(&it)).then_some(&mut news);
            tokio::select! {
                () = stop.started() => break,
                () = rest(pause, news) => {}
            }
        }
        if is_listed {
            // A registry that does not hear it finds out by itself.
            let goodbye = self.say_goodbye(client, registry, daemon);
            let _heard = timeout(GOODBYE, goodbye).await;
        }
    }

    /// Keeps what came of an announcement, and says in the log what is new.
    fn note(&self, registry: &Url, outcome: &Result<Reply, String>) {
        let mut announced = self.announced();
        let known = entry(&mut announced, registry);
        let before = (known.state, known.problem.clone());
        match outcome {
            // It says nothing of the daemon.
            Ok(Reply { state: State::Later, .. }) => known.answered_ms = clock::now_ms(),
            Ok(reply) => {
                (known.state, known.answered_ms) = (Some(reply.state), clock::now_ms());
                known.problem = (reply.state == State::Refused).then(|| {
                    let reason = reply.reason.as_deref().unwrap_or("it does not say why");
                    format!("refused: {reason}")
                });
            }
            Err(problem) => known.problem = Some(problem.clone()),
        }
        if before == (known.state, known.problem.clone()) {
            return;
        }
        match (&known.problem, known.state) {
            (Some(problem), _) => tracing::warn!(%registry, problem, "not announced; tried again"),
            (None, state) => tracing::info!(%registry, ?state, "announced"),
        }
    }

    fn note_others(&self, registry: &Url, others: Vec<String>) {
        for it in &others {
            tracing::warn!("{it}");
        }
        entry(&mut self.announced(), registry).others = others;
    }

    /// Announces once. The error says in words why there is no answer.
    async fn announce(&self, client: &Client, registry: &Url, id: &str) -> Result<Reply, String> {
        let Some(base_url) = self.address() else {
            return Err(
                "nothing says by which address others reach this daemon: set base_url".to_owned()
            );
        };
        let allow_private = match self.0.registries.allow_private {
            Some(allow_private) => allow_private,
            None => client.is_private(registry).await,
        };
        if !allow_private && client.is_private(&base_url).await {
            return Err(format!(
                "{base_url} is in a private network, and the registry is not: set base_url to an address that \
                 others reach, or allow_private = true in [registry]"
            ));
        }
        let announcement = Announcement { id: id.to_owned(), base_url };
        let request = post(registry, PATH, &announcement)?.allow_private(allow_private);
        let said = |error: net::Error| error.to_string();
        let response = client.send(request).await.map_err(said)?;
        let status = response.status;
        let bytes = response.bytes(REPLY_BYTES_MAX).await.map_err(said)?;
        serde_json::from_slice(&bytes).map_err(|_not_json| match status {
            StatusCode::NOT_FOUND => format!("{registry} is no registry"),
            _ => format!("{registry} answers {status}, not as a registry does"),
        })
    }

    async fn say_goodbye(
        &self,
        client: &Client,
        registry: &Url,
        Daemon { describer, sign, .. }: &Daemon,
    ) -> Result<(), String> {
        let goodbye = describer.id().to_owned();
        let describer = describer.clone();
        let number = tokio::task::spawn_blocking(move || describer.number()).await;
        let sequence = number.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
        let goodbye = Goodbye { goodbye, sequence };
        let request = post(registry, GOODBYE_PATH, &goodbye)?;
        let signature = HeaderValue::try_from(sign(&request.body)).map_err(|it| it.to_string())?;
        let allow_private = self.0.registries.allow_private.unwrap_or(true);
        let request = request.header(SIGNATURE, signature).allow_private(allow_private);
        client.send(request).await.map(drop).map_err(|it| it.to_string())
    }
}

/// Waits for a pause, which ends soon after news if there may be some.
async fn rest(pause: Duration, news: Option<&mut watch::Receiver<u64>>) {
    let Some(news) = news else { return sleep(pause).await };
    tokio::select! {
        () = sleep(pause) => {}
        // The description is kept for some seconds.
        _ = news.changed() => sleep(pause.min(NEWS_AFTER)).await,
    }
}

fn entry<'a>(announced: &'a mut BTreeMap<Url, Announced>, registry: &Url) -> &'a mut Announced {
    announced.entry(registry.clone()).or_insert_with(|| Announced {
        registry: registry.clone(),
        state: None,
        problem: None,
        answered_ms: 0,
        others: Vec::new(),
    })
}

/// Returns who else gathers what this daemon gathers, each a sentence.
async fn others(client: &Client, registry: &Url, daemon: &Daemon) -> Vec<String> {
    let look = Arc::clone(&daemon.look);
    let facts = tokio::task::spawn_blocking(move || look()).await.unwrap_or_default();
    let mut others = Vec::new();
    for site in facts.gathers.iter().filter_map(|it| Url::parse(it).ok()).take(SITES_MAX) {
        // Who does not answer is asked again in an hour.
        let found = gatherers_of(client, registry, &site).await.unwrap_or_default();
        for it in found.into_iter().filter(|it| it.id != daemon.describer.id()) {
            others.push(format!(
                "{site} is gathered by {} too: a broker can pull {} instead",
                visible(&it.name),
                visible(&it.url)
            ));
        }
    }
    others
}

fn post(registry: &Url, path: &str, message: &impl Serialize) -> Result<Request, String> {
    let url = registry.join(path).map_err(|it| it.to_string())?;
    let body = serde_json::to_vec(message).map_err(|it| it.to_string())?;
    Ok(Request::post(url, body).header(CONTENT_TYPE, HeaderValue::from_static("application/json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_ends_a_pause_soon_but_not_at_once() {
        let day = Duration::from_secs(86_400);
        let (sender, mut news) = watch::channel(0);
        sender.send_modify(|it| *it += 1);
        let began = clock::monotonic();
        rest(day, Some(&mut news)).await;
        assert!(NEWS_AFTER <= clock::monotonic().saturating_duration_since(began));
        // Without leave to hurry there is the pause alone, and the news stays for the next one.
        sender.send_modify(|it| *it += 1);
        rest(Duration::from_millis(1), None).await;
        assert!(news.has_changed().unwrap());
    }

    #[test]
    fn who_is_to_come_later_has_no_trouble() {
        let announcing = Announcing::default();
        let registry = Url::parse("http://r/").unwrap();
        let reply = |state| Ok(Reply { state, ..Reply::default() });
        for (outcome, state, problem) in [
            (reply(State::Later), None, None),
            (reply(State::Listed), Some(State::Listed), None),
            (reply(State::Later), Some(State::Listed), None),
            (reply(State::Refused), Some(State::Refused), Some("refused: it does not say why")),
        ] {
            announcing.note(&registry, &outcome);
            let known = announcing.status().remove(0);
            assert_eq!((known.state, known.problem.as_deref()), (state, problem));
        }
    }
}
