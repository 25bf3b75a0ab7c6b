//! The repository: a collection over OAI-PMH at `/oai`.
//!
//! Requests are `GET /oai?verb=…`, or a POST with the same arguments as a form. `oai::repository`
//! makes the responses; this module adds the collection and the clock. Metadata formats are those
//! of `oai::crosswalk`, sets those of `oai::repository::set`, and datestamps the seconds of the
//! commits.
//!
//! Long work runs on blocking threads, for at most [`ANSWERS_MAX`] requests at once. Further
//! requests are refused for now (503 with `Retry-After`). So are requests that need damaged
//! records, or sets that are not ready. Responses in progress hold at most [`SENDING_BYTES_MAX`]
//! together, and each keeps its share until its last byte is sent; a request for which there is no
//! room is refused for now. Responses are compressed with gzip for clients that accept it.
//!
//! Every response to ListRecords and ListIdentifiers has headers with the number of records of the
//! whole list, and of the repository (`oai::repository::oap`, which also explains why they are not
//! on the token).
//!
//! Source: OAI-PMH §3.1 (HTTP embedding), §3.1.3 (compression), §3.5 (flow control).
//!
//! # Differences from the standard
//!
//! * `responseDate` is the second before the present one, or an earlier one during a commit: a
//!   later commit must not get a datestamp that a harvester takes to be harvested already.
//! * Deletions are listed in all sets by type, since a deleted record has no type any more.
//! * What is deleted and was in a view is listed as such in its set. What left it and is there still is not: who
//!   harvests a view as a set does not learn of it. To a client that is limited to the view it is deleted.

mod answer;
mod bitmaps;
mod budget;
mod current_sets;
mod identifier_file;
mod origin;
mod sets;
mod sets_file;
pub mod settings;
mod views;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use answer::datestamp;
use answer::{Answered, Responder};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use budget::{ByteBudget, Share};
use collection::{Collection, Error, Stamp};
use current_sets::{CurrentSets, Unready};
use daemon::describe::largest;
use daemon::gate::Limit;
use daemon::metrics::Sample;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use identifier_file::IdentifierFile;
use net::clock;
use net::shutdown::Shutdown;
use oai::repository::description::SCHEMA_FILES;
use oai::repository::{PAGE_BYTES_MAX, oap};
use oai::request::QUERY_BYTES_MAX;
pub use sets::Subsets;
use settings::default_id;
pub use settings::{Daemon, Settings};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use url::Url;
pub use views::Views;
use web::Site;
use web::layout::Link;

/// Maximum number of requests answered at once.
pub const ANSWERS_MAX: usize = 8;

/// Maximum size of all responses in progress, in bytes (256 MiB): many clients may be slow.
pub const SENDING_BYTES_MAX: usize = 256 << 20;

/// Longest time that a request waits for its turn and its share of bytes.
const TURN: Duration = Duration::from_secs(5);

/// Pause that a client is asked for if sets, turns or bytes are not available, in seconds.
const RETRY_SECS: u64 = 10;

/// Pause that a client is asked for if records are damaged, in seconds.
const RETRY_DAMAGED_SECS: u64 = 60;

/// The file of the sets, below a daemon's data directory.
pub const SETS: &str = "oai/sets";

/// Path of the repository, below the listener's root.
const PATH: &str = "oai";

/// Minimum length of a response that is compressed, in bytes.
const PACKED_BYTES_MIN: usize = 1_024;

/// Counters of a repository since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Answered requests, with errors or without.
    pub requests: u64,
    /// Requests answered with a protocol error.
    pub faults: u64,
    /// Records, and headers alone, in responses.
    pub records: u64,
    /// Requests that were refused for now.
    pub postponed: u64,
    /// Bytes of responses, after compression.
    pub bytes: u64,
    /// 1 if lists can be made, 0 while the sets are made.
    pub ready: u64,
}

/// Returns the counters for `GET /metrics`.
pub fn samples(counters: &Counters) -> [Sample; 6] {
    let total = |name, help, value: u64| Sample::counter(name, help, value as f64);
    [
        total("harvest_oai_requests_total", "OAI-PMH requests answered.", counters.requests),
        total("harvest_oai_faults_total", "Of those, with an error code.", counters.faults),
        total("harvest_oai_records_total", "Records and headers sent.", counters.records),
        total("harvest_oai_postponed_total", "Requests told to come again.", counters.postponed),
        total("harvest_oai_bytes_total", "Bytes of responses.", counters.bytes),
        Sample::gauge(
            "harvest_oai_ready",
            "1 once lists can be made: the sets have been read from the log.",
            counters.ready as f64,
        ),
    ]
}

