//! Tests of the server's limits from outside: what a peer may do, and what happens beyond.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use net::Error;
use net::body::{self, Body};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::tally::{Event, Tally};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower::service_fn;

const SOON: Duration = Duration::from_secs(20);

/// A server that answers `METHOD PATH BODY`, `/later` a moment later; `/large` answers without end,
/// `/never` not at all.
struct Daemon {
    address: SocketAddr,
    tally: Tally,
    shutdown: Shutdown,
    task: JoinHandle<Result<(), Error>>,
}

impl Daemon {
    async fn start(limits: Limits) -> Self {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let (address, tally) = (listener.local_addr().unwrap(), limits.tally.clone());
        let shutdown = Shutdown::new();
        let task = tokio::spawn(serve(listener, service_fn(answer), limits, shutdown.clone()));
        Self { address, tally, shutdown, task }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and returns all that comes back until the server closes.
    async fn exchange(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        read_to_end(&mut stream).await
    }
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let line = format!("{} {}", request.method(), request.uri().path());
    if request.uri().path() == "/never" {
        std::future::pending::<()>().await;
    }
    if request.uri().path() == "/later" {
        tokio::task::yield_now().await;
    }
    if request.uri().path() == "/large" {
        let zeros = std::iter::repeat_with(|| Ok::<_, Infallible>(vec![0; 64 * 1024].into()));
        let frames = futures_util::stream::iter(zeros.map(|it| it.map(Frame::data)));
        return Ok(Response::new(body::boxed(StreamBody::new(frames))));
    }
    assert_ne!(request.uri().path(), "/panic", "as asked for");
    Ok(match request.into_body().collect().await {
        Ok(read) => {
            let text = String::from_utf8(read.to_bytes().to_vec()).unwrap();
            Response::new(body::full(format!("{line} {text}")))
        }
        Err(error) => {
            let mut response = Response::new(body::full(error.to_string()));
            *response.status_mut() = http::StatusCode::BAD_REQUEST;
            response
        }
    })
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut all)).await.expect("the server closes");
    assert!(read.is_ok() || !all.is_empty(), "reset without an answer");
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads one answer with a Content-Length.
async fn read_answer(stream: &mut TcpStream) -> String {
    let mut all = String::new();
    loop {
        let mut piece = [0; 1024];
        let count = timeout(SOON, stream.read(&mut piece)).await.unwrap().unwrap();
        assert_ne!(count, 0, "closed after {all:?}");
        all.push_str(std::str::from_utf8(&piece[..count]).unwrap());
        if let Some((head, body)) = all.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return all;
            }
        }
    }
}

async fn check(request: &str, status: &str) {
    let daemon = Daemon::start(Limits::default()).await;
    let answer = daemon.exchange(request).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?} got {answer:?}");
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    if !status.starts_with("200") {
        assert!(head.contains("connection: close") || status.starts_with('4'), "{head}");
    }
}

