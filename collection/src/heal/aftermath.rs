//! The aftermath of a loss: acknowledged changes are gone, so a live object may have been deleted.
//!
//! A delete may be among the lost changes. Then an older update of its object is valid again, and
//! no source would ever correct that, since a source sends nothing about an object that it does not
//! have. So the loss is noted, in the commit that forgets the sources' cursors, until everything
//! has been fetched or gathered again: sources are read from the start, and files are gathered
//! anew. Then objects without a holder or a file are deleted. They stay until then, because the
//! lost change may also have been a note. The epoch does not change. But nobody knows which of the
//! lost changes each consumer has, so all consumers get a snapshot at the end.
//!
//! Source: ours.

use std::collections::BTreeSet;

use crate::change::{Change, Epoch, Note, Oid, Stamp, Version};
use crate::collection::ttl::DELETES_MAX;
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{AFTERMATH, Holders, SUPPRESSED, note_key};
use crate::log::Tail;
use crate::member::{get, put};

impl Collection {
    /// Returns the version at which a loss of unknown changes was found, until
    /// [`end_aftermath`](Self::end_aftermath) is called; `None` if there is no such loss.
    pub fn aftermath(&self) -> Result<Option<Version>, Error> {
        let key = note_key(AFTERMATH, &[]);
        let value = self.inner.read_keys(|keys| keys.note(&key))?;
        Ok(value.and_then(|value| {
            let rest = &mut &value[..];
            // Earlier releases began a new epoch, and wrote no serial.
            Some(Version { epoch: Epoch(get(rest)?), serial: get(rest).unwrap_or(0) })
        }))
    }

    /// Ends the aftermath of a loss, if there is one, after everything has been fetched or gathered
    /// again: deletes live objects that are not known. `look` is called once and returns the test
    /// whether an object is known; objects updated after that call are kept. Returns the number of
    /// deleted objects. If this is interrupted, call it again.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit); or an error of `look` or of the test.
    pub fn end_aftermath<K>(
        &self,
        look: impl FnOnce() -> Result<K, Error>,
        now: Stamp,
    ) -> Result<u64, Error>
    where
        K: Fn(&Oid) -> Result<bool, Error>,
    {
        let inner = &self.inner;
        let Some(loss) = self.aftermath()? else { return Ok(0) };
        let until = self.version().serial;
        let is_known = look()?;
        let mut deleted = 0;
        let mut from = Some(Vec::new());
        while let Some(begin) = from.take() {
            inner.check_open()?;
            let (found, next) = inner.objects_until(until, &begin)?;
            let mut unknown = Vec::new();
            for oid in found {
                if !is_known(&oid)? {
                    unknown.push(oid);
                }
            }
            deleted += self.delete_unchanged(unknown, until, now)?;
            from = next;
        }
        let mut tail = inner.tail();
        tail.ensure_writable(&inner.log)?;
        if self.aftermath()? == Some(loss) {
            inner.forget_past(&mut tail)?;
            let settled = Note { key: note_key(AFTERMATH, &[]), value: None };
            inner.commit(&mut tail, &[], &[settled], now)?;
        }
        tracing::warn!(deleted, "lost objects were brought again, and unknown ones are deleted");
        Ok(deleted)
    }

    /// Ends the aftermath in a collection that only [`apply`](Self::apply) fills: deletes objects
    /// without a holder, and returns their number. Does nothing until each of `sources` has been
    /// read again.
    pub fn release_unheld(&self, sources: &BTreeSet<String>, now: Stamp) -> Result<u64, Error> {
        if self.aftermath()?.is_none() {
            return Ok(0);
        }
        for source in sources {
            if self.cursor(source)?.is_none_or(|it| it.snapshot.is_some()) {
                return Ok(0);
            }
        }
        let is_held = |oid: &Oid| {
            let key = Holders::note_key(oid);
            self.inner.read_keys(|keys| Ok(keys.note(&key)?.is_some()))
        };
        self.end_aftermath(|| Ok(is_held), now)
    }

    /// Deletes those of `oids` that have not changed since serial `until`.
    fn delete_unchanged(&self, oids: Vec<Oid>, until: u64, now: Stamp) -> Result<u64, Error> {
        let inner = &self.inner;
        let mut tail = inner.tail();
        let mut unchanged = Vec::new();
        for oid in oids {
            let object = inner.read_keys(|keys| keys.object(&oid.key()))?;
            if object.is_some_and(|it| it.serial <= until) {
                unchanged.push(oid);
            }
        }
        let notes = inner.released(&unchanged)?;
        let changes: Vec<Change> = unchanged.into_iter().map(Change::Delete).collect();
        inner.commit(&mut tail, &changes, &notes, now)?;
        Ok(changes.len() as u64)
    }
}

impl Inner {
    /// Begins the aftermath if the manifest notes a loss: forgets the sources' cursors, so that
    /// they are read from the start, and the progress of the takedown list.
    pub(crate) fn begin_aftermath(&self, tail: &mut Tail, now: Stamp) -> Result<(), Error> {
        if !tail.manifest.lost {
            return Ok(());
        }
        let cursors = self.read_keys(|keys| keys.cursors())?;
        let forgotten = |key: Vec<u8>| Note { key, value: None };
        let mut notes: Vec<Note> = cursors.into_iter().map(|(key, _)| forgotten(key)).collect();
        notes.push(forgotten(note_key(SUPPRESSED, &[])));
        let mut loss = Vec::new();
        put(&mut loss, tail.manifest.epoch.0);
        put(&mut loss, tail.serial);
        notes.push(Note { key: note_key(AFTERMATH, &[]), value: Some(loss) });
        self.commit(tail, &[], &notes, now)?;
        tail.amend(&self.log, |manifest| manifest.lost = false)
    }

    /// Makes all consumers fetch a snapshot, whatever their cursors are.
    fn forget_past(&self, tail: &mut Tail) -> Result<(), Error> {
        let serial = tail.serial + 1;
        tail.amend(&self.log, |manifest| {
            (manifest.serial, manifest.horizon, manifest.doubt) = (serial, serial, 0);
        })?;
        tail.serial = serial;
        self.log.change_view(|view| (view.horizon, view.doubt) = (serial, 0));
        self.publish(tail);
        Ok(())
    }

    /// Returns live objects whose last update is at most serial `until`, from the key `from` on,
    /// and the key after them (`None` at the end).
    fn objects_until(&self, until: u64, from: &[u8]) -> Result<(Vec<Oid>, Option<Vec<u8>>), Error> {
        self.read_keys(|keys| {
            let mut found = Vec::new();
            for item in keys.objects_onward(from) {
                let (key, object) = item?;
                if found.len() == DELETES_MAX {
                    return Ok((found, Some(key)));
                }
                if object.serial <= until {
                    found.extend(Oid::from_key(&key));
                }
            }
            Ok((found, None))
        })
    }
}
