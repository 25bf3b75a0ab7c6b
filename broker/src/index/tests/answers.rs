//! Tests of answers: what comes first, what follows where too little has all words, and what is one
//! hit.

use super::*;
use crate::route::summary::BEST_MAX;

fn best(site: &Site, query: &str) -> Answer {
    site.ask(query, |request| (request.matching, request.limit) = (Matching::Best, 10))
}

/// Checks the order of the best hits, and how many have all words.
fn check_best(site: &Site, query: &str, all: u64, expected: &str) {
    let answer = best(site, query);
    assert_eq!(names(&answer).join(" "), expected, "{query}");
    assert_eq!(answer.total_all, all, "{query}");
    assert_eq!(answer.total, answer.hits.len() as u64, "{query}");
}

#[test]
fn objects_with_some_of_the_words_follow_those_with_all() {
    let site = Site::new();
    let texts = [
        ("both", "an old oak"),
        ("oak", "an oak of oaks, oak, oak"),
        ("old", "an old house"),
        ("none", "a new house"),
    ];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}"), &[("Partial-Text", text)]);
    }
    site.apply();
    check_best(&site, "the old oak", 1, "both oak old");
    check_best(&site, "old AND oak", 1, "both");
    check_best(&site, "+old oak", 2, "both old");
    check_best(&site, "\"old oak\"", 1, "both");
    check_best(&site, "old oak -house", 1, "both oak");
    check_best(&site, "new oak", 0, "none oak both");
    let of = |matching| site.ask("old oak", |request| request.matching = matching).total;
    assert_eq!((of(Matching::All), of(Matching::Any), of(Matching::Best)), (1, 3, 3));
    assert_eq!(site.ask("old oak", |request| request.matching = Matching::Any).total_all, 1);
    let page = site.ask("old oak", |request| {
        (request.matching, request.offset, request.limit) = (Matching::Best, 1, 2);
    });
    assert_eq!((names(&page).join(" "), page.total), ("oak old".to_owned(), 3));
    let one = site.ask("old oak", |request| {
        (request.matching, request.limit) = (Matching::Best, 1);
    });
    assert_eq!((one.total, one.total_all), (1, 1), "the answer is full");
}

#[test]
fn frequent_words_alone_are_no_answer() {
    let site = Site::new();
    for n in 0..300 {
        site.put(&format!("http://a/{n}"), &[("Partial-Text", "common words")]);
    }
    site.put("http://a/seldom", &[("Partial-Text", "a rare word that nobody else has")]);
    site.put("http://a/both", &[("Partial-Text", "a rare and common word")]);
    site.apply();
    let answer = best(&site, "rare common thing");
    assert_eq!(names(&answer).first().map(String::as_str), Some("both"));
    assert_eq!(answer.total_all, 0);
    assert!(2 <= answer.total, "{}", answer.total);
}

/// Returns a word of letters alone, another one for each number.
fn word(number: usize) -> String {
    let letter = |at: u32| char::from(b'a' + u8::try_from(number / 26_usize.pow(at) % 26).unwrap());
    (0..4).map(letter).chain("elm".chars()).collect()
}

#[test]
fn long_questions_find_what_they_are_about() {
    let (site, mut random) = (Site::new(), fastrand::Rng::with_seed(7));
    let mut texts: Vec<Vec<String>> = Vec::new();
    for number in 0..100 {
        let text: Vec<String> = (0..60).map(|_| word(random.usize(0..2_000))).collect();
        site.put(&format!("http://a/{number}"), &[("Partial-Text", &text.join(" "))]);
        texts.push(text);
    }
    site.apply();
    for (number, text) in texts.iter().enumerate() {
        // Some of its words, in another order, beside small ones and those that are nowhere.
        let mut asked: Vec<String> = text[..random.usize(8..36)].to_vec();
        asked.extend((0..asked.len()).map(|_| word(2_000 + random.usize(0..9_000))));
        asked.extend(["what", "is", "the", "of", "which"].map(str::to_owned));
        random.shuffle(&mut asked);
        let answer = best(&site, &asked.join(" "));
        let first = names(&answer).first().cloned();
        assert_eq!(first, Some(number.to_string()), "{} words: {asked:?}", asked.len());
    }
}

