//! Crosswalks: metadata of repositories ↔ SOIF records.
//!
//! Source: OAI-PMH §2.5 (records), §3.4 (metadata formats). The module of each format names the
//! source of that format.
//!
//! A harvested record becomes one SOIF record ([`to_soif`]). The attributes have the same names as
//! those of summarized files, so that one query finds both kinds of objects. The namespace of the
//! metadata selects the crosswalk, because each repository chooses its own prefixes. The prefix
//! selects it only if the namespace is unknown. An unknown format is read by the names of its
//! elements, and reported as a problem.
//!
//! In the other direction, [`Dissemination::write`] writes a record of ours as `oai_dc`, or as
//! `soif`, which loses nothing.
//!
//! Every input gives a record: errors in the input become [`Problem`]s.

mod datacite;
mod date;
mod dc;
mod draft;
mod generic;
mod language;
mod marc;
mod mets;
mod mods;
mod rfc1807;
mod soif_xml;
mod tree;

use std::fmt;

use soif::Record;
use soif::digest::Md5;
use url::Url;

use crate::escape;
use crate::identifier::Identifier;
use crate::repository::description;
use crate::response::{self, Header, Xml};
pub use date::normal as date;
use draft::Draft;
pub use draft::identified;
pub use language::tag as language_tag;
pub use soif_xml::SCHEMA_XSD;
use tree::{Element, Space, Tree};

/// Attribute: the web address that readers are sent to.
pub const LANDING_PAGE: &str = "Landing-Page";
/// Attribute: the metadata as harvested.
pub const ORIGINAL_METADATA: &str = "Original-Metadata";
/// Attribute: the namespace of the harvested metadata.
pub const METADATA_NAMESPACE: &str = "Metadata-Namespace";
/// Attribute: the record's sets at its repository, one in each line.
pub const SET_SPEC: &str = "Set-Spec";

/// Longest metadata that are read, in bytes.
pub const METADATA_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest accepted identifier, in bytes.
pub const IDENTIFIER_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of sets that are kept for a record.
const SETS_MAX: usize = 1_000;

/// A harvested repository as its records name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceIdentity {
    /// Its base URL: the `Gatherer-Root` of its records.
    pub base_url: String,
    /// The `Gatherer-Id` of its records.
    pub gatherer_id: String,
    /// The host name in the URLs of records whose identifiers are not URLs.
    pub host: String,
    /// Additional attributes of each record, in this order: `Time-to-Live`, `Gatherer-Name` and the
    /// like. Records in SOIF keep their own.
    pub attributes: Vec<(String, String)>,
    /// The id of the gatherer that harvests the repository. Its own objects, which come back as
    /// SOIF, are refused.
    pub refused_gatherer_id: Option<String>,
}

impl SourceIdentity {
    /// Returns the identity of the repository at `base_url`, without additional attributes.
    ///
    /// The gatherer id is 16 hex digits of the MD5 of `oai ` and the base URL. All harvesters of
    /// the repository therefore give its records the same id.
    pub fn new(base_url: &str) -> Self {
        let mut gatherer_id = Md5::of(format!("oai {base_url}").as_bytes()).to_string();
        gatherer_id.truncate(16);
        let url = Url::parse(base_url).ok();
        let host = url.as_ref().and_then(Url::host_str).filter(|it| !it.is_empty());
        let host = host.unwrap_or("repository.invalid").to_ascii_lowercase();
        Self {
            base_url: base_url.to_owned(),
            gatherer_id,
            host,
            attributes: Vec::new(),
            refused_gatherer_id: None,
        }
    }
}

/// Name of an object: the two values that make its OID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The `Gatherer-Id`.
    pub gatherer_id: String,
    /// The URL.
    pub url: String,
}

/// A problem of a record, which was converted nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// The description, lower-case, without the identifier and without a full stop.
    pub message: String,
}

impl Problem {
    fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// The record has no usable identifier: its URL is [`soif::NO_URL`], and the caller leaves it
    /// out.
    Nameless,
    /// The metadata are missing or not well-formed; the readable part was taken.
    Broken,
    /// The format is unknown; the elements were taken by their names.
    UnknownFormat,
    /// A value is beyond a limit, and was cut or left out.
    Limit,
}

