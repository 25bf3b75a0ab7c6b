//! Membership: which objects each view has, kept in step with the collection.
//!
//! Each commit of the collection is percolated: of each changed record the views that have it now are held against
//! those that had it before. These are notes of the collection, as is the version up to which they are right, in one
//! commit: so they are exact after a crash, and go with a copy of the collection. A view that is new or defined anew
//! begins with all objects.
//!
//! Source: ours; the cursor is that of docs/collection.md.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::{Batch, Change, Collection, Note, Oid, Stamp, Version};
use net::clock;
use net::shutdown::Shutdown;
use query::percolator::Percolator;
use serde::{Deserialize, Serialize};
use soif::Record;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Views;
use super::selecting::name_of;
use crate::blocking::blocking;
use crate::error::Error;

/// Key of the note of the state.
const STATE: &[u8] = b"views/state";
/// Beginning of the keys of the views of an object.
const OF: &[u8] = b"views/of/";
/// Number of notes that are committed at once.
const NOTES_MAX: usize = 1_000;
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// Pause between rounds, so that changes in quick succession are taken together.
const PAUSE: Duration = Duration::from_millis(50);

/// How far the notes are right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    epoch: String,
    serial: u64,
    /// The views, each with the name of its selection, which stands for its definition.
    views: BTreeMap<String, String>,
    /// Whether objects are just being taken into new views, and out of those that are gone.
    #[serde(default)]
    is_beginning: bool,
}

/// The views that count at present. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Present(watch::Sender<Views>);

impl Default for Present {
    fn default() -> Self {
        Self(watch::Sender::new(Views::default()))
    }
}

impl Present {
    pub(crate) fn get(&self) -> Views {
        self.0.borrow().clone()
    }

    pub(crate) fn set(&self, views: Views) {
        self.0.send_replace(views);
    }

    /// Returns a receiver that gets the views whenever they are defined anew.
    pub(crate) fn watch(&self) -> watch::Receiver<Views> {
        self.0.subscribe()
    }
}

/// The keeper of memberships. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Membership(Arc<Keeping>);

#[derive(Debug)]
struct Keeping {
    collection: Collection,
    views: Present,
    percolator: Mutex<(Views, Arc<Percolator>)>,
    /// The number of objects of each view, once they have been counted.
    counts: Mutex<Option<BTreeMap<String, u64>>>,
}

impl Membership {
    pub(crate) fn new(collection: Collection, views: Present) -> Self {
        let (percolator, counts) = (Mutex::default(), Mutex::new(None));
        Self(Arc::new(Keeping { collection, views, percolator, counts }))
    }

