//! Tests of sites that are crawled again: what counts as a change, and what is asked for when.

use std::time::Duration;

use crate::support::Tree;
use crate::support::site::{Site, again, config, start, start_with, web_of};

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_stands_still_is_no_change_each_time() {
    let site = Site::start(&[]).await;
    let show = |visitor: u32, word: &str| {
        site.set("/", &format!("<title>{word}</title><p>You are visitor {visitor} of this page."));
    };
    show(1, "Start");
    let bench = start(&site).await;
    let shown = async || {
        let record = bench.object(site.url.as_str()).await.unwrap();
        let text = record.text("Full-Text").or_else(|| record.text("Partial-Text"));
        text.unwrap().into_owned()
    };
    // What changes for the first time may matter.
    for visitor in [2, 3] {
        show(visitor, "Start");
        again(&bench).await;
        bench
            .until_url(site.url.as_str(), |it| {
                let text =
                    it.unwrap().text("Full-Text").or_else(|| it.unwrap().text("Partial-Text"));
                text.unwrap().contains(&format!("visitor {visitor} "))
            })
            .await;
    }
    let version = bench.handle.status().version;
    for visitor in [4, 5] {
        show(visitor, "Start");
        again(&bench).await;
        assert!(shown().await.contains("visitor 3 "));
    }
    show(6, "Another");
    again(&bench).await;
    bench.until_url(site.url.as_str(), |it| it.unwrap().text("Title").unwrap() == "Another").await;
    assert!(shown().await.contains("visitor 6 "));
    assert_ne!(bench.handle.status().version, version);
    bench.assert_conserved();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_change_is_asked_for_less_often() {
    let site = Site::start(&[
        ("/", "<a href=still>s</a>"),
        ("/still", "<title>Still</title>"),
        ("/told", "<title>Told</title>"),
    ])
    .await;
    // As the site says, one page changes all the time.
    let list = "<urlset><url><loc>/told</loc><lastmod>2100-01-01</lastmod></url></urlset>";
    site.answer("/sitemap.xml", 200, &[("content-type", "text/xml")], list);
    let tree = Tree::new();
    let mut settings = config(&tree, &site);
    web_of(&mut settings).interval = Duration::from_millis(200);
    let bench = start_with(tree, settings).await;
    let passes = 16;
    bench.crawled(passes).await;
    let asked = site.take_asked();
    let count = |path: &str| asked.iter().filter(|it| it.0 == path).count() as u64;
    assert!(count("/still") * 2 <= passes, "{asked:?}");
    assert!(passes - 1 <= count("/told"), "{asked:?}");
    // Whoever asks for a pass wants all of it.
    let before = bench.crawls().await;
    bench.handle.gather();
    bench.crawled(before + 2).await;
    assert!(site.take_asked().iter().any(|it| it.0 == "/still"));
    assert_eq!(bench.handle.status().objects, 3);
    bench.assert_conserved();
    bench.stop().await;
}
