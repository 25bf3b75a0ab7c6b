//! Tests of the matcher on a record written by hand. The broker's index is tested against it, too.

use super::*;
use crate::parse;

fn record() -> Record {
    let mut record = Record::new("FILE", "http://b.org/docs/Annual%20Report");
    for (name, value) in [
        ("Gatherer-Id", "0123456789abcdef"),
        ("Gatherer-Name", "Beta"),
        ("Title", "Gathering café data"),
        ("Abstract", "How a broker collects, indexes and answers"),
        ("Partial-Text", "The change log. A log of every change is kept; to be or not to be"),
        ("Text-Places", "page 1 0\nsheet Costs!B7 9120"),
        ("Publisher", "University of Colorado"),
        ("Shoe-Size", "42"),
        ("Tools", "C++11, .NET and GitHub Actions"),
        ("File-Size", "20000"),
        ("Last-Modification-Time", "1710000000"),
        ("Type", "PDF"),
    ] {
        record.push(name, value);
    }
    record
}

/// Checks which attributes match `query`; `-` if the record does not match.
#[track_caller]
fn check(query: &str, expected: &str) {
    let matched = parse(query).unwrap().matches(&record());
    let names = matched.map(|it| it.attributes.into_iter().collect::<Vec<_>>().join(" "));
    assert_eq!(names.as_deref().unwrap_or("-"), expected, "{query}");
}

#[test]
fn words_in_any_form_and_phrases_as_written() {
    check("gather", "title");
    check("GATHERED CAFE", "title");
    check("\"gathered\"", "-");
    check("\"change log\"", "partial-text");
    check("\"log change\"", "-");
    check("\"to be or not to be\"", "partial-text");
    check("title:gather", "title");
    check("body:gather", "-");
    check("Abstract:collecting", "abstract");
    check("publisher:universities", "-");
    check("universities", "publisher");
    check("???", "-");
    check("gather ???", "title");
}

#[test]
fn names_with_signs_and_capitals() {
    check("c++", "tools");
    check("c", "tools");
    check("c#", "-");
    check("\"c 11 .net\"", "tools");
    check(".net", "tools");
    check("net", "tools");
    check("\"hub actions\" github", "tools");
    check("\"git hub\"", "-");
    check("tools:/..\\+/", "tools");
    check("c++* .n* c++~1", "tools");
}

#[test]
fn places_of_the_text_are_no_words() {
    check("costs", "-");
    check("9120", "-");
    check("text-places:page", "-");
    check("text-print:AbC", "-");
    check("text-places:*", "text-places");
}

#[test]
fn patterns() {
    check("univ*", "publisher");
    check("the-change-l*", "partial-text");
    check("gathernig~1", "title");
    check("gathrnig~1", "-");
    check("colorade-universiti~2", "publisher");
    check("z~1", "-");
    check("日~2 OR ภา~1", "-");
    check("/ga.*g/", "title");
    check("/ath.*/", "-");
    check("/CAF./", "title");
    check("publisher:/x|c.*o/", "publisher");
}

#[test]
fn numbers_dates_and_presence() {
    check("size:>10k", "size");
    check("size:<10k", "-");
    check("year:2024", "year");
    check("modified:2024-03-09", "modified");
    check("shoe-size:40..43", "shoe-size");
    check("shoe-size:>42", "-");
    check("publisher:*", "publisher");
    check("description:* modified:*", "abstract modified");
    check("keywords:*", "-");
}

#[test]
fn values_without_an_attribute_have_a_name_too() {
    check("annual", "url");
    check("host:b.org", "host");
    check("gatherer:beta", "gatherer");
    check("type:pdf", "type");
    check("oid:\"0123456789abcdef:http://b.org/docs/Annual%20Report\"", "oid");
    check("oid:other", "-");
}

#[test]
fn operators() {
    check("gather change", "partial-text title");
    check("gather nothing", "-");
    check("gather OR nothing", "title");
    check("gather -nothing", "title");
    check("gather -change", "-");
    check("-nothing", "");
    check("*", "");
    check("+gather colorado nothing", "publisher title");
    check("+??? colorado", "publisher");
    check("+(-nothing) nothing", "");
}
