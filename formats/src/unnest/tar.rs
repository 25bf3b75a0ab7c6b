//! Members of a tar file, as a stream.
//!
//! Source: POSIX.1-2001 pax interchange format; GNU tar's long names.
//!
//! The headers are read raw and the long names taken here, because a name is a member like any other
//! on the wire: its size is what the archive says, and only we bound it.
//!
//! Sans-I/O.

use std::io::Read;

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::budget::{Fault, read_up_to};
use super::{About, PATH_BYTES_MAX, Walk, clean_path, member};
use crate::object::ProblemKind;

/// Longest file that is looked for by name, in bytes.
const FOUND_BYTES_MAX: usize = 256 * 1024;
/// Longest extended header that is read, in bytes.
const EXTENDED_BYTES_MAX: usize = 16 * PATH_BYTES_MAX;

/// What extended headers say about the next member.
#[derive(Default)]
struct Next {
    path: Option<Vec<u8>>,
    modified: Option<u64>,
}

/// See [`super::members`].
pub(super) fn members(walk: &mut Walk<'_, '_>, reader: &mut dyn Read) -> Result<(), Fault> {
    each(reader, &mut |path, modified, entry| {
        let modified = modified.or_else(|| entry.header().mtime().ok());
        if let Some(header) = entry.header().as_gnu().filter(|_| is_sparse(entry)) {
            let size = header.real_size().unwrap_or_else(|_| entry.size());
            let about = About { path: clean_path(path).to_vec(), size, modified };
            return walk.sparse(&about, header.is_extended()).map(|()| true);
        }
        let about = About { path: clean_path(path).to_vec(), size: entry.size(), modified };
        let member = walk.read(&about, entry)?;
        walk.visit(member);
        Ok(true)
    })
}

/// Returns the front of the first file at `path`.
pub(super) fn find(reader: &mut dyn Read, path: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut found = None;
    each(reader, &mut |at, _, entry| {
        if clean_path(at) == path && !is_sparse(entry) {
            let mut bytes = Vec::new();
            let _ = read_up_to(entry, FOUND_BYTES_MAX, &mut bytes);
            found = Some(bytes);
        }
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// What is done with a file: its path, what an extended header says of its time, and the file.
type Each<'e> =
    dyn FnMut(&[u8], Option<u64>, &mut Entry<'_, &mut dyn Read>) -> Result<bool, Fault> + 'e;

/// Goes through the files of a tar until `each` says false.
fn each(reader: &mut dyn Read, each: &mut Each<'_>) -> Result<(), Fault> {
    let breaks_off = |error| (ProblemKind::Broken, format!("tar data breaks off: {error}"));
    let mut archive = Archive::new(reader);
    let mut next = Next::default();
    for entry in archive.entries().map_err(breaks_off)?.raw(true) {
        let mut entry = entry.map_err(breaks_off)?;
        match entry.header().entry_type() {
            EntryType::GNULongName | EntryType::XHeader => extend(&mut next, &mut entry),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let Next { path, modified } = std::mem::take(&mut next);
                let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
                if !each(&path, modified, &mut entry)? {
                    return Ok(());
                }
            }
            // Directories, links and devices have no content; volume labels and the like neither.
            EntryType::XGlobalHeader | EntryType::GNULongLink => {}
            _ => next = Next::default(),
        }
    }
    Ok(())
}

/// Whether an entry is only the pieces of a file that are not zeros, as old GNU tars keep it.
fn is_sparse<R: Read>(entry: &Entry<'_, R>) -> bool {
    entry.header().entry_type() == EntryType::GNUSparse
}

impl Walk<'_, '_> {
    /// Hands on a sparse file by its name. Where its pieces are may be said in blocks that no size tells of.
    fn sparse(&mut self, about: &About, is_extended: bool) -> Result<(), Fault> {
        self.take(&about.path)?;
        let mut member = member(self.object, about, Vec::new(), true);
        member.add((ProblemKind::Limit, "is sparse; only its name was read".to_owned()));
        self.last.clone_from(&member.path);
        self.visit(member);
        if is_extended {
            let message = "has a sparse file in many pieces; what follows it was not read";
            return Err((ProblemKind::Limit, message.to_owned()));
        }
        Ok(())
    }
}

fn extend(next: &mut Next, entry: &mut Entry<'_, impl Read>) {
    let mut header = Vec::new();
    // What is wrong with the stream will be wrong for the next header too.
    let _ = read_up_to(entry, EXTENDED_BYTES_MAX, &mut header);
    if entry.header().entry_type() == EntryType::GNULongName {
        header.truncate(header.iter().position(|byte| *byte == 0).unwrap_or(header.len()));
        next.path = Some(header);
        return;
    }
    for extension in PaxExtensions::new(&header).flatten() {
        match extension.key_bytes() {
            b"path" | b"GNU.sparse.name" => next.path = Some(extension.value_bytes().to_vec()),
            b"mtime" => {
                let text = String::from_utf8_lossy(extension.value_bytes()).into_owned();
                let seconds = text.split('.').next().unwrap_or_default();
                next.modified = seconds.parse().ok();
            }
            _ => {}
        }
    }
}
