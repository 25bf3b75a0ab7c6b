//! Tests of the collector's reports, reloads and notes, without a network.

use collection::pull::Kind;
use collection::{Epoch, Options, Stamp, Version};
use tempfile::TempDir;
use tokio::sync::oneshot;
use url::Url;

use super::*;
use crate::pull_log::{Outcome, Pull};
use crate::status::LastPull;

fn source(name: &str) -> Source {
    Source::gatherer(name, Url::parse(&format!("http://{name}/")).unwrap())
}

/// Returns a collector of these sources that runs no pulls.
pub(super) fn collector(names: &[&str]) -> (Collector, Config, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let now_ms = clock::now_ms();
    let folder = dir.path().join("collection");
    let (collection, _) = Collection::open(&folder, Options::default(), Stamp(now_ms)).unwrap();
    let mut config = Config::new("Test", dir.path());
    config.sources = names.iter().map(|name| source(name)).collect();
    let client = Client::new(net::client::Settings::default());
    let collector = Collector::open(collection, client, "0", &config, now_ms).unwrap();
    (collector, config, dir)
}

pub(super) fn begin(collector: &Collector) -> Due {
    let due = collector.state().schedule.poll_due(true, clock::now_ms()).unwrap();
    collector.begin(&due.source).unwrap();
    due
}

/// Returns the summary of a pull from a collection with the given epoch.
pub(super) fn summary(kind: Kind, changes: u64, epoch: u64) -> Summary {
    let version = Version { epoch: Epoch(epoch), serial: 1 };
    Summary {
        kind,
        changes,
        changed: changes,
        bytes: 100,
        objects: 50,
        version,
        ..Summary::default()
    }
}

/// Makes a source due, begins its pull, and reports its outcome.
pub(super) fn pull(
    collector: &Collector,
    wait: bool,
    pulled: Summary,
    error: Option<collection::Error>,
) {
    collector.request(Some("a")).unwrap();
    let due = Due { wait, ..begin(collector) };
    let url = collector.state().sources["a"].source.url.to_string();
    let (asked_ms, at) = (clock::now_ms(), clock::monotonic());
    let remarks = Remarks::default();
    let ended = EndedPull { due, url, asked_ms, began: at, at, pulled, remarks };
    collector.end(&ended, Some(error.map_or(Ok(()), |it| Err(it.into()))));
}

pub(super) fn broken() -> collection::Error {
    let name = "a".to_owned();
    collection::Error::OverLimit { name, what: "much".to_owned(), setting: "bytes_max" }
}

fn logged(config: &Config) -> Vec<Pull> {
    let read = pull_log::read(&config.daemon.data.join(pull_log::FOLDER)).unwrap();
    read.map(Result::unwrap).collect()
}

#[test]
fn changes_of_a_failed_pull_count_with_the_next_successful_one() {
    let (collector, config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 9, 1), Some(broken()));
    let counters = collector.counters();
    assert_eq!((counters.pulls, counters.failures), (1, 1));
    assert_eq!((counters.changes, counters.bytes), (59, 200));
    pull(&collector, false, summary(Kind::Delta, 1, 1), None);
    let history = collector.state().sources["a"].history;
    assert_eq!((history.records, history.cost.records), (10, 60), "changes since the first pull");
    let lines: Vec<_> = logged(&config).iter().map(|it| (it.outcome, it.changes)).collect();
    let expected = [(Outcome::Snapshot, 50), (Outcome::Failed, 9), (Outcome::Delta, 1)];
    assert_eq!(lines, expected);
    // A snapshot breaks off: the rest of the snapshot is no sample of the rate.
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), Some(broken()));
    pull(&collector, false, summary(Kind::Delta, 7, 1), None);
    assert_eq!(collector.state().sources["a"].history.records, 10);
    assert_eq!(logged(&config).pop().unwrap().outcome, Outcome::Snapshot);
}

