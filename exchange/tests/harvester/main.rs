//! Tests of repositories as sources of a collection: broken pages, long tokens, pauses, interrupted
//! harvests.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod answers;
mod records;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use collection::{Change, Collection, Oid, Options, Stamp, Swept};
use exchange::harvester::{Access, Bounds, Error, Repository, Running, Step, Stored, Target};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use net::client::Client;
use net::clock;
use net::pace::Hosts;
use net::server::{self, Limits};
use net::shutdown::Shutdown;
use oai::crosswalk::SourceIdentity;
use oai::harvest::{Checkpoint, End, Failure, Settings, Warning};
use oai::request::{Listed, Request, Scope};
use oai::response::write::Writer;
use oai::response::{Deleted, Format, Header, Identify, Record, Set, Token, Xml};
use oai::{Code, Datestamp, Fault, Granularity};
use tokio::sync::Semaphore;
use url::Url;

/// 2026-01-01, in Unix seconds.
const START: i64 = 1_767_225_600;

const PAGE: usize = 10;

/// Time of the items' changes.
static CHANGED: LazyLock<i64> = LazyLock::new(now);

/// Kind of the next answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Sound,
    Gzip,
    Deflate,
    /// Decompresses to 5 MiB.
    Bomb,
    /// An HTML page with status 200.
    Html,
    /// Busy once, then sound.
    Busy,
    /// Protocol errors with status 404.
    WrongStatus,
    /// A coding that was not offered.
    Brotli,
}

#[derive(Debug, Default)]
struct SiteData {
    mode: Mode,
    /// Items by number: version, and whether deleted; stamps follow from the version.
    items: BTreeMap<u32, (u32, bool)>,
    /// The requests: method and length of the URL.
    asked: Vec<(Method, usize)>,
    deleted: Deleted,
    /// Appended to tokens.
    padding: usize,
    /// Items with a long title: its bytes.
    large: BTreeMap<u32, usize>,
}

type Site = Arc<Mutex<SiteData>>;

fn stamp(version: u32) -> Datestamp {
    let at = if version == 0 { START } else { *CHANGED };
    Datestamp::at(at, Granularity::Second)
}

fn now() -> i64 {
    i64::try_from(clock::now_ms() / 1_000).unwrap()
}

fn record(id: u32, (version, deleted): (u32, bool)) -> Record {
    let text = format!(
        "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>Item {id} v{version}</dc:title>\
         </oai_dc:dc>"
    );
    Record {
        header: Header {
            identifier: format!("oai:test:{id}"),
            datestamp: Some(stamp(version)),
            sets: Vec::new(),
            deleted,
        },
        metadata: (!deleted).then_some(Xml(text)),
        about: Vec::new(),
    }
}

/// Returns the records of a list from `from` on.
fn records_from(site: &SiteData, from: i64) -> Vec<Record> {
    let mut chosen = Vec::new();
    for (id, item) in &site.items {
        let mut it = record(*id, *item);
        if let Some(bytes) = site.large.get(id) {
            let long = format!("Item {}", "x".repeat(*bytes));
            it.metadata = it.metadata.take().map(|it| Xml(it.0.replace("Item", &long)));
        }
        if from <= it.header.datestamp.unwrap().secs() {
            chosen.push(it);
        }
    }
    chosen
}

