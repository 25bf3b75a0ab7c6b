//! The broker's public routes over a real collection and index, without a server.

use axum::Router;
use axum::body::Body;
use broker::engine::Engine;
use broker::index::{Index, IndexOptions};
use broker::page::{PageState, TEMPLATES, routes};
use collection::{Batch, Change, Collection, Options, Stamp};
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, Request};
use serde_json::Value;
use soif::Record;
use tempfile::TempDir;
use tower::ServiceExt as _;

pub(crate) const GATHERER: &str = "0123456789abcdef";
const NOW: Stamp = Stamp(1_700_000_000_000);

/// The public routes over a collection and its index.
pub(crate) struct Site {
    router: Router,
    _dir: TempDir,
}

/// An answer.
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn media(&self) -> &str {
        self.headers[CONTENT_TYPE].to_str().unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.media(), "application/json", "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the URL in the first `href` after `mark`.
    pub(crate) fn link_after(&self, mark: &str) -> Option<String> {
        let rest = &self.body[self.body.find(mark)?..];
        let start = rest.find("href=\"")? + 6;
        let end = rest[start..].find('"')?;
        Some(rest[start..start + end].replace("&amp;", "&"))
    }

    /// Returns the URLs of the hits' titles.
    pub(crate) fn hits(&self) -> Vec<String> {
        let titles = self.body.split("<h3 dir=\"auto\"><a href=\"").skip(1);
        titles.map(|it| it[..it.find('"').unwrap()].to_owned()).collect()
    }
}

impl Site {
    pub(crate) fn of(records: Vec<Record>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (collection, _recovery) =
            Collection::open(&dir.path().join("collection"), Options::default(), NOW).unwrap();
        let changes = records.into_iter().map(Change::Update).collect();
        collection.commit(Batch { changes, notes: Vec::new() }, NOW).unwrap();
        let options = IndexOptions { threads: 1, heap_bytes: 16 << 20, ..IndexOptions::default() };
        let index = Index::open(&dir.path().join("index"), options).unwrap();
        index.apply(&collection, &|| false).unwrap();
        let state = PageState::new(
            Engine::Index(index),
            collection,
            web::Pages::new(web::Site::new("Test library"), TEMPLATES, None).unwrap(),
        );
        Self { router: routes(state), _dir: dir }
    }

    pub(crate) async fn ask(&self, method: &str, uri: &str, accept: &str) -> Seen {
        let request = Request::builder().method(method).uri(uri).header(ACCEPT, accept);
        let request = request.body(Body::empty()).unwrap();
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 24).await;
        let bytes = bytes.unwrap_or_else(|error| panic!("{uri}: {error}"));
        let body = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(parts.headers.contains_key(CONTENT_SECURITY_POLICY), "{uri}");
        Seen { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, uri: &str) -> Seen {
        self.ask("GET", uri, "text/html,*/*").await
    }

    pub(crate) async fn get_ok(&self, uri: &str) -> Seen {
        let seen = self.get(uri).await;
        assert_eq!(seen.status, 200, "{uri}: {}", seen.body);
        seen
    }
}

/// Returns a record with a text that all of them have.
pub(crate) fn record(url: &str, title: &str) -> Record {
    let mut record = Record::new("FILE", url);
    record.push("Title", title);
    record.push("Type", "HTML");
    record.push("Gatherer-Id", GATHERER);
    record.push("Gatherer-Name", "Physics");
    record.push("Last-Modification-Time", "1700000000");
    record.push("Partial-Text", "A gatherer summarizes each object once & serves every change.");
    record
}
