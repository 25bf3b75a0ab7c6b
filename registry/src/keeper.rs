//! The keeper: it follows up announcements, keeps the leases, and writes the records of servers.

mod asking;
mod deciding;
mod listing;
mod writing;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use broker::error::Error;
use broker::route::directory::Directory;
use broker::server::Handle;
use collection::{Change, Collection};
use daemon::announce::{Announcement, Goodbye, Reply, State};
use daemon::describe::Description;
use exchange::servers::{self, ServerKind};
use http::StatusCode;
use net::clock::JumpDetector;
use net::shutdown::Shutdown;
use net::{clock, identity};
use tokio::time::sleep;
use url::Url;

use crate::admission::{Admission, Objection};
use crate::answer::Refused;
use crate::config::Announcements;
use crate::leases::{Decision, Lease, Leases, Standing, Terms};
use crate::proof::{self, Fault, Pin};
use crate::reach::Reach;
use crate::refusals::Refusals;
use crate::summaries::Summaries;
use asking::Asking;
pub use writing::SOURCE;

/// Longest address, in bytes.
const URL_BYTES_MAX: usize = 2_048;
/// Time after which figures that have changed are written, in milliseconds.
const FIGURES_MS: u64 = 3_600_000;
/// Time between two looks for servers that are gone.
const LOOK: Duration = Duration::from_secs(10);
/// Longest time for which a known server that did not answer is not asked again.
const SILENCE: Duration = Duration::from_secs(60);
/// Time after which to come again where there is no room now, in seconds.
const CROWDED_SECS: u64 = 10;

/// The keeper. Clones share it.
#[derive(Clone, Debug)]
pub struct Keeper(Arc<Keeping>);

#[derive(Debug)]
struct Keeping {
    broker: Handle,
    collection: Collection,
    asking: Asking,
    leases: Mutex<Leases>,
    admission: Mutex<Admission>,
    refusals: Mutex<Refusals>,
    directory: Mutex<Directory>,
    summaries: Summaries,
    /// Locked while something is written: the writes of a server are in the order of its messages.
    turn: tokio::sync::Mutex<()>,
}

/// Why an announcement is refused: its kind, the reason for people, and the key that an administrator can approve.
struct Refusal {
    kind: &'static str,
    reason: String,
    key: Option<String>,
}

impl Refusal {
    fn new(kind: &'static str, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), key: None }
    }
}

impl Keeper {
    /// Returns the keeper of the servers in a registry's collection. Blocks.
    ///
    /// # Errors
    ///
    /// The collection cannot be read.
    pub fn open(
        broker: Handle,
        announcements: Announcements,
        reach: Reach,
        summaries: Summaries,
    ) -> Result<Self, Error> {
        let (collection, client) = (broker.collection().clone(), broker.client());
        let known = writing::read(&collection)?;
        let now_ms = clock::now_ms();
        let Announcements { every, ttl, approval, .. } = announcements;
        let ms = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let terms = Terms { every_ms: ms(every), ttl_ms: ms(ttl), approval };
        let mut leases = Leases::new(terms, known, now_ms);
        deciding::release_waiting(&collection, &summaries, &mut leases)?;
        Ok(Self(Arc::new(Keeping {
            broker,
            collection,
            asking: Asking::new(client, reach),
            leases: Mutex::new(leases),
            admission: Mutex::new(Admission::new(clock::monotonic())),
            refusals: Mutex::default(),
            directory: Mutex::default(),
            summaries,
            turn: tokio::sync::Mutex::default(),
        })))
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        locked(&self.0.leases)
    }

    /// Removes servers that are gone, until the shutdown starts.
    pub async fn run(&self, shutdown: Shutdown) {
        let mut clock = JumpDetector::start();
        loop {
            // It waits for the index, which may have ended before that.
            let hidden = tokio::select! {
                () = shutdown.started() => return,
                hidden = self.hide_revoked() => hidden,
            };
            if let Err(error) = hidden {
                tracing::warn!(%error, "servers that are revoked may still be found; tried again");
            }
            tokio::select! {
                () = shutdown.started() => return,
                () = sleep(LOOK) => {}
            }
            if let Err(error) = self.remove_gone(&mut clock).await {
                tracing::warn!(%error, "servers that are gone are still listed; tried again");
            }
        }
    }

