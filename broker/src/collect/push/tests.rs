//! Tests of notifications and sent parts.

use bytes::Bytes;
use collection::Epoch;
use collection::pull::Kind;
use tempfile::TempDir;

use super::super::tests::collector as silent;
use super::super::tests::{begin, broken, pull, summary};
use super::*;
use crate::config::Config;

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(1), serial }
}

fn pushed(from: u64, to: u64, bytes: usize) -> Pushed {
    Pushed { from, to: version(to), objects: 50, members: Bytes::from(vec![0; bytes]) }
}

/// Returns a collector of sources with `push`.
fn collector(names: &[&str]) -> (Collector, Config, TempDir) {
    let (collector, mut config, dir) = silent(names);
    config.sources.iter_mut().for_each(|it| it.push = true);
    collector.state().sources.values_mut().for_each(|it| it.source.push = true);
    (collector, config, dir)
}

fn with_entry<T>(collector: &Collector, look: impl FnOnce(&mut SourceState) -> T) -> T {
    look(collector.state().sources.get_mut("a").unwrap())
}

fn due_ms(collector: &Collector) -> Option<u64> {
    collector.state().schedule.view("a").unwrap().due_ms
}

fn is_due(collector: &Collector) -> bool {
    due_ms(collector).is_some_and(|it| it <= clock::now_ms())
}

#[test]
fn a_notice_of_a_new_version_makes_a_source_due_within_its_bounds() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 0, 1), None);
    collector.state().schedule.handle_cancel("a", clock::now_ms());
    let planned_ms = due_ms(&collector).unwrap();
    assert!(collector.handle_notice("a", Notice::Thin(Some(version(1)))));
    assert_eq!(due_ms(&collector), Some(planned_ms), "it has been read up to there");
    assert!(collector.handle_notice("a", Notice::Thin(Some(version(2)))));
    let told_ms = due_ms(&collector).unwrap();
    let shortest_ms = 10_000;
    assert!(
        told_ms <= planned_ms && told_ms <= clock::now_ms() + shortest_ms && !is_due(&collector)
    );
    assert!(collector.handle_notice("gone", Notice::Thin(None)), "the hub must not try again");
}

#[test]
fn parts_are_stored_in_order_not_during_a_pull_and_make_no_pull_due() {
    let (collector, _config, _dir) = collector(&["a"]);
    assert!(collector.next_part().is_none());
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    let planned_ms = due_ms(&collector);
    for (from, to) in [(1, 2), (2, 3), (0, 1)] {
        assert!(collector.handle_notice("a", Notice::Fat(pushed(from, to, 10))));
    }
    assert_eq!(due_ms(&collector), planned_ms);
    assert_eq!(collector.next_part().unwrap().1.to, version(2));
    assert!(collector.next_part().is_none(), "one at a time");
    with_entry(&collector, |it| it.taking = false);
    collector.request(Some("a")).unwrap();
    begin(&collector);
    assert!(collector.next_part().is_none(), "it is being pulled");
    // The pull brings the other changes.
    with_entry(&collector, |it| (it.pulling, it.reached) = (false, Some(version(3).into())));
    assert!(collector.next_part().is_none());
    with_entry(&collector, |it| it.reached = Some(version(2).into()));
    assert!(collector.next_part().is_none(), "none is left");
    let expected = PartCounters { known: 2, ..PartCounters::default() };
    assert_eq!(collector.part_counters(), expected);
}

#[tokio::test]
async fn a_gap_makes_the_source_due_within_its_bounds() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    // After this failure the source is not pulled for a long time.
    pull(&collector, false, summary(Kind::Delta, 0, 1), Some(broken()));
    let rests_ms = due_ms(&collector);
    assert!(rests_ms.unwrap() > clock::now_ms());
    // The collection has no cursor of the source, so every part leaves a gap; a second part comes
    // meanwhile.
    for round in 0..3 {
        assert!(collector.handle_notice("a", Notice::Fat(pushed(5, 6 + round, 10))));
        let (source, part) = collector.next_part().unwrap();
        assert!(collector.handle_notice("a", Notice::Fat(pushed(6 + round, 7 + round, 10))));
        collector.clone().take(source, part).await;
        assert!(collector.next_part().is_none(), "the part after it is dropped");
        assert_eq!(due_ms(&collector), rests_ms);
    }
    assert_eq!(collector.counters().pulls, 1);
    let expected = PartCounters { dropped: 6, ..PartCounters::default() };
    assert_eq!(collector.part_counters(), expected);
}

#[test]
fn a_stored_part_is_no_pull_and_counts_with_the_next() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 0, 1), Some(broken()));
    let due = due_ms(&collector);
    let before = collector.state().schedule.view("a");
    let source = collector.state().sources["a"].source.clone();
    let taken = Summary { version: version(7), ..summary(Kind::Delta, 9, 1) };
    collector.handle_taken(&source, &taken, true);
    assert_eq!(collector.part_counters().taken, 1);
    assert_eq!(collector.state().schedule.view("a"), before, "rate, cost, failures, back-off");
    assert_eq!(due_ms(&collector), due, "the safety poll stays");
    with_entry(&collector, |it| {
        assert_eq!((it.pulls, it.errors.in_a_row, it.sent_bytes), (1, 1, 100));
        assert_eq!(it.last_pull.as_ref().map(|it| it.changes), Some(50));
    });
    pull(&collector, false, summary(Kind::Delta, 1, 1), None);
    with_entry(&collector, |it| {
        assert_eq!((it.history.records, it.sent_bytes), (10, 0));
        assert_eq!(it.last_pull.as_ref().map(|it| it.changes), Some(1));
    });
}

#[tokio::test]
async fn bytes_max_bounds_the_parts_between_two_pulls() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    with_entry(&collector, |it| (it.source.bytes_max, it.sent_bytes) = (100, 95));
    assert!(collector.handle_notice("a", Notice::Fat(pushed(1, 2, 10))));
    let (source, part) = collector.next_part().unwrap();
    collector.clone().take(source, part).await;
    assert!(!has(&collector.state().sources["a"], version(2)));
    assert!(due_ms(&collector).is_some_and(|it| it <= clock::now_ms() + 10_000), "it is pulled");
}

#[tokio::test]
async fn new_settings_drop_the_parts_sent_before() {
    let (collector, mut config, _dir) = collector(&["a", "b"]);
    for name in ["a", "b"] {
        assert!(collector.handle_notice(name, Notice::Fat(pushed(1, 2, 10))));
    }
    config.sources[0].weight = 2.0;
    config.sources[1].push = false;
    collector.reconfigure(&config).await.unwrap();
    assert!(collector.next_part().is_none());
    assert!(
        collector.handle_notice("b", Notice::Fat(pushed(1, 2, 10))),
        "the hub must not try again"
    );
    assert!(collector.next_part().is_none(), "its push is off");
}

#[tokio::test]
async fn a_pull_waits_for_a_part_that_is_being_stored() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    assert!(collector.handle_notice("a", Notice::Fat(pushed(1, 2, 10))));
    let (source, _part) = collector.next_part().unwrap();
    let taking = StoringGuard { collector: &collector, source: &source.name };
    collector.request(Some("a")).unwrap();
    let due = collector.state().schedule.poll_due(true, clock::now_ms()).unwrap();
    let mut waits = std::pin::pin!(collector.clone().pull(due));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx))).await;
    assert!(polled.is_pending() && collector.state().sources["a"].pulling);
    drop(taking);
    with_entry(&collector, |it| {
        assert!(!it.taking);
        it.cancel.start();
    });
    waits.await;
    assert!(!collector.state().sources["a"].pulling);
}
