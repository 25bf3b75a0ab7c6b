//! Linked data as JSON: datasets, articles, people and organizations in the vocabulary of schema.org.
//!
//! Source: JSON-LD 1.1; schema.org (properties by their names); Dublin Core terms with the same or similar
//! names.
//!
//! # Differences from the standard
//!
//! * Contexts are neither fetched nor applied: names are read without prefix or vocabulary.
//! * References (`@id`) to other things in the file are not followed.

use serde_json::Value;

use crate::catalog::json::{each, elements, member, parse, read_alone, text};
use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;

/// Deepest nesting of values in the search for a name.
const DEPTH_MAX: u32 = 8;

/// Attributes, and the properties that become them, in order of precedence.
const PROPERTIES: &[(&str, &[&str])] = &[
    ("Title", &["name", "headline", "title"]),
    ("Alternative-Title", &["alternateName", "alternativeHeadline", "alternative"]),
    ("Author", &["author", "creator"]),
    ("Contributor", &["contributor", "editor"]),
    ("Description", &["description"]),
    ("Abstract", &["abstract"]),
    ("Date", &["datePublished", "issued", "dateCreated", "date"]),
    ("Date-Modified", &["dateModified"]),
    ("Language", &["inLanguage", "language"]),
    ("Publisher", &["publisher"]),
    ("Provider", &["provider"]),
    ("Source", &["isPartOf", "includedInDataCatalog"]),
    ("License", &["license"]),
    ("Copyright", &["copyrightHolder", "copyrightNotice"]),
    ("Rights", &["rights"]),
    ("Version", &["version", "softwareVersion"]),
    ("Subject", &["keywords", "about", "subject", "genre"]),
    ("Location", &["spatialCoverage", "address"]),
    ("Coverage", &["temporalCoverage"]),
    ("Funding", &["funder"]),
    ("Format", &["encodingFormat"]),
    ("Programming-Language", &["programmingLanguage"]),
    ("Platforms", &["operatingSystem"]),
    ("Affiliation", &["affiliation", "worksFor"]),
    ("Job-Title", &["jobTitle"]),
    ("Email", &["email"]),
    ("Variables", &["variableMeasured"]),
    ("Related", &["citation"]),
    ("URL-References", &["url", "sameAs", "contentUrl", "downloadUrl", "codeRepository"]),
];

/// Properties that hold an identifier, and its scheme; "" if the value itself declares it.
const SCHEMES: &[(&str, &str)] =
    &[("doi", "doi"), ("isbn", "isbn"), ("issn", "issn"), ("identifier", ""), ("orcid", "orcid")];

pub(crate) fn read(whole: &str, reading: &mut Reading<'_>) {
    let whole = whole.trim_start_matches('\u{feff}').trim();
    let list = if whole.starts_with('{') { member(whole, "@graph") } else { Some(whole) };
    let Some(list) = list else {
        return read_alone(whole, whole, reading, |it| Some(fields(&it)));
    };
    for (at, element) in elements(list).enumerate() {
        let thing = parse(element).map(|it| (fields(&it), it));
        let goes_on = match thing {
            None if Limit::Entry.bound() < element.len() => {
                reading.too_long(Limit::Entry, element.as_bytes())
            }
            None => reading.broken("", || format!("is element {}", at + 1)),
            // A thing without a name only links other things.
            Some((fields, _)) if fields.first("Title").is_empty() => reading.goes_on(),
            Some((fields, thing)) => {
                let key = property(&thing, "@id").map(text).unwrap_or_default();
                let keys = [&key, fields.first("Identifier"), fields.first("URL-References")];
                let key = keys.into_iter().find(|it| !it.is_empty()).unwrap_or_default().to_owned();
                reading.entry(&key, element.as_bytes(), fields)
            }
        };
        if !goes_on {
            return;
        }
    }
}

/// Returns a name without its prefix or vocabulary (`schema:name`, `http://schema.org/name`).
fn local(name: &str) -> &str {
    name.rsplit([':', '/', '#']).next().unwrap_or(name)
}

fn property<'v>(thing: &'v Value, name: &str) -> Option<&'v Value> {
    thing.as_object()?.iter().find(|(it, _)| local(it) == name).map(|(_, value)| value)
}

fn values<'v>(thing: &'v Value, name: &str) -> &'v [Value] {
    property(thing, name).map(each).unwrap_or_default()
}

fn fields(thing: &Value) -> EntryFields {
    let mut fields = EntryFields::default();
    values(thing, "@type").iter().for_each(|it| fields.put("Resource-Type", local(&text(it))));
    let mappings = PROPERTIES.iter().flat_map(|(to, from)| from.iter().map(move |from| (from, to)));
    for (from, to) in mappings {
        let Some(value) = property(thing, from) else { continue };
        // One date is enough: of publication, else of creation.
        if *to == "Date" && !fields.first("Date").is_empty() {
            continue;
        }
        for it in each(value).iter() {
            put(to, it, &mut fields);
        }
    }
    if fields.first("Title").is_empty() {
        fields.put("Title", &person(thing));
    }
    for (from, scheme) in SCHEMES {
        for it in values(thing, from).iter() {
            identifier(scheme, it, &mut fields);
        }
    }
    for download in values(thing, "distribution").iter() {
        for name in ["contentUrl", "downloadUrl", "url"] {
            let address = property(download, name).map(text).unwrap_or_default();
            fields.put("URL-References", &address);
        }
    }
    fields
}

fn put(attribute: &'static str, value: &Value, fields: &mut EntryFields) {
    match attribute {
        "Subject" => {
            let words = name(value, 0);
            fields.put_all(attribute, &words, &[',', ';']);
        }
        "URL-References" | "License" | "Rights" => {
            let address = value.get("@id").map(text).unwrap_or_default();
            let name = name(value, 0);
            fields.put(attribute, if name.is_empty() { &address } else { &name });
        }
        _ => {
            for it in list(value) {
                fields.put(attribute, &name(it, 0));
            }
        }
    }
}

