//! Lists of URLs that sites publish: sitemaps, indexes of sitemaps, plain lists, RSS and Atom feeds.
//!
//! Source: sitemaps.org protocol 0.9; RSS 2.0 and 1.0; RFC 4287 (Atom).
//!
//! The caller unpacks gzip, checks that it may fetch what a list names, and remembers the
//! [keys](crate::key::key) of lists that it has read: indexes can name each other in a circle.
//!
//! Sans-I/O.

use url::Url;

mod plain;
#[cfg(test)]
mod tests;
mod xml;

/// Maximum number of entries of a list, as in the protocol.
pub const ENTRIES_MAX: usize = 50_000;

/// Number of unpacked bytes of a list that are read, as in the protocol (50 MiB).
pub const BYTES_MAX: usize = 50 * 1024 * 1024;

/// Deepest nesting of elements.
pub const DEPTH_MAX: usize = 32;

/// A list of URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// What the entries are.
    pub kind: Kind,
    /// The entries, in order. The same URL can occur again.
    pub entries: Vec<Entry>,
    /// Number of entries without a URL that can be read.
    pub skipped: usize,
    /// The reason why the list is not whole. What was read before stays.
    pub flaw: Option<Flaw>,
}

/// What the entries of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Objects: a sitemap, or a plain list.
    Objects,
    /// Further lists: an index of sitemaps.
    Lists,
    /// The newest objects alone: a feed. What it does not name may still be there.
    News,
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The URL; one that is relative is resolved against that of the list.
    pub url: Url,
    /// When it last changed, as the site says, in milliseconds since 1970 UTC.
    pub changed_ms: Option<u64>,
}

/// The reason why a list is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// It has more than [`ENTRIES_MAX`] entries.
    #[error("more than {ENTRIES_MAX} entries: the site should split the list")]
    Entries,
    /// It has more than [`BYTES_MAX`] bytes.
    #[error("more than {BYTES_MAX} bytes: the site should split the list")]
    Bytes,
    /// It ends within an element.
    #[error("it ends too early")]
    Truncated,
    /// It is no XML from here on, or nests too deep.
    #[error("no well-formed XML at byte {at}")]
    Malformed {
        /// Offset in bytes.
        at: u64,
    },
}

/// The reason why something is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoList {
    /// It declares a document type, which lists have no use for.
    #[error("it has a DOCTYPE")]
    Doctype,
    /// It is other XML, or HTML.
    #[error("its root element is {0:?}")]
    Root(String),
    /// It is text without any URL, or nothing.
    #[error("it has no URL and no XML")]
    Text,
}

/// Reads a list at a URL from its first [`BYTES_MAX`] bytes. Bytes that are not UTF-8 are replaced.
///
/// # Errors
///
/// It is no list of a known form: the caller names URL and reason to the administrator.
pub fn read(url: &Url, bytes: &[u8]) -> Result<List, NoList> {
    let start = bytes.get(..BYTES_MAX).unwrap_or(bytes);
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut list =
        if text.starts_with('<') { xml::read(url, text)? } else { plain::read(url, text)? };
    if BYTES_MAX < bytes.len() && list.flaw != Some(Flaw::Entries) {
        list.flaw = Some(Flaw::Bytes);
    }
    Ok(list)
}

impl List {
    fn new(kind: Kind) -> Self {
        Self { kind, entries: Vec::new(), skipped: 0, flaw: None }
    }

    /// Adds an entry; false if there are too many.
    fn push(&mut self, base: &Url, loc: &str, changed_ms: Option<u64>) -> bool {
        if ENTRIES_MAX <= self.entries.len() + self.skipped {
            self.flaw = Some(Flaw::Entries);
            return false;
        }
        let loc = loc.trim();
        let url = base.join(loc).ok().filter(|it| !loc.is_empty() && it.has_host());
        match url.filter(|it| it.as_str().len() <= crate::key::URL_BYTES_MAX) {
            Some(url) => self.entries.push(Entry { url, changed_ms }),
            None => self.skipped += 1,
        }
        true
    }
}
