//! The document of a record: all that the index keeps of an object.

use std::collections::BTreeMap;

use collection::Oid;
use oai::crosswalk::LANDING_PAGE;
use query::field::Quantity;
use query::record::{
    self, OID_BYTES_MAX, Searched, gatherer_name, has_part_of_text, head, host, integer, path_of,
    quantity, searched, searched_url, type_of,
};
use query::words::fold;
use serde::{Deserialize, Serialize};
use soif::Record;
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;

use super::forms;
use super::schema::{Fields, Text};
use super::shown::twins::PRINT_BYTES;
use super::standing::{name_of, standing};
use crate::answer::Facet;

const STORED_TITLE_BYTES_MAX: usize = 512;
const STORED_DESCRIPTION_BYTES_MAX: usize = 2 << 10;
const KEY_BYTES_MAX: usize = 256;
const FACET_BYTES_MAX: usize = 256;
/// Maximum length of the URL of a hit's landing page, in bytes.
const URL_BYTES_MAX: usize = 2 * 1024;

/// What stands among the names of an object's attributes if only a part of its text is here. No
/// attribute has such a name.
pub(super) const PART: &str = "\0part";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(it: &bool) -> bool {
    !*it
}

/// The content of a hit, stored in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredHit {
    pub(super) url: String,
    pub(super) gatherer_id: String,
    pub(super) gatherer: String,
    pub(super) host: String,
    pub(super) r#type: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) size: Option<u64>,
    pub(super) modified: Option<i64>,
    /// The object's own `Year` or that of its `Date`, or else of its modification, UTC.
    pub(super) year: Option<i16>,
    /// The print of the text, by which texts that are nearly the same are known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) print: String,
    /// Whether only the beginning of the text is here.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) part: bool,
    /// Web page about an object whose own URL is neither `http` nor `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) landing_page: Option<String>,
}

/// The role of an object in its group of objects with the same content.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupRole {
    /// Whether another object represents this one in answers.
    pub(super) represented: bool,
    /// The duplicates that this object represents.
    pub(super) duplicates: Vec<Duplicate>,
}

/// A duplicate, as indexed with the object that represents it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) url: String,
    pub(super) gatherer_id: String,
    pub(super) gatherer: String,
}

/// Returns the term by which an object is replaced and deleted.
pub(super) fn oid_key(oid: &Oid) -> String {
    record::oid_key(&oid.gatherer, &oid.url)
}

/// Returns the digest by which duplicates of the object are found; `None` if the object cannot have
/// duplicates: it is empty, its content is unknown, or its URL is too long.
pub(super) fn content_digest(record: &Record) -> Option<String> {
    let size = record.number("File-Size")?;
    let md5 = record.text("MD5")?.trim().to_ascii_lowercase();
    let short = record.url.len() <= OID_BYTES_MAX / 2;
    (0 < size && short && !md5.is_empty() && md5.len() <= KEY_BYTES_MAX).then_some(md5)
}

/// Returns the title for an object without one: the last part of its URL.
pub(super) fn title_of(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let inner = url.split_once('#').map_or("", |(_, inner)| inner);
    let last =
        |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let name = if inner.is_empty() { last(path) } else { last(inner) };
    let name = percent_encoding::percent_decode_str(&name).decode_utf8_lossy().into_owned();
    if name.is_empty() { url.to_owned() } else { name }
}

/// Returns the term and column value of a facet value.
pub(super) fn facet_key(facet: Facet, value: &str) -> String {
    format!("{}\0{}", facet.name(), head(value, FACET_BYTES_MAX))
}

/// Returns the document of an object, whose last change has this serial.
pub(super) fn document(
    fields: &Fields,
    oid: &Oid,
    (record, serial): (&Record, u64),
    role: &GroupRole,
) -> TantivyDocument {
    let stored = stored(record, oid);
    let mut document = TantivyDocument::new();
    document.add_text(fields.oid, oid_key(oid));
    document.add_bool(fields.duplicate, role.represented);
    if let Some(digest) = content_digest(record) {
        document.add_text(fields.content, digest);
    }
    add_searched(&mut document, fields, record);
    forms::add_languages(&mut document, fields, record);
    add_text(&mut document, fields.name, &name_of(&oid.url));
    document.add_u64(fields.standing, standing(record));
    document.add_u64(fields.serial, serial);
    let root = record.text("Gatherer-Root").unwrap_or_default();
    for it in &role.duplicates {
        searched_url(&it.url, &mut |text| add_text(&mut document, fields.url, text));
        let path = path_of(&it.url, &root);
        searched_url(path, &mut |text| add_text(&mut document, fields.path, text));
        add_text(&mut document, fields.host, &host(&it.url));
        add_text(&mut document, fields.gatherer, &it.gatherer);
        add_text(&mut document, fields.gatherer, &it.gatherer_id);
    }
    for key in facets(&stored, role) {
        document.add_text(fields.facet, key);
    }
    if stored.part {
        document.add_text(fields.names, PART);
    }
    for it in Quantity::ALL {
        if let Some(number) = quantity(record, it) {
            document.add_i64(fields.quantity(it), number);
        }
    }
    document.add_text(fields.url_key, head(&oid.url, KEY_BYTES_MAX));
    if !stored.title.is_empty() {
        document.add_text(fields.title_key, fold(head(&stored.title, KEY_BYTES_MAX)));
    }
    document.add_bytes(fields.stored, &serde_json::to_vec(&stored).unwrap_or_default());
    document
}

