//! Tests that compare the index with a scan: every query finds the records that the matcher finds.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use query::record::{BODY_BYTES_MAX, VALUE_BYTES_MAX};
use query::stem::stem;
use query::words::WORD_BYTES_MAX;
use query::{Bound, Leaf, Matcher, Node, Query, Value};

use super::disk::Disk;
use super::*;
use crate::index::compile::EXPANSIONS_MAX;
use crate::index::forms::FORMS_MAX;

/// Words that are forms of each other, few edits away from each other, or equal once folded.
const WORDS: &[&str] = &[
    "gather",
    "gathers",
    "Gathering",
    "GATHERED",
    "gathre",
    "relate",
    "relation",
    "relational",
    "die",
    "dying",
    "happy",
    "happiness",
    "caf\u{e9}",
    "cafe\u{301}",
    "CAFE",
    "stra\u{df}e",
    "strasse",
    "\u{1d00}b",
    "\u{130}b",
    "\u{fb01}n",
    "\u{3a3}\u{3c2}",
    "\u{65e5}",
    "\u{65e5}\u{672c}",
    "\u{e20}\u{e32}",
    "\u{e20}\u{e32}\u{e29}\u{e49}\u{e32}",
    "\u{3ac}\u{3b1}",
    "\u{451}\u{438}\u{306}",
    "Haus",
    "H\u{e4}user",
    "haustur",
    "Hausmeisterin",
    "Stra\u{df}en",
    "cheval",
    "chevaux",
    "\u{43a}\u{43d}\u{438}\u{433}\u{430}",
    "\u{43a}\u{43d}\u{438}\u{433}\u{438}",
    "\u{c11c}\u{c6b8}",
    "\u{c11c}\u{c6b8}\u{c5d0}\u{c11c}",
    "\u{5e1}\u{5e4}\u{5e8}",
    "\u{5d4}\u{5e1}\u{5e4}\u{5e8}",
    "\u{643}\u{62a}\u{627}\u{628}",
    "\u{627}\u{644}\u{643}\u{62a}\u{627}\u{628}",
    "docu-\nments",
    "x86",
    "foo_bar",
    "foo-bar",
    "C++",
    "c#",
    ".NET",
    "parseGitHub",
    "git",
    "Hub",
    "std::io",
    "b.a",
    "2024",
    "1995",
    "the",
    "don't",
    "2024-03-09",
    "10",
    "-5",
    "+7",
    "10k",
    "***",
    "\u{0}",
];

/// A time limit longer than any search takes, even on a busy machine.
const SEARCH_MAX: Duration = Duration::from_secs(600);

/// Values of attributes that may be numbers.
const NUMBERS: &[&str] = &[
    "0",
    "5",
    "10",
    "10240",
    "1995",
    "2024",
    "20240",
    "1710000000",
    "-5",
    "+7",
    " 7 ",
    "7\n",
    "1 0",
    "x",
    "",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
];

const NAMES: &[&str] = &[
    "Title",
    "tITLE",
    "Keywords",
    "Description",
    "Abstract",
    "Author",
    "Body",
    "Partial-Text",
    "Full-Text",
    "Type",
    "Publisher",
    "publisher",
    "Shoe-Size",
    "URL",
    "Host",
    "Gatherer",
    "File-Size",
    "Size",
    "Year",
    "Date",
    "Last-Modification-Time",
    "Modified",
    "Update-Time",
    "Gatherer-Name",
    "Gatherer-Host",
    "Gatherer-Port",
    "Original-Metadata",
    "Refresh-Rate",
    "a.b",
];

/// Languages as records have them.
const LANGUAGES: &[&str] =
    &["de", "fr\nDE-at", "ru", "en", "nb\nnl\nsv\nfi", "ko", "ar\nhe", "xx", ""];

const FIELDS: &[&str] =
    &["text", "updated", "oid", "md5", "none", "Publisher", "shoe-size", "HOST"];

/// Pieces from which patterns are made.
const PIECES: &[&str] = &[
    "a", "b", "g", "gather", "ing", ".", ".*", ".+", "[a-c]", "[^a]", "(a|b)", "|", "?", "*", "+",
    "{1,2}", "\u{e9}", "E", "\\d+", "(?i:G)", "\u{65e5}", "()",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[ab]{1,3}",
        9 => select(WORDS).prop_map(str::to_owned),
        1 => (WORD_BYTES_MAX - 1..WORD_BYTES_MAX + 2).prop_map(|bytes| "a".repeat(bytes)),
        1 => any::<char>().prop_map(String::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    let separator = select(&[" ", " ", "  ", "-", "_", ", ", "\n", "/", "", "\u{301}"][..]);
    vec((word(), separator), 0..7).prop_map(|words| {
        words.into_iter().flat_map(|(word, after)| [word, after.to_owned()]).collect()
    })
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        60 => text(),
        20 => select(NUMBERS).prop_map(str::to_owned),
        // The last words are before, at or beyond the limit; the text before them is too long for a
        // word.
        1 => (text(), 0..40_usize)
            .prop_map(|(text, more)| "z".repeat(VALUE_BYTES_MAX - 40 + more) + " " + &text),
    ]
}

