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

/// Longest answer, in bytes.
const BYTES_MAX: u64 = 16 << 20;

/// Why a broker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// None came in time.
    Late,
    /// It wants a token.
    Closed,
    /// It does not know a parameter: it is of an older version.
    Older,
    /// It failed, as the text says.
    Failed(String),
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
    allow_private: bool,
    paces: Mutex<Paces>,
}

impl Asking {
    pub(crate) fn new(client: Client, allow_private: bool) -> Self {
        Self { client, allow_private, paces: Mutex::default() }
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
        loop {
            let is_due = running.is_empty() || hedge <= Instant::now();
            if is_due && let Some(url) = waiting.next() {
                hedge = Instant::now() + self.paces().hedge(&url);
                let request = self.request(peer, &url, (path, parameters));
                let (client, spent) = (self.client.clone(), Arc::clone(spent));
                spent.messages.fetch_add(1, Ordering::Relaxed);
                running.spawn(async move {
                    let began = Instant::now();
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
                    self.paces().answered(&url, took);
                    return Ok((answer, url));
                }
                Some(Ok((url, _, Err(failed)))) => {
                    // Who refuses is there.
                    if matches!(failed, Failure::Late | Failure::Failed(_)) {
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
        Ok(Request {
            timeouts: Some(Timeouts { connect: Duration::from_secs(2), ..Timeouts::default() }),
            response_bytes_max: Some(BYTES_MAX),
            // A token is for the one that is named.
            keeps_redirect: token.is_some(),
            ..Request::get(url).token(token).allow_private(self.allow_private)
        })
    }
}

async fn answer<T: DeserializeOwned>(
    client: &Client,
    request: Request,
    spent: &Spent,
) -> Result<T, Failure> {
    let failed = |error: net::Error| Failure::Failed(error.to_string());
    let response = client.send(request).await.map_err(failed)?;
    let status = response.status;
    let bytes = response.bytes(BYTES_MAX).await.map_err(failed)?;
    spent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    match status {
        StatusCode::OK => serde_json::from_slice(&bytes)
            .map_err(|_other| Failure::Failed("it answers in another form".to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::Closed),
        _ => {
            let json: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
            let error = json.as_ref().and_then(|it| it.get("error"));
            let text =
                |name| Some(error?.get(name)?.as_str()?.chars().take(300).collect::<String>());
            if status == StatusCode::NOT_FOUND || text("parameter").is_some() {
                return Err(Failure::Older);
            }
            let said = text("message").map(|it| format!(": {it}")).unwrap_or_default();
            Err(Failure::Failed(format!("it answers {status}{said}")))
        }
    }
}
