//! The grammar of a response, element by element.
//!
//! Source: OAI-PMH §3.2 (responses), §3.5 (flow control), §3.6 (errors), §2.5 and §2.6 (records,
//! sets), §4 (verbs).
//!
//! # Differences from the standard
//!
//! * Elements are recognized by position and name; an element outside the protocol's namespace is
//!   noted.
//! * Order does not matter, and unknown elements are skipped.
//! * A live record without metadata is kept: its header says that the item exists.
//! * Adly's `totalElements` is read at any position among a token's attributes, with or without a
//!   prefix.

use crate::datestamp::{Datestamp, Granularity};
use crate::error::{Code, Fault};
use crate::request::Verb;
use crate::response::write::NAMESPACE;
use crate::response::{Deleted, Format, Header, Identify, Quarantined, Record, Set, Token, Xml};

use super::attribute::unescaped;
use super::notes::{NoteKind, Notes};
use super::walk::{Binding, Element, Step, Stop, Tag, Walker};

/// Largest record, in bytes: a full text of a gatherer has up to 16 MiB, which take more in XML.
pub const RECORD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum number of unreadable records that are named; the last entry counts the others.
pub const QUARANTINED_MAX: usize = 1_000;

/// Maximum number of bytes of added namespace declarations for each byte of the page.
const ADDED_FACTOR: usize = 4;

/// The parts of a response that have been read so far.
#[derive(Debug, Default)]
pub(super) struct ResponseParts<'a> {
    pub(super) date: Option<Datestamp>,
    pub(super) faults: Vec<Fault>,
    /// Number of elements of the requested verb.
    pub(super) bodies: usize,
    /// The first element of another verb.
    pub(super) other: Option<Verb>,
    /// The declarations in force around the items.
    pub(super) scope: Vec<Binding<'a>>,
    pub(super) identify: Identify,
    pub(super) formats: Vec<Format>,
    pub(super) items: Items,
    pub(super) token: Option<Token>,
}

/// The items of a list.
#[derive(Debug, Default)]
pub(super) struct Items {
    pub(super) sets: Vec<Set>,
    pub(super) headers: Vec<Header>,
    pub(super) records: Vec<Record>,
    pub(super) quarantined: Vec<Quarantined>,
    /// Number of unreadable items that are not named.
    pub(super) unnamed: u64,
    pub(super) notes: Notes,
    /// Bytes of added declarations.
    added: usize,
}

impl Items {
    /// Returns an empty list of items with the same count of added bytes.
    pub(super) fn fresh(&self) -> Self {
        Self { added: self.added, ..Self::default() }
    }

    /// Appends the items read after [`Items::fresh`].
    pub(super) fn append(&mut self, mut other: Self) {
        self.sets.append(&mut other.sets);
        self.headers.append(&mut other.headers);
        self.records.append(&mut other.records);
        self.unnamed += other.unnamed;
        self.added = other.added;
        self.notes.append(other.notes);
        for it in other.quarantined {
            self.quarantine(it);
        }
    }

    pub(super) fn quarantine(&mut self, it: Quarantined) {
        if self.quarantined.len() < QUARANTINED_MAX {
            self.quarantined.push(it);
        } else {
            self.unnamed += 1;
        }
    }

    /// Returns the elements as self-contained XML; `None` beyond the limits.
    fn take_xml(&mut self, elements: Vec<Element<'_>>, page_bytes: usize) -> Option<Vec<Xml>> {
        self.added += elements.iter().map(Element::added).sum::<usize>();
        let bytes: usize = elements.iter().map(Element::len).sum();
        let fits = bytes <= RECORD_BYTES_MAX && self.added / ADDED_FACTOR <= page_bytes.max(65_536);
        fits.then(|| elements.iter().map(|it| Xml(it.to_xml())).collect())
    }
}

/// Returns the element name of a verb's items, if it has items.
pub(super) fn item_name(verb: Verb) -> Option<&'static str> {
    match verb {
        Verb::ListRecords | Verb::GetRecord => Some("record"),
        Verb::ListIdentifiers => Some("header"),
        Verb::ListSets => Some("set"),
        Verb::Identify | Verb::ListMetadataFormats => None,
    }
}

