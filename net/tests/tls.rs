//! Tests of TLS from end to end: certificates of listeners and clients, and their renewal.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod certificates;

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use certificates::Authority;
use http::{Request as ServerRequest, Response};
use net::Error;
use net::body::{self, Body};
use net::client::{Client, Credentials, Request, Settings};
use net::sendfile::{Memory, MemoryFile};
use net::server::{Limits, Peer, bind, serve};
use net::shutdown::Shutdown;
use net::tally::{Event, Tally};
use net::tls::{self, ClientCertificate, ClientFiles, ServerFiles};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::service_fn;
use url::Url;

const SOON: Duration = Duration::from_secs(20);

/// Length of the served file, in bytes: it fills every buffer on its way.
const FILE_BYTES: usize = 24 << 20;

/// An authority, a listener with a certificate signed by it, and the files of both.
struct Bench {
    folder: TempDir,
    authority: Authority,
    server: tls::Server,
    address: SocketAddr,
    tally: Tally,
    shutdown: Shutdown,
}

impl Bench {
    async fn start(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("of the union");
        let files = files(&authority, folder.path());
        fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
        let server = tls::Server::open(files).unwrap();
        let limits = Limits { tls: Some(server.clone()), ..limits };
        let (tally, shutdown) = (limits.tally.clone(), Shutdown::new());
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, service_fn(answer), limits, shutdown.clone()));
        Self { folder, authority, server, address, tally, shutdown }
    }

    fn client(&self) -> Client {
        let extra_roots = tls::certificates(&self.folder.path().join("ca.pem")).unwrap();
        Client::new(Settings { allow_private: true, extra_roots, ..Settings::default() })
    }

    fn request(&self, path: &str) -> Request {
        let url = format!("https://localhost:{}{path}", self.address.port());
        Request::get(Url::parse(&url).unwrap())
    }

    /// Returns a request with a certificate for `name`, signed by `authority`.
    fn request_by(&self, authority: &Authority, name: &str) -> Request {
        let (certificate, key) = authority.write(self.folder.path(), name, &[name]);
        let certificate = Some(Arc::new(ClientFiles { certificate, key }));
        self.request("/").credentials(Credentials { certificate, ..Credentials::default() })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shutdown.start();
    }
}

fn files(authority: &Authority, folder: &Path) -> ServerFiles {
    let (certificate, key) = authority.write(folder, "server", &["localhost", "127.0.0.1"]);
    ServerFiles { certificate, key, client_ca: Some(folder.join("ca.pem")) }
}

/// Answers `/file` with a file, all else with the client's address and whether it is the harvester.
async fn answer(request: ServerRequest<Body>) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/file" {
        let mut pieces = vec![Bytes::from(vec![7; FILE_BYTES])];
        let file = MemoryFile::of(&Memory::default(), move || Ok(pieces.pop())).unwrap();
        let mut response = Response::new(body::empty());
        file.answer(&mut response);
        return Ok(response);
    }
    let Peer(address) = request.extensions().get().copied().unwrap();
    let shown = request.extensions().get::<ClientCertificate>();
    let shown = shown.map(|it| it.is_for("harvester.example"));
    Ok(Response::new(body::full(format!("{address} {shown:?}"))))
}

async fn text_of(client: &Client, request: Request) -> Result<String, Error> {
    let response = client.send(request).await?;
    Ok(String::from_utf8(response.bytes(1 << 16).await?.to_vec()).unwrap())
}

#[tokio::test]
async fn a_client_certificate_identifies_and_is_optional() {
    let bench = Bench::start(Limits::default()).await;
    let client = bench.client();
    let check = async |request, expected: &str| {
        assert_eq!(text_of(&client, request).await.unwrap(), format!("127.0.0.1 {expected}"));
    };
    check(bench.request("/"), "None").await;
    check(bench.request_by(&bench.authority, "harvester.example"), "Some(true)").await;
    // A connection opened with one certificate does not carry requests with another or none.
    check(bench.request("/"), "None").await;
    check(bench.request_by(&bench.authority, "other.example"), "Some(false)").await;
    let stranger = bench.request_by(&Authority::new("of nobody"), "harvester.example");
    let error = text_of(&bench.client(), stranger).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. } | Error::Protocol { .. }), "{error}");
    let missing = ClientFiles { certificate: "none.pem".into(), key: "none.key".into() };
    let certificate = Some(Arc::new(missing));
    let request =
        bench.request("/").credentials(Credentials { certificate, ..Credentials::default() });
    let error = text_of(&bench.client(), request).await.unwrap_err();
    assert!(error.to_string().starts_with("none.pem: "), "{error}");
}

