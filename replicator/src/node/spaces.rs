//! What a member has on disk of trees and collections, and what it knew of them before it was started.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::notes::Notes;
use super::own::Own;
use super::places::{note_closed, passage, spaces_dir, store_options};
use super::space::{Outcome, Said, Space, Work};
use crate::error::Error;
use crate::tree;
use crate::tree::generation::Generation;
use crate::tree::passage::{Passage, make_private};
use crate::tree::store::Store;
use crate::version::{Hash, Kind, Namespace, Number, Version};

/// So often it is tried again to remove what readers had a lease on.
const OLD_AGAIN: Duration = Duration::from_secs(10);

/// Generations that are to go, and cannot yet.
#[derive(Clone, Copy, Debug)]
struct Old {
    left: usize,
    again: Duration,
}

/// All trees and collections.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    all: BTreeMap<Namespace, Space>,
    /// What of generations that nobody needs could not be removed.
    old: BTreeMap<Namespace, Old>,
    /// Which versions could not be taken the last time, and why, until one is.
    failures: BTreeMap<Namespace, String>,
    /// Versions that were known before the start, until a group lists them.
    restored: BTreeMap<Namespace, Vec<u8>>,
}

/// Generations that nobody needs any more are to go.
#[derive(Debug)]
pub(super) struct Removing {
    of: Namespace,
    store: Arc<Store>,
}

impl Removing {
    /// Removes them, and returns how many are left. Blocks.
    pub(super) fn run(self) -> (Namespace, usize) {
        let Self { of, store } = self;
        let left = store.remove_old().unwrap_or_else(|error| {
            tracing::warn!(%of, %error, "an old generation stays for now");
            1
        });
        (of, left)
    }
}

/// Others are to get at a tree, or no more.
#[derive(Debug)]
pub(super) struct Opening {
    of: Namespace,
    store: Arc<Store>,
}

/// Others get at a tree now, or do not.
#[derive(Debug)]
pub(super) struct Opened {
    of: Namespace,
    opened: Result<(), tree::error::Error>,
}

impl Opening {
    /// Lets them. Blocks, and takes a while for many files.
    pub(super) fn run(self) -> Opened {
        Opened { opened: self.store.open_gate(), of: self.of }
    }
}

impl Spaces {
    /// Opens all that is on disk. That may take long, and trees that others get at they get at meanwhile.
    ///
    /// # Errors
    ///
    /// Something cannot be opened.
    pub(super) fn open(own: &Own, notes: &mut Notes) -> Result<Self, Error> {
        let mut spaces = Self::default();
        for kind in [Kind::Tree, Kind::Collection] {
            spaces.open_all(kind, own, notes)?;
        }
        spaces.open_data(own, notes);
        for bytes in own.kept.versions()? {
            if let Some(namespace) = Version::namespace_of(&bytes) {
                spaces.restored.insert(namespace, bytes);
            }
        }
        Ok(spaces)
    }

    fn open_all(&mut self, kind: Kind, own: &Own, notes: &mut Notes) -> Result<(), Error> {
        let dir = spaces_dir(&own.config.daemon.data, kind);
        if kind == Kind::Collection || !dir.exists() {
            make_private(&dir)?;
        }
        let failed = |source| Error::io(&dir, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            let Some(namespace) = Namespace::parse(name) else { continue };
            let passage = passage(&namespace, own, notes);
            // The settings may have changed since it was opened.
            passage.close_others(&path)?;
            found.push((namespace, passage));
        }
        for (of, passage) in found {
            let store = open_store(&of, kind, passage, own, notes)?;
            self.all.insert(of, Space::new(Arc::new(store)));
        }
        Ok(())
    }

