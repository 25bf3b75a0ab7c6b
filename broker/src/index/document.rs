//! From a record to what the index keeps of it.

use std::collections::BTreeMap;

use collection::Oid;
use jiff::Timestamp;
use oai::crosswalk::LANDING_PAGE;
use serde::{Deserialize, Serialize};
use soif::Record;
use soif::digest::Md5;
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;

use super::schema::{Fields, Target, Text, target};
use super::words::fold;
use crate::answer::{Facet, oid_text};

/// Most of an object's text that is indexed, in bytes.
const BODY_BYTES_MAX: usize = 8 << 20;
/// Most of any other attribute's value that is indexed, in bytes.
const VALUE_BYTES_MAX: usize = 256 << 10;
/// Most attributes of one object that are indexed by their names.
const ATTRIBUTES_MAX: usize = 1_000;
/// Longest attribute name that is indexed, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Most of the text that is kept for snippets, in bytes.
const STORED_TEXT_BYTES_MAX: usize = 16 << 10;
/// Most of a title that is kept, in bytes.
const STORED_TITLE_BYTES_MAX: usize = 512;
/// Most of a description that is kept, in bytes.
const STORED_DESCRIPTION_BYTES_MAX: usize = 2 << 10;
/// Longest key to order by, in bytes.
const KEY_BYTES_MAX: usize = 256;
/// Longest OID that is a term by itself, in bytes; longer ones are told by a digest.
const OID_BYTES_MAX: usize = 4 << 10;
/// Longest facet value, in bytes.
const FACET_BYTES_MAX: usize = 256;

/// Attributes that say how an object was gathered rather than what it is: found by their names
/// only.
const BOOKKEEPING: &[&str] = &[
    "file-size",
    "full-text",
    "gatherer-host",
    "gatherer-id",
    "gatherer-name",
    "gatherer-port",
    "gatherer-root",
    "gatherer-version",
    "generation-time",
    "last-modification-time",
    "md5",
    "origin-version",
    // Its words are in the other attributes, without its markup.
    "original-metadata",
    "partial-text",
    "refresh-rate",
    "time-to-live",
    "type",
    "update-time",
    "url-references",
];

/// Longest address of a landing page that a hit shows, in bytes.
const URL_BYTES_MAX: usize = 2 * 1024;

/// What a hit shows without a look at the collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredHit {
    pub(super) url: String,
    pub(super) gatherer_id: String,
    pub(super) gatherer: String,
    pub(super) host: String,
    pub(super) r#type: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) text: String,
    pub(super) size: Option<u64>,
    pub(super) modified: Option<i64>,
    /// The year that the object names itself, or that it was modified in, UTC.
    pub(super) year: Option<i16>,
    /// Where to read of an object whose address is not of the web.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) landing_page: Option<String>,
}

/// What an object is among those of the same content.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// Whether another answers for it.
    pub(super) duplicate: bool,
    /// For whom it answers: their addresses and the facet values they bring.
    pub(super) others: Vec<Other>,
}

/// A duplicate, as the object that answers for it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) url: String,
    pub(super) gatherer_id: String,
    pub(super) gatherer: String,
}

/// The term that an object is replaced and deleted by.
pub(super) fn oid_key(oid: &Oid) -> String {
    let text = oid_text(&oid.gatherer, &oid.url);
    if text.len() <= OID_BYTES_MAX {
        return text;
    }
    oid_text(&oid.gatherer, &format!("#{}", Md5::of(text.as_bytes())))
}

/// Returns the digest that duplicates of the object are told by; `None` if it cannot have any: it
/// is empty or of unknown content.
pub(super) fn content(record: &Record) -> Option<String> {
    let size = record.number("File-Size")?;
    let md5 = record.text("MD5")?.trim().to_ascii_lowercase();
    let short = record.url.len() <= OID_BYTES_MAX / 2;
    (0 < size && short && !md5.is_empty() && md5.len() <= KEY_BYTES_MAX).then_some(md5)
}

/// Returns the name of the gatherer: its own, or its host and port, or its id.
pub(super) fn gatherer_name(record: &Record, oid: &Oid) -> String {
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
        .unwrap_or_else(|| oid.gatherer.clone())
}

/// Returns the host of an address; empty if it has none.
pub(super) fn host(url: &str) -> String {
    url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_ascii_lowercase))
        .unwrap_or_default()
}

/// Returns the title that an object without one goes by: the last part of its address.
pub(super) fn title_of(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let inner = url.split_once('#').map_or("", |(_, inner)| inner);
    let last =
        |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let name = if inner.is_empty() { last(path) } else { last(inner) };
    let name = percent_encoding::percent_decode_str(&name).decode_utf8_lossy().into_owned();
    if name.is_empty() { url.to_owned() } else { name }
}

