//! Damage and its repair: found, reported, not served, and healed.
//!
//! A reader of a member marks the member as damaged if it does not match its checksums (the list is
//! in [`Segment`](crate::log::segment)); [`scrub`](Collection::scrub) reads the members that are
//! never requested. From then on no feed serves the member. The key index still knows which live
//! objects are in it. A broker reads the sources that hold these objects again, from a serial
//! before the first of them; a gatherer gets the objects' names and gathers them again. Once no
//! live object is in a damaged member, a compaction leaves it out. Its notes are written again from
//! the key index. Its deletes are lost, so consumers that may have missed them get a snapshot. A
//! hole without bytes is closed in the same way. Losses that the key index does not know are
//! handled by the [`aftermath`]; holes stay until that has ended.
//!
//! Source: ours.

mod aftermath;
mod doubt;
#[cfg(test)]
mod tests;
pub(crate) mod verify;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use net::clock;

use crate::change::{Change, Epoch, Note, Oid, Stamp, Version};
use crate::collection::ttl::DELETES_MAX;
use crate::collection::{Collection, Inner};
use crate::error::{Damage, Error};
use crate::holders::{CURSOR, Cursor, Holder, Holders, note_key};
use crate::log::due::CompactionDue;
use crate::log::segment::{Entry, Segment};
use crate::log::{Address, View};
use crate::recover;
use crate::report::{Health, Problem};
use crate::takedown::Recheck;

/// Maximum number of lost objects that are named at once. The others follow once these have been
/// fetched or gathered again.
const LOST_MAX: usize = 100_000;
/// Maximum number of damaged members that are remembered across a restart.
const DAMAGED_MAX: usize = 1000;
/// Segment number in the address of a hole without bytes; the offset is the serial before it.
const NO_SEGMENT: u64 = u64::MAX;

/// The outcome of a healing step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Healing {
    /// Damaged members and holes without bytes are gone: no live object was in them any more.
    Done {
        /// Number of members and holes.
        members: u64,
    },
    /// The records of live objects are lost until the objects are fetched or gathered again.
    Waiting {
        /// The objects, at most 100,000 of them.
        lost: Vec<Oid>,
        /// The sources that hold these objects, if their cursors have just been set back: pull
        /// them. Empty if that was done less than six hours ago.
        sources: Vec<String>,
    },
}

/// Live objects and roots with lost records.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    pub(crate) oids: Vec<Oid>,
    /// Number of objects without a root and without a holder; they come first in `oids`.
    pub(crate) orphans: usize,
    /// Hashes of the roots whose confirmation is lost.
    roots: HashSet<u64>,
    /// The first serial to read again, by source and epoch, for the holders of lost objects.
    sources: BTreeMap<String, BTreeMap<Epoch, u64>>,
}

impl Collection {
    /// Returns the collection's health: its damage, and the reason if it refuses changes.
    #[must_use]
    pub fn health(&self) -> Health {
        let view = self.inner.log.view();
        let damaged = view.damaged();
        let missing = view.missing.iter().map(|it| recover::missing_problem(&self.inner.dir, it));
        let mut repairs = self.inner.repairs();
        repairs.damaged.extend(damaged.iter().map(|(it, entry, _)| (it.number, entry.offset)));
        let problem = |(segment, entry, what): (Arc<Segment>, Entry, Damage)| {
            let (file, offset) = (segment.path.clone(), entry.offset);
            Problem { file, offset, message: what.to_string() }
        };
        Health {
            damaged_total: repairs.damaged.len() as u64,
            damaged: damaged.into_iter().map(problem).chain(missing).collect(),
            refusing: repairs.refusing.clone(),
        }
    }

