//! Tests of the reader on streams that are whole, in pieces, damaged or over a limit.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use proptest::prelude::*;
use soif::{Event, Limits, Mode, ParseError, Reader, Record, Section, parse, write_record};

/// Reads a stream; returns its events in short, then its problems or its error.
fn read<'a>(mode: Mode, limits: Limits, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = Reader::new(mode, limits);
    let mut seen = Vec::new();
    let outcome = (|| {
        for piece in pieces {
            reader.feed(piece);
            drain(&mut reader, &mut seen)?;
        }
        reader.finish()?;
        drain(&mut reader, &mut seen)
    })();
    seen.extend(outcome.err().map(|it: ParseError| it.to_string()));
    seen.extend(reader.problems().iter().map(ParseError::to_string));
    seen
}

fn drain(reader: &mut Reader, seen: &mut Vec<String>) -> Result<(), ParseError> {
    while let Some(event) = reader.next_event()? {
        seen.push(match event {
            Event::Open(section) => format!("<{}", section.name()),
            Event::Close(section) => format!("{}>", section.name()),
            Event::Record(record) => {
                let attributes = record.attributes().map(|(name, value)| {
                    format!(" {name}={}", String::from_utf8_lossy(value).escape_debug())
                });
                let head = format!("{} {}", record.template(), record.url());
                std::iter::once(head).chain(attributes).collect()
            }
        });
    }
    Ok(())
}

/// Checks `stream` in pieces of every size.
fn check_within(mode: Mode, limits: Limits, stream: &[u8], expected: &[&str]) {
    for piece in 1..=stream.len().max(1) {
        let seen = read(mode, limits, stream.chunks(piece));
        assert_eq!(seen, expected, "in pieces of {piece}");
    }
}

fn strict(stream: &[u8], expected: &[&str]) {
    check_within(Mode::Strict, Limits::default(), stream, expected);
}

fn lenient(stream: &[u8], expected: &[&str]) {
    check_within(Mode::Lenient, Limits::default(), stream, expected);
}

fn both(stream: &[u8], expected: &[&str]) {
    strict(stream, expected);
    lenient(stream, expected);
}

#[test]
fn a_value_may_hold_anything() {
    both(
        b"@FILE { http://a/\nbody{26}:\ta\n}\n\n@FILE { http://b/\n}\n\0\nTitle{0}:\t\ntitle{1}:\tx\n}\n",
        &["FILE http://a/ body=a\\n}\\n\\n@FILE { http://b/\\n}\\n\\0 Title= title=x"],
    );
    both(b"", &[]);
    both(b" \n\n", &[]);
    both(b"@FILE { -\n}", &["FILE -"]);
}

#[test]
fn sections_come_in_one_line_or_in_more() {
    both(
        b"@DELETE { }\n@REFRESH {}\n@UPDATE {\n@FILE { a\n}\n\n@FILE { b\nx{1}:\ty\n}\n}\n@FILE { c\n}\n",
        &[
            "<DELETE", "DELETE>", "<REFRESH", "REFRESH>", "<UPDATE", "FILE a", "FILE b x=y", "UPDATE>",
            "FILE c",
        ],
    );
    both(b"@DELETE { @FILE { a\n} }", &["<DELETE", "FILE a", "DELETE>"]);
    both(b"@DELETE {\n}\n@DELETE { }", &["<DELETE", "DELETE>", "<DELETE", "DELETE>"]);
}

#[test]
fn a_template_may_have_the_name_of_a_section() {
    both(b"@UPDATE { http://a/\nx{1}:\ty\n}\n", &["UPDATE http://a/ x=y"]);
}