fn a_record() -> impl Strategy<Value = Record> {
    let url = select(
        &[
            "http://a.org/gather",
            "http://b.org/Annual%20Report%232024.pdf",
            "http://b.org:8080/a-b/caf%C3%A9",
            "file:///srv/a%20b",
            "oai:a.org:10",
            "ftp://gathers/2024/",
        ][..],
    );
    let gatherer = select(&[GATHERER, " b ", "a:b"][..]);
    let language = prop::option::of(select(LANGUAGES));
    let attributes = vec((select(NAMES), value()), 0..6);
    (url, gatherer, language, attributes).prop_map(|(url, gatherer, language, attributes)| {
        let mut made = record(gatherer, url, &[]);
        language.into_iter().for_each(|it| made.push("Language", it));
        attributes.into_iter().for_each(|(name, value)| made.push(name, value));
        made
    })
}

fn bound() -> impl Strategy<Value = Bound> {
    let text =
        || select([NUMBERS, &["10k", "2024-03", "2024-03-09", "2024-03-09T16:00:00Z"]].concat());
    prop_oneof![
        Just(Bound::Open),
        text().prop_map(|it| Bound::Inclusive(it.to_owned())),
        text().prop_map(|it| Bound::Exclusive(it.to_owned())),
    ]
}

fn leaf() -> impl Strategy<Value = Node> {
    let names = [NAMES, FIELDS].concat();
    let field = prop::option::of(select(names).prop_map(str::to_owned));
    let pattern = vec(select(PIECES), 1..5).prop_filter_map("no pattern", |pieces| {
        let query = parse(&format!("/{}/", pieces.concat())).ok()?;
        if let Node::Leaf(Leaf { value, .. }) = query.root { Some(value) } else { None }
    });
    let value = prop_oneof![
        4 => word().prop_map(Value::Word),
        2 => text().prop_map(Value::Phrase),
        2 => text().prop_map(Value::Prefix),
        2 => (word(), 1..3_u8).prop_map(|(word, edits)| Value::Fuzzy(word, edits)),
        1 => (text(), 1..3_u8).prop_map(|(text, edits)| Value::Fuzzy(text, edits)),
        2 => pattern,
        2 => (bound(), bound()).prop_map(|(low, high)| Value::Range(low, high)),
        1 => select(NUMBERS).prop_map(|it| Value::Word(it.to_owned())),
        1 => Just(Value::Present),
        1 => Just(Value::Phrase(format!("{GATHERER}:http://a.org/gather"))),
    ];
    (field, value).prop_map(|(field, value)| Node::Leaf(Leaf { field, value }))
}

fn node() -> impl Strategy<Value = Node> {
    prop_oneof![9 => leaf(), 1 => Just(Node::All)].prop_recursive(3, 12, 3, |inner| {
        let several = || vec(inner.clone(), 1..4);
        prop_oneof![
            several().prop_map(Node::and),
            several().prop_map(Node::beside),
            several().prop_map(Node::or),
            inner.clone().prop_map(Node::negate),
            (several(), several())
                .prop_map(|(required, optional)| Node::prefer(required, optional)),
        ]
    })
}

fn in_memory() -> Site {
    let mut site = Site::new();
    let options = IndexOptions { threads: 1, heap_bytes: 15 << 20, ..IndexOptions::default() };
    let storage = Storage::Disk(Disk::default());
    site.index = Some(Index::open_at(site.dir.path(), options, storage).unwrap());
    site
}

