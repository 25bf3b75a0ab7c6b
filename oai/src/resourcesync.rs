//! ResourceSync documents: a site's resources and their changes, written for crawlers of sitemaps.
//!
//! Source: ANSI/NISO Z39.99-2017 (cited by section): the source description (§11), capability lists
//! (§10), resource lists and their indexes (§12), change lists (§14). Each of these documents is a
//! sitemap with additional attributes in another namespace, so the type [`Document`] serves for
//! all.
//!
//! # Differences from the standard
//!
//! * Resource dumps and change dumps are left out: a collection's snapshot serves the same purpose,
//!   and is smaller.
//! * A datetime has seconds and is in UTC.

mod write;

use crate::datestamp::Datestamp;

/// Namespace of sitemaps.
pub const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// Namespace of ResourceSync's additions.
pub const TERMS: &str = "http://www.openarchives.org/rs/terms/";

/// Maximum number of entries of one document (§4: the limit of a sitemap).
pub const ENTRIES_MAX: usize = 50_000;

/// Path of a site's source description (RFC 8615; §11).
pub const WELL_KNOWN: &str = "/.well-known/resourcesync";

/// Kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// The list of a site's capability lists.
    Description,
    /// The documents about one set of resources.
    CapabilityList,
    /// The resources at one moment.
    ResourceList,
    /// The changes within a span of time, oldest first.
    ChangeList,
}

impl Capability {
    /// Returns its name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::CapabilityList => "capabilitylist",
            Self::ResourceList => "resourcelist",
            Self::ChangeList => "changelist",
        }
    }
}

/// Kind of a resource's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// The resource is new, or has changed.
    Updated,
    /// The resource is gone.
    Deleted,
}

impl ChangeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

/// An entry of a document: a resource, a change, or another document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Its URL.
    pub loc: String,
    /// Time of its last change.
    pub lastmod: Option<Datestamp>,
    /// Its kind, if it is a document.
    pub capability: Option<Capability>,
    /// Kind of the change, in a change list.
    pub change: Option<ChangeKind>,
    /// Time of the change.
    pub datetime: Option<Datestamp>,
    /// Its MD5, in hex digits.
    pub md5: Option<String>,
    /// Its length in bytes.
    pub length: Option<u64>,
}

impl Entry {
    /// Returns an entry with nothing but its URL.
    pub fn at(loc: impl Into<String>) -> Self {
        Self { loc: loc.into(), ..Self::default() }
    }
}

/// A document: its kind, its times and links, and its entries in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    capability: Capability,
    /// Whether its entries are the parts of the list, and not its items.
    pub is_index: bool,
    /// The document above: the capability list of a list, the source description of a capability
    /// list.
    up: Option<String>,
    /// The index of which it is a part.
    pub index: Option<String>,
    /// The time whose state a resource list shows.
    at: Option<Datestamp>,
    /// Beginning of the time that a change list covers.
    from: Option<Datestamp>,
    entries: Vec<Entry>,
}

impl Document {
    fn new(capability: Capability) -> Self {
        let (up, index, at, from) = (None, None, None, None);
        Self { capability, is_index: false, up, index, at, from, entries: Vec::new() }
    }

    /// Returns the source description of a site with one capability list.
    pub fn description(capability_list: &str) -> Self {
        let mut document = Self::new(Capability::Description);
        let capability = Some(Capability::CapabilityList);
        document.push(Entry { capability, ..Entry::at(capability_list) });
        document
    }

    /// Returns a capability list of these lists, below the source description at `up`.
    pub fn capability_list(up: &str, lists: &[(Capability, impl AsRef<str>)]) -> Self {
        let mut document = Self::new(Capability::CapabilityList);
        document.up = Some(up.to_owned());
        for (capability, loc) in lists {
            document.push(Entry { capability: Some(*capability), ..Entry::at(loc.as_ref()) });
        }
        document
    }

    /// Returns an empty resource list as of `at`, below the capability list at `up`.
    pub fn resource_list(up: &str, at: Datestamp) -> Self {
        let up = Some(up.to_owned());
        Self { up, at: Some(at), ..Self::new(Capability::ResourceList) }
    }

    /// Returns an empty change list since `from`, below the capability list at `up`.
    pub fn change_list(up: &str, from: Datestamp) -> Self {
        let up = Some(up.to_owned());
        Self { up, from: Some(from), ..Self::new(Capability::ChangeList) }
    }

    /// Adds an entry; changes are added oldest first. Returns false if there are [`ENTRIES_MAX`]
    /// already: the entry belongs to another part of the list.
    pub fn push(&mut self, entry: Entry) -> bool {
        let fits = self.entries.len() < ENTRIES_MAX;
        if fits {
            self.entries.push(entry);
        }
        fits
    }
}

#[cfg(test)]
mod tests;
