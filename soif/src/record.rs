//! A record: owned, or borrowed from the bytes of a stream.
//!
//! Source: TR §3 and Figure 3. Attributes keep their order and may repeat. Look-up ignores ASCII
//! case and finds the first one. Objects nested in an object are groups of attributes with the
//! prefix `Embed<n>-`, n from 1.
//!
//! # Differences from the original
//!
//! * The original does not say how an embedded object keeps its template type and URL; we use
//!   `Embed<n>-Template-Type` (the IAFA name; left out when `FILE`) and `Embed<n>-URL` (left out
//!   when there is none).
//!
//! Sans-I/O.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::NO_URL;

/// Template type of a record without one.
const TEMPLATE_DEFAULT: &str = "FILE";
/// Attribute with the template type of an embedded record.
const EMBEDDED_TEMPLATE: &str = "Template-Type";
/// Attribute with the URL of an embedded record.
const EMBEDDED_URL: &str = "URL";

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The name as spelled; compared without regard to ASCII case.
    pub name: String,
    /// The value: any bytes.
    pub value: Vec<u8>,
}

/// The summary of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Template type, `FILE` for most.
    pub template: String,
    /// URL of the object summarized; [`NO_URL`] for none.
    pub url: String,
    attributes: Vec<Attribute>,
}

impl Record {
    /// Returns a record without attributes.
    pub fn new(template: impl Into<String>, url: impl Into<String>) -> Self {
        Self { template: template.into(), url: url.into(), attributes: Vec::new() }
    }

    /// Returns all attributes, in their order.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns the value of the first attribute of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.attributes
            .iter()
            .find(|it| it.name.eq_ignore_ascii_case(name))
            .map(|it| it.value.as_slice())
    }

    /// Returns the first value of that name as text; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(String::from_utf8_lossy)
    }

    /// Returns the first value of that name as a decimal number; white space around it is ignored.
    pub fn number(&self, name: &str) -> Option<u64> {
        decimal(self.get(name)?)
    }

    /// Returns all values of that name, in their order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.attributes
            .iter()
            .filter(move |it| it.name.eq_ignore_ascii_case(name))
            .map(|it| it.value.as_slice())
    }

    /// Adds an attribute at the end, even if the name exists already.
    ///
    /// The writer replaces characters that a SOIF name cannot have (white space, control
    /// characters, braces, a leading `@`) by `-`.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.attributes.push(Attribute { name: name.into(), value: value.into() });
    }

    /// Replaces the first attribute of that name and drops its repeats; adds an attribute at the
    /// end when there is none.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        let name = name.into();
        let Some(at) = self.attributes.iter().position(|it| it.name.eq_ignore_ascii_case(&name))
        else {
            return self.push(name, value);
        };
        let tail = self.attributes.split_off(at + 1);
        self.attributes.truncate(at);
        self.attributes.push(Attribute { name, value: value.into() });
        let kept = self.attributes.len() - 1;
        let name = self.attributes[kept].name.clone();
        self.attributes.extend(tail.into_iter().filter(|it| !it.name.eq_ignore_ascii_case(&name)));
    }

    /// Drops every attribute of that name and returns their number.
    pub fn remove(&mut self, name: &str) -> usize {
        let before = self.attributes.len();
        self.attributes.retain(|it| !it.name.eq_ignore_ascii_case(name));
        before - self.attributes.len()
    }

    /// Returns the records embedded in this one as `Embed<n>-` groups, by ascending n.
    ///
    /// A group may itself hold `Embed<m>-` groups: call `embedded` on each returned record.
    pub fn embedded(&self) -> Vec<Self> {
        let mut groups: BTreeMap<u32, Self> = BTreeMap::new();
        for attribute in &self.attributes {
            let Some((n, name)) = embed_name(&attribute.name) else { continue };
            groups
                .entry(n)
                .or_insert_with(|| Self::new("", ""))
                .push(name, attribute.value.as_slice());
        }
        groups.into_values().map(Self::with_own_header).collect()
    }

    /// Adds the attributes of `inner` as the group `Embed<n>-`; `n` counts from 1.
    pub fn embed(&mut self, n: u32, inner: &Self) {
        let inner_template = inner.get(EMBEDDED_TEMPLATE).is_some();
        if inner.template != TEMPLATE_DEFAULT || inner_template {
            self.push(format!("Embed{n}-{EMBEDDED_TEMPLATE}"), inner.template.as_str());
        }
        if inner.url != NO_URL || inner.get(EMBEDDED_URL).is_some() || inner.attributes.is_empty() {
            self.push(format!("Embed{n}-{EMBEDDED_URL}"), inner.url.as_str());
        }
        for attribute in &inner.attributes {
            self.push(format!("Embed{n}-{}", attribute.name), attribute.value.as_slice());
        }
    }

    /// Moves template type and URL of an embedded record from its attributes to its header.
    fn with_own_header(mut self) -> Self {
        self.template =
            self.take_first(EMBEDDED_TEMPLATE).unwrap_or_else(|| TEMPLATE_DEFAULT.into());
        self.url = self.take_first(EMBEDDED_URL).unwrap_or_else(|| NO_URL.into());
        self
    }

    fn take_first(&mut self, name: &str) -> Option<String> {
        let at = self.attributes.iter().position(|it| it.name.eq_ignore_ascii_case(name))?;
        let value = self.attributes.remove(at).value;
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

/// Splits `Embed<n>-Name`.
fn embed_name(name: &str) -> Option<(u32, &str)> {
    const PREFIX: &str = "embed";
    let rest = name.get(PREFIX.len()..)?;
    if !name.get(..PREFIX.len())?.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    let (digits, name) = rest.split_once('-')?;
    let canonical = !digits.starts_with(['0', '+']) && !name.is_empty();
    Some((digits.parse().ok().filter(|_| canonical)?, name))
}

/// Reads a decimal number with white space around it.
fn decimal(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Position of an attribute, in bytes from the start of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) name: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// A record that borrows from the bytes of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) template: &'a str,
    pub(crate) url: Cow<'a, str>,
    pub(crate) spans: &'a [Span],
    pub(crate) offset: u64,
}

