//! DataCite metadata: descriptions of datasets, as XML or as JSON.
//!
//! Source: DataCite Metadata Schema 4.5 and its JSON; the answers of DataCite's REST API (`data`,
//! `attributes`). The XML goes through the same crosswalk as harvested metadata. Both describe one thing,
//! except for the API's lists.

use oai::crosswalk;
use serde_json::Value;

use crate::catalog::json::{each, hand_out, member, text};
use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;
use crate::object::ProblemKind;

pub(crate) fn read(whole: &str, reading: &mut Reading<'_>) {
    let whole = whole.trim_start_matches('\u{feff}').trim();
    if whole.starts_with('<') {
        return xml(whole, reading);
    }
    let data = if whole.starts_with('{') { member(whole, "data").unwrap_or(whole) } else { whole };
    let list = Some(data).filter(|it| it.starts_with('['));
    hand_out(whole, (list, data), reading, resource);
}

fn xml(whole: &str, reading: &mut Reading<'_>) {
    if Limit::Thing.bound() < whole.len() {
        reading.too_long(Limit::Thing, whole.as_bytes());
        return;
    }
    let (record, problems) = crosswalk::metadata_to_soif(whole, "datacite");
    for problem in problems {
        reading.problem(ProblemKind::Broken, problem.message);
    }
    reading.alone(whole.as_bytes(), Some(EntryFields::of(&record)));
}

/// Returns the key and the fields of one resource.
fn resource(it: &Value) -> (String, EntryFields) {
    let properties = it.get("attributes").unwrap_or(it);
    let of = |name: &str| properties.get(name).unwrap_or(&Value::Null);
    let mut fields = EntryFields::default();
    for it in each(of("titles")) {
        let is_other = it.get("titleType").is_some_and(|it| !it.is_null());
        let name = if is_other { "Alternative-Title" } else { "Title" };
        fields.put(name, &part(it, "title"));
    }
    people(of("creators"), "Author", &mut fields);
    people(of("contributors"), "Contributor", &mut fields);
    for it in each(of("descriptions")) {
        let is_abstract = part(it, "descriptionType") == "Abstract";
        let name = if is_abstract { "Abstract" } else { "Description" };
        fields.put(name, &part(it, "description"));
    }
    let types = of("types");
    fields.put("Resource-Type", &part(types, "resourceTypeGeneral"));
    fields.put("Resource-Type", &part(types, "resourceType"));
    dates(of("dates"), &mut fields);
    let year = text(of("publicationYear"));
    if !year.is_empty() && !fields.first("Date").starts_with(&year) {
        fields.put("Date", &year);
    }
    fields.put("Language", &text(of("language")));
    fields.put("Publisher", &part(of("publisher"), "name"));
    fields.put_identifier("doi", &text(of("doi")));
    for it in each(of("identifiers")).iter().chain(each(of("alternateIdentifiers"))) {
        let scheme = [part(it, "identifierType"), part(it, "alternateIdentifierType")].concat();
        let value = it.get("identifier").or_else(|| it.get("alternateIdentifier"));
        fields.put_identifier(&scheme, &value.map(text).unwrap_or_default());
    }
    for it in each(of("relatedIdentifiers")) {
        let value = part(it, "relatedIdentifier");
        fields.put("Related", &crosswalk::identified(&part(it, "relatedIdentifierType"), &value));
    }
    each(of("subjects")).iter().for_each(|it| fields.put("Subject", &part(it, "subject")));
    each(of("formats")).iter().for_each(|it| fields.put("Format", &text(it)));
    fields.put("Version", &text(of("version")));
    for it in each(of("rightsList")) {
        fields.put("Rights", &part(it, "rights"));
        fields.put("Rights", &part(it, "rightsUri"));
    }
    for it in each(of("fundingReferences")) {
        let parts = [part(it, "funderName"), part(it, "awardNumber")].join(" ");
        fields.put("Funding", &parts);
    }
    fields.put("URL-References", &text(of("url")));
    let key = [text(of("doi")), it.get("id").map(text).unwrap_or_default()];
    (key.into_iter().find(|it| !it.is_empty()).unwrap_or_default(), fields)
}

/// Returns a part of a property, or the property itself if it is a text.
fn part(value: &Value, name: &str) -> String {
    value.get(name).map_or_else(|| text(value), text)
}

