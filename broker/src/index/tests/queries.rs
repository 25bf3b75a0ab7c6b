//! Tests of every form of a query against a small corpus: hits, orders, facets.

use super::*;
use crate::answer::{DEPTH_MAX, Facet, Filter};
use query::Query;

#[test]
fn words_phrases_and_forms() {
    let site = corpus();
    site.check("*", "one three two");
    site.check("", "one three two");
    site.check("gather", "one");
    site.check("GATHERS", "one");
    site.check("harvest", "one two");
    site.check("\"change log\"", "two");
    site.check("\"log change\"", "");
    site.check("\"changes log\"", "");
    site.check("\"to be or not to be\"", "three");
    site.check("cafe", "two");
    site.check("CAFÉ", "two");
    site.check("日本", "three");
    site.check("本日", "");
    site.check("harv*", "one two");
    site.check("foo-b*", "one three");
    site.check("authentcation~1", "three");
    site.check("authentcaton~1", "");
    site.check("authentcaton~2", "three");
    site.check("/authent[a-z]+/", "three");
    site.check("/CAF./", "two");
    site.check("/uthentication/", "");
    site.check("???", "");
    site.check("harvest ???", "one two");
}

#[test]
fn stop_words_beside_others_are_no_condition() {
    let site = corpus();
    site.check("what is an authentication?", "three");
    site.check("to be or not to be", "three");
    site.check("the gatherers of it", "one");
    site.check("the AND gatherer", "");
    site.check("+the log", "two");
    site.check("title:the log", "");
    // They change no score, and every other word counts as often as it is written.
    let score = |query: &str| site.ask(query, |_| ()).hits[0].score;
    assert!((score("a log of the change") - score("log change")).abs() < 1e-6);
    assert!(score("log change") + 1e-3 < score("log log change"));
}

#[test]
fn a_loosened_query_finds_some_of_the_words() {
    let site = corpus();
    let loosened = |query: &str| parse(query).unwrap().loosened().unwrap().to_string();
    site.check("gathering the change log", "");
    site.check(&loosened("gathering the change log"), "one two");
    site.check(&loosened("gathering change -log"), "one");
    site.check(&loosened("gathering change log type:html"), "one");
}

#[test]
fn all_forms_of_a_word_count_as_one_word() {
    let site = Site::new();
    let filler = "one two three four five six seven";
    let text = |words: &str| format!("{words} {filler}");
    site.put("http://a.org/base", &[("Partial-Text", &text("relate"))]);
    site.put("http://a.org/other", &[("Partial-Text", &text("related"))]);
    site.put("http://a.org/none", &[("Partial-Text", &text("relic"))]);
    site.apply();
    // These objects come in segments of their own.
    site.put("http://a.org/most", &[("Partial-Text", &text("relating relates relational"))]);
    site.put("http://a.org/title", &[("Title", "Relations"), ("Partial-Text", &text("x"))]);
    site.apply();
    for form in ["relate", "RELATED", "relational", "relation"] {
        site.check(form, "base most other title");
    }
    site.check("\"related\"", "other");
    site.check("title:relate", "title");
    // The frequencies of the forms add up, and no form counts as rarer than another.
    let answer = site.ask("relating -title:relate", |_| ());
    assert_eq!(names(&answer)[0], "most");
    let scores: Vec<f32> = answer.hits.iter().map(|hit| hit.score).collect();
    assert!(scores[1] < scores[0]);
    assert!((scores[1] - scores[2]).abs() < 1e-6, "{scores:?}");
}

#[test]
fn identifiers_paths_and_addresses_are_found_by_their_parts() {
    let site = corpus();
    for query in ["foo_bar", "foo-bar", "\"foo bar\"", "foo.bar"] {
        site.check(query, "one three");
    }
    site.check("readme.txt", "one");
    site.check("/usr/share", "one");
    site.check("http://b.org/docs/two", "two");
    site.check("b.org", "two");
    site.check("url:docs", "two");
}