impl<'a> RecordRef<'a> {
    /// Returns the template type.
    pub fn template(&self) -> &'a str {
        self.template
    }

    /// Returns the URL of the object summarized; [`NO_URL`] for none.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns names and values, in their order.
    pub fn attributes(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + use<'a> {
        let source = self.source;
        self.spans.iter().map(move |span| {
            let name = source.get(span.name.clone()).unwrap_or_default();
            let value = source.get(span.value.clone()).unwrap_or_default();
            (std::str::from_utf8(name).unwrap_or_default(), value)
        })
    }

    /// Returns the value of the first attribute of that name; ASCII case is ignored.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.attributes().find(|(it, _)| it.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns the first value of that name as text; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).map(String::from_utf8_lossy)
    }

    /// Returns the first value of that name as a decimal number; white space around it is ignored.
    pub fn number(&self, name: &str) -> Option<u64> {
        decimal(self.get(name)?)
    }

    /// Returns the bytes of the record in the stream, from `@` to `}`.
    pub fn source(&self) -> &'a [u8] {
        self.source
    }

    /// Returns the start of the record, in bytes from the start of the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns a copy that owns its bytes.
    pub fn to_record(&self) -> Record {
        let attributes = self
            .attributes()
            .map(|(name, value)| Attribute { name: name.to_owned(), value: value.to_vec() })
            .collect();
        Record {
            template: self.template.to_owned(),
            url: self.url.clone().into_owned(),
            attributes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(attributes: &[(&str, &str)]) -> Record {
        let mut record = Record::new("FILE", "http://a/");
        for (name, value) in attributes {
            record.push(*name, *value);
        }
        record
    }

    fn check_names(record: &Record, expected: &str) {
        let names: Vec<&str> = record.attributes().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn look_up_ignores_case_and_the_first_wins() {
        let record = record(&[("Title", "one"), ("TITLE", "two")]);
        assert_eq!(record.get("title"), Some(&b"one"[..]));
        assert_eq!(record.get_all("tItLe").count(), 2);
        assert_eq!(record.get("titles"), None);
    }

    #[test]
    fn set_replaces_in_place_and_drops_repeats() {
        let mut record = record(&[("a", "1"), ("b", "2"), ("A", "3"), ("c", "4")]);
        record.set("a", "new");
        check_names(&record, "a b c");
        assert_eq!(record.get("A"), Some(&b"new"[..]));
        record.set("d", "5");
        check_names(&record, "a b c d");
        assert_eq!(record.remove("B"), 1);
        check_names(&record, "a c d");
    }

    #[test]
    fn numbers_are_decimal_and_may_have_white_space() {
        let record =
            record(&[("a", " 42\n"), ("b", "+1"), ("c", ""), ("d", "99999999999999999999")]);
        assert_eq!(record.number("a"), Some(42));
        assert_eq!(
            (record.number("b"), record.number("c"), record.number("d")),
            (None, None, None)
        );
    }

    #[test]
    fn embedded_records_come_back_by_ascending_number() {
        let mut outer =
            record(&[("Title", "tar"), ("Embed-Note", "not a group"), ("Embed0-x", "no")]);
        let mut second = Record::new("IMAGE", "http://a/#2");
        second.push("Title", "two");
        second.push("URL", "an attribute of that name");
        let mut first = Record::new("FILE", NO_URL);
        first.push("Title", "one");
        let mut inmost = Record::new("FILE", "x");
        inmost.push("Title", "inmost");
        first.embed(1, &inmost);
        outer.embed(2, &second);
        outer.embed(1, &first);
        let embedded = outer.embedded();
        assert_eq!(embedded, [first, second]);
        assert_eq!(embedded[0].embedded(), [inmost]);
    }
}
