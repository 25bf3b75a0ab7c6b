//! MARC records, the exchange format of libraries: a leader, a directory, and fields.
//!
//! Source: ISO 2709; MARC 21 Specifications for Record Structure, Character Sets, and Exchange Media. The
//! crosswalk for harvested MARCXML interprets the fields.
//!
//! # Differences from the standard
//!
//! * A record ends at its terminator, not by its length: lengths are wrong if characters were converted.
//!   Fields end at their terminators, too, if the directory does not fit.
//! * UTF-8 is recognized by content, whatever the leader says.

mod charset;
mod compose;

use std::borrow::Cow;

use super::marcxml;
use crate::catalog::Reading;
use crate::limit::Limit;

const RECORD_END: u8 = 0x1d;
const FIELD_END: u8 = 0x1e;
const SUBFIELD: u8 = 0x1f;
/// Length of the leader, in bytes.
const LEADER_BYTES: usize = 24;
/// Length of an entry of the directory (tag, length, start), in bytes.
const DIRECTORY_ENTRY_BYTES: usize = 12;

pub(crate) fn read(bytes: &[u8], reading: &mut Reading<'_>) {
    let mut start = 0;
    while start < bytes.len() && reading.goes_on() {
        let rest = bytes.get(start..).unwrap_or_default();
        let padding = rest.iter().take_while(|it| it.is_ascii_whitespace() || **it == 0).count();
        let rest = rest.get(padding..).unwrap_or_default();
        start += padding;
        if rest.is_empty() {
            return;
        }
        let length = memchr::memchr(RECORD_END, rest).map_or(rest.len(), |end| end + 1);
        let raw = rest.get(..length).unwrap_or_default();
        if Limit::Entry.bound() < raw.len() {
            if !reading.too_long(Limit::Entry, raw) {
                return;
            }
            start += length;
            continue;
        }
        let ended = raw.last() == Some(&RECORD_END);
        let record = if ended { Record::read(raw) } else { None };
        if record.as_ref().is_some_and(|it| it.is_cut) {
            let max = Limit::MarcFields.bound();
            let message = format!("the record at byte {start} has more than {max} fields");
            reading
                .problem(Limit::MarcFields.kind(), format!("{message}; the others were left out"));
        }
        let xml = record.and_then(|it| it.xml());
        let goes_on = match xml {
            Some(xml) => marcxml::hand_out(&xml, raw, reading, || format!("at byte {start}")),
            None => reading.broken("", || format!("at byte {start}")),
        };
        if !goes_on {
            return;
        }
        start += length;
    }
}

struct Record<'b> {
    leader: &'b [u8],
    /// Tag and content, without the terminator.
    fields: Vec<(&'b [u8], &'b [u8])>,
    is_unicode: bool,
    /// Whether it has more than `Limit::MarcFields.bound()` fields.
    is_cut: bool,
}

impl<'b> Record<'b> {
    fn read(raw: &'b [u8]) -> Option<Self> {
        let (leader, rest) = raw.split_at_checked(LEADER_BYTES)?;
        if !leader.is_ascii() {
            return None;
        }
        let (directory, data) = rest.split_at(memchr::memchr(FIELD_END, rest)?);
        let data = data.get(1..)?;
        let (entries, over) = directory.as_chunks::<DIRECTORY_ENTRY_BYTES>();
        let is_tag = |it: &[u8]| it.iter().all(u8::is_ascii_alphanumeric);
        if entries.is_empty() || !over.is_empty() {
            return None;
        }
        let mut fields = Vec::new();
        // The directory may refer to the same bytes many times.
        let mut room = 2 * raw.len();
        let mut in_order = data.split(|it| matches!(*it, FIELD_END | RECORD_END));
        for entry in entries.iter().take(Limit::MarcFields.bound()) {
            let (tag, extent) = entry.split_at_checked(3).filter(|(tag, _)| is_tag(tag))?;
            let next = in_order.next().unwrap_or_default();
            let content = field_at(extent, data).unwrap_or(next);
            room = room.checked_sub(content.len())?;
            fields.push((tag, content));
        }
        let is_declared = leader.get(9) == Some(&b'a');
        let is_unicode = is_declared || !data.is_ascii() && std::str::from_utf8(data).is_ok();
        Some(Self { leader, fields, is_unicode, is_cut: Limit::MarcFields.bound() < entries.len() })
    }

