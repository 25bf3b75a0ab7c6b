//! What a name in a query stands for.
//!
//! Sans-I/O.

/// Part of a record that is searched by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// `Title`.
    Title,
    /// `Keywords`.
    Keywords,
    /// `Description` and `Abstract`.
    Description,
    /// `Author`.
    Author,
    /// The texts, and every other attribute that says what the object is.
    Body,
    /// The address, as written and as read.
    Url,
    /// `Type`.
    Type,
    /// The host of the address.
    Host,
    /// Name and id of the gatherer.
    Gatherer,
}

impl Part {
    /// The parts that are searched when no attribute is named.
    pub const USUAL: [Self; 6] =
        [Self::Title, Self::Keywords, Self::Description, Self::Author, Self::Url, Self::Body];

    /// Whether a plain word is found in all its forms here; not where endings mean nothing.
    pub const fn is_inflected(self) -> bool {
        matches!(self, Self::Title | Self::Keywords | Self::Description | Self::Body)
    }

    /// The attributes, in small letters, one of which has to be there for the part to be; none if
    /// it always is.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Title => &["title"],
            Self::Keywords => &["keywords"],
            Self::Description => &["description", "abstract"],
            Self::Author => &["author"],
            Self::Body => &["partial-text", "full-text"],
            Self::Type => &["type"],
            Self::Url | Self::Host | Self::Gatherer => &[],
        }
    }
}

/// What of a record is compared as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes.
    Size,
    /// The year that the object names itself, or that it was modified in, UTC.
    Year,
    /// Unix seconds.
    Modified,
    /// Unix seconds.
    Updated,
}

impl Quantity {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Size, Self::Year, Self::Modified, Self::Updated];

    /// The shortest name it has in queries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Year => "year",
            Self::Modified => "modified",
            Self::Updated => "updated",
        }
    }

    /// How its values are written.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Size | Self::Year => Kind::Number,
            Self::Modified | Self::Updated => Kind::Date,
        }
    }
}

/// What a name in a query stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Words.
    Part(Part),
    /// A number.
    Quantity(Quantity),
    /// The object's id.
    Oid,
    /// Any other attribute: its name in small letters.
    Attribute(String),
}

/// Looks up what `name`, in any case, stands for.
pub fn target(name: &str) -> Target {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "title" => Target::Part(Part::Title),
        "keywords" => Target::Part(Part::Keywords),
        "description" | "abstract" => Target::Part(Part::Description),
        "author" => Target::Part(Part::Author),
        "body" | "text" | "partial-text" | "full-text" => Target::Part(Part::Body),
        "url" => Target::Part(Part::Url),
        "type" => Target::Part(Part::Type),
        "host" => Target::Part(Part::Host),
        "gatherer" => Target::Part(Part::Gatherer),
        "size" | "file-size" => Target::Quantity(Quantity::Size),
        "year" => Target::Quantity(Quantity::Year),
        "modified" | "last-modification-time" => Target::Quantity(Quantity::Modified),
        "updated" | "update-time" => Target::Quantity(Quantity::Updated),
        "oid" => Target::Oid,
        _ => Target::Attribute(name),
    }
}

/// How the values of an attribute compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not at all: words.
    Text,
    /// As whole numbers: sizes, years.
    Number,
    /// As moments.
    Date,
}

/// Returns how `field` compares; a name in any case. `None` for one that is not ours, whose values
/// compare as numbers where they are numbers.
pub fn kind(field: &str) -> Option<Kind> {
    match target(field) {
        Target::Part(_) | Target::Oid => Some(Kind::Text),
        Target::Quantity(quantity) => Some(quantity.kind()),
        Target::Attribute(name) => (name == "md5").then_some(Kind::Text),
    }
}
