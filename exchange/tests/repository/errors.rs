//! Tests of all error codes, with the requests of validators.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use exchange::repository::Settings;

use crate::schemas;
use crate::support::*;

async fn repository(dir: &std::path::Path) -> Running {
    let collection = open(dir);
    commit(&collection, 0, vec![text(1), text(2)]);
    Running::start(dir, collection, settings(100)).await
}

#[tokio::test]
async fn every_mistake_has_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let running = repository(dir.path()).await;
    let item = format!("{OURS}1").replace(':', "%3A");
    let get = format!("verb=GetRecord&identifier={item}");
    let named = |rest: &str| format!("verb=ListIdentifiers&metadataPrefix=oai_dc{rest}");
    let cases: [(String, &str); 24] = [
        (String::new(), "badVerb"),
        ("verb=NoSuchVerb".to_owned(), "badVerb"),
        ("verb=Identify&verb=Identify".to_owned(), "badVerb"),
        ("verb=Identify&extra=1".to_owned(), "badArgument"),
        ("verb=ListMetadataFormats&identifier=invalid%22id".to_owned(), "badArgument"),
        ("verb=ListMetadataFormats&identifier=no-such".to_owned(), "idDoesNotExist"),
        ("verb=GetRecord&metadataPrefix=oai_dc".to_owned(), "badArgument"),
        (get.clone(), "badArgument"),
        (format!("{get}&metadataPrefix=no_such"), "cannotDisseminateFormat"),
        (format!("{get}9&metadataPrefix=oai_dc"), "idDoesNotExist"),
        (format!("{get}%2520&metadataPrefix=oai_dc"), "idDoesNotExist"),
        ("verb=GetRecord&identifier=invalid%22id&metadataPrefix=oai_dc".to_owned(), "badArgument"),
        ("verb=ListIdentifiers".to_owned(), "badArgument"),
        ("verb=ListRecords&metadataPrefix=no_such".to_owned(), "cannotDisseminateFormat"),
        (named("&from=really_wrong"), "badArgument"),
        (named("&until=2026-02-30"), "badArgument"),
        (named("&from=2026-01-01&until=2026-02-01T00:00:00Z"), "badArgument"),
        (named("&from=2026-02-01&until=2026-01-01"), "badArgument"),
        (named("&until=1969-12-31"), "noRecordsMatch"),
        (named("&from=2999-01-01"), "noRecordsMatch"),
        (named("&set=type:none"), "noRecordsMatch"),
        (named("&resumptionToken=x"), "badArgument"),
        ("verb=ListRecords&resumptionToken=x".to_owned(), "badResumptionToken"),
        ("verb=ListSets&resumptionToken=x".to_owned(), "badResumptionToken"),
    ];
    for (query, code) in &cases {
        let found = running.ask(query).await;
        assert_eq!(found.codes(), [*code], "{query}");
        let repeats = !matches!(*code, "badVerb" | "badArgument");
        assert_eq!(!found.attributes("request").is_empty(), repeats, "{query}");
        assert_eq!(found.one("request"), "https://library.example/oai");
    }
    let counters = running.repository.counters();
    assert_eq!((counters.requests, counters.faults, counters.records), (24, 24, 0));
    running.stop().await;
}

/// Either code is right, and the response must be valid.
#[tokio::test]
async fn an_odd_identifier_is_unknown_or_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let running = repository(dir.path()).await;
    for identifier in [
        "a/b?c#d",
        "urn:isbn:1",
        "http://h:80/",
        "//h",
        "?",
        "#",
        "a%20b",
        "..",
        "1:2",
        "%zz",
        "x:",
        ":",
        "http:///",
        "a b",
        "<&>",
        "http://[x]/",
        "http://h:x/",
        "oai:library.example:",
        "é",
        "/",
    ] {
        let encoded: String = url::form_urlencoded::byte_serialize(identifier.as_bytes()).collect();
        let query = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={encoded}");
        let found = running.ask(&query).await;
        let codes = found.codes();
        assert!(matches!(codes[..], ["badArgument" | "idDoesNotExist"]), "{identifier} {codes:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_collection_without_records_has_no_sets() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::start(dir.path(), open(dir.path()), settings(100)).await;
    assert_eq!(running.ask("verb=ListSets").await.codes(), ["noSetHierarchy"]);
    let list = running.ask("verb=ListRecords&metadataPrefix=oai_dc").await;
    assert_eq!(list.codes(), ["noRecordsMatch"]);
    assert_eq!(list.header("harvest-complete-list-size"), "0");
    let identify = running.ask("verb=Identify").await;
    assert_eq!(identify.one("earliestDatestamp"), identify.one("responseDate"));
    running.stop().await;
}

#[tokio::test]
async fn a_form_is_answered_like_a_query() {
    let dir = tempfile::tempdir().unwrap();
    let running = repository(dir.path()).await;
    let post = |path: &str, media: &str, body: &str| {
        let request = Request::post(path).header("content-type", media);
        running.send(request.body(Body::from(body.to_owned())).unwrap())
    };
    let form = "application/x-www-form-urlencoded";
    let identify = post("/oai", &format!("{form}; charset=utf-8"), "verb=Identify").await;
    schemas::assert_valid(identify.text.as_bytes());
    assert_eq!(identify.one("repositoryName"), "Library");
    assert_eq!(identify.one("baseURL"), "https://library.example/oai");
    let slash = post("/oai/", form, "verb=Identify").await;
    assert_eq!(slash.one("baseURL"), "https://library.example/oai/");
    let body = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={OURS}1");
    let record = post("/oai?verb=Identify", form, &body).await;
    assert_eq!(record.items(), ["1"]);
    assert_eq!(post("/oai", form, "").await.codes(), ["badVerb"]);
    let long = format!("verb=Identify&{}", "x".repeat(1 << 16));
    assert_eq!(post("/oai", form, &long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let wrong = post("/oai", "text/xml", "<Identify/>").await;
    assert_eq!(wrong.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let put = running.send(Request::put("/oai").body(Body::empty()).unwrap()).await;
    assert_eq!(
        (put.status, put.header("allow")),
        (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD, POST")
    );
    running.stop().await;
}

#[tokio::test]
async fn a_too_early_request_is_refused_with_a_retry_time() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, 0, vec![text(1)]);
    // The background task has not begun yet: nothing is awaited before the request.
    let running = Running::begin(dir.path(), collection, settings(100));
    let request = Request::get("/oai?verb=ListRecords&metadataPrefix=oai_dc");
    let early = running.send(request.body(Body::empty()).unwrap()).await;
    if early.status == StatusCode::SERVICE_UNAVAILABLE {
        assert!(early.header("retry-after").parse::<u64>().unwrap() <= 3_600);
    }
    while running.repository.counters().ready == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(running.items("ListRecords", "metadataPrefix=oai_dc").await, ["1"]);
    running.stop().await;

    let off = Settings { enabled: false, ..settings(1) };
    let running = Running::begin(dir.path(), open(dir.path()), off);
    let request = Request::get("/oai?verb=Identify").body(Body::empty()).unwrap();
    assert_eq!(running.send(request).await.status, StatusCode::NOT_FOUND);
    running.stop().await;
}
