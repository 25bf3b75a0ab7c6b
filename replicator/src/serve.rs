//! HTTP answers of a member: for its administrator the page, status, topology, metrics and
//! commands; for everybody the feeds of its collections and its health.
//!
//! Requests that change anything need the token; by a setting, requests that read need it too.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use daemon::Control;
use daemon::auth::{self, Guard};
use daemon::health::{self, Readiness};
use daemon::overview::Overview;
use http::header::CONTENT_TYPE;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use web::Pages;
use web::failure::Failure;
use web::templates::Source;

use crate::error::Error;
use crate::id::InvitationId;
use crate::node::{Feeds, Handle, InvitationLine};
use crate::status::{GroupStatus, Published, Report, Status};
use crate::version::Name;
use crate::{drawing, metrics, overview, ready};

/// Pages of the replicator only.
pub(crate) const TEMPLATES: &[Source] =
    &[Source { name: "replicator.html", text: include_str!("../templates/replicator.html") }];

pub(crate) fn admin(
    handle: Handle,
    feeds: Feeds,
    guard: Guard,
    pages: Pages,
    control: Control,
) -> Router {
    let router = Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/metrics", get(samples))
        .route("/healthz", get(healthz))
        .route("/topology.svg", get(topology))
        .route("/publish", post(publish))
        .route("/verify", post(verify))
        .route("/invite", post(invite))
        .route("/lead", post(lead))
        .route("/readyz", get(readyz))
        .with_state(Admin { handle, pages: pages.clone(), control })
        .merge(feed_routes(feeds))
        .layer(axum::middleware::from_fn_with_state(guard, auth::guard));
    pages.frame(router)
}

pub(crate) fn feeds(handle: Handle, feeds: Feeds, describe: Router, pages: &Pages) -> Router {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(public_readyz))
        .with_state(handle)
        .merge(describe)
        .merge(feed_routes(feeds));
    pages.frame(router)
}

/// Returns routes to the feed and snapshots of each collection, below `/collections/NAME@ORIGIN/`.
fn feed_routes(feeds: Feeds) -> Router {
    Router::new()
        .route("/collections/{name}/feed", any(feed))
        .route("/collections/{name}/snapshot/{id}", any(snapshot))
        .with_state(feeds)
}

async fn feed(State(feeds): State<Feeds>, Path(name): Path<String>, request: Request) -> Response {
    respond(&feeds, &name, "/feed", request).await
}

