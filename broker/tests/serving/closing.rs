//! Test of stopping a broker in the middle of its work: it frees its data directory at once.

use std::time::Duration;

use crate::common::{Origin, Running, config};
use broker::index::{Index, IndexOptions};
use collection::{Collection, Error, Options, Stamp};
use net::clock;

/// Time in which a broker stops, as its documentation says.
const STOP: Duration = Duration::from_secs(2);
const ROUNDS: u64 = 10;
const OBJECTS: u64 = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_stopped_at_work_frees_its_data_directory_at_once() {
    let origin = Origin::start("000000000000000a").await;
    let mut version = origin.update(1..=OBJECTS, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let mut handles = Vec::new();
    for round in 1..=ROUNDS {
        let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
        // The broker is pulling and indexing now; the compaction begins below.
        let enough = round * OBJECTS / ROUNDS;
        broker
            .until("pulled", |it| enough <= it.objects && it.index_covered < Some(it.serial))
            .await;
        let handle = broker.handle.clone();
        let compacting = tokio::spawn(async move { handle.compact().await });
        handles.push(broker.handle.clone());
        version = origin.update([round], "beta").await;
        let stopping = clock::monotonic();
        broker.stop().await;

        // A commit that is slow is not waited for: with the end of its process the directory is free.
        let opened = loop {
            let now = Stamp(clock::now_ms());
            match Collection::open(&dir.path().join("collection"), Options::default(), now) {
                Err(Error::InUse { .. }) if stopping.elapsed() < 5 * STOP => {
                    tokio::task::yield_now().await;
                }
                opened => break opened,
            }
        };
        let (collection, recovery) = opened.unwrap();
        assert!(recovery.cut.is_empty() && enough <= collection.len(), "{recovery:?}");
        drop(Index::open(&dir.path().join("index"), IndexOptions::default()).unwrap());
        // The compaction was cut short, or was faster than the stop.
        drop(compacting.await.unwrap());
    }
    let broker = Running::start(config(dir.path(), vec![origin.source("a")])).await;
    broker.caught_up("a", version).await;
    assert_eq!(broker.total("object").await, OBJECTS);
    assert_eq!(broker.total("beta").await, ROUNDS);
    broker.stop().await;
}
