//! tar archives, read as streams.
//!
//! Source: POSIX.1-2001 pax interchange format; GNU tar's long names.
//!
//! This module reads headers raw and handles long names itself. In the archive, a long name is a member
//! like any other, of any declared size, and the `tar` crate would not bound it.

use std::io::Read;

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::budget::{End, Fault, read_up_to};
use super::{Member, MemberInfo, Walk, clean_path, member};
use crate::limit::Limit;
use crate::object::ProblemKind;

/// Values of extended headers for the next member.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    modified: Option<u64>,
    /// Whether one was longer than is read.
    is_cut: bool,
}

impl Extensions {
    fn report(&self, member: &mut Member) {
        if self.is_cut {
            member.add(Limit::Extended.cut().problem());
        }
    }
}

pub(super) fn members(walk: &mut Walk<'_, '_>, reader: &mut dyn Read) -> Result<(), Fault> {
    each(reader, &mut |path, extensions, entry| {
        let modified = extensions.modified.or_else(|| entry.header().mtime().ok());
        if let Some(header) = entry.header().as_gnu().filter(|_| is_sparse(entry)) {
            let size = header.real_size().unwrap_or_else(|_| entry.size());
            let info = MemberInfo { path: clean_path(path).to_vec(), size, modified };
            return walk.sparse(&info, header.is_extended()).map(|()| true);
        }
        let info = MemberInfo { path: clean_path(path).to_vec(), size: entry.size(), modified };
        let mut member = walk.read(&info, entry)?;
        extensions.report(&mut member);
        walk.visit(member);
        Ok(true)
    })
}

/// Returns the first file at `path`, or its front, which shows that it is longer than metadata may be.
pub(super) fn find(reader: &mut dyn Read, path: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    let mut content = None;
    each(reader, &mut |at, _, entry| {
        if clean_path(at) == path && !is_sparse(entry) {
            let mut bytes = Vec::new();
            let _ = read_up_to(entry, Limit::Metadata.bound() + 1, &mut bytes);
            content = Some(bytes);
        }
        Ok(content.is_none())
    })?;
    Ok(content)
}

/// Called with a file's path, what extended headers say of it, and the file; returns whether to go on.
type EachFile<'e> =
    dyn FnMut(&[u8], &Extensions, &mut Entry<'_, &mut dyn Read>) -> Result<bool, Fault> + 'e;

/// Calls `each` for the files of a tar until it returns false.
fn each(reader: &mut dyn Read, each: &mut EachFile<'_>) -> Result<(), Fault> {
    let breaks_off = |error| (ProblemKind::Broken, format!("tar data breaks off: {error}"));
    let mut archive = Archive::new(reader);
    let mut next = Extensions::default();
    for entry in archive.entries().map_err(breaks_off)?.raw(true) {
        let mut entry = entry.map_err(breaks_off)?;
        match entry.header().entry_type() {
            EntryType::GNULongName | EntryType::XHeader => extend(&mut next, &mut entry),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let mut next = std::mem::take(&mut next);
                let path = next.path.take().unwrap_or_else(|| entry.path_bytes().into_owned());
                if !each(&path, &next, &mut entry)? {
                    return Ok(());
                }
            }
            // Directories, links, devices, volume labels and the like have no content.
            EntryType::XGlobalHeader | EntryType::GNULongLink => {}
            _ => next = Extensions::default(),
        }
    }
    Ok(())
}

/// Returns whether an entry has only the nonzero pieces of a file, as old GNU tars store it.
fn is_sparse<R: Read>(entry: &Entry<'_, R>) -> bool {
    entry.header().entry_type() == EntryType::GNUSparse
}

impl Walk<'_, '_> {
    /// Hands on a sparse file by name only. Its map may continue in blocks that no size declares.
    fn sparse(&mut self, info: &MemberInfo, is_extended: bool) -> Result<(), Fault> {
        self.take(&info.path)?;
        let mut member = member(self.object, info, Vec::new(), true);
        member.add((Limit::Member.kind_at(0), "is sparse; only its name was read".to_owned()));
        self.last.clone_from(&member.path);
        self.visit(member);
        if is_extended {
            let message = "has a sparse file in many pieces; members after it were not read";
            return Err((Limit::Members.kind_at(0), message.to_owned()));
        }
        Ok(())
    }
}

fn extend(next: &mut Extensions, entry: &mut Entry<'_, impl Read>) {
    let mut header = Vec::new();
    // A broken stream will fail at the next header, too.
    let end = read_up_to(entry, Limit::Extended.bound(), &mut header);
    if entry.header().entry_type() == EntryType::GNULongName {
        header.truncate(header.iter().position(|byte| *byte == 0).unwrap_or(header.len()));
        next.path = Some(header);
        return;
    }
    next.is_cut |= matches!(end, End::Longer);
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
