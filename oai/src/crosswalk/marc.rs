//! The MARC crosswalk: MARC 21 bibliographic records as MARCXML.
//!
//! Source: MARC 21 Format for Bibliographic Data (fields by their tags); the MARCXML schema
//! (`leader`, `controlfield`, `datafield`, `subfield`); ISBD for the punctuation at the ends of
//! subfields.
//!
//! # Differences from the standard
//!
//! * Only the name of a person is kept, without dates and titles, so that an author always has the
//!   same spelling.
//! * An added entry is taken to be an author, unless its relator names another role.

use std::borrow::Cow;

use super::draft::{Draft, Field, identified, squeezed};
use super::tree::Element;

/// Reads the record in `root`, which is a record, or a collection that contains one record.
pub(super) fn read<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) {
    let record = root.child("record").unwrap_or(root);
    leader(record, draft);
    for field in record.all("controlfield") {
        match field.attribute("tag") {
            "001" => draft.put_other("Control-Number", field.text()),
            "008" => fixed(field.text(), draft),
            _ => {}
        }
    }
    for field in record.all("datafield") {
        let field = DataField { element: field };
        let tag = field.element.attribute("tag");
        // A field in another script is read as the field to which it is linked.
        let linked = if tag == "880" { field.first("6").get(..3) } else { None };
        field.read(linked.unwrap_or(tag), draft);
    }
    if draft.lacks(Field::Date) {
        // If no imprint has a year, take the year of the fixed field.
        let fixed = record.all("controlfield").find(|it| it.attribute("tag") == "008");
        let year = fixed.and_then(|it| it.text().get(7..11));
        let year = year.filter(|it| it.bytes().all(|it| it.is_ascii_digit()) && *it != "9999");
        draft.put(Field::Date, year.unwrap_or_default());
    }
}

/// Reads the type: leader, positions 6 (kind of material) and 7 (one work, a part, a serial).
fn leader<'t>(record: Element<'t, '_>, draft: &mut Draft<'t>) {
    let leader = record.child("leader").map_or("", Element::text).trim_start().as_bytes();
    let at = |position: usize| leader.get(position).copied().unwrap_or(b' ');
    let thesis = record.all("datafield").any(|it| it.attribute("tag") == "502");
    let name = match (at(6), at(7)) {
        (b'a' | b't', _) if thesis => "Thesis",
        (b'a', b'b' | b's' | b'i') => "Serial",
        (b'a', b'a') => "Article",
        (b'a', _) => "Book",
        (b't', _) => "Manuscript",
        (b'c' | b'd', _) => "Score",
        (b'e' | b'f', _) => "Map",
        (b'g', _) => "Video",
        (b'i', _) => "Recording",
        (b'j', _) => "Music",
        (b'k', _) => "Image",
        (b'm', _) => "Computer File",
        (b'o', _) => "Kit",
        (b'p', _) => "Mixed Materials",
        (b'r', _) => "Object",
        _ => "",
    };
    draft.put(Field::Type, name);
}

/// Reads the language of the fixed field, positions 35 to 37.
fn fixed<'t>(text: &'t str, draft: &mut Draft<'t>) {
    put_language(text.get(35..38).unwrap_or_default(), draft);
}

fn put_language<'t>(code: &'t str, draft: &mut Draft<'t>) {
    let is_code = code.len() == 3 && code.bytes().all(|it| it.is_ascii_lowercase());
    if is_code && !matches!(code, "und" | "zxx" | "mul") {
        draft.put(Field::Language, code);
    }
}

#[derive(Clone, Copy)]
struct DataField<'t, 'a> {
    element: Element<'t, 'a>,
}

