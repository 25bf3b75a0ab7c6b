//! Sections and events of a stream, and the modes and limits of its reader.
//!
//! Source: TR §4 (incremental updates). `DELETE` removes objects, `REFRESH` re-arms the
//! time-to-live of unchanged objects, `UPDATE` brings new and changed objects. The caller keeps
//! track of the open section; records outside any section are events, too.
//!
//! Sans-I/O.

use crate::record::RecordRef;

/// The three wrappers of an update stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Its objects are gone.
    Delete,
    /// Its objects have not changed.
    Refresh,
    /// Its objects are new or changed.
    Update,
}

impl Section {
    /// Returns the name in the stream.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Refresh => "REFRESH",
            Self::Update => "UPDATE",
        }
    }

    /// Returns the section that `template` opens, in any case.
    pub(crate) fn by_name(template: &[u8]) -> Option<Self> {
        [Self::Delete, Self::Refresh, Self::Update]
            .into_iter()
            .find(|it| it.name().as_bytes().eq_ignore_ascii_case(template))
    }
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A section starts.
    Open(Section),
    /// A whole record.
    Record(RecordRef<'a>),
    /// The section ends.
    Close(Section),
}

/// Reaction of a reader to bytes that are not SOIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The first damage ends the stream with an error. Lines end in LF alone.
    Strict,
    /// Damage becomes a problem, and reading goes on at the next object. CR is white space, too. A
    /// space may stand for the TAB before a value, and a wrong URL is percent-encoded; each is a
    /// problem.
    Lenient,
}

/// Limits of a reader, so that no stream can exhaust its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an attribute's name or of a template type, in bytes.
    pub name_bytes_max: usize,
    /// Maximum length of a URL, in bytes.
    pub url_bytes_max: usize,
    /// Maximum length of a value, in bytes.
    pub value_bytes_max: usize,
    /// Maximum number of attributes in a record.
    pub attributes_max: usize,
    /// Maximum length of a record from `@` to `}`, in bytes.
    pub record_bytes_max: usize,
}

impl Default for Limits {
    /// Returns 1 KiB for a name, 64 KiB for a URL, 64 MiB for a value, 65,536 attributes and 128
    /// MiB for a record.
    fn default() -> Self {
        Self {
            name_bytes_max: 1024,
            url_bytes_max: 64 * 1024,
            value_bytes_max: 64 * 1024 * 1024,
            attributes_max: 65_536,
            record_bytes_max: 128 * 1024 * 1024,
        }
    }
}
