//! Tests of the proxy: what is fetched, joined, used again, validated and refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use cache::config::Origin;
use common::{Site, answer, piecewise, raw};
use http::{Method, Request, Response};
use net::body::{self, Body};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};

/// Answers each request with how many came before it.
fn counted(lines: &[(&str, &str)], before: usize) -> Ready<Response<Body>> {
    ready(answer(200, lines, body::full(format!("body {before}"))))
}

#[tokio::test]
async fn what_was_fetched_is_used_again() {
    let site = Site::new(|_, before| counted(&[("cache-control", "max-age=60")], before)).await;
    let first = site.get("/a?b").await;
    assert_eq!((first.status, first.body.as_str()), (200, "body 0"));
    assert_eq!(first.how(), "fwd=uri-miss; fwd-status=200; stored");
    assert!(first.header("via").contains("1.1 c") && first.header("age").is_empty());
    let second = site.get("/a?b").await;
    assert_eq!((second.status, second.body.as_str()), (200, "body 0"));
    assert!(second.how().starts_with("hit; ttl=") && second.header("age") == "0", "{second:?}");
    assert_eq!(second.header("content-length"), "6");
    assert_eq!(site.get("/a").await.body, "body 1");
    let head = site.ask(Method::HEAD, "/a?b", &[]).await;
    assert_eq!((head.header("content-length"), head.body.as_str()), ("6", ""));
    assert_eq!(site.seen().len(), 2);
    let via = site.seen()[0].2.get("via").cloned();
    assert_eq!(via.unwrap(), "1.1 c");
}

/// Starts an origin whose first answer has a body that comes as the test sends it.
async fn slow_site() -> (mpsc::UnboundedSender<Result<&'static str, &'static str>>, Site) {
    slow_site_that_says("max-age=60").await
}

/// The same, with this `Cache-Control`.
async fn slow_site_that_says(
    control: &'static str,
) -> (mpsc::UnboundedSender<Result<&'static str, &'static str>>, Site) {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let site = Site::new(move |_, before| {
        let receiver = Arc::clone(&receiver);
        async move {
            let lines = &[("cache-control", control)];
            match receiver.lock().await.take() {
                Some(it) => answer(200, lines, piecewise(it)),
                None => counted(lines, before).await,
            }
        }
    });
    (pieces, site.await)
}

#[tokio::test]
async fn a_hundred_clients_share_one_fetch_and_have_each_piece_as_it_comes() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first ")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "first ");
    let began = net::clock::monotonic();
    let mut others = Vec::new();
    for _ in 0..100 {
        let mut other = site.send("/", &[]).await;
        assert_eq!(other.chunk().await.unwrap().unwrap(), "first ");
        assert!(other.header("cache-status").unwrap().ends_with("stored; collapsed"));
        others.push(other);
    }
    // The body has not ended: nobody waited for it. 50 ms each is promised.
    assert!(began.elapsed() < 5 * Duration::from_millis(50 * 100), "{:?}", began.elapsed());
    pieces.send(Ok("second")).unwrap();
    drop(pieces);
    // The client that began it leaves.
    drop(first);
    for mut other in others {
        assert_eq!(other.chunk().await.unwrap().unwrap(), "second");
        assert_eq!(other.chunk().await.unwrap(), None);
    }
    assert_eq!(site.get("/").await.body, "first second");
    assert_eq!(site.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_for_one_client_comes_whole_however_slowly() {
    let (pieces, site) = slow_site_that_says("private").await;
    let mut answer = site.send("/", &[]).await;
    for piece in ["first", "second", "last"] {
        // The body is waited for before there is more of it.
        let (next, ()) = tokio::join!(answer.chunk(), async { pieces.send(Ok(piece)).unwrap() });
        assert_eq!(next.unwrap().unwrap(), piece);
    }
    drop(pieces);
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn an_answer_for_one_client_is_shared_with_none() {
    for line in [("cache-control", "private"), ("cache-control", "no-store"), ("set-cookie", "a=b")]
    {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let site = Arc::new(
            Site::new(move |_, before| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    answer(200, &[line], body::full(format!("body {before}")))
                }
            })
            .await,
        );
        let asking: Vec<_> = (0..10)
            .map(|_| {
                let site = Arc::clone(&site);
                tokio::spawn(async move { site.get("/").await.body })
            })
            .collect();
        opened.add_permits(100);
        let mut bodies = Vec::new();
        for it in asking {
            bodies.push(it.await.unwrap());
        }
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!(bodies.len(), 10, "{line:?}: {bodies:?}");
        let next = site.get("/").await;
        assert!(next.how().starts_with("fwd=uri-miss; fwd-status=200; detail="), "{next:?}");
    }
}

