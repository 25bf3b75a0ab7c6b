//! Opening a log: what a crash or a bad disk left is found, cut, kept and told.
//!
//! A commit exists when its last member, which is flagged, is durable. What follows the last whole
//! commit was never acknowledged and is cut in place. Damage anywhere else has cost acknowledged
//! changes: the good part is copied to a new segment, the damaged file is put aside, and a new epoch
//! begins, so that consumers start over.
//!
//! Source: DESIGN.md, "On disk".

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::change::{Epoch, Stamp};
use crate::disk::Disk;
use crate::error::{Damage, Error};
use crate::log::{Log, Tail, View};
use crate::manifest::Manifest;
use crate::report::Cut;
use crate::segment::{Entry, Segment, Survey};

/// A log that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) log: Log,
    pub(crate) tail: Tail,
    pub(crate) cut: Vec<Cut>,
}

/// Makes an epoch that starts at `now` and is newer than `before`.
pub(crate) fn fresh_epoch(now: Stamp, before: Epoch) -> Epoch {
    let epoch = Epoch::new(now, getrandom::u64().unwrap_or(now.0));
    epoch.max(Epoch(before.0.saturating_add(1)))
}

/// Opens the log in `dir`, or makes one. `thorough` checks the bodies of all members, not only of
/// the last segment, and does without a manifest if it must.
///
/// # Errors
///
/// [`Error::Manifest`] unless `thorough`; the system's.
pub(crate) fn open(disk: &Disk, dir: &Path, now: Stamp, thorough: bool) -> Result<Opened, Error> {
    let found = segments_in(dir)?;
    let (mut manifest, listed) = manifest(disk, dir, &found, thorough, now)?;
    let mut recovery = Recoverer {
        disk,
        dir,
        cut: Vec::new(),
        next: next_number(&manifest),
        last: 0,
        replaced: Vec::new(),
    };
    let mut segments = Vec::new();
    let mut truncate = None;
    for (at, number) in manifest.segments.iter().enumerate() {
        let active = at + 1 == manifest.segments.len();
        let sealed = manifest.sealed.get(number).filter(|_| !active).copied();
        match recovery.segment(*number, active, sealed, thorough)? {
            Taken::Whole(segment) => segments.push(segment),
            Taken::Cut(segment, end) => {
                truncate = Some((Arc::clone(&segment), end));
                segments.push(segment);
            }
            Taken::Gone => {}
        }
    }
    let before = manifest.clone();
    recovery.miss_commits(&mut manifest, &segments);
    let cut = recovery.cut;
    manifest.lost |= !listed || cut.iter().any(|it| it.lost);
    // A thorough opening also follows a restored backup, whose serials others know otherwise.
    if thorough || cut.iter().any(|it| it.lost) {
        manifest.epoch = fresh_epoch(now, manifest.epoch);
    }
    if segments.is_empty() {
        // The manifest first: a file that it does not name is a leftover.
        manifest.segments.clear();
        manifest.write(disk, dir)?;
        segments.push(Arc::new(Segment::create(disk, dir, recovery.next)?));
    }
    manifest.segments = segments.iter().map(|it| it.number).collect();
    let sealed = segments.split_last().map_or(&[][..], |(_, sealed)| sealed);
    manifest.sealed = sealed.iter().map(|it| (it.number, it.end())).collect();
    if manifest != before || !listed {
        manifest.write(disk, dir)?;
    }
    // Only now: a file on the list must never be missing.
    for path in recovery.replaced {
        let aside = path.with_extension("gz.damaged");
        disk.rename(&path, &aside).map_err(|error| Error::io("cannot rename", &path, error))?;
    }
    if let Some((segment, end)) = truncate {
        let cut = segment.file.set_len(end).and_then(|()| segment.file.sync_all());
        cut.map_err(|error| Error::io("cannot cut", &segment.path, error))?;
    }
    let tail = tail(manifest, &segments)?;
    let view = View {
        segments,
        version: tail.version(),
        horizon: tail.manifest.horizon,
        compacted: tail.manifest.compacted,
        residue: tail.manifest.residue,
        purged: tail.manifest.purged.min(tail.serial),
    };
    Ok(Opened { log: Log::new(disk, dir, view), tail, cut })
}

