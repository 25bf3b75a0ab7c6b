//! Attacks that other caches have fallen to: requests and answers that two readers read differently, keys
//! that mix objects, requests that cost more than they should, and ICP from strangers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::future::{Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cache::config::Origin;
use cache::{Config, Server};
use common::{Site, answer};
use http::{Method, Request, Response};
use net::body::{self, Body};
use net::clock;
use net::shutdown::Shutdown;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;
use url::Url;

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];

/// Time in which something has to come, or to end: five times the ten seconds that a head may take.
const PATIENCE: Duration = Duration::from_secs(5 * 10);

fn fresh(before: usize) -> Ready<Response<Body>> {
    ready(answer(200, FRESH, body::full(format!("body {before}"))))
}

/// Sends bytes to the cache, and returns all that comes until it closes.
async fn exchange(cache: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(cache).await.unwrap();
    // It may be refused before it is all sent.
    let _ = stream.write_all(bytes).await;
    let mut came = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut came)).await;
    let _ = read.unwrap_or_else(|late| {
        let bytes = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
        panic!("{late}: it does not close after {bytes}")
    });
    String::from_utf8_lossy(&came).into_owned()
}

#[tokio::test]
async fn requests_that_can_be_read_in_two_ways_are_refused() {
    let site = Site::new(|_, before| fresh(before)).await;
    let (url, host) = (site.origin.join("/a").unwrap(), site.origin.authority().to_owned());
    let get = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n");
    let post = format!("POST {url} HTTP/1.1\r\nHost: {host}\r\n");
    let check = async |text: String, statuses: &[&str]| {
        let came = exchange(site.cache, text.as_bytes()).await;
        let status = came.split(' ').nth(1).unwrap_or("");
        assert!(statuses.contains(&status), "{:?}: {came}", &text[..text.len().min(200)]);
        assert_eq!(came.matches("HTTP/1.1 ").count(), usize::from(!came.is_empty()), "{text}");
    };
    let refused = &["400"];
    let both =
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n";
    check(format!("{post}{both}"), refused).await;
    check(format!("{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), refused).await;
    check(format!("{post}Content-Length: 1, 2\r\n\r\nab"), refused).await;
    check(format!("{post}Content-Length: +1\r\n\r\na"), refused).await;
    check(format!("{post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), refused).await;
    check(format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), refused).await;
    check(format!("{get}Host: other.example\r\n\r\n"), refused).await;
    check(format!("GET {url} HTTP/1.1\r\n\r\n"), refused).await;
    check(format!("{get}X: a\r\n folded\r\n\r\n"), refused).await;
    check(format!("{get}X : a\r\n\r\n"), refused).await;
    check(format!("{get}X: {}\r\n\r\n", "a".repeat(500 << 10)), &["400", "431", ""]).await;
    let extension = "a".repeat(1 << 20);
    let long = format!("Transfer-Encoding: chunked\r\n\r\n1;{extension}\r\na\r\n0\r\n\r\n");
    check(format!("{post}{long}"), &["400", "502", ""]).await;
    assert_eq!(site.seen().iter().filter(|it| it.0 == Method::GET).count(), 0);
}

#[tokio::test]
async fn the_url_says_whom_to_ask_whatever_host_says() {
    let site = Site::new(|_, before| fresh(before)).await;
    let url = site.origin.join("/a").unwrap();
    let text = format!("GET {url} HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n");
    assert!(exchange(site.cache, text.as_bytes()).await.ends_with("body 0"));
    assert_eq!(site.seen()[0].2["host"], site.origin.authority());
    assert_eq!(site.get("/a").await.body, "body 0");
}

#[tokio::test]
async fn objects_of_different_hosts_and_ports_are_different() {
    let (one, other) = (
        Site::new(|_, before| fresh(before)).await,
        Site::new(|_, before| fresh(before + 7)).await,
    );
    assert_eq!(one.get("/a").await.body, "body 0");
    let text = format!(
        "GET {}a HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        other.origin,
        one.origin.authority()
    );
    assert!(exchange(one.cache, text.as_bytes()).await.ends_with("body 7"));
    assert_eq!(one.get("/a").await.body, "body 0");
}

#[tokio::test]
async fn what_follows_the_body_of_a_request_is_the_next_request() {
    let site = Site::new(|_, before| fresh(before)).await;
    assert_eq!(site.get("/a").await.body, "body 0");
    let (url, host) = (site.origin.join("/a").unwrap(), site.origin.authority());
    let smuggled = format!("GET {}b HTTP/1.1\r\nHost: {host}\r\n\r\n", site.origin);
    for method in ["HEAD", "GET", "FOO"] {
        let text = format!(
            "{method} {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{smuggled}\
             HEAD {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
            smuggled.len()
        );
        let came = exchange(site.cache, text.as_bytes()).await;
        assert!(came.matches("HTTP/1.1 ").count() <= 2, "{method}: {came}");
    }
    assert!(site.seen().iter().all(|it| it.1 != "/b"), "{:?}", site.seen());
}

/// Starts an origin that answers each connection's first request with these bytes and its further ones
/// with `next`, and a cache before it; returns what comes for each of some paths.
async fn answers_of(bytes: &'static [u8], paths: &[&str]) -> Vec<(u16, String)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4_096];
            let mut answer = bytes.to_vec();
            tokio::spawn(async move {
                while matches!(stream.read(&mut head).await, Ok(1..)) {
                    let _ = stream.write_all(&answer).await;
                    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext".to_vec();
                }
            });
        }
    });
    let site = Site::new(|_, before| fresh(before)).await;
    let mut all = Vec::new();
    for path in paths {
        let url = origin.join(path).unwrap();
        let text = format!(
            "GET {url} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            origin.authority()
        );
        let came = exchange(site.cache, text.as_bytes()).await;
        let status = came.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        all.push((status, came.split_once("\r\n\r\n").map_or("", |it| it.1).to_owned()));
    }
    all
}

