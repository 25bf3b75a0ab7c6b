//! What a response says, whoever reads or writes it.
//!
//! Source: OAI-PMH §2 (records, headers, sets), §3.2 (the response), §3.5 (flow control), §4 (verbs).

pub mod read;
pub mod write;

pub use read::{Note, Reading, Unreadable, What, read};

use crate::datestamp::{Datestamp, Granularity};
use crate::error::Fault;

/// An element of XML that stands by itself: its namespaces are declared in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xml(pub String);

/// Whether XML can carry the character at all (XML 1.0 §2.2).
pub(crate) fn is_char(it: char) -> bool {
    !matches!(it, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// By the repository's clock; `None` where it is missing or no time.
    pub response_date: Option<Datestamp>,
    /// What it brings.
    pub body: Body,
}

/// What a response brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing but why; at least one.
    Faults(Vec<Fault>),
    /// Identify.
    Identify(Box<Identify>),
    /// ListMetadataFormats.
    Formats(Vec<Format>),
    /// ListSets.
    Sets(Page<Set>),
    /// ListIdentifiers.
    Headers(Page<Header>),
    /// ListRecords.
    Records(Page<Record>),
    /// GetRecord.
    Record(Box<Record>),
}

/// Who a repository is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identify {
    /// Its name.
    pub repository_name: String,
    /// Its address, as it says.
    pub base_url: String,
    /// `2.0`.
    pub protocol_version: String,
    /// E-mail addresses of its administrators.
    pub admin_emails: Vec<String>,
    /// No datestamp is before this one; `None` where it is missing or no time.
    pub earliest_datestamp: Option<Datestamp>,
    /// What becomes of deleted records.
    pub deleted_record: Deleted,
    /// How fine its datestamps are.
    pub granularity: Granularity,
    /// Compressions that it offers, such as `gzip`.
    pub compressions: Vec<String>,
    /// Descriptions, each the element within `description`.
    pub descriptions: Vec<Xml>,
}

/// What a repository knows of deleted records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deleted {
    /// Nothing.
    #[default]
    No,
    /// All of them, for ever.
    Persistent,
    /// Some of them, for some time.
    Transient,
}

impl Deleted {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Persistent => "persistent",
            Self::Transient => "transient",
        }
    }

    /// What goes by that name, white space around it left out.
    pub fn named(name: &str) -> Option<Self> {
        [Self::No, Self::Persistent, Self::Transient]
            .into_iter()
            .find(|it| it.name() == name.trim())
    }
}

/// A metadata format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// What requests call it.
    pub prefix: String,
    /// Where its schema is.
    pub schema: String,
    /// Its namespace.
    pub namespace: String,
}

/// A set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// What requests call it; levels are divided by colons.
    pub spec: String,
    /// Its name.
    pub name: String,
    /// Descriptions, each the element within `setDescription`.
    pub descriptions: Vec<Xml>,
}

/// The header of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The item's identifier.
    pub identifier: String,
    /// When it changed last; `None` where it is missing or no time.
    pub datestamp: Option<Datestamp>,
    /// The sets that it is in.
    pub sets: Vec<String>,
    /// Whether it is deleted.
    pub deleted: bool,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its header.
    pub header: Header,
    /// The element within `metadata`; `None` of a deleted one.
    pub metadata: Option<Xml>,
    /// The elements within `about`.
    pub about: Vec<Xml>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What it lists.
    pub items: Vec<T>,
    /// Where it goes on; of an empty element, a token without value: the list is at its end.
    pub token: Option<Token>,
    /// What could not be read of it.
    pub quarantined: Vec<Quarantined>,
}

impl<T> Page<T> {
    /// A list of one part.
    pub fn of(items: Vec<T>) -> Self {
        Self { items, token: None, quarantined: Vec::new() }
    }
}

/// Where a list goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// What to ask for; empty at the end of the list.
    pub value: String,
    /// Until when it is good for.
    pub expires: Option<Datestamp>,
    /// Items before this part.
    pub cursor: Option<u64>,
    /// Items of the whole list; an estimate.
    pub complete_list_size: Option<u64>,
    /// Items of the whole repository (Adly's `totalElements`).
    pub total_elements: Option<u64>,
}

/// A record that could not be read, and was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantined {
    /// Its identifier, if that could be read.
    pub identifier: Option<String>,
    /// Where it begins in the response, in bytes.
    pub offset: u64,
    /// What is wrong with it, and up to 200 bytes of where.
    pub problem: String,
}
