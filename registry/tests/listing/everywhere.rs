//! Searches everywhere: brokers that find each other through a registry.

use std::path::Path;
use std::time::Duration;

use axum::Router;
use broker::answer::{Answer, AskedState};
use broker::route::summary::QUERY;
use broker::source::{Kind, Source};
use collection::feed::{FeedOptions, FeedServer};
use collection::pull::{FeedClient, PullLimits, Puller};
use collection::{Batch, Change, Collection, Options, Stamp};
use net::clock;
use net::shutdown::Shutdown;
use soif::Record;
use url::Url;

use crate::common::*;

const DAY: Duration = Duration::from_secs(86_400);

/// Serves objects with these titles as a gatherer does; returns its address.
async fn gatherer(folder: &Path, id: &str, titles: &[&str]) -> Url {
    let now = Stamp(clock::now_ms());
    let (collection, _) = Collection::open(folder, Options::default(), now).unwrap();
    let change = |(n, title): (u64, &&str)| {
        let mut record = Record::new("FILE", format!("http://{id}.example/{n}"));
        record.push("Gatherer-Id", id);
        record.push("Type", "Text");
        record.push("Title", *title);
        record.push("Full-Text", format!("All that is known of {title}"));
        Change::Update(record)
    };
    let changes = (1..).zip(titles).map(change).collect();
    collection.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
    let feed = FeedServer::new(collection, FeedOptions::default());
    let router = Router::new().fallback(move |request: axum::extract::Request| {
        let feed = feed.clone();
        async move { feed.respond(request.map(drop)).await.map(axum::body::Body::new) }
    });
    let listener = net::server::bind(HERE).await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let limits = net::server::Limits::default();
    tokio::spawn(net::server::serve(listener, router, limits, Shutdown::new()));
    url
}

async fn search(broker: &Url, query: &str) -> Answer {
    let mut url = broker.join("api/search").unwrap();
    url.query_pairs_mut().append_pair("q", query).append_pair("scope", "everywhere");
    get_json(url).await
}

async fn until_found(broker: &Url, query: &str, is_so: impl Fn(&Answer) -> bool) -> Answer {
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let answer = search(broker, query).await;
        if is_so(&answer) {
            return answer;
        }
        assert!(clock::monotonic() < end, "{query}: {answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_search_asks_those_that_have_something() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let mut brokers = Vec::new();
    for (name, id, titles) in [
        ("Geology", "00000000000000a1", ["Granite rocks", "Basalt rocks", "Chalk rocks"]),
        ("Botany", "00000000000000a2", ["Ferns and plants", "Desert plants", "Water plants"]),
        ("Astronomy", "00000000000000a3", ["Double stars", "Variable stars", "Planets and plants"]),
    ] {
        let source = gatherer(&dir.path().join(id), id, &titles).await;
        let source = Source::gatherer("source", source);
        let data = dir.path().join(name);
        brokers.push(broker_of(name, &data, &registry.url, Some(source)).await);
    }
    // A broker counts soon after it has begun, by what it has.
    let began = clock::monotonic();
    let has_asked = |answer: &Answer, names: &[&str]| {
        let asked = answer.everywhere.as_ref().map(|it| &it.asked[..]).unwrap_or_default();
        let mut them: Vec<&str> = asked.iter().map(|it| &*it.broker.name).collect();
        them.sort_unstable();
        them == names
    };
    let answer = until_found(&brokers[0].url, "desert plants", |it| {
        it.total == 4 && has_asked(it, &["Astronomy", "Botany"])
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(50), "ten seconds are promised");
    assert_eq!(answer.hits[0].title, "Desert plants");
    assert_eq!(answer.hits[0].broker.as_ref().unwrap().name, "Botany");
    assert_eq!(answer.everywhere.as_ref().unwrap().known, 3);
    // What only one has is asked of that one.
    let answer = until_found(&brokers[0].url, "basalt", |it| has_asked(it, &["Geology"])).await;
    assert_eq!((answer.total, &*answer.hits[0].title), (1, "Basalt rocks"));
    let answer = search(&brokers[0].url, "zebras").await;
    assert!(answer.notice.unwrap().message.contains("none of the brokers"));
    // Summaries are in no count, list or search.
    for broker in &brokers {
        assert_eq!(broker.handle.collection().len(), 3);
    }
    // One that is killed is named, and the others answer.
    let gone = brokers.remove(1);
    gone.kill().await;
    let answer = search(&brokers[0].url, "desert plants").await;
    let asked = answer.everywhere.unwrap().asked;
    let botany = asked.iter().find(|it| it.broker.name == "Botany").unwrap();
    assert!(matches!(botany.state, AskedState::Failed | AskedState::Late), "{botany:?}");
    assert_eq!((answer.total, &*answer.hits[0].title), (1, "Planets and plants"));
    // It is not asked again and again, and named still.
    let rests = |answer: &Answer| {
        let asked = &answer.everywhere.as_ref().unwrap().asked;
        let problem = asked.iter().find(|it| it.broker.name == "Botany").unwrap().problem.as_ref();
        problem.is_some_and(|it| it.contains("asked again later"))
    };
    until_found(&brokers[0].url, "desert plants", rests).await;
    for broker in brokers {
        broker.stop().await;
    }
    registry.stop().await;
}

/// Returns whose content summaries a daemon's feed has, each with the number of objects in it.
async fn summaries(daemon: &Url) -> Vec<(String, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let now = Stamp(clock::now_ms());
    let (collection, _) = Collection::open(folder.path(), Options::default(), now).unwrap();
    let feed = FeedClient::new(client(), daemon.clone(), "daemon".to_owned())
        .allow_private(true)
        .part(Some(("q", QUERY.to_owned())));
    Puller::new(feed, collection.clone(), PullLimits::default()).pull(None).await.unwrap();
    let of = |change: Change| match change {
        Change::Update(record) => {
            let id = record.text("Gatherer-Id").unwrap().into_owned();
            Some((id, record.number("Objects").unwrap()))
        }
        _ => None,
    };
    let mut found: Vec<_> =
        collection.scan(0).unwrap().filter_map(|it| of(it.unwrap().change)).collect();
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registry_alone_passes_summaries_on() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(settings(&dir.path().join("r"), DAY)).await;
    let (id, titles) = ("00000000000000a1", ["Granite rocks", "Basalt rocks"]);
    let source = Source::gatherer("source", gatherer(&dir.path().join(id), id, &titles).await);
    let lower = broker_of("Lower", &dir.path().join("l"), &registry.url, Some(source)).await;
    let source = Source::gatherer("source", lower.url.clone());
    let source = Source { kind: Kind::Broker, follow: true, ..source };
    let upper = broker_of("Upper", &dir.path().join("u"), &registry.url, Some(source)).await;
    // What one broker has of another is the objects: neither the summary, nor that in a count.
    let of = |it: &Running<broker::server::Handle>| (it.handle.id().to_owned(), 2);
    let mut both = vec![of(&lower), of(&upper)];
    both.sort();
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let found = summaries(&registry.url).await;
        if found == both {
            break;
        }
        assert!(clock::monotonic() < end, "{found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for broker in [lower, upper] {
        assert_eq!(summaries(&broker.url).await, [of(&broker)]);
        assert_eq!(broker.handle.collection().len(), 2);
        broker.stop().await;
    }
    registry.stop().await;
}
