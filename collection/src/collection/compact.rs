//! Compaction: rewrites the log without superseded changes, while commits go on.
//!
//! Sealed segments are read in order, as many at a time as the free space allows. What is not
//! superseded goes to new segments: changes and notes that the key index still has, and tombstones
//! of objects that are not live. Serials and stamps stay; members are full and well compressed.
//! Then the manifest is replaced, and each old file is removed when its last reader has finished.
//! After a crash at any point the manifest names either the old segments or the new ones.
//!
//! Tombstones older than the horizon, and removals of notes, are dropped only together with the
//! first segment of the log. Behind it they must stay: otherwise a rebuild of the key index would
//! restore the removed objects and notes from an earlier segment.
//!
//! Source: docs/collection.md, "On disk".

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::ttl::DELETES_MAX;
use super::{Collection, Inner};
use crate::change::{Change, Note, Scanned, Stamp};
use crate::error::Error;
use crate::holders::{WITHDRAWN, Withdrawn};
use crate::keys::Keys;
use crate::log::Address;
use crate::log::due::{CompactionDue, due, tail_start};
use crate::log::segment::{Entry, Segment};
use crate::member::content::Drafter;
use crate::member::pack;
use crate::member::{Header, MEMBER_BYTES_MAX, Unpacker};
use crate::report::Compacted;

/// Compression level of compacted members: the highest, since they stay for long.
const LEVEL_COMPACT: u32 = 9;
/// Number of complete drafts, of changes or of notes, at which they are compressed and written.
const DRAFTS_MAX: usize = 16;

impl Collection {
    /// Rewrites the whole log without superseded changes. Commits go on meanwhile. If the disk is
    /// nearly full and readers still use replaced segments, only a part of the log is rewritten.
    ///
    /// # Errors
    ///
    /// The file system reports an error, a segment is damaged, or the collection is closed. Parts
    /// that were rewritten before stay rewritten.
    pub fn compact(&self, now: Stamp) -> Result<Compacted, Error> {
        self.inner.compact(CompactionDue::All, None, now)
    }

    /// Packs the small members that commits have left at the end of the log into full ones.
    pub fn compact_tail(&self, now: Stamp) -> Result<Compacted, Error> {
        self.inner.compact(CompactionDue::Tail, None, now)
    }

    /// Compacts the log, or its end, if that is worthwhile now; otherwise returns `None`. Call this
    /// from time to time.
    pub fn compact_if_due(&self, now: Stamp) -> Result<Option<Compacted>, Error> {
        let no_room = self.inner.repairs().no_room;
        match due(&self.inner.log.view(), self.len(), no_room) {
            // The last compaction ended early for lack of space, and readers still use the segments
            // that it replaced: another one would rewrite the same segments and end early again.
            Some(CompactionDue::All) if self.inner.is_space_held() => Ok(None),
            None => Ok(None),
            Some(due) => self.inner.compact(due, None, now).map(Some),
        }
    }
}

impl Inner {
    /// Rewrites the part that is `due`. With `damaged`, these members are left out, and all notes
    /// are taken from the key index, since the damaged members may have contained some.
    pub(crate) fn compact(
        &self,
        due: CompactionDue,
        damaged: Option<&HashSet<Address>>,
        now: Stamp,
    ) -> Result<Compacted, Error> {
        let mut held = self.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_open()?;
        let (mut inputs, mut start, commit) = {
            let mut tail = self.tail();
            tail.ensure_writable(&self.log)?;
            if tail.end != 0 {
                self.log.roll(&mut tail)?;
            }
            let mut segments = self.log.view().segments;
            segments.pop();
            let start = if due == CompactionDue::All { 0 } else { tail_start(&segments) };
            (segments.split_off(start), start, tail.commit)
        };
        held.clear();
        let forgotten = Stamp(now.0.saturating_sub(self.options.horizon_ms()));
        if due == CompactionDue::All {
            self.forget_withdrawn(forgotten, now)?;
        }
        let mut total = Compacted::default();
        // The space of a part's old segments is freed before the next part is written, unless
        // somebody is reading them.
        while !inputs.is_empty() {
            let free = self.room(&self.tail(), 0).map_or(u64::MAX, |(free, _)| free);
            let is_first = total.segments.0 == 0;
            let count = affordable(&inputs, free);
            if count == 0 && !is_first {
                // Readers still use the old segments: `compact_if_due` waits for them.
                return Ok(total);
            }
            // Commits always leave enough space to rewrite one segment.
            let rest = inputs.split_off(count.max(1));
            let mut rewrite = Rewrite::new(self, due, start == 0, forgotten);
            rewrite.damaged = damaged;
            rewrite.read(&inputs)?;
            if damaged.is_some() && is_first {
                // With `damaged`, no part copies the notes of its members. So the first part gets
                // all notes: none is lost if the compaction ends early.
                rewrite.all_notes()?;
            }
            rewrite.finish()?;
            // A start replays the log from the last flush of the key index, so the index is flushed
            // before changes are dropped from the log.
            self.read_keys(Keys::flush)?;
            let done = self.install(&inputs, start, commit, rewrite)?;
            held.extend(inputs.iter().map(Arc::downgrade));
            start += usize::try_from(done.segments.1).unwrap_or(0);
            total += done;
            inputs = rest;
        }
        held.clear();
        Ok(total)
    }

