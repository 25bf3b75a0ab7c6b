//! An origin that does what a test says, and a cache before it, both real and on loopback.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cache::{Config, Fetch, Handle, Server, Statistics};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use net::body::{self, Body};
use net::client::{self, Client, Proxy};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

/// Sends a body piece by piece; an error breaks it off.
pub(crate) type Sender = mpsc::UnboundedSender<Result<&'static str, &'static str>>;

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Script = Arc<dyn Fn(Request<Body>, usize) -> Answering + Send + Sync>;

/// An origin, a cache, and a client of the cache. All end with the value.
pub(crate) struct Site {
    pub(crate) cache: SocketAddr,
    pub(crate) handle: Handle,
    /// The origin's base URL.
    pub(crate) origin: Url,
    /// The requests that have reached the origin.
    seen: Arc<Mutex<Vec<(Method, String, HeaderMap)>>>,
    client: Client,
    running: JoinHandle<Result<(), cache::Error>>,
    stop: Shutdown,
    data: tempfile::TempDir,
}

/// An answer as a test looks at it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |it| it.to_str().unwrap())
    }

    /// Returns `Cache-Status` without the cache's name.
    pub(crate) fn how(&self) -> String {
        self.header("cache-status").split_once("; ").map_or(String::new(), |it| it.1.to_owned())
    }
}

/// Returns an answer with these headers.
pub(crate) fn answer(status: u16, lines: &[(&str, &str)], body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap();
    *response.headers_mut() = headers(lines);
    response
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
    };
    lines.iter().map(line).collect()
}

