//! Annotations as terms of taxonomies: each term lists its objects.
//!
//! ```toml
//! [[term]]
//! scheme = "LCC"
//! code = "QA76.9"
//! label = "Data structures"
//! objects = ["https://docs.example.org/trees.pdf", "https://docs.example.org/lists/**"]
//! ```
//!
//! The label becomes a line of `Subject`, like the subjects in catalogs; scheme and code become a
//! line of `Subject-Code`, such as `LCC:QA76.9`. A missing label or code is replaced by the other
//! one.
//!
//! Sans-I/O.

use std::sync::Arc;

use settings::{Document, Mistake, Table};

use super::{Annotation, Effect, Statement, pattern_mistake};

pub(super) fn read(text: &str) -> Result<Vec<Annotation>, Vec<Mistake>> {
    let document = Document::parse(text)?;
    let mut annotations = Vec::new();
    for table in document.root().tables("term") {
        term(&table, &mut annotations);
    }
    document.finish()?;
    Ok(annotations)
}

fn term(table: &Table<'_>, annotations: &mut Vec<Annotation>) {
    let word = |key: &str| {
        let text = table.string(key).map(|it| it.trim().to_owned()).unwrap_or_default();
        if text.contains('\n') {
            table.mistake(key, format!("{key:?} has several lines"), "one line");
        }
        text
    };
    let [scheme, code, label] = ["scheme", "code", "label"].map(word);
    if label.is_empty() && code.is_empty() {
        table.mistake("", "the term has no name", "label = \"…\", code = \"…\" or both");
    }
    let term = if code.is_empty() { &label } else { &code };
    let coded = match (scheme.is_empty(), code.is_empty()) {
        (true, true) => String::new(),
        (true, false) => code.clone(),
        (false, _) => format!("{scheme}:{term}"),
    };
    let values =
        [("Subject", if label.is_empty() { term } else { &label }), ("Subject-Code", &coded)];
    let values = values.into_iter().filter(|(_, value)| !value.is_empty());
    let statements: Arc<[Statement]> = values
        .map(|(attribute, value)| Statement {
            attribute: attribute.to_owned(),
            effect: Effect::Add,
            value: value.clone().into_bytes(),
        })
        .collect();
    table.require("objects", "[\"https://docs.example.org/a.pdf\"]");
    for (i, about) in table.one_or_more("objects").into_iter().enumerate() {
        let is_pattern = about.contains('*');
        let mistake = if is_pattern { pattern_mistake(&about) } else { None };
        let is_url = about.contains(':') && !about.contains(char::is_whitespace);
        if let Some(why) = mistake.or_else(|| (!is_url).then(|| "is no URL".to_owned())) {
            let message = format!("{about:?}: {why}");
            table.mistake_in("objects", i, message, "a URL, or a pattern of URLs");
        }
        let (line, statements) = (table.line(), statements.clone());
        annotations.push(Annotation { line, about, is_pattern, statements });
    }
}