    /// Forgets the versions of deletes that are older than the horizon.
    fn forget_withdrawn(&self, forgotten: Stamp, now: Stamp) -> Result<(), Error> {
        let mut from = Some(vec![WITHDRAWN]);
        while let Some(begin) = from.take() {
            let (notes, next) = self.read_keys(|keys| {
                let (mut notes, mut next) = (Vec::new(), None);
                for item in keys.notes_from(&[WITHDRAWN], &begin) {
                    let (key, value) = item?;
                    if notes.len() == DELETES_MAX || self.check_open().is_err() {
                        next = Some(key);
                        break;
                    }
                    if Withdrawn::decode(&value).is_none_or(|it| it.at < forgotten) {
                        notes.push(Note { key, value: None });
                    }
                }
                Ok((notes, next))
            })?;
            self.check_open()?;
            if !notes.is_empty() {
                self.commit(&mut self.tail(), &[], &notes, now)?;
            }
            from = next;
        }
        Ok(())
    }

    /// Returns whether the last compaction ended early, and its replaced segments still take space
    /// because they are being read.
    pub(crate) fn is_space_held(&self) -> bool {
        match self.compacting.try_lock() {
            Ok(held) => held.iter().any(|it| it.strong_count() != 0),
            // A compaction is in progress.
            Err(_) => false,
        }
    }

    /// Replaces `inputs`, which begin at the index `start` in the list of segments, by the outputs.
    fn install(
        &self,
        inputs: &[Arc<Segment>],
        start: usize,
        commit: u64,
        mut rewrite: Rewrite<'_>,
    ) -> Result<Compacted, Error> {
        let mut tail = self.tail();
        tail.ensure_writable(&self.log)?;
        let mut manifest = tail.manifest_now();
        let end = start + inputs.len();
        let numbers = rewrite.outputs.iter().map(|it| it.number);
        manifest.segments.splice(start..end, numbers);
        let sealed = &mut manifest.sealed;
        for segment in inputs {
            sealed.remove(&segment.number);
        }
        sealed.extend(rewrite.outputs.iter().map(|it| (it.number, it.end())));
        manifest.compacted = manifest.compacted.max(commit);
        manifest.horizon = manifest.horizon.max(rewrite.horizon);
        if start == 0 {
            manifest.residue = rewrite.residue;
        } else if rewrite.due == CompactionDue::All {
            manifest.residue += rewrite.residue;
        }
        let replaced = tail.replace(manifest, &self.log);
        if replaced.is_err() && tail.halt.is_some() {
            // The manifest on the disk may name the old segments or the new ones, so the files of
            // both stay. The next opening removes those that it does not name.
            rewrite.outputs.clear();
        }
        replaced?;
        let outputs = std::mem::take(&mut rewrite.outputs);
        let bytes = |list: &[Arc<Segment>]| list.iter().map(|it| it.end()).sum::<u64>();
        let done = Compacted {
            segments: (inputs.len() as u64, outputs.len() as u64),
            bytes: (bytes(inputs), bytes(&outputs)),
            kept: rewrite.kept,
            dropped: rewrite.dropped,
        };
        self.log.change_view(|view| {
            view.segments.splice(start..end, outputs);
            view.compacted = tail.manifest.compacted;
            view.horizon = tail.manifest.horizon;
            view.residue = tail.manifest.residue;
        });
        for segment in inputs {
            segment.retire();
        }
        Ok(done)
    }
}

