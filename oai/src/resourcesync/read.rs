//! Reader of ResourceSync documents.
//!
//! Elements are recognized by their local names, because no other element of a sitemap has the same
//! local name. Unknown elements and invalid values are ignored. A document is unreadable if it is
//! not XML, is not a sitemap, or does not name its kind.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use super::{Capability, ChangeKind, DOCUMENT_BYTES_MAX, Document, ENTRIES_MAX, Entry};
use crate::datestamp::Datestamp;
use crate::response::is_char;

/// The reason why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is too large: its site should divide it.
    #[error("the document has {bytes} bytes, more than {DOCUMENT_BYTES_MAX}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// It has more entries than a sitemap may have.
    #[error("the document has more than {ENTRIES_MAX} entries")]
    TooMany,
    /// It is not XML, or breaks off, or has a DTD.
    #[error("byte {offset}: {what}")]
    NotXml {
        /// Position of the error.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// It is XML, but not a sitemap with a kind.
    #[error("the document is not one of ResourceSync: {what}")]
    Other {
        /// What is missing.
        what: &'static str,
    },
}

/// Reads a document.
///
/// # Errors
///
/// [`Unreadable`]: ask again later, and tell the site if the error persists.
pub fn read(text: &str) -> Result<Document, Unreadable> {
    if DOCUMENT_BYTES_MAX < text.len() {
        return Err(Unreadable::TooLarge { bytes: text.len() });
    }
    let unallowed = || "a character that XML does not allow".to_owned();
    if let Some(at) = text.find(|it| !is_char(it)) {
        return Err(Unreadable::NotXml { offset: at as u64, what: unallowed() });
    }
    let mut reader = Reader::from_str(text);
    let mut reading = Reading::default();
    loop {
        let event = reader.read_event();
        let offset = reader.buffer_position();
        let broken = |what: String| Unreadable::NotXml { offset, what };
        match event.map_err(|error| broken(error.to_string()))? {
            Event::Start(start) => {
                reading.start(&start)?;
                reading.depth += 1;
            }
            Event::Empty(start) => {
                reading.start(&start)?;
                reading.end(start.local_name().as_ref())?;
            }
            Event::End(end) => {
                reading.depth = reading.depth.saturating_sub(1);
                reading.end(end.local_name().as_ref())?;
            }
            Event::Text(text) => reading.text(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(text) => reading.text(&text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(reference) => {
                let char = reference.resolve_char_ref().map_err(|it| broken(it.to_string()))?;
                let name = reference.xml10_content();
                let unknown = || broken(format!("there is no DTD to declare &{name};"));
                match char {
                    Some(char) if !is_char(char) => return Err(broken(unallowed())),
                    Some(char) => reading.text(char.encode_utf8(&mut [0; 4])),
                    None => reading.text(resolve_xml_entity(&name).ok_or_else(unknown)?),
                }
            }
            Event::DocType(_) => return Err(broken("a DTD has no place in it".to_owned())),
            Event::Eof if 0 < reading.depth => {
                return Err(broken("it breaks off".to_owned()));
            }
            Event::Eof => return reading.finish(),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}

/// The part of a document that has been read.
#[derive(Debug, Default)]
struct Reading {
    depth: usize,
    is_index: Option<bool>,
    /// The attributes of the document as a whole.
    whole: Option<Document>,
    links: Links,
    entries: Vec<Entry>,
    entry: Option<Entry>,
    /// The open element whose text is wanted.
    wanted: Option<(Wanted, String)>,
}

#[derive(Debug, Default)]
struct Links {
    up: Option<String>,
    index: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Loc,
    Lastmod,
}

impl Reading {
    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), Unreadable> {
        let local = start.local_name();
        if self.depth == 0 {
            self.is_index = match local.as_ref() {
                "urlset" => Some(false),
                "sitemapindex" => Some(true),
                _ => return Err(Unreadable::Other { what: "it is no sitemap" }),
            };
            return Ok(());
        }
        match local.as_ref() {
            "url" | "sitemap" if self.entries.len() == ENTRIES_MAX => {
                return Err(Unreadable::TooMany);
            }
            "url" | "sitemap" => self.entry = Some(Entry::default()),
            "loc" => self.wanted = Some((Wanted::Loc, String::new())),
            "lastmod" => self.wanted = Some((Wanted::Lastmod, String::new())),
            "md" => self.md(start),
            "ln" => self.ln(start),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        if let Some((_, value)) = &mut self.wanted {
            value.push_str(text);
        }
    }

    fn end(&mut self, name: &str) -> Result<(), Unreadable> {
        match name {
            "url" | "sitemap" => {
                let entry = self.entry.take().filter(|it| !it.loc.is_empty());
                let entry = entry.ok_or(Unreadable::Other { what: "an entry has no address" })?;
                self.entries.push(entry);
            }
            "loc" | "lastmod" => {
                let (Some((wanted, text)), Some(entry)) = (self.wanted.take(), &mut self.entry)
                else {
                    return Ok(());
                };
                match wanted {
                    Wanted::Loc => text.trim().clone_into(&mut entry.loc),
                    Wanted::Lastmod => entry.lastmod = Datestamp::lenient(&text),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads `md`: the metadata of the document, or of an entry.
    fn md(&mut self, start: &BytesStart<'_>) {
        let stamp = |name| value(start, name).and_then(|it| Datestamp::lenient(&it));
        let capability = value(start, "capability").and_then(|it| Capability::by_name(&it));
        let Some(entry) = &mut self.entry else {
            if let Some(capability) = capability {
                let mut whole = Document::new(capability);
                (whole.at, whole.completed) = (stamp("at"), stamp("completed"));
                (whole.from, whole.until) = (stamp("from"), stamp("until"));
                self.whole.get_or_insert(whole);
            }
            return;
        };
        entry.capability = capability;
        entry.change = value(start, "change").and_then(|it| ChangeKind::by_name(&it));
        entry.datetime = stamp("datetime");
        entry.md5 = value(start, "hash").and_then(|it| {
            let of_md5 = it.split_ascii_whitespace().find_map(|it| it.strip_prefix("md5:"));
            of_md5.map(str::to_owned)
        });
        entry.length = value(start, "length").and_then(|it| it.trim().parse().ok());
        entry.media_type = value(start, "type");
    }

    fn ln(&mut self, start: &BytesStart<'_>) {
        let (Some(rel), href) = (value(start, "rel"), value(start, "href")) else { return };
        match (&mut self.entry, rel.as_str()) {
            (Some(entry), "describedby") => entry.described_by = href,
            (None, "up") => self.links.up = href,
            (None, "index") => self.links.index = href,
            _ => {}
        }
    }

    fn finish(self) -> Result<Document, Unreadable> {
        let is_index = self.is_index.ok_or(Unreadable::Other { what: "it is empty" })?;
        let whole = self.whole.ok_or(Unreadable::Other { what: "it does not say what it is" })?;
        let (Links { up, index }, entries) = (self.links, self.entries);
        Ok(Document { is_index, up, index, entries, ..whole })
    }
}

fn value(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = start.try_get_attribute(name).ok()??;
    let value = found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned();
    // A reference may stand for a character that XML does not allow.
    value.chars().all(is_char).then_some(value)
}
