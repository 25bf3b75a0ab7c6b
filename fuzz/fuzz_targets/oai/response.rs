//! Any bytes as a response: no panic, no more quarantined than is named, no success without the end tag;
//! and what was read of a list, written by a repository of ours, is read again as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oai::request::Listed;
use oai::response::read::{QUARANTINED_MAX, Reading, Unreadable, read};
use oai::response::write::Writer;
use oai::response::{Body, Page, Record, Xml};
use oai::{Datestamp, Granularity, Verb};

/// Every element that is handed out stands by itself: in another page it is read as it is.
fn is_same(listed: Listed, items: Vec<Record>) {
    let date = Datestamp::at(0, Granularity::Second);
    let mut list = Writer::new(date, "http://a.example/oai", None).list(listed);
    items.iter().for_each(|it| list.push(it));
    let text = list.finish(None);
    let asked = match listed {
        Listed::Records => Verb::ListRecords,
        Listed::Identifiers => Verb::ListIdentifiers,
    };
    let again = read(text.as_bytes(), asked).expect("we write what can be read");
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
            // Those without a date cannot be written, and elements without a namespace take ours.
            items.retain(|it| it.header.datestamp.is_some());
            let has_namespace = |it: &Xml| it.0.contains("xmlns");
            let all = |it: &Record| it.metadata.iter().chain(&it.about).all(has_namespace);
            items.retain(all);
            is_same(Listed::Records, items);
        }
        Body::Headers(Page { items, .. }) => {
            let records = items.into_iter().filter(|it| it.datestamp.is_some());
            let records = records.map(|header| Record { header, ..Record::default() });
            is_same(Listed::Identifiers, records.collect());
        }
        Body::Faults(faults) => assert!(!faults.is_empty()),
        Body::Identify(_) | Body::Formats(_) | Body::Sets(_) | Body::Record(_) => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    for asked in Verb::ALL {
        match read(bytes, asked) {
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
