//! Merges of a source's changes into one commit of ours.
//!
//! Source: ARCHITECTURE.md, "Invariants".

use std::collections::{HashMap, HashSet};

use soif::Record;

use crate::change::{Change, Note, ORIGIN_PATH, ORIGIN_VERSION, Oid, Scanned, Stamp, Version};
use crate::collection::Inner;
use crate::error::Error;
use crate::holders::{HOLDERS, Holder, Holders, Owner, PATH_MAX, Withdrawn, read_path};
use crate::log::Tail;
use crate::log::holes::Holes;
use crate::notice::Notice;
use crate::report::Applied;
use crate::suppressed::{Suppression, Verdict};

/// One commit under construction.
pub(super) struct Merge<'a> {
    inner: &'a Inner,
    source: &'a str,
    /// Whose feed the source is.
    pub(super) id: Option<&'a Owner>,
    /// The changes; `None`: a later one supersedes it.
    changes: Vec<Option<Change>>,
    /// Where the last update or delete of each object is among them.
    last: HashMap<Oid, usize>,
    /// The holders of the changed objects; those of a deleted object are empty.
    holders: HashMap<Oid, Holders>,
    /// The stored notes of these holders, to leave out unchanged ones.
    stored: HashMap<Oid, Option<Vec<u8>>>,
    /// Objects that their gatherers have deleted; `None`: or made anew.
    withdrawn: HashMap<Oid, Option<Withdrawn>>,
    /// The holes of the log: records in them are taken again, even if they are unchanged.
    unreadable: Holes,
    /// Whether unknown changes were lost: the record of the holders' version may be gone.
    pub(super) is_aftermath: bool,
    /// The objects that are taken again because of a hole or a loss.
    regained: HashSet<Oid>,
    pub(super) applied: Applied,
    pub(super) now: Stamp,
    /// Signatures of the notices with a carrier among the changes.
    pub(super) carried: HashSet<String>,
}

