//! Conformance of a repository: the checks, their verdicts, and the checks on a single response.
//!
//! Source: OAI-PMH §2–§4, and the checks that registries make before they list a repository.
//!
//! Sans-I/O.

mod report;
mod whole_list;

use crate::harvest::OAI_DC;
use crate::request::Verb;
use crate::response::write::{NAMESPACE, SCHEMA};
use crate::response::{
    Body, Deleted, Identify, NoteKind, Reading, Token, Unreadable, read, well_formed,
};
use crate::xml::INSTANCE;
use crate::{Code, Datestamp, Granularity, RepositoryId};

pub use report::{BOUNDS, Report, SECOND_PAGE};
pub use whole_list::WholeList;

/// Namespace of the description that declares the form of identifiers.
const OAI_IDENTIFIER: &str = "http://www.openarchives.org/OAI/2.0/oai-identifier";

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The response is correct.
    Pass,
    /// The response is wrong: the reason, and the advice for the administrator.
    Fail(String, &'static str),
    /// The response is correct, but something in it deserves attention.
    Note(String),
    /// The check could not be made: the reason.
    Skip(String),
}

/// A check with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject of the check.
    pub name: String,
    /// The outcome of the check.
    pub verdict: Verdict,
}

/// The reply to one request.
#[derive(Debug)]
pub struct Reply {
    /// The query that was sent.
    pub query: String,
    /// The verb of the request; the reply is read as an answer to it.
    pub asked: Verb,
    /// The HTTP status.
    pub status: u16,
    /// The header Content-Type; empty if there is none.
    pub content_type: String,
    /// The body of the response.
    pub bytes: Vec<u8>,
    /// The response as the reader understood it.
    pub read: Result<Reading, Unreadable>,
}

impl Reply {
    /// Reads the response to a request for `asked`.
    pub fn new(query: &str, asked: Verb, status: u16, content_type: &str, bytes: Vec<u8>) -> Self {
        let read = read(&bytes, asked);
        let (query, content_type) = (query.to_owned(), content_type.to_owned());
        Self { query, asked, status, content_type, bytes, read }
    }

    /// Returns the result or the errors, if the response could be read.
    fn body(&self) -> Option<&Body> {
        self.read.as_ref().ok().map(|it| &it.response.body)
    }

    /// Returns the reason why the reply has no usable result.
    fn why_not(&self) -> String {
        match &self.read {
            Err(error) => error.advised(),
            Ok(reading) => match &reading.response.body {
                Body::Faults(faults) => {
                    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                }
                _ => "the response is of another verb".to_owned(),
            },
        }
    }

    fn codes(&self) -> Vec<Code> {
        match self.body() {
            Some(Body::Faults(faults)) => faults.iter().map(|it| it.code).collect(),
            _ => Vec::new(),
        }
    }

    fn has_note(&self, kind: NoteKind) -> bool {
        self.read.as_ref().is_ok_and(|it| it.notes.iter().any(|note| note.kind == kind))
    }

    /// Returns whether no datestamp is missing, or in another form than the protocol's.
    fn are_stamps_sound(&self) -> bool {
        !self.has_note(NoteKind::DatestampForm) && !self.has_note(NoteKind::NoDatestamp)
    }
}