/// Adds the text that is searched by words and by the names of attributes.
fn add_searched(document: &mut TantivyDocument, fields: &Fields, record: &Record) {
    let mut named: BTreeMap<String, Vec<OwnedValue>> = BTreeMap::new();
    searched(record, &mut |name, what| match what {
        Searched::Name => document.add_text(fields.names, name),
        Searched::Text(part, text) => add_text(document, fields.text(part), text),
        Searched::Attribute(text) => {
            let values = named.entry(name.to_owned()).or_default();
            values.push(OwnedValue::Str(text.to_owned()));
            values.extend(integer(text).map(OwnedValue::I64));
        }
    });
    if !named.is_empty() {
        let named = named.into_iter().map(|(name, values)| (name, OwnedValue::Array(values)));
        document.add_object(fields.attributes, named.collect());
    }
}

fn add_text(document: &mut TantivyDocument, field: Text, text: &str) {
    if !text.is_empty() {
        document.add_text(field.field, text);
    }
}

/// Returns the facet values of an object and of the duplicates that it represents, each once.
fn facets(stored: &StoredHit, role: &GroupRole) -> Vec<String> {
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
    for it in &role.duplicates {
        add(Facet::Host, &host(&it.url));
        add(Facet::Gatherer, &it.gatherer);
    }
    keys.sort();
    keys.dedup();
    keys
}

fn stored(record: &Record, oid: &Oid) -> StoredHit {
    let text = |name: &str, bytes_max: usize| {
        let text = record.text(name).unwrap_or_default();
        head(text.trim(), bytes_max).to_owned()
    };
    let first = |names: &[&str], bytes_max: usize| {
        names.iter().map(|name| text(name, bytes_max)).find(|text| !text.is_empty())
    };
    StoredHit {
        url: oid.url.clone(),
        gatherer_id: oid.gatherer.clone(),
        gatherer: head(&gatherer_name(record), FACET_BYTES_MAX).to_owned(),
        host: host(&oid.url),
        r#type: type_of(record),
        title: text("Title", STORED_TITLE_BYTES_MAX),
        description: first(&["Description", "Abstract"], STORED_DESCRIPTION_BYTES_MAX)
            .unwrap_or_default(),
        size: record.number("File-Size"),
        modified: quantity(record, Quantity::Modified),
        year: quantity(record, Quantity::Year).and_then(|year| i16::try_from(year).ok()),
        print: text("Text-Print", PRINT_BYTES),
        part: has_part_of_text(record),
        landing_page: first(&[LANDING_PAGE], URL_BYTES_MAX).filter(|_| !is_web(&oid.url)),
    }
}

fn is_web(url: &str) -> bool {
    ["http://", "https://"].iter().any(|it| url.starts_with(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_made_of_the_url() {
        let check = |url: &str, expected: &str| assert_eq!(title_of(url), expected, "{url}");
        check("file:///srv/docs/READ%20ME", "READ ME");
        check("http://a.org/b/?q=/x", "b");
        check("http://a.org/", "a.org");
        check("file:///a.tar#dir/b.txt", "b.txt");
        check("", "");
    }

    #[test]
    fn only_objects_outside_the_web_have_a_landing_page() {
        let check = |url: &str, expected: Option<&str>| {
            let mut record = Record::new("FILE", url);
            record.push(LANDING_PAGE, " https://h/1\n");
            let hit = stored(&record, &Oid::new("g", url));
            assert_eq!(hit.landing_page.as_deref(), expected, "{url}");
        };
        check("oai:h:1", Some("https://h/1"));
        check("http://h/2", None);
        let written = serde_json::to_string(&StoredHit::default()).unwrap();
        assert_eq!(serde_json::from_str::<StoredHit>(&written).unwrap().landing_page, None);
    }

    #[test]
    fn an_empty_object_has_no_duplicates() {
        let mut record = Record::new("FILE", "http://a/");
        assert_eq!(content_digest(&record), None);
        record.push("MD5", "ABC");
        assert_eq!(content_digest(&record), None);
        record.push("File-Size", "0");
        assert_eq!(content_digest(&record), None);
        record.set("File-Size", "1");
        assert_eq!(content_digest(&record).as_deref(), Some("abc"));
    }
}