#[tokio::test]
async fn where_the_origin_breaks_off_all_are_cut_and_nothing_is_stored() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first")).unwrap();
    let mut answers = [site.send("/", &[]).await, site.send("/", &[]).await];
    for it in &mut answers {
        assert_eq!(it.chunk().await.unwrap().unwrap(), "first");
    }
    pieces.send(Err("broken")).unwrap();
    for mut it in answers {
        assert!(it.chunk().await.is_err());
    }
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn a_fetch_ends_when_the_last_client_has_left() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("first")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert!(first.chunk().await.unwrap().is_some());
    drop(first);
    // The origin's body is dropped with its connection.
    pieces.closed().await;
    assert_eq!(site.get("/").await.body, "body 1");
}

#[tokio::test]
async fn a_stale_answer_is_validated_and_updated() {
    let site = Site::new(|request: Request<Body>, _| async move {
        let lines = [("cache-control", "max-age=0"), ("etag", "\"v\""), ("x", "1")];
        match request.headers().get("if-none-match") {
            Some(tag) if tag == "\"v\"" => answer(
                304,
                &[("cache-control", "max-age=60"), ("etag", "\"v\""), ("x", "2")],
                body::empty(),
            ),
            _ => answer(200, &lines, body::full("body")),
        }
    })
    .await;
    assert_eq!(site.get("/").await.header("x"), "1");
    let validated = site.get("/").await;
    assert_eq!(
        (validated.status, validated.header("x"), validated.body.as_str()),
        (200, "2", "body")
    );
    assert_eq!(validated.how(), "fwd=stale; fwd-status=304; stored");
    assert!(site.get("/").await.how().starts_with("hit"));
    let has_it = site.get_with("/", &[("if-none-match", "\"v\"")]).await;
    assert_eq!((has_it.status, has_it.body.as_str(), has_it.header("etag")), (304, "", "\"v\""));
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn an_unasked_304_keeps_no_wrong_body_alive() {
    let site = Site::new(|request: Request<Body>, before| async move {
        if request.headers().contains_key("if-none-match") {
            return answer(304, &[("etag", "\"other\"")], body::empty());
        }
        answer(
            200,
            &[("cache-control", "max-age=0"), ("etag", "\"v\"")],
            body::full(format!("body {before}")),
        )
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 2");
}

#[tokio::test]
async fn a_failing_origin_leaves_stale_answers_in_use() {
    let site = Site::new(|_, before| async move {
        if before == 0 {
            return counted(&[("cache-control", "max-age=0"), ("etag", "\"v\"")], before).await;
        }
        answer(503, &[], body::full("no"))
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    let stale = site.get("/").await;
    assert_eq!((stale.status, stale.body.as_str()), (200, "body 0"));
    assert!(stale.how().ends_with("detail=\"the origin fails\""), "{stale:?}");
    assert_eq!(site.get("/other").await.status, 503);
}

#[tokio::test]
async fn a_stale_answer_is_used_while_it_is_validated() {
    let site = Site::new(|_, before| {
        counted(&[("cache-control", "max-age=0, stale-while-revalidate=60")], before)
    })
    .await;
    assert_eq!(site.get("/").await.body, "body 0");
    assert_eq!(site.get("/").await.body, "body 0");
    // The second request had it fetched again.
    while site.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    while site.get("/").await.body == "body 0" {}
}

#[tokio::test]
async fn parts_come_from_what_is_stored_and_from_what_flows() {
    let site = Site::new(|request: Request<Body>, _| async move {
        assert!(!request.headers().contains_key("range") || request.uri().path() == "/fresh");
        if request.headers().contains_key("range") {
            return answer(206, &[("content-range", "bytes 2-3/10")], body::full("23"));
        }
        answer(200, &[("cache-control", "max-age=60"), ("etag", "\"v\"")], body::full("0123456789"))
    })
    .await;
    let first = site.get_with("/fresh", &[("range", "bytes=2-3")]).await;
    assert_eq!((first.status, first.body.as_str()), (206, "23"), "the first is passed on");
    site.get("/").await;
    let part = site.get_with("/", &[("range", "bytes=2-3")]).await;
    assert_eq!((part.status, part.body.as_str()), (206, "23"));
    assert_eq!(
        (part.header("content-range"), part.header("content-length")),
        ("bytes 2-3/10", "2")
    );
    let check = async |range: &str, status: u16, body: &str| {
        let seen = site.get_with("/", &[("range", range)]).await;
        assert_eq!((seen.status, seen.body.as_str()), (status, body), "{range}");
    };
    check("bytes=-3", 206, "789").await;
    check("bytes=20-", 416, "").await;
    check("bytes=0-1,8-9", 200, "0123456789").await;
    let lines = [("range", "bytes=0-1"), ("if-range", "\"other\"")];
    assert_eq!(site.get_with("/", &lines).await.status, 200);
}

#[tokio::test]
async fn a_part_that_is_there_comes_from_what_flows() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let receiver = Arc::new(Mutex::new(Some(receiver)));
    let site = Site::new(move |_, _| {
        let receiver = Arc::clone(&receiver);
        async move {
            match receiver.lock().await.take() {
                Some(it) => answer(
                    200,
                    &[("cache-control", "max-age=60"), ("content-length", "9000000")],
                    piecewise(it),
                ),
                None => answer(
                    206,
                    &[("content-range", "bytes 8000000-8000001/9000000")],
                    body::full("of"),
                ),
            }
        }
    })
    .await;
    pieces.send(Ok("0123456789")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "0123456789");
    let near = site.get_with("/", &[("range", "bytes=2-3")]).await;
    assert_eq!((near.status, near.body.as_str()), (206, "23"));
    assert_eq!(near.header("content-range"), "bytes 2-3/9000000");
    let far = site.get_with("/", &[("range", "bytes=8000000-8000001")]).await;
    assert_eq!((far.status, far.body.as_str()), (206, "of"), "by a fetch of its own");
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn a_change_makes_what_is_stored_unusable() {
    let site = Site::new(|_, before| counted(&[("cache-control", "max-age=60")], before)).await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::from_bytes(b"MERGE").unwrap()]
    {
        let before = site.get("/").await.body;
        let changed = site.ask(method.clone(), "/", &[]).await;
        assert_eq!(changed.how(), "fwd=method; fwd-status=200");
        assert_ne!(site.get("/").await.body, before, "{method}");
    }
}

#[tokio::test]
async fn what_was_on_its_way_before_a_change_is_not_stored() {
    let (pieces, site) = slow_site().await;
    pieces.send(Ok("old")).unwrap();
    let mut first = site.send("/", &[]).await;
    assert_eq!(first.chunk().await.unwrap().unwrap(), "old");
    assert_eq!(site.ask(Method::POST, "/", &[]).await.body, "body 1");
    drop(pieces);
    assert_eq!(first.chunk().await.unwrap(), None);
    assert_eq!(site.get("/").await.body, "body 2");
}

#[tokio::test]
async fn requests_differ_by_the_headers_that_answers_name() {
    let site =
        Site::new(|_, before| counted(&[("cache-control", "max-age=60"), ("vary", "x")], before))
            .await;
    let get = async |x: &str| site.get_with("/", &[("x", x)]).await.body;
    assert_eq!([get("1").await, get("2").await, get("1").await], ["body 0", "body 1", "body 0"]);
}

#[tokio::test]
async fn a_long_body_reaches_fast_and_slow_clients_whole() {
    const COUNT: usize = 12 << 20;
    let site = Site::new(|_, _| async {
        let mut left = COUNT;
        let read = move || {
            let count = left.min(100_000);
            left -= count;
            Ok((count != 0).then(|| vec![b'x'; count].into()))
        };
        answer(200, &[("cache-control", "max-age=60")], body::pieces(read, COUNT as u64))
    })
    .await;
    let mut slow = site.send("/", &[]).await;
    let mut taken = slow.chunk().await.unwrap().unwrap().len();
    // Nobody waits for the slow one.
    assert_eq!(site.get("/").await.body.len(), COUNT);
    while let Some(piece) = slow.chunk().await.unwrap() {
        taken += piece.len();
    }
    assert_eq!(taken, COUNT);
    // It is stored on disk, whole and in parts.
    let asked = site.seen().len();
    assert_eq!(site.get("/").await.body.len(), COUNT);
    let part = site.get_with("/", &[("range", "bytes=5000000-7000000")]).await;
    assert_eq!((part.status, part.body.len()), (206, 2_000_001));
    assert!(part.how().starts_with("hit"), "{}", part.how());
    assert_eq!(site.seen().len(), asked);
}

#[tokio::test]
async fn what_leads_nowhere_is_refused_with_advice() {
    let site = Site::new(|_, before| counted(&[], before)).await;
    let check = async |line: &str, headers: &str, status: &str| {
        let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let seen = raw(&site, &request).await;
        assert!(seen.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {seen}");
    };
    let own = format!("Host: {}\r\n", site.cache);
    check("GET /healthz", &own, "200").await;
    check("GET /", &own, "200").await;
    check("GET /proxy.pac", &own, "200").await;
    check("GET /.well-known/harvest", &own, "200").await;
    check("GET /nothing", &own, "404").await;
    check("GET http://c:3128/squid-internal-periodic/store_digest", "Host: c:3128\r\n", "404")
        .await;
    check("GET /a", "Host: localhost:1\r\n", "421").await;
    check("GET http://h.example:22/", "Host: h.example:22\r\n", "403").await;
    check("GET http://u:p@h.example/", "Host: h.example\r\n", "400").await;
    check("CONNECT h.example:22", "Host: h.example:22\r\n", "403").await;
    let only = "Host: x\r\nCache-Control: only-if-cached\r\n";
    check(&format!("GET {}a", site.origin), only, "504").await;
    check(&format!("GET {}a", site.origin), "Host: x\r\nVia: 1.0 x, 1.1 c\r\n", "508").await;
    assert_eq!(site.seen().len(), 0);
}

#[tokio::test]
async fn tunnels_carry_bytes_to_allowed_ports() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let site = Site::with(
        |_, before| counted(&[], before),
        move |it| it.connect_ports = vec![port..=port],
    )
    .await;
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut four = [0; 4];
        stream.read_exact(&mut four).await.unwrap();
        stream.write_all(&four).await.unwrap();
    });
    let mut stream = TcpStream::connect(site.cache).await.unwrap();
    let request = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    stream.write_all(b"ping").await.unwrap();
    let mut four = [0; 4];
    stream.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"ping");
    serving.await.unwrap();
}

#[tokio::test]
async fn a_private_address_is_reached_only_where_the_settings_say_so() {
    let site = Site::with(|_, before| counted(&[], before), |it| it.allow_private = false).await;
    let refused = site.get("/").await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("allow_private"), "{}", refused.body);
    assert_eq!(site.seen().len(), 0);
}

