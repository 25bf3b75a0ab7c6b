//! The repository: from a request to the necessary look-up, and from its result to the response.
//!
//! Source: OAI-PMH §2 (definitions), §3.5 (flow control), §3.6 (errors), §4 (verbs).
//!
//! [`ask`] reads a request and returns the look-up that it needs, or its errors. An [`Answer`]
//! writes the response after the look-up. Records are in the order of their changes, so that a list
//! by date is a list by serial.
//!
//! # Differences from the standard
//!
//! * A continued list may have no more records, because the remaining ones have changed meanwhile.
//!   The answer is then `noRecordsMatch`: the schema allows no empty list, and the error ends the
//!   list for the harvester.

pub mod description;
pub mod oap;
pub mod set;
pub mod token;

use url::Url;

use crate::datestamp::{Datestamp, Granularity};
use crate::error::{Code, Fault};
use crate::identifier::{Identifier, RepositoryId};
use crate::request::{Listed, Request, Scope, Selection};
use crate::response::write::{ListWriter, Writer};
use crate::response::{Deleted, Format, Identify, Record, Set, Token, Xml};
use set::SetSpec;
use token::{ListPosition, ListSelection, LogPosition};

/// Size from which a list's response takes no more records, in bytes (8 MiB).
pub const PAGE_BYTES_MAX: usize = 8 << 20;

/// Maximum number of sets of a response.
pub const PAGE_SETS_MAX: usize = 500;

/// Maximum number of records of a response, unless settings say otherwise.
pub const PAGE_RECORDS: u64 = 500;

/// The facts about a repository that do not depend on its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its name.
    pub name: String,
    /// The repository part of its identifiers.
    pub id: RepositoryId,
    /// Its address.
    pub base_url: String,
    /// E-mail addresses of its administrators; at least one.
    pub admin_emails: Vec<String>,
    /// Metadata formats of every record; at least one.
    pub formats: Vec<Format>,
    /// Descriptions, in addition to those of [`Answer::identify`].
    pub descriptions: Vec<Xml>,
    /// Maximum number of records of a response; at least 1.
    pub page_records: u64,
}

/// A look-up that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The earliest datestamp and the number of records: [`Answer::identify`].
    Identify,
    /// Whether the item exists, if the request names one: [`Answer::formats`].
    Formats(Option<Identifier>),
    /// Sets: [`Answer::sets`].
    Sets(SetsFrom),
    /// Records in the order of their serials: [`Answer::list`].
    List(ListFrom),
    /// One record: [`Answer::record`].
    Record {
        /// The item.
        item: Identifier,
        /// The metadata prefix.
        prefix: String,
    },
}

/// Position in a list of sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetsFrom {
    /// The last listed set.
    pub after: Option<SetSpec>,
    /// Number of listed sets.
    pub cursor: u64,
}

/// A list and a position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFrom {
    /// Its selection.
    pub chosen: ListSelection,
    /// Its position; `None` at the beginning, where the records must be counted.
    pub reached: Option<ListPosition>,
}

/// A refused request, which is answered with errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The request, if it is valid enough to be repeated in the response.
    pub request: Option<Request>,
    /// The errors; at least one.
    pub faults: Vec<Fault>,
}

/// Reads the query of a URL, or the body of a POST; returns the request with its look-up.
///
/// # Errors
///
/// The refusal of the request: answer with [`refusal`].
pub fn ask(facts: &Facts, log: &LogPosition, query: &str) -> Result<(Request, Ask), Box<Refused>> {
    let unsound = |fault| Box::new(Refused { request: None, faults: vec![fault] });
    let request = Request::parse(query).map_err(unsound)?;
    is_sound(&request).map_err(unsound)?;
    let found = match &request {
        Request::Identify => Ok(Ask::Identify),
        Request::Formats { identifier: None } => Ok(Ask::Formats(None)),
        Request::Formats { identifier: Some(identifier) } => {
            item(facts, identifier).map(|it| Ask::Formats(Some(it))).map_err(|fault| vec![fault])
        }
        Request::Sets { token } => sets(token.as_deref()).map_err(|fault| vec![fault]),
        Request::List { listed, scope } => list(facts, log, *listed, scope),
        Request::Get { identifier, prefix } => {
            match (item(facts, identifier), format(facts, prefix)) {
                (Ok(item), Ok(())) => Ok(Ask::Record { item, prefix: prefix.clone() }),
                (item, format) => Err([item.err(), format.err()].into_iter().flatten().collect()),
            }
        }
    };
    match found {
        Ok(ask) => Ok((request, ask)),
        Err(faults) => Err(Box::new(Refused { request: Some(request), faults })),
    }
}

