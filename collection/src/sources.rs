//! Sources: changes of several sources, merged into one log.
//!
//! The origin's newest version of each object wins, in whatever order and from whatever source the
//! versions arrive. A source's cursor is committed with its changes.
//!
//! A delete in an object's own gatherer's feed, and a [`Withdraw`](crate::Change::Withdraw) in that of a
//! source that holds it, say that its gatherer has deleted it: all holds go, and older versions are refused
//! as long as deletes are remembered. While the gatherer's own feed holds it, other sources' words count for their own holds
//! alone. Any other delete releases the hold of its source.
//!
//! Anybody can copy a gatherer's key. A source that is shown to serve where the key's owner does
//! decides. Of several others that name the same key, none ends what another one holds. That is
//! decided for each object by its holds, which are read anyway: nothing else has to be remembered,
//! and a source has no less right to what it holds because the other one came first.
//!
//! Source: ARCHITECTURE.md, "Invariants".

pub(crate) mod harvested;
mod merge;
pub mod restraint;

use soif::{Limits, Record};

use crate::change::{Note, Oid, Stamp, Version};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{CURSOR, Cursor, HOLDERS, Holder, Holders, Pulled, note_key};
use crate::log::Tail;
use crate::report::{Applied, SourceStats};
use crate::takedown::Recheck;
use merge::Merge;

/// Maximum number of holds released in one commit.
const RELEASES_MAX: usize = 4096;

impl Collection {
    /// Applies changes from a source, atomically with the source's cursor. The newest origin
    /// version of an object wins; a delete releases the source's hold, and an object is deleted
    /// with its last holder. Changes of a delta up to the cursor are ignored.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit). Records and roots without an identifier, and records that
    /// are too large, cause no error: they are left out and counted.
    pub fn apply(&self, pulled: Pulled, now: Stamp) -> Result<Applied, Error> {
        self.apply_after(pulled, None, now)
    }

    /// Applies changes, if the source's cursor is still `known`, as at the time of the request: a
    /// cursor that was set back meanwhile must not be moved forward again. Without `known` it is
    /// not checked.
    ///
    /// # Errors
    ///
    /// [`Error::SetBack`]: pull again. Otherwise as for [`apply`](Self::apply).
    pub(crate) fn apply_after(
        &self,
        pulled: Pulled,
        known: Option<&Cursor>,
        now: Stamp,
    ) -> Result<Applied, Error> {
        let is_known = |cursor: Option<&Cursor>| known.is_none() || known == cursor;
        self.apply_if(is_known, pulled, Vec::new(), now)
    }

    /// Applies changes, with `notes` in the same commit, if `is_known` accepts the source's cursor.
    pub(crate) fn apply_if(
        &self,
        is_known: impl FnOnce(Option<&Cursor>) -> bool,
        pulled: Pulled,
        notes: Vec<Note>,
        now: Stamp,
    ) -> Result<Applied, Error> {
        let mut tail = self.inner.tail();
        let before = self.cursor(&pulled.source)?;
        if !is_known(before.as_ref()) {
            return Err(Error::SetBack { name: pulled.source });
        }
        let applied = self.apply_to(&mut tail, before, pulled, notes, now);
        if applied.is_err() {
            self.inner.suppressed().withdraw();
        }
        applied
    }

    fn apply_to(
        &self,
        tail: &mut Tail,
        before: Option<Cursor>,
        pulled: Pulled,
        mut notes: Vec<Note>,
        now: Stamp,
    ) -> Result<Applied, Error> {
        let mut merge = Merge::new(&self.inner, &pulled.source);
        (merge.id, merge.now) = (pulled.id.as_ref(), now);
        merge.is_aftermath = self.aftermath()?.is_some();
        let snapshot = pulled.cursor.snapshot.as_ref().map(|it| it.generation);
        let generation = pulled.end_of_snapshot.or(snapshot);
        let passed = match before {
            Some(cursor) if generation.is_none() && cursor.epoch == pulled.epoch => cursor.serial,
            _ => 0,
        };
        for (serial, change) in pulled.changes {
            if serial <= passed {
                merge.applied.ignored += 1;
                continue;
            }
            let version = Version { epoch: pulled.epoch, serial };
            merge.change(version, change, generation.unwrap_or(0))?;
        }
        // The takedown list is written first: the next opening, at the latest, carries it out.
        self.inner.write_list()?;
        let mut deleted = 0;
        if let Some(generation) = pulled.end_of_snapshot {
            deleted = merge.release_unnamed(tail, generation, pulled.cursor.version(), now)?;
        }
        let key = note_key(CURSOR, pulled.source.as_bytes());
        notes.insert(0, Note { key, value: Some(pulled.cursor.encode()) });
        let carried = std::mem::take(&mut merge.carried);
        let mut applied = merge.commit(tail, notes, now)?;
        deleted += self.inner.apply_list(tail, &carried, Recheck::None, now)?;
        applied.version = tail.version();
        applied.deleted += deleted;
        self.inner.suppressed().counts.refused += applied.refused;
        Ok(applied)
    }

