//! The reader of responses, also of those that are not well-formed XML.
//!
//! Source: OAI-PMH §3.2 (responses are XML); common errors of real repositories (truncated pages,
//! PHP notices, control characters, HTML pages with status 200).
//!
//! A response is **parsed strictly** first, which is enough for most responses. If that fails, it
//! is **scanned**: its items are located in the bytes, and each is parsed alone, as it is or with
//! its characters and references mended. An item that still cannot be parsed is left out and named
//! ([`Quarantined`]), and no other record is lost. The text around the items must be complete in
//! any case: a page without its end tag, or without the element of its verb, is [`Unreadable`].
//!
//! Metadata are slices of the response. Only the namespace declarations that they use and that are
//! outside of them are added.
//!
//! # Differences from the standard
//!
//! * There are no DTDs: a DOCTYPE before the response is an error, one within a record a problem of
//!   that record. No entity is ever expanded.
//! * Prefixes, dates, numbers and positions are read leniently, and deviations are noted.

mod attribute;
mod encoding;
mod entities;
mod mend;
mod notes;
mod page;
mod scan;
mod walk;
mod well_formed;

use std::mem::take;

use crate::request::Verb;

use super::{Body, Page, Quarantined, Response};

pub use attribute::ATTRIBUTES_MAX;
pub use encoding::TRANSCODED_BYTES_MAX;
pub use notes::Note;
pub(crate) use notes::NoteKind;
pub use page::{QUARANTINED_MAX, RECORD_BYTES_MAX};
pub use scan::AROUND_BYTES_MAX;
pub use walk::{BINDINGS_MAX, DEPTH_MAX, FIELD_BYTES_MAX, NAMESPACE_BYTES_MAX};
pub(crate) use well_formed::well_formed;

use notes::Notes;
use page::{Items, ResponseParts};
use walk::{Cause, Stop, Walker};

/// Longest excerpt of a response in an error message, in bytes.
pub const EXCERPT_BYTES_MAX: usize = 200;

/// Advice for an answer that does not come from a repository.
pub const BASE_URL_ADVICE: &str = "check that the URL is the repository's base URL, which its \
     documentation names; it often ends in /oai, /oai2 or /oai/request";

/// A readable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The response.
    pub response: Response,
    /// Whether bytes were changed or records left out.
    pub repaired: bool,
    /// Notes, one for each kind.
    pub notes: Vec<Note>,
}

/// The reason why an answer is not a readable response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is empty.
    #[error("the response is empty")]
    Empty,
    /// It is an HTML page for people, for example about an error, a login or maintenance.
    #[error("an HTML page{} came instead of an OAI-PMH response", titled(.title))]
    Html {
        /// Its title; empty if it has none.
        title: String,
    },
    /// It is something else: check whether the address is that of an OAI-PMH repository.
    #[error("the answer is not an OAI-PMH response, but begins with: {began}")]
    NotOai {
        /// Its beginning.
        began: String,
    },
    /// It has a DOCTYPE, which a response does not need and a reader should not follow.
    #[error("the response has a DOCTYPE at byte {offset}, and is therefore not read")]
    Doctype {
        /// Position, in bytes.
        offset: u64,
    },
    /// It has neither the requested result nor an error.
    #[error("the response has no {} element{}", .asked.name(), other(*.found))]
    NoVerb {
        /// The verb of the request.
        asked: Verb,
        /// The verb that it answers instead.
        found: Option<Verb>,
    },
    /// It ends before its end tag: ask again.
    #[error("the response is cut off after {offset} bytes, before its end tag")]
    Truncated {
        /// Its length, in bytes.
        offset: u64,
        /// The complete items; their list may continue.
        whole: Option<Box<Reading>>,
    },
    /// It is not XML, and cannot be mended.
    #[error("the response cannot be read from byte {offset} on: {problem}")]
    Malformed {
        /// Position, in bytes.
        offset: u64,
        /// The problem, and the text there.
        problem: String,
        /// The readable items; their list may continue.
        whole: Option<Box<Reading>>,
    },
    /// It is in another encoding than UTF-8, and larger than [`TRANSCODED_BYTES_MAX`].
    #[error("the response is in {encoding}, and too large to be converted to UTF-8")]
    Encoding {
        /// The encoding.
        encoding: &'static str,
    },
}

impl Unreadable {
    /// Returns the readable items of an unreadable page. A repeated request would bring the same
    /// items.
    pub fn into_whole(self) -> Option<Reading> {
        match self {
            Self::Truncated { whole, .. } | Self::Malformed { whole, .. } => whole.map(|it| *it),
            _ => None,
        }
    }

    /// Returns the problem, with advice if the address may be the cause.
    pub fn advised(&self) -> String {
        match self {
            Self::Html { .. } | Self::NotOai { .. } => format!("{self}; {BASE_URL_ADVICE}"),
            _ => self.to_string(),
        }
    }
}

fn titled(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!(" titled {title:?}") }
}

fn other(found: Option<Verb>) -> String {
    found.map(|it| format!(", but one of {}", it.name())).unwrap_or_default()
}

