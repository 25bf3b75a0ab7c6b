//! Tests of TR Figure 3: the example SOIF template.
//!
//! The report prints it for people: values are aligned with spaces where the stream has one TAB, and some
//! are cut, so that their byte counts exceed the printed text. Here each value is the printed text, filled
//! with dots to the printed count, or cut to it (`keywords` is printed one byte longer than its count).

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use soif::{Event, Mode, Reader, parse, write_record};

const URL: &str = "http://harvest.cs.colorado.edu/harvest/user-manual/node99.html";

/// Name, byte count and value as printed.
const ATTRIBUTES: [(&str, usize, &str); 13] = [
    ("update-time", 9, "793962520"),
    ("description", 27, "About this document ..."),
    ("time-to-live", 8, "14515200"),
    ("refresh-rate", 7, "2419200"),
    ("gatherer-name", 57, "Networked Information Discovery and Retrieval"),
    ("gatherer-host", 21, "bruno.cs.colorado.edu"),
    ("gatherer-version", 3, "1.0"),
    ("type", 4, "HTML"),
    ("file-size", 4, "2551"),
    ("md5", 32, "bea4c43ce6b976b3403c24f6a353f610"),
    ("author", 42, "Darren Hardy\nWed Feb 15 13:27:56 MST 1995"),
    ("keywords", 68, "about document drakos harvest html index latex manual\nnikos this user"),
    ("url-references", 274, "user-manual.html\nnode98.html\nnode3.html\n"),
];
/// The last attribute, separate because its text may hold braces and line feeds.
const PARTIAL_TEXT: (&str, usize, &str) = ("partial-text", 601, "About this document ...\n}\n");

fn figure() -> Vec<u8> {
    let mut out = format!("@FILE {{ {URL}\n").into_bytes();
    for (name, count, printed) in ATTRIBUTES.into_iter().chain([PARTIAL_TEXT]) {
        let filled = format!("{printed:.<count$.count$}");
        out.extend_from_slice(format!("{name}{{{count}}}:\t{filled}\n").as_bytes());
    }
    out.extend_from_slice(b"}\n");
    out
}

#[test]
fn the_figure_is_one_object_with_its_attributes_in_order() {
    let records = parse(&figure()).unwrap();
    let [record] = &records[..] else { panic!("{} records", records.len()) };
    assert_eq!((record.template.as_str(), record.url.as_str()), ("FILE", URL));
    let found: Vec<(&str, usize)> =
        record.attributes().iter().map(|it| (it.name.as_str(), it.value.len())).collect();
    let expected: Vec<(&str, usize)> =
        ATTRIBUTES.iter().chain([&PARTIAL_TEXT]).map(|(name, count, _)| (*name, *count)).collect();
    assert_eq!(found, expected);
}

#[test]
fn values_have_the_meaning_that_the_report_gives() {
    let record = parse(&figure()).unwrap().remove(0);
    // Times are decimal seconds: gathered in February 1995, to live 168 days, refreshed every 28.
    assert_eq!(record.number("Update-Time"), Some(793_962_520));
    assert_eq!(record.number("Time-to-Live"), Some(168 * 86_400));
    assert_eq!(record.number("Refresh-Rate"), Some(28 * 86_400));
    assert_eq!(record.number("File-Size"), Some(2_551));
    assert_eq!(record.text("Type").as_deref(), Some("HTML"));
    assert!(soif::digest::Md5::from_hex(record.get("MD5").unwrap()).is_some());
    assert_eq!(record.text("Author").unwrap().lines().count(), 2);
}

#[test]
fn the_figure_is_written_as_it_was_read() {
    let mut out = Vec::new();
    write_record(&mut out, &parse(&figure()).unwrap()[0]);
    assert_eq!(out, figure());
}

#[test]
fn the_figure_is_read_from_pieces_of_any_size() {
    let figure = figure();
    let whole = parse(&figure).unwrap();
    for piece in 1..figure.len() {
        let mut reader = Reader::new(Mode::Strict, soif::Limits::default());
        let mut records = Vec::new();
        for bytes in figure.chunks(piece) {
            reader.feed(bytes);
            while let Some(event) = reader.next_event().unwrap() {
                let Event::Record(record) = event else { panic!("{event:?}") };
                records.push(record.to_record());
            }
        }
        reader.finish().unwrap();
        assert_eq!(records, whole, "in pieces of {piece}");
    }
}