    fn text(&self, bytes: &'b [u8]) -> Cow<'b, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.is_ascii() && (self.is_unicode || !bytes.contains(&0x1b)) => {
                Cow::Borrowed(text)
            }
            _ if self.is_unicode => Cow::Owned(compose::compose(&String::from_utf8_lossy(bytes))),
            _ => Cow::Owned(charset::decode(bytes)),
        }
    }

    /// Returns the record as MARCXML, unless that is too long.
    fn xml(&self) -> Option<String> {
        let mut xml = String::from("<record xmlns=\"http://www.loc.gov/MARC21/slim\"><leader>");
        escape(&self.text(self.leader), &mut xml);
        xml.push_str("</leader>");
        for (tag, content) in &self.fields {
            if marcxml::bytes_max() < xml.len() {
                return None;
            }
            let tag = String::from_utf8_lossy(tag);
            if tag.starts_with("00") {
                xml.push_str(&format!("<controlfield tag=\"{tag}\">"));
                escape(&self.text(content), &mut xml);
                xml.push_str("</controlfield>");
                continue;
            }
            let mut parts = content.split(|it| *it == SUBFIELD);
            let indicators = parts.next().unwrap_or_default();
            let indicator = |at: usize| {
                let it = indicators.get(at).filter(|it| it.is_ascii_alphanumeric());
                it.map_or(' ', |it| char::from(*it))
            };
            let (first, second) = (indicator(0), indicator(1));
            xml.push_str(&format!("<datafield tag=\"{tag}\" ind1=\"{first}\" ind2=\"{second}\">"));
            for part in parts {
                let Some((code, value)) = part.split_first() else { continue };
                if code.is_ascii_alphanumeric() {
                    xml.push_str(&format!("<subfield code=\"{}\">", char::from(*code)));
                    escape(&self.text(value), &mut xml);
                    xml.push_str("</subfield>");
                }
            }
            xml.push_str("</datafield>");
        }
        xml.push_str("</record>");
        Some(xml)
    }
}

/// Returns the field at the extent from the directory (length, start), if a field ends there.
fn field_at<'b>(extent: &[u8], data: &'b [u8]) -> Option<&'b [u8]> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<usize>().ok();
    let (length, start) = extent.split_at_checked(4)?;
    let (length, start) = (number(length)?, number(start)?);
    let field = data.get(start..start.checked_add(length)?)?;
    let (last, content) = field.split_last()?;
    (*last == FIELD_END && !content.contains(&FIELD_END)).then_some(content)
}

