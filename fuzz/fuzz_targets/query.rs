//! Any text: no panic, an error that points into it, and what is read can be written and read back.

#![no_main]

use query::{QUERY_BYTES_MAX, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(query) => {
            let written = query.to_string();
            if written.len() <= QUERY_BYTES_MAX {
                assert_eq!(parse(&written), Ok(query), "written as {written:?}");
            }
        }
        Err(error) => {
            assert!(error.offset + error.len <= text.len());
            assert!(error.caret(text).ends_with('^'));
        }
    }
});
