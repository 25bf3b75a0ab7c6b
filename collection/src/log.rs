//! The log: segments in order; commits go to the last one.
//!
//! One thread writes, under the writer's lock, with a [`Tail`]; any number of threads read. Readers
//! see changes up to the view's version, which rises only when a commit is durable.
//!
//! Source: ARCHITECTURE.md, "The one idea".

pub(crate) mod due;
pub(crate) mod holes;
pub(crate) mod manifest;
pub(crate) mod scan;
pub(crate) mod segment;
pub(crate) mod served;
mod settled;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use disk::Disk;

use crate::change::{Scanned, Stamp, Version};
use crate::error::{Damage, Error};
use crate::member::pack::Packed;
use crate::member::{Header, MEMBER_BYTES_MAX, Unpacker};
use holes::{Holes, Missing, Skip};
use manifest::Manifest;
use segment::{Entry, Segment};
use settled::Settled;

/// Number of serials reserved at a time. Each reservation writes a manifest, and an unclean stop
/// leaves some serials unused.
pub(crate) const RESERVE: u64 = 1 << 16;

/// Largest block that a file system writes at once, in bytes.
const BLOCK_BYTES: u64 = 64 << 10;
/// Number of bytes of a commit that are collected before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// The position of a member: the number of its segment, and its offset there.
pub(crate) type Address = (u64, u64);

/// A part of a segment: consecutive members.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRange {
    pub(crate) segment: Arc<Segment>,
    pub(crate) start: u64,
    /// The offset after its last byte.
    pub(crate) end: u64,
}

/// The segments, and the version up to which they may be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// In log order; commits go to the last one.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) version: Version,
    pub(crate) horizon: u64,
    /// Commits up to this one have been compacted.
    pub(crate) compacted: u64,
    /// Number of changes that the last full compaction kept in addition to the live objects'
    /// updates.
    pub(crate) residue: u64,
    /// Subjects suppressed up to this serial have been purged.
    pub(crate) purged: u64,
    /// Any changes up to this serial may be missing in the log; 0: none is.
    pub(crate) doubt: u64,
    pub(crate) missing: Arc<[Missing]>,
    pub(crate) skips: Arc<[Skip]>,
}

/// The readers' side of the log.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) disk: Disk,
    pub(crate) dir: PathBuf,
    view: RwLock<View>,
    /// The settled moment (see [`settled`]), and the commit in progress.
    pub(crate) settled: Settled,
}

/// The writer's side of the log.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) manifest: Manifest,
    pub(crate) active: Arc<Segment>,
    /// The end of the last whole commit in the active segment, in bytes.
    pub(crate) end: u64,
    pub(crate) serial: u64,
    pub(crate) stamp: Stamp,
    pub(crate) commit: u64,
    /// The next free segment number.
    pub(crate) next: u64,
    /// The reason why nothing can be written.
    pub(crate) halt: Option<Halt>,
}

/// The reason why nothing can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// After an error the contents of the disk are unknown.
    Unsure,
    Closed,
}

/// The identity of an appended commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    /// The serial before its first change.
    pub(crate) base: u64,
    pub(crate) stamp: Stamp,
    pub(crate) commit: u64,
}

impl Log {
    pub(crate) fn new(disk: &Disk, dir: &Path, view: View) -> Self {
        let settled = Settled::default();
        Self { disk: disk.clone(), dir: dir.to_owned(), view: RwLock::new(view), settled }
    }

