//! Tests of what an administrator sees of a crawl: why a page is where it is, and the slowest host.

use std::time::Duration;

use gatherer::Server;
use gatherer::spec::Web;
use url::Url;

use crate::support::site::{Site, again, config, config_by, start, start_with, web_of};
use crate::support::{Bench, Tree};

const LINK: &[(&str, &str)] = &[("/", "<title>Start</title><a href=a>a</a>")];

/// Returns the state of a URL.
fn explained(bench: &Bench, url: &Url) -> String {
    let mut all = bench.handle.explain(url);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).state
}

/// Waits until the state of a URL begins like this.
async fn until_explained(bench: &Bench, url: &Url, expected: &str) {
    bench.status(|_| explained(bench, url).starts_with(expected)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_to_wait_is_explained() {
    type Change = fn(&Site);
    let cases: [(Change, &str, &str); 6] = [
        (|it| it.stall(Some("/robots.txt")), "", "waiting: the host's robots.txt comes first"),
        (
            |it| it.answer("/robots.txt", 500, &[], ""),
            "",
            "waiting: the host's robots.txt cannot be had",
        ),
        (
            |it| it.answer("/a", 503, &[("retry-after", "3600")], ""),
            "a",
            "waiting: as long as the host asked (Retry-After)",
        ),
        (|it| it.answer("/a", 503, &[], ""), "a", "waiting: since the host failed"),
        (
            |it| it.answer("/a", 403, &[("cf-mitigated", "challenge")], ""),
            "a",
            "waiting: Cloudflare challenges this robot (cf-mitigated)",
        ),
        (
            |it| {
                // More than are asked for until then.
                let links: String = (0..40).map(|it| format!("<a href=p{it}>p</a>")).collect();
                it.set("/", &links);
                (0..40).for_each(|page| it.answer(&format!("/p{page}"), 500, &[], ""));
            },
            "p39",
            "waiting: the host failed too often in this pass",
        ),
    ];
    for (change, path, expected) in cases {
        let site = Site::start(LINK).await;
        change(&site);
        let tree = Tree::new();
        let settings = config(&tree, &site);
        let bench = Bench::start_with(tree, settings).await;
        until_explained(&bench, &site.url.join(path).unwrap(), expected).await;
        bench.stop().await;
    }
    let proxy = Site::start_proxy(LINK).await;
    let tree = Tree::new();
    let mut settings = config_by(&tree, &proxy, "http://own.example/");
    web_of(&mut settings).delay = Duration::from_secs(3_600);
    let bench = Bench::start_with(tree, settings).await;
    let url = Url::parse("http://own.example/").unwrap();
    until_explained(&bench, &url, "waiting: for the delay between two requests to the host").await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reason_to_be_left_out_is_explained() {
    type Change = fn(&mut Web);
    let long = "x".repeat(10_000);
    let cases: [(Change, &[(&str, &str)]); 3] = [
        (
            |it| it.depth = 1,
            &[
                ("http://other.example/", "out: there are as many hosts as allowed (hosts_max)"),
                ("ftp://other.example/", "out: a scheme that this root does not have"),
                ("docs/a/b/a/b/a/b/a/b", "out: a path without end"),
                (long.as_str(), "out: the URL is too long"),
                ("docs/deep", "unknown: no page or list within `depth` has named it"),
            ],
        ),
        (
            |it| (it.allow, it.urls_max) = (vec!["/docs*".to_owned()], 2),
            &[
                ("docs/", "done"),
                ("other", "out: nothing in `allow` matches"),
                ("docs/b", "out: there are as many URLs as allowed (urls_max)"),
            ],
        ),
        (
            |it| it.url = it.url.join("docs/").unwrap(),
            &[("other", "out: not in the folder of http:"), ("docs/b", "unknown: no page or list")],
        ),
    ];
    for (change, expected) in cases {
        let site = Site::start(&[
            ("/", "<a href=docs/>d</a>"),
            ("/docs/", "<a href=deep>d</a>"),
            ("/docs/deep", "deep"),
        ])
        .await;
        let tree = Tree::new();
        let mut settings = config(&tree, &site);
        change(web_of(&mut settings));
        let bench = start_with(tree, settings).await;
        for (path, expected) in expected {
            let state = explained(&bench, &site.url.join(path).unwrap());
            assert!(state.starts_with(expected), "{path}: {state}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_is_explained() {
    let cases = [
        ("/forbidden", "failed: status 403", "403"),
        ("/broken", "failed: status 500", "500"),
        ("/login", "failed: a page that asks who the user is", ""),
        ("/odd", "failed: an answer that cannot be read", ""),
    ];
    let links: String = cases.iter().map(|it| format!("<a href={}>x</a>", it.0)).collect();
    let site = Site::start(&[("/", &links)]).await;
    site.answer("/forbidden", 403, &[], "");
    site.answer("/broken", 500, &[], "");
    site.set("/login", "<title>Sign in</title><form><input type=password></form>");
    site.answer("/odd", 200, &[("content-encoding", "gzip")], "this is no gzip");
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let bench = start_with(tree, settings).await;
    for (path, expected, part) in cases {
        let it = bench.handle.explain(&site.url.join(path).unwrap()).remove(0);
        assert_eq!(it.state, expected, "{path}");
        let problem = it.problem.unwrap_or_default();
        assert!(
            problem.starts_with("unreachable: ") && problem.contains(part),
            "{path}: {problem}"
        );
    }
    bench.stop().await;
}

/// Answers for pages that then have no record of their own.
fn hide(site: &Site) {
    let page = ("content-type", "text/html");
    site.answer("/moved", 301, &[("location", "/there")], "");
    site.answer("/head", 200, &[page, ("x-robots-tag", "noindex")], "Of plums");
    let past = "unavailable_after: 2010-06-25T15:00:00Z";
    site.answer("/past", 200, &[page, ("x-robots-tag", past)], "Of figs");
    site.set("/page", "<meta name=robots content='nofollow, noindex'>Of pears");
}

/// Returns the URLs of these pages, with the answers that decide.
fn hidden(site: &Site) -> [(Url, String); 4] {
    let past = "X-Robots-Tag says unavailable_after, which is over";
    [
        ("/moved", format!("status 301 leads to {}", site.at("/there"))),
        ("/head", "X-Robots-Tag says noindex".to_owned()),
        ("/past", past.to_owned()),
        ("/page", "<meta name=\"robots\"> says noindex".to_owned()),
    ]
    .map(|(path, why)| (site.url.join(path).unwrap(), why))
}

const TO_HIDE: &str = "<a href=moved>m</a><a href=head>h</a><a href=past>a</a><a href=page>p</a>";

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_record_is_explained_by_its_answer() {
    let site = Site::start(&[("/", TO_HIDE), ("/there", "<title>There</title>")]).await;
    hide(&site);
    let bench = start(&site).await;
    for (url, why) in hidden(&site) {
        let it = bench.handle.explain(&url).remove(0);
        assert_eq!((it.state, it.records), (format!("done: {why}"), 0), "{url}");
    }
    assert_eq!(explained(&bench, &site.url), "done");
    // So it is before the next process has asked for anything.
    let tree = bench.stop().await.0;
    let server = Server::bind(config(&tree, &site)).await.unwrap();
    for (url, why) in hidden(&site) {
        let state = server.handle().explain(&url).remove(0).state;
        assert_eq!(state, format!("done in an earlier pass: {why}"), "{url}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_loses_its_record_is_explained_by_its_answer() {
    let elsewhere = "<a href=elsewhere>e</a>";
    let pages = ["/", "/there", "/moved", "/head", "/past", "/page", "/elsewhere"];
    let pages = pages.map(|it| (it, format!("<title>{it}</title>{TO_HIDE}{elsewhere}")));
    let pages: Vec<_> = pages.iter().map(|it| (it.0, it.1.as_str())).collect();
    let site = Site::start(&pages).await;
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).grace = Duration::from_secs(3_600);
    let bench = start_with(tree, settings.clone()).await;
    hide(&site);
    site.answer("/elsewhere", 302, &[("location", "http://other.example/")], "");
    again(&bench).await;
    for (url, why) in hidden(&site) {
        let it = bench.handle.explain(&url).remove(0);
        let found = (it.state, it.records, it.gone_since.is_some());
        assert_eq!(found, (format!("done: {why}"), 1, true), "{url}");
    }
    let kept = bench.handle.explain(&site.url.join("/elsewhere").unwrap()).remove(0);
    let problem = kept.problem.unwrap_or_default();
    let is_named = problem.contains("it leads to http://other.example/ (out: ");
    assert!(kept.records == 1 && kept.gone_since.is_none() && is_named, "{problem}");
    // What is there again is done, and no more.
    site.set("/page", "<title>Of pears</title>");
    again(&bench).await;
    assert_eq!(explained(&bench, &site.url.join("/page").unwrap()), "done");
    // The record goes, and its reason stays until the page is back.
    web_of(&mut settings).grace = Duration::ZERO;
    bench.handle.reload(settings).unwrap();
    for _ in 0..2 {
        again(&bench).await;
        for (url, why) in &hidden(&site)[..3] {
            bench.until_url(url.as_str(), |it| it.is_none()).await;
            // Other settings have a pass of their own, which may be under way.
            until_explained(&bench, url, &format!("done: {why}")).await;
            assert_eq!(bench.handle.explain(url).remove(0).records, 0, "{url}");
        }
    }
    site.set("/head", "<title>Of plums</title>");
    again(&bench).await;
    bench.until_url(&site.at("/head"), |it| it.is_some()).await;
    bench.status(|_| explained(&bench, &site.url.join("/head").unwrap()) == "done").await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_and_what_waits_is_named_with_the_slowest_host() {
    // Eight are asked for at a time.
    let links: String = (0..10).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &links)]).await;
    site.stall(Some("/p"));
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let bench = Bench::start_with(tree, settings).await;
    let status = bench
        .status(|it| {
            let crawl = it.roots[0].crawl.as_ref();
            crawl.is_some_and(|it| it.waiting == 10 && it.hosts.iter().any(|it| it.waiting == 2))
        })
        .await;
    let states: Vec<String> =
        ["p0", "p9"].iter().map(|it| explained(&bench, &site.url.join(it).unwrap())).collect();
    assert_eq!(states, ["being fetched", "in: it is fetched when its turn comes"]);
    let crawl = status.roots[0].crawl.as_ref().unwrap();
    let origin = site.url.as_str().trim_end_matches('/');
    assert_eq!((crawl.hosts[0].host.as_str(), crawl.waiting), (origin, 10));
    assert!(crawl.hosts[0].answer_ms.is_some(), "{crawl:?}");
    let (code, json) = bench.get_admin("status").await;
    let (is_named, is_known) =
        (json.contains("\"answer_ms\":"), !json.contains("\"answer_ms\":null"));
    assert!(code == 200 && is_named && is_known, "{json}");
    let (code, page) = bench.get_admin("").await;
    let slowest = page.split_once("Slowest: ").map(|it| it.1).unwrap_or_default();
    let host = format!("{}, ", origin.trim_start_matches("http://"));
    let ends = slowest.split_once(&host).and_then(|it| it.1.split_once(" ms an answer."));
    let is_number = |it: &str| it.chars().all(|it| it.is_ascii_digit() || it == ',');
    assert!(code == 200 && ends.is_some_and(|it| is_number(it.0)), "{page}");
    bench.stop().await;
}