/// The reader of one response without surrounding text.
#[derive(Debug)]
pub(super) struct Page<'w, 'a> {
    walker: &'w mut Walker<'a>,
    asked: Verb,
    /// Bytes of the whole page.
    bytes: usize,
    /// Position of the text in the page.
    offset: usize,
}

impl<'w, 'a> Page<'w, 'a> {
    pub(super) fn new(
        walker: &'w mut Walker<'a>,
        asked: Verb,
        bytes: usize,
        offset: usize,
    ) -> Self {
        Self { walker, asked, bytes, offset }
    }

    /// Reads a whole response.
    pub(super) fn response(&mut self, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        let root = loop {
            match self.walker.step()? {
                Step::Start(tag) => break tag,
                Step::Eof => return Err(Stop::malformed(0, "there is no element")),
                step if step.is_words() => return Err(Stop::malformed(0, "text before the root")),
                _ => {}
            }
        };
        if !root.local().eq_ignore_ascii_case("OAI-PMH") {
            return Err(Stop::malformed(root.start, "the root element is not OAI-PMH"));
        }
        self.expect(&root, &mut found.items.notes);
        while let Some(tag) = self.walker.child()? {
            self.section(&tag, found)?;
        }
        loop {
            let step = self.walker.step()?;
            match step {
                Step::Eof => return Ok(()),
                Step::Start(_) | Step::End => {}
                _ if !step.is_words() => continue,
                _ => {}
            }
            return Err(Stop::malformed(self.walker.position(), "text after the root element"));
        }
    }

