use bytes::Bytes;
use collection::Epoch;
use collection::pull::Kind;

use super::super::tests::{begin, collector, pull, summary};
use super::*;

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(1), serial }
}

fn pushed(from: u64, to: u64, bytes: usize) -> Pushed {
    Pushed { from, to: version(to), objects: 50, members: Bytes::from(vec![0; bytes]) }
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
fn what_is_sent_is_taken_in_at_once_in_its_order_and_what_is_known_is_dropped() {
    let (collector, _config, _dir) = collector(&["a"]);
    assert!(matches!(collector.next_pushed("a"), Next::Nothing));
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    for (from, to) in [(1, 2), (2, 3)] {
        assert!(collector.handle_notice("a", Notice::Fat(pushed(from, to, 10))));
    }
    assert!(collector.handle_notice("a", Notice::Fat(pushed(0, 1, 10))), "it is known");
    assert!(is_due(&collector));
    begin(&collector);
    assert!(matches!(collector.next_pushed("a"), Next::Changes(it) if it.to == version(2)));
    assert_eq!(collector.state().pushed_bytes, 10);
    // Meanwhile the rest has come by another way.
    if let Some(live) = collector.state().live.get_mut("a") {
        live.reached = Some(version(3).into());
    }
    assert!(matches!(collector.next_pushed("a"), Next::Known));
    assert!(matches!(collector.next_pushed("a"), Next::Nothing));
    assert_eq!(collector.state().pushed_bytes, 0);
}

#[test]
fn what_waits_is_bounded_for_each_source_and_for_all() {
    let (collector, _config, _dir) = collector(&["a", "b"]);
    let mut sent = 0;
    while collector.handle_notice("a", Notice::Fat(pushed(sent, sent + 1, 1))) {
        sent += 1;
    }
    assert_eq!(usize::try_from(sent).unwrap(), PUSHED_MAX);
    assert!(collector.handle_notice("b", Notice::Fat(pushed(0, 1, PUSHED_BYTES_MAX - PUSHED_MAX))));
    assert!(!collector.handle_notice("b", Notice::Fat(pushed(1, 2, 1))));
    collector.drop_pushed("b");
    assert!(collector.handle_notice("b", Notice::Fat(pushed(1, 2, 1))));
    assert_eq!(collector.state().pushed_bytes, PUSHED_MAX + 1);
}
