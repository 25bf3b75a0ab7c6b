//! Reads responses, those of repositories that write no XML among them.
//!
//! Source: OAI-PMH §3.2 (responses are XML), what is known of real ones (truncated pages, PHP notices,
//! control characters, pages of HTML with status 200).
//!
//! A response is **parsed strictly** first: most are sound, and that is all there is to them. Only one that
//! fails is **scanned**: its items are looked for in the bytes, and each of them is parsed by itself, as it is
//! or, if that fails, with its characters and references mended. What still fails is left out and named
//! ([`Quarantined`]), and costs no other record. What is around the items must be whole in any case: a page
//! without its end tag, or without the element of its verb, is [`Unreadable`], whatever it brought.
//!
//! Metadata are slices of the response to which only those declarations of namespaces are added that they
//! use and that stood outside of them.
//!
//! # Differences from the standard
//!
//! * There are no DTDs: a DOCTYPE before the response is an error, one within a record a problem of that
//!   record. No entity is ever expanded.
//! * Prefixes, dates, numbers and places are taken leniently, and noted.

mod attribute;
mod encoding;
mod entities;
mod mend;
mod notes;
mod page;
mod scan;
mod walk;

use crate::request::Verb;

use super::{Body, Page, Quarantined, Response};

pub use attribute::ATTRIBUTES_MAX;
pub use encoding::TRANSCODED_BYTES_MAX;
pub use notes::{Note, What};
pub use page::{QUARANTINED_MAX, RECORD_BYTES_MAX};
pub use scan::AROUND_BYTES_MAX;
pub use walk::{BINDINGS_MAX, DEPTH_MAX, FIELD_BYTES_MAX, NAMESPACE_BYTES_MAX};

use notes::Notes;
use page::{Found, Items};
use walk::{Cause, Stop, Walker};

/// Longest excerpt of a response in an error, in bytes.
pub const EXCERPT_BYTES_MAX: usize = 200;

/// A response that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The response.
    pub response: Response,
    /// Whether bytes had to be changed, or records left out, to read it.
    pub repaired: bool,
    /// What was noticed, each kind once.
    pub notes: Vec<Note>,
}

/// Why there is no response in what came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Nothing came.
    #[error("the response is empty")]
    Empty,
    /// A page for people came, as of an error, a login or a maintenance.
    #[error("a page of HTML came in the place of a response: {began}")]
    Html {
        /// How it begins.
        began: String,
    },
    /// Something else came: see whether the address is that of an OAI-PMH repository.
    #[error("what came is no response of OAI-PMH: {began}")]
    NotOai {
        /// How it begins.
        began: String,
    },
    /// It has a DOCTYPE, which no response needs and no reader should follow.
    #[error("the response has a DOCTYPE at byte {offset}, and is not read for that")]
    Doctype {
        /// Where, in bytes.
        offset: u64,
    },
    /// It says neither what was asked nor why not.
    #[error("the response has no {} element{}", .asked.name(), other(*.found))]
    NoVerb {
        /// The verb that was asked.
        asked: Verb,
        /// The verb that it answers in its place.
        found: Option<Verb>,
    },
    /// It ends before its end tag does: ask again.
    #[error("the response is cut off after {offset} bytes, before its end tag")]
    Truncated {
        /// How long it is, in bytes.
        offset: u64,
        /// What was whole before; its list may go on.
        whole: Option<Box<Reading>>,
    },
    /// It is no XML, and cannot be made into any.
    #[error("the response cannot be read from byte {offset} on: {problem}")]
    Malformed {
        /// Where, in bytes.
        offset: u64,
        /// What is wrong, and the text there.
        problem: String,
        /// What could be read of it; its list may go on.
        whole: Option<Box<Reading>>,
    },
    /// It is in another encoding than UTF-8, and larger than [`TRANSCODED_BYTES_MAX`].
    #[error("the response is in {encoding}, and larger than what is read in that")]
    Encoding {
        /// Which.
        encoding: &'static str,
    },
}

impl Unreadable {
    /// Records that could be read although the page could not: the last page again would bring them too.
    pub fn into_whole(self) -> Option<Reading> {
        match self {
            Self::Truncated { whole, .. } | Self::Malformed { whole, .. } => whole.map(|it| *it),
            Self::Empty
            | Self::Html { .. }
            | Self::NotOai { .. }
            | Self::Doctype { .. }
            | Self::NoVerb { .. }
            | Self::Encoding { .. } => None,
        }
    }
}