    /// Opens the directory of a tree or collection, unless it is open.
    ///
    /// # Errors
    ///
    /// It cannot be opened, or is of the other kind.
    pub(super) fn open_one(
        &mut self,
        of: &Namespace,
        kind: Kind,
        own: &Own,
        notes: &mut Notes,
    ) -> Result<Arc<Store>, String> {
        if let Some(space) = self.all.get(of) {
            let is_it = space.store().kind() == kind;
            let why = "it was something else before, a tree or a collection: take another name";
            return if is_it { Ok(space.store().clone()) } else { Err(why.to_owned()) };
        }
        let passage = passage(of, own, notes);
        let opened = open_store(of, kind, passage, own, notes);
        let store = Arc::new(opened.map_err(|error| error.to_string())?);
        self.all.insert(of.clone(), Space::new(store.clone()));
        self.open_data(own, notes);
        Ok(store)
    }

    /// Has the data directory let through those alone who get at a tree in it, by what came of opening the trees.
    fn open_data(&self, own: &Own, notes: &mut Notes) {
        let above = Passage::above(self.stores().map(|it| it.1.passage()));
        let data = &own.config.daemon.data;
        for dir in [data.clone(), spaces_dir(data, Kind::Tree)] {
            if let Err(error) = above.apply(&dir) {
                let shown = dir.display();
                let said = format!("who gets into {shown} is not as the settings say: {error}");
                notes.add(format!("{said}; see whose it is, and chmod it"), own.now());
            }
        }
    }

    /// Takes over from other settings who gets at which tree.
    pub(super) fn set_passages(&self, own: &Own, notes: &mut Notes) -> Vec<Opening> {
        let wanted = self.stores().map(|(of, store)| {
            // It takes a while for many files, and meanwhile other settings may come.
            store.want_passage(passage(of, own, notes));
            Opening { of: of.clone(), store: store.clone() }
        });
        wanted.collect()
    }

    /// Who gets at a tree is as the settings say, or nobody does.
    pub(super) fn handle_opened(&self, opened: &Opened, own: &Own, notes: &mut Notes) {
        if let Err(error) = &opened.opened {
            note_closed(&opened.of, &error.to_string(), own, notes);
        }
        self.open_data(own, notes);
    }

    pub(super) fn stores(&self) -> impl Iterator<Item = (&Namespace, &Arc<Store>)> {
        self.all.iter().map(|(of, it)| (of, it.store()))
    }

    pub(super) fn store(&self, of: &Namespace) -> Option<&Arc<Store>> {
        self.all.get(of).map(Space::store)
    }

    /// What readers see.
    pub(super) fn current(&self, of: &Namespace) -> Option<Arc<Generation>> {
        self.store(of)?.current()
    }

    /// A chunk that is not on disk yet.
    pub(super) fn fresh(&self, of: &Namespace, hash: &Hash) -> Option<&Bytes> {
        self.all.get(of)?.fresh(hash)
    }

    pub(super) fn fresh_bytes(&self) -> usize {
        self.all.values().map(Space::fresh_bytes).sum()
    }

    /// Those that are not as they were written.
    pub(super) fn damaged(&self) -> Vec<Namespace> {
        let damaged = self.stores().filter(|it| !it.1.damaged().is_empty());
        damaged.map(|it| it.0.clone()).collect()
    }

    /// Takes what was known before the start, or is held and was not heard of, of namespaces that groups list now.
    pub(super) fn take_known(
        &mut self,
        is_listed: impl Fn(&Namespace) -> bool,
        is_heard: impl Fn(&Namespace) -> bool,
    ) -> Vec<(Namespace, Vec<u8>)> {
        let mut known: Vec<_> = self.restored.extract_if(.., |of, _| is_listed(of)).collect();
        // Of what is held no file has to tell.
        for (of, store) in self.stores() {
            let held = store.current().filter(|_| !is_heard(of) && is_listed(of));
            known.extend(held.map(|it| (of.clone(), it.meta().version.clone())));
        }
        known
    }

    /// Takes in a chunk.
    pub(super) fn keep(&mut self, of: &Namespace, hash: Hash, bytes: Bytes) {
        if let Some(space) = self.all.get_mut(of) {
            space.keep(hash, bytes);
        }
    }