#[test]
fn strict_stops_at_the_first_damage_and_says_where() {
    strict(b"hello\n", &["text outside an object at byte 0"]);
    strict(b"\n}\n", &["closing brace outside an object at byte 1"]);
    strict(b"@ { a\n}\n", &["bad template header, not `@TYPE { url` at byte 0"]);
    strict(b"@FILE\n{ a\n}\n", &["bad template header, not `@TYPE { url` at byte 0"]);
    strict(b"@FILE { }\n", &["bad url, white space must be percent-encoded at byte 0"]);
    strict(b"@FILE { \n}\n", &["bad url, white space must be percent-encoded at byte 0"]);
    strict(
        b"@FILE { a\n}\n@FILE { a b\n}\n",
        &["FILE a", "bad url, white space must be percent-encoded at byte 12"],
    );
    strict(b"@FILE { a\n b{1}:\tx\n}\n", &["FILE a b=x"]);
    strict(b"@FILE { a\nb c{1}:\tx\n}\n", &["bad attribute name at byte 10"]);
    strict(b"@FILE { a\nb{-1}:\tx\n}\n", &["bad byte count, not `name{size}:` at byte 10"]);
    strict(b"@FILE { a\nb{}:\tx\n}\n", &["bad byte count, not `name{size}:` at byte 10"]);
    strict(
        b"@FILE { a\nb{99999999999999999999}:\tx\n}\n",
        &["bad byte count, not `name{size}:` at byte 10"],
    );
    strict(b"@FILE { a\nb{1}: x\n}\n", &["no colon and tab before the value at byte 10"]);
    strict(
        b"@FILE { a\nb{2}:\tabc\n}\n",
        &["value does not end where its byte count says at byte 10"],
    );
    strict(b"@FILE { a\nb{99}:\tabc\n}\n", &["stream ends inside an object at byte 0"]);
    strict(b"@FILE { a\n@FILE { b\n}\n", &["object not closed before the next one at byte 10"]);
    strict(b"@UPDATE {\n@DELETE { }\n}\n", &["<UPDATE", "section inside a section at byte 10"]);
    strict(b"@UPDATE {\n", &["<UPDATE", "stream ends inside an object at byte 10"]);
    strict(b"@FILE { a\r\n}\r\n", &["bad url, white space must be percent-encoded at byte 0"]);
}

#[test]
fn lenient_takes_the_quirks_of_old_writers() {
    lenient(b"@FILE { a\r\nb{1}:\tx\r\n\r\n}\r\n", &["FILE a b=x"]);
    lenient(
        b"@FILE { a\nb{1}: x\n}\n",
        &["FILE a b=x", "no colon and tab before the value at byte 10"],
    );
    lenient(
        b"@FILE { a b\xff\n}\n@FILE { }\n@FILE { c }\n",
        &[
            "FILE a%20b%FF",
            "FILE -",
            "FILE c",
            "bad url, white space must be percent-encoded at byte 0",
            "bad url, white space must be percent-encoded at byte 15",
        ],
    );
}

#[test]
fn lenient_goes_on_at_the_next_object() {
    lenient(
        b"junk\n@FILE { a\n}\n}\n@FILE { b\nx{2}:\tabc\n}\n@FILE { c\n}\n",
        &[
            "FILE a",
            "FILE c",
            "text outside an object at byte 0",
            "closing brace outside an object at byte 17",
            "value does not end where its byte count says at byte 29",
        ],
    );
    // A too large byte count swallows the following objects; the end of the stream returns them.
    lenient(
        b"@FILE { a\nx{99}:\tabc\n}\n@FILE { b\n}\n@FI\n@FILE {",
        &[
            "FILE b",
            "stream ends inside an object at byte 0",
            "bad template header, not `@TYPE { url` at byte 35",
            "stream ends inside an object at byte 39",
        ],
    );
    lenient(
        b"@FILE { a\nx{1}:\ty\n@FILE { b\n}\n",
        &["FILE b", "object not closed before the next one at byte 18"],
    );
}

#[test]
fn lenient_keeps_sections_balanced() {
    lenient(
        b"@UPDATE {\n@FILE { a\nx{9}:\ty\n}\n}\n@DELETE { }\n",
        &[
            "<UPDATE",
            "UPDATE>",
            "<DELETE",
            "DELETE>",
            "value does not end where its byte count says at byte 20",
        ],
    );
    lenient(
        b"@UPDATE {\n@DELETE {\n@FILE { a\n}\n",
        &[
            "<UPDATE",
            "UPDATE>",
            "<DELETE",
            "FILE a",
            "DELETE>",
            "section inside a section at byte 10",
            "stream ends inside an object at byte 32",
        ],
    );
}