    /// Keeps the memberships until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let (mut versions, mut defined) = (self.0.collection.watch(), self.0.views.watch());
        while !shutdown.is_started() {
            let (version, _) = (*versions.borrow_and_update(), defined.borrow_and_update().clone());
            let (this, stop) = (self.clone(), shutdown.clone());
            let round = move || this.round(&move || stop.is_started());
            let (reached, pause) = match blocking("views", round).await {
                Ok(reached) => (reached, PAUSE),
                Err(error) => {
                    tracing::warn!(%error, "what views have is not known; tried again");
                    (None, RETRY)
                }
            };
            let is_there = reached == Some(version);
            tokio::select! {
                () = shutdown.started() => return,
                () = sleep(pause), if !is_there => {}
                _ = versions.changed(), if is_there => sleep(pause).await,
                _ = defined.changed() => {}
            }
        }
    }

    /// Returns the number of objects of each view that has any; `None`: they are not counted yet.
    pub(crate) fn counts(&self) -> Option<BTreeMap<String, u64>> {
        self.count_of().clone()
    }

    fn count_of(&self) -> MutexGuard<'_, Option<BTreeMap<String, u64>>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the objects of each view by the notes.
    fn count(&self) -> Result<(), Error> {
        let mut counts = BTreeMap::new();
        for note in self.0.collection.notes(OF) {
            let names = String::from_utf8(note?.1).unwrap_or_default();
            for name in names.lines() {
                *counts.entry(name.to_owned()).or_default() += 1;
            }
        }
        *self.count_of() = Some(counts);
        Ok(())
    }

    /// Brings the memberships up to the present version, and returns it; `None` if `is_cancelled`.
    fn round(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Option<Version>, Error> {
        let (views, to) = (self.0.views.get(), self.0.collection.version());
        let mut state = self.state()?;
        let wanted: BTreeMap<String, String> =
            views.all().map(|it| (it.name.clone(), name_of(&it.whole))).collect();
        if wanted.is_empty() && state.views.is_empty() && !state.is_beginning {
            return Ok(Some(to));
        }
        let percolator = self.percolator(&views);
        let epoch = to.epoch.to_string();
        if state.epoch != epoch {
            self.forget()?;
            state = State { epoch, serial: to.serial, ..State::default() };
        }
        let is_same = |name: &String, known: &String| wanted.get(name) == Some(known);
        let gone: BTreeSet<String> =
            state.views.iter().filter(|it| !is_same(it.0, it.1)).map(|it| it.0.clone()).collect();
        let new = wanted.iter().filter(|it| gone.contains(it.0) || !state.views.contains_key(it.0));
        let new: BTreeSet<String> = new.map(|it| it.0.clone()).collect();
        if state.is_beginning || !gone.is_empty() || !new.is_empty() {
            *self.count_of() = None;
            // Whoever is stopped midway finds them unknown, and begins again.
            state.views.retain(|name, _| !gone.contains(name));
            state.is_beginning = true;
            self.commit(vec![noted(STATE, Some(written(&state)))])?;
            if !self.begin((&views, &percolator), (&state, &new), to, is_cancelled)? {
                return Ok(None);
            }
            state.views.extend(wanted.into_iter().filter(|it| new.contains(&it.0)));
            state.is_beginning = false;
            self.commit(vec![noted(STATE, Some(written(&state)))])?;
        }
        if self.count_of().is_none() {
            self.count()?;
        }
        Ok(self.follow((&views, &percolator), state, to, is_cancelled)?.then_some(to))
    }

    /// Takes all objects into the views that are new, and out of those that are not in `state`. Returns whether it is
    /// done.
    fn begin(
        &self,
        (views, percolator): (&Views, &Percolator),
        (state, new): (&State, &BTreeSet<String>),
        to: Version,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        let mut notes = Vec::new();
        for scanned in self.0.collection.scan(0)? {
            let scanned = scanned?;
            if is_cancelled() {
                return Ok(false);
            }
            let Change::Update(record) = &scanned.change else { continue };
            let Some(oid) = Oid::of(record) else { continue };
            if to.serial < scanned.serial || self.0.collection.serial(&oid)? != Some(scanned.serial)
            {
                continue;
            }
            let old = self.of(&oid)?;
            let kept = old.iter().filter(|it| state.views.contains_key(*it));
            let mut now: BTreeSet<String> = kept.cloned().collect();
            now.extend(has(views, percolator, record).into_iter().filter(|it| new.contains(it)));
            if now != old {
                notes.push(members(&oid, &now));
            }
            if NOTES_MAX <= notes.len() {
                self.commit(std::mem::take(&mut notes))?;
            }
        }
        self.commit(notes).map(|()| true)
    }

    /// Takes the changes after the state, up to `to`. Returns whether it is done.
    fn follow(
        &self,
        (views, percolator): (&Views, &Percolator),
        mut state: State,
        to: Version,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, Error> {
        if state.serial == to.serial {
            return Ok(true);
        }
        let (mut notes, mut changed) = (Vec::new(), Vec::new());
        for scanned in self.0.collection.scan(state.serial)? {
            let scanned = scanned?;
            if is_cancelled() {
                return Ok(false);
            }
            if to.serial < scanned.serial {
                break;
            }
            let Some(oid) = scanned.change.oid() else { continue };
            let live = self.0.collection.serial(&oid)?;
            let now = match &scanned.change {
                Change::Update(record) if live == Some(scanned.serial) => {
                    has(views, percolator, record)
                }
                Change::Delete(_) | Change::Withdraw(..) | Change::Suppress(..)
                    if live.is_none() =>
                {
                    BTreeSet::new()
                }
                // Another change of it is to come.
                _ => continue,
            };
            let old = self.of(&oid)?;
            if now != old {
                notes.push(members(&oid, &now));
                changed.extend(old.difference(&now).map(|it| (it.clone(), false)));
                changed.extend(now.difference(&old).map(|it| (it.clone(), true)));
            }
            if NOTES_MAX <= notes.len() {
                self.commit(std::mem::take(&mut notes))?;
                self.count_changed(std::mem::take(&mut changed));
            }
        }
        state.serial = to.serial;
        notes.push(noted(STATE, Some(written(&state))));
        self.commit(notes)?;
        self.count_changed(changed);
        Ok(true)
    }

    /// Counts objects that left views, and that came.
    fn count_changed(&self, changed: Vec<(String, bool)>) {
        if let Some(counts) = self.count_of().as_mut() {
            for (name, has_come) in changed {
                let count = counts.entry(name).or_default();
                *count = if has_come { *count + 1 } else { count.saturating_sub(1) };
            }
        }
    }

    /// Returns the percolator of these views.
    fn percolator(&self, views: &Views) -> Arc<Percolator> {
        let mut known = self.0.percolator.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != *views {
            let percolator = Percolator::new(views.all().map(|it| &it.whole));
            *known = (views.clone(), Arc::new(percolator));
        }
        Arc::clone(&known.1)
    }

    fn state(&self) -> Result<State, Error> {
        let note = self.0.collection.note(STATE)?.unwrap_or_default();
        // One of another release counts as none: all begins anew.
        Ok(serde_json::from_slice(&note).unwrap_or_default())
    }

    /// Returns the views that have an object, as the notes say.
    fn of(&self, oid: &Oid) -> Result<BTreeSet<String>, Error> {
        let note = self.0.collection.note(&[OF, &oid.key()].concat())?.unwrap_or_default();
        let names = String::from_utf8(note).unwrap_or_default();
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Removes the notes of all objects.
    fn forget(&self) -> Result<(), Error> {
        let mut notes = Vec::new();
        for note in self.0.collection.notes(OF) {
            notes.push(noted(&note?.0, None));
            if NOTES_MAX <= notes.len() {
                self.commit(std::mem::take(&mut notes))?;
            }
        }
        self.commit(notes)
    }

    fn commit(&self, notes: Vec<Note>) -> Result<(), Error> {
        let batch = Batch { changes: Vec::new(), notes };
        self.0.collection.commit(batch, Stamp(clock::now_ms()))?;
        Ok(())
    }
}

/// Returns the names of the views that have a record.
fn has(views: &Views, percolator: &Percolator, record: &Record) -> BTreeSet<String> {
    let (mut found, mut names) =
        (percolator.matching(record).into_iter().peekable(), BTreeSet::new());
    for (number, view) in (0..).zip(views.all()) {
        if found.next_if_eq(&number).is_some() {
            names.insert(view.name.clone());
        }
    }
    names
}

fn noted(key: &[u8], value: Option<Vec<u8>>) -> Note {
    Note { key: key.to_vec(), value }
}

fn members(oid: &Oid, names: &BTreeSet<String>) -> Note {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let value = (!names.is_empty()).then(|| names.join("\n").into_bytes());
    noted(&[OF, &oid.key()].concat(), value)
}

fn written(state: &State) -> Vec<u8> {
    serde_json::to_vec(state).unwrap_or_default()
}

#[cfg(test)]
mod tests;
