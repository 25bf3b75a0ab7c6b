//! Recovery: opening a log after a crash or a disk fault, with repairs and a report.
//!
//! A commit exists when its last member, which has the commit flag, is durable. Bytes after the
//! last whole commit were never acknowledged, and are cut off. Damage anywhere else stays where it
//! is, and the epoch stays the same. The member is listed as damaged, and its serials are a hole
//! (see [`holes`](crate::log::holes)) until its live objects have been fetched or gathered again.
//! If a file is too short or missing, the hole is on the manifest's list.
//!
//! No serial is used twice. A log that was not closed in order may have lost its end without a
//! trace. So the next commit gets serials above all those that may have been used; the manifest has
//! a bound for these.
//!
//! Source: docs/collection.md, "On disk".

pub(crate) mod read_only;
pub(crate) mod replay;
mod survey;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::change::{Epoch, Stamp};
use crate::error::{Damage, Error};
use crate::keys::Watermark;
use crate::log::holes::Missing;
use crate::log::manifest::Manifest;
use crate::log::segment::{SERIAL_MAX, Segment, Stretch};
use crate::log::{Halt, Log, RESERVE, Tail, View};
use crate::report::{Cut, Problem};
use disk::Disk;
use survey::{Highest, LogBounds, Survey};

/// Number of serials skipped if the manifest was lost, and with it the bound of the serials used.
const SERIALS_SKIPPED: u64 = 1 << 20;
/// Maximum number of skips that are remembered; a cursor in an older one gets a snapshot.
const SKIPS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// For reading and writing.
    Write,
    /// For reading and writing, with a check of every member's body, and if necessary without a
    /// manifest. A new epoch begins: the folder may be a backup, whose serials consumers know with
    /// other changes.
    Rebuild,
    /// For reading: nothing in the folder is changed.
    Read,
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) log: Log,
    pub(crate) tail: Tail,
    pub(crate) cut: Vec<Cut>,
    /// Damaged or missing members.
    pub(crate) damaged: Vec<Problem>,
}

/// Makes an epoch that starts at `now` and is newer than `before`.
pub(crate) fn fresh_epoch(now: Stamp, before: Epoch) -> Epoch {
    let epoch = Epoch::new(now, getrandom::u64().unwrap_or(now.0));
    epoch.max(Epoch(before.0.saturating_add(1)))
}

/// Opens the log in `dir`, or makes it. `indexed` is the watermark of the key index.
///
/// # Errors
///
/// [`Error::Manifest`], unless the manifest is rebuilt; or the system's error.
pub(crate) fn open(
    disk: &Disk,
    dir: &Path,
    now: Stamp,
    mode: Mode,
    indexed: Option<Watermark>,
) -> Result<Opened, Error> {
    let found = segments_in(dir)?;
    let (mut manifest, listed, replaced) = manifest(disk, dir, &found, mode, now)?;
    let before = manifest.clone();
    let indexed = indexed.filter(|it| it.epoch == manifest.epoch).unwrap_or_default();
    let bounds = LogBounds {
        commit: manifest.commit.max(indexed.commit),
        serial: manifest.serial.max(indexed.serial),
        reserved: match manifest.reserved {
            _ if manifest.closed => manifest.serial,
            0 => manifest.serial.max(indexed.serial) + SERIALS_SKIPPED,
            reserved => reserved,
        },
        end: manifest.end,
        closed: manifest.closed,
    };
    let mut survey = Survey { disk, dir, mode, bounds, cut: Vec::new(), damaged: Vec::new() };
    let mut parts = survey.scan_segments(&manifest)?;
    let truncate = survey.cut_unfinished(&mut parts, &manifest)?;
    let (segments, missing) = survey.place_members(&parts, &manifest);
    let Survey { cut, mut damaged, .. } = survey;
    manifest.missing.extend(missing);
    manifest.missing.dedup();
    mark_damaged(&mut manifest, &segments);
    let highest = Highest::of(&manifest, &segments, bounds);
    if !listed {
        // The rest of the log, and its horizon, are unknown.
        (manifest.lost, manifest.doubt) = (true, highest.serial);
    }
    damaged.extend(manifest.missing.iter().map(|it| missing_problem(dir, it)).chain(replaced));
    (manifest.serial, manifest.commit) = (highest.serial, highest.commit);
    let is_new = segments.is_empty() && highest.serial == 0 && highest.commit == 0;
    if mode == Mode::Rebuild {
        manifest.epoch = fresh_epoch(now, manifest.epoch);
    }
    if mode != Mode::Read && !before.closed && !is_new {
        skip(&mut manifest, bounds.reserved);
    }
    manifest.closed = false;
    let mut segments = segments;
    let mut halt = None;
    if mode != Mode::Read {
        let written = write(disk, dir, (&mut manifest, &before), &mut segments);
        halt = wait_for_space(written, dir, &segments)?;
    } else if segments.is_empty() {
        segments.push(Arc::new(Segment::open_to_read(disk, "/dev/null".into(), 0)?));
    }
    if let Some((segment, end)) = truncate.filter(|_| mode != Mode::Read && halt.is_none()) {
        let cut = segment.file.set_len(end).and_then(|()| segment.file.sync_all());
        cut.map_err(|error| Error::io("cannot cut", &segment.path, error))?;
    }
    let mut tail = tail(manifest, &segments)?;
    tail.halt = halt;
    let view = View {
        segments,
        version: tail.version(),
        horizon: tail.manifest.horizon,
        compacted: tail.manifest.compacted,
        residue: tail.manifest.residue,
        purged: tail.manifest.purged.min(tail.serial),
        doubt: tail.manifest.doubt,
        missing: tail.manifest.missing.as_slice().into(),
        skips: tail.manifest.skips.as_slice().into(),
    };
    Ok(Opened { log: Log::new(disk, dir, view), tail, cut, damaged })
}

