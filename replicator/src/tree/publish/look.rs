//! A look at a published directory, to see whether it is unchanged.
//!
//! A look builds nothing. So a look at a tree of millions of files, which a watch repeats often,
//! costs no more than the walk over the directory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::super::error::Error;
use super::super::fetch::FormerEntries;
use super::super::generation::Generation;
use super::super::listing::Listed;
use super::super::manifest::{EntryKind, Format};
use super::super::mode::Mode;
use super::super::path::EntryPath;
use super::super::store::Store;
use super::format_for;
use super::source::{Folder, FsEntry, Names, Stamp};

/// The files of a generation with the stamps of their sources. Files must be looked up in the order
/// of their paths.
#[derive(Debug)]
pub(super) struct PublishedFiles {
    former: FormerEntries,
    stamps: File,
    /// The format of the next manifest.
    format: Format,
}

impl PublishedFiles {
    pub(super) fn new(generation: Arc<Generation>, format: Format) -> Option<Self> {
        let stamps = generation.stamps()?;
        Some(Self { former: FormerEntries::new(generation), stamps, format })
    }

    pub(super) fn generation(&self) -> &Arc<Generation> {
        self.former.generation()
    }

    /// Finds a file that is unchanged since the generation was made, both at its source and in the
    /// generation.
    pub(super) fn file(&mut self, path: &EntryPath, stamp: &Stamp) -> Option<&Listed> {
        let generation = self.former.generation().clone();
        let (listed, ordinal) = self.former.find(path)?;
        let kind = EntryKind::File {
            mode: listed_mode(self.format, stamp.mode),
            bytes: stamp.bytes,
            modified: stamp.modified.0,
        };
        let mut record = Stamp::UNKNOWN;
        let offset = ordinal * record.len() as u64;
        let is_known = self.stamps.read_exact_at(&mut record, offset).is_ok()
            && record == stamp.to_bytes()
            && listed.entry.kind == kind
            && generation.is_untouched(listed);
        is_known.then_some(listed)
    }

    fn is_listed(&mut self, path: &EntryPath, kind: &EntryKind) -> bool {
        self.former.find(path).is_some_and(|it| it.0.entry.kind == *kind)
    }
}

/// Returns the mode of a file in a manifest of this format.
pub(super) fn listed_mode(format: Format, found: Mode) -> Mode {
    if format == Format::One { found.in_format_1() } else { found }
}

/// Returns whether the directory equals the present generation, judged without reading files.
pub(super) fn is_same(store: &Store, top: &Folder) -> Result<bool, Error> {
    let Some(current) = store.current().filter(|_| store.damaged().is_empty()) else {
        return Ok(false);
    };
    let entries = current.meta().totals.entries;
    // A tree that was published without modes is published again with modes.
    let format = format_for(store.kind(), top);
    let Some(format) = format.ok().filter(|it| *it == current.format()) else {
        return Ok(false);
    };
    let Some(published) = PublishedFiles::new(current, format) else { return Ok(false) };
    let mut look = Look { store, published, entries: 0 };
    match look.directory(top, None) {
        Ok(()) => Ok(look.entries == entries),
        Err(LookError::Differs) => Ok(false),
        Err(LookError::Stopped(error)) => Err(error),
    }
}

struct Look<'a> {
    store: &'a Store,
    published: PublishedFiles,
    /// Number of unchanged entries.
    entries: u64,
}

/// The reason why a look ends early.
enum LookError {
    /// An entry has changed, or cannot be replicated; building a version reports it.
    Differs,
    Stopped(Error),
}

impl From<io::Error> for LookError {
    fn from(_: io::Error) -> Self {
        Self::Differs
    }
}

impl Look<'_> {
    /// Looks at all entries of a directory.
    fn directory(&mut self, dir: &Folder, path: Option<&EntryPath>) -> Result<(), LookError> {
        let Names::All(names) = dir.names()? else { return Err(LookError::Differs) };
        for name in names {
            self.store.check_stop().map_err(LookError::Stopped)?;
            let Some(found) = dir.find(&name)? else { continue };
            let text = name.to_str().map_err(|_unsaid| LookError::Differs)?;
            let path = EntryPath::child(path, text).map_err(|_unsaid| LookError::Differs)?;
            let is_same = match found {
                FsEntry::Directory(mode) => {
                    let is_listed = self.published.is_listed(&path, &EntryKind::Directory { mode });
                    if is_listed {
                        self.entries += 1;
                        self.directory(&dir.open_directory(&name)?, Some(&path))?;
                        continue;
                    }
                    false
                }
                FsEntry::Link(target) => target.to_str().is_ok_and(|it| {
                    self.published.is_listed(&path, &EntryKind::Link { target: it.into() })
                }),
                FsEntry::File(stamp) => self.published.file(&path, &stamp).is_some(),
                FsEntry::Other(_) => false,
            };
            if !is_same {
                return Err(LookError::Differs);
            }
            self.entries += 1;
        }
        Ok(())
    }
}
