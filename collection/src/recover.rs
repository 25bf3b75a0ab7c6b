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
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::change::{Epoch, Stamp};
use crate::error::{Damage, Error};
use crate::log::{Log, Tail, View};
use crate::manifest::Manifest;
use crate::member::{MEMBER_BYTES_MAX, Unpacker};
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
pub(crate) fn open(dir: &Path, now: Stamp, thorough: bool) -> Result<Opened, Error> {
    let found = segments_in(dir)?;
    let (mut manifest, listed) = match Manifest::read(dir) {
        Ok(Some(manifest)) => (manifest, true),
        Ok(None) if found.is_empty() => {
            (Manifest { epoch: fresh_epoch(now, Epoch(0)), ..Manifest::default() }, true)
        }
        Ok(None) if !thorough => {
            let path = Manifest::path_in(dir);
            return Err(Error::Manifest { path, what: "it is missing".to_owned() });
        }
        Err(error @ Error::Manifest { .. }) if !thorough => return Err(error),
        Ok(None) | Err(Error::Manifest { .. }) => (unlisted(dir, &found, now)?, false),
        Err(error) => return Err(error),
    };
    if listed {
        for number in found.iter().filter(|it| !manifest.segments.contains(it)) {
            remove(&Segment::path_in(dir, *number))?;
        }
    }
    let mut recovery = Recoverer {
        dir,
        cut: Vec::new(),
        next: next_number(&manifest),
        last: 0,
        commit: 0,
        replaced: Vec::new(),
    };
    let mut segments = Vec::new();
    let mut truncate = None;
    for (at, number) in manifest.segments.iter().enumerate() {
        let active = at + 1 == manifest.segments.len();
        match recovery.segment(*number, active, thorough)? {
            Taken::Whole(segment) => segments.push(segment),
            Taken::Cut(segment, end) => {
                truncate = Some((Arc::clone(&segment), end));
                segments.push(segment);
            }
            Taken::Gone => {}
        }
    }
    let cut = recovery.cut;
    if !listed || cut.iter().any(|it| it.lost) {
        manifest.epoch = fresh_epoch(now, manifest.epoch);
        manifest.lost = true;
    }
    let numbers: Vec<u64> = segments.iter().map(|it| it.number).collect();
    if numbers.is_empty() {
        // The manifest first: a file that it does not name is a leftover.
        manifest.segments.clear();
        manifest.write(dir)?;
        segments.push(Arc::new(Segment::create(dir, recovery.next)?));
    }
    manifest.segments = segments.iter().map(|it| it.number).collect();
    manifest.write(dir)?;
    // Only now: a file on the list must never be missing.
    for path in recovery.replaced {
        let aside = path.with_extension("gz.damaged");
        fs::rename(&path, &aside).map_err(|error| Error::io("cannot rename", &path, error))?;
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
    };
    Ok(Opened { log: Log::new(dir, view), tail, cut })
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
        stopped: false,
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
        let member = segment.read(&entry, &mut Unpacker::new(MEMBER_BYTES_MAX))?;
        let stamp = member.header.entries.last().map_or(Stamp(0), |(_, stamp)| *stamp);
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
    dir: &'a Path,
    cut: Vec<Cut>,
    /// The next free segment number.
    next: u64,
    /// The last serial and commit so far.
    last: u64,
    commit: u64,
    /// Damaged files that were copied from.
    replaced: Vec<PathBuf>,
}

impl Recoverer<'_> {
    fn segment(&mut self, number: u64, active: bool, thorough: bool) -> Result<Taken, Error> {
        let segment = match Segment::open(self.dir, number) {
            Ok(segment) => segment,
            Err(Error::Io { source, path, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let why = Damage::Missing;
                self.cut.push(Cut { file: path, offset: 0, bytes: 0, why, lost: true });
                return Ok(Taken::Gone);
            }
            Err(error) => return Err(error),
        };
        let survey = segment.survey(active || thorough, self.last)?;
        let whole = if active { survey.whole_commits(self.commit) } else { survey.entries.clone() };
        self.last = whole.last().map_or(self.last, |it| it.last);
        self.commit = whole.last().map_or(self.commit, |it| it.commit);
        if survey.gaps.is_empty() && whole.len() == survey.entries.len() {
            segment.extend(whole);
            return Ok(Taken::Whole(Arc::new(segment)));
        }
        let end = whole.last().map_or(0, Entry::end);
        let is_prefix = survey.entries.get(..whole.len()) == Some(&whole)
            && survey.gaps.iter().all(|gap| end <= gap.offset);
        if active && is_prefix {
            let why = survey.gaps.first().map_or(Damage::Commit, |it| it.why);
            // Bytes that are all there but wrong may have been acknowledged once.
            let lost = !matches!(why, Damage::Truncated | Damage::Commit);
            let bytes = segment.file_bytes()? - end;
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
        let fresh = Segment::create(self.dir, self.next)?;
        self.next += 1;
        let mut end = 0;
        let mut moved = Vec::with_capacity(whole.len());
        for entry in whole {
            let write = fresh.file.write_all_at(&segment.raw(entry)?, end);
            write.map_err(|error| Error::io("cannot write", &fresh.path, error))?;
            moved.push(Entry { offset: end, ..*entry });
            end += u64::from(entry.bytes);
        }
        let sync = fresh.file.sync_all();
        sync.map_err(|error| Error::io("cannot sync", &fresh.path, error))?;
        fresh.extend(moved);
        for gap in &survey.gaps {
            let file = segment.path.clone();
            let (offset, bytes, why) = (gap.offset, gap.bytes, gap.why);
            self.cut.push(Cut { file, offset, bytes, why, lost: true });
        }
        self.replaced.push(segment.path.clone());
        Ok(Arc::new(fresh))
    }
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
fn unlisted(dir: &Path, found: &BTreeSet<u64>, now: Stamp) -> Result<Manifest, Error> {
    let mut order = Vec::new();
    for number in found {
        let survey = Segment::open(dir, *number)?.survey(false, 0)?;
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

fn remove(path: &Path) -> Result<(), Error> {
    tracing::info!(path = %path.display(), "removing a segment that is on no list");
    fs::remove_file(path).map_err(|error| Error::io("cannot remove", path, error))
}
