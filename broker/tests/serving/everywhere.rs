//! Tests of searches of brokers that know each other by their settings alone.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use axum::routing::get;
use axum::{Json, Router};
use broker::answer::{Answer, AskedBroker, AskedState, Hit, Statistics};
use broker::config::Config;
use collection::feed::{FeedOptions, FeedServer, Selection};
use collection::{Batch, Change, Collection, Options, Stamp};
use net::client::Request;
use net::clock;
use net::identity::Identity;
use net::shutdown::Shutdown;
use soif::Record;

use crate::cascade::finds;
use crate::common::{Origin, Running, STEP_MAX, client, config, url_of};

const TOKEN: &str = "a-token-of-the-union";

/// Returns the settings of a broker with these lines.
fn settings(folder: &Path, lines: &str) -> Config {
    let read = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n{lines}")).unwrap();
    let mut config = config(folder, Vec::new());
    (config.everywhere, config.daemon.access) = (read.everywhere, read.daemon.access);
    config
}

fn peer(address: SocketAddr, more: &str) -> String {
    format!("[[peer]]\nurl = \"http://{address}/\"\n{more}")
}

async fn everywhere(broker: &Running, parameters: &str) -> Answer {
    let path = format!("api/search?q=object&scope=everywhere{parameters}");
    let url = url_of(broker.address).join(&path).unwrap();
    let answer = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
    serde_json::from_slice(&answer)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&answer)))
}

/// Returns what came of the broker at an address; `None`: it was not asked.
fn asked_of(answer: &Answer, address: SocketAddr) -> Option<&AskedBroker> {
    let url = url_of(address);
    let asked = &answer.everywhere.as_ref().unwrap().asked;
    asked.iter().find(|it| it.broker.url == url.as_str())
}

fn state_of(answer: &Answer, address: SocketAddr) -> AskedState {
    asked_of(answer, address).unwrap_or_else(|| panic!("{answer:?}")).state
}

/// Searches until the answer is as wanted.
async fn until(broker: &Running, parameters: &str, is_so: impl Fn(&Answer) -> bool) -> Answer {
    let end = clock::monotonic() + STEP_MAX;
    loop {
        let answer = everywhere(broker, parameters).await;
        if is_so(&answer) {
            return answer;
        }
        assert!(clock::monotonic() < end, "{answer:?}");
    }
}

/// Returns a content summary of three objects.
fn summary(id: &str, name: &str, terms: &str) -> Record {
    let mut record = Record::new("SUMMARY", format!("urn:harvest:summary:{id}"));
    record.push("Gatherer-Id", id);
    record.push("Type", "Summary");
    record.push("Gatherer-Name", name);
    record.push("Objects", "3");
    record.push("Words", "30");
    record.push("Terms", terms);
    record
}

