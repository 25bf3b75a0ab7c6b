//! The cache's own pages: for everybody its health, its description and the settings of browsers;
//! for the administrator its status, statistics and metrics, and what is stored.
//!
//! What clients have asked for is theirs: where URLs are listed, reading takes the token of the
//! administration, whatever `admin_read` says.

pub(crate) mod explain;
mod metrics;
pub(crate) mod statistics;
pub(crate) mod stored;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use daemon::auth::{self, AdminRead, Guard};
use daemon::health::{self, Readiness};
use daemon::overview::{Overview, Trouble};
use daemon::{Control, ListenerStatus};
use http::{HeaderMap, Request, StatusCode, header};
use net::body::{self, Body};
use net::clock;
use regex::Regex;
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tower::ServiceExt as _;
use url::Url;
use web::Pages;
use web::failure::{Failure, Wants};
use web::templates::{Source, grouped};

use crate::proxy::Proxy;
use statistics::Statistics;
use stored::{LIMIT, LIMIT_MAX};

/// The templates of the administration's pages.
pub(crate) const TEMPLATES: &[Source] = &[
    Source { name: "statistics.html", text: include_str!("../templates/statistics.html") },
    Source { name: "objects.html", text: include_str!("../templates/objects.html") },
];

/// The pages of the administration, beside the first.
const LINKS: [(&str, &str); 5] = [
    ("statistics", "Statistics"),
    ("top", "Top"),
    ("objects", "Objects"),
    ("status", "Status"),
    ("metrics", "Metrics"),
];

/// Status of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Name in `Via` and `Cache-Status`.
    pub name: String,
    /// Number of URLs of which something is stored in memory.
    pub objects: u64,
    /// Bytes that they take.
    pub bytes: u64,
    /// Number of objects on disk.
    #[serde(default)]
    pub disk_objects: u64,
    /// Bytes that they take.
    #[serde(default)]
    pub disk_bytes: u64,
    /// What keeps objects from being stored on disk, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_problem: Option<String>,
    /// Number of fetches and tunnels under way.
    pub under_way: u64,
    /// Numbers of answers since the start, by where they came from: `hit`, `joined`, `validated`,
    /// `stale`, `miss`, `passed`, `own` and `tunnel`.
    pub answers: std::collections::BTreeMap<String, u64>,
    /// Numbers of objects requested since the start, by whom they were requested from: `DIRECT`,
    /// `NEIGHBOR_HIT`, `PARENT_HIT`, `FIRST_PARENT_MISS`, `SOURCE_FASTEST` and `TIMEOUT_DIRECT`; `MIRROR` counts those of
    /// them that a mirror gave in place of the home.
    #[serde(default)]
    pub routes: std::collections::BTreeMap<String, u64>,
    /// Number of ICP datagrams that could not be read, or that nobody had asked for.
    #[serde(default)]
    pub icp_ignored: u64,
    /// Number of lines that the access log has dropped, since they came faster than the disk takes them.
    #[serde(default)]
    pub log_dropped: u64,
    /// Status of the listeners.
    #[serde(flatten)]
    pub listening: ListenerStatus,
}

/// Answer to a request to remove objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// Number of objects that were removed.
    pub purged: u64,
}

/// The cache's own pages for everybody.
#[derive(Clone, Debug)]
pub(crate) struct Own(Router);

impl Own {
    /// Answers a request for one of them, whatever form its target has.
    pub(crate) async fn answer(self, request: Request<Body>) -> http::Response<Body> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |it| it.as_str()).parse();
        parts.uri = path.unwrap_or_default();
        let request = Request::from_parts(parts, axum::body::Body::new(body));
        let Ok(response) = self.0.oneshot(request).await;
        response.map(body::boxed)
    }
}

/// Returns the pages for everybody.
pub(crate) fn public(describe: Router, at: SocketAddr, is_secure: bool) -> Own {
    let router = Router::new()
        .route("/healthz", get(|| async { health::healthz("cache") }))
        .route("/readyz", get(|| async { ready().for_anybody().respond() }))
        .route(
            "/",
            get(move |headers: HeaderMap| async move { front(&asked_as(&headers, at), is_secure) }),
        )
        .route(
            "/proxy.pac",
            get(move |headers: HeaderMap| async move { pac(&asked_as(&headers, at), is_secure) }),
        )
        .merge(describe);
    Own(router)
}

/// Returns the routes of the administration.
pub(crate) fn admin(proxy: Proxy, control: Control, guard: Guard, pages: &Pages) -> Router {
    let strict = Guard { read: AdminRead::Token, ..guard.clone() };
    let guarded = |guard| axum::middleware::from_fn_with_state(guard, auth::guard);
    let named = Router::new()
        .route("/top", get(top))
        .route("/objects", get(objects))
        .layer(guarded(strict));
    let looks = Arc::new(Semaphore::new(2));
    let router = Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/statistics", get(statistics))
        .route("/metrics", get(samples))
        .route("/purge", post(purge))
        .route("/explain", get(explain))
        .route("/healthz", get(|| async { health::healthz("cache") }))
        .route("/readyz", get(|| async { ready().respond() }))
        .layer(guarded(guard))
        .merge(named)
        .with_state(Admin { proxy, control, pages: pages.clone(), looks });
    pages.frame(router)
}