#[tokio::test]
async fn only_a_trusted_server_is_asked_and_by_its_name() {
    let bench = Bench::start(Limits::default()).await;
    let at = |host: &str| {
        let url = format!("https://{host}:{}/", bench.address.port());
        Request::get(Url::parse(&url).unwrap())
    };
    for host in ["localhost", "127.0.0.1"] {
        assert_eq!(text_of(&bench.client(), at(host)).await.unwrap(), "127.0.0.1 None");
    }
    let error = text_of(&bench.client(), at("127.0.0.2")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. } | Error::Tls { .. }), "{error}");
    let strange = Client::new(Settings { allow_private: true, ..Settings::default() });
    let error = text_of(&strange, at("localhost")).await.unwrap_err();
    // Without any certificates of the system, TLS is not set up at all.
    assert!(matches!(error, Error::Tls { .. } | Error::TlsSetup { .. }), "{error}");
    let plain = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let url = format!("https://localhost:{}/", plain.local_addr().unwrap().port());
    let served = serve(plain, service_fn(answer), Limits::default(), bench.shutdown.clone());
    tokio::spawn(served);
    let request = Request::get(Url::parse(&url).unwrap());
    let error = text_of(&bench.client(), request).await.unwrap_err();
    assert!(error.to_string().contains("check its certificate"), "{error}");
}

#[tokio::test]
async fn a_pinned_certificate_is_trusted_under_any_name_and_no_other_is() {
    let bench = Bench::start(Limits::default()).await;
    let pinned = |path: &str| {
        let mut found = tls::certificates(&bench.folder.path().join(path)).unwrap();
        let pinned = Some(found.remove(0));
        Client::new(Settings { allow_private: true, pinned, ..Settings::default() })
    };
    let url = format!("https://127.0.0.1:{}/", bench.address.port());
    let ask = || Request::get(Url::parse(&url).unwrap());
    assert_eq!(text_of(&pinned("server.pem"), ask()).await.unwrap(), "127.0.0.1 None");
    let error = text_of(&pinned("ca.pem"), ask()).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. }), "{error}");
}

#[tokio::test]
async fn files_are_sent_whole_and_encrypted() {
    let bench = Bench::start(Limits::default()).await;
    let response = bench.client().send(bench.request("/file")).await.unwrap();
    let bytes = response.bytes(1 << 25).await.unwrap();
    assert_eq!(bytes.len(), FILE_BYTES);
    assert!(bytes.iter().all(|it| *it == 7));
}

#[tokio::test]
async fn a_client_without_tls_gets_an_explanation() {
    let bench = Bench::start(Limits::default()).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut text = String::new();
    timeout(SOON, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 400") && text.contains("https://"), "{text}");
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(b"\x16\x03\x01\x00\x05hello").await.unwrap();
    let mut bytes = Vec::new();
    let _ = timeout(SOON, stream.read_to_end(&mut bytes)).await.unwrap();
    assert_eq!((bench.tally.count(Event::Refused), bench.tally.count(Event::Malformed)), (1, 1));
}

#[tokio::test]
async fn slow_clients_are_cut_off() {
    let wait = Duration::from_millis(200);
    let limits = Limits { header_timeout: wait, write_timeout: wait, ..Limits::default() };
    let bench = Bench::start(limits).await;
    // One client does not begin, one stops within the handshake.
    for bytes in [&b""[..], b"\x16\x03\x01\x02"] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let _ = timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap();
    }
    assert_eq!(bench.tally.count(Event::Slow), 2);
    // A third client requests more than it reads.
    let response = bench.client().send(bench.request("/file")).await.unwrap();
    let cut_off = async {
        while bench.tally.count(Event::Slow) < 3 {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, cut_off).await.unwrap();
    drop(response);
}

#[tokio::test]
async fn silent_clients_make_room_for_others() {
    let header_timeout = Duration::from_secs(3_600);
    let bench =
        Bench::start(Limits { connections_max: 3, header_timeout, ..Limits::default() }).await;
    let mut silent = Vec::new();
    for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\x02"] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        silent.push(stream);
    }
    let client = bench.client();
    let asked = timeout(SOON, text_of(&client, bench.request("/")));
    assert_eq!(asked.await.unwrap().unwrap(), "127.0.0.1 None");
}

