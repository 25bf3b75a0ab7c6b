//! Tests of what `/api/search` can be asked for, and of what its answers say beside the hits.

use std::collections::BTreeMap;

use broker::answer::Statistics;
use broker::config::Config;
use serde_json::Value;
use soif::Record;

use crate::common::site::{Site, record};
use crate::common::{Origin, Running, config, get_json, url_of};

/// Number of objects about elms: more than one answer may have.
const ELMS: usize = 1_020;

/// Returns a record that has just this text.
fn text(name: &str, text: &str) -> Record {
    let mut record = record(&format!("https://example.org/{name}"), "Trees");
    record.set("Partial-Text", text);
    record
}

fn trees() -> Site {
    Site::of(vec![
        text("both", "an old oak"),
        text("oak", "an oak of oaks, oak, oak"),
        text("old", "an old house"),
        text("none", "a new house"),
    ])
}

async fn answer(site: &Site, parameters: &str) -> Value {
    site.get_ok(&format!("/api/search?{parameters}")).await.json()
}

/// Returns the names of the hits, in order.
fn names(answer: &Value) -> String {
    let hits = answer["hits"].as_array().unwrap().iter();
    let names = hits.map(|it| it["url"].as_str().unwrap().rsplit('/').next().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn words_are_matched_as_the_request_says_and_best_by_default() {
    let site = trees();
    for (parameters, matching, total_all, expected) in [
        ("q=old+oak", "best", 1, "both oak old"),
        ("q=old+oak&match=best", "best", 1, "both oak old"),
        ("q=old+oak&match=all", "all", 1, "both"),
        ("q=old+oak&match=any", "any", 1, "both oak old"),
        // The answer is full of those with all words; by any of them, the others count, too.
        ("q=old+oak&limit=1", "best", 1, "both"),
        ("q=%22old+oak%22&match=any", "any", 1, "both"),
        ("q=%2Bold+%2Boak", "best", 1, "both"),
        ("q=old+AND+oak", "best", 1, "both"),
        ("q=new+oak&match=all", "all", 0, ""),
        ("q=new+oak", "best", 0, "none oak both"),
    ] {
        let answer = answer(&site, parameters).await;
        assert_eq!(names(&answer), expected, "{parameters}");
        assert_eq!(answer["match"], matching, "{parameters}");
        assert_eq!(answer["total_all"], total_all, "{parameters}");
        assert_eq!(answer["total"], answer["hits"].as_array().unwrap().len(), "{parameters}");
    }
    let full = |matching: &'static str| answer(&site, matching);
    assert_eq!(full("q=old+oak&limit=1&match=any").await["total"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_leaves_open_the_settings_say() {
    let gatherer = Origin::start("00000000000000aa").await;
    gatherer.update(1..=4, "an elm by the river").await;
    let version = gatherer.update([5], "an elm by the river with a nest").await;
    let dir = tempfile::tempdir().unwrap();
    let settings = |lines: &str| {
        let read = Config::parse(&format!("name = \"n\"\ndata = \"d\"\n[ranking]\n{lines}"));
        let mut config = config(dir.path(), vec![gatherer.source("gatherer")]);
        config.ranking = read.unwrap().ranking;
        config
    };
    let broker = Running::start(settings("")).await;
    broker.caught_up("gatherer", version).await;
    let check = async |parameters: &str, matching: &str, total: u64| {
        let mut url = url_of(broker.address).join("api/search").unwrap();
        url.set_query(Some(parameters));
        let answer = get_json(url).await;
        assert_eq!((&answer["match"], &answer["total_all"]), (&matching.into(), &1.into()));
        assert_eq!(answer["total"], total, "{parameters}: {answer}");
    };
    check("q=elm+nest", "best", 5).await;
    check("q=nest", "best", 1).await;

    broker.handle.reload(settings("match = \"all\"")).await.unwrap();
    check("q=elm+nest", "all", 1).await;
    check("q=elm+nest&match=best", "best", 5).await;

    broker.handle.reload(settings("feedback = true")).await.unwrap();
    check("q=nest", "best", 5).await;
    check("q=nest&feedback=false", "best", 1).await;
    broker.stop().await;
}

#[tokio::test]
async fn another_spelling_is_in_the_answer() {
    let mut records: Vec<_> = (0..30).map(|n| text(&n.to_string(), "python dictionary")).collect();
    records.push(text("typo", "a pyhton of old"));
    let site = Site::of(records);
    let found = answer(&site, "q=pyhton+dictionry").await;
    assert_eq!(found["suggestion"], "python dictionary", "{found}");
    assert_eq!((&found["respelled"], &found["total_all"]), (&true.into(), &30.into()));
    let strict = answer(&site, "q=pyhton+dictionry&match=all").await;
    assert_eq!(strict["suggestion"], "python dictionary", "{strict}");
    assert_eq!((&strict["respelled"], &strict["total"]), (&false.into(), &0.into()));
    let typed = answer(&site, "q=pyhton").await;
    assert_eq!((&typed["suggestion"], &typed["respelled"]), (&"python".into(), &false.into()));
    assert_eq!(names(&typed), "typo", "what was typed is there");
    let right = answer(&site, "q=python").await;
    assert_eq!(right.get("suggestion"), None, "{right}");
}

#[tokio::test]
async fn an_attribute_that_no_object_has_is_named_and_its_words_are_searched() {
    let site = trees();
    let found = answer(&site, "q=house+titel:old").await;
    let notice = &found["notice"];
    let message =
        "no object here has an attribute titel; did you mean title:; so its words were searched";
    assert_eq!(notice["message"], message, "{found}");
    assert_eq!((&notice["offset"], &notice["length"]), (&6.into(), &5.into()), "{notice}");
    let plain = answer(&site, "q=house+titel+old").await;
    assert_eq!((names(&found), &found["total"]), (names(&plain), &3.into()), "as plain words");
    let strict = answer(&site, "q=house+titel:old&match=all").await;
    assert_eq!(strict["total"], 0, "{strict}");
    let message = "no object here has an attribute titel; did you mean title:";
    assert_eq!(strict["notice"]["message"], message, "{strict}");
    let known = answer(&site, "q=title:nothing").await;
    assert_eq!((known.get("notice"), &known["total"]), (None, &0.into()), "{known}");
    let page = site.get_ok("/?q=house+titel:old").await;
    assert!(page.body.contains("did you mean title:; so its words were searched"), "{}", page.body);
}

#[tokio::test]
async fn what_is_not_wanted_is_left_out_of_an_answer() {
    let site = trees();
    let whole = answer(&site, "q=oak").await;
    let first = &whole["hits"][0];
    assert!(first["snippet"].as_str().unwrap().contains("oak"), "{whole}");
    assert_eq!(whole["facets"]["type"][0], serde_json::json!(["HTML", 2]), "{whole}");
    assert_eq!(first.get("reasons"), None, "nobody asked for them");
    let bare = answer(&site, "q=oak&facets=false&snippets=false").await;
    assert_eq!(bare["facets"], serde_json::json!({}), "{bare}");
    assert_eq!(names(&bare), names(&whole));
    for hit in bare["hits"].as_array().unwrap() {
        let parts = (&hit["snippet"], &hit["snippet_html"], &hit["highlights"]);
        assert_eq!(parts, (&"".into(), &"".into(), &Value::Array(vec![])), "{hit}");
    }
}

#[tokio::test]
async fn the_reasons_of_a_hit_are_factors_of_its_score() {
    let site = trees();
    let explained = answer(&site, "q=old+oak&explain=true").await;
    for hit in explained["hits"].as_array().unwrap() {
        let reasons = hit["reasons"].as_object().unwrap();
        let names: Vec<_> = reasons.keys().map(String::as_str).collect();
        assert_eq!(names, ["age", "name", "near", "standing", "title", "words"], "{hit}");
        let product: f64 = reasons.values().map(|it| it.as_f64().unwrap()).product();
        assert!((product - hit["score"].as_f64().unwrap()).abs() < 1e-3, "{hit}");
    }
    let factor = |at: usize, name: &str| explained["hits"][at]["reasons"][name].as_f64().unwrap();
    assert!(1.5 < factor(0, "near"), "its words stand side by side: {explained}");
    assert!((factor(1, "near") - 1.0).abs() < 1e-6, "it has one of them: {explained}");
    let named = answer(&site, "q=oak&explain=true").await;
    assert_eq!(names(&named), "oak both");
    assert!(1.5 < named["hits"][0]["reasons"]["name"].as_f64().unwrap(), "just its name: {named}");
    let titled = answer(&site, "q=trees&explain=true").await;
    assert!(1.5 < titled["hits"][0]["reasons"]["title"].as_f64().unwrap(), "{titled}");
    let sorted = answer(&site, "q=old+oak&explain=true&sort=url").await;
    assert_eq!(sorted["hits"][0].get("reasons"), None, "the order has another reason");
}

#[tokio::test]
async fn an_answer_has_up_to_a_thousand_hits() {
    let site = Site::of((0..ELMS).map(|n| text(&n.to_string(), "an elm")).collect());
    let found = answer(&site, "q=elm&limit=1000").await;
    assert_eq!(found["hits"].as_array().unwrap().len(), 1_000);
    assert_eq!((&found["total"], &found["total_all"]), (&ELMS.into(), &ELMS.into()));
    let rest = answer(&site, "q=elm&limit=1000&offset=1000").await;
    assert_eq!(rest["hits"].as_array().unwrap().len(), ELMS - 1_000);
    let (first, rest) = (names(&found), names(&rest));
    let mut all: Vec<_> = first.split(' ').chain(rest.split(' ')).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ELMS, "every object once");
    let none = answer(&site, "q=elm&limit=0").await;
    assert_eq!((&none["hits"], &none["total"]), (&Value::Array(vec![]), &ELMS.into()));
}

#[tokio::test]
async fn of_one_url_from_two_gatherers_the_newest_wins_and_the_page_says_so() {
    let old = text("page", "knots of old");
    let mut new = text("page", "knots of today");
    new.set("Gatherer-Id", "fedcba9876543210");
    new.set("Gatherer-Name", "Chemistry");
    new.set("Last-Modification-Time", "1710000000");
    let site = Site::of(vec![old, new]);
    let found = answer(&site, "q=knots").await;
    assert_eq!((&found["total"], found["hits"].as_array().unwrap().len()), (&2.into(), 1));
    let hit = &found["hits"][0];
    assert_eq!((&hit["gatherer"], &hit["modified"]), (&"Chemistry".into(), &1_710_000_000.into()));
    let other = &hit["duplicates"][0];
    assert_eq!(
        (&other["gatherer"], &other["modified"]),
        (&"Physics".into(), &1_700_000_000.into())
    );
    let page = site.get_ok("/?q=knots").await;
    let says = "<li>the newest version: another gatherer has an older one</li>";
    assert!(page.body.contains(says), "{}", page.body);
    assert!(page.body.contains("knots</mark> of today"), "{}", page.body);
    let older = page.link_after("an older version (").unwrap();
    let older = site.get_ok(&older).await;
    assert!(older.body.contains("of old"), "{}", older.body);
    let newer = "from <bdi>Chemistry</bdi>, a newer version (";
    assert!(older.body.contains(newer), "{}", older.body);
}

#[tokio::test]
async fn brokers_that_ask_several_get_how_many_objects_have_each_word() {
    let site = trees();
    let statistics = async |query: &str| {
        let seen = site.get_ok(&format!("/api/statistics?{query}")).await;
        serde_json::from_value::<Statistics>(seen.json()).unwrap()
    };
    let words = |counts: &[(&str, u64)]| {
        counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect::<BTreeMap<_, _>>()
    };
    let found = statistics("q=old+oak+zebra").await;
    assert_eq!(found.documents, 4);
    assert_eq!(found.words, words(&[("oak", 2), ("old", 2), ("zebra", 0)]));
    assert!(found.lengths["body"] != 0, "{found:?}");
    // A word in one field is another one, and of what cannot be read the words count.
    let found = statistics("q=title%3Atrees").await;
    assert_eq!(found.words, words(&[("title:trees", 4)]));
    assert!(found.lengths.keys().eq(["title"]), "{found:?}");
    assert_eq!(statistics("q=oak+AND+(").await.words["oak"], 2);
    assert_eq!(statistics("q=*").await, Statistics { documents: 4, ..Statistics::default() });
    for (query, parameter) in
        [("", "q"), ("limit=3", "q"), ("q=oak&limit=many", "limit"), ("q=oak&other=1", "other")]
    {
        let seen = site.get(&format!("/api/statistics?{query}")).await;
        let error = &seen.json()["error"];
        assert_eq!((seen.status, &error["parameter"]), (400, &parameter.into()), "{query}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{query}");
    }
}
