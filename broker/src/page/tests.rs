//! Tests of the pages: they check the content, and that no text of a foreign document can run as
//! script.

use std::collections::BTreeMap;

use soif::Record;

use super::parameters::Parameters;
use super::*;
use crate::answer::{Duplicate, Hit, Matching, Notice, Snippet};

fn pages() -> Pages {
    Pages::new(web::Site::new("Library & <Archive>"), TEMPLATES, None).unwrap()
}

fn hit(url: &str, title: &str) -> Hit {
    let oid = format!("00f1e2d3c4b5a697:{url}");
    Hit { url: url.to_owned(), title: title.to_owned(), oid, ..Hit::default() }
}

fn answer() -> Answer {
    let first = Hit {
        description: "A paper.".to_owned(),
        r#type: "HTML".to_owned(),
        score: 7.5,
        gatherer: "Physics".to_owned(),
        gatherer_id: "00f1e2d3c4b5a697".to_owned(),
        host: "example.org".to_owned(),
        size: Some(12_345),
        modified: Some(1_700_000_000),
        snippet: Snippet {
            text: "How the gatherer & broker work".to_owned(),
            html: String::new(),
            highlights: vec![(8, 16)],
            place: Some("pages 3–5".to_owned()),
        },
        duplicates: vec![Duplicate {
            url: "https://mirror.example.net/harvest.html".to_owned(),
            gatherer: "Mirror".to_owned(),
            oid: "11:https://mirror.example.net/harvest.html".to_owned(),
            r#type: "HTML".to_owned(),
            ..Duplicate::default()
        }],
        ..hit("https://example.org/papers/harvest.html", "Harvest: a scalable system")
    };
    let second = Hit {
        r#type: "PDF".to_owned(),
        size: Some(0),
        snippet: Snippet { place: Some("page 3".to_owned()), ..Snippet::default() },
        ..hit("file:///srv/docs/read%20me.pdf", "")
    };
    let facet =
        |values: &[(&str, u64)]| values.iter().map(|(it, n)| ((*it).to_owned(), *n)).collect();
    let facets = BTreeMap::from([
        ("type".to_owned(), facet(&[("HTML", 1_200), ("Text", 34)])),
        ("host".to_owned(), facet(&[("example.org", 1_200)])),
        ("gatherer".to_owned(), facet(&[("Physics", 1_234)])),
        ("year".to_owned(), facet(&[("2024", 900), ("2023", 334)])),
    ]);
    Answer {
        total: 1_234,
        total_all: 1_234,
        took_us: 4_200,
        hits: vec![first, second],
        facets,
        ..Answer::default()
    }
}

fn render(asked: &str, answer: Option<&Answer>, wrong: Option<Mistake>, home: Home) -> String {
    let asked = Parameters::parse(Some(asked), Unknown::Refused).unwrap();
    let text = asked.text.clone().unwrap_or_default();
    let request = asked.request(query::parse(&text).unwrap(), Matching::Best);
    let found = answer.map(|it| Results::new(&asked, &request, it));
    let mut keep = asked.parameters();
    keep.retain(|(name, _)| *name != "q");
    let page = SearchPage {
        q: text,
        keep,
        activity: None,
        open: None,
        everywhere: None,
        home,
        wrong,
        found,
    };
    body_of(&pages().render("search.html", &page).unwrap().0)
}