#[test]
fn another_spelling_is_suggested_if_it_finds_more() {
    let site = Site::new();
    for n in 0..30 {
        site.put(&format!("http://a/{n}"), &[("Partial-Text", "the python dictionary")]);
    }
    site.put("http://a/typo", &[("Title", "pyhton")]);
    site.apply();
    let check = |query: &str, expected: Option<&str>| {
        assert_eq!(best(&site, query).suggestion.as_deref(), expected, "{query}");
    };
    check("pyhton dictionry", Some("python dictionary"));
    check("Pyhton", Some("python"));
    check("python", None);
    check("pythons dictionary", None);
    check("\"pyhton\" x", None);
    check("xylophone", None);
    check("pyt", None);
    let answer = best(&site, "pyhton dictionry");
    assert!(answer.respelled && answer.total_all == 30, "{answer:?}");
    let strict = site.ask("pyhton dictionry", |_| ());
    assert_eq!((strict.total, strict.respelled), (0, false));
    assert_eq!(strict.suggestion.as_deref(), Some("python dictionary"));
    let answer = best(&site, "pyhton");
    assert!(!answer.respelled && answer.total == 1, "the typed word is there");
    for strict in ["+pyhton +dictionry", "pyhton AND dictionry", "dictionry AND NOT pears"] {
        let answer = best(&site, strict);
        assert!(answer.suggestion.is_some(), "{strict}: {answer:?}");
        assert_eq!((answer.total, answer.respelled), (0, false), "{strict}: {answer:?}");
    }
}

#[test]
fn all_pages_of_an_answer_are_of_the_same_objects() {
    let site = Site::new();
    // The more frequent a word, the less it tells; together they have more than one page wants.
    for n in 0..600 {
        let words = [(2, "oak"), (3, "elm"), (150, "yew"), (7, "ash")];
        let text: Vec<_> = words.iter().filter(|it| n % it.0 == 0).map(|it| it.1).collect();
        site.put(&format!("http://a/{n}"), &[("Partial-Text", &text.join(" "))]);
    }
    site.apply();
    for matching in [Matching::Any, Matching::Best] {
        let page = |offset: usize| {
            site.ask("yew ash elm oak", |it| {
                (it.matching, it.offset, it.limit) = (matching, offset, 50);
            })
        };
        let total = page(0).total;
        let mut seen = std::collections::BTreeSet::new();
        for offset in (0..usize::try_from(total).unwrap()).step_by(50) {
            let answer = page(offset);
            assert_eq!(answer.total, total, "{matching:?} {offset}");
            seen.extend(names(&answer));
        }
        assert_eq!(seen.len() as u64, total, "{matching:?}");
    }
}

#[test]
fn an_attribute_that_no_object_has_is_named() {
    let site = corpus();
    let notice = |query: &str| best(&site, query).notice.map(|it| (it.message, it.offset));
    let message = "no object here has an attribute tit; did you mean title:";
    assert_eq!(notice("x tit:data"), Some((message.to_owned(), 2)));
    let message = "no object here has an attribute publishr; did you mean publisher:";
    assert_eq!(notice("publishr:x"), Some((message.to_owned(), 0)));
    assert_eq!(notice("publisher:x"), None);
    assert_eq!(notice("nothing"), None);
}

#[test]
fn long_texts_of_which_only_the_beginning_is_here_are_counted() {
    let site = Site::new();
    site.put("http://a/long", &[("Partial-Text", &"knots ".repeat(3_000))]);
    site.put("http://a/whole", &[("Full-Text", &"knots ".repeat(3_000))]);
    site.put("http://a/short", &[("Partial-Text", "knots")]);
    site.apply();
    let answer = best(&site, "knots");
    assert_eq!(answer.parts, 1);
    let parts = answer.hits.iter().filter(|it| it.part).map(|it| it.url.as_str());
    assert!(parts.eq(["http://a/long"]));
    assert!(!best(&site, "part:x").notice.unwrap().message.contains('\0'));
}

#[test]
fn keywords_are_no_neighbors() {
    let site = Site::new();
    site.put("http://a/x", &[("Keywords", "under\nuniform\nsolar panel")]);
    site.apply();
    site.check("under uniform", "x");
    site.check("\"under uniform\"", "");
    site.check("\"uniform solar\"", "");
    site.check("\"solar panel\"", "x");
}

#[test]
fn the_manual_comes_before_the_change_log_before_the_test() {
    let site = Site::new();
    let text = ("Partial-Text", "how the harvester works, in all detail");
    for (url, kind) in [
        ("http://a/doc/tests/data/tools/one.html", "HTML"),
        ("http://a/doc/changes.html", "HTML"),
        ("http://a/doc/manual.html", "HTML"),
        ("http://a/doc/harvester.html", "HTML"),
    ] {
        site.put(url, &[text, ("Type", kind), ("MD5", url), ("File-Size", "9")]);
    }
    site.apply();
    let answer = best(&site, "harvester");
    let order = ["harvester.html", "manual.html", "changes.html", "one.html"];
    assert_eq!(names(&answer), order);
    let reasons = site.ask("harvester", |request| request.explain = true).hits[0].reasons.unwrap();
    assert!(1.0 < reasons.name && reasons.standing <= 1.0, "{reasons:?}");
    assert!((reasons.score() - answer.hits[0].score).abs() < 1e-3, "{reasons:?}");
    assert_eq!(answer.hits[0].reasons, None);
}

