//! The routes of a gatherer: its page, the feed, `/oai` and objects for everybody; status,
//! problems, metrics and requests for its administrator.
//!
//! The public listener does not show local folders: roots and problems are only on the admin
//! listener.

pub(crate) mod describe;
mod neighbor;
mod open;
mod overview;
pub(crate) mod repository;
mod takedown;

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use collection::Oid;
use collection::feed::FeedServer;
use daemon::auth::{self, Guard};
use daemon::health;
use daemon::metrics::Sample;
use exchange::push;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use url::Url;
use web::Pages;
use web::failure::{Failure, Wants};
use web::templates::Source;

use crate::progress::Status;
use crate::server::Handle;
use crate::shared::{Shared, blocking};

pub(crate) use neighbor::for_user_alone;

pub(crate) const TEMPLATES: &[Source] =
    &[Source { name: "gatherer.html", text: include_str!("../templates/gatherer.html") }];

/// Media type of summary objects (RFC 2655).
const SOIF: &str = "application/index.obj.HARVEST-SOIF-1";

#[derive(Clone)]
struct Public {
    handle: Handle,
    pages: Pages,
}

/// Returns the routes of the public listener, with the pages of `front` if there are any.
pub(crate) fn public(
    shared: Arc<Shared>,
    front: Option<Router>,
    pages: Pages,
    feed: FeedServer,
) -> Router {
    let notifier = shared.notifier.clone();
    let (collection, base_url) =
        (shared.site.collection.clone(), shared.config().daemon.base_url.clone());
    let lister = Arc::clone(&shared);
    let is_open = move || lister.config().oai.enabled;
    let resources = push::resourcesync::routes(collection, base_url, is_open);
    let repository = notifier.linked(&shared.repository);
    let describe = describe::route(&shared);
    let handle = Handle { shared };
    let state = Public { handle, pages: pages.clone() };
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(state.clone())
        .merge(push::feed::routes(feed, notifier.clone(), push::feed::all(), None))
        .merge(notifier.routes())
        .merge(resources)
        .merge(describe)
        .merge(repository);
    let Some(front) = front else {
        let own = Router::new().route("/", get(page)).route("/object", get(object));
        return pages.frame(router.merge(own.with_state(state)));
    };
    router.merge(front)
}

/// Returns the routes of the admin listener, behind the guard.
pub(crate) fn admin(shared: Arc<Shared>, guard: Guard, feed: FeedServer, pages: &Pages) -> Router {
    let opening = shared
        .opener
        .get()
        .map(|_| (open::for_administrator(&shared), open::for_browser(&shared, pages)));
    let (for_administrator, for_browser) = opening.unwrap_or_default();
    let admin = Admin { handle: Handle { shared }, feed, pages: pages.clone() };
    let router = Router::new()
        .route("/", get(admin_page))
        .route("/status", get(status))
        .route("/problems", get(problems))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(admin_readyz))
        .route("/gather", post(gather))
        .route("/confirm", post(confirm))
        .route("/explain", get(explain))
        .route("/pause", post(pause))
        .route("/resume", post(resume))
        .with_state(admin.clone())
        .merge(exchange::takedown::routes(admin))
        .merge(for_administrator);
    // The guard is outside the frame: it refuses requests that change state before their route is
    // looked up.
    let guarded = axum::middleware::from_fn_with_state(guard, auth::guard);
    pages.frame(router).layer(guarded).merge(for_browser)
}

#[derive(Clone)]
pub(crate) struct Admin {
    pub(crate) handle: Handle,
    pub(crate) feed: FeedServer,
    pages: Pages,
}

async fn page(State(public): State<Public>) -> Response {
    let context = json!({ "status": public.handle.status() });
    public.pages.respond(StatusCode::OK, "gatherer.html", &context)
}

async fn admin_page(State(Admin { handle, pages, .. }): State<Admin>) -> Response {
    let about = describe::settings_facts(&handle.shared).lines();
    let look = move || overview::overview(&handle.status(), about, handle.problems());
    match tokio::task::spawn_blocking(look).await {
        Ok(overview) => pages.respond(StatusCode::OK, "overview.html", &overview),
        Err(error) => {
            tracing::error!(%error, "the overview cannot be made");
            pages.fail(Wants::Html, &Failure::internal())
        }
    }
}

#[derive(Deserialize)]
struct ObjectQuery {
    oid: Option<String>,
}

/// Answers with one object's record as SOIF. `oid` is the object's URL; a space and a gatherer's id
/// may follow, since a repository's records have their own id.
async fn object(
    State(public): State<Public>,
    Query(query): Query<ObjectQuery>,
    headers: HeaderMap,
) -> Response {
    let fail = |failure| public.pages.fail(Wants::of("/object", &headers), &failure);
    let Some(oid) = query.oid else {
        return fail(Failure::bad_request("The parameter oid is missing: /object?oid=URL."));
    };
    let is_id = |it: &str| it.len() == 16 && it.bytes().all(|it| it.is_ascii_hexdigit());
    let with_id = oid.trim().rsplit_once(' ').filter(|(_, id)| is_id(id));
    let (url, id) = with_id.unwrap_or_else(|| (oid.trim(), public.handle.id()));
    let oid = Oid::new(id, url.trim_end());
    let collection = public.handle.shared.site.collection.clone();
    match tokio::task::spawn_blocking(move || collection.get(&oid)).await {
        Ok(Ok(Some(stored))) => {
            let mut body = Vec::new();
            soif::write_record(&mut body, &stored.record);
            // A browser would save an unknown media type as a file: send text instead.
            let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
            let text = "text/plain; charset=utf-8";
            let media = if accept.contains("text/html") { text } else { SOIF };
            let media = HeaderValue::from_static(media);
            ([(CONTENT_TYPE, media), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))], body)
                .into_response()
        }
        Ok(Ok(None)) => fail(Failure::not_found("There is no such object here.")),
        Ok(Err(error)) => {
            tracing::error!(%error, "an object cannot be read");
            fail(Failure::internal())
        }
        Err(error) => {
            tracing::error!(%error, "an object cannot be read");
            fail(Failure::internal())
        }
    }
}

