//! Tests of replicas: a feed followed into a log folder, and a replica that replaces the feed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use collection::feed::FeedOptions;
use collection::pull::{Kind, Summary};
use collection::replica::{CHAIN, Chain, Follower, LogPart, Replica, check};
use collection::{Change, Error};
use tokio::time::timeout;

use crate::support::{
    Harm, Random, SOON, Server, Store, client, feed_client, get, oid, patient, proxy, pull, puller,
    update,
};

const NOW: Duration = Duration::ZERO;

async fn follower(address: std::net::SocketAddr, dir: &Path) -> Follower {
    Follower::open(feed_client(client(), address, "papers"), dir.to_owned()).await.unwrap()
}

async fn follow(follower: &mut Follower) -> bool {
    timeout(SOON, follower.follow(NOW)).await.unwrap().unwrap()
}

fn chain(dir: &Path) -> Chain {
    Chain::parse(&fs::read(dir.join(CHAIN)).unwrap()).unwrap()
}

async fn pull_in_place(store: &Store, dir: &Path, wait: Option<Duration>) -> Summary {
    let mut summary = Summary::default();
    // The network is not used: the address has no server.
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let puller = puller(nowhere, store);
    timeout(SOON, puller.pull_in_place(dir, wait, &mut summary)).await.unwrap().unwrap();
    summary
}

#[tokio::test]
async fn consumers_change_instance_with_their_cursor() {
    let (source, broker, dir) = (Store::new(), Store::new(), tempfile::tempdir().unwrap());
    source.fill(0..200, "first", 30);
    let owner = Some("0123456789abcdef key".to_owned());
    let options = FeedOptions { owner: owner.clone(), ..FeedOptions::default() };
    let server = Server::start(&source, options).await;
    let mut follower = follower(server.address, dir.path()).await;
    assert_eq!(follower.version(), None);
    assert!(follow(&mut follower).await);
    assert!(!follow(&mut follower).await, "there is nothing new");
    assert_eq!(pull(server.address, &broker).await.kind, Kind::Snapshot);

    source.fill(100..300, "second", 30);
    source.commit(vec![Change::Delete(oid(3)), update(4, "third")]);
    assert!(follow(&mut follower).await);
    assert_eq!(follower.version(), Some(source.collection.version()));
    assert_eq!(follower.objects(), 299);
    check(dir.path(), None).unwrap();

    // The origin is gone; its replica serves old and new consumers.
    let replica = Replica::open(dir.path()).unwrap();
    server.serve_replica(&replica);
    assert_eq!(replica.owner(), owner);
    let answer = get(server.address, "feed").await;
    assert_eq!(answer.header("harvest-key").map(str::to_owned), owner);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 202));
    assert_eq!(broker.titles(), source.titles());
    let newcomer = Store::new();
    assert_eq!(pull(server.address, &newcomer).await.kind, Kind::Snapshot);
    assert_eq!(newcomer.titles(), source.titles());

    // The origin is back.
    source.fill(0..10, "fourth", 3);
    server.serve(&source);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 10));
    assert_eq!(broker.titles(), source.titles());
}

#[tokio::test]
async fn a_consumer_that_waits_at_a_replica_gets_new_changes() {
    let (source, broker, dir) = (Store::new(), Store::new(), tempfile::tempdir().unwrap());
    source.fill(0..20, "first", 30);
    let origin = Server::start(&source, FeedOptions::default()).await;
    let mut follower = follower(origin.address, dir.path()).await;
    follow(&mut follower).await;
    let replica = Replica::open(dir.path()).unwrap();
    let server = Server::start(&source, FeedOptions::default()).await;
    server.serve_replica(&replica);
    pull(server.address, &broker).await;

    let waiting = puller(server.address, &broker);
    let waiting = tokio::spawn(async move { waiting.pull(Some(SOON)).await });
    while server.feed().counters().waiting == 0 {
        tokio::task::yield_now().await;
    }
    // The follower waits at the origin in the same way.
    let followed = async { follower.follow(SOON).await };
    let commit = async {
        while origin.feed().counters().waiting == 0 {
            tokio::task::yield_now().await;
        }
        source.fill(0..5, "second", 5);
    };
    let (followed, ()) = tokio::join!(followed, commit);
    assert!(followed.unwrap());
    replica.renew(dir.path()).unwrap();
    let summary = timeout(SOON, waiting).await.unwrap().unwrap().unwrap();
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 5));
    assert_eq!(broker.titles(), source.titles());
}

