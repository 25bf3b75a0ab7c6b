//! Fuzzing of foreign engines: any bytes as an OpenSearch description, and as an answer. There is no panic; the address of
//! a question is of the Web, and so is that of each hit, which has a title.

#![no_main]

use broker::route::foreign::description::template;
use broker::route::foreign::read::found;
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|input: &[u8]| {
    let is_web = |it: &str| it.starts_with("http://") || it.starts_with("https://");
    if let Ok(template) = template(&String::from_utf8_lossy(input)) {
        let base = Url::parse("https://engine.example/opensearch.xml").expect("a URL");
        let asked = template.filled(&base, "ice \"age\" {count} &é");
        assert!(asked.is_err() || asked.is_ok_and(|it| is_web(it.as_str())));
    }
    for hit in found(input).map(|it| it.hits).unwrap_or_default() {
        assert!(!hit.title.trim().is_empty() && hit.title.len() <= 4 * 300);
        assert!(hit.url.is_empty() || is_web(&hit.url));
    }
});