fn other(found: Option<Verb>) -> String {
    found.map(|it| format!(", but one of {}", it.name())).unwrap_or_default()
}

/// Reads the response to a request of that verb.
///
/// No more memory is taken than a few times what the records themselves take that are handed out: the
/// response is not copied, unless it is in another encoding than UTF-8.
///
/// # Errors
///
/// What came is no response, or not a whole one. No error means that the list has ended: ask again, and
/// go on from the last token or window if it stays.
pub fn read(bytes: &[u8], asked: Verb) -> Result<Reading, Unreadable> {
    let mut notes = Notes::default();
    let utf8 = encoding::in_utf8(bytes, &mut notes)
        .map_err(|encoding| Unreadable::Encoding { encoding })?;
    let body = utf8.trim_ascii_start();
    if body.is_empty() {
        return Err(Unreadable::Empty);
    }
    // A byte order mark and white space have been left out.
    let base = bytes.len().saturating_sub(body.len());
    if body.len() < utf8.len() && body.starts_with(b"<?xml") {
        notes.add(What::Junk, 0);
    }
    if let Ok(text) = std::str::from_utf8(body)
        && walk::is_clean(text)
    {
        let mut walker = Walker::new(text, &[], false);
        let mut found = Found::default();
        match page::Page::new(&mut walker, asked, text.len(), base).response(&mut found) {
            Ok(()) => {
                found.items.notes.append(notes);
                return finish(found, asked);
            }
            Err(Stop { cause: Cause::End, .. }) if is_cut(body) => {
                let offset = bytes.len() as u64;
                found.items.notes.append(notes);
                return Err(Unreadable::Truncated { offset, whole: whole(found, asked) });
            }
            Err(_) => {}
        }
    }
    scan::scan(body, base, asked, notes)
}

/// Whether a response begins and does not end; one with an end tag may have something else that is open.
fn is_cut(body: &[u8]) -> bool {
    scan::root(body).is_some() && scan::last_end_tag(body, b"OAI-PMH").is_none()
}

/// A response whose page is whole.
fn finish(mut found: Found<'_>, asked: Verb) -> Result<Reading, Unreadable> {
    if !found.faults.is_empty() && !has_result(&found, asked) {
        let faults = std::mem::take(&mut found.faults);
        let response = Response { response_date: found.date, body: Body::Faults(faults) };
        return Ok(reading(response, found.items));
    }
    if found.bodies == 0 {
        return Err(Unreadable::NoVerb { asked, found: found.other });
    }
    if !found.faults.is_empty() {
        found.items.notes.add(What::FaultBesideResult, 0);
    }
    let items = &mut found.items;
    let body = match asked {
        Verb::Identify => Body::Identify(Box::new(found.identify)),
        Verb::ListMetadataFormats => Body::Formats(found.formats),
        Verb::ListSets => {
            let sets = std::mem::take(&mut items.sets);
            Body::Sets(page(sets, found.token, items))
        }
        Verb::ListIdentifiers => {
            let headers = std::mem::take(&mut items.headers);
            Body::Headers(page(headers, found.token, items))
        }
        Verb::ListRecords => {
            let records = std::mem::take(&mut items.records);
            Body::Records(page(records, found.token, items))
        }
        Verb::GetRecord => match items.records.pop() {
            Some(record) => Body::Record(Box::new(record)),
            None => return Err(no_record(items)),
        },
    };
    Ok(reading(Response { response_date: found.date, body }, found.items))
}

/// Whether there is more than the empty element of the verb.
fn has_result(found: &Found<'_>, asked: Verb) -> bool {
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

/// What has been read of a list whose page is not whole.
fn whole(mut found: Found<'_>, asked: Verb) -> Option<Box<Reading>> {
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
    let mut quarantined = std::mem::take(&mut items.quarantined);
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
    Reading { response, repaired, notes: items.notes.into_vec() }
}

/// Some of the bytes, from there on, as text for an error.
fn excerpt(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let some = rest.get(..EXCERPT_BYTES_MAX).unwrap_or(rest);
    String::from_utf8_lossy(some).escape_debug().to_string()
}

#[cfg(test)]
mod tests;