fn response_text(site: &SiteData, request: &Result<Request, Fault>) -> (String, bool) {
    let date = Datestamp::at(now(), Granularity::Second);
    let writer = Writer::new(date, "http://h/oai", request.as_ref().ok());
    let fault = |code| vec![Fault::new(code, "")];
    let (scope, listed) = match request {
        Err(fault) => return (writer.faults(std::slice::from_ref(fault)), true),
        Ok(Request::Identify) => {
            let identify = Identify {
                repository_name: "Test".to_owned(),
                base_url: "http://h/oai".to_owned(),
                protocol_version: "2.0".to_owned(),
                admin_emails: vec!["admin@h.org".to_owned()],
                earliest_datestamp: Some(stamp(0)),
                deleted_record: site.deleted,
                granularity: Granularity::Second,
                ..Identify::default()
            };
            return (writer.identify(&identify), false);
        }
        Ok(Request::Formats { .. }) => {
            let format = Format { prefix: "oai_dc".to_owned(), ..Format::default() };
            return (writer.formats(&[format]), false);
        }
        Ok(Request::Sets { .. }) => {
            let set = Set { spec: "a".to_owned(), name: "A".to_owned(), descriptions: Vec::new() };
            return (writer.sets(&[set], None), false);
        }
        Ok(Request::Get { identifier, .. }) => {
            let id = identifier.strip_prefix("oai:test:").and_then(|it| it.parse().ok());
            return match id.and_then(|id| Some((id, *site.items.get(&id)?))) {
                Some((id, item)) => (writer.one(&record(id, item)), false),
                None => (writer.faults(&fault(Code::IdDoesNotExist)), true),
            };
        }
        Ok(Request::List { scope, .. }) => (scope, Listed::Records),
    };
    let (from, skip) = match scope {
        Scope::Selection(it) => (it.from.map_or(i64::MIN, Datestamp::secs), 0),
        Scope::Token(token) => {
            let mut parts = token.split(',');
            let mut next = || parts.next().unwrap().parse().unwrap();
            (next(), usize::try_from(next()).unwrap())
        }
    };
    let chosen = records_from(site, from);
    if chosen.is_empty() {
        return (writer.faults(&fault(Code::NoRecordsMatch)), true);
    }
    let mut list = writer.list(listed);
    chosen.iter().skip(skip).take(PAGE).for_each(|it| list.push(it));
    let next = skip + PAGE;
    let token = Token {
        value: if next < chosen.len() {
            format!("{from},{next},{}", "p".repeat(site.padding))
        } else {
            String::new()
        },
        complete_list_size: Some(u64::try_from(chosen.len()).unwrap()),
        ..Token::default()
    };
    (list.finish((PAGE < chosen.len()).then_some(&token)), false)
}

async fn serve(
    State((site, gate)): State<(Site, Arc<Semaphore>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    gate.acquire().await.unwrap().forget();
    let mut site = site.lock().unwrap();
    site.asked.push((method.clone(), uri.to_string().len()));
    let query = String::from_utf8(body.to_vec()).unwrap();
    let query = if method == Method::POST { &query } else { uri.query().unwrap_or_default() };
    // The base URL keeps its own query.
    let query = query.replace("key=1&", "");
    let (text, is_error) = response_text(&site, &Request::parse(&query));
    let accepts = headers.get(header::ACCEPT_ENCODING).unwrap().to_str().unwrap();
    assert!(accepts.contains("gzip") && accepts.contains("deflate"));
    let xml = [(header::CONTENT_TYPE, "text/xml")];
    let coded = |name: &'static str, bytes: Vec<u8>| {
        ([(header::CONTENT_TYPE, "text/xml"), (header::CONTENT_ENCODING, name)], bytes)
            .into_response()
    };
    match site.mode {
        Mode::Sound => (xml, text).into_response(),
        Mode::Gzip => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(text.as_bytes()).unwrap();
            coded("gzip", gzip.finish().unwrap())
        }
        Mode::Deflate => {
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
            zlib.write_all(text.as_bytes()).unwrap();
            coded("deflate", zlib.finish().unwrap())
        }
        Mode::Bomb => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            for _ in 0..5 {
                gzip.write_all(&[b' '; 1 << 20]).unwrap();
            }
            coded("gzip", gzip.finish().unwrap())
        }
        Mode::Html => "<html><body>Down for maintenance</body></html>".into_response(),
        Mode::Busy => {
            site.mode = Mode::Sound;
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response()
        }
        Mode::WrongStatus if is_error => (StatusCode::NOT_FOUND, xml, text).into_response(),
        Mode::WrongStatus => (xml, text).into_response(),
        Mode::Brotli => coded("br", b"xyz".to_vec()),
    }
}

