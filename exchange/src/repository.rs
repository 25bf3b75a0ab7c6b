//! A collection as an OAI-PMH repository, over HTTP: `/oai`.
//!
//! `GET /oai?verb=…`, or a POST with the same as a form. What is said is `oai::repository`'s; here are
//! the collection and the clock. Metadata formats are those of `oai::crosswalk`, sets those of
//! `oai::repository::set`, and datestamps the seconds in which changes were committed.
//!
//! What takes long is done on blocking threads, and by [`ANSWERS_MAX`] requests at once; more are asked to
//! come again (503 with `Retry-After`), as are those that need the sets before they are made, or what is
//! damaged. Responses that are being made or sent hold [`SENDING_BYTES_MAX`] together, each its part until the
//! last byte has gone; without room for another, who asks is to come again. Responses are packed with gzip for whoever accepts that.
//!
//! Every response to ListRecords and ListIdentifiers says in headers how many records the whole list has, and
//! how many the repository (`oai::repository::oap`, also on why they are not on the token).
//!
//! Source: OAI-PMH §3.1 (HTTP embedding), §3.1.3 (compression), §3.5 (flow control).
//!
//! # Differences from the standard
//!
//! * `responseDate` is the second before the present one, or an earlier one while a commit is under way: what
//!   is committed later must not have a datestamp that a harvester takes for told.
//! * Deletions are listed in all sets by type, since what is deleted has no type any more.

mod answer;
mod current;
mod named;
mod origin;
mod remembered;
mod room;
mod saved;
mod sets;
pub mod settings;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use answer::{Answered, Desk};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use collection::{Collection, Error, Stamp};
use current::{Current, Unready};
use daemon::describe::largest;
use daemon::metrics::Sample;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use net::clock;
use net::shutdown::Shutdown;
use oai::repository::description::SCHEMA_FILES;
use oai::repository::{PAGE_BYTES_MAX, oap};
use oai::request::QUERY_BYTES_MAX;
use remembered::Remembered;
use room::{Room, Taken};
use settings::made_id;
pub use settings::{Daemon, Settings};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use url::Url;
use web::Site;
use web::layout::Link;

/// Most requests that are answered at once.
pub const ANSWERS_MAX: usize = 8;

/// Most bytes of responses that are being made and sent, in all (256 MiB): readers may be slow, and there may
/// be many.
pub const SENDING_BYTES_MAX: usize = 256 << 20;

/// How long a request waits for its turn, and for room.
const TURN: Duration = Duration::from_secs(5);

/// When to ask again while the sets are made or all turns are taken, in seconds.
const RETRY_SECS: u64 = 10;

/// When to ask again for what is damaged, in seconds.
const RETRY_DAMAGED_SECS: u64 = 60;

/// The file of the sets, below a daemon's data directory.
pub const SETS: &str = "oai/sets";

/// Where the repository is, below the listener's root.
const PATH: &str = "oai";

/// Shorter responses are not packed, in bytes.
const PACKED_BYTES_MIN: usize = 1_024;

/// What a repository has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests answered, with errors or without.
    pub requests: u64,
    /// Of those, with an error of the protocol.
    pub faults: u64,
    /// Records, and headers of records, in responses.
    pub records: u64,
    /// Requests that were to come again.
    pub postponed: u64,
    /// Bytes of responses, packed where they were.
    pub bytes: u64,
    /// Whether lists can be made: 0 while the sets are made.
    pub ready: u64,
}

/// The counters for `GET /metrics`.
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

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    faults: AtomicU64,
    records: AtomicU64,
    postponed: AtomicU64,
    bytes: AtomicU64,
}

fn add(count: &AtomicU64, number: u64) {
    count.fetch_add(number, Ordering::Relaxed);
}

/// A repository over a collection. Clones are the same.
#[derive(Clone, Debug)]
pub struct Repository {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    collection: Collection,
    current: Current,
    said: watch::Sender<(Settings, Daemon)>,
    turns: Arc<Semaphore>,
    room: Room,
    remembered: Remembered,
    counts: Counts,
}

