//! Tests of the reader: valid pages, invalid pages, and any bytes.

mod pages;
mod properties;

use proptest::prelude::*;

use super::*;
use crate::datestamp::{Datestamp, Granularity};
use crate::error::{Code, Fault};
use crate::request::Listed;
use crate::response::write::{NAMESPACE, Writer};
use crate::response::{Deleted, Format, Header, Identify, Record, Set, Token, Xml};

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n\
    <responseDate>2026-01-31T12:00:00Z</responseDate>\n<request>http://a.example/oai</request>\n";

const DC: &str = "<oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
    xmlns:dc=\"http://purl.org/dc/elements/1.1/\">";

/// Returns a page with `inner` in its verb's element.
fn page_of(verb: Verb, inner: &str) -> String {
    let name = verb.name();
    format!("{HEAD}<{name}>{inner}</{name}>\n</OAI-PMH>\n")
}

fn record_of(identifier: &str, metadata: &str) -> String {
    format!(
        "<record><header><identifier>{identifier}</identifier><datestamp>2026-01-01</datestamp>\
         </header><metadata>{metadata}</metadata></record>\n"
    )
}

fn titled(identifier: &str, title: &str) -> String {
    record_of(identifier, &format!("{DC}<dc:title>{title}</dc:title></oai_dc:dc>"))
}

#[track_caller]
fn records(reading: &Reading) -> &Page<Record> {
    match &reading.response.body {
        Body::Records(page) => page,
        other => panic!("{other:?}"),
    }
}

fn note_kinds(reading: &Reading) -> Vec<NoteKind> {
    reading.notes.iter().map(|it| it.kind).collect()
}

/// Checks the records by identifier and title, the quarantined ones, and the notes.
#[track_caller]
fn check(
    page: &[u8],
    expected: &[(&str, &str)],
    quarantined: &[(&str, u64, &str)],
    notes: &[NoteKind],
) {
    let reading = read(page, Verb::ListRecords).unwrap();
    let list = records(&reading);
    let found: Vec<(&str, &str)> = list
        .items
        .iter()
        .map(|it| {
            let xml = it.metadata.as_ref().map_or("", |it| it.0.as_str());
            let title = xml.split("<dc:title>").nth(1).unwrap_or(xml);
            (it.header.identifier.as_str(), title.split("</dc:title>").next().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    for (found, (identifier, offset, problem)) in list.quarantined.iter().zip(quarantined) {
        assert_eq!(found.identifier.as_deref().unwrap_or_default(), *identifier);
        assert_eq!(found.offset, *offset, "{found:?}");
        assert!(found.problem.contains(problem), "{found:?}");
    }
    assert_eq!(list.quarantined.len(), quarantined.len(), "{:?}", list.quarantined);
    assert_eq!(note_kinds(&reading), notes, "{:?}", reading.notes);
    let is_changed = !quarantined.is_empty() || notes.iter().any(|it| it.is_repair());
    assert_eq!(reading.repaired, is_changed);
}

fn offset_of(page: &str, text: &str) -> u64 {
    page.find(text).unwrap() as u64
}