impl ProblemKind {
    /// Returns the name for status pages and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nameless => "nameless",
            Self::Broken => "broken",
            Self::UnknownFormat => "unknown-format",
            Self::Limit => "limit",
        }
    }
}

/// Returns the name of the object that a record's header identifies. Returns `None` if the
/// identifier is empty, longer than [`IDENTIFIER_BYTES_MAX`], or of a refused gatherer. For a
/// deleted record it names the object to delete.
///
/// A SOIF record of another Harvest repository (recognized by `prefix`) keeps the name that its
/// identifier contains. All other records belong to the repository, and their URL is the
/// identifier. If the identifier is not a URL, their URL is `oai:HOST:` and the percent-encoded
/// identifier.
pub fn object_name(header: &Header, prefix: &str, source: &SourceIdentity) -> Option<ObjectName> {
    let identifier = header.identifier.trim();
    if identifier.is_empty() || IDENTIFIER_BYTES_MAX < identifier.len() {
        return None;
    }
    if prefix == Dissemination::Soif.prefix()
        && let Some(named) = Identifier::read(identifier)
    {
        let refused = source.refused_gatherer_id.as_deref();
        let name = ObjectName { gatherer_id: named.gatherer, url: named.url };
        return Some(name).filter(|it| Some(it.gatherer_id.as_str()) != refused);
    }
    let gatherer_id = source.gatherer_id.clone();
    let is_url = is_oai(identifier) || Url::parse(identifier).is_ok();
    let url = if is_url { identifier.to_owned() } else { under_host(identifier, &source.host) };
    Some(ObjectName { gatherer_id, url })
}

/// Returns whether the identifier has the usual form `oai:…`, which is a URL, so that it need not
/// be parsed.
fn is_oai(identifier: &str) -> bool {
    let rest = identifier.strip_prefix("oai:");
    rest.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_graphic()))
}

fn under_host(identifier: &str, host: &str) -> String {
    let mut url = format!("oai:{host}:");
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"-._~/".contains(&it);
    // Writing to a string never fails.
    let _ = escape::write(&mut url, identifier, '%', is_plain);
    url
}

/// Converts a harvested record to SOIF.
///
/// `prefix` is the metadata prefix of the request; `keep_original` stores the metadata unchanged in
/// [`ORIGINAL_METADATA`]. `Update-Time` and `Last-Modification-Time` are the header's datestamp, so
/// that every harvest of the same record gives the same bytes; `MD5` is the digest of the metadata.
/// A record in SOIF keeps its own attributes instead. Its name comes from the header; if it had
/// another, it loses `Origin-Version` and `Gatherer-Root`.
///
/// The URL is [`soif::NO_URL`], with a problem, if there is no [`object_name`]. A deleted record
/// becomes a record with nothing but its name.
pub fn to_soif(
    record: &response::Record,
    prefix: &str,
    source: &SourceIdentity,
    keep_original: bool,
) -> (Record, Vec<Problem>) {
    let header = &record.header;
    let mut problems = Vec::new();
    let metadata = record.metadata.as_ref().map_or("", |it| it.0.as_str());
    if METADATA_BYTES_MAX < metadata.len() {
        let message = format!("its metadata are longer than {METADATA_BYTES_MAX} bytes");
        problems.push(Problem::new(ProblemKind::Limit, message));
    }
    let metadata = if METADATA_BYTES_MAX < metadata.len() { "" } else { metadata };
    let name = object_name(header, prefix, source).unwrap_or_else(|| {
        let message = "its identifier is empty, too long for an object's name, or one of our own";
        problems.push(Problem::new(ProblemKind::Nameless, message));
        ObjectName { gatherer_id: source.gatherer_id.clone(), url: soif::NO_URL.to_owned() }
    });
    let mut made = Record::new("FILE", name.url.as_str());
    if header.deleted {
        made.push("Gatherer-Id", name.gatherer_id);
        return (made, problems);
    }
    if metadata.is_empty() && problems.is_empty() {
        problems.push(Problem::new(ProblemKind::Broken, "it has no metadata"));
    }
    let tree = Tree::read(metadata);
    if let Some(root) = tree.root().filter(|it| it.space() == Space::Soif) {
        let mut own = soif_xml::read(root, &mut problems);
        problems.extend(flaw(&tree));
        take_name(&mut own, name, is_named(header, prefix), &mut problems);
        let own = to_carriable(own);
        return (own, problems);
    }
    let mut draft = Draft::default();
    read(&tree, prefix, &mut draft);
    problems.extend(flaw(&tree));
    problems.extend(draft.finish(&mut made));
    add_provenance(&mut made, header, metadata, source, name.gatherer_id);
    if let Some(namespace) = tree.namespace() {
        made.push(METADATA_NAMESPACE, namespace);
    }
    if keep_original && !metadata.is_empty() {
        made.push(ORIGINAL_METADATA, metadata);
    }
    (to_carriable(made), problems)
}

