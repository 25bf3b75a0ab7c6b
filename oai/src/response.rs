//! Responses as values, for their reader and their writer.
//!
//! Source: OAI-PMH §2 (records, headers, sets), §3.2 (the response), §3.5 (flow control), §4
//! (verbs).

pub mod read;
pub mod write;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

pub use read::{BASE_URL_ADVICE, Note, Reading, Unreadable, read};
pub(crate) use read::{NoteKind, well_formed};

use crate::datestamp::{Datestamp, Granularity};
use crate::error::Fault;

/// A self-contained XML element: all namespaces that it uses are declared in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Xml(pub String);

impl Xml {
    /// Returns the element's name, and the name and trimmed text of each leaf element that is not
    /// empty; names lack prefixes. `None` if it is longer than `bytes_max`, unreadable, or a single
    /// empty tag, or has a DOCTYPE.
    pub(crate) fn leaves(&self, bytes_max: usize) -> Option<(String, Vec<(String, String)>)> {
        let text = Some(self.0.as_str()).filter(|it| it.len() <= bytes_max)?;
        let mut reader = Reader::from_str(text);
        let (mut root, mut leaves) = (None, Vec::new());
        let mut open: Option<(String, String)> = None;
        loop {
            let event = reader.read_event().ok()?;
            match (&event, &mut open) {
                (Event::Start(start), _) => {
                    let name = start.local_name().as_ref().to_owned();
                    root.get_or_insert_with(|| name.clone());
                    open = Some((name, String::new()));
                }
                (Event::Text(text), Some((_, value))) => {
                    value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
                }
                (Event::CData(text), Some((_, value))) => {
                    value.push_str(&text.xml_content(XmlVersion::Implicit1_0));
                }
                (Event::GeneralRef(it), Some((_, value))) => match it.resolve_char_ref().ok()? {
                    Some(char) => value.push(char),
                    None => value.push_str(resolve_xml_entity(&it.xml10_content())?),
                },
                (Event::End(_), _) => {
                    let ended = open.take().map(|(name, value)| (name, value.trim().to_owned()));
                    leaves.extend(ended.filter(|(_, value)| !value.is_empty()));
                }
                (Event::DocType(_), _) => return None,
                (Event::Eof, _) => break,
                _ => {}
            }
        }
        Some((root?, leaves))
    }
}

/// Returns whether XML can contain the character (XML 1.0 §2.2).
pub(crate) fn is_char(it: char) -> bool {
    !matches!(it, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Time by the repository's clock; `None` if it is missing or not a time.
    pub response_date: Option<Datestamp>,
    /// Its content.
    pub body: Body,
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Errors; at least one.
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

/// The description of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identify {
    /// Its name.
    pub repository_name: String,
    /// Its address, as the repository states it.
    pub base_url: String,
    /// The protocol version that it states; `2.0` is expected.
    pub protocol_version: String,
    /// E-mail addresses of its administrators.
    pub admin_emails: Vec<String>,
    /// A lower bound of all datestamps; `None` if it is missing or not a time.
    pub earliest_datestamp: Option<Datestamp>,
    /// Its treatment of deleted records.
    pub deleted_record: Deleted,
    /// Granularity of its datestamps.
    pub granularity: Granularity,
    /// Compressions that it offers, such as `gzip`.
    pub compressions: Vec<String>,
    /// Descriptions, each the element within `description`.
    pub descriptions: Vec<Xml>,
}

/// A repository's memory of deleted records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deleted {
    /// It remembers none of them.
    #[default]
    No,
    /// It remembers all of them, for ever.
    Persistent,
    /// It remembers some of them, for some time.
    Transient,
}

impl Deleted {
    /// Returns its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Persistent => "persistent",
            Self::Transient => "transient",
        }
    }

    /// Returns the value with that name, which is trimmed first.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::No, Self::Persistent, Self::Transient]
            .into_iter()
            .find(|it| it.name() == name.trim())
    }
}

/// A metadata format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Its name in requests.
    pub prefix: String,
    /// Address of its schema.
    pub schema: String,
    /// Its namespace.
    pub namespace: String,
}

/// A set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Its name in requests; levels are separated by colons.
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
    /// Time of the last change; `None` if it is missing or not a time.
    pub datestamp: Option<Datestamp>,
    /// The sets of the item.
    pub sets: Vec<String>,
    /// Whether the record is deleted.
    pub deleted: bool,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its header.
    pub header: Header,
    /// The element within `metadata`; `None` in a deleted record, and in a live one that came
    /// without, against the standard.
    pub metadata: Option<Xml>,
    /// The elements within `about`.
    pub about: Vec<Xml>,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The token for the next part; `None` without a token element, or if the response is cut off.
    /// If its value is empty, this part is the last.
    pub token: Option<Token>,
    /// The unreadable items.
    pub quarantined: Vec<Quarantined>,
}

impl<T> Page<T> {
    /// Returns a list of one part.
    pub fn of(items: Vec<T>) -> Self {
        Self { items, token: None, quarantined: Vec::new() }
    }
}

/// A resumption token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// The value to send for the next part; empty at the end of the list.
    pub value: String,
    /// Its expiry.
    pub expires: Option<Datestamp>,
    /// Number of items before this part.
    pub cursor: Option<u64>,
    /// Number of items of the whole list; an estimate.
    pub complete_list_size: Option<u64>,
    /// Number of items of the whole repository (Adly's `totalElements`).
    pub total_elements: Option<u64>,
}

/// An unreadable item (record, header or set) that was left out, or a count of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantined {
    /// Its identifier, if readable.
    pub identifier: Option<String>,
    /// Its position in the response, in bytes; 0 for a count.
    pub offset: u64,
    /// The problem, for some problems with an excerpt of up to 200 bytes; or the count.
    pub problem: String,
}
