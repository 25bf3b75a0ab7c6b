//! RIS, the exchange format of reference managers: one line for each field, from `TY` to `ER`.
//!
//! Source: RIS Format Specifications (Research Information Systems), and more tags of today's programs.
//!
//! A record without an end ends before the next one.

use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::names::NameTable;

/// Tags, and the attributes that they become.
static ATTRIBUTES: NameTable = NameTable::of(
    "TI:Title T1:Title CT:Title TT:Alternative-Title ST:Alternative-Title AU:Author A1:Author \
     A2:Contributor A3:Contributor A4:Contributor ED:Contributor AB:Abstract N2:Abstract \
     N1:Note T2:Source JF:Source JO:Source JA:Source J1:Source J2:Source BT:Source T3:Series \
     KW:Subject PB:Publisher CY:Place PP:Place LA:Language VL:Volume IS:Issue ET:Edition \
     AN:Accession-Number UR:URL-References L1:URL-References L2:URL-References \
     LK:URL-References",
);

/// Returns the name of a type; an unknown one stays as it is.
fn type_name(r#type: &str) -> &str {
    match r#type {
        "JOUR" => "Journal Article",
        "JFULL" => "Journal",
        "MGZN" => "Magazine Article",
        "NEWS" => "Newspaper Article",
        "BOOK" | "EBOOK" | "EDBOOK" => "Book",
        "CHAP" | "ECHAP" => "Book Chapter",
        "CONF" => "Proceedings",
        "CPAPER" => "Conference Paper",
        "THES" => "Thesis",
        "RPRT" => "Report",
        "ELEC" | "BLOG" => "Web Page",
        "COMP" => "Software",
        "DATA" => "Dataset",
        "PAT" => "Patent",
        "STAND" => "Standard",
        "MAP" => "Map",
        "VIDEO" => "Video",
        "SOUND" => "Recording",
        "UNPB" => "Manuscript",
        "GEN" => "Other",
        other => other,
    }
}

/// One record as written: its start, and its fields in order.
#[derive(Default)]
struct RisRecord<'t> {
    start: usize,
    fields: Vec<(&'t str, String)>,
    bytes: usize,
}

pub(crate) fn read(text: &str, reading: &mut Reading<'_>) {
    let mut open: Option<RisRecord<'_>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if !reading.goes_on() {
            return;
        }
        let ended = match (field(line), &mut open) {
            (Some(("TY", value)), _) => {
                let fields = vec![("TY", value.to_owned())];
                open.replace(RisRecord { start, fields, bytes: 0 }).map(|it| (it, start))
            }
            (Some(("ER", _)), _) => open.take().map(|it| (it, at)),
            (Some((tag, value)), Some(record)) => {
                record.bytes += line.len();
                if record.bytes <= Limit::Entry.bound() {
                    record.fields.push((tag, value.to_owned()));
                }
                None
            }
            (None, Some(record)) => {
                record.continue_field(line.trim());
                None
            }
            (_, None) => None,
        };
        if let Some((record, end)) = ended
            && !record.hand_out(text, end, reading)
        {
            return;
        }
    }
    if let Some(record) = open {
        record.hand_out(text, text.len(), reading);
    }
}

/// Splits a line like `TI  - The title`: two characters, spaces, a hyphen, the value.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches('\u{feff}');
    let (tag, rest) = line.split_at_checked(2)?;
    let mut bytes = tag.bytes();
    let is_tag = bytes.next()?.is_ascii_uppercase()
        && bytes.all(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
    let value = rest.strip_prefix(' ')?.trim_start_matches(' ').strip_prefix('-')?;
    is_tag.then(|| (tag, value.trim()))
}

impl RisRecord<'_> {
    /// Appends a line without a tag to the field before it.
    fn continue_field(&mut self, line: &str) {
        self.bytes += line.len();
        if let Some((_, value)) =
            self.fields.last_mut().filter(|_| self.bytes <= Limit::Entry.bound())
        {
            value.push(' ');
            value.push_str(line);
        }
    }

    fn first(&self, tag: &str) -> &str {
        self.fields.iter().find(|(it, _)| *it == tag).map_or("", |(_, value)| value)
    }

    fn hand_out(&self, text: &str, end: usize, reading: &mut Reading<'_>) -> bool {
        let raw = text.get(self.start..end).unwrap_or_default();
        if Limit::Entry.bound() < raw.len() {
            return reading.too_long(Limit::Entry, raw.as_bytes());
        }
        let mut fields = EntryFields::default();
        fields.put("Resource-Type", type_name(self.first("TY")));
        // `DA` has the day; the others often have only the year.
        let dates = ["DA", "PY", "Y1"].map(|tag| self.first(tag));
        fields.put("Date", dates.into_iter().find(|it| !it.is_empty()).unwrap_or_default());
        for (tag, value) in &self.fields {
            match *tag {
                "DO" => fields.put_identifier("doi", value),
                "SN" => fields.put_identifier(standard_number(value), value),
                tag => {
                    if let Some(name) = ATTRIBUTES.get(tag) {
                        fields.put(name, value);
                    }
                }
            }
        }
        let pages = [self.first("SP"), self.first("EP")];
        let pages: Vec<&str> = pages.into_iter().filter(|it| !it.is_empty()).collect();
        fields.put("Page-Range", &pages.join("-"));
        let keys = ["ID", "DO", "AN"].map(|tag| self.first(tag));
        let key = keys.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        reading.entry(key, raw.as_bytes(), fields)
    }
}

