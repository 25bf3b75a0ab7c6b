//! Membership: which objects each view has, kept in step with the collection.
//!
//! Each commit of the collection is percolated: of each changed record the views that have it now are held against
//! those that had it before. These are notes of the collection, as is the version up to which they are right, in one
//! commit: so they are exact after a crash, and go with a copy of the collection. A view that is new or defined anew
//! begins with all objects. Who left a view is known back to the horizon, so that its consumers are told of these alone.
//! The queries by which named consumers pull are kept in the same way.
//!
//! Source: ours; the cursor is that of docs/collection.md.

mod extents;
mod pulled;
mod standing;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use collection::{
    Batch, Change, Collection, Epoch, KeptSubset, Note, Oid, Scanned, Stamp, Subset, Version,
};
use exchange::repository;
use net::clock;
use net::shutdown::Shutdown;
use query::Query;
use query::percolator::Percolator;
use serde::{Deserialize, Serialize};
use soif::Record;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::View;
pub(crate) use super::present::Present;
use super::selecting::name_of;
use crate::answer::CountedView;
use crate::blocking::blocking;
use crate::error::Error;
use extents::{Extents, Kept};
use pulled::{Queries, Wanted};
use standing::Standing;

/// Key of the note of the state.
const STATE: &[u8] = b"views/state";
/// Beginning of the keys of the views of an object.
const OF: &[u8] = b"views/of/";
/// Key of the note of the queries that consumers pull.
const PULLED: &[u8] = b"views/pulled";
/// Number of notes that are committed at once.
const NOTES_MAX: usize = 1_000;
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// Longest time for which a request waits until the views are known.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between rounds, so that changes in quick succession are taken together.
const PAUSE: Duration = Duration::from_millis(50);

/// How far the notes are right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    epoch: String,
    serial: u64,
    /// The views, and the queries that are pulled.
    views: BTreeMap<String, Kept>,
    /// Whether objects are just being taken into new views, and out of those that are gone.
    #[serde(default)]
    is_beginning: bool,
}

/// The keeper of memberships. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Membership(Arc<Keeping>);

#[derive(Debug)]
struct Keeping {
    collection: Collection,
    views: Present,
    queries: watch::Sender<Queries>,
    percolator: Mutex<(Wanted, Arc<Percolator>)>,
    /// `None`: they have not been read yet.
    extents: Mutex<Option<Extents>>,
    /// The version up to which the extents are right.
    reached: watch::Sender<Version>,
}

impl Membership {
    pub(crate) fn new(collection: Collection, views: Present) -> Self {
        let (percolator, extents) = (Mutex::default(), Mutex::default());
        let reached = watch::Sender::new(Version::default());
        // Where notes cannot be read, no round comes to an end either, and says why.
        let note = collection.note(PULLED).ok().flatten().unwrap_or_default();
        let queries = watch::Sender::new(Queries::read(&note));
        Self(Arc::new(Keeping { collection, views, queries, percolator, extents, reached }))
    }

