//! Tests of a hierarchy of caches, ours and others': who is asked for an object that one of them misses, by what
//! their statuses count and their access logs say.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;

use crate::members::{Member, TurningFar, get, neighbor, one, origin, origin_until};
use crate::peer::free_port;
use crate::peers::{Squid, TrafficServer};
use cache::resolution::Kind;
use net::shutdown::Shutdown;
use tokio::net::UdpSocket;
use url::Url;

#[tokio::test]
async fn what_a_sibling_has_comes_from_it_and_not_from_the_home() {
    let (url, count) = origin().await;
    let sibling = Member::start(3, vec![]).await;
    assert_eq!(sibling.get(&url).await.0, 200);
    let asker = Member::start(2, vec![neighbor(3, sibling.ports(), Kind::Sibling)]).await;
    // The home is as near as the sibling: both may be faster.
    assert_eq!(asker.get(&url).await, (200, "body".to_owned()));
    let routes = asker.routes();
    let (by_sibling, by_home) = (one("NEIGHBOR_HIT"), one("SOURCE_FASTEST"));
    assert!([&by_sibling, &by_home].contains(&&routes), "{routes:?}");
    let expected = if routes == by_sibling { (1, 1) } else { (2, 0) };
    assert_eq!((count.load(Ordering::SeqCst), sibling.answers("hit")), expected);
    // It is stored here, too.
    assert_eq!(asker.get(&url).await.0, 200);
    assert_eq!(asker.answers("hit"), 1);
}

#[tokio::test]
async fn a_neighbor_that_many_ask_at_once_counts_as_alive() {
    const MANY: usize = 40;
    let stop = Shutdown::new();
    let (url, _count, home) = origin_until(stop.clone()).await;
    let sibling = Member::start(12, vec![]).await;
    let urls: Vec<Url> = (0..MANY).map(|n| url.join(&n.to_string()).unwrap()).collect();
    for url in &urls {
        assert_eq!(sibling.get(url).await.0, 200);
    }
    // Only the sibling can give them now.
    stop.start();
    home.await.unwrap().unwrap();
    let asker = Member::start(13, vec![neighbor(12, sibling.ports(), Kind::Sibling)]).await;
    let (proxy, mut tasks) = (asker.proxy.clone(), tokio::task::JoinSet::new());
    for url in urls {
        let proxy = proxy.clone();
        tasks.spawn(async move { get(&proxy, &url).await.0 });
    }
    assert_eq!(tasks.join_all().await, [200; MANY]);
    assert_eq!(asker.routes(), BTreeMap::from([("NEIGHBOR_HIT".to_owned(), MANY as u64)]));
}

#[tokio::test]
async fn a_parent_fetches_what_nobody_has() {
    let (url, count) = origin().await;
    let parent = Member::start(8, vec![]).await;
    let asker = Member::start(2, vec![neighbor(8, parent.ports(), Kind::Parent)]).await;
    assert_eq!(asker.get(&url).await, (200, "body".to_owned()));
    let routes = asker.routes();
    let by_parent = routes == one("FIRST_PARENT_MISS");
    assert!(by_parent || routes == one("SOURCE_FASTEST"), "{routes:?}");
    assert_eq!((count.load(Ordering::SeqCst), parent.answers("miss")), (1, u64::from(by_parent)));
}

#[tokio::test]
async fn a_dead_neighbor_delays_nobody_for_long() {
    let (url, _count) = origin().await;
    let silent = UdpSocket::bind((IpAddr::from([127, 0, 0, 10]), 0)).await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let asker = Member::start(2, vec![neighbor(10, (1, port), Kind::Sibling)]).await;
    for n in 0..20 {
        let url = url.join(&format!("/{n}")).unwrap();
        assert_eq!(asker.get(&url).await.0, 200);
    }
    let routes = asker.routes();
    // It is asked each time, and waited for until it counts as dead; the home is near.
    assert_eq!(routes.values().sum::<u64>(), 20, "{routes:?}");
    assert!(routes.contains_key("DIRECT"), "{routes:?}");
    let mut bytes = [0; 100];
    for _ in 0..20 {
        assert!(silent.try_recv(&mut bytes).is_ok());
    }
}

