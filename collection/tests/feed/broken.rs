//! Tests of broken transfers: cut anywhere, dropped, stalled or damaged.

use std::time::Duration;

use collection::feed::FeedOptions;
use collection::pull::{Kind, PullLimits, Puller, Summary};
use collection::{Damage, Error};
use http::StatusCode;
use tokio::time::timeout;

use crate::support::{
    Harm, Random, SOON, Server, Store, feed_client, get, patient, proxy, pull, puller,
};

#[tokio::test]
async fn a_transfer_cut_anywhere_goes_on_and_brings_every_change_once() {
    let seeds: u64 = std::env::var("HARVEST_SEEDS").map_or(4, |it| it.parse().unwrap());
    for seed in 0..seeds {
        let (source, broker) = (Store::new(), Store::new());
        source.fill(0..400, "first", 30);
        let server = Server::start(&source, FeedOptions::default()).await;
        let mut random = Random(seed);
        let proxy = proxy(server.address, move |_| Harm::Cut(2_000 + random.below(6_000))).await;

        let summary = pull(proxy, &broker).await;
        println!("seed {seed}: snapshot {summary:?}");
        assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 400));
        assert_eq!(summary.applied.updated, 400);
        assert!(1 < summary.resumed);

        source.fill(200..600, "second", 30);
        let summary = pull(proxy, &broker).await;
        println!("seed {seed}: delta {summary:?}");
        assert_eq!((summary.kind, summary.changes), (Kind::Delta, 400));
        assert!(1 < summary.resumed);
        assert_eq!(broker.titles(), source.titles());
        let changes = broker.collection.scan(0).unwrap().count();
        assert_eq!(changes, 800, "every change is in the log once");
    }
}

#[tokio::test]
async fn a_pull_that_is_dropped_midway_is_taken_up_by_the_next() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..6_000, "first", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    let whole = get(server.address, "feed").await;
    let bytes: u64 = whole.header("content-length").unwrap().parse().unwrap();
    // The first connection is for the redirect.
    let proxy = proxy(server.address, move |number| match number {
        1 => Harm::Stall(bytes * 9 / 10),
        _ => Harm::None,
    });
    let proxy = proxy.await;
    let puller = puller(proxy, &broker);
    let dropped = tokio::spawn(async move { puller.pull(None).await });
    let mut versions = broker.collection.watch();
    timeout(SOON, versions.wait_for(|it| 0 < it.serial)).await.unwrap().unwrap();
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());

    let before = broker.collection.len();
    assert!((1..6_000).contains(&before));
    let summary = pull(proxy, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 6_000 - before));
    assert!(summary.bytes < bytes * 2 / 3, "only the rest is fetched: {summary:?}");
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(broker.collection.scan(0).unwrap().count(), 6_000, "every change once");
}

#[tokio::test]
async fn a_snapshot_that_is_gone_is_begun_anew() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..400, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    let cutting = proxy(server.address, |number| match number {
        0 => Harm::None,
        1 => Harm::Cut(9_000),
        _ => Harm::Cut(0),
    });
    let error = puller(cutting.await, &broker).pull(None).await.unwrap_err();
    assert!(matches!(error, Error::Source { .. }) && error.retry().is_some(), "{error}");
    let cursor = broker.collection.cursor("source").unwrap().unwrap();
    let progress = cursor.snapshot.unwrap();
    assert!(0 < progress.offset && !broker.collection.is_empty(), "the good part is kept");

    server.serve(&source);
    let path = format!("snapshot/{}", progress.id);
    assert_eq!(get(server.address, &path).await.status, StatusCode::GONE);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 400));
    assert!(summary.applied.updated < 400, "what was there is not new");
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(broker.collection.cursor("source").unwrap().unwrap().snapshot, None);
}

#[tokio::test]
async fn a_failed_pull_reports_what_it_has_brought() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..400, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    source.fill(0..400, "second", 30);
    let cutting = proxy(server.address, |number| Harm::Cut(if number == 0 { 9_000 } else { 0 }));
    let mut failed = Summary::default();
    let outcome = puller(cutting.await, &broker).pull_into(None, &mut failed).await;
    assert!(outcome.is_err(), "{failed:?}");
    println!("{failed:?}");
    assert!((1..400).contains(&failed.changes), "{failed:?}");
    assert_eq!((failed.applied.updated, failed.changed), (failed.changes, failed.changes));
    assert!((1_000..=9_000).contains(&failed.bytes), "{failed:?}");
    let rest = pull(server.address, &broker).await;
    assert_eq!((rest.kind, rest.changes), (Kind::Delta, 400 - failed.changes));
}

#[tokio::test]
async fn an_object_that_changes_again_after_a_break_has_changed_once() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..200, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    source.fill(0..200, "second", 30);
    source.fill(0..200, "third", 30);
    let cutting = proxy(server.address, |_| Harm::Cut(5_000)).await;
    let summary = pull(cutting, &broker).await;
    assert!(1 < summary.resumed, "{summary:?}");
    assert_eq!((summary.kind, summary.changes, summary.changed), (Kind::Delta, 400, 200));
}

#[tokio::test]
async fn damage_is_found_named_and_fetched_again() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..400, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    let once = proxy(server.address, |number| match number {
        1 => Harm::Flip(9_000),
        _ => Harm::None,
    });
    let summary = pull(once.await, &broker).await;
    assert_eq!((summary.changes, summary.resumed), (400, 1));
    assert_eq!(broker.titles(), source.titles());

    let broker = Store::new();
    // Resumed answers begin later in the stream, so they are damaged near their start.
    let always = proxy(server.address, |number| Harm::Flip(if number < 2 { 9_000 } else { 900 }));
    let error = puller(always.await, &broker).pull(None).await.unwrap_err();
    let Error::Corrupt { name, url, offset, what } = &error else { panic!("{error}") };
    assert!(name == "source" && url.contains("/snapshot/"), "{error}");
    let good = broker.collection.cursor("source").unwrap().unwrap().snapshot.unwrap().offset;
    assert_eq!(*offset, good, "all before the damage is kept");
    assert!((1_000..9_000).contains(offset), "{offset}");
    assert_ne!(*what, Damage::Truncated);
    assert!(!broker.collection.is_empty());
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_given_up() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..100, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    let silent = proxy(server.address, |_| Harm::Stall(900)).await;
    let (client, collection) = (patient(Duration::from_millis(200)), broker.collection.clone());
    let limits = PullLimits::default();
    let puller = Puller::new(feed_client(client, silent, "source"), collection, limits);
    let error = timeout(SOON, puller.pull(None)).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("without sending anything"), "{error}");
    assert!(error.retry().is_some());
}
