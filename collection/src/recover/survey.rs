//! Going through a log as it is opened: which members there are, what is no member, and which serials
//! that stands for.

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

/// A member of a commit takes so many bytes at least.
const MEMBER_BYTES_MIN: u64 = 64;

/// A file that is gone had fewer bytes.
const UNKNOWN_BYTES: u64 = 1 << 32;

/// What is known of how far the log went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) commit: u64,
    pub(super) serial: u64,
    /// The last serial that may have been given.
    pub(super) reserved: u64,
    /// Where that is in the segment that is written to, in bytes, as far as the manifest knows.
    pub(super) end: u64,
    /// It went no further.
    pub(super) closed: bool,
}

/// The last serial and commit that may have been given.
pub(super) struct Top {
    pub(super) serial: u64,
    pub(super) commit: u64,
}

impl Top {
    pub(super) fn of(manifest: &Manifest, segments: &[Arc<Segment>], known: Known) -> Self {
        let mut top = Self { serial: known.serial, commit: known.commit };
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

/// A segment on the list; `None`: its file is not there.
pub(super) struct Part {
    segment: Option<Arc<Segment>>,
    stretches: Vec<Stretch>,
    /// Bytes that the end of the file lacks, of those that it once had.
    lacks: u64,
}

pub(super) struct Survey<'a> {
    pub(super) disk: &'a Disk,
    pub(super) dir: &'a Path,
    pub(super) mode: Mode,
    pub(super) known: Known,
    pub(super) cut: Vec<Cut>,
    pub(super) damaged: Vec<Problem>,
}

impl Survey<'_> {
    /// Goes through all segments.
    pub(super) fn parts(&mut self, manifest: &Manifest) -> Result<Vec<Part>, Error> {
        let (mut parts, mut last) = (Vec::new(), 0);
        for (at, number) in manifest.segments.iter().enumerate() {
            let is_active = at + 1 == manifest.segments.len();
            let sealed = manifest.sealed.get(number).filter(|_| !is_active).copied();
            let opened = Segment::open(self.disk, self.dir, *number, self.mode != Mode::Read);
            let segment = match opened {
                Ok(segment) => segment,
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    // The list names only what was there: at its end it may have had anything.
                    let is_empty = is_active && self.known.closed && self.known.end == 0;
                    let lacks = if is_empty { 0 } else { sealed.unwrap_or(1) };
                    parts.push(Part { segment: None, stretches: Vec::new(), lacks });
                    continue;
                }
                Err(error) => return Err(error),
            };
            let written = segment.file_bytes()?;
            // What follows is left of a commit that failed: nobody was told of it.
            let length = sealed.map_or(written, |it| it.min(written));
            let bodies = is_active || self.mode == Mode::Rebuild;
            let stretches = segment.survey(bodies, last, length, self.known.reserved)?;
            last =
                stretches.iter().filter_map(Stretch::entry).next_back().map_or(last, |it| it.last);
            let known = if is_active { Some(self.known.end) } else { sealed };
            let lacks = known.map_or(0, |it| it.saturating_sub(length));
            parts.push(Part { segment: Some(Arc::new(segment)), stretches, lacks });
        }
        Ok(parts)
    }

    /// Takes what is left of a commit that was never acknowledged off the end of the log; returns where
    /// its file is to be cut.
    pub(super) fn cut_unfinished(
        &mut self,
        parts: &mut [Part],
        manifest: &Manifest,
    ) -> Result<Option<(Arc<Segment>, u64)>, Error> {
        let entries = parts.iter().flat_map(|it| &it.stretches).filter_map(Stretch::entry);
        let mut commits: Vec<u64> = entries.map(|it| it.commit).collect();
        let Some(Part { segment: Some(segment), stretches, .. }) = parts.last_mut() else {
            return Ok(None);
        };
        let whole = whole_commits(stretches);
        let rest = &stretches[whole..];
        let mut left =
            commits.split_off(commits.len() - rest.iter().filter_map(Stretch::entry).count());
        left.dedup();
        // Of bytes that are no member nobody knows of which commit they were: of the next one.
        let next = commits.last().copied().unwrap_or(0).max(manifest.compacted) + 1;
        let was_told = left.first().copied().unwrap_or(next) <= self.known.commit;
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

    /// Puts the members of all segments in their places, the holes among them; returns the segments,
    /// and the holes without bytes.
    pub(super) fn settle(
        &mut self,
        parts: &[Part],
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
                        let is_known = !is_active || offset + bytes <= self.known.end;
                        let unknown = if is_known { 0 } else { bytes };
                        let (to, commit) = self.bounds(next, (last, commit), unknown);
                        hole((last, to), commit, offset, bytes)
                    }
                };
                (last, commit) = (entry.last, entry.commit.max(commit));
                entries.push(entry);
            }
            if part.lacks != 0 {
                let next = after().filter_map(Stretch::entry).next();
                let unknown = if is_active { UNKNOWN_BYTES } else { 0 };
                let (to, upto) = self.bounds(next, (last, commit), unknown);
                let is_told = part.stretches.last().is_some_and(|it| it.entry().is_none());
                if last < to || !is_told {
                    // With all of its end there, it lacks something before that, or notes.
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
        // What has been compacted may have been dropped.
        if is_open || commit.max(known).max(manifest.compacted) < self.known.commit {
            let (to, commit) = (self.known.serial.max(last), self.known.commit.max(commit));
            missing.push(Missing { base: last, last: to, commit });
        }
        (segments, missing)
    }

    /// Returns the last serial and commit that may have been in a hole after `before` (the same), which
    /// goes up to the member `next`, or is at the end of the log and has so many bytes that nobody knows.
    fn bounds(&self, next: Option<&Entry>, before: (u64, u64), bytes: u64) -> (u64, u64) {
        let (serial, commit) = match next {
            Some(next) => (next.base, next.commit.saturating_sub(u64::from(next.start_of_commit))),
            None if self.known.closed || bytes == 0 => (self.known.serial, self.known.commit),
            None => {
                let commit = before.1 + bytes / MEMBER_BYTES_MIN + 1;
                (self.known.reserved, self.known.commit.max(commit))
            }
        };
        (serial.max(before.0), commit.max(before.1))
    }

    /// Marks what is damaged.
    fn mark(&mut self, segment: &Segment, stretches: &[Stretch]) {
        for (offset, bytes, why) in stretches.iter().filter_map(Stretch::damage) {
            segment.mark(offset, why);
            let message = format!("{why} ({bytes} bytes)");
            self.damaged.push(Problem { file: segment.path.clone(), offset, message });
        }
    }
}

/// Makes the entry of bytes that are no member, in the place of those that were there.
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

/// Returns the serial behind which the members of a segment do not go on with the next one, if they do not: it
/// was compacted, or lacks some.
fn first_jump(entries: &[Entry]) -> Option<u64> {
    let mut pairs = entries.iter().zip(entries.iter().skip(1));
    pairs.find(|(it, next)| it.last < next.base).map(|(it, _)| it.last)
}

/// Returns how many stretches there are up to the end of the last commit that is all there.
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

/// Whether the end of the log may be what a power cut has left of a commit that was never acknowledged:
/// of bytes that were not synced any sectors may be there, and zeros in the place of the others.
/// Bytes that are all there but wrong may have been acknowledged once.
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
