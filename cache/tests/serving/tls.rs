//! Tests of TLS on both sides: origins that speak it, whose objects are stored, and clients that speak it to
//! the cache.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::certificates::Authority;
use crate::common::{Site, counted, raw};
use http::Request;
use net::body::Body;
use net::client::{self, Client, Proxy};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::tls::{self, ServerFiles};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tower::service_fn;
use url::Url;

/// An authority, and an origin with a certificate of it. It ends with the value.
struct Secure {
    folder: tempfile::TempDir,
    authority: Authority,
    url: Url,
    asked: Arc<AtomicUsize>,
    stop: Shutdown,
}

impl Secure {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("of the web");
        std::fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
        let server = tls::Server::open(files(&authority, folder.path(), "origin")).unwrap();
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("https://localhost:{port}/a")).unwrap();
        let (asked, stop) = (Arc::<AtomicUsize>::default(), Shutdown::new());
        let counting = Arc::clone(&asked);
        let service = service_fn(move |_: Request<Body>| {
            let before = counting.fetch_add(1, Ordering::SeqCst);
            let answer = counted(&[("cache-control", "max-age=60")], before);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let limits = Limits { tls: Some(server), ..Limits::default() };
        tokio::spawn(serve(listener, service, limits, stop.clone()));
        Self { folder, authority, url, asked, stop }
    }

    fn ca(&self) -> std::path::PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn client(&self) -> Client {
        Client::new(client::Settings {
            allow_private: true,
            extra_roots: tls::certificates(&self.ca()).unwrap(),
            ..client::Settings::default()
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.stop.start();
    }
}

/// Returns the files of a listener whose certificate is for this machine.
fn files(authority: &Authority, folder: &Path, name: &str) -> ServerFiles {
    let (certificate, key) = authority.write(folder, name, &["localhost"]);
    ServerFiles { certificate, key, client_ca: None }
}

/// Returns the proxy at the cache, which is asked for `https` URLs as for others.
fn fetching(site: &Site) -> Proxy {
    let url = Url::parse(&format!("http://{}/", site.cache)).unwrap();
    Proxy::new(url, None).unwrap().fetching_https()
}

/// Sends a request through a proxy; returns the status, how the answer came about, and its body.
async fn get(client: &Client, url: &Url, proxy: Proxy) -> (u16, String, String) {
    get_with(client, client::Request::get(url.clone()).proxy(Some(proxy))).await
}

async fn get_with(client: &Client, request: client::Request) -> (u16, String, String) {
    let came = client.send(request).await.unwrap();
    let how = came.header("cache-status").and_then(|it| it.split_once("; "));
    let (status, how) = (came.status.as_u16(), how.map_or(String::new(), |it| it.1.to_owned()));
    (status, how, String::from_utf8(came.bytes(10_000).await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn an_https_object_is_fetched_over_tls_and_kept() {
    let secure = Secure::start().await;
    let ca = secure.ca();
    let site = Site::with(
        |_, before| counted(&[("cache-control", "max-age=60")], before),
        |it| it.daemon.trust = vec![ca],
    )
    .await;
    let client = secure.client();
    let (status, how, body) = get(&client, &secure.url, fetching(&site)).await;
    assert_eq!((status, body.as_str()), (200, "body 0"));
    assert_eq!(how, "fwd=uri-miss; fwd-status=200; stored");
    let (status, how, body) = get(&client, &secure.url, fetching(&site)).await;
    assert_eq!((status, body.as_str()), (200, "body 0"));
    assert!(how.starts_with("hit; ttl="), "{how}");
    let mut part = client::Request::get(secure.url.clone()).proxy(Some(fetching(&site)));
    part.headers.insert("range", "bytes=5-5".parse().unwrap());
    assert_eq!(get_with(&client, part).await.2, "0");
    assert_eq!(secure.asked(), 1);
    // What was stored by one scheme is not the other's, wherever it is.
    let plain = secure.url.as_str().replace("https://", "http://");
    let text = format!("GET {plain} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let came = raw(&site, &text).await;
    assert!(!came.starts_with("HTTP/1.1 200 ") && !came.contains("body 0"), "{came}");
    assert_eq!(site.get("/a").await.status, 200);
    let other = site.origin.as_str().replace("http://", "https://");
    let other = Url::parse(&other).unwrap().join("/a").unwrap();
    let (status, how, body) = get(&client, &other, fetching(&site)).await;
    assert_eq!(status, 502, "{how} {body}");
    assert!(site.get("/a").await.how().starts_with("hit"));
}

#[tokio::test]
async fn an_origin_that_nobody_vouches_for_gives_nothing() {
    let secure = Secure::start().await;
    let site = Site::new(|_, before| counted(&[], before)).await;
    let (status, how, body) = get(&secure.client(), &secure.url, fetching(&site)).await;
    assert!(status == 502 && body.contains("certificate"), "{status} {how} {body}");
    assert_eq!((secure.asked(), site.handle.status().objects), (0, 0));
}

#[tokio::test]
async fn nothing_is_kept_of_what_goes_through_a_tunnel() {
    let secure = Secure::start().await;
    let port = secure.url.port().unwrap();
    let site =
        Site::with(|_, before| counted(&[], before), |it| it.connect_ports = vec![port..=port])
            .await;
    let (client, url) = (secure.client(), Url::parse(&format!("http://{}/", site.cache)).unwrap());
    for expected in ["body 0", "body 1"] {
        let tunnel = Proxy::new(url.clone(), None).unwrap();
        assert_eq!(get(&client, &secure.url, tunnel).await.2, expected);
    }
    let status = site.handle.status();
    assert_eq!((status.objects, status.disk_objects), (0, 0));
    assert!(0 < status.answers["tunnel"], "{status:?}");
}

#[tokio::test]
async fn clients_speak_tls_to_a_cache_with_a_certificate() {
    let secure = Secure::start().await;
    let port = secure.url.port().unwrap();
    let files = files(&secure.authority, secure.folder.path(), "cache");
    let site = Site::with(
        |_, before| counted(&[("cache-control", "max-age=60")], before),
        |it| {
            it.daemon.tls = Some(files);
            it.connect_ports = vec![port..=port];
        },
    )
    .await;
    let proxy = Url::parse(&format!("https://localhost:{}/", site.cache.port())).unwrap();
    let (client, proxy) = (secure.client(), Proxy::new(proxy, None).unwrap());
    let url = site.origin.join("/b").unwrap();
    for how in ["fwd=uri-miss; fwd-status=200; stored", "hit; ttl="] {
        let came = get(&client, &url, proxy.clone()).await;
        assert!(came.0 == 200 && came.1.starts_with(how) && came.2 == "body 0", "{came:?}");
    }
    // A tunnel in it carries TLS of its own.
    assert_eq!(get(&client, &secure.url, proxy).await.2, "body 0");
    assert_eq!((site.seen().len(), secure.asked()), (1, 1));
    // Browsers are told that it speaks it.
    let at = format!("https://localhost:{}/proxy.pac", site.cache.port());
    let pac = client::Request::get(Url::parse(&at).unwrap());
    let (_, _, pac) = get_with(&client, pac).await;
    assert!(pac.contains(&format!("HTTPS localhost:{}; DIRECT", site.cache.port())), "{pac}");
    // Who does not speak it gets nothing.
    let text = format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(site.cache).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    // It may be cut off.
    let _ = stream.read_to_end(&mut came).await;
    assert!(!String::from_utf8_lossy(&came).contains("body"), "{came:?}");
}