impl Site {
    /// Starts an origin that answers by `script`, which gets each request and how many came before it.
    pub(crate) async fn new<F: Future<Output = Response<Body>> + Send + 'static>(
        script: impl Fn(Request<Body>, usize) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::with(script, |_| ()).await
    }

    /// The same, with other settings of the cache.
    pub(crate) async fn with<F: Future<Output = Response<Body>> + Send + 'static>(
        script: impl Fn(Request<Body>, usize) -> F + Send + Sync + 'static,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let script: Script = Arc::new(move |request, before| Box::pin(script(request, before)));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (stop, seen) = (Shutdown::new(), Arc::<Mutex<Vec<_>>>::default());
        let listener = bind(any).await.unwrap();
        let origin = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let noted = Arc::clone(&seen);
        let service = service_fn(move |request: Request<Body>| {
            let mut noted = noted.lock().unwrap();
            let before = noted.len();
            let line =
                (request.method().clone(), request.uri().to_string(), request.headers().clone());
            noted.push(line);
            let answering = script(request, before);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let host = Some("www.example.org".to_owned());
        let limits = Limits { host, ..Limits::default() };
        tokio::spawn(serve(listener, service, limits, stop.clone()));
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::new(any, any, data.path());
        config.name = "c".to_owned();
        config.allow_private = true;
        change(&mut config);
        for it in &mut config.origins {
            it.url = origin.clone();
        }
        let server = Server::bind(config).await.unwrap();
        let (cache, handle) = (server.local_addr(), server.handle());
        let running = tokio::spawn(server.run(stop.clone()));
        let client = Client::new(client::Settings {
            allow_private: true,
            connections_max: 1_000,
            response_bytes_max: 1 << 30,
            ..client::Settings::default()
        });
        Self { cache, handle, origin, seen, client, running, stop, data }
    }

    /// Returns a request through the cache, for a path of the origin.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        lines: &[(&str, &str)],
    ) -> client::Request {
        let proxy = Url::parse(&format!("http://{}/", self.cache)).unwrap();
        let proxy = Some(Proxy::new(proxy, None).unwrap());
        let (url, headers) = (self.origin.join(path).unwrap(), headers(lines));
        client::Request {
            method,
            headers,
            keeps_redirect: true,
            ..client::Request::get(url).proxy(proxy)
        }
    }

    /// Sends a request; returns the answer with its body to come.
    pub(crate) async fn send(&self, path: &str, lines: &[(&str, &str)]) -> client::Response {
        self.client.send(self.request(Method::GET, path, lines)).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub(crate) async fn get_with(&self, path: &str, lines: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, lines).await
    }

    pub(crate) async fn ask(&self, method: Method, path: &str, lines: &[(&str, &str)]) -> Answer {
        let response = self.client.send(self.request(method, path, lines)).await.unwrap();
        let (status, headers) = (response.status.as_u16(), response.headers.clone());
        let body = response.bytes(1 << 30).await.unwrap();
        Answer { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// Returns the cache's data folder.
    pub(crate) fn data(&self) -> &Path {
        self.data.path()
    }

    /// Sends a request to the administration, with its token or without one.
    pub(crate) async fn administer(
        &self,
        method: Method,
        path: &str,
        is_known: bool,
    ) -> (u16, String) {
        let read = |name| std::fs::read_to_string(self.data().join(name)).unwrap();
        let at = read("admin.address");
        let url = Url::parse(&format!("http://{}/{path}", at.split(' ').next().unwrap())).unwrap();
        let mut request = client::Request { method, ..client::Request::get(url) };
        if is_known {
            let value = format!("Bearer {}", read("admin.token").trim());
            request.headers.insert("authorization", value.parse().unwrap());
        }
        let response = self.client.send(request).await.unwrap();
        let status = response.status.as_u16();
        let body = response.bytes(1 << 24).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Returns the fetches that others can join.
    pub(crate) async fn fetches(&self) -> Vec<Fetch> {
        let (status, told) = self.administer(Method::GET, "top?format=json", true).await;
        assert_eq!(status, 200, "{told}");
        let all: Statistics = axum::Json::from_bytes(told.as_bytes()).unwrap().0;
        all.named.unwrap().fetches
    }

    /// Waits until so many clients wait for the one fetch that is under way, or read it.
    pub(crate) async fn has_clients(&self, count: u64) {
        let are_there = async || self.fetches().await.iter().map(|it| it.clients).eq([count]);
        until("clients of a fetch", are_there).await;
    }

    /// Waits until so many requests have reached the origin.
    pub(crate) async fn has_asked(&self, count: usize) {
        until("requests at the origin", async || self.seen().len() == count).await;
    }

    /// Ends the cache, so that all that it writes is written.
    pub(crate) async fn end(&mut self) {
        self.stop.start();
        (&mut self.running).await.unwrap().unwrap();
    }

    /// Returns the requests that have reached the origin, and their number.
    pub(crate) fn seen(&self) -> Vec<(Method, String, HeaderMap)> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.start();
    }
}

/// Returns a body that sends what comes over a channel; it breaks off at an error.
pub(crate) fn piecewise(
    pieces: mpsc::UnboundedReceiver<Result<&'static str, &'static str>>,
) -> Body {
    body::boxed(Pieces(pieces))
}

struct Pieces(mpsc::UnboundedReceiver<Result<&'static str, &'static str>>);

impl http_body::Body for Pieces {
    type Data = bytes::Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, &'static str>>> {
        self.0.poll_recv(cx).map(|it| {
            it.map(|piece| {
                piece.map(|text| http_body::Frame::data(bytes::Bytes::from_static(text.as_bytes())))
            })
        })
    }
}

/// Sends bytes to the cache as they are, and returns the whole answer.
pub(crate) async fn raw(site: &Site, request: &str) -> String {
    let mut stream = TcpStream::connect(site.cache).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Answers each request with how many came before it.
pub(crate) fn counted(lines: &[(&str, &str)], before: usize) -> Ready<Response<Body>> {
    ready(answer(200, lines, body::full(format!("body {before}"))))
}

/// Starts an origin whose first answer has a body that comes as the test sends it.
pub(crate) async fn slow_site() -> (Sender, Site) {
    slow_site_that_says("max-age=60").await
}

/// The same, with this `Cache-Control`.
pub(crate) async fn slow_site_that_says(control: &'static str) -> (Sender, Site) {
    slow_site_with(vec![("cache-control", control.to_owned())]).await
}

/// The same, with these headers.
pub(crate) async fn slow_site_with(lines: Vec<(&'static str, String)>) -> (Sender, Site) {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = Mutex::new(Some(receiver));
    let site = Site::new(move |_, before| {
        let receiver = receiver.lock().unwrap().take();
        let lines: Vec<_> = lines.iter().map(|(name, it)| (*name, it.as_str())).collect();
        match receiver {
            Some(it) => ready(answer(200, &lines, piecewise(it))),
            None => counted(&lines[..1], before),
        }
    });
    (pieces, site.await)
}

/// Time in which what a test waits for has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}
