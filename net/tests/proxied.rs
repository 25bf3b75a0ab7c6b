//! Tests of the client behind a proxy: our server as one, and scripted ones.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod certificates;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use certificates::Authority;
use http::{HeaderMap, Response, StatusCode};
use net::Error;
use net::body::{self, Body};
use net::client::{Client, Proxy, Request, Settings, Timeouts};
use net::error::{Retry, Stage};
use net::fetch::Login;
use net::guard::Refusal;
use net::server::{Limits, Mode, Tunnel, bind, serve};
use net::shutdown::Shutdown;
use net::tls::{self, ServerFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tower::service_fn;
use url::Url;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn client_with(extra_roots: Vec<Vec<u8>>) -> Client {
    let timeouts = Timeouts {
        connect: Duration::from_secs(5),
        header: Duration::from_secs(5),
        idle: Duration::from_secs(5),
        total: None,
    };
    Client::new(Settings { timeouts, extra_roots, ..Settings::default() })
}

fn client() -> Client {
    client_with(Vec::new())
}

fn login(name: &str, password: &str) -> Login {
    Login { name: name.to_owned(), password: password.to_owned() }
}

fn proxy_at(address: SocketAddr, login: Option<&Login>) -> Proxy {
    Proxy::new(Url::parse(&format!("http://{address}")).unwrap(), login).unwrap()
}

fn get(url: &str, proxy: &Proxy) -> Request {
    Request::get(Url::parse(url).unwrap()).proxy(Some(proxy.clone()))
}

async fn text_of(client: &Client, request: Request) -> Result<String, Error> {
    let response = client.send(request).await?;
    assert_eq!(response.address(), None);
    Ok(String::from_utf8(response.bytes(1 << 16).await?.to_vec()).unwrap())
}

async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap())
}

/// A proxy that answers each head with the same bytes, and tells the heads with the number of their
/// connection.
async fn scripted(answer: impl Into<Vec<u8>>) -> (SocketAddr, UnboundedReceiver<(usize, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, answer) = (listener.local_addr().unwrap(), answer.into());
    let (heads, receiver) = unbounded_channel();
    tokio::spawn(async move {
        for number in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (heads, answer) = (heads.clone(), answer.clone());
            tokio::spawn(async move {
                while let Some(head) = read_head(&mut stream).await {
                    heads.send((number, head)).unwrap();
                    // The client may have heard enough before all is sent.
                    let _ = stream.write_all(&answer).await;
                }
            });
        }
    });
    (address, receiver)
}

/// What a proxy that works was asked for.
type Log = Arc<Mutex<Vec<String>>>;

/// An origin with a certificate for `origin.example`, and a proxy that finds it by that name.
struct Bench {
    folder: TempDir,
    authority: Authority,
    proxy: SocketAddr,
    log: Log,
    shutdown: Shutdown,
}

impl Bench {
    /// Starts both; `is_closed`: the proxy wants a password; `secure`: it is spoken to over TLS.
    async fn start(is_closed: bool, secure: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("of the union");
        std::fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
        let shutdown = Shutdown::new();
        let listen = async |mode, tls| {
            let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
            let address = listener.local_addr().unwrap();
            let host = Some("origin.example".to_owned());
            (listener, address, Limits { mode, tls, host, ..Limits::default() })
        };
        let server = |name: &str, names: &[&str]| {
            let (certificate, key) = authority.write(folder.path(), name, names);
            tls::Server::open(ServerFiles { certificate, key, client_ca: None }).unwrap()
        };
        let origin_tls = server("origin", &["origin.example"]);
        let (listener, origin_secure, limits) = listen(Mode::Origin, Some(origin_tls)).await;
        tokio::spawn(serve(listener, service_fn(origin), limits, shutdown.clone()));
        let (listener, origin_plain, limits) = listen(Mode::Origin, None).await;
        tokio::spawn(serve(listener, service_fn(origin), limits, shutdown.clone()));

        let log = Log::default();
        let hosts = HashMap::from([(80, origin_plain), (443, origin_secure)]);
        let behind = Arc::new(Behind { hosts, is_closed });
        let proxy_tls = secure.then(|| server("proxy", &["localhost"]));
        let (listener, proxy, limits) = listen(Mode::Proxy, proxy_tls).await;
        let kept = Arc::clone(&log);
        let service = service_fn(move |it| pass_on(it, Arc::clone(&behind), Arc::clone(&kept)));
        tokio::spawn(serve(listener, service, limits, shutdown.clone()));
        Self { folder, authority, proxy, log, shutdown }
    }

