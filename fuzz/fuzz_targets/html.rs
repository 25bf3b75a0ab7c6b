//! Fuzzing of markup: any bytes as a page and as other markup, and as a site's table. Records are
//! within bounds, and no summarizer fails.

#![no_main]

use essence::summarize::{Settings, summarize};
use formats::Type;
use formats::markup::Tables;
use formats::object::{Object, ProblemKind};
use libfuzzer_sys::fuzz_target;

/// Largest attribute in bytes: a record's keywords.
const VALUE_BYTES_MAX: usize = 128 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let mut settings = Settings::default();
    // The bytes before the first NUL are a table.
    let (table, page) = match bytes.iter().position(|it| *it == 0) {
        Some(at) => (bytes.get(..at), bytes.get(at + 1..).unwrap_or_default()),
        None => (None, bytes),
    };
    if let Some(table) = table.and_then(|it| std::str::from_utf8(it).ok())
        && let Ok(tables) = Tables::read(&[("t.toml".into(), table.to_owned())])
    {
        settings.formats.markup = tables;
    }
    let object = Object::whole("http://h.example/d/p", page.to_vec());
    for r#type in [Type::Html, Type::Xml, Type::Sgml] {
        let summary = summarize(&object, r#type, &settings, &|| false);
        assert!(summary.problems.iter().all(|it| it.kind != ProblemKind::Fault));
        for attribute in summary.record.attributes() {
            assert!(attribute.value.len() <= VALUE_BYTES_MAX, "{} is too long", attribute.name);
        }
    }
});