#[test]
fn limits_hold() {
    let limits = Limits {
        name_bytes_max: 4,
        url_bytes_max: 8,
        value_bytes_max: 10,
        attributes_max: 2,
        record_bytes_max: 60,
    };
    let check = |stream: &[u8], expected: &str| {
        check_within(Mode::Strict, limits, stream, &[expected]);
        let lost = format!("{}\n@FILE {{ b\n}}\n", String::from_utf8_lossy(stream));
        check_within(Mode::Lenient, limits, lost.as_bytes(), &["FILE b", expected]);
    };
    check_within(
        Mode::Strict,
        limits,
        b"@FILE { 12345678\nname{10}:\t1234567890\n}\n",
        &["FILE 12345678 name=1234567890"],
    );
    check(b"@FILES { a\n}\n", "bad template header, not `@TYPE { url` at byte 0");
    check(b"@FILE { 123456789\n}\n", "url longer than the limit at byte 0");
    check(b"@FILE { a\nnames{1}:\tx\n", "attribute name longer than the limit at byte 10");
    check(b"@FILE { a\nx{11}:\t12345678901\n", "value longer than the limit at byte 10");
    check(b"@FILE { a\nx{0}:\t\nx{0}:\t\nx{0}:\t\n", "more attributes than the limit at byte 24");
    let spaced = [b"@FILE { a\n".as_slice(), &[b' '; 50], b"x{10}:\t1234567890\n"].concat();
    check(&spaced, "record longer than the limit at byte 60");
    let blank = [b"@FILE { a\n".as_slice(), &[b' '; 49], b"}\n"].concat();
    check_within(Mode::Strict, limits, &blank, &["FILE a"]);
    let blank = [b"@FILE { a\n".as_slice(), &[b' '; 80], b"}\n"].concat();
    check(&blank, "record longer than the limit at byte 60");
}

#[test]
fn a_followed_stream_needs_no_memory_for_records_already_read() {
    let mut record = Record::new("FILE", "http://a/");
    record.push("body", vec![b'x'; 1000]);
    let mut bytes = Vec::new();
    write_record(&mut bytes, &record);
    let mut reader = Reader::new(Mode::Strict, Limits::default());
    for round in 1..=1000_u64 {
        reader.feed(&bytes);
        let Some(Event::Record(read)) = reader.next_event().unwrap() else { panic!("no record") };
        assert_eq!(read.to_record(), record);
        assert!(reader.next_event().unwrap().is_none());
        assert_eq!(reader.offset(), round * bytes.len() as u64);
    }
    let size = format!("{reader:?}").len();
    assert!(size < 20 * bytes.len(), "{size} bytes of debug output for a buffer of one record");
}

#[test]
fn a_record_has_its_offset_and_source() {
    let stream = b"@DELETE { }\n@UPDATE {\n@FILE { a\nx{1}:\ty\n}\n}\n";
    let mut records = Vec::new();
    Reader::over(stream, Mode::Strict, Limits::default(), |event| {
        if let Event::Record(record) = event {
            records.push((record.offset(), record.source().to_vec()));
        }
    })
    .unwrap();
    assert_eq!(records, [(22, b"@FILE { a\nx{1}:\ty\n}".to_vec())]);
}

