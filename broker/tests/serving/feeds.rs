//! Tests of searches as feeds (Atom).

use std::io::Write as _;
use std::process::{Command, Stdio};

use broker::config::Config;
use collection::Change;
use http::header::CONTENT_TYPE;
use net::client::Request;

use crate::cascade::{finds, views};
use crate::common::site::{Site, record};
use crate::common::{Origin, Running, client, config, url_of};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_a_feed_of_its_newest_objects() {
    let gatherer = Origin::start("00000000000000aa").await;
    let dated = |n: u32, text: &str| {
        let mut record = crate::common::record(&gatherer.id, u64::from(n), text);
        record.set("Title", format!("{text} & {n}"));
        record.set("Update-Time", (1_700_000_000 + n).to_string());
        Change::Update(record)
    };
    let changes = [(1, "alpha"), (3, "alpha"), (2, "beta"), (4, "alpha")];
    gatherer.commit(changes.map(|(n, text)| dated(n, text)).into()).await;
    let dir = tempfile::tempdir().unwrap();
    let views = views("[[view]]\nname = \"first\"\ntitle = \"The <first>\"\nquery = \"alpha\"\n");
    let config = config(dir.path(), vec![gatherer.source("gatherer")]);
    let a = Running::start(Config { views, ..config }).await;
    finds(&a, "view:first", 3).await;
    let feed = async |path: &str| {
        let url = url_of(a.address).join(path).unwrap();
        let response = client().send(Request::get(url)).await.unwrap();
        let status = response.status.as_u16();
        let body = response.bytes(1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    for path in ["atom?q=view:first", "atom?q=*&view=first"] {
        let (status, text) = feed(path).await;
        assert_eq!(status, 200, "{path}: {text}");
        check_xml(&text);
        let expected = ["alpha &amp; 4", "alpha &amp; 3", "alpha &amp; 1"];
        assert_eq!(titles(&text), expected, "{path}: {text}");
    }
    // An object that leaves the view leaves its feed, and one that is gone is no feed.
    gatherer.commit(vec![dated(5, "alpha"), dated(4, "beta")]).await;
    finds(&a, "view:first number5", 1).await;
    let (_, text) = feed("atom?q=view:first").await;
    assert_eq!(titles(&text), ["alpha &amp; 5", "alpha &amp; 3", "alpha &amp; 1"], "{text}");
    assert_eq!(feed("atom?q=view:none").await.0, 400);
    a.stop().await;
}