    /// Keeps the memberships until the shutdown starts.
    pub(crate) async fn run(&self, shutdown: Shutdown) {
        let (mut versions, mut defined) = (self.0.collection.watch(), self.0.views.watch());
        let mut pulled = self.0.queries.subscribe();
        while !shutdown.is_started() {
            let version = *versions.borrow_and_update();
            defined.mark_unchanged();
            pulled.mark_unchanged();
            let (this, stop) = (self.clone(), shutdown.clone());
            let round = move || this.round(&move || stop.is_started());
            let (reached, pause) = match blocking("views", round).await {
                Ok(reached) => (reached, PAUSE),
                Err(error) => {
                    *self.extents() = None;
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
                _ = pulled.changed() => {}
            }
        }
    }

    /// Returns the number of objects of each view; `None`: they are not counted yet.
    pub(crate) fn counts(&self) -> Option<BTreeMap<String, u64>> {
        let count =
            |(name, (_, subset)): (&String, &(Kept, Subset))| (name.clone(), subset.members.len());
        let extents = self.extents();
        let views = extents.as_ref()?.kept.iter().filter(|it| pulled::is_view(it.0));
        Some(views.map(count).collect())
    }

    /// Returns those of `views` whose objects are known, with these: the `most` that have most objects.
    pub(crate) fn counted(&self, views: &[&View], most: usize) -> Vec<CountedView> {
        let extents = self.extents();
        let Some(extents) = extents.as_ref() else { return Vec::new() };
        let counted = |view: &&View| {
            let objects = extents.kept.get(&view.name)?.1.clone();
            Some(CountedView { name: view.name.clone(), title: view.title.clone(), objects })
        };
        let mut counted: Vec<CountedView> = views.iter().filter_map(counted).collect();
        counted.sort_by_cached_key(|it| Reverse(it.objects.members.len()));
        counted.truncate(most);
        counted
    }

    /// Returns the objects of a view, under a name that stands for its definition and its beginning here; `None`: they
    /// are not known yet.
    pub(crate) fn subset(&self, view: &View) -> Option<(String, KeptSubset)> {
        let (epoch, kept, subset) = self.kept(view.name.clone(), &view.whole)?;
        Some((format!("{} {epoch} {}", kept.selection, kept.since), subset))
    }

    /// Returns the objects of a query by which a consumer pulls at `now_ms`; `None`: they are not known yet, but may be
    /// when it pulls again.
    pub(crate) fn pulled(&self, query: &Query, now_ms: u64) -> Option<KeptSubset> {
        self.0.queries.send_if_modified(|it| it.pull(query, now_ms));
        let (_, kept, subset) = self.kept(pulled::name(query), query)?;
        Some(subset.of_use_after(kept.since))
    }

    /// Returns the objects of what is kept under this name, with the epoch in which it began.
    fn kept(&self, name: String, query: &Query) -> Option<(Epoch, Kept, KeptSubset)> {
        let (this, selection) = (self.clone(), name_of(query));
        let epoch = self.0.collection.version().epoch;
        let (extents, reached) = (self.extents(), *self.0.reached.borrow());
        let (kept, _) =
            extents.as_ref()?.kept.get(&name).filter(|it| it.0.selection == selection)?;
        // Until the changes before it are followed, it has what left it.
        if reached.epoch != epoch || reached.serial < kept.since {
            return None;
        }
        let (kept, began) = (kept.clone(), kept.clone());
        let get = move || {
            let extents = this.extents();
            let found = extents.as_ref()?.kept.get(&name).filter(|it| it.0 == began)?;
            Some(found.1.clone())
        };
        Some((epoch, kept, KeptSubset::new(self.0.reached.subscribe(), get)))
    }

    /// Returns the views as sets of the OAI-PMH repository.
    pub(crate) fn as_sets(&self) -> repository::Views {
        let this = self.clone();
        repository::Views::new(move |version| this.all_at(version))
    }

    /// Returns the objects of all views at a version, or later; `None` if they are not known soon. Blocks.
    fn all_at(&self, version: Version) -> Option<BTreeMap<String, Subset>> {
        if self.0.views.get().all().next().is_none() {
            return Some(BTreeMap::new());
        }
        // Whoever does not need them must not wait while new views are filled.
        self.counts()?;
        let is_there = |it: &Version| it.epoch == version.epoch && version.serial <= it.serial;
        let mut reached = self.0.reached.subscribe();
        let waited = timeout(PATIENCE, reached.wait_for(is_there));
        Handle::current().block_on(waited).ok()?.ok()?;
        let extents = self.extents();
        let all = extents.as_ref()?.kept.iter().filter(|it| pulled::is_view(it.0));
        Some(all.map(|(name, (_, subset))| (name.clone(), subset.clone())).collect())
    }

    /// Returns a receiver that gets every version up to which all of this is right.
    pub(crate) fn watch(&self) -> watch::Receiver<Version> {
        self.0.reached.subscribe()
    }

    fn extents(&self) -> MutexGuard<'_, Option<Extents>> {
        self.0.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the extents of all views from the notes, and forgets who left before the horizon.
    fn read(&self, state: &State, is_cancelled: &dyn Fn() -> bool) -> Result<bool, Error> {
        let horizon = self.0.collection.horizon();
        let kept = state.views.iter();
        let kept = kept.map(|(name, kept)| (name.clone(), (kept.clone(), Subset::default())));
        let mut extents = Extents { kept: kept.collect(), horizon };
        let (mut notes, nothing) = (Vec::new(), Standing::default());
        for note in self.0.collection.notes(OF) {
            if is_cancelled() {
                return Ok(false);
            }
            let (key, value) = note?;
            let (mut standing, was) = (Standing::read(&value), Standing::read(&value));
            standing.left.retain(|name, left| {
                horizon < left.last && state.views.get(name).is_some_and(|it| it.since < left.last)
            });
            if standing != was {
                notes.push(noted(&key, standing.written()));
            }
            if NOTES_MAX <= notes.len() {
                self.commit(std::mem::take(&mut notes))?;
            }
            let oid = key.get(OF.len()..).and_then(Oid::from_key);
            let live = oid.map_or(Ok(None), |it| self.0.collection.serial(&it))?;
            if live.is_none() {
                standing.within.clear();
            }
            extents.change(live.unwrap_or_default(), &nothing, &standing);
        }
        self.commit(notes)?;
        *self.extents() = Some(extents);
        Ok(true)
    }

    /// Brings the memberships up to the present version, and returns it; `None` if `is_cancelled`.
    fn round(&self, is_cancelled: &dyn Fn() -> bool) -> Result<Option<Version>, Error> {
        let queries = self.0.queries.borrow().clone();
        let all = Wanted { views: self.0.views.get(), queries };
        let (to, mut state) = (self.0.collection.version(), self.state()?);
        let pulled = all.queries.written();
        if pulled != self.0.collection.note(PULLED)? {
            self.commit(vec![noted(PULLED, pulled)])?;
        }
        let wanted: BTreeMap<String, String> =
            all.all().map(|(name, query)| (name.to_owned(), name_of(query))).collect();
        if wanted.is_empty() && state.views.is_empty() && !state.is_beginning {
            return Ok(Some(to));
        }
        let percolator = self.percolator(&all);
        let epoch = to.epoch.to_string();
        if state.epoch != epoch {
            *self.extents() = None;
            self.forget()?;
            state = State { epoch, serial: to.serial, ..State::default() };
        }
        let is_same = |name: &String, known: &mut Kept| wanted.get(name) == Some(&known.selection);
        let is_gone = |it: (&String, &mut Kept)| pulled::is_view(it.0) && !is_same(it.0, it.1);
        let has_lost = state.views.iter_mut().any(is_gone);
        state.views.retain(is_same);
        let new = wanted.iter().filter(|it| !state.views.contains_key(it.0));
        let new: BTreeMap<String, Kept> = new
            .map(|(name, it)| (name.clone(), Kept { selection: it.clone(), since: to.serial }))
            .collect();
        // The names of queries that nobody pulls any more go when anything begins.
        if state.is_beginning || has_lost || !new.is_empty() {
            if has_lost {
                *self.extents() = None;
            }
            if state.views.is_empty() {
                // Nothing of before counts, and what has changed since is among all objects.
                self.forget()?;
                state.serial = to.serial;
            }
            // Whoever is stopped midway finds them unknown, and begins again.
            state.is_beginning = true;
            self.commit(vec![noted(STATE, Some(written(&state)))])?;
            if !self.begin((&all, &percolator), (&state, &new), to, is_cancelled)? {
                return Ok(None);
            }
            // What has changed meanwhile was left out, and is followed: who left before is not known.
            let since = self.0.collection.version().serial;
            let new = new.into_iter().map(|(name, it)| (name, Kept { since, ..it }));
            state.views.extend(new);
            state.is_beginning = false;
            *self.extents() = None;
            self.commit(vec![noted(STATE, Some(written(&state)))])?;
        }
        let horizon = self.extents().as_ref().map(|it| it.horizon);
        if horizon != Some(self.0.collection.horizon()) && !self.read(&state, is_cancelled)? {
            return Ok(None);
        }
        if !self.follow((&all, &percolator), state, to, is_cancelled)? {
            return Ok(None);
        }
        self.0.reached.send_if_modified(|it| std::mem::replace(it, to) != to);
        Ok(Some(to))
    }

    /// Takes all objects into the views that are new, and out of those that are not in `state`. Returns whether it is
    /// done.
    fn begin(
        &self,
        (all, percolator): (&Wanted, &Percolator),
        (state, new): (&State, &BTreeMap<String, Kept>),
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
            let mut now = old.clone();
            now.within.retain(|it| state.views.contains_key(it));
            now.left.retain(|it, _| state.views.contains_key(it));
            let has = has(all, percolator, record);
            now.within.extend(has.into_iter().filter(|it| new.contains_key(it)));
            if now != old {
                notes.push(of(&oid, &now));
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
        (all, percolator): (&Wanted, &Percolator),
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
            let Some((oid, has)) = self.present((all, percolator), &scanned)? else { continue };
            let old = self.of(&oid)?;
            let now = old.after(scanned.serial, has);
            if now != old {
                notes.push(of(&oid, &now));
            }
            if now != Standing::default() {
                changed.push((scanned.serial, old, now));
            }
            if NOTES_MAX <= notes.len().max(changed.len()) {
                self.commit(std::mem::take(&mut notes))?;
                self.have_changed(std::mem::take(&mut changed))?;
            }
        }
        state.serial = to.serial;
        notes.push(noted(STATE, Some(written(&state))));
        self.commit(notes)?;
        self.have_changed(changed)?;
        Ok(true)
    }

    /// Returns the object of a change, and the views that have it now; `None` if another change of it is to come, or it
    /// changes nothing.
    fn present(
        &self,
        (all, percolator): (&Wanted, &Percolator),
        scanned: &Scanned,
    ) -> Result<Option<(Oid, BTreeSet<String>)>, Error> {
        let Some(oid) = scanned.change.oid() else { return Ok(None) };
        let live = self.0.collection.serial(&oid)?;
        Ok(match &scanned.change {
            Change::Update(record) if live == Some(scanned.serial) => {
                Some((oid, has(all, percolator, record)))
            }
            Change::Delete(_) | Change::Withdraw(..) | Change::Suppress(..) if live.is_none() => {
                Some((oid, BTreeSet::new()))
            }
            _ => None,
        })
    }

    /// Takes changes, each with the standing of its object before and after, into the extents.
    fn have_changed(&self, changes: Vec<(u64, Standing, Standing)>) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut extents = self.extents();
        let Some(extents) = extents.as_mut() else { return Ok(()) };
        let mut touched: BTreeSet<String> = BTreeSet::new();
        for (serial, before, after) in changes {
            extents.change(serial, &before, &after);
            touched.extend(before.within);
        }
        self.0.collection.with_live(|live| {
            for name in &touched {
                if let Some((_, subset)) = extents.kept.get_mut(name) {
                    *Arc::make_mut(&mut subset.members) &= live;
                }
            }
        })?;
        Ok(())
    }

