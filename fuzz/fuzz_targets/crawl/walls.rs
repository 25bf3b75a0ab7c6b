//! Fuzzing of answers: any status, field and body is a wall with a text, or none; a page resembles
//! itself.

#![no_main]

use crawl::walls::{Sample, is_login, recognize};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use url::Url;

/// Fields that walls are known by.
const NAMES: [&str; 8] = [
    "server",
    "cf-mitigated",
    "x-amzn-waf-action",
    "x-azure-ref",
    "x-datadome",
    "x-kpsdk-ct",
    "x-vercel-mitigated",
    "content-type",
];

fuzz_target!(|answer: (u16, u8, &[u8], &[u8])| {
    let (status, name, value, body) = answer;
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.insert(NAMES[usize::from(name) % NAMES.len()], value);
    }
    if let Some(wall) = recognize(status, &headers, body) {
        assert!(!wall.mark.is_empty() && wall.to_string().contains(wall.vendor.name()));
    }
    let url = Url::parse("http://h.example/d/login").expect("a URL");
    is_login(status, &url, body);
    if let Some(sample) = Sample::new(200, url.as_str(), body) {
        assert!(sample.resembles(url.as_str(), body));
    }
});
