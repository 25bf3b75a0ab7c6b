//! Fuzzing of lists of URLs: any bytes are a list within the limits, or none.

#![no_main]

use crawl::key::URL_BYTES_MAX;
use crawl::sitemap::{ENTRIES_MAX, read};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|bytes: &[u8]| {
    let base = Url::parse("http://h.example/sitemap.xml").expect("a URL");
    if let Ok(list) = read(&base, bytes) {
        assert!(list.entries.len() + list.skipped <= ENTRIES_MAX);
        for entry in &list.entries {
            assert!(entry.url.has_host() && entry.url.as_str().len() <= URL_BYTES_MAX);
        }
    }
});
