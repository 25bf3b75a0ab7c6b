//! Tests of what origins and clients do wrong, or at a bad moment: nobody gets what is not theirs, and
//! nothing old stays in use.

use crate::common::{Site, answer, piecewise};
use http::{Method, Request, Response};
use net::body::{self, Body};
use net::client::{Client, Proxy, Settings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use url::Url;

type Lines = &'static [(&'static str, &'static str)];

fn counted(status: u16, lines: Lines, before: usize) -> Response<Body> {
    answer(status, lines, body::full(format!("body {before}")))
}

/// Starts an origin whose first answer has the `first` headers, and all later ones `then`.
async fn turning(first: Lines, (status, then): (u16, Lines)) -> Site {
    Site::new(move |_, before| async move {
        if before == 0 { counted(200, first, before) } else { counted(status, then, before) }
    })
    .await
}

const FRESH: Lines = &[("cache-control", "max-age=60"), ("etag", "\"v\"")];
const STALE: Lines = &[("cache-control", "max-age=0"), ("etag", "\"v\"")];
const RELOAD: &[(&str, &str)] = &[("cache-control", "no-cache")];

#[tokio::test]
async fn a_shared_object_that_turns_private_is_shared_no_more() {
    let private: Lines = &[("cache-control", "private, max-age=60"), ("x", "secret")];
    let site = Site::new(move |request: Request<Body>, before| async move {
        let asks = request.headers().contains_key("if-none-match");
        match (request.method(), asks) {
            (&Method::HEAD, _) | (_, true) => {
                answer(if asks { 304 } else { 200 }, private, body::empty())
            }
            _ if before == 0 => counted(200, STALE, before),
            _ => counted(200, private, before),
        }
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    // The 304 is for one client: the object is fetched for it alone, and for the next one again.
    assert_eq!(site.get("/").await.body, "body 2");
    assert_eq!(site.get("/").await.body, "body 3");
    let site = turning(FRESH, (200, private)).await;
    assert_eq!(site.get("/").await.body, "body 0");
    site.ask(Method::HEAD, "/", RELOAD).await;
    assert_eq!(site.get("/").await.body, "body 2", "HEAD said so");
    let site = turning(FRESH, (200, private)).await;
    site.get("/").await;
    assert_eq!(site.get_with("/", RELOAD).await.body, "body 1");
    assert_eq!(site.get("/").await.body, "body 2", "what it replaces is not used");
}

#[tokio::test]
async fn a_304_with_several_lines_is_read_to_the_last() {
    for line in [("cache-control", "private"), ("cache-control", "no-store"), ("vary", "cookie")] {
        let site = Site::new(move |request: Request<Body>, before| async move {
            if request.headers().contains_key("if-none-match") {
                let lines = [("cache-control", "max-age=60"), line, ("x", "secret")];
                return answer(304, &lines, body::empty());
            }
            counted(200, STALE, before)
        })
        .await;
        assert_eq!(site.get("/").await.body, "body 0");
        let (second, third) = (site.get("/").await, site.get("/").await);
        assert_eq!([second.header("x"), third.header("x")], ["", ""], "{line:?}");
        assert_ne!(third.body, "body 0", "{line:?}");
    }
}

#[tokio::test]
async fn a_slow_older_answer_does_not_replace_a_newer_one() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(Some(receiver)));
    let site = Site::new(move |_, before| {
        let receiver = receiver.clone();
        async move {
            match receiver.lock().await.take() {
                Some(it) => answer(200, FRESH, piecewise(it)),
                None => counted(200, FRESH, before),
            }
        }
    })
    .await;
    pieces.send(Ok("old")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "old");
    // Times are compared in milliseconds.
    let sent = net::clock::now_ms();
    while net::clock::now_ms() <= sent {}
    assert_eq!(site.get_with("/", RELOAD).await.body, "body 1");
    drop(pieces);
    assert_eq!(first.chunk().await.unwrap(), None);
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn what_an_origin_says_to_one_user_is_said_to_no_other() {
    let site = Site::new(|request: Request<Body>, before| async move {
        let lines: Lines = &[("cache-control", "max-age=60"), ("x", "secret")];
        match request.headers().get("authorization") {
            Some(user) if user == "good" => counted(200, lines, before),
            Some(_) => counted(401, &[], before),
            None => counted(200, FRESH, before),
        }
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    let user = |name| [("cache-control", "no-cache"), ("authorization", name)];
    assert_eq!(site.get_with("/", &user("good")).await.header("x"), "secret");
    assert_eq!(site.get_with("/", &user("bad")).await.status, 401);
    let next = site.get("/").await;
    assert_eq!(
        (next.body.as_str(), next.header("x")),
        ("body 0", ""),
        "it is still there, as it was"
    );
}

#[tokio::test]
async fn a_purge_holds_against_what_is_on_its_way() {
    let (release, gate) = mpsc::unbounded_channel::<()>();
    let gate = std::sync::Arc::new(tokio::sync::Mutex::new(gate));
    let site = Site::new(move |request: Request<Body>, before| {
        let gate = gate.clone();
        async move {
            if request.headers().contains_key("if-none-match") {
                gate.lock().await.recv().await;
                return answer(304, FRESH, body::empty());
            }
            counted(200, STALE, before)
        }
    })
    .await;
    site.get("/").await;
    let (validated, ()) = tokio::join!(site.get("/"), async {
        while site.seen().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(site.handle.purge(&site.origin), 1);
        release.send(()).unwrap();
    });
    assert_eq!(validated.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 2");
}

#[tokio::test]
async fn an_answer_that_wants_validation_is_joined_by_nobody_who_comes_later() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(Some(receiver)));
    let site = Site::new(move |_, before| {
        let receiver = receiver.clone();
        async move {
            let lines: Lines = &[("cache-control", "no-cache"), ("etag", "\"v\"")];
            match receiver.lock().await.take() {
                Some(it) => answer(200, lines, piecewise(it)),
                None => counted(200, lines, before),
            }
        }
    })
    .await;
    pieces.send(Ok("old")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "old");
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn stale_answers_without_a_validator_are_used_while_the_origin_fails() {
    let first: Lines = &[("cache-control", "max-age=0, stale-if-error=60")];
    let site = turning(first, (503, &[])).await;
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get_with("/", RELOAD).await.status, 503, "but not for who wants a new one");
}

/// Starts an origin that sends these bytes to each request, and fetches from it through a cache.
async fn raw(bytes: &'static str) -> (u16, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4_096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(bytes.as_bytes()).await;
        }
    });
    let site = Site::new(|_, before| async move { counted(200, &[], before) }).await;
    let client = Client::new(Settings { allow_private: true, ..Settings::default() });
    let proxy = Url::parse(&format!("http://{}/", site.cache)).unwrap();
    let request = site.request(Method::GET, "/", &[]);
    let request =
        net::client::Request { url, ..request }.proxy(Some(Proxy::new(proxy, None).unwrap()));
    let response = client.send(request).await.unwrap();
    let status = response.status.as_u16();
    (status, String::from_utf8_lossy(&response.bytes(1_000).await.unwrap()).into_owned())
}

