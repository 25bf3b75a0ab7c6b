//! The collector without a network: what it makes of reports, reloads and notes.

use collection::Options;
use collection::Stamp;
use tempfile::TempDir;
use url::Url;

use super::*;

fn source(name: &str) -> Source {
    Source::gatherer(name, Url::parse(&format!("http://{name}/")).unwrap())
}

/// A collector of these sources that runs no pulls.
fn collector(names: &[&str]) -> (Collector, Config, TempDir) {
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

/// Begins a pull of whoever is due.
fn begin(collector: &Collector) -> Due {
    let due = collector.state().schedule.poll_due(true, clock::now_ms()).unwrap();
    collector.begin(&due.source).unwrap();
    due
}

#[tokio::test]
async fn a_report_that_breaks_is_a_failure_and_the_source_is_due_again() {
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