#[test]
fn of_several_empty_long_polls_only_the_last_is_logged() {
    let (collector, config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    for _ in 0..3 {
        pull(&collector, true, Summary { bytes: 7, ..summary(Kind::Delta, 0, 1) }, None);
    }
    assert_eq!(logged(&config).len(), 1);
    pull(&collector, true, summary(Kind::Delta, 2, 1), None);
    pull(&collector, true, summary(Kind::Delta, 0, 1), None);
    let lines: Vec<_> = logged(&config).iter().map(|it| (it.changes, it.took_ms)).collect();
    assert_eq!(lines[1..], [(0, 0), (2, 0)]);
    // The line that was held back is written before the jump of the clock.
    collector.state().handle_jump(-60_000, clock::now_ms());
    pull(&collector, true, summary(Kind::Delta, 0, 1), None);
    assert_eq!(logged(&config).len(), 4);
    collector.flush_log();
    assert_eq!(logged(&config).len(), 5);
    let mut reader = pull_log::read(&config.daemon.data.join(pull_log::FOLDER)).unwrap();
    assert_eq!((reader.nth(3).unwrap().unwrap().changes, reader.clock_sets()), (0, 0));
    assert_eq!((reader.next().unwrap().unwrap().changes, reader.clock_sets()), (0, 1));
}

#[test]
fn a_clock_that_is_set_and_set_back_leaves_no_long_interval() {
    const YEAR_MS: u64 = 31_536_000_000;
    let (collector, _config, _dir) = collector(&["a"]);
    let start_ms = clock::now_ms();
    let pulled = |at_ms: u64| {
        let last =
            LastPull { at_ms, kind: "delta".to_owned(), changes: 1, bytes: 0, took_seconds: 0.0 };
        let pending = PendingChanges::new(&summary(Kind::Delta, 1, 1), clock::monotonic());
        collector.state().sources.get_mut("a").unwrap().handle_pull(last, &pending);
    };
    let minutes = |count: u64| count * 60_000;
    for nth in 0..3 {
        pulled(start_ms + minutes(nth));
    }
    collector.state().handle_jump(YEAR_MS.cast_signed(), start_ms + YEAR_MS);
    pulled(start_ms + YEAR_MS + minutes(3));
    collector.state().handle_jump(-YEAR_MS.cast_signed(), start_ms);
    for nth in 4..7 {
        pulled(start_ms + minutes(nth));
    }
    let history = collector.state().sources["a"].history;
    // Observed were the minutes 0 to 2 and 4 to 6.
    assert_eq!((history.observed_secs, history.samples), (240, 4));
    assert_eq!((history.intervals.count, history.intervals.mean), (2, 60.0));
}

/// Pulls a source twice, moves it to `url`, and pulls again; returns the number of its known
/// updates.
async fn moved(url: &str, epoch: u64) -> u64 {
    let (collector, mut config, _dir) = collector(&["a"]);
    pull(&collector, false, summary(Kind::Snapshot, 50, 1), None);
    pull(&collector, false, summary(Kind::Delta, 3, 1), None);
    config.sources[0].url = Url::parse(url).unwrap();
    collector.reconfigure(&config).await.unwrap();
    pull(&collector, false, summary(Kind::Snapshot, 50, epoch), None);
    collector.state().sources["a"].history.updates
}

#[tokio::test]
async fn the_history_stays_with_its_collection() {
    assert_eq!(moved("http://a/", 2).await, 1, "set up anew");
    assert_eq!(moved("http://b/", 1).await, 1, "moved");
    assert_eq!(moved("http://b/", 2).await, 0, "another collection");
}

#[tokio::test]
async fn a_reload_waits_for_notes_that_are_being_written() {
    let (collector, config, _dir) = collector(&["a"]);
    let none = Config { sources: Vec::new(), ..config };
    let ((begun, writing), (end, ended)) = (oneshot::channel(), std::sync::mpsc::channel::<()>());
    let writer = collector.clone();
    let writer = std::thread::spawn(move || {
        let _turn = writer.inner.notes.lock().unwrap();
        begun.send(()).unwrap();
        ended.recv().unwrap();
    });
    writing.await.unwrap();
    let reload = collector.clone();
    let reload = tokio::spawn(async move { reload.reconfigure(&none).await });
    while collector.state().sources.contains_key("a") {
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(50)).await;
    assert!(!reload.is_finished(), "the note of the removed source is being written");
    end.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(20), reload).await.unwrap().unwrap().unwrap();
    writer.join().unwrap();
}

#[tokio::test]
async fn a_report_that_panics_is_a_failure_and_the_source_is_due_again() {
    let (collector, config, _dir) = collector(&["a"]);
    let due = begin(&collector);
    collector.report(&due.source, || panic!("the report breaks")).await;
    let status = collector.status(&config, &BTreeMap::new()).remove(0);
    assert!(!status.pulling && status.next_due_ms.is_some(), "{status:?}");
    assert_eq!(status.errors.by_kind["ours"], 1);
    let none = Config { sources: Vec::new(), ..config };
    let reload = tokio::time::timeout(Duration::from_secs(20), collector.reconfigure(&none));
    reload.await.expect("nobody waits for a pull that has ended").unwrap();
}