/// A repository over a collection. Clones share their state.
#[derive(Clone, Debug)]
pub struct Repository {
    shared: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    collection: Collection,
    current: CurrentSets,
    views: Views,
    settings: watch::Sender<(Settings, Daemon)>,
    turns: Arc<Semaphore>,
    budget: ByteBudget,
    id_file: IdentifierFile,
    /// The counters, without `ready`.
    counters: Mutex<Counters>,
}

impl Repository {
    /// Returns the repository of `collection`. `sets` is the path of a file for data that can be
    /// rebuilt; the identifier file is next to it. Lists become available once [`keep`](Self::keep)
    /// runs.
    pub fn new(collection: Collection, settings: Settings, daemon: Daemon, sets: PathBuf) -> Self {
        Self::with_views(collection, Views::default(), settings, daemon, sets)
    }

    /// Returns the same with sets by view.
    pub fn with_views(
        collection: Collection,
        views: Views,
        settings: Settings,
        daemon: Daemon,
        sets: PathBuf,
    ) -> Self {
        let id_file = IdentifierFile::beside(&sets);
        let current = CurrentSets::new(collection.clone(), sets);
        let settings = watch::Sender::new((settings, daemon));
        let turns = Arc::new(Semaphore::new(ANSWERS_MAX));
        let (budget, counters) = (ByteBudget::new(SENDING_BYTES_MAX), Mutex::default());
        let shared =
            Inner { collection, current, views, settings, turns, budget, id_file, counters };
        Self { shared: Arc::new(shared) }
    }

    /// Puts new settings in force.
    pub fn set(&self, settings: Settings, daemon: Daemon) {
        self.shared.settings.send_replace((settings, daemon));
    }

    /// Returns the numbers of records of the largest types and languages; empty maps while they are
    /// unknown, or if the repository is disabled. Blocks.
    pub fn counts(&self) -> [BTreeMap<String, u64>; 2] {
        let shared = &self.shared;
        if !shared.settings.borrow().0.enabled {
            return <[BTreeMap<String, u64>; 2]>::default();
        }
        let version = shared.collection.version();
        let counts = shared.current.with(version, |sets, present| sets.counts(present));
        counts.map(|it| it.map(largest)).unwrap_or_default()
    }

    /// Returns the routes: `/oai`, with or without a slash at its end, and the schemas below it.
    pub fn routes(&self) -> Router {
        let this = self.clone();
        let handler = any(move |request: Request| {
            let this = this.clone();
            async move { this.respond(request).await }
        });
        Router::new()
            .route("/oai", handler.clone())
            .route("/oai/", handler)
            .route("/oai/schemas/{file}", get(schema))
    }