#[derive(Clone)]
struct Admin {
    proxy: Proxy,
    control: Control,
    pages: Pages,
    /// Two look through all that is stored at once; the others wait.
    looks: Arc<Semaphore>,
}

impl Admin {
    fn status(&self) -> Status {
        Status { listening: self.control.listening(), ..self.proxy.status() }
    }

    /// Looks through what is stored, on a thread that may block; `look` gets what says whether the client
    /// is still there.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Proxy, &dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (proxy, turn) = (self.proxy.clone(), Arc::clone(&self.looks).acquire_owned().await);
        let (left, here) = oneshot::channel::<()>();
        let looking = spawn_blocking(move || {
            let found = look(&proxy, &|| !left.is_closed());
            drop(turn);
            found
        });
        let found = looking.await.map_err(|error| {
            tracing::error!(%error, "what is stored was not looked through");
            Failure::internal()
        });
        drop(here);
        found
    }

    /// Answers with a page or as JSON, or says why not.
    fn shown<T: Serialize>(
        &self,
        (wants, name): (Wants, &str),
        found: Result<T, Failure>,
        page: impl FnOnce(T) -> Page<T>,
    ) -> Response {
        match (found, wants) {
            (Err(failure), _) => self.pages.fail(wants, &failure),
            (Ok(found), Wants::Json) => Json(found).into_response(),
            (Ok(found), Wants::Html) => self.pages.respond(StatusCode::OK, name, &page(found)),
        }
    }
}

/// What a page shows.
#[derive(Serialize)]
struct Page<T> {
    it: T,
    charts: Vec<(&'static str, String)>,
    /// What is asked for: a pattern, and how many.
    pattern: String,
    limit: usize,
    limit_max: usize,
    links: [(&'static str, &'static str); LINKS.len()],
    here: &'static str,
}

impl<T> Page<T> {
    fn of(here: &'static str, it: T) -> Self {
        let (charts, pattern) = (Vec::new(), String::new());
        Self { it, charts, pattern, limit: LIMIT, limit_max: LIMIT_MAX, links: LINKS, here }
    }
}

fn ready() -> Readiness {
    Readiness::new([])
}

/// Returns the name under which a reader asks, which is one of the cache's own: it is reached by that.
fn asked_as(headers: &HeaderMap, at: SocketAddr) -> String {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    host.map_or_else(|| at.to_string(), str::to_owned)
}

/// Tells whoever opens the proxy's address as a page what it is.
fn front(at: &str, is_secure: bool) -> String {
    let scheme = if is_secure { "https" } else { "http" };
    format!(
        "This is an object cache of Harvest, a proxy.\n\nPrograms: curl -x {scheme}://{at} http://www.example.org/\n\
         Browsers: automatic proxy configuration from {scheme}://{at}/proxy.pac\n"
    )
}

/// Answers with the settings of browsers (a proxy auto-configuration file): everything through the
/// cache but this machine's own names, and past it if it does not answer.
fn pac(at: &str, is_secure: bool) -> Response {
    let kind = if is_secure { "HTTPS" } else { "PROXY" };
    let text = format!(
        "function FindProxyForURL(url, host) {{\n  if (isPlainHostName(host)) return \"DIRECT\";\n  \
         return \"{kind} {at}; DIRECT\";\n}}\n"
    );
    ([(header::CONTENT_TYPE, "application/x-ns-proxy-autoconfig")], text).into_response()
}

async fn page(State(admin): State<Admin>) -> Response {
    let status = admin.status();
    let answers = status.answers.iter().filter(|it| *it.1 != 0);
    let answers: Vec<String> =
        answers.map(|(name, it)| format!("{} {name}", grouped(*it))).collect();
    let dead =
        admin.proxy.fetcher().neighbors().all().filter(|it| it.2).map(|it| silent(&it.0.host));
    let troubles = status.listening.troubles().chain(status.disk_problem.map(full)).chain(dead);
    let overview = Overview {
        kind: "Cache",
        id: status.name.clone(),
        troubles: troubles.collect(),
        now: Vec::new(),
        facts: vec![
            ("Objects in memory", grouped(status.objects)),
            ("Bytes that they take", grouped(status.bytes)),
            ("Objects on disk", grouped(status.disk_objects)),
            ("Bytes that these take", grouped(status.disk_bytes)),
            ("Under way", grouped(status.under_way)),
            ("Answers since the start", answers.join(", ")),
        ],
        problems: Vec::new(),
        problems_total: 0,
        about: Vec::new(),
        links: LINKS.into(),
    };
    admin.pages.respond(StatusCode::OK, "overview.html", &overview)
}

fn full(problem: String) -> Trouble {
    let what =
        format!("objects are not stored on disk, but answered: {problem}; tried again each minute");
    Trouble::new("disk", what)
}

fn silent(neighbor: &str) -> Trouble {
    let what = "the neighbor answers no question by ICP: it is asked, but not waited for; see whether it runs, \
                and lets this cache ask";
    Trouble::new(neighbor, what)
}

async fn status(State(admin): State<Admin>) -> Json<Status> {
    Json(admin.status())
}

async fn samples(State(admin): State<Admin>) -> Response {
    health::metrics(&metrics::samples(&admin.status(), &admin.proxy))
}

/// What a request for a page says of its form, and of objects.
#[derive(Deserialize)]
struct PageQuery {
    format: Option<String>,
    r#match: Option<String>,
    limit: Option<String>,
}

impl PageQuery {
    fn wants(&self, headers: &HeaderMap) -> Wants {
        match self.format.as_deref() {
            Some("json") => Wants::Json,
            Some("html") => Wants::Html,
            _ => Wants::of("", headers),
        }
    }

