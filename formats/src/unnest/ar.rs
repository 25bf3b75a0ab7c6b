//! ar archives, and Debian packages, which are ar archives: their members.
//!
//! Source: ar(5) with the long names of GNU and of the BSDs; deb(5).
//!
//! A package's members are those of its `data.tar`. Its `control` file goes to the package's own record.

use std::io::Read;

use super::budget::Fault;
use super::stream::Packing;
use super::{MemberInfo, Walk, clean_path, metadata, tar};
use crate::object::ProblemKind;

/// First bytes of every archive.
const MAGIC: &[u8] = b"!<arch>\n";
/// Length of a member's header, in bytes.
const HEADER_BYTES: usize = 60;

struct Entry<'a> {
    name: Vec<u8>,
    modified: Option<u64>,
    /// Size by the header, in bytes.
    size: u64,
    /// Its bytes; fewer than `size` if the archive breaks off.
    bytes: &'a [u8],
}

/// The members of an archive, in order.
struct Entries<'a> {
    rest: &'a [u8],
    /// GNU's table of long names.
    names: &'a [u8],
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes.get(MAGIC.len()..).unwrap_or_default(), names: &[] }
    }

    fn next(&mut self) -> Result<Option<Entry<'a>>, Fault> {
        // Some archives end with an extra line feed.
        if self.rest.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some((header, rest)) = self.rest.split_at_checked(HEADER_BYTES) else {
            return Err((ProblemKind::Broken, "ar data breaks off in a header".to_owned()));
        };
        let size = number(header.get(48..58).unwrap_or_default());
        let (Some(size), true) = (size, header.ends_with(b"`\n")) else {
            return Err((ProblemKind::Broken, "ar data breaks off: no header follows".to_owned()));
        };
        let end = usize::try_from(size).unwrap_or(usize::MAX).min(rest.len());
        let (bytes, rest) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        // Contents are padded to an even length.
        self.rest = if size % 2 == 1 { rest.get(1..).unwrap_or_default() } else { rest };
        let written = header.get(..16).unwrap_or_default().trim_ascii_end();
        let modified = number(header.get(16..28).unwrap_or_default());
        let mut entry = Entry { name: Vec::new(), modified, size, bytes };
        if written == b"//" {
            self.names = bytes;
        } else if let Some(length) = written.strip_prefix(b"#1/").and_then(number) {
            let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
            let (name, bytes) = bytes.split_at_checked(length).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            (entry.name, entry.bytes) = (name.to_vec(), bytes);
            entry.size = size.saturating_sub(length as u64);
        } else if let Some(at) = written.strip_prefix(b"/").and_then(number) {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let name = self.names.get(at..).unwrap_or_default();
            let name = name.split(|byte| *byte == b'\n').next().unwrap_or_default();
            entry.name = name.strip_suffix(b"/").unwrap_or(name).to_vec();
        } else {
            entry.name = written.strip_suffix(b"/").unwrap_or(written).to_vec();
        }
        Ok(Some(entry))
    }
}

/// Returns whether the entry is one of the archive's own tables.
fn is_table(name: &[u8]) -> bool {
    name.is_empty() || name == b"/" || name == b"/SYM64" || name.starts_with(b"__.SYMDEF")
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let mut entries = Entries::new(&walk.object.bytes);
    while let Some(entry) = entries.next()? {
        if is_table(&entry.name) {
            continue;
        }
        let path = clean_path(&entry.name).to_vec();
        let info = MemberInfo { path, size: entry.size, modified: entry.modified };
        let mut reader = walk.meter(entry.bytes);
        let member = walk.read(&info, &mut reader)?;
        walk.visit(member);
    }
    Ok(())
}

pub(super) fn package(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let mut entries = Entries::new(&walk.object.bytes);
    while let Some(entry) = entries.next()? {
        if entry.name.starts_with(b"control.tar") {
            let control = open_tar(walk, entry.bytes, |_, reader| tar::find(reader, b"control"))?;
            walk.about = control.and_then(|it| metadata::control(&it));
        } else if entry.name.starts_with(b"data.tar") {
            open_tar(walk, entry.bytes, tar::members)?;
        }
        // The last entry is read beyond the front.
        if (entry.bytes.len() as u64) < entry.size && walk.object.rest.is_none() {
            let name = String::from_utf8_lossy(&entry.name);
            return Err((ProblemKind::Broken, format!("ar data breaks off in {name}")));
        }
    }
    Ok(())
}

/// Opens one of the two tars of a package, compressed or not.
fn open_tar<'b, T>(
    walk: &mut Walk<'b, '_>,
    bytes: &'b [u8],
    work: impl FnOnce(&mut Walk<'b, '_>, &mut dyn Read) -> Result<T, Fault>,
) -> Result<T, Fault> {
    match Packing::of(bytes) {
        Some(packing) => {
            let mut reader = walk.unpacked(packing, bytes)?;
            work(walk, &mut reader)
        }
        None => {
            let mut reader = walk.meter(bytes);
            work(walk, &mut reader)
        }
    }
}