impl<'t, 'a> DataField<'t, 'a> {
    /// Returns the subfields with one of the codes, in their order.
    fn all(self, codes: &'static str) -> impl Iterator<Item = &'t str> + use<'t, 'a> {
        let of_code = move |it: &Element<'_, '_>| {
            let code = it.attribute("code");
            code.len() == 1 && codes.contains(code)
        };
        self.element.all("subfield").filter(of_code).map(Element::text)
    }

    fn first(self, codes: &'static str) -> &'t str {
        self.all(codes).next().unwrap_or_default()
    }

    /// Joins the subfields with one of the codes into one text.
    fn joined(self, codes: &'static str, between: &str) -> Cow<'t, str> {
        let mut parts = self.all(codes).map(str::trim).filter(|it| !it.is_empty());
        let Some(first) = parts.next() else { return Cow::Borrowed("") };
        let mut whole = Cow::Borrowed(first);
        for part in parts {
            let whole = whole.to_mut();
            whole.push_str(between);
            whole.push_str(part);
        }
        whole
    }

    fn indicator(self, name: &'static str) -> &'t str {
        self.element.attribute(name)
    }

    fn read(self, tag: &str, draft: &mut Draft<'t>) {
        match tag {
            "020" => draft.put(Field::Identifier, identified("isbn", first_word(self.first("a")))),
            "022" => draft.put(Field::Identifier, identified("issn", first_word(self.first("a")))),
            "024" => {
                let scheme = if self.indicator("ind1") == "7" { self.first("2") } else { "" };
                draft.put(Field::Identifier, identified(scheme, self.first("a")));
            }
            "041" => self.all("a").for_each(|codes| {
                // Older records write several codes as one word.
                let starts = (0..codes.len()).step_by(3);
                starts
                    .for_each(|at| put_language(codes.get(at..at + 3).unwrap_or_default(), draft));
            }),
            "088" => draft.put(Field::Identifier, self.first("a")),
            "100" => draft.put(Field::Author, unpunctuated(self.joined("abq", " "))),
            "110" | "111" => draft.put(Field::Author, unpunctuated(self.joined("abn", " "))),
            "700" => self.added("abq", draft),
            "710" | "711" => self.added("abn", draft),
            "245" => draft.put_title(unpunctuated(self.joined("abnp", " "))),
            "130" | "210" | "222" | "240" | "242" | "246" | "247" | "730" | "740" => {
                let title = unpunctuated(self.joined("abnp", " "));
                draft.put(Field::AlternativeTitle, title);
            }
            "250" => draft.put_other("Edition", unpunctuated(self.joined("ab", " "))),
            "260" | "264" => self.imprint(draft),
            "300" => draft.put(Field::Format, unpunctuated(self.joined("abc", " "))),
            "440" | "490" | "830" => {
                draft.put_other("Series", unpunctuated(self.joined("anpv", " ")));
            }
            "600" | "610" | "611" | "630" | "648" | "650" | "651" | "653" | "655" => {
                let main = unpunctuated(self.joined("ab", " "));
                let more = self.joined("vxyz", " -- ");
                let heading = if more.is_empty() {
                    main
                } else {
                    unpunctuated(Cow::Owned(format!("{main} -- {more}")))
                };
                draft.put(Field::Keyword, heading);
            }
            "773" => draft.put(Field::Source, self.joined("atgd", " ")),
            "502" => draft.put_other("Thesis", self.joined("abcd", ", ")),
            "506" | "540" | "542" => draft.put(Field::Rights, self.joined("afu", " ")),
            "520" => draft.put(Field::Abstract, self.joined("ab", " ")),
            "522" => draft.put(Field::Coverage, self.first("a")),
            "536" => draft.put_other("Funding", self.joined("abc", " ")),
            "856" => self.access(draft),
            note if note.starts_with('5') => draft.put_other("Note", self.joined("a", " ")),
            _ => {}
        }
    }

    fn added(self, codes: &'static str, draft: &mut Draft<'t>) {
        let is_author = |it: &str| {
            let it = it.trim().trim_end_matches(['.', ',']).to_ascii_lowercase();
            // A relator may be written as an address of its vocabulary, with the code at the end.
            let last = it.rsplit('/').next().unwrap_or_default();
            matches!(last, "aut" | "cre" | "author" | "creator" | "joint author")
        };
        let mut roles = self.all("e4").filter(|it| !it.trim().is_empty()).peekable();
        let author = roles.peek().is_none() || roles.any(is_author);
        let field = if author { Field::Author } else { Field::Contributor };
        draft.put(field, unpunctuated(self.joined(codes, " ")));
    }

    fn imprint(self, draft: &mut Draft<'t>) {
        // 264: production, publication, distribution, manufacture, copyright.
        if matches!(self.indicator("ind2"), "0" | "2" | "3") {
            return;
        }
        self.all("a").for_each(|it| draft.put_other("Place", unpunctuated(Cow::Borrowed(it))));
        self.all("b").for_each(|it| draft.put(Field::Publisher, unpunctuated(Cow::Borrowed(it))));
        self.all("c").for_each(|it| draft.put(Field::Date, unpunctuated(Cow::Borrowed(it))));
    }

    /// Reads an address. The second indicator says whether it is that of the object or of a related
    /// one.
    fn access(self, draft: &mut Draft<'t>) {
        let related = self.indicator("ind2") == "2";
        for address in self.all("u") {
            if related {
                draft.put(Field::Related, address);
            } else {
                draft.put(Field::Identifier, address);
                draft.put_link(address);
            }
        }
    }
}

/// Returns a standard number without its qualifiers.
fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

/// Returns the text without the punctuation before the next subfield.
fn unpunctuated(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = squeezed(text);
    let marks = [' ', '/', ':', ';', ',', '='];
    let mut end = text.trim_end_matches(marks).len();
    let rest = text.get(..end).unwrap_or_default();
    // Remove a full stop, unless it ends an abbreviation or an initial.
    let last = rest.strip_suffix('.').and_then(|it| it.rsplit([' ', '-', '.']).next());
    if last.is_some_and(|it| 3 < it.chars().count()) {
        end -= 1;
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_of_catalogers_is_removed() {
        for (text, expected) in [
            ("Scalable discovery :", "Scalable discovery"),
            ("Scalable discovery / ", "Scalable discovery"),
            ("Danzig, Peter B.,", "Danzig, Peter B."),
            ("Elsevier Inc.", "Elsevier Inc."),
            ("Information retrieval.", "Information retrieval"),
            (" : ", ""),
            ("", ""),
        ] {
            assert_eq!(unpunctuated(Cow::Borrowed(text)), expected);
        }
    }
}
