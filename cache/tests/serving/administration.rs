//! Tests of the administration: its pages and their JSON, what is listed, and what is removed.

use std::net::{SocketAddr, UdpSocket};

use crate::common::{Site, answer, piecewise};
use cache::neighbors::Neighbor;
use cache::resolution::Kind;
use cache::{Config, Listing, Purged, Statistics};
use http::{Method, Request, Response};
use net::body::{self, Body};
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, mpsc};

/// Length of the long body, which is stored on disk alone.
const LONG: usize = 1_500_000;

/// A cache before an origin, with its administration.
struct Administered {
    site: Site,
}

/// Answers by path: some fail, one is long, some depend on a header.
fn origin(request: &Request<Body>) -> Response<Body> {
    match request.uri().path() {
        "/fails" => answer(503, &[("cache-control", "no-store")], body::empty()),
        "/long" => answer(200, &[("cache-control", "max-age=60")], body::full("x".repeat(LONG))),
        _ => answer(200, &[("cache-control", "max-age=60"), ("vary", "x")], body::full("12345")),
    }
}

fn read<T: DeserializeOwned>(json: &str) -> T {
    axum::Json::from_bytes(json.as_bytes()).unwrap().0
}

impl Administered {
    async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let script = |request: Request<Body>, _| async move { origin(&request) };
        Self { site: Site::with(script, change).await }
    }

    async fn ask(&self, method: Method, path: &str, is_known: bool) -> (u16, String) {
        self.site.administer(method, path, is_known).await
    }

    async fn get(&self, path: &str) -> String {
        let (status, body) = self.ask(Method::GET, path, true).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    async fn report<T: DeserializeOwned>(&self, path: &str) -> T {
        read(&self.get(path).await)
    }

    async fn listed(&self, query: &str) -> Listing {
        self.report(&format!("objects?format=json&{query}")).await
    }

    async fn purge(&self, pattern: &str) -> u64 {
        let (status, body) = self.ask(Method::POST, &format!("purge?match={pattern}"), true).await;
        assert_eq!(status, 200, "{body}");
        read::<Purged>(&body).purged
    }
}

#[tokio::test]
async fn statistics_are_told_and_names_only_with_the_token() {
    let it = Administered::new(|_| ()).await;
    for path in ["a?b&c", "a?b&c", "a?b&c", "d", "fails"] {
        it.site.get(path).await;
    }
    it.site.get("long").await;
    let all: Statistics = it.report("top?format=json").await;
    let lately: Vec<_> = all.lately.iter().map(|it| (it.name.as_str(), it.span.totals)).collect();
    let [hour, start] = [&lately[1], &lately[3]];
    assert_eq!((hour.0, hour.1.requests, hour.1.hits, hour.1.hit_bytes), ("last hour", 6, 2, 10));
    assert_eq!((start.0, start.1.bytes), ("since the start", 20 + LONG as u64));
    assert_eq!((all.minutes.len(), all.routes["DIRECT"]), (1, 4));
    let miss = all.answers.iter().find(|it| it.from == "miss").unwrap();
    assert_eq!((miss.requests, miss.bytes), (4, 10 + LONG as u64));
    assert_eq!((all.memory.objects, all.memory.classes[0].bytes), (2, 10));
    let named = all.named.unwrap();
    let most = &named.objects[0];
    assert_eq!((most.url.clone(), most.requests), (format!("{}a?b&c", it.site.origin), 3));
    let home = &named.origins[0];
    let host = it.site.origin.authority();
    assert_eq!((home.host.as_str(), home.requests, home.failures), (host, 4, 1));
    let page = it.get("top").await;
    assert!(page.contains("a?b&amp;c") && page.contains("33.3 % hits"), "{page}");

    let (status, page) = it.ask(Method::GET, "statistics", false).await;
    assert!(status == 200 && page.contains("33.3 % hits") && !page.contains(host), "{page}");
    for path in ["top", "objects", "objects?format=json"] {
        let (status, told) = it.ask(Method::GET, path, false).await;
        assert!(status == 401 && told.contains("needs the token"), "{told}");
    }
    let metrics = it.get("metrics").await;
    let line = format!("\nharvest_cache_answered_bytes_total{{from=\"miss\"}} {}\n", LONG + 10);
    assert!(metrics.contains(&line) && metrics.contains("harvest_cache_disk_fails 0"), "{metrics}");
    assert!(!metrics.contains(host), "no names");
    let (_, overview) = it.ask(Method::GET, "", false).await;
    assert!(overview.contains("href=\"statistics\"") && overview.contains("Nothing is broken"));
}

