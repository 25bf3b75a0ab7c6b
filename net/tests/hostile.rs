//! Tests of the server against hostile clients: they are bounded and counted; others are served.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use net::body::{self, Body};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use net::tally::{Event, Tally};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;

const SOON: Duration = Duration::from_secs(20);
/// The address of the hostile clients; all of 127.0.0.0/8 is this machine.
const HOSTILE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

struct Daemon {
    address: SocketAddr,
    tally: Tally,
    _tasks: JoinSet<()>,
}

impl Daemon {
    async fn start(limits: Limits) -> Self {
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let (address, tally) = (listener.local_addr().unwrap(), limits.tally.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            serve(listener, service_fn(answer), limits, Shutdown::new()).await.unwrap();
        });
        Self { address, tally, _tasks: tasks }
    }

    async fn connect_from(&self, from: impl Into<IpAddr>) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from.into(), 0)).unwrap();
        timeout(SOON, socket.connect(self.address)).await.unwrap().unwrap()
    }

    /// Checks that another client is served.
    async fn serves_others(&self) {
        let mut stream = self.connect_from(Ipv4Addr::LOCALHOST).await;
        stream.write_all(&get("/small")).await.unwrap();
        let mut answer = String::new();
        timeout(SOON, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into_bytes()
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    if request.uri().path() == "/large" {
        let zeros = std::iter::repeat_with(|| Ok::<_, Infallible>(vec![0; 64 * 1024].into()));
        let frames = futures_util::stream::iter(zeros.map(|it| it.map(Frame::data)));
        return Ok(Response::new(body::boxed(StreamBody::new(frames))));
    }
    Ok(Response::new(body::full("small")))
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    const CONNECTIONS: u64 = 10_000;
    let limits = Limits::default();
    let allowed = limits.peer_connections_max as u64;
    let daemon = Daemon::start(limits).await;
    let mut kept = Vec::new();
    for _ in 0..allowed {
        let mut stream = daemon.connect_from(HOSTILE).await;
        stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        kept.push(stream);
    }
    for number in allowed..CONNECTIONS {
        let mut stream = daemon.connect_from(HOSTILE).await;
        let closed = timeout(SOON, stream.read(&mut [0])).await.expect("it is closed at once");
        assert!(matches!(closed, Ok(0) | Err(_)));
        if number % 1000 == 0 {
            daemon.serves_others().await;
        }
    }
    assert_eq!(daemon.tally.count(Event::Crowding), CONNECTIONS - allowed);
    assert_eq!(daemon.tally.count(Event::Waited), 0);
    drop(kept.split_off(1));
    // The slots of the hostile address are free again.
    let again = async {
        loop {
            let mut stream = daemon.connect_from(HOSTILE).await;
            stream.write_all(&get("/small")).await.unwrap();
            let mut answer = String::new();
            if stream.read_to_string(&mut answer).await.is_ok() && answer.contains("200 OK") {
                return;
            }
        }
    };
    timeout(SOON, again).await.expect("it is served again");
}

#[tokio::test]
async fn a_proxy_may_have_more() {
    let host = Some("docs.example".to_owned());
    let daemon = Daemon::start(Limits { host, peer_connections_max: 1, ..Limits::default() }).await;
    let _held = daemon.connect_from(Ipv4Addr::LOCALHOST).await;
    daemon.serves_others().await;
    assert_eq!(daemon.tally.count(Event::Crowding), 0);
}

#[tokio::test]
async fn a_client_that_never_reads_is_cut_off_and_blocks_nobody() {
    const READERS: u64 = 100;
    let write_timeout = Duration::from_millis(300);
    let daemon = Daemon::start(Limits { write_timeout, ..Limits::default() }).await;
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut stream = daemon.connect_from(HOSTILE).await;
        stream.write_all(&get("/large")).await.unwrap();
        readers.push(stream);
    }
    daemon.serves_others().await;
    let cut = async {
        while daemon.tally.count(Event::Slow) < READERS {
            daemon.serves_others().await;
        }
    };
    timeout(SOON, cut).await.expect("all are cut off");
}

#[tokio::test]
async fn a_megabyte_of_header_is_refused_and_counted() {
    const TIMES: u64 = 50;
    let daemon = Daemon::start(Limits::default()).await;
    let mut head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec();
    head.resize(1 << 20, b'x');
    for _ in 0..TIMES {
        let mut stream = daemon.connect_from(HOSTILE).await;
        // It may be cut off before all of it is sent.
        let _ = stream.write_all(&head).await;
        let mut answer = Vec::new();
        let _ = timeout(SOON, stream.read_to_end(&mut answer)).await.expect("it is closed");
        daemon.serves_others().await;
    }
    // A refusal is counted when the rest of the head has been waited for.
    let counted = async {
        while daemon.tally.count(Event::Malformed) < TIMES {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, counted).await.expect("all are counted");
    assert_eq!(daemon.tally.count(Event::Malformed), TIMES);
    let mut stream = daemon.connect_from(HOSTILE).await;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(daemon.tally.count(Event::Refused), 1);
}
