//! The fields of a catalog's entry, collected value by value with the attributes and spellings of all
//! records.

use std::borrow::Cow;

use oai::crosswalk;
use soif::Record;

use super::cite;
use crate::draft::read_date;
use crate::limit::Limit;
use crate::text::{Body, squeezed};
use crate::{DateSource, Draft};

/// Longest name of an attribute that comes from the file, in bytes.
const NAME_BYTES_MAX: usize = 60;
#[derive(Debug, Default)]
pub(crate) struct EntryFields {
    draft: Draft<'static>,
    others: Vec<(Cow<'static, str>, String)>,
    /// More text for search.
    text: String,
    values: usize,
}

impl EntryFields {
    /// Adds a value, unless it is empty or a limit is reached. `name` is the attribute's name in a
    /// record; several values become its lines. `Date` and `Language` get the spelling of all
    /// records (a date that cannot be read is an `Original-Date`). `URL-References` takes only HTTP and FTP addresses.
    pub(crate) fn put(&mut self, name: impl Into<Cow<'static, str>>, value: &str) {
        let (name, value) = (name.into(), squeezed(value));
        if value.is_empty() {
            return;
        }
        if Limit::EntryValues.bound() <= self.values {
            self.draft.cut(Limit::EntryValues.cut());
            return;
        }
        self.values += 1;
        match &*name {
            "Title" if self.draft.title.is_empty() => self.draft.title = value,
            "Title" => self.other(Cow::Borrowed("Alternative-Title"), value),
            "Author" => self.draft.authors.push(value),
            "Description" => append(&mut self.draft.description, &value, " "),
            "Abstract" => append(&mut self.draft.r#abstract, &value, "\n"),
            "URL-References" if is_address(&value) => self.draft.references.push(value),
            "URL-References" => {}
            "Date" => {
                let date = read_date(value.trim_end_matches('/'));
                let name = if date.is_some() { name } else { Cow::Borrowed("Original-Date") };
                self.other(name, date.unwrap_or(value));
            }
            "Language" => {
                let tag = crosswalk::language_tag(&value).map(Cow::into_owned);
                self.other(name, tag.unwrap_or(value));
            }
            _ => self.other(name, value),
        }
    }

    /// Adds an identifier by the name of its scheme (`doi`, `isbn` …); `10.…` is always a DOI.
    pub(crate) fn put_identifier(&mut self, scheme: &str, value: &str) {
        let value = bare_doi(value);
        let scheme = if value.starts_with("10.") { "doi" } else { scheme };
        self.put("Identifier", &crosswalk::identified(scheme, value));
    }

    /// Adds each of the words or phrases that `marks` separate.
    pub(crate) fn put_all(&mut self, name: &'static str, values: &str, marks: &[char]) {
        values.split(marks).for_each(|it| self.put(name, it));
    }

    /// Adds a value under a name from the file. Characters that a record's names cannot have become hyphens.
    /// Names with a meaning for gatherers and brokers are left out.
    pub(crate) fn put_foreign(&mut self, prefix: &str, name: &str, value: &str) {
        let mut full = prefix.to_owned();
        for it in name.trim().chars() {
            let plain =
                if it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.') { it } else { '-' };
            if NAME_BYTES_MAX <= full.len() {
                break;
            }
            if plain != '-' || !full.ends_with('-') {
                full.push(plain);
            }
        }
        full.truncate(full.trim_end_matches('-').len());
        let is_empty = full.len() <= prefix.trim_end_matches('-').len();
        if !is_empty && !is_reserved(&full) {
            self.put(full, value);
        }
    }

    /// Adds text for search and for display.
    pub(crate) fn put_text(&mut self, text: &str) {
        append(&mut self.text, text.trim(), "\n");
    }

    fn other(&mut self, name: Cow<'static, str>, value: String) {
        let Some((_, old)) = self.others.iter_mut().find(|(it, _)| *it == name) else {
            self.others.push((name, value));
            return;
        };
        // What goes beyond is cut, and said, when the record is made.
        if old.len() <= Limit::Value.bound() && !old.lines().any(|it| it == value) {
            append(old, &value, "\n");
        }
    }

    /// Returns the first value, else "". Authors, descriptions and abstracts are not found.
    pub(crate) fn first(&self, name: &str) -> &str {
        match name {
            "Title" => &self.draft.title,
            "URL-References" => self.draft.references.first().map_or("", String::as_str),
            _ => {
                let other = self.others.iter().find(|(it, _)| it == name);
                other.and_then(|(_, value)| value.lines().next()).unwrap_or_default()
            }
        }
    }

    /// Returns whether no value was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// Returns the fields of a crosswalk's record.
    pub(crate) fn of(record: &Record) -> Self {
        let mut fields = Self::default();
        for attribute in record.attributes() {
            let value = String::from_utf8_lossy(&attribute.value);
            for line in value.lines() {
                match attribute.name.as_str() {
                    "Type" => fields.put("Resource-Type", line),
                    "Keywords" => fields.put("Subject", line),
                    "Landing-Page" => {
                        if !fields.draft.references.iter().any(|it| it == line) {
                            fields.put("URL-References", line);
                        }
                    }
                    // `Date` and `Language` have the same values.
                    "Year" | "Original-Date" | "Original-Language" => {}
                    name if is_reserved(name) => {}
                    name => fields.put(name.to_owned(), line),
                }
            }
        }
        fields.draft.references.dedup();
        fields
    }

    /// Returns the attributes of a record, each with its values as lines, but no text for search.
    pub(crate) fn into_attributes(self) -> Vec<(String, String)> {
        let Self { draft, others, .. } = self;
        let first = [
            ("Title", draft.title),
            ("Author", draft.authors.join("\n")),
            ("Description", draft.description),
            ("Abstract", draft.r#abstract),
            ("URL-References", draft.references.join("\n")),
        ];
        let first = first.into_iter().map(|(name, value)| (name.to_owned(), value));
        let others = others.into_iter().map(|(name, value)| (name.into_owned(), value));
        first.chain(others).filter(|(_, value)| !value.is_empty()).collect()
    }

    pub(super) fn finish(self) -> Draft<'static> {
        let Self { mut draft, others, text, .. } = self;
        for (name, value) in others {
            draft.other(&name, value);
            if name == "Date" {
                draft.other("Date-Source", DateSource::Entry.name());
            }
        }
        let mut body = Body::new(Limit::Entry.bound());
        cite(&draft, &mut body);
        body.push(&text);
        if body.is_cut() {
            draft.cut(Limit::Entry.cut());
        }
        draft.body = Cow::Owned(body.finish());
        draft
    }
}

fn append(old: &mut String, new: &str, between: &str) {
    if !old.is_empty() {
        old.push_str(between);
    }
    old.push_str(new);
}

/// Returns a DOI without its resolver's address.
fn bare_doi(value: &str) -> &str {
    let value = value.trim();
    let hosts =
        ["https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/"];
    hosts
        .iter()
        .find_map(|it| value.strip_prefix(it))
        .filter(|it| it.starts_with("10."))
        .unwrap_or(value)
}

fn is_address(text: &str) -> bool {
    let schemes = ["http://", "https://", "ftp://"];
    schemes.iter().any(|it| text.len() > it.len() && text.starts_with(it)) && !text.contains(' ')
}

/// Returns whether an attribute is reserved for gatherers: its value must not come from a file.
fn is_reserved(name: &str) -> bool {
    let prefixes = ["gatherer-", "broker-", "embed<", "embed-", "annotation-", "harvest-"];
    match &*name.to_ascii_lowercase() {
        "type" | "file-size" | "md5" | "update-time" | "time-to-live" | "refresh-rate"
        | "nested-filename" | "origin-path" | "origin-version" | "set-spec"
        | "original-metadata" | "metadata-namespace" | "landing-page" | "year" | "entries"
        | "years" | "titles" | "date-source" | "language-source" | "text-print" => true,
        "last-modification-time" => true,
        other => prefixes.iter().any(|it| other.starts_with(it)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_left_out() {
        let mut fields = EntryFields::default();
        for name in [
            "Gatherer-Id",
            "gatherer host",
            "MD5",
            "md5",
            "Embed<1>-Title",
            "Time-to-Live",
            "Type",
            " Update_Time",
            "Update-Time",
            "Landing-Page",
            "",
            "-",
            "{}",
        ] {
            fields.put_foreign("", name, "x");
        }
        fields.put_foreign("", "Sea Depth (m)", "12");
        fields.put_foreign("Column-", "MD5", "y");
        fields.put_foreign("Column-", "é", "y");
        let names: Vec<String> = fields.finish().others.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Update_Time", "Sea-Depth-m", "Column-MD5"]);
    }

    #[test]
    fn an_entry_is_bounded() {
        let mut fields = EntryFields::default();
        for n in 0..5_000 {
            fields.put("Subject", &format!("{n} {}", "x".repeat(1_000)));
            fields.put(format!("Name-{n}"), "x");
        }
        fields.put("Abstract", &"long ".repeat(100_000));
        let draft = fields.finish();
        assert!(draft.others.len() <= Limit::Attributes.standard());
        assert!(draft.others.iter().all(|(_, it)| it.len() <= Limit::Value.standard() + 1_100));
        assert!(draft.body.len() <= Limit::Entry.standard());
    }
}