#[tokio::test]
async fn squid_and_we_are_siblings() {
    let ports = (free_port(), free_port());
    let member = Member::start(2, vec![neighbor(1, ports, Kind::Sibling)]).await;
    let (http, icp) = member.ports();
    let lines = format!("cache_peer 127.0.0.2 sibling {http} {icp} proxy-only no-digest");
    let squid = Squid::start(ports, &lines);
    // What we have, it takes from us.
    let (url, count) = origin().await;
    assert_eq!(member.get(&url).await.0, 200);
    assert_eq!(get(&squid.proxy, &url).await, (200, "body".to_owned()));
    squid.logs(&["SIBLING_HIT/127.0.0.2", "/200"]).await;
    member.logs(&["TCP_HIT/200", url.as_str(), "HIER_NONE/-"]).await;
    assert_eq!((count.load(Ordering::SeqCst), member.answers("hit")), (1, 1));
    // What it has, it tells us of; the home is as near, so that either may be faster.
    let theirs = url.join("/theirs").unwrap();
    assert_eq!(get(&squid.proxy, &theirs).await.0, 200);
    assert_eq!(member.get(&theirs).await, (200, "body".to_owned()));
    squid.logs(&["UDP_HIT", "ICP_QUERY", theirs.as_str()]).await;
    // What neither has comes from its home.
    let other = url.join("/other").unwrap();
    assert_eq!(get(&squid.proxy, &other).await.0, 200);
    squid.logs(&["HIER_DIRECT", "/other"]).await;
    // Where the home is far, we take from it what it has.
    let home = TurningFar::new().given_to(&squid.proxy).await;
    let before = member.routes().get("NEIGHBOR_HIT").copied().unwrap_or_default();
    assert_eq!(member.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!(member.routes()["NEIGHBOR_HIT"], before + 1);
    squid.logs(&["TCP_", "HIT/200", home.url.as_str()]).await;
    member.logs(&["TCP_MISS/200", home.url.as_str(), "SIBLING_HIT/127.0.0.1 "]).await;
}

#[tokio::test]
async fn squid_is_our_parent_and_we_are_its() {
    let ports = (free_port(), free_port());
    let child = Member::start(2, vec![neighbor(1, ports, Kind::Parent)]).await;
    let parent = Member::start(3, vec![]).await;
    let (http, icp) = parent.ports();
    let lines =
        format!("cache_peer 127.0.0.3 parent {http} {icp} no-digest\nnever_direct allow all");
    let squid = Squid::start(ports, &lines);
    // Squid gets all from us above it.
    let (url, count) = origin().await;
    assert_eq!(get(&squid.proxy, &url).await, (200, "body".to_owned()));
    squid.logs(&["PARENT", "/127.0.0.3", "/200"]).await;
    parent.logs(&["TCP_MISS/200", url.as_str(), "HIER_DIRECT/127.0.0.1 "]).await;
    assert_eq!((count.load(Ordering::SeqCst), parent.answers("miss")), (1, 1));
    // We below it get what it has.
    let home = TurningFar::new().given_to(&squid.proxy).await;
    assert_eq!(child.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!(child.routes(), one("PARENT_HIT"));
    child.logs(&["TCP_MISS/200", home.url.as_str(), "PARENT_HIT/127.0.0.1 "]).await;
    squid.logs(&["UDP_HIT", "ICP_QUERY", home.url.as_str()]).await;
}

/// Traffic Server has no ICP.
#[tokio::test]
async fn traffic_server_is_our_parent_and_we_are_its() {
    let (server, (url, count)) = (TrafficServer::start(free_port()), origin().await);
    let above = (server.address().port(), 0);
    // Two of us below it: the second gets what it has kept of the first.
    for n in [2, 3] {
        let child = Member::start(n, vec![neighbor(1, above, Kind::Parent)]).await;
        assert_eq!(child.get(&url).await, (200, "body".to_owned()));
        assert_eq!(child.routes(), one("DEFAULT_PARENT"));
        child.logs(&["TCP_MISS/200", url.as_str(), "DEFAULT_PARENT/127.0.0.1 "]).await;
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
    // A sibling that has it is nearer than what is above.
    let sibling = Member::start(5, vec![]).await;
    let far = TurningFar::new().given_to(&sibling.proxy).await;
    let both = vec![neighbor(1, above, Kind::Parent), neighbor(5, sibling.ports(), Kind::Sibling)];
    let child = Member::start(4, both).await;
    assert_eq!(child.get(&far.url).await, (200, "body".to_owned()));
    assert_eq!(child.routes(), one("NEIGHBOR_HIT"));
    let other = url.join("/other").unwrap();
    assert_eq!(child.get(&other).await.0, 200);
    assert_eq!(child.routes()["DEFAULT_PARENT"], 1);

    // We above it: all that it has not comes from us.
    let parent = Member::start(6, vec![]).await;
    let at = SocketAddr::from(([127, 0, 0, 6], parent.ports().0));
    let below = TrafficServer::start_below(free_port(), Some(at));
    let (mut url, count) = origin().await;
    // It takes what is at 127.0.0.1 from there, whatever its settings say.
    url.set_host(Some("localhost")).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&below.proxy(), &url).await, (200, "body".to_owned()));
    }
    parent.logs(&["TCP_MISS/200", url.as_str(), "HIER_DIRECT/"]).await;
    assert_eq!(parent.get(&url).await.0, 200);
    assert_eq!((parent.answers("miss"), count.load(Ordering::SeqCst)), (1, 1));
    // It may not have kept the first one when it was asked again.
    assert!((1..=2).contains(&parent.answers("hit")), "{}", parent.answers("hit"));
}
