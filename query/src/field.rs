//! The names of attributes in queries and their meanings.
//!
//! Sans-I/O.

use crate::distance::within;

/// Shortest attribute name for which [`resembling`] looks for another, in letters.
pub const NAME_LETTERS_MIN: usize = 3;
/// Shortest attribute name in which [`resembling`] allows for two edits, in letters.
pub const LONG_NAME_LETTERS: usize = 6;

/// A field of a record that is searched by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextField {
    /// `Title`.
    Title,
    /// `Keywords`.
    Keywords,
    /// `Description` and `Abstract`.
    Description,
    /// `Author`.
    Author,
    /// The texts, and every other attribute that describes the object.
    Body,
    /// The URL, as written and decoded.
    Url,
    /// What the URL says of this object alone, as written and decoded: all below its gatherer's root.
    Path,
    /// `Type`.
    Type,
    /// The host of the URL.
    Host,
    /// Name and id of the gatherer.
    Gatherer,
}

impl TextField {
    /// The fields that are searched for one word when a query names no attribute. The words of a whole
    /// URL would be found in all objects: `file` and `home` say nothing of one.
    pub const OF_A_WORD: [Self; 6] =
        [Self::Title, Self::Keywords, Self::Description, Self::Author, Self::Path, Self::Body];
    /// The fields that are searched for words side by side, a whole URL among them.
    pub const OF_A_PHRASE: [Self; 6] =
        [Self::Title, Self::Keywords, Self::Description, Self::Author, Self::Url, Self::Body];

    /// Returns whether a plain word finds all its forms in this field; in others only itself.
    pub const fn is_inflected(self) -> bool {
        matches!(self, Self::Title | Self::Keywords | Self::Description | Self::Body)
    }

    /// Returns the attributes, in small letters, that make the field exist: a record with any of
    /// them has the field. Empty if every record has it.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Title => &["title"],
            Self::Keywords => &["keywords"],
            Self::Description => &["description", "abstract"],
            Self::Author => &["author"],
            Self::Body => &["partial-text", "full-text"],
            Self::Type => &["type"],
            Self::Url | Self::Path | Self::Host | Self::Gatherer => &[],
        }
    }
}

/// A field of a record that is compared as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes.
    Size,
    /// The object's own `Year` or that of its `Date`, or else of its modification, UTC.
    Year,
    /// Unix seconds.
    Modified,
    /// Unix seconds.
    Updated,
}

impl Quantity {
    /// All quantities.
    pub const ALL: [Self; 4] = [Self::Size, Self::Year, Self::Modified, Self::Updated];

    /// Returns its shortest name in queries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Year => "year",
            Self::Modified => "modified",
            Self::Updated => "updated",
        }
    }

    /// Returns the kind of its values.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Size | Self::Year => Kind::Number,
            Self::Modified | Self::Updated => Kind::Date,
        }
    }
}

/// Meaning of an attribute name in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Words.
    Text(TextField),
    /// A number.
    Quantity(Quantity),
    /// The object's id.
    Oid,
    /// Any other attribute: its name in small letters.
    Attribute(String),
}

/// Looks up the meaning of `name`, in any case.
pub fn target(name: &str) -> Target {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "title" => Target::Text(TextField::Title),
        "keywords" => Target::Text(TextField::Keywords),
        "description" | "abstract" => Target::Text(TextField::Description),
        "author" => Target::Text(TextField::Author),
        "body" | "text" | "partial-text" | "full-text" => Target::Text(TextField::Body),
        "url" => Target::Text(TextField::Url),
        "path" | "filename" => Target::Text(TextField::Path),
        "type" | "filetype" => Target::Text(TextField::Type),
        "host" => Target::Text(TextField::Host),
        "gatherer" => Target::Text(TextField::Gatherer),
        "size" | "file-size" => Target::Quantity(Quantity::Size),
        "year" => Target::Quantity(Quantity::Year),
        "modified" | "last-modification-time" => Target::Quantity(Quantity::Modified),
        "updated" | "update-time" => Target::Quantity(Quantity::Updated),
        "oid" => Target::Oid,
        _ => Target::Attribute(name),
    }
}

/// Returns the name of `known` that is most like a mistyped or abbreviated attribute name: one edit
/// away, else with `name` as its beginning, else two edits away from a `name` of
/// [`LONG_NAME_LETTERS`]. Case does not matter. A name of fewer than [`NAME_LETTERS_MIN`] is like
/// none.
pub fn resembling<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let letters: Vec<char> = name.chars().collect();
    if letters.len() < NAME_LETTERS_MIN {
        return None;
    }
    let rank = |known: &str| {
        let known = known.to_lowercase();
        let is_near = |edits| within(&letters, &known, edits);
        let is_alike = [
            is_near(0),
            is_near(1),
            known.starts_with(&name),
            LONG_NAME_LETTERS <= letters.len() && is_near(2),
        ];
        is_alike.into_iter().position(|it| it)
    };
    let ranked = known.filter_map(|it| Some((rank(it)?, it)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, it)| it)
}

/// Order of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No order: words.
    Text,
    /// Whole numbers: sizes, years.
    Number,
    /// Moments.
    Date,
}

/// Returns the order of the values of `field`, a name in any case. `None` for an unknown attribute:
/// its values compare as numbers where they are numbers.
pub fn kind(field: &str) -> Option<Kind> {
    match target(field) {
        Target::Text(_) | Target::Oid => Some(Kind::Text),
        Target::Quantity(quantity) => Some(quantity.kind()),
        Target::Attribute(name) => (name == "md5").then_some(Kind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_resembles_a_known_one() {
        let known = ["title", "author", "type", "keywords", "url", "modified", "Publisher"];
        for (name, expected) in [
            ("tit", Some("title")),
            ("autor", Some("author")),
            ("TITEL", Some("title")),
            ("typ", Some("type")),
            ("key", Some("keywords")),
            ("publ", Some("Publisher")),
            ("modifed", Some("modified")),
            ("publsiherr", Some("Publisher")),
            ("url", Some("url")),
            ("tytl", None),
            ("re", None),
            ("shoe-size", None),
        ] {
            assert_eq!(resembling(name, known.into_iter()), expected, "{name}");
        }
    }
}
