//! Tests of what a site sees of a crawl, and of what it says to it.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use gatherer::Config;
use gatherer::config::Watch;
use gatherer::spec::{Root, Web};
use net::fetch::Login;
use url::Url;

use crate::hostile_sites::{serve, whole};
use crate::support::Tree;
use crate::support::site::{Site, again, config, config_by, start, start_with, web_of};

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
    let login = Login { name: "anna".to_owned(), password: "secret".to_owned() };
    let token = daemon::Token::new("abc");
    type Change = Box<dyn Fn(&mut Web)>;
    let [by_login, by_token]: [Change; 2] = [
        Box::new(move |web: &mut Web| web.login = Some(Box::new(login.clone()))),
        Box::new(move |web: &mut Web| web.token = Some(token.clone())),
    ];
    // A second name, another port and another scheme are other origins.
    let links = "<a href=a>a</a><a href='http://other.example/b'>b</a><a href=moved>c</a>\
                 <a href='http://own.example:81/d'>d</a><a href='https://own.example/e'>e</a>";
    for (change, expected, hosts_max, objects) in
        [(by_login, "Basic YW5uYTpzZWNyZXQ=", 2, 6), (by_token, "Bearer abc", 1, 4)]
    {
        let site = Site::start_proxy(&[("/", links)]).await;
        for path in ["/a", "/b", "/c", "/d", "/e"] {
            site.set(path, &format!("<title>Page {path}</title>"));
        }
        site.answer("/moved", 302, &[("location", "http://other.example/c")], "");
        let tree = Tree::new();
        let mut settings = config_by(&tree, &site, "http://own.example/");
        let web = web_of(&mut settings);
        change(web);
        (web.allow, web.hosts_max) = (vec!["/*".to_owned()], hosts_max);
        let bench = start_with(tree, settings).await;
        let problems = bench.handle.problems();
        assert_eq!(bench.handle.status().objects, objects, "{problems:#?}");
        let seen = site.seen();
        for it in &seen {
            let shown = it.headers.get("authorization").map(|it| it.to_str().unwrap());
            let is_own = it.target.starts_with("http://own.example/");
            assert_eq!(shown, is_own.then_some(expected), "{}", it.target);
        }
        let is_asked = |url: &str| seen.iter().any(|it| it.target == url);
        for url in ["http://own.example/a", "http://own.example:81/d", "https://own.example/e"] {
            assert!(is_asked(url), "{url}");
        }
        for url in ["http://other.example/b", "http://other.example/c"] {
            assert_eq!(is_asked(url), hosts_max == 2, "{url}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_and_redirects_into_this_machine_are_not_followed() {
    let other = Site::start(&[("/b", "<title>B</title>"), ("/c", "<title>C</title>")]).await;
    let links = format!("<a href=a>a</a><a href='{}'>b</a><a href=moved>c</a>", other.at("/b"));
    let site = Site::start(&[("/", &links), ("/a", "<title>A</title>")]).await;
    site.answer("/moved", 302, &[("location", &other.at("/c"))], "");
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    let web = web_of(&mut settings);
    web.allow = vec!["/*".to_owned(), format!("{}*", other.url)];
    web.hosts_max = 2;
    let bench = start_with(tree, settings).await;
    assert_eq!(bench.object(&site.at("/a")).await.unwrap().text("Title").unwrap(), "A");
    let seen = asked(&other);
    assert!(seen.is_empty(), "{seen:?}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_scheme_is_gathered_if_the_settings_name_it() {
    // One port answers by both protocols: a request of Gopher is a line without a method.
    let answer = |path: &str, stream: &mut TcpStream| match path {
        "/" => {
            let port = stream.local_addr()?.port();
            let link = format!("<a href='gopher://127.0.0.1:{port}/0/pears.txt'>p</a>");
            whole(stream, 200, "Content-Type: text/html\r\n", link.as_bytes())
        }
        "/pears.txt" => stream.write_all(b"Pears are ripe\r\n.\r\n"),
        _ => whole(stream, 404, "", b""),
    };
    let address = serve(Arc::new(answer));
    for schemes in [vec!["http"], vec!["http", "gopher"]] {
        let url = Url::parse(&format!("http://{address}/")).unwrap();
        let schemes: Vec<String> = schemes.into_iter().map(str::to_owned).collect();
        let expected = schemes.len() as u64;
        let (delay, grace) = (Duration::ZERO, Duration::ZERO);
        let web = Web { delay, grace, schemes, ..Web::new(url) };
        let tree = Tree::new();
        let settings = Config { watch: Watch::Off, roots: vec![Root::Web(web)], ..tree.config() };
        let bench = start_with(tree, settings).await;
        let problems = bench.handle.problems();
        assert_eq!(bench.handle.status().objects, expected, "{problems:#?}");
        let pears = bench.object(&format!("gopher://{address}/0/pears.txt")).await;
        assert_eq!(pears.is_some(), expected == 2);
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_left_alone_for_the_delay_between_any_two_requests() {
    const DELAY: Duration = Duration::from_millis(100);
    // Times are kept in whole milliseconds.
    const LEAST: Duration = Duration::from_millis(98);
    let links: String = (0..6).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let pages: Vec<(String, String)> =
        (0..6).map(|it| (format!("/p{it}"), format!("<title>{it}</title>"))).collect();
    let check = |site: &Site, requests_min: usize| {
        let seen = site.seen();
        assert!(requests_min <= seen.len(), "{seen:#?}");
        for pair in seen.windows(2) {
            let gap = pair[1].at.duration_since(pair[0].at);
            assert!(LEAST <= gap, "{gap:?} before {}", pair[1].target);
        }
    };
    // The delay of the settings is for hosts with public names, which a proxy stands for here.
    let proxy = Site::start_proxy(&[("/", &links)]).await;
    pages.iter().for_each(|(path, text)| proxy.set(path, text));
    let tree = Tree::new();
    let mut settings = config_by(&tree, &proxy, "http://own.example/");
    web_of(&mut settings).delay = DELAY;
    let bench = start_with(tree, settings).await;
    assert_eq!(bench.handle.status().objects, 7);
    again(&bench).await;
    // robots.txt, the first page and six others, twice.
    check(&proxy, 16);
    bench.stop().await;
    // What the host itself asks for holds for this machine, too.
    let site = Site::start(&[("/", &links)]).await;
    pages.iter().for_each(|(path, text)| site.set(path, text));
    site.answer("/robots.txt", 200, TEXT, "User-agent: *\nCrawl-delay: 0.1\n");
    let bench = start(&site).await;
    assert_eq!(bench.handle.status().objects, 7);
    check(&site, 8);
    bench.stop().await;
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
    let url = Url::parse(&site.at("/a")).unwrap();
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
