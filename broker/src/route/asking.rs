//! Asking: requests to other brokers, each within its deadline, and to a replica as well if an answer is late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use net::client::{Client, Request, Timeouts};
use net::clock;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use super::paces::Paces;
use super::peers::Peer;
use crate::answer::{AskedState, HITS_DEFAULT};

/// Longest answer without hits, and how much longer it may be for each hit, in bytes.
const BYTES_MAX: u64 = 256 << 10;
const HIT_BYTES_MAX: u64 = 64 << 10;
/// The path of statistics.
pub(super) const STATISTICS: &str = "api/statistics";

/// Why a broker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// None came in time.
    Late,
    /// It wants a token.
    Closed,
    /// It does not know a parameter: it is of an older version.
    Older,
    /// It has had this search before, from somebody else.
    Known,
    /// It does not answer this question, as the text says; another one it may.
    Refused(String),
    /// It failed, as the text says.
    Failed(String),
}

impl Failure {
    /// Returns that of a broker that is left alone for now, since it has failed before.
    pub(super) fn resting() -> Self {
        Self::Failed("it has failed before, and is asked again later".to_owned())
    }
}

impl AskedState {
    /// Returns what came of a broker, and why, by its failure if it gave no answer.
    pub(super) fn of(failure: Option<&Failure>) -> (Self, Option<String>) {
        match failure {
            None => (Self::Answered, None),
            Some(Failure::Late) => (Self::Late, None),
            Some(Failure::Closed) => (Self::Closed, None),
            Some(Failure::Older) => (Self::Failed, Some("it is of an older version".to_owned())),
            Some(Failure::Known) => (Self::Failed, Some("it was asked already".to_owned())),
            Some(Failure::Refused(problem) | Failure::Failed(problem)) => {
                (Self::Failed, Some(problem.clone()))
            }
        }
    }
}

/// What requests have cost.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What asks.
#[derive(Debug)]
pub(crate) struct Asking {
    client: Client,
    paces: Mutex<Paces>,
}

impl Asking {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, paces: Mutex::default() }
    }

    fn paces(&self) -> MutexGuard<'_, Paces> {
        self.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a broker is left alone for now, since it has failed.
    pub(crate) fn rests(&self, peer: &Peer) -> bool {
        let (paces, now) = (self.paces(), clock::monotonic());
        peer.urls.iter().all(|it| paces.rests(it, now))
    }

    /// Asks a broker, and returns its answer with the address that gave it, before the deadline.
    pub(crate) async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        peer: &Peer,
        path: &str,
        parameters: &[(&str, &str)],
        (deadline, spent): (Instant, &Arc<Spent>),
    ) -> Result<(T, Url), Failure> {
        let mut waiting = self.paces().ordered(&peer.urls, clock::monotonic()).into_iter();
        let mut running: JoinSet<(Url, Duration, Result<T, Failure>)> = JoinSet::new();
        let (mut failure, mut hedge) = (Failure::Late, Instant::now());
        let mut asked: Vec<(Url, Instant)> = Vec::new();
        loop {
            let is_due = running.is_empty() || hedge <= Instant::now();
            if is_due && let Some(url) = waiting.next() {
                // So that the other has time left.
                let half = deadline.saturating_duration_since(Instant::now()) / 2;
                hedge = Instant::now() + self.paces().hedge(&url).min(half);
                let request = self.request(peer, &url, (path, parameters));
                let (client, spent) = (self.client.clone(), Arc::clone(spent));
                spent.messages.fetch_add(1, Ordering::Relaxed);
                let began = Instant::now();
                asked.push((url.clone(), began));
                running.spawn(async move {
                    let answer = match request {
                        Ok(request) => timeout_at(deadline, answer(&client, request, &spent)).await,
                        Err(failure) => Ok(Err(failure)),
                    };
                    (url, began.elapsed(), answer.unwrap_or(Err(Failure::Late)))
                });
            }
            let has_more = waiting.len() != 0;
            let ended = tokio::select! {
                ended = running.join_next() => ended,
                () = sleep_until(hedge), if has_more => continue,
            };
            match ended {
                Some(Ok((url, took, Ok(answer)))) => {
                    let mut paces = self.paces();
                    paces.answered(&url, took);
                    // Whoever was asked before and has not answered is slower than it seemed.
                    let others = asked.iter().filter(|it| it.0 != url);
                    others.for_each(|it| paces.outpaced(&it.0, it.1.elapsed()));
                    return Ok((answer, url));
                }
                Some(Ok((url, _, Err(failed)))) => {
                    // Who refuses is there, and statistics have little time.
                    let is_failure = match failed {
                        Failure::Late => path != STATISTICS,
                        Failure::Failed(_) => true,
                        Failure::Closed | Failure::Older | Failure::Known | Failure::Refused(_) => {
                            false
                        }
                    };
                    if is_failure {
                        self.paces().failed(&url, clock::monotonic());
                    }
                    failure = failed;
                }
                Some(Err(error)) => failure = Failure::Failed(error.to_string()),
                None if !has_more => return Err(failure),
                None => {}
            }
        }
    }

    fn request(
        &self,
        peer: &Peer,
        base: &Url,
        (path, parameters): (&str, &[(&str, &str)]),
    ) -> Result<Request, Failure> {
        let mut url = base.join(path).map_err(|it| Failure::Failed(it.to_string()))?;
        url.query_pairs_mut().extend_pairs(parameters);
        let token = peer.token.as_ref().map(|it| it.secret().to_owned());
        let hits = hits_asked(parameters);
        Ok(Request {
            timeouts: Some(Timeouts { connect: Duration::from_secs(2), ..Timeouts::default() }),
            response_bytes_max: Some(BYTES_MAX.saturating_add(hits.saturating_mul(HIT_BYTES_MAX))),
            // A token is for the one that is named.
            keeps_redirect: token.is_some(),
            ..Request::get(url).token(token).allow_private(peer.allow_private)
        })
    }
}

/// Returns for how many hits these parameters ask.
pub(super) fn hits_asked(parameters: &[(&str, &str)]) -> u64 {
    let limit = parameters.iter().find(|it| it.0 == "limit");
    limit.and_then(|it| it.1.parse().ok()).unwrap_or(HITS_DEFAULT as u64)
}

async fn answer<T: DeserializeOwned>(
    client: &Client,
    request: Request,
    spent: &Spent,
) -> Result<T, Failure> {
    let failed = |error: net::Error| Failure::Failed(error.to_string());
    let response = client.send(request).await.map_err(failed)?;
    let status = response.status;
    // The request bounds it.
    let bytes = response.bytes(u64::MAX).await.map_err(failed)?;
    spent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    match status {
        StatusCode::OK => serde_json::from_slice(&bytes)
            .map_err(|_other| Failure::Failed("it answers in another form".to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::Closed),
        StatusCode::CONFLICT => Err(Failure::Known),
        _ => {
            let json: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
            let error = json.as_ref().and_then(|it| it.get("error"));
            let text =
                |name| Some(error?.get(name)?.as_str()?.chars().take(300).collect::<String>());
            if status == StatusCode::NOT_FOUND || text("parameter").is_some() {
                return Err(Failure::Older);
            }
            let message = text("message").map(|it| format!(": {it}")).unwrap_or_default();
            let problem = format!("it answers {status}{message}");
            Err(if status.is_client_error() {
                Failure::Refused(problem)
            } else {
                Failure::Failed(problem)
            })
        }
    }
}
