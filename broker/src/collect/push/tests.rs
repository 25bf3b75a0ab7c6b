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

/// A collector of sources that tell.
fn collector(names: &[&str]) -> (Collector, Config, TempDir) {
    let (collector, mut config, dir) = silent(names);
    config.sources.iter_mut().for_each(|it| it.push = true);
    collector.state().live.values_mut().for_each(|it| it.source.push = true);
    (collector, config, dir)
}

fn live<T>(collector: &Collector, look: impl FnOnce(&mut Live) -> T) -> T {
    look(collector.state().live.get_mut("a").unwrap())
}

fn due_ms(collector: &Collector) -> Option<u64> {
    collector.state().schedule.view("a").unwrap().due_ms
}

/// Forgets that the source was just asked for.
fn is_due(collector: &Collector) -> bool {
    due_ms(collector).is_some_and(|it| it <= clock::now_ms())
}

#[test]
fn what_is_new_makes_a_source_due_when_it_bears_it_and_what_is_known_does_not() {
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
    assert!(collector.handle_notice("gone", Notice::Thin(None)), "nobody is to try again");
}

#[test]
fn what_is_sent_is_taken_in_its_order_beside_no_pull_and_makes_none_due() {
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
    live(&collector, |it| it.taking = false);
    collector.request(Some("a")).unwrap();
    begin(&collector);
    assert!(collector.next_part().is_none(), "it is being pulled");
    // The pull brings the rest.
    live(&collector, |it| (it.pulling, it.reached) = (false, Some(version(3).into())));
    assert!(collector.next_part().is_none());
    live(&collector, |it| it.reached = Some(version(2).into()));
    assert!(collector.next_part().is_none(), "none is left");
    let expected = PartCounters { known: 2, ..PartCounters::default() };
    assert_eq!(collector.part_counters(), expected);
}

#[tokio::test]
async fn what_leaves_a_gap_has_the_source_asked_when_it_bears_it_and_not_before() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    // It is to rest for long.
    pull(&collector, false, summary(Kind::Delta, 0, 1), Some(broken()));
    let rests_ms = due_ms(&collector);
    assert!(rests_ms.unwrap() > clock::now_ms());
    // The collection has no cursor of it, so nothing follows; a second part comes meanwhile.
    for round in 0..3 {
        assert!(collector.handle_notice("a", Notice::Fat(pushed(5, 6 + round, 10))));
        let (source, part) = collector.next_part().unwrap();
        assert!(collector.handle_notice("a", Notice::Fat(pushed(6 + round, 7 + round, 10))));
        collector.clone().take(source, part).await;
        assert!(collector.next_part().is_none(), "what was behind it is dropped");
        assert_eq!(due_ms(&collector), rests_ms);
    }
    assert_eq!(collector.counters().pulls, 1);
    let expected = PartCounters { dropped: 6, ..PartCounters::default() };
    assert_eq!(collector.part_counters(), expected);
}

#[test]
fn what_was_taken_in_is_no_pull_and_counts_with_the_next() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 0, 1), Some(broken()));
    let due = due_ms(&collector);
    let before = collector.state().schedule.view("a");
    let source = collector.state().live["a"].source.clone();
    let taken = Summary { version: version(7), ..summary(Kind::Delta, 9, 1) };
    collector.handle_taken(&source, &taken, true);
    assert_eq!(collector.part_counters().taken, 1);
    assert_eq!(collector.state().schedule.view("a"), before, "rate, cost, failures, back-off");
    assert_eq!(due_ms(&collector), due, "the safety poll stays");
    live(&collector, |it| {
        assert_eq!((it.pulls, it.errors.in_a_row, it.sent_bytes), (1, 1, 100));
        assert_eq!(it.last_pull.as_ref().map(|it| it.changes), Some(50));
    });
    pull(&collector, false, summary(Kind::Delta, 1, 1), None);
    live(&collector, |it| {
        assert_eq!((it.history.records, it.sent_bytes), (10, 0));
        assert_eq!(it.last_pull.as_ref().map(|it| it.changes), Some(1));
    });
}

#[tokio::test]
async fn what_is_sent_between_two_pulls_is_bounded_by_bytes_max() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    live(&collector, |it| (it.source.bytes_max, it.sent_bytes) = (100, 95));
    assert!(collector.handle_notice("a", Notice::Fat(pushed(1, 2, 10))));
    let (source, part) = collector.next_part().unwrap();
    collector.clone().take(source, part).await;
    assert!(!has(&collector.state().live["a"], version(2)));
    assert!(due_ms(&collector).is_some_and(|it| it <= clock::now_ms() + 10_000), "it is asked");
}

#[tokio::test]
async fn other_settings_forget_what_was_sent_under_those_before() {
    let (collector, mut config, _dir) = collector(&["a", "b"]);
    for name in ["a", "b"] {
        assert!(collector.handle_notice(name, Notice::Fat(pushed(1, 2, 10))));
    }
    config.sources[0].weight = 2.0;
    config.sources[1].push = false;
    collector.reconfigure(&config).await.unwrap();
    assert!(collector.next_part().is_none());
    assert!(collector.handle_notice("b", Notice::Fat(pushed(1, 2, 10))), "nobody is to try again");
    assert!(collector.next_part().is_none(), "it is not to send any more");
}

#[tokio::test]
async fn a_pull_waits_for_what_is_being_taken_in() {
    let (collector, _config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    assert!(collector.handle_notice("a", Notice::Fat(pushed(1, 2, 10))));
    let (source, _part) = collector.next_part().unwrap();
    let taking = Taking { collector: &collector, source: &source.name };
    collector.request(Some("a")).unwrap();
    let due = collector.state().schedule.poll_due(true, clock::now_ms()).unwrap();
    let mut waits = std::pin::pin!(collector.clone().pull(due));
    let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx))).await;
    assert!(polled.is_pending() && collector.state().live["a"].pulling);
    drop(taking);
    live(&collector, |it| {
        assert!(!it.taking);
        it.cancel.start();
    });
    waits.await;
    assert!(!collector.state().live["a"].pulling);
}
