//! Fuzzing of push: any bytes as a message to a hub, to a callback, or in the head of a page. There
//! is no panic, and parsed values are written and read back unchanged.

#![no_main]

use exchange::push::request::{self, HubRequest, Question};
use exchange::push::signature::{Secret, verify};
use exchange::push::{link, notice};
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|input: &[u8]| {
    if let Ok(HubRequest::Subscription(it)) = request::read(input) {
        assert_eq!(request::read(it.form().as_bytes()), Ok(HubRequest::Subscription(it)));
    }
    let version = notice::read(input);
    assert_eq!(notice::read(notice::body(version).as_bytes()), version);
    let Ok(text) = std::str::from_utf8(input) else { return };
    let here = Url::parse("http://a.example/b/").expect("a URL");
    if let Some(question) = Question::read(text) {
        assert_eq!(Question::read(question.url(&here).query().unwrap_or_default()), Some(question));
    }
    let links = link::read([text], &here);
    if let (Some(hub), Some(topic)) = (&links.hub, &links.topic) {
        let written = link::header_value(hub.as_str(), topic.as_str());
        assert_eq!(link::read([written.as_str()], &here), links);
    }
    let secret = Secret::new("a secret").expect("a secret");
    assert!(verify(&secret, Some(text), b"body").is_err());
});