impl<'a> Merge<'a> {
    pub(super) fn new(inner: &'a Inner, source: &'a str) -> Self {
        Self {
            inner,
            source,
            id: None,
            changes: Vec::new(),
            last: HashMap::new(),
            holders: HashMap::new(),
            stored: HashMap::new(),
            withdrawn: HashMap::new(),
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

    pub(super) fn change(
        &mut self,
        version: Version,
        change: Change,
        generation: u64,
    ) -> Result<(), Error> {
        match change {
            Change::Update(record) => return self.update(version, record, generation),
            Change::Refresh(oid, at) => {
                // A gatherer's clock may run ahead of ours.
                let (source, at) = (self.source, at.unwrap_or(self.now).min(self.now));
                let is_held = self.holders(&oid)?.list.iter().any(|it| it.source == source);
                let object = self.inner.read_keys(|keys| keys.object(&oid.key()))?;
                // In a loop of brokers, what was told of here comes back.
                if is_held && object.is_some_and(|it| it.seen < at.0) {
                    self.changes.push(Some(Change::Refresh(oid, Some(at))));
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
                let at = at.min(self.now);
                let unreadable = &self.unreadable;
                let known = self.inner.read_keys(|keys| keys.confirmed(&gatherer, &root))?;
                if known.is_none_or(|(serial, before)| before < at.0 || unreadable.has(serial)) {
                    self.changes.push(Some(Change::Confirm { gatherer, root, at }));
                    self.applied.refreshed += 1;
                } else {
                    self.applied.ignored += 1;
                }
            }
            Change::Delete(oid) => self.delete(version, oid, None)?,
            Change::Withdraw(oid, at) => self.delete(version, oid, Some(at))?,
            Change::Suppress(oid, notice) => self.suppress(version, oid, notice)?,
        }
        Ok(())
    }

    /// Adds an update or a delete. Nobody is told of what it supersedes.
    fn push(&mut self, oid: &Oid, change: Change) {
        let before = self.last.insert(oid.clone(), self.changes.len());
        if let Some(superseded) = before.and_then(|it| self.changes.get_mut(it)) {
            *superseded = None;
        }
        self.changes.push(Some(change));
    }

    /// Takes a delete, in which the source says at which version the object's gatherer has deleted it, if it
    /// has.
    fn delete(
        &mut self,
        version: Version,
        oid: Oid,
        withdrawn: Option<Version>,
    ) -> Result<(), Error> {
        // Even in a snapshot a delete may precede a later update of the object.
        let source = self.source;
        let later = |it: &Holder| {
            it.source == source
                && it.version.epoch == version.epoch
                && version.serial < it.version.serial
        };
        let withdrawn = if self.is_own(&oid) { Some(version) } else { withdrawn };
        if self.holders(&oid)?.list.iter().any(later) || !self.end(oid, withdrawn)? {
            self.applied.ignored += 1;
        }
        Ok(())
    }

    /// Returns whether the source is the object's own gatherer, shown or by its word.
    fn is_own(&self, oid: &Oid) -> bool {
        self.id.is_some_and(|it| it.id == oid.gatherer)
    }

    /// Returns whether the source is the object's own gatherer, and has shown it.
    fn is_shown(&self, oid: &Oid) -> bool {
        self.id.is_some_and(|it| it.is_shown && it.id == oid.gatherer)
    }

    /// Ends the source's hold, or all holds if the object's gatherer has deleted it, at this
    /// version; returns whether the source had one. Of several sources whose word alone it is that
    /// they are the gatherer, none ends the holds of the others.
    fn end(&mut self, oid: Oid, withdrawn: Option<Version>) -> Result<bool, Error> {
        let (source, is_shown, at) = (self.source, self.is_shown(&oid), self.now);
        let holders = self.holders(&oid)?;
        let held = holders.list.iter().any(|it| it.source == source);
        let is_kept = holders.list.iter().any(|it| it.is_own && it.source != source);
        // A version that nobody can have yet would keep all later ones out.
        let is_likely = |it: &Version| is_shown || !it.epoch.is_ahead_of(at);
        match withdrawn.filter(|it| holders.version < *it && is_likely(it)) {
            Some(version) if held && (is_shown || !is_kept) => {
                holders.list.clear();
                let withdrawn = Withdrawn { version, at, is_shown };
                self.withdrawn.insert(oid.clone(), Some(withdrawn));
                self.push(&oid.clone(), Change::Withdraw(oid, version));
                self.applied.deleted += 1;
                Ok(true)
            }
            _ => self.release(oid),
        }
    }

    /// Returns at which version the object's gatherer has deleted it, if that is remembered.
    fn withdrawn(&self, oid: &Oid) -> Result<Option<Withdrawn>, Error> {
        if let Some(staged) = self.withdrawn.get(oid) {
            return Ok(*staged);
        }
        let key = Withdrawn::note_key(oid);
        let value = self.inner.read_keys(|keys| keys.note(&key))?;
        Ok(value.as_deref().and_then(Withdrawn::decode))
    }

    /// Returns whether this version is refused, since the object's gatherer has deleted it. The
    /// gatherer itself brings back what it likes; if that is only the source's word, what was not
    /// deleted by a gatherer that had shown itself.
    fn is_refused(&self, oid: &Oid, version: Version, withdrawn: &Withdrawn) -> bool {
        let is_free = self.is_shown(oid) || (self.is_own(oid) && !withdrawn.is_shown);
        version <= withdrawn.version && !is_free
    }

    /// Returns the path of a record that the source sends; `None`: it came through ourselves, or is longer than
    /// a path may be.
    fn path_of(&self, oid: &Oid, record: &Record) -> Option<Vec<String>> {
        // The gatherer itself is known by the object's identifier.
        if self.is_own(oid) {
            return Some(Vec::new());
        }
        let mut path = read_path(&record.text(ORIGIN_PATH).unwrap_or_default())?;
        path.extend(self.id.map(|it| it.id.clone()));
        let own = self.inner.options.own_id.as_ref();
        let is_round = own.is_some_and(|it| path.contains(it));
        (!is_round && path.len() <= PATH_MAX).then_some(path)
    }

    /// Carries out a notice if it is valid here, and passes it on unchanged.
    fn suppress(&mut self, version: Version, oid: Oid, notice: Box<Notice>) -> Result<(), Error> {
        let verdict = self.inner.suppressed().judge(self.source, &notice, &oid, self.now);
        let scope = match verdict {
            Verdict::Plain => return self.delete(version, oid, None),
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
        self.changes.push(Some(Change::Suppress(oid, notice)));
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
        let (source, is_own) = (self.source, self.is_own(&oid));
        let withdrawn = self.withdrawn(&oid)?;
        let is_old = withdrawn.is_some_and(|it| self.is_refused(&oid, origin, &it));
        let Some(path) = self.path_of(&oid, &record).filter(|_| !is_old) else {
            self.release(oid)?;
            self.applied.ignored += 1;
            return Ok(());
        };
        if withdrawn.is_some() {
            self.withdrawn.insert(oid.clone(), None);
        }
        let holders = self.holders(&oid)?;
        // A stored object without holders has expired or was never pulled.
        let fresh = holders.list.is_empty();
        if fresh {
            holders.version = Version::default();
        }
        let same = !fresh && holders.version == origin;
        let source = source.to_owned();
        let holder = Holder { source, version: origin, generation, path, is_own };
        if holders.hold(holder) || self.is_lost(&oid, origin, same)? {
            record.set(ORIGIN_VERSION, origin.to_string());
            self.push(&oid, Change::Update(record));
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
    pub(super) fn release_unnamed(
        &mut self,
        tail: &mut Tail,
        generation: u64,
        version: Version,
        now: Stamp,
    ) -> Result<u64, Error> {
        let mut deleted = 0;
        let mut from = Some(vec![HOLDERS]);
        while let Some(begin) = from.take() {
            let held = self.inner.held(self.source, Some(generation), &begin)?;
            let is_all = begin == [HOLDERS] && held.next.is_none();
            let mut apart = Merge::new(self.inner, self.source);
            (apart.id, apart.now) = (self.id, now);
            for oid in held.oids {
                let withdrawn = self.is_own(&oid).then_some(version);
                if is_all || self.holders.contains_key(&oid) {
                    // The objects named by this pull are not in the key index yet.
                    if !self.names(&oid, generation) {
                        self.end(oid, withdrawn)?;
                    }
                } else {
                    apart.end(oid, withdrawn)?;
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
    pub(super) fn release(&mut self, oid: Oid) -> Result<bool, Error> {
        let source = self.source;
        let holders = self.holders(&oid)?;
        let held = holders.release(source);
        let last = holders.list.is_empty();
        if held && last {
            self.push(&oid.clone(), Change::Delete(oid));
            self.applied.deleted += 1;
        }
        Ok(held)
    }

    /// Gives each record that is published the path of its object, and publishes again what has another path
    /// than before.
    fn publish_paths(&mut self) {
        let mut updated = HashSet::new();
        for change in self.changes.iter_mut().flatten() {
            if let Change::Update(record) = change
                && let Some(oid) = Oid::of(record)
            {
                let path = self.holders.get(&oid).map(Holders::path).unwrap_or_default();
                set_path(record, path);
                updated.insert(oid);
            }
        }
        for (oid, holders) in &self.holders {
            let before = self.stored.get(oid).and_then(|it| Holders::decode(it.as_deref()?));
            let is_same = before.is_none_or(|it| it.path() == holders.path());
            if is_same || holders.list.is_empty() || updated.contains(oid) {
                continue;
            }
            // One that cannot be read is fetched again, with its path.
            if let Ok(Some(stored)) = self.inner.stored(oid) {
                let mut record = stored.record;
                set_path(&mut record, holders.path());
                self.changes.push(Some(Change::Update(record)));
            }
        }
    }

    pub(super) fn commit(
        mut self,
        tail: &mut Tail,
        notes: Vec<Note>,
        now: Stamp,
    ) -> Result<Applied, Error> {
        self.publish_paths();
        let mut all = Vec::with_capacity(self.holders.len() + notes.len());
        for (oid, withdrawn) in self.withdrawn.drain() {
            let value = withdrawn.map(Withdrawn::encode);
            all.push(Note { key: Withdrawn::note_key(&oid), value });
        }
        for (oid, holders) in self.holders.drain() {
            let value = (!holders.list.is_empty()).then(|| holders.encode());
            if self.stored.get(&oid) != Some(&value) {
                all.push(Note { key: Holders::note_key(&oid), value });
            }
        }
        // The notes are sorted, so that a repeated pull gives the same bytes.
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all.extend(notes);
        let changes: Vec<Change> = self.changes.into_iter().flatten().collect();
        self.applied.version = self.inner.commit(tail, &changes, &all, now)?;
        Ok(self.applied)
    }
}

fn set_path(record: &mut Record, path: &[String]) {
    if path.is_empty() {
        record.remove(ORIGIN_PATH);
    } else {
        record.set(ORIGIN_PATH, path.join(" "));
    }
}