#[tokio::test]
async fn no_answer_is_taken_for_that_to_another_request() {
    // A second answer that nobody has asked for.
    let extra = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevilHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    for (_, body) in answers_of(extra, &["/a", "/b", "/c"]).await {
        assert!(!body.contains("poison"), "{body}");
    }
    // Bytes after a body.
    let longer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevilpoison";
    for (_, body) in answers_of(longer, &["/a", "/b"]).await {
        assert!(!body.contains("poison"), "{body}");
    }
    // No end of answers that say to wait.
    let flood: &'static [u8] = Vec::leak(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(200_000));
    let answers = answers_of(flood, &["/a"]).await;
    assert_eq!(answers[0].0, 502, "{answers:?}");
}

#[tokio::test]
async fn an_error_that_one_client_provokes_is_not_told_to_others() {
    for status in [400, 413, 414, 431] {
        let site = Site::new(move |request: Request<Body>, before| async move {
            let is_provoked = request.headers().contains_key("x-evil");
            let lines = [("cache-control", "max-age=60")];
            answer(
                if is_provoked { status } else { 200 },
                &lines[..usize::from(status != 414)],
                body::full(format!("body {before}")),
            )
        })
        .await;
        assert_eq!(site.get_with("/", &[("x-evil", "1")]).await.status, status);
        let other = site.get("/").await.status;
        // A URL that is too long is so for all.
        assert!(other == 200 || status == 414, "{status}: {other}");
    }
}

#[tokio::test]
async fn many_parts_cost_no_more_than_the_whole() {
    let site = Site::new(|_, _| async { answer(200, FRESH, body::full(vec![b'x'; 10_000])) }).await;
    assert_eq!(site.get("/").await.body.len(), 10_000);
    let all = vec!["0-"; 500].join(",");
    let starts = (0..500).map(|it| format!("{it}-")).collect::<Vec<_>>().join(",");
    for (n, ranges) in [all, starts, "0-,0-".to_owned()].iter().enumerate() {
        let range = format!("bytes={ranges}");
        // Of what is stored, and of what is not: its origin is asked for the whole.
        for path in ["/", &format!("/{n}")] {
            let came = site.get_with(path, &[("range", &range)]).await;
            assert!(came.body.len() <= 10_000, "{} bytes", came.body.len());
        }
    }
    assert_eq!(site.seen().len(), 4);
    assert!(site.seen().iter().all(|it| !it.2.contains_key("range")));
    site.get_with("/few", &[("range", "bytes=0-9,20-29")]).await;
    assert_eq!(site.seen()[4].2["range"], "bytes=0-9,20-29");
}

#[tokio::test]
async fn a_url_with_endless_variants_is_bounded_and_its_neighbors_stay() {
    let lines = &[("cache-control", "max-age=60"), ("vary", "x")];
    let site = Site::new(move |_, before| async move {
        answer(200, lines, body::full(format!("body {before}")))
    })
    .await;
    let neighbor = site.get("/b").await.body;
    for n in 0..500 {
        assert_eq!(site.get_with("/a", &[("x", &n.to_string())]).await.status, 200);
    }
    let status = site.handle.status();
    assert_eq!(status.objects, 2, "URLs in memory");
    assert!(status.disk_objects <= 65, "{} objects on disk", status.disk_objects);
    assert_eq!(site.get("/b").await.body, neighbor);
}

