//! Tests of a web root behind a proxy that others wrote.

use crate::servers::Tinyproxy;
use crate::support::Tree;
use crate::support::site::{Site, again, config, start_with, web_of};

/// Returns the URLs that the site was asked for since the last call, sorted.
fn asked(site: &Site) -> Vec<String> {
    site.take_asked().iter().map(|(path, _)| site.at(path)).collect()
}

/// Returns the URLs of GET that the proxy got from its `from`th request on, sorted.
fn passed(proxy: &Tinyproxy, from: usize) -> Vec<String> {
    let requests = proxy.requests();
    let urls = requests.iter().skip(from).filter_map(|it| it.strip_prefix("GET "));
    let mut urls: Vec<String> = urls.map(str::to_owned).collect();
    urls.sort();
    urls
}

#[tokio::test(flavor = "multi_thread")]
async fn all_requests_of_a_root_go_through_its_proxy() {
    let site = Site::start(&[
        ("/", "<title>Start</title><a href=a>a</a><a href=b>b</a><a href='http://10.0.0.1/'>x</a>"),
        ("/a", "<title>Of apples</title><a href=a/deep>deep</a>"),
        ("/a/deep", "deep"),
        ("/b", "b"),
    ])
    .await;
    let proxy = Tinyproxy::start(443);
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).proxy = Some(proxy.proxy(Some(Tinyproxy::LOGIN)));
    // The private host is not the root's own, and is asked for by nobody.
    web_of(&mut settings).hosts_max = 2;
    let bench = start_with(tree, settings.clone()).await;
    assert_eq!(bench.handle.status().objects, 4, "{:#?}", bench.handle.problems());
    let first = asked(&site);
    for page in ["/", "/a", "/a/deep", "/b", "/robots.txt", "/sitemap.xml"] {
        assert!(first.contains(&site.at(page)), "{first:?}");
    }
    assert_eq!(passed(&proxy, 0), first);
    // A cache on the way keeps nothing that is asked for once.
    assert_eq!(site.last_header("cache-control").as_deref(), Some("no-store"));
    let before = proxy.requests().len();
    again(&bench).await;
    let second = asked(&site);
    assert!(second.contains(&site.at("/a/deep")), "{second:?}");
    assert_eq!(passed(&proxy, before), second);
    let (tree, _) = bench.stop().await;

    // A proxy that refuses says nothing about pages, and the problem says what to do.
    web_of(&mut settings).proxy = Some(proxy.proxy(None));
    let bench = start_with(tree, settings).await;
    let problems = bench.handle.problems();
    let is_named = |text: &str| text.contains("the proxy") && text.contains("`proxy_password`");
    assert!(problems.iter().any(|it| is_named(&it.message)), "{problems:#?}");
    assert_eq!(asked(&site), [""; 0]);
    assert_eq!(bench.handle.status().objects, 4);
    bench.stop().await;
}