    async fn remove_gone(&self, clock: &mut JumpDetector) -> Result<(), Error> {
        let _turn = self.0.turn.lock().await;
        let gone: Vec<(String, Lease)> = {
            let (mut leases, now_ms) = (self.leases(), clock::now_ms());
            if let Some(by_ms) = clock.jump_ms() {
                tracing::warn!(by_ms, "the clock was set: silence counts from now on");
                leases.begin(now_ms);
            }
            let gone = leases.gone(now_ms).into_iter();
            gone.filter_map(|id| Some((id.clone(), leases.get(&id)?.clone()))).collect()
        };
        if gone.is_empty() {
            return Ok(());
        }
        let changes = gone.iter().map(|(id, lease)| writing::released(id, lease)).collect();
        let notes: Vec<_> = gone.iter().map(|(id, lease)| (id.clone(), kept(lease))).collect();
        self.write(changes, notes.clone()).await?;
        for (id, lease) in notes {
            tracing::info!(%id, "a server is gone");
            self.leases().replace(&id, lease);
        }
        for (id, _) in gone {
            self.forget_summary(&id).await?;
        }
        Ok(())
    }

    async fn forget_summary(&self, id: &str) -> Result<(), Error> {
        let (summaries, id) = (self.0.summaries.clone(), id.to_owned());
        blocking(move || summaries.forget(&id)).await
    }

    async fn write(
        &self,
        changes: Vec<Change>,
        leases: Vec<(String, Option<Lease>)>,
    ) -> Result<(), Error> {
        let collection = self.0.collection.clone();
        blocking(move || writing::write(&collection, changes, &leases)).await
    }

    /// Follows up an announcement that came from an address, and answers it.
    pub async fn announced(&self, from: IpAddr, asked: Announcement) -> (StatusCode, Reply) {
        match self.follow_up(from, &asked).await {
            Ok(answer) => answer,
            Err(refusal) => {
                let reason = refusal.reason.clone();
                tracing::debug!(%from, id = asked.id, reason, "an announcement is refused");
                self.note_refusal(from, &asked, refusal);
                let every_secs = self.every_secs();
                let reply = Reply { state: State::Refused, reason: Some(reason), every_secs };
                (StatusCode::FORBIDDEN, reply)
            }
        }
    }

    fn note_refusal(&self, from: IpAddr, asked: &Announcement, refusal: Refusal) {
        let Refusal { kind, reason, key } = refusal;
        let refused = Refused {
            at: clock::now_ms() / 1_000,
            from: from.to_string(),
            id: asked.id.chars().take(16).collect(),
            url: asked.base_url.as_str().chars().take(200).collect(),
            reason,
            key,
        };
        locked(&self.0.refusals).add(kind, refused);
    }

    fn every_secs(&self) -> u64 {
        self.leases().terms().every_ms / 1_000
    }

    async fn follow_up(
        &self,
        from: IpAddr,
        asked: &Announcement,
    ) -> Result<(StatusCode, Reply), Refusal> {
        well_formed(asked)?;
        self.ensure_welcome(asked)?;
        let known = self.leases().get(&asked.id).cloned();
        let is_known = known.as_ref().is_some_and(|it| it.url == asked.base_url);
        let admitted =
            locked(&self.0.admission).admit(from, (&asked.id, is_known), clock::monotonic());
        match (admitted, &known) {
            (Ok(()), _) => {}
            (Err(Objection::Again), Some(lease)) => return Ok((StatusCode::OK, self.reply(lease))),
            (
                Err(Objection::Own(wait) | Objection::Strangers(wait) | Objection::Silent(wait)),
                _,
            ) => return Ok(self.later(wait.as_secs() + 1)),
            (Err(Objection::Again), None) => return Ok(self.later(CROWDED_SECS)),
        }
        let Some(permit) = self.0.asking.permit(from, is_known, asked).await else {
            return Ok(self.later(CROWDED_SECS));
        };
        let found = self.0.asking.ask(asked).await;
        drop(permit);
        if is_known && found.is_err() {
            let pause = SILENCE.min(Duration::from_secs(self.every_secs()));
            locked(&self.0.admission).leave_alone(&asked.id, pause, clock::monotonic());
        }
        let (body, signature) = found.map_err(|reason| Refusal::new("unreachable", reason))?;
        let lease = self.take(asked, (&body, &signature)).await?;
        Ok((StatusCode::OK, self.reply(&lease)))
    }

