//! Any bytes under every kind of name: records within bounds, and no summarizer fails.

#![no_main]

use std::sync::Once;

use gatherer::essence::{EssenceSettings, extract};
use gatherer::object::{Object, ProblemKind};
use libfuzzer_sys::fuzz_target;

const NAMES: &[&str] = &[
    "a", "a.txt", "README", "a.html", "a.xml", "a.md", "a.pdf", "a.c", "a.h", "a.rs", "a.py", "a.pl", "a.sh",
    "a.js", "a.java", "a.go", "a.f90", "Makefile", "a.1", "a.eml", "a.bib", "a.gz", "a.tar", "a.tgz", "a.zip",
];

/// A panic that is caught inside is the product's business: only the outcome counts.
static HOOK: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let Some((which, bytes)) = bytes.split_first() else { return };
    let name = NAMES[usize::from(*which) % NAMES.len()];
    let object = Object::whole(format!("http://h.example/{name}"), bytes.to_vec());
    let found = extract(object, &EssenceSettings::default(), &|| false);
    assert!(!found.is_empty());
    for summary in found {
        assert!(summary.problems.iter().all(|it| it.kind != ProblemKind::Fault));
        for attribute in summary.record.attributes() {
            assert!(attribute.value.len() <= 128 * 1024, "{} is too long", attribute.name);
        }
    }
});