#[tokio::test]
async fn a_replica_is_pulled_in_place() {
    let (source, broker, dir) = (Store::new(), Store::new(), tempfile::tempdir().unwrap());
    let (log, link) = (dir.path().join("log"), dir.path().join("papers"));
    source.fill(0..3_000, "first", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    let mut follower = follower(server.address, &log).await;
    follow(&mut follower).await;

    let mut summary = Summary::default();
    let error = puller(server.address, &broker).pull_in_place(&link, None, &mut summary).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::LogFolder { .. }), "{error}");
    assert!(error.to_string().contains("the replica has not come yet"), "{error}");

    std::os::unix::fs::symlink(&log, &link).unwrap();
    let summary = pull_in_place(&broker, &link, None).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Snapshot, 3_000));
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(pull_in_place(&broker, &link, None).await.changes, 0);

    source.fill(0..50, "second", 7);
    source.commit(vec![Change::Delete(oid(60))]);
    let coming = async {
        follow(&mut follower).await;
    };
    let (summary, ()) = tokio::join!(pull_in_place(&broker, &link, Some(SOON)), coming);
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 51));
    assert_eq!(broker.titles(), source.titles());
    // From there the consumer can change to the feed.
    source.fill(0..1, "third", 1);
    let summary = pull(server.address, &broker).await;
    assert_eq!((summary.kind, summary.changes), (Kind::Delta, 1));
}

#[tokio::test]
async fn a_pull_in_place_that_is_dropped_midway_is_completed_by_the_next() {
    let (source, broker, dir) = (Store::new(), Store::new(), tempfile::tempdir().unwrap());
    source.fill(0..12_000, "first", 1_000);
    let server = Server::start(&source, FeedOptions::default()).await;
    let mut follower = follower(server.address, dir.path()).await;
    follow(&mut follower).await;
    let (puller, log) = (puller(server.address, &broker), dir.path().to_owned());
    let mut versions = broker.collection.watch();
    let given_up = tokio::spawn(async move {
        let mut summary = Summary::default();
        puller.pull_in_place(&log, None, &mut summary).await
    });
    timeout(SOON, versions.wait_for(|it| 0 < it.serial)).await.unwrap().unwrap();
    given_up.abort();
    drop(given_up.await);
    // The commit in progress may still end; no other follows.
    let summary = pull_in_place(&broker, dir.path(), None).await;
    assert!(summary.changes <= 12_000);
    let reached = broker.collection.version();
    assert_eq!(broker.titles(), source.titles());
    assert_eq!(pull_in_place(&broker, dir.path(), None).await.changes, 0);
    assert_eq!(broker.collection.version(), reached);
}

#[tokio::test]
async fn a_stream_cut_anywhere_leaves_a_whole_log() {
    let seeds: u64 = std::env::var("HARVEST_SEEDS").map_or(4, |it| it.parse().unwrap());
    for seed in 0..seeds {
        let (source, dir) = (Store::new(), tempfile::tempdir().unwrap());
        source.fill(0..100, "first", 30);
        let server = Server::start(&source, FeedOptions::default()).await;
        let mut random = Random(seed);
        let proxy = proxy(server.address, move |_| match random.below(3) {
            0 => Harm::None,
            1 => Harm::Cut(random.below(2_000)),
            _ => Harm::Flip(random.below(2_000)),
        });
        let proxy = proxy.await;
        // A flipped length makes the follower wait in vain.
        let ask = feed_client(patient(Duration::from_millis(300)), proxy, "papers");
        let mut follower = Follower::open(ask, dir.path().to_owned()).await.unwrap();
        let (mut broken, mut serial) = (0, 0);
        for round in 0..40 {
            if round % 2 == 1 {
                source.fill(0..20, "changed", 3);
            }
            let reached = follower.version();
            match timeout(SOON, follower.follow(NOW)).await.unwrap() {
                Ok(changed) => assert_eq!(changed, follower.version() != reached),
                Err(error) => {
                    broken += 1;
                    assert_eq!(follower.version(), reached, "seed {seed}: {error}");
                }
            }
            let Some(version) = follower.version() else { continue };
            check(dir.path(), None).unwrap();
            assert_eq!(Replica::open(dir.path()).unwrap().version(), version);
            assert!(serial <= version.serial);
            serial = version.serial;
        }
        println!("seed {seed}: {broken} of 40 broke");
        assert!(0 < broken && 0 < serial, "seed {seed}");
    }
}

#[tokio::test]
async fn another_epoch_begins_the_log_anew() {
    let (source, other, dir) = (Store::new(), Store::new(), tempfile::tempdir().unwrap());
    source.fill(0..20, "first", 30);
    let server = Server::start(&source, FeedOptions::default()).await;
    let mut follower = follower(server.address, dir.path()).await;
    follow(&mut follower).await;
    let before = chain(dir.path());
    other.fill(5..10, "other", 30);
    server.serve(&other);
    assert!(follow(&mut follower).await);
    let after = chain(dir.path());
    assert_ne!((before.life, before.version.epoch), (after.life, after.version.epoch));
    assert_eq!(after.version, other.collection.version());
    assert_eq!(after.bytes(LogPart::Log), 0);
    check(dir.path(), None).unwrap();
}
