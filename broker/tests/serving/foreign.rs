//! Tests of engines of other makes: an SRU server that others wrote, and Atom by an OpenSearch description.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use broker::answer::{Answer, AskedState};
use broker::config::Config;
use net::client::Request;
use net::shutdown::Shutdown;

use crate::cascade::finds;
use crate::common::{Origin, Running, client, config, object_url, url_of};
use crate::peer::{self, Peer, free_port};

/// Starts a server of others that answers by SRU with the same records in MARCXML to each question.
fn sru() -> (Peer, peer::Running) {
    let (peer, port) = (Peer::unpack("yaz"), free_port());
    let mut command = peer.command("usr/bin/yaz-ztest");
    command.arg(format!("tcp:127.0.0.1:{port}"));
    let running = peer::Running::start(command, port);
    (peer, running)
}

/// Serves the OpenSearch description of a broker's Atom feeds; ends with the runtime of the test.
async fn described(broker: SocketAddr) -> SocketAddr {
    let text = format!(
        "<?xml version=\"1.0\"?><OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\
         <Url type=\"text/html\" template=\"http://{broker}/?q={{searchTerms}}\"/>\
         <Url type=\"application/atom+xml\" template=\"http://{broker}/atom?q={{searchTerms}}&amp;limit={{count?}}\"/>\
         </OpenSearchDescription>"
    );
    let listener = net::server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/opensearch.xml", get(move || async move { text }));
    tokio::spawn(async move {
        let limits = net::server::Limits::default();
        net::server::serve(listener, router, limits, Shutdown::new()).await.unwrap();
    });
    address
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

async fn body(broker: &Running, path: &str) -> Vec<u8> {
    let url = url_of(broker.address).join(path).unwrap();
    client().send(Request::get(url)).await.unwrap().bytes(1 << 20).await.unwrap().into()
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_of_other_makes_are_asked_and_shown_apart() {
    let (gatherer, other) =
        (Origin::start("00000000000000aa").await, Origin::start("00000000000000ab").await);
    gatherer.update(1..=2, "alpha").await;
    other.update(3..=5, "beta").await;
    let dir = tempfile::tempdir().unwrap();
    let theirs = Running::start(config(&dir.path().join("b"), vec![other.source("other")])).await;
    finds(&theirs, "object", 3).await;
    let (_peer, sru) = sru();
    let (description, dead) = (described(theirs.address).await, free_port());
    let lines = format!(
        "name = \"n\"\ndata = \"d\"\n\
         [[foreign]]\nname = \"Atoms\"\nurl = \"http://{description}/opensearch.xml\"\n\
         [[foreign]]\nname = \"Books\"\nprotocol = \"sru\"\nurl = \"http://{}/Default?recordSchema=marcxml\"\n\
         [[foreign]]\nname = \"Gone\"\nprotocol = \"sru\"\nurl = \"http://127.0.0.1:{dead}/\"\n",
        sru.address
    );
    let everywhere = Config::parse(&lines).unwrap().everywhere;
    let own = config(&dir.path().join("a"), vec![gatherer.source("gatherer")]);
    let broker = Running::start(Config { everywhere, ..own }).await;
    finds(&broker, "object", 2).await;
    let asked = async |parameters: &str| {
        let path = format!("api/search?scope=everywhere&{parameters}");
        let body = body(&broker, &path).await;
        let answer: Answer = serde_json::from_slice(&body).unwrap();
        (answer.total, answer.everywhere.unwrap().foreign)
    };
    // What they have is not among the hits.
    let (total, foreign) = asked("q=object").await;
    let foreign = foreign.unwrap();
    let states: Vec<_> = foreign.asked.iter().map(|it| (&*it.broker.name, it.state)).collect();
    let answered = AskedState::Answered;
    assert_eq!(
        states,
        [("Atoms", answered), ("Books", answered), ("Gone", AskedState::Failed)],
        "{foreign:?}"
    );
    assert_eq!((total, foreign.asked[0].total), (2, 3));
    let of = |engine: &str| {
        let hits = foreign.hits.iter().filter(|it| it.engines == [engine]);
        hits.map(|it| (it.title.clone(), it.url.clone())).collect::<Vec<_>>()
    };
    let mut atoms = of("Atoms");
    atoms.sort();
    // An entry is the object's page there.
    let page = |n| {
        format!(
            "{}object?oid={}",
            url_of(theirs.address),
            encoded(&format!("{}:{}", other.id, object_url(n)))
        )
    };
    let expected: Vec<_> = (3..=5).map(|n| (format!("Object {n}"), page(n))).collect();
    assert_eq!(atoms, expected);
    assert!(of("Books").contains(&("How to program a computer".to_owned(), String::new())));
    // Each is asked for what it understands, and once.
    let (_, foreign) = asked("q=title:object").await;
    let problems = foreign.unwrap().asked.into_iter().map(|it| it.problem.unwrap_or_default());
    assert!(problems.into_iter().all(|it| it.contains("words and phrases")));
    assert_eq!(asked("q=object&offset=1").await.1, None);
    let page = String::from_utf8(body(&broker, "?q=object&scope=everywhere").await).unwrap();
    for part in ["From other search engines", "How to program a computer", "at <bdi>Atoms</bdi>"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    for broker in [broker, theirs] {
        broker.stop().await;
    }
}