#[tokio::test]
async fn an_answer_of_which_the_end_is_uncertain_is_told_to_nobody() {
    let check = async |bytes, expected: (u16, &str)| {
        let (status, came) = raw(bytes).await;
        let came = if status == 200 { came.as_str() } else { "" };
        assert_eq!((status, came), expected, "{bytes:?}");
    };
    let chunked = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\nTransfer-Encoding: \
                   chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n";
    check(chunked, (200, "abcdef")).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", (200, "abc")).await;
    check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", (502, "")).await;
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    check(coded, (502, "")).await;
    check("HTTP/1.1 304 Not Modified\r\n\r\n", (502, "")).await;
    check("HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n\r\nx", (502, "")).await;
    check("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", (502, "")).await;
}

#[tokio::test]
async fn a_client_that_has_ended_its_side_gets_its_answer() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(receiver));
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let opened = std::sync::Arc::clone(&gate);
    let (heads, mut asked) = mpsc::unbounded_channel();
    let site = Site::new(move |_, _| {
        let (gate, receiver) = (std::sync::Arc::clone(&gate), std::sync::Arc::clone(&receiver));
        heads.send(()).unwrap();
        async move {
            gate.acquire().await.unwrap().forget();
            let (_, none) = mpsc::unbounded_channel();
            answer(200, FRESH, piecewise(std::mem::replace(&mut *receiver.lock().await, none)))
        }
    })
    .await;
    let mut client = tokio::net::TcpStream::connect(site.cache).await.unwrap();
    let request = format!("GET {}a HTTP/1.1\r\nHost: x\r\n\r\n", site.origin);
    client.write_all(request.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    asked.recv().await.unwrap();
    opened.add_permits(1);
    let mut came = Vec::new();
    for piece in ["first", "second"] {
        pieces.send(Ok(piece)).unwrap();
        while !String::from_utf8_lossy(&came).contains(piece) {
            assert_ne!(client.read_buf(&mut came).await.unwrap(), 0, "{came:?}");
        }
    }
    drop(pieces);
    // The end of the connection comes with that of the answer.
    client.read_to_end(&mut came).await.unwrap();
    assert!(came.ends_with(b"0\r\n\r\n"), "{came:?}");
    // And from what is stored.
    let mut client = tokio::net::TcpStream::connect(site.cache).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut came = String::new();
    client.read_to_string(&mut came).await.unwrap();
    assert!(came.ends_with("firstsecond"), "{came}");
}