/// Converts the metadata of a separate file to attributes, in a record without a name. The
/// namespace selects the format, or `prefix` if the namespace is unknown.
pub fn metadata_to_soif(metadata: &str, prefix: &str) -> (Record, Vec<Problem>) {
    let mut made = Record::new("FILE", soif::NO_URL);
    let tree = Tree::read(metadata);
    let mut draft = Draft::default();
    read(&tree, prefix, &mut draft);
    let mut problems: Vec<Problem> = flaw(&tree).into_iter().collect();
    problems.extend(draft.finish(&mut made));
    (made, problems)
}

/// Returns whether the record's identifier contains the name of its object.
fn is_named(header: &Header, prefix: &str) -> bool {
    prefix == Dissemination::Soif.prefix() && Identifier::read(header.identifier.trim()).is_some()
}

/// Gives a record in SOIF the name from its header, and ignores the name in the metadata. Otherwise
/// an author of metadata could overwrite objects of others; and a deletion, which has only a
/// header, must find the same object as the update.
fn take_name(own: &mut Record, name: ObjectName, is_named: bool, problems: &mut Vec<Problem>) {
    const GATHERER_ID: &str = "Gatherer-Id";
    let is_same =
        own.url == name.url && own.text(GATHERER_ID).is_none_or(|id| id.trim() == name.gatherer_id);
    if is_named && !is_same {
        let message = "its metadata are of another object than its identifier, which counts";
        problems.push(Problem::new(ProblemKind::Broken, message));
    }
    if !is_named || !is_same {
        // These attributes belong to the object that is named in the metadata.
        own.remove("Origin-Version");
        own.remove("Origin-Path");
        own.remove("Gatherer-Root");
    }
    own.url = name.url;
    own.set(GATHERER_ID, name.gatherer_id);
}

/// Returns the record as it is after it has been written and parsed as SOIF. Writing replaces
/// names, URLs and template types that a stream cannot contain; and a template type that begins a
/// section would be read as a section.
fn to_carriable(mut record: Record) -> Record {
    let sections = [soif::Section::Delete, soif::Section::Refresh, soif::Section::Update];
    if sections.iter().any(|it| it.name().eq_ignore_ascii_case(&record.template)) {
        record.template = "FILE".to_owned();
    }
    let is_plain = |text: &str| {
        let fits = |it: u8| b' ' < it && !matches!(it, b'{' | b'}' | 0x7f);
        !text.is_empty() && !text.starts_with('@') && text.bytes().all(fits)
    };
    let names = || record.attributes().iter().map(|it| it.name.as_str());
    if is_plain(&record.template) && is_plain(&record.url) && names().all(is_plain) {
        return record;
    }
    let mut stream = Vec::new();
    soif::write_record(&mut stream, &record);
    let read = soif::parse(&stream).ok().and_then(|mut it| it.pop());
    // The parse never fails: the names are bounded.
    read.unwrap_or_else(|| Record::new("FILE", soif::NO_URL))
}

fn flaw(tree: &Tree<'_>) -> Option<Problem> {
    let message = format!("its metadata are not well-formed: {}", tree.flaw()?);
    Some(Problem::new(ProblemKind::Broken, message))
}