    /// Checks that an announced server is not revoked, and that there is room for it.
    fn ensure_welcome(&self, asked: &Announcement) -> Result<(), Refusal> {
        let leases = self.leases();
        if leases.get(&asked.id).is_some_and(|it| it.decision == Decision::Revoked) {
            let reason = "an administrator of the registry has revoked it";
            return Err(Refusal::new("revoked", reason));
        }
        let reason = leases.is_full(&asked.id, &asked.base_url);
        reason.map_or(Ok(()), |reason| Err(Refusal::new("full", reason)))
    }

    fn later(&self, every_secs: u64) -> (StatusCode, Reply) {
        let reason = Some("much is announced at present: again later".to_owned());
        (StatusCode::TOO_MANY_REQUESTS, Reply { state: State::Later, reason, every_secs })
    }

    fn reply(&self, lease: &Lease) -> Reply {
        let standing = self.leases().standing(lease, clock::now_ms());
        let state = if standing == Standing::Waiting { State::Waiting } else { State::Listed };
        Reply { state, reason: None, every_secs: self.every_secs() }
    }

    /// Takes what was found at an announced address, if it proves what was announced.
    async fn take(&self, asked: &Announcement, found: (&[u8], &str)) -> Result<Lease, Refusal> {
        let _turn = self.0.turn.lock().await;
        // Others may have come while it was asked, or it was revoked.
        self.ensure_welcome(asked)?;
        let (known, terms) = {
            let leases = self.leases();
            (leases.get(&asked.id).cloned(), leases.terms())
        };
        // Of one that only others have listed, the key may not be known.
        let pin = known.as_ref().map(|it| &it.pin).filter(|it| !it.key.is_empty());
        let now_ms = clock::now_ms();
        let (kind, description) = match proof::check(found, asked, pin, now_ms) {
            Ok(proved) => proved,
            Err(fault @ (Fault::Key | Fault::OtherKey)) => {
                let key = serde_json::from_slice::<Description>(found.0).map(|it| it.key).ok();
                return Err(Refusal { key, ..Refusal::new("key", fault.to_string()) });
            }
            Err(fault) => return Err(Refusal::new("proof", fault.to_string())),
        };
        let decision = known.as_ref().map(|it| it.decision).unwrap_or_default();
        let lease = Lease { decision, ..leased(&description, kind, &asked.base_url, now_ms) };
        let is_listed = decision == Decision::Approved || !terms.approval;
        self.keep(&asked.id, (known.as_ref(), lease, is_listed), &description).await.map_err(
            |error| {
                tracing::warn!(%error, id = asked.id, "a server was not written");
                Refusal::new("failed", "the registry cannot write at present")
            },
        )
    }