/// Returns records with names and URLs that SOIF can carry; values of any bytes, often like SOIF.
fn record() -> impl Strategy<Value = Record> {
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[@{}:\t\na0 -]{0,30}".prop_map(String::into_bytes),
        Just(b"\n@FILE { x\ny{1}:\tz\n}\n".to_vec()),
    ];
    let attributes = prop::collection::vec(("[A-Za-z][A-Za-z0-9é.:-]{0,12}", value), 0..6);
    ("[A-Z]{1,8}", "[!-?A-|~é][!-~é]{0,30}", attributes).prop_map(|(template, url, attributes)| {
        let mut record = Record::new(template, url);
        for (name, value) in attributes {
            record.push(name, value);
        }
        record
    })
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let section = prop_oneof![Just(Section::Delete), Just(Section::Refresh), Just(Section::Update)];
    let part = (prop::option::of(section), prop::collection::vec(record(), 0..4));
    prop::collection::vec(part, 0..4).prop_map(|parts| {
        let mut out = Vec::new();
        for (section, records) in parts {
            match section {
                Some(section) => {
                    soif::open_section(&mut out, section);
                    records.iter().for_each(|it| write_record(&mut out, it));
                    soif::close_section(&mut out);
                }
                None => records.iter().for_each(|it| write_record(&mut out, it)),
            }
        }
        out
    })
}

fn split<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|it| it.index(stream.len() + 1)).collect();
    at.extend([0, stream.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn written_records_read_back_equal(records in prop::collection::vec(record(), 0..6)) {
        let mut out = Vec::new();
        records.iter().for_each(|it| write_record(&mut out, it));
        let read = parse(&out).unwrap();
        prop_assert_eq!(&read, &records);
        let mut again = Vec::new();
        read.iter().for_each(|it| write_record(&mut again, it));
        prop_assert_eq!(again, out);
    }

    #[test]
    fn any_name_and_url_give_a_stream_that_can_be_read(
        template in any::<String>(), url in any::<String>(), name in any::<String>(),
        value in any::<Vec<u8>>(),
    ) {
        let mut record = Record::new(template, url);
        record.push(name, value.as_slice());
        let mut out = Vec::new();
        write_record(&mut out, &record);
        let read = parse(&out).unwrap();
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!(&read[0].attributes()[0].value, &value);
    }

    #[test]
    fn json_loses_nothing(record in record()) {
        let json = soif::json::to_json(&record).to_string();
        let back = soif::json::from_json(&serde_json::from_str(&json).unwrap()).unwrap();
        prop_assert_eq!(back, record);
    }

    #[test]
    fn every_split_gives_the_same_events(
        stream in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        for mode in [Mode::Strict, Mode::Lenient] {
            let whole = read(mode, Limits::default(), std::iter::once(stream.as_slice()));
            let pieces = read(mode, Limits::default(), split(&stream, &cuts).into_iter());
            prop_assert_eq!(whole, pieces);
        }
    }

    /// Some bytes are replaced, and the end is cut off.
    #[test]
    fn every_split_of_a_damaged_stream_gives_the_same_events(
        mut stream in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        flips in prop::collection::vec((any::<prop::sample::Index>(), "[@{}:\t\nA09 \r-]"), 0..4),
        keep in any::<prop::sample::Index>(),
    ) {
        for (at, byte) in flips {
            if !stream.is_empty() {
                let at = at.index(stream.len());
                stream[at] = byte.as_bytes()[0];
            }
        }
        stream.truncate(keep.index(stream.len() + 1));
        let limits = Limits { name_bytes_max: 9, url_bytes_max: 20, record_bytes_max: 150, ..Limits::default() };
        for (mode, limits) in [
            (Mode::Strict, Limits::default()),
            (Mode::Lenient, Limits::default()),
            (Mode::Strict, limits),
            (Mode::Lenient, limits),
        ] {
            let whole = read(mode, limits, std::iter::once(stream.as_slice()));
            let pieces = read(mode, limits, split(&stream, &cuts).into_iter());
            prop_assert_eq!(whole, pieces);
        }
    }

    /// Undamaged streams have no problems, and both modes see the same events.
    #[test]
    fn lenient_reads_an_undamaged_stream_as_strict_does(stream in stream()) {
        let seen = |mode| read(mode, Limits::default(), std::iter::once(stream.as_slice()));
        prop_assert_eq!(seen(Mode::Lenient), seen(Mode::Strict));
    }
}