/// Returns how many segments, from the first on, can be rewritten at once in `free` bytes.
fn affordable(segments: &[Arc<Segment>], free: u64) -> usize {
    let mut left = free;
    let fits = |it: &&Arc<Segment>| {
        let before = left;
        left = left.saturating_sub(it.end());
        it.end() <= before
    };
    segments.iter().take_while(fits).count()
}

/// New segments under construction. A drop before they are installed removes their files.
struct Rewrite<'a> {
    inner: &'a Inner,
    due: CompactionDue,
    /// Whether the part begins with the first segment of the log.
    first: bool,
    /// Tombstones before this moment may be dropped.
    forgotten: Stamp,
    changes: Drafter,
    notes: Drafter,
    /// Signatures of the notices with a carrier in the outputs; further carriers are dropped.
    carried: HashSet<String>,
    damaged: Option<&'a HashSet<Address>>,
    /// The highest commit number read so far.
    commit: u64,
    /// The last serial written so far.
    base: u64,
    outputs: Vec<Arc<Segment>>,
    /// The length of the last output, in bytes.
    end: u64,
    horizon: u64,
    residue: u64,
    kept: u64,
    dropped: u64,
}

impl Drop for Rewrite<'_> {
    fn drop(&mut self) {
        for segment in &self.outputs {
            segment.retire();
        }
    }
}

impl<'a> Rewrite<'a> {
    fn new(inner: &'a Inner, due: CompactionDue, first: bool, forgotten: Stamp) -> Self {
        let options = &inner.options;
        // Records that were once accepted are kept, even if they exceed the present limits.
        let drafter = || Drafter::new(options.member_bytes_max, MEMBER_BYTES_MAX);
        Self {
            inner,
            due,
            first,
            forgotten,
            changes: drafter(),
            notes: drafter(),
            carried: HashSet::new(),
            damaged: None,
            commit: 0,
            base: 0,
            outputs: Vec::new(),
            end: 0,
            horizon: 0,
            residue: 0,
            kept: 0,
            dropped: 0,
        }
    }

    fn read(&mut self, inputs: &[Arc<Segment>]) -> Result<(), Error> {
        self.base = inputs.first().and_then(|it| Some(it.entries().first()?.base)).unwrap_or(0);
        inputs.iter().try_for_each(|it| self.segment(it))
    }

