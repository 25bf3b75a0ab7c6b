//! Takedown over HTTP: `harvest collection suppress`, `lift` and `purge` in a running daemon with a
//! collection.
//!
//! Source: ours; see docs/collection.md.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use collection::{Notice, PurgeReport, Subject, Suppression, TakenDown};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

/// The refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status of the answer.
    pub status: StatusCode,
    /// The problem and its remedy, for the administrator.
    pub message: String,
}

impl From<collection::Error> for Refused {
    fn from(error: collection::Error) -> Self {
        let status = match error {
            collection::Error::Subject { .. } => StatusCode::BAD_REQUEST,
            collection::Error::NotSuppressed { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.to_string() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = Json(json!({ "error": { "message": self.message } }));
        (self.status, body).into_response()
    }
}

/// Takedown in a daemon: in its collection, and in everything derived from it.
pub trait Takedown: Clone + Send + Sync + 'static {
    /// Returns all notices, oldest first.
    fn suppressions(&self) -> Vec<Suppression>;

    /// Suppresses `subject`. Fails if the collection cannot be written, or the reason is too long.
    fn suppress(
        &self,
        subject: Subject,
        reason: String,
    ) -> impl Future<Output = Result<TakenDown, Refused>> + Send;

    /// Lifts the suppression of `subject`, and causes its objects to be fetched again. Fails if the
    /// subject is not suppressed, or the collection cannot be written.
    fn lift(&self, subject: Subject) -> impl Future<Output = Result<Notice, Refused>> + Send;

    /// Purges all suppressed objects, or only those of `only`. Fails if the subject is not
    /// suppressed, or a part cannot be written: call it again.
    fn purge(
        &self,
        only: Option<Subject>,
    ) -> impl Future<Output = Result<PurgeReport, Refused>> + Send;
}

/// Returns the routes, to be served behind [`daemon::auth::guard`].
pub fn routes<T: Takedown>(daemon: T) -> Router {
    Router::new()
        .route("/suppressed", get(suppressed::<T>))
        .route("/suppress", post(suppress::<T>))
        .route("/lift", post(lift::<T>))
        .route("/purge", post(purge::<T>))
        .with_state(daemon)
}

type Answer<T> = Result<Json<T>, Refused>;

/// The query of a command.
#[derive(Deserialize)]
struct About {
    subject: Option<String>,
    #[serde(default)]
    reason: String,
}

impl About {
    fn subject(&self) -> Result<Subject, Refused> {
        Ok(Subject::parse(self.subject.as_deref().unwrap_or_default())?)
    }
}

/// `GET /suppressed`: all notices, oldest first.
async fn suppressed<T: Takedown>(State(daemon): State<T>) -> Answer<Vec<Suppression>> {
    let listed = tokio::task::spawn_blocking(move || daemon.suppressions()).await;
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    listed.map(Json).map_err(|error| Refused { status, message: error.to_string() })
}

/// `POST /suppress?subject=OID|URL-PATTERN&reason=TEXT`.
async fn suppress<T: Takedown>(
    State(daemon): State<T>,
    Query(about): Query<About>,
) -> Answer<TakenDown> {
    daemon.suppress(about.subject()?, about.reason).await.map(Json)
}

/// `POST /lift?subject=OID|URL-PATTERN`.
async fn lift<T: Takedown>(State(daemon): State<T>, Query(about): Query<About>) -> Answer<Notice> {
    daemon.lift(about.subject()?).await.map(Json)
}

/// `POST /purge[?subject=OID|URL-PATTERN]`.
async fn purge<T: Takedown>(
    State(daemon): State<T>,
    Query(about): Query<About>,
) -> Answer<PurgeReport> {
    let only = about.subject.as_ref().map(|_named| about.subject()).transpose()?;
    daemon.purge(only).await.map(Json)
}
