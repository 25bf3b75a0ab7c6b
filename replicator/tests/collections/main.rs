//! Collections that are replicated: from a feed, over members, to those who read the feeds of these.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod purging;
mod support;

use std::collections::BTreeMap;
use std::fs;

use collection::pull::Kind;
use collection::replica::FOLD_BYTES_MIN;
use support::{Files, Kept, Source, World, copy};

#[tokio::test(flavor = "multi_thread")]
async fn commits_reach_all_members_byte_by_byte_and_readers_change_between_them() {
    let kept = Kept::new();
    kept.fill(0..300, "first", 20);
    let source = Source::start(&kept).await;
    let mut world = World::of(&source, 3).await;
    world.all_reach(&kept).await;
    let first = world.assert_equal();
    // A reader of the collection itself goes on at a replica.
    let reader = Kept::new();
    assert_eq!(reader.pull(&source.base).await.kind, Kind::Snapshot);
    kept.fill(100..200, "second", 10);
    kept.delete(7);
    world.all_reach(&kept).await;
    let second = world.assert_equal();
    // What is closed is not touched any more.
    let is_closed = |name: &&String| name.starts_with("base-");
    for name in first.keys().filter(is_closed) {
        assert_eq!(first[name], second[name], "{name}");
    }
    let summary = reader.pull(&world.outside(2)).await;
    assert_eq!((summary.kind, summary.version), (Kind::Delta, kept.version()));
    assert_eq!(reader.titles(), kept.titles());
    // So does one of a replica at the collection itself, and at another replica.
    kept.fill(0..3, "third", 1);
    assert_eq!(reader.pull(&source.base).await.kind, Kind::Delta);
    kept.fill(3..6, "fourth", 1);
    world.all_reach(&kept).await;
    assert_eq!(reader.pull(&world.inside(1)).await.kind, Kind::Delta);
    assert_eq!(reader.titles(), kept.titles());
    kept.fill(6..9, "fifth", 1);
    world.all_reach(&kept).await;
    assert_eq!(reader.pull_in_place(&world.current(2)).await.kind, Kind::Delta);
    assert_eq!(reader.titles(), kept.titles());
    // Who comes late, as a member or as a reader, begins with what there is.
    world.join().await;
    world.all_reach(&kept).await;
    world.assert_equal();
    let late = Kept::new();
    assert_eq!(late.pull(&world.outside(3)).await.kind, Kind::Snapshot);
    assert_eq!(late.titles(), kept.titles());
    let (_, told) = world.told(3).await.unwrap();
    assert!(0 < told.served.snapshots && 0 < told.served.bytes, "{told:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_asks_the_feed_at_once() {
    let kept = Kept::new();
    kept.fill(0..10, "first", 10);
    let source = Source::start(&kept).await;
    let world = World::found(&source).await;
    for round in 0..5 {
        kept.fill(round..round + 2, "again", 1);
        let published = world.publish().await;
        let (tree, told) = world.told(0).await.unwrap();
        assert_eq!(tree.held, Some(published.version));
        assert_eq!(told.feed.as_deref(), Some(source.base.as_str()));
        assert_eq!(told.problem, None);
        world.all_reach(&kept).await;
    }
    let known = world.publish().await;
    assert!(!known.is_changed, "{known:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_reached_through_a_proxy_and_tell_where() {
    let kept = Kept::new();
    kept.fill(0..10, "first", 10);
    let source = Source::start(&kept).await;
    let world = World::found(&source).await;
    world.all_reach(&kept).await;
    let name = format!("c@{}", world.origin);
    let path = format!("/collections/{name}/feed");
    // The proxy has taken its path away, and hands on which host was asked for.
    let head = world.answered(0, "feeds.example.org", &path).await;
    assert!(head.starts_with("http/1.1 303") && head.contains("location: snapshot/"), "{head}");
    let head = world.answered(0, "elsewhere.example.org", &path).await;
    assert!(head.starts_with("http/1.1 4"), "{head}");
    let (_, told) = world.told(0).await.unwrap();
    let url = format!("https://feeds.example.org/papers/collections/{name}/");
    assert_eq!((told.url, told.path), (Some(url), path));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_publish_is_not_ready() {
    let kept = Kept::new();
    kept.fill(0..10, "first", 10);
    let source = Source::start(&kept).await;
    let mut world = World::found(&source).await;
    world.all_reach(&kept).await;
    let ready = world.asked(0, "localhost", "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains(r#""ready":true"#), "{ready}");
    drop(source);
    world.until(0, |_, it| it.problem.is_some()).await;
    let ready = world.asked(0, "localhost", "/readyz").await;
    let failed = r#""name":"publishes","ok":false,"message":"#;
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains(failed), "{ready}");
    let told = world.status(0).await.ready;
    let said: Vec<String> = told.faults().collect();
    assert!(said.len() == 1 && said[0].contains(&format!("c@{}: ", world.origin)), "{said:?}");
    assert!(!ready.contains(&world.origin), "{ready}");
    let health = world.answered(0, "localhost", "/healthz").await;
    assert!(health.starts_with("http/1.1 200"), "{health}");
    let source = Source::start(&kept).await;
    world.reload(Some(&source)).await;
    world.until(0, |_, it| it.problem.is_none()).await;
    assert!(world.status(0).await.ready.ready);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_come_and_go_with_the_settings() {
    let kept = Kept::new();
    kept.fill(0..50, "first", 10);
    let source = Source::start(&kept).await;
    let mut world = World::of(&source, 2).await;
    world.all_reach(&kept).await;
    // The same collection, elsewhere and further on.
    let moved = kept.fork();
    moved.fill(50..60, "second", 1);
    let elsewhere = Source::start(&moved).await;
    world.reload(Some(&elsewhere)).await;
    world.all_reach(&moved).await;
    world.until(0, |_, it| it.feed.as_deref() == Some(elsewhere.base.as_str())).await;
    world.reload(None).await;
    world.until(0, |_, it| it.feed.is_none()).await;
    moved.fill(60..70, "third", 1);
    world.reload(Some(&elsewhere)).await;
    world.all_reach(&moved).await;
    world.assert_equal();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_stops_in_the_middle_or_loses_its_log_goes_on() {
    let kept = Kept::new();
    kept.fill(0..100, "first", 10);
    let source = Source::start(&kept).await;
    let mut world = World::of(&source, 2).await;
    let reader = Kept::new();
    world.all_reach(&kept).await;
    reader.pull(&world.outside(1)).await;
    for round in 0..4 {
        let many = round * 1_000..round * 1_000 + 400;
        let collection = kept.collection.clone();
        let halted = async {
            // Some of it is on its way.
            let mut versions = collection.watch();
            let begun = versions.borrow_and_update().serial;
            versions.wait_for(|it| begun + 50 < it.serial).await.unwrap();
            world.halt(0).await;
            if round == 2 {
                fs::remove_dir_all(world.data(0).join("logs")).unwrap();
                // Nobody has got that by the old log.
                kept.fill(0..1, "lost", 1);
            }
            world.resume(0).await;
        };
        let filled = tokio::task::spawn_blocking({
            let kept = kept.clone();
            move || kept.fill(many, "many", 5)
        });
        halted.await;
        filled.await.unwrap();
        world.all_reach(&kept).await;
        world.assert_equal();
        // Those that begin within the hour begin with the same snapshot, so a log that was lost reaches as far back.
        let summary = reader.pull(&world.outside(1)).await;
        assert_eq!((summary.kind, summary.version), (Kind::Delta, kept.version()));
        assert_eq!(reader.titles(), kept.titles());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_contradicts_what_was_published_is_refused_and_named() {
    let kept = Kept::new();
    kept.fill(0..50, "first", 10);
    let source = Source::start(&kept).await;
    let mut world = World::of(&source, 2).await;
    world.all_reach(&kept).await;
    let (logs, old) = (world.data(0).join("logs/c"), world.data(0).join("logs-old"));
    world.halt(0).await;
    copy(&logs, &old);
    let fork = kept.fork();
    world.resume(0).await;
    kept.fill(50..60, "second", 1);
    world.all_reach(&kept).await;
    let good = world.files(1);
    // The folder is as it was before, and the feed tells another story since.
    world.halt(0).await;
    fs::remove_dir_all(&logs).unwrap();
    fs::rename(&old, &logs).unwrap();
    fork.fill(50..90, "other", 1);
    source.serve(&fork);
    world.resume(0).await;
    let is_named = |it: Option<&String>| it.is_some_and(|it| it.contains("log folder"));
    world.until(0, |_, it| is_named(it.problem.as_ref())).await;
    // An origin that does not know any more what it published is refused by the others.
    world.halt(0).await;
    fs::remove_dir_all(world.data(0).join("collections")).unwrap();
    world.resume(0).await;
    let origin = format!("c@{}", world.origin);
    world.notes(1, &[&origin, "log folder", "before"]).await;
    world.notes(1, &[&origin, "log folder", "it is not the log that reached"]).await;
    assert!(world.files(1) == good, "readers see something else");
    // A log that is begun anew is taken.
    world.halt(0).await;
    fs::remove_dir_all(&logs).unwrap();
    world.resume(0).await;
    world.all_reach(&fork).await;
    world.assert_equal();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_log_is_folded_to_does_not_travel() {
    let kept = Kept::new();
    kept.fill(0..10, "first", 10);
    let source = Source::start(&kept).await;
    let world = World::of(&source, 2).await;
    world.all_reach(&kept).await;
    let base = |files: &Files| -> BTreeMap<String, usize> {
        let of_base = files.iter().filter(|it| it.0.starts_with("base-"));
        of_base.map(|(name, bytes)| (name.clone(), bytes.len())).collect()
    };
    let mut folds = 0;
    // Records that do not compress, and are not superseded.
    for round in 0..20 {
        let (before, old) = (world.bytes_in(1).await, base(&world.files(1)));
        kept.fill_with(round * 100..round * 100 + 100, 13_000);
        world.publish().await;
        world.all_reach(&kept).await;
        let (came, new) = (world.bytes_in(1).await - before, base(&world.files(1)));
        if new != old {
            folds += 1;
            let bytes = new.values().sum::<usize>() as u64;
            // What is new has come, and maybe a probe of the link, of 8 MiB; what was folded has not.
            assert!(FOLD_BYTES_MIN / 4 * 3 < bytes, "{bytes}");
            assert!(came < bytes / 4 * 3, "{came} bytes came for {bytes}");
        }
    }
    assert_eq!(folds, 1);
    world.assert_equal();
    let late = Kept::new();
    assert_eq!(late.pull(&world.outside(1)).await.kind, Kind::Snapshot);
    assert_eq!(late.titles(), kept.titles());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_for_consumers_once_there_is_one() {
    let kept = Kept::new();
    kept.fill(0..3, "first", 1);
    let source = Source::start(&kept).await;
    let world = World::of(&source, 1).await;
    world.all_reach(&kept).await;
    let feed = world.outside(0).path().to_owned() + "feed";
    let status = async |path: &str| {
        let head = world.answered(0, "127.0.0.1", path).await;
        head.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&feed).await, "303");
    let consumer = "[[consumer]]\nname = \"x\"\ntoken = \"0123456789abcdef\"\nmay = [\"feed\"]\n";
    world.reload_with(&source, consumer).await;
    assert_eq!(status(&feed).await, "401");
    assert_eq!(status("/.well-known/harvest").await, "200");
    assert_eq!(status("/healthz").await, "200");
    world.reload_with(&source, "[access]\ndeny = [\"127.0.0.0/8\"]\n").await;
    assert_eq!(status(&feed).await, "403");
    world.reload_with(&source, "").await;
    assert_eq!(status(&feed).await, "303");
    world.stop().await;
}
