//! The draft of a crosswalk: values by field. They become the attributes of a record, in the same
//! order for all formats.
//!
//! Source: TR Figure 3 and the user's manual for the names of attributes. Several values of one
//! attribute are written as lines, as in summaries.
//!
//! # Differences from the TR
//!
//! * `Keywords` are the subjects in the metadata, one in each line, and not the words of a text.
//! * `Date` and `Language` are normalized. If the source spells them differently, its spelling is
//!   kept in `Original-Date` and `Original-Language`.

use std::borrow::Cow;

use soif::Record;

use super::date;
use super::language;
use super::{Problem, ProblemKind};

/// Longest single value, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Longest attribute, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of values of one attribute.
const VALUES_MAX: usize = 1_000;
/// Maximum number of values of one draft in fields, and in other attributes.
const DRAFT_VALUES_MAX: usize = 20_000;
/// Maximum number of attributes beyond those of [`FIELDS`].
const OTHERS_MAX: usize = 64;
/// Longest `Type`, in bytes.
const TYPE_BYTES_MAX: usize = 256;

/// A kind of value that most formats have, in the order of the attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Title,
    AlternativeTitle,
    Author,
    Contributor,
    Description,
    Abstract,
    Type,
    Date,
    Language,
    Publisher,
    Format,
    Identifier,
    Source,
    Related,
    Coverage,
    Rights,
    Citation,
    Keyword,
}

/// All fields with the names of their attributes, in the order of the attributes.
const FIELDS: [(Field, &str); 18] = [
    (Field::Title, "Title"),
    (Field::AlternativeTitle, "Alternative-Title"),
    (Field::Author, "Author"),
    (Field::Contributor, "Contributor"),
    (Field::Description, "Description"),
    (Field::Abstract, "Abstract"),
    (Field::Type, "Type"),
    (Field::Date, "Date"),
    (Field::Language, "Language"),
    (Field::Publisher, "Publisher"),
    (Field::Format, "Format"),
    (Field::Identifier, "Identifier"),
    (Field::Source, "Source"),
    (Field::Related, "Related"),
    (Field::Coverage, "Coverage"),
    (Field::Rights, "Rights"),
    (Field::Citation, "Citation"),
    (Field::Keyword, "Keywords"),
];