    /// Returns the pattern, if one is given: an empty field of a form is none.
    fn pattern(&self) -> Result<Option<Regex>, Failure> {
        let given = self.r#match.as_deref().filter(|it| !it.is_empty());
        given.map(stored::pattern).transpose().map_err(Failure::bad_request)
    }

    fn limit(&self) -> Result<usize, Failure> {
        let Some(text) = self.limit.as_deref().filter(|it| !it.is_empty()) else {
            return Ok(LIMIT);
        };
        let limit = text.parse().ok().filter(|it| (1..=LIMIT_MAX).contains(it));
        let wrong = || format!("limit is {text:?}: give a number from 1 to {LIMIT_MAX}");
        limit.ok_or_else(|| Failure::bad_request(wrong()))
    }
}

async fn statistics(
    State(admin): State<Admin>,
    query: Query<PageQuery>,
    headers: HeaderMap,
) -> Response {
    report(&admin, query.wants(&headers), false).await
}

async fn top(State(admin): State<Admin>, query: Query<PageQuery>, headers: HeaderMap) -> Response {
    report(&admin, query.wants(&headers), true).await
}

async fn report(admin: &Admin, wants: Wants, is_named: bool) -> Response {
    let found = admin.look(move |proxy, _| Statistics::of(proxy, is_named)).await;
    let here = if is_named { "top" } else { "statistics" };
    admin.shown((wants, "statistics.html"), found, |it| Page {
        charts: it.charts(),
        ..Page::of(here, it)
    })
}

async fn objects(
    State(admin): State<Admin>,
    query: Query<PageQuery>,
    headers: HeaderMap,
) -> Response {
    let wants = query.wants(&headers);
    let found = match (query.pattern(), query.limit()) {
        (Ok(pattern), Ok(limit)) => {
            let asked = move |proxy: &Proxy, is_wanted: &dyn Fn() -> bool| {
                stored::list(proxy, (pattern.as_ref(), limit), clock::now_ms(), is_wanted)
            };
            admin.look(asked).await
        }
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    let (limit, Query(PageQuery { r#match, .. })) = (query.limit().unwrap_or(LIMIT), query);
    admin.shown((wants, "objects.html"), found, |it| Page {
        pattern: r#match.unwrap_or_default(),
        limit,
        ..Page::of("objects", it)
    })
}

#[derive(Deserialize)]
struct UrlQuery {
    url: String,
}

impl UrlQuery {
    fn url(&self) -> Result<Url, Box<Response>> {
        Url::parse(&self.url).map_err(|error| {
            let failure = Failure::bad_request(format!("{} is no URL: {error}", self.url));
            Box::new((failure.status, Json(failure.to_json())).into_response())
        })
    }
}

/// What is to be removed: the objects of a URL, or those whose URLs fit a pattern.
#[derive(Deserialize)]
struct PurgeQuery {
    url: Option<String>,
    r#match: Option<String>,
}

async fn purge(State(admin): State<Admin>, Query(query): Query<PurgeQuery>) -> Response {
    let purged = match (query.url, query.r#match) {
        (Some(url), None) => match (UrlQuery { url }).url() {
            Ok(url) => Ok(admin.proxy.purge(&url)),
            Err(refusal) => return *refusal,
        },
        (None, Some(text)) => match stored::pattern(&text) {
            Ok(pattern) => {
                let forget = move |proxy: &Proxy, _: &dyn Fn() -> bool| {
                    proxy.fetcher().forget_all(&pattern) as u64
                };
                admin.look(forget).await
            }
            Err(message) => Err(Failure::bad_request(message)),
        },
        _ => Err(Failure::bad_request("give what to remove: either url or match")),
    };
    let purged = purged.map(|purged| Purged { purged });
    purged.map_or_else(|it| admin.pages.fail(Wants::Json, &it), |it| Json(it).into_response())
}

async fn explain(State(admin): State<Admin>, Query(query): Query<UrlQuery>) -> Response {
    match query.url() {
        Ok(url) => Json(admin.proxy.explain(&url).await).into_response(),
        Err(refusal) => *refusal,
    }
}