    fn section(&mut self, tag: &Tag<'a>, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        match tag.local() {
            "responseDate" => {
                self.expect(tag, &mut found.items.notes);
                let text = self.walker.field()?;
                found.date = Datestamp::lenient(&text);
                let is_sound = Datestamp::parse(&text)
                    .is_some_and(|it| it.granularity() == Granularity::Second);
                if !is_sound {
                    self.note(NoteKind::ResponseDate, tag, &mut found.items.notes);
                }
            }
            "error" => self.fault(tag, found)?,
            "resumptionToken" => {
                self.note(NoteKind::TokenPlace, tag, &mut found.items.notes);
                self.token(tag, found)?;
            }
            name => match Verb::by_name(name) {
                Some(verb) if verb == self.asked => {
                    self.expect(tag, &mut found.items.notes);
                    found.bodies += 1;
                    if 1 < found.bodies {
                        self.note(NoteKind::Repeated, tag, &mut found.items.notes);
                    }
                    self.body(found)?;
                }
                other => {
                    found.other = found.other.or(other);
                    self.walker.skip()?;
                }
            },
        }
        Ok(())
    }

    fn body(&mut self, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        found.scope = self.walker.bindings.clone();
        let item = item_name(self.asked);
        while let Some(tag) = self.walker.child()? {
            match tag.local() {
                "resumptionToken" => self.token(&tag, found)?,
                "error" => self.fault(&tag, found)?,
                name if item == Some(name) => self.item(&tag, &mut found.items)?,
                "metadataFormat" if self.asked == Verb::ListMetadataFormats => {
                    let format = self.format()?;
                    found.formats.extend(Some(format).filter(|it| !it.prefix.is_empty()));
                }
                _ if self.asked == Verb::Identify => self.identify(&tag, found)?,
                _ => self.walker.skip()?,
            }
        }
        Ok(())
    }

    /// Reads the item whose start was the last step, and keeps or quarantines it.
    pub(super) fn item(&mut self, tag: &Tag<'a>, items: &mut Items) -> Result<(), Stop> {
        self.expect(tag, &mut items.notes);
        let outcome = match self.asked {
            Verb::ListIdentifiers => {
                self.header(tag, &mut items.notes)?.map(|it| items.headers.push(it))
            }
            Verb::ListSets => self.set(tag, items)?.map(|it| items.sets.push(it)),
            _ => self.record(tag, items)?.map(|it| items.records.push(it)),
        };
        if let Err((identifier, problem)) = outcome {
            let offset = self.offset(tag);
            items.quarantine(Quarantined { identifier, offset, problem: problem.to_owned() });
        }
        Ok(())
    }

    fn record(&mut self, tag: &Tag<'a>, items: &mut Items) -> Result<ItemResult<Record>, Stop> {
        let mut header = None;
        let mut metadata = Vec::new();
        let mut about = Vec::new();
        while let Some(tag) = self.walker.child()? {
            match tag.local() {
                "header" if header.is_none() => {
                    header = Some(self.header(&tag, &mut items.notes)?);
                }
                "metadata" => metadata.append(&mut self.walker.container()?),
                "about" => about.append(&mut self.walker.container()?),
                _ => self.walker.skip()?,
            }
        }
        let header = match header {
            Some(Ok(header)) => header,
            Some(Err(bad)) => return Ok(Err(bad)),
            None => return Ok(Err((None, "it has no header"))),
        };
        if RECORD_BYTES_MAX < self.walker.position() - tag.start {
            return Ok(Err((Some(header.identifier), TOO_LARGE)));
        }
        if header.deleted {
            metadata.clear();
        }
        if 1 < metadata.len() {
            self.note(NoteKind::SeveralElements, tag, &mut items.notes);
            metadata.truncate(1);
        }
        let written = items.take_xml(metadata, self.bytes).zip(items.take_xml(about, self.bytes));
        let Some((mut metadata, about)) = written else {
            return Ok(Err((Some(header.identifier), TOO_MUCH_ADDED)));
        };
        Ok(Ok(Record { header, metadata: metadata.pop(), about }))
    }

    fn header(&mut self, tag: &Tag<'a>, notes: &mut Notes) -> Result<ItemResult<Header>, Stop> {
        let status = tag.attribute("status").unwrap_or_default();
        let mut header =
            Header { deleted: status.trim().eq_ignore_ascii_case("deleted"), ..Header::default() };
        let mut date = None;
        while let Some(tag) = self.walker.child()? {
            match tag.local() {
                "identifier" if header.identifier.is_empty() => {
                    header.identifier = self.walker.field()?;
                }
                "datestamp" if date.is_none() => date = Some(self.walker.field()?),
                "setSpec" => {
                    header.sets.extend(Some(self.walker.field()?).filter(|it| !it.is_empty()));
                }
                _ => self.walker.skip()?,
            }
        }
        if header.identifier.is_empty() {
            return Ok(Err((None, "it has no identifier")));
        }
        header.datestamp = datestamp(&date.unwrap_or_default(), self.offset(tag), notes);
        Ok(Ok(header))
    }

    fn set(&mut self, tag: &Tag<'a>, items: &mut Items) -> Result<ItemResult<Set>, Stop> {
        let mut set = Set::default();
        let mut descriptions = Vec::new();
        while let Some(tag) = self.walker.child()? {
            match tag.local() {
                "setSpec" => set.spec = self.walker.field()?,
                "setName" => set.name = self.walker.field()?,
                "setDescription" => descriptions.append(&mut self.walker.container()?),
                _ => self.walker.skip()?,
            }
        }
        if set.spec.is_empty() {
            return Ok(Err((None, "it has no setSpec")));
        }
        if RECORD_BYTES_MAX < self.walker.position() - tag.start {
            return Ok(Err((Some(set.spec), TOO_LARGE)));
        }
        let Some(descriptions) = items.take_xml(descriptions, self.bytes) else {
            return Ok(Err((Some(set.spec), TOO_MUCH_ADDED)));
        };
        Ok(Ok(Set { descriptions, ..set }))
    }

    fn format(&mut self) -> Result<Format, Stop> {
        let mut format = Format::default();
        while let Some(tag) = self.walker.child()? {
            match tag.local() {
                "metadataPrefix" => format.prefix = self.walker.field()?,
                "schema" => format.schema = self.walker.field()?,
                "metadataNamespace" => format.namespace = self.walker.field()?,
                _ => self.walker.skip()?,
            }
        }
        Ok(format)
    }

    fn identify(&mut self, tag: &Tag<'a>, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        let identify = &mut found.identify;
        let notes = &mut found.items.notes;
        let offset = self.offset(tag);
        match tag.local() {
            "repositoryName" => identify.repository_name = self.walker.field()?,
            "baseURL" => identify.base_url = self.walker.field()?,
            "protocolVersion" => identify.protocol_version = self.walker.field()?,
            "adminEmail" => identify.admin_emails.push(self.walker.field()?),
            "compression" => identify.compressions.push(self.walker.field()?),
            "earliestDatestamp" => {
                identify.earliest_datestamp = datestamp(&self.walker.field()?, offset, notes);
            }
            "deletedRecord" => {
                let text = self.walker.field()?;
                let known = Deleted::by_name(&text).or_else(|| {
                    notes.add(NoteKind::UnknownValue, offset);
                    Deleted::by_name(&text.to_ascii_lowercase())
                });
                identify.deleted_record = known.unwrap_or_default();
            }
            "granularity" => {
                let text = self.walker.field()?;
                identify.granularity = Granularity::by_name(&text).unwrap_or_else(|| {
                    notes.add(NoteKind::UnknownValue, offset);
                    let is_fine = text.to_ascii_lowercase().contains("hh");
                    if is_fine { Granularity::Second } else { Granularity::Day }
                });
            }
            "description" => {
                let elements = self.walker.container()?;
                match found.items.take_xml(elements, self.bytes) {
                    Some(mut descriptions) => identify.descriptions.append(&mut descriptions),
                    None => return Err(Stop::malformed(tag.start, TOO_LARGE)),
                }
            }
            _ => self.walker.skip()?,
        }
        Ok(())
    }

    fn fault(&mut self, tag: &Tag<'a>, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        let name = unescaped(tag.attribute("code").unwrap_or_default());
        let text = self.walker.field()?;
        let code = Code::by_name(&name).or_else(|| {
            self.note(NoteKind::UnknownCode, tag, &mut found.items.notes);
            Code::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name.trim()))
        });
        found.faults.push(match code {
            Some(code) => Fault::new(code, text),
            // The consequence is the same as for a bad argument: only another request can help.
            None => Fault::new(Code::BadArgument, format!("{name} {text}").trim()),
        });
        Ok(())
    }

    fn token(&mut self, tag: &Tag<'a>, found: &mut ResponseParts<'a>) -> Result<(), Stop> {
        let notes = &mut found.items.notes;
        let mut number = |name| {
            let text = tag.attribute(name)?;
            let number = text.trim().parse().ok();
            if number.is_none() {
                self.note(NoteKind::TokenAttribute, tag, notes);
            }
            number
        };
        let cursor = number("cursor");
        let complete_list_size = number("completeListSize");
        let total_elements = number("totalElements");
        let expires = tag.attribute("expirationDate").and_then(|it| {
            let date = Datestamp::lenient(it);
            if date.is_none() {
                self.note(NoteKind::TokenAttribute, tag, notes);
            }
            date
        });
        let value = self.walker.field()?;
        let token = Token { value, expires, cursor, complete_list_size, total_elements };
        match &found.token {
            Some(first) if !first.value.is_empty() || token.value.is_empty() => {
                self.note(NoteKind::TokenPlace, tag, &mut found.items.notes);
            }
            _ => found.token = Some(token),
        }
        Ok(())
    }

    /// Notes an element that is not in the protocol's namespace.
    fn expect(&self, tag: &Tag<'a>, notes: &mut Notes) {
        if self.walker.namespace(tag) != Some(NAMESPACE) {
            self.note(NoteKind::Namespace, tag, notes);
        }
    }

    fn note(&self, kind: NoteKind, tag: &Tag<'a>, notes: &mut Notes) {
        notes.add(kind, self.offset(tag));
    }

    fn offset(&self, tag: &Tag<'a>) -> u64 {
        (self.offset + tag.start) as u64
    }
}

/// Reads a datestamp at byte `offset`; `None` if it is missing or not a time.
fn datestamp(text: &str, offset: u64, notes: &mut Notes) -> Option<Datestamp> {
    let found = Datestamp::lenient(text);
    if found.is_none() {
        notes.add(NoteKind::NoDatestamp, offset);
    } else if Datestamp::parse(text).is_none() {
        notes.add(NoteKind::DatestampForm, offset);
    }
    found
}

/// An item, or its identifier and the reason why it is unreadable.
type ItemResult<T> = Result<T, (Option<String>, &'static str)>;

const TOO_LARGE: &str = "it is larger than 16 MiB";
const TOO_MUCH_ADDED: &str =
    "it is larger than 16 MiB with its namespaces, or the page has too many";