/// The values of a record to be made.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    /// One bit for each field that has a value.
    fields: u32,
    values: Vec<(Field, Cow<'a, str>)>,
    others: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    links: Vec<Cow<'a, str>>,
    text: String,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Draft<'a> {
    /// Adds a value, unless it is empty. Each run of white space in it becomes one space.
    pub(super) fn put(&mut self, field: Field, value: impl Into<Cow<'a, str>>) {
        let value = squeezed(value.into());
        if !value.is_empty() && self.values.len() < DRAFT_VALUES_MAX {
            self.fields |= 1 << field as u32;
            self.values.push((field, value));
        }
    }

    /// Adds a title: the first is the title, the others are alternatives.
    pub(super) fn put_title(&mut self, value: impl Into<Cow<'a, str>>) {
        let is_first = self.lacks(Field::Title);
        self.put(if is_first { Field::Title } else { Field::AlternativeTitle }, value);
    }

    /// Adds a value of an attribute that only some formats have, unless it is empty.
    pub(super) fn put_other(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<Cow<'a, str>>,
    ) {
        let value = squeezed(value.into());
        if !value.is_empty() && self.others.len() < DRAFT_VALUES_MAX {
            self.others.push((name.into(), value));
        }
    }

    /// Adds the web address of the object itself, or of a part of it.
    pub(super) fn put_link(&mut self, link: impl Into<Cow<'a, str>>) {
        let link = squeezed(link.into());
        if is_web(&link) && self.links.len() < VALUES_MAX {
            self.links.push(link);
        }
    }

    /// Sets the text in which searches find the object.
    pub(super) fn put_text(&mut self, text: &str) {
        self.text = text.to_owned();
    }

    pub(super) fn lacks(&self, field: Field) -> bool {
        self.fields & (1 << field as u32) == 0
    }

    pub(super) fn values(&self, field: Field) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(it, _)| *it == field).map(|(_, value)| &**value)
    }

    /// Adds the values to `record` as attributes; returns the problems.
    pub(super) fn finish(mut self, record: &mut Record) -> Vec<Problem> {
        self.first_type();
        for (field, name) in FIELDS {
            let values = self.values.iter().filter(|(it, _)| *it == field).map(|(_, it)| &**it);
            let Some(value) = joined(values, name, &mut self.problems) else { continue };
            match field {
                Field::Date => put_dates(record, name, value),
                Field::Language => {
                    put_normal(record, (name, ORIGINAL_LANGUAGE), value, language::normal);
                }
                _ => record.push(name, value),
            }
            if field == Field::Identifier {
                self.put_landing_page(record);
            }
        }
        if self.lacks(Field::Identifier) {
            self.put_landing_page(record);
        }
        self.put_others(record);
        let links = self.links.iter().map(|it| &**it);
        if let Some(links) = joined(links, "URL-References", &mut self.problems) {
            record.push("URL-References", links);
        }
        if !self.text.is_empty() {
            record.push("Partial-Text", front(&self.text, VALUE_BYTES_MAX));
        }
        self.problems
    }

    /// Reduces `Type` to its first value, without the address of a vocabulary, for counts and
    /// filters. If the source has more, all of it is kept in `Resource-Type`.
    fn first_type(&mut self) {
        let mut types = self.values.iter().filter(|(it, _)| *it == Field::Type);
        let Some((_, first)) = types.next() else { return };
        let word = front(type_word(first), TYPE_BYTES_MAX).to_owned();
        if types.next().is_none() && word == **first {
            return;
        }
        for (field, value) in &self.values {
            if *field == Field::Type {
                self.others.push((Cow::Borrowed(RESOURCE_TYPE), value.clone()));
            }
        }
        self.values.retain(|(it, _)| *it != Field::Type);
        self.values.push((Field::Type, Cow::Owned(word)));
    }

    /// Adds the address where a reader finds the object: its first web identifier, or else the
    /// target of its DOI or handle, or else a link to it.
    fn put_landing_page(&self, record: &mut Record) {
        let identifiers = || self.values(Field::Identifier);
        let page = identifiers().find(|it| is_web(it)).map(str::to_owned);
        let page = page.or_else(|| identifiers().find_map(resolved));
        let page = page.or_else(|| self.links.first().map(|it| it.clone().into_owned()));
        if let Some(page) = page {
            record.push(super::LANDING_PAGE, page);
        }
    }

    fn put_others(&mut self, record: &mut Record) {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.others {
            if !names.contains(&&**name) && names.len() < OTHERS_MAX {
                names.push(name);
            }
        }
        for name in names {
            let values = self.others.iter().filter(|(it, _)| it == name).map(|(_, it)| &**it);
            if let Some(value) = joined(values, name, &mut self.problems) {
                record.push(name, value);
            }
        }
    }
}

/// Attribute: all types of the source, if they are more than `Type` can hold.
pub(super) const RESOURCE_TYPE: &str = "Resource-Type";
/// Attribute: the dates as the source spells them.
pub(super) const ORIGINAL_DATE: &str = "Original-Date";
/// Attribute: the languages as the source spells them.
pub(super) const ORIGINAL_LANGUAGE: &str = "Original-Language";

/// Adds the normalized dates, the dates as spelled if any differs, and the earliest year.
fn put_dates(record: &mut Record, name: &str, value: String) {
    let years = value.lines().filter_map(date::year);
    let year = years.min();
    put_normal(record, (name, ORIGINAL_DATE), value, |it| date::normal(it).map(Cow::Owned));
    if let Some(year) = year {
        record.push("Year", year.to_string());
    }
}

