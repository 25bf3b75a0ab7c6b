//! Caches that are neighbors on loopback, and homes that are near or far.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cache::access_log::Format;
use cache::neighbors::Neighbor;
use cache::resolution::Kind;
use cache::{Config, Handle, NeighborStatus, Server, Statistics};
use http::{HeaderValue, Response};
use net::body;
use net::client::{Client, Proxy, Request, Settings};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

use crate::peers::logged;

/// A cache at an address of its own, as its neighbors know it.
pub(crate) struct Member {
    pub(crate) proxy: Url,
    icp_port: u16,
    pub(crate) handle: Handle,
    running: Option<JoinHandle<Result<(), cache::Error>>>,
    stop: Shutdown,
    data: tempfile::TempDir,
}

/// Returns the neighbor at 127.0.0.N.
pub(crate) fn neighbor(n: u8, member: (u16, u16), kind: Kind) -> Neighbor {
    let host = Ipv4Addr::new(127, 0, 0, n).to_string();
    Neighbor { host, http_port: member.0, icp_port: member.1, kind, domains: Vec::new() }
}

impl Member {
    pub(crate) async fn start(n: u8, neighbors: Vec<Neighbor>) -> Self {
        Self::start_at((n, 0), neighbors).await
    }

    /// Starts the cache at this port of 127.0.0.N, for clients and for neighbors.
    pub(crate) async fn start_at(at: (u8, u16), neighbors: Vec<Neighbor>) -> Self {
        Self::with(at, neighbors, |_| ()).await
    }

    /// The same, with other settings.
    pub(crate) async fn with(
        (n, port): (u8, u16),
        neighbors: Vec<Neighbor>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let at = SocketAddr::from((Ipv4Addr::new(127, 0, 0, n), port));
        let mut config = Config::new(at, "127.0.0.1:0".parse().unwrap(), data.path());
        config.name = format!("cache-{n}");
        (config.allow_private, config.disk_bytes) = (true, 0);
        (config.icp_listen, config.neighbors) = (Some(at), neighbors);
        config.access_log = Some((data.path().join("access.log"), Format::Squid));
        change(&mut config);
        let server = Server::bind(config).await.unwrap();
        let proxy = Url::parse(&format!("http://{}/", server.local_addr())).unwrap();
        let (icp_port, handle) = (server.icp_addr().unwrap().port(), server.handle());
        let stop = Shutdown::new();
        let running = Some(tokio::spawn(server.run(stop.clone())));
        Self { proxy, icp_port, handle, running, stop, data }
    }

    pub(crate) fn ports(&self) -> (u16, u16) {
        (self.proxy.port().unwrap(), self.icp_port)
    }

    pub(crate) async fn get(&self, url: &Url) -> (u16, String) {
        get(&self.proxy, url).await
    }

    pub(crate) fn routes(&self) -> BTreeMap<String, u64> {
        self.handle.status().routes
    }

    /// Waits until a line of its access log has all these words.
    pub(crate) async fn logs(&self, words: &[&str]) {
        logged(&self.data.path().join("access.log"), words).await;
    }

    /// Ends it, so that its log is whole.
    pub(crate) async fn end(&mut self) {
        self.stop.start();
        if let Some(running) = self.running.take() {
            running.await.unwrap().unwrap();
        }
    }

    /// Returns the lines of its log, each with code and status, URL, and who gave it; sorted.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.data.path().join("access.log")).unwrap();
        let line = |it: &str| {
            let words: Vec<&str> = it.split_whitespace().collect();
            [words[3], words[6], words[8]].join(" ")
        };
        let mut lines: Vec<String> = text.lines().map(line).collect();
        lines.sort_unstable();
        lines
    }

    /// Returns a page of its administration.
    pub(crate) async fn page(&self, path: &str) -> String {
        let at = std::fs::read_to_string(self.data.path().join("admin.address")).unwrap();
        let url = format!("http://{}/{path}", at.split(' ').next().unwrap());
        let client = Client::new(Settings { allow_private: true, ..Settings::default() });
        let response = client.send(Request::get(Url::parse(&url).unwrap())).await.unwrap();
        String::from_utf8(response.bytes(1 << 20).await.unwrap().to_vec()).unwrap()
    }

    /// Returns what it says of its neighbors.
    pub(crate) async fn neighbors(&self) -> Vec<NeighborStatus> {
        let page = self.page("statistics?format=json").await;
        let all: Statistics = axum::Json::from_bytes(page.as_bytes()).unwrap().0;
        all.neighbors
    }

    pub(crate) fn answers(&self, from: &str) -> u64 {
        self.handle.status().answers.get(from).copied().unwrap_or_default()
    }
}