/// Sends a head a byte at a time, until it is answered or cut off; returns how long that took.
async fn drip(mut stream: TcpStream) -> Duration {
    let (began, mut drop) = (clock::monotonic(), tokio::time::interval(Duration::from_millis(100)));
    stream.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    loop {
        drop.tick().await;
        // An answer, or the end, is what it waits for.
        let mut came = [0; 100];
        let is_open = match stream.try_read(&mut came) {
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            Ok(_) => false,
        };
        if !is_open || stream.write_all(b"a").await.is_err() {
            return began.elapsed();
        }
    }
}

#[tokio::test]
async fn a_head_that_drips_is_cut_off() {
    let site = Site::new(|_, before| fresh(before)).await;
    let [new, kept] = [site.cache, site.cache].map(TcpStream::connect);
    let (new, mut kept) = (new.await.unwrap(), kept.await.unwrap());
    // One has had an answer before.
    let text = format!("GET {}a HTTP/1.1\r\nHost: x\r\n\r\n", site.origin);
    kept.write_all(text.as_bytes()).await.unwrap();
    let mut came = Vec::new();
    while !came.ends_with(b"body 0") {
        assert_ne!(kept.read_buf(&mut came).await.unwrap(), 0);
    }
    let both = async { tokio::join!(drip(new), drip(kept)) };
    let (new, kept) = timeout(PATIENCE, both).await.expect("it is served for ever");
    // 10 s are promised. It is one timer, which a busy machine delays, and does not stretch.
    assert!(new.max(kept) < 2 * Duration::from_secs(10), "{new:?} {kept:?}");
}

#[tokio::test]
async fn private_addresses_are_known_in_all_spellings() {
    let site = Site::with(|_, before| fresh(before), |it| it.allow_private = false).await;
    let port = site.origin.port().unwrap();
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f.1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "169.254.169.254",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        "%31%32%37.0.0.1",
        "１２７.0.0.1",
        "a.localhost",
    ] {
        let text =
            format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let came = exchange(site.cache, text.as_bytes()).await;
        let status = came.split(' ').nth(1).unwrap_or("");
        assert!(["403", "400", "502"].contains(&status), "{host}: {came}");
        let text = format!("CONNECT {host}:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let came = exchange(site.cache, text.as_bytes()).await;
        let status = came.split(' ').nth(1).unwrap_or("");
        assert!(["403", "400", "502"].contains(&status), "{host}: {came}");
    }
    // Names that nobody can resolve lead nowhere, too.
    assert_eq!(site.seen().len(), 0);
}

#[tokio::test]
async fn a_cache_that_asks_itself_stops_at_once() {
    let data = tempfile::tempdir().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    drop(socket);
    let mut config = Config::new(at, SocketAddr::from(([127, 0, 0, 1], 0)), data.path());
    config.allow_private = true;
    let url = Url::parse(&format!("http://{at}/")).unwrap();
    config.origins.push(Origin { host: "www.example.org".to_owned(), url });
    let server = Server::bind(config).await.unwrap();
    let stop = Shutdown::new();
    tokio::spawn(server.run(stop.clone()));
    let text = b"GET /a HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n";
    let came = exchange(at, text).await;
    assert!(came.starts_with("HTTP/1.1 508 "), "{came}");
    stop.start();
}

/// Returns a message of ICP.
fn icp(opcode: u8, version: u8, length: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![opcode, version];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 7]);
    bytes.extend_from_slice(&[0; 12]);
    bytes.extend_from_slice(rest);
    bytes
}

