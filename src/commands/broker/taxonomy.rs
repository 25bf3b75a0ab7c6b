//! Taxonomies in two columns, as trees of views.
//!
//! Sans-I/O.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use broker::config::edit::NewView;

/// Reads a taxonomy. Each line has a place in the tree, a tab and a query: `Science/Physics`, tab, `subject:physics`.
/// A view's name is its whole place in small ASCII letters, without accents, other characters as `-`; so each place
/// keeps its name, whatever else is in the file. Empty lines and those that begin with `#` are left out. The error
/// names the line.
pub(super) fn views(text: &str) -> anyhow::Result<Vec<NewView>> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = BTreeMap::new();
    let mut views = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (place, query) = line.split_once('\t').with_context(|| {
            format!("line {number}: a place like Science/Physics, a tab and a query are expected")
        })?;
        let terms: Vec<&str> = place.split('/').map(str::trim).collect();
        let name = name(&terms);
        ensure!(
            terms.iter().all(|it| it.contains(char::is_alphanumeric)) && !name.is_empty(),
            "line {number}: {place:?} is no place in a tree: Science/Physics is"
        );
        if let Some(before) = lines.insert(name.clone(), number) {
            bail!("line {number}: {place:?} has the name {name:?}, as line {before} has");
        }
        let (title, above) = terms.split_last().context("a split is never empty")?;
        let title = Some((*title).to_owned());
        let within = (!above.is_empty()).then(|| self::name(above));
        views.push((number, NewView { name, query: query.trim().to_owned(), title, within }));
    }
    for (number, view) in &views {
        if let Some(within) = view.within.as_ref().filter(|it| !lines.contains_key(*it)) {
            bail!("line {number}: no line says what {within:?} has, which it is within");
        }
    }
    Ok(views.into_iter().map(|(_, view)| view).collect())
}

fn name(terms: &[&str]) -> String {
    let words = query::words::fold(&terms.join(" "));
    let words = words.split(|it: char| !it.is_ascii_alphanumeric()).filter(|it| !it.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_views_within_views() {
        let text = "\u{feff}# ours\r\nScience / Théorie & Physique\tsubject:physics\r\n\r\nScience\ttype:PDF OR x\n";
        let views = views(text).unwrap();
        let expected = [
            NewView {
                name: "science-theorie-physique".to_owned(),
                query: "subject:physics".to_owned(),
                title: Some("Théorie & Physique".to_owned()),
                within: Some("science".to_owned()),
            },
            NewView {
                name: "science".to_owned(),
                query: "type:PDF OR x".to_owned(),
                title: Some("Science".to_owned()),
                within: None,
            },
        ];
        assert_eq!(views, expected);
    }

    #[test]
    fn mistakes_name_the_line() {
        for (text, said) in [
            ("a\tb\nc b\n", "line 2: a place like"),
            ("a/b\tc\n", "line 1: no line says what \"a\" has"),
            ("a b\tc\n\nA/b\tc\n", "line 3: \"A/b\" has the name \"a-b\", as line 1 has"),
            ("a\tb\na//b\tc\n", "line 2: \"a//b\" is no place"),
            ("физика\tb\n", "line 1: \"физика\" is no place"),
        ] {
            let error = views(text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