/// The term and column value of a facet value.
pub(super) fn facet_key(facet: Facet, value: &str) -> String {
    format!("{}\0{}", facet.name(), head(value, FACET_BYTES_MAX))
}

/// Makes the document of an object.
pub(super) fn document(
    fields: &Fields,
    oid: &Oid,
    record: &Record,
    place: &Place,
) -> TantivyDocument {
    let stored = stored(record, oid);
    let mut document = TantivyDocument::new();
    document.add_text(fields.oid, oid_key(oid));
    document.add_bool(fields.duplicate, place.duplicate);
    if let Some(content) = content(record) {
        document.add_text(fields.content, content);
    }
    add_attributes(&mut document, fields, record);
    add_url(&mut document, fields.url, &oid.url);
    add_text(&mut document, fields.r#type, &stored.r#type);
    add_text(&mut document, fields.host, &stored.host);
    for text in [&stored.gatherer, &oid.gatherer] {
        add_text(&mut document, fields.gatherer, text);
    }
    for other in &place.others {
        add_url(&mut document, fields.url, &other.url);
        add_text(&mut document, fields.host, &host(&other.url));
        add_text(&mut document, fields.gatherer, &other.gatherer);
        add_text(&mut document, fields.gatherer, &other.gatherer_id);
    }
    for key in facets(&stored, place) {
        document.add_text(fields.facet, key);
    }
    add_numbers(&mut document, fields, record, &stored);
    document.add_text(fields.url_key, head(&oid.url, KEY_BYTES_MAX));
    if !stored.title.is_empty() {
        document.add_text(fields.title_key, fold(head(&stored.title, KEY_BYTES_MAX)));
    }
    document.add_bytes(fields.stored, &serde_json::to_vec(&stored).unwrap_or_default());
    document
}

/// Adds what is searched by words and by the attributes' names.
fn add_attributes(document: &mut TantivyDocument, fields: &Fields, record: &Record) {
    let mut named: BTreeMap<String, Vec<OwnedValue>> = BTreeMap::new();
    for attribute in record.attributes().iter().take(ATTRIBUTES_MAX) {
        let name = attribute.name.to_ascii_lowercase();
        if NAME_BYTES_MAX < name.len() || name.contains('\0') {
            continue;
        }
        let value = String::from_utf8_lossy(&attribute.value);
        document.add_text(fields.names, &name);
        match target(fields, &name) {
            Target::Text(text, _) if is_own(&name) => {
                let bytes_max =
                    if text.field == fields.body.field { BODY_BYTES_MAX } else { VALUE_BYTES_MAX };
                add_text(document, text, head(&value, bytes_max));
            }
            Target::Oid | Target::Text(..) | Target::Attribute(_) => {
                let value = head(&value, VALUE_BYTES_MAX);
                if !BOOKKEEPING.contains(&name.as_str()) {
                    add_text(document, fields.body, value);
                }
                let values = named.entry(name).or_default();
                values.push(OwnedValue::Str(value.to_owned()));
                if let Ok(number) = value.trim().parse() {
                    values.push(OwnedValue::I64(number));
                }
            }
            Target::Number(..) | Target::Date(..) => {
                if !BOOKKEEPING.contains(&name.as_str()) {
                    add_text(document, fields.body, head(&value, VALUE_BYTES_MAX));
                }
            }
        }
    }
    if !named.is_empty() {
        let named = named.into_iter().map(|(name, values)| (name, OwnedValue::Array(values)));
        document.add_object(fields.attributes, named.collect());
    }
}

/// Whether the attribute `name` itself is a part of the index, not just a word for one.
fn is_own(name: &str) -> bool {
    matches!(
        name,
        "title"
            | "keywords"
            | "description"
            | "abstract"
            | "author"
            | "partial-text"
            | "full-text"
            | "body"
    )
}

fn add_text(document: &mut TantivyDocument, field: Text, text: &str) {
    if text.is_empty() {
        return;
    }
    document.add_text(field.field, text);
}

/// Adds an address as it is written, and, where that differs, as its names read: both
/// `Annual%20Report` and `report` find it.
fn add_url(document: &mut TantivyDocument, field: Text, url: &str) {
    add_text(document, field, url);
    let read = percent_encoding::percent_decode_str(url).decode_utf8_lossy();
    if read != url {
        add_text(document, field, &read);
    }
}

fn add_numbers(
    document: &mut TantivyDocument,
    fields: &Fields,
    record: &Record,
    stored: &StoredHit,
) {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    if let Some(size) = stored.size {
        document.add_i64(fields.size, signed(size));
    }
    if let Some(modified) = stored.modified {
        document.add_i64(fields.modified, modified);
    }
    if let Some(year) = stored.year {
        document.add_i64(fields.year, i64::from(year));
    }
    if let Some(updated) = record.number("Update-Time") {
        document.add_i64(fields.updated, signed(updated));
    }
}

/// Returns the year of a moment, UTC.
fn year(seconds: i64) -> Option<i16> {
    let moment = Timestamp::from_second(seconds).ok()?;
    Some(moment.to_zoned(jiff::tz::TimeZone::UTC).year())
}

/// Returns the facet values of an object and of those it answers for, each once.
fn facets(stored: &StoredHit, place: &Place) -> Vec<String> {
    let mut keys = Vec::new();
    let mut add = |facet: Facet, value: &str| {
        if !value.is_empty() {
            keys.push(facet_key(facet, value));
        }
    };
    add(Facet::Type, &stored.r#type);
    add(Facet::Host, &stored.host);
    add(Facet::Gatherer, &stored.gatherer);
    if let Some(year) = stored.year {
        add(Facet::Year, &year.to_string());
    }
    for other in &place.others {
        add(Facet::Host, &host(&other.url));
        add(Facet::Gatherer, &other.gatherer);
    }
    keys.sort();
    keys.dedup();
    keys
}

/// Returns what a hit shows of an object.
fn stored(record: &Record, oid: &Oid) -> StoredHit {
    let text = |name: &str, bytes_max: usize| {
        let text = record.text(name).unwrap_or_default();
        head(text.trim(), bytes_max).to_owned()
    };
    let first = |names: &[&str], bytes_max: usize| {
        names.iter().map(|name| text(name, bytes_max)).find(|text| !text.is_empty())
    };
    let modified =
        record.number("Last-Modification-Time").and_then(|seconds| i64::try_from(seconds).ok());
    // A reference says when its work appeared, which is more than when its file was written.
    let own_year = record
        .number("Year")
        .and_then(|year| i16::try_from(year).ok())
        .filter(|year| (1_000..=9_999).contains(year));
    StoredHit {
        url: oid.url.clone(),
        gatherer_id: oid.gatherer.clone(),
        gatherer: gatherer_name(record, oid),
        host: host(&oid.url),
        r#type: text("Type", FACET_BYTES_MAX),
        title: text("Title", STORED_TITLE_BYTES_MAX),
        description: first(&["Description", "Abstract"], STORED_DESCRIPTION_BYTES_MAX)
            .unwrap_or_default(),
        text: first(&["Full-Text", "Partial-Text", "Body", "Abstract"], STORED_TEXT_BYTES_MAX)
            .unwrap_or_default(),
        size: record.number("File-Size"),
        modified,
        year: own_year.or_else(|| modified.and_then(year)),
        landing_page: first(&[LANDING_PAGE], URL_BYTES_MAX).filter(|_| !is_web(&oid.url)),
    }
}

/// Whether an address is of the web.
fn is_web(url: &str) -> bool {
    ["http://", "https://"].iter().any(|it| url.starts_with(it))
}

/// Returns the beginning of `text`: at most `bytes_max` bytes, not in the middle of a character.
fn head(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_made_of_the_address() {
        let check = |url: &str, expected: &str| assert_eq!(title_of(url), expected, "{url}");
        check("file:///srv/docs/READ%20ME", "READ ME");
        check("http://a.org/b/?q=/x", "b");
        check("http://a.org/", "a.org");
        check("file:///a.tar#dir/b.txt", "b.txt");
        check("", "");
    }

    #[test]
    fn a_landing_page_is_for_what_is_not_of_the_web() {
        let check = |url: &str, expected: Option<&str>| {
            let mut record = Record::new("FILE", url);
            record.push(LANDING_PAGE, " https://h/1\n");
            let found = stored(&record, &Oid::new("g", url));
            assert_eq!(found.landing_page.as_deref(), expected, "{url}");
        };
        check("oai:h:1", Some("https://h/1"));
        check("http://h/2", None);
        let written = serde_json::to_string(&StoredHit::default()).unwrap();
        assert_eq!(serde_json::from_str::<StoredHit>(&written).unwrap().landing_page, None);
    }

    #[test]
    fn content_tells_duplicates_only_of_what_is_there() {
        let mut record = Record::new("FILE", "http://a/");
        assert_eq!(content(&record), None);
        record.push("MD5", "ABC");
        assert_eq!(content(&record), None);
        record.push("File-Size", "0");
        assert_eq!(content(&record), None);
        record.set("File-Size", "1");
        assert_eq!(content(&record).as_deref(), Some("abc"));
    }

    #[test]
    fn heads_end_between_characters() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(head("aé", 3), "aé");
        assert_eq!(head("", 3), "");
    }

    #[test]
    fn a_long_oid_is_told_by_its_digest() {
        let oid = Oid { gatherer: "g".to_owned(), url: format!("http://a/{}", "x".repeat(9_000)) };
        assert!(oid_key(&oid).len() < 64);
        let other = Oid { url: format!("{}y", oid.url), ..oid.clone() };
        assert_ne!(oid_key(&oid), oid_key(&other));
    }
}