    /// Checks members from the point at which the last call ended, about `bytes_max` bytes or up to
    /// the end of the log, and marks damaged ones. Call this from time to time.
    ///
    /// # Errors
    ///
    /// The log cannot be read for another reason than damage.
    pub fn scrub(&self, bytes_max: u64) -> Result<(), Error> {
        let inner = &self.inner;
        let (mut left, from) = (bytes_max, inner.repairs().scrubbed);
        let view = inner.log.view();
        let known = view.segments.iter().any(|it| it.number == from.0);
        let mut passed = !known;
        for segment in &view.segments {
            let start = if segment.number == from.0 { from.1 } else { 0 };
            passed |= segment.number == from.0;
            let entries = segment.entries().clone();
            let rest = entries.iter().filter(|it| passed && start <= it.offset);
            for entry in rest.filter(|it| it.last <= view.version.serial) {
                inner.check_open()?;
                match segment.check_large(entry) {
                    Ok(()) | Err(Error::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
                left = left.saturating_sub(u64::from(entry.bytes));
                if left == 0 {
                    inner.repairs().scrubbed = (segment.number, entry.end());
                    return Ok(());
                }
            }
        }
        // The next call begins with the first segment.
        inner.repairs().scrubbed = Address::default();
        Ok(())
    }

    /// Heals known damage; call this from time to time. Returns `None` if there is no damage, or if
    /// healing has to wait: for the end of an aftermath, for readers of replaced segments whose
    /// space is needed, or for the next call.
    pub fn heal(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        match self.heal_known(now) {
            Err(_) if self.inner.is_damage_in_the_way() => self.give_up_keys_for_damage(now),
            healed => healed,
        }
    }

    fn heal_known(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        let inner = &self.inner;
        // The opening may have lacked space for this. If it fails again, healing goes on: it may
        // free space.
        let faced = self.handle_noted_loss(now);
        let view = inner.log.view();
        let damaged = view.damaged_members();
        if !view.has_holes() {
            return faced.map(|()| None);
        }
        let _counted = self.health();
        inner.remember_damaged(&damaged)?;
        if self.aftermath()?.is_some() {
            // Everything is being fetched or gathered again; until that is done, no consumer may
            // regard the log as complete.
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
        if inner.repairs().should_request(&holes) {
            sources.extend(lost.sources.keys().cloned());
            inner.set_back(&lost.sources, now)?;
            self.suppress_again(Recheck::Tombstones, now)?;
            let at = clock::monotonic();
            inner.repairs().requested.extend(holes.into_iter().map(|it| (it, at)));
        }
        Ok(Some(Healing::Waiting { lost: lost.oids, sources }))
    }

    /// Deletes the live objects in holes that have neither a root nor a source to provide them
    /// again, and closes the holes once no live object is in them. Other objects stay until they
    /// have been fetched or gathered again. Returns the number of deleted objects.
    pub fn drop_damaged(&self, now: Stamp) -> Result<u64, Error> {
        let mut dropped = 0;
        loop {
            let view = self.inner.log.view();
            // In an aftermath everything that still exists is fetched or gathered again.
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
                let notes = self.inner.released(oids)?;
                let changes: Vec<Change> = oids.iter().cloned().map(Change::Delete).collect();
                self.inner.commit(&mut tail, &changes, &notes, now)?;
                dropped += oids.len() as u64;
            }
        }
    }

    /// Returns the live objects whose records are damaged, at most 100,000 of them.
    pub fn lost(&self) -> Result<Vec<Oid>, Error> {
        Ok(self.inner.lost(&self.inner.log.view())?.oids)
    }

    /// Begins the aftermath of a noted loss and repeats takedowns, if this has not been done yet.
    pub(crate) fn handle_loss(&self, recheck: Recheck, now: Stamp) -> Result<(), Error> {
        self.inner.begin_aftermath(&mut self.inner.tail(), now)?;
        self.suppress_again(recheck, now)
    }

    /// Handles a noted loss if that failed when it was found.
    fn handle_noted_loss(&self, now: Stamp) -> Result<(), Error> {
        let lost = self.inner.tail().manifest.lost;
        if lost { self.handle_loss(Recheck::All, now) } else { Ok(()) }
    }

    /// Rebuilds the key index without the damaged members that prevent it, as an opening does.
    fn give_up_keys_for_damage(&self, now: Stamp) -> Result<Option<Healing>, Error> {
        let inner = &self.inner;
        {
            let mut tail = inner.tail();
            tail.ensure_writable(&inner.log)?;
            // The loss is noted first, so that the next opening can continue.
            tail.note_loss(&inner.log)?;
            inner.rebuild_keys_without_damaged()?;
        }
        // The next call tries again.
        self.handle_noted_loss(now).map(|()| None)
    }

    /// Rewrites the log without the `damaged` members, and closes holes without bytes. No live
    /// object's record may be in either.
    fn leave_out(&self, damaged: &HashSet<Address>, now: Stamp) -> Result<Healing, Error> {
        let made = self.inner.keys_made();
        self.inner.compact(CompactionDue::All, Some(damaged), now)?;
        let view = self.inner.log.view().damaged();
        let left =
            view.iter().filter(|(it, entry, _)| damaged.contains(&(it.number, entry.offset)));
        let members = (damaged.len() - left.count()) as u64;
        let closed = self.inner.close_holes()?;
        if view.is_empty() {
            // Refreshes from those members are in the key index, but not in the log any more.
            self.inner.rebuild_keys(made, "a damaged part of the log was left out")?;
        }
        // Carriers of notices, which must stay for ever, may have been in those members.
        self.suppress_again(Recheck::Tombstones, now)?;
        tracing::warn!(members, closed, "damage is healed");
        Ok(Healing::Done { members: members + closed })
    }
}

impl Inner {
    /// Writes the list of damaged members to the manifest, so that the next opening knows them.
    fn remember_damaged(&self, damaged: &HashSet<Address>) -> Result<(), Error> {
        let mut found: Vec<Address> = damaged.iter().copied().collect();
        found.sort_unstable();
        found.truncate(DAMAGED_MAX);
        let mut tail = self.tail();
        if tail.manifest.damaged == found {
            return Ok(());
        }
        tail.amend(&self.log, |manifest| manifest.damaged = found)
    }

    /// Closes the holes without bytes: consumers before them get a snapshot. Returns their number.
    fn close_holes(&self) -> Result<u64, Error> {
        let mut tail = self.tail();
        let count = tail.manifest.missing.len() as u64;
        if count != 0 {
            tail.ensure_writable(&self.log)?;
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

    /// Finds the live objects in holes, and their holders.
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
                if self.check_open().is_err() || LOST_MAX <= lost.oids.len() {
                    is_all = false;
                    break;
                }
                let Some(oid) = Oid::from_key(&key) else { continue };
                // The object may be in no member at all, not even a damaged one.
                let is_lost = unreadable.has(object.serial) || !view.covers(object.serial);
                let is_of_root = roots.remove(&object.root);
                let mut is_orphan = object.root == 0;
                if is_lost || is_of_root {
                    let holders = keys.note(&Holders::note_key(&oid))?;
                    let holders = holders.as_deref().and_then(Holders::decode).unwrap_or_default();
                    is_orphan &= holders.list.is_empty();
                    for Holder { source, version, .. } in holders.list {
                        // The serial of the source's confirmation is unknown.
                        let version = if is_of_root { Version::default() } else { version };
                        let first = lost.sources.entry(source).or_default();
                        let first = first.entry(version.epoch).or_insert(version.serial);
                        *first = version.serial.min(*first);
                    }
                }
                if is_lost {
                    lost.oids.push(oid);
                    if is_orphan {
                        // The order of the objects that are no orphans does not matter.
                        let last = lost.oids.len() - 1;
                        lost.oids.swap(lost.orphans, last);
                        lost.orphans += 1;
                    }
                }
            }
            if is_all {
                // A root without live objects needs no confirmation any more.
                lost.roots.retain(|it| !roots.contains(it));
            }
            Ok(lost)
        })
    }

    /// Sets the sources' cursors back to the serial before the first lost object.
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
                // Versions of another epoch come from another collection, which this source has
                // merged with others. Only the source knows the serials that it gave to such
                // objects.
                let known = first.get(&cursor.epoch).filter(|_| first.len() == 1);
                let serial = known.map_or(0, |it| it.saturating_sub(1)).min(cursor.serial);
                Cursor { serial, ..cursor }.encode()
            });
            notes.push(Note { key, value });
        }
        self.commit(&mut tail, &[], &notes, now).map(drop)
    }
}