/// Reads the metadata into the draft with the crosswalk of their format.
fn read<'t>(tree: &'t Tree<'_>, prefix: &str, draft: &mut Draft<'t>) {
    let Some(root) = tree.root() else { return };
    if read_by_namespace(root, draft) {
        return;
    }
    match prefix {
        "oai_dc" | "dc" | "qdc" | "oai_qdc" | "oai_dcq" | "dcterms" => dc::read(root, draft),
        "marc21" | "marcxml" | "oai_marc21" => marc::read(root, draft),
        "mods" => mods::read(root, draft),
        "oai_datacite" | "datacite" => datacite::read(root, draft),
        "mets" => mets::read(root, draft, read_by_namespace),
        "rfc1807" | "oai_rfc1807" => rfc1807::read(root, draft),
        _ => {
            let message = format!(
                "its format {:?} is not known: it was taken by the names of its elements",
                draft::front(prefix, 60),
            );
            draft.problems.push(Problem::new(ProblemKind::UnknownFormat, message));
            generic::read(root, draft);
        }
    }
}

/// Reads the metadata with the crosswalk of their namespace; returns false if there is none.
fn read_by_namespace<'t>(root: Element<'t, '_>, draft: &mut Draft<'t>) -> bool {
    match root.space() {
        Space::DublinCore => dc::read(root, draft),
        Space::Marc => marc::read(root, draft),
        Space::Mods => mods::read(root, draft),
        Space::DataCite | Space::OaiDataCite => datacite::read(root, draft),
        Space::Mets => mets::read(root, draft, read_by_namespace),
        Space::Rfc1807 => rfc1807::read(root, draft),
        Space::None | Space::Other if dc::holds(root) => dc::read(root, draft),
        Space::None | Space::Other | Space::Soif => return false,
    }
    true
}

/// Adds the attributes from the record's header and its source.
fn add_provenance(
    made: &mut Record,
    header: &Header,
    metadata: &str,
    source: &SourceIdentity,
    gatherer_id: String,
) {
    if !metadata.is_empty() {
        made.push("MD5", Md5::of(metadata.as_bytes()).to_string());
    }
    let sets: Vec<&str> =
        header.sets.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).take(SETS_MAX).collect();
    if !sets.is_empty() {
        made.push(SET_SPEC, sets.join("\n"));
    }
    if let Some(secs) = header.datestamp.and_then(|it| u64::try_from(it.secs()).ok()) {
        made.push("Last-Modification-Time", secs.to_string());
        made.push("Update-Time", secs.to_string());
    }
    for (name, value) in &source.attributes {
        made.push(name.as_str(), value.as_str());
    }
    made.push("Gatherer-Id", gatherer_id);
    made.push("Gatherer-Root", source.base_url.as_str());
}

/// A format in which we disseminate records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dissemination {
    /// Unqualified Dublin Core.
    OaiDc,
    /// SOIF as XML: the whole record.
    Soif,
}

impl Dissemination {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OaiDc, Self::Soif];

    /// Returns its metadata prefix.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::OaiDc => "oai_dc",
            Self::Soif => "soif",
        }
    }

    /// Returns the format with that metadata prefix.
    pub fn by_prefix(prefix: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.prefix() == prefix)
    }

    /// Returns its namespace.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::OaiDc => dc::OAI_DC,
            Self::Soif => soif_xml::NAMESPACE,
        }
    }

    /// Returns the address of its schema: a public one, or else one below the repository's
    /// `base_url`.
    pub fn schema(self, base_url: &str) -> String {
        match self {
            Self::OaiDc => dc::OAI_DC_SCHEMA.to_owned(),
            Self::Soif => description::schema_at(base_url, "soif.xsd"),
        }
    }

    /// Writes a record in this format for the repository at `base_url`.
    pub fn write(self, record: &Record, base_url: &str) -> Xml {
        match self {
            Self::OaiDc => dc::write(record),
            Self::Soif => soif_xml::write(record, &self.schema(base_url)),
        }
    }
}

#[cfg(test)]
mod tests;
