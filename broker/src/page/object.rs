//! The page of one object: it shows the record as a table to people, as SOIF or JSON to programs.
//!
//! Sans-I/O.

use std::borrow::Cow;

use jiff::Timestamp;
use oai::crosswalk::LANDING_PAGE;
use serde::Serialize;
use soif::{Attribute, Record};
use url::form_urlencoded;

use super::display_url::DisplayUrl;
use super::results::{shortened, summary_address};

/// Maximum length of a value as shown, in characters; the SOIF has the whole value.
const VALUE_CHARS_MAX: usize = 65_536;
/// Length above which a value is shown in a scrolling box, in characters.
const LONG_CHARS: usize = 2_000;
/// Length above which a value is shown in a scrolling box, in lines.
const LONG_LINES: usize = 20;
/// Maximum number of links in one value.
const LINKS_MAX: usize = 2_000;

/// Format of an object: `format=`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Html,
    Soif,
    Json,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectParameters {
    pub(crate) oid: Option<String>,
    pub(crate) format: Option<Format>,
}

impl ObjectParameters {
    /// Reads the part of the URL after `?`; the error is a sentence.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, String> {
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            match &*name {
                "oid" => asked.oid = Some(value.into_owned()),
                "format" => {
                    asked.format = Some(match &*value {
                        "html" => Format::Html,
                        "soif" => Format::Soif,
                        "json" => Format::Json,
                        _ => {
                            return Err(format!(
                                "format is {value:?}; expected html, soif or json"
                            ));
                        }
                    });
                }
                _ => {}
            }
        }
        Ok(asked)
    }
}

/// The data of `object.html`.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectPage {
    object: ObjectShown,
}

#[derive(Debug, Serialize)]
struct ObjectShown {
    title: String,
    place: DisplayUrl,
    href: Option<String>,
    local: bool,
    soif: String,
    json: String,
    rows: Vec<Row>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Row {
    name: String,
    value: String,
    links: Vec<DisplayUrl>,
    /// Whether the value is shown with its line breaks.
    pre: bool,
    long: bool,
    note: String,
}

impl ObjectPage {
    pub(crate) fn new(oid: &str, record: &Record) -> Self {
        let place = DisplayUrl::of(&record.url);
        let title = record.text("Title").filter(|title| !title.trim().is_empty());
        let title = title.unwrap_or_else(|| Cow::Borrowed(last_part(&place.text)));
        let address = summary_address(oid);
        let landing = record.text(LANDING_PAGE).map(|it| DisplayUrl::of(it.trim()));
        let open = place.openable().or_else(|| landing.as_ref()?.openable());
        let object = ObjectShown {
            title: shortened(title.trim(), 300),
            href: open.map(str::to_owned),
            local: place.local,
            place,
            soif: format!("{address}&format=soif"),
            json: format!("{address}&format=json"),
            rows: record.attributes().iter().map(Row::new).collect(),
        };
        Self { object }
    }
}

/// Returns the last non-empty part of a URL.
fn last_part(address: &str) -> &str {
    address.trim_end_matches('/').rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(address)
}

impl Row {
    fn new(attribute: &Attribute) -> Self {
        let text = String::from_utf8_lossy(&attribute.value);
        let mut value = text.trim_end();
        // A line for each keyword would make the page too long.
        let joined: String;
        if attribute.name.eq_ignore_ascii_case("Keywords") {
            joined = value.lines().collect::<Vec<_>>().join(", ");
            value = &joined;
        }
        let mut row = Self { name: attribute.name.clone(), ..Self::default() };
        let is_address = |name: &&str| attribute.name.eq_ignore_ascii_case(name);
        if ["URL-References", LANDING_PAGE].iter().any(is_address) {
            row.links = value.lines().take(LINKS_MAX).map(DisplayUrl::of).collect();
            row.long = LONG_LINES < row.links.len();
            return row;
        }
        row.note = meaning(&attribute.name, value).unwrap_or_default();
        if matches!(text, Cow::Owned(_)) {
            "not UTF-8: see the SOIF for its bytes".clone_into(&mut row.note);
        }
        row.value = shortened(value, VALUE_CHARS_MAX);
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
        assert!(cut.long && cut.note.contains("first 65536"), "{}", cut.note);
        assert!(row("Title", [0xff, b'a']).note.contains("not UTF-8"));
        assert_eq!(row("keywords", "a\nb\n").value, "a, b");
        let links = row("URL-References", "http://h/\njavascript:alert(1)\n").links;
        assert_eq!(links.len(), 2);
        assert!(links[0].href.is_some() && links[1].href.is_none());
    }

    #[test]
    fn an_object_outside_the_web_opens_at_its_landing_page() {
        let check = |url: &str, landing: &str, expected: Option<&str>| {
            let mut record = Record::new("FILE", url);
            record.push(LANDING_PAGE, landing);
            let page = ObjectPage::new("o", &record);
            assert_eq!(page.object.href.as_deref(), expected, "{url} {landing}");
        };
        check("oai:h:1", "https://h/1\n", Some("https://h/1"));
        check("oai:h:1", "javascript:alert(1)", None);
        check("http://h/2", "https://h/1", Some("http://h/2"));
    }

    #[test]
    fn parameters_are_read() {
        let check = |query: &str, oid: Option<&str>, format| {
            let expected = ObjectParameters { oid: oid.map(str::to_owned), format };
            assert_eq!(ObjectParameters::parse(Some(query)), Ok(expected), "{query}");
        };
        check("", None, None);
        check("oid=a%3Ab&x=y", Some("a:b"), None);
        check("oid=a&format=soif", Some("a"), Some(Format::Soif));
        assert!(
            ObjectParameters::parse(Some("format=xml")).unwrap_err().contains("html, soif or json")
        );
    }

    #[test]
    fn an_object_without_title_has_the_last_part_of_its_url() {
        let check = |url: &str, expected: &str| {
            let page = ObjectPage::new("o", &Record::new("FILE", url));
            assert_eq!(page.object.title, expected);
        };
        check("file:///a/b%20c.txt", "b c.txt");
        check("http://h/a/", "a");
        check("http://h/", "h");
    }
}
