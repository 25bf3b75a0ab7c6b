//! The administration of a registry: who is listed, who waits, who was refused, and the decisions about them.
//!
//! | request | answer |
//! |---|---|
//! | `GET /servers` | a page, or [`Overview`](crate::answer::Overview) as JSON |
//! | `POST /servers/approve?id=ID&key=KEY` | [`Approved`](crate::answer::Approved), or 404 |
//! | `POST /servers/revoke?id=ID` | 204, or 404 |
//! | `POST /servers/decide`, a form: `decision` (`approve ID`, `approve ID KEY`, `revoke ID`), `token` | the page |

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use broker::error::Error;
use daemon::auth::AdminToken;
use http::header::{ACCEPT, LOCATION};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use web::Pages;
use web::foreign::harmless;
use web::templates::{Source, ago};

use crate::answer::{Approved, Listed, Refused};
use crate::keeper::Keeper;
use crate::leases::Standing;

/// The templates of the administration; files of these names in the administrator's folder replace them.
pub(crate) const TEMPLATES: &[Source] =
    &[Source { name: "decide.html", text: include_str!("../../templates/decide.html") }];

/// Longest form, in bytes.
const FORM_BYTES_MAX: usize = 4 << 10;
/// Maximum number of servers of one standing, and of refusals, on the page.
const SHOWN_MAX: usize = 100;

/// Returns the routes of the administration.
pub(crate) fn routes(keeper: Keeper, pages: Pages) -> Router {
    Router::new()
        .route("/servers/approve", post(approve))
        .route("/servers/revoke", post(revoke))
        .with_state(keeper.clone())
        .merge(Router::new().route("/servers", get(overview)).with_state((keeper, pages)))
}

/// Returns the form that decides, which sees to the token itself.
pub(crate) fn forms(keeper: Keeper, pages: Pages, token: AdminToken) -> Router {
    Router::new()
        .route("/servers/decide", post(decide))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .with_state((keeper, pages, token))
}

/// What is asked of the page.
#[derive(Debug, Default, Deserialize)]
struct Asked {
    /// What is looked for in names, ids and addresses.
    #[serde(default)]
    q: String,
    /// What was done.
    #[serde(default)]
    done: String,
}

async fn overview(
    State((keeper, pages)): State<(Keeper, Pages)>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    // Browsers name it; programs often say nothing of what they take.
    let is_browser = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("text/html"));
    match headers.get_all(ACCEPT).iter().any(is_browser) {
        true => show(&keeper, &pages, asked),
        false => Json(keeper.overview()).into_response(),
    }
}

/// The data of the page.
#[derive(Debug, Serialize)]
struct DecisionsPage {
    q: String,
    done: Option<String>,
    wrong: Option<String>,
    standings: Vec<OfStanding>,
    refused: Vec<(String, u64)>,
    refusals: Vec<Refusal>,
}

/// The servers of one standing.
#[derive(Debug, Serialize)]
struct OfStanding {
    name: &'static str,
    title: &'static str,
    total: usize,
    servers: Vec<Row>,
    decisions: Decisions,
}

/// What can be decided of servers, each with its name on a button.
type Decisions = &'static [(&'static str, &'static str)];

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    kind: String,
    url: String,
    id: String,
    seen: String,
}

/// An announcement that was refused.
#[derive(Debug, Serialize)]
struct Refusal {
    ago: String,
    from: String,
    id: String,
    url: String,
    reason: String,
    key: Option<String>,
}

/// The standings in the order of the page, each with its title and what can be decided.
const STANDINGS: [(Standing, &str, Decisions); 4] = [
    (Standing::Waiting, "Waiting for approval", &[("approve", "Approve"), ("revoke", "Refuse")]),
    (Standing::Dead, "Dead", &[("revoke", "Revoke")]),
    (Standing::Alive, "Alive", &[("revoke", "Revoke")]),
    (Standing::Revoked, "Revoked", &[("approve", "Approve")]),
];

fn show(keeper: &Keeper, pages: &Pages, asked: Asked) -> Response {
    let overview = keeper.overview();
    let now = net::clock::now_ms() / 1_000;
    let wanted = asked.q.to_lowercase();
    let has = |texts: [&str; 3]| texts.iter().any(|it| it.to_lowercase().contains(&wanted));
    let of = |(standing, title, decisions): (Standing, _, _)| {
        let name = standing.name();
        let servers = overview.servers.iter().filter(|it| it.state == name);
        let servers: Vec<&Listed> = servers.filter(|it| has([&it.name, &it.id, &it.url])).collect();
        let rows = servers.iter().take(SHOWN_MAX).map(|it| row(it, now)).collect();
        OfStanding { name, title, total: servers.len(), servers: rows, decisions }
    };
    let standings = STANDINGS.into_iter().map(of).filter(|it| it.total != 0).collect();
    let refusals = overview.refusals.iter().filter(|it| has([&it.from, &it.id, &it.url]));
    let page = DecisionsPage {
        standings,
        refusals: refusals.take(SHOWN_MAX).map(|it| refusal(it, now)).collect(),
        refused: overview.refused.into_iter().collect(),
        done: (!asked.done.is_empty()).then(|| harmless(&asked.done).into_owned()),
        q: asked.q,
        wrong: None,
    };
    pages.respond(StatusCode::OK, "decide.html", &page)
}