/// Fetches an object through a proxy.
pub(crate) async fn get(proxy: &Url, url: &Url) -> (u16, String) {
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

/// A name that nobody can resolve, under which an origin answers, too.
pub(crate) const NAME: &str = "www.harvest.invalid";

/// Starts an origin; returns its URL and the count of its requests.
pub(crate) async fn origin() -> (Url, Arc<AtomicUsize>) {
    let (url, count, _serving) = origin_until(Shutdown::new()).await;
    (url, count)
}

/// The same, until a shutdown starts; it has ended with the task.
pub(crate) async fn origin_until(
    stop: Shutdown,
) -> (Url, Arc<AtomicUsize>, JoinHandle<Result<(), net::Error>>) {
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
    let limits = Limits { host: Some(NAME.to_owned()), ..Limits::default() };
    (url, count, tokio::spawn(serve(listener, service, limits, stop)))
}

/// A home that answers once and is far then: nobody who connects is answered, since its queue is full.
pub(crate) struct TurningFar {
    pub(crate) url: Url,
    listener: TcpListener,
    held: Vec<TcpStream>,
}

impl TurningFar {
    pub(crate) fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        socket.listen(0).unwrap();
        socket.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(socket.into()).unwrap();
        let url = Url::parse(&format!("http://{}/a", listener.local_addr().unwrap())).unwrap();
        Self { url, listener, held: Vec::new() }
    }

    /// Has a proxy fetch the object, and turns far.
    pub(crate) async fn given_to(self, proxy: &Url) -> Self {
        let (got, ()) = tokio::join!(get(proxy, &self.url), async {
            let (mut stream, _) = self.listener.accept().await.unwrap();
            // Without a date Squid says of nothing that it has it.
            let date = net::client::http_date_of(net::clock::now_ms() / 1_000);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nDate: {date}\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nbody"
            );
            assert_ne!(stream.read(&mut [0; 2_000]).await.unwrap(), 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        assert_eq!(got, (200, "body".to_owned()));
        self.far().await
    }

    /// Turns far.
    pub(crate) async fn far(mut self) -> Self {
        let at = self.listener.local_addr().unwrap();
        let soon = Duration::from_millis(200);
        while let Ok(Ok(stream)) = timeout(soon, TcpStream::connect(at)).await {
            self.held.push(stream);
        }
        self
    }

    /// Turns near again, and answers each request with this body.
    pub(crate) fn returns(self, body: &'static str) -> JoinHandle<()> {
        let Self { listener, held, .. } = self;
        tokio::spawn(async move {
            drop(held);
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    while matches!(stream.read(&mut [0; 2_000]).await, Ok(1..)) {
                        let length = body.len();
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                        // Who has asked may have left.
                        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
                    }
                });
            }
        })
    }
}

/// The way to the ICP of a cache, on which its answers wait until it is opened.
pub(crate) struct Link {
    pub(crate) port: u16,
    gate: Arc<Semaphore>,
}

impl Link {
    /// Begins the way to a port of 127.0.0.N, at another port of the same address.
    pub(crate) async fn to(n: u8, port: u16) -> Self {
        let (here, gate) = (Ipv4Addr::new(127, 0, 0, n), Arc::new(Semaphore::new(0)));
        let (cache, opened) = (SocketAddr::from((here, port)), Arc::clone(&gate));
        let socket = UdpSocket::bind((here, 0)).await.unwrap();
        let port = socket.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut bytes, mut asker) = ([0; 2_000], cache);
            while let Ok((count, from)) = socket.recv_from(&mut bytes).await {
                let to = if from == cache {
                    let _is_open = opened.acquire().await.unwrap();
                    asker
                } else {
                    asker = from;
                    cache
                };
                // Nobody may be there any more.
                let _ = socket.send_to(&bytes[..count], to).await;
            }
        });
        Self { port, gate }
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(1);
    }
}

pub(crate) fn one(code: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(code.to_owned(), 1)])
}