/// Reads the manifest, or makes one for a new directory, or one of the files that are there if it
/// must; says whether it can be relied on. If so, files that it does not name are leftovers.
fn manifest(
    disk: &Disk,
    dir: &Path,
    found: &BTreeSet<u64>,
    thorough: bool,
    now: Stamp,
) -> Result<(Manifest, bool), Error> {
    let manifest = match Manifest::read(dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) if found.is_empty() => {
            Manifest { epoch: fresh_epoch(now, Epoch(0)), ..Manifest::default() }
        }
        Ok(None) if !thorough => {
            let path = Manifest::path_in(dir);
            return Err(Error::Manifest { path, what: "it is missing".to_owned() });
        }
        Err(error @ Error::Manifest { .. }) if !thorough => return Err(error),
        Ok(None) | Err(Error::Manifest { .. }) => {
            return Ok((unlisted(disk, dir, found, now)?, false));
        }
        Err(error) => return Err(error),
    };
    for number in found.iter().filter(|it| !manifest.segments.contains(it)) {
        remove(disk, &Segment::path_in(dir, *number))?;
    }
    Ok((manifest, true))
}

/// Finds where the writer goes on.
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
    let mut last: Option<(&Arc<Segment>, Entry)> = None;
    for segment in segments {
        for entry in segment.entries().iter() {
            tail.commit = tail.commit.max(entry.commit);
            tail.serial = tail.serial.max(entry.last);
            if entry.changes != 0 {
                last = Some((segment, *entry));
            }
        }
    }
    if let Some((segment, entry)) = last {
        let header = segment.header(&entry)?;
        let stamp = header.entries.last().map_or(Stamp(0), |(_, stamp)| *stamp);
        tail.stamp = tail.stamp.max(stamp);
    }
    Ok(tail)
}

/// What became of a segment.
enum Taken {
    Whole(Arc<Segment>),
    /// To be cut at that byte.
    Cut(Arc<Segment>, u64),
    Gone,
}

struct Recoverer<'a> {
    disk: &'a Disk,
    dir: &'a Path,
    cut: Vec<Cut>,
    /// The next free segment number.
    next: u64,
    /// The last serial so far.
    last: u64,
    /// Damaged files that were copied from.
    replaced: Vec<PathBuf>,
}

