//! Tests of searches of brokers that know each other by their settings alone.

use std::net::TcpListener;
use std::path::Path;

use broker::answer::{Answer, AskedState};
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

fn state_of(answer: &Answer, broker: &Running) -> AskedState {
    let url = url_of(broker.address);
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
        assert_eq!(state_of(&answer, &b), AskedState::Answered);
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
    assert_eq!((answer.total, state_of(&answer, &closed)), (0, AskedState::Closed));
    let with = peer(closed.address, &format!("token = \"{TOKEN}\"\n"));
    let with = Running::start(settings(&dir.path().join("b"), &with)).await;
    let mut total = 0;
    // The index follows the pull.
    while total != 3 {
        let answer = everywhere(&with, "").await;
        assert_eq!(state_of(&answer, &closed), AskedState::Answered, "{answer:?}");
        total = answer.total;
    }
    for broker in [with, without, closed] {
        broker.stop().await;
    }
}