#[tokio::test]
async fn what_is_stored_is_listed_from_memory_and_disk() {
    let it = Administered::new(|config| config.memory_bytes = 1 << 18).await;
    it.site.get_with("a", &[("x", "<b>")]).await;
    it.site.get_with("a", &[("x", "2")]).await;
    it.site.get("long").await;
    // Memory has no room for all of them.
    for n in 0..3_000 {
        it.site.get(&format!("n{n}")).await;
    }
    let all = it.listed("limit=10000").await;
    assert_eq!((all.objects.len(), all.is_cut), (3_003, false));
    let on_disk = all.objects.iter().filter(|it| !it.object.is_in_memory).count();
    assert!((2..3_000).contains(&on_disk), "{on_disk}");
    assert!(all.objects.is_sorted_by_key(|it| &it.url));
    let long = it.listed("match=/long$").await;
    let [one] = long.objects.as_slice() else { panic!("{long:?}") };
    assert_eq!(
        (one.object.status, one.object.bytes, one.object.is_in_memory),
        (200, LONG as u64, false)
    );
    assert!(one.object.lifetime == 60 && (0..=60).contains(&one.object.left), "{one:?}");
    let some = it.listed("limit=7&match=/n").await;
    assert_eq!((some.objects.len(), some.is_cut), (7, true));
    let page = it.get("objects?match=/a$").await;
    assert!(page.contains("x: &lt;b&gt;") && page.contains("2 in all"), "{page}");
    for (query, told) in [
        ("match=(", "is no regular expression"),
        ("limit=0", "give a number from 1 to 100000"),
        ("limit=x", "give a number"),
    ] {
        let (status, page) = it.ask(Method::GET, &format!("objects?{query}"), true).await;
        assert!(status == 400 && page.contains(told), "{page}");
    }
}

#[tokio::test]
async fn what_fits_a_pattern_is_removed_wherever_it_is() {
    let it = Administered::new(|config| config.memory_bytes = 1 << 20).await;
    for n in 0..3_000 {
        it.site.get(&format!("n{n}")).await;
    }
    it.site.get("long").await;
    assert_eq!(it.site.get("n7").await.how().split(';').next(), Some("hit"));
    assert_eq!(it.purge("/n.*7$").await, 300);
    assert_eq!(it.purge("/long$").await, 1);
    assert_eq!((it.purge("/long$").await, it.purge("/n.*7$").await), (0, 0));
    assert_eq!(it.listed("limit=10000").await.objects.len(), 2_700);
    assert!(it.site.get("n7").await.how().starts_with("fwd=uri-miss"));
    assert!(it.site.get("n8").await.how().starts_with("hit"));
    for (query, expected) in [("match=(", 400), ("", 400), ("url=http://h/&match=a", 400)] {
        let (status, told) = it.ask(Method::POST, &format!("purge?{query}"), true).await;
        assert!(status == expected && told.contains("give "), "{told}");
    }
    let (status, _) = it.ask(Method::POST, "purge?match=.", false).await;
    assert_eq!((status, it.listed("limit=10000").await.objects.len()), (401, 2_701));
}

