//! Fuzzing of queries: any text causes no panic, errors point into the text, and a parsed query can
//! be written, read back and matched with a record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query::{Matcher, QUERY_BYTES_MAX, parse};
use soif::Record;

/// Returns a record with an attribute for every part of the language.
fn record() -> Record {
    let mut record = Record::new("FILE", "http://a.org/docs/Annual%20Report");
    for (name, value) in [
        ("Gatherer-Id", "0123456789abcdef"),
        ("Title", "Gathering the café's data"),
        ("Abstract", "日本語 and foo_bar, side by side"),
        ("Full-Text", "a a b a a b b; to be or not to be, 2024-03-09"),
        ("Publisher", "University of Colorado on GitHub, C++11 and .NET"),
        ("Shoe-Size", "42"),
        ("File-Size", "20000"),
        ("Last-Modification-Time", "1710000000"),
    ] {
        record.push(name, value);
    }
    record
}

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(query) => {
            let matched = Matcher::new(&query).matches(&record());
            let written = query.to_string();
            if written.len() <= QUERY_BYTES_MAX {
                let again = parse(&written);
                assert_eq!(again.as_ref(), Ok(&query), "written as {written:?}");
                assert_eq!(again.ok().and_then(|it| it.matches(&record())), matched);
            }
        }
        Err(error) => {
            assert!(error.offset + error.len <= text.len());
            assert!(error.caret(text).ends_with('^'));
        }
    }
});
