//! Damage: found, named, kept from everybody, and made good.
//!
//! What reads a member remembers one that does not match its checksums ([`Segment`](crate::log::segment)
//! has the list), and [`scrub`](Collection::scrub) reads what nobody asks for. From then on no feed
//! serves it. The key index still knows which objects live in it: a broker reads the sources that hold
//! them again from before the first of them on; a gatherer, which is told their
//! names, gathers them again. Once nothing lives in a damaged member, a compaction leaves it out. What
//! it had besides goes: deletes (whoever may have missed them gets a snapshot), and notes, which are
//! written anew from the key index. A hole without bytes is seen to in the same way. What the key index
//! does not know is a matter of the [`aftermath`]; holes stay until that is over.
//!
//! Source: ours.

mod aftermath;
mod doubt;
#[cfg(test)]
mod unreadable;
pub(crate) mod verify;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use net::clock;

use crate::change::{Change, Epoch, Note, Oid, Stamp, Version};
use crate::collection::{Collection, Inner};
use crate::error::{Damage, Error};
use crate::holders::{CURSOR, Cursor, Holder, Holders, note_key};
use crate::log::due::Due;
use crate::log::manifest::Manifest;
use crate::log::segment::{Entry, Segment};
use crate::log::{Address, View};
use crate::recover;
use crate::report::{Health, Problem};
use crate::takedown::Doubt;

/// Most lost objects that are named at once; the others are named once these are back.
const LOST_MAX: usize = 100_000;
/// Most damaged members that are remembered over a restart.
const DAMAGED_MAX: usize = 1000;
/// Most objects deleted in one commit.
const DELETES_MAX: usize = 4096;
/// In the place of a segment's number, with the serial before it: a hole without bytes.
const NO_SEGMENT: u64 = u64::MAX;

/// What was done about damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Healing {
    /// So many damaged members are gone from the log; nothing that lives was in them any more.
    Done {
        /// How many.
        members: u64,
    },
    /// Objects live whose records are lost until somebody brings them again.
    Waiting {
        /// The objects, at most 100,000 of them.
        lost: Vec<Oid>,
        /// Sources that hold them, which have just been set back: pull them.
        sources: Vec<String>,
    },
}

/// Objects and roots that live in holes.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    pub(crate) oids: Vec<Oid>,
    /// How many of them came from nowhere that is known; these come first.
    pub(crate) orphans: usize,
    /// Roots whose confirmation is lost.
    roots: HashSet<u64>,
    /// Of every source that holds some of it, by epoch, the first serial that is to be read again.
    sources: BTreeMap<String, BTreeMap<Epoch, u64>>,
}

impl Collection {
    /// Says how the collection is: what is damaged, and why it takes no changes, if so.
    #[must_use]
    pub fn health(&self) -> Health {
        let view = self.inner.log.view();
        let damaged = view.damaged();
        let missing = view.missing.iter().map(|it| recover::gone(&self.inner.dir, it));
        let mut mending = self.inner.mending();
        mending.found.extend(damaged.iter().map(|(it, entry, _)| (it.number, entry.offset)));
        let problem = |(segment, entry, what): (Arc<Segment>, Entry, Damage)| {
            let (file, offset) = (segment.path.clone(), entry.offset);
            Problem { file, offset, message: what.to_string() }
        };
        Health {
            damaged_total: mending.found.len() as u64,
            damaged: damaged.into_iter().map(problem).chain(missing).collect(),
            refusing: mending.refusing.clone(),
        }
    }

