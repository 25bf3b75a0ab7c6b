//! Tests of purging: no bytes remain, and the report names who may have copies.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use collection::feed::{FeedOptions, FeedServer};
use collection::{Change, Error, Stamp};
use flate2::read::MultiGzDecoder;
use http::StatusCode;
use soif::Record;

use crate::support::*;

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir.join("collection")).unwrap().map(|it| it.unwrap().path());
    files.filter(|it| it.extension().is_some_and(|it| it == "gz")).collect()
}

fn holds(dir: &Path, text: &str) -> bool {
    segments(dir).into_iter().any(|path| {
        let mut plain = Vec::new();
        let bytes = fs::read(path).unwrap();
        // An empty segment is not a gzip file.
        let _ = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        plain.windows(text.len()).any(|it| it == text.as_bytes())
    })
}

#[tokio::test]
async fn a_purge_leaves_no_bytes_and_names_possible_owners_of_copies() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, (0..50).map(|n| update(G, &format!("http://h/{n}"))).collect());
    // Earlier versions, too.
    let mut older = Record::new("FILE", "http://h/7");
    older.push("Gatherer-Id", G);
    older.push("Title", "an older zanzibarite");
    commit(&collection, vec![Change::Update(older), update(G, "http://h/7")]);
    let feed = FeedServer::new(collection.clone(), FeedOptions::default());
    let ask = |path: String, who: &'static str| {
        let request = http::Request::builder().uri(path).header("harvest-consumer", who);
        let feed = &feed;
        async move { feed.respond(request.body(()).unwrap()).await }
    };
    let sent = ask("/feed".to_owned(), "behind").await;
    let snapshot = format!("/{}", sent.headers()["location"].to_str().unwrap());
    assert_eq!(ask(snapshot.clone(), "behind").await.status(), StatusCode::OK);

    let one = subject("http://h/7");
    assert!(matches!(feed.purge(Some(one.clone())).await, Err(Error::NotSuppressed { .. })));
    collection.suppress(&author(G, 1), one.clone(), "", Stamp(9)).unwrap();
    let have = collection.version();
    let path = format!("/feed?since={}&epoch={}", have.serial, have.epoch);
    assert_eq!(ask(path, "caught up").await.status(), StatusCode::OK);
    assert!(holds(dir.path(), "about http://h/7") && holds(dir.path(), "zanzibarite"));
    let report = feed.purge(Some(one)).await.unwrap();
    assert!(!holds(dir.path(), "about http://h/7") && !holds(dir.path(), "zanzibarite"));
    assert!(holds(dir.path(), "about http://h/8"));
    assert_eq!((report.purged.left, &report.purged.still_read), (0, &Vec::new()));
    assert_eq!(report.purged.subjects, ["http://h/7"]);
    let consumers: Vec<_> = report.consumers.into_iter().map(|it| it.name).collect();
    assert_eq!(consumers, ["behind"]);
    assert_eq!(ask(snapshot, "behind").await.status(), StatusCode::GONE);
    let sent = ask("/feed".to_owned(), "behind").await;
    let snapshot = format!("/{}", sent.headers()["location"].to_str().unwrap());
    let sent = ask(snapshot, "behind").await;
    assert_eq!(sent.status(), StatusCode::OK);
    // Replicas get the purge, at once and later.
    let told = report.purged.told_at.to_string();
    assert_eq!(sent.headers()["harvest-purged"], told.as_str());
    let have = collection.version();
    let path = format!("/feed?since={}&epoch={}&wait=60", have.serial, have.epoch);
    let request = http::Request::builder().uri(path).header("harvest-purged", "0");
    let sent = feed.respond(request.body(()).unwrap()).await;
    assert_eq!(sent.headers()["harvest-purged"], told.as_str());
    assert_eq!(collection.len(), 49);
    assert_eq!(collection.verify().unwrap().problems, []);
    drop((feed, collection));
    let feed = FeedServer::new(open(dir.path()), FeedOptions::default());
    let path = format!("/feed?since={}&epoch={}", have.serial, have.epoch);
    let sent = feed.respond(http::Request::get(path).body(()).unwrap()).await;
    assert_eq!(sent.headers()["harvest-purged"], told.as_str());
}

#[test]
fn a_file_that_is_still_read_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, vec![update(G, "http://h/a"), update(G, "http://h/b")]);
    let reader = collection.scan(0).unwrap();
    collection.suppress(&author(G, 1), subject("http://h/a"), "", Stamp(9)).unwrap();
    let purged = collection.purge(None, Stamp(9)).unwrap();
    assert_eq!(purged.still_read.len(), 1, "{purged:?}");
    assert!(holds(dir.path(), "about http://h/a"));
    drop(reader);
    let purged = collection.purge(None, Stamp(9)).unwrap();
    assert_eq!(purged.still_read, Vec::<PathBuf>::new());
    assert!(!holds(dir.path(), "about http://h/a"));
}

#[test]
fn a_damaged_file_that_was_put_aside_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    commit(&collection, vec![update(G, "http://h/a")]);
    let aside = dir.path().join("collection/segment-00000000.gz.damaged");
    fs::copy(segments(dir.path()).remove(0), &aside).unwrap();
    collection.suppress(&author(G, 1), subject("http://h/a"), "", Stamp(9)).unwrap();
    let purged = collection.purge(None, Stamp(9)).unwrap();
    assert!(!aside.exists());
    assert_eq!((purged.left, purged.still_read), (0, Vec::new()));
}

/// Snapshots and answers made during a purge are dropped at its end.
#[tokio::test(flavor = "multi_thread")]
async fn requests_during_a_purge_keep_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let collection = open(dir.path());
    for part in 0..20 {
        let urls = (0..500).map(|n| format!("http://h/{part}/{n}"));
        commit(&collection, urls.map(|it| update(G, &it)).collect());
    }
    collection.suppress(&author(G, 1), subject("http://h/7/7"), "", Stamp(9)).unwrap();
    let feed = FeedServer::new(collection.clone(), FeedOptions::default());
    let purging = feed.clone();
    let purge = tokio::spawn(async move { purging.purge(None).await.unwrap() });
    let mut asked = 0;
    while !purge.is_finished() {
        let request = http::Request::builder().uri("/feed").body(()).unwrap();
        let location = feed.respond(request).await.headers()["location"].clone();
        assert!(location.to_str().unwrap().starts_with("snapshot/"));
        asked += 1;
    }
    let report = purge.await.unwrap();
    assert_eq!(report.purged.still_read, Vec::<PathBuf>::new(), "asked {asked} times");
    assert!(!holds(dir.path(), "about http://h/7/7\n"), "asked {asked} times");
}