    /// Keeps the sets current until the shutdown starts. Does nothing before the repository is
    /// enabled.
    pub async fn keep(&self, shutdown: Shutdown) {
        let mut settings = self.shared.settings.subscribe();
        tokio::select! {
            _enabled = settings.wait_for(|(settings, _)| settings.enabled) => {}
            () = shutdown.started() => return,
        }
        self.shared.current.clone().keep(shutdown).await;
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> Counters {
        Counters { ready: u64::from(self.shared.current.is_ready()), ..*self.counted() }
    }

    fn counted(&self) -> MutexGuard<'_, Counters> {
        self.shared.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request.
    pub async fn respond(&self, request: Request) -> Response {
        match self.answer(request).await {
            Ok(response) => {
                self.counted().requests += 1;
                response
            }
            Err(refusal) => {
                self.counted().postponed += u64::from(refusal.retry_secs.is_some());
                refusal.response()
            }
        }
    }

    async fn answer(&self, request: Request) -> Result<Response, Refusal> {
        let (settings, daemon) = self.shared.settings.borrow().clone();
        if !settings.enabled {
            let message = "there is no repository here: [oai] has enabled = false";
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        }
        let (parts, body) = request.into_parts();
        let base_url = base_url(&daemon, &parts.headers, parts.uri.path());
        let limit = parts.extensions.get().map(|Limit(view)| view.clone());
        let query = match parts.method {
            Method::GET | Method::HEAD => parts.uri.query().unwrap_or_default().to_owned(),
            Method::POST => form(&parts.headers, body).await?,
            _ => return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "GET or POST")),
        };
        let oap = settings.oap_attributes.apply(parts.headers.contains_key(oap::ASK_HEADER));
        let packed = accepts_gzip(&parts.headers);
        let share = self.shared.budget.reserve(PAGE_BYTES_MAX);
        let turn = self.shared.turns.clone().acquire_owned();
        let both = timeout(TURN, async { (share.await, turn.await) }).await;
        let Ok((Some(share), Ok(turn))) = both else {
            return Err(Refusal::later("too many requests at once"));
        };
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let Inner { collection, current, views, id_file, .. } = &*this.shared;
            let id = id_file.get(settings.repository_identifier.as_ref(), || default_id(&daemon));
            let facts = settings::facts(&settings, &daemon, id.ok_or_else(broken)?, base_url);
            let now = Stamp(clock::now_ms());
            let (of, seen) = ((collection, current), (views, limit.as_deref()));
            let responder = Responder::open(of, seen, &facts, oap, now).map_err(refused)?;
            let answered = responder.answer(&query).map_err(refused)?;
            if answered.records != 0 {
                id_file.keep(&facts.id);
            }
            this.response(answered, packed, share)
        });
        done.await.map_err(|_panicked| broken())?
    }

    /// Makes the response, which keeps its share of bytes until it is sent. Compression takes long:
    /// call on a blocking thread.
    fn response(
        &self,
        answered: Answered,
        packed: bool,
        share: Share,
    ) -> Result<Response, Refusal> {
        let Answered { text, records, is_fault, sizes } = answered;
        {
            let mut counters = self.counted();
            counters.records += records;
            counters.faults += u64::from(is_fault);
        }
        let packed = Some(&text).filter(|it| packed && PACKED_BYTES_MIN <= it.len()).map(pack);
        let is_packed = packed.is_some();
        let bytes = packed.unwrap_or_else(|| text.into_bytes());
        // One record may be longer than the share of a page.
        let Some(bytes) = share.hold(bytes) else {
            return Err(Refusal::later("too much is being sent at once"));
        };
        self.counted().bytes += bytes.len() as u64;
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if is_packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some((list, total)) = sizes {
            headers.insert(oap::LIST_HEADER, HeaderValue::from(list));
            headers.insert(oap::TOTAL_HEADER, HeaderValue::from(total));
        }
        Ok(response)
    }
}

/// Returns the data of a daemon's public pages, with a link to its repository.
pub fn site(name: &str, base_url: Option<&Url>, settings: &Settings) -> Site {
    let site = Site::new(name).at(base_url);
    let link = Link { path: "oai?verb=Identify", name: "OAI-PMH" };
    if settings.enabled { site.with(link) } else { site }
}

async fn schema(Path(file): Path<String>) -> Result<impl IntoResponse, StatusCode> {
    let found = SCHEMA_FILES.into_iter().find(|(name, _)| *name == file);
    let (_, text) = found.ok_or(StatusCode::NOT_FOUND)?;
    Ok(([(CONTENT_TYPE, "application/xml; charset=utf-8")], text))
}

fn pack(text: &String) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    // Writing to a vector never fails.
    let _ = packer.write_all(text.as_bytes());
    packer.finish().unwrap_or_default()
}

/// Returns the repository's public address from the settings, or else the requested one.
fn base_url(daemon: &Daemon, headers: &HeaderMap, path: &str) -> String {
    let slash = if path.ends_with('/') { "/" } else { "" };
    if let Some(url) = &daemon.base_url {
        return format!("{url}{PATH}{slash}");
    }
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"-._:[]".contains(&it);
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    let host = host.filter(|it| !it.is_empty() && it.bytes().all(fits)).unwrap_or("localhost");
    format!("http://{host}/{PATH}{slash}")
}

async fn form(headers: &HeaderMap, body: Body) -> Result<String, Refusal> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let media = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or(FORM);
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(FORM) {
        let message = format!("a POST has its arguments as {FORM}, not as {media}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    // A body that is only one byte too long is read, and answered with a protocol error.
    let read = Limited::new(body, QUERY_BYTES_MAX + 1).collect().await;
    let unread = |error: Box<dyn std::error::Error + Send + Sync>| {
        if error.is::<LengthLimitError>() {
            let message = format!("the request is longer than {QUERY_BYTES_MAX} bytes");
            return Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        Refusal::new(StatusCode::BAD_REQUEST, "the request broke off")
    };
    let bytes = read.map_err(unread)?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let mut codings = values.flat_map(|it| it.split(','));
    codings.any(|coding| {
        let (name, rest) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = rest.trim().strip_prefix("q=").and_then(|it| it.trim().parse::<f32>().ok());
        let is_gzip = ["gzip", "x-gzip"].iter().any(|it| name.trim().eq_ignore_ascii_case(it));
        is_gzip && quality.is_none_or(|it| 0.0 < it)
    })
}

/// An HTTP answer that is not an OAI-PMH response.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    retry_secs: Option<u64>,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_secs: None }
    }

    fn later(message: impl Into<String>) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        Self { retry_secs: Some(RETRY_SECS), ..refusal }
    }

    fn response(self) -> Response {
        let mut response = Response::new(Body::from(self.message + "\n"));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if let Some(secs) = self.retry_secs {
            headers.insert(RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        response
    }
}

fn broken() -> Refusal {
    let message = "the repository cannot answer; see the log";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, message)
}

