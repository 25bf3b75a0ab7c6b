//! The exploder: one record for each entry of a file that lists many things.
//!
//! Source: TR §4 and the user's manual ("an exploder turns one file into a stream of SOIF objects"). The file
//! keeps a record of its own. The URL of an entry is the file's URL, `#` and the entry's key.
//!
//! A key stays the same when the file is sorted or grows. It is the entry's identifier, or else its title,
//! with a number where several titles are equal. An entry without both has its position as its key.
//!
//! Lists whose entries are whole objects (mailboxes) are opened as containers by `unnest`.
//!
//! # Differences from the paper
//!
//! * Tables are lists of things only where the site says so: [`is_list_by_default`].

mod csv;

use std::collections::HashMap;

use bytes::Bytes;
use soif::digest::Md5;

use crate::catalog::{self, CatalogEntry, ParsedEntry, Reading};
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::{Draft, Input, Type};

/// Longest key of an entry in its URL, in bytes.
const KEY_BYTES_MAX: usize = 200;
/// Number of hexadecimal digits of the MD5 at the end of a shortened key.
const SUM_BYTES: usize = 16;

/// Maximum number of bytes of a list that are read.
pub const LIST_BYTES_MAX: usize = Limit::List.standard();

/// One entry of a list.
#[derive(Debug)]
pub struct Entry {
    /// Its name in the list, as stable as the list allows. Of several entries with one key only the last is
    /// kept. Never empty.
    pub key: String,
    /// Its part of the file, from which its size and MD5 are computed.
    pub bytes: Bytes,
    /// Its attributes.
    pub draft: Draft<'static>,
}

/// Returns whether objects of this type are lists that can be exploded.
pub fn is_list(r#type: Type) -> bool {
    r#type == Type::Csv || catalog::is_catalog(r#type)
}

/// Returns whether objects of this type are exploded if the site names no types. Tables are not:
/// most of their rows are not things that users look for.
pub fn is_list_by_default(r#type: Type) -> bool {
    r#type != Type::Csv && is_list(r#type)
}

/// Hands every entry of the list to `each`, in order, until `each` returns `false`. Returns the
/// problems that the list's own summarizer does not report: all problems of a table; of a catalog,
/// only that time ran out.
pub fn explode(
    input: &Input<'_>,
    each: &mut dyn FnMut(Entry) -> bool,
) -> Vec<(ProblemKind, String)> {
    let mut keys = Keys::default();
    let mut number = 0;
    let mut visit = |found: ParsedEntry<'_>| {
        number += 1;
        let Ok(CatalogEntry { key, raw, draft, is_alone: false }) = found else {
            return true;
        };
        let key = keys.key(&key, &draft.title, number);
        each(Entry { key, bytes: Bytes::copy_from_slice(raw), draft })
    };
    let mut reading = Reading::new(input.cancelled, &mut visit);
    if input.r#type == Type::Csv {
        csv::read(input, &mut reading);
        return reading.into_problems();
    }
    catalog::read(input, &mut reading);
    // The list's own summarizer reports the other problems.
    if reading.is_late() {
        return vec![(ProblemKind::Time, "ran out of time for records of its entries".to_owned())];
    }
    Vec::new()
}

/// Maker of the keys of one list.
#[derive(Default)]
struct Keys {
    /// Number of entries without an identifier so far, by title.
    titles: HashMap<String, usize>,
}

impl Keys {
    /// Returns the identifier, or else the title, or else the number (from 1); bounded, on one line.
    fn key(&mut self, identifier: &str, title: &str, number: usize) -> String {
        if !identifier.trim().is_empty() {
            return bounded(identifier);
        }
        if title.trim().is_empty() {
            return number.to_string();
        }
        let key = bounded(title);
        let count = self.titles.entry(key.clone()).or_default();
        *count += 1;
        if *count == 1 { key } else { format!("{key} ({count})") }
    }
}