#[test]
fn a_word_of_the_way_to_the_root_finds_nothing() {
    let site = Site::new();
    let root = ("Gatherer-Root", "file:///home/ada/docs");
    for (name, text) in [("plans/one.txt", "A file on oaks"), ("plans/two.txt", "On elms")] {
        site.put(&format!("file:///home/ada/docs/{name}"), &[root, ("Partial-Text", text)]);
    }
    site.apply();
    site.check("file", "one.txt");
    for word in ["home", "ada", "docs", "hom*", "adda~1", "/ho.e/"] {
        site.check(word, "");
    }
    site.check("plans", "one.txt two.txt");
    site.check("path:two", "two.txt");
    site.check("url:ada", "one.txt two.txt");
    // Who knows the whole path may ask for it.
    site.check("\"/home/ada/docs/plans/two.txt\"", "two.txt");
    site.check("home/ada", "one.txt two.txt");
}

#[test]
fn names_are_found_whole_and_by_their_parts() {
    let site = Site::new();
    let texts = [
        ("cpp", "A game in C++11"),
        ("c", "A game in C, at 11"),
        ("net", "The .NET runtime (.net)"),
        ("nets", "Casting nets with F#"),
        ("camel", "Calls parseQuery of GitHub Actions"),
        ("spaced", "To parse a query in the hub; github actions"),
    ];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}.x"), &[("Title", text)]);
    }
    site.apply();
    site.check("c++", "cpp.x");
    site.check("c++11", "cpp.x");
    site.check("c", "c.x cpp.x");
    site.check("\"game in c\"", "c.x cpp.x");
    site.check("\"game in c 11\"", "cpp.x");
    site.check(".net", "net.x");
    site.check("title:net", "net.x nets.x");
    site.check("F# -c#", "nets.x");
    site.check("github", "camel.x spaced.x");
    site.check("\"GitHub actions\"", "camel.x spaced.x");
    site.check("\"hub actions\"", "camel.x");
    site.check("\"git hub\"", "");
    site.check("parsequery", "camel.x");
    site.check("parse query", "camel.x spaced.x");
    site.check("c+*", "c.x camel.x cpp.x nets.x");
    site.check("title:/..\\+|f#/", "cpp.x nets.x");
    site.check("c++~1", "cpp.x");
}

#[test]
fn an_option_is_the_phrase_of_its_words() {
    let site = Site::new();
    let texts = [
        ("merge", "Usage: git merge --no-ff, or --[no-]ff: no fast-forward"),
        ("apart", "No commit is ff only"),
        ("other", "git merge --squash"),
    ];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}"), &[("Partial-Text", text)]);
    }
    site.apply();
    for query in
        ["--no-ff", "\"--no-ff\"", "merge --no-ff", "+--no-ff", "title:x OR --no-ff", "--no-f*"]
    {
        site.check(query, "merge");
    }
    site.check("git -merge", "");
    site.check("git ---no-ff", "other");
}

#[test]
fn a_name_with_capitals_is_found_by_its_beginning() {
    let site = Site::new();
    let texts = [
        ("read", "let n = fs.readToEnd(&mut bytes);"),
        ("get", "document.getElementById('x')"),
        ("long", "aaBbCcDdEeFfGgHhIiJj"),
        ("apart", "read to the end, get an element"),
    ];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}"), &[("Partial-Text", text)]);
    }
    site.apply();
    for query in ["readToE*", "readto*", "readToEnd*", "fs.readToE*", "readToEn~1"] {
        site.check(query, "read");
    }
    for query in ["getEle*", "getEl*", "getElementB*", "document.getEle*"] {
        site.check(query, "get");
    }
    site.check("aaBbCc*", "long");
}

#[test]
fn a_word_broken_at_the_end_of_a_line_is_found() {
    let site = Site::new();
    site.put("http://a/broken", &[("Partial-Text", "Read the docu-\n    mentation of it")]);
    site.put("http://a/beside", &[("Partial-Text", "the docu - mentation")]);
    site.apply();
    for query in ["documentation", "\"the documentation\"", "documenta*", "documents"] {
        site.check(query, "broken");
    }
    site.check("docu mentation", "beside broken");
    site.check("\"docu mentation of\"", "broken");
}