/// Writes a changed manifest. Begins a segment if there is none or the last ends with damage.
fn write(
    disk: &Disk,
    dir: &Path,
    (manifest, before): (&mut Manifest, &Manifest),
    segments: &mut Vec<Arc<Segment>>,
) -> Result<(), Error> {
    if segments.is_empty() {
        // The manifest is written first: a file that it does not name is a leftover.
        let number = next_number(manifest);
        manifest.segments.clear();
        manifest.write(disk, dir)?;
        segments.push(Arc::new(Segment::create(disk, dir, number)?));
    }
    if segments.last().is_some_and(|it| it.ends_damaged()) {
        // Later commits in that file would be taken for the rest of the damaged member.
        segments.push(Arc::new(Segment::create(disk, dir, next_number(manifest))?));
    }
    manifest.segments = segments.iter().map(|it| it.number).collect();
    let sealed = segments.split_last().map_or(&[][..], |(_, sealed)| sealed);
    manifest.end = segments.last().map_or(0, |it| it.end());
    manifest.sealed = sealed.iter().map(|it| (it.number, it.end())).collect();
    manifest.reserved = manifest.serial + RESERVE;
    if manifest != before {
        manifest.write(disk, dir)?;
    }
    Ok(())
}

/// Lets a collection be served although there is no space for the manifest: the first write to the
/// log writes the manifest before anything else.
fn wait_for_space(
    written: Result<(), Error>,
    dir: &Path,
    segments: &[Arc<Segment>],
) -> Result<Option<Halt>, Error> {
    match written {
        Err(error) if error.may_pass() && segments.last().is_some_and(|it| !it.ends_damaged()) => {
            tracing::warn!(dir = %dir.display(), %error, "the collection cannot be written yet");
            Ok(Some(Halt::Unsure))
        }
        written => written.map(|()| None),
    }
}

/// Skips the serials up to `reserved`, which may have been used.
fn skip(manifest: &mut Manifest, reserved: u64) {
    if manifest.serial < reserved {
        manifest.skips.push((manifest.serial, reserved));
        manifest.serial = reserved;
    }
    if SKIPS_MAX < manifest.skips.len() {
        let (_, to) = manifest.skips.remove(0);
        manifest.horizon = manifest.horizon.max(to);
    }
    let horizon = manifest.horizon;
    manifest.skips.retain(|(_, to)| horizon < *to);
}

/// Marks the members that were found damaged before, and forgets those that are gone.
fn mark_damaged(manifest: &mut Manifest, segments: &[Arc<Segment>]) {
    manifest.damaged.retain(|(number, offset)| {
        let Some(segment) = segments.iter().find(|it| it.number == *number) else { return false };
        let is_there = segment.entries().iter().any(|it| it.offset == *offset);
        if is_there && !segment.damaged().iter().any(|(it, _)| it.offset == *offset) {
            segment.mark(*offset, Damage::Checksum);
        }
        is_there
    });
}

/// Returns the problem that describes a hole without bytes.
pub(crate) fn missing_problem(dir: &Path, missing: &Missing) -> Problem {
    let Missing { base, last, .. } = missing;
    let message = match base < last {
        true => format!("the changes with the serials {} to {last} are missing", base + 1),
        false => format!("notes behind serial {last} are missing"),
    };
    Problem { file: dir.to_owned(), offset: 0, message }
}