/// Returns the scheme of a number: eight digits are a serial's, others a book's.
fn standard_number(value: &str) -> &'static str {
    let digits = value.bytes().filter(|it| it.is_ascii_digit() || *it == b'X').count();
    if digits == 8 { "issn" } else { "isbn" }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::Ris, text.as_bytes()), expected);
    }

    #[test]
    fn records_of_reference_managers() {
        check(
            "\u{feff}TY  - JOUR\r\nID  - bowman95\r\nAU  - Bowman, C. Mic\r\nAU  - Danzig, Peter B.\r\n\
             TI  - The Harvest Information\r\n Discovery System\r\nJO  - Computer Networks\r\n\
             PY  - 1995/12//Winter\r\nDA  - 1995/12/01/\r\nVL  - 28\r\nSP  - 119\r\nEP  - 125\r\n\
             SN  - 0169-7552\r\nDO  - https://doi.org/10.1016/0169-7552(95)00098-5\r\nKW  - indexing\r\n\
             KW  - caching\r\nLA  - English\r\nUR  - http://h.example/paper\r\nUR  - javascript:x\r\n\
             PB  - Elsevier\r\nER  - \r\n\r\nTY  - BOOK\r\nT1  - A second\r\nY1  - 1984\r\n\
             SN  - 0-201-13447-0\r\nER  -\r\n",
            &[
                "bowman95: Title=The Harvest Information Discovery System; \
                 Author=Bowman, C. Mic|Danzig, Peter B.; Resource-Type=Journal Article; \
                 Date=1995-12-01; Date-Source=entry; Source=Computer Networks; Volume=28; \
                 Identifier=urn:issn:0169-7552|doi:10.1016/0169-7552(95)00098-5; \
                 Subject=indexing|caching; Language=en; Publisher=Elsevier; Page-Range=119-125; \
                 URL-References=http://h.example/paper",
                ": Title=A second; Resource-Type=Book; Date=1984; Date-Source=entry; Identifier=urn:isbn:0-201-13447-0",
            ],
        );
    }

    #[test]
    fn a_record_ends_where_the_next_begins() {
        check(
            "TI  - lost\nTY  - XYZ\nTI  - One\nTY  - GEN\nTI  - Two",
            &[": Title=One; Resource-Type=XYZ", ": Title=Two; Resource-Type=Other"],
        );
        check("no records", &[]);
    }

    #[test]
    fn the_list_s_own_record() {
        assert_eq!(
            render(
                "a.ris",
                Type::Ris,
                b"TY  - GEN\nTI  - One\nAU  - Ann\nPY  - 1994\nER  - \n\
                  TY  - GEN\nTI  - Two\nPY  - 1996\nKW  - word\nER  - \n"
            ),
            "Title: a.ris\nAuthor: Ann\nDescription: Bibliography with 2 entries of 1994-1996\n\
             Entries: 2\nYears: 1994-1996\nTitles: One | Two\n\
             Partial-Text: One / Ann (1994). Other | Two (1996). Other. word"
        );
    }

    #[test]
    fn a_too_long_record_is_left_out() {
        let long = format!(
            "TY  - GEN\nTI  - One\n{}ER  - \nTY  - GEN\nTI  - Two\n",
            "N1  - x\n".repeat(50_000)
        );
        let problem = "! limit: has more than 262144 bytes in an entry; the rest was left out";
        check(&long, &["broken", ": Title=Two; Resource-Type=Other", problem]);
        render("a.ris", Type::Ris, "TY  - \n".repeat(300_000).as_bytes());
    }

    proptest! {
        #[test]
        fn records_are_read_as_written(list in prop::collection::vec(
            ("[a-zA-Z0-9:._/-]{1,12}", "[!-~é]{1,8}( [!-~é]{1,8}){0,3}", prop::collection::vec("[A-Z][a-zé]{1,7}, [A-Z]\\.", 0..3), 1000..2999_u32), 0..6))
        {
            let mut text = String::new();
            let mut expected = Vec::new();
            for (key, title, authors, year) in &list {
                let lines: String = authors.iter().map(|it| format!("AU  - {it}\n")).collect();
                text.push_str(&format!("TY  - BOOK\nID  - {key}\nTI  - {title}\n{lines}PY  - {year}\nER  - \n\n"));
                let authors = if authors.is_empty() { String::new() } else { format!("Author={}; ", authors.join("|")) };
                let date = format!("Date={year}; Date-Source=entry");
                expected.push(format!("{key}: Title={title}; {authors}Resource-Type=Book; {date}"));
            }
            prop_assert_eq!(entries(Type::Ris, text.as_bytes()), expected);
        }

        #[test]
        fn any_bytes_give_a_record(text in "((TY|ER|TI|AU|PY|é) {0,2}-? ?[a-z0-9/é]{0,9}\r?\n?){0,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a.ris", Type::Ris, text.as_bytes());
            render("a.ris", Type::Ris, &bytes);
        }
    }
}
