//! Suppressing: what an administrator takes down is deleted, refused from then on, and named to
//! consumers in signed tombstones.
//!
//! First the notice goes to the list (suppressed.rs), then what it covers is deleted from the log. A
//! note in the log says up to where the list has been done; where it lags behind, after a crash or
//! when the folder has been put back from a backup, opening does the rest.
//!
//! Source: ours.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::change::{Change, Note, Oid, Stamp};
use crate::collection::{Collection, Inner};
use crate::error::Error;
use crate::holders::{Holders, SUPPRESSED, note_key};
use crate::log::Tail;
use crate::member::{get, put};
use crate::notice::{Author, Notice, REASON_BYTES_MAX, Subject};
use crate::suppressed::{Scope, Suppressed, Suppression, Takedowns};

/// Objects deleted in one commit.
const DELETES_MAX: usize = 4096;
/// Objects looked for at a time.
const FOUND_MAX: usize = 100_000;

/// What suppressing something did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenDown {
    /// The notice that consumers get.
    pub notice: Notice,
    /// How many live objects are gone.
    pub objects: u64,
    /// The sources that held them; at most 100.
    pub held_by: Vec<String>,
}

impl Collection {
    /// Suppresses `subject`: what lives of it is deleted, whoever holds it; updates of it are refused
    /// from every source; and consumers hear of it by a notice that `author` signs.
    ///
    /// # Errors
    ///
    /// [`Error::Subject`]: the reason is too long. Otherwise as for [`commit`](Self::commit); what the
    /// list has by then is done at the next opening.
    pub fn suppress(
        &self,
        author: &Author,
        subject: Subject,
        reason: &str,
        now: Stamp,
    ) -> Result<TakenDown, Error> {
        if REASON_BYTES_MAX < reason.len() {
            let reason = "the reason has more than 1,000 bytes";
            return Err(Error::Subject { text: subject.to_string(), reason });
        }
        let mut tail = self.inner.tail();
        tail.go_on(&self.inner.log)?;
        let notice = self.inner.sign(author, subject, false, reason, now);
        let mut new = Suppression {
            notice: notice.clone(),
            scope: Scope::Here,
            held_by: Vec::new(),
            active: true,
        };
        let found = self.inner.live(|oid| new.covers(oid).then(|| notice.clone()))?;
        let holders = self.inner.holders_named(found.keys())?;
        new.held_by.extend(holders.into_iter().take(100));
        let held_by = new.held_by.clone();
        self.inner.suppressed().add(new)?;
        let objects = self.inner.settle(&mut tail, true, now)?;
        if objects == 0 {
            self.inner.carry(&mut tail, &notice, now)?;
        }
        Ok(TakenDown { notice, objects, held_by })
    }

    /// Lifts what is said here, or by others, of just `subject`. What was refused meanwhile comes
    /// again: sources are read from the start.
    ///
    /// # Errors
    ///
    /// [`Error::NotSuppressed`]; otherwise as for [`suppress`](Self::suppress).
    pub fn lift(&self, author: &Author, subject: Subject, now: Stamp) -> Result<Notice, Error> {
        let mut tail = self.inner.tail();
        tail.go_on(&self.inner.log)?;
        if !self.inner.suppressed().on(&subject).any(|it| it.active) {
            return Err(Error::NotSuppressed { subject: subject.to_string() });
        }
        let notice = self.inner.sign(author, subject, true, "", now);
        let new = Suppression {
            notice: notice.clone(),
            scope: Scope::Here,
            held_by: Vec::new(),
            active: false,
        };
        self.inner.suppressed().add(new)?;
        self.inner.carry(&mut tail, &notice, now)?;
        self.inner.settle(&mut tail, false, now)?;
        self.inner.forget_cursors(&mut tail, now)?;
        Ok(notice)
    }

    /// Returns all notices on the list, oldest first, those that were lifted too.
    #[must_use]
    pub fn suppressions(&self) -> Vec<Suppression> {
        self.inner.suppressed().list.clone()
    }

    /// Whether the object is suppressed.
    #[must_use]
    pub fn is_suppressed(&self, oid: &Oid) -> bool {
        self.inner.suppressed().covering(oid).is_some()
    }

    /// Says what has been made of notices and refused records.
    #[must_use]
    pub fn takedowns(&self) -> Takedowns {
        self.inner.suppressed().takedowns()
    }

    /// Sets whose takedowns count for the objects of every source; those of others count where they
    /// are signed by the objects' own gatherer.
    pub fn trust_takedowns(&self, sources: BTreeSet<String>) {
        self.inner.suppressed().trusted = sources;
    }

    /// Keeps `key` as that of the gatherer or broker `id`, if it is the first one seen.
    ///
    /// # Errors
    ///
    /// The file system refused.
    pub fn see_key(&self, id: &str, key: &str) -> Result<bool, Error> {
        self.inner.suppressed().see_key(id, key)
    }

