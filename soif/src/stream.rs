//! What a stream is made of besides records: sections, and the terms on which it is read.
//!
//! Source: TR §4 (incremental updates). `DELETE` removes, `REFRESH` re-arms the time-to-live of what
//! has not changed, `UPDATE` brings what is new or changed. Whoever reads keeps track of the section
//! that it is in; records outside any section are events like the others.
//!
//! Sans-I/O.

use crate::record::RecordRef;

/// The three wrappers of an update stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// The objects in it are gone.
    Delete,
    /// The objects in it have not changed.
    Refresh,
    /// The objects in it are new or changed.
    Update,
}

impl Section {
    /// The name in the stream.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Refresh => "REFRESH",
            Self::Update => "UPDATE",
        }
    }

    /// The section that `template` opens, in any case.
    pub(crate) fn named(template: &[u8]) -> Option<Self> {
        [Self::Delete, Self::Refresh, Self::Update]
            .into_iter()
            .find(|it| it.name().as_bytes().eq_ignore_ascii_case(template))
    }
}

/// What comes next in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A section starts.
    Open(Section),
    /// A whole record.
    Record(RecordRef<'a>),
    /// The section ends.
    Close(Section),
}

/// How a reader takes what is not SOIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The first damage ends the stream with an error. Lines end in LF alone.
    Strict,
    /// Damage is put on a list of problems and reading goes on at the next object. CRLF is white
    /// space between attributes; a space is taken for the TAB, and white space in a URL is
    /// percent-encoded, each with a problem on the list.
    Lenient,
}

/// What a reader refuses, so that no stream can exhaust its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest attribute name or template type, in bytes.
    pub name_bytes_max: usize,
    /// Longest URL, in bytes.
    pub url_bytes_max: usize,
    /// Longest value, in bytes.
    pub value_bytes_max: usize,
    /// Most attributes in a record.
    pub attributes_max: usize,
    /// Longest record from `@` to `}`, in bytes.
    pub record_bytes_max: usize,
}

impl Default for Limits {
    /// 1 KiB for a name, 64 KiB for a URL, 64 MiB for a value, 65,536 attributes and 128 MiB for a
    /// record.
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
