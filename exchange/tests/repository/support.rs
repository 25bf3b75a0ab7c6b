//! A repository over a collection in its own folder, with requests to it.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use collection::{Batch, Change, Collection, Error, Oid, Options, Stamp};
use exchange::repository::{Daemon, Repository, Settings};
use http_body_util::BodyExt as _;
use net::clock;
use net::shutdown::Shutdown;
use soif::Record;
use tower::ServiceExt as _;

use crate::schemas;

/// The gatherer of most objects.
pub(crate) const G: &str = "0123456789abcdef";

/// 2026-01-31T12:00:00Z, in milliseconds: `date -u -d … +%s`.
pub(crate) const NOON: u64 = 1_769_860_800_000;

/// The beginning of the repository's identifiers.
pub(crate) const OURS: &str = "oai:library.example:0123456789abcdef/http://h/";

pub(crate) fn update(gatherer: &str, url: &str, kind: &str) -> Change {
    let mut record = Record::new("FILE", url);
    record.push("Gatherer-Id", gatherer);
    record.push("Title", format!("about <{url}> & more"));
    record.push("Type", kind);
    Change::Update(record)
}

pub(crate) fn text(n: usize) -> Change {
    update(G, &format!("http://h/{n}"), "Text")
}

pub(crate) fn delete(gatherer: &str, url: &str) -> Change {
    Change::Delete(Oid::new(gatherer, url))
}

pub(crate) fn commit(collection: &Collection, secs: u64, changes: Vec<Change>) {
    let batch = Batch { changes, notes: Vec::new() };
    collection.commit(batch, Stamp(NOON + secs * 1_000 + 7)).unwrap();
}

pub(crate) fn open(dir: &Path) -> Collection {
    let options = Options {
        // Small segments, so that each list has many, and compaction has work.
        segment_bytes_max: 2_000,
        member_bytes_max: 500,
        suppressed: Some(dir.join("suppressed.soif")),
        ..Options::default()
    };
    let end = clock::monotonic() + Duration::from_secs(10);
    loop {
        match Collection::open(&dir.join("collection"), options.clone(), Stamp(NOON)) {
            Ok((collection, _)) => return collection,
            // Another test may be starting xmllint, which inherits open files until it runs.
            Err(Error::InUse { .. }) if clock::monotonic() < end => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) fn settings(page_records: u64) -> Settings {
    Settings { page_records, ..Settings::default() }
}

pub(crate) struct Running {
    pub(crate) collection: Collection,
    pub(crate) repository: Repository,
    shutdown: Shutdown,
    keep: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
pub(crate) struct ResponseText {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl ResponseText {
    /// Returns the contents of the elements with that name, without attributes.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let parts: Vec<&str> = self.text.split(open.as_str()).skip(1).collect();
        let parts = parts.into_iter().filter(|it| it.starts_with(['>', ' ']));
        parts.filter_map(|it| it.split_once('>')?.1.split(close.as_str()).next()).collect()
    }

    pub(crate) fn one(&self, name: &str) -> &str {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "{name} in {}", self.text);
        all[0]
    }

    pub(crate) fn attributes(&self, name: &str) -> &str {
        let part = self.text.split(&format!("<{name}")).nth(1).unwrap_or_default();
        part.split('>').next().unwrap_or_default()
    }

    pub(crate) fn codes(&self) -> Vec<&str> {
        let parts = self.text.split("<error code=\"").skip(1);
        parts.filter_map(|it| it.split('"').next()).collect()
    }

    /// Returns the listed identifiers without their common beginning; deleted ones with a minus.
    pub(crate) fn items(&self) -> Vec<String> {
        let headers = self.text.split("<header").skip(1);
        headers
            .map(|it| {
                let identifier =
                    it.split("<identifier>").nth(1).unwrap().split('<').next().unwrap();
                let short = identifier.strip_prefix(OURS).unwrap_or(identifier);
                let gone = it.starts_with(" status=\"deleted\"");
                if gone { format!("-{short}") } else { short.to_owned() }
            })
            .collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |it| it.to_str().unwrap())
    }
}

impl Running {
    /// Runs the repository of the collection in `dir`, and waits until it can make lists.
    pub(crate) async fn start(dir: &Path, collection: Collection, settings: Settings) -> Self {
        let running = Self::begin(dir, collection, settings);
        while running.repository.counters().ready == 0 {
            tokio::task::yield_now().await;
        }
        running
    }

    pub(crate) fn begin(dir: &Path, collection: Collection, settings: Settings) -> Self {
        let daemon = Daemon {
            name: "Library".to_owned(),
            id: G.to_owned(),
            base_url: Some(url::Url::parse("https://library.example/").unwrap()),
            syndication: None,
        };
        let sets = dir.join("oai/sets");
        let repository = Repository::new(collection.clone(), settings, daemon, sets);
        let shutdown = Shutdown::new();
        let (kept, stop) = (repository.clone(), shutdown.clone());
        let keep = tokio::spawn(async move { kept.keep(stop).await });
        Self { collection, repository, shutdown, keep }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> ResponseText {
        let response = self.repository.routes().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        ResponseText { status: parts.status, headers: parts.headers, text }
    }

    /// Sends a query; the response must be valid.
    #[track_caller]
    pub(crate) fn ask(&self, query: &str) -> impl Future<Output = ResponseText> + use<'_> {
        let request = Request::get(format!("/oai?{query}")).body(Body::empty()).unwrap();
        async move {
            let found = self.send(request).await;
            assert_eq!(found.status, StatusCode::OK, "{found:?}");
            assert_eq!(found.header("content-type"), "text/xml; charset=utf-8");
            schemas::assert_valid(found.text.as_bytes());
            found
        }
    }

    /// Reads a list to its end, and returns its parts.
    pub(crate) async fn read(&self, verb: &str, arguments: &str) -> Vec<ResponseText> {
        let mut parts = vec![self.ask(&format!("verb={verb}&{arguments}")).await];
        while let Some(token) = parts.last().unwrap().all("resumptionToken").first() {
            if token.is_empty() {
                break;
            }
            let query = format!("verb={verb}&resumptionToken={token}");
            parts.push(self.ask(&query).await);
        }
        parts
    }

    pub(crate) async fn items(&self, verb: &str, arguments: &str) -> Vec<String> {
        self.read(verb, arguments).await.iter().flat_map(ResponseText::items).collect()
    }

    /// Stops the repository, so that its collection can be opened again.
    pub(crate) async fn stop(self) {
        self.shutdown.start();
        self.keep.await.unwrap();
    }
}
