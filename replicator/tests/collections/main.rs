//! Tests of replicated collections: from a feed, over members, to readers of the members' feeds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod purging;
mod support;

use std::collections::BTreeMap;
use std::fs;

use collection::pull::Kind;
use collection::replica::FOLD_BYTES_MIN;
use support::{Cluster, FeedSource, LogFiles, Records, copy};

#[tokio::test(flavor = "multi_thread")]
async fn commits_reach_all_members_unchanged_and_readers_can_change_members() {
    let original = Records::new();
    original.fill(0..300, "first", 20);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::of(&source, 3).await;
    cluster.all_reach(&original).await;
    let first = cluster.assert_equal();
    // A reader of the original goes on at a replica.
    let reader = Records::new();
    assert_eq!(reader.pull(&source.base).await.kind, Kind::Snapshot);
    original.fill(100..200, "second", 10);
    original.delete(7);
    cluster.all_reach(&original).await;
    let second = cluster.assert_equal();
    // Closed files do not change any more.
    let is_closed = |name: &&String| name.starts_with("base-");
    for name in first.keys().filter(is_closed) {
        assert_eq!(first[name], second[name], "{name}");
    }
    let summary = reader.pull(&cluster.public_feed(2)).await;
    assert_eq!((summary.kind, summary.version), (Kind::Delta, original.version()));
    assert_eq!(reader.titles(), original.titles());
    // A reader of a replica goes on at the original, and at another replica.
    original.fill(0..3, "third", 1);
    assert_eq!(reader.pull(&source.base).await.kind, Kind::Delta);
    original.fill(3..6, "fourth", 1);
    cluster.all_reach(&original).await;
    assert_eq!(reader.pull(&cluster.admin_feed(1)).await.kind, Kind::Delta);
    assert_eq!(reader.titles(), original.titles());
    original.fill(6..9, "fifth", 1);
    cluster.all_reach(&original).await;
    assert_eq!(reader.pull_in_place(&cluster.current(2)).await.kind, Kind::Delta);
    assert_eq!(reader.titles(), original.titles());
    // Late members and readers begin with the present records.
    cluster.join().await;
    cluster.all_reach(&original).await;
    cluster.assert_equal();
    let late = Records::new();
    assert_eq!(late.pull(&cluster.public_feed(3)).await.kind, Kind::Snapshot);
    assert_eq!(late.titles(), original.titles());
    let (_, report) = cluster.report(3).await.unwrap();
    assert!(0 < report.served.snapshots && 0 < report.served.bytes, "{report:?}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_pulls_the_feed_at_once() {
    let original = Records::new();
    original.fill(0..10, "first", 10);
    let source = FeedSource::start(&original).await;
    let cluster = Cluster::found(&source).await;
    for round in 0..5 {
        original.fill(round..round + 2, "again", 1);
        let published = cluster.publish().await;
        let (tree, report) = cluster.report(0).await.unwrap();
        assert_eq!(tree.held, Some(published.version));
        assert_eq!(report.feed.as_deref(), Some(source.base.as_str()));
        assert_eq!(report.problem, None);
        cluster.all_reach(&original).await;
    }
    let known = cluster.publish().await;
    assert!(!known.is_changed, "{known:?}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_served_through_a_proxy_under_its_url() {
    let original = Records::new();
    original.fill(0..10, "first", 10);
    let source = FeedSource::start(&original).await;
    let cluster = Cluster::found(&source).await;
    cluster.all_reach(&original).await;
    let name = format!("c@{}", cluster.origin);
    let path = format!("/collections/{name}/feed");
    // The proxy removes its path, and passes on the requested host.
    let head = cluster.get_head(0, "feeds.example.org", &path).await;
    assert!(head.starts_with("http/1.1 303") && head.contains("location: snapshot/"), "{head}");
    let head = cluster.get_head(0, "elsewhere.example.org", &path).await;
    assert!(head.starts_with("http/1.1 4"), "{head}");
    let (_, report) = cluster.report(0).await.unwrap();
    let url = format!("https://feeds.example.org/papers/collections/{name}/");
    assert_eq!((report.url, report.path), (Some(url), path));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_cannot_publish_is_not_ready() {
    let original = Records::new();
    original.fill(0..10, "first", 10);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::found(&source).await;
    cluster.all_reach(&original).await;
    let ready = cluster.get(0, "localhost", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(r#""ready":true"#), "{ready}");
    drop(source);
    cluster.until(0, |_, it| it.problem.is_some()).await;
    let ready = cluster.get(0, "localhost", "/readyz").await;
    let failed = r#""name":"publishes","ok":false,"message":"#;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains(failed), "{ready}");
    let readiness = cluster.status(0).await.ready;
    let faults: Vec<String> = readiness.faults().collect();
    let named = format!("c@{}: ", cluster.origin);
    assert!(faults.len() == 1 && faults[0].contains(&named), "{faults:?}");
    assert!(!ready.contains(&cluster.origin), "{ready}");
    let health = cluster.get_head(0, "localhost", "/healthz").await;
    assert!(health.starts_with("http/1.1 200"), "{health}");
    let source = FeedSource::start(&original).await;
    cluster.reload(Some(&source)).await;
    cluster.until(0, |_, it| it.problem.is_none()).await;
    assert!(cluster.status(0).await.ready.ready);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_follow_the_settings() {
    let original = Records::new();
    original.fill(0..50, "first", 10);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::of(&source, 2).await;
    cluster.all_reach(&original).await;
    // The same collection with more records, at another address.
    let moved = original.fork();
    moved.fill(50..60, "second", 1);
    let elsewhere = FeedSource::start(&moved).await;
    cluster.reload(Some(&elsewhere)).await;
    cluster.all_reach(&moved).await;
    cluster.until(0, |_, it| it.feed.as_deref() == Some(elsewhere.base.as_str())).await;
    cluster.reload(None).await;
    cluster.until(0, |_, it| it.feed.is_none()).await;
    moved.fill(60..70, "third", 1);
    cluster.reload(Some(&elsewhere)).await;
    cluster.all_reach(&moved).await;
    cluster.assert_equal();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_stops_during_changes_or_loses_its_log_goes_on() {
    let original = Records::new();
    original.fill(0..100, "first", 10);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::of(&source, 2).await;
    let reader = Records::new();
    cluster.all_reach(&original).await;
    reader.pull(&cluster.public_feed(1)).await;
    for round in 0..4 {
        let many = round * 1_000..round * 1_000 + 400;
        let collection = original.collection.clone();
        let halted = async {
            // Some changes are on their way.
            let mut versions = collection.watch();
            let begun = versions.borrow_and_update().serial;
            versions.wait_for(|it| begun + 50 < it.serial).await.unwrap();
            cluster.halt(0).await;
            if round == 2 {
                fs::remove_dir_all(cluster.data(0).join("logs")).unwrap();
                // No member got this change by the old log.
                original.fill(0..1, "lost", 1);
            }
            cluster.resume(0).await;
        };
        let filled = tokio::task::spawn_blocking({
            let original = original.clone();
            move || original.fill(many, "many", 5)
        });
        halted.await;
        filled.await.unwrap();
        cluster.all_reach(&original).await;
        cluster.assert_equal();
        // Logs that begin within an hour share a snapshot, so the new one reaches as far back.
        let summary = reader.pull(&cluster.public_feed(1)).await;
        assert_eq!((summary.kind, summary.version), (Kind::Delta, original.version()));
        assert_eq!(reader.titles(), original.titles());
    }
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_contradicts_the_published_one_is_refused_and_named() {
    let original = Records::new();
    original.fill(0..50, "first", 10);
    let source = FeedSource::start(&original).await;
    let mut cluster = Cluster::of(&source, 2).await;
    cluster.all_reach(&original).await;
    let (logs, old) = (cluster.data(0).join("logs/c"), cluster.data(0).join("logs-old"));
    cluster.halt(0).await;
    copy(&logs, &old);
    let fork = original.fork();
    cluster.resume(0).await;
    original.fill(50..60, "second", 1);
    cluster.all_reach(&original).await;
    let good = cluster.files(1);
    // The folder is restored, and the feed has other changes since then.
    cluster.halt(0).await;
    fs::remove_dir_all(&logs).unwrap();
    fs::rename(&old, &logs).unwrap();
    fork.fill(50..90, "other", 1);
    source.serve(&fork);
    cluster.resume(0).await;
    let is_named = |it: Option<&String>| it.is_some_and(|it| it.contains("log folder"));
    cluster.until(0, |_, it| is_named(it.problem.as_ref())).await;
    // If the origin has lost its published versions, the other members refuse its log.
    cluster.halt(0).await;
    fs::remove_dir_all(cluster.data(0).join("collections")).unwrap();
    cluster.resume(0).await;
    let origin = format!("c@{}", cluster.origin);
    cluster.until_noted(1, &[&origin, "log folder", "before"]).await;
    cluster.until_noted(1, &[&origin, "log folder", "it is not the log that reached"]).await;
    assert!(cluster.files(1) == good, "readers see something else");
    // A new log is accepted.
    cluster.halt(0).await;
    fs::remove_dir_all(&logs).unwrap();
    cluster.resume(0).await;
    cluster.all_reach(&fork).await;
    cluster.assert_equal();
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folded_files_are_made_by_each_member_and_not_sent() {
    let original = Records::new();
    original.fill(0..10, "first", 10);
    let source = FeedSource::start(&original).await;
    let cluster = Cluster::of(&source, 2).await;
    cluster.all_reach(&original).await;
    let base = |files: &LogFiles| -> BTreeMap<String, usize> {
        let of_base = files.iter().filter(|it| it.0.starts_with("base-"));
        of_base.map(|(name, bytes)| (name.clone(), bytes.len())).collect()
    };
    let mut folds = 0;
    // Records that do not compress and are never superseded.
    for round in 0..20 {
        let (before, old) = (cluster.bytes_in(1).await, base(&cluster.files(1)));
        original.fill_with(round * 100..round * 100 + 100, 13_000);
        cluster.publish().await;
        cluster.all_reach(&original).await;
        let (came, new) = (cluster.bytes_in(1).await - before, base(&cluster.files(1)));
        if new != old {
            folds += 1;
            let bytes = new.values().sum::<usize>() as u64;
            // New records have come, and maybe a link's probe of 8 MiB, but not the folded files.
            assert!(FOLD_BYTES_MIN / 4 * 3 < bytes, "{bytes}");
            assert!(came < bytes / 4 * 3, "{came} bytes came for {bytes}");
        }
    }
    assert_eq!(folds, 1);
    cluster.assert_equal();
    let late = Records::new();
    assert_eq!(late.pull(&cluster.public_feed(1)).await.kind, Kind::Snapshot);
    assert_eq!(late.titles(), original.titles());
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_require_a_token_once_there_is_a_consumer() {
    let original = Records::new();
    original.fill(0..3, "first", 1);
    let source = FeedSource::start(&original).await;
    let cluster = Cluster::of(&source, 1).await;
    cluster.all_reach(&original).await;
    let feed = cluster.public_feed(0).path().to_owned() + "feed";
    let status = async |path: &str| {
        let head = cluster.get_head(0, "127.0.0.1", path).await;
        head.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&feed).await, "303");
    let consumer = "[[consumer]]\nname = \"x\"\ntoken = \"0123456789abcdef\"\nmay = [\"feed\"]\n";
    cluster.reload_with(&source, consumer).await;
    assert_eq!(status(&feed).await, "401");
    assert_eq!(status("/.well-known/harvest").await, "200");
    assert_eq!(status("/healthz").await, "200");
    cluster.reload_with(&source, "[access]\ndeny = [\"127.0.0.0/8\"]\n").await;
    assert_eq!(status(&feed).await, "403");
    cluster.reload_with(&source, "").await;
    assert_eq!(status(&feed).await, "303");
    cluster.stop().await;
}
