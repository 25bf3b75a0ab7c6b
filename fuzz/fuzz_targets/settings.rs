//! Fuzzing of a site's files: any text as type rules, record rules, markup tables, and settings.
//! Parsed files can be used, and are sent to a worker unchanged; the mistakes in other files name
//! lines that exist.

#![no_main]

mod bounds;

use essence::rules::{IDENTITY, Rules, VALUE_BYTES_MAX};
use essence::summarize::{Settings, summarize};
use essence::typing::Recognizer;
use formats::Type;
use formats::markup::Tables;
use formats::object::Object;
use gatherer::Config;
use libfuzzer_sys::fuzz_target;
use soif::Record;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match which % 4 {
        0 => types(text),
        1 => rules(text),
        2 => markup(text),
        _ => settings(text),
    }
});

fn is_line(line: usize, text: &str) -> bool {
    (1..=text.lines().count() + 1).contains(&line)
}

fn types(text: &str) {
    match Recognizer::read(&[("t.toml".into(), text.to_owned())]) {
        Err(mistakes) => assert!(mistakes.iter().all(|it| is_line(it.line, text))),
        Ok(recognizer) => {
            let written = serde_json::to_vec(&recognizer).unwrap();
            let read: Recognizer = serde_json::from_slice(&written).unwrap();
            assert_eq!(read, recognizer);
            for name in ["a.html", "x", ""] {
                let url = format!("http://h.example/{name}");
                let decision = recognizer.explain(&url, name, text.as_bytes());
                assert_eq!(read.recognize(&url, name, text.as_bytes()), decision.r#type);
                assert!(!decision.name.is_empty());
            }
        }
    }
}

fn rules(text: &str) {
    let rules = match Rules::parse(text) {
        Err(mistakes) => return assert!(mistakes.iter().all(|it| is_line(it.line, text))),
        Ok(rules) => rules,
    };
    let mut record = Record::new("FILE", "http://h.example/a");
    for (name, value) in [("Type", "HTML"), ("Title", "words"), ("MD5", "0"), ("File-Size", "7")] {
        record.push(name, value);
    }
    let before = record.clone();
    // The program returns its input.
    rules.apply(&mut record, &mut |_command, input| Ok(input.to_vec()));
    for name in IDENTITY {
        assert_eq!(record.get(name), before.get(name), "{name} was changed");
    }
    assert_eq!(record.url, before.url);
    assert!(record.attributes().iter().all(|it| it.value.len() <= VALUE_BYTES_MAX));
    let mut written = Vec::new();
    soif::writer::write_record(&mut written, &record);
    assert_eq!(soif::parse(&written).unwrap(), [record]);
}

fn markup(text: &str) {
    match Tables::read(&[("t.toml".into(), text.to_owned())]) {
        Err(mistakes) => assert!(mistakes.iter().all(|it| is_line(it.line, text))),
        Ok(markup) => {
            let written = serde_json::to_vec(&markup).unwrap();
            assert_eq!(serde_json::from_slice::<Tables>(&written).unwrap(), markup);
            let url = "http://h.example/a";
            let formats = formats::Settings { markup, ..formats::Settings::default() };
            let settings = Settings { formats, ..Settings::default() };
            let page =
                "<meta name=a content=b><title>t</title><h1 id=c>d</h1><x><y z='1'>e</y></x>";
            let summary = summarize(&Object::whole(url, page), Type::Html, &settings, &|| false);
            bounds::check(url, &summary);
        }
    }
}

fn settings(text: &str) {
    if let Err(mistakes) = Config::parse(text) {
        assert!(!mistakes.is_empty());
        assert!(mistakes.iter().all(|it| it.file.is_some() || is_line(it.line, text)));
    }
}