#[tokio::test]
async fn refuses_malformed_and_ambiguous_requests() {
    check("nonsense\r\n\r\n", "400").await;
    check("GET /\r\n\r\n", "400").await;
    check("GET / HTTP/1.1\r\n\r\n", "400 ").await;
    check("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400").await;
    check("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400").await;
    check("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400").await;
    check("GET / HTTP/1.1\nHost: localhost\n\n", "400").await;
    let post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
    check(&format!("{post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), "400").await;
    let both = "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n";
    check(&format!("{post}{both}"), "400").await;
    check(&format!("{post}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"), "400").await;
    check(&format!("{post}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), "400").await;
    check("CONNECT a:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n", "501").await;
}

#[tokio::test]
async fn a_loopback_listener_answers_only_for_this_machine_and_its_proxy() {
    let get = |host: &str| format!("GET /b HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    check(&get("evil.example"), "421").await;
    check(&get("docs.example"), "421").await;
    check(&get("127.0.0.1:8501"), "200").await;
    // A target that is a whole URL counts, whatever the header says.
    let whole = |target: &str, host: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    };
    check(&whole("http://evil.example/b", "127.0.0.1:8501"), "421").await;
    check(&whole("http://evil.example/b", "evil.example"), "421").await;
    check(&whole("http://localhost:8501/b", "evil.example"), "200").await;
    check(&whole("http://u@localhost/b", "localhost"), "400").await;
    let limits = Limits { host: Some("docs.example".to_owned()), ..Limits::default() };
    let daemon = Daemon::start(limits).await;
    assert!(daemon.exchange(get("Docs.Example")).await.starts_with("HTTP/1.1 200"));
    assert!(daemon.exchange(get("evil.example")).await.contains("set base_url"));
    let old = daemon.exchange("GET http://evil.example/b HTTP/1.0\r\n\r\n").await;
    assert!(old.starts_with("HTTP/1.0 421"), "{old}");
}

#[tokio::test]
async fn refuses_what_is_too_large() {
    let long = "x".repeat(20_000);
    check(&format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"), "431").await;
    check(&format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(500_000)), "431").await;
    let query = format!("GET /?q={} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(1_000_000));
    let daemon = Daemon::start(Limits::default()).await;
    let answer = daemon.exchange(query).await;
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 431"), "{head}");
    assert!(head.contains(&format!("content-length: {}", text.len())), "{head}");
    assert!(text.contains("shorten its URL"), "{text}");
    let answer = daemon.exchange("GET /?q=a b HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("written as %XX"), "{answer}");
    let many = "X: y\r\n".repeat(101);
    check(&format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"), "431").await;
    let body = "x".repeat(1024 * 1024 + 1);
    let head =
        format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    check(&format!("{head}{body}"), "413").await;
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{head}{chunks}"), "400").await;
}

#[tokio::test]
async fn serves_requests_in_turn_and_closes_after_a_chunked_one() {
    let daemon = Daemon::start(Limits::default()).await;
    let mut stream = daemon.connect().await;
    for n in 0..3 {
        let request =
            format!("POST /{n} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_answer(&mut stream).await.ends_with(&format!("POST /{n} hi")));
    }
    let chunked = "POST /c HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    stream
        .write_all(format!("{chunked}GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let rest = read_to_end(&mut stream).await;
    assert!(rest.contains("connection: close") && rest.ends_with("POST /c hi"), "{rest}");
}

#[tokio::test]
async fn cuts_off_slow_peers() {
    let short = Duration::from_millis(100);
    let limits = Limits {
        header_timeout: short,
        idle_timeout: short,
        body_timeout: short,
        write_timeout: short,
        ..Limits::default()
    };
    let daemon = Daemon::start(limits).await;

    // Nothing at all, a head without an end, and a head that comes a byte at a time.
    assert_eq!(daemon.exchange("").await, "");
    assert_eq!(daemon.exchange("GET / HTTP/1.1\r\nHos").await, "");
    let mut stream = daemon.connect().await;
    let trickle = async {
        for byte in "GET / HTTP/1.1\r\nX: ".bytes().chain(std::iter::repeat(b'x')) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if stream.write_all(&[byte]).await.is_err() {
                return;
            }
        }
    };
    timeout(SOON, trickle).await.expect("the trickle is cut off");

    // A body that does not come.
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhi";
    assert!(daemon.exchange(head).await.starts_with("HTTP/1.1 400"));

    // An answer that nobody reads.
    let mut stream = daemon.connect().await;
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let cut = async {
        while stream.write_all(b"\r\n").await.is_ok() {
            tokio::time::sleep(short).await;
        }
    };
    timeout(SOON, cut).await.expect("the reader is cut off");
}

#[tokio::test]
async fn a_connection_is_idle_after_its_answer() {
    let idle_timeout = Duration::from_millis(100);
    let daemon = Daemon::start(Limits { idle_timeout, ..Limits::default() }).await;
    for path in ["/at-once", "/later"] {
        let mut stream = daemon.connect().await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_answer(&mut stream).await.ends_with(&format!("GET {path} ")));
        assert_eq!(read_to_end(&mut stream).await, "");
    }
}

#[tokio::test]
async fn empty_lines_are_no_request() {
    let idle_timeout = Duration::from_millis(100);
    let daemon = Daemon::start(Limits { idle_timeout, ..Limits::default() }).await;
    let mut stream = daemon.connect().await;
    let cut = async {
        while stream.write_all(b"\r\n").await.is_ok() {
            tokio::time::sleep(idle_timeout / 4).await;
        }
    };
    timeout(SOON, cut).await.expect("it is cut off");
}

#[tokio::test]
async fn a_request_in_progress_is_not_idle() {
    let limits = Limits { idle_timeout: Duration::from_millis(50), ..Limits::default() };
    let daemon = Daemon::start(limits).await;
    let mut stream = daemon.connect().await;
    stream.write_all(b"GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut byte = [0];
    assert!(timeout(Duration::from_millis(400), stream.read(&mut byte)).await.is_err());
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_a_new_one() {
    let daemon = Daemon::start(Limits { connections_max: 1, ..Limits::default() }).await;
    let mut idle = daemon.connect().await;
    idle.write_all(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    read_answer(&mut idle).await;
    let mut next = daemon.connect().await;
    next.write_all(b"GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(read_answer(&mut next).await.ends_with("GET /b "));
    assert_eq!(read_to_end(&mut idle).await, "");
}

#[tokio::test]
async fn a_connection_with_half_a_request_does_not_make_room() {
    let daemon = Daemon::start(Limits { connections_max: 1, ..Limits::default() }).await;
    let mut first = daemon.connect().await;
    first.write_all(b"GET /a HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    let mut next = daemon.connect().await;
    // The first connection is kept, though another waits: its head is incomplete.
    let waited = async {
        while daemon.tally.count(Event::Waited) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, waited).await.expect("one waits");
    first.write_all(b"\r\n").await.unwrap();
    assert!(read_answer(&mut first).await.ends_with("GET /a "));
    next.write_all(b"GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(read_answer(&mut next).await.ends_with("GET /b "));
}

#[tokio::test]
async fn shutdown_ends_idle_connections_at_once_and_others_within_the_bound() {
    let daemon =
        Daemon::start(Limits { drain: Duration::from_millis(100), ..Limits::default() }).await;
    let mut idle = daemon.connect().await;
    idle.write_all(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    read_answer(&mut idle).await;
    let mut busy = daemon.connect().await;
    busy.write_all(b"GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    daemon.shutdown.start();
    assert_eq!(read_to_end(&mut idle).await, "");
    timeout(SOON, daemon.task).await.unwrap().unwrap().unwrap();
    let mut rest = Vec::new();
    assert!(matches!(busy.read_to_end(&mut rest).await, Ok(0) | Err(_)), "cut off unanswered");
    assert!(TcpStream::connect(daemon.address).await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn a_panic_ends_one_connection_only() {
    let daemon = Daemon::start(Limits::default()).await;
    let mut stream = daemon.connect().await;
    stream.write_all(b"GET /panic HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    assert!(matches!(stream.read_to_end(&mut rest).await, Ok(0) | Err(_)));
    let answer =
        daemon.exchange("GET /b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn binding_says_what_to_do() {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let error = bind(listener.local_addr().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("is in use") && error.to_string().contains("--listen"));
    let error = bind("192.0.2.1:0".parse().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("not an address of this machine"), "{error}");
}
