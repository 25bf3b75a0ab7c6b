//! SOIF: summaries from other sources. Each describes one thing, and so becomes an entry.
//!
//! Source: the user's manual, appendix on SOIF; read by the crate `soif`, leniently.
//!
//! # Differences from the paper
//!
//! * Attributes that only a gatherer may set (gatherer, checksum, lifetime) are not taken from a file, since
//!   anybody can write one. Summaries within summaries are left out, too.

use soif::{Event, Limits, Mode, Reader, RecordRef};

use crate::catalog::{EntryFields, Reading};
use crate::object::ProblemKind;
use crate::text::decode;

/// Bytes fed to the reader at a time, between two checks of the time limit.
const PIECE_BYTES: usize = 64 * 1024;
/// Limits beyond which records are refused; [`crate::catalog`] has the limits on their content.
const LIMITS: Limits = Limits {
    name_bytes_max: 256,
    url_bytes_max: 4 * 1024,
    value_bytes_max: 1024 * 1024,
    attributes_max: 1_000,
    record_bytes_max: 4 * 1024 * 1024,
};

/// Hands out the summaries of a stream, in sections and outside of them alike.
pub(crate) fn read(bytes: &[u8], reading: &mut Reading<'_>) {
    let mut reader = Reader::new(Mode::Lenient, LIMITS);
    for piece in bytes.chunks(PIECE_BYTES) {
        reader.feed(piece);
        loop {
            match reader.next_event() {
                Ok(Some(Event::Record(record))) => {
                    if !hand_out(&record, reading) {
                        return;
                    }
                }
                Ok(Some(Event::Open(_) | Event::Close(_))) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if !reading.goes_on() {
            return;
        }
    }
    // A lenient reader reports all its errors as problems.
    let _ = reader.finish();
    let problems = reader.problems_total();
    if let Some(first) = reader.problems().first() {
        let message = format!("has {problems} flaws, the first: {first}");
        reading.problem(ProblemKind::Broken, message);
    }
}

fn hand_out(record: &RecordRef<'_>, reading: &mut Reading<'_>) -> bool {
    let url = record.url();
    let mut fields = EntryFields::default();
    fields.put("Template-Type", record.template());
    for (name, value) in record.attributes() {
        let value = decode(value, None);
        match name.to_ascii_lowercase().as_str() {
            "title" => fields.put("Title", &value),
            "author" => value.lines().for_each(|it| fields.put("Author", it)),
            "description" => fields.put("Description", &value),
            "abstract" => value.lines().for_each(|it| fields.put("Abstract", it)),
            "type" => fields.put("Resource-Type", &value),
            "keywords" | "partial-text" | "full-text" => fields.put_text(&value),
            "url-references" => value.lines().for_each(|it| fields.put("URL-References", it)),
            _ => value.lines().for_each(|it| fields.put_foreign("", name, it)),
        }
    }
    if url != soif::NO_URL {
        fields.put("URL-References", url);
    }
    let key = if url == soif::NO_URL { "" } else { url };
    reading.entry(key, record.source(), fields)
}

#[cfg(test)]
mod tests {
    use ::soif::{Record, write_record};
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn stream(records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::new();
        records.iter().for_each(|it| write_record(&mut bytes, it));
        bytes
    }

    #[test]
    fn reserved_attributes_are_left_out() {
        let mut record = Record::new("FILE", "ftp://h.example/a.txt");
        for (name, value) in [
            ("Title", "A file"),
            ("Author", "Ann\nBo"),
            ("Time-to-Live", "999999999"),
            ("Gatherer-Id", "evil"),
            ("MD5", "00"),
            ("type", "Text"),
            ("Nested-Filename", "x"),
            ("Update-Time", "1"),
            ("Embed<1>-Title", "inner"),
            ("Topic", "one\ntwo"),
            ("Partial-Text", "words"),
        ] {
            record.push(name, value);
        }
        let bytes = stream(&[record, Record::new("USER", "-")]);
        assert_eq!(
            entries(Type::Soif, &bytes),
            [
                "ftp://h.example/a.txt: Title=A file; Author=Ann|Bo; Template-Type=FILE; \
                 Resource-Type=Text; Topic=one|two; URL-References=ftp://h.example/a.txt",
                ": Template-Type=USER",
            ]
        );
        assert_eq!(
            render("a.soif", Type::Soif, &bytes),
            "Title: a.soif\nAuthor: Ann | Bo\nDescription: Summaries with 2 entries\nEntries: 2\n\
             Titles: A file\n\
             Partial-Text: A file / Ann; Bo. FILE. Text. one two. ftp://h.example/a.txt | USER"
        );
    }

    #[test]
    fn damage_affects_no_other_record() {
        let good = Record::new("FILE", "http://h.example/1");
        let bytes =
            [&b"@FILE { http://h.example/0\nTitle{99999"[..], b"\n}\n", &stream(&[good])].concat();
        let seen = entries(Type::Soif, &bytes);
        assert!(seen.iter().any(|it| it.starts_with("! broken: has ")), "{seen:?}");
        render("a", Type::Soif, "@FILE { x\n".repeat(100_000).as_bytes());
        render("a", Type::Soif, "{".repeat(300_000).as_bytes());
    }

    proptest! {
        #[test]
        fn records_are_read_as_written(list in prop::collection::vec(
            ("[a-z0-9/]{1,12}", "[!-~é]{1,8}( [!-~é]{1,8}){0,3}", prop::collection::vec("[!-~é]{1,9}", 0..3)), 0..6))
        {
            let (mut records, mut expected) = (Vec::new(), Vec::new());
            for (path, title, topics) in &list {
                let url = format!("http://h.example/{path}");
                let mut record = Record::new("FILE", url.as_str());
                record.push("Title", title.as_str());
                let mut lines: Vec<&str> = Vec::new();
                topics.iter().for_each(|it| if !lines.contains(&it.as_str()) { lines.push(it) });
                if !lines.is_empty() { record.push("Topic", lines.join("\n")); }
                records.push(record);
                let topics = if lines.is_empty() { String::new() } else { format!("; Topic={}", lines.join("|")) };
                expected.push(format!("{url}: Title={title}; Template-Type=FILE{topics}; URL-References={url}"));
            }
            prop_assert_eq!(entries(Type::Soif, &stream(&records)), expected);
        }

        #[test]
        fn any_bytes_give_a_record(text in "(@FILE \\{ http://h/1\n|Title\\{3\\}:\tabc\n|\\}\n|@|x|é|\n){0,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a", Type::Soif, text.as_bytes());
            render("a", Type::Soif, &bytes);
        }
    }
}