    /// Returns the percolator of all queries.
    fn percolator(&self, all: &Wanted) -> Arc<Percolator> {
        let mut known = self.0.percolator.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != *all {
            let percolator = Percolator::new(all.all().map(|it| it.1));
            *known = (all.clone(), Arc::new(percolator));
        }
        Arc::clone(&known.1)
    }

    fn state(&self) -> Result<State, Error> {
        let note = self.0.collection.note(STATE)?.unwrap_or_default();
        // One of another release counts as none: all begins anew.
        Ok(serde_json::from_slice(&note).unwrap_or_default())
    }

    /// Returns the standing of an object, as its note says.
    fn of(&self, oid: &Oid) -> Result<Standing, Error> {
        let note = self.0.collection.note(&[OF, &oid.key()].concat())?;
        Ok(Standing::read(&note.unwrap_or_default()))
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

/// Returns the names of the views and queries that have a record.
fn has(all: &Wanted, percolator: &Percolator, record: &Record) -> BTreeSet<String> {
    let (mut found, mut names) =
        (percolator.matching(record).into_iter().peekable(), BTreeSet::new());
    for (number, (name, _)) in (0..).zip(all.all()) {
        if found.next_if_eq(&number).is_some() {
            names.insert(name.to_owned());
        }
    }
    names
}

fn noted(key: &[u8], value: Option<Vec<u8>>) -> Note {
    Note { key: key.to_vec(), value }
}

fn of(oid: &Oid, standing: &Standing) -> Note {
    noted(&[OF, &oid.key()].concat(), standing.written())
}

fn written(state: &State) -> Vec<u8> {
    serde_json::to_vec(state).unwrap_or_default()
}

#[cfg(test)]
mod tests;
