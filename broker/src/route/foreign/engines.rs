//! Asking foreign engines, each within the deadline of the search.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use net::client::{Client, Request, Timeouts};
use net::clock;
use query::Query;
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use url::Url;

use super::description::{Template, template};
use super::{ForeignEngine, Found, Protocol, Term, fused, read, sru_address, terms, typed};
use crate::answer::{AskedBroker, AskedState, Foreign, FromBroker};
use crate::route::asking::{Failure, Spent};
use crate::route::paces::Paces;

/// Longest answer, in bytes.
const BYTES_MAX: u64 = 2 << 20;
/// For how long a description counts.
const DESCRIPTION_AGE: Duration = Duration::from_secs(86_400);

/// The foreign engines. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Engines(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    engines: Vec<ForeignEngine>,
    descriptions: Mutex<HashMap<Url, (Instant, Template)>>,
    paces: Mutex<Paces>,
}

/// Until when an engine may answer, and what it costs.
type Budget<'a> = (tokio::time::Instant, &'a Arc<Spent>);

impl Engines {
    pub(crate) fn new(client: Client, engines: Vec<ForeignEngine>) -> Self {
        let (descriptions, paces) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { client, engines, descriptions, paces }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.engines.is_empty()
    }

    /// Asks all engines, and returns what they have; `None`: there are none.
    pub(crate) async fn ask(
        &self,
        query: &Query,
        (deadline, spent): Budget<'_>,
    ) -> Option<Foreign> {
        if self.is_empty() {
            return None;
        }
        let terms: Option<Arc<[Term]>> = terms(query).map(Into::into);
        let mut running = JoinSet::new();
        for (at, engine) in self.0.engines.iter().enumerate() {
            let (this, engine) = (self.clone(), engine.clone());
            let (terms, spent) = (terms.clone(), Arc::clone(spent));
            running.spawn(async move {
                let began = clock::monotonic();
                let answer = this.ask_one(&engine, terms.as_deref(), (deadline, &spent)).await;
                (at, engine, answer, began.elapsed())
            });
        }
        let mut all: Vec<_> = running.join_all().await;
        all.sort_by_key(|it| it.0);
        let (mut asked, mut found) = (Vec::new(), Vec::new());
        for (_, engine, answer, took) in all {
            let total = answer.as_ref().map_or(0, |it| it.total.unwrap_or(it.hits.len() as u64));
            let (state, problem) = AskedState::of(answer.as_ref().err());
            let url = engine.url.to_string();
            let broker = FromBroker { id: String::new(), name: engine.name.clone(), url };
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            let default = AskedBroker::default();
            asked.push(AskedBroker { broker, state, total, took_ms, problem, ..default });
            found.extend(answer.ok().map(|it| (engine.name, it.hits)));
        }
        Some(Foreign { asked, hits: fused(found) })
    }

    async fn ask_one(
        &self,
        engine: &ForeignEngine,
        terms: Option<&[Term]>,
        (deadline, spent): Budget<'_>,
    ) -> Result<Found, Failure> {
        let Some(terms) = terms else {
            return Err(Failure::Refused("it is asked for words and phrases alone".to_owned()));
        };
        let paces = || self.0.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if paces().rests(&engine.url, clock::monotonic()) {
            return Err(Failure::resting());
        }
        let began = clock::monotonic();
        let answer = timeout_at(deadline, self.found(engine, terms, spent)).await;
        let answer = answer.unwrap_or(Err(Failure::Late));
        match &answer {
            Err(Failure::Late | Failure::Failed(_)) => {
                paces().failed(&engine.url, clock::monotonic());
            }
            _ => paces().answered(&engine.url, began.elapsed()),
        }
        answer
    }

    async fn found(
        &self,
        engine: &ForeignEngine,
        terms: &[Term],
        spent: &Spent,
    ) -> Result<Found, Failure> {
        let url = match engine.protocol {
            Protocol::Sru => sru_address(&engine.url, terms),
            Protocol::OpenSearch => {
                let template = self.described(&engine.url, spent).await?;
                template.filled(&engine.url, &typed(terms)).map_err(Failure::Failed)?
            }
        };
        // The settings name the engine; whatever else its description leads to may not be in a private network.
        let is_named = url.host() == engine.url.host();
        let answer = self.get(url, is_named, spent).await?;
        read::found(&answer).map_err(Failure::Failed)
    }

    /// Returns the template of an engine.
    async fn described(&self, url: &Url, spent: &Spent) -> Result<Template, Failure> {
        let known = || self.0.descriptions.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::monotonic();
        let found = known().get(url).cloned();
        if let Some((read, template)) = found
            && now.saturating_duration_since(read) < DESCRIPTION_AGE
        {
            return Ok(template);
        }
        let answer = self.get(url.clone(), true, spent).await?;
        let template = template(&String::from_utf8_lossy(&answer)).map_err(Failure::Failed)?;
        known().insert(url.clone(), (now, template.clone()));
        Ok(template)
    }

    async fn get(&self, url: Url, allow_private: bool, spent: &Spent) -> Result<Vec<u8>, Failure> {
        let failed = |error: net::Error| Failure::Failed(error.to_string());
        let request = Request {
            timeouts: Some(Timeouts { connect: Duration::from_secs(2), ..Timeouts::default() }),
            response_bytes_max: Some(BYTES_MAX),
            ..Request::get(url).allow_private(allow_private)
        };
        spent.messages.fetch_add(1, Ordering::Relaxed);
        let response = self.0.client.send(request).await.map_err(failed)?;
        let status = response.status;
        let bytes = response.bytes(BYTES_MAX).await.map_err(failed)?;
        spent.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        match status {
            StatusCode::OK => Ok(bytes.into()),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Failure::Closed),
            _ if status.is_client_error() => Err(Failure::Refused(format!("it answers {status}"))),
            _ => Err(Failure::Failed(format!("it answers {status}"))),
        }
    }
}
