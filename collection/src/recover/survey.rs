//! The survey of a log at its opening: it finds the members, the gaps, and the serials of the gaps.

use std::io;
use std::path::Path;
use std::sync::Arc;

use disk::Disk;

use super::Mode;
use crate::error::{Damage, Error};
use crate::log::holes::Missing;
use crate::log::manifest::Manifest;
use crate::log::segment::{Entry, Segment, Stretch};
use crate::report::{Cut, Problem};

const MEMBER_BYTES_MIN: u64 = 64;

/// Upper bound for the size of a file that is gone, in bytes.
const UNKNOWN_BYTES: u64 = 1 << 32;

/// The known bounds of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogBounds {
    pub(super) commit: u64,
    pub(super) serial: u64,
    /// The last serial that may have been used.
    pub(super) reserved: u64,
    /// The end of the active segment by the manifest, in bytes.
    pub(super) end: u64,
    /// Whether the log was closed in order, at `end`.
    pub(super) closed: bool,
}

/// The highest serial and the highest commit number that may have been used.
pub(super) struct Highest {
    pub(super) serial: u64,
    pub(super) commit: u64,
}

impl Highest {
    pub(super) fn of(manifest: &Manifest, segments: &[Arc<Segment>], bounds: LogBounds) -> Self {
        let mut top = Self { serial: bounds.serial, commit: bounds.commit };
        let missing = manifest.missing.iter().map(|it| (it.last, it.commit));
        for segment in segments {
            for entry in segment.entries().iter() {
                top = top.with((entry.last, entry.commit));
            }
        }
        missing.fold(top, Self::with)
    }

    fn with(self, (serial, commit): (u64, u64)) -> Self {
        Self { serial: self.serial.max(serial), commit: self.commit.max(commit) }
    }
}

/// A segment of the manifest; without `segment` its file is missing.
pub(super) struct ScannedSegment {
    segment: Option<Arc<Segment>>,
    stretches: Vec<Stretch>,
    /// Number of bytes missing at the end of the file.
    missing_bytes: u64,
}

pub(super) struct Survey<'a> {
    pub(super) disk: &'a Disk,
    pub(super) dir: &'a Path,
    pub(super) mode: Mode,
    pub(super) bounds: LogBounds,
    pub(super) cut: Vec<Cut>,
    pub(super) damaged: Vec<Problem>,
}