/// Checks that a response may repeat all arguments.
fn is_sound(request: &Request) -> Result<(), Fault> {
    let (identifier, prefix, set) = match request {
        Request::Formats { identifier } => (identifier.as_ref(), None, None),
        Request::Get { identifier, prefix } => (Some(identifier), Some(prefix), None),
        Request::List { scope: Scope::Selection(selection), .. } => {
            (None, Some(&selection.prefix), selection.set.as_ref())
        }
        _ => (None, None, None),
    };
    let bad = |message: &str| Err(Fault::new(Code::BadArgument, message));
    if identifier.is_some_and(|it| !is_uri(it)) {
        return bad("the identifier is not a URI");
    }
    if prefix.is_some_and(|it| !set::is_name(it)) {
        return bad("no metadata prefix has such characters");
    }
    if set.is_some_and(|it| !set::is_spec(it)) {
        return bad("no set has such characters");
    }
    Ok(())
}

/// Returns whether `text` is a URI, or a reference relative to one.
fn is_uri(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"-_.~!*'();/?:@&=+$,%#".contains(&it);
    let mut parts = text.split('%');
    let first = parts.next().is_some();
    let is_code = |it: &str| it.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let has_scheme = !text.contains(':') || Url::parse(text).is_ok();
    let one_fragment = text.bytes().filter(|it| *it == b'#').count() <= 1;
    first && text.bytes().all(fits) && parts.all(is_code) && has_scheme && one_fragment
}

fn item(facts: &Facts, identifier: &str) -> Result<Identifier, Fault> {
    let found = Identifier::read(identifier).filter(|it| it.repository == facts.id);
    found.ok_or_else(|| {
        let message = format!("identifiers of this repository begin with oai:{}:", facts.id);
        Fault::new(Code::IdDoesNotExist, message)
    })
}

fn format(facts: &Facts, prefix: &str) -> Result<(), Fault> {
    if facts.formats.iter().any(|it| it.prefix == prefix) {
        return Ok(());
    }
    let known: Vec<&str> = facts.formats.iter().map(|it| it.prefix.as_str()).collect();
    let message = format!("metadata formats are {}", known.join(", "));
    Err(Fault::new(Code::CannotDisseminateFormat, message))
}

fn sets(token: Option<&str>) -> Result<Ask, Fault> {
    let Some(token) = token else { return Ok(Ask::Sets(SetsFrom::default())) };
    let (cursor, last) = token::read_sets(token).ok_or_else(bad_token)?;
    Ok(Ask::Sets(SetsFrom { after: Some(last), cursor }))
}

fn bad_token() -> Fault {
    let message = "the token is of another list or repository, or its collection has changed; \
                   begin the list anew";
    Fault::new(Code::BadResumptionToken, message)
}

fn list(
    facts: &Facts,
    log: &LogPosition,
    listed: Listed,
    scope: &Scope,
) -> Result<Ask, Vec<Fault>> {
    let (chosen, reached) = match scope {
        Scope::Token(token) => {
            let found = token::read_list(token, log);
            let same = found.filter(|(chosen, _)| {
                chosen.listed == listed && format(facts, &chosen.prefix).is_ok()
            });
            let (chosen, reached) = same.ok_or_else(|| vec![bad_token()])?;
            (chosen, Some(reached))
        }
        Scope::Selection(selection) => (choose(facts, listed, selection)?, None),
    };
    Ok(Ask::List(ListFrom { chosen, reached }))
}

fn choose(
    facts: &Facts,
    listed: Listed,
    selection: &Selection,
) -> Result<ListSelection, Vec<Fault>> {
    let set = selection.set.as_deref().map(|spec| {
        let none = || Fault::new(Code::NoRecordsMatch, format!("there is no set {spec}"));
        SetSpec::read(spec).ok_or_else(none)
    });
    match (format(facts, &selection.prefix), set.transpose()) {
        (Ok(()), Ok(set)) => Ok(ListSelection {
            listed,
            prefix: selection.prefix.clone(),
            from_secs: selection.from.map(Datestamp::secs),
            until_secs: selection.until.map(Datestamp::last_secs),
            set,
        }),
        (format, set) => Err([format.err(), set.err()].into_iter().flatten().collect()),
    }
}

/// Returns the response to a request that was refused at `date`; `base_url` is the address of the
/// request.
pub fn refusal(base_url: &str, date: Datestamp, refused: &Refused) -> String {
    Writer::new(date, base_url, refused.request.as_ref()).faults(&refused.faults)
}

/// Writes the response to one request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The repository.
    pub facts: &'a Facts,
    /// The request.
    pub request: &'a Request,
    /// Its `responseDate`: later changes must get a later datestamp.
    pub date: Datestamp,
    /// The epoch of the collection.
    pub epoch: u64,
}

impl<'a> Answer<'a> {
    fn writer(&self) -> Writer {
        Writer::new(self.date, &self.facts.base_url, Some(self.request))
    }

    fn fault(&self, code: Code, message: impl Into<String>) -> String {
        self.writer().faults(&[Fault::new(code, message)])
    }

