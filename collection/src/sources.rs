//! Sources: changes of several sources, merged into one log.
//!
//! The origin's newest version of each object wins, in whatever order and from whatever source the
//! versions arrive. A source's cursor is committed with its changes.
//!
//! Source: ARCHITECTURE.md, "Invariants".

pub(crate) mod harvested;
pub mod restraint;

use std::collections::{HashMap, HashSet};

use soif::{Limits, Record};

use crate::change::{Change, Note, ORIGIN_VERSION, Oid, Scanned, Stamp, Version};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{CURSOR, Cursor, HOLDERS, Holder, Holders, Pulled, note_key};
use crate::log::Tail;
use crate::log::holes::Holes;
use crate::notice::Notice;
use crate::report::{Applied, SourceStats};
use crate::suppressed::{Suppression, Verdict};
use crate::takedown::Recheck;

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
        merge.now = now;
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
            deleted = merge.release_unnamed(tail, generation, now)?;
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

/// One commit under construction.
struct Merge<'a> {
    inner: &'a Inner,
    source: &'a str,
    changes: Vec<Change>,
    /// The holders of the changed objects; those of a deleted object are empty.
    holders: HashMap<Oid, Holders>,
    /// The stored notes of these holders, to leave out unchanged ones.
    stored: HashMap<Oid, Option<Vec<u8>>>,
    /// The holes of the log: records in them are taken again, even if they are unchanged.
    unreadable: Holes,
    /// Whether unknown changes were lost: the record of the holders' version may be gone.
    is_aftermath: bool,
    /// The objects that are taken again because of a hole or a loss.
    regained: HashSet<Oid>,
    applied: Applied,
    now: Stamp,
    /// Signatures of the notices with a carrier among the changes.
    carried: HashSet<String>,
}

impl<'a> Merge<'a> {
    fn new(inner: &'a Inner, source: &'a str) -> Self {
        Self {
            inner,
            source,
            changes: Vec::new(),
            holders: HashMap::new(),
            stored: HashMap::new(),
            unreadable: inner.log.view().holes(),
            is_aftermath: false,
            regained: HashSet::new(),
            applied: Applied::default(),
            now: Stamp(0),
            carried: HashSet::new(),
        }
    }

    fn holders(&mut self, oid: &Oid) -> Result<&mut Holders, Error> {
        if !self.holders.contains_key(oid) {
            let key = Holders::note_key(oid);
            let value = self.inner.read_keys(|keys| keys.note(&key))?;
            let known = value.as_deref().and_then(Holders::decode).unwrap_or_default();
            self.holders.insert(oid.clone(), known);
            self.stored.insert(oid.clone(), value);
        }
        Ok(self.holders.entry(oid.clone()).or_default())
    }

    fn change(&mut self, version: Version, change: Change, generation: u64) -> Result<(), Error> {
        match change {
            Change::Update(record) => return self.update(version, record, generation),
            Change::Refresh(oid) => {
                let source = self.source;
                if self.holders(&oid)?.list.iter().any(|it| it.source == source) {
                    self.changes.push(Change::Refresh(oid));
                    self.applied.refreshed += 1;
                } else {
                    self.applied.ignored += 1;
                }
            }
            // An error would block the source for ever.
            Change::Confirm { gatherer, root, .. } if !Oid::new(&gatherer, &root).is_valid() => {
                self.applied.ignored += 1;
            }
            Change::Confirm { gatherer, root, at } => {
                let unreadable = &self.unreadable;
                let known = self.inner.read_keys(|keys| keys.confirmed(&gatherer, &root))?;
                if known.is_none_or(|(serial, before)| before < at.0 || unreadable.has(serial)) {
                    self.changes.push(Change::Confirm { gatherer, root, at });
                    self.applied.refreshed += 1;
                } else {
                    self.applied.ignored += 1;
                }
            }
            Change::Delete(oid) => self.delete(version, oid)?,
            Change::Suppress(oid, notice) => self.suppress(version, oid, notice)?,
        }
        Ok(())
    }

    fn delete(&mut self, version: Version, oid: Oid) -> Result<(), Error> {
        // Even in a snapshot a delete may precede a later update of the object.
        let source = self.source;
        let later = |it: &Holder| {
            it.source == source
                && it.version.epoch == version.epoch
                && version.serial < it.version.serial
        };
        if self.holders(&oid)?.list.iter().any(later) || !self.release(oid)? {
            self.applied.ignored += 1;
        }
        Ok(())
    }

    /// Carries out a notice if it is valid here, and passes it on unchanged.
    fn suppress(&mut self, version: Version, oid: Oid, notice: Box<Notice>) -> Result<(), Error> {
        let verdict = self.inner.suppressed().judge(self.source, &notice, &oid, self.now);
        let scope = match verdict {
            Verdict::Plain => return self.delete(version, oid),
            Verdict::Known => None,
            Verdict::Take(scope) => Some(scope),
        };
        let holders = self.holders(&oid)?;
        let held_by: Vec<_> = holders.list.drain(..).map(|it| it.source).collect();
        let key = oid.key();
        let lives = self.inner.read_keys(|keys| keys.object(&key))?.is_some();
        if let Some(scope) = scope {
            let active = !notice.lifted;
            let (notice, from) = ((*notice).clone(), self.source.to_owned());
            self.inner.suppressed().stage(Suppression { notice, scope, from, held_by, active });
        } else if !lives && held_by.is_empty() {
            self.applied.ignored += 1;
            return Ok(());
        }
        if oid == notice.carrier() {
            self.carried.insert(notice.signature.clone());
        }
        self.applied.deleted += u64::from(lives);
        self.changes.push(Change::Suppress(oid, notice));
        Ok(())
    }