/// Returns the part of a page that other pages do not share, without the hashes in URLs.
fn body_of(html: &str) -> String {
    let start = html.find("<main").unwrap();
    let head = html.find("<title>").unwrap();
    let styles = html.find("<link rel=\"icon\"").unwrap();
    let after_styles = html.find("style.css").unwrap();
    let after_styles = after_styles + html[after_styles..].find('\n').unwrap();
    let body = html.find("<body").unwrap();
    format!("{}{}{}", &html[head..styles], &html[after_styles + 1..body], &html[start..])
        .replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn the_empty_page() {
    insta::assert_snapshot!(render(
        "",
        None,
        None,
        Home { objects: 12_480, sources: 2, has_views: false }
    ));
}

#[test]
fn a_page_of_results() {
    let html = render(
        "q=gatherer&type=HTML&offset=10&sort=newest",
        Some(&answer()),
        None,
        Home::default(),
    );
    insta::assert_snapshot!(html);
}

#[test]
fn nothing_found() {
    let none = Answer { took_us: 90, ..Answer::default() };
    insta::assert_snapshot!(render(
        "q=old+oak&type=PDF&year=2024",
        Some(&none),
        None,
        Home::default()
    ));
}

#[test]
fn a_query_that_cannot_be_read() {
    let text = "title:(harvest <b>";
    let error = query::parse(text).unwrap_err();
    let asked = "q=title:(harvest+%3Cb%3E";
    insta::assert_snapshot!(render_wrong(asked, Mistake::query(&error, text)));
}

fn render_wrong(asked: &str, wrong: Mistake) -> String {
    let asked = Parameters::parse(Some(asked), Unknown::Refused).unwrap();
    let q = asked.text.clone().unwrap_or_default();
    let page = SearchPage {
        q,
        keep: Vec::new(),
        activity: None,
        open: None,
        everywhere: None,
        home: Home::default(),
        wrong: Some(wrong),
        found: None,
    };
    body_of(&pages().render("search.html", &page).unwrap().0)
}

#[test]
fn an_object() {
    let mut record = Record::new("FILE", "https://example.org/papers/harvest.html");
    record.push("Title", "Harvest: a scalable system");
    record.push("Author", "Mic Bowman\nPeter Danzig");
    record.push("File-Size", "12345");
    record.push("Update-Time", "1700000000");
    record.push("Time-to-Live", "2592000");
    record.push("URL-References", "http://example.org/a\njavascript:alert(1)\nrelative.html");
    record.push("Full-Text", "word\n".repeat(30));
    let oid = "00f1e2d3c4b5a697:https://example.org/papers/harvest.html";
    record.push("Keywords", (0..20).map(|it| format!("word{it}\n")).collect::<String>());
    record.push("Description", "A \u{202e}paper.");
    let asked = ObjectParameters::parse(Some("oid=x&q=word&type=HTML")).unwrap();
    let query = query::parse("word").unwrap();
    let mut page = ObjectPage::new(oid, &record, (&asked, Some(&query)), &answer());
    insta::assert_snapshot!(body_of(&pages().render("object.html", &page).unwrap().0));
    page.link_copy(Some(&"http://cache.example.org:3128/".parse().unwrap()));
    let link = "<a class=\"button\" href=\"http://cache.example.org:3128/copy?url=https%3A%2F%2Fexample.org%2F\
                papers%2Fharvest.html\" rel=\"nofollow\">Cached copy</a>";
    let html = pages().render("object.html", &page).unwrap().0;
    assert!(html.contains(link), "{html}");
}

const EVIL: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}{% raw %}";