/// Starts what is no broker and answers as one: it has these records in the part of its feed with summaries, boasts in
/// statistics and finds a million objects. It ends with the runtime of the test.
async fn liar(folder: &Path, identity: &Identity, records: Vec<Record>) -> SocketAddr {
    let now = Stamp(clock::now_ms());
    let (collection, _) = Collection::open(folder, Options::default(), now).unwrap();
    let changes = records.into_iter().map(Change::Update).collect();
    collection.commit(Batch { changes, notes: Vec::new() }, now).unwrap();
    let owner = Some(format!("{} {}", identity.id(), identity.key()));
    let feed = FeedServer::new(collection, FeedOptions { owner, ..FeedOptions::default() });
    let takes = Arc::new(|_: &Record| true);
    let selection = Selection { name: "summaries".to_owned(), takes, among: None };
    let words = BTreeMap::from([("object".to_owned(), 5)]);
    let statistics = Statistics { documents: 3, words, ..Statistics::default() };
    let hit = |n: u64| {
        let url = format!("http://liar.example/{n}");
        Hit { oid: format!("{}:{url}", identity.id()), url, score: 1.0, ..Hit::default() }
    };
    let (total, hits) = (1_000_000, (0..12).map(hit).collect());
    let answer = Answer { total, total_all: total, hits, ..Answer::default() };
    let router = Router::new()
        .route("/api/search", get(move || async move { Json(answer) }))
        .route("/api/statistics", get(move || async move { Json(statistics) }))
        .fallback(move |request: axum::extract::Request| {
            let (feed, selection) = (feed.clone(), selection.clone());
            async move {
                let mut request = request.map(drop);
                let answer = if request.uri().path() == "/feed" {
                    let asked = request.uri().query().unwrap_or_default();
                    let rest: Vec<_> =
                        asked.split('&').filter(|it| !it.starts_with("q=")).collect();
                    *request.uri_mut() = format!("/feed?{}", rest.join("&")).parse().unwrap();
                    feed.respond_selected(request, &selection).await
                } else {
                    feed.respond(request).await
                };
                answer.map(axum::body::Body::new)
            }
        });
    let listener = net::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let limits = net::server::Limits::default();
        net::server::serve(listener, router, limits, Shutdown::new()).await.unwrap();
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_broker_is_believed_for_itself_alone_and_what_it_boasts_is_shown() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let c = Running::start(config(&dir.path().join("c"), vec![gatherer.source("gatherer")])).await;
    finds(&c, "object", 3).await;
    // It says that the other one has nothing of the kind, and is elsewhere.
    let identity = Identity::of(&[7; 32]).unwrap();
    let mut server = Record::new("BROKER", "http://127.0.0.1:9/");
    server.push("Gatherer-Id", c.handle.id());
    server.push("Type", "Broker");
    server.push("Title", "Invented");
    let records = vec![
        summary(c.handle.id(), "Forged", "nothing 3 3 9"),
        summary("00000000000000bb", "Invented", "object 3 3 9"),
        summary(&identity.id(), "Liar", "object 999 3 99999999"),
        server,
    ];
    let liar = liar(&dir.path().join("liar"), &identity, records).await;
    let both = format!("{}{}", peer(liar, ""), peer(c.address, ""));
    let a = Running::start(settings(&dir.path().join("a"), &both)).await;
    // Their names are in their summaries.
    let answer = until(&a, "", |answer| {
        let [of_liar, of_c] = [liar, c.address].map(|it| asked_of(answer, it));
        of_liar.is_some_and(|it| it.broker.name == "Liar" && it.warnings.len() == 5)
            && of_c.is_some_and(|it| it.broker.name == "Test" && it.total == 3)
    })
    .await;
    let of_c = asked_of(&answer, c.address).unwrap();
    assert_eq!((&of_c.warnings, &*of_c.broker.id), (&Vec::new(), c.handle.id()));
    assert_eq!(answer.everywhere.as_ref().unwrap().known, 3, "{answer:?}");
    let of_liar = asked_of(&answer, liar).unwrap();
    assert_eq!((of_liar.total, answer.hits.len()), (2 * 3 + 1_000, 10), "{answer:?}");
    let status = a.status().await;
    for part in ["a word than there are", "score", "statistics", "to find more", "more hits"] {
        let warnings = of_liar.warnings.iter().filter(|it| it.contains(part)).count();
        let is_of_liar = |it: &&String| it.contains("broker Liar at ") && it.contains(part);
        let lines = status.warnings.iter().filter(is_of_liar).count();
        assert_eq!((warnings, lines), (1, 1), "{part}: {:?} {of_liar:?}", status.warnings);
    }
    assert_eq!(status.warnings.len(), 5);
    // The settings give it the id of another one.
    let named = peer(c.address, "id = \"00000000000000bb\"\n");
    let b = Running::start(settings(&dir.path().join("b"), &named)).await;
    let is_told = |of: &[String]| of.iter().any(|it| it.contains("of another id than"));
    until(&b, "", |answer| {
        asked_of(answer, c.address).is_some_and(|it| is_told(&it.warnings) && it.total == 3)
    })
    .await;
    assert!(is_told(&b.status().await.warnings));
    for broker in [a, b, c] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_find_is_not_held_against_the_objects_of_who_asks_them() {
    let (many, one) =
        (Origin::start("00000000000000aa").await, Origin::start("00000000000000ab").await);
    many.update(1..=1_100, "alpha").await;
    one.update(2_000..=2_000, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let c = Running::start(config(&dir.path().join("c"), vec![many.source("many")])).await;
    finds(&c, "object", 1_100).await;
    let of_b = settings(&dir.path().join("b"), &peer(c.address, ""));
    let b = Running::start(Config { sources: vec![one.source("one")], ..of_b }).await;
    finds(&b, "object", 1).await;
    let a = Running::start(settings(&dir.path().join("a"), &peer(b.address, ""))).await;
    // Its name is in its summary, by which it has one object.
    until(&a, "&hops=1", |answer| {
        asked_of(answer, b.address).is_some_and(|it| it.broker.name == "Test" && it.total == 1_101)
            && answer.total == 1_101
    })
    .await;
    for broker in [a, b, c] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_go_on_as_far_as_they_may_and_never_round() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let c = Running::start(config(&dir.path().join("c"), vec![gatherer.source("gatherer")])).await;
    finds(&c, "object", 3).await;
    // The first and the second know each other, and the second alone knows the third.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let both = format!("{}{}", peer(port, ""), peer(c.address, ""));
    let other = Origin::start("00000000000000ab").await;
    other.update(9..=9, "beta").await;
    let of_b = settings(&dir.path().join("b"), &both);
    let b = Running::start(Config { sources: vec![other.source("other")], ..of_b }).await;
    finds(&b, "object", 1).await;
    let mut of_a = settings(&dir.path().join("a"), &peer(b.address, ""));
    of_a.daemon.listen = port;
    let a = Running::start(of_a).await;
    // What the others have is found once they tell of it.
    let end = clock::monotonic() + STEP_MAX;
    while everywhere(&b, "").await.total != 4 || everywhere(&a, "").await.total != 1 {
        assert!(clock::monotonic() < end, "not all are asked");
    }
    for hops in 1..=3 {
        let answer = everywhere(&a, &format!("&hops={hops}")).await;
        assert_eq!((answer.total, answer.hits.len()), (4, 4), "{hops}: {answer:?}");
        assert_eq!(state_of(&answer, b.address), AskedState::Answered);
        // Who was asked in turn is named, and each hit is that of who has it.
        assert_eq!(state_of(&answer, c.address), AskedState::Answered);
        let url = url_of(c.address);
        let of_c = |it: &&Hit| it.broker.as_ref().is_some_and(|it| it.url == url.as_str());
        assert_eq!(answer.hits.iter().filter(of_c).count(), 3, "{answer:?}");
        let asked = &answer.everywhere.as_ref().unwrap().asked;
        assert!(asked.iter().all(|it| it.via.is_some() == (it.broker.url == url.as_str())));
    }
    // One that is sent round by others is answered once, wherever they ask.
    let sent = "&hops=1&search=0123456789abcdef0123456789abcdef&within=60000";
    assert_eq!(everywhere(&b, sent).await.total, 4);
    for again in
        [sent, &sent.replace("hops=1&", "hops=0&scope=here&").replace("&scope=everywhere", "")]
    {
        let url = url_of(b.address).join(&format!("api/search?q=object{again}")).unwrap();
        assert_eq!(client().send(Request::get(url)).await.unwrap().status, 409, "{again}");
    }
    for broker in [a, b, c] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_a_token_is_named_as_closed_and_asked_with_it() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let consumer =
        format!("[[consumer]]\nname = \"union\"\ntoken = \"{TOKEN}\"\nmay = [\"search\"]\n");
    let mut closed = settings(&dir.path().join("c"), &consumer);
    closed.sources = vec![gatherer.source("gatherer")];
    let closed = Running::start(closed).await;
    closed.until("pulled", |it| it.objects == 3).await;
    let without = settings(&dir.path().join("a"), &peer(closed.address, ""));
    let without = Running::start(without).await;
    let answer = everywhere(&without, "").await;
    assert_eq!((answer.total, state_of(&answer, closed.address)), (0, AskedState::Closed));
    let with = peer(closed.address, &format!("token = \"{TOKEN}\"\n"));
    let with = Running::start(settings(&dir.path().join("b"), &with)).await;
    let mut total = 0;
    // The index follows the pull.
    while total != 3 {
        let answer = everywhere(&with, "").await;
        assert_eq!(state_of(&answer, closed.address), AskedState::Answered, "{answer:?}");
        total = answer.total;
    }
    for broker in [with, without, closed] {
        broker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_costs_the_deadline_and_replicas_answer_in_its_place() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=3, "alpha").await;
    let dir = tempfile::tempdir().unwrap();
    let c = Running::start(config(&dir.path().join("c"), vec![gatherer.source("gatherer")])).await;
    finds(&c, "object", 3).await;
    // The one takes connections and says nothing, the other is not there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let deadline = "[everywhere]\ndeadline = \"500 ms\"\n";
    let all = [silent, dead, c.address].map(|it| peer(it, "")).concat();
    let a = Running::start(settings(&dir.path().join("a"), &format!("{deadline}{all}"))).await;
    let began = clock::monotonic();
    let answer = everywhere(&a, "").await;
    let took = clock::monotonic().duration_since(began).as_millis();
    assert_eq!((answer.total, answer.hits.len()), (3, 3), "{answer:?}");
    assert_eq!(state_of(&answer, silent), AskedState::Late);
    assert_eq!(state_of(&answer, dead), AskedState::Failed);
    assert_eq!(state_of(&answer, c.address), AskedState::Answered);
    assert!(took < 5 * 500, "{took} ms");
    a.stop().await;
    for first in [silent, dead] {
        let both = format!("url = [\"http://{first}/\", \"http://{}/\"]", c.address);
        let folder = dir.path().join(first.port().to_string());
        let broker =
            Running::start(settings(&folder, &format!("{deadline}[[peer]]\n{both}\n"))).await;
        let answer = everywhere(&broker, "").await;
        assert_eq!(answer.total, 3, "{first}: {answer:?}");
        broker.stop().await;
    }
    c.stop().await;
}
