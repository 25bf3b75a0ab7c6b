//! Tests of the broker's public routes over a real collection and index: pages for people, and
//! answers for programs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::site::{GATHERER, Site, record};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use soif::Record;
use tokio::task::JoinSet;

/// Number of objects about harvest, not counting two duplicates.
const HARVESTS: usize = 25;

/// The promise that cheap searches are answered within 250 ms beside dear ones
/// (docs/measurements.md), with a margin for a busy machine.
const CHEAP_WITHIN: Duration = Duration::from_millis(250 * 5);

fn site() -> Site {
    Site::of(objects())
}

fn objects() -> Vec<Record> {
    let mut all = Vec::new();
    for n in 0..HARVESTS {
        let mut object =
            record(&format!("https://example.org/{n}.html"), &format!("Harvest, part {n}"));
        object.push("File-Size", (n + 1).to_string());
        object.push("MD5", format!("{n:032x}"));
        all.push(object);
    }
    for host in ["mirror.example.net", "other.example.net"] {
        let mut copy = record(&format!("https://{host}/0.html"), "Harvest, part 0");
        copy.push("File-Size", "1");
        copy.push("MD5", format!("{:032x}", 0));
        all.push(copy);
    }
    all.push(record("file:///srv/docs/read%20me.txt", "Readme"));
    all.extend(with_places());
    let evil = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut script = record("javascript:alert(1)", &format!("Evil {evil}"));
    script.set("Partial-Text", format!("evil {evil}"));
    script.set("Type", evil);
    script.set("Gatherer-Name", evil);
    script.push("Author", evil);
    all.push(script);
    all
}

/// Records whose texts name their pages and lines.
fn with_places() -> [Record; 3] {
    let mut paper = record("https://example.org/paper.pdf", "Bends");
    paper.set("Type", "PDF");
    paper.set("Partial-Text", "cover\nbowline\nsheepshank carrick");
    paper.push("Text-Places", "page 2 6\nbad line\npage 3 14\npage 6 900\n");
    let mut book = record("https://example.org/book.pdf", "Hitches");
    book.set("Type", "PDF");
    book.set("Partial-Text", "the marlinspike");
    book.push("Full-Text", format!("{}marlinspike {}", "\n".repeat(9), "rope ".repeat(9_999)));
    book.push("Text-Places", "page 1 0\npage 2 5\npage 3 20000\npage 9 40000\n");
    let mut notes = record("file:///srv/notes.txt", "Notes");
    for knots in [&mut paper, &mut book] {
        knots.push("Keywords", "knots\nsailing\n");
    }
    notes.remove("Partial-Text");
    notes.push("Full-Text", "\n one\n two\n toggle <b>\n");
    notes.push("Text-Places", "line 1 0\nline 3 6\n");
    [paper, book, notes]
}

#[tokio::test]
async fn the_start_page_shows_the_number_of_objects() {
    let site = site();
    let seen = site.get_ok("/").await;
    assert!(seen.body.contains(&format!("{} objects", HARVESTS + 7)), "{}", seen.body);
    assert!(seen.body.contains("autofocus") && !seen.body.contains("class=\"hits\""));
    let browsed = site.get_ok(&seen.link_after("class=\"facts\"").unwrap()).await;
    assert_eq!(browsed.hits().len(), 10);
    assert_eq!(site.get_ok("/?q=*&limit=0").await.hits().len(), 10, "a page always has hits");
}

#[tokio::test]
async fn paging_shows_every_object_once() {
    let site = site();
    let (mut all, mut pages) = (Vec::new(), 0);
    let mut next = Some("/?q=harvest&sort=url".to_owned());
    while let Some(uri) = next {
        let seen = site.get_ok(&uri).await;
        all.extend(seen.hits());
        pages += 1;
        next = seen.link_after("<a rel=\"next\"");
    }
    assert_eq!((pages, all.len()), (3, HARVESTS));
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), HARVESTS);
}

#[tokio::test]
async fn facets_narrow_and_chips_widen() {
    let site = site();
    let all = site.get_ok("/?q=gatherer").await;
    assert!(all.body.contains(&format!("{} results", HARVESTS + 1)), "{}", all.body);
    let narrowed = site.get_ok(&all.link_after("<h2 id=\"wide-host\">").unwrap()).await;
    assert!(narrowed.body.contains(&format!("{HARVESTS} results")), "{}", narrowed.body);
    assert!(narrowed.body.contains("aria-current=\"true\""));
    let widened = site.get_ok(&narrowed.link_after("class=\"chips\"").unwrap()).await;
    assert!(widened.body.contains(&format!("{} results", HARVESTS + 1)), "{}", widened.body);
}