/// Adds the normalized values as the first attribute, and the values as spelled as the second one,
/// if any is spelled differently.
fn put_normal(
    record: &mut Record,
    (name, original): (&str, &str),
    value: String,
    normal: impl Fn(&str) -> Option<Cow<'_, str>>,
) {
    let lines = value.lines().map(|it| normal(it).unwrap_or(Cow::Borrowed(it)));
    let mut spelled: Vec<Cow<'_, str>> = Vec::new();
    for line in lines {
        if !spelled.contains(&line) {
            spelled.push(line);
        }
    }
    let spelled = spelled.join("\n");
    let differs = spelled != value;
    record.push(name, spelled);
    if differs {
        record.push(original, value);
    }
}

/// Returns the distinct values as lines; `None` if there are none.
fn joined<'v>(
    values: impl Iterator<Item = &'v str>,
    name: &str,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    let mut bytes = 0;
    let mut is_cut = false;
    for value in values {
        let line = front(value, VALUE_BYTES_MAX);
        is_cut |= line.len() < value.len();
        if lines.contains(&line) {
            continue;
        }
        if VALUES_MAX <= lines.len() || ATTRIBUTE_BYTES_MAX < bytes + line.len() + 1 {
            is_cut = true;
            break;
        }
        bytes += line.len() + 1;
        lines.push(line);
    }
    if is_cut {
        let message = format!("{name} is longer than a record may have it, and was cut");
        problems.push(Problem::new(ProblemKind::Limit, message));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the type as a word. Vocabularies write a type as an address that ends in the word.
fn type_word(text: &str) -> &str {
    let is_address = is_web(text) || text.starts_with("info:");
    let last = text.trim_end_matches('/').rsplit(['/', '#']).next();
    last.filter(|it| is_address && !it.is_empty()).unwrap_or(text)
}

/// Returns whether the text is a web address.
pub(super) fn is_web(text: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| {
        let head = text.get(..scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then(|| text.get(scheme.len()..))?
    });
    rest.is_some_and(|it| !it.is_empty() && !text.contains(char::is_whitespace))
}

/// Returns an identifier with its scheme, in the same form for all records: `doi:10.5072/1`,
/// `urn:isbn:…`, `urn:issn:…`, `arXiv:…`. A value that has its scheme already is unchanged, and so
/// is one of a scheme without such a form.
pub fn identified<'a>(scheme: &str, value: &'a str) -> Cow<'a, str> {
    let value = value.trim();
    let prefix = match scheme.to_ascii_lowercase().as_str() {
        "doi" => "doi:",
        "isbn" => "urn:isbn:",
        "issn" | "eissn" | "lissn" => "urn:issn:",
        "hdl" | "handle" => "hdl:",
        "arxiv" => "arXiv:",
        "pmid" => "pmid:",
        _ => return Cow::Borrowed(value),
    };
    // Some sources write an identifier as an address, and some repeat the scheme in it.
    let bare = prefix.rsplit(':').nth(1).unwrap_or_default();
    let head = value.get(..bare.len() + 1).unwrap_or_default();
    let has_scheme = head.get(..bare.len()).is_some_and(|it| it.eq_ignore_ascii_case(bare))
        && head.ends_with([':', ' ']);
    let number =
        if has_scheme { value.get(head.len()..).unwrap_or_default().trim() } else { value };
    if number.is_empty() || is_web(number) || number.to_ascii_lowercase().starts_with("urn:") {
        return Cow::Borrowed(value);
    }
    Cow::Owned(format!("{prefix}{number}"))
}

