//! The requests that a registry serves beside a broker's: `/announce` and `/goodbye`, the list of servers, and its administration.
//!
//! | request | answer |
//! |---|---|
//! | `POST /announce`, [`Announcement`] as JSON | [`Reply`](daemon::announce::Reply) |
//! | `POST /goodbye`, [`Goodbye`](daemon::announce::Goodbye) as JSON, signed | 204, or 403 |
//! | `GET /api/servers?kind=KIND&id=ID` | a list of [`Listed`] |
//! | `GET /api/gathers?url=URL` | the gatherers that have all of a site: a list of [`Gathering`] |
//! | `GET /servers` | a page of it |
//!
//! The administration's are in [`administration`].

pub(crate) mod administration;

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{DefaultBodyLimit, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use broker::error::Error;
use daemon::announce::{Announcement, GATHERS_PATH, GOODBYE_PATH, Gathering, PATH, Reply};
use daemon::describe::SIGNATURE;
use exchange::servers::{Server, ServerKind, covers};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};
use net::server::Peer;
use serde::{Deserialize, Serialize};
use url::Url;
use web::Pages;
use web::failure::{Failure, Wants};
use web::foreign::harmless;
use web::templates::{Source, ago};

use crate::answer::Listed;
use crate::keeper::Keeper;
use crate::leases::Standing;

/// The registry's templates; files of these names in the administrator's folder replace them.
pub(crate) const TEMPLATES: &[Source] =
    &[Source { name: "servers.html", text: include_str!("../templates/servers.html") }];

/// Longest body of an announcement or a goodbye, in bytes.
const BODY_BYTES_MAX: usize = 4 << 10;

/// Returns the public routes.
pub(crate) fn public(keeper: Keeper, pages: Pages) -> Router {
    let announcing = Router::new()
        .route(&format!("/{PATH}"), post(announce))
        .route(&format!("/{GOODBYE_PATH}"), post(goodbye))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(keeper.clone());
    let listing = Router::new()
        .route("/api/servers", get(servers))
        .route(&format!("/{GATHERS_PATH}"), get(gathers))
        .route("/servers", get(page))
        .with_state((keeper, pages));
    announcing.merge(listing)
}

async fn announce(
    State(keeper): State<Keeper>,
    peer: Option<Extension<Peer>>,
    Json(announcement): Json<Announcement>,
) -> Response {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let from = peer.map_or(here, |Extension(peer)| peer.subscriber());
    let (status, reply): (StatusCode, Reply) = keeper.announced(from, announcement).await;
    let wait = HeaderValue::from(reply.every_secs);
    let mut response = (status, Json(reply)).into_response();
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    response
}

async fn goodbye(
    State(keeper): State<Keeper>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> StatusCode {
    let signature = headers.get(SIGNATURE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    match keeper.goodbye(&body, signature).await {
        true => StatusCode::NO_CONTENT,
        false => StatusCode::FORBIDDEN,
    }
}

/// What of the servers is asked for.
#[derive(Debug, Deserialize)]
struct Wanted {
    kind: Option<String>,
    id: Option<String>,
}

impl Wanted {
    fn has(&self, server: &Server) -> bool {
        self.kind.as_ref().is_none_or(|it| *it == server.kind.name())
            && self.id.as_ref().is_none_or(|it| *it == server.id)
    }
}

async fn listed(
    keeper: Keeper,
    is_wanted: impl Fn(&Server) -> bool + Send + 'static,
) -> Result<Vec<Listed>, Error> {
    let listed = tokio::task::spawn_blocking(move || keeper.listed(is_wanted)).await;
    listed.map_err(|it| Error::Worker { what: it.to_string() })?
}

async fn servers(
    State((keeper, pages)): State<(Keeper, Pages)>,
    Query(wanted): Query<Wanted>,
) -> Response {
    match listed(keeper, move |it| wanted.has(it)).await {
        Ok(listed) => Json(listed).into_response(),
        Err(error) => failed(&pages, Wants::Json, &error),
    }
}

/// The site that is asked about.
#[derive(Debug, Deserialize)]
struct Site {
    url: Url,
}

async fn gathers(
    State((keeper, pages)): State<(Keeper, Pages)>,
    Query(site): Query<Site>,
) -> Response {
    let has = move |it: &Server| {
        it.kind == ServerKind::Gatherer && it.gathers.iter().any(|it| covers(it, &site.url))
    };
    let gathering = |it: Listed| {
        let is_there = it.state != Standing::Dead.name();
        is_there.then_some(Gathering { name: it.name, id: it.id, url: it.url })
    };
    match listed(keeper, has).await {
        Ok(listed) => {
            Json(listed.into_iter().filter_map(gathering).collect::<Vec<_>>()).into_response()
        }
        Err(error) => failed(&pages, Wants::Json, &error),
    }
}

/// The data of the page.
#[derive(Debug, Serialize)]
struct ServersPage {
    kinds: Vec<OfKind>,
    total: usize,
}

/// The servers of one kind.
#[derive(Debug, Serialize)]
struct OfKind {
    kind: String,
    servers: Vec<Row>,
}

/// A server on the page.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    url: String,
    id: String,
    state: String,
    /// How long ago it was last seen.
    seen: String,
    objects: u64,
}

impl Row {
    fn new(server: &Listed, now: u64) -> Self {
        Self {
            name: harmless(&server.name).into_owned(),
            // It is an address of a web server: `exchange::servers` reads no others.
            url: server.url.clone(),
            id: harmless(&server.id).into_owned(),
            state: server.state.clone(),
            seen: ago(now.saturating_sub(server.last_seen)),
            objects: server.objects.unwrap_or_default(),
        }
    }
}

async fn page(
    State((keeper, pages)): State<(Keeper, Pages)>,
    Query(wanted): Query<Wanted>,
) -> Response {
    let listed = match listed(keeper, move |it| wanted.has(it)).await {
        Ok(listed) => listed,
        Err(error) => return failed(&pages, Wants::Html, &error),
    };
    let total = listed.len();
    let mut kinds: Vec<OfKind> = Vec::new();
    let now = net::clock::now_ms() / 1_000;
    for server in listed {
        let row = Row::new(&server, now);
        match kinds.last_mut().filter(|it| it.kind == server.kind) {
            Some(of_kind) => of_kind.servers.push(row),
            None => kinds.push(OfKind { kind: server.kind, servers: vec![row] }),
        }
    }
    pages.respond(StatusCode::OK, "servers.html", &ServersPage { kinds, total })
}

fn failed(pages: &Pages, wants: Wants, error: &Error) -> Response {
    tracing::error!(%error, "the servers were not listed");
    pages.fail(wants, &Failure::internal())
}
