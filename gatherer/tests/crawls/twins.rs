//! Tests of pages that are one page under several URLs.

use std::time::Duration;

use crate::support::Tree;
use crate::support::site::{Site, again, config, start, start_with, web_of};
use soif::Record;

fn same_as(record: &Record) -> Vec<String> {
    record.text("Same-As").unwrap_or_default().lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_pages_have_one_record_that_names_the_others() {
    let links = "<a href=a>a</a> <a href=copy-of-a>b</a> <a href=moved>m</a> <a href=other>o</a>";
    let site = Site::start(&[("/", links), ("/a", "<p>One"), ("/copy-of-a", "<p>One")]).await;
    site.set("/other", "<p>Other");
    site.answer("/moved", 301, &[("location", "/a")], "");
    let bench = start(&site).await;
    assert_eq!(bench.handle.status().objects, 3, "the first, one of the twins, and the other");
    assert!(bench.object(&site.at("/copy-of-a")).await.is_none());
    let record = bench.object(&site.at("/a")).await.unwrap();
    assert_eq!(same_as(&record), [site.at("/copy-of-a"), site.at("/moved")]);
    let explained = bench.handle.explain(&site.url.join("/copy-of-a").unwrap()).remove(0);
    assert_eq!(explained.same_as, Some(site.at("/a")));
    // Nothing new: nothing changes.
    let version = bench.handle.status().version;
    again(&bench).await;
    assert_eq!(bench.handle.status().objects, 3);
    assert_eq!(same_as(&bench.object(&site.at("/a")).await.unwrap()).len(), 2);
    assert!(version <= bench.handle.status().version);
    // One that changes has its own record.
    site.set("/copy-of-a", "<p>Two");
    again(&bench).await;
    bench.until_url(&site.at("/copy-of-a"), |it| it.is_some()).await;
    bench.until_url(&site.at("/a"), |it| same_as(it.unwrap()) == [site.at("/moved")]).await;
    // And one whose twin changes, although it is still the same.
    site.set("/copy-of-a", "<p>One");
    again(&bench).await;
    bench.until_url(&site.at("/copy-of-a"), |it| it.is_none()).await;
    site.set("/a", "<p>Three");
    again(&bench).await;
    bench.until_url(&site.at("/copy-of-a"), |it| it.is_some()).await;
    bench.until_url(&site.at("/a"), |it| same_as(it.unwrap()) == [site.at("/moved")]).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_where_it_calls_its_own_if_that_is_the_same_page() {
    let page = |title: &str, own: &str, text: &str| {
        format!("<title>{title}</title><link rel=canonical href={own}><p>{text}")
    };
    let links = "<a href=a?sort=1>a</a> <a href=a>a</a> <a href=wrong>w</a> <a href=lost>l</a>";
    let site = Site::start(&[("/", links), ("/a", &page("Apples", "/a", "red green"))]).await;
    site.set("/a?sort=1", &page("Apples", "/a", "green red"));
    // Many a site gives its first page as that of all.
    site.set("/wrong", &page("Pears", "/", "yellow"));
    site.set("/lost", &page("Plums", "/none", "blue"));
    let bench = start(&site).await;
    assert!(bench.object(&site.at("/a?sort=1")).await.is_none());
    let record = bench.object(&site.at("/a")).await.unwrap();
    assert_eq!(same_as(&record), [site.at("/a?sort=1")]);
    for path in ["/", "/wrong", "/lost"] {
        assert!(bench.object(&site.at(path)).await.is_some(), "{path}");
    }
    // When that is gone, the other is what there is.
    site.remove("/a");
    again(&bench).await;
    bench.until_url(&site.at("/a?sort=1"), |it| it.is_some()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_has_its_own_record_when_the_settings_leave_the_other_out() {
    let site = Site::start(&[("/", "<a href=a>a</a> <a href=also-a>b</a>")]).await;
    for path in ["/a", "/also-a"] {
        site.answer(path, 200, &[("content-type", "text/html"), ("etag", "\"1\"")], "<p>One");
    }
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    let bench = start_with(tree, settings.clone()).await;
    assert!(bench.object(&site.at("/also-a")).await.is_none());
    let (tree, _) = bench.stop().await;
    web_of(&mut settings).deny = vec!["/a".to_owned()];
    let bench = start_with(tree, settings).await;
    bench.until_url(&site.at("/also-a"), |it| it.is_some()).await;
    bench.until_url(&site.at("/a"), |it| it.is_none()).await;
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_wants_no_record_is_no_twin_of_where_it_leads() {
    let hidden = "<meta name=robots content=noindex><a href=a>a</a>";
    let site = Site::start(&[("/", "<a href=h>h</a>"), ("/h", hidden), ("/a", "<p>One")]).await;
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    // The page is remembered as long as that.
    web_of(&mut settings).grace = Duration::from_secs(3_600);
    let bench = start_with(tree, settings).await;
    assert_eq!(bench.handle.status().objects, 2);
    assert!(same_as(&bench.object(&site.at("/a")).await.unwrap()).is_empty());
    bench.stop().await;
}