impl Repository {
    /// The repository of `collection`, as `settings` want it; `sets` is a file of its own for what can be made
    /// anew, beside which its identifier is kept. Lists can be made once [`keep`](Self::keep) runs.
    pub fn new(collection: Collection, settings: Settings, daemon: Daemon, sets: PathBuf) -> Self {
        let remembered = Remembered::beside(&sets);
        let current = Current::new(collection.clone(), sets);
        let said = watch::Sender::new((settings, daemon));
        let turns = Arc::new(Semaphore::new(ANSWERS_MAX));
        let (room, counts) = (Room::new(SENDING_BYTES_MAX), Counts::default());
        let shared = Shared { collection, current, said, turns, room, remembered, counts };
        Self { shared: Arc::new(shared) }
    }

    /// The repository of a daemon that keeps what it has in `data`.
    pub fn open(
        collection: &Collection,
        settings: &Settings,
        daemon: Daemon,
        data: &std::path::Path,
    ) -> Self {
        Self::new(collection.clone(), settings.clone(), daemon, data.join(SETS))
    }

    /// Puts new settings in force.
    pub fn set(&self, settings: Settings, daemon: Daemon) {
        self.shared.said.send_replace((settings, daemon));
    }

    /// Returns how many records there are of each type, and in each language; none while that is not known, or lists
    /// are not made. Blocks.
    pub fn counts(&self) -> [BTreeMap<String, u64>; 2] {
        let shared = &self.shared;
        if !shared.said.borrow().0.enabled {
            return <[BTreeMap<String, u64>; 2]>::default();
        }
        let version = shared.collection.version();
        let counts = shared.current.with(version, |sets, present| sets.counts(present));
        counts.map(|it| it.map(largest)).unwrap_or_default()
    }

    /// The routes: `/oai`, with a slash at its end or without.
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

    /// Keeps what lists are made of current until the shutdown starts. Does nothing before it is enabled.
    pub async fn keep(&self, shutdown: Shutdown) {
        let mut said = self.shared.said.subscribe();
        tokio::select! {
            _enabled = said.wait_for(|(settings, _)| settings.enabled) => {}
            () = shutdown.started() => return,
        }
        self.shared.current.clone().keep(shutdown).await;
    }

    /// What it has done since it started.
    pub fn counters(&self) -> Counters {
        let counts = &self.shared.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            requests: get(&counts.requests),
            faults: get(&counts.faults),
            records: get(&counts.records),
            postponed: get(&counts.postponed),
            bytes: get(&counts.bytes),
            ready: u64::from(self.shared.current.is_ready()),
        }
    }

    /// Answers a request.
    pub async fn respond(&self, request: Request) -> Response {
        let counts = &self.shared.counts;
        match self.answer(request).await {
            Ok(response) => {
                add(&counts.requests, 1);
                response
            }
            Err(refusal) => {
                add(&counts.postponed, u64::from(refusal.retry_secs.is_some()));
                refusal.response()
            }
        }
    }

    async fn answer(&self, request: Request) -> Result<Response, Refusal> {
        let (settings, daemon) = self.shared.said.borrow().clone();
        if !settings.enabled {
            let message = "this is no repository: [oai] has enabled = false";
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        }
        let (parts, body) = request.into_parts();
        let base_url = base_url(&daemon, &parts.headers, parts.uri.path());
        let query = match parts.method {
            Method::GET | Method::HEAD => parts.uri.query().unwrap_or_default().to_owned(),
            Method::POST => form(&parts.headers, body).await?,
            _ => return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "GET or POST")),
        };
        let oap = settings.oap_attributes.apply(parts.headers.contains_key(oap::ASK_HEADER));
        let packed = accepts_gzip(&parts.headers);
        let room = self.shared.room.take(PAGE_BYTES_MAX);
        let turn = self.shared.turns.clone().acquire_owned();
        let both = timeout(TURN, async { (room.await, turn.await) }).await;
        let Ok((Some(room), Ok(turn))) = both else {
            return Err(Refusal::later("too many requests at once"));
        };
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let Shared { collection, current, remembered, .. } = &*this.shared;
            let id = remembered.get(settings.repository_identifier.as_ref(), || made_id(&daemon));
            let facts = settings::facts(&settings, &daemon, id.ok_or_else(broken)?, base_url);
            let desk = Desk::open(collection, current, &facts, oap, Stamp(clock::now_ms()));
            let answered = desk.answer(&query).map_err(refused)?;
            if answered.records != 0 {
                remembered.keep(&facts.id);
            }
            this.response(answered, packed, room)
        });
        done.await.map_err(|_panicked| broken())?
    }

    /// Makes the response, which holds its part of the `room`. Packing takes long: on a blocking thread.
    fn response(&self, answered: Answered, packed: bool, room: Taken) -> Result<Response, Refusal> {
        let counts = &self.shared.counts;
        let Answered { text, records, is_fault, size } = answered;
        add(&counts.records, records);
        add(&counts.faults, u64::from(is_fault));
        let packed = Some(&text).filter(|it| packed && PACKED_BYTES_MIN <= it.len()).map(pack);
        let is_packed = packed.is_some();
        let bytes = packed.unwrap_or_else(|| text.into_bytes());
        // A record may be longer than a page.
        let Some(bytes) = room.hold(bytes) else {
            return Err(Refusal::later("too much is being sent at once"));
        };
        add(&counts.bytes, bytes.len() as u64);
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/xml; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
        if is_packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Some(size) = size {
            headers.insert(oap::LIST_HEADER, HeaderValue::from(size));
            headers.insert(oap::TOTAL_HEADER, HeaderValue::from(self.shared.collection.len()));
        }
        Ok(response)
    }
}