fn refused(unready: Unready) -> Refusal {
    match unready {
        Unready::Making => Refusal::later("the sets are being made; ask again"),
        Unready::Failed(error @ Error::Damaged { .. }) => {
            // The error names a file, which only the log may show.
            tracing::warn!(%error, "a list cannot be answered");
            let refusal = Refusal::later(web::failure::DAMAGED);
            Refusal { retry_secs: Some(RETRY_DAMAGED_SECS), ..refusal }
        }
        Unready::Failed(error) => {
            tracing::error!(%error, "the repository cannot be read");
            broken()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_for_clients_that_accept_it() {
        for (value, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip; q=0", false),
            ("gzip;q=0.0, deflate", false),
            ("identity", false),
            ("", false),
        ] {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepts_gzip(&headers), expected, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    fn empty() -> (tempfile::TempDir, Repository) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("collection");
        let opened = Collection::open(&folder, collection::Options::default(), Stamp(1)).unwrap();
        let daemon = Daemon { id: "0123456789abcdef".to_owned(), ..Daemon::default() };
        let sets = dir.path().join(SETS);
        let repository = Repository::new(opened.0, Settings::default(), daemon, sets);
        (dir, repository)
    }

    #[tokio::test]
    async fn a_request_without_a_turn_is_refused_for_now() {
        let (_dir, repository) = empty();
        let ask = || async {
            let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
            repository.respond(request).await
        };
        assert_eq!(ask().await.status(), StatusCode::OK);
        // Ends the wait for a turn, as its timeout would.
        repository.shared.turns.close();
        let late = ask().await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(late.headers()[RETRY_AFTER], "10");
        let counters = repository.counters();
        assert_eq!((counters.requests, counters.postponed), (1, 1));
        let shown = daemon::metrics::render(&samples(&counters));
        assert!(shown.contains("harvest_oai_postponed_total 1\n"), "{shown}");
    }

    #[tokio::test]
    async fn a_response_holds_its_bytes_until_it_is_sent() {
        let (_dir, repository) = empty();
        let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
        let sent = repository.respond(request).await;
        assert_eq!(sent.status(), StatusCode::OK);
        let budget = &repository.shared.budget;
        let left = budget.bytes_left();
        assert!(left < SENDING_BYTES_MAX && SENDING_BYTES_MAX - left < 100_000, "{left}");
        drop(sent);
        assert_eq!(budget.bytes_left(), SENDING_BYTES_MAX);
        // Ends the wait for bytes, as its timeout would.
        budget.close();
        let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
        let late = repository.respond(request).await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(late.headers()[RETRY_AFTER], "10");
    }

    #[tokio::test]
    async fn a_truncated_form_is_not_reported_as_too_long() {
        let status = async |body: Body| form(&HeaderMap::new(), body).await.map_err(|it| it.status);
        assert_eq!(status(Body::from("verb=Identify")).await, Ok("verb=Identify".to_owned()));
        let long = "x".repeat(QUERY_BYTES_MAX + 2);
        assert_eq!(status(Body::from(long)).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let short = Limited::new(Body::from("verb=Identify"), 1);
        let broken = Body::new(short);
        assert_eq!(status(broken).await, Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn the_address_is_the_public_or_the_requested_one() {
        let ours = |base: Option<&str>, host: &'static str, path: &str| {
            let base_url = base.map(|it| Url::parse(it).unwrap());
            let daemon = Daemon { base_url, ..Daemon::default() };
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            super::base_url(&daemon, &headers, path)
        };
        assert_eq!(ours(None, "a.org:8500", "/oai"), "http://a.org:8500/oai");
        assert_eq!(ours(None, "[::1]:8500", "/oai/"), "http://[::1]:8500/oai/");
        assert_eq!(ours(None, "a b<", "/oai"), "http://localhost/oai");
        let proxy = Some("https://library.example/harvest/");
        assert_eq!(ours(proxy, "10.0.0.1", "/oai"), "https://library.example/harvest/oai");
    }
}