    /// Writes the response to Identify. `earliest` is not after the datestamp of any record.
    pub fn identify(&self, earliest: Datestamp, totals: &oap::Totals) -> String {
        let base_url = &self.facts.base_url;
        let totals =
            description::with_schema(&totals.to_xml(), oap::NAMESPACE, base_url, "totals.xsd");
        let mut descriptions = vec![description::oai_identifier(&self.facts.id), totals];
        descriptions.extend(self.facts.descriptions.iter().cloned());
        self.writer().identify(&Identify {
            repository_name: self.facts.name.clone(),
            base_url: self.facts.base_url.clone(),
            protocol_version: "2.0".to_owned(),
            admin_emails: self.facts.admin_emails.clone(),
            earliest_datestamp: Some(earliest),
            deleted_record: Deleted::Transient,
            granularity: Granularity::Second,
            compressions: vec!["gzip".to_owned()],
            descriptions,
        })
    }

    /// Writes the metadata formats, or an error if the request names an unknown item.
    pub fn formats(&self, is_known: bool) -> String {
        if is_known { self.writer().formats(&self.facts.formats) } else { self.unknown_item() }
    }

    /// Writes at most [`PAGE_SETS_MAX`] sets after `from`; `more`: further sets follow.
    pub fn sets(&self, from: &SetsFrom, sets: &[SetSpec], more: bool) -> String {
        if sets.is_empty() && from.after.is_some() {
            let fault = bad_token();
            return self.fault(fault.code, fault.message);
        }
        if sets.is_empty() {
            return self.fault(Code::NoSetHierarchy, "there are no records yet, and no sets");
        }
        let cursor = from.cursor + sets.len() as u64;
        let value = match sets.last() {
            Some(last) if more => token::write_sets(cursor, last),
            _ => String::new(),
        };
        let part = more || from.after.is_some();
        let token = Token { value, cursor: Some(from.cursor), ..Token::default() };
        let listed =
            |it: &SetSpec| Set { spec: it.to_string(), name: it.name(), descriptions: Vec::new() };
        let sets: Vec<Set> = sets.iter().map(listed).collect();
        self.writer().sets(&sets, Some(&token).filter(|_| part))
    }

    /// Writes the requested record, or an error if there is none. The record is the present one,
    /// which may be newer than those in lists; the response date is then not before the record's
    /// datestamp.
    pub fn record(&self, record: Option<&Record>) -> String {
        let Some(record) = record else { return self.unknown_item() };
        let changed = record.header.datestamp.filter(|it| self.date.secs() < it.secs());
        Self { date: changed.unwrap_or(self.date), ..*self }.writer().one(record)
    }

    fn unknown_item(&self) -> String {
        self.fault(Code::IdDoesNotExist, "there is no such item")
    }

    /// Begins a part of a list. `size` is the number of records of the whole list, if known. `oap`
    /// is the number of live records, for clients that want [`oap::Attributes`]. `serial` is the
    /// collection's last serial.
    pub fn list(
        self,
        from: ListFrom,
        size: Option<u64>,
        serial: u64,
        oap: Option<u64>,
    ) -> ListPage<'a> {
        let begins = ListPosition { began: serial, serial: 0, cursor: 0, size };
        let before = from.reached.unwrap_or(begins);
        let writer = self.writer().list(from.chosen.listed);
        ListPage { answer: self, chosen: from.chosen, before, reached: before, writer, oap }
    }
}

/// A part of a list in progress.
#[derive(Clone, Debug)]
pub struct ListPage<'a> {
    answer: Answer<'a>,
    chosen: ListSelection,
    before: ListPosition,
    reached: ListPosition,
    writer: ListWriter,
    oap: Option<u64>,
}

impl ListPage<'_> {
    /// Returns the number of records of the whole list, if they were counted at its beginning.
    pub fn size(&self) -> Option<u64> {
        self.before.size
    }

    /// Returns the number of records in this part.
    pub fn len(&self) -> u64 {
        self.reached.cursor - self.before.cursor
    }

    /// Returns whether this part has no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this part takes no more records.
    pub fn is_full(&self) -> bool {
        self.answer.facts.page_records <= self.len() || PAGE_BYTES_MAX <= self.writer.bytes()
    }

    /// Adds the record of the change `serial`. Serials must rise from call to call.
    pub fn push(&mut self, serial: u64, record: &Record) {
        self.writer.push(record);
        self.reached.serial = serial;
        self.reached.cursor += 1;
    }

    /// Ends the part; `more`: another part follows.
    pub fn finish(self, more: bool) -> String {
        if self.is_empty() {
            return self.answer.fault(Code::NoRecordsMatch, "nothing fits the selection");
        }
        let is_part = more || self.before.cursor != 0;
        let next = || token::write_list(self.answer.epoch, &self.chosen, &self.reached);
        let value = more.then(next).unwrap_or_default();
        // Records may have come and gone while the list was read. Then its last part names no size:
        // a harvester would take the difference for records that it missed.
        let size = match self.reached.size {
            Some(counted) => Some(counted).filter(|it| more || *it == self.reached.cursor),
            None => Some(self.reached.cursor).filter(|_| !more),
        };
        let token = Token {
            value,
            expires: None,
            cursor: Some(self.before.cursor),
            complete_list_size: size,
            total_elements: self.oap,
        };
        self.writer.finish(Some(&token).filter(|_| is_part || self.oap.is_some()))
    }
}

#[cfg(test)]
mod tests;