#[test]
fn words_are_found_in_scripts_without_spaces() {
    let site = Site::new();
    let texts =
        [("thai", "ประเทศไทยและภาษาไทย"), ("khmer", "ភាសា\u{200b}ខ្មែរ"), ("han", "日本語の本")];
    for (name, text) in texts {
        site.put(&format!("http://a/{name}"), &[("Title", text)]);
    }
    site.apply();
    site.check("ภาษา", "thai");
    site.check("ไทย", "thai");
    site.check("\"และภาษา\"", "thai");
    site.check("ษาภา", "");
    site.check("ภา*", "thai");
    site.check("ភាសាខ្មែរ", "khmer");
    site.check("日本~1", "han");
    site.check("月~2 OR ภส~1", "");
}

#[test]
fn original_metadata_is_found_by_name_only() {
    let site = Site::new();
    let original = "<dc:creator xmlns:dc='u'>Danzig</dc:creator>";
    site.put("http://a.org/one", &[("Author", "Danzig"), ("Original-Metadata", original)]);
    site.apply();
    site.check("danzig", "one");
    site.check("creator", "");
    site.check("original-metadata:creator", "one");
}

#[test]
fn percent_encoded_names_in_a_url_are_found_by_their_words() {
    let site = Site::new();
    site.put("file:///d/Annual%20Report%232024.pdf", &[("Title", "x")]);
    site.put("file:///d/caf%C3%A9.txt", &[("Title", "x")]);
    site.apply();
    for query in ["annual", "report", "url:report", "\"annual report\"", "url:2024"] {
        site.check(query, "Annual Report#2024.pdf");
    }
    site.check("\"file:///d/Annual%20Report%232024.pdf\"", "Annual Report#2024.pdf");
    site.check("file:///d/Annual%20Report%232024.pdf", "Annual Report#2024.pdf");
    site.check("url:café", "café.txt");
    site.check("url:txt", "café.txt");
}

#[test]
fn operators() {
    let site = corpus();
    site.check("harvest change", "two");
    site.check("gatherer OR change", "one two");
    site.check("harvest -change", "one");
    site.check("-harvest", "three");
    site.check("NOT (harvest OR keys)", "");
    site.check("gatherer OR change cafe", "one two");
    site.check("(gatherer OR change) cafe", "two");
    site.check("+harvest gatherer", "one two");
    site.check_order("+harvest gatherer", Sort::Relevance, "one two");
    site.check_order("+harvest cafe cafe", Sort::Relevance, "two one");
}

#[test]
fn every_attribute_is_searched_by_its_name_in_any_case() {
    let site = corpus();
    site.check("title:gather", "one");
    site.check("title:harvest", "");
    site.check("Author:danzig", "one");
    site.check("author:danz*", "one");
    site.check("keywords:(harvest indexing)", "one");
    site.check("description:collecting", "two");
    site.check("body:harvest", "two");
    site.check("partial-text:log", "two");
    site.check("type:pdf", "two");
    site.check("host:a.org", "one");
    site.check("gatherer:beta", "two");
    site.check("gatherer:0123456789abcdef", "one three two");
    site.check("Gatherer-Name:alpha", "one");
    site.check("md5:0cc175b9c0f1b6a831c399e269772661", "three");
    site.check("publisher:colorado", "two");
    site.check("publisher:\"university of\"", "two");
    site.check("publisher:univ*", "two");
    site.check("publisher:colorade~1", "two");
    site.check("publisher:/c.*o/", "two");
    site.check("publisher:/x|c.*o/", "two");
    site.check("publisher:university-of-col*", "two");
    site.check("publishers:colorado", "");
    site.check("colorado", "two");
    site.check("publisher:*", "two");
    site.check("title:*", "one two");
    site.check("-title:*", "three");
    site.check(&format!("oid:\"{GATHERER}:http://a.org/one\""), "one");
    site.check("summarizer-version:1998", "one");
    site.check("summarizer-version:[1990 TO 1999]", "one");
    site.check("summarizer-version:>1998", "");
}

