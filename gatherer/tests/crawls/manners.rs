//! Tests of what a site sees of a crawl, and of what it says to it.

use std::time::Duration;

use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::Web;
use net::fetch::Login;

use crate::support::Tree;
use crate::support::site::{Site, config, start, start_with, web_of};

const TEXT: &[(&str, &str)] = &[("content-type", "text/plain")];

/// Returns the paths that were asked for since the last call.
fn asked(site: &Site) -> Vec<String> {
    site.take_asked().into_iter().map(|it| it.0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn robots_txt_is_read_through_five_redirects() {
    let site = Site::start(&[("/", "<a href=private>p</a><a href=a>a</a>"), ("/a", "a")]).await;
    site.set("/private", "p");
    for it in 0..5 {
        let from = if it == 0 { "/robots.txt".to_owned() } else { format!("/r{it}") };
        site.answer(&from, 301, &[("location", &format!("/r{}", it + 1))], "");
    }
    site.answer("/r5", 200, TEXT, "User-agent: *\nDisallow: /private\nDisallow: /r\n");
    let bench = start(&site).await;
    let asked = asked(&site);
    assert!(asked.contains(&"/r5".to_owned()), "{asked:?}");
    assert!(!asked.contains(&"/private".to_owned()), "{asked:?}");
    assert_eq!(bench.handle.status().objects, 2, "{:#?}", bench.handle.problems());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_header_asks_of_robots_is_done() {
    let html = ("content-type", "text/html");
    let links = "<a href=hidden>h</a><a href=others>o</a><a href=apart>a</a><a href=none>n</a>";
    let site = Site::start(&[("/", links)]).await;
    let page = |path: &str, asks: &str| {
        let links = format!("<title>{path}</title><a href={path}-next>next</a>");
        site.answer(path, 200, &[html, ("x-robots-tag", asks)], &links);
        site.set(&format!("{path}-next"), &format!("<p>behind {path}"));
    };
    page("/hidden", "noindex");
    page("/others", "otherbot: noindex, nofollow");
    page("/apart", "harvest: nofollow");
    page("/none", "none");
    let bench = start(&site).await;
    for (path, is_there, leads) in [
        ("/hidden", false, true),
        ("/others", true, true),
        ("/apart", true, false),
        ("/none", false, false),
    ] {
        assert_eq!(bench.object(&site.at(path)).await.is_some(), is_there, "{path}");
        let next = site.at(&format!("{path}-next"));
        assert_eq!(bench.object(&next).await.is_some(), leads, "{next}");
    }
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_says_who_asks() {
    for (setting, expected) in [
        ("user_agent = \"orchard/1 (tests)\"", "orchard/1 (tests)"),
        ("contact = \"mailto:a@h.example\"", " (+mailto:a@h.example)"),
        ("", "harvest/"),
    ] {
        let site = Site::start(&[("/", "<a href=a>a</a>"), ("/a", "a")]).await;
        let text = format!(
            "name = \"a\"\ndata = \"/d\"\n[[root]]\naccess = \"web\"\nurl = \"{}\"\n{setting}\n",
            site.url
        );
        let tree = Tree::new();
        let roots = Config::parse(&text).unwrap().roots;
        let settings = Config { watch: Watch::Off, roots, ..tree.config() };
        let bench = start_with(tree, settings).await;
        for path in ["/robots.txt", "/", "/a"] {
            let agent = site.header_of(path, "user-agent").unwrap();
            let is_it = agent.contains(expected)
                && (setting.starts_with("user_agent") || agent.starts_with("harvest/"));
            assert!(is_it, "{path}: {agent}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_for_the_roots_own_origin_alone() {
    let other = Site::start(&[("/b", "<title>B</title>"), ("/c", "<title>C</title>")]).await;
    let login = Login { name: "anna".to_owned(), password: "secret".to_owned() };
    let token = daemon::Token::new("abc");
    type Change = Box<dyn Fn(&mut Web)>;
    let [by_login, by_token]: [Change; 2] = [
        Box::new(move |web: &mut Web| web.login = Some(Box::new(login.clone()))),
        Box::new(move |web: &mut Web| web.token = Some(token.clone())),
    ];
    for (change, expected) in [(by_login, "Basic YW5uYTpzZWNyZXQ="), (by_token, "Bearer abc")] {
        let links = format!("<a href=a>a</a><a href='{}'>b</a><a href=moved>c</a>", other.at("/b"));
        let site = Site::start(&[("/", &links), ("/a", "<title>A</title>")]).await;
        site.answer("/moved", 302, &[("location", &other.at("/c"))], "");
        let tree = Tree::new();
        let mut settings = config(&tree, &site);
        let web = web_of(&mut settings);
        change(web);
        web.allow = vec!["/*".to_owned(), format!("{}*", other.url)];
        web.hosts_max = 2;
        let bench = start_with(tree, settings).await;
        assert_eq!(site.header_of("/a", "authorization").as_deref(), Some(expected));
        assert_eq!(bench.object(&site.at("/a")).await.unwrap().text("Title").unwrap(), "A");
        for path in ["/b", "/c"] {
            assert_eq!(other.header_of(path, "authorization"), None, "{path}");
        }
        let seen = asked(&other);
        assert!(seen.is_empty(), "{seen:?}");
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_is_reached_over_ipv6() {
    let pages = [("/", "<a href=a>a</a>"), ("/a", "<title>A</title>")];
    let site = Site::start_at("[::1]:0", &pages).await;
    let bench = start(&site).await;
    assert!(site.url.as_str().starts_with("http://[::1]:"));
    let record = bench.object(&site.at("/a")).await.unwrap();
    assert_eq!(record.text("Title").unwrap(), "A");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_is_busy_is_asked_again_when_it_said() {
    let site = Site::start(&[("/", "<a href=a>a</a>")]).await;
    site.answer("/a", 503, &[("retry-after", "1")], "");
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let bench = crate::support::Bench::start_with(tree, settings).await;
    let url = url::Url::parse(&site.at("/a")).unwrap();
    bench
        .status(|_| {
            let explained = bench.handle.explain(&url).remove(0);
            explained.problem.is_some_and(|it| it.contains("no request within 1 s"))
        })
        .await;
    let began = net::clock::monotonic();
    site.set("/a", "<title>A</title>");
    bench.until_url(&site.at("/a"), |it| it.is_some()).await;
    // What was seen of the first answer came a little after it.
    let waited = net::clock::monotonic() - began;
    assert!(Duration::from_millis(500) <= waited, "{waited:?}");
    bench.stop().await;
}
