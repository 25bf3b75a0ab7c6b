//! Tests of pulls: snapshots and deltas, long polls, restored sources, several hops.

use std::time::Duration;

use collection::feed::FeedOptions;
use collection::pull::Kind;
use collection::{Change, Error, ORIGIN_VERSION, Options, Stamp};
use http::StatusCode;
use net::clock;
use net::shutdown::Shutdown;
use soif::digest::Md5;
use tokio::time::timeout;

use crate::support::{SOON, Server, Store, get, now, oid, pull, puller, update};

#[tokio::test]
async fn the_first_pull_is_a_snapshot_and_the_next_are_deltas() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..300, "first", 40);
    let server = Server::start(&source, FeedOptions::default()).await;

    let first = pull(server.address, &broker).await;
    assert_eq!((first.kind, first.changes, first.objects), (Kind::Snapshot, 300, 300));
    assert_eq!((first.applied.updated, first.version), (300, source.collection.version()));
    assert_eq!(broker.titles(), source.titles());

    source.fill(290..310, "second", 7);
    source.commit(vec![Change::Delete(oid(5)), Change::Refresh(oid(6), None)]);
    let second = pull(server.address, &broker).await;
    assert_eq!((second.kind, second.changes, second.objects), (Kind::Delta, 21, 309));
    assert_eq!((first.changed, second.changed), (0, 21), "each for the first time");
    assert_eq!((second.applied.updated, second.applied.deleted), (20, 1));
    assert!(second.bytes < first.bytes / 4, "{second:?}");
    assert!((0.0..30.0).contains(&second.age_secs), "{second:?}");
    assert_eq!(broker.titles(), source.titles());

    source.fill(290..300, "again", 7);
    source.fill(295..300, "and again", 7);
    let again = pull(server.address, &broker).await;
    assert_eq!((again.changes, again.changed), (15, 10));
    assert!(again.age_secs <= again.changed_age_secs, "the first came first: {again:?}");

    let before = broker.collection.version();
    let third = pull(server.address, &broker).await;
    assert_eq!((third.kind, third.changes, third.resumed), (Kind::Delta, 0, 0));
    assert_eq!(broker.collection.version(), before, "nothing new, nothing written");
    let counters = server.feed().counters();
    assert_eq!((counters.snapshots, counters.redirects, counters.deltas), (1, 1, 4));
}

#[tokio::test]
async fn records_made_anew_of_the_same_content_are_counted_apart() {
    let (source, broker) = (Store::new(), Store::new());
    let of_content = |n, title: &str, content: &str| match update(n, title) {
        Change::Update(mut record) => {
            record.push("MD5", Md5::of(content.as_bytes()).to_string());
            Change::Update(record)
        }
        other => other,
    };
    source.commit((0..9).map(|n| of_content(n, "first", "content")).collect());
    let server = Server::start(&source, FeedOptions::default()).await;
    let first = pull(server.address, &broker).await;
    assert_eq!((first.changes, first.remade), (9, 0));

    // Seven are made anew; one has changed; one is new.
    let mut changes: Vec<_> = (0..7).map(|n| of_content(n, "anew", "content")).collect();
    changes.extend([of_content(7, "anew", "other"), of_content(9, "anew", "content")]);
    source.commit(changes);
    let second = pull(server.address, &broker).await;
    assert_eq!((second.kind, second.changes, second.remade), (Kind::Delta, 9, 7));
    assert_eq!((second.changed, second.applied.updated), (2, 9));
    assert_eq!(broker.titles(), source.titles());
}