    fn update(
        &mut self,
        pulled: Version,
        mut record: Record,
        generation: u64,
    ) -> Result<(), Error> {
        let Some(oid) = Oid::of(&record) else {
            self.applied.ignored += 1;
            return Ok(());
        };
        if self.inner.suppressed().covering(&oid).is_some() {
            self.applied.refused += 1;
            return Ok(());
        }
        if !self.inner.fits(&record) {
            // An error would block the source for ever.
            tracing::warn!(source = self.source, %oid, "record is too large and is left out");
            self.applied.oversized += 1;
            return Ok(());
        }
        let origin = record.text(ORIGIN_VERSION).and_then(|it| it.parse::<Version>().ok());
        let origin = origin.unwrap_or(pulled);
        let source = self.source;
        let holders = self.holders(&oid)?;
        // A stored object without holders has expired or was never pulled.
        let fresh = holders.list.is_empty();
        if fresh {
            holders.version = Version::default();
        }
        let same = !fresh && holders.version == origin;
        if holders.hold(source, origin, generation) || self.is_lost(&oid, origin, same)? {
            record.set(ORIGIN_VERSION, origin.to_string());
            self.changes.push(Change::Update(record));
            self.applied.updated += 1;
        } else {
            self.applied.ignored += 1;
        }
        Ok(())
    }

    /// Returns whether an object is taken although it is not newer than its holders' version: if
    /// its stored record is gone, or if that cannot be read and this is the `same` version.
    fn is_lost(&mut self, oid: &Oid, origin: Version, same: bool) -> Result<bool, Error> {
        // The updates of this pull are not in the key index yet.
        let was_held = self.stored.get(oid).is_some_and(Option::is_some);
        if !was_held || self.regained.contains(oid) {
            return Ok(false);
        }
        let object = self.inner.read_keys(|keys| keys.object(&oid.key()))?;
        let is_lost = match object {
            None => true,
            Some(it) => {
                same && (self.unreadable.has(it.serial) || self.is_older(it.serial, origin))
            }
        };
        if is_lost {
            self.regained.insert(oid.clone());
            self.holders(oid)?.version = origin;
        }
        Ok(is_lost)
    }

    /// Returns whether the stored record is older than `origin`, its holders' version, because the
    /// record of that version was lost.
    fn is_older(&self, serial: u64, origin: Version) -> bool {
        if !self.is_aftermath {
            return false;
        }
        match self.inner.log.view().change(serial) {
            Ok(Some(Scanned { change: Change::Update(record), .. })) => {
                let stored = record.text(ORIGIN_VERSION).and_then(|it| it.parse::<Version>().ok());
                stored.is_none_or(|it| it < origin)
            }
            _ => true,
        }
    }

    /// Releases the source's holds of other generations at the end of a snapshot. If there are too
    /// many for one commit, they are released in separate commits before it; returns the number of
    /// objects deleted by these. If this is interrupted, the end of the snapshot is applied again.
    fn release_unnamed(
        &mut self,
        tail: &mut Tail,
        generation: u64,
        now: Stamp,
    ) -> Result<u64, Error> {
        let mut deleted = 0;
        let mut from = Some(vec![HOLDERS]);
        while let Some(begin) = from.take() {
            let held = self.inner.held(self.source, Some(generation), &begin)?;
            let is_all = begin == [HOLDERS] && held.next.is_none();
            let mut apart = Merge::new(self.inner, self.source);
            for oid in held.oids {
                if is_all || self.holders.contains_key(&oid) {
                    // The objects named by this pull are not in the key index yet.
                    if !self.names(&oid, generation) {
                        self.release(oid)?;
                    }
                } else {
                    apart.release(oid)?;
                }
            }
            deleted += apart.commit(tail, Vec::new(), now)?.deleted;
            from = held.next;
        }
        Ok(deleted)
    }

    /// Returns whether this pull has named the object under `generation`.
    fn names(&self, oid: &Oid, generation: u64) -> bool {
        let named = |it: &Holder| it.source == self.source && it.generation == generation;
        self.holders.get(oid).is_some_and(|it| it.list.iter().any(named))
    }

    /// Releases the source's hold; returns whether it had one.
    fn release(&mut self, oid: Oid) -> Result<bool, Error> {
        let source = self.source;
        let holders = self.holders(&oid)?;
        let held = holders.release(source);
        let last = holders.list.is_empty();
        if held && last {
            self.changes.push(Change::Delete(oid));
            self.applied.deleted += 1;
        }
        Ok(held)
    }

    fn commit(mut self, tail: &mut Tail, notes: Vec<Note>, now: Stamp) -> Result<Applied, Error> {
        let mut all = Vec::with_capacity(self.holders.len() + notes.len());
        for (oid, holders) in self.holders.drain() {
            let value = (!holders.list.is_empty()).then(|| holders.encode());
            if self.stored.get(&oid) != Some(&value) {
                all.push(Note { key: Holders::note_key(&oid), value });
            }
        }
        // The notes are sorted, so that a repeated pull gives the same bytes.
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all.extend(notes);
        self.applied.version = self.inner.commit(tail, &self.changes, &all, now)?;
        Ok(self.applied)
    }
}