#[tokio::test]
async fn listed_consumers_alone_may_use_the_cache() {
    let text = "[access]\nallow_private = true\n[[consumer]]\nname = 'a'\ntoken = 'aaaaaaaaaaaaaaaa'\n\
                may = ['proxy']\n";
    let access = cache::Config::parse(text, std::path::Path::new("/d")).unwrap().daemon.access;
    let site =
        Site::with(|_, before| counted(&[], before), move |it| it.daemon.access = access).await;
    let ask = async |shown: &str| {
        let request =
            format!("GET {0} HTTP/1.1\r\nHost: x\r\n{shown}Connection: close\r\n\r\n", site.origin);
        raw(&site, &request).await
    };
    let refused = ask("").await;
    assert!(refused.starts_with("HTTP/1.1 407 ") && refused.contains("proxy-authenticate: Basic"));
    // `x:aaaaaaaaaaaaaaaa`
    let let_in = ask("Proxy-Authorization: Basic eDphYWFhYWFhYWFhYWFhYWFh\r\n").await;
    assert!(let_in.starts_with("HTTP/1.1 200 "), "{let_in}");
    assert!(!site.seen()[0].2.contains_key("proxy-authorization"));
}

#[tokio::test]
async fn before_a_site_the_cache_answers_in_its_name() {
    let lines = &[("cache-control", "no-store"), ("cdn-cache-control", "max-age=60")];
    let origin =
        |host: &str| Origin { host: host.to_owned(), url: "http://127.0.0.1:1/".parse().unwrap() };
    let site = Site::with(
        |_, before| counted(lines, before),
        |it| {
            it.origins = vec![origin("www.example.org")];
            it.allow_private = false;
        },
    )
    .await;
    let signed = "GET /q?a='b' HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n";
    raw(&site, signed).await;
    assert_eq!(site.seen().pop().unwrap().1, "/q?a='b'");
    let request = "GET /a HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n";
    let (first, second) = (raw(&site, request).await, raw(&site, request).await);
    assert!(first.ends_with("body 1") && second.ends_with("body 1"), "{first}\n{second}");
    let seen = site.seen();
    assert_eq!((seen.len(), seen[1].1.as_str()), (2, "/a"));
    assert_eq!(seen[1].2.get("host").unwrap(), "www.example.org");
    assert_eq!(seen[1].2.get("x-forwarded-for").unwrap(), "127.0.0.1");
    // A reader names the port, too, where the cache listens at another than 80.
    let port = site.cache.port();
    let text =
        format!("GET /b HTTP/1.1\r\nHost: www.example.org:{port}\r\nConnection: close\r\n\r\n");
    assert!(raw(&site, &text).await.ends_with("body 2"));
}

#[tokio::test]
async fn new_settings_hold_at_once() {
    let site = Site::new(|_, before| counted(&[], before)).await;
    assert_eq!(site.get("/").await.status, 200);
    let text =
        "listen = '127.0.0.1:0'\nname = 'd'\n[access]\nports = ['80']\nallow_private = true\n";
    let config = cache::Config::parse(text, std::path::Path::new("/d")).unwrap();
    assert_eq!(site.handle.reload(config), ["admin_listen", "data", "name"], "at the next start");
    assert_eq!(site.get("/").await.status, 403);
}