    /// Writes what is new of a server that has proved what it is.
    async fn keep(
        &self,
        id: &str,
        (known, mut lease, is_listed): (Option<&Lease>, Lease, bool),
        description: &Description,
    ) -> Result<Lease, Error> {
        let terms = self.leases().terms();
        let (every_secs, ttl_secs) = (terms.every_ms / 1_000, terms.ttl_ms / 1_000);
        let at = (lease.kind, &lease.url);
        let record = servers::record(description, at, (every_secs, ttl_secs));
        let digest = servers::lasting(&record).to_string();
        let mut changes = Vec::new();
        if let Some(old) = known.filter(|it| it.url != lease.url && !it.written.is_empty()) {
            changes.push(writing::released(id, old));
        }
        let is_news = known.is_none_or(|it| it.written != digest || it.url != lease.url);
        let written_ms = known.map_or(0, |it| it.written_ms);
        let figures_ms = FIGURES_MS.min(terms.ttl_ms / 3);
        let is_due = figures_ms < lease.seen_ms.saturating_sub(written_ms);
        if is_listed && (is_news || is_due) {
            changes.push(Change::Update(record));
            (lease.written, lease.written_ms) = (digest, lease.seen_ms);
        } else if let Some(known) = known.filter(|_| is_listed) {
            (lease.written, lease.written_ms) = (known.written.clone(), known.written_ms);
        }
        // Whoever sees the record sees the lease, too.
        self.leases().put(id, lease.clone());
        // A lease that is only renewed is not written.
        if !changes.is_empty() || known.is_none() {
            let written = self.write(changes, vec![(id.to_owned(), Some(lease.clone()))]).await;
            written.inspect_err(|_| self.leases().replace(id, known.cloned()))?;
        }
        if known.is_none() {
            tracing::info!(id, url = %lease.url, kind = lease.kind.name(), "a server is new");
        }
        if is_listed && let Some(version) = &description.facts.summary {
            self.0.summaries.want(id, &lease.url, version);
        }
        Ok(lease)
    }

    /// Takes a goodbye, as it was sent, with its signature; returns whether it counts.
    pub async fn goodbye(&self, body: &[u8], signature: &str) -> bool {
        let Ok(Goodbye { goodbye: id, sequence }) = serde_json::from_slice(body) else {
            return false;
        };
        let _turn = self.0.turn.lock().await;
        let Some(lease) = self.leases().get(&id).cloned() else { return false };
        let is_new = lease.pin.sequence < sequence;
        if !is_new || !identity::verify(&lease.pin.key, body, signature) {
            return false;
        }
        // It is the daemon's own word, and travels to all registries that have heard of it.
        let gone = Change::Withdraw(writing::object(&id, &lease), servers::version(sequence));
        // Nor must an older message bring it back.
        let kept = kept(&Lease { pin: Pin { sequence, ..lease.pin.clone() }, ..lease });
        if let Err(error) = self.write(vec![gone], vec![(id.clone(), kept.clone())]).await {
            tracing::warn!(%error, id, "a goodbye was not written");
            return false;
        }
        self.leases().replace(&id, kept);
        if let Err(error) = self.forget_summary(&id).await {
            tracing::warn!(%error, id, "the summary of a server that has ended is still there");
        }
        tracing::info!(id, "a server has said goodbye");
        true
    }
}

/// Returns what is kept of the lease of a server that is listed no more: who is approved, or revoked, stays it.
fn kept(lease: &Lease) -> Option<Lease> {
    let is_kept = lease.decision != Decision::None;
    is_kept.then(|| Lease { written: String::new(), ..lease.clone() })
}

/// Returns a lease of a server that has just been heard of.
fn leased(description: &Description, kind: ServerKind, url: &Url, now_ms: u64) -> Lease {
    Lease {
        pin: Pin { key: description.key.clone(), sequence: description.sequence },
        kind,
        name: description.facts.name.chars().take(200).collect(),
        url: url.clone(),
        seen_ms: now_ms,
        decision: Decision::None,
        written: String::new(),
        written_ms: 0,
    }
}

/// Checks the form of an announcement.
fn well_formed(asked: &Announcement) -> Result<(), Refusal> {
    let is_id = asked.id.len() == 16 && asked.id.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_id {
        return Err(Refusal::new("malformed", "an id has 16 hex digits"));
    }
    let url = &asked.base_url;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let is_short = url.as_str().len() <= URL_BYTES_MAX;
    if !matches!(url.scheme(), "http" | "https")
        || !is_plain
        || !is_short
        || !url.path().ends_with('/')
    {
        let reason = "base_url is an http or https URL that ends with a slash";
        return Err(Refusal::new("malformed", reason));
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::Worker { what: error.to_string() }))
}