/// Makes the checks that apply to every response. Returns name, outcome and advice of each.
fn of_any(reply: &Reply) -> [(&'static str, Result<(), String>, &'static str); 6] {
    let must = |is: bool, why: &str| if is { Ok(()) } else { Err(why.to_owned()) };
    let well_formed = match &reply.read {
        // It is something else than a response, and other checks say so.
        Err(Unreadable::Html { .. } | Unreadable::NotOai { .. } | Unreadable::Doctype { .. }) => {
            Ok(())
        }
        _ => well_formed(&reply.bytes),
    };
    let (root, schema) = root(&reply.bytes);
    let date =
        must(!reply.has_note(NoteKind::ResponseDate), "responseDate is not UTC with seconds");
    let status = format!("the status is {}", reply.status);
    let kind = format!("Content-Type is {:?}", reply.content_type);
    let is_xml = reply.content_type.trim_start().to_ascii_lowercase().starts_with("text/xml");
    [
        (
            "answered with status 200",
            must((200..300).contains(&reply.status), &status),
            "errors of the protocol go under status 200 too; others keep harvesters away",
        ),
        ("sent as text/xml", must(is_xml, &kind), "send Content-Type: text/xml; charset=UTF-8"),
        (
            "well-formed XML",
            well_formed,
            "escape what you write, and leave out what XML cannot have",
        ),
        (
            "an OAI-PMH element without a prefix",
            root,
            "make OAI-PMH of OAI 2.0 the default namespace",
        ),
        ("naming the schema of OAI-PMH 2.0", schema, "set xsi:schemaLocation as §3.2 has it"),
        ("dated in UTC without fractions", date, "write responseDate as 2026-01-31T12:00:00Z"),
    ]
}

/// Checks the root element: that it has no prefix, and that it names the schema.
fn root(bytes: &[u8]) -> (Result<(), String>, Result<(), String>) {
    let text = String::from_utf8_lossy(bytes);
    let tag = text.split_once("<OAI-PMH").map(|(_, rest)| rest);
    let tag = tag.filter(|it| it.starts_with(|c: char| c.is_ascii_whitespace() || c == '>'));
    let Some(tag) = tag.and_then(|it| it.split_once('>')).map(|(tag, _)| tag) else {
        let none = || Err("there is no element <OAI-PMH …>".to_owned());
        return (none(), none());
    };
    let value = |name: &str| {
        let at = tag.find(&format!("{name}=")).map(|at| at + name.len() + 1)?;
        let rest = tag.get(at..)?;
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''))?;
        rest.get(1..)?.split(quote).next()
    };
    let is_default = value("xmlns") == Some(NAMESPACE);
    let default = if is_default { Ok(()) } else { Err(format!("xmlns is not {NAMESPACE}")) };
    let location = value("xsi:schemaLocation").unwrap_or_default();
    let words: Vec<&str> = location.split_whitespace().collect();
    let is_named = words.chunks(2).any(|it| it == [NAMESPACE, SCHEMA]);
    let schema = if is_named && value("xmlns:xsi") == Some(INSTANCE) {
        Ok(())
    } else {
        Err(format!("xsi:schemaLocation is {location:?}"))
    };
    (default, schema)
}

/// Makes the checks on Identify; `base_url` is the address of the request.
fn of_identify(identify: &Identify, reply: &Reply, base_url: &str) -> Vec<Check> {
    let mut all = Vec::new();
    let mut must = |name: &str, is: bool, why: String, advice| {
        let verdict = if is { Verdict::Pass } else { Verdict::Fail(why, advice) };
        all.push(Check { name: format!("Identify: {name}"), verdict });
    };
    must(
        "baseURL is the address that was asked",
        identify.base_url == base_url,
        format!("it is {:?}, and {base_url:?} was asked", identify.base_url),
        "set the repository's address to the one that it is to be harvested by",
    );
    must(
        "protocolVersion is 2.0",
        identify.protocol_version == "2.0",
        format!("it is {:?}", identify.protocol_version),
        "there is no other version that harvesters speak",
    );
    let bad = identify.admin_emails.iter().find(|it| !is_email(it));
    must(
        "adminEmail is an address",
        bad.is_none() && !identify.admin_emails.is_empty(),
        bad.map_or_else(|| "there is none".to_owned(), |it| format!("{it:?} is not one")),
        "name somebody to write to, as name@host.example",
    );
    let text = String::from_utf8_lossy(&reply.bytes);
    must(
        "granularity is one of the two, and deletedRecord one of the three",
        !reply.has_note(NoteKind::UnknownValue)
            && ["<granularity", "<deletedRecord"].iter().all(|it| text.contains(it)),
        "one is missing, or has another value".to_owned(),
        "write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ; no, transient or persistent",
    );
    let earliest = identify.earliest_datestamp.map(Datestamp::granularity);
    must(
        "earliestDatestamp is as fine as granularity",
        earliest == Some(identify.granularity) && reply.are_stamps_sound(),
        identify
            .earliest_datestamp
            .map_or_else(|| "it is no date".to_owned(), |it| format!("it is {it}")),
        "write it in the granularity of all other dates",
    );
    let schemes: Vec<&str> = identify
        .descriptions
        .iter()
        .map(|it| it.0.as_str())
        .filter(|it| it.contains(OAI_IDENTIFIER) && it.contains("repositoryIdentifier"))
        .collect();
    let names = schemes.iter().filter_map(|it| {
        let (_, rest) = it.split_once("repositoryIdentifier>")?;
        rest.split('<').next()
    });
    let bad = names.map(str::trim).find(|it| RepositoryId::parse(it).is_none());
    must(
        "at most one oai-identifier, with a domain's name",
        schemes.len() <= 1 && bad.is_none(),
        bad.map_or_else(
            || "there are more".to_owned(),
            |it| format!("{it:?} is not a domain name"),
        ),
        "identifiers begin with oai: and a name that is yours",
    );
    if identify.deleted_record == Deleted::No {
        let text = "deletedRecord is no: harvesters never learn that a record is gone".to_owned();
        all.push(Check { name: "Identify: deletions".to_owned(), verdict: Verdict::Note(text) });
    }
    all
}

