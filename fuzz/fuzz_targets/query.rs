//! Fuzzing of queries: any text causes no panic, errors point into the text, and a parsed query can be written and
//! read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use query::{QUERY_BYTES_MAX, parse};

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(query) => {
            let written = query.to_string();
            if written.len() <= QUERY_BYTES_MAX {
                assert_eq!(parse(&written).as_ref(), Ok(&query), "written as {written:?}");
            }
        }
        Err(error) => {
            assert!(error.offset + error.len <= text.len());
            assert!(error.caret(text).ends_with('^'));
        }
    }
});
