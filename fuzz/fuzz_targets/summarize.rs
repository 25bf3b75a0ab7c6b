//! Fuzzing of summarizers: any bytes as an object of the type that the first line names. The record
//! is within bounds for any content.

#![no_main]

mod bounds;

use std::collections::BTreeSet;

use essence::summarize::{Settings, summarize};
use formats::object::Object;
use formats::{FullText, Type};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (name, content) = bounds::first_line(bytes);
    let named = std::str::from_utf8(name).ok().and_then(Type::by_name);
    let first = usize::from(*bytes.first().unwrap_or(&0));
    let r#type = named.unwrap_or(Type::ALL[first % Type::ALL.len()]);
    let url = "http://h.example/d/a";
    // The whole object with partial text, and a truncated one with full text.
    for is_whole in [true, false] {
        let truncated = !is_whole;
        let size = content.len() as u64 + u64::from(truncated);
        let object = Object { truncated, size, ..Object::whole(url, content.to_vec()) };
        let full = BTreeSet::from([r#type]);
        let full_text = if is_whole { FullText::None } else { FullText::Types(full) };
        let formats = formats::Settings {
            full_text,
            full_text_bytes_max: 64 * 1024,
            ..formats::Settings::default()
        };
        let settings = Settings { formats, ..Settings::default() };
        let summary = summarize(&object, r#type, &settings, &|| false);
        bounds::check(url, &summary);
        assert_eq!(summary.record.text("Type").as_deref(), Some(r#type.name()));
        assert_eq!(summary.record.text("MD5").is_some(), is_whole);
    }
});
