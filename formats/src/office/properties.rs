//! The properties of an office document: author, dates, program and others.
//!
//! Source: ECMA-376 part 2 §11 (core properties) and part 1 §22.2 (extended ones); OpenDocument 1.3
//! part 3 §4.3 (metadata elements).

use std::collections::BTreeSet;

use super::package::Package;
use super::xml::Piece;
use crate::limit::Limit;
use crate::text::Body;
use crate::{DateSource, Draft};

/// The names of the properties that are read.
const NAMES: [&str; 21] = [
    "title",
    "initial-creator",
    "creator",
    "author",
    "description",
    "keywords",
    "keyword",
    "created",
    "creation-date",
    "modified",
    "date",
    "subject",
    "category",
    "language",
    "Company",
    "publisher",
    "version",
    "Application",
    "generator",
    "AppVersion",
    "Pages",
];

/// The properties, by the local names of their elements.
#[derive(Debug, Default)]
pub(super) struct Properties {
    values: Vec<(String, String)>,
    open: Option<(String, Body)>,
    cuts: BTreeSet<Limit>,
}

impl Properties {
    /// Adds a property.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        let value = value.trim();
        if value.is_empty() {
            return;
        }
        if self.values.len() < Limit::Properties.bound() {
            self.values.push((name.to_owned(), value.to_owned()));
        } else {
            self.cuts.insert(Limit::Properties);
        }
    }

    /// Reads the properties in the parts at `paths`.
    pub(super) fn read_parts(&mut self, package: &mut Package<'_>, paths: &[&str]) {
        for path in paths {
            package.walk(path, &mut |piece| {
                self.piece(&piece);
                true
            });
        }
    }

    /// Reads a piece of a part with properties.
    pub(super) fn piece(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Start(it) if it.name == "document-statistic" => {
                self.add("Pages", &it.get("page-count"));
            }
            Piece::Start(it) => {
                let is_read = NAMES.contains(&it.name);
                let open = || (it.name.to_owned(), Body::new(Limit::Property.bound()));
                self.open = is_read.then(open);
            }
            Piece::Text(text) => {
                if let Some((_, body)) = &mut self.open {
                    body.push(text);
                }
            }
            Piece::End(_) => {
                if let Some((name, body)) = self.open.take() {
                    if body.is_cut() {
                        self.cuts.insert(Limit::Property);
                    }
                    self.add(&name, body.as_str());
                }
            }
        }
    }

    /// Returns the value of the first of these properties that is there.
    pub(super) fn first(&self, names: &[&str]) -> &str {
        let of = |name: &&str| self.values.iter().find(|(it, _)| it == name);
        names.iter().find_map(of).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn write_to(&self, draft: &mut Draft<'_>) {
        self.cuts.iter().for_each(|it| draft.cut(it.cut()));
        draft.title = self.first(&["title"]).to_owned();
        let author = self.first(&["initial-creator", "creator", "author"]);
        draft.authors.extend(author.split(';').map(str::to_owned));
        draft.description = self.first(&["description"]).to_owned();
        let keywords: Vec<&str> = self.all("keywords").chain(self.all("keyword")).collect();
        draft.keywords = keywords.join(", ");
        let date = self.first(&["created", "creation-date", "modified", "date"]);
        draft.date(date, DateSource::Properties);
        draft.other("Subject", self.first(&["subject", "category"]));
        draft.other("Language", self.first(&["language"]));
        draft.other("Publisher", self.first(&["Company", "publisher"]));
        draft.other("Version", self.first(&["version"]));
        let program = [self.first(&["Application", "generator"]), self.first(&["AppVersion"])];
        draft.other("Generator", program.join(" ").trim());
        draft.other("Pages", self.first(&["Pages"]));
    }
}