/// Checks that [`EVIL`] became neither a tag nor template code.
fn check_harmless(html: &str) {
    let lower = html.to_ascii_lowercase();
    for bad in ["<script", "<img src=x", "javascript:", "href=\"data:", "\" on", "49{"] {
        let found = lower.find(bad).map(|at| &html[at.saturating_sub(80)..at + bad.len()]);
        // This text is allowed, but not at the start of an attribute's value or of a tag.
        let in_text = bad == "javascript:" && !lower.contains("=\"javascript:");
        assert!(found.is_none() || in_text, "{bad} in …{found:?}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown as text");
}

#[test]
fn a_hit_outside_the_web_links_to_its_landing_page() {
    let landing_page = Some("https://repository.example/item/1".to_owned());
    let hits = vec![Hit { landing_page, ..hit("oai:repository.example:1", "Item") }];
    let answer = Answer { total: 1, hits, ..Answer::default() };
    let html = render("q=x", Some(&answer), None, Home::default());
    assert!(html.contains("<a href=\"https://repository.example/item/1\">Item</a>"), "{html}");
    assert!(html.contains("oai:repository.example:1"), "{html}");
}

#[test]
fn of_one_address_the_newest_is_shown_and_the_page_says_so() {
    let url = "https://example.org/page";
    let of = |gatherer: &str, url: &str, modified: Option<i64>| Duplicate {
        url: url.to_owned(),
        gatherer: gatherer.to_owned(),
        modified,
        similar: true,
        ..Duplicate::default()
    };
    let page = |duplicates: Vec<Duplicate>| {
        let hits = vec![Hit { modified: Some(86_400), duplicates, ..hit(url, "Page") }];
        render("q=x", Some(&Answer { total: 1, hits, ..Answer::default() }), None, Home::default())
    };
    let newest = "<li>the newest version: ";
    let html = page(vec![of("North", url, Some(5))]);
    assert!(html.contains(&format!("{newest}another gatherer has an older one</li>")), "{html}");
    assert!(html.contains("<summary>Also from one other gatherer</summary>"), "{html}");
    assert!(html.contains("from <bdi>North</bdi>, an older version ("), "{html}");
    let html = page(vec![of("North", url, Some(5)), of("South", url, None)]);
    assert!(html.contains(&format!("{newest}other gatherers have older ones</li>")), "{html}");
    assert!(html.contains("<summary>Also from 2 other gatherers</summary>"), "{html}");
    let html = page(vec![of("North", "https://example.org/page.txt", Some(5))]);
    assert!(!html.contains(newest) && html.contains("Also at one other place"), "{html}");
    assert!(html.contains("from <bdi>North</bdi>, nearly the same ("), "{html}");
    let html = page(vec![of("North", url, Some(86_400))]);
    assert!(!html.contains(newest), "which one is the newest is not known: {html}");
    let same = Duplicate { similar: false, ..of("North", url, Some(5)) };
    let html = page(vec![same]);
    assert!(!html.contains(newest) && html.contains("from <bdi>North</bdi> ("), "{html}");
}

#[test]
fn no_field_of_a_hit_can_run() {
    let odd = "\u{202e}\0";
    let evil = || format!("{odd}{EVIL}{odd}");
    let duplicate = |url: &str| Duplicate {
        url: url.to_owned(),
        gatherer: evil(),
        oid: evil(),
        r#type: evil(),
        modified: None,
        similar: true,
        broker: None,
    };
    let hit = |url: &str| Hit {
        url: url.to_owned(),
        title: evil(),
        description: evil(),
        r#type: evil(),
        gatherer: evil(),
        gatherer_id: evil(),
        host: evil(),
        oid: evil(),
        snippet: Snippet {
            text: evil(),
            html: evil(),
            highlights: vec![(0, 13)],
            place: Some(evil()),
        },
        duplicates: vec![duplicate("javascript:alert(1)"), duplicate(&evil())],
        landing_page: Some("javascript:alert(1)".to_owned()),
        ..Hit::default()
    };
    let hits = vec![
        hit("javascript:alert(1)"),
        hit(&evil()),
        hit("data:text/html,<script>"),
        hit("http://h/\"><script>"),
    ];
    let values = vec![(evil(), 1)];
    let facets = ["type", "host", "gatherer", "year"].map(|it| (it.to_owned(), values.clone()));
    let answer = Answer {
        total: 30,
        total_all: 9,
        parts: 3,
        matching: Matching::Best,
        suggestion: Some(evil()),
        respelled: false,
        notice: Some(Notice { message: evil(), offset: 0, length: 9 }),
        everywhere: None,
        activity: Some(evil()),
        took_us: 1,
        hits,
        forms: vec![duplicate("javascript:alert(1)"), duplicate(EVIL)],
        facets: facets.into(),
    };
    let encoded: String = url::form_urlencoded::byte_serialize(EVIL.as_bytes()).collect();
    let asked = format!("q=x&type={encoded}&like={encoded}");
    let html = render(&asked, Some(&answer), None, Home::default());
    check_harmless(&html);
    assert!(!html.contains(['\u{202e}', '\0']), "it changes the direction of text");
    check_harmless(&render_wrong(&format!("q={encoded}"), Mistake::parameter(EVIL)));
    let error = query::parse("(").unwrap_err();
    check_harmless(&render_wrong(&format!("q={encoded}"), Mistake::query(&error, EVIL)));
}

#[test]
fn an_answer_says_what_is_not_as_it_was_asked_for() {
    let notice = Notice { message: "this never ends".to_owned(), offset: 4, length: 1 };
    let suggestion = Some("old oak".to_owned());
    let mut seen = Answer { total: 9, total_all: 1, suggestion, parts: 7, ..answer() };
    seen.notice = Some(notice);
    seen.hits.iter_mut().for_each(|it| it.part = true);
    let page = render("q=%22ld+ak%22", Some(&seen), None, Home::default());
    for (text, count) in [
        ("One object has all of these words. These have some of them:", 1),
        ("<ol class=\"hits\" start=\"2\">", 1),
        ("Did you mean <a href=\"/?q=old+oak\">", 1),
        ("this never ends.", 1),
        ("<b aria-hidden=\"true\">    ^</b>", 1),
        ("Of 7 long documents only the beginning is here", 1),
        ("<li>only the beginning of its text is searched</li>", 2),
    ] {
        assert_eq!(page.matches(text).count(), count, "{text:?} in {page}");
    }
    seen.total_all = 0;
    let page = render("q=ld+ak", Some(&seen), None, Home::default());
    assert!(page.contains("No object has all of these words. These have some of them:"), "{page}");
    assert!(!page.contains("long documents"), "there is no phrase");
    seen.respelled = true;
    let page = render("q=ld+ak", Some(&seen), None, Home::default());
    let shown = "Nothing has all of these words; this is found for <a href=\"/?q=old+oak\">";
    assert!(page.contains(shown), "{page}");
    let page = render("q=ld+ak", Some(&answer()), None, Home::default());
    assert!(!page.contains("some of them") && !page.contains("Did you mean"), "{page}");
}

#[test]
fn no_field_of_an_object_can_run() {
    for url in ["javascript:alert(1)", EVIL, "data:text/html,<script>"] {
        let mut record = Record::new("FILE", url);
        for name in [
            "Title",
            "Author",
            "Date",
            "Language",
            "Type",
            "Description",
            "Keywords",
            "Full-Text",
            "Text-Places",
            "Gatherer-Name",
            "URL-References",
            "Update-Time",
            EVIL,
        ] {
            record.push(name, format!("{EVIL}\u{202e}\0\n").repeat(30));
            record.push(name, EVIL);
        }
        record.push("URL-References", "javascript:alert(1)");
        let encoded: String = url::form_urlencoded::byte_serialize(EVIL.as_bytes()).collect();
        let twin = Duplicate {
            url: url.to_owned(),
            gatherer: EVIL.to_owned(),
            oid: EVIL.to_owned(),
            r#type: EVIL.to_owned(),
            modified: None,
            similar: true,
            broker: None,
        };
        let title = format!("{EVIL}\u{202e}");
        let like = Hit { r#type: title.clone(), ..hit(EVIL, &title) };
        let related = Answer { hits: vec![like], forms: vec![twin], ..Answer::default() };
        for part in 1..9 {
            let asked = format!("oid=x&part={part}&q=script+{encoded}&type={encoded}");
            let asked = ObjectParameters::parse(Some(&asked)).unwrap();
            let query = query::plain(EVIL);
            let page = ObjectPage::new(EVIL, &record, (&asked, Some(&query)), &related);
            let html = pages().render("object.html", &page).unwrap().0;
            check_harmless(&html);
            assert!(!html.contains(['\u{202e}', '\0']), "it changes the direction of text");
        }
    }
}
