//! Members of a tar file, as a stream.
//!
//! Source: POSIX.1-2001 pax interchange format; GNU tar's long names.
//!
//! The headers are read raw and the long names taken here, because a name is a member like any other
//! on the wire: its size is what the archive says, and only we bound it.
//!
//! Sans-I/O.

use std::cell::Cell;
use std::io::Read;

use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{
    Budget, End, Member, Metered, PATH_BYTES_MAX, Stop, clean_path, longer, member, read_up_to,
};
use crate::object::{Object, Problem, ProblemKind};

/// Longest extended header that is read, in bytes.
const EXTENDED_BYTES_MAX: usize = 16 * PATH_BYTES_MAX;

/// What extended headers say about the next member.
#[derive(Default)]
struct Next {
    path: Option<Vec<u8>>,
    modified: Option<u64>,
}

/// See [`super::members`].
pub(super) fn members<R: Read>(
    object: &Object,
    reader: Metered<'_, R>,
    budget: &Budget<'_>,
    stop: &Cell<Option<Stop>>,
    visit: &mut dyn FnMut(Member),
) -> Vec<Problem> {
    let mut archive = Archive::new(reader);
    let mut next = Next::default();
    let mut last = String::new();
    let outcome = archive.entries().and_then(|entries| {
        for entry in entries.raw(true) {
            let mut entry = entry?;
            match entry.header().entry_type() {
                EntryType::GNULongName | EntryType::XHeader => extend(&mut next, &mut entry),
                EntryType::Regular | EntryType::Continuous => {
                    let Next { path, modified } = std::mem::take(&mut next);
                    let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
                    if let Err(problem) = budget.take_member(object, &path) {
                        return Ok(Some(problem));
                    }
                    let member = file(object, &path, modified, &mut entry, budget, stop);
                    last.clone_from(&member.path);
                    visit(member);
                }
                // Directories, links and devices have no content; volume labels and the like neither.
                EntryType::XGlobalHeader | EntryType::GNULongLink => {}
                _ => next = Next::default(),
            }
        }
        Ok(None)
    });
    match (outcome, stop.get()) {
        (_, Some(stop)) => vec![at(stop.problem(&object.url), &last)],
        (Ok(problem), None) => problem.into_iter().collect(),
        (Err(error), None) => {
            let message = format!("tar data breaks off: {error}");
            vec![at(Problem::new(&object.url, ProblemKind::Broken, message), &last)]
        }
    }
}

/// Names the last member that was begun.
fn at(mut problem: Problem, last: &str) -> Problem {
    if !last.is_empty() {
        problem.message.push_str(" (last member: ");
        problem.message.push_str(last);
        problem.message.push(')');
    }
    problem
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

fn file(
    object: &Object,
    path: &[u8],
    modified: Option<u64>,
    entry: &mut Entry<'_, impl Read>,
    budget: &Budget<'_>,
    stop: &Cell<Option<Stop>>,
) -> Member {
    let modified = modified.or_else(|| entry.header().mtime().ok());
    let size = entry.size();
    let mut bytes = Vec::new();
    let end = read_up_to(entry, budget.limits.member_bytes_max, &mut bytes);
    let short = (bytes.len() as u64) < size;
    let mut member = member(object, clean_path(path), size, modified, bytes, short);
    if matches!(end, End::Longer) {
        member.problems.push(longer(&member, budget));
    } else if short && stop.get().is_none() {
        let message = format!("breaks off after {} of {size} bytes", member.object.bytes.len());
        member.problems.push(Problem::new(&member.object.url, ProblemKind::Broken, message));
    }
    member
}
