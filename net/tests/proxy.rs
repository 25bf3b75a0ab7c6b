//! Tests of the server as a proxy: whole URLs of any host, and tunnels.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use net::body::{self, Body};
use net::server::{Limits, Mode, Tunnel, bind, serve};
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::service_fn;

const SOON: Duration = Duration::from_secs(20);
/// Time limit for heads and idle connections; a tunnel may be idle for longer.
const IDLE: Duration = Duration::from_millis(200);

/// Answers with method, URI and host; a tunnel echoes in capitals.
async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let line = format!("{} {} {:?}", request.method(), request.uri(), request.headers()["host"]);
    if let Some(tunnel) = request.extensions().get::<Tunnel>().cloned() {
        if request.uri().port_u16() != Some(443) {
            return Ok(Response::builder().status(403).body(body::full("not there")).unwrap());
        }
        tokio::spawn(async move {
            let mut open = tunnel.open().await.unwrap();
            let mut bytes = [0; 64];
            while let Ok(count @ 1..) = open.read(&mut bytes).await {
                bytes[..count].make_ascii_uppercase();
                open.write_all(&bytes[..count]).await.unwrap();
            }
        });
        return Ok(Response::new(body::empty()));
    }
    Ok(Response::new(body::full(line)))
}

async fn start(mode: Mode) -> (SocketAddr, Shutdown) {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), Shutdown::new());
    let limits = Limits {
        mode,
        header_timeout: IDLE,
        idle_timeout: IDLE,
        peer_connections_max: 1,
        ..Limits::default()
    };
    tokio::spawn(serve(listener, service_fn(answer), limits, stop.clone()));
    (address, stop)
}

async fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn only_a_proxy_serves_requests_for_any_host() {
    let (proxy, _stop) = start(Mode::Proxy).await;
    let whole =
        "GET http://a.example/b HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n";
    let said = exchange(proxy, whole).await;
    assert!(said.ends_with("GET http://a.example/b \"a.example\""), "{said}");
    let own = "GET /b HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    assert!(exchange(proxy, own).await.ends_with("GET /b \"a.example\""), "the service looks");
    let refused =
        exchange(proxy, "CONNECT a.example:25 HTTP/1.1\r\nHost: a.example:25\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    let (origin, _stop) = start(Mode::Origin).await;
    assert!(exchange(origin, whole).await.starts_with("HTTP/1.1 421"));
    let connect = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
    assert!(exchange(origin, connect).await.starts_with("HTTP/1.1 501"));
}

#[tokio::test]
async fn a_tunnel_carries_any_bytes_and_may_be_idle() {
    let (proxy, _stop) = start(Mode::Proxy).await;
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    // Bytes sent before the answer are not lost.
    let early = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nearly: x\n";
    stream.write_all(early).await.unwrap();
    let mut said = vec![0; 256];
    let mut got = Vec::new();
    while !got.ends_with(b"EARLY: X\n") {
        let count = timeout(SOON, stream.read(&mut said)).await.unwrap().unwrap();
        assert!(0 < count, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&said[..count]);
    }
    assert!(got.starts_with(b"HTTP/1.1 200"));
    // The tunnel is idle for longer than a connection may be, and keeps its address's only slot.
    tokio::time::sleep(3 * IDLE).await;
    let mut other = TcpStream::connect(proxy).await.unwrap();
    assert_eq!(timeout(SOON, other.read(&mut said)).await.unwrap().unwrap(), 0);
    stream.write_all(b"GET no request\n").await.unwrap();
    let count = timeout(SOON, stream.read(&mut said)).await.unwrap().unwrap();
    assert_eq!(&said[..count], b"GET NO REQUEST\n");
    // After its end the slot is free.
    drop(stream);
    let own = "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    timeout(SOON, async { while exchange(proxy, own).await.is_empty() {} }).await.unwrap();
}