fn row(server: &Listed, now: u64) -> Row {
    Row {
        name: harmless(&server.name).into_owned(),
        kind: server.kind.clone(),
        url: harmless(&server.url).into_owned(),
        id: harmless(&server.id).into_owned(),
        seen: ago(now.saturating_sub(server.last_seen)),
    }
}

fn refusal(refused: &Refused, now: u64) -> Refusal {
    Refusal {
        ago: ago(now.saturating_sub(refused.at)),
        from: refused.from.clone(),
        id: harmless(&refused.id).into_owned(),
        url: harmless(&refused.url).into_owned(),
        reason: harmless(&refused.reason).into_owned(),
        key: refused.key.as_deref().map(|it| harmless(it).into_owned()),
    }
}

/// Carries out what a button of the page says.
async fn decide(
    State((keeper, pages, token)): State<(Keeper, Pages, AdminToken)>,
    headers: HeaderMap,
    form: Bytes,
) -> Response {
    let mut decision = String::new();
    let mut typed = String::new();
    for (name, value) in form_urlencoded::parse(&form) {
        match &*name {
            "decision" => decision = value.into_owned(),
            "token" => typed = value.trim().to_owned(),
            _ => {}
        }
    }
    if !token.permits_form(&headers, &typed) {
        let wrong = "nothing was changed: this is not the token of DATA/admin.token";
        return refuse(&pages, StatusCode::FORBIDDEN, wrong);
    }
    let mut words = decision.split(' ');
    let (what, id, key) = (words.next().unwrap_or_default(), words.next(), words.next());
    // Anybody may have made up an id of several words.
    let id = id.filter(|_| words.next().is_none());
    let done = match (what, id) {
        ("approve", Some(id)) => keeper.approve(id, key).await.map(|it| it.is_some()),
        ("revoke", Some(id)) => keeper.revoke(id).await,
        _ => Ok(false),
    };
    let id = id.unwrap_or_default();
    let done = match done {
        Ok(true) if what == "approve" => format!("{id} is approved: listed as soon as it answers."),
        Ok(true) => format!("{id} is revoked: its announcements are refused from now on."),
        Ok(false) => {
            return refuse(&pages, StatusCode::NOT_FOUND, "no server of this id is known");
        }
        Err(error) => {
            tracing::error!(%error, "a decision about a server is not carried out in full");
            let wrong =
                "the decision is not carried out, or not in full: the log says why; decide again";
            return refuse(&pages, StatusCode::INTERNAL_SERVER_ERROR, wrong);
        }
    };
    let done: String = form_urlencoded::byte_serialize(done.as_bytes()).collect();
    let address = HeaderValue::try_from(format!("{}servers?done={done}", pages.site().base));
    match address {
        Ok(address) => (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response(),
        Err(_) => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Answers with the page without servers: whoever has not the token may not even read here.
fn refuse(pages: &Pages, status: StatusCode, wrong: &str) -> Response {
    let page = DecisionsPage {
        q: String::new(),
        done: None,
        wrong: Some(wrong.to_owned()),
        standings: Vec::new(),
        refused: Vec::new(),
        refusals: Vec::new(),
    };
    pages.respond(status, "decide.html", &page)
}

/// The server that an administrator decides about.
#[derive(Debug, Deserialize)]
struct Decided {
    id: String,
    key: Option<String>,
}

async fn approve(State(keeper): State<Keeper>, Query(decided): Query<Decided>) -> Response {
    let approved = keeper.approve(&decided.id, decided.key.as_deref()).await;
    answered(approved.map(|it| it.map(|it: Approved| Json(it).into_response())))
}

async fn revoke(State(keeper): State<Keeper>, Query(decided): Query<Decided>) -> Response {
    let is_known = keeper.revoke(&decided.id).await;
    answered(is_known.map(|it| it.then(|| StatusCode::NO_CONTENT.into_response())))
}

fn answered(done: Result<Option<Response>, Error>) -> Response {
    let message = |status, message: String| {
        (status, Json(serde_json::json!({ "error": { "message": message } }))).into_response()
    };
    match done {
        Ok(Some(answer)) => answer,
        Ok(None) => message(StatusCode::NOT_FOUND, "no server of this id is known".to_owned()),
        Err(error) => message(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
