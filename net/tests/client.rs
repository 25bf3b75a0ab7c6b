//! Tests of the client against well-behaved and misbehaving peers.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::BodyExt;
use net::Error;
use net::body::{self, Body};
use net::client::{Client, Credentials, Request, Settings, Timeouts};
use net::error::{Retry, Stage};
use net::fetch::Login;
use net::guard::{Policy, Refusal};
use net::server::{Limits, bind, serve};
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::service_fn;
use url::Url;

fn client() -> Client {
    let timeouts = Timeouts {
        connect: Duration::from_secs(5),
        header: Duration::from_secs(2),
        idle: Duration::from_secs(2),
        total: None,
    };
    Client::new(Settings { allow_private: true, timeouts, ..Settings::default() })
}

fn url(address: SocketAddr, path: &str) -> Url {
    Url::parse(&format!("http://{address}{path}")).unwrap()
}

/// A peer that sends `answer` to each connection's first request and closes.
async fn peer(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(&answer).await.unwrap();
        }
    });
    address
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Starts our server: it echoes requests, redirects from `/to?URL`, and refuses at `/refuse`.
async fn daemon() -> SocketAddr {
    let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, service_fn(answer), Limits::default(), Shutdown::new()));
    address
}

async fn answer(request: http::Request<Body>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let mut response = Response::new(body::empty());
    match head.uri.path() {
        "/to" | "/to308" => {
            let (status, to) = match head.uri.path() {
                "/to" => (StatusCode::SEE_OTHER, head.uri.query().unwrap()),
                _ => (StatusCode::PERMANENT_REDIRECT, head.uri.query().unwrap()),
            };
            *response.status_mut() = status;
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(to).unwrap());
        }
        "/refuse" => {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("7"));
            *response.body_mut() = body::full("come back\nlater");
        }
        _ => {
            let text =
                |name| head.headers.get(name).map_or("", |it: &HeaderValue| it.to_str().unwrap());
            let body = body.collect().await.unwrap().to_bytes();
            let echo = serde_json::json!({
                "line": format!("{} {}", head.method, head.uri),
                "host": text(header::HOST),
                "agent": text(header::USER_AGENT),
                "authorization": text(header::AUTHORIZATION),
                "body": String::from_utf8_lossy(&body),
            });
            *response.body_mut() = body::full(echo.to_string());
        }
    }
    Ok(response)
}

