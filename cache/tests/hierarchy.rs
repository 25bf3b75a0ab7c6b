//! Tests of a hierarchy of three caches, the cases of TR §9: who is asked for an object that one of them
//! misses, by what their statuses count.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../net/tests/peers/peer.rs"]
mod peer;
#[path = "common/peers.rs"]
mod peers;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cache::neighbors::Neighbor;
use cache::resolution::Kind;
use cache::{Config, Handle, Server};
use http::{HeaderValue, Response};
use net::body;
use net::client::{Client, Proxy, Request, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use peer::free_port;
use peers::Squid;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

/// A cache at an address of its own, as its neighbors know it.
struct Member {
    proxy: Url,
    icp_port: u16,
    handle: Handle,
    stop: Shutdown,
    _data: tempfile::TempDir,
}

/// Returns the neighbor at 127.0.0.N.
fn neighbor(n: u8, member: (u16, u16), kind: Kind) -> Neighbor {
    let host = Ipv4Addr::new(127, 0, 0, n).to_string();
    Neighbor { host, http_port: member.0, icp_port: member.1, kind, domains: Vec::new() }
}

impl Member {
    async fn start(n: u8, neighbors: Vec<Neighbor>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let at = SocketAddr::from((Ipv4Addr::new(127, 0, 0, n), 0));
        let mut config = Config::new(at, "127.0.0.1:0".parse().unwrap(), data.path());
        config.name = format!("cache-{n}");
        (config.allow_private, config.disk_bytes) = (true, 0);
        (config.icp_listen, config.neighbors) = (Some(at), neighbors);
        let server = Server::bind(config).await.unwrap();
        let proxy = Url::parse(&format!("http://{}/", server.local_addr())).unwrap();
        let (icp_port, handle) = (server.icp_addr().unwrap().port(), server.handle());
        let stop = Shutdown::new();
        tokio::spawn(server.run(stop.clone()));
        Self { proxy, icp_port, handle, stop, _data: data }
    }

    fn ports(&self) -> (u16, u16) {
        (self.proxy.port().unwrap(), self.icp_port)
    }

    async fn get(&self, url: &Url) -> (u16, String) {
        get(&self.proxy, url).await
    }

    fn routes(&self) -> BTreeMap<String, u64> {
        self.handle.status().routes
    }

    fn answers(&self, from: &str) -> u64 {
        self.handle.status().answers.get(from).copied().unwrap_or_default()
    }
}

/// Fetches an object through a proxy.
async fn get(proxy: &Url, url: &Url) -> (u16, String) {
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let proxy = Some(Proxy::new(proxy.clone(), None).unwrap());
    let response = client.send(Request::get(url.clone()).proxy(proxy)).await.unwrap();
    let status = response.status.as_u16();
    (status, String::from_utf8(response.bytes(10_000).await.unwrap().to_vec()).unwrap())
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.start();
    }
}

/// Starts an origin; returns its URL and the count of its requests.
async fn origin() -> (Url, Arc<AtomicUsize>) {
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = Url::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let service = service_fn(move |_: http::Request<body::Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut response = Response::new(body::full("body"));
        let lines = response.headers_mut();
        lines.insert("cache-control", HeaderValue::from_static("max-age=60"));
        std::future::ready(Ok::<_, Infallible>(response))
    });
    tokio::spawn(serve(listener, service, Limits::default(), Shutdown::new()));
    (url, count)
}

/// A home that answers once and is far then: nobody who connects is answered, since its queue is full.
struct TurningFar {
    url: Url,
    listener: TcpListener,
    held: Vec<TcpStream>,
}

impl TurningFar {
    fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(socket.into()).unwrap();
        let url = Url::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
        Self { url, listener, held: Vec::new() }
    }

    /// Has a proxy fetch the object, and turns far.
    async fn given_to(mut self, proxy: &Url) -> Self {
        let (got, ()) = tokio::join!(get(proxy, &self.url), async {
            let (mut stream, _) = self.listener.accept().await.unwrap();
            let answer =
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nbody";
            assert_ne!(stream.read(&mut [0; 2_000]).await.unwrap(), 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        assert_eq!(got, (200, "body".to_owned()));
        let at = self.listener.local_addr().unwrap();
        let soon = Duration::from_millis(200);
        while let Ok(Ok(stream)) = timeout(soon, TcpStream::connect(at)).await {
            self.held.push(stream);
        }
        self
    }
}

fn one(code: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(code.to_owned(), 1)])
}

/// Says MISS to all that is asked by ICP at an address; returns the port.
async fn denies_all(n: u8) -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, n), 0)).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut bytes = [0; 2_000];
        while let Ok((count, from)) = socket.recv_from(&mut bytes).await {
            // The query's address of the requester goes, and the length with it.
            let length = u16::try_from(count - 4).unwrap().to_be_bytes();
            let answer = [&[3, 2], &length[..], &bytes[4..20], &bytes[24..count]].concat();
            socket.send_to(&answer, from).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn a_neighbor_that_has_it_gives_it_where_the_home_is_far() {
    for (n, kind, code) in [(3, Kind::Sibling, "NEIGHBOR_HIT"), (4, Kind::Parent, "PARENT_HIT")] {
        let has_it = Member::start(n, vec![]).await;
        let home = TurningFar::new().given_to(&has_it.proxy).await;
        let other = Member::start(n + 2, vec![]).await;
        let neighbors =
            vec![neighbor(n, has_it.ports(), kind), neighbor(n + 2, other.ports(), kind)];
        let asker = Member::start(2, neighbors).await;
        assert_eq!(asker.get(&home.url).await, (200, "body".to_owned()));
        assert_eq!((asker.routes(), has_it.answers("hit")), (one(code), 1));
        assert_eq!(asker.get(&home.url).await.0, 200);
        assert_eq!(asker.answers("hit"), 1, "it is stored here, too");
    }
}

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
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let service = service_fn(|_: http::Request<body::Body>| {
        let mut response = Response::new(body::full("body"));
        response.headers_mut().insert("cache-control", HeaderValue::from_static("max-age=60"));
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let stop = Shutdown::new();
    let home = tokio::spawn(serve(listener, service, Limits::default(), stop.clone()));
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
async fn where_all_say_no_the_parent_is_asked_if_the_home_is_far() {
    let parent = Member::start(7, vec![]).await;
    let home = TurningFar::new().given_to(&parent.proxy).await;
    let sibling = Member::start(11, vec![]).await;
    // It has the object, so that it can give what nobody could fetch now; by ICP it says that it has not.
    let denied = neighbor(7, (parent.ports().0, denies_all(7).await), Kind::Parent);
    let asker = Member::start(2, vec![denied, neighbor(11, sibling.ports(), Kind::Sibling)]).await;
    assert_eq!(asker.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!((asker.routes(), parent.answers("hit")), (one("FIRST_PARENT_MISS"), 1));
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
    assert_eq!((count.load(Ordering::SeqCst), parent.answers("miss")), (1, 1));
    // We below it get what it has.
    let home = TurningFar::new().given_to(&squid.proxy).await;
    assert_eq!(child.get(&home.url).await, (200, "body".to_owned()));
    assert_eq!(child.routes(), one("PARENT_HIT"));
    squid.logs(&["UDP_HIT", "ICP_QUERY", home.url.as_str()]).await;
}
