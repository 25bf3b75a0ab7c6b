//! Fuzzing of responses: no bytes cause a panic, too many quarantined records, or success without
//! the end tag. Records of a list, written by our repository, are read back unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oai::request::Listed;
use oai::response::read::{QUARANTINED_MAX, Reading, Unreadable, read};
use oai::response::write::Writer;
use oai::response::{Body, Page, Record, Xml};
use oai::{Datestamp, Granularity, Verb};

/// Checks that every returned element is self-contained: in another page it is read unchanged.
fn check_rewritten(listed: Listed, items: Vec<Record>) {
    let date = Datestamp::at(0, Granularity::Second);
    let mut list = Writer::new(date, "http://a.example/oai", None).list(listed);
    items.iter().for_each(|it| list.push(it));
    let text = list.finish(None);
    let verb = match listed {
        Listed::Records => Verb::ListRecords,
        Listed::Identifiers => Verb::ListIdentifiers,
    };
    let again = read(text.as_bytes(), verb).expect("our response can be read");
    assert!(!again.repaired, "{again:?}");
    match again.response.body {
        Body::Records(page) => assert_eq!(page.items, items),
        Body::Headers(page) => {
            assert!(page.items.iter().eq(items.iter().map(|it| &it.header)));
        }
        other => panic!("{other:?}"),
    }
}

fn check(reading: Reading) {
    match reading.response.body {
        Body::Records(Page { mut items, quarantined, .. }) => {
            assert!(quarantined.len() <= QUARANTINED_MAX + 1);
            assert!(quarantined.is_empty() || reading.repaired);
            // Records without a date cannot be written, and elements without a namespace take ours.
            items.retain(|it| it.header.datestamp.is_some());
            let has_namespace = |it: &Xml| it.0.contains("xmlns");
            let all = |it: &Record| it.metadata.iter().chain(&it.about).all(has_namespace);
            items.retain(all);
            check_rewritten(Listed::Records, items);
        }
        Body::Headers(Page { items, .. }) => {
            let records = items.into_iter().filter(|it| it.datestamp.is_some());
            let records = records.map(|header| Record { header, ..Record::default() });
            check_rewritten(Listed::Identifiers, records.collect());
        }
        Body::Faults(faults) => assert!(!faults.is_empty()),
        Body::Identify(_) | Body::Formats(_) | Body::Sets(_) | Body::Record(_) => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    for verb in Verb::ALL {
        match read(bytes, verb) {
            Ok(reading) => check(reading),
            Err(error @ (Unreadable::Truncated { .. } | Unreadable::Malformed { .. })) => {
                if let Some(reading) = error.into_whole() {
                    check(reading);
                }
            }
            Err(_) => {}
        }
    }
});
