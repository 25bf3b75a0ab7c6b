//! Tests of what leads a crawl on besides the links of pages.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::site::{Site, start};

#[tokio::test(flavor = "multi_thread")]
async fn the_next_page_of_a_series_is_followed() {
    let next = |to: u32| format!("<link rel=next href=/p{to}><title>Before {to}</title>");
    let site = Site::start(&[("/", &next(2)), ("/p2", &next(3)), ("/p3", "<p>the last")]).await;
    let bench = start(&site).await;
    for path in ["/p2", "/p3"] {
        assert!(bench.object(&site.at(path)).await.is_some(), "{path}");
    }
    assert_eq!(bench.handle.status().objects, 3);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_other_types_lead_on_by_their_references() {
    let site = Site::start(&[("/", "<a href=l.bib>l</a><a href=m.md>m</a>")]).await;
    let entries = format!("@article{{a, title = {{Of apples}}, url = {{{}}}}}\n", site.at("/x"));
    site.answer("/l.bib", 200, &[("content-type", "application/x-bibtex")], &entries);
    site.answer("/m.md", 200, &[("content-type", "text/markdown")], "# Of pears\n\n[y](/y)\n");
    site.set("/x", "<title>X</title>");
    site.set("/y", "<title>Y</title>");
    let bench = start(&site).await;
    for path in ["/l.bib", "/m.md", "/x", "/y"] {
        assert!(bench.object(&site.at(path)).await.is_some(), "{path}: {:?}", site.take_asked());
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sitemaps_are_read_packed() {
    let site = Site::start(&[("/", "<title>Start</title>"), ("/alone", "<title>A</title>")]).await;
    site.answer("/robots.txt", 200, &[("content-type", "text/plain")], "Sitemap: /all.xml.gz\n");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"<urlset><url><loc>/alone</loc></url></urlset>").unwrap();
    let headers = [("content-type", "application/gzip")];
    site.answer_bytes("/all.xml.gz", &headers, packed.finish().unwrap());
    let bench = start(&site).await;
    assert!(bench.object(&site.at("/alone")).await.is_some(), "{:#?}", bench.handle.problems());
    assert_eq!(bench.handle.status().objects, 2);
    bench.stop().await;
}