    /// Begins to fetch a version.
    pub(super) fn begin(&mut self, version: &Version) {
        if let Some(space) = self.all.get_mut(&version.namespace) {
            space.begin(version);
        }
    }

    /// Stops fetching; what has come is kept for a version to come.
    pub(super) fn stop(&mut self, of: &Namespace) {
        if let Some(space) = self.all.get_mut(of) {
            space.stop();
        }
    }

    /// Has readers see what was fetched, next.
    pub(super) fn switch(&mut self, of: &Namespace) {
        if let Some(space) = self.all.get_mut(of) {
            space.switch();
        }
    }

    /// Looks again what is wanted.
    pub(super) fn look(&mut self) {
        self.all.values_mut().for_each(Space::look);
    }

    /// What is to be done on disk now.
    pub(super) fn poll_work(&mut self) -> Vec<(Namespace, Work)> {
        let work = self.all.iter_mut().filter_map(|(of, it)| Some((of.clone(), it.next_work()?)));
        work.collect()
    }

    /// Takes in what came of it; returns of which version that says what, and how many bytes are to come, as far as is
    /// known.
    pub(super) fn handle_outcome(
        &mut self,
        of: &Namespace,
        outcome: Outcome,
    ) -> Option<(Number, Said, Option<u64>)> {
        let space = self.all.get_mut(of)?;
        let said = space.handle_outcome(outcome);
        let missing = space.missing_bytes();
        said.map(|(number, said)| (number, said, missing))
    }

    /// Takes in that a version could not be taken.
    pub(super) fn set_failure(&mut self, of: &Namespace, why: String) {
        self.failures.insert(of.clone(), why);
    }

    /// Takes in that readers see another version.
    pub(super) fn handle_switched(&mut self, of: &Namespace) {
        self.failures.remove(of);
    }

    /// Which version could not be taken, and why.
    pub(super) fn failure(&self, of: &Namespace) -> Option<&String> {
        self.failures.get(of)
    }

    /// The generations of one that nobody needs any more.
    pub(super) fn removing(&self, of: &Namespace) -> Option<Removing> {
        Some(Removing { of: of.clone(), store: self.store(of)?.clone() })
    }

    /// Those of all: what a crash, or who read it, has left.
    pub(super) fn removing_all(&self) -> Vec<Removing> {
        self.all.keys().filter_map(|it| self.removing(it)).collect()
    }

    /// Some generations could not be removed: readers have leases on them.
    pub(super) fn handle_old(&mut self, of: Namespace, left: usize, now: Duration) {
        if left == 0 {
            self.old.remove(&of);
        } else {
            self.old.insert(of, Old { left, again: now + OLD_AGAIN });
        }
    }

    /// Tries again to remove what was in use.
    pub(super) fn poll_old(&mut self, now: Duration) -> Vec<Removing> {
        let mut due = Vec::new();
        for (of, old) in self.old.iter_mut().filter(|it| it.1.again <= now) {
            old.again = now + OLD_AGAIN;
            due.push(of.clone());
        }
        due.iter().filter_map(|it| self.removing(it)).collect()
    }

    /// How many generations of one should be gone.
    pub(super) fn old(&self, of: &Namespace) -> Option<usize> {
        self.old.get(of).map(|it| it.left)
    }

    /// Ends what is being done.
    pub(super) fn end(&self) {
        self.stores().for_each(|it| it.1.stop());
    }
}

/// Opens the directory of a tree or collection; it is closed to others if it cannot be opened to whom the settings
/// say.
fn open_store(
    of: &Namespace,
    kind: Kind,
    passage: Passage,
    own: &Own,
    notes: &mut Notes,
) -> Result<Store, Error> {
    let dir = spaces_dir(&own.config.daemon.data, kind).join(of.to_string());
    match Store::open(&dir, store_options(kind, passage)) {
        Err(error) if passage != Passage::default() => {
            note_closed(of, &error.to_string(), own, notes);
            Ok(Store::open(&dir, store_options(kind, Passage::default()))?)
        }
        opened => Ok(opened?),
    }
}
