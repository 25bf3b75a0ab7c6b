//! The cache's own pages: for everybody its health, its description and the settings of browsers;
//! for the administrator its status and metrics, and the removal of objects.

use std::net::SocketAddr;

use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use daemon::auth::{self, Guard};
use daemon::health::{self, Readiness};
use daemon::metrics::Sample;
use daemon::overview::{Overview, Trouble};
use daemon::{Control, ListenerStatus};
use http::{Request, StatusCode, header};
use net::body::{self, Body};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;
use url::Url;
use web::templates::grouped;
use web::{Pages, failure::Failure};

use crate::proxy::Proxy;

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
    /// `NEIGHBOR_HIT`, `PARENT_HIT`, `FIRST_PARENT_MISS`, `SOURCE_FASTEST` and `TIMEOUT_DIRECT`.
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
pub(crate) fn public(describe: Router, at: SocketAddr) -> Own {
    let router = Router::new()
        .route("/healthz", get(|| async { health::healthz("cache") }))
        .route("/readyz", get(|| async { ready().for_anybody().respond() }))
        .route("/", get(move || async move { front(at) }))
        .route("/proxy.pac", get(move || async move { pac(at) }))
        .merge(describe);
    Own(router)
}

/// Returns the routes of the administration.
pub(crate) fn admin(proxy: Proxy, control: Control, guard: Guard, pages: &Pages) -> Router {
    let router = Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/metrics", get(samples))
        .route("/purge", post(purge))
        .route("/explain", get(explain))
        .route("/healthz", get(|| async { health::healthz("cache") }))
        .route("/readyz", get(|| async { ready().respond() }))
        .with_state(Admin { proxy, control, pages: pages.clone() })
        .layer(axum::middleware::from_fn_with_state(guard, auth::guard));
    pages.frame(router)
}

#[derive(Clone)]
struct Admin {
    proxy: Proxy,
    control: Control,
    pages: Pages,
}

impl Admin {
    fn status(&self) -> Status {
        Status { listening: self.control.listening(), ..self.proxy.status() }
    }
}

fn ready() -> Readiness {
    Readiness::new([])
}

/// Tells whoever opens the proxy's address as a page what it is.
fn front(at: SocketAddr) -> String {
    format!(
        "This is an object cache of Harvest, a proxy.\n\nPrograms: curl -x http://{at} http://www.example.org/\n\
         Browsers: automatic proxy configuration from http://{at}/proxy.pac\n"
    )
}

/// Answers with the settings of browsers (a proxy auto-configuration file): everything through the
/// cache but this machine's own names, and past it if it does not answer.
fn pac(at: SocketAddr) -> Response {
    let text = format!(
        "function FindProxyForURL(url, host) {{\n  if (isPlainHostName(host)) return \"DIRECT\";\n  \
         return \"PROXY {at}; DIRECT\";\n}}\n"
    );
    ([(header::CONTENT_TYPE, "application/x-ns-proxy-autoconfig")], text).into_response()
}

async fn page(State(admin): State<Admin>) -> Response {
    let status = admin.status();
    let answers = status.answers.iter().filter(|it| *it.1 != 0);
    let answers: Vec<String> =
        answers.map(|(name, it)| format!("{} {name}", grouped(*it))).collect();
    let overview = Overview {
        kind: "Cache",
        id: status.name.clone(),
        troubles: status.listening.troubles().chain(status.disk_problem.map(full)).collect(),
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
        links: vec![("status", "Status"), ("metrics", "Metrics")],
    };
    admin.pages.respond(StatusCode::OK, "overview.html", &overview)
}

fn full(problem: String) -> Trouble {
    let what =
        format!("objects are not stored on disk, but answered: {problem}; tried again each minute");
    Trouble::new("disk", what)
}

async fn status(State(admin): State<Admin>) -> Json<Status> {
    Json(admin.status())
}

async fn samples(State(admin): State<Admin>) -> Response {
    let status = admin.status();
    let help = "Answers since the start, by where they came from.";
    let answers = status.answers.iter().map(|(name, count)| {
        Sample::counter("harvest_cache_answers_total", help, *count as f64)
            .with("from", name.as_str())
    });
    let mut samples: Vec<Sample> = answers.collect();
    let gauge = |name, help, value: u64| Sample::gauge(name, help, value as f64);
    samples.push(gauge(
        "harvest_cache_objects",
        "URLs of which something is stored.",
        status.objects,
    ));
    samples.push(gauge("harvest_cache_bytes", "Memory of what is stored.", status.bytes));
    samples.push(gauge(
        "harvest_cache_under_way",
        "Fetches and tunnels under way.",
        status.under_way,
    ));
    let help = "Objects requested, by whom they were requested from.";
    samples.extend(status.routes.iter().map(|(code, count)| {
        Sample::counter("harvest_cache_requested_total", help, *count as f64)
            .with("code", code.as_str())
    }));
    samples.extend(status.listening.samples());
    health::metrics(&samples)
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

async fn purge(State(admin): State<Admin>, Query(query): Query<UrlQuery>) -> Response {
    match query.url() {
        Ok(url) => Json(Purged { purged: admin.proxy.purge(&url) }).into_response(),
        Err(refusal) => *refusal,
    }
}

async fn explain(State(admin): State<Admin>, Query(query): Query<UrlQuery>) -> Response {
    match query.url() {
        Ok(url) => Json(admin.proxy.explain(&url).await).into_response(),
        Err(refusal) => *refusal,
    }
}
