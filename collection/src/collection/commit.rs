//! Commits: packed without the writer's lock, appended and synced under it, added to the key index,
//! and then shown to readers.
//!
//! Source: ARCHITECTURE.md, "The one idea".

use std::borrow::{Borrow, Cow};

use super::{Collection, Inner, room};
use crate::change::{Batch, Change, Note, Stamp, Version};
use crate::error::Error;
use crate::holders::{USER, note_key};
use crate::log::{Appended, Tail};
use crate::member::content;
use crate::member::pack::{self, Packed};
use crate::recover;

/// Compression level of commits: the fastest.
const LEVEL_COMMIT: u32 = 1;

impl Collection {
    /// Appends `batch` as one commit: after a crash all of it is there, or nothing. It is durable
    /// when this returns. An empty batch commits nothing. Updates of suppressed objects are left
    /// out and counted.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: correct or drop the change that the error names. [`Error::Stopped`]: the
    /// collection is closed. After any other error nothing of the batch is kept; if the error [`may
    /// pass`](Error::may_pass), commit it again later.
    pub fn commit(&self, batch: impl Borrow<Batch>, now: Stamp) -> Result<Version, Error> {
        let batch = batch.borrow();
        let (kept, seen) = self.inner.without_suppressed(&batch.changes);
        let own = |note: &Note| Note { key: note_key(USER, &note.key), value: note.value.clone() };
        let notes: Vec<Note> = batch.notes.iter().map(own).collect();
        let packed = self.inner.pack(&kept, &notes)?;
        let mut tail = self.inner.tail();
        if self.inner.suppressed().revision != seen {
            // The list of suppressed objects has grown since it was read.
            let (kept, _) = self.inner.without_suppressed(&kept);
            return self.inner.commit(&mut tail, &kept, &notes, now);
        }
        self.inner.commit_packed(&mut tail, &kept, &notes, &packed, now)
    }

    /// Begins a new epoch, after a restore, an import or a rollback: every consumer begins anew
    /// with a snapshot.
    ///
    /// # Errors
    ///
    /// The file system reports an error; the epoch is unchanged.
    pub fn new_epoch(&self, now: Stamp) -> Result<Version, Error> {
        let mut tail = self.inner.tail();
        self.inner.check_open()?;
        tail.amend(&self.inner.log, |manifest| {
            manifest.epoch = recover::fresh_epoch(now, manifest.epoch);
        })?;
        let (epoch, commit, serial) = (tail.manifest.epoch, tail.commit, tail.serial);
        let indexed = self.inner.read_keys(|keys| {
            keys.writes().commit(epoch, commit, serial);
            keys.flush()
        });
        if let Err(error) = indexed {
            self.inner.give_up_keys(&error);
        }
        self.inner.publish(&tail);
        Ok(tail.version())
    }
}

impl Inner {
    /// Leaves out updates of suppressed objects, and counts them. Also returns the list's revision.
    fn without_suppressed<'a>(&self, changes: &'a [Change]) -> (Cow<'a, [Change]>, u64) {
        let mut suppressed = self.suppressed();
        let refused = |change: &&Change| {
            matches!(change, Change::Update(_))
                && change.oid().is_some_and(|oid| suppressed.covering(&oid).is_some())
        };
        let revision = suppressed.revision;
        if suppressed.list.is_empty() || !changes.iter().any(|it| refused(&it)) {
            return (Cow::Borrowed(changes), revision);
        }
        let kept: Vec<_> = changes.iter().filter(|it| !refused(it)).cloned().collect();
        suppressed.counts.refused += (changes.len() - kept.len()) as u64;
        (Cow::Owned(kept), revision)
    }

    pub(crate) fn pack(&self, changes: &[Change], notes: &[Note]) -> Result<Vec<Packed>, Error> {
        let options = &self.options;
        let mut packed = Vec::new();
        let bytes_max = (options.member_bytes_max, options.record_bytes_max);
        content::drafts(changes, notes, bytes_max, |drafts| {
            packed.extend(pack::pack(&drafts, LEVEL_COMMIT));
        })?;
        Ok(packed)
    }

    /// Commits under the writer's lock.
    pub(crate) fn commit(
        &self,
        tail: &mut Tail,
        changes: &[Change],
        notes: &[Note],
        now: Stamp,
    ) -> Result<Version, Error> {
        let packed = self.pack(changes, notes)?;
        self.commit_packed(tail, changes, notes, &packed, now)
    }

    fn commit_packed(
        &self,
        tail: &mut Tail,
        changes: &[Change],
        notes: &[Note],
        packed: &[Packed],
        now: Stamp,
    ) -> Result<Version, Error> {
        if packed.is_empty() {
            return Ok(tail.version());
        }
        let taken = self.append(tail, packed, now);
        self.repairs().refused(taken.as_ref().err());
        let appended = taken.inspect_err(|_error| self.log.settled.end())?;
        self.index(tail, appended, changes, notes);
        self.publish(tail);
        self.log.settled.end();
        let goes_on = || self.check_open().is_ok();
        if let Err(error) = self.read_keys(|keys| keys.maintain(&goes_on)) {
            self.give_up_keys(&error);
        }
        Ok(tail.version())
    }

    fn append(&self, tail: &mut Tail, packed: &[Packed], now: Stamp) -> Result<Appended, Error> {
        tail.ensure_writable(&self.log)?;
        room::check(self, tail, packed)?;
        // Without a key index the changes could not be looked up, so the commit is refused.
        self.read_keys(|_keys| Ok(()))?;
        self.log.append(tail, packed, now, self.options.segment_bytes_max)
    }
}