    /// Returns whether a source's record is small enough to be applied; larger ones are left out.
    pub fn takes(&self, record: &Record) -> bool {
        self.inner.fits(record)
    }

    /// Forgets a source: releases all objects that it holds, and removes its cursor. If this is
    /// interrupted, the source stays among [`sources`](Self::sources): call it again.
    pub fn remove_source(&self, source: &str, now: Stamp) -> Result<Applied, Error> {
        let mut tail = self.inner.tail();
        let mut total = Applied { version: tail.version(), ..Applied::default() };
        let mut from = Some(vec![HOLDERS]);
        while let Some(begin) = from.take() {
            let held = self.inner.held(source, None, &begin)?;
            let mut merge = Merge::new(&self.inner, source);
            for oid in held.oids {
                merge.release(oid)?;
            }
            total.deleted += merge.commit(&mut tail, Vec::new(), now)?.deleted;
            from = held.next;
        }
        let key = note_key(CURSOR, source.as_bytes());
        if self.inner.read_keys(|keys| keys.note(&key))?.is_some() {
            self.inner.commit(&mut tail, &[], &[Note { key, value: None }], now)?;
        }
        total.version = tail.version();
        Ok(total)
    }

    /// Returns the sources that hold an object or have a cursor, by name.
    pub fn sources(&self) -> Result<Vec<SourceStats>, Error> {
        let (mut found, cursors) = self.inner.read_keys(|keys| {
            let cursors = keys.cursors()?;
            Ok((keys.sources()?, cursors))
        })?;
        for (key, _) in cursors {
            let name = String::from_utf8_lossy(key.get(1..).unwrap_or_default()).into_owned();
            if !found.iter().any(|(it, _)| *it == name) {
                found.push((name, 0));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(source, objects)| SourceStats { source, objects }).collect())
    }
}

/// Some of the objects that a source holds.
pub(crate) struct HeldPage {
    /// At most [`RELEASES_MAX`].
    pub(crate) oids: Vec<Oid>,
    /// The key from which to continue; `None` if there are no more.
    pub(crate) next: Option<Vec<u8>>,
}

impl Inner {
    /// Returns whether a commit accepts the record once [`ORIGIN_VERSION`] is added.
    fn fits(&self, record: &Record) -> bool {
        const OVERHEAD: usize = 64;
        let attributes = record.attributes();
        let values: usize =
            attributes.iter().map(|it| it.name.len() + it.value.len() + OVERHEAD).sum();
        record.url.len() + values + 4 * OVERHEAD <= self.options.record_bytes_max
            && attributes.len() < Limits::default().attributes_max
    }

    /// Returns objects that `source` holds, except those of the generation `except`, from the note
    /// key `from` on.
    pub(crate) fn held(
        &self,
        source: &str,
        except: Option<u64>,
        from: &[u8],
    ) -> Result<HeldPage, Error> {
        let held = self.read_keys(|keys| {
            let mut held = HeldPage { oids: Vec::new(), next: None };
            for item in keys.notes_from(&[HOLDERS], from) {
                let (key, value) = item?;
                if held.oids.len() == RELEASES_MAX || self.check_open().is_err() {
                    held.next = Some(key);
                    break;
                }
                let holders = Holders::decode(&value).unwrap_or_default();
                let holds = |it: &Holder| it.source == source && Some(it.generation) != except;
                if holders.list.iter().any(holds) {
                    held.oids.extend(Oid::from_key(key.get(1..).unwrap_or_default()));
                }
            }
            Ok(held)
        })?;
        self.check_open().map(|()| held)
    }
}