    /// Does what of the list is not done yet in this log.
    pub(crate) fn suppress_again(&self, now: Stamp) -> Result<(), Error> {
        let end = self.inner.suppressed().end;
        let key = note_key(SUPPRESSED, &[]);
        let done = self.inner.read_keys(|keys| keys.note(&key))?;
        let done = done.and_then(|it| get(&mut &it[..])).unwrap_or(0);
        if done == end {
            return Ok(());
        }
        let mut tail = self.inner.tail();
        let objects = self.inner.settle(&mut tail, true, now)?;
        let dir = self.inner.dir.display();
        tracing::warn!(%dir, objects, "what is suppressed was deleted again");
        Ok(())
    }
}

impl Inner {
    /// Takes the lock of the list; after the writer's, if both are needed.
    pub(crate) fn suppressed(&self) -> MutexGuard<'_, Suppressed> {
        self.suppressed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves out updates of what is suppressed, and counts them. Returns up to where the list was
    /// read, too.
    pub(crate) fn without_suppressed<'a>(&self, changes: &'a [Change]) -> (Cow<'a, [Change]>, u64) {
        let mut suppressed = self.suppressed();
        let refused = |change: &&Change| {
            matches!(change, Change::Update(_))
                && change.oid().is_some_and(|oid| suppressed.covering(&oid).is_some())
        };
        let end = suppressed.end;
        if suppressed.list.is_empty() || !changes.iter().any(|it| refused(&it)) {
            return (Cow::Borrowed(changes), end);
        }
        let kept: Vec<_> = changes.iter().filter(|it| !refused(it)).cloned().collect();
        suppressed.counts.refused += (changes.len() - kept.len()) as u64;
        (Cow::Owned(kept), end)
    }

    /// Gives notice, later than any before of the same subject.
    fn sign(
        &self,
        author: &Author,
        subject: Subject,
        lifted: bool,
        reason: &str,
        now: Stamp,
    ) -> Notice {
        let last = self.suppressed().on(&subject).map(|it| it.notice.at.0).max();
        let at = Stamp(now.0.max(last.map_or(0, |it| it.saturating_add(1))));
        Notice::sign(author, subject, lifted, reason, at)
    }

    /// Commits a tombstone that carries the notice.
    fn carry(&self, tail: &mut Tail, notice: &Notice, now: Stamp) -> Result<(), Error> {
        let change = Change::Suppress(notice.carrier(), Box::new(notice.clone()));
        self.commit(tail, &[change], &[], now).map(drop)
    }

    /// Deletes what lives of what is suppressed, if there may be anything, and notes that the list is
    /// done. Returns how many objects that were.
    pub(crate) fn settle(&self, tail: &mut Tail, look: bool, now: Stamp) -> Result<u64, Error> {
        let end = self.suppressed().end;
        let mut objects = 0;
        let mut more = look;
        while more {
            let found =
                self.live(|oid| self.suppressed().covering(oid).map(|it| it.notice.clone()))?;
            let all: Vec<_> = found.into_iter().collect();
            for part in all.chunks(DELETES_MAX) {
                let mut notes = Vec::new();
                let mut changes = Vec::new();
                for (oid, notice) in part {
                    let key = Holders::note_key(oid);
                    if self.read_keys(|keys| keys.note(&key))?.is_some() {
                        notes.push(Note { key, value: None });
                    }
                    changes.push(Change::Suppress(oid.clone(), Box::new(notice.clone())));
                }
                self.commit(tail, &changes, &notes, now)?;
            }
            objects += all.len() as u64;
            more = FOUND_MAX <= all.len();
        }
        let mut value = Vec::new();
        put(&mut value, end);
        let note = Note { key: note_key(SUPPRESSED, &[]), value: Some(value) };
        self.commit(tail, &[], &[note], now)?;
        Ok(objects)
    }

    /// Returns live objects that are `wanted`, and why; at most [`FOUND_MAX`].
    fn live(
        &self,
        wanted: impl Fn(&Oid) -> Option<Notice>,
    ) -> Result<BTreeMap<Oid, Notice>, Error> {
        let found = self.read_keys(|keys| {
            let mut found = BTreeMap::new();
            for item in keys.objects() {
                let (key, _) = item?;
                if FOUND_MAX <= found.len() || self.go_on().is_err() {
                    break;
                }
                let Some(oid) = Oid::from_key(&key) else { continue };
                if let Some(notice) = wanted(&oid) {
                    found.insert(oid, notice);
                }
            }
            Ok(found)
        })?;
        self.go_on().map(|()| found)
    }

    /// Returns the sources that hold any of these.
    fn holders_named<'a>(
        &self,
        oids: impl Iterator<Item = &'a Oid>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for oid in oids {
            let key = Holders::note_key(oid);
            let value = self.read_keys(|keys| keys.note(&key))?;
            let holders = value.as_deref().and_then(Holders::decode).unwrap_or_default();
            names.extend(holders.list.into_iter().map(|it| it.source));
        }
        Ok(names)
    }

    /// Has every source read from the start.
    pub(crate) fn forget_cursors(&self, tail: &mut Tail, now: Stamp) -> Result<(), Error> {
        let found = self.read_keys(|keys| keys.cursors())?;
        let notes: Vec<Note> =
            found.into_iter().map(|(key, _)| Note { key, value: None }).collect();
        self.commit(tail, &[], &notes, now).map(drop)
    }
}