    /// Takes all notes from the key index.
    fn all_notes(&mut self) -> Result<(), Error> {
        let (notes, cursors) =
            self.inner.read_keys(|keys| Ok((keys.notes(&[]), keys.cursors()?)))?;
        let failed = |source| Error::keys(self.inner.keys_dir(), source);
        for item in notes.chain(cursors.into_iter().map(Ok)) {
            let (key, value) = item.map_err(failed)?;
            let note = Note { key, value: Some(value) };
            self.notes.push_note(&note).map_err(|reason| self.misfit(reason))?;
            self.flush(DRAFTS_MAX)?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Arc<Segment>) -> Result<(), Error> {
        let mut unpacker = Unpacker::new(MEMBER_BYTES_MAX);
        let entries = segment.entries().clone();
        for entry in &entries {
            self.inner.check_open()?;
            let damaged = |what| segment.fault(entry, what);
            self.commit = self.commit.max(entry.commit);
            if self.damaged.is_some_and(|it| it.contains(&(segment.number, entry.offset))) {
                // The damaged member may have contained deletes (unless it is local), so consumers
                // with a cursor below its last serial get a snapshot.
                let last = if entry.local { 0 } else { entry.last };
                self.horizon = self.horizon.max(last);
                continue;
            }
            let member = segment.read(entry, &mut unpacker)?;
            if self.damaged.is_none() {
                for note in member.notes().map_err(damaged)? {
                    self.note(&note)?;
                }
            }
            for scanned in member.changes().map_err(damaged)? {
                self.change(&scanned)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, note: &Note) -> Result<(), Error> {
        let known = self.inner.read_keys(|keys| keys.note(&note.key))?;
        // A removal must stay if segments before this part may have values of the note.
        let removed = note.value.is_none() && !self.first;
        if known == note.value && (known.is_some() || removed) {
            self.notes.push_note(note).map_err(|reason| self.misfit(reason))?;
            self.flush(DRAFTS_MAX)?;
        }
        Ok(())
    }

    fn change(&mut self, scanned: &Scanned) -> Result<(), Error> {
        if !self.keeps(scanned)? {
            self.dropped += 1;
            return Ok(());
        }
        self.kept += 1;
        self.residue += u64::from(!matches!(scanned.change, Change::Update(_)));
        let pushed = self.changes.push_scanned(scanned, self.commit);
        pushed.map_err(|reason| self.misfit(reason))?;
        self.flush(DRAFTS_MAX)
    }

    /// Makes the error for a committed change that cannot be written again: a program fault.
    fn misfit(&self, reason: &'static str) -> Error {
        let position = usize::try_from(self.kept).unwrap_or(usize::MAX);
        Error::Refused { position, object: "compaction".to_owned(), reason }
    }

    /// Returns whether the change stays: not superseded, and no tombstone that may be dropped.
    fn keeps(&mut self, scanned: &Scanned) -> Result<bool, Error> {
        let inner = self.inner;
        let serial = scanned.serial;
        if let Change::Confirm { gatherer, root, .. } = &scanned.change {
            let known = inner.read_keys(|keys| keys.confirmed(gatherer, root))?;
            return Ok(known.is_some_and(|(last, _)| last == serial));
        }
        let Some(oid) = scanned.change.oid() else { return Ok(false) };
        let object = inner.read_keys(|keys| keys.object(&oid.key()))?;
        Ok(match (&scanned.change, object) {
            (Change::Update(_), Some(object)) => object.serial == serial,
            (Change::Refresh(..), Some(object)) => {
                object.serial < serial && object.seen == scanned.stamp.0
            }
            // The latest notice on a subject stays for ever, for new consumers.
            (Change::Suppress(oid, notice), _)
                if *oid == notice.carrier() && inner.suppressed().is_latest(notice) =>
            {
                // Only the first carrier stays: a consumer whose cursor is past it has the notice.
                self.carried.insert(notice.signature.clone())
            }
            (Change::Delete(_) | Change::Withdraw(..) | Change::Suppress(..), None) => {
                let forgotten = self.first && scanned.stamp < self.forgotten;
                if forgotten {
                    self.horizon = self.horizon.max(serial);
                }
                !forgotten
            }
            _ => false,
        })
    }

    /// Writes the complete drafts if there are at least `least` of changes or of notes.
    fn flush(&mut self, least: usize) -> Result<(), Error> {
        let ready = self.changes.ready().max(self.notes.ready());
        if ready == 0 || ready < least {
            return Ok(());
        }
        let mut drafts = self.notes.take();
        drafts.append(&mut self.changes.take());
        let mut bytes = Vec::new();
        let mut added = Vec::new();
        self.output()?;
        for (packed, draft) in pack::pack(&drafts, LEVEL_COMPACT).iter().zip(drafts) {
            let header = Header {
                start_of_commit: true,
                end_of_commit: true,
                local: packed.local,
                end_mark: false,
                epoch: self.inner.log.version().epoch,
                commit: self.commit,
                base: self.base,
                entries: draft.entries,
            };
            let start = bytes.len();
            header.write(packed, &mut bytes);
            added.push(Entry::new(&header, self.end + start as u64, bytes.len() - start));
            self.base = header.last();
        }
        let Some(segment) = self.outputs.last() else { return Ok(()) };
        let written = segment.file.write_all_at(&bytes, self.end);
        written.map_err(|error| Error::io("cannot write", &segment.path, error))?;
        segment.extend(added);
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn output(&mut self) -> Result<(), Error> {
        if self.outputs.is_empty() || self.inner.options.segment_bytes_max <= self.end {
            self.sync()?;
            let number = self.inner.tail().allocate();
            self.outputs.push(Arc::new(Segment::create(
                &self.inner.log.disk,
                &self.inner.dir,
                number,
            )?));
            self.end = 0;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        let Some(segment) = self.outputs.last() else { return Ok(()) };
        segment.file.sync_all().map_err(|error| Error::io("cannot sync", &segment.path, error))
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.changes.cut();
        self.notes.cut();
        self.flush(1)?;
        self.sync()
    }
}