#[test]
fn ranges() {
    let site = corpus();
    site.check("size:>500", "three two");
    site.check("size:>=500", "one three two");
    site.check("File-Size:500..3000", "one three");
    site.check("size:{500 TO 3000]", "three");
    site.check("size:<1k", "one");
    site.check("size:500", "one");
    site.check("modified:2024", "one");
    site.check("modified:2024-03-09", "one");
    site.check("modified:2024-03-10", "");
    site.check("modified:2020-01-01..2024-12-31", "one two");
    site.check("modified:..2023", "two");
    site.check("last-modification-time:>1600000000", "one");
    site.check("year:2020", "two");
    site.check("year:>2020", "one");
    site.check("size:9..1", "");
    site.check("modified:*", "one two");
    site.check("size:*", "one three two");
    site.put("http://a.org/reference", &[("Title", "A paper"), ("Year", "1995")]);
    site.put(
        "http://a.org/scan",
        &[("Date", "1996-03-01\n1995"), ("Last-Modification-Time", "1600000000")],
    );
    site.apply();
    site.check("year:1995", "reference scan");
    site.check("year:*", "one reference scan two");
    site.check("modified:2020", "scan two");
    site.check("-modified:*", "reference three");
}

#[test]
fn a_regular_expression_with_a_large_automaton_is_refused() {
    let query = "/.*a.{15}/";
    let request = SearchRequest::new(parse(query).unwrap(), query);
    let error = corpus().index().search(&request).unwrap_err();
    assert!(matches!(&error, Error::Query(it) if it.message.contains("is too large")), "{error}");
    // However it ends, hardly any processor time is used: 5 times what is promised for a refusal.
    let site = corpus();
    for query in [query, r"/\p{L}+x\p{L}+/", r"/(\p{L}+x){9}/", "/(.*a){20}/", r"/(\w+\w+)+x/"] {
        let began = net::clock::thread_cpu();
        if let Ok(parsed) = parse(query) {
            let _ = site.index().search(&SearchRequest::new(parsed, query));
        }
        let used = net::clock::thread_cpu() - began;
        assert!(used < Duration::from_millis(500), "{query}: {used:?}");
    }
}

#[test]
fn a_word_counts_by_its_field() {
    let site = Site::new();
    let filler = "some words that say nothing of it at all";
    site.put(
        "http://a/body",
        &[
            ("Title", filler),
            ("Partial-Text", "zebra"),
            ("Description", filler),
            ("Keywords", filler),
        ],
    );
    site.put(
        "http://a/description",
        &[
            ("Title", filler),
            ("Partial-Text", filler),
            ("Description", "zebra"),
            ("Keywords", filler),
        ],
    );
    site.put(
        "http://a/keywords",
        &[
            ("Title", filler),
            ("Partial-Text", filler),
            ("Description", filler),
            ("Keywords", "zebra"),
        ],
    );
    site.put(
        "http://a/title",
        &[
            ("Title", "zebra"),
            ("Partial-Text", filler),
            ("Description", filler),
            ("Keywords", filler),
        ],
    );
    for n in 0..20 {
        site.put(&format!("http://a/x{n}"), &[("Title", filler), ("Partial-Text", filler)]);
    }
    site.apply();
    site.check_order("zebra", Sort::Relevance, "title keywords description body");
    let scores = site.ask("zebra", |_| ()).hits.into_iter().map(|hit| hit.score);
    assert!(scores.is_sorted_by(|more, less| more > less));
}

#[test]
fn the_exact_word_comes_before_similar_ones() {
    let site = Site::new();
    site.put("http://a/near", &[("Title", "house")]);
    site.put("http://a/very", &[("Title", "horse")]);
    site.put("http://a/far", &[("Title", "zebra")]);
    site.apply();
    site.check_order("horse~1", Sort::Relevance, "very near");
}

