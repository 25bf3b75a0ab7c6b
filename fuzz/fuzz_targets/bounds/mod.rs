//! Checks of the bounds that hold for every record, whatever bytes it was made from.

#![allow(dead_code)]

use std::sync::Once;

use formats::object::{ProblemKind, Summary};

/// Largest attribute in bytes: a record's keywords.
const VALUE_BYTES_MAX: usize = 128 * 1024;
/// Largest record, in bytes.
const RECORD_BYTES_MAX: usize = 1024 * 1024;

/// Makes panics only print: the product catches them, and the test checks the outcome.
pub fn print_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
}

/// Asserts that a record of the object at `url`, or of a member, is bounded and UTF-8, has a URL at
/// or below `url`, survives SOIF unchanged, and has no fault of ours.
pub fn check(url: &str, summary: &Summary) {
    let record = &summary.record;
    let fault = summary.problems.iter().find(|it| it.kind == ProblemKind::Fault);
    assert!(fault.is_none(), "{fault:?}");
    let member = record.url.strip_prefix(url);
    assert!(member.is_some_and(|it| it.is_empty() || it.starts_with('#')), "{}", record.url);
    let is_plain = |it: u8| it.is_ascii_graphic() && it != b'\\';
    assert!(record.url.bytes().all(is_plain), "{}", record.url);
    let mut size = 0;
    for it in record.attributes() {
        assert!(it.value.len() <= VALUE_BYTES_MAX, "{} is too long", it.name);
        assert!(std::str::from_utf8(&it.value).is_ok(), "{} is not UTF-8", it.name);
        size += it.name.len() + it.value.len();
    }
    assert!(size <= RECORD_BYTES_MAX, "the record has {size} bytes");
    let mut written = Vec::new();
    soif::writer::write_record(&mut written, record);
    let read = soif::parse(&written).expect("a written record can be read");
    assert_eq!(read.as_slice(), std::slice::from_ref(record));
}

/// Splits off the first line.
pub fn first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let at = bytes.iter().position(|it| *it == b'\n').unwrap_or(bytes.len());
    (&bytes[..at], bytes.get(at + 1..).unwrap_or_default())
}
