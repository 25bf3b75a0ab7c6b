//! The DataCite crosswalk: kernels 2 to 4, alone or within `oai_datacite`.
//!
//! Source: DataCite Metadata Schema 4.5 (its properties by their names); the wrapper of DataCite's
//! own repository (`payload`).

use super::date;
use super::draft::{Draft, Field, identified};
use super::tree::Element;

/// Reads the resource in `root`, which is either the resource itself or a wrapper with the resource
/// in its payload.
pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    let payload = root.child("payload").unwrap_or(root);
    let resource = payload.child("resource").unwrap_or(payload);
    for property in resource.children() {
        match property.name() {
            "identifier" => {
                let scheme = property.attribute("identifierType");
                draft.put(Field::Identifier, identified(scheme, property.text()));
            }
            "creators" => property.all("creator").for_each(|it| {
                draft.put(Field::Author, name(it, "creatorName"));
            }),
            "titles" => property.all("title").for_each(|it| match it.attribute("titleType") {
                "" => draft.put_title(it.text()),
                _ => draft.put(Field::AlternativeTitle, it.text()),
            }),
            "publisher" => draft.put(Field::Publisher, property.text()),
            "resourceType" => {
                draft.put(Field::Type, property.attribute("resourceTypeGeneral"));
                draft.put(Field::Type, property.text());
            }
            "subjects" => lines(property, Field::Keyword, draft),
            "contributors" => property.all("contributor").for_each(|it| {
                draft.put(Field::Contributor, name(it, "contributorName"));
            }),
            "dates" => property.all("date").for_each(|it| dated(it, draft)),
            "language" => draft.put(Field::Language, property.text()),
            "alternateIdentifiers" => property.children().for_each(|it| {
                let scheme = it.attribute("alternateIdentifierType");
                draft.put(Field::Identifier, identified(scheme, it.text()));
            }),
            "relatedIdentifiers" => property.children().for_each(|it| {
                let scheme = it.attribute("relatedIdentifierType");
                draft.put(Field::Related, identified(scheme, it.text()));
            }),
            "relatedItems" => {
                let titles = property.children().filter_map(|it| it.child("titles"));
                titles.for_each(|it| draft.put(Field::Related, it.text_of("title")));
            }
            "sizes" | "formats" => lines(property, Field::Format, draft),
            "version" => draft.put_other("Version", property.text()),
            "rightsList" => property.children().for_each(|it| {
                draft.put(Field::Rights, it.text());
                draft.put(Field::Rights, it.attribute("rightsURI"));
            }),
            // Kernel 2 has no list of rights.
            "rights" => draft.put(Field::Rights, property.text()),
            "descriptions" => property.all("description").for_each(|it| {
                let is_abstract = it.attribute("descriptionType") == "Abstract";
                let field = if is_abstract { Field::Abstract } else { Field::Description };
                draft.put(field, it.whole_text());
            }),
            "geoLocations" => lines(property, Field::Coverage, draft),
            "fundingReferences" => property.children().for_each(|it| {
                let parts = [it.text_of("funderName"), it.text_of("awardNumber")];
                draft.put_other("Funding", parts.join(" "));
            }),
            _ => {}
        }
    }
    publication_year(resource, draft);
}

/// Adds the year of publication, unless there is a more exact date.
fn publication_year<'t>(resource: Element<'t, '_>, draft: &mut Draft<'t>) {
    let Some(element) = resource.child("publicationYear") else { return };
    let year = date::year(element.text());
    let is_known = draft.values(Field::Date).any(|it| date::year(it) == year);
    if !is_known {
        draft.put(Field::Date, element.text());
    }
}

/// Returns the name as written in one piece, or else as `family, given`.
fn name(person: Element<'_, '_>, element: &'static str) -> String {
    let whole = person.text_of(element);
    if !whole.trim().is_empty() {
        return whole.into_owned();
    }
    let parts = [person.text_of("familyName"), person.text_of("givenName")];
    let parts: Vec<&str> = parts.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    parts.join(", ")
}

fn lines<'t>(list: Element<'t, '_>, field: Field, draft: &mut Draft<'t>) {
    list.children().for_each(|it| draft.put(field, it.whole_text()));
}

fn dated<'t>(element: Element<'t, '_>, draft: &mut Draft<'t>) {
    let name = match element.attribute("dateType") {
        "Issued" | "Created" | "" => return draft.put(Field::Date, element.text()),
        "Updated" => "Date-Modified",
        "Available" => "Date-Available",
        "Accepted" => "Date-Accepted",
        "Submitted" => "Date-Submitted",
        "Valid" => "Date-Valid",
        "Collected" => "Date-Collected",
        "Copyrighted" => "Date-Copyrighted",
        "Coverage" => return draft.put(Field::Coverage, element.text()),
        _ => "Date-Other",
    };
    draft.put_other(name, element.text());
}