#[tokio::test]
async fn new_files_are_used_and_wrong_ones_are_not() {
    let bench = Bench::start(Limits::default()).await;
    assert!(!bench.server.refresh());
    let certificate = bench.folder.path().join("server.pem");
    let served = fs::read(&certificate).unwrap();
    fs::write(&certificate, "half a cert").unwrap();
    assert!(bench.server.refresh());
    let problem = bench.server.problem().unwrap();
    assert!(problem.contains("server.pem") && problem.contains("stays in use"), "{problem}");
    text_of(&bench.client(), bench.request("/")).await.unwrap();
    assert!(!bench.server.refresh(), "it is reported once");
    fs::write(&certificate, served).unwrap();
    assert!(bench.server.refresh());
    assert_eq!(bench.server.problem(), None);
    // The new files are of another authority, which the client does not trust.
    files(&Authority::new("of another"), bench.folder.path());
    assert!(bench.server.refresh());
    let error = text_of(&bench.client(), bench.request("/")).await.unwrap_err();
    assert!(matches!(error, Error::Tls { .. } | Error::TlsSetup { .. }), "{error}");
}

#[test]
fn unusable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("of the union");
    let good = files(&authority, folder.path());
    fs::write(folder.path().join("ca.pem"), &authority.pem).unwrap();
    let (_, other_key) = authority.write(folder.path(), "other", &["other.example"]);
    fs::write(folder.path().join("empty"), "").unwrap();
    let check = |wrong: ServerFiles, parts: [&str; 2]| {
        let message = tls::Server::open(wrong).unwrap_err().to_string();
        assert!(parts.iter().all(|it| message.contains(it)), "{message} lacks {parts:?}");
    };
    let empty = || folder.path().join("empty");
    check(ServerFiles { certificate: empty(), ..good.clone() }, ["empty", "no certificate"]);
    check(ServerFiles { key: empty(), ..good.clone() }, ["empty", "no private key"]);
    let encrypted = folder.path().join("encrypted");
    let text = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    fs::write(&encrypted, text).unwrap();
    check(ServerFiles { key: encrypted, ..good.clone() }, ["encrypted", "decrypts it"]);
    check(ServerFiles { key: "/none".into(), ..good.clone() }, ["/none", "No such file"]);
    check(ServerFiles { key: other_key, ..good.clone() }, ["other.key", "not the key of"]);
    check(ServerFiles { client_ca: Some(empty()), ..good.clone() }, ["empty", "no certificate"]);
    tls::Server::open(good).unwrap();
}

#[tokio::test]
async fn requests_of_a_trusted_proxy_count_for_its_clients() {
    let proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let limits = Limits { proxies, peer_connections_max: 1, ..Limits::default() };
    let bench = Bench::start(limits).await;
    let client = bench.client();
    let by = |address: &'static str, path: &str| {
        let name = http::HeaderName::from_static("x-forwarded-for");
        bench.request(path).header(name, http::HeaderValue::from_static(address))
    };
    assert_eq!(text_of(&client, by("192.0.2.1", "/")).await.unwrap(), "192.0.2.1 None");
    // An answer that is not read yet counts as under way.
    let open = client.send(by("192.0.2.1", "/file")).await.unwrap();
    let second = client.send(by("192.0.2.1", "/")).await.unwrap();
    assert_eq!(second.status.as_u16(), 429);
    assert_eq!(text_of(&client, by("192.0.2.2", "/")).await.unwrap(), "192.0.2.2 None");
    assert_eq!(open.bytes(1 << 25).await.unwrap().len(), FILE_BYTES);
    assert_eq!(text_of(&client, by("192.0.2.1", "/")).await.unwrap(), "192.0.2.1 None");
    let name = http::HeaderName::from_static("forwarded");
    let both = by("192.0.2.1", "/").header(name, http::HeaderValue::from_static("for=192.0.2.9"));
    assert_eq!(client.send(both).await.unwrap().status.as_u16(), 400);
}