fn people(list: &Value, attribute: &'static str, fields: &mut EntryFields) {
    for person in each(list) {
        let whole = part(person, "name");
        let both =
            ["familyName", "givenName"].map(|it| person.get(it).map(text).unwrap_or_default());
        let name = if whole.is_empty() { both.join(", ") } else { whole };
        fields.put(attribute, name.trim_matches([',', ' ']));
    }
}

fn dates(list: &Value, fields: &mut EntryFields) {
    for it in each(list) {
        let name = match part(it, "dateType").as_str() {
            "Issued" | "Created" => "Date",
            "Updated" => "Date-Modified",
            "Available" => "Date-Available",
            "Collected" => "Date-Collected",
            _ => continue,
        };
        fields.put(name, &part(it, "date"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::catalog::testing::entries;
    use crate::testing::render;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(entries(Type::DataCite, text.as_bytes()), expected);
    }

    const JSON: &str = r#"{"id": "10.5072/1", "type": "dois", "attributes": {"doi": "10.5072/1",
        "titles": [{"title": "Ice cores"}, {"title": "Eis", "titleType": "TranslatedTitle"}],
        "creators": [{"name": "Miller, Ann"}, {"familyName": "Ro", "givenName": "Bo"}],
        "publisher": {"name": "Archive"}, "publicationYear": 2020, "subjects": [{"subject": "ice"}],
        "dates": [{"date": "2020-05-01", "dateType": "Issued"}], "language": "eng",
        "types": {"resourceTypeGeneral": "Dataset"}, "version": "2", "url": "https://h.example/d",
        "descriptions": [{"description": "Data.", "descriptionType": "Abstract"}],
        "rightsList": [{"rights": "CC0", "rightsUri": null}]}}"#;
    const EXPECTED: &str = "Title=Ice cores; Author=Miller, Ann|Ro, Bo; Abstract=Data.; \
        Alternative-Title=Eis; Resource-Type=Dataset; Date=2020-05-01; Date-Source=entry; Language=en; \
        Publisher=Archive; Identifier=doi:10.5072/1; Subject=ice; Version=2; Rights=CC0; \
        URL-References=https://h.example/d";

    #[test]
    fn json_of_one_and_of_many() {
        check(&format!("{{\"data\": {JSON}}}"), &[&format!("(alone): {EXPECTED}")]);
        check(
            &format!("{{\"data\": [{JSON}, {{\"x\": [}}]}}"),
            &[&format!("10.5072/1: {EXPECTED}"), "broken"],
        );
        check(
            r#"{"titles": [{"title": "A"}], "publisher": "B"}"#,
            &["(alone): Title=A; Publisher=B"],
        );
    }

    #[test]
    fn xml_goes_through_the_crosswalk() {
        let xml = r#"<resource xmlns="http://datacite.org/schema/kernel-4">
            <identifier identifierType="DOI">10.5072/1</identifier>
            <creators><creator><creatorName>Miller, Ann</creatorName></creator></creators>
            <titles><title>Ice cores</title></titles><publisher>Archive</publisher>
            <publicationYear>2020</publicationYear><language>en</language>
            <subjects><subject>ice</subject></subjects></resource>"#;
        assert_eq!(
            render("d.xml", Type::DataCite, xml.as_bytes()),
            "Title: Ice cores\nAuthor: Miller, Ann\nDate: 2020\nDate-Source: entry\nLanguage: en\nLanguage-Source: declared\nPublisher: Archive\n\
             Identifier: doi:10.5072/1\nSubject: ice\n\
             URL-References: https://doi.org/10.5072/1\n\
             Partial-Text: Ice cores / Miller, Ann (2020). Archive. doi:10.5072/1. ice. https://doi.org/10.5072/1"
        );
        let cut = &xml[..xml.len() - 20];
        assert!(render("d.xml", Type::DataCite, cut.as_bytes()).contains("! broken: "), "{cut}");
    }

    proptest! {
        #[test]
        fn any_text_gives_a_record(text in "[\\[{<]?(\"data\":|\"titles\":|\"dates\":|\\[|\\]|\\{|\\}|,|\"x\"|3|é|<resource>|<titles>){0,20}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            render("a", Type::DataCite, text.as_bytes());
            render("a", Type::DataCite, &bytes);
        }
    }
}
