//! The admin listener: it has the overview, the pages Freshness and Views, status, metrics, health, takedowns,
//! and commands. Changes need the administrator's token; with `admin_read = "token"`, reading needs
//! it too, except for health.

pub(crate) mod freshness;
mod overview;
pub(crate) mod reload;
pub mod settings_file;
mod takedown;
pub mod views;

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use collection::Swept;
use daemon::auth::{self, Guard};
use daemon::health;
use exchange::takedown::Refused;
use http::StatusCode;
use net::clock;
use serde::Deserialize;
use serde_json::json;

use crate::error::Error;
use crate::metrics;
use crate::server::Handle;
use crate::status::Status;

/// Returns the routes of the administration, with `more` of them behind the guard, and more forms.
pub(crate) fn routes(handle: Handle, (more, more_forms): (Router, Router), guard: Guard) -> Router {
    let router = Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/metrics", get(samples))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/pull", post(pull))
        .route("/confirm", post(confirm))
        .route("/compact", post(compact))
        .route("/verify", post(verify))
        .route("/reload", post(reload::reload))
        .merge(freshness::routes())
        .merge(views::routes())
        .with_state(handle.clone())
        .merge(exchange::takedown::routes(handle.clone()))
        .merge(more);
    let secure = axum::middleware::map_response(web::headers::secure);
    let forms = views::changing::routes(handle.clone(), guard.token.clone());
    let forms = forms.merge(more_forms).layer(secure);
    // The guard is outermost: it refuses a request before any handler sees it. Forms cannot send the header that it
    // wants: they have the token typed in, and see to it themselves.
    let guard = axum::middleware::from_fn_with_state(guard, auth::guard);
    handle.inner.admin_pages.frame(router).layer(guard).merge(forms)
}

/// Answers `GET /` with the overview: problems, present work, figures.
async fn page(State(handle): State<Handle>) -> Response {
    let about = handle.known_facts().lines();
    let mut overview = overview::overview(&handle.status().await, about, clock::now_ms());
    overview.links.extend(handle.config().role.admin_links);
    handle.inner.admin_pages.respond(StatusCode::OK, "overview.html", &overview)
}

async fn status(State(handle): State<Handle>) -> axum::Json<Status> {
    axum::Json(handle.status().await)
}

async fn samples(State(handle): State<Handle>) -> Response {
    health::metrics(&metrics::samples(&handle.status().await, &handle.counters()))
}

/// Answers `/healthz` of both listeners.
pub(crate) async fn healthz(State(handle): State<Handle>) -> Response {
    health::healthz(handle.config().role.kind)
}

async fn readyz(State(handle): State<Handle>) -> Response {
    health::look(move || handle.ready()).await
}

/// Answers `/readyz` of the public listener.
pub(crate) async fn public_readyz(State(handle): State<Handle>) -> Response {
    health::look(move || handle.ready().for_anybody()).await
}

/// The answer to a command: JSON, or the reason why it failed.
type CommandResult = Result<Response, Refused>;

#[derive(Deserialize)]
struct SourceQuery {
    source: Option<String>,
}

/// Answers `POST /pull?source=NAME`: makes that source, or without a name every source, due now.
async fn pull(State(handle): State<Handle>, Query(query): Query<SourceQuery>) -> CommandResult {
    Ok(made_due(handle.pull(query.source.as_deref())?))
}

fn made_due(due: usize) -> Response {
    (StatusCode::ACCEPTED, axum::Json(json!({ "due": due }))).into_response()
}

/// Answers `POST /confirm`. With `?source=NAME`, allows that source to lose most of its objects or
/// to return to an older epoch, and makes it due now. Without it, carries out the expiry that waits
/// for an administrator.
async fn confirm(State(handle): State<Handle>, Query(query): Query<SourceQuery>) -> CommandResult {
    if let Some(source) = &query.source {
        return Ok(made_due(handle.confirm_source(source)?));
    }
    let done = match handle.confirm().await? {
        Swept::Done { expired } => json!({ "expired": expired }),
        Swept::Waiting { until } => json!({ "waiting_until_ms": until.0 }),
        Swept::Held { would_expire, of } => json!({ "held": would_expire, "of": of }),
    };
    Ok(axum::Json(done).into_response())
}

/// Answers `POST /compact`: releases objects of removed sources, heals damage, and rewrites the
/// collection without superseded changes.
async fn compact(State(handle): State<Handle>) -> CommandResult {
    let done = handle.compact().await?;
    let done = json!({
        "kept": done.kept,
        "dropped": done.dropped,
        "bytes_before": done.bytes.0,
        "bytes_after": done.bytes.1,
    });
    Ok(axum::Json(done).into_response())
}

/// Answers `POST /verify`: compares the full-text index's files with their checksums; if a file is
/// damaged, the index is built anew.
async fn verify(State(handle): State<Handle>) -> CommandResult {
    let damaged = handle.verify().await?;
    Ok(axum::Json(json!({ "damaged": damaged })).into_response())
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Collection(error) => return error.into(),
            Error::SourceUnknown { .. } => StatusCode::NOT_FOUND,
            Error::Settings { .. } => StatusCode::BAD_REQUEST,
            Error::NoSettings => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, message: error.to_string() }
    }
}