/// Reads the response to a request with the verb `asked`.
///
/// Memory is bounded by a few times the size of the returned records: the response is not copied,
/// unless its encoding is not UTF-8.
///
/// # Errors
///
/// The answer is not a response, or not a complete one. An error never means that the list has
/// ended: ask again, and if the error persists, continue from the last token or window.
pub fn read(bytes: &[u8], asked: Verb) -> Result<Reading, Unreadable> {
    let mut notes = Notes::default();
    let utf8 = encoding::in_utf8(bytes, &mut notes)
        .map_err(|encoding| Unreadable::Encoding { encoding })?;
    let body = utf8.trim_ascii_start();
    if body.is_empty() {
        return Err(Unreadable::Empty);
    }
    // A byte order mark and white space have been skipped.
    let base = bytes.len().saturating_sub(body.len());
    if body.len() < utf8.len() && body.starts_with(b"<?xml") {
        notes.add(NoteKind::Junk, 0);
    }
    if let Ok(text) = std::str::from_utf8(body)
        && walk::is_clean(text)
    {
        let mut walker = Walker::new(text, &[], false);
        let mut found = ResponseParts::default();
        match page::Page::new(&mut walker, asked, text.len(), base).response(&mut found) {
            Ok(()) => {
                found.items.notes.append(notes);
                return finish(found, asked);
            }
            Err(Stop { cause: Cause::End, .. }) if is_cut(body) => {
                let offset = bytes.len() as u64;
                found.items.notes.append(notes);
                return Err(Unreadable::Truncated { offset, whole: partial_reading(found, asked) });
            }
            Err(_) => {}
        }
    }
    scan::scan(body, base, asked, notes)
}

/// Returns whether a response begins, but has no end tag. If it has one, the end of the text is not
/// the error: an earlier element may be open.
fn is_cut(body: &[u8]) -> bool {
    scan::root(body).is_some() && scan::last_end_tag(body, b"OAI-PMH").is_none()
}

/// Returns the response of a complete page.
fn finish(mut found: ResponseParts<'_>, asked: Verb) -> Result<Reading, Unreadable> {
    if !found.faults.is_empty() && !has_result(&found, asked) {
        let faults = take(&mut found.faults);
        let response = Response { response_date: found.date, body: Body::Faults(faults) };
        return Ok(reading(response, found.items));
    }
    if found.bodies == 0 {
        return Err(Unreadable::NoVerb { asked, found: found.other });
    }
    if !found.faults.is_empty() {
        found.items.notes.add(NoteKind::FaultBesideResult, 0);
    }
    let items = &mut found.items;
    let body = match asked {
        Verb::Identify => Body::Identify(Box::new(found.identify)),
        Verb::ListMetadataFormats => Body::Formats(found.formats),
        Verb::ListSets => Body::Sets(page(take(&mut items.sets), found.token, items)),
        Verb::ListIdentifiers => Body::Headers(page(take(&mut items.headers), found.token, items)),
        Verb::ListRecords => Body::Records(page(take(&mut items.records), found.token, items)),
        Verb::GetRecord => match items.records.pop() {
            Some(record) => Body::Record(Box::new(record)),
            None => return Err(no_record(items)),
        },
    };
    Ok(reading(Response { response_date: found.date, body }, found.items))
}

/// Returns whether the verb's element has content.
fn has_result(found: &ResponseParts<'_>, asked: Verb) -> bool {
    let items = &found.items;
    match asked {
        Verb::Identify => !found.identify.base_url.is_empty(),
        Verb::ListMetadataFormats => !found.formats.is_empty(),
        Verb::ListSets | Verb::ListIdentifiers | Verb::ListRecords | Verb::GetRecord => {
            !(items.sets.is_empty()
                && items.headers.is_empty()
                && items.records.is_empty()
                && items.quarantined.is_empty())
        }
    }
}

fn no_record(items: &mut Items) -> Unreadable {
    let (offset, problem) = match items.quarantined.pop() {
        Some(it) => (it.offset, format!("the record cannot be read: {}", it.problem)),
        None => (0, "GetRecord without a record".to_owned()),
    };
    Unreadable::Malformed { offset, problem, whole: None }
}

/// Returns the readable items of an incomplete page.
fn partial_reading(mut found: ResponseParts<'_>, asked: Verb) -> Option<Box<Reading>> {
    let is_list = matches!(asked, Verb::ListRecords | Verb::ListIdentifiers | Verb::ListSets);
    found.faults.clear();
    found.token = None;
    if !is_list || !has_result(&found, asked) {
        return None;
    }
    found.bodies = 1;
    finish(found, asked).ok().map(Box::new)
}

fn page<T>(list: Vec<T>, token: Option<super::Token>, items: &mut Items) -> Page<T> {
    let mut quarantined = take(&mut items.quarantined);
    if 0 < items.unnamed {
        let problem = format!("{} more records cannot be read", items.unnamed);
        quarantined.push(Quarantined { problem, ..Quarantined::default() });
    }
    Page { items: list, token, quarantined }
}

fn reading(response: Response, items: Items) -> Reading {
    let is_complete = match &response.body {
        Body::Sets(page) => page.quarantined.is_empty(),
        Body::Headers(page) => page.quarantined.is_empty(),
        Body::Records(page) => page.quarantined.is_empty(),
        Body::Faults(_) | Body::Identify(_) | Body::Formats(_) | Body::Record(_) => true,
    };
    let repaired = items.notes.has_repairs() || !is_complete;
    Reading { response, repaired, notes: items.notes.0 }
}

/// Returns the beginning of a document of any kind as text for an error message: in one line, and
/// without control characters.
fn beginning(bytes: &[u8]) -> String {
    let some = bytes.get(..EXCERPT_BYTES_MAX).unwrap_or(bytes);
    let text = String::from_utf8_lossy(some);
    let words: Vec<&str> = text.split(|it: char| it.is_whitespace() || it.is_control()).collect();
    words.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns some bytes from `at` on as text for an error message.
fn excerpt(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let some = rest.get(..EXCERPT_BYTES_MAX).unwrap_or(rest);
    String::from_utf8_lossy(some).escape_debug().to_string()
}

#[cfg(test)]
mod tests;