/// Returns the web address of a DOI or a handle; `None` for other identifiers.
fn resolved(identifier: &str) -> Option<String> {
    let lower = identifier.to_ascii_lowercase();
    let after = |prefix: &str| {
        let rest = lower.strip_prefix(prefix)?;
        identifier.get(identifier.len() - rest.len()..).map(str::trim_start)
    };
    let doi = after("doi:").or_else(|| after("info:doi/")).or(Some(identifier));
    let is_name = |it: &str| {
        let prefix = it.split_once('/').filter(|(_, name)| !name.is_empty()).map(|(it, _)| it);
        let number = |it: &str| it.bytes().all(|it| it.is_ascii_digit() || it == b'.');
        prefix.is_some_and(|it| !it.is_empty() && number(it)) && !it.contains(char::is_whitespace)
    };
    if let Some(doi) = doi.filter(|it| it.starts_with("10.") && is_name(it)) {
        return Some(format!("https://doi.org/{doi}"));
    }
    let handle = after("hdl:").or_else(|| after("info:hdl/"))?;
    is_name(handle).then(|| format!("https://hdl.handle.net/{handle}"))
}

/// Returns the text in one line: each run of white space and control characters becomes one space.
pub(super) fn squeezed(text: Cow<'_, str>) -> Cow<'_, str> {
    if is_squeezed(&text) {
        return text;
    }
    let parts = |it: char| it.is_whitespace() || it.is_control();
    let mut line = String::with_capacity(text.len());
    for word in text.split(parts).filter(|it| !it.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    Cow::Owned(line)
}

/// Returns true if the text is certainly one line already. Most values are, so this fast check
/// comes first.
fn is_squeezed(text: &str) -> bool {
    let mut last = b' ';
    for byte in text.bytes() {
        let is_plain = match byte {
            b' ' => last != b' ',
            // White space and control characters that are not ASCII begin with one of these.
            0xc2 | 0xe1..=0xe3 => false,
            _ => b' ' < byte && byte != 0x7f,
        };
        if !is_plain {
            return false;
        }
        last = byte;
    }
    last != b' ' || text.is_empty()
}

/// Returns the beginning of `text`: at most `bytes_max` bytes, not in the middle of a character.
pub(super) fn front(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_of(draft: Draft<'_>) -> (Vec<(String, String)>, usize) {
        let mut record = Record::new("FILE", "x:y");
        let problems = draft.finish(&mut record);
        let attributes = record
            .attributes()
            .iter()
            .map(|it| (it.name.clone(), String::from_utf8_lossy(&it.value).into_owned()));
        (attributes.collect(), problems.len())
    }

    #[track_caller]
    fn check(values: &[(Field, &str)], expected: &[(&str, &str)]) {
        let mut draft = Draft::default();
        for (field, value) in values {
            draft.put(*field, *value);
        }
        let (found, problems) = record_of(draft);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!((found.as_slice(), problems), (expected, 0));
    }

    #[test]
    fn values_become_lines_in_a_fixed_order() {
        check(
            &[
                (Field::Keyword, "harvest"),
                (Field::Author, " Bowman,\n C. Mic "),
                (Field::Title, "Scalable  Internet\tDiscovery"),
                (Field::Author, "Danzig, Peter B."),
                (Field::Author, "Bowman, C. Mic"),
                (Field::Publisher, "  "),
            ],
            &[
                ("Title", "Scalable Internet Discovery"),
                ("Author", "Bowman, C. Mic\nDanzig, Peter B."),
                ("Keywords", "harvest"),
            ],
        );
    }

    #[test]
    fn all_white_space_between_words_is_one_space() {
        for (text, expected) in [
            ("", ""),
            (" ", ""),
            ("a b", "a b"),
            ("a  b", "a b"),
            (" a", "a"),
            ("a ", "a"),
            ("a\tb\r\nc\u{7f}d", "a b c d"),
            ("a\u{a0}b\u{85}c", "a b c"),
            ("é\u{2003}ñ\u{3000}日\u{2028}本", "é ñ 日 本"),
            ("é à", "é à"),
        ] {
            assert_eq!(squeezed(Cow::Borrowed(text)), expected, "{text:?}");
        }
    }

    #[test]
    fn a_type_is_one_word_and_the_rest_is_kept() {
        check(&[(Field::Type, "Technical Report")], &[("Type", "Technical Report")]);
        check(
            &[(Field::Type, "info:eu-repo/semantics/article"), (Field::Type, "Text")],
            &[("Type", "article"), ("Resource-Type", "info:eu-repo/semantics/article\nText")],
        );
        check(
            &[(Field::Type, "http://purl.org/coar/resource_type/c_18gh")],
            &[("Type", "c_18gh"), ("Resource-Type", "http://purl.org/coar/resource_type/c_18gh")],
        );
    }

    #[test]
    fn dates_and_languages_are_normalized_and_the_originals_kept() {
        check(
            &[(Field::Date, "1995-03"), (Field::Language, "eng")],
            &[("Date", "1995-03"), ("Year", "1995"), ("Language", "eng")],
        );
        check(
            &[(Field::Date, "March 1996"), (Field::Date, "c1994"), (Field::Language, "en-US")],
            &[
                ("Date", "1996-03\n1994"),
                ("Original-Date", "March 1996\nc1994"),
                ("Year", "1994"),
                ("Language", "eng"),
                ("Original-Language", "en-US"),
            ],
        );
        check(&[(Field::Date, "soon")], &[("Date", "soon")]);
    }

    #[test]
    fn a_landing_page_is_a_web_address() {
        let page = |identifiers: &[&str]| {
            let mut draft = Draft::default();
            identifiers.iter().for_each(|it| draft.put(Field::Identifier, *it));
            let (found, _) = record_of(draft);
            found.into_iter().find(|(name, _)| name == "Landing-Page").map(|(_, value)| value)
        };
        let check = |identifiers: &[&str], expected: Option<&str>| {
            assert_eq!(page(identifiers).as_deref(), expected, "{identifiers:?}");
        };
        check(&["ISBN 0-201", "HTTP://a.org/1", "http://a.org/2"], Some("HTTP://a.org/1"));
        check(&["doi:10.5072/Ab.1"], Some("https://doi.org/10.5072/Ab.1"));
        check(&["10.5072/x", "https://a.org/"], Some("https://a.org/"));
        check(&["hdl:1842/3"], Some("https://hdl.handle.net/1842/3"));
        check(&["10.5 pages/x", "hdl:x", "http://", "javascript:alert(1)", "http://a b"], None);
    }

    #[test]
    fn identifiers_have_their_scheme_once() {
        for (scheme, value, expected) in [
            ("DOI", " 10.5072/1 ", "doi:10.5072/1"),
            ("doi", "DOI: 10.5072/1", "doi:10.5072/1"),
            ("doi", "https://doi.org/10.5072/1", "https://doi.org/10.5072/1"),
            ("isbn", "0201633612", "urn:isbn:0201633612"),
            ("isbn", "ISBN 0201633612", "urn:isbn:0201633612"),
            ("isbn", "urn:isbn:0201633612", "urn:isbn:0201633612"),
            ("hdl", "1842/3", "hdl:1842/3"),
            ("local", "x é", "x é"),
            ("doi", "", ""),
        ] {
            assert_eq!(identified(scheme, value), expected, "{scheme} {value}");
        }
    }

    #[test]
    fn too_long_values_are_cut_with_a_problem() {
        let mut draft = Draft::default();
        draft.put(Field::Title, "é".repeat(VALUE_BYTES_MAX));
        for n in 0..VALUES_MAX + 5 {
            draft.put(Field::Keyword, n.to_string());
        }
        let (found, problems) = record_of(draft);
        assert_eq!(found[0].1.len(), VALUE_BYTES_MAX);
        assert_eq!(found[1].1.lines().count(), VALUES_MAX);
        assert_eq!(problems, 2);
    }
}