    fn client(&self) -> Client {
        client_with(tls::certificates(&self.folder.path().join("ca.pem")).unwrap())
    }

    fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

/// Answers with the target and what concerns secrets of the request.
async fn origin(request: http::Request<Body>) -> Result<Response<Body>, Infallible> {
    let text = |name| request.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
    let secrets = (text("authorization"), text("proxy-authorization"));
    let said = format!("{} {:?} {secrets:?}", request.uri(), text("host").unwrap());
    let status = if request.uri().path() == "/407" { 407 } else { 200 };
    Ok(Response::builder().status(status).body(body::full(said)).unwrap())
}

/// The settings of a proxy that works.
struct Behind {
    /// Addresses of the origin by port.
    hosts: HashMap<u16, SocketAddr>,
    /// Whether a password is wanted.
    is_closed: bool,
}

/// Serves as a proxy.
async fn pass_on(
    request: http::Request<Body>,
    behind: Arc<Behind>,
    log: Log,
) -> Result<Response<Body>, Infallible> {
    log.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
    if behind.is_closed && !has_credentials(request.headers()) {
        return Ok(Response::builder().status(407).body(body::full("who are you?")).unwrap());
    }
    assert_eq!(request.uri().host(), Some("origin.example"));
    if let Some(tunnel) = request.extensions().get::<Tunnel>().cloned() {
        let mut stream = TcpStream::connect(behind.hosts[&443]).await.unwrap();
        tokio::spawn(async move {
            let mut open = tunnel.open().await.unwrap();
            let _ = copy_bidirectional(&mut open, &mut stream).await;
        });
        return Ok(Response::new(body::empty()));
    }
    let url = format!("http://{}{}", behind.hosts[&80], request.uri().path());
    let passed = Request::get(Url::parse(&url).unwrap()).allow_private(true);
    let answer = Client::new(Settings::default()).send(passed).await.unwrap();
    let status = answer.status;
    let content = answer.bytes(1 << 16).await.unwrap();
    Ok(Response::builder().status(status).body(body::full(content)).unwrap())
}

/// Returns whether the example of RFC 7617 §2 is shown.
fn has_credentials(headers: &HeaderMap) -> bool {
    let shown = headers.get("proxy-authorization");
    shown.is_some_and(|it| it == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
}

#[tokio::test]
async fn http_is_requested_in_absolute_form_over_one_connection_for_all_hosts() {
    let (address, mut heads) = scripted(OK).await;
    let (client, secret) = (client(), login("Aladdin", "open sesame"));
    let proxy = proxy_at(address, Some(&secret));
    // Nobody resolves these names.
    for url in ["http://a.example/x?y=1#z", "http://b.example:81/", "http://8.8.8.8/"] {
        let request = get(url, &proxy).token(Some("of the origin".to_owned()));
        assert_eq!(text_of(&client, request).await.unwrap(), "ok");
    }
    for (line, host) in [
        ("GET http://a.example/x?y=1 HTTP/1.1\r\n", "\r\nhost: a.example\r\n"),
        ("GET http://b.example:81/ HTTP/1.1\r\n", "\r\nhost: b.example:81\r\n"),
        ("GET http://8.8.8.8/ HTTP/1.1\r\n", "\r\nhost: 8.8.8.8\r\n"),
    ] {
        let (number, head) = heads.recv().await.unwrap();
        assert!(number == 0 && head.starts_with(line), "{number} {head}");
        assert!(head.contains(host) && head.contains("\r\nauthorization: Bearer"), "{head}");
        let shown = "\r\nproxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
        assert!(head.contains(shown), "{head}");
    }
}

#[tokio::test]
async fn a_proxy_that_fetches_https_is_asked_for_it_in_absolute_form() {
    let (address, mut heads) = scripted(OK).await;
    let proxy = proxy_at(address, None).fetching_https();
    assert_eq!(text_of(&client(), get("https://a.example/x", &proxy)).await.unwrap(), "ok");
    let (_, head) = heads.recv().await.unwrap();
    assert!(head.starts_with("GET https://a.example/x HTTP/1.1\r\n"), "{head}");
}

#[tokio::test]
async fn other_schemes_are_requested_in_absolute_form() {
    let (address, mut heads) = scripted(OK).await;
    let proxy = proxy_at(address, None);
    for (url, host) in [
        ("ftp://u:p@a.example:2121/b", "a.example:2121"),
        ("gopher://a.example/0b", "a.example"),
        ("news:comp.lang.c++", ""),
    ] {
        assert_eq!(text_of(&client(), get(url, &proxy)).await.unwrap(), "ok");
        let head = heads.recv().await.unwrap().1;
        assert!(head.starts_with(&format!("GET {url} HTTP/1.1\r\n")), "{head}");
        assert!(head.to_ascii_lowercase().contains(&format!("\r\nhost: {host}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn https_goes_through_a_tunnel_to_the_host_whose_certificate_is_verified() {
    let bench = Bench::start(true, false).await;
    let client = bench.client();
    let proxy = proxy_at(bench.proxy, Some(&login("Aladdin", "open sesame")));
    for _ in 0..2 {
        let request = get("https://origin.example/a?b", &proxy).token(Some("t".to_owned()));
        let said = text_of(&client, request).await.unwrap();
        assert_eq!(said, "/a?b \"origin.example\" (Some(\"Bearer t\"), None)");
    }
    assert_eq!(bench.take_log(), ["CONNECT origin.example:443"], "the tunnel is kept");
    // It is the host that speaks in the tunnel.
    let status = client.send(get("https://origin.example/407", &proxy)).await.unwrap().status;
    assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);

    let said = text_of(&client, get("http://origin.example/c", &proxy)).await.unwrap();
    assert!(said.starts_with("/c ") && said.ends_with(" (None, None)"), "{said}");

    // Another authority has signed a certificate for that name.
    let other = client_with(vec![]);
    let error = other.send(get("https://origin.example/", &proxy)).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    let named = format!("origin.example:443 through the proxy {}", bench.proxy);
    assert!(error.to_string().contains(&named), "{error}");
}

#[tokio::test]
async fn a_name_in_the_tunnel_is_that_of_the_certificate() {
    let bench = Bench::start(false, false).await;
    // This tunnel leads to a host with a certificate for another name.
    let (certificate, key) = bench.authority.write(bench.folder.path(), "x", &["other.example"]);
    let server = tls::Server::open(ServerFiles { certificate, key, client_ca: None }).unwrap();
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    let host = Some("other.example".to_owned());
    let limits = Limits { tls: Some(server), host, ..Limits::default() };
    tokio::spawn(serve(listener, service_fn(origin), limits, bench.shutdown.clone()));
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = proxy.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = proxy.accept().await.unwrap();
            tokio::spawn(async move {
                read_head(&mut stream).await.unwrap();
                // As proxies of HTTP/1.0 say it, with a length that means nothing here.
                let success = b"HTTP/1.0 200 Connection established\r\nContent-Length: 5\r\n\r\n";
                stream.write_all(success).await.unwrap();
                let mut host = TcpStream::connect(address).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut host).await;
            });
        }
    });
    let (client, proxy) = (bench.client(), proxy_at(at, None));
    let said = text_of(&client, get("https://other.example/", &proxy)).await.unwrap();
    assert!(said.starts_with("/ \"other.example\""), "{said}");
    let error = client.send(get("https://origin.example/", &proxy)).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

#[tokio::test]
async fn a_proxy_may_be_spoken_to_over_tls() {
    let bench = Bench::start(true, true).await;
    let client = bench.client();
    let url = Url::parse(&format!("https://localhost:{}", bench.proxy.port())).unwrap();
    let proxy = Proxy::new(url, Some(&login("Aladdin", "open sesame"))).unwrap();
    for url in ["http://origin.example/", "https://origin.example/"] {
        let said = text_of(&client, get(url, &proxy)).await.unwrap();
        assert!(said.starts_with("/ ") && said.ends_with(" (None, None)"), "{said}");
    }
    assert_eq!(bench.take_log(), ["GET http://origin.example/", "CONNECT origin.example:443"]);
    let error = client_with(vec![]).send(get("http://origin.example/", &proxy)).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
    assert!(error.to_string().contains("to the proxy localhost"), "{error}");
}

#[tokio::test]
async fn a_password_that_is_missing_or_wrong_is_an_error_of_the_proxy() {
    let bench = Bench::start(true, false).await;
    let client = bench.client();
    for login in [None, Some(login("Aladdin", "sesame"))] {
        let proxy = proxy_at(bench.proxy, login.as_ref());
        for url in ["http://origin.example/", "https://origin.example/"] {
            let error = client.send(get(url, &proxy)).await.unwrap_err();
            let Error::Proxy { status, .. } = error else { panic!("{error}") };
            assert_eq!((status.as_u16(), error.retry()), (407, Retry::No));
            let said = error.to_string();
            let named = format!("the proxy {} answered 407", bench.proxy);
            assert!(said.starts_with(&named) && said.contains("`proxy_password`"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_refused_tunnel_is_an_error_that_says_what_to_do() {
    for (line, retry, advice) in [
        ("403 Filtered", Retry::No, "ask its administrator"),
        ("502 Bad Gateway", Retry::After(Duration::from_secs(30)), "cannot reach the host now"),
        ("404 Not Found", Retry::No, "knows CONNECT"),
        ("302 Found\r\nLocation: http://elsewhere.example/", Retry::No, "knows CONNECT"),
        ("101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade", Retry::No, "CONNECT"),
    ] {
        let (address, _heads) = scripted(format!("HTTP/1.1 {line}\r\n\r\n<html>")).await;
        let request = get("https://origin.example/", &proxy_at(address, None));
        let error = client().send(request).await.unwrap_err();
        let Error::Proxy { status, .. } = error else { panic!("{line}: {error}") };
        assert!(line.starts_with(status.as_str()), "{error}");
        let said = error.to_string();
        assert!(said.starts_with(&format!("the proxy {address} answered {status}")), "{said}");
        assert!(said.contains("origin.example:443") && said.contains(advice), "{said}");
        assert_eq!(error.retry(), retry, "{said}");
    }
}

#[tokio::test]
async fn what_is_no_answer_to_connect_is_an_error_within_bounds() {
    let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(1 << 20));
    let fields = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(10_000));
    let early = "HTTP/1.1 200 OK\r\n\r\n220 this is mail";
    for answer in ["", "SSH-2.0-x\r\n\r\n", "220 this is mail\r\n", &endless, &fields, early] {
        let (address, _heads) = match answer {
            "" => (closing().await, unbounded_channel().1),
            answer => scripted(answer).await,
        };
        let error = client().send(get("https://o.example/", &proxy_at(address, None))).await;
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
        assert!(error.to_string().contains(&format!("from the proxy {address}")), "{error}");
    }
}

/// A proxy that closes each connection after the first head.
async fn closing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_that_is_silent_or_away_is_given_up() {
    let patience = Duration::from_millis(300);
    let timeouts = Some(Timeouts { connect: patience, header: patience, ..Timeouts::default() });
    // Of a head that never ends, each byte is progress, and yet the time is bounded.
    for answer in ["", "HTTP/1.1 200 OK\r\nX: "] {
        let (address, _heads) = scripted(answer).await;
        for (url, expected) in
            [("https://o.example/", Stage::Connect), ("http://o.example/", Stage::Header)]
        {
            let request = Request { timeouts, ..get(url, &proxy_at(address, None)) };
            let error = client().send(request).await.unwrap_err();
            let Error::Timeout { stage, .. } = error else { panic!("{error}") };
            assert_eq!(stage, expected);
            assert!(error.to_string().contains(&format!("the proxy {address}")), "{error}");
        }
    }
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = client().send(get("http://o.example/", &proxy_at(gone, None))).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains(&format!("connect to the proxy {gone}")), "{error}");
}

#[tokio::test]
async fn connections_are_not_shared_with_other_credentials_or_other_ways() {
    let (address, mut heads) = scripted(OK).await;
    let client = client();
    let (one, two) = (login("a", "b"), login("a", "c"));
    let ways = [None, Some(&one), Some(&two)].map(|it| proxy_at(address, it));
    for _ in 0..2 {
        for (number, way) in ways.iter().enumerate() {
            text_of(&client, get("http://h.example/", way)).await.unwrap();
            assert_eq!(heads.recv().await.unwrap().0, number);
        }
        // The same host and port without a proxy.
        let direct = Request::get(Url::parse(&format!("http://{address}/")).unwrap());
        let direct = client.send(direct.allow_private(true)).await.unwrap();
        assert_eq!(direct.address(), Some(address.ip()));
        direct.bytes(9).await.unwrap();
        let (number, head) = heads.recv().await.unwrap();
        assert!(number == ways.len() && head.starts_with("GET / "), "{number} {head}");
        assert!(!head.contains("proxy-authorization"), "{head}");
    }
}

#[tokio::test]
async fn private_addresses_and_names_are_not_asked_of_a_proxy() {
    let redirects = "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n";
    let (address, mut heads) = scripted(redirects).await;
    let (client, proxy) = (client(), proxy_at(address, None));
    for url in ["http://127.0.0.1/", "https://localhost/", "http://[::ffff:10.0.0.1]/"] {
        let error = client.send(get(url, &proxy)).await.unwrap_err();
        let is_private =
            matches!(error, Error::Refused { refusal: Refusal::Private | Refusal::Loopback, .. });
        assert!(is_private, "{error}");
    }
    for url in ["http://wiki/", "https://printer.local/"] {
        let error = client.send(get(url, &proxy)).await.unwrap_err();
        assert!(matches!(error, Error::PrivateName { .. }), "{error}");
    }
    let link_local = get("http://169.254.169.254/", &proxy).allow_private(true);
    let error = client.send(link_local).await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::LinkLocal, .. }), "{error}");
    assert!(heads.try_recv().is_err(), "nothing was asked");

    // Nor does a host of the internet lead there, whatever its own root allows.
    let led = get("http://www.example.org/", &proxy).allow_private(true);
    let error = client.send(led).await.unwrap_err();
    assert!(matches!(error, Error::PrivateRedirect { .. }), "{error}");
    assert!(heads.recv().await.unwrap().1.starts_with("GET http://www.example.org/ "));
    assert!(heads.try_recv().is_err(), "the private host was not asked");
    // A private host may lead to another, and through a proxy it is asked.
    let inside = Request { keeps_redirect: true, ..get("http://10.0.0.1/", &proxy) };
    let answer = client.send(inside.allow_private(true)).await.unwrap();
    assert!(answer.is_private() && answer.status == StatusCode::FOUND);
}