impl Recoverer<'_> {
    /// Takes in the next segment; `sealed` is the length that it should have, in bytes.
    fn segment(
        &mut self,
        number: u64,
        active: bool,
        sealed: Option<u64>,
        thorough: bool,
    ) -> Result<Taken, Error> {
        let segment = match Segment::open(self.disk, self.dir, number) {
            Ok(segment) => segment,
            Err(Error::Io { source, path, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let why = Damage::Missing;
                self.cut.push(Cut { file: path, offset: 0, bytes: 0, why, lost: true });
                return Ok(Taken::Gone);
            }
            Err(error) => return Err(error),
        };
        let written = segment.file_bytes()?;
        // What follows is left of a commit that failed: nobody was told of it.
        let length = sealed.map_or(written, |it| it.min(written));
        let survey = segment.survey(active || thorough, self.last, length)?;
        let whole = if active { survey.whole_commits() } else { survey.entries.clone() };
        self.last = whole.last().map_or(self.last, |it| it.last);
        if let Some(missing) = sealed.and_then(|it| it.checked_sub(length)).filter(|it| *it != 0) {
            let (file, why) = (segment.path.clone(), Damage::Truncated);
            self.cut.push(Cut { file, offset: length, bytes: missing, why, lost: true });
        }
        if whole.is_empty() && !active {
            // Between others none may be empty.
            self.note_gaps(&segment, &survey);
            self.replaced.push(segment.path.clone());
            return Ok(Taken::Gone);
        }
        if survey.gaps.is_empty() && whole.len() == survey.entries.len() {
            segment.extend(whole);
            return Ok(Taken::Whole(Arc::new(segment)));
        }
        let end = whole.last().map_or(0, Entry::end);
        let is_prefix = survey.entries.get(..whole.len()) == Some(&whole)
            && survey.gaps.iter().all(|gap| end <= gap.offset);
        if active && is_prefix {
            let why = survey.gaps.first().map_or(Damage::Commit, |it| it.why);
            let lost = !is_unfinished(&segment, &survey, whole.len())?;
            let bytes = length - end;
            self.cut.push(Cut { file: segment.path.clone(), offset: end, bytes, why, lost });
            segment.extend(whole);
            return Ok(Taken::Cut(Arc::new(segment), end));
        }
        self.salvage(&segment, &survey, &whole).map(Taken::Whole)
    }

    /// Copies the good members to a new segment and puts the damaged file aside.
    fn salvage(
        &mut self,
        segment: &Segment,
        survey: &Survey,
        whole: &[Entry],
    ) -> Result<Arc<Segment>, Error> {
        let fresh = Segment::create(self.disk, self.dir, self.next)?;
        self.next += 1;
        let mut end = 0;
        let mut moved = Vec::with_capacity(whole.len());
        for entry in whole {
            let bytes = match segment.raw(entry) {
                Err(Error::Damaged { path: file, offset, what: why }) => {
                    let bytes = u64::from(entry.bytes);
                    self.cut.push(Cut { file, offset, bytes, why, lost: true });
                    continue;
                }
                bytes => bytes?,
            };
            let write = fresh.file.write_all_at(&bytes, end);
            write.map_err(|error| Error::io("cannot write", &fresh.path, error))?;
            moved.push(Entry { offset: end, ..*entry });
            end += u64::from(entry.bytes);
        }
        let sync = fresh.file.sync_all();
        sync.map_err(|error| Error::io("cannot sync", &fresh.path, error))?;
        fresh.extend(moved);
        self.note_gaps(segment, survey);
        self.replaced.push(segment.path.clone());
        Ok(Arc::new(fresh))
    }

    /// Notes that commits are lost which the log has once had, as the manifest knows.
    fn miss_commits(&mut self, manifest: &mut Manifest, segments: &[Arc<Segment>]) {
        let last = |it: &Arc<Segment>| it.entries().iter().map(|entry| entry.commit).max();
        let reached = segments.iter().filter_map(last).max().unwrap_or(0);
        // What has been compacted may have been dropped.
        if manifest.commit <= manifest.compacted.max(reached) {
            return;
        }
        // They are missed once.
        manifest.compacted = manifest.commit;
        if self.cut.iter().any(|it| it.lost) {
            return;
        }
        let active = segments.last().map(|it| (it.path.clone(), it.end()));
        match (self.cut.last_mut(), active) {
            // They looked like one that was never finished.
            (Some(cut), _) => cut.lost = true,
            (None, Some((file, offset))) => {
                self.cut.push(Cut { file, offset, bytes: 0, why: Damage::Truncated, lost: true });
            }
            (None, None) => manifest.lost = true,
        }
    }

    fn note_gaps(&mut self, segment: &Segment, survey: &Survey) {
        for gap in &survey.gaps {
            let file = segment.path.clone();
            let (offset, bytes, why) = (gap.offset, gap.bytes, gap.why);
            self.cut.push(Cut { file, offset, bytes, why, lost: true });
        }
    }
}

/// Whether what follows the first `whole` members at the end of the log is one commit that was never
/// acknowledged. Of bytes that were not synced a power cut may leave any sectors, and zeros in the
/// place of the others. Bytes that are all there but wrong may have been acknowledged once, and so
/// was a commit that another one follows.
fn is_unfinished(segment: &Segment, survey: &Survey, whole: usize) -> Result<bool, Error> {
    let rest = survey.entries.get(whole..).unwrap_or_default();
    if rest.iter().any(|it| it.commit != rest[0].commit) {
        return Ok(false);
    }
    for gap in &survey.gaps {
        if gap.why == Damage::Truncated || segment.misses_sector(gap.offset, gap.bytes)? {
            return Ok(true);
        }
    }
    Ok(survey.gaps.is_empty())
}

