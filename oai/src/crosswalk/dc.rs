//! The Dublin Core crosswalk: `oai_dc`, and qualified DC in the containers that repositories use.
//!
//! Source: DCMI Metadata Terms (the fifteen elements and the properties of `/terms/`); OAI-PMH §2.5
//! and the schema of `oai_dc`.
//!
//! # Elements and attributes
//!
//! | element | attribute | back from |
//! |---|---|---|
//! | title | `Title`, the others `Alternative-Title` | both |
//! | creator | `Author` | `Author` |
//! | subject | `Keywords` | `Subject`, `Declared-Keywords`, or else `Keywords` if they are few |
//! | description | `Description` | `Description`, `Abstract` |
//! | publisher | `Publisher` | `Publisher` |
//! | contributor | `Contributor` | `Contributor` |
//! | date | `Date`, `Original-Date`, `Year` | `Original-Date`, or else `Date`, or else `Year`, or else `Last-Modification-Time` as a day |
//! | type | `Type`, `Resource-Type` | `Resource-Type`, or else `Type` |
//! | format | `Format` | `Format` |
//! | identifier | `Identifier`, `Landing-Page` | `Identifier`, `Landing-Page`, the URL if it is a web address or there is no other |
//! | source | `Source` | `Source` |
//! | language | `Language`, `Original-Language` | `Original-Language`, or else `Language` |
//! | relation | `Related` | `Related` |
//! | coverage | `Coverage` | `Coverage` |
//! | rights | `Rights` | `Rights` |
//!
//! A property of `/terms/` that refines an element goes to the attribute of the element.
//! `alternative`, `abstract`, `bibliographicCitation` and dates other than the work's have
//! attributes of their own.

use soif::Record;

use super::draft::{Draft, Field, ORIGINAL_DATE, ORIGINAL_LANGUAGE, RESOURCE_TYPE, front, is_web};
use super::tree::{Element, Space};
use crate::datestamp::{Datestamp, Granularity};
use crate::response::Xml;
use crate::xml;

/// Namespace of the container `dc`.
pub(super) const OAI_DC: &str = "http://www.openarchives.org/OAI/2.0/oai_dc/";
/// Address of the schema of that container.
pub(super) const OAI_DC_SCHEMA: &str = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd";
/// Namespace of the fifteen elements.
const ELEMENTS: &str = "http://purl.org/dc/elements/1.1/";

/// Longest written value of an element, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of written elements of one name.
const VALUES_MAX: usize = 1_000;
/// Maximum number of keywords that are written as subjects; more are the words of a text.
const SUBJECTS_MAX: usize = 100;

/// Returns the field of an element or property; `None` if it has none.
pub(super) fn field(name: &str) -> Option<Field> {
    Some(match name {
        "title" => Field::Title,
        "alternative" => Field::AlternativeTitle,
        "creator" => Field::Author,
        "contributor" => Field::Contributor,
        "subject" => Field::Keyword,
        "description" | "tableOfContents" => Field::Description,
        "abstract" => Field::Abstract,
        "publisher" => Field::Publisher,
        "date" | "issued" | "created" | "dateCopyrighted" => Field::Date,
        "type" => Field::Type,
        "format" | "extent" | "medium" => Field::Format,
        "identifier" => Field::Identifier,
        "bibliographicCitation" => Field::Citation,
        "source" => Field::Source,
        "language" => Field::Language,
        "relation" | "isPartOf" | "hasPart" | "isVersionOf" | "hasVersion" | "isFormatOf"
        | "hasFormat" | "isReferencedBy" | "references" | "isReplacedBy" | "replaces"
        | "isRequiredBy" | "requires" | "conformsTo" => Field::Related,
        "coverage" | "spatial" | "temporal" => Field::Coverage,
        "rights" | "license" | "accessRights" | "rightsHolder" => Field::Rights,
        _ => return None,
    })
}

/// Returns the attribute of a property that has no field; `None` if the property is unknown.
fn other(name: &str) -> Option<&'static str> {
    Some(match name {
        "available" => "Date-Available",
        "modified" => "Date-Modified",
        "dateAccepted" => "Date-Accepted",
        "dateSubmitted" => "Date-Submitted",
        "valid" => "Date-Valid",
        "audience" | "educationLevel" | "mediator" => "Audience",
        "provenance" => "Provenance",
        "instructionalMethod" => "Instructional-Method",
        "accrualMethod" | "accrualPeriodicity" | "accrualPolicy" => "Accrual",
        _ => return None,
    })
}