/// Reads the manifest or its copy. Makes one for a new directory, or, when rebuilding, from the
/// files. Also returns whether it lists all segments (it does not if it was made from the files),
/// and the problem if the copy is used.
fn manifest(
    disk: &Disk,
    dir: &Path,
    found: &BTreeSet<u64>,
    mode: Mode,
    now: Stamp,
) -> Result<(Manifest, bool, Option<Problem>), Error> {
    let mut wrong = match Manifest::read(dir) {
        Ok(Some(manifest)) => {
            for number in found.iter().filter(|it| !manifest.segments.contains(it)) {
                if mode != Mode::Read {
                    remove(disk, &Segment::path_in(dir, *number))?;
                }
            }
            return Ok((manifest, true, None));
        }
        Ok(None) => None,
        Err(error @ Error::Manifest { .. }) => Some(error),
        Err(error) => return Err(error),
    };
    let copied = match Manifest::read_copy(dir) {
        Ok(copy) => copy,
        Err(error @ Error::Manifest { .. }) => {
            wrong = wrong.or(Some(error));
            None
        }
        Err(error) => return Err(error),
    };
    // The copy may belong to a replacement that did not happen. So it is used only if all its
    // segments exist, or if there are no other segments. Segments that it does not name stay for
    // now.
    let is_there = |it: &Manifest| {
        it.segments.iter().all(|it| found.contains(it))
            || found.iter().all(|found| it.segments.contains(found))
    };
    match copied {
        Some(copy) if is_there(&copy) => {
            let message = wrong.map_or_else(|| "it is missing".to_owned(), |it| it.to_string());
            let message = format!("{message}; its copy is taken");
            let problem = Problem { file: Manifest::path_in(dir), offset: 0, message };
            return Ok((copy, true, Some(problem)));
        }
        None if wrong.is_none() && found.is_empty() => {
            let epoch = fresh_epoch(now, Epoch(0));
            return Ok((Manifest { epoch, closed: true, ..Manifest::default() }, true, None));
        }
        Some(_) | None => {}
    }
    if mode == Mode::Rebuild {
        return Ok((unlisted(disk, dir, found, now)?, false, None));
    }
    let (path, what) = (Manifest::path_in(dir), "it is missing".to_owned());
    Err(wrong.unwrap_or(Error::Manifest { path, what }))
}

/// Finds the position of the next commit.
fn tail(manifest: Manifest, segments: &[Arc<Segment>]) -> Result<Tail, Error> {
    let mut tail = Tail {
        serial: manifest.serial,
        stamp: Stamp(manifest.stamp),
        commit: manifest.commit,
        active: segments.last().map(Arc::clone).ok_or_else(|| Error::Manifest {
            path: Path::new("MANIFEST").to_owned(),
            what: "it names no segment".to_owned(),
        })?,
        end: 0,
        next: next_number(&manifest),
        halt: None,
        manifest,
    };
    tail.end = tail.active.end();
    for segment in segments.iter().rev() {
        let last = segment.entries().iter().rev().find(|it| it.changes != 0).copied();
        // A member with an unreadable header has no known stamp.
        let header = last.and_then(|entry| segment.header(&entry).ok());
        if let Some((_, stamp)) = header.and_then(|it| it.entries.last().copied()) {
            tail.stamp = tail.stamp.max(stamp);
            break;
        }
    }
    Ok(tail)
}

/// Returns the numbers of the segments on disk.
pub(crate) fn segments_in(dir: &Path) -> Result<BTreeSet<u64>, Error> {
    let mut found = BTreeSet::new();
    let listing = fs::read_dir(dir).map_err(|error| Error::io("cannot list", dir, error))?;
    for item in listing {
        let item = item.map_err(|error| Error::io("cannot list", dir, error))?;
        found.extend(item.file_name().to_str().and_then(Segment::number_in));
    }
    Ok(found)
}

fn next_number(manifest: &Manifest) -> u64 {
    manifest.segments.iter().max().map_or(1, |it| it + 1)
}

/// Makes a manifest from the files alone, in the order of their first serials. Of two files that
/// begin with the same serial, the newer one, which compaction wrote, comes first.
fn unlisted(disk: &Disk, dir: &Path, found: &BTreeSet<u64>, now: Stamp) -> Result<Manifest, Error> {
    let mut order = Vec::new();
    for number in found {
        let segment = Segment::open(disk, dir, *number, false)?;
        let survey = segment.survey(false, 0, segment.file_bytes()?, SERIAL_MAX)?;
        let Some(first) = survey.iter().find_map(Stretch::entry) else { continue };
        order.push((first.base, u64::MAX - number));
    }
    order.sort_unstable();
    Ok(Manifest {
        epoch: fresh_epoch(now, Epoch(0)),
        segments: order.iter().map(|(_, it)| u64::MAX - it).collect(),
        ..Manifest::default()
    })
}

fn remove(disk: &Disk, path: &Path) -> Result<(), Error> {
    tracing::info!(path = %path.display(), "removing a segment that is on no list");
    disk.remove_file(path).map_err(|error| Error::io("cannot remove", path, error))
}