/// Returns the trimmed text; a long one is shortened to its front and an MD5 of the whole.
fn bounded(text: &str) -> String {
    let text = text.trim();
    if text.len() <= KEY_BYTES_MAX {
        return text.to_owned();
    }
    let front = text.get(..text.floor_char_boundary(KEY_BYTES_MAX - SUM_BYTES - 1));
    let mut sum = Md5::of(text.as_bytes()).to_string();
    sum.truncate(SUM_BYTES);
    format!("{}~{sum}", front.unwrap_or_default())
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Settings;
    use crate::object::Object;

    /// Returns the keys and titles of the entries of `bytes`, read as any type.
    pub(super) fn exploded(r#type: Type, bytes: &[u8]) -> Vec<(String, String)> {
        let object = Object::whole("http://h.example/list", bytes.to_vec());
        let settings = Settings::default();
        let input = Input { object: &object, r#type, settings: &settings, cancelled: &|| false };
        let mut found = Vec::new();
        let problems = explode(&input, &mut |it| {
            assert!(!it.key.is_empty());
            found.push((it.key, it.draft.title));
            true
        });
        assert_eq!(problems, []);
        found
    }

    #[test]
    fn keys_are_identifiers_or_titles_or_positions() {
        let mut keys = Keys::default();
        assert_eq!(keys.key(" a:1 ", "Title", 1), "a:1");
        assert_eq!(keys.key("", "Title", 2), "Title");
        assert_eq!(keys.key("", "Title", 3), "Title (2)");
        assert_eq!(keys.key(" ", "\n", 4), "4");
        let long = "é".repeat(150);
        let (one, other) =
            (keys.key(&format!("{long}1"), "", 5), keys.key(&format!("{long}2"), "", 6));
        assert!(
            one != other && one.len() <= KEY_BYTES_MAX && one.starts_with("éé"),
            "{one} {other}"
        );
    }

    #[test]
    fn a_single_thing_is_no_list() {
        let one = br#"{"@type": "Dataset", "name": "A"}"#;
        assert_eq!(exploded(Type::JsonLd, one), []);
        let list = [&b"["[..], one, b"]"].concat();
        assert_eq!(exploded(Type::JsonLd, &list), [("A".to_owned(), "A".to_owned())]);
    }

    #[test]
    fn tables_are_lists_on_request() {
        assert!(is_list(Type::Csv) && !is_list_by_default(Type::Csv));
        assert!(is_list(Type::BibTeX) && is_list_by_default(Type::BibTeX));
        assert!(!is_list(Type::Text));
    }

    #[test]
    fn it_stops_on_false_and_on_cancellation() {
        let bytes = b"TY  - GEN\nTI  - A\nER  - \n".repeat(500);
        let object = Object::whole("http://h.example/a.ris", bytes);
        let settings = Settings::default();
        let mut input =
            Input { object: &object, r#type: Type::Ris, settings: &settings, cancelled: &|| false };
        let mut count = 0;
        let stopped = explode(&input, &mut |_| {
            count += 1;
            count < 3
        });
        assert_eq!((count, stopped), (3, Vec::new()));
        input.cancelled = &|| true;
        let late = explode(&input, &mut |_| true);
        assert_eq!(late[0].0, ProblemKind::Time);
    }

    proptest! {
        /// Entries keep their keys when others are put between them.
        #[test]
        fn keys_stay_when_others_come(
            list in prop::collection::btree_map("[a-z]{1,6}", "[A-Z][a-z]{0,9}", 1..6),
            others in prop::collection::btree_map("[A-Z]{1,6}", "[A-Z][a-z]{0,9}", 0..6),
        ) {
            let written = |list: &[(&String, &String)]| -> Vec<u8> {
                let entry = |(key, title): &(&String, &String)| format!("TY  - GEN\nID  - {key}\nTI  - {title}\nER  - \n");
                list.iter().map(entry).collect::<String>().into_bytes()
            };
            let few: Vec<_> = list.iter().collect();
            let mut many: Vec<_> = others.iter().chain(&list).collect();
            many.sort_by_key(|(_, title)| title.as_str());
            let (few, many) = (exploded(Type::Ris, &written(&few)), exploded(Type::Ris, &written(&many)));
            prop_assert!(few.iter().all(|it| many.contains(it)), "{:?} {:?}", few, many);
        }
    }
}
