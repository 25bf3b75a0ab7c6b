//! Tests of copies: pages of what is stored, for readers who do not use the cache as a proxy.

use std::future::ready;

use crate::common::{Site, answer, raw};
use cache::config::Origin;
use http::Request;
use net::body::{self, Body};

#[tokio::test]
async fn copies_are_shown_to_who_does_not_use_the_proxy() {
    let lines: &[_] = &[
        ("cache-control", "max-age=0"),
        ("etag", "\"a\""),
        ("strict-transport-security", "max-age=9"),
    ];
    let strict: &[_] = &[("cache-control", "max-age=0, must-revalidate"), ("etag", "\"a\"")];
    let site = Site::new(move |request: Request<Body>, before| {
        let lines = if request.uri().path() == "/strict" { strict } else { lines };
        ready(answer(200, lines, body::full(format!("body {before}"))))
    })
    .await;
    assert_eq!(site.get("/a").await.body, "body 0");
    assert_eq!(site.get("/strict").await.body, "body 1");
    let copy_with = async |url: &str, lines: &str| {
        let url: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
        let (host, line) = (site.cache, format!("GET /copy?url={url} HTTP/1.1"));
        let text = format!("{line}\r\nHost: {host}\r\n{lines}Connection: close\r\n\r\n");
        raw(&site, &text).await
    };
    let copy = async |url: &str| copy_with(url, "").await;
    let seen = copy(site.origin.join("/a").unwrap().as_str()).await;
    assert!(seen.starts_with("HTTP/1.1 200 ") && seen.ends_with("body 0"), "{seen}");
    assert!(seen.contains("content-security-policy: sandbox\r\n"), "{seen}");
    assert!(!seen.contains("strict-transport-security"), "{seen}");
    // No page elsewhere learns from an image whether it was read.
    let other = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: ";
    let url = site.origin.join("/a").unwrap();
    for (mode, status) in [("no-cors", 403), ("navigate", 200)] {
        let seen = copy_with(url.as_str(), &format!("{other}{mode}\r\n")).await;
        assert!(seen.starts_with(&format!("HTTP/1.1 {status} ")), "{seen}");
    }
    let at = |path: &str| site.origin.join(path).unwrap().to_string();
    // What must be validated may be for one reader alone.
    for (url, status) in [
        (at("/b").as_str(), 404),
        (at("/strict").as_str(), 404),
        ("http://h.example:22/", 403),
        ("x", 400),
    ] {
        let seen = copy(url).await;
        assert!(seen.starts_with(&format!("HTTP/1.1 {status} ")), "{seen}");
    }
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn a_site_that_has_the_name_or_address_of_its_machine_is_not_hidden_by_the_cache() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let host =
        |name: &str| Origin { host: format!("{name}:{port}"), url: "http://a/".parse().unwrap() };
    let site = Site::with(
        |_, before| ready(answer(200, &[], body::full(format!("body {before}")))),
        move |config| {
            config.daemon.listen = format!("0.0.0.0:{port}").parse().unwrap();
            config.name = "www.example.org".to_owned();
            config.origins = vec![host("www.example.org"), host("127.0.0.9")];
        },
    )
    .await;
    for (number, name) in ["www.example.org", "127.0.0.9"].into_iter().enumerate() {
        let text = format!("GET / HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n");
        let seen = raw(&site, &text).await;
        assert!(seen.ends_with(&format!("body {number}")), "{name}: {seen}");
    }
}

#[tokio::test]
async fn a_cache_at_all_addresses_is_asked_by_each_and_says_so() {
    let site = Site::with(
        |_, before| ready(answer(200, &[], body::full(format!("body {before}")))),
        |config| config.daemon.listen = "0.0.0.0:0".parse().unwrap(),
    )
    .await;
    let port = site.cache.port();
    for host in [format!("127.0.0.9:{port}"), format!("c:{port}"), format!("localhost:{port}")] {
        let text = format!("GET /proxy.pac HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let seen = raw(&site, &text).await;
        assert!(seen.contains(&format!("return \"PROXY {host}; DIRECT\"")), "{host}: {seen}");
    }
    let whole = format!(
        "GET http://127.0.0.9:{port}/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    assert!(
        raw(&site, &whole).await.starts_with("HTTP/1.1 200 "),
        "its own pages by a whole URL, too"
    );
    let text = format!("GET / HTTP/1.1\r\nHost: other:{port}\r\nConnection: close\r\n\r\n");
    assert!(raw(&site, &text).await.starts_with("HTTP/1.1 421 "));
}
