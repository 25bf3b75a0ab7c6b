//! Tests of Adly's numbers on the wire: their recipients, and their validity.
//!
//! OAI-PMH allows neither the paper's attribute `totalElements` nor its token on every list. Most
//! clients get valid responses; the intended ones get the numbers in each form.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/schemas.rs"]
mod schemas;

use axum::body::Body;
use axum::extract::Request;
use collection::{Batch, Change, Collection, Oid, Options, Stamp};
use exchange::repository::{Daemon, Repository, Settings};
use http::HeaderMap;
use http_body_util::BodyExt as _;
use net::shutdown::Shutdown;
use oai::Verb;
use oai::repository::oap::{self, Attributes, Totals};
use oai::response::{Body as ResponseBody, Token, read};
use schemas::{assert_valid, validate};
use soif::Record;
use tokio::task::JoinSet;

const GATHERER: &str = "0123456789abcdef";
/// Number of live records.
const LIVING: u64 = 7;
/// Number of deleted records.
const GONE: u64 = 2;
/// Number of records of a page.
const PAGE: u64 = 4;

struct Site {
    repository: Repository,
    _tasks: JoinSet<()>,
    _dir: tempfile::TempDir,
}

/// Returns a repository with this setting of the paper's attributes.
async fn site(attributes: Attributes) -> Site {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("collection");
    let collection = Collection::open(&folder, Options::default(), Stamp(1)).unwrap().0;
    let url = |number| format!("http://www.example.org/{number}");
    let update = |number| {
        let mut record = Record::new("FILE", url(number));
        record.push("Gatherer-Id", GATHERER);
        record.push("Title", format!("Number {number}"));
        record.push("Type", "HTML");
        Change::Update(record)
    };
    let commit = |changes, at| collection.commit(Batch { changes, notes: Vec::new() }, at).unwrap();
    // In 2026.
    commit((0..LIVING + GONE).map(update).collect(), Stamp(1_770_000_000_000));
    let gone = (0..GONE).map(|it| Change::Delete(Oid::new(GATHERER, &url(it))));
    commit(gone.collect(), Stamp(1_770_000_060_000));
    let settings =
        Settings { page_records: PAGE, oap_attributes: attributes, ..Settings::default() };
    let daemon = Daemon { name: "A".to_owned(), id: GATHERER.to_owned(), ..Daemon::default() };
    let repository = Repository::new(collection, settings, daemon, dir.path().join("sets"));
    let mut tasks = JoinSet::new();
    let kept = repository.clone();
    tasks.spawn(async move { kept.keep(Shutdown::new()).await });
    while repository.counters().ready == 0 {
        tokio::task::yield_now().await;
    }
    Site { repository, _tasks: tasks, _dir: dir }
}

impl Site {
    /// Returns the response to a query; `asks`: the client asks for the paper's attributes.
    async fn ask(&self, query: &str, asks: bool) -> (HeaderMap, String) {
        let mut request =
            Request::builder().uri(format!("/oai?{query}")).header("host", "a.example");
        if asks {
            request = request.header(oap::ASK_HEADER, "1");
        }
        let response = self.repository.respond(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), 200, "{query}");
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (head.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }
}

/// Queries of lists with their sizes: two lists of several pages, and one of a single page.
const LISTS: [(&str, u64); 3] = [
    ("verb=ListRecords&metadataPrefix=oai_dc", LIVING + GONE),
    ("verb=ListIdentifiers&metadataPrefix=oai_dc", LIVING + GONE),
    ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-02-02T02:41:00Z", GONE),
];

/// Returns the token as our harvester reads it.
fn token(text: &str) -> Option<Token> {
    let verb =
        if text.contains("<ListIdentifiers>") { Verb::ListIdentifiers } else { Verb::ListRecords };
    match read(text.as_bytes(), verb).unwrap().response.body {
        ResponseBody::Records(page) => page.token,
        ResponseBody::Headers(page) => page.token,
        other => panic!("{other:?}"),
    }
}

/// Checks that the headers and the Identify description have the numbers in every setting.
async fn check_numbers(site: &Site, asks: bool) {
    for (query, size) in LISTS {
        let (headers, text) = site.ask(query, asks).await;
        let number = |name: &str| headers[name].to_str().unwrap().parse::<u64>().unwrap();
        assert_eq!(number(oap::LIST_HEADER), size, "{query}");
        assert_eq!(number(oap::TOTAL_HEADER), LIVING, "{query}");
        if let Some(told) = token(&text).and_then(|it| it.complete_list_size) {
            assert_eq!(told, size, "{query}");
        }
    }
    let (_, identify) = site.ask("verb=Identify", asks).await;
    assert_valid(identify.as_bytes());
    let reading = read(identify.as_bytes(), Verb::Identify).unwrap();
    let ResponseBody::Identify(identify) = reading.response.body else { panic!("{identify}") };
    let totals: Vec<Totals> = identify.descriptions.iter().filter_map(Totals::read).collect();
    assert_eq!(totals, [Totals { elements: LIVING, list: Some(LIVING + GONE) }]);
}

/// Checks that the responses are valid, and lack the attribute.
async fn check_off(site: &Site, asks: bool) {
    check_numbers(site, asks).await;
    for (query, _) in LISTS {
        let (_, text) = site.ask(query, asks).await;
        assert_valid(text.as_bytes());
        assert_eq!(token(&text).and_then(|it| it.total_elements), None, "{query}");
    }
    // A list of one page has no token at all.
    assert_eq!(token(&site.ask(LISTS[2].0, asks).await.1), None);
}

/// Checks that every list has the attribute, and that the schema objects to nothing else.
async fn check_on(site: &Site, asks: bool) {
    check_numbers(site, asks).await;
    for (query, size) in LISTS {
        let (_, text) = site.ask(query, asks).await;
        let token = token(&text).unwrap();
        assert_eq!(token.total_elements, Some(LIVING), "{query}");
        assert_eq!(token.complete_list_size, Some(size), "{query}");
        assert_eq!(token.value.is_empty(), size <= PAGE, "{query}");
        let objections = validate(text.as_bytes()).unwrap_err();
        let objections: Vec<&str> =
            objections.lines().filter(|line| line.contains("error :")).collect();
        assert_eq!(objections.len(), 1, "{objections:?}");
        assert!(objections[0].contains("'totalElements'"), "{objections:?}");
        let without = text.replace(&format!(" totalElements=\"{LIVING}\""), "");
        assert_ne!(without, text);
        assert_valid(without.as_bytes());
    }
}

#[tokio::test]
async fn off_means_off_for_all_clients() {
    let site = site(Attributes::Off).await;
    check_off(&site, false).await;
    check_off(&site, true).await;
}

#[tokio::test]
async fn on_request_is_for_clients_that_ask() {
    let site = site(Attributes::OnRequest).await;
    check_off(&site, false).await;
    check_on(&site, true).await;
}

#[tokio::test]
async fn always_means_all_clients() {
    let site = site(Attributes::Always).await;
    check_on(&site, false).await;
    check_on(&site, true).await;
}