async fn snapshot(
    State(feeds): State<Feeds>,
    Path((name, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    respond(&feeds, &name, &format!("/snapshot/{id}"), request).await
}

/// Passes a request to the feed of a collection as if it were the only one.
async fn respond(feeds: &Feeds, name: &str, path: &str, request: Request) -> Response {
    let feed = match feeds.find(name) {
        Ok(feed) => feed,
        Err(error) => return (StatusCode::NOT_FOUND, format!("{error}\n")).into_response(),
    };
    let query = request.uri().query().map(|it| format!("?{it}")).unwrap_or_default();
    let Ok(uri) = format!("{path}{query}").parse::<Uri>() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut request = request.map(drop);
    *request.uri_mut() = uri;
    feed.respond(request).await.map(Body::new)
}

#[derive(Clone)]
struct Admin {
    handle: Handle,
    pages: Pages,
    control: Control,
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let failure = match self {
            Self::Refused(why) => Failure::bad_request(why),
            _ => Failure::internal(),
        };
        (failure.status, Json(failure.to_json())).into_response()
    }
}

type Answer<T> = Result<Json<T>, Error>;

#[derive(Serialize)]
struct PageContext {
    #[serde(flatten)]
    overview: Overview,
    status: Status,
    /// SVG drawing of each group.
    drawings: Vec<String>,
}

async fn page(State(Admin { handle, pages, control }): State<Admin>) -> Result<Response, Error> {
    let status = handle.status().await?;
    let drawings = status.groups.iter().map(drawing::inline).collect();
    let overview = overview::overview(&status, &control.listening());
    let context = PageContext { overview, status, drawings };
    Ok(pages.respond(StatusCode::OK, "replicator.html", &context))
}

async fn status(State(Admin { handle, .. }): State<Admin>) -> Answer<Status> {
    Ok(Json(handle.status().await?))
}

async fn samples(State(Admin { handle, control, .. }): State<Admin>) -> Result<Response, Error> {
    let mut samples = metrics::samples(&handle.status().await?);
    samples.extend(control.listening().samples());
    Ok(health::metrics(&samples))
}

async fn healthz() -> Response {
    health::healthz("replicator")
}

async fn readyz(State(Admin { handle, .. }): State<Admin>) -> Response {
    look(&handle).await.respond()
}

async fn public_readyz(State(handle): State<Handle>) -> Response {
    look(&handle).await.for_anybody().respond()
}

async fn look(handle: &Handle) -> Readiness {
    handle.status().await.map_or_else(|_stopped| ready::stopped(), |it| it.ready)
}

#[derive(Deserialize)]
struct GroupQuery {
    group: Option<String>,
}

impl GroupQuery {
    fn name(&self) -> Result<Option<Name>, Error> {
        let name = self.group.as_deref().map(Name::new).transpose();
        name.map_err(|error| Error::Refused(error.to_string()))
    }
}

/// Draws the topology of the requested group; without a name, of the first one.
async fn topology(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<GroupQuery>,
) -> Result<Response, Error> {
    let groups = handle.status().await?.groups;
    let is_it = |it: &&GroupStatus| query.group.as_ref().is_none_or(|name| it.name == *name);
    let none = || Error::Refused("there is no such group; see /status".to_owned());
    let group = groups.iter().find(is_it).ok_or_else(none)?;
    Ok(([(CONTENT_TYPE, "image/svg+xml")], drawing::standalone(group)).into_response())
}

#[derive(Deserialize)]
struct PublishQuery {
    tree: String,
    #[serde(default)]
    accept_loss: bool,
}

async fn publish(
    State(Admin { handle, .. }): State<Admin>,
    Query(PublishQuery { tree, accept_loss }): Query<PublishQuery>,
) -> Answer<Published> {
    Ok(Json(handle.publish(tree, accept_loss).await?))
}

#[derive(Deserialize)]
struct VerifyQuery {
    tree: Option<String>,
}

async fn verify(
    State(Admin { handle, .. }): State<Admin>,
    Query(VerifyQuery { tree }): Query<VerifyQuery>,
) -> Answer<Vec<Report>> {
    Ok(Json(handle.verify(tree).await?))
}

/// Parameters for invitations: the validity of a new one in seconds, or the id of one to withdraw.
#[derive(Deserialize)]
struct InviteQuery {
    valid: Option<u64>,
    revoke: Option<String>,
}

async fn invite(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<GroupQuery>,
    Query(InviteQuery { valid, revoke }): Query<InviteQuery>,
) -> Answer<Value> {
    let group = query.name()?;
    if let Some(id) = revoke {
        let id = id.parse().map_err(|error| Error::Refused(format!("{id}: {error}")))?;
        let revoked = handle.revoke(group, id).await?;
        return Ok(Json(json!({ "revoked": revoked.to_string() })));
    }
    let InvitationLine { invitation, ends } =
        handle.invite(group, valid.map(Duration::from_secs)).await?;
    let id = invitation.public().map(|it| InvitationId::of(&it).to_string());
    Ok(Json(json!({ "invitation": invitation.to_string(), "id": id, "ends": ends })))
}

async fn lead(
    State(Admin { handle, .. }): State<Admin>,
    Query(query): Query<GroupQuery>,
) -> Answer<Value> {
    let group = handle.lead(query.name()?).await?;
    Ok(Json(json!({ "leads": group })))
}
