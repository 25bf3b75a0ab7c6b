//! Tests of lists of URLs.

use proptest::prelude::*;

use super::*;

/// date -u -d 2026-01-01T00:00:00Z +%s
const YEAR_MS: u64 = 1_767_225_600_000;

fn base() -> Url {
    Url::parse("http://h.example/d/s.xml").unwrap()
}

/// Checks kind, entries and number of entries skipped.
#[track_caller]
fn check(text: &str, kind: Kind, expected: &[(&str, Option<u64>)], skipped: usize) -> List {
    let list = read(&base(), text.as_bytes()).unwrap();
    let found: Vec<_> = list.entries.iter().map(|it| (it.url.as_str(), it.changed_ms)).collect();
    assert_eq!((list.kind, &found[..], list.skipped), (kind, expected, skipped), "{text}");
    list
}

#[test]
fn a_sitemap_has_objects_and_an_index_has_sitemaps() {
    let list = check(
        "\u{feff}\n<?xml version=\"1.0\"?><!-- c --><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
         <url><loc> http://h.example/a?b=1&amp;c=&#50; </loc><lastmod>2026-01-01</lastmod>\
         <changefreq>daily</changefreq></url>\
         <url><lastmod>2026-01-01T01:00:00+01:00</lastmod>\
         <image:image><image:loc>http://h.example/i.png</image:loc></image:image>\
         <loc><![CDATA[/b&c]]></loc></url>\
         <url><loc>http://[</loc></url><url/><url><loc>mailto:a@b</loc></url></urlset>",
        Kind::Objects,
        &[("http://h.example/a?b=1&c=2", Some(YEAR_MS)), ("http://h.example/b&c", Some(YEAR_MS))],
        3,
    );
    assert_eq!(list.flaw, None);
    check(
        "<s:sitemapindex xmlns:s='x'><s:sitemap><s:loc>http://h.example/1.xml.gz</s:loc>\
         <s:lastmod>soon</s:lastmod></s:sitemap></s:sitemapindex>",
        Kind::Lists,
        &[("http://h.example/1.xml.gz", None)],
        0,
    );
}

#[test]
fn feeds_have_the_newest_objects() {
    check(
        "<rss version='2.0'><channel><link>http://h.example/</link>\
         <atom:link href='http://h.example/feed' rel='self'/>\
         <item><title>a</title><link>http://h.example/a</link>\
         <pubDate>Thu, 01 Jan 2026 00:00:00 GMT</pubDate><guid>http://h.example/?p=1</guid></item>\
         <item><guid>http://h.example/b</guid></item>\
         <item><guid isPermaLink='false'>http://h.example/c</guid></item></channel></rss>",
        Kind::News,
        &[("http://h.example/a", Some(YEAR_MS)), ("http://h.example/b", None)],
        1,
    );
    check(
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://h.example/'/>\
         <entry><link rel='edit' href='/edit'/><link rel='alternate' href='/a?b&amp;c'/>\
         <updated>2026-01-01T00:00:00Z</updated></entry>\
         <entry><link href='e/b'></link></entry></feed>",
        Kind::News,
        &[("http://h.example/a?b&c", Some(YEAR_MS)), ("http://h.example/d/e/b", None)],
        0,
    );
    check(
        "<rdf:RDF><item rdf:about='x'><link>http://h.example/a</link>\
         <dc:date>2026-01-01T00:00:00Z</dc:date></item></rdf:RDF>",
        Kind::News,
        &[("http://h.example/a", Some(YEAR_MS))],
        0,
    );
}

#[test]
fn a_plain_list_has_a_url_a_line() {
    check(
        "# all\r\nhttp://h.example/a\r\n\r\n https://h.example/b \nsome words\n",
        Kind::Objects,
        &[("http://h.example/a", None), ("https://h.example/b", None)],
        1,
    );
}

#[test]
fn what_is_no_list_is_refused_with_its_reason() {
    for (text, expected) in [
        ("", NoList::Text),
        ("not found", NoList::Text),
        ("<!DOCTYPE html><html></html>", NoList::Doctype),
        ("<!DOCTYPE urlset [<!ENTITY a \"b\">]><urlset/>", NoList::Doctype),
        ("<html><body>", NoList::Root("html".to_owned())),
        ("<!-- -->", NoList::Root(String::new())),
    ] {
        assert_eq!(read(&base(), text.as_bytes()), Err(expected), "{text}");
    }
}

#[test]
fn what_is_broken_keeps_what_came_before() {
    let start = "<urlset><url><loc>http://h.example/a</loc></url>";
    let deep = format!("{start}{}", "<x>".repeat(DEPTH_MAX));
    for (text, flaw) in [
        (start.to_owned(), Flaw::Truncated),
        (format!("{start}<url><loc>http://h.example/b"), Flaw::Truncated),
        (format!("{start}</url>"), Flaw::Malformed { at: 48 }),
        (format!("{start}<!DOCTYPE a>"), Flaw::Malformed { at: 48 }),
        (deep, Flaw::Malformed { at: 48 + 3 * (DEPTH_MAX as u64 - 1) }),
    ] {
        let list = check(&text, Kind::Objects, &[("http://h.example/a", None)], 0);
        assert_eq!(list.flaw, Some(flaw), "{text}");
    }
}

#[test]
fn entities_do_not_expand() {
    let list = read(&base(), b"<urlset><url><loc>/a&b;c</loc></url></urlset>").unwrap();
    assert_eq!(list.entries[0].url.as_str(), "http://h.example/ac");
}

#[test]
fn lists_are_bounded() {
    let lines = "http://h.example/a\n".repeat(ENTRIES_MAX);
    assert_eq!(read(&base(), lines.as_bytes()).unwrap().flaw, None);
    let list = read(&base(), format!("{lines}http://h.example/b").as_bytes()).unwrap();
    assert_eq!((list.entries.len(), list.flaw), (ENTRIES_MAX, Some(Flaw::Entries)));
    let long = format!("<urlset><url><loc>/{}</loc></url></urlset>", "a".repeat(100_000));
    assert_eq!(read(&base(), long.as_bytes()).unwrap().skipped, 1);
    let mut large = b"<urlset><url><loc>/a</loc></url></urlset>".to_vec();
    large.resize(BYTES_MAX + 1, b'\n');
    assert_eq!(read(&base(), &large).unwrap().flaw, Some(Flaw::Bytes));
}

proptest! {
    #[test]
    fn what_is_written_is_read(paths in prop::collection::vec("[a-z&<>'\"é]{1,8}", 0..20)) {
        let locs: Vec<Url> = paths.iter().map(|it| base().join(&format!("/{it}")).unwrap()).collect();
        let mut text = "<urlset>".to_owned();
        for loc in &locs {
            let loc = quick_xml::escape::escape(loc.as_str());
            text.push_str(&format!("<url><loc>{loc}</loc></url>"));
        }
        text.push_str("</urlset>");
        let list = read(&base(), text.as_bytes()).unwrap();
        let found: Vec<Url> = list.entries.into_iter().map(|it| it.url).collect();
        prop_assert_eq!((found, list.flaw), (locs, None));
    }

    #[test]
    fn any_bytes_are_within_the_limits(text in "(<(/|!)?(urlset|url|loc|rss|item|link)( href='a')?>|[a-z&;]|://|\n){0,40}") {
        if let Ok(list) = read(&base(), text.as_bytes()) {
            prop_assert!(list.entries.len() <= ENTRIES_MAX);
        }
    }
}
