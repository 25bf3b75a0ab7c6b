//! The RFC 1807 crosswalk: bibliographic records in the XML form of OAI-PMH 1.1.
//!
//! Source: RFC 1807 (its fields by their names); `rfc1807.xsd` of the Open Archives Initiative.

use super::draft::{Draft, Field, identified};
use super::tree::Element;

pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    for element in root.children() {
        let value = element.whole_text();
        match element.name() {
            "id" => draft.put(Field::Identifier, value),
            "handle" => draft.put(Field::Identifier, identified("hdl", element.text())),
            "other_access" | "other-access" => {
                let address = element.text().trim();
                let scheme = address.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("url:"));
                let address = if scheme { address.get(4..).unwrap_or_default() } else { address };
                draft.put(Field::Identifier, address);
                draft.put_link(address);
            }
            "organization" => draft.put(Field::Publisher, value),
            "title" => draft.put_title(value),
            "type" => draft.put(Field::Type, value),
            "author" | "corp-author" => draft.put(Field::Author, value),
            "date" => draft.put(Field::Date, value),
            "copyright" => draft.put(Field::Rights, value),
            "keyword" | "cr-category" => draft.put(Field::Keyword, value),
            "period" => draft.put(Field::Coverage, value),
            "language" => draft.put(Field::Language, value),
            "abstract" => draft.put(Field::Abstract, value),
            "pages" => draft.put_other("Pages", value),
            "series" => draft.put_other("Series", value),
            "contact" => draft.put_other("Contact", value),
            "revision" => draft.put_other("Version", value),
            "withdraw" => draft.put_other("Withdrawn", value),
            "retrieval" => draft.put_other("Retrieval", value),
            "notes" => draft.put_other("Note", value),
            "funding" | "contract" | "grant" | "monitoring" => draft.put_other("Funding", value),
            // The other fields describe the record itself: its format and its date of entry.
            _ => {}
        }
    }
}
