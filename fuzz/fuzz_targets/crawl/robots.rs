//! Fuzzing of robots.txt and of directives: any bytes are within the limits, and a decision is by a
//! line of the file that matches in both directions of percent-encoding.

#![no_main]

use crawl::directives::Directives;
use crawl::key::key;
use crawl::robots::{CRAWL_DELAY_MS_MAX, PRODUCT, Rules, SITEMAPS_MAX};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|bytes: &[u8]| {
    // The bytes before the first NUL are a path.
    let (path, file) = match bytes.iter().position(|it| *it == 0) {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default()),
        None => (&b"/a"[..], bytes),
    };
    let rules = Rules::parse(file, PRODUCT);
    assert!(rules.crawl_delay_ms().is_none_or(|it| it <= CRAWL_DELAY_MS_MAX));
    assert!(rules.sitemaps().len() <= SITEMAPS_MAX);
    let text = String::from_utf8_lossy(path);
    if let Ok(url) = Url::parse("http://h.example").and_then(|it| it.join(&text)) {
        let rule = rules.rule(&url);
        let lines = file.split(|it| matches!(it, b'\r' | b'\n')).count();
        assert!(rule.is_none_or(|it| it.line as usize <= lines));
        // All spellings of a URL have one decision.
        let again = Url::parse(&key(&url)).expect("a key is a URL");
        assert_eq!(key(&again), key(&url));
        if again.host() == url.host() {
            assert_eq!(rules.rule(&again), rule, "{url}");
        }
    }
    Directives::default().add_header(&String::from_utf8_lossy(file), PRODUCT);
});