#[test]
fn orders_pages_and_their_bounds() {
    let site = corpus();
    site.check_order("*", Sort::Newest, "one two three");
    site.check_order("*", Sort::Oldest, "two one three");
    site.check_order("*", Sort::Size, "two three one");
    site.check_order("*", Sort::Title, "two one three");
    site.check_order("*", Sort::Url, "three one two");
    let page = site.ask("*", |request| {
        (request.sort, request.offset, request.limit) = (Sort::Url, 1, 1);
    });
    assert_eq!((names(&page), page.total), (vec!["one".to_owned()], 3));
    let none = site.ask("*", |request| request.limit = 0);
    assert_eq!((none.hits.len(), none.total), (0, 3));
    let mut deep = SearchRequest::new(Query::all(), "*");
    deep.offset = DEPTH_MAX;
    let error = site.index().search(&deep).unwrap_err().to_string();
    assert!(error.contains("only the first 10000 hits"), "{error}");
}

#[test]
fn facets_count_and_filter() {
    let site = corpus();
    let answer = site.ask("*", |_| ());
    let expected = |values: &[(&str, u64)]| -> Vec<(String, u64)> {
        values.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect()
    };
    assert_eq!(answer.facets["type"], expected(&[("HTML", 1), ("PDF", 1), ("Text", 1)]));
    assert_eq!(answer.facets["host"], expected(&[("a.org", 1), ("b.org", 1)]));
    assert_eq!(answer.facets["year"], expected(&[("2024", 1), ("2020", 1)]));
    assert_eq!(answer.facets["gatherer"], expected(&[(GATHERER, 1), ("Alpha", 1), ("Beta", 1)]));
    let filtered = |filters: &[(Facet, &str)]| {
        let answer = site.ask("*", |request| {
            request.sort = Sort::Url;
            let filter = |(facet, value): &(Facet, &str)| Filter {
                facet: *facet,
                value: (*value).to_owned(),
            };
            request.filters = filters.iter().map(filter).collect();
        });
        assert_eq!(answer.total, answer.hits.len() as u64);
        names(&answer).join(" ")
    };
    assert_eq!(filtered(&[(Facet::Type, "PDF")]), "two");
    assert_eq!(filtered(&[(Facet::Type, "PDF"), (Facet::Type, "Text")]), "three two");
    assert_eq!(filtered(&[(Facet::Type, "PDF"), (Facet::Year, "2024")]), "");
    assert_eq!(filtered(&[(Facet::Host, "a.org"), (Facet::Year, "2024")]), "one");
    assert!(site.ask("*", |request| request.facets = false).facets.is_empty());
}

#[test]
fn a_hit_has_the_content_of_a_page() {
    let site = corpus();
    let hit = site.ask("change", |_| ()).hits.remove(0);
    assert_eq!(hit.title, "Brokers");
    assert_eq!(hit.description, "How a broker collects, indexes and answers");
    assert_eq!(
        (hit.r#type.as_str(), hit.host.as_str(), hit.gatherer.as_str()),
        ("PDF", "b.org", "Beta")
    );
    assert_eq!((hit.size, hit.modified), (Some(20_000), Some(1_600_000_000)));
    assert_eq!(hit.oid, format!("{GATHERER}:http://b.org/docs/two"));
    let hit = site.ask("keys", |_| ()).hits.remove(0);
    assert_eq!(hit.title, "three");
}

#[test]
fn a_search_that_takes_too_long_is_given_up_with_an_error() {
    let site = corpus();
    for text in ["gather", "\"data gatherer\"", "ga*", "gathre~1", "/.*a.*/", "x:1..2", "*"] {
        for (limit, sort) in [(10, Sort::Relevance), (10, Sort::Title), (0, Sort::Relevance)] {
            let mut request = SearchRequest::new(parse(text).unwrap(), text);
            (request.limit, request.sort) = (limit, sort);
            let late = site.index().search_within(&request, Duration::ZERO);
            assert!(matches!(late, Err(Error::Late)), "{text}: {late:?}");
            site.index().search(&request).unwrap();
        }
    }
}