async fn echoed(client: &Client, request: Request) -> serde_json::Value {
    client.send(request).await.unwrap().require_success().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn sends_its_name_host_and_token() {
    let address = daemon().await;
    let contact = Some("mailto:admin@example.org".to_owned());
    let client = Client::new(Settings { allow_private: true, contact, ..Settings::default() });
    let request = Request::get(url(address, "/a/b?c=d")).token(Some("secret".to_owned()));
    let echo = echoed(&client, request).await;
    assert_eq!(echo["line"], "GET /a/b?c=d");
    assert_eq!(echo["host"], address.to_string());
    assert_eq!(echo["authorization"], "Bearer secret");
    let login = Some(Login { name: "Aladdin".to_owned(), password: "open sesame".to_owned() });
    let request = Request::get(url(address, "/"));
    let request = request.credentials(Credentials { login, ..Credentials::default() });
    // The example of RFC 7617 §2.
    let echo = echoed(&client, request).await;
    assert_eq!(echo["authorization"], "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    let agent = echo["agent"].as_str().unwrap();
    assert!(agent.starts_with("harvest/") && agent.ends_with(" (+mailto:admin@example.org)"));
}

#[tokio::test]
async fn passes_a_request_on_as_it_is() {
    let (address, client) = (daemon().await, client());
    let mut pieces = ["one ", "two"].into_iter();
    let body = body::pieces(move || Ok(pieces.next().map(Bytes::from)), 7);
    let request = Request { method: Method::PUT, ..Request::get(url(address, "/put")) };
    let answer = client.pass(request, body).await.unwrap();
    let echo: serde_json::Value = answer.json().await.unwrap();
    assert_eq!((&echo["line"], &echo["body"]), (&"PUT /put".into(), &"one two".into()));
    assert_eq!(echo["agent"], "", "it is not ours");
    let request = Request::get(url(address, "/to?/elsewhere"));
    let answer = client.pass(request, body::empty()).await.unwrap();
    assert_eq!(
        (answer.status, answer.header("location")),
        (StatusCode::SEE_OTHER, Some("/elsewhere"))
    );
}

#[tokio::test]
async fn follows_redirects_and_drops_credentials_on_the_way_to_another_origin() {
    let (here, there) = (daemon().await, daemon().await);
    let client = client();
    let token = Some("secret".to_owned());
    let same = Request::post(url(here, "/to?/end"), "body").token(token.clone());
    let same = echoed(&client, same).await;
    assert_eq!((&same["line"], &same["body"]), (&"GET /end".into(), &"".into()));
    assert_eq!(same["authorization"], "Bearer secret");
    let other = url(here, &format!("/to308?http://{there}/end"));
    let other = echoed(&client, Request::post(other, "body").token(token)).await;
    assert_eq!((&other["line"], &other["body"]), (&"POST /end".into(), &"body".into()));
    assert_eq!(other["authorization"], "");

    let five = client.send(Request::get(url(here, "/to?/to?/to?/to?/to?/end"))).await.unwrap();
    assert_eq!((five.status, five.url.path()), (StatusCode::OK, "/end"));
    let endless = peer("HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n").await;
    let error = client.send(Request::get(url(endless, "/"))).await.unwrap_err();
    assert!(matches!(error, Error::Redirects { redirects_max: 5, .. }), "{error}");
}

#[tokio::test]
async fn vets_every_address_on_every_hop() {
    let address = daemon().await;
    let public = Client::new(Settings::default());
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let url = Url::parse(&format!("http://{host}:{}/", address.port())).unwrap();
        let error = public.send(Request::get(url)).await.unwrap_err();
        assert!(matches!(error, Error::Refused { refusal: Refusal::Loopback, .. }), "{error}");
        assert_eq!(error.retry(), Retry::No);
    }
    // A permission of one request does not extend to the client's others.
    let request = Request::get(url(address, "/")).allow_private(true);
    assert_eq!(echoed(&public, request).await["line"], "GET /");
    assert!(public.send(Request::get(url(address, "/"))).await.is_err());
    // Not even an allowed source may redirect us to a link-local address.
    let to = url(address, "/to?http://169.254.169.254/latest/meta-data/");
    let error = client().send(Request::get(to)).await.unwrap_err();
    assert!(matches!(error, Error::Refused { refusal: Refusal::LinkLocal, .. }), "{error}");
}

#[tokio::test]
async fn uses_a_connection_again_until_the_peer_has_closed_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    let peer = tokio::spawn(async move {
        for requests in [3, 1] {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            for _ in 0..requests {
                read_head(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            }
        }
    });
    let client = client();
    for _ in 0..4 {
        let response = client.send(Request::get(url(address, "/"))).await.unwrap();
        assert_eq!(response.bytes(10).await.unwrap(), "ok");
    }
    peer.await.unwrap();
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn knows_how_distant_the_hosts_are_that_it_has_reached() {
    let (near, other, client) = (daemon().await, daemon().await, client());
    let distance = |at| client.distances().of(&url(at, "/"));
    assert_eq!(distance(near), None);
    echoed(&client, Request::get(url(near, "/a"))).await;
    let measure = |policy| {
        let (client, at) = (client.clone(), url(other, "/"));
        async move { client.measure(&at, policy, Duration::from_secs(10)).await }
    };
    measure(Policy::AllowPrivate).await.unwrap();
    for at in [near, other] {
        assert!(distance(at).is_some_and(|it| it < Duration::from_secs(10)));
    }
    let error = measure(Policy::Public).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn orders_replicas_and_those_that_are_not_reached_come_last() {
    let (one, two) = (daemon().await, daemon().await);
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (client, patience) = (client(), Duration::from_secs(10));
    let places = [nobody, one, two].map(|it| url(it, "/"));
    let nearest = async |policy| client.nearest(places.to_vec(), policy, patience).await;
    // Nobody may ask them, so nothing is known of them.
    assert_eq!(nearest(Policy::Public).await, places);
    let ordered = nearest(Policy::AllowPrivate).await;
    assert_eq!(ordered[2], places[0]);
    let distance = |it: &Url| client.distances().of(it).unwrap();
    assert!(distance(&ordered[0]) <= distance(&ordered[1]));
    let alone = vec![url(daemon().await, "/")];
    assert_eq!(client.nearest(alone.clone(), Policy::AllowPrivate, patience).await, alone);
    assert_eq!(client.distances().of(&alone[0]), None, "one address alone is not measured");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error_after_its_good_bytes() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
    ] {
        let mut response = client().send(Request::get(url(peer(answer).await, "/"))).await.unwrap();
        let mut all = Vec::new();
        let error = loop {
            match response.chunk().await {
                Ok(Some(piece)) => all.extend_from_slice(&piece),
                Ok(None) => panic!("{answer:?} ended well"),
                Err(error) => break error,
            }
        };
        assert_eq!(all, b"hello");
        assert!(matches!(error, Error::Cut { received: 5, .. }), "{error}");
    }
}

#[tokio::test]
async fn refuses_invalid_and_oversized_answers() {
    let client = client();
    for answer in ["", "hello\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
        let error = client.send(Request::get(url(peer(answer).await, "/"))).await.unwrap_err();
        assert!(matches!(error, Error::Protocol { .. }), "{error}");
    }
    let head = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert!(client.send(Request::get(url(peer(head).await, "/"))).await.is_err());

    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
    ] {
        let address = peer(answer).await;
        let response = client.send(Request::get(url(address, "/"))).await.unwrap();
        let error = response.bytes(8).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { bytes_max: 8, .. }), "{error}");
        let request = Request { response_bytes_max: Some(3), ..Request::get(url(address, "/")) };
        assert!(client.send(request).await.unwrap().bytes(100).await.is_err());
    }
}

