//! Tests of searches of brokers that know each other by their settings alone.

use std::net::TcpListener;
use std::path::Path;

use broker::answer::{Answer, AskedState, Hit};
use broker::config::Config;
use net::client::Request;
use net::clock;

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

fn peer(address: std::net::SocketAddr, more: &str) -> String {
    format!("[[peer]]\nurl = \"http://{address}/\"\n{more}")
}

async fn everywhere(broker: &Running, parameters: &str) -> Answer {
    let path = format!("api/search?q=object&scope=everywhere{parameters}");
    let url = url_of(broker.address).join(&path).unwrap();
    let answer = client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap();
    serde_json::from_slice(&answer)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&answer)))
}

fn state_of(answer: &Answer, address: std::net::SocketAddr) -> AskedState {
    let url = url_of(address);
    let asked = &answer.everywhere.as_ref().unwrap().asked;
    asked
        .iter()
        .find(|it| it.broker.url == url.as_str())
        .unwrap_or_else(|| panic!("{asked:?}"))
        .state
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
    // Who has just told that it has nothing is not asked until it tells of more.
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
