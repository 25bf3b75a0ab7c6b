//! Tests of what changes and deletes nothing, and of how records are confirmed.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::time::Duration;

use collection::{Change, Collection, Options, Stamp};
use gatherer::progress::Hold;
use net::clock;

use crate::support::site::{Site, again, config, start, start_with, web_of};
use crate::support::{PATIENCE, Tree};

const PAGES: &[(&str, &str)] = &[
    ("/", "<a href=a>a</a><a href=b>b</a><a href=c>c</a>"),
    ("/a", "<title>A</title><p>Of apples"),
    ("/b", "<title>B</title><p>Of pears"),
    ("/c", "<title>C</title><p>Of plums"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_cap_that_is_lowered_deletes_nothing() {
    let site = Site::start(PAGES).await;
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    let bench = start_with(tree, settings.clone()).await;
    assert_eq!(bench.handle.status().objects, 4);
    let web = web_of(&mut settings);
    (web.urls_max, web.depth) = (1, 0);
    bench.handle.reload(settings).unwrap();
    site.take_asked();
    for _ in 0..2 {
        again(&bench).await;
    }
    assert_eq!(bench.handle.status().objects, 4);
    assert!(site.take_asked().contains(&("/c".to_owned(), 304)), "it is known, and asked for");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_robots_txt_forbids_from_now_on_is_not_asked_for_and_goes_after_the_grace() {
    let site = Site::start(PAGES).await;
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).grace = Duration::from_secs(3_600);
    let bench = start_with(tree, settings.clone()).await;
    site.take_asked();
    site.answer("/robots.txt", 200, &[], "User-agent: *\nDisallow: /a\n");
    for _ in 0..2 {
        again(&bench).await;
    }
    assert_eq!(bench.handle.status().objects, 4);
    let asked = site.take_asked();
    assert!(!asked.iter().any(|it| it.0 == "/a"), "{asked:?}");
    assert!(asked.contains(&("/b".to_owned(), 304)), "{asked:?}");
    web_of(&mut settings).grace = Duration::ZERO;
    bench.handle.reload(settings).unwrap();
    again(&bench).await;
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    assert_eq!(bench.handle.status().objects, 3);
    assert!(!site.take_asked().iter().any(|it| it.0 == "/a"));
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_refuses_connections_loses_nothing() {
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    let (url, address) = (site.at("/"), site.url.socket_addrs(|| None).unwrap()[0]);
    drop(site);
    let end = clock::monotonic() + PATIENCE;
    while TcpStream::connect(address).is_ok() {
        assert!(clock::monotonic() < end, "it still listens");
        tokio::task::yield_now().await;
    }
    for _ in 0..2 {
        again(&bench).await;
    }
    assert_eq!(bench.handle.status().objects, 4);
    let problems = bench.handle.problems();
    assert!(problems.iter().any(|it| it.kind == "crawl" && it.object == url), "{problems:#?}");
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_domain_changes_nothing() {
    let site = Site::start(PAGES).await;
    let bench = start(&site).await;
    let before = bench.object(&site.at("/a")).await;
    let parked = "<title>orchard.example</title><h1>This domain is for sale</h1><p>Make an offer.";
    site.answer_all(200, &[("content-type", "text/html")], parked);
    for _ in 0..3 {
        again(&bench).await;
    }
    assert_eq!(bench.handle.status().objects, 4);
    assert_eq!(bench.object(&site.at("/a")).await, before);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_pages_that_turn_to_one_title_and_text_are_held_whatever_their_bytes() {
    let links: String = (0..120).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &links)]).await;
    for it in 0..120 {
        site.set(&format!("/p{it}"), &format!("<title>Page {it}</title><p>all of number {it}"));
    }
    let bench = start(&site).await;
    for it in 0..120 {
        let notice = format!("<!-- {it} --><title>Closed</title><p>For good, with many thanks");
        site.set(&format!("/p{it}"), &notice);
    }
    again(&bench).await;
    let status = bench.status(|it| it.roots[0].hold.is_some()).await;
    assert_eq!(status.roots[0].hold, Some(Hold::Alike { alike: 120, of: 121 }));
    assert_eq!(status.objects, 121);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_is_confirmed_if_all_of_it_answered_or_else_each_page_that_did() {
    let site = Site::start(PAGES).await;
    let tree = Tree::new();
    let settings = config(&tree, &site);
    let (mut tree, _) = start_with(tree, settings.clone()).await.stop().await;
    let mut from = 0;
    for (failing, is_confirmed, expected) in
        [(None, true, &[] as &[&str]), (Some("/b"), false, &["/", "/a", "/c"]), (None, true, &[])]
    {
        // The first turn reads what the first pass has left.
        if from != 0 {
            match failing {
                Some(path) => site.answer(path, 500, &[], ""),
                None => site.set("/b", PAGES[2].1),
            }
            let bench = start_with(tree, settings.clone()).await;
            again(&bench).await;
            (tree, _) = bench.stop().await;
        }
        let now = Stamp(clock::now_ms());
        let dir = tree.data().join("collection");
        let (collection, _) = Collection::open(&dir, Options::default(), now).unwrap();
        let mut refreshed = BTreeSet::new();
        let mut confirms = 0;
        for it in collection.scan(from).unwrap() {
            match it.unwrap().change {
                Change::Refresh(oid, _) => drop(refreshed.insert(oid.url)),
                Change::Confirm { root, .. } if root == site.url.as_str() => confirms += 1,
                _ => {}
            }
        }
        assert_eq!(0 < confirms, is_confirmed, "{failing:?}: {confirms}");
        let expected = expected.iter().map(|it| site.at(it)).collect();
        assert_eq!(refreshed, expected, "{failing:?}");
        from = collection.version().serial;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_records_are_no_losses() {
    let links: String = (0..120).map(|it| format!("<a href=p{it}>p</a>")).collect();
    let site = Site::start(&[("/", &links)]).await;
    for it in 0..120 {
        site.set(&format!("/p{it}"), "<meta name=robots content=noindex>of no use");
    }
    let bench = start(&site).await;
    for _ in 0..2 {
        assert_eq!(bench.root().hold, None);
        assert_eq!(bench.handle.status().objects, 1);
        again(&bench).await;
    }
    bench.assert_conserved();
    bench.stop().await;
}