async fn healthz() -> Response {
    health::healthz("gatherer")
}

async fn readyz(State(Public { handle, .. }): State<Public>) -> Response {
    health::look(move || handle.ready().for_anybody()).await
}

async fn admin_readyz(State(Admin { handle, .. }): State<Admin>) -> Response {
    health::look(move || handle.ready()).await
}

async fn status(State(Admin { handle, .. }): State<Admin>) -> Json<Status> {
    Json(handle.status())
}

async fn problems(State(Admin { handle, .. }): State<Admin>) -> Response {
    let status = handle.status();
    let list = json!({
        "total": status.progress.problems,
        "by_kind": status.problems,
        "newest": handle.problems(),
    });
    Json(list).into_response()
}

async fn metrics(State(Admin { handle, feed, .. }): State<Admin>) -> Response {
    let status = handle.status();
    let gauge = |name, help, value: u64| Sample::gauge(name, help, value as f64);
    let mut samples = handle.shared.site.metrics.samples();
    samples.push(gauge("harvest_gatherer_objects", "Live objects.", status.objects));
    samples.extend(status.ready.samples());
    let damaged = status.damaged_total as f64;
    let help = "Damaged members found in the collection.";
    samples.push(Sample::counter("harvest_gatherer_damaged_total", help, damaged));
    let ended = status.workers_ended as f64;
    let help = "Processes that read objects and crashed, or took too much time or memory.";
    samples.push(Sample::counter("harvest_gatherer_workers_ended_total", help, ended));
    let missing = status.fences_missing.len() as u64;
    let help = "Fences around those processes that the system lacks.";
    samples.push(gauge("harvest_gatherer_fences_missing", help, missing));
    let held = status.roots.iter().filter(|root| root.hold.is_some()).count();
    samples.push(gauge("harvest_gatherer_roots_held", "Roots held.", held as u64));
    for root in &status.roots {
        let files = gauge("harvest_gatherer_root_files", "Files known.", root.files);
        samples.push(files.with("root", root.url.as_str()));
    }
    let takedowns = &status.takedowns;
    samples.push(gauge("harvest_gatherer_takedowns", "Takedowns in force.", takedowns.active));
    let help = "Records refused because they are suppressed.";
    let name = "harvest_gatherer_takedown_refused_total";
    samples.push(Sample::counter(name, help, takedowns.refused as f64));
    samples.extend(feed_samples(&feed));
    samples.extend(push::metrics::hub(&status.push, &handle.shared.notifier.counters()));
    let repository = handle.shared.repository.counters();
    samples.extend(exchange::repository::samples(&repository));
    samples.extend(status.listening.samples());
    for (kind, count) in &status.problems {
        let help = "Problems since the start, by kind.";
        let sample = Sample::counter("harvest_gatherer_problems_total", help, *count as f64);
        samples.push(sample.with("kind", kind.as_str()));
    }
    health::metrics(&samples)
}

fn feed_samples(feed: &FeedServer) -> Vec<Sample> {
    let counters = feed.counters();
    let counter = |name, help, value: u64| Sample::counter(name, help, value as f64);
    vec![
        counter("harvest_gatherer_feed_deltas_total", "Deltas answered.", counters.deltas),
        counter("harvest_gatherer_feed_snapshots_total", "Snapshots made.", counters.snapshots),
        counter(
            "harvest_gatherer_feed_snapshot_answers_total",
            "Answers with a snapshot, or a part of one.",
            counters.snapshot_answers,
        ),
        counter("harvest_gatherer_feed_refused_total", "Requests refused.", counters.refused),
        counter("harvest_gatherer_feed_bytes_total", "Bytes of all bodies begun.", counters.bytes),
        Sample::gauge(
            "harvest_gatherer_feed_waiting",
            "Requests that wait for a newer version.",
            counters.waiting as f64,
        ),
    ]
}

async fn gather(State(Admin { handle, .. }): State<Admin>) -> Response {
    handle.gather();
    (StatusCode::ACCEPTED, Json(json!({ "gathering": true }))).into_response()
}

#[derive(Deserialize)]
struct ExplainQuery {
    url: Url,
}

/// Says what is known of a URL under each root that is a web site.
async fn explain(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<ExplainQuery>,
) -> Response {
    let found = blocking(move || handle.explain(&query.url)).await;
    Json(found).into_response()
}

#[derive(Deserialize)]
struct HostQuery {
    host: String,
}

async fn pause(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<HostQuery>,
) -> Response {
    handle.pause(&query.host, true);
    Json(json!({ "paused": query.host })).into_response()
}

async fn resume(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<HostQuery>,
) -> Response {
    handle.pause(&query.host, false);
    Json(json!({ "resumed": query.host })).into_response()
}

#[derive(Deserialize)]
struct ConfirmQuery {
    root: Option<String>,
}

async fn confirm(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<ConfirmQuery>,
) -> Response {
    let confirmed = handle.confirm(query.root.as_deref());
    if confirmed.is_empty() {
        let failure = Failure::not_found(match query.root {
            Some(root) => format!("No root {root:?} is held; see /status."),
            None => "No root is held.".to_owned(),
        });
        return (failure.status, Json(failure.to_json())).into_response();
    }
    (StatusCode::ACCEPTED, Json(json!({ "confirmed": confirmed }))).into_response()
}
