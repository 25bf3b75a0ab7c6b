//! The searched content of a record: its words, by field, and its numbers.
//!
//! Whatever answers queries reads records through this module, so that all find the same records.
//!
//! Sans-I/O.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use soif::Record;
use soif::digest::Md5;

use crate::field::{Quantity, Target, TextField, target};

/// Maximum length of the searched part of a full or partial text, in bytes: as much as gatherers publish.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Length from which a partial text is taken for the beginning of a longer one, in bytes: a little
/// less than gatherers publish of a long text.
const PART_BYTES_MIN: usize = 16_000;
/// Maximum length of the searched part of any other attribute's value, in bytes.
pub const VALUE_BYTES_MAX: usize = 256 << 10;
/// Maximum number of attributes of one object that are searched by their names.
pub const ATTRIBUTES_MAX: usize = 1_000;
/// Longest attribute name that is searched, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest type, in bytes; the rest of a longer one is cut off.
pub const TYPE_BYTES_MAX: usize = 256;
/// Longest OID whose text is its key, in bytes; the key of a longer one has a digest.
pub const OID_BYTES_MAX: usize = 4 << 10;
/// Plausible years of a work.
const YEARS: std::ops::RangeInclusive<i64> = 1_000..=9_999;

/// Attributes that are not added to the body. Its own texts aside, they are about the gathering of
/// an object, not about its content, and are found by naming them.
const BOOKKEEPING: &[&str] = &[
    "date-source",
    "file-size",
    "full-text",
    "gatherer-host",
    "gatherer-id",
    "gatherer-name",
    "gatherer-port",
    "gatherer-root",
    "gatherer-version",
    "generation-time",
    // `it` and `is` are languages.
    "language",
    "language-source",
    "last-modification-time",
    "md5",
    "origin-path",
    "origin-version",
    // Its words are in the other attributes, without its markup.
    "original-metadata",
    "partial-text",
    "refresh-rate",
    "text-print",
    "time-to-live",
    "truncated",
    "type",
    "update-time",
    "url-references",
];

/// Attributes whose values are the text of a field. Other names of text fields are for queries: an
/// attribute with such a name (`Text`, `Host`) is treated like any other.
const OWN: &[&str] = &[
    "title",
    "keywords",
    "description",
    "abstract",
    "author",
    "partial-text",
    "full-text",
    "body",
];

/// Attributes that are not searched by words, not even by their names: an offset for each place in the
/// text, and the print of the text. Each of their words would be in an index for one object alone.
const UNSEARCHED: [&str; 2] = ["text-places", "text-print"];

