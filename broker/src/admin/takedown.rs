//! Takedown: `harvest collection suppress` and `purge`, as a running broker does them.
//!
//! Source: ours.

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use collection::{Notice, PurgeReport, Stamp, Subject, Suppression, TakenDown};
use net::clock;
use serde::Deserialize;

use super::failure;
use crate::error::Error;
use crate::pipeline::blocking;
use crate::server::Handle;

/// Returns the routes; those that change anything are for who has the token.
pub(crate) fn routes() -> Router<Handle> {
    Router::new()
        .route("/suppressed", get(suppressed))
        .route("/suppress", post(suppress))
        .route("/lift", post(lift))
        .route("/purge", post(purge))
}

impl Handle {
    /// Suppresses `subject`; the full-text index follows.
    ///
    /// # Errors
    ///
    /// The collection cannot be written, or the reason is too long.
    pub async fn suppress(&self, subject: Subject, reason: String) -> Result<TakenDown, Error> {
        let inner = self.inner.clone();
        let done = blocking("suppression", move || {
            let now = Stamp(clock::now_ms());
            inner.collection.suppress(&inner.author, subject, &reason, now)
        });
        let done = done.await?;
        self.inner.stages.indexer.caught_up().await?;
        Ok(done)
    }

    /// Lifts what is said of `subject`, and has all sources read from the start.
    ///
    /// # Errors
    ///
    /// Nothing is said of it, or the collection cannot be written.
    pub async fn lift(&self, subject: Subject) -> Result<Notice, Error> {
        let inner = self.inner.clone();
        let done = blocking("suppression", move || {
            let now = Stamp(clock::now_ms());
            inner.collection.lift(&inner.author, subject, now)
        });
        let notice = done.await?;
        self.inner.stages.collector.begin_again()?;
        Ok(notice)
    }

    /// Purges what is suppressed, all of it or just `only`, from the collection and the index.
    ///
    /// # Errors
    ///
    /// It is not suppressed, or a part of it cannot be written; call again.
    pub async fn purge(&self, only: Option<Subject>) -> Result<PurgeReport, Error> {
        let inner = &self.inner;
        inner.stages.indexer.caught_up().await?;
        let Some(feed) = inner.feed.get() else {
            return Err(Error::Worker { what: "feed".to_owned() });
        };
        let mut report = feed.purge(only).await?;
        let engine = inner.engine.clone();
        report.index_left = Some(blocking("purge", move || engine.purge()).await?);
        Ok(report)
    }
}

/// What a command is about.
#[derive(Deserialize)]
struct About {
    subject: Option<String>,
    #[serde(default)]
    reason: String,
}

impl About {
    fn subject(&self) -> Result<Subject, Error> {
        Ok(Subject::parse(self.subject.as_deref().unwrap_or_default())?)
    }
}

/// `GET /suppressed`: all notices, oldest first.
async fn suppressed(State(handle): State<Handle>) -> Response {
    let listing =
        blocking("listing", move || Ok::<_, Error>(handle.inner.collection.suppressions()));
    let list: Result<Vec<Suppression>, Error> = listing.await;
    list.map_or_else(|error| failure(&error), |it| Json(it).into_response())
}

/// `POST /suppress?subject=OID|URL-PATTERN&reason=TEXT`.
async fn suppress(State(handle): State<Handle>, Query(about): Query<About>) -> Response {
    let done = match about.subject() {
        Ok(subject) => handle.suppress(subject, about.reason).await,
        Err(error) => Err(error),
    };
    done.map_or_else(|error| failure(&error), |it| Json(it).into_response())
}

/// `POST /lift?subject=OID|URL-PATTERN`.
async fn lift(State(handle): State<Handle>, Query(about): Query<About>) -> Response {
    let done = match about.subject() {
        Ok(subject) => handle.lift(subject).await,
        Err(error) => Err(error),
    };
    done.map_or_else(|error| failure(&error), |it| Json(it).into_response())
}

/// `POST /purge[?subject=OID|URL-PATTERN]`.
async fn purge(State(handle): State<Handle>, Query(about): Query<About>) -> Response {
    let only = about.subject.as_ref().map(|_named| about.subject()).transpose();
    let done = match only {
        Ok(only) => handle.purge(only).await,
        Err(error) => Err(error),
    };
    done.map_or_else(|error| failure(&error), |it| Json(it).into_response())
}