#[test]
fn of_equal_objects_the_new_one_comes_first() {
    let now = (net::clock::now_ms() / 1_000 - 86_400).to_string();
    // Whichever is first otherwise.
    for (new, old) in [("one", "two"), ("two", "one")] {
        let site = Site::new();
        for (name, modified) in [(new, now.as_str()), (old, "631152000")] {
            let attributes =
                [("Partial-Text", "the harvester"), ("Last-Modification-Time", modified)];
            site.put(&format!("http://a/{name}"), &attributes);
        }
        site.apply();
        site.check_order("harvester", Sort::Relevance, &format!("{new} {old}"));
        let hits = site.ask("harvester", |request| request.explain = true).hits;
        let ages: Vec<f32> = hits.iter().map(|it| it.reasons.unwrap().age).collect();
        assert!(1.04 < ages[0] && ages[1] < 1.001, "{ages:?}");
        // It is but a hint: what has more of the word is before what is newer.
        site.put("http://a/more", &[("Partial-Text", "harvester"), ("Title", "The harvester")]);
        site.apply();
        site.check_order("harvester", Sort::Relevance, &format!("more {new} {old}"));
    }
}

#[test]
fn words_close_to_each_other_come_first() {
    let site = Site::new();
    let filler = "filler ".repeat(40);
    site.put("http://a/far", &[("Partial-Text", &format!("gathering {filler} streams"))]);
    site.put("http://a/near", &[("Partial-Text", &format!("{filler} gathered streams"))]);
    site.apply();
    site.check_order("gather stream", Sort::Relevance, "near far");
}

#[test]
fn nearly_the_same_text_is_one_hit() {
    let site = Site::new();
    let print = |last: &str| "A".repeat(40) + &last.repeat(24);
    let put = |url: &str, gatherer: &str, text: &str, print: &str, modified: &str| {
        let attributes = [
            ("Partial-Text", text),
            ("Text-Print", print),
            ("Type", "Text"),
            ("Last-Modification-Time", modified),
        ];
        site.put_from(gatherer, url, &attributes);
    };
    put("http://a/doc.html", GATHERER, "knots knots", &print("B"), "9");
    put("http://a/doc.txt", GATHERER, "knots and ends", &print("C"), "9");
    put("http://a/other", GATHERER, "other knots, ends", &"Z".repeat(64), "9");
    put("http://a/twice", GATHERER, "knots of old", "", "5");
    put("http://a/twice", "fedcba9876543210", "knots of today", "", "8");
    site.apply();
    let answer = best(&site, "knots");
    let mut hits: Vec<(String, Vec<String>)> = Vec::new();
    for hit in answer.hits {
        let similar = |it: &crate::answer::Duplicate| it.similar && it.r#type == "Text";
        assert!(hit.duplicates.iter().all(similar), "{hit:?}");
        if hit.url.ends_with("twice") {
            assert_eq!(hit.modified, Some(8), "the newest");
            let older = &hit.duplicates[0];
            assert_eq!(older.relation(&hit.url, hit.modified), "an older version");
        }
        hits.push((hit.url, hit.duplicates.into_iter().map(|it| it.url).collect()));
    }
    hits.sort();
    let [doc, other, twice] = &hits[..] else { panic!("{hits:?}") };
    assert_eq!((doc.1.len(), other.1.len(), twice.1.len()), (1, 0, 1), "{hits:?}");
    let each = site.ask("knots", |request| request.duplicates = true);
    assert_eq!((each.total, each.hits.len()), (5, 5));
    let second = site.ask("knots", |request| (request.offset, request.limit) = (2, 10));
    assert_eq!(second.hits.len(), 1, "pages go on after the joined hits");
}

#[test]
fn no_word_scores_more_than_a_summary_may_claim() {
    let site = Site::new();
    let text = "glacier ".repeat(2_000);
    let all = [
        ("Title", "Glacier"),
        ("Keywords", "glacier"),
        ("Description", "Glacier"),
        ("Partial-Text", text.as_str()),
        ("Type", "HTML"),
        ("Last-Modification-Time", "4000000000"),
    ];
    site.put("http://glacier.example/glacier", &all);
    site.apply();
    let content = site.index().content(&|| false).unwrap().unwrap();
    let best = content.terms["glacier"].best;
    // All that can be said for a word is said for this one.
    assert!((BEST_MAX * 9 / 10..=BEST_MAX).contains(&best), "{best} of {BEST_MAX}");
}