/// Checks the token of a list's first part, which has `items` items. Returns notes, or the mistake.
fn of_first_page(token: Option<&Token>, items: usize) -> Result<Vec<String>, String> {
    let mut thoughts = Vec::new();
    let Some(token) = token else { return Ok(thoughts) };
    if token.value.is_empty() {
        return Err("a list of one part has an empty resumptionToken".to_owned());
    }
    if token.cursor.is_some_and(|it| it != 0) {
        return Err("the cursor of the first part is not 0".to_owned());
    }
    if token.complete_list_size == Some(0) {
        return Err("completeListSize is 0".to_owned());
    }
    if token.total_elements.is_some() {
        return Err("totalElements is no attribute of resumptionToken in the schema".to_owned());
    }
    if !(100..=500).contains(&items) {
        thoughts.push(format!("{items} records a part; 100 to 500 are usual"));
    }
    Ok(thoughts)
}

/// Returns whether an address is `name@host.tld` with a name of two or more characters.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let sound = |it: &str| !it.contains(|c: char| c.is_whitespace() || c == '@');
    let labels: Vec<&str> = host.split('.').collect();
    let is_label =
        |it: &&str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    2 <= name.chars().count() && sound(name) && 2 <= labels.len() && labels.iter().all(is_label)
}

/// A request that must be answered with an error.
#[derive(Debug)]
pub struct WrongRequest {
    /// The mistake in it.
    pub name: &'static str,
    /// The query.
    pub query: String,
    /// The errors that are right answers; the repository must send one of them.
    pub codes: &'static [Code],
}