#[tokio::test]
async fn a_hit_shows_its_words_its_copies_and_its_summary() {
    let site = site();
    let seen = site.get_ok("/?q=title:%22part+0%22+gatherer").await;
    assert_eq!(seen.hits(), ["https://example.org/0.html"]);
    assert!(seen.body.contains("<mark>gatherer</mark>"), "{}", seen.body);
    assert!(seen.body.contains("at 2 other places"), "{}", seen.body);
    let summary = site.get_ok(&seen.link_after("class=\"meta\"").unwrap()).await;
    assert!(summary.body.contains("<h1 dir=\"auto\">Harvest, part 0</h1>"), "{}", summary.body);
    assert!(summary.body.contains("2023-11-14 22:13:20 UTC"), "{}", summary.body);
    for copy in ["mirror", "other"] {
        let of_copy = seen.link_after(&format!("https://{copy}.example.net/0.html</bdi>"));
        let copy = site.get_ok(&of_copy.unwrap()).await;
        assert!(copy.body.contains("Harvest, part 0"));
    }
    let both = site.get_ok("/?q=title:%22part+0%22&duplicates=true").await;
    assert_eq!(both.hits().len(), 3);
}

#[tokio::test]
async fn a_file_is_shown_as_a_path_and_leads_to_its_summary() {
    let site = site();
    let seen = site.get_ok("/?q=readme").await;
    let summary = site.get_ok(&seen.hits()[0]).await;
    for seen in [&seen, &summary] {
        assert!(seen.body.contains("<bdi>/srv/docs/read me.txt</bdi>"), "{}", seen.body);
        assert!(!seen.body.contains("href=\"file:"), "no browser follows it: {}", seen.body);
    }
    assert!(!summary.body.contains("Open the original"));
}

#[tokio::test]
async fn a_bad_query_keeps_its_text_and_shows_the_mistake() {
    let site = site();
    let seen = site.get_ok("/?q=title:(harvest&type=HTML&sort=newest").await;
    assert!(seen.body.contains("value=\"title:(harvest\""), "{}", seen.body);
    assert!(seen.body.contains("<b aria-hidden=\"true\">      ^"), "{}", seen.body);
    assert!(seen.body.contains("name=\"type\" value=\"HTML\""), "the filters stay");
    assert!(seen.body.contains("its words were searched"), "{}", seen.body);
    let seen = site.get("/?q=(").await;
    assert_eq!(seen.status, 400, "there is no word");
    let seen = site.get("/?q=x&limit=1001").await;
    assert_eq!(seen.status, 400);
    assert!(seen.body.contains("expected a number from 0 to 1000"), "{}", seen.body);
    assert_eq!(site.get("/?q=x&utm_source=mail").await.status, 200);
}

#[tokio::test]
async fn the_api_answers_in_the_documented_form() {
    let site = site();
    let seen = site.get_ok("/api/search?q=harvest+gatherer&limit=2&offset=1&sort=url").await;
    let answer = seen.json();
    assert_eq!(answer["total"], HARVESTS);
    assert!(answer["took_us"].is_u64());
    assert_eq!(answer["hits"].as_array().unwrap().len(), 2);
    let hit = &answer["hits"][0];
    for (name, kind) in [
        ("url", "s"),
        ("title", "s"),
        ("description", "s"),
        ("type", "s"),
        ("gatherer", "s"),
        ("snippet", "s"),
        ("score", "n"),
    ] {
        let right = if kind == "s" { hit[name].is_string() } else { hit[name].is_number() };
        assert!(right, "{name} in {hit}");
    }
    assert_eq!(hit["gatherer"], "Physics");
    let types = answer["facets"]["type"].as_array().unwrap();
    assert_eq!(types[0], serde_json::json!(["HTML", HARVESTS]));
    let none = site.get_ok("/api/search?q=harvest&year=1999").await.json();
    assert_eq!((none["total"].as_u64(), none["hits"].as_array().unwrap().len()), (Some(0), 0));
    let count = site.get_ok("/api/search?q=*&limit=0").await.json();
    assert_eq!(count["total"], HARVESTS + 5);
}

