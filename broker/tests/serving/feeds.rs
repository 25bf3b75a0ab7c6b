//! Tests of searches as feeds (Atom).

use std::io::Write as _;
use std::process::{Command, Stdio};

use http::header::CONTENT_TYPE;

use crate::common::site::{Site, record};

/// Checks that a text is XML, as a reader of feeds reads it.
fn check_xml(text: &str) {
    let mut command = Command::new("xmllint");
    command.args(["--noout", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut reader = command.spawn().expect("xmllint is missing: apt-get install libxml2-utils");
    reader.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the titles of the entries, in their order.
fn titles(feed: &str) -> Vec<&str> {
    let entries = feed.split("<entry>\n<title>").skip(1);
    entries.map(|it| it.split_once('<').unwrap().0).collect()
}

#[tokio::test]
async fn a_search_is_a_feed_of_what_was_updated_last() {
    let dated = |n: u32, text: &str| {
        let mut record = record(&format!("https://example.org/{n}.html"), &format!("Part {n}"));
        record.set("Update-Time", (1_700_000_000 + n).to_string());
        record.set("Partial-Text", text);
        record
    };
    let mut odd = dated(9, "apple");
    odd.set("Title", "A <b>&\u{1} \u{202e}title\u{fffe}");
    odd.set("Description", "\"quoted\" & <i>");
    let site = Site::of(vec![dated(1, "apple"), dated(3, "apple"), dated(2, "pear"), odd]);
    let answer = site.get_ok("/atom?q=apple").await;
    let kind = answer.headers[CONTENT_TYPE].to_str().unwrap();
    assert!(kind.starts_with("application/atom+xml"), "{kind}");
    check_xml(&answer.body);
    let found = titles(&answer.body);
    assert_eq!(found.len(), 3, "{}", answer.body);
    assert!(found.iter().any(|it| it.starts_with("A &lt;b&gt;&amp;")), "{found:?}");
    assert!(answer.body.contains("&quot;quoted&quot; &amp; &lt;i&gt;"), "{}", answer.body);
    assert!(
        answer.body.contains("<link rel=\"self\" type=\"application/atom+xml\" href=\"http://")
    );
    let one = site.get_ok("/atom?q=apple&limit=1").await;
    assert_eq!(titles(&one.body).len(), 1);
    let none = site.get_ok("/atom?q=quince").await;
    check_xml(&none.body);
    assert!(titles(&none.body).is_empty());
    for wrong in ["/atom", "/atom?q=apple&limit=x", "/atom?q=%28%28"] {
        assert_eq!(site.get(wrong).await.status, 400, "{wrong}");
    }
    // The page of results names its feed; the feed's order is one of a search.
    let page = site.get_ok("/?q=apple").await;
    assert!(page.body.contains("href=\"/atom?q=apple\""), "{}", page.body);
    let sorted = site.get_ok("/api/search?q=*&sort=updated").await.json();
    let urls: Vec<&str> =
        sorted["hits"].as_array().unwrap().iter().map(|it| it["url"].as_str().unwrap()).collect();
    let names: Vec<&str> = urls.iter().map(|it| it.rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["9.html", "3.html", "2.html", "1.html"]);
}