impl Survey<'_> {
    pub(super) fn scan_segments(
        &mut self,
        manifest: &Manifest,
    ) -> Result<Vec<ScannedSegment>, Error> {
        let (mut parts, mut last) = (Vec::new(), 0);
        for (at, number) in manifest.segments.iter().enumerate() {
            let is_active = at + 1 == manifest.segments.len();
            let sealed = manifest.sealed.get(number).filter(|_| !is_active).copied();
            let opened = Segment::open(self.disk, self.dir, *number, self.mode != Mode::Read);
            let segment = match opened {
                Ok(segment) => segment,
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    // The manifest has only an earlier length of the active segment, so its lost
                    // end may have had anything.
                    let is_empty = is_active && self.bounds.closed && self.bounds.end == 0;
                    let missing_bytes = if is_empty { 0 } else { sealed.unwrap_or(1) };
                    parts.push(ScannedSegment {
                        segment: None,
                        stretches: Vec::new(),
                        missing_bytes,
                    });
                    continue;
                }
                Err(error) => return Err(error),
            };
            let written = segment.file_bytes()?;
            // Bytes after the sealed length are the rest of a failed commit.
            let length = sealed.map_or(written, |it| it.min(written));
            let bodies = is_active || self.mode == Mode::Rebuild;
            let stretches = segment.survey(bodies, last, length, self.bounds.reserved)?;
            last =
                stretches.iter().filter_map(Stretch::entry).next_back().map_or(last, |it| it.last);
            let known = if is_active { Some(self.bounds.end) } else { sealed };
            let missing_bytes = known.map_or(0, |it| it.saturating_sub(length));
            parts.push(ScannedSegment {
                segment: Some(Arc::new(segment)),
                stretches,
                missing_bytes,
            });
        }
        Ok(parts)
    }

    /// Removes the rest of an unacknowledged commit from the end of `parts`; returns the segment to
    /// cut and the offset; `None` if nothing is to be cut.
    pub(super) fn cut_unfinished(
        &mut self,
        parts: &mut [ScannedSegment],
        manifest: &Manifest,
    ) -> Result<Option<(Arc<Segment>, u64)>, Error> {
        let entries = parts.iter().flat_map(|it| &it.stretches).filter_map(Stretch::entry);
        let mut commits: Vec<u64> = entries.map(|it| it.commit).collect();
        let Some(ScannedSegment { segment: Some(segment), stretches, .. }) = parts.last_mut()
        else {
            return Ok(None);
        };
        let whole = whole_commits(stretches);
        let rest = &stretches[whole..];
        let mut left =
            commits.split_off(commits.len() - rest.iter().filter_map(Stretch::entry).count());
        left.dedup();
        // The commit number of bytes outside of members is unknown; the next one is assumed.
        let next = commits.last().copied().unwrap_or(0).max(manifest.compacted) + 1;
        let was_told = left.first().copied().unwrap_or(next) <= self.bounds.commit;
        if rest.is_empty() || was_told || 1 < left.len() || !is_unsynced(segment, rest)? {
            return Ok(None);
        }
        let end = stretches[..whole].last().map_or(0, end_of);
        let why = rest.iter().find_map(Stretch::damage).map_or(Damage::Commit, |(.., why)| why);
        let bytes = rest.last().map_or(0, end_of) - end;
        self.cut.push(Cut { file: segment.path.clone(), offset: end, bytes, why });
        let segment = Arc::clone(segment);
        stretches.truncate(whole);
        Ok(Some((segment, end)))
    }

    /// Adds the members and holes of all segments to their directories. Returns the segments, and
    /// the holes without bytes.
    pub(super) fn place_members(
        &mut self,
        parts: &[ScannedSegment],
        manifest: &Manifest,
    ) -> (Vec<Arc<Segment>>, Vec<Missing>) {
        let (mut segments, mut missing) = (Vec::new(), Vec::new());
        let (mut last, mut commit) = (0, 0);
        for (at, part) in parts.iter().enumerate() {
            let after = || parts[at + 1..].iter().flat_map(|it| &it.stretches);
            let is_active = at + 1 == parts.len();
            let mut entries = Vec::with_capacity(part.stretches.len());
            for (place, stretch) in part.stretches.iter().enumerate() {
                let entry = match *stretch {
                    Stretch::Sound(entry) | Stretch::Damaged(entry, _) => entry,
                    Stretch::Gap { offset, bytes, .. } => {
                        let next = part.stretches[place + 1..].iter().chain(after());
                        let next = next.filter_map(Stretch::entry).next();
                        let is_known = !is_active || offset + bytes <= self.bounds.end;
                        let unknown = if is_known { 0 } else { bytes };
                        let (to, commit) = self.hole_end(next, (last, commit), unknown);
                        hole((last, to), commit, offset, bytes)
                    }
                };
                (last, commit) = (entry.last, entry.commit.max(commit));
                entries.push(entry);
            }
            if part.missing_bytes != 0 {
                let next = after().filter_map(Stretch::entry).next();
                let unknown = if is_active { UNKNOWN_BYTES } else { 0 };
                let (to, upto) = self.hole_end(next, (last, commit), unknown);
                let is_told = part.stretches.last().is_some_and(|it| it.entry().is_none());
                if last < to || !is_told {
                    // If the last serial is there, only earlier changes or notes are missing.
                    let base = if last < to { last } else { first_jump(&entries).unwrap_or(last) };
                    missing.push(Missing { base, last: to, commit: upto });
                }
                (last, commit) = (to, upto);
            }
            if let Some(segment) =
                part.segment.as_ref().filter(|_| is_active || !entries.is_empty())
            {
                segment.extend(entries);
                self.mark(segment, &part.stretches);
                segments.push(Arc::clone(segment));
            }
        }
        let is_open = match parts.last().and_then(|it| it.stretches.last()) {
            Some(Stretch::Sound(entry) | Stretch::Damaged(entry, _)) => !entry.end_of_commit,
            Some(Stretch::Gap { .. }) | None => false,
        };
        let known = manifest.missing.iter().map(|it| it.commit).max().unwrap_or(0);
        // Commits up to `compacted` may have been dropped by compaction.
        if is_open || commit.max(known).max(manifest.compacted) < self.bounds.commit {
            let (to, commit) = (self.bounds.serial.max(last), self.bounds.commit.max(commit));
            missing.push(Missing { base: last, last: to, commit });
        }
        (segments, missing)
    }

    /// Returns the last serial and commit of a hole after `before` (serial and commit). The hole
    /// ends before the member `next`; without `next` it is at the end of the log and has `bytes`
    /// bytes that the manifest does not know.
    fn hole_end(&self, next: Option<&Entry>, before: (u64, u64), bytes: u64) -> (u64, u64) {
        let (serial, commit) = match next {
            Some(next) => (next.base, next.commit.saturating_sub(u64::from(next.start_of_commit))),
            None if self.bounds.closed || bytes == 0 => (self.bounds.serial, self.bounds.commit),
            None => {
                let commit = before.1 + bytes / MEMBER_BYTES_MIN + 1;
                (self.bounds.reserved, self.bounds.commit.max(commit))
            }
        };
        (serial.max(before.0), commit.max(before.1))
    }

    fn mark(&mut self, segment: &Segment, stretches: &[Stretch]) {
        for (offset, bytes, why) in stretches.iter().filter_map(Stretch::damage) {
            segment.mark(offset, why);
            let message = format!("{why} ({bytes} bytes)");
            self.damaged.push(Problem { file: segment.path.clone(), offset, message });
        }
    }
}