    /// Reads on where the last call has ended, about `bytes_max` bytes or up to the end, and checks
    /// every member; what is damaged is remembered. To be called from time to time.
    ///
    /// # Errors
    ///
    /// The log cannot be read, which is no damage.
    pub fn scrub(&self, bytes_max: u64) -> Result<(), Error> {
        let inner = &self.inner;
        let (mut left, from) = (bytes_max, inner.mending().scrubbed);
        let view = inner.log.view();
        let known = view.segments.iter().any(|it| it.number == from.0);
        let mut passed = !known;
        for segment in &view.segments {
            let start = if segment.number == from.0 { from.1 } else { 0 };
            passed |= segment.number == from.0;
            let entries = segment.entries().clone();
            let rest = entries.iter().filter(|it| passed && start <= it.offset);
            for entry in rest.filter(|it| it.last <= view.version.serial) {
                inner.go_on()?;
                match segment.check_large(entry) {
                    Ok(()) | Err(Error::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
                left = left.saturating_sub(u64::from(entry.bytes));
                if left == 0 {
                    inner.mending().scrubbed = (segment.number, entry.end());
                    return Ok(());
                }
            }
        }
        // From the start again the next time.
        inner.mending().scrubbed = Address::default();
        Ok(())
    }

    /// Sees to what is known to be damaged; to be called from time to time. `None`: nothing is, or
    /// there is no space to leave it out before those who read what was replaced are done.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit) and [`compact`](Self::compact).
    pub fn heal(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        match self.heal_known(now) {
            Err(_) if self.inner.is_damage_in_the_way() => self.give_up_keys_for_damage(now),
            healed => healed,
        }
    }

    fn heal_known(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        let inner = &self.inner;
        // Where the opening could not; healing may give back the space that this lacks.
        let faced = self.face_lost(now);
        let view = inner.log.view();
        let damaged = view.damaged_members();
        if !view.has_holes() {
            return faced.map(|()| None);
        }
        let _counted = self.health();
        inner.remember_damaged(&damaged)?;
        if self.aftermath()?.is_some() {
            // All is being brought again, and until then nobody is to take what there is for whole.
            return faced.map(|()| None);
        }
        let lost = inner.lost(&view)?;
        if lost.oids.is_empty() && lost.roots.is_empty() {
            if inner.is_space_held() {
                return faced.map(|()| None);
            }
            let healed = self.leave_out(&damaged, now)?;
            return faced.map(|()| Some(healed));
        }
        faced?;
        let mut sources = Vec::new();
        let missing = view.missing.iter().map(|it| (NO_SEGMENT, it.base));
        let holes: Vec<Address> = damaged.iter().copied().chain(missing).collect();
        if inner.mending().is_to_ask(&holes) {
            sources.extend(lost.sources.keys().cloned());
            inner.set_back(&lost.sources, now)?;
            self.suppress_again(Doubt::Told, now)?;
            let at = clock::monotonic();
            inner.mending().asked.extend(holes.into_iter().map(|it| (it, at)));
        }
        Ok(Some(Healing::Waiting { lost: lost.oids, sources }))
    }

    /// Deletes what lives in holes and nobody can bring again, and closes them once nothing lives there any more: what
    /// came from a root or a source stays until it has come again. Returns how many objects were deleted.
    ///
    /// # Errors
    ///
    /// As for [`heal`](Self::heal).
    pub fn drop_damaged(&self, now: Stamp) -> Result<u64, Error> {
        let mut dropped = 0;
        loop {
            let view = self.inner.log.view();
            // In an aftermath all is brought again, if anybody has it.
            if !view.has_holes() || self.aftermath()?.is_some() {
                return Ok(dropped);
            }
            let Lost { oids: mut lost, orphans, roots, .. } = self.inner.lost(&view)?;
            if lost.is_empty() && roots.is_empty() {
                self.leave_out(&view.damaged_members(), now)?;
                continue;
            }
            lost.truncate(orphans);
            if lost.is_empty() {
                return Ok(dropped);
            }
            let mut tail = self.inner.tail();
            for oids in lost.chunks(DELETES_MAX) {
                let notes = self.holders_of(oids)?;
                let changes: Vec<Change> = oids.iter().cloned().map(Change::Delete).collect();
                self.inner.commit(&mut tail, &changes, &notes, now)?;
                dropped += oids.len() as u64;
            }
        }
    }

    /// Returns the live objects whose records are damaged; at most 100,000.
    ///
    /// # Errors
    ///
    /// The key index failed and could not be rebuilt.
    pub fn lost(&self) -> Result<Vec<Oid>, Error> {
        Ok(self.inner.lost(&self.inner.log.view())?.oids)
    }

    /// Does what follows from lost changes and from the list of what is suppressed, if that is still
    /// to be done.
    pub(crate) fn face_loss(&self, doubt: Doubt, now: Stamp) -> Result<(), Error> {
        self.inner.begin_aftermath(&mut self.inner.tail(), now)?;
        self.suppress_again(doubt, now)
    }
    /// Does what follows from lost changes where that could not be done when they were lost.
    fn face_lost(&self, now: Stamp) -> Result<(), Error> {
        let lost = self.inner.tail().manifest.lost;
        if lost { self.face_loss(Doubt::All, now) } else { Ok(()) }
    }

    /// Makes a key index without what is in damaged members, since none can be made with them: does what
    /// an opening does.
    fn give_up_keys_for_damage(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        let inner = &self.inner;
        {
            let mut tail = inner.tail();
            tail.go_on(&inner.log)?;
            // First it is noted: the next opening goes on from there.
            tail.lose(&inner.log)?;
            inner.rebuild_keys_without_damaged()?;
        }
        // The next call tries it again, if need be.
        self.face_lost(now).map(|()| None)
    }

    /// Writes the log anew without `damaged` members, in which nothing lives; nothing lives in holes
    /// without bytes either.
    fn leave_out(&self, damaged: &HashSet<Address>, now: Stamp) -> Result<Healing, Error> {
        let made = self.inner.keys_made();
        self.inner.compact(Due::All, Some(damaged), now)?;
        let view = self.inner.log.view().damaged();
        let left =
            view.iter().filter(|(it, entry, _)| damaged.contains(&(it.number, entry.offset)));
        let members = (damaged.len() - left.count()) as u64;
        let closed = self.inner.close_holes()?;
        if view.is_empty() {
            // Of a refresh that was in there nothing is left in the log.
            self.inner.rebuild_keys(made, "a damaged part of the log was left out")?;
        }
        // Tombstones that are kept for ever may have been in there.
        self.suppress_again(Doubt::Told, now)?;
        tracing::warn!(members, closed, "what was damaged is made good");
        Ok(Healing::Done { members: members + closed })
    }
}

impl Inner {
    /// Notes which members are damaged: the next opening need not find it out.
    fn remember_damaged(&self, damaged: &HashSet<Address>) -> Result<(), Error> {
        let mut found: Vec<Address> = damaged.iter().copied().collect();
        found.sort_unstable();
        found.truncate(DAMAGED_MAX);
        let mut tail = self.tail();
        if tail.manifest.damaged == found {
            return Ok(());
        }
        tail.go_on(&self.log)?;
        let manifest = Manifest { damaged: found, ..tail.manifest_now() };
        tail.replace(manifest, &self.log)
    }

    /// Closes the holes without bytes: who has not come past them gets a snapshot. Returns how many.
    fn close_holes(&self) -> Result<u64, Error> {
        let mut tail = self.tail();
        let count = tail.manifest.missing.len() as u64;
        if count != 0 {
            tail.go_on(&self.log)?;
            let mut manifest = tail.manifest_now();
            for hole in manifest.missing.drain(..).filter(|it| it.base < it.last) {
                manifest.horizon = manifest.horizon.max(hole.last);
            }
            let horizon = manifest.horizon;
            tail.replace(manifest, &self.log)?;
            self.log.change_view(|view| (view.missing, view.horizon) = (Arc::default(), horizon));
        }
        Ok(count)
    }

    /// Finds out what lives in holes, and who holds it.
    pub(crate) fn lost(&self, view: &View) -> Result<Lost, Error> {
        let unreadable = view.holes();
        if !view.has_holes() {
            return Ok(Lost::default());
        }
        self.read_keys(|keys| {
            let mut lost = Lost::default();
            let confirmed = keys.confirmations()?.into_iter();
            lost.roots.extend(confirmed.filter(|it| unreadable.has(it.1)).map(|it| it.0));
            let mut roots = lost.roots.clone();
            let mut is_all = true;
            for item in keys.objects() {
                let (key, object) = item?;
                if self.go_on().is_err() || LOST_MAX <= lost.oids.len() {
                    is_all = false;
                    break;
                }
                let Some(oid) = Oid::from_key(&key) else { continue };
                // Whatever is damaged, no member may have it.
                let is_lost = unreadable.has(object.serial) || !view.covers(object.serial);
                let is_of_root = roots.remove(&object.root);
                let mut is_orphan = object.root == 0;
                if is_lost || is_of_root {
                    let holders = keys.note(&Holders::note_key(&oid))?;
                    let holders = holders.as_deref().and_then(Holders::decode).unwrap_or_default();
                    is_orphan &= holders.list.is_empty();
                    for Holder { source, version, .. } in holders.list {
                        // Where the source has confirmed a root is not known.
                        let version = if is_of_root { Version::default() } else { version };
                        let first = lost.sources.entry(source).or_default();
                        let first = first.entry(version.epoch).or_insert(version.serial);
                        *first = version.serial.min(*first);
                    }
                }
                if is_lost {
                    lost.oids.push(oid);
                    if is_orphan {
                        // The order of the others is no matter.
                        let last = lost.oids.len() - 1;
                        lost.oids.swap(lost.orphans, last);
                        lost.orphans += 1;
                    }
                }
            }
            if is_all {
                // A root that nothing is left of is confirmed no more.
                lost.roots.retain(|it| !roots.contains(it));
            }
            Ok(lost)
        })
    }

    /// Has sources read again from the first serial on that brought something of what is lost.
    fn set_back(
        &self,
        sources: &BTreeMap<String, BTreeMap<Epoch, u64>>,
        now: Stamp,
    ) -> Result<(), Error> {
        let mut tail = self.tail();
        let mut notes = Vec::new();
        for (source, first) in sources {
            let key = note_key(CURSOR, source.as_bytes());
            let Some(value) = self.read_keys(|keys| keys.note(&key))? else { continue };
            let cursor = Cursor::decode(&value).filter(|it| it.snapshot.is_none());
            let value = cursor.map(|cursor| {
                // Versions of another epoch are those of another collection: the source is one of
                // several, and only it knows under which serials it passes them on.
                let known = first.get(&cursor.epoch).filter(|_| first.len() == 1);
                let serial = known.map_or(0, |it| it.saturating_sub(1)).min(cursor.serial);
                Cursor { serial, ..cursor }.encode()
            });
            notes.push(Note { key, value });
        }
        self.commit(&mut tail, &[], &notes, now).map(drop)
    }
}
