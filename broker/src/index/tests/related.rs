//! Tests of weights, of more like this, and of expanded queries.

use std::sync::Arc;

use super::*;
use query::{Node, Query};

#[test]
fn weights_change_what_comes_first() {
    let site = Site::new();
    site.put("http://a/title", &[("Title", "Oak"), ("Partial-Text", "a tree of the woods")]);
    site.put("http://a/text", &[("Title", "Trees"), ("Partial-Text", "oak oak oak oak")]);
    site.put("http://a/test/text", &[("Title", "Trees"), ("Partial-Text", "oak oak oak oak")]);
    site.put("http://a/oak", &[("Title", "Woods"), ("Partial-Text", "elm")]);
    site.apply();
    let first = |change: &dyn Fn(&mut Ranking)| {
        let mut ranking = Ranking::default();
        change(&mut ranking);
        site.index().set_ranking(ranking);
        assert_eq!(site.index().ranking(), ranking);
        site.ask("oak", |_| ()).hits[0].url.clone()
    };
    let only = |wanted: &'static str| {
        move |ranking: &mut Ranking| {
            for (name, weight) in &mut ranking.fields {
                weight.weight = if *name == wanted { 1.0 } else { 0.0 };
            }
        }
    };
    assert_eq!(first(&|_| ()), "http://a/title");
    assert_eq!(first(&only("title")), "http://a/title");
    assert_eq!(first(&only("text")), "http://a/text");
    assert_eq!(first(&only("url")), "http://a/oak");
    assert_eq!(first(&only("name")), "http://a/oak");
    let by_name = |ranking: &mut Ranking| {
        (ranking.factors.title, ranking.factors.title_exact) = (0.0, 0.0);
        ranking.factors.name = 50.0;
    };
    assert_eq!(first(&by_name), "http://a/oak");
    let scores = |standing: f32| {
        let mut ranking = Ranking::default();
        ranking.factors.standing = standing;
        site.index().set_ranking(ranking);
        let answer = site.ask("oak", |_| ());
        let score = |url: &str| answer.hits.iter().find(|it| it.url == url).unwrap().score;
        score("http://a/test/text") / score("http://a/text")
    };
    assert!((scores(0.0) - 1.0).abs() < 1e-6 && scores(2.0) < scores(1.0) && scores(1.0) < 1.0);
}

/// Asks for objects like a record.
fn like(site: &Site, record: &Record, own: Option<&str>) -> Answer {
    let words = site.index().telling_words(record).unwrap();
    assert!(!words.is_empty() && words.len() <= 25, "{words:?}");
    let words = Node::or(words.iter().map(|it| Query::word(it).root).collect());
    let own = own.map(|it| parse(it).unwrap().root);
    site.ask("", |request| {
        request.query.root = Node::and(own.into_iter().chain([words]).collect());
        request.but = Some(Arc::new(record.clone()));
    })
}

#[test]
fn more_like_this_leaves_out_the_object_itself_and_its_forms() {
    let site = Site::new();
    let print = |last: &str| "A".repeat(40) + &last.repeat(24);
    let text = "the oak grows acorns in the old forest";
    let put = |name: &str, text: &str, print: &str, digest: &str| {
        let attributes =
            [("Full-Text", text), ("Text-Print", print), ("MD5", digest), ("File-Size", "9")];
        site.put(&format!("http://a/{name}"), &attributes);
    };
    put("oak.html", text, &print("A"), "1");
    put("oak.txt", text, &print("B"), "2");
    put("copy", text, &print("A"), "1");
    put("acorns", "acorns fall from every oak", &print("C"), "3");
    put("elm", "an elm of the old forest", &print("D"), "4");
    put("ships", "ships sail the sea", &print("E"), "5");
    site.apply();
    let Change::Update(record) = site.log.borrow()[0].clone() else { unreachable!() };
    let answer = like(&site, &record, None);
    assert_eq!(names(&answer), ["acorns", "elm"], "{answer:?}");
    let forms: Vec<_> = answer.forms.iter().map(|it| (it.url.as_str(), it.similar)).collect();
    assert_eq!(forms, [("http://a/copy", false), ("http://a/oak.txt", true)]);
    assert_eq!(names(&like(&site, &record, Some("elm"))), ["elm"]);
    assert!(like(&site, &record, Some("ships")).hits.is_empty());
    let page = site.ask("forest", |request| {
        (request.offset, request.limit) = (0, 1);
        request.but = Some(Arc::new(record.clone()));
    });
    assert_eq!(names(&page), ["elm"]);
}

#[test]
fn the_telling_words_are_rare_frequent_in_the_record_and_few() {
    let site = Site::new();
    for n in 0..60 {
        let rare = if n < 3 { "acorn" } else { "" };
        site.put(
            &format!("http://a/{n}"),
            &[("Partial-Text", &format!("common {rare} number{n}"))],
        );
    }
    site.apply();
    let mut record = Record::new("FILE", "x:");
    let many: String = (0..90).map(|it| format!("number{it} ")).collect();
    record.push("Full-Text", format!("acorn common common nobodyelse the {many}"));
    assert_eq!(site.index().telling_words(&record).unwrap(), ["acorn"]);
    assert!(site.index().telling_words(&Record::new("FILE", "x:")).unwrap().is_empty());
}

#[test]
fn an_expanded_query_finds_objects_without_its_words_behind_those_with_them() {
    let site = Site::new();
    site.put("http://a/oak", &[("Partial-Text", "an oak bears acorns")]);
    site.put("http://a/oak2", &[("Partial-Text", "an oak has leaves and grows in the woods")]);
    site.put("http://a/squirrel", &[("Partial-Text", "squirrels bury acorns")]);
    site.put("http://a/ship", &[("Partial-Text", "ships sail the sea")]);
    site.apply();
    let ask = |query: &str, matching: Matching| {
        let answer = site.ask(query, |request| {
            (request.matching, request.expansion) = (matching, vec![("acorns".to_owned(), 0.5)]);
        });
        assert_eq!(answer.total, answer.hits.len() as u64);
        (names(&answer).join(" "), answer.total_all)
    };
    assert_eq!(ask("oak", Matching::Best), ("oak oak2 squirrel".to_owned(), 2));
    assert_eq!(ask("oak", Matching::All), ("oak oak2".to_owned(), 2));
    assert_eq!(ask("oak", Matching::Any).1, 2);
    assert_eq!(ask("oak leaves", Matching::Best).0, "oak2 oak squirrel");
    let plain = site.ask("oak", |request| request.matching = Matching::Best);
    assert_eq!(names(&plain).len(), 2);
}