/// A searched item under the name of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched<'a> {
    /// The attribute exists.
    Name,
    /// Text of a field. No phrase reaches from one text into the next.
    Text(TextField, &'a str),
    /// Text that queries find by the attribute's name: by its words, or as an [`integer`].
    Attribute(&'a str),
}

/// Returns whether only the beginning of the object's text is here: phrases further on are not found.
pub fn has_part_of_text(record: &Record) -> bool {
    let part = record.get("Partial-Text").map_or(0, <[u8]>::len);
    let is_part = record.get("Full-Text").is_none() && PART_BYTES_MIN <= part;
    let cut = record.text("Truncated").unwrap_or_default();
    is_part || cut.lines().any(|line| line.starts_with("text "))
}

/// Calls `visit` with the name, in small letters, of every item of `record` that is searched by
/// words or names, and with the item. The URL, type, host and gatherer come under `url`, `type`, ….
pub fn searched(record: &Record, visit: &mut dyn FnMut(&str, Searched<'_>)) {
    for attribute in record.attributes().iter().take(ATTRIBUTES_MAX) {
        let name = attribute.name.to_ascii_lowercase();
        if NAME_BYTES_MAX < name.len() || name.contains('\0') {
            continue;
        }
        let value = String::from_utf8_lossy(&attribute.value);
        visit(&name, Searched::Name);
        if UNSEARCHED.contains(&name.as_str()) {
            continue;
        }
        let of_body = !BOOKKEEPING.contains(&name.as_str());
        match target(&name) {
            Target::Text(part) if OWN.contains(&name.as_str()) => {
                let bytes_max =
                    if part == TextField::Body { BODY_BYTES_MAX } else { VALUE_BYTES_MAX };
                let value = head(&value, bytes_max);
                let mut add = |text| visit(&name, Searched::Text(part, text));
                match part {
                    // Each has a line of its own, and its neighbors are no context.
                    TextField::Keywords => value.lines().for_each(add),
                    _ => add(value),
                }
            }
            target => {
                let value = head(&value, VALUE_BYTES_MAX);
                if of_body {
                    visit(&name, Searched::Text(TextField::Body, value));
                }
                if !matches!(target, Target::Quantity(_)) {
                    visit(&name, Searched::Attribute(value));
                }
            }
        }
    }
    searched_url(&record.url, &mut |text| visit("url", Searched::Text(TextField::Url, text)));
    let root = record.text("Gatherer-Root").unwrap_or_default();
    let path = path_of(&record.url, &root);
    searched_url(path, &mut |text| visit("url", Searched::Text(TextField::Path, text)));
    visit("type", Searched::Text(TextField::Type, &type_of(record)));
    visit("host", Searched::Text(TextField::Host, &host(&record.url)));
    for text in [gatherer_name(record), gatherer_id(record)] {
        visit("gatherer", Searched::Text(TextField::Gatherer, &text));
    }
}

/// Calls `visit` with a URL as written and, if different, percent-decoded: both `Annual%20Report`
/// and `report` find it.
pub fn searched_url(url: &str, visit: &mut dyn FnMut(&str)) {
    visit(url);
    let read = percent_encoding::percent_decode_str(url).decode_utf8_lossy();
    if read != url {
        visit(&read);
    }
}

/// Returns what a URL says of its object alone: all below the `root` where it was gathered, or else
/// all but the scheme.
pub fn path_of<'a>(url: &'a str, root: &str) -> &'a str {
    let is_below = |rest: &&str| rest.starts_with(['/', '#', '?']) || root.ends_with('/');
    let below = url.strip_prefix(root).filter(|_| !root.is_empty()).filter(is_below);
    let is_empty = |rest: &&str| rest.trim_matches('/').is_empty();
    below.filter(|rest| !is_empty(rest)).unwrap_or_else(|| {
        // The root itself is known by its own name.
        let is_root = below.is_some() || url == root;
        let name = url.trim_end_matches('/').rsplit('/').next().filter(|_| is_root);
        name.or_else(|| Some(url.split_once("://")?.1)).unwrap_or(url)
    })
}

/// Returns an attribute's value as a whole number.
pub fn integer(value: &str) -> Option<i64> {
    value.trim().parse().ok()
}

/// Returns a number of the record; `None` if it has no such number.
pub fn quantity(record: &Record, quantity: Quantity) -> Option<i64> {
    let saturated = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    match quantity {
        Quantity::Size => record.number("File-Size").map(saturated),
        Quantity::Updated => record.number("Update-Time").map(saturated),
        Quantity::Modified => {
            record.number("Last-Modification-Time").and_then(|seconds| i64::try_from(seconds).ok())
        }
        Quantity::Year => {
            // What a document says of its year is worth more than its file's time.
            let own = record.number("Year").and_then(|year| i64::try_from(year).ok());
            let own = own.filter(|year| YEARS.contains(year));
            own.or_else(|| year_of_date(record)).or_else(|| {
                let moment =
                    Timestamp::from_second(self::quantity(record, Quantity::Modified)?).ok()?;
                Some(moment.to_zoned(TimeZone::UTC).year().into())
            })
        }
    }
}

/// Returns the earliest year of the record's dates, as an OAI-PMH record's `Year` is.
fn year_of_date(record: &Record) -> Option<i64> {
    let dates = record.text("Date")?;
    let years = dates.lines().filter_map(|it| it.get(..4)?.parse::<i64>().ok());
    years.filter(|year| YEARS.contains(year)).min()
}

/// Returns the type of the object; empty if it is unknown.
pub fn type_of(record: &Record) -> String {
    head(record.text("Type").unwrap_or_default().trim(), TYPE_BYTES_MAX).to_owned()
}

/// Returns the id of the gatherer; empty if the record names none.
pub fn gatherer_id(record: &Record) -> String {
    record.text("Gatherer-Id").unwrap_or_default().trim().to_owned()
}

