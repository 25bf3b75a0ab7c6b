//! The JSON summarizer: title, author and description from the top level, and all words.
//!
//! Source: RFC 8259; the usual field names of package manifests (npm, composer), feeds and catalogs.
//!
//! The values are read one by one at any depth. Nothing is built, nothing recurses, and a broken or missing
//! part costs only itself.

pub(crate) mod notebook;
pub(crate) mod tokens;

use tokens::{JsonToken, JsonTokens};

use super::{DateSource, Draft, Input};
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::prose::references::References;
use crate::text::{Body, decode};

/// Longest name of a field, in bytes; a longer one is cut.
const KEY_BYTES_MAX: usize = 64;
/// Names of the fields of the top level that become attributes; the first that is there counts.
const TITLE: &[&str] = &["title", "name"];
const AUTHOR: &[&str] = &["author", "authors", "author.name", "creator"];
const DESCRIPTION: &[&str] = &["description", "summary"];
const ABSTRACT: &[&str] = &["abstract"];
const KEYWORDS: &[&str] = &["keywords", "tags"];
const DATE: &[&str] = &["date", "published", "created", "date_published"];
const VERSION: &[&str] = &["version"];
const LICENSE: &[&str] = &["license", "license.type", "license.name"];
const LANGUAGE: &[&str] = &["language", "lang"];
const FIELDS: &[&[&str]] =
    &[TITLE, AUTHOR, DESCRIPTION, ABSTRACT, KEYWORDS, DATE, VERSION, LICENSE, LANGUAGE];
/// Longest string of ASCII without white space, in bytes; a longer one that is no link is encoded data, and
/// left out.
const WORD_BYTES_MAX: usize = 256;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = decode(input.head(Limit::Document.bound()), None);
    let mut body = Body::new(input.text_bytes_max());
    let mut references = References::of(input);
    let mut fields = TopLevel::default();
    let mut draft = Draft::default();
    let mut time = TimeLimit::new(input.cancelled);
    for token in JsonTokens::new(&text).take_while(|_| time.goes_on()) {
        match token {
            JsonToken::Open => {
                fields.depth += 1;
                body.line();
            }
            JsonToken::Close => {
                fields.depth = fields.depth.saturating_sub(1);
                body.line();
            }
            JsonToken::Key(key) => {
                fields.key(&key);
                body.line();
                body.push_squeezed(&key);
                body.space();
            }
            JsonToken::String(value) => {
                references.add_bare(&value);
                let is_word = value.is_ascii() && !value.contains(char::is_whitespace);
                if WORD_BYTES_MAX < value.len() && is_word && !value.contains("://") {
                    continue;
                }
                fields.value(&value);
                body.push_squeezed(&value);
                body.space();
            }
            JsonToken::Scalar(value) => fields.value(value),
        }
        if body.is_full() {
            break;
        }
    }
    time.report("the document", &mut draft);
    input.report(Limit::Document, &mut draft);
    fields.write_to(&mut draft);
    draft.references = references.finish();
    draft.set_body(body);
    draft
}

/// The fields of the top level.
#[derive(Default)]
struct TopLevel {
    depth: usize,
    /// The field of the top level that is being read.
    key: String,
    /// The values of the fields that become attributes.
    values: Vec<(String, String)>,
    /// Whether there are more.
    has_more: bool,
}

impl TopLevel {
    fn key(&mut self, key: &str) {
        let key = crate::text::front(key, KEY_BYTES_MAX);
        if self.depth == 1 {
            self.key = key.to_ascii_lowercase();
        } else if self.depth == 2 && matches!(self.key.as_str(), "author" | "license") {
            // `"author": {"name": …}`
            self.key.push('.');
            self.key.push_str(key);
        } else if let Some(outer) = self.key.split('.').next()
            && outer.len() < self.key.len()
        {
            self.key = [outer, ".", key].concat();
        }
    }