/// Returns whether at least half of the element's children are elements of Dublin Core.
pub(super) fn holds(root: Element<'_, '_>) -> bool {
    let of_it = |it: Element<'_, '_>| it.space() == Space::DublinCore;
    let mut count = 0_usize;
    let own = root.children().inspect(|_| count += 1).filter(|it| of_it(*it)).count();
    0 < own && count <= own * 2
}

/// Reads the elements in `root`.
pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    for element in root.children() {
        let name = element.name();
        let value = element.whole_text();
        match field(name) {
            Some(Field::Title) => draft.put_title(value),
            Some(field) => draft.put(field, value),
            None => match other(name) {
                Some(name) => draft.put_other(name, value),
                None => draft.put_other(super::generic::attribute(name), value),
            },
        }
    }
}

/// Writes a record as `oai_dc`, without the characters that XML cannot carry.
pub(super) fn write(record: &Record) -> Xml {
    let mut out = String::with_capacity(1_024);
    out.push_str("<oai_dc:dc");
    xml::push_attribute(&mut out, "xmlns:oai_dc", OAI_DC);
    xml::push_attribute(&mut out, "xmlns:dc", ELEMENTS);
    xml::push_attribute(&mut out, "xmlns:xsi", xml::INSTANCE);
    xml::push_attribute(&mut out, "xsi:schemaLocation", &format!("{OAI_DC} {OAI_DC_SCHEMA}"));
    out.push('>');
    let mut dc = DcWriter { out, record };
    dc.lines("dc:title", "Title");
    dc.lines("dc:title", "Alternative-Title");
    dc.lines("dc:creator", "Author");
    dc.subjects();
    dc.lines("dc:description", "Description");
    dc.lines("dc:description", "Abstract");
    dc.lines("dc:publisher", "Publisher");
    dc.lines("dc:contributor", "Contributor");
    dc.date();
    dc.first_of("dc:type", &[RESOURCE_TYPE, "Type"]);
    dc.lines("dc:format", "Format");
    dc.identifiers();
    dc.lines("dc:source", "Source");
    dc.first_of("dc:language", &[ORIGINAL_LANGUAGE, "Language"]);
    dc.lines("dc:relation", "Related");
    dc.lines("dc:coverage", "Coverage");
    dc.lines("dc:rights", "Rights");
    dc.out.push_str("</oai_dc:dc>");
    Xml(dc.out)
}

struct DcWriter<'r> {
    out: String,
    record: &'r Record,
}

impl DcWriter<'_> {
    fn element(&mut self, name: &str, value: &str) {
        let value = front(value.trim(), VALUE_BYTES_MAX);
        if !value.is_empty() {
            xml::push_element(&mut self.out, name, value);
        }
    }

    /// Writes an element for each line of an attribute; returns whether it wrote any.
    fn lines(&mut self, name: &str, attribute: &str) -> bool {
        let Some(value) = self.record.text(attribute) else { return false };
        let before = self.out.len();
        value.lines().take(VALUES_MAX).for_each(|line| self.element(name, line));
        before < self.out.len()
    }

    /// Writes an element for each line of the first of the attributes that has a value; returns
    /// whether it wrote any.
    fn first_of(&mut self, name: &str, attributes: &[&str]) -> bool {
        attributes.iter().any(|it| self.lines(name, it))
    }

    fn subjects(&mut self) {
        let is_classed = self.lines("dc:subject", "Subject");
        if self.lines("dc:subject", "Declared-Keywords") || is_classed {
            return;
        }
        let few = |words: &str| words.lines().nth(SUBJECTS_MAX).is_none();
        if self.record.text("Keywords").is_some_and(|it| few(&it)) {
            self.lines("dc:subject", "Keywords");
        }
    }

    fn date(&mut self) {
        if self.first_of("dc:date", &[ORIGINAL_DATE, "Date", "Year"]) {
            return;
        }
        let modified = self.record.number("Last-Modification-Time");
        if let Some(secs) = modified.and_then(|it| i64::try_from(it).ok()) {
            self.element("dc:date", &Datestamp::at(secs, Granularity::Day).to_string());
        }
    }

    fn identifiers(&mut self) {
        let written = self.lines("dc:identifier", "Identifier");
        let known = self.record.text("Identifier").unwrap_or_default();
        let is_new = |it: &str| !known.lines().any(|line| line.trim() == it);
        let page = self.record.text(super::LANDING_PAGE).unwrap_or_default();
        let page = page.trim();
        if is_new(page) {
            self.element("dc:identifier", page);
        }
        let url = self.record.url.as_str();
        let alone = !written && page.is_empty();
        if url != soif::NO_URL && url != page && (alone || is_web(url)) && is_new(url) {
            self.element("dc:identifier", url);
        }
    }
}
