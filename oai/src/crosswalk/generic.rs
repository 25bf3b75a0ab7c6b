//! The crosswalk of unknown formats: elements by their names.
//!
//! An element with a name of Dublin Core is read like the element of Dublin Core, because most
//! formats borrow its names. Any other element becomes an attribute with the element's name. All
//! text together becomes `Partial-Text`, so that a search finds the record.

use super::dc;
use super::draft::{Draft, Field};
use super::tree::Element;

/// Longest attribute name made from an element name, in bytes.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    draft.put_text(&root.whole_text());
    for element in root.descendants().filter(|it| it.children().next().is_none()) {
        let value = element.text();
        match dc::field(element.name()) {
            Some(Field::Title) => draft.put_title(value),
            Some(field) => draft.put(field, value),
            None => draft.put_other(attribute(element.name()), value),
        }
        draft.put_link(value);
    }
}

/// Returns the attribute name for an element name: for `dateOfIssue` it is `Date-Of-Issue`.
pub(super) fn attribute(element: &str) -> String {
    let mut name = String::with_capacity(element.len() + 4);
    let mut starts = true;
    let mut last = '-';
    for it in element.chars() {
        if NAME_BYTES_MAX <= name.len() {
            break;
        }
        if !it.is_ascii_alphanumeric() {
            starts = true;
            continue;
        }
        starts |= it.is_ascii_uppercase() && last.is_ascii_lowercase();
        if starts && !name.is_empty() {
            name.push('-');
        }
        name.push(if starts { it.to_ascii_uppercase() } else { it });
        starts = false;
        last = it;
    }
    // The source must not set the record's own attributes.
    if name.is_empty() || RESERVED.iter().any(|it| it.eq_ignore_ascii_case(&name)) {
        name.insert_str(0, "Metadata-");
    }
    name
}

/// Attributes of gathering, which metadata must not set.
const RESERVED: &[&str] = &[
    "Date-Source",
    "File-Size",
    "Full-Text",
    "Gatherer-Host",
    "Gatherer-Id",
    "Gatherer-Name",
    "Gatherer-Port",
    "Gatherer-Root",
    "Gatherer-Version",
    "Generation-Time",
    "Landing-Page",
    "Language-Source",
    "Last-Modification-Time",
    "MD5",
    "Origin-Path",
    "Origin-Version",
    "Original-Metadata",
    "Partial-Text",
    "Refresh-Rate",
    "Set-Spec",
    "Text-Places",
    "Text-Print",
    "Time-To-Live",
    "Type",
    "Update-Time",
    "URL-References",
    "Year",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_names_become_attribute_names() {
        for (element, expected) in [
            ("title", "Title"),
            ("dateOfIssue", "Date-Of-Issue"),
            ("place_of.birth", "Place-Of-Birth"),
            ("ISBN", "ISBN"),
            ("gathererId", "Metadata-Gatherer-Id"),
            ("Time-to-Live", "Metadata-Time-To-Live"),
            ("日本", "Metadata-"),
        ] {
            assert_eq!(attribute(element), expected);
        }
    }
}