/// Returns the records that the index finds; `None` if the index cannot answer.
fn matching_in_index(site: &Site, query: Query) -> Option<BTreeSet<String>> {
    let text = query.to_string();
    let mut request = SearchRequest::new(query, &text);
    (request.limit, request.matching, request.duplicates) = (1_000, Matching::All, true);
    match site.index().search_within(&request, SEARCH_MAX) {
        Ok(answer) => Some(answer.hits.into_iter().map(|hit| hit.oid).collect()),
        Err(Error::Query(error)) if error.message.contains("regular expression") => None,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Returns the live records that the matcher finds.
fn answering(site: &Site, query: &Query) -> BTreeSet<String> {
    let (matcher, mut live) = (Matcher::new(query), BTreeMap::new());
    for change in site.log.borrow().iter() {
        let Change::Update(record) = change else { panic!("only updates: {change:?}") };
        let oid = Oid::of(record).unwrap();
        live.insert(document::oid_key(&oid), record.clone());
    }
    live.retain(|_, record| matcher.matches(record).is_some());
    live.into_keys().collect()
}

proptest! {
    // Each case makes an index and searches it a dozen times.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_index_finds_the_records_that_match(
        first in vec(a_record(), 1..5),
        then in vec(a_record(), 0..4),
        roots in vec(node(), 12),
    ) {
        let site = in_memory();
        for records in [first, then] {
            site.log.borrow_mut().extend(records.into_iter().map(Change::Update));
            site.apply();
        }
        for root in roots {
            let query = Query { root };
            if let Some(matches) = matching_in_index(&site, query.clone()) {
                prop_assert_eq!(matches, answering(&site, &query), "{:?}", query);
            }
        }
    }
}

#[track_caller]
fn check(site: &Site, text: &str, found_by_index: usize, answer: usize) {
    let query = parse(text).unwrap();
    assert_eq!(
        matching_in_index(site, query.clone()).map(|it| it.len()),
        Some(found_by_index),
        "{text}"
    );
    assert_eq!(answering(site, &query).len(), answer, "{text}");
}

#[test]
fn both_read_a_text_up_to_its_limit() {
    let site = in_memory();
    for (name, bytes_max) in [("Full-Text", BODY_BYTES_MAX), ("Publisher", VALUE_BYTES_MAX)] {
        for cut in [0, 2, 6] {
            let text = "z".repeat(bytes_max - 7 + cut) + " inside beyond";
            site.put(&format!("http://{name}/{cut}"), &[(name, &text)]);
        }
    }
    site.apply();
    check(&site, "full-text:inside", 2, 2);
    check(&site, "publisher:inside", 1, 1);
    check(&site, "insi", 2, 2);
    check(&site, "beyond OR b*", 0, 0);
}

#[test]
fn the_index_bounds_the_forms_of_a_word() {
    let mut forms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let endings = [
        "", "s", "ed", "ing", "ly", "er", "e", "y", "ies", "ied", "ational", "ation", "ator",
        "alism", "aliti", "alli", "fulness", "ousli", "ousness", "iveness", "iviti", "biliti",
        "bli", "ogi", "fulli", "lessli", "alize", "icate", "iciti", "ical", "ful", "ness", "al",
        "ance", "ence", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous",
        "ive", "ize", "ion",
    ];
    for (first, second, third) in
        endings.iter().flat_map(|a| endings.iter().flat_map(move |b| endings.map(|c| (*a, *b, c))))
    {
        let word = format!("gather{first}{second}{third}");
        forms.entry(stem(&word).into_owned()).or_default().insert(word);
    }
    let forms = forms.into_values().find(|it| FORMS_MAX < it.len()).unwrap();
    let site = in_memory();
    for form in &forms {
        site.put(&format!("http://a/{form}"), &[("Title", form)]);
    }
    site.apply();
    check(&site, &format!("title:{}", forms.first().unwrap()), FORMS_MAX, forms.len());
}

#[test]
fn the_index_bounds_the_words_of_a_prefix_after_others() {
    let site = in_memory();
    let words: String = (0..=EXPANSIONS_MAX).map(|it| format!("x{it:05} ")).collect();
    site.put("http://a/many", &[("Full-Text", &words)]);
    site.put("http://a/last", &[("Full-Text", &format!("a x{EXPANSIONS_MAX:05}"))]);
    site.apply();
    check(&site, "a-x*", 0, 1);
    check(&site, "x*", 2, 2);
}

#[test]
fn the_index_refuses_some_patterns_that_the_matcher_accepts() {
    let site = in_memory();
    site.put("http://a/letters", &[("Title", "abcdef")]);
    site.apply();
    let query = parse("/.*a.{15}|abcdef/").unwrap();
    assert_eq!(matching_in_index(&site, query.clone()), None);
    assert_eq!(answering(&site, &query).len(), 1);
}

#[test]
fn what_has_no_number_in_a_range_is_found_before_what_has_one() {
    let site = in_memory();
    site.put("http://a.org/none", &[("Title", "none")]);
    site.put("http://a.org/some", &[("Title", "some"), ("File-Size", "10")]);
    site.apply();
    check(&site, "-(+* +file-size:[0 TO 10k])", 1, 1);
    check(&site, "-(+* +file-size:[0 TO 10k] none)", 1, 1);
}

#[test]
fn the_index_finds_an_object_by_the_urls_of_its_duplicates() {
    let site = in_memory();
    for url in ["http://a.org/x", "http://b.org/y"] {
        site.put(url, &[("MD5", "0cc1"), ("File-Size", "1")]);
    }
    site.apply();
    check(&site, "host:b.org", 2, 1);
    check(&site, "url:y", 2, 1);
}
