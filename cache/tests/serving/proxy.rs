//! Tests of the proxy: what is fetched, joined, used again, validated and refused.

use crate::common::{Site, answer, counted, raw, slow_site};
use cache::config::Origin;
use http::{Method, Request};
use net::body::{self, Body};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

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

#[tokio::test]
async fn caches_of_one_machine_know_their_own_requests() {
    let start = || {
        Site::with(
            |_, before| counted(&[], before),
            // Both have the machine's name.
            |it| it.name = cache::Config::new(it.daemon.listen, it.daemon.listen, "/d").name,
        )
    };
    let (one, other) = (start().await, start().await);
    one.get("/").await;
    let via = one.seen()[0].2["via"].to_str().unwrap().to_owned();
    let ask = async |site: &Site| site.get_with("/a", &[("via", &via)]).await.status;
    assert_eq!((ask(&one).await, ask(&other).await), (508, 200), "{via}");
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
async fn what_leads_nowhere_is_refused_with_advice() {
    let site = Site::new(|_, before| counted(&[], before)).await;
    let check = async |line: &str, headers: &str, status: &str| {
        let request = format!("{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
        let seen = raw(&site, &request).await;
        assert!(seen.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {seen}");
    };
    let own = format!("Host: {}\r\n", site.cache);
    check("GET /healthz", &own, "200").await;
    check("GET /readyz", &own, "200").await;
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
async fn who_asks_for_nothing_to_be_kept_takes_what_is_there() {
    let site = Site::new(|_, before| counted(&[("cache-control", "max-age=60")], before)).await;
    // So does a gatherer ask (docs/gathering.md).
    let gathering = [("cache-control", "no-store")];
    let first = site.get_with("/a", &gathering).await;
    assert_eq!(first.body, "body 0");
    assert!(first.how().contains("the request says no-store"), "{}", first.how());
    assert_eq!(site.get("/a").await.body, "body 1", "it was not kept");
    let hit = site.get_with("/a", &gathering).await;
    assert!(hit.how().starts_with("hit") && hit.body == "body 1", "{hit:?}");
    assert_eq!(site.get("/a").await.body, "body 1", "what was there stays");
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn a_tunnel_is_for_those_who_may_use_the_cache() {
    let text = "[access]\nallow_private = true\n[[consumer]]\nname = 'a'\ntoken = 'aaaaaaaaaaaaaaaa'\n\
                may = ['proxy']\n";
    let access = cache::Config::parse(text, std::path::Path::new("/d")).unwrap().daemon.access;
    let site = Site::with(
        |_, before| counted(&[], before),
        move |it| (it.daemon.access, it.connect_ports) = (access, vec![1..=u16::MAX]),
    )
    .await;
    let to = site.origin.authority().to_owned();
    let ask = async |shown: &str| {
        let get = "GET /inside HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n";
        raw(&site, &format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{shown}\r\n{get}")).await
    };
    assert!(ask("").await.starts_with("HTTP/1.1 407 "));
    let wrong = "Proxy-Authorization: Basic eDpiYmJiYmJiYmJiYmJiYmJi\r\n";
    assert!(ask(wrong).await.starts_with("HTTP/1.1 407 "));
    assert_eq!(site.seen().len(), 0);
    let let_in = ask("Proxy-Authorization: Basic eDphYWFhYWFhYWFhYWFhYWFh\r\n").await;
    assert!(let_in.starts_with("HTTP/1.1 200 "), "{let_in}");
    assert_eq!(site.seen().len(), 1, "{let_in}");
}

#[tokio::test]
async fn addresses_are_let_in_or_not() {
    for (lines, is_let_in) in [
        ("allow = ['127.0.0.0/8']", true),
        ("allow = ['192.0.2.0/24']", false),
        ("deny = ['127.0.0.1']", false),
        ("allow = ['127.0.0.0/8']\ndeny = ['127.0.0.1']", false),
        ("deny = ['127.0.0.2']", true),
    ] {
        let text = format!("[access]\n{lines}\n");
        let access = cache::Config::parse(&text, std::path::Path::new("/d")).unwrap().daemon.access;
        let site = Site::with(
            |_, before| counted(&[("cache-control", "max-age=60")], before),
            |it| (it.daemon.access, it.connect_ports) = (access, vec![1..=u16::MAX]),
        )
        .await;
        let expected = if is_let_in { 200 } else { 403 };
        let came = site.get("/").await;
        assert_eq!(came.status, expected, "{lines}: {}", came.body);
        assert!(is_let_in || came.body.contains("your address may not use this cache"));
        let to = site.origin.authority();
        let tunnel = format!(
            "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n\
             GET /b HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n"
        );
        let came = raw(&site, &tunnel).await;
        assert!(came.starts_with(&format!("HTTP/1.1 {expected} ")), "{lines}: {came}");
        assert_eq!(site.seen().len(), if is_let_in { 2 } else { 0 }, "{lines}");
    }
}

#[tokio::test]
async fn requests_go_to_listed_hosts_alone() {
    let of = |text: &str| {
        let text = format!("[access]\nallow_private = true\ndestinations = [{text}]\n");
        cache::Config::parse(&text, std::path::Path::new("/d")).unwrap()
    };
    let destinations = of("'example.org', '192.0.2.0/24'").destinations;
    let site = Site::with(
        |_, before| counted(&[("cache-control", "max-age=60")], before),
        |it| (it.destinations, it.connect_ports) = (destinations, vec![1..=u16::MAX]),
    )
    .await;
    let refused = site.get("/").await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("`destinations` in [access]"), "{}", refused.body);
    let to = site.origin.authority();
    let tunnel = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n");
    assert!(raw(&site, &tunnel).await.starts_with("HTTP/1.1 403 "));
    let (_, told) =
        site.administer(Method::GET, &format!("explain?url={}", site.origin), true).await;
    assert!(told.contains("`destinations`"), "{told}");
    assert_eq!(site.seen().len(), 0);
    // It holds at once.
    site.handle.reload(of("'127.0.0.0/8'"));
    assert_eq!(site.get("/").await.status, 200);
}

#[tokio::test]
async fn the_settings_say_how_long_answers_are_used_of_which_the_origin_says_nothing() {
    let text = "[[refresh]]\npattern = '/short$'\nmin = '1 h'\n\
                [[refresh]]\npattern = '/old'\npercent = 20\nmin = '10 s'\nmax = '7 days'\n";
    let refresh = cache::Config::parse(text, std::path::Path::new("/d")).unwrap().refresh;
    let site = Site::with(
        |request: Request<Body>, _| async move {
            // Days since the last change, if the path names some.
            let days =
                request.uri().path().rsplit('-').next().and_then(|it| it.parse::<u64>().ok());
            let now = net::clock::now_ms() / 1_000;
            let changed = net::client::http_date_of(now - days.unwrap_or_default() * 86_400);
            let lines = [("cache-control", "max-age=5"), ("last-modified", changed.as_str())];
            let said = usize::from(request.uri().path().contains("says"));
            let lines = if days.is_some() { &lines[1 - said..] } else { &lines[..said] };
            answer(200, lines, body::full("body"))
        },
        |it| it.refresh = refresh,
    )
    .await;
    for (path, expected) in [
        ("/short", 3_600),
        ("/old-10", 2 * 86_400),
        ("/old-1000", 7 * 86_400),
        ("/old-0", 10),
        ("/old-says-1000", 5),
        ("/other-10", 86_400),
        ("/other-5", 43_200),
    ] {
        site.get(path).await;
        let how = site.get(path).await.how();
        let left: i64 =
            how.strip_prefix("hit; ttl=").unwrap_or_else(|| panic!("{how}")).parse().unwrap();
        assert!((expected - 5..=expected).contains(&left), "{path}: {left} s");
    }
}

#[tokio::test]
async fn what_was_not_stored_is_explained() {
    let site = Site::new(|request: Request<Body>, before| {
        let is_kept = request.uri().path() == "/kept";
        counted(&[("cache-control", if is_kept { "max-age=60" } else { "no-store" })], before)
    })
    .await;
    let explained = async |path: &str| {
        let url = site.origin.join(path).unwrap();
        let (status, told) =
            site.administer(Method::GET, &format!("explain?url={url}"), true).await;
        assert_eq!(status, 200, "{told}");
        axum::Json::<cache::Explanation>::from_bytes(told.as_bytes()).unwrap().0
    };
    let before = explained("/a").await;
    assert_eq!((before.stored.len(), before.not_stored), (0, None));
    assert_eq!(before.next, "it is fetched: nothing is stored of this URL");
    site.get("/a").await;
    site.get("/kept").await;
    let after = explained("/a").await.not_stored.unwrap();
    assert_eq!(after, "the last answer, 200 OK: the answer says no-store");
    let kept = explained("/kept").await;
    assert_eq!((kept.stored[0].basis.as_str(), kept.not_stored), ("max-age", None));
}

#[tokio::test]
async fn the_cache_has_the_name_in_its_base_url() {
    let site = Site::with(
        |_, before| counted(&[], before),
        |it| it.daemon.base_url = Some("http://cache.example.net/".parse().unwrap()),
    )
    .await;
    let ask = async |path: &str, host: &str| {
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        raw(&site, &text).await
    };
    for path in ["/healthz", "/readyz", "/proxy.pac", "/.well-known/harvest"] {
        let came = ask(path, "cache.example.net").await;
        assert!(came.starts_with("HTTP/1.1 200 "), "{path}: {came}");
    }
    let pac = ask("/proxy.pac", "cache.example.net").await;
    assert!(pac.contains("PROXY cache.example.net; DIRECT"), "{pac}");
    assert!(ask("/healthz", "other.example.net").await.starts_with("HTTP/1.1 421 "));
    assert_eq!(site.seen().len(), 0);
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
