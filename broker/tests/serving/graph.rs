//! Tests of brokers that pull each other: nothing that is gone stays because of that.

use broker::source::Source;
use net::clock;

use crate::common::{Origin, Running, STEP_MAX, client, config, object_url, url_of};

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