#[tokio::test]
async fn gives_up_on_peers_that_fall_silent() {
    let stages = |error: Error| match error {
        Error::Timeout { stage, .. } => stage,
        other => panic!("{other}"),
    };
    let client = client();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = url(listener.local_addr().unwrap(), "/");
    let error = client.send(Request::get(silent.clone())).await.unwrap_err();
    assert_eq!(stages(error), Stage::Header);

    let total = Some(Duration::from_millis(50));
    let timeouts = Some(Timeouts { total, ..Timeouts::default() });
    let request = Request { timeouts, ..Request::get(silent) };
    assert_eq!(stages(client.send(request).await.unwrap_err()), Stage::Total);

    let half = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = half.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = half.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello").await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut response = client.send(Request::get(url(address, "/"))).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "hello");
    assert_eq!(stages(response.chunk().await.unwrap_err()), Stage::Idle);
}

#[tokio::test]
async fn a_trickling_peer_is_given_up_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n").await.unwrap();
        // Fast at first: early bytes do not extend later time limits.
        let mut sent = stream.write_all(&[b'x'; 100_000]).await;
        while sent.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            sent = stream.write_all(b"x").await;
        }
    });
    let timeouts = Some(Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() });
    let request = Request { timeouts, ..Request::get(url(address, "/")) };
    let mut response = client().send(request).await.unwrap();
    let reading = async {
        loop {
            if let Err(error) = response.chunk().await {
                return error;
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    assert!(matches!(error, Error::Timeout { stage: Stage::Idle, .. }), "{error}");
    assert!(100_000 < response.received());
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_then_give_up() {
    let settings = Settings {
        allow_private: true,
        connections_max: 1,
        timeouts: Timeouts { connect: Duration::from_millis(400), ..Timeouts::default() },
        ..Settings::default()
    };
    let (client, address) = (Client::new(settings), daemon().await);
    let first = client.send(Request::get(url(address, "/"))).await.unwrap();
    let error = client.send(Request::get(url(address, "/"))).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { stage: Stage::Queue, .. }), "{error}");
    first.bytes(1_000).await.unwrap();
    client.send(Request::get(url(address, "/"))).await.unwrap();
}

#[tokio::test]
async fn a_refusal_quotes_the_peer_and_says_when_to_retry() {
    let response = client().send(Request::get(url(daemon().await, "/refuse"))).await.unwrap();
    let error = response.require_success().await.unwrap_err();
    assert!(error.to_string().ends_with("/refuse answered 503 Service Unavailable: come back"));
    assert_eq!(error.retry(), Retry::After(Duration::from_secs(7)));
    let response = client().send(Request::get(url(daemon().await, "/"))).await.unwrap();
    let error = response.json::<Vec<u8>>().await.unwrap_err();
    assert!(matches!(error, Error::Json { .. }), "{error}");
}

#[tokio::test]
async fn refuses_urls_that_it_cannot_or_should_not_fetch() {
    for bad in ["ftp://h/", "file:///etc/passwd", "http://user:pw@h/"] {
        let error = client().send(Request::get(Url::parse(bad).unwrap())).await.unwrap_err();
        assert!(matches!(error, Error::Url { .. }), "{error}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = client().send(Request::get(url(address, "/"))).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()));
}

#[tokio::test]
async fn head_has_a_length_and_no_body() {
    let address = peer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
    let request = Request { method: Method::HEAD, ..Request::get(url(address, "/")) };
    let response = client().send(request).await.unwrap();
    assert_eq!(response.header("content-length"), Some("9"));
    assert_eq!(response.bytes(9).await.unwrap(), "");
}
