//! Members of a zip file, in the order of its directory.
//!
//! Source: PKWARE's APPNOTE.
//!
//! Sans-I/O.

use std::cell::Cell;
use std::io::{Cursor, Read};

use zip::result::ZipError;
use zip::{DateTime, ZipArchive};

use super::{Budget, End, Member, Metered, clean_path, longer, member, read_up_to};
use crate::object::{Object, Problem, ProblemKind};

/// Most directory entries that are looked at before the archive is refused: each costs memory.
const ENTRIES_MAX: usize = 100_000;
/// What each directory entry starts with.
const ENTRY: &[u8] = b"PK\x01\x02";

/// See [`super::members`].
pub(super) fn members(
    object: &Object,
    budget: &Budget<'_>,
    visit: &mut dyn FnMut(Member),
) -> Vec<Problem> {
    if ENTRIES_MAX < memchr::memmem::find_iter(&object.bytes, ENTRY).take(ENTRIES_MAX + 1).count() {
        let message = format!("has more than {ENTRIES_MAX} directory entries; not opened");
        return vec![Problem::new(&object.url, ProblemKind::Limit, message)];
    }
    let mut archive = match ZipArchive::new(Cursor::new(&object.bytes)) {
        Ok(archive) => archive,
        Err(error) => {
            let message = format!("zip directory cannot be read: {error}");
            return vec![Problem::new(&object.url, ProblemKind::Broken, message)];
        }
    };
    for index in 0..archive.len() {
        let Ok(entry) = archive.by_index_data(index) else { continue };
        if !entry.is_file() {
            continue;
        }
        if let Err(problem) = budget.take_member(object, entry.name_raw()) {
            return vec![problem];
        }
        let about = About {
            path: clean_path(entry.name_raw()).to_vec(),
            size: entry.size(),
            modified: entry.last_modified().and_then(seconds),
            packed: usize::try_from(entry.compressed_size()).unwrap_or(usize::MAX),
            locked: entry.encrypted(),
        };
        let stop = Cell::new(None);
        let member = if about.locked {
            let problem = (ProblemKind::Locked, "is locked by a password".to_owned());
            closed(object, &about, problem)
        } else {
            match archive.by_index(index) {
                Ok(file) => {
                    let mut reader = Metered::new(file, about.packed, |_| 0, budget, &stop);
                    open(object, &about, &mut reader, budget)
                }
                Err(error) => closed(object, &about, (ProblemKind::Broken, refusal(&error))),
            }
        };
        visit(member);
        match stop.get() {
            // A member that swells is that member's fault alone.
            None | Some(super::Stop::Ratio(_)) => {}
            Some(stop) => return vec![stop.problem(&object.url)],
        }
    }
    Vec::new()
}

/// What the directory says about a member.
struct About {
    path: Vec<u8>,
    size: u64,
    modified: Option<u64>,
    packed: usize,
    locked: bool,
}

fn open<R: Read>(
    object: &Object,
    about: &About,
    reader: &mut Metered<'_, R>,
    budget: &Budget<'_>,
) -> Member {
    let mut bytes = Vec::new();
    let end = read_up_to(reader, budget.limits.member_bytes_max, &mut bytes);
    let kept = bytes.len();
    let truncated = !matches!(end, End::Whole);
    // The directory may lie about the size; what came out does not.
    let size = if truncated { about.size.max(kept as u64) } else { kept as u64 };
    let mut member = member(object, &about.path, size, about.modified, bytes, truncated);
    match (end, reader.stop.get()) {
        (End::Longer, _) => member.problems.push(longer(&member, budget)),
        (End::Broken(_), Some(stop)) => member.problems.push(stop.problem(&member.object.url)),
        (End::Broken(error), None) => {
            let message = format!("breaks off after {kept} good bytes: {error}");
            member.problems.push(Problem::new(&member.object.url, ProblemKind::Broken, message));
        }
        (End::Whole, _) => {}
    }
    member
}

/// A member of which only the name can be told.
fn closed(object: &Object, about: &About, problem: (ProblemKind, String)) -> Member {
    let mut member =
        member(object, &about.path, about.size, about.modified, Vec::new(), 0 < about.size);
    let (kind, message) = problem;
    member.problems.push(Problem::new(&member.object.url, kind, message));
    member
}

fn refusal(error: &ZipError) -> String {
    match error {
        ZipError::CompressionMethodNotSupported(method) => {
            format!("is compressed by method {method}, which is not known here")
        }
        error => format!("cannot be read: {error}"),
    }
}

/// Unix seconds of a DOS time, which knows no time zone and is taken as UTC.
fn seconds(time: DateTime) -> Option<u64> {
    let part = |it: u8| i8::try_from(it).ok();
    let civil = jiff::civil::DateTime::new(
        i16::try_from(time.year()).ok()?,
        part(time.month())?,
        part(time.day())?,
        part(time.hour())?,
        part(time.minute())?,
        part(time.second())?,
        0,
    );
    let zoned = civil.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(zoned.timestamp().as_second()).ok()
}