    pub(crate) fn view(&self) -> View {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn version(&self) -> Version {
        self.view.read().unwrap_or_else(PoisonError::into_inner).version
    }

    pub(crate) fn change_view(&self, change: impl FnOnce(&mut View)) {
        change(&mut self.view.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Appends one commit and returns when it is durable. From then on the commit is in progress
    /// ([`settled`]). The caller ends it once the view's version shows it to readers, or after an
    /// error.
    ///
    /// # Errors
    ///
    /// The system's error. Nothing of the commit is kept. If its bytes could not be removed, the
    /// next append removes them first.
    pub(crate) fn append(
        &self,
        tail: &mut Tail,
        packed: &[Packed],
        now: Stamp,
        segment_bytes_max: u64,
    ) -> Result<Appended, Error> {
        tail.ensure_writable(self)?;
        if segment_bytes_max <= tail.end {
            self.roll(tail)?;
        }
        let count: usize = packed.iter().filter(|it| !it.local).map(|it| it.count).sum();
        tail.reserve(count as u64, self)?;
        let stamp = self.settled.begin(tail.stamp.max(now));
        let appended = Appended { base: tail.serial, stamp, commit: tail.commit + 1 };
        let (mut bytes, mut end) = (Vec::new(), tail.end);
        let mut entries = Vec::with_capacity(packed.len());
        let mut serial = tail.serial;
        for (at, body) in packed.iter().enumerate() {
            let count = if body.local { 0 } else { body.count as u64 };
            let header = Header {
                start_of_commit: at == 0,
                end_of_commit: at + 1 == packed.len(),
                local: body.local,
                end_mark: false,
                epoch: tail.manifest.epoch,
                commit: appended.commit,
                base: serial,
                entries: (serial + 1..=serial + count).map(|it| (it, appended.stamp)).collect(),
            };
            let start = bytes.len();
            header.write(body, &mut bytes);
            entries.push(Entry::new(&header, end + start as u64, bytes.len() - start));
            serial += count;
            if WRITE_BYTES <= bytes.len() || header.end_of_commit {
                self.write(tail, end, &bytes)?;
                end += bytes.len() as u64;
                bytes.clear();
            }
        }
        self.sync(tail)?;
        tail.active.extend(entries);
        tail.end = end;
        tail.commit = appended.commit;
        if tail.serial < serial {
            tail.serial = serial;
            tail.stamp = appended.stamp;
        }
        Ok(appended)
    }

    /// Writes a part of a commit at the offset `at`.
    fn write(&self, tail: &mut Tail, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let (file, path) = (&tail.active.file, &tail.active.path);
        let Err(error) = file.write_all_at(bytes, at) else { return Ok(()) };
        // Bytes that remain would be reported as a cut commit by the next opening.
        if file.set_len(tail.end).is_err() {
            tail.halt = Some(Halt::Unsure);
        }
        Err(Error::io("cannot append to", path, error))
    }

    fn sync(&self, tail: &mut Tail) -> Result<(), Error> {
        let (file, path) = (&tail.active.file, &tail.active.path);
        let Err(error) = file.sync_data() else { return Ok(()) };
        // After a failed sync the kernel may have dropped the unwritten pages.
        tail.halt = Some(Halt::Unsure);
        Err(Error::io("cannot sync", path, error))
    }

    /// Seals the active segment and begins a new one.
    ///
    /// # Errors
    ///
    /// The system's error; the active segment stays in use.
    pub(crate) fn roll(&self, tail: &mut Tail) -> Result<(), Error> {
        let number = tail.allocate();
        let fresh = Arc::new(Segment::create(&self.disk, &self.dir, number)?);
        let mut manifest = tail.manifest_now();
        manifest.segments.push(number);
        manifest.sealed.insert(tail.active.number, tail.end);
        manifest.end = 0;
        let replaced = tail.replace(manifest, self);
        if replaced.is_err() && tail.halt.is_none() {
            // No manifest names the new segment.
            fresh.retire();
        }
        replaced?;
        tail.active = Arc::clone(&fresh);
        tail.end = 0;
        self.change_view(|view| view.segments.push(fresh));
        Ok(())
    }
}

impl Tail {
    /// Records in the manifest that unknown changes were lost.
    ///
    /// # Errors
    ///
    /// The system's error; the manifest is unchanged.
    pub(crate) fn note_loss(&mut self, log: &Log) -> Result<(), Error> {
        if self.manifest.lost {
            return Ok(());
        }
        let doubt = self.serial;
        let manifest = Manifest { lost: true, doubt, ..self.manifest_now() };
        log.change_view(|view| view.doubt = doubt);
        if self.halt == Some(Halt::Closed) {
            // The collection is opened only to read, so nothing is written.
            self.manifest = manifest;
            return Ok(());
        }
        self.replace(manifest, log)
    }

    /// Reserves serials for `count` changes.
    fn reserve(&mut self, count: u64, log: &Log) -> Result<(), Error> {
        let last = self.serial + count;
        if last + RESERVE / 2 <= self.manifest.reserved {
            return Ok(());
        }
        let manifest = Manifest { reserved: last + RESERVE, ..self.manifest_now() };
        match self.replace(manifest, log) {
            // Some reserved serials are left, and the next append tries again.
            Err(_) if last < self.manifest.reserved && self.halt.is_none() => Ok(()),
            replaced => replaced,
        }
    }

    /// Replaces the manifest of `log`.
    ///
    /// # Errors
    ///
    /// The system's error; the old manifest stays in force. If it was replaced on disk, it is
    /// written again as soon as possible.
    pub(crate) fn replace(&mut self, manifest: Manifest, log: &Log) -> Result<(), Error> {
        if let Err(unwritten) = manifest.write(&log.disk, &log.dir) {
            if unwritten.replaced {
                self.halt = Some(Halt::Unsure);
            }
            return Err(unwritten.error);
        }
        self.manifest = manifest;
        Ok(())
    }

    pub(crate) fn amend(
        &mut self,
        log: &Log,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<(), Error> {
        self.ensure_writable(log)?;
        let mut manifest = self.manifest_now();
        change(&mut manifest);
        self.replace(manifest, log)
    }

    /// Checks that the log can be written, and resumes after an error.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`]; or the system's error, if the disk still cannot be written.
    pub(crate) fn ensure_writable(&mut self, log: &Log) -> Result<(), Error> {
        match self.halt {
            None => Ok(()),
            Some(Halt::Closed) => Err(Error::Stopped { dir: log.dir.clone() }),
            Some(Halt::Unsure) => self.resume(log),
        }
    }

    /// Brings the disk to its expected contents. All acknowledged changes were synced, so they are
    /// on the disk. But a failed write may have damaged the block at the end of the last commit:
    /// that member is checked, and the block is written again.
    fn resume(&mut self, log: &Log) -> Result<(), Error> {
        let (file, path) = (&self.active.file, &self.active.path);
        let failed = |error| Error::io("cannot write again to", path, error);
        file.set_len(self.end).map_err(failed)?;
        let last = self.active.entries().last().copied();
        match last.map(|it| self.active.read(&it, &mut Unpacker::new(MEMBER_BYTES_MAX))) {
            // Such damage is marked by now, and is repaired like any other damage.
            None | Some(Ok(_) | Err(Error::Damaged { .. })) => {}
            Some(Err(error)) => return Err(error),
        }
        let start = self.end / BLOCK_BYTES * BLOCK_BYTES;
        let mut block = vec![0; usize::try_from(self.end - start).unwrap_or(0)];
        file.read_exact_at(&mut block, start).map_err(failed)?;
        file.write_all_at(&block, start).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        // The disk may hold a manifest that was not put in force.
        self.manifest_now().write(&log.disk, &log.dir)?;
        self.halt = None;
        tracing::info!(dir = %log.dir.display(), "the disk takes changes again");
        Ok(())
    }

    pub(crate) fn allocate(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the manifest with the present serial, stamp and commit.
    pub(crate) fn manifest_now(&self) -> Manifest {
        let mut manifest = self.manifest.clone();
        manifest.serial = self.serial;
        manifest.stamp = self.stamp.0;
        manifest.commit = self.commit;
        manifest.end = self.end;
        manifest
    }

    pub(crate) fn version(&self) -> Version {
        Version { epoch: self.manifest.epoch, serial: self.serial }
    }
}

impl View {
    /// Returns whether the log has all changes since `have`, damaged ones included.
    pub(crate) fn continues_from(&self, have: Version) -> bool {
        let to = self.version;
        self.horizon <= have.serial
            && have.serial <= to.serial
            && to.epoch == have.epoch
            && !self.has_skipped(have)
    }

    /// Returns whether `have` is among the skipped serials: then it includes changes that the log
    /// lacks.
    pub(crate) fn has_skipped(&self, have: Version) -> bool {
        let is_between = |(from, to): &Skip| *from < have.serial && have.serial < *to;
        self.version.epoch == have.epoch && self.skips.iter().any(is_between)
    }

    /// Returns the member that would hold `serial`; `None` if there is none.
    pub(crate) fn find(&self, serial: u64) -> Option<(&Arc<Segment>, Entry)> {
        let below = |it: &Arc<Segment>| it.entries().first().is_some_and(|it| it.base < serial);
        // Only the last segment can be empty.
        let at = self.segments.partition_point(below).checked_sub(1)?;
        let segment = self.segments.get(at)?;
        let entries = segment.entries();
        let entry = *entries.get(entries.partition_point(|it| it.last < serial))?;
        drop(entries);
        Some((segment, entry))
    }

    /// Returns whether a member, damaged or not, may have the change with that serial. That
    /// includes changes after this view's version: they may be in segments outside of it.
    pub(crate) fn covers(&self, serial: u64) -> bool {
        self.version.serial < serial
            || self.find(serial).is_some_and(|(_, entry)| entry.base < serial)
    }

    /// Reads one change; `None` if compaction has dropped it.
    pub(crate) fn change(&self, serial: u64) -> Result<Option<Scanned>, Error> {
        if self.missing.iter().any(|it| it.base < serial && serial <= it.last) {
            return Err(self.gap());
        }
        let Some((segment, entry)) = self.find(serial) else { return Ok(None) };
        let member = segment.read(&entry, &mut Unpacker::new(MEMBER_BYTES_MAX))?;
        member.change(serial).map_err(|what| segment.fault(&entry, what))
    }

    /// Returns the members that were found damaged, with their segments.
    pub(crate) fn damaged(&self) -> Vec<(Arc<Segment>, Entry, Damage)> {
        let with = |segment: &Arc<Segment>| {
            let segment = segment.clone();
            segment.clone().damaged().into_iter().map(move |(it, what)| (segment.clone(), it, what))
        };
        self.segments.iter().flat_map(with).collect()
    }

    /// Returns the addresses of the members that were found damaged.
    pub(crate) fn damaged_members(&self) -> HashSet<Address> {
        self.damaged().iter().map(|(it, entry, _)| (it.number, entry.offset)).collect()
    }

    /// Returns the ranges of serials that the log cannot provide.
    pub(crate) fn holes(&self) -> Holes {
        let damaged = self.damaged().into_iter().filter(|(_, entry, _)| !entry.local);
        let damaged = damaged.map(|(_, entry, _)| (entry.base, entry.last));
        Holes::of(damaged.chain(self.missing.iter().map(|it| (it.base, it.last))))
    }

    /// Returns whether anything is known to be damaged or missing.
    pub(crate) fn has_holes(&self) -> bool {
        !self.missing.is_empty() || self.segments.iter().any(|it| it.is_damaged())
    }

    /// Returns the ranges of serials that may be missing here, doubtful ones included.
    pub(crate) fn possible_holes(&self) -> Holes {
        self.holes().with((0, self.doubt))
    }

    /// Checks that everything after serial `since` can be served.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], for the first damage.
    pub(crate) fn is_sound(&self, since: u64) -> Result<(), Error> {
        for (segment, entry, what) in self.damaged() {
            if !entry.local && since < entry.last {
                return Err(segment.fault(&entry, what));
            }
        }
        if self.missing.iter().any(|it| since < it.last && it.base < it.last) {
            return Err(self.gap());
        }
        Ok(())
    }

    pub(crate) fn gap(&self) -> Error {
        let dir = self.segments.last().and_then(|it| it.path.parent());
        let path = dir.map(Path::to_owned).unwrap_or_default();
        Error::Damaged { path, offset: 0, what: Damage::Missing }
    }

    /// Returns the ranges of the members with changes after serial `since`, up to the view's
    /// version, without local members; adjacent members are one range.
    pub(crate) fn parts(&self, since: u64) -> Vec<SegmentRange> {
        self.parts_without(since, &HashSet::new())
    }

    /// Returns the same as [`parts`](Self::parts), but without the members in `but`.
    pub(crate) fn parts_without(&self, since: u64, but: &HashSet<Address>) -> Vec<SegmentRange> {
        let mut parts = Vec::<SegmentRange>::new();
        for segment in &self.segments {
            let entries = segment.entries();
            let from = entries.partition_point(|it| it.last <= since);
            let served = entries.iter().skip(from);
            let served = served.take_while(|it| it.last <= self.version.serial);
            let mut first = true;
            for entry in served.filter(|it| !it.local) {
                if but.contains(&(segment.number, entry.offset)) {
                    continue;
                }
                match parts.last_mut() {
                    Some(part) if !first && part.end == entry.offset => part.end = entry.end(),
                    _ => parts.push(SegmentRange {
                        segment: Arc::clone(segment),
                        start: entry.offset,
                        end: entry.end(),
                    }),
                }
                first = false;
            }
        }
        parts
    }
}