fn escape(text: &str, xml: &mut String) {
    for it in text.chars() {
        match it {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            it if it.is_control() => xml.push(' '),
            it => xml.push(it),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    /// Returns a record with fields by tag; `$` stands for the subfield delimiter.
    fn marc_record(unicode: bool, fields: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut directory, mut data) = (Vec::new(), Vec::new());
        for (tag, content) in fields {
            let start = data.len();
            data.extend(content.iter().map(|it| if *it == b'$' { SUBFIELD } else { *it }));
            data.push(FIELD_END);
            directory.extend(format!("{tag}{:04}{start:05}", data.len() - start).bytes());
        }
        directory.push(FIELD_END);
        let base = LEADER_BYTES + directory.len();
        let mark = if unicode { 'a' } else { ' ' };
        let mut record =
            format!("{:05}nam {mark}22{base:05} a 4500", base + data.len() + 1).into_bytes();
        assert_eq!(record.len(), LEADER_BYTES);
        record.extend([directory, data].concat());
        record.push(RECORD_END);
        record
    }

    fn check(bytes: &[u8], expected: &[&str]) {
        assert_eq!(entries(Type::Marc, bytes), expected);
    }

    #[test]
    fn records_in_both_character_sets() {
        let first: &[(&str, &[u8])] = &[
            ("001", b"ocm1"),
            ("008", b"950101s1995    gw            000 0 ger d"),
            ("020", b"  $a0201633612 (pbk.)"),
            ("100", b"1 $aM\xe8uller, J\xe8urgen."),
            ("245", b"10$aSt\xe8obern <&> finden :$bein Buch /$cJ. M."),
            ("260", b"  $aK\xe8oln :$bVerlag,$c1995."),
            ("650", b" 0$aInformation retrieval."),
        ];
        let second: &[(&str, &[u8])] = &[
            ("001", b" ocm2 "),
            ("245", "00$aCafe\u{301}".as_bytes()),
            ("856", b"40$uhttp://h.example/2"),
        ];
        check(
            &[marc_record(false, first), b"\r\n".to_vec(), marc_record(true, second)].concat(),
            &[
                "ocm1: Title=Stöbern <&> finden : ein Buch; Author=Müller, Jürgen; \
                 Resource-Type=Book; Date=1995; Date-Source=entry; Language=de; Publisher=Verlag; \
                 Identifier=urn:isbn:0201633612; Subject=Information retrieval; \
                 Control-Number=ocm1; Place=Köln",
                "ocm2: Title=Café; Resource-Type=Book; Identifier=http://h.example/2; \
                 Control-Number=ocm2; URL-References=http://h.example/2",
            ],
        );
    }

    #[test]
    fn wrong_lengths_are_ignored() {
        let mut record = marc_record(true, &[("001", b"x1"), ("245", b"00$aTitle")]);
        record[0..5].copy_from_slice(b"99999");
        // The second field's length.
        record[39..43].copy_from_slice(b"9999");
        check(&record, &["x1: Title=Title; Resource-Type=Book; Control-Number=x1"]);
    }

    #[test]
    fn a_broken_record_affects_no_other() {
        let good = marc_record(true, &[("001", b"x1"), ("245", b"00$aTitle")]);
        let bytes = [b"no record\x1d".to_vec(), good.clone(), good[..30].to_vec()].concat();
        check(
            &bytes,
            &["broken", "x1: Title=Title; Resource-Type=Book; Control-Number=x1", "broken"],
        );
        assert_eq!(
            render("a.mrc", Type::Marc, &bytes),
            "Title: a.mrc\nDescription: Library catalog with 3 entries\nEntries: 3\nTitles: Title\n\
             Partial-Text: Title. Book. x1\n\
             ! broken: 2 of 3 entries cannot be parsed, the first at byte 0"
        );
    }

    #[test]
    fn hostile_files_end() {
        render("a.mrc", Type::Marc, &[RECORD_END; 300_000]);
        render("a.mrc", Type::Marc, &[b'0'; 300_000]);
        let many: Vec<(&str, &[u8])> = vec![("245", b"00$a$a$a$a"); 3_000];
        let seen = render("a.mrc", Type::Marc, &marc_record(true, &many));
        let problem =
            "! limit: the record at byte 0 has more than 2000 fields; the others were left out";
        assert!(seen.ends_with(problem), "{seen}");
        let cut = [marc_record(true, &[("245", b"x")]), b"99999".to_vec()].concat();
        render("a.mrc", Type::Marc, &cut);
        // A directory that refers to the same bytes many times.
        let data = [vec![b'x'; 9_000], vec![FIELD_END, RECORD_END]].concat();
        let directory = "245900100000".repeat(2_000) + "\u{1e}";
        let leader = b"00000nam a2200000 a 4500";
        check(&[&leader[..], directory.as_bytes(), &data].concat(), &["broken"]);
    }

    proptest! {
        #[test]
        fn records_are_read_as_written(list in prop::collection::vec(
            ("[a-z]{1,3}[0-9]{1,9}", "[A-Za-zäö&<']{1,8}( [A-Za-zäö&<']{1,8}){0,3}", prop::collection::vec("[A-Z][a-zé]{3,7}, [A-Z][a-z]{1,2}", 0..3)), 0..6))
        {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for (key, title, authors) in &list {
                let title_field = format!("00$a{title}").into_bytes();
                let author_fields: Vec<Vec<u8>> = authors.iter().map(|it| format!("1 $a{it}").into_bytes()).collect();
                let mut fields: Vec<(&str, &[u8])> = vec![("001", key.as_bytes()), ("245", &title_field)];
                fields.extend(author_fields.iter().map(|it| ("700", it.as_slice())));
                bytes.extend(marc_record(true, &fields));
                let mut lines: Vec<&str> = Vec::new();
                authors.iter().for_each(|it| if !lines.contains(&it.as_str()) { lines.push(it) });
                let authors = if lines.is_empty() { String::new() } else { format!("Author={}; ", lines.join("|")) };
                expected.push(format!("{key}: Title={title}; {authors}Resource-Type=Book; Control-Number={key}"));
            }
            prop_assert_eq!(entries(Type::Marc, &bytes), expected);
        }

        #[test]
        fn any_bytes_give_a_record(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..100_usize, byte in any::<u8>()) {
            render("a.mrc", Type::Marc, &bytes);
            let mut record = marc_record(false, &[("001", b"x1"), ("008", b"950101"), ("245", b"00$aTi\xe8tle$b")]);
            if let Some(it) = record.get_mut(at) { *it = byte; }
            render("a.mrc", Type::Marc, &record);
        }
    }
}
