//! The making of an answer: the selected changes of a log, as members of their own.
//!
//! A change that another one has replaced since is left out: that one is in this answer, or will be in the next. But
//! that an object has left by it is told.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use net::shutdown::Shutdown;

use super::{Made, Selection, Start};
use crate::change::{Change, Oid, Scanned};
use crate::collection::Inner;
use crate::error::Error;
use crate::log::holes::Holes;
use crate::log::segment::{Entry, Segment};
use crate::log::{SegmentRange, View};
use crate::member::content::Drafter;
use crate::member::pack::{self, Packed};
use crate::member::{Header, MEMBER_BYTES_MAX, Unpacker};
use crate::open::SELECTED;
use crate::subset::Subset;

/// Compression level: they are sent many times, or once and far.
const LEVEL: u32 = 6;
/// Free bytes of the disk that are left to commits.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Number of complete drafts at which they are compressed and written.
const DRAFTS_MAX: usize = 16;

/// An answer under construction. A drop removes its file.
pub(super) struct Making<'a> {
    inner: &'a Inner,
    selection: &'a Selection,
    subset: Option<Subset>,
    shutdown: Shutdown,
    changes: Drafter,
    /// The commit of what is read.
    commit: u64,
    /// The serial up to which the consumer has all.
    since: u64,
    /// The last serial written so far.
    base: u64,
    is_snapshot: bool,
    objects: u64,
    output: Option<Arc<Segment>>,
    end: u64,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        // The file is there as long as somebody reads it.
        self.output.iter().for_each(|it| it.retire());
    }
}

impl<'a> Making<'a> {
    /// `subset` is that to which the selection is limited, at the version of what is read or later.
    pub(super) fn new(
        inner: &'a Inner,
        selection: &'a Selection,
        subset: Option<Subset>,
        shutdown: Shutdown,
    ) -> Self {
        let changes = Drafter::new(inner.options.member_bytes_max, MEMBER_BYTES_MAX);
        Self {
            inner,
            selection,
            subset,
            shutdown,
            changes,
            commit: 0,
            since: 0,
            base: 0,
            is_snapshot: false,
            objects: 0,
            output: None,
            end: 0,
        }
    }

    /// Makes the answer with the changes of `view` from `start` on.
    ///
    /// # Errors
    ///
    /// The log cannot be read, or the answer not be written.
    pub(super) fn of(mut self, mut view: View, start: Start) -> Result<Made, Error> {
        let (parts, missing, since) = match start {
            Start::All => {
                // The order matters: what is found damaged between the two calls is reported as missing, although it
                // may be there.
                let damaged = view.damaged_members();
                (view.parts_without(0, &damaged), view.possible_holes(), 0)
            }
            Start::After(since) => {
                let mut missing = view.holes();
                match missing.after(since) {
                    None => missing = Holes::default(),
                    Some((base, _)) => view.version.serial = base.max(since),
                }
                // Damage that is found from now on is an error.
                (view.parts(since), missing, since)
            }
        };
        (self.since, self.base, self.is_snapshot) = (since, since, start == Start::All);
        for part in parts {
            self.part(&part, since)?;
        }
        self.changes.cut();
        self.flush(1)?;
        let whole =
            |it: &Arc<Segment>| SegmentRange { segment: Arc::clone(it), start: 0, end: self.end };
        let parts = self.output.iter().map(whole).collect();
        // The files of the log may go.
        view.segments.clear();
        let (objects, is_taken) = (self.objects, AtomicBool::new(false));
        Ok(Made { start, view, parts, objects, missing, file: None, is_taken })
    }

    fn part(&mut self, part: &SegmentRange, since: u64) -> Result<(), Error> {
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        let SegmentRange { segment, start, end } = part;
        let entries = segment.entries().clone();
        for entry in entries.iter().filter(|it| *start <= it.offset && it.end() <= *end) {
            self.inner.check_open()?;
            if self.shutdown.is_started() {
                return Err(Error::Stopped { dir: self.inner.dir.clone() });
            }
            let member = segment.read(entry, &mut unpacker)?;
            self.commit = entry.commit;
            let changes = member.changes().map_err(|what| segment.fault(entry, what))?;
            for scanned in changes.into_iter().filter(|it| since < it.serial) {
                self.change(scanned)?;
            }
        }
        Ok(())
    }