/// Returns the name of the gatherer: its own, or its host and port, or its id.
pub fn gatherer_name(record: &Record) -> String {
    let given = |name: &str| {
        record.text(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    given("Gatherer-Name")
        .or_else(|| {
            let host = given("Gatherer-Host")?;
            Some(
                given("Gatherer-Port")
                    .map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
            )
        })
        .unwrap_or_else(|| gatherer_id(record))
}

/// Returns the host of a URL; empty if it has none.
pub fn host(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_ascii_lowercase))
        .unwrap_or_default()
}

/// Renders an OID in the form of queries and answers: `GATHERER-ID:URL`. The first colon is the
/// border, so a colon in the gatherer's id is percent-encoded; ids of Harvest have none.
pub fn oid_text(gatherer_id: &str, url: &str) -> String {
    if gatherer_id.contains([':', '%']) {
        let gatherer_id = gatherer_id.replace('%', "%25").replace(':', "%3A");
        return format!("{gatherer_id}:{url}");
    }
    format!("{gatherer_id}:{url}")
}

/// Splits an [`oid_text`] into gatherer id and URL; `None` for other text.
pub fn oid_parse(oid: &str) -> Option<(String, &str)> {
    let (gatherer_id, url) = oid.split_once(':').filter(|(_, url)| !url.is_empty())?;
    Some((gatherer_id.replace("%3A", ":").replace("%25", "%"), url))
}

/// Returns the key of an object: its [`oid_text`], or if that is longer than [`OID_BYTES_MAX`], the
/// gatherer's id with a digest.
pub fn oid_key(gatherer_id: &str, url: &str) -> String {
    let text = oid_text(gatherer_id, url);
    if text.len() <= OID_BYTES_MAX {
        return text;
    }
    oid_text(gatherer_id, &format!("#{}", Md5::of(text.as_bytes())))
}

/// Returns the beginning of `text`: at most `bytes_max` bytes, not in the middle of a character.
pub fn head(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_nothing_that_all_objects_of_a_root_have() {
        for (url, root, expected) in [
            ("file:///home/ada/docs/a/b.txt", "file:///home/ada/docs", "/a/b.txt"),
            ("file:///home/ada/docs/a/b.txt", "file:///home/ada/docs/", "a/b.txt"),
            ("file:///docs/a.zip#member/c", "file:///docs/a.zip", "#member/c"),
            ("file:///docs/a.txt", "file:///docs/a.txt", "a.txt"),
            ("file:///docs/", "file:///docs", "docs"),
            ("file:///docs2/a", "file:///docs", "/docs2/a"),
            ("http://a.example/x", "", "a.example/x"),
            ("oai:a:1", "http://a.example/oai", "oai:a:1"),
        ] {
            assert_eq!(path_of(url, root), expected, "{url} {root}");
        }
    }

    #[test]
    fn any_oid_splits_into_its_gatherer_id_and_url() {
        for (gatherer_id, url, text) in [
            ("0a", "http://h/a:b", "0a:http://h/a:b"),
            ("a:b", "c:d", "a%3Ab:c:d"),
            ("a", "b:c:d", "a:b:c:d"),
            ("%3A", "u", "%253A:u"),
        ] {
            assert_eq!(oid_text(gatherer_id, url), text);
            assert_eq!(oid_parse(text), Some((gatherer_id.to_owned(), url)));
        }
        assert_eq!(oid_parse("a:"), None);
        assert_eq!(oid_parse("a"), None);
    }

    #[test]
    fn a_long_oid_has_a_digest_as_key() {
        let url = format!("http://a/{}", "x".repeat(9_000));
        assert!(oid_key("g", &url).len() < 64);
        assert_ne!(oid_key("g", &url), oid_key("g", &format!("{url}y")));
    }

    #[test]
    fn a_long_partial_text_is_a_part() {
        let check = |name: &str, value: &str, expected: bool| {
            let mut record = Record::new("FILE", "http://h/");
            record.push(name, value);
            assert_eq!(has_part_of_text(&record), expected, "{name}");
        };
        check("Partial-Text", &"x".repeat(PART_BYTES_MIN), true);
        check("Partial-Text", "short", false);
        check("Full-Text", &"x".repeat(PART_BYTES_MIN), false);
        check("Truncated", "pages 2000\ntext 16777216", true);
        check("Truncated", "texts 1", false);
    }

    #[test]
    fn heads_end_between_characters() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(head("aé", 3), "aé");
        assert_eq!(head("", 3), "");
    }
}
