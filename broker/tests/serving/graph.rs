//! Tests of brokers that pull each other, and several sources of the same objects: what its gatherer has deleted
//! goes, and nothing else.

use broker::source::Source;
use collection::{Change, ORIGIN_VERSION};
use net::clock;

use crate::common::{Origin, Running, STEP_MAX, client, config, object_url, record, url_of};

/// Waits until a broker finds so many objects.
async fn finds(broker: &Running, count: u64) {
    let end = clock::monotonic() + STEP_MAX;
    while broker.total("object").await != count {
        assert!(clock::monotonic() < end, "{:#?}", broker.status().await);
        broker.handle.pull(None).unwrap();
        tokio::task::yield_now().await;
    }
}

/// Returns the path by which an object came to a broker, as its API tells it.
async fn path(broker: &Running, gatherer: &Origin, n: u64) -> String {
    let mut url = url_of(broker.address).join("object").unwrap();
    let oid = format!("{}:{}", gatherer.id, object_url(n));
    url.query_pairs_mut().append_pair("oid", &oid).append_pair("format", "soif");
    let response = client().send(net::client::Request::get(url)).await.unwrap();
    let text = response.require_success().await.unwrap().bytes(1 << 20).await.unwrap();
    let record = soif::parse(&text).unwrap().remove(0);
    record.text("Origin-Path").unwrap_or_default().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_pull_each_other_keep_nothing_alive() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |name: &str, sources: Vec<Source>| config(&dir.path().join(name), sources);
    let from = |broker: &Running, name: &str| Source::gatherer(name, url_of(broker.address));
    let a = Running::start(settings("a", vec![gatherer.source("gatherer")])).await;
    let b = Running::start(settings("b", vec![from(&a, "a")])).await;
    let c = Running::start(settings("c", vec![from(&a, "a"), from(&b, "b")])).await;
    let all = vec![gatherer.source("gatherer"), from(&b, "b"), from(&c, "c")];
    a.handle.reload(settings("a", all)).await.unwrap();
    let brokers = [&a, &b, &c];
    for broker in brokers {
        finds(broker, 3).await;
    }
    let (id_a, id_b) = (a.status().await.id, b.status().await.id);
    assert_eq!([path(&a, &gatherer, 1).await, path(&c, &gatherer, 1).await], ["", &*id_a]);
    // What the gatherer deletes goes everywhere.
    gatherer.delete([1]).await;
    for broker in brokers {
        finds(broker, 2).await;
    }
    // So does what is only let go, and has no version: its source is not asked any more.
    let rest = vec![from(&b, "b"), from(&c, "c")];
    a.handle.reload(settings("a", rest)).await.unwrap();
    for broker in brokers {
        finds(broker, 0).await;
    }
    // Where another way leads to it, it stays.
    a.handle.reload(settings("a", vec![gatherer.source("gatherer")])).await.unwrap();
    let sources = vec![from(&b, "b")];
    c.handle.reload(settings("c", sources)).await.unwrap();
    finds(&c, 2).await;
    assert_eq!(path(&c, &gatherer, 2).await, format!("{id_a} {id_b}"));
    for broker in [a, b, c] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_gatherer_deletes_what_others_hold() {
    let gatherer = Origin::with_key(7).await;
    let version = gatherer.update(1..=4, "alpha").await;
    // One has copied all that the gatherer sends; the other one passes on its objects for ever.
    let (poser, other) =
        (Origin::posing_as(&gatherer).await, Origin::start("00000000000000bb").await);
    let copies = || {
        let copy = |n| {
            let mut record = record(&gatherer.id, n, "alpha");
            record.push(ORIGIN_VERSION, version.to_string());
            Change::Update(record)
        };
        (1..=4).map(copy).collect::<Vec<_>>()
    };
    let dir = tempfile::tempdir().unwrap();
    let sources = [(&gatherer, "gatherer"), (&poser, "poser"), (&other, "other")];
    let settings = || config(dir.path(), sources.map(|(it, name)| it.source(name)).into());
    let versions = [version, poser.commit(copies()).await, other.commit(copies()).await];
    let mut broker = Running::start(settings()).await;
    for ((_, name), version) in sources.iter().zip(versions) {
        broker.caught_up(name, version).await;
        let warnings = broker.source(name).await.warnings;
        let is_named = warnings.iter().any(|it| it.contains("its feed is not at http"));
        assert_eq!(is_named, *name == "poser", "{warnings:?}");
    }
    for (lost, gone) in [(1, 2), (3, 4)] {
        let deleted = poser.delete([lost]).await;
        broker.caught_up("poser", deleted).await;
        assert_eq!(broker.total(&format!("number{lost}")).await, 1);
        let deleted = gatherer.delete([gone]).await;
        broker.caught_up("gatherer", deleted).await;
        assert_eq!(broker.total(&format!("number{gone}")).await, 0);
        broker.stop().await;
        broker = Running::start(settings()).await;
    }
    assert_eq!(broker.total("object").await, 2);
    broker.stop().await;
}