/// Returns the elements of an ordered list, or the value itself.
fn list(value: &Value) -> &[Value] {
    value.get("@list").map_or_else(|| std::slice::from_ref(value), each)
}

/// Returns the text of a value, or the name of a thing.
fn name(value: &Value, depth: u32) -> String {
    let plain = text(value);
    if !plain.is_empty() || DEPTH_MAX <= depth {
        return plain;
    }
    let names =
        ["@value", "name", "value", "headline", "title", "url", "addressLocality", "alternateName"];
    let values = names.iter().filter_map(|it| property(value, it));
    let first = values.flat_map(each).map(|it| name(it, depth + 1)).find(|it| !it.is_empty());
    first.unwrap_or_else(|| person(value))
}

/// Returns given and family name of a person; "" if there are none.
fn person(value: &Value) -> String {
    let parts = ["givenName", "familyName"].map(|it| property(value, it).map(text));
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Adds an identifier: a text, or a `PropertyValue` that declares its scheme.
fn identifier(scheme: &str, value: &Value, fields: &mut EntryFields) {
    let declared = property(value, "propertyID").map(text).unwrap_or_default();
    let declared = local(&declared).to_ascii_lowercase();
    let text_of = ["value", "@value", "@id"].iter().find_map(|it| property(value, it)).map(text);
    let id = text_of.unwrap_or_else(|| text(value));
    // Some write the scheme before the number.
    let prefix = id.split_once(':').map(|(it, _)| it).filter(|it| it.eq_ignore_ascii_case("doi"));
    let scheme = if declared.is_empty() { prefix.unwrap_or(scheme) } else { &declared };
    fields.put_identifier(scheme, &id);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::JsonLd, text.as_bytes()), expected);
    }

    #[test]
    fn a_dataset() {
        check(
            r#"{"@context": "https://schema.org", "@type": "Dataset", "name": "Ice cores",
                "description": "Depth and age.", "keywords": ["ice, snow", {"@type": "DefinedTerm", "name": "cores"}],
                "creator": [{"@type": "Person", "givenName": "Ann", "familyName": "Miller"}, "Bo Ro"],
                "publisher": {"@type": "Organization", "name": "Archive"}, "datePublished": "2020-05-01",
                "dateCreated": "2019", "dateModified": "2021", "inLanguage": {"@type": "Language", "alternateName": "en"},
                "license": {"@id": "https://l.example/cc0"}, "version": 2,
                "identifier": {"@type": "PropertyValue", "propertyID": "https://registry.example/doi", "value": "10.5072/1"},
                "url": "https://h.example/d",
                "distribution": [{"@type": "DataDownload", "contentUrl": "https://h.example/d.csv"}]}"#,
            &["(alone): Title=Ice cores; Author=Ann Miller|Bo Ro; Description=Depth and age.; \
               Resource-Type=Dataset; Date=2020-05-01; Date-Source=entry; Date-Modified=2021; Language=en; \
               Publisher=Archive; License=https://l.example/cc0; Version=2; Subject=ice|snow|cores; \
               Identifier=doi:10.5072/1; URL-References=https://h.example/d|https://h.example/d.csv"],
        );
    }

    #[test]
    fn a_graph_is_a_list() {
        check(
            r#"{"@context": {}, "@graph": [
                {"@id": "ex:1", "@type": ["schema:Article", "schema:Report"], "schema:headline": "On ice",
                 "schema:author": {"@list": [{"name": "Ann"}, {"name": "Bo"}]}, "schema:doi": "doi:10.5072/2"},
                {"@id": "ex:2"}, {"@type": "Person", "name": {"@value": "Ann"}, "email": "a@h.example",
                 "url": "https://h.example/ann"}, {"@type": }]}"#,
            &[
                "ex:1: Title=On ice; Author=Ann|Bo; Resource-Type=Article|Report; Identifier=doi:10.5072/2",
                "https://h.example/ann: Title=Ann; Resource-Type=Person; Email=a@h.example; \
                 URL-References=https://h.example/ann",
                "broken",
            ],
        );
        check(
            r#"[{"@type": "Organization", "name": "A"}]"#,
            &[": Title=A; Resource-Type=Organization"],
        );
    }

    #[test]
    fn records_of_one_and_of_many() {
        assert_eq!(
            render("a.jsonld", Type::JsonLd, br#"{"name": "A", "author": "B"}"#),
            "Title: A\nAuthor: B\nPartial-Text: A / B"
        );
        assert_eq!(
            render("a.jsonld", Type::JsonLd, br#"[{"name": "A"}, {"name": "B", "date": "1994"}]"#),
            "Title: a.jsonld\nDescription: Linked data with 2 entries of 1994\nEntries: 2\nYears: 1994\n\
             Titles: A | B\nPartial-Text: A | B (1994)"
        );
        let deep = format!("{}1{}", "{\"name\":".repeat(100), "}".repeat(100));
        render("a", Type::JsonLd, deep.as_bytes());
        render("a", Type::JsonLd, "{\"@graph\":[".repeat(100_000).as_bytes());
        render("a", Type::JsonLd, format!("[{}]", "{},".repeat(200_000)).as_bytes());
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(text in "[\\[{]?(\"@graph\":|\"name\":|\"author\":|\"@list\":|\\[|\\]|\\{|\\}|,|\"x\"|3|é){0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a", Type::JsonLd, text.as_bytes());
            render("a", Type::JsonLd, &bytes);
        }
    }
}
