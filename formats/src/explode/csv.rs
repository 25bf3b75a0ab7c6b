//! Tables as catalogs: each row is a thing, for sites that ask for it (`explode = ["CSV"]`).
//!
//! Source: RFC 4180; besides commas, semicolons and tabs separate fields. The first row names the
//! columns. Columns in [`ATTRIBUTES`] become attributes that all records have, others `Column-` and
//! their name. A row's key is the value of its key column (`id`, `doi`, `url` …), or else its
//! number, counted without the header.

use csv::ByteRecord;

use crate::Input;
use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::names::NameTable;
use crate::office::table;
use crate::text::decode;

/// Length of the part that shows the separator, in bytes.
const HEAD_BYTES: usize = 4 * 1024;
/// Longest name of a column, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Columns in lower case, with hyphens for spaces and underscores, and the attributes that they become.
static ATTRIBUTES: NameTable = NameTable::of(
    "title:Title name:Title author:Author authors:Author creator:Author creators:Author \
     contributor:Contributor editor:Contributor date:Date year:Date publication-date:Date \
     publication-year:Date published:Date description:Description summary:Description \
     abstract:Abstract keywords:Subject subject:Subject subjects:Subject tags:Subject \
     language:Language publisher:Publisher journal:Source source:Source license:License \
     rights:Rights version:Version format:Format url:URL-References link:URL-References \
     doi:doi isbn:isbn issn:issn",
);

/// Columns that hold a key, the best first.
const KEYS: &[&str] = &["id", "identifier", "key", "doi", "isbn", "url", "link"];

pub(super) fn read(input: &Input<'_>, reading: &mut Reading<'_>) {
    let bytes = input.head(Limit::List.bound());
    if bytes.len() < input.object.bytes.len() {
        reading.cut(Limit::List.cut());
    }
    let text = decode(bytes, None);
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = table::reader(text, separator(text));
    let mut row = ByteRecord::new();
    let Some(columns) = columns(&mut reader, &mut row) else { return };
    let mut start = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
    let mut number = 0;
    while reading.goes_on() && reader.read_byte_record(&mut row).unwrap_or(false) {
        number += 1;
        let end = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
        let raw = text.as_bytes().get(start..end).unwrap_or_default();
        start = end;
        let goes_on = if Limit::Entry.bound() < raw.len() {
            reading.problem(Limit::Entry.kind(), format!("row {number} is too long for a record"));
            reading.goes_on()
        } else {
            let (key, fields) = entry(&columns, &row);
            let key = if key.is_empty() { number.to_string() } else { key };
            reading.entry(&key, raw, fields)
        };
        if !goes_on {
            return;
        }
    }
}

/// Returns the most frequent separator of the first line.
fn separator(text: &str) -> u8 {
    let head = text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or_default();
    let line = head.lines().next().unwrap_or_default();
    let count = |sign: u8| line.bytes().filter(|it| *it == sign).count();
    // Of equal counts the last in this order wins: the comma.
    [b'\t', b';', b','].into_iter().max_by_key(|it| count(*it)).unwrap_or(b',')
}

/// Returns the names of the columns, as written and in the form of [`ATTRIBUTES`]. Returns `None`
/// if the first row does not name two columns or more.
fn columns(reader: &mut csv::Reader<&[u8]>, row: &mut ByteRecord) -> Option<Vec<(String, String)>> {
    if !reader.read_byte_record(row).unwrap_or(false) {
        return None;
    }
    let named = row.iter().map(|it| {
        let name = String::from_utf8_lossy(it).trim().to_owned();
        let plain = name.to_lowercase().replace([' ', '_'], "-");
        (name, plain)
    });
    let columns: Vec<(String, String)> = named.collect();
    let is_name = |it: &str| it.len() <= NAME_BYTES_MAX && it.chars().any(char::is_alphabetic);
    let names = columns.iter().filter(|(name, _)| !name.is_empty());
    (1 < columns.len() && names.clone().count() > 0 && names.clone().all(|(name, _)| is_name(name)))
        .then_some(columns)
}

fn entry(columns: &[(String, String)], row: &ByteRecord) -> (String, EntryFields) {
    let mut fields = EntryFields::default();
    let mut key = (KEYS.len(), String::new());
    for ((name, plain), value) in columns.iter().zip(row) {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        let rank = KEYS.iter().position(|it| *it == plain).unwrap_or(KEYS.len());
        if rank < key.0 {
            key = (rank, value.to_owned());
        }
        match ATTRIBUTES.get(plain) {
            Some(scheme @ ("doi" | "isbn" | "issn")) => fields.put_identifier(scheme, value),
            Some(list @ ("Subject" | "Author")) => fields.put_all(list, value, &[';', '|']),
            Some(attribute) => fields.put(attribute, value),
            None => fields.put_foreign("Column-", name, value),
        }
    }
    (key.1, fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::exploded;
    use crate::catalog::testing::attributes;
    use crate::catalog::{ParsedEntry, Reading};
    use crate::object::Object;
    use crate::{Input, Settings, Type};

    fn check(text: &str, expected: &[(&str, &str)]) {
        let seen = exploded(Type::Csv, text.as_bytes());
        let seen: Vec<(&str, &str)> = seen.iter().map(|(k, t)| (k.as_str(), t.as_str())).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn rows_are_entries() {
        check("Title,Year\nOne,1994\n\"Two,\n2\",1995\n", &[("1", "One"), ("2", "Two, 2")]);
        check(
            "\u{feff}url;name;ID\nhttp://h/1;One;a\nhttp://h/2;Two;\n",
            &[("a", "One"), ("http://h/2", "Two")],
        );
        check("doi\ttitle\n10.5072/1\tOne\textra\n\n", &[("10.5072/1", "One")]);
        check("1,2\n3,4\n", &[]);
        check("one column\nx\n", &[]);
        check("", &[]);
    }

    #[test]
    fn a_row_becomes_attributes() {
        let text = "id,title,authors,tags,year,isbn,Sea Depth (m),MD5\n\
                    a/1,Ice,Miller A; Ro B,ice;snow,2020,0201633612,12,x\n";
        let object = Object::whole("http://h.example/t.csv", text.as_bytes().to_vec());
        let settings = Settings::default();
        let input =
            Input { object: &object, r#type: Type::Csv, settings: &settings, cancelled: &|| false };
        let mut seen = Vec::new();
        let mut each = |found: ParsedEntry<'_>| {
            if let Ok(item) = found {
                seen.push(format!("{}: {}", item.key, attributes(&item.draft).join("; ")));
            }
            true
        };
        super::read(&input, &mut Reading::new(&|| false, &mut each));
        let expected = "a/1: Title=Ice; Author=Miller A|Ro B; Column-id=a/1; Subject=ice|snow; \
            Date=2020; Date-Source=entry; Identifier=urn:isbn:0201633612; Column-Sea-Depth-m=12; Column-MD5=x";
        assert_eq!(seen, [expected]);
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(list in prop::collection::btree_map("[a-z0-9]{1,9}", "[!-~é]{1,8}( [!-~é]{1,8}){0,3}", 0..6)) {
            let rows = list.iter().map(|(key, title)| format!("{key},\"{}\"\r\n", title.replace('"', "\"\"")));
            let text = format!("Id,Title\r\n{}", rows.collect::<String>());
            let expected: Vec<(String, String)> = list.into_iter().collect();
            prop_assert_eq!(exploded(Type::Csv, text.as_bytes()), expected);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[a,;\t\"\n é1]{0,80}") {
            exploded(Type::Csv, &bytes);
            exploded(Type::Csv, text.as_bytes());
        }
    }
}