#[tokio::test]
async fn a_waiting_pull_gets_a_commit_at_once() {
    let (source, broker) = (Store::new(), Store::new());
    let shutdown = Shutdown::new();
    let options = FeedOptions { shutdown: shutdown.clone(), ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    pull(server.address, &broker).await;

    let puller = puller(server.address, &broker);
    let waiting = tokio::spawn(async move { puller.pull(Some(Duration::from_secs(60))).await });
    while server.feed().counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    source.fill(0..1, "new", 1);
    let began = clock::monotonic();
    let summary = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 1));
    assert!(clock::monotonic() - began < Duration::from_secs(10));
    assert_eq!((server.feed().counters().woken, server.feed().counters().waiting), (1, 0));

    // Without news the answer comes at the end of the wait, or when the server stops.
    let have = source.collection.version();
    let path = format!("feed?since={}&epoch={}&wait=1", have.serial, have.epoch);
    assert_eq!(get(server.address, &path).await.header("harvest-kind"), Some("delta"));
    let path = path.replace("wait=1", "wait=60");
    let stopping = async {
        while server.feed().counters().waiting == 0 {
            tokio::task::yield_now().await;
        }
        shutdown.start();
    };
    let both = async { tokio::join!(get(server.address, &path), stopping) };
    let (response, ()) = timeout(SOON, both).await.unwrap();
    assert_eq!(response.status, StatusCode::OK);
}

#[tokio::test]
async fn an_unknown_epoch_or_serial_leads_to_a_snapshot_that_releases_unnamed_objects() {
    let (source, restored, broker) = (Store::new(), Store::new(), Store::new());
    source.fill(0..20, "old", 10);
    restored.fill(10..25, "new", 10);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;

    server.serve(&restored);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 10));
    assert_eq!(broker.titles(), restored.titles());

    restored.collection.new_epoch(now()).unwrap();
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 0));
    assert_eq!(summary.version, restored.collection.version());

    let version = restored.collection.version();
    let future = format!("feed?since={}&epoch={}", version.serial + 1, version.epoch);
    assert_eq!(get(server.address, &future).await.header("harvest-kind"), Some("snapshot"));
}

#[tokio::test]
async fn a_serial_from_before_the_horizon_leads_to_a_snapshot() {
    let options = Options { horizon: Duration::ZERO, ..Options::default() };
    let (source, broker) = (Store::with(options), Store::new());
    source.fill(0..50, "first", 50);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    source.commit((0..20).map(|n| Change::Delete(oid(n))).collect());
    source.fill(50..60, "first", 10);
    source.collection.compact(Stamp(now().0 + 1_000)).unwrap();
    assert!(0 < source.collection.stats().horizon, "the deletes are forgotten");
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.applied.deleted), (Kind::Snapshot, 20));
    assert_eq!(broker.titles(), source.titles());
}

#[tokio::test]
async fn a_loss_stays_held_when_the_snapshot_is_gone_and_another_is_given() {
    let (source, broker) = (Store::new(), Store::new());
    source.fill(0..300, "first", 100);
    let server = Server::start(&source, FeedOptions::default()).await;
    pull(server.address, &broker).await;
    let other = Store::new();
    other.fill(1_000..2_500, "other", 500);
    for _ in 0..3 {
        // The server knows no earlier snapshot.
        server.serve(&other);
        let error = puller(server.address, &broker).pull(None).await.unwrap_err();
        assert!(matches!(error, Error::Loss { lost: 300, of: 300, .. }), "{error}");
        assert_eq!(broker.collection.len(), 1_800);
    }
    let confirmed = puller(server.address, &broker).confirmed(true);
    assert_eq!(confirmed.pull(None).await.unwrap().applied.deleted, 300);
    assert_eq!(broker.titles(), other.titles());
}

#[tokio::test]
async fn changes_pass_through_a_second_hop_with_their_origin() {
    let (source, broker, cascade) = (Store::new(), Store::new(), Store::new());
    source.fill(0..50, "first", 20);
    let near = Server::start(&source, FeedOptions::default()).await;
    let far = Server::start(&broker, FeedOptions::default()).await;
    pull(near.address, &broker).await;
    pull(far.address, &cascade).await;
    source.fill(40..60, "second", 20);
    source.commit(vec![Change::Delete(oid(1))]);
    pull(near.address, &broker).await;
    let summary = pull(far.address, &cascade).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 21));
    assert_eq!(cascade.titles(), source.titles());

    let origin = source.collection.get(&oid(59)).unwrap().unwrap().serial;
    let stored = cascade.collection.get(&oid(59)).unwrap().unwrap().record;
    let expected = format!("{}-{origin}", source.collection.version().epoch);
    assert_eq!(stored.text(ORIGIN_VERSION).unwrap(), expected);
}