/// Lists the segments' files by number.
fn segments_in(dir: &Path) -> Result<BTreeSet<u64>, Error> {
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

/// Makes a manifest from the files alone: by their first serial; of two that begin alike the newer
/// file, which compaction wrote.
fn unlisted(disk: &Disk, dir: &Path, found: &BTreeSet<u64>, now: Stamp) -> Result<Manifest, Error> {
    let mut order = Vec::new();
    for number in found {
        let segment = Segment::open(disk, dir, *number)?;
        let survey = segment.survey(false, 0, segment.file_bytes()?)?;
        let Some(first) = survey.entries.first() else { continue };
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
    disk.remove(path).map_err(|error| Error::io("cannot remove", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Change, Collection, Note, Oid, Options};

    const NOW: Stamp = Stamp(5);

    /// Three commits of a local member and two members of one change each.
    fn sample() -> (tempfile::TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { member_bytes_max: 1, ..Options::default() };
        let (collection, _) = Collection::open(dir.path(), options, NOW).unwrap();
        for n in 0..3 {
            let delete = |n: u8| Change::Delete(Oid::new("g", &n.to_string()));
            let notes = vec![Note { key: vec![1], value: Some(vec![n]) }];
            let batch = Batch { changes: vec![delete(2 * n), delete(2 * n + 1)], notes };
            collection.commit(batch, NOW).unwrap();
        }
        drop(collection);
        let bytes = fs::read(Segment::path_in(dir.path(), 1)).unwrap();
        (dir, bytes)
    }

    #[test]
    fn a_cut_at_any_byte_ends_at_a_commit() {
        let (dir, bytes) = sample();
        let path = Segment::path_in(dir.path(), 1);
        let opened = open(&Disk::System, dir.path(), NOW, false).unwrap();
        let entries = opened.tail.active.entries().clone();
        let mut ends = vec![0];
        ends.extend(entries.iter().filter(|it| it.end_of_commit).map(Entry::end));
        assert_eq!((entries.len(), ends.len()), (9, 4));
        drop(opened);
        for length in 0..=bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let opened = open(&Disk::System, dir.path(), NOW, false).unwrap();
            let commits = ends.iter().filter(|it| **it <= length as u64).count() - 1;
            let end = ends[commits];
            assert_eq!((opened.tail.serial, opened.tail.end), (2 * commits as u64, end));
            let cut: Vec<_> = opened.cut.iter().map(|it| (it.offset, it.bytes, it.lost)).collect();
            let rest = length as u64 - end;
            let expected = if rest == 0 { vec![] } else { vec![(end, rest, false)] };
            assert_eq!(cut, expected, "at byte {length}");
            assert_eq!(fs::metadata(&path).unwrap().len(), end);
        }
    }

    #[test]
    fn commits_that_the_manifest_knows_are_missed_once() {
        let (dir, bytes) = sample();
        let (collection, _) = Collection::open(dir.path(), Options::default(), NOW).unwrap();
        // It writes the manifest.
        collection.sweep(NOW, 1.0).unwrap();
        drop(collection);
        let path = Segment::path_in(dir.path(), 1);
        let manifest = fs::read(Manifest::path_in(dir.path())).unwrap();
        let opened = open(&Disk::System, dir.path(), NOW, false).unwrap();
        let entries = opened.tail.active.entries().clone();
        let ends = entries.iter().filter(|it| it.end_of_commit).map(Entry::end);
        let before = opened.tail.manifest.epoch;
        drop(opened);
        // Cut within the last commit, and at the end of the one before.
        for length in [bytes.len() as u64 - 1, ends.rev().nth(1).unwrap()] {
            fs::write(&path, &bytes[..usize::try_from(length).unwrap()]).unwrap();
            fs::write(Manifest::path_in(dir.path()), &manifest).unwrap();
            let opened = open(&Disk::System, dir.path(), NOW, false).unwrap();
            assert_eq!(opened.cut.iter().filter(|it| it.lost).count(), 1, "{:?}", opened.cut);
            assert!(opened.tail.manifest.lost && before < opened.tail.manifest.epoch);
            assert_eq!((opened.tail.serial, opened.tail.commit), (6, 3), "never used again");
            let epoch = opened.tail.manifest.epoch;
            drop(opened);
            let again = open(&Disk::System, dir.path(), NOW, false).unwrap();
            assert_eq!((again.cut, again.tail.manifest.epoch), (vec![], epoch));
        }
    }

    #[test]
    fn a_flip_at_any_byte_leaves_whole_commits() {
        let (dir, bytes) = sample();
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 0x10;
            let fresh = tempfile::tempdir().unwrap();
            fs::copy(Manifest::path_in(dir.path()), Manifest::path_in(fresh.path())).unwrap();
            fs::write(Segment::path_in(fresh.path(), 1), &bad).unwrap();
            let opened = open(&Disk::System, fresh.path(), NOW, false).unwrap();
            assert!(opened.cut.iter().any(|it| it.lost && it.offset <= at as u64), "byte {at}");
            assert!(opened.tail.manifest.lost);
            let entries = opened.tail.active.entries().clone();
            assert_eq!(entries.len(), 6, "byte {at}: two of three commits are left");
            for commit in entries.chunks(3) {
                assert!(commit.iter().all(|it| it.commit == commit[0].commit));
                assert!(commit[0].local && commit[2].end_of_commit);
            }
            drop(opened);
            let again = open(&Disk::System, fresh.path(), NOW, false).unwrap();
            assert_eq!(again.cut, [], "byte {at}: it is told once");
        }
    }
}
