//! ResourceSync: what a site has and what has changed there, as documents for whoever crawls sitemaps.
//!
//! Source: ANSI/NISO Z39.99-2017 (cited by section): the source description (§11), capability lists (§10),
//! resource lists and their indexes (§12), change lists (§14). Every one of them is a sitemap whose elements
//! say more, in a namespace of their own; so there is one [`Document`] for all of them.
//!
//! # Differences from the standard
//!
//! * Dumps, resource and change, are left out: a collection's snapshot is one already, and smaller.
//! * A datetime has seconds and is in UTC.
//! * Of links, those are read and written that lead through the documents (`up`, `index`,
//!   `describedby`); the others are passed over.

mod read;
mod write;

use crate::datestamp::Datestamp;

pub use read::{Unreadable, read};

/// Namespace of sitemaps.
pub const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// Namespace of what ResourceSync adds to them.
pub const TERMS: &str = "http://www.openarchives.org/rs/terms/";

/// Most entries of one document (§4: that of a sitemap).
pub const ENTRIES_MAX: usize = 50_000;

/// Largest document that is read, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 50 << 20;

/// Where a site's source description is (RFC 8615; §11), from its root.
pub const WELL_KNOWN: &str = "/.well-known/resourcesync";

/// What a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// The site's capability lists.
    Description,
    /// What is told of one set of resources.
    CapabilityList,
    /// The resources as of one moment.
    ResourceList,
    /// What has changed within a time, oldest first.
    ChangeList,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Description, Self::CapabilityList, Self::ResourceList, Self::ChangeList];

    /// Its name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::CapabilityList => "capabilitylist",
            Self::ResourceList => "resourcelist",
            Self::ChangeList => "changelist",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What has happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happened {
    /// It is new.
    Created,
    /// It has changed.
    Updated,
    /// It is gone.
    Deleted,
}

impl Happened {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Deleted];

    /// Its name in a document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What a document lists: a resource, what happened to one, or another document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Where it is; a URL.
    pub loc: String,
    /// When it changed last.
    pub lastmod: Option<Datestamp>,
    /// What it is, where it is a document.
    pub capability: Option<Capability>,
    /// What has happened to it, in a change list.
    pub change: Option<Happened>,
    /// When that was.
    pub datetime: Option<Datestamp>,
    /// Its MD5, in hex digits.
    pub md5: Option<String>,
    /// Its bytes.
    pub length: Option<u64>,
    /// Its media type.
    pub media_type: Option<String>,
    /// Where a description of it is.
    pub described_by: Option<String>,
}

impl Entry {
    /// One of which no more is said than where it is.
    pub fn at(loc: impl Into<String>) -> Self {
        Self { loc: loc.into(), ..Self::default() }
    }
}

/// A document: what it is, what it is of, and its entries in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is.
    pub capability: Capability,
    /// Whether its entries are the parts of the list and not what is listed.
    pub is_index: bool,
    /// The document that leads to it: of a list the capability list, of that the source description.
    pub up: Option<String>,
    /// The index that it is a part of.
    pub index: Option<String>,
    /// When a resource list was begun.
    pub at: Option<Datestamp>,
    /// When it was complete.
    pub completed: Option<Datestamp>,
    /// Since when a change list tells of changes.
    pub from: Option<Datestamp>,
    /// Until when; one without is still open.
    pub until: Option<Datestamp>,
    entries: Vec<Entry>,
}

impl Document {
    /// A document without entries.
    pub fn new(capability: Capability) -> Self {
        Self {
            capability,
            is_index: false,
            up: None,
            index: None,
            at: None,
            completed: None,
            from: None,
            until: None,
            entries: Vec::new(),
        }
    }

    /// The source description of a site with one capability list.
    pub fn description(capability_list: &str) -> Self {
        let mut document = Self::new(Capability::Description);
        let capability = Some(Capability::CapabilityList);
        document.push(Entry { capability, ..Entry::at(capability_list) });
        document
    }

    /// A capability list of these lists, below the source description at `up`.
    pub fn capability_list(up: &str, lists: &[(Capability, &str)]) -> Self {
        let mut document = Self::new(Capability::CapabilityList);
        document.up = Some(up.to_owned());
        for (capability, loc) in lists {
            document.push(Entry { capability: Some(*capability), ..Entry::at(*loc) });
        }
        document
    }

    /// An empty resource list as of `at`, below the capability list at `up`.
    pub fn resource_list(up: &str, at: Datestamp) -> Self {
        let up = Some(up.to_owned());
        Self { up, at: Some(at), ..Self::new(Capability::ResourceList) }
    }

    /// An empty change list of what happened since `from`, below the capability list at `up`.
    pub fn change_list(up: &str, from: Datestamp) -> Self {
        let up = Some(up.to_owned());
        Self { up, from: Some(from), ..Self::new(Capability::ChangeList) }
    }

    /// What it lists, in its order: changes the oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry; false once there are [`ENTRIES_MAX`]: it belongs into another part of the list.
    pub fn push(&mut self, entry: Entry) -> bool {
        let fits = self.entries.len() < ENTRIES_MAX;
        if fits {
            self.entries.push(entry);
        }
        fits
    }

    /// The document as XML.
    pub fn written(&self) -> String {
        write::written(self)
    }
}

#[cfg(test)]
mod tests;