#[tokio::test]
async fn an_excerpt_says_where_it_stands() {
    let site = site();
    let place = async |query: &str| {
        let answer = site.get_ok(&format!("/api/search?q={query}")).await.json();
        assert_eq!(answer["total"], 1, "{query}");
        answer["hits"][0].get("place").map(|it| it.as_str().unwrap().to_owned())
    };
    for (query, expected) in [
        ("bowline", Some("page 2")),
        ("carrick", Some("pages 3–5")),
        ("carrick+bowline", Some("page 2")),
        ("cover", None),
        ("title:bends", None),
        ("marlinspike", Some("page 2")),
        ("toggle", Some("line 4")),
    ] {
        assert_eq!(place(query).await.as_deref(), expected, "{query}");
    }
    for unsearched in ["20000", "text-places:page", "bad+line"] {
        let answer = site.get_ok(&format!("/api/search?q={unsearched}")).await.json();
        assert_eq!(answer["total"], 0, "{unsearched}");
    }
    let seen = site.get_ok("/?q=bowline").await;
    let link = seen.link_after("Excerpt from </span>");
    assert_eq!(link.as_deref(), Some("https://example.org/paper.pdf#page=2"), "{}", seen.body);
    for (query, expected) in [("carrick", "pages 3–5"), ("toggle", "line 4")] {
        let seen = site.get_ok(&format!("/?q={query}")).await;
        let shown = format!("Excerpt from </span><bdi>{expected}</bdi>");
        assert!(seen.body.contains(&shown), "{}", seen.body);
    }
    let seen = site.get_ok("/?q=cover").await;
    assert!(!seen.body.contains("Excerpt from"), "{}", seen.body);
}

#[tokio::test]
async fn the_api_names_a_mistake_and_its_position() {
    let site = site();
    let error = async |uri: &str| {
        let seen = site.ask("GET", uri, "*/*").await;
        assert_eq!(seen.status, 400, "{uri}");
        seen.json()["error"].clone()
    };
    let at = |it: &Value| (it["offset"].as_u64(), it["length"].as_u64());
    let query = error("/api/search?q=(+)").await;
    assert_eq!(at(&query), (Some(0), Some(3)), "{query}");
    assert!(query["message"].as_str().unwrap().contains("parentheses"), "{query}");
    let long = "x".repeat(query::QUERY_BYTES_MAX + 1);
    let query = error(&format!("/api/search?q={long}")).await;
    assert!(query["message"].as_str().unwrap().contains("longer than"), "{query}");
    let answer = site.get_ok("/api/search?q=bowline+(harvest").await.json();
    assert_eq!(at(&answer["notice"]), (Some(8), Some(1)), "{answer}");
    assert_eq!(answer["total_all"], 0, "{answer}");
    assert_eq!(answer["total"], HARVESTS + 1, "{answer}");
    for (uri, parameter) in [
        ("/api/search", "q"),
        ("/api/search?q=x&match=some", "match"),
        ("/api/search?q=x&limit=1001", "limit"),
        ("/api/search?q=x&offset=10000", "offset"),
        ("/api/search?q=x&sort=best", "sort"),
        ("/api/search?q=x&limt=5", "limt"),
    ] {
        assert_eq!(error(uri).await["parameter"], parameter, "{uri}");
    }
}

