//! Tests of the feed server: ranges, conditions, many requests at once, changes of the log.

use std::time::Duration;

use collection::feed::{FeedOptions, FeedServer};
use collection::pull::Kind;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use net::client::Request;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{SOON, Server, Store, client, get, now, pull};

#[tokio::test]
async fn a_snapshot_has_ranges_conditions_and_a_head() {
    let source = Store::new();
    source.fill(0..100, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    let response = get(server.address, "feed").await;
    let (url, tag) = (response.url.clone(), response.header("etag").unwrap().to_owned());
    assert_eq!(response.header("accept-ranges"), Some("bytes"));
    assert!(response.header("cache-control").unwrap().contains("no-transform"));
    assert!(response.header("content-encoding").is_none());
    let whole = response.bytes(1 << 20).await.unwrap();

    let ask = |method: Method, pairs: &[(&'static str, &str)]| {
        let mut request = Request { method, ..Request::get(url.clone()) };
        for (name, text) in pairs {
            let (name, text) = (HeaderName::from_static(name), HeaderValue::from_str(text));
            request = request.header(name, text.unwrap());
        }
        async move { client().send(request).await.unwrap() }
    };
    let head = ask(Method::HEAD, &[]).await;
    assert_eq!(head.header("content-length").unwrap(), whole.len().to_string());
    assert_eq!(head.bytes(1).await.unwrap(), "");
    let head = ask(Method::HEAD, &[("range", "bytes=100-")]).await;
    assert_eq!(head.status, StatusCode::OK, "a range is for GET alone");

    let part = ask(Method::GET, &[("range", "bytes=100-"), ("if-range", &tag)]).await;
    let range = format!("bytes 100-{}/{}", whole.len() - 1, whole.len());
    assert_eq!(
        (part.status, part.header("content-range")),
        (StatusCode::PARTIAL_CONTENT, Some(&*range))
    );
    // A commit in between changes nothing.
    source.fill(0..100, "second", 50);
    assert_eq!(part.bytes(1 << 20).await.unwrap(), whole[100..]);
    for cut in [1, whole.len() / 2, whole.len() - 1] {
        let first = ask(Method::GET, &[("range", &format!("bytes=0-{}", cut - 1))]).await;
        let second = ask(Method::GET, &[("range", &format!("bytes={cut}-"))]).await;
        let (first, second) =
            (first.bytes(1 << 20).await.unwrap(), second.bytes(1 << 20).await.unwrap());
        assert_eq!([first, second].concat(), whole, "cut at {cut}");
    }
    let other = ask(Method::GET, &[("range", "bytes=100-"), ("if-range", "\"other\"")]).await;
    assert_eq!(
        (other.status, other.bytes(1 << 20).await.unwrap()),
        (StatusCode::OK, whole.clone())
    );
    let past = ask(Method::GET, &[("range", "bytes=99999999-")]).await;
    assert_eq!(past.status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(ask(Method::GET, &[("if-none-match", &tag)]).await.status, StatusCode::NOT_MODIFIED);

    assert_eq!(ask(Method::POST, &[]).await.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get(server.address, "snapshot/none").await.status, StatusCode::GONE);
    assert_eq!(get(server.address, "elsewhere").await.status, StatusCode::NOT_FOUND);
    let bad = get(server.address, "feed?since=x").await;
    assert_eq!(bad.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_snapshot_outlives_the_compaction_of_what_it_shows() {
    let (source, broker) = (Store::new(), Store::new());
    for title in ["first", "second", "third"] {
        source.fill(0..200, title, 50);
    }
    let server = Server::start(&source, FeedOptions::default()).await;
    let response = get(server.address, "feed").await;
    let url = response.url.clone();
    let before = response.bytes(1 << 20).await.unwrap();
    let compacted = source.collection.compact(now()).unwrap();
    assert!(400 <= compacted.dropped, "{compacted:?}");
    let after = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
    assert!(before == after, "the bytes of a snapshot never change");

    // A pull of the snapshot from before the compaction.
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 600));
    assert_eq!(broker.titles(), source.titles());
    server.serve(&source);
    let newcomer = Store::new();
    assert_eq!(pull(server.address, &newcomer).await.changes, 200);
    assert_eq!(newcomer.titles(), source.titles());
}

#[tokio::test]
async fn two_hundred_at_once_share_one_snapshot_and_waiting_is_bounded() {
    let source = Store::new();
    source.fill(0..200, "first", 50);
    let options = FeedOptions { waiting_max: 50, ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    let address = server.address;
    let mut all = JoinSet::new();
    for _ in 0..200 {
        all.spawn(async move { get(address, "feed").await.bytes(1 << 20).await.unwrap() });
    }
    let bodies = all.join_all().await;
    assert!(bodies.iter().all(|it| *it == bodies[0]));
    let counters = server.feed().counters();
    assert_eq!((counters.snapshots, counters.redirects), (1, 200));
    assert_eq!(counters.snapshot_answers, 200);
    let told = "fetch the snapshot first\n".len();
    assert_eq!(counters.bytes, 200 * (bodies[0].len() + told) as u64);

    let have = source.collection.version();
    let path = format!("feed?since={}&epoch={}&wait=60", have.serial, have.epoch);
    let mut all = JoinSet::new();
    for _ in 0..200 {
        let path = path.clone();
        all.spawn(
            async move { get(address, &path).await.header("harvest-to").unwrap().to_owned() },
        );
    }
    for _ in 0..150 {
        let to = timeout(SOON, all.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(to, have.serial.to_string(), "requests beyond the limit are answered at once");
    }
    assert_eq!(server.feed().counters().waiting, 50);
    source.fill(0..1, "second", 1);
    while let Some(to) = timeout(SOON, all.join_next()).await.unwrap() {
        assert_eq!(to.unwrap(), (have.serial + 1).to_string());
    }
}

#[tokio::test]
async fn an_old_snapshot_gives_its_files_back_without_another_newcomer() {
    let source = Store::new();
    source.fill(0..200, "first", 50);
    source.fill(0..200, "second", 50);
    let options = FeedOptions { snapshot_kept: Duration::ZERO, ..FeedOptions::default() };
    let feed = FeedServer::new(source.collection.clone(), options);
    let ask = |path: String| {
        let request = http::Request::builder().uri(path).body(()).unwrap();
        let feed = &feed;
        async move { feed.respond(request).await.status() }
    };
    let segments = || {
        let listing = std::fs::read_dir(source.dir.path()).unwrap();
        let names = listing.map(|it| it.unwrap().file_name().into_string().unwrap());
        names.filter(|it| it.starts_with("segment-")).count() as u64
    };
    assert_eq!(ask("/feed".to_owned()).await, StatusCode::SEE_OTHER);
    source.collection.compact(now()).unwrap();
    let listed = source.collection.stats().segments;
    assert!(listed < segments(), "the snapshot holds the old ones");
    let have = source.collection.version();
    let path = format!("/feed?since={}&epoch={}", have.serial, have.epoch);
    assert_eq!(ask(path).await, StatusCode::OK);
    assert_eq!(segments(), listed);
}