struct Peer {
    site: Site,
    url: Url,
    shutdown: Shutdown,
    dir: tempfile::TempDir,
    collection: Collection,
    /// Each permit lets the repository answer one request.
    gate: Arc<Semaphore>,
    /// Time to live of records, if set.
    ttl_secs: Option<u64>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

/// Returns a repository of `count` items, and an empty collection.
async fn peer(count: u32) -> Peer {
    let items = (0..count).map(|id| (id, (0, false))).collect();
    let deleted = Deleted::Persistent;
    let site = Arc::new(Mutex::new(SiteData { items, deleted, ..SiteData::default() }));
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS / 4));
    let listener = server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/oai?key=1", listener.local_addr().unwrap());
    let router = Router::new().fallback(serve).with_state((Arc::clone(&site), Arc::clone(&gate)));
    let shutdown = Shutdown::new();
    tokio::spawn(server::serve(listener, router, Limits::default(), shutdown.clone()));
    let dir = tempfile::tempdir().unwrap();
    let collection = Collection::open(dir.path(), Options::default(), Stamp(1)).unwrap().0;
    let url = Url::parse(&url).unwrap();
    Peer { site, url, shutdown, dir, collection, ttl_secs: None, gate }
}

impl Peer {
    fn repository(&self) -> Repository {
        let access = Access { allow_private: true, page_bytes_max: 4 << 20, ..Access::default() };
        Repository::new(Client::new(net::client::Settings::default()), self.url.clone(), access)
    }

    fn target(&self) -> Target {
        let mut identity = SourceIdentity::new(self.url.as_str());
        if let Some(secs) = self.ttl_secs {
            identity.attributes.push(("Time-to-Live".to_owned(), secs.to_string()));
        }
        Target::new(self.collection.clone(), "test".to_owned(), identity)
    }

    fn settings(&self) -> Settings {
        Settings::new(self.url.as_str())
    }

    /// Harvests into the collection; returns `None` if interrupted after `batches_max` batches.
    async fn harvest(&self, settings: Settings, batches_max: usize) -> Option<(End, Vec<Stored>)> {
        let mut target = self.target();
        let checkpoint = target.checkpoint().await.unwrap();
        let shutdown = self.shutdown.child();
        let bounds = Bounds::default();
        let mut running = Running::new(self.repository(), settings, checkpoint, bounds, shutdown);
        let mut all = Vec::new();
        loop {
            match running.next().await {
                Step::Batch(batch) => {
                    if all.len() == batches_max {
                        return None;
                    }
                    let prefix = running.prefix().to_owned();
                    all.push(target.store(*batch, &prefix).await.unwrap());
                }
                Step::End(end) => {
                    target.store_end(&end.checkpoint).await.unwrap();
                    return Some((*end, all));
                }
                Step::Stopped => return None,
            }
        }
    }

    async fn harvest_all(&self) -> End {
        self.harvest(self.settings(), usize::MAX).await.unwrap().0
    }

    fn set(&self, mode: Mode) {
        self.site.lock().unwrap().mode = mode;
    }

    /// Returns the titles of the collection's objects, by number.
    fn titles(&self) -> BTreeMap<u32, String> {
        let gatherer = SourceIdentity::new(self.url.as_str()).gatherer_id;
        (0..200)
            .filter_map(|id| {
                let oid = Oid::new(&gatherer, &format!("oai:test:{id}"));
                let stored = self.collection.get(&oid).unwrap()?;
                Some((id, stored.record.text("Title").unwrap().into_owned()))
            })
            .collect()
    }

    fn expected(&self) -> BTreeMap<u32, String> {
        let site = self.site.lock().unwrap();
        let live = site.items.iter().filter(|(_, (_, deleted))| !deleted);
        live.map(|(id, (version, _))| (*id, format!("Item {id} v{version}"))).collect()
    }
}