/// What public pages say of a daemon, with a link to its repository.
pub fn site(name: &str, base_url: Option<&Url>, settings: &Settings) -> Site {
    let site = Site::new(name).at(base_url);
    let link = Link { path: "oai?verb=Identify", name: "OAI-PMH" };
    if settings.enabled { site.with(link) } else { site }
}

/// Serves the schemas of what nobody else has one for.
async fn schema(Path(file): Path<String>) -> Result<impl IntoResponse, StatusCode> {
    let found = SCHEMA_FILES.into_iter().find(|(name, _)| *name == file);
    let (_, text) = found.ok_or(StatusCode::NOT_FOUND)?;
    Ok(([(CONTENT_TYPE, "application/xml; charset=utf-8")], text))
}

fn pack(text: &String) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::with_capacity(text.len() / 4), Compression::fast());
    // A vector takes all that is written to it.
    let _ = packer.write_all(text.as_bytes());
    packer.finish().unwrap_or_default()
}

/// The repository's address as it was asked, or behind a proxy as settings say.
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

/// Reads the body of a POST.
async fn form(headers: &HeaderMap, body: Body) -> Result<String, Refusal> {
    const FORM: &str = "application/x-www-form-urlencoded";
    let media = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or(FORM);
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(FORM) {
        let message = format!("a POST has its arguments as {FORM}, not as {media}");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    // One byte more is too long for a query, and is answered as such.
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

/// Whether the answer may be packed with gzip.
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

/// An answer that is no response of the protocol.
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
            // Which file that is, is for our log.
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
    fn gzip_is_for_who_accepts_it() {
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

    /// A repository of nothing, and its folder.
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
    async fn who_gets_no_turn_is_to_come_again() {
        let (_dir, repository) = empty();
        let ask = || async {
            let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
            repository.respond(request).await
        };
        assert_eq!(ask().await.status(), StatusCode::OK);
        // As if the time to wait for one were over.
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
    async fn a_response_holds_its_room_until_it_is_sent() {
        let (_dir, repository) = empty();
        let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
        let sent = repository.respond(request).await;
        assert_eq!(sent.status(), StatusCode::OK);
        let room = &repository.shared.room;
        let left = room.left();
        assert!(left < SENDING_BYTES_MAX && SENDING_BYTES_MAX - left < 100_000, "{left}");
        drop(sent);
        assert_eq!(room.left(), SENDING_BYTES_MAX);
        // As if there were none for so long that nobody waits.
        room.close();
        let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
        let late = repository.respond(request).await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(late.headers()[RETRY_AFTER], "10");
    }

    #[tokio::test]
    async fn a_form_that_breaks_off_is_not_too_long() {
        let status = async |body: Body| form(&HeaderMap::new(), body).await.map_err(|it| it.status);
        assert_eq!(status(Body::from("verb=Identify")).await, Ok("verb=Identify".to_owned()));
        let long = "x".repeat(QUERY_BYTES_MAX + 2);
        assert_eq!(status(Body::from(long)).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
        let short = Limited::new(Body::from("verb=Identify"), 1);
        let broken = Body::new(short);
        assert_eq!(status(broken).await, Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn the_address_is_the_one_that_was_asked() {
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
