//! Metadata of pictures, sound and film, collected from all places in a file that hold any.
//!
//! A picture may have its title in four places (EXIF, IPTC, XMP, a comment). The first value wins.
//! An equal value is left out; another title or description becomes part of the text.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::{DateSource, Draft};
use crate::limit::Limit;
use crate::text::{Body, is_telling, one_line};

/// Sides of this many pixels or more are taken for errors.
const SIDE_MAX: u64 = 1 << 31;

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Field {
    Title,
    Author,
    /// Another person who took part.
    Contributor,
    Publisher,
    Description,
    Keyword,
    Copyright,
    License,
    Date,
    /// The program that made it.
    Generator,
    Camera,
    Location,
    Album,
    Genre,
    Language,
    Identifier,
    /// Other text of the object.
    Text,
}

impl Field {
    /// Fields that become attributes, with their names; `true` keeps all values, `false` the first.
    const ATTRIBUTES: &[(Self, &str, bool)] = &[
        (Self::Contributor, "Contributor", true),
        (Self::Publisher, "Publisher", false),
        (Self::Keyword, "Subject", true),
        (Self::Copyright, "Copyright", false),
        (Self::License, "License", false),
        (Self::Album, "Album", false),
        (Self::Genre, "Genre", true),
        (Self::Language, "Language", true),
        (Self::Identifier, "Identifier", true),
        (Self::Camera, "Camera", false),
        (Self::Location, "Location", false),
        (Self::Generator, "Generator", false),
    ];
}

/// The metadata of one object, in the order of reading.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    values: Vec<(Field, Rc<str>)>,
    /// The same, to find equal ones.
    known: HashSet<(Field, Rc<str>)>,
    dimensions: Option<(u64, u64)>,
    duration_ms: Option<u64>,
    /// Limits that it goes beyond.
    cuts: BTreeSet<Limit>,
}

impl Metadata {
    /// Adds a value, unless it has neither letters nor digits, or is there already.
    pub(crate) fn add(&mut self, field: Field, value: &str) {
        let value = value.trim_matches(|it: char| it.is_whitespace() || it == '\0');
        if Limit::Property.bound() < value.len() {
            self.cuts.insert(Limit::Property);
        }
        let value = match field {
            Field::Text | Field::Description => {
                let cut = value.get(..value.floor_char_boundary(Limit::Property.bound()));
                let text = cut.unwrap_or_default().replace("\r\n", "\n").replace('\r', "\n");
                text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect()
            }
            _ => one_line(value, Limit::Property.bound()),
        };
        let is_telling = value.chars().any(char::is_alphanumeric);
        let value = (field, Rc::from(value));
        if !is_telling || self.known.contains(&value) {
            return;
        }
        if self.values.len() < Limit::Properties.bound() {
            self.known.insert(value.clone());
            self.values.push(value);
        } else {
            self.cuts.insert(Limit::Properties);
        }
    }

    /// Adds the values of one line, separated by any of `separators`.
    pub(crate) fn add_list(&mut self, field: Field, values: &str, separators: &[char]) {
        for value in values.split(separators) {
            self.add(field, value);
        }
    }

    /// Says that a reader went up to `limit` only.
    pub(crate) fn cut(&mut self, limit: Limit) {
        self.cuts.insert(limit);
    }

    /// Sets width and height in pixels, unless they are known.
    pub(crate) fn dimensions(&mut self, width: u64, height: u64) {
        if (1..SIDE_MAX).contains(&width) && (1..SIDE_MAX).contains(&height) {
            self.dimensions.get_or_insert((width, height));
        }
    }

    pub(crate) fn has_dimensions(&self) -> bool {
        self.dimensions.is_some()
    }

    /// Sets the duration in milliseconds, unless it is known.
    pub(crate) fn duration(&mut self, duration_ms: u64) {
        if 0 < duration_ms {
            self.duration_ms.get_or_insert(duration_ms);
        }
    }

    fn first(&self, field: Field) -> Option<&str> {
        self.all(field).next()
    }

    fn all(&self, field: Field) -> impl Iterator<Item = &str> {
        self.values.iter().filter(move |it| it.0 == field).map(|it| &*it.1)
    }

    /// Returns all values of `field`, a line each.
    pub(crate) fn lines(&self, field: Field) -> String {
        self.all(field).collect::<Vec<_>>().join("\n")
    }

    /// Returns a draft with a body of at most `text_bytes_max` bytes.
    pub(crate) fn draft<'a>(self, text_bytes_max: usize) -> Draft<'a> {
        let mut draft = Draft::default();
        self.cuts.iter().for_each(|it| draft.cut(it.cut()));
        let title = self.first(Field::Title).filter(|it| is_telling(it)).unwrap_or_default();
        let mut descriptions = self.all(Field::Description).chain(self.all(Field::Text));
        let description = descriptions.next().unwrap_or_default();
        draft.title = title.to_owned();
        draft.authors.extend(self.all(Field::Author).map(str::to_owned));
        draft.description = description.to_owned();
        draft.keywords = self.lines(Field::Keyword);
        self.all(Field::Date).for_each(|it| draft.date(it, DateSource::Media));
        for (field, name, all) in Field::ATTRIBUTES {
            let first = || self.first(*field).unwrap_or_default().to_owned();
            draft.other(name, if *all { self.lines(*field) } else { first() });
        }
        if let Some((width, height)) = self.dimensions {
            draft.other("Dimensions", format!("{width}x{height}"));
        }
        if let Some(milliseconds) = self.duration_ms {
            draft.other("Duration", seconds(milliseconds));
        }
        let mut body = Body::new(text_bytes_max);
        for field in [Field::Title, Field::Description, Field::Text] {
            for value in self.all(field).filter(|it| *it != title) {
                body.push_line(value);
            }
        }
        if 0 < text_bytes_max {
            draft.set_body(body);
        }
        draft
    }
}

/// Returns seconds as a decimal number, without zeros at the end.
fn seconds(milliseconds: u64) -> String {
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once() {
        let mut metadata = Metadata::default();
        metadata.add(Field::Title, " A walk\0\0");
        metadata.add(Field::Title, "A walk");
        metadata.add(Field::Title, "Another name");
        metadata.add(Field::Author, "Ann");
        metadata.add(Field::Text, "--");
        metadata.add_list(Field::Keyword, "sea; sand;;sea", &[';']);
        metadata.dimensions(0, 5);
        metadata.dimensions(640, 480);
        metadata.dimensions(1, 1);
        metadata.duration(61_500);
        let draft = metadata.draft(100);
        assert_eq!(draft.title, "A walk");
        assert_eq!(draft.authors, ["Ann"]);
        assert_eq!(draft.body, "Another name\n");
        let others: Vec<_> = draft.others.iter().map(|it| (it.0.as_str(), it.1.as_str())).collect();
        let expected = [("Subject", "sea\nsand"), ("Dimensions", "640x480"), ("Duration", "61.5")];
        assert_eq!(others, expected);
    }
}