#[tokio::test]
async fn dear_searches_are_refused_in_a_crowd_and_cheap_ones_never() {
    let site = Arc::new(site());
    let all = |paths: &[&str]| {
        let mut asked = JoinSet::new();
        for path in paths {
            let (site, path) = (Arc::clone(&site), (*path).to_owned());
            asked.spawn(async move { site.get(&path).await });
        }
        asked
    };
    let cheap = ["/?q=harvest", "/api/search?q=gatherer+summarizes", "/api/search?q=harv*"];
    let dear = ["/?q=%2F(.*a)%7B20%7D%2F", "/api/search?q=%2F(.*a)%7B20%7D%2F"].repeat(100);
    let (mut few, mut beside) = (all(&dear[..2]), cheap.iter().cycle());
    let (mut asked, mut late) = (0_usize, 0_usize);
    while !few.is_empty() {
        let (path, began) = (beside.next().unwrap(), net::clock::monotonic());
        assert_eq!(site.get(path).await.status, 200, "{path}");
        asked += 1;
        late += usize::from(CHEAP_WITHIN <= began.elapsed());
        while let Some(ended) = few.try_join_next() {
            assert_ne!(ended.unwrap().status, 429, "there is room for them");
        }
    }
    // Now and then the machine itself stalls.
    assert!(late * 4 <= asked, "{late} of {asked} cheap searches were late beside two dear ones");
    let answers = all(&dear).join_all().await;
    let (found, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|it| it.status == 200);
    assert!(!found.is_empty() && !refused.is_empty(), "{} of 200 refused", refused.len());
    for seen in refused {
        assert_eq!(seen.status, 429, "{}", seen.body);
        let seconds: u64 = seen.headers[RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((1..600).contains(&seconds), "{seconds}");
        assert!(seen.body.contains(&format!("ask again in {seconds} s")), "{}", seen.body);
    }
    assert!(all(&cheap.repeat(30)).join_all().await.iter().all(|it| it.status == 200));
}

#[tokio::test]
async fn patterns_that_would_need_a_large_automaton_are_refused_at_once() {
    let site = site();
    for pattern in [r"\p{L}+x\p{L}+", r"(.*a){20}", r"(a|b|ab)*.{30}", r"(.*a.{20})", r"(\w+\w+)+x"]
    {
        let began = net::clock::monotonic();
        let uri = format!("/api/search?q=%2F{}%2F", utf8_percent_encode(pattern, NON_ALPHANUMERIC));
        let seen = site.get(&uri).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{pattern}: 5 times what is promised");
        assert!(seen.status == 200 || seen.body.contains("too large"), "{pattern}: {}", seen.body);
    }
}

#[tokio::test]
async fn an_object_is_a_page_soif_or_json() {
    let site = site();
    let oid = format!("/object?oid={GATHERER}:https://example.org/7.html");
    let soif_seen = site.get_ok(&format!("{oid}&format=soif")).await;
    assert_eq!(soif_seen.media(), "application/index.obj.HARVEST-SOIF-1");
    let expected = objects().remove(7);
    assert_eq!(soif::parse(soif_seen.body.as_bytes()).unwrap(), std::slice::from_ref(&expected));
    let json = site.get_ok(&format!("{oid}&format=json")).await.json();
    assert_eq!(soif::json::from_json(&json).unwrap(), expected);
    let asked = site.ask("GET", &oid, "application/json").await;
    assert_eq!(asked.json(), json);
    let check = async |uri: &str, status: u16, message: &str| {
        let seen = site.get(uri).await;
        assert_eq!(seen.status, status, "{uri}");
        assert!(seen.body.contains(message), "{uri}: {}", seen.body);
    };
    check("/object", 400, "needs an object").await;
    check("/object?oid=nonsense", 400, "GATHERER:URL").await;
    check(&format!("{oid}&format=xml"), 400, "html, soif or json").await;
    check("/object?oid=0:http://h/none", 404, "Nothing here").await;
    let missing = site.get("/object?oid=0:http://h/none&format=json").await;
    assert!(missing.json()["error"]["message"].is_string());
}

#[tokio::test]
async fn an_object_leads_back_to_its_results_and_to_others_like_it() {
    let site = site();
    let results = site.get_ok("/?q=part+7&type=HTML&limit=5").await;
    let summary = results.link_after("<ul class=\"meta\">").unwrap();
    assert!(summary.ends_with("&q=part+7&type=HTML&limit=5"), "{summary}");
    let object = site.get_ok(&summary).await;
    let back = object.link_after("class=\"back\"").unwrap();
    assert_eq!(back, "/?q=part+7&type=HTML&limit=5");
    assert!(!object.body.contains("<mark>"), "the text has none of the words");
    assert!(object.body.contains("<details class=\"fold\"><summary>Technical details"));
    let title = object.body.split("<h1 dir=\"auto\">").nth(1).unwrap();
    let (title, rest) = title.split_once('<').unwrap();
    assert_eq!(title, "Harvest, part 7");
    assert!(rest.contains("<dt>Type</dt><dd><bdi>HTML</bdi></dd>"), "{rest}");
    let forms = site.get_ok(&format!("/object?oid={GATHERER}:https://example.org/0.html")).await;
    let other = forms.link_after("id=\"forms\"").unwrap();
    assert!(other.contains("mirror.example.net") || other.contains("other.example.net"), "{other}");
}

#[tokio::test]
async fn the_api_finds_objects_like_one_by_oid_and_url() {
    let site = site();
    let (book, paper) = ("https://example.org/book.pdf", "https://example.org/paper.pdf");
    let check = async |query: &str, has: bool| {
        let answer = site.get_ok(&format!("/api/search?limit=100&{query}")).await.json();
        let urls: BTreeSet<_> =
            answer["hits"].as_array().unwrap().iter().map(|it| it["url"].to_string()).collect();
        assert!(!urls.contains(&format!("{paper:?}")), "{query}: {urls:?}");
        assert_eq!(urls.contains(&format!("{book:?}")), has, "{query}: {urls:?}");
        answer
    };
    let oid = format!("{GATHERER}:{paper}");
    check(&format!("like={oid}"), true).await;
    check(&format!("like={paper}"), true).await;
    check(&format!("like={paper}&q=hitches"), true).await;
    check(&format!("like={paper}&q=readme"), false).await;
    let none = check("like=https://example.org/none", false).await;
    assert_eq!((&none["total"], &none["hits"]), (&0.into(), &Value::Array(Vec::new())));
    assert!(none["notice"]["message"].as_str().unwrap().contains("https://example.org/none"));
    let page = site.get_ok(&format!("/?like={oid}")).await;
    assert!(page.hits().contains(&book.to_owned()), "{:?}", page.hits());
    assert!(page.body.contains("Like: <bdi>https://example.org/paper.pdf</bdi>"), "{}", page.body);
    let local = site.get_ok("/api/search?like=/srv/docs/read%20me.txt").await.json();
    assert!(local["notice"].is_null(), "a path names its file: {local}");
}

#[tokio::test]
async fn feedback_finds_what_lacks_the_words() {
    let site = site();
    let total = async |query: &str| {
        let answer = site.get_ok(&format!("/api/search?{query}")).await.json();
        (answer["total"].as_u64().unwrap(), answer["total_all"].as_u64().unwrap())
    };
    // The text of the only hit is that of many others.
    assert_eq!(total("q=readme").await, (1, 1));
    let (some, all) = total("q=readme&feedback=true").await;
    assert!(all == 1 && 20 < some, "{some}");
    for strict in ["%22readme%22", "title:readme", "%2Breadme+docs", "readme&match=all"] {
        assert_eq!(total(&format!("q={strict}&feedback=true")).await, (1, 1), "{strict}");
    }
    assert_eq!(total("q=readme&feedback=true&sort=newest").await, (1, 1));
}

#[tokio::test]
async fn every_url_answers_head() {
    let site = site();
    let oid = format!("/object?oid={GATHERER}:https://example.org/7.html");
    for uri in ["/", "/?q=part", "/api/search?q=part", &oid, "/assets/style.css", "/none"] {
        let (get, head) = (site.get(uri).await, site.ask("HEAD", uri, "text/html,*/*").await);
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{uri}");
        assert_eq!(head.headers[CONTENT_TYPE], get.headers[CONTENT_TYPE], "{uri}");
        assert!(head.headers.contains_key(CONTENT_LENGTH), "{uri}");
    }
    assert_eq!(site.ask("POST", "/", "text/html").await.status, 405);
    assert_eq!(site.ask("DELETE", "/api/search", "text/html").await.media(), "application/json");
}

#[tokio::test]
async fn a_foreign_object_cannot_run_in_a_page() {
    let site = site();
    let results = site.get_ok("/?q=evil").await;
    let summary = site.get_ok(&results.hits()[0]).await;
    for seen in [&results, &summary] {
        let lower = seen.body.to_ascii_lowercase();
        for bad in ["<script", "<img src=x", "=\"javascript:", "=\"data:"] {
            assert!(!lower.contains(bad), "{bad} in {}", seen.body);
        }
        assert!(lower.contains("&lt;script&gt;"), "it is shown as text: {}", seen.body);
    }
    let api = site.get_ok("/api/search?q=evil").await.json();
    let html = api["hits"][0]["snippet_html"].as_str().unwrap();
    assert!(!html.contains("<script") && html.contains("<mark>"), "{html}");
}
