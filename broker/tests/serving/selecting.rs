//! Tests of what a feed serves of a query or a view, to those who ask for it and to brokers behind them.

use std::io::Read as _;
use std::path::Path;

use broker::config::Config;
use broker::source::{Kind, Part, Source};
use collection::Version;
use flate2::read::MultiGzDecoder;
use http::{HeaderName, HeaderValue};
use net::client::Request;
use net::clock;

use crate::cascade::{finds, of, views};
use crate::common::{Origin, Running, STEP_MAX, client, config, object_url, url_of};

/// Returns settings by which a broker pulls only when it is told to.
fn seldom(dir: &Path, name: &str, sources: Vec<Source>) -> Config {
    let mut config = config(&dir.join(name), sources);
    (config.freshness.interval_min, config.freshness.interval_max) = (3_600.0, 7_200.0);
    config
}

/// Has a broker pull a source once, up to this version.
async fn pull(broker: &Running, source: &str, version: Version) {
    broker.handle.pull(Some(source)).unwrap();
    broker.caught_up(source, version).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diamond_has_what_either_side_selects_and_costs_the_gatherer_nothing() {
    let gatherer = Origin::start("00000000000000aa").await;
    for (n, text) in [(1, "alpha"), (2, "beta"), (3, "alpha beta"), (4, "gamma")] {
        gatherer.update([n], text).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let start = async |name: &str, sources| Running::start(seldom(dir.path(), name, sources)).await;
    let a = start("a", vec![gatherer.source("gatherer")]).await;
    a.caught_up("gatherer", gatherer.collection.version()).await;
    let first = gatherer.feed_counters();
    let b = start("b", vec![of(&a, "a", "alpha")]).await;
    let c = start("c", vec![of(&a, "a", "beta")]).await;
    for broker in [&b, &c] {
        broker.caught_up("a", a.handle.version()).await;
    }
    let d = start("d", vec![of(&b, "b", "object"), of(&c, "c", "object -number9")]).await;
    let all = async |version: Version| {
        pull(&a, "gatherer", version).await;
        let before = gatherer.feed_counters();
        // Each pulls once, in the order of the way.
        for (broker, source, from) in [(&b, "a", &a), (&c, "a", &a), (&d, "b", &b), (&d, "c", &c)] {
            pull(broker, source, from.handle.version()).await;
        }
        assert_eq!(gatherer.feed_counters(), before);
    };
    let have = async |expected: [&[u64]; 3]| {
        for (broker, expected) in [&b, &c, &d].into_iter().zip(expected) {
            finds(broker, "object", expected.len() as u64).await;
            for n in expected {
                finds(broker, &format!("number{n}"), 1).await;
            }
        }
    };
    have([&[1, 3], &[2, 3], &[1, 2, 3]]).await;
    assert_eq!(gatherer.feed_counters(), first);
    // It leaves one side, then both: it goes with the next pulls, of which nobody needs a second.
    all(gatherer.update([3], "alpha").await).await;
    have([&[1, 3], &[2], &[1, 2, 3]]).await;
    let bytes = c.source("a").await.last_pull.unwrap().bytes;
    assert!(bytes <= 2 << 10, "{bytes} bytes");
    all(gatherer.update([3], "gamma").await).await;
    have([&[1], &[2], &[1, 2]]).await;
    all(gatherer.update([4], "alpha beta").await).await;
    have([&[1, 4], &[2, 4], &[1, 2, 4]]).await;
    // What its gatherer deletes goes from all.
    all(gatherer.delete([1, 4]).await).await;
    have([&[], &[2], &[2]]).await;
    finds(&a, "object", 2).await;
    for broker in [a, b, c, d] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_costs_the_gatherer_nothing_and_lets_go_with_the_next_pulls() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(seldom(dir.path(), "a", vec![gatherer.source("gatherer")])).await;
    a.caught_up("gatherer", gatherer.collection.version()).await;
    let b = Running::start(seldom(dir.path(), "b", vec![of(&a, "a", "alpha")])).await;
    b.caught_up("a", a.handle.version()).await;
    let round = vec![gatherer.source("gatherer"), of(&b, "b", "object")];
    a.handle.reload(seldom(dir.path(), "a", round)).await.unwrap();
    a.caught_up("b", b.handle.version()).await;
    let all = async |version: Version| {
        pull(&a, "gatherer", version).await;
        let before = gatherer.feed_counters();
        pull(&b, "a", a.handle.version()).await;
        pull(&a, "b", b.handle.version()).await;
        assert_eq!(gatherer.feed_counters(), before);
    };
    finds(&b, "object", 3).await;
    all(gatherer.update([1], "beta").await).await;
    finds(&b, "object", 2).await;
    finds(&a, "number1 AND beta", 1).await;
    all(gatherer.delete([1, 2]).await).await;
    for broker in [&a, &b] {
        finds(broker, "object", 1).await;
        finds(broker, "number3", 1).await;
    }
    for broker in [a, b] {
        broker.stop().await;
    }
}

/// An answer of a feed.
#[derive(Debug)]
struct Fed {
    kind: String,
    /// The name of what is selected.
    view: String,
    to: Version,
    updated: Vec<String>,
    deleted: Vec<String>,
}

/// Asks a broker for what these parameters select, of what comes after an earlier answer.
async fn feed(broker: &Running, parameters: &str, after: Option<&Fed>) -> Result<Fed, u16> {
    let since = after.map(|it| format!("&since={}&epoch={}", it.to.serial, it.to.epoch));
    let target = format!("feed?{parameters}{}", since.unwrap_or_default());
    let mut request = Request::get(url_of(broker.address).join(&target).unwrap());
    if let Some(after) = after {
        let name = HeaderName::from_static("harvest-view");
        request = request.header(name, HeaderValue::from_str(&after.view).unwrap());
    }
    let response = client().send(request).await.unwrap();
    if !response.status.is_success() {
        return Err(response.status.as_u16());
    }
    let header = |name: &str| response.header(name).unwrap().to_owned();
    let (kind, view) = (header("harvest-kind"), header("harvest-view"));
    let serial = header("harvest-to").parse().unwrap();
    let to = Version { epoch: header("harvest-epoch").parse().unwrap(), serial };
    let (bytes, mut text) = (response.bytes(1 << 20).await.unwrap(), String::new());
    MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    let (mut updated, mut deleted, mut is_delete) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        match (line, line.strip_prefix("@FILE { ")) {
            ("@UPDATE {" | "@DELETE {", _) => is_delete = line == "@DELETE {",
            (_, Some(url)) if is_delete => deleted.push(url.to_owned()),
            (_, Some(url)) => updated.push(url.to_owned()),
            _ => {}
        }
    }
    Ok(Fed { kind, view, to, updated, deleted })
}

/// Waits until a broker knows what is asked for, and returns it.
async fn known(broker: &Running, parameters: &str, after: Option<&Fed>) -> Fed {
    let end = clock::monotonic() + STEP_MAX;
    loop {
        match feed(broker, parameters, after).await {
            Ok(fed) => return fed,
            Err(status) => assert!(status == 503 && clock::monotonic() < end, "{status}"),
        }
    }
}

fn urls(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(object_url).collect()
}

/// Returns settings with one view.
fn with_view(dir: &Path, gatherer: &Origin, name: &str, query: &str) -> Config {
    let config = config(&dir.join("a"), vec![gatherer.source("gatherer")]);
    let text = format!("[[view]]\nname = \"{name}\"\nquery = \"{query}\"\n");
    Config { views: views(&text), ..config }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delta_has_what_matches_and_lets_go_what_no_longer_does() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let version = gatherer.update(4..=6, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(with_view(dir.path(), &gatherer, "first", "alpha")).await;
    a.caught_up("gatherer", version).await;
    let first = known(&a, "q=alpha", None).await;
    assert_eq!((&*first.kind, &first.updated), ("snapshot", &urls(1..=3)));
    let view = known(&a, "view=first", None).await;
    assert_eq!((&*view.kind, &view.updated), ("snapshot", &urls(1..=3)));
    gatherer.update([1], "beta").await;
    let version = gatherer.update([2], "alpha again").await;
    a.caught_up("gatherer", version).await;
    for (parameters, after) in [("q=alpha", &first), ("view=first", &view)] {
        let next = known(&a, parameters, Some(after)).await;
        assert_eq!((&*next.kind, &next.view), ("delta", &after.view), "{parameters}");
        assert_eq!((&next.updated, &next.deleted), (&urls([2]), &urls([1])), "{parameters}");
        let idle = known(&a, parameters, Some(&next)).await;
        assert_eq!((idle.updated.len(), idle.deleted.len()), (0, 0), "{parameters}");
    }
    // Who left is known of a view: nothing is said of what never was in it.
    let view = known(&a, "view=first", Some(&view)).await;
    let version = gatherer.update([4], "gamma").await;
    a.caught_up("gatherer", version).await;
    let next = known(&a, "view=first", Some(&view)).await;
    assert_eq!((next.updated.len(), next.deleted.len()), (0, 0), "{next:?}");
    // Another query takes up nothing of the first.
    let other = known(&a, "q=beta", Some(&first)).await;
    assert_eq!((&*other.kind, &other.updated), ("snapshot", &urls([5, 6, 1])));
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_from_before_a_view_began_gets_all_of_it() {
    let gatherer = Origin::start("00000000000000aa").await;
    let version = gatherer.update(1..=4, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |name: &str, query: &str| with_view(dir.path(), &gatherer, name, query);
    let a = Running::start(settings("other", "number1")).await;
    a.caught_up("gatherer", version).await;
    assert_eq!(feed(&a, "view=first", None).await.unwrap_err(), 400);
    // A cursor of all there is, of a consumer that has an other view of it.
    let other = known(&a, "view=other", None).await;
    a.handle.reload(settings("first", "alpha")).await.unwrap();
    let first = known(&a, "view=first", Some(&other)).await;
    assert_eq!((&*first.kind, &first.updated), ("snapshot", &urls(1..=4)));
    let idle = known(&a, "view=first", Some(&first)).await;
    assert_eq!((&*idle.kind, idle.updated.len()), ("delta", 0));

    // The view goes, an object that would have been in it is edited, and it is defined as it was: who left is not known.
    a.handle.reload(settings("other", "number1")).await.unwrap();
    known(&a, "view=other", None).await;
    let version = gatherer.update([2], "beta").await;
    a.caught_up("gatherer", version).await;
    a.handle.reload(settings("first", "alpha")).await.unwrap();
    let anew = known(&a, "view=first", Some(&first)).await;
    assert_ne!(anew.view, first.view);
    assert_eq!((&*anew.kind, &anew.updated), ("snapshot", &urls([1, 3, 4])));
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_made_far_narrower_waits_for_a_confirmation_below() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=50, "alpha beta").await;
    let version = gatherer.update(51..=300, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let a = Running::start(with_view(dir.path(), &gatherer, "first", "alpha")).await;
    a.caught_up("gatherer", version).await;
    let part = Some(Part::View("first".to_owned()));
    let source = Source { kind: Kind::Broker, part, ..Source::gatherer("a", url_of(a.address)) };
    let b = Running::start(config(&dir.path().join("b"), vec![source])).await;
    finds(&b, "object", 300).await;
    a.handle.reload(with_view(dir.path(), &gatherer, "first", "beta")).await.unwrap();
    let status = b.until("held", |it| it.sources[0].held.is_some()).await;
    let held = status.sources[0].held.clone().unwrap();
    assert!(held.contains("250") && held.contains("300"), "{held}");
    assert_eq!((status.objects, b.total("object").await), (300, 300));
    // What comes into the view is taken, and the rest stays until somebody confirms it.
    gatherer.update([301], "alpha beta").await;
    finds(&a, "number301", 1).await;
    b.handle.pull(Some("a")).unwrap();
    finds(&b, "number301", 1).await;
    let status = b.status().await;
    assert!(status.sources[0].held.is_some() && status.objects == 301, "{status:#?}");
    b.handle.confirm_source("a").unwrap();
    finds(&b, "object", 51).await;
    let status = b.until("not held", |it| it.sources[0].held.is_none()).await;
    assert_eq!(status.objects, 51);
    for broker in [a, b] {
        broker.stop().await;
    }
}