    fn change(&mut self, scanned: Scanned) -> Result<(), Error> {
        let Scanned { serial, stamp, change } = scanned;
        let change = match change {
            Change::Update(record) => {
                let Some(oid) = Oid::of(&record) else { return Ok(()) };
                let is_last = self.live(&oid)? == Some(serial);
                if is_last && self.has(serial) && (self.selection.takes)(&record) {
                    self.objects += 1;
                    Change::Update(record)
                } else if !self.is_snapshot && self.lets_go(serial, is_last) {
                    Change::Delete(oid)
                } else {
                    return Ok(());
                }
            }
            Change::Delete(_) | Change::Withdraw(..) | Change::Refresh(..) if self.is_snapshot => {
                return Ok(());
            }
            // Takedowns and lifts by pattern are for all.
            Change::Suppress(oid, notice) if oid == notice.carrier() => {
                Change::Suppress(oid, notice)
            }
            Change::Delete(_) | Change::Withdraw(..) | Change::Suppress(..)
                if !self.has_lost(serial) =>
            {
                return Ok(());
            }
            Change::Refresh(oid, at) => match self.live(&oid)? {
                Some(live) if self.has(live) => Change::Refresh(oid, at),
                _ => return Ok(()),
            },
            other => other,
        };
        let pushed = self.changes.push_scanned(&Scanned { serial, stamp, change }, self.commit);
        pushed.map_err(|reason| Error::Refused {
            position: usize::try_from(serial).unwrap_or(usize::MAX),
            object: format!("the selection {}", self.selection.name),
            reason,
        })?;
        self.flush(DRAFTS_MAX)
    }

    /// Returns the serial of the last change of an object that is there.
    fn live(&self, oid: &Oid) -> Result<Option<u64>, Error> {
        let object = self.inner.read_keys(|keys| keys.object(&oid.key()))?;
        Ok(object.map(|it| it.serial))
    }

    /// Returns whether the object of a change may be selected.
    fn has(&self, serial: u64) -> bool {
        self.subset.as_ref().is_none_or(|it| it.members.contains(serial))
    }

    /// Returns whether a consumer may have had the object of an update that is not selected. Of one that another change
    /// has replaced it counts alone that the object left by it: that other one does not tell of it. The other one may be
    /// of after this answer, so that the subset does not know of it and has this one as the last.
    fn lets_go(&self, serial: u64, is_last: bool) -> bool {
        match &self.subset {
            None => is_last,
            Some(_) => is_last && self.has(serial) || self.has_lost(serial),
        }
    }

    /// Returns whether a consumer may have had the object of a change that is not, or is no longer, there.
    fn has_lost(&self, serial: u64) -> bool {
        self.subset.as_ref().is_none_or(|it| it.has_lost(serial, self.since))
    }

    /// Writes the complete drafts if there are at least `least`.
    fn flush(&mut self, least: usize) -> Result<(), Error> {
        if self.changes.ready() == 0 || self.changes.ready() < least {
            return Ok(());
        }
        let drafts = self.changes.take();
        let packed: Vec<Packed> = pack::pack(&drafts, LEVEL);
        let (mut bytes, mut added) = (Vec::new(), Vec::new());
        for (packed, draft) in packed.iter().zip(drafts) {
            let header = Header {
                start_of_commit: true,
                end_of_commit: true,
                epoch: self.inner.log.version().epoch,
                commit: draft.commit,
                base: self.base,
                entries: draft.entries,
                ..Header::default()
            };
            let start = bytes.len();
            header.write(packed, &mut bytes);
            added.push(Entry::new(&header, self.end + start as u64, bytes.len() - start));
            self.base = header.last();
        }
        let segment = self.output()?;
        let free = self.inner.log.disk.free_bytes(&segment.file).unwrap_or(u64::MAX);
        let needed = FREE_BYTES_MIN + bytes.len() as u64;
        if free < needed {
            return Err(Error::NoRoom { dir: self.inner.dir.clone(), free, needed });
        }
        let written = segment.file.write_all_at(&bytes, self.end);
        written.map_err(|error| Error::io("cannot write", &segment.path, error))?;
        segment.extend(added);
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn output(&mut self) -> Result<Arc<Segment>, Error> {
        if let Some(segment) = &self.output {
            return Ok(Arc::clone(segment));
        }
        let (disk, dir) = (&self.inner.log.disk, self.inner.dir.join(SELECTED));
        let made = disk.make_directories(&dir, None);
        made.map_err(|error| Error::io("cannot create", &dir, error))?;
        let number = getrandom::u64().unwrap_or(self.base);
        let segment = Arc::new(Segment::create(disk, &dir, number)?);
        self.output = Some(Arc::clone(&segment));
        Ok(segment)
    }
}
