//! The aftermath of a loss: acknowledged changes are gone, so what lives may be what was deleted.
//!
//! A delete may be among what was lost: then an older update of its object counts again, and nobody
//! would ever take that back, since a source that has nothing of an object says nothing of it. So
//! the loss is noted, in the commit that forgets the sources' cursors, until everything has been
//! brought again: sources are read from the start, files are gathered anew. What lives then and has
//! no holder, or was given by no file, goes. It stays until then: as well it may be the note that
//! was lost. The epoch stays; but what consumers have heard of that is lost nobody knows, so that all
//! get a snapshot once it is over.
//!
//! Source: ours.

use std::collections::BTreeSet;

use crate::change::{Change, Epoch, Note, Oid, Stamp, Version};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{AFTERMATH, Holders, SUPPRESSED, note_key};
use crate::log::Tail;
use crate::log::manifest::Manifest;
use crate::member::{get, put};

/// Most objects looked at, and deleted, at once.
const OBJECTS_MAX: usize = 4096;

impl Collection {
    /// Returns the version at which it was found that changes were lost of which nobody knows what they
    /// were, until [`end_aftermath`](Self::end_aftermath); `None`: nothing is missing.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn aftermath(&self) -> Result<Option<Version>, Error> {
        let key = note_key(AFTERMATH, &[]);
        let value = self.inner.read_keys(|keys| keys.note(&key))?;
        Ok(value.and_then(|value| {
            let rest = &mut &value[..];
            // Earlier releases began an epoch instead.
            Some(Version { epoch: Epoch(get(rest)?), serial: get(rest).unwrap_or(0) })
        }))
    }

    /// Ends the aftermath of a loss, if there is one, after all that was lost has been brought again: deletes what
    /// lives and is not known. `look` finds out what is, and is called once; what is committed from
    /// then on stays. Returns how many objects were deleted. If interrupted, it is to be called again.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit); that of `look`.
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
            inner.go_on()?;
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
        tail.go_on(&inner.log)?;
        if self.aftermath()? == Some(loss) {
            inner.forget_past(&mut tail)?;
            let settled = Note { key: note_key(AFTERMATH, &[]), value: None };
            inner.commit(&mut tail, &[], &[settled], now)?;
        }
        tracing::warn!(
            deleted,
            "what was lost has been brought again; what nobody knows is deleted"
        );
        Ok(deleted)
    }

    /// Ends the aftermath in a collection that only [`apply`](Self::apply) fills, once each of `sources`
    /// has been read again: deletes what nobody holds. Returns how many objects that were.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit).
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

    /// Deletes those of the objects that have not changed since serial `until`.
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
        let notes = self.holders_of(&unchanged)?;
        let changes: Vec<Change> = unchanged.into_iter().map(Change::Delete).collect();
        inner.commit(&mut tail, &changes, &notes, now)?;
        Ok(changes.len() as u64)
    }
}

impl Inner {
    /// Does what follows from lost changes, if the manifest says that there are any: sources are read
    /// from the start, what is suppressed is looked for again, and the aftermath begins.
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
        let mut manifest = tail.manifest_now();
        manifest.lost = false;
        tail.replace(manifest, &self.log)
    }

    /// Sends all consumers to a snapshot, how far soever they have come.
    fn forget_past(&self, tail: &mut Tail) -> Result<(), Error> {
        let serial = tail.serial + 1;
        let manifest = Manifest { serial, horizon: serial, doubt: 0, ..tail.manifest_now() };
        tail.replace(manifest, &self.log)?;
        tail.serial = serial;
        self.log.change_view(|view| (view.horizon, view.doubt) = (serial, 0));
        self.publish(tail);
        Ok(())
    }

    /// Returns live objects whose last update came up to serial `until`, from a key on, and where to
    /// go on after them.
    fn objects_until(&self, until: u64, from: &[u8]) -> Result<(Vec<Oid>, Option<Vec<u8>>), Error> {
        self.read_keys(|keys| {
            let mut found = Vec::new();
            for item in keys.objects_onward(from) {
                let (key, object) = item?;
                if found.len() == OBJECTS_MAX {
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
