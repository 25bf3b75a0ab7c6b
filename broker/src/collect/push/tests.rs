//! Tests of notifications.

use collection::Epoch;
use collection::pull::Kind;
use tempfile::TempDir;

use super::super::tests::collector as silent;
use super::super::tests::{pull, summary};
use super::*;

fn version(serial: u64) -> Version {
    Version { epoch: Epoch(1), serial }
}

/// Returns a collector of a source with `push`, `a`, that has been pulled up to version 1.
fn collector() -> (Collector, TempDir) {
    let (collector, _config, dir) = silent(&["a"]);
    set_push(&collector, true);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 0, 1), None);
    collector.state().schedule.handle_cancel("a", clock::now_ms());
    (collector, dir)
}

fn set_push(collector: &Collector, push: bool) {
    collector.state().sources.get_mut("a").unwrap().source.push = push;
}

fn due_ms(collector: &Collector) -> Option<u64> {
    collector.state().schedule.view("a").unwrap().due_ms
}

fn is_due(collector: &Collector) -> bool {
    due_ms(collector).is_some_and(|it| it <= clock::now_ms())
}

#[test]
fn a_notice_of_a_new_version_makes_a_source_due_within_its_bounds() {
    let (collector, _dir) = collector();
    let planned_ms = due_ms(&collector).unwrap();
    collector.handle_notice("a", Some(version(1)));
    assert_eq!(due_ms(&collector), Some(planned_ms), "it has been read up to there");
    set_push(&collector, false);
    collector.handle_notice("a", Some(version(2)));
    assert_eq!(due_ms(&collector), Some(planned_ms), "its push is off");
    set_push(&collector, true);
    collector.handle_notice("a", Some(version(2)));
    let told_ms = due_ms(&collector).unwrap();
    let shortest_ms = 10_000;
    assert!(
        told_ms <= planned_ms && told_ms <= clock::now_ms() + shortest_ms && !is_due(&collector)
    );
    collector.handle_notice("gone", None);
}

/// Hubs of older versions may still send the changes themselves.
#[test]
fn a_notice_without_a_known_version_makes_a_source_due() {
    let (collector, _dir) = collector();
    let version = exchange::push::notice::read(b"harvest-changes 1 0000000000000001 0 1 50\n\x1f");
    collector.handle_notice("a", version);
    assert!(due_ms(&collector).is_some_and(|it| it <= clock::now_ms() + 10_000));
}
