//! Tests of sources that are served at several places.

use broker::source::Source;
use broker::status::Status;

use crate::cascade::finds;
use crate::common::{Origin, Running, config};

#[tokio::test(flavor = "multi_thread")]
async fn the_place_that_answers_is_pulled_by_the_same_cursor() {
    let mut first = Origin::start("00000000000000aa").await;
    let mut second = Origin::start("00000000000000aa").await;
    second.stop().await;
    second.collection = first.collection.clone();
    second.serve().await;
    first.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let replicas = vec![second.source("second").url];
    let source = Source { replicas, ..first.source("gatherer") };
    let broker = Running::start(config(dir.path(), vec![source])).await;
    finds(&broker, "object", 3).await;
    let snapshots = |it: &Origin| it.feed_counters().snapshot_answers;
    assert_eq!(snapshots(&first) + snapshots(&second), 1);
    // The one goes, then the other, and nothing is brought twice.
    let before = snapshots(&second);
    first.stop().await;
    first.update(4..=5, "alpha").await;
    finds(&broker, "object", 5).await;
    assert_eq!(snapshots(&second), before);
    first.serve().await;
    second.stop().await;
    first.update(6..=6, "alpha").await;
    finds(&broker, "object", 6).await;
    assert_eq!(snapshots(&first), 0);
    broker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lags_behind_takes_nothing_back() {
    let mut first = Origin::start("00000000000000aa").await;
    first.update(1..=3, "alpha").await;
    let mut second = first.left_behind().await;
    second.stop().await;
    let replicas = vec![second.url()];
    let source = Source { replicas, ..first.source("gatherer") };
    let dir = tempfile::tempdir().unwrap();
    let broker = Running::start(config(dir.path(), vec![source])).await;
    finds(&broker, "object", 3).await;
    first.update(4..=5, "alpha").await;
    finds(&broker, "object", 5).await;
    // Only the one that has less answers: that is said, and nothing is lost.
    first.stop().await;
    second.serve().await;
    let lags = |it: &Status| {
        let error = it.sources[0].errors.last.as_deref();
        error.is_some_and(|it| it.contains("lags behind"))
    };
    broker.until("told", lags).await;
    finds(&broker, "object", 5).await;
    first.serve().await;
    first.update(7..=7, "alpha").await;
    finds(&broker, "object", 6).await;
    broker.stop().await;
}
