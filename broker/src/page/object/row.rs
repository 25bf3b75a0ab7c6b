//! The technical attributes of an object, as rows of a table.
//!
//! Sans-I/O.

use std::borrow::Cow;

use jiff::Timestamp;
use oai::crosswalk::LANDING_PAGE;
use serde::Serialize;
use soif::Attribute;
use web::foreign::harmless;

use super::{head, lines};
use crate::page::display_url::DisplayUrl;
use crate::page::results::shortened;

/// Maximum length of a value as shown, in characters; the SOIF has the whole value.
const VALUE_CHARS_MAX: usize = 4_096;
/// Length above which a value is shown in a scrolling box, in characters.
const LONG_CHARS: usize = 1_000;
/// Length above which a value is shown in a scrolling box, in lines.
const LONG_LINES: usize = 12;
/// Maximum length of an attribute's name as shown, in characters.
const NAME_CHARS_MAX: usize = 80;
/// Maximum number of rows of one object.
const ROWS_MAX: usize = 200;
/// Maximum number of links in one value.
const LINKS_MAX: usize = 200;

#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Row {
    name: String,
    value: String,
    links: Vec<DisplayUrl>,
    /// Whether the value is shown with its line breaks.
    pre: bool,
    long: bool,
    note: String,
}

/// Returns the rows of the first attributes, and how many more there are.
pub(super) fn rows(attributes: &[&Attribute]) -> (Vec<Row>, usize) {
    let shown = attributes.iter().take(ROWS_MAX).map(|it| Row::new(it)).collect();
    (shown, attributes.len().saturating_sub(ROWS_MAX))
}

/// Returns the first links of a value with one on each line, and how many more there are.
pub(super) fn links(value: &[u8]) -> (Vec<DisplayUrl>, usize) {
    let (shown, more) = lines(value, LINKS_MAX);
    (shown.iter().map(|it| DisplayUrl::of(it)).collect(), more)
}

impl Row {
    fn new(attribute: &Attribute) -> Self {
        // A character has up to four bytes.
        let text = String::from_utf8_lossy(head(&attribute.value, 4 * VALUE_CHARS_MAX + 4));
        let value = harmless(text.trim_end());
        let name = shortened(&harmless(&attribute.name), NAME_CHARS_MAX);
        let mut row = Self { name, ..Self::default() };
        if attribute.name.eq_ignore_ascii_case(LANDING_PAGE) {
            row.links = links(&attribute.value).0;
            return row;
        }
        row.note = meaning(&attribute.name, &value).unwrap_or_default();
        if matches!(text, Cow::Owned(_)) {
            "not UTF-8: see the SOIF for its bytes".clone_into(&mut row.note);
        }
        row.value = shortened(&value, VALUE_CHARS_MAX);
        if value.chars().nth(VALUE_CHARS_MAX).is_some() {
            row.note = format!("the first {VALUE_CHARS_MAX} characters; the SOIF has all");
        }
        let lines = row.value.lines().count();
        row.pre = 1 < lines;
        row.long = LONG_LINES < lines || LONG_CHARS < row.value.chars().count();
        row.pre |= row.long;
        row
    }
}

/// Renders the number in an attribute for people, as a date, a duration or a size; `None` if the
/// attribute has no such meaning.
fn meaning(name: &str, value: &str) -> Option<String> {
    let number: i64 = value.trim().parse().ok()?;
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    if ["Update-Time", "Last-Modification-Time", "Generation-Time"].iter().any(|it| is(it)) {
        let time = Timestamp::from_second(number).ok()?;
        return Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    }
    let number = u64::try_from(number).ok()?;
    if is("Time-to-Live") || is("Refresh-Rate") {
        return Some(span(number));
    }
    (is("File-Size") && 1_024 <= number).then(|| web::templates::size(number))
}

/// Renders a duration in the largest unit that is not longer than the duration.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, value: impl Into<Vec<u8>>) -> Row {
        Row::new(&Attribute { name: name.to_owned(), value: value.into() })
    }

    fn check_note(name: &str, value: &str, expected: &str) {
        let row = row(name, value);
        assert_eq!((row.value.as_str(), row.note.as_str()), (value, expected));
    }

    #[test]
    fn numbers_are_explained() {
        check_note("Update-Time", "1700000000", "2023-11-14 22:13:20 UTC");
        check_note("update-time", "soon", "");
        check_note("Time-to-Live", "2592000", "30 days");
        check_note("Refresh-Rate", "3600", "1 hour");
        check_note("File-Size", "2048", "2.0 KiB");
        check_note("File-Size", "-1", "");
        check_note("Title", "1700000000", "");
        check_note("Update-Time", "99999999999999999999", "");
    }

    #[test]
    fn long_and_odd_values_are_bounded_and_named() {
        assert!(row("Abstract", "a\nb").pre);
        assert!(!row("Abstract", "a\n").pre, "a line break at the end is dropped");
        assert!(row("Full-Text", "x\n".repeat(21)).long);
        let cut = row("Full-Text", "x".repeat(VALUE_CHARS_MAX + 1));
        assert!(cut.long && cut.note.contains("first 4096"), "{}", cut.note);
        assert!(row("Title", [0xff, b'a']).note.contains("not UTF-8"));
        let landing = row(LANDING_PAGE, "http://h/\njavascript:alert(1)\n").links;
        assert_eq!(landing.len(), 2);
        assert!(landing[0].href.is_some() && landing[1].href.is_none());
        assert_eq!(links("http://h/\n".repeat(LINKS_MAX + 3).as_bytes()).1, 3);
        let name = row(&"n".repeat(999), "").name;
        assert_eq!(name.chars().count(), NAME_CHARS_MAX + 1);
        let attribute = Attribute { name: "a".to_owned(), value: b"b".to_vec() };
        assert_eq!(rows(&[&attribute; ROWS_MAX + 7]).1, 7);
    }
}