#[tokio::test]
async fn icp_of_strangers_brings_nothing_and_costs_little() {
    let data = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = Config::new(any, any, data.path());
    (config.icp_listen, config.allow_private) = (Some(any), true);
    let server = Server::bind(config).await.unwrap();
    let (cache, handle) = (server.icp_addr().unwrap(), server.handle());
    let stop = Shutdown::new();
    tokio::spawn(server.run(stop.clone()));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.connect(cache).await.unwrap();
    let query = |url: &[u8]| {
        let rest = [&[0; 4], url, &[0]].concat();
        icp(1, 2, u16::try_from(20 + rest.len()).unwrap(), &rest)
    };
    let good = query(b"http://www.example.org/a");
    let mut wrong = vec![
        vec![],
        vec![1],
        good[..19].to_vec(),
        icp(1, 3, 49, &good[20..]),
        icp(1, 2, 48, &good[20..]),
        icp(1, 2, u16::MAX, &good[20..]),
        icp(77, 2, u16::try_from(good.len()).unwrap(), &good[20..]),
        // Hits that nobody has asked for.
        icp(2, 2, 45, b"http://www.example.org/a\0"),
        icp(23, 2, 47, b"http://www.example.org/a\0xx"),
        query(&vec![b'a'; 9_000]),
    ];
    wrong.extend(
        (0..1_000)
            .map(|it| icp(2, 2, 45, format!("http://www.example.org/{}\0", it % 10).as_bytes())),
    );
    for it in &wrong {
        socket.send(it).await.unwrap();
    }
    socket.send(&good).await.unwrap();
    let mut bytes = [0; 20_000];
    let length = timeout(PATIENCE, socket.recv(&mut bytes)).await.unwrap().unwrap();
    // It is the answer to the good one, and not longer than that.
    assert_eq!((bytes[0], bytes[1]), (3, 2), "a miss");
    assert!(length <= good.len() && bytes[20..length].starts_with(b"http://www.example.org/a"));
    assert!(0 < handle.status().icp_ignored);
    stop.start();
}

#[tokio::test]
async fn icp_of_addresses_that_are_denied_is_not_answered() {
    let data = tempfile::tempdir().unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let text = "[access]\ndeny = ['127.0.0.40']\n";
    let access = Config::parse(text, data.path()).unwrap().daemon.access;
    let mut config = Config::new(any, any, data.path());
    (config.icp_listen, config.daemon.access) = (Some(any), access);
    let server = Server::bind(config).await.unwrap();
    let (cache, handle) = (server.icp_addr().unwrap(), server.handle());
    let stop = Shutdown::new();
    tokio::spawn(server.run(stop.clone()));
    let query = icp(1, 2, 49, b"\0\0\0\0http://www.example.org/a\0");
    let [denied, other] = [40, 41].map(|n| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, n), 0)));
    let (denied, other) = (denied.await.unwrap(), other.await.unwrap());
    for socket in [&denied, &other] {
        socket.send_to(&query, cache).await.unwrap();
    }
    let mut bytes = [0; 100];
    // They are read in order.
    let answered = timeout(PATIENCE, other.recv(&mut bytes)).await.unwrap().unwrap();
    assert!(answered == 45 && bytes[0] == 3);
    assert_eq!(denied.try_recv(&mut bytes).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(handle.status().icp_ignored, 1);
    stop.start();
}

/// Returns the memory of this process that is resident, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() << 10
}

#[tokio::test]
async fn a_slow_reader_of_a_long_body_holds_up_nobody_and_little_memory() {
    const LENGTH: usize = 256 << 20;
    const PIECE: usize = 64 << 10;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let site = Site::new(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut left = LENGTH;
        let read = move || {
            let piece = left.min(PIECE);
            left -= piece;
            Ok((piece != 0).then(|| vec![b'x'; piece].into()))
        };
        async move { answer(200, FRESH, body::pieces(read, LENGTH as u64)) }
    })
    .await;
    let before = resident();
    // It asks and does not read.
    let mut slow = TcpStream::connect(site.cache).await.unwrap();
    let text = format!("GET {}a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", site.origin);
    slow.write_all(text.as_bytes()).await.unwrap();
    let (mut other, mut came) = (site.send("/a", &[]).await, 0);
    while let Some(piece) = other.chunk().await.unwrap() {
        came += piece.len();
    }
    assert_eq!(came, LENGTH);
    assert_eq!(count.load(Ordering::SeqCst), 1, "it joined the fetch of the slow one");
    // The origin and the other client are in this process, too; nobody holds the body.
    let more = resident().saturating_sub(before);
    assert!(more < LENGTH / 4, "{more} bytes");
    drop(slow);
}

#[tokio::test]
async fn purges_are_for_the_administration_alone() {
    let site = Site::new(|request: Request<Body>, before| async move {
        let status = if request.method().as_str() == "PURGE" { 405 } else { 200 };
        answer(status, FRESH, body::full(format!("body {before}")))
    })
    .await;
    assert_eq!(site.get("/a").await.body, "body 0");
    let purge = Method::from_bytes(b"PURGE").unwrap();
    assert_eq!(site.ask(purge, "/a", &[]).await.status, 405, "it is the origin's answer");
    assert_eq!(site.get("/a").await.body, "body 0", "what is stored stays");
}
