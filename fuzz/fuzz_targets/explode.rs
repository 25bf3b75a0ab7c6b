//! Fuzzing of exploding: any bytes as a bibliography of every kind, and as mail and news. Records
//! are within bounds, entries have their own URLs, and no reader fails.

#![no_main]

use std::sync::Once;

use essence::extract::{EssenceSettings, Explode, extract};
use essence::summarize::summarize;
use formats::Type;
use formats::object::{Object, ProblemKind, Summary};
use libfuzzer_sys::fuzz_target;

/// Each type, and a name by which it is recognized.
const KINDS: &[(Type, &str)] = &[
    (Type::BibTeX, "a.bib"),
    (Type::Ris, "a.ris"),
    (Type::CslJson, "a.csl.json"),
    (Type::Marc, "a.mrc"),
    (Type::MarcXml, "a.marcxml"),
    (Type::DataCite, "a.datacite.json"),
    (Type::JsonLd, "a.jsonld"),
    (Type::Lsm, "a.lsm"),
    (Type::Iafa, "a.iafa"),
    (Type::Soif, "a.soif"),
    (Type::Csv, "a.csv"),
    (Type::Mail, "a.eml"),
    (Type::News, "a"),
];

/// A panic is only printed: the product catches it, and the test checks the outcome.
static HOOK: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let Some((which, bytes)) = bytes.split_first() else { return };
    let (kind, name) = KINDS[usize::from(*which) % KINDS.len()];
    let types = KINDS.iter().map(|(kind, _)| kind.name().to_owned()).collect();
    let settings = EssenceSettings { explode: Explode::Types(types), ..EssenceSettings::default() };
    let object = Object::whole(format!("http://h.example/{name}"), bytes.to_vec());
    // As the given type, whatever the content is; and as the recognized type, with its entries.
    check(&summarize(&object, kind, &settings.summary, &|| false));
    let summaries = extract(object, &settings, &|| false);
    assert!(!summaries.is_empty());
    summaries.iter().for_each(check);
});

fn check(summary: &Summary) {
    assert!(summary.problems.iter().all(|it| it.kind != ProblemKind::Fault));
    assert!(summary.record.url.starts_with("http://h.example/a"));
    for attribute in summary.record.attributes() {
        assert!(attribute.value.len() <= 128 * 1024, "{} is too long", attribute.name);
    }
}