    fn value(&mut self, value: &str) {
        if 2 < self.depth || !FIELDS.iter().any(|it| it.contains(&self.key.as_str())) {
            return;
        }
        self.has_more = Limit::Properties.bound() <= self.values.len();
        if !self.has_more {
            self.values.push((self.key.clone(), value.to_owned()));
        }
    }

    fn all(&self, names: &[&str]) -> Vec<String> {
        let of = |name: &&str| -> Vec<String> {
            let matches = self.values.iter().filter(|(key, _)| key == name);
            matches.map(|(_, value)| value.clone()).collect()
        };
        names.iter().map(of).find(|it| !it.is_empty()).unwrap_or_default()
    }

    fn first(&self, names: &[&str]) -> String {
        self.all(names).into_iter().next().unwrap_or_default()
    }

    fn write_to(&self, draft: &mut Draft<'_>) {
        if self.has_more {
            draft.cut(Limit::Properties.cut());
        }
        draft.title = self.first(TITLE);
        draft.authors = self.all(AUTHOR);
        draft.description = self.first(DESCRIPTION);
        draft.r#abstract = self.first(ABSTRACT);
        draft.keywords = self.all(KEYWORDS).join("\n");
        let date = self.first(DATE);
        draft.date(&date, DateSource::Header);
        draft.other("Version", self.first(VERSION));
        draft.other("License", self.first(LICENSE));
        draft.other("Language", self.first(LANGUAGE));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::render;
    use crate::Type;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render("n.json", Type::Json, text.as_bytes()), expected);
    }

    #[test]
    fn a_package() {
        check(
            r#"{"name": "left-pad", "version": "1.3.0", "description": "Pad \u201cleft\u201d",
                "keywords": ["leftpad", "pad"], "author": {"name": "Ann", "email": "a@h.example"},
                "license": "WTFPL", "repository": {"type": "git", "url": "git://g.example/l.git"},
                "homepage": "https://h.example/l#readme", "private": true}"#,
            "Title: left-pad\n\
             Author: Ann\n\
             Description: Pad “left”\n\
             Version: 1.3.0\n\
             License: WTFPL\n\
             URL-References: https://h.example/l\n\
             Partial-Text: name left-pad | version 1.3.0 | description Pad “left” | keywords | leftpad \
             pad | author | name Ann | email a@h.example | license WTFPL | repository | type git | url \
             git://g.example/l.git | homepage https://h.example/l#readme | private",
        );
    }

    #[test]
    fn only_the_top_level_names_the_document() {
        check(
            r#"{"a": {"title": "no", "b": [{"title": "no"}]}, "title": "Yes"}"#,
            "Title: Yes\nPartial-Text: a | title no | b | title no | title Yes",
        );
        check("[1, 2]", "Title: n.json");
        check(&format!("{{\"a\": \"{}\"}}", "Q".repeat(300)), "Title: n.json\nPartial-Text: a");
    }

    #[test]
    fn only_fields_that_become_attributes_are_kept() {
        let many = "1,".repeat(5_000);
        let seen = render(
            "n.json",
            Type::Json,
            format!("{{\"a\": [{many}2], \"title\": \"T\"}}").as_bytes(),
        );
        assert!(seen.starts_with("Title: T\nPartial-Text: "), "{seen}");
        let mut fields = super::TopLevel { depth: 1, ..Default::default() };
        fields.key(&"k".repeat(1 << 20));
        assert_eq!(fields.key.len(), super::KEY_BYTES_MAX);
    }

    #[test]
    fn hostile_documents_end() {
        for text in ["[".repeat(200_000), "{\"a\":".repeat(100_000), "\"\\".repeat(100_000)] {
            render("n.json", Type::Json, text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(text in "([\\[\\]{}\",:]|\"title\":|\"author\":|\\\\u|[0-9a-f]|\\PC){0,80}") {
            prop_assert!(render("n.json", Type::Json, text.as_bytes()).starts_with("Title: "));
        }
    }
}