/// Makes the entry of bytes that are not a member, with the serials that are missing there.
fn hole((base, last): (u64, u64), commit: u64, offset: u64, bytes: u64) -> Entry {
    Entry {
        base,
        last,
        commit,
        offset,
        bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
        changes: 0,
        local: base == last,
        start_of_commit: false,
        end_of_commit: false,
    }
}

/// Returns the last serial before the first jump between members; `None` if there is no jump. A
/// jump means that the segment was compacted, or lacks members.
fn first_jump(entries: &[Entry]) -> Option<u64> {
    let mut pairs = entries.iter().zip(entries.iter().skip(1));
    pairs.find(|(it, next)| it.last < next.base).map(|(it, _)| it.last)
}

/// Returns the number of stretches up to the end of the last whole commit.
fn whole_commits(stretches: &[Stretch]) -> usize {
    let (mut whole, mut is_sound) = (0, false);
    for (at, stretch) in stretches.iter().enumerate() {
        match stretch {
            Stretch::Sound(entry) => {
                is_sound |= entry.start_of_commit;
                if entry.end_of_commit && is_sound {
                    (whole, is_sound) = (at + 1, false);
                }
            }
            Stretch::Damaged(..) | Stretch::Gap { .. } => is_sound = false,
        }
    }
    whole
}

/// Returns whether the end of the log may be the rest of an unacknowledged commit after a power
/// cut. Then some of its sectors may be zeros, because they were not written yet. Bytes that are
/// wrong without such zeros may have been acknowledged.
fn is_unsynced(segment: &Segment, rest: &[Stretch]) -> Result<bool, Error> {
    let mut is_damaged = false;
    for (offset, bytes, why) in rest.iter().filter_map(Stretch::damage) {
        if why == Damage::Truncated || segment.misses_sector(offset, bytes)? {
            return Ok(true);
        }
        is_damaged = true;
    }
    Ok(!is_damaged)
}

fn end_of(stretch: &Stretch) -> u64 {
    match stretch.damage() {
        Some((offset, bytes, _)) => offset + bytes,
        None => stretch.entry().map_or(0, Entry::end),
    }
}