#[tokio::test]
async fn what_was_on_its_way_when_its_pattern_was_removed_is_not_stored() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let receiver = std::sync::Arc::new(receiver);
    let script = move |_, _| {
        let receiver = std::sync::Arc::clone(&receiver);
        async move {
            let body = receiver.lock().await.take().map_or_else(|| body::full("new"), piecewise);
            answer(200, &[("cache-control", "max-age=60"), ("content-length", "3")], body)
        }
    };
    let it = Administered { site: Site::new(script).await };
    pieces.send(Ok("o")).unwrap();
    let mut flowing = it.site.send("a", &[]).await;
    assert_eq!(flowing.chunk().await.unwrap().unwrap(), "o");
    let top: Statistics = it.report("top?format=json").await;
    let fetches = top.named.unwrap().fetches;
    let seen = (fetches[0].bytes, fetches[0].promised, fetches[0].clients);
    assert_eq!((seen, fetches.len()), ((1, Some(3), 1), 1));
    assert!(it.get("top").await.contains("1 byte of 3 bytes"));
    assert_eq!(it.purge("/a$").await, 0);
    pieces.send(Ok("ld")).unwrap();
    drop(pieces);
    assert_eq!(flowing.bytes(9).await.unwrap(), "ld");
    assert_eq!(it.site.get("a").await.body, "new");
    assert_eq!(it.site.get("a").await.how().split(';').next(), Some("hit"));
}

#[tokio::test]
async fn neighbors_are_told_with_their_answers_and_their_state() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    // One is a cache, the other says nothing.
    let free = UdpSocket::bind(any).unwrap().local_addr().unwrap();
    let silent = UdpSocket::bind(any).unwrap();
    let sibling = Administered::new(|config| config.icp_listen = Some(free)).await;
    let neighbor = |http_port, icp_port| Neighbor {
        host: "127.0.0.1".to_owned(),
        http_port,
        icp_port,
        kind: Kind::Sibling,
        domains: Vec::new(),
    };
    let ports = [
        neighbor(sibling.site.cache.port(), free.port()),
        neighbor(1, silent.local_addr().unwrap().port()),
    ];
    let it = Administered::new(|config| {
        (config.icp_listen, config.neighbors) = (Some(any), ports.into());
    });
    let it = it.await;
    for n in 0..12 {
        it.site.get(&format!("n{n}")).await;
    }
    // The home may be faster than the neighbor, whose answer comes then.
    let end = net::clock::monotonic() + std::time::Duration::from_secs(10);
    let told = loop {
        let (_, told) = it.ask(Method::GET, "statistics?format=json", false).await;
        let told: Statistics = read(&told);
        if told.neighbors[0].misses == 12 {
            break told;
        }
        assert!(net::clock::monotonic() < end, "{told:?}");
    };
    let [one, other] = told.neighbors.as_slice() else { panic!("{told:?}") };
    assert_eq!((one.asked, one.hits, one.kind.as_str(), one.is_dead), (12, 0, "sibling", false));
    assert!(one.round_trip_ms.is_some_and(|it| 0.0 < it && it < 2_000.0), "{one:?}");
    assert_eq!(
        (other.asked, other.misses, other.is_dead, other.round_trip_ms),
        (12, 0, true, None)
    );
    let page = it.get("statistics").await;
    let row = |port: u16| {
        let begin = format!("<bdi>127.0.0.1</bdi>:{port} ");
        page.lines().find(|it| it.contains(&begin)).unwrap().to_owned()
    };
    let (one, other) = (row(free.port()), row(silent.local_addr().unwrap().port()));
    assert!(one.contains(">sibling</span>") && one.contains(">alive</td>"), "{one}");
    assert!(one.contains(">round trip ") && one.contains(">12 asked<"), "{one}");
    assert!(other.contains(">dead</span>") && !other.contains("round trip"), "{other}");
    assert!(it.get("").await.contains("is asked, but not waited for"));
    let metrics = it.get("metrics").await;
    let line = format!("harvest_cache_neighbor_up{{neighbor=\"127.0.0.1:{}\"}} 1", free.port());
    assert!(metrics.contains(&line), "{metrics}");
}