/// Returns wrong requests, each with a different mistake. `identifier` is an item of the
/// repository.
pub fn wrong_requests(
    identify: &Identify,
    identifier: &str,
    token: Option<&str>,
) -> Vec<WrongRequest> {
    use Code::{
        BadArgument, BadResumptionToken, BadVerb, CannotDisseminateFormat, IdDoesNotExist,
        NoRecordsMatch,
    };
    let mut all = Vec::new();
    let mut add = |name, query: String, codes| all.push(WrongRequest { name, query, codes });
    let encode = |it: &str| url::form_urlencoded::byte_serialize(it.as_bytes()).collect::<String>();
    let id = encode(identifier);
    let list = |rest: &str| format!("verb=ListIdentifiers&metadataPrefix={OAI_DC}&{rest}");
    add("an unknown verb", "verb=junk".to_owned(), &[BadVerb]);
    add("no verb", "metadataPrefix=oai_dc".to_owned(), &[BadVerb]);
    add("a verb twice", "verb=Identify&verb=Identify".to_owned(), &[BadVerb]);
    add("a list without metadataPrefix", "verb=ListRecords".to_owned(), &[BadArgument]);
    add(
        "a record without metadataPrefix",
        format!("verb=GetRecord&identifier={id}"),
        &[BadArgument],
    );
    add(
        "a record without identifier",
        format!("verb=GetRecord&metadataPrefix={OAI_DC}"),
        &[BadArgument],
    );
    add(
        "an invalid identifier",
        format!("verb=GetRecord&metadataPrefix={OAI_DC}&identifier=invalid%22id"),
        &[BadArgument, IdDoesNotExist],
    );
    add(
        "an unknown format",
        format!("verb=GetRecord&metadataPrefix=no_such_format&identifier={id}"),
        &[CannotDisseminateFormat],
    );
    add("a from that is no date", list("from=junk"), &[BadArgument]);
    add("an until that is no date", list("until=junk"), &[BadArgument]);
    add("a from that is no day", list("from=2002-02-31"), &[BadArgument]);
    add("an until without its dashes", list("until=20020201"), &[BadArgument]);
    let mixed = "from=2001-01-01&until=2002-01-01T00:00:00Z";
    add("from and until of different granularity", list(mixed), &[BadArgument]);
    let turned = "from=2002-01-01&until=2001-01-01";
    add("a from after until", list(turned), &[BadArgument, NoRecordsMatch]);
    let token = encode(token.unwrap_or("junk"));
    let both = format!("verb=ListIdentifiers&resumptionToken={token}&until=2002-02-01");
    add("a token and another argument", both, &[BadArgument]);
    let junk = "verb=ListIdentifiers&resumptionToken=junktoken".to_owned();
    add("a token that was never given", junk, &[BadResumptionToken]);
    if let Some(earliest) = identify.earliest_datestamp {
        let fine = identify.granularity;
        let before_secs = match fine {
            Granularity::Day => 86_400,
            Granularity::Second => 1,
        };
        let before = Datestamp::at(earliest.secs() - before_secs, fine);
        let query = list(&format!("until={before}"));
        add("an until before the earliest change", query, &[NoRecordsMatch]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_addresses_are_recognized() {
        for good in ["ab@x.org", "a.b+c@x-y.co.uk"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "a@x.org", "ab@localhost", "ab", "ab@x.", "a b@x.org", "ab@@x.org"] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn the_root_element_is_checked_against_the_standard() {
        let page =
            |attributes: &str| format!("<?xml version='1.0'?><OAI-PMH {attributes}></OAI-PMH>");
        let good = format!(
            "xmlns=\"{NAMESPACE}\" xmlns:xsi='{INSTANCE}' xsi:schemaLocation=\"{NAMESPACE}\n {SCHEMA}\""
        );
        assert_eq!(root(page(&good).as_bytes()), (Ok(()), Ok(())));
        let other = good.replace("OAI-PMH.xsd", "other.xsd");
        assert!(matches!(root(page(&other).as_bytes()), (Ok(()), Err(_))));
        let undeclared = good.replace("xmlns:xsi", "xmlns:x");
        assert!(matches!(root(page(&undeclared).as_bytes()), (Ok(()), Err(_))));
        let prefixed = page(&good).replace("OAI-PMH ", "o:OAI-PMH ");
        assert!(matches!(root(prefixed.as_bytes()), (Err(_), Err(_))));
    }

    #[test]
    fn an_empty_token_in_the_first_part_is_an_error() {
        let token =
            |value: &str, cursor| Token { value: value.to_owned(), cursor, ..Token::default() };
        assert_eq!(of_first_page(None, 3), Ok(vec![]));
        assert_eq!(of_first_page(Some(&token("t", Some(0))), 100), Ok(vec![]));
        assert!(of_first_page(Some(&token("", None)), 100).is_err());
        assert!(of_first_page(Some(&token("t", Some(5))), 100).is_err());
        assert_eq!(of_first_page(Some(&token("t", None)), 7).map(|it| it.len()), Ok(1));
    }
}
