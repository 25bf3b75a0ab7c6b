//! A look at a directory that was published before: whether all of it is as it was.
//!
//! It makes nothing, so that to look at a tree of millions of files, as a watch does over and over, costs no more than
//! the walk over them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::super::error::Error;
use super::super::fetch::Former;
use super::super::generation::Generation;
use super::super::listing::Listed;
use super::super::manifest::{EntryKind, Format};
use super::super::mode::Mode;
use super::super::path::EntryPath;
use super::super::store::Store;
use super::format_for;
use super::source::{Found, Names, Source, Stamp};

/// A generation, and what is known of the files that it was made of. It is asked in order.
#[derive(Debug)]
pub(super) struct Known {
    former: Former,
    stamps: File,
    /// In which the files are to be listed.
    format: Format,
}

impl Known {
    pub(super) fn new(generation: Arc<Generation>, format: Format) -> Option<Self> {
        let stamps = generation.stamps()?;
        Some(Self { former: Former::new(generation), stamps, format })
    }

    pub(super) fn generation(&self) -> &Arc<Generation> {
        self.former.generation()
    }

    /// Finds a file that has not been changed since the generation was made, neither where it came from nor in the
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

/// The mode that a manifest of this format has of a file.
pub(super) fn listed_mode(format: Format, found: Mode) -> Mode {
    if format == Format::One { found.in_format_1() } else { found }
}

/// Whether the directory has just what the present generation has of it, as far as that can be said without reading
/// files.
///
/// # Errors
///
/// [`Error::Stopped`].
pub(super) fn is_same(store: &Store, top: &Source) -> Result<bool, Error> {
    let Some(current) = store.current().filter(|_| store.damaged().is_empty()) else {
        return Ok(false);
    };
    let entries = current.meta().totals.entries;
    // What was published without modes is published once more with them.
    let format = format_for(store.kind(), top);
    let Some(format) = format.ok().filter(|it| *it == current.format()) else {
        return Ok(false);
    };
    let Some(known) = Known::new(current, format) else { return Ok(false) };
    let mut look = Look { store, known, entries: 0 };
    match look.directory(top, None) {
        Ok(()) => Ok(look.entries == entries),
        Err(Ended::Differs) => Ok(false),
        Err(Ended::Stopped(error)) => Err(error),
    }
}

struct Look<'a> {
    store: &'a Store,
    known: Known,
    /// That are as they were.
    entries: u64,
}

/// Why there is no more to look at.
enum Ended {
    /// Something is not as it was, or cannot be replicated: whoever makes a version of it says what.
    Differs,
    Stopped(Error),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Differs
    }
}

impl Look<'_> {
    /// Looks at all that is in a directory.
    fn directory(&mut self, dir: &Source, path: Option<&EntryPath>) -> Result<(), Ended> {
        let Names::All(names) = dir.names()? else { return Err(Ended::Differs) };
        for name in names {
            self.store.go_on().map_err(Ended::Stopped)?;
            let Some(found) = dir.find(&name)? else { continue };
            let text = name.to_str().map_err(|_unsaid| Ended::Differs)?;
            let path = EntryPath::child(path, text).map_err(|_unsaid| Ended::Differs)?;
            let is_same = match found {
                Found::Directory(mode) => {
                    let is_listed = self.known.is_listed(&path, &EntryKind::Directory { mode });
                    if is_listed {
                        self.entries += 1;
                        self.directory(&dir.open_directory(&name)?, Some(&path))?;
                        continue;
                    }
                    false
                }
                Found::Link(target) => target.to_str().is_ok_and(|it| {
                    self.known.is_listed(&path, &EntryKind::Link { target: it.into() })
                }),
                Found::File(stamp) => self.known.file(&path, &stamp).is_some(),
                Found::Other(_) => false,
            };
            if !is_same {
                return Err(Ended::Differs);
            }
            self.entries += 1;
        }
        Ok(())
    }
}
