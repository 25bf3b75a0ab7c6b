//! Spaces: the trees and collections of a member on disk, and the versions that the member knew
//! before its start.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::directories::{access, note_closed, spaces_dir, store_options};
use super::notes::Notes;
use super::own::Own;
use super::space::{Outcome, Space, SpaceEvent, Work};
use crate::error::Error;
use crate::tree;
use crate::tree::access::{Access, make_private};
use crate::tree::generation::Generation;
use crate::tree::store::Store;
use crate::version::{Hash, Kind, Namespace, Number, Version};

/// Pause before another attempt to remove generations that readers had a lease on.
const OLD_AGAIN: Duration = Duration::from_secs(10);

/// The store of a tree or collection, for a job.
pub(super) type NamedStore = (Namespace, Arc<Store>);

/// Old generations that could not be removed yet.
#[derive(Clone, Copy, Debug)]
struct Old {
    left: usize,
    again: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Spaces {
    all: BTreeMap<Namespace, Space>,
    /// Old generations that could not be removed, and the time of the next attempt.
    old: BTreeMap<Namespace, Old>,
    /// Reasons why the last version could not be taken, until a version is taken.
    pub(super) failures: BTreeMap<Namespace, String>,
    /// Versions known before the start, until a group lists their namespaces.
    restored: BTreeMap<Namespace, Vec<u8>>,
}

/// Removes the generations of a tree that are no longer needed, and returns how many are left; 1
/// after an error. Blocks.
pub(super) fn remove_old(of: &Namespace, store: &Store) -> usize {
    store.remove_old().unwrap_or_else(|error| {
        tracing::warn!(%of, %error, "an old generation stays for now");
        1
    })
}

impl Spaces {
    /// Opens all trees and collections on disk. This may take long; other users keep their access
    /// meanwhile.
    pub(super) fn open(own: &Own, notes: &mut Notes) -> Result<Self, Error> {
        let mut spaces = Self::default();
        for kind in [Kind::Tree, Kind::Collection] {
            spaces.open_all(kind, own, notes)?;
        }
        spaces.open_data(own, notes);
        for bytes in own.files.versions()? {
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
            let access = access(&namespace, own, notes);
            // The settings may have changed since the folder was last opened.
            access.close_others(&path)?;
            found.push((namespace, access));
        }
        for (of, access) in found {
            let store = open_store(&of, kind, access, own, notes)?;
            self.all.insert(of, Space::new(Arc::new(store)));
        }
        Ok(())
    }

    /// Returns the store of a tree or collection, and opens its directory if it is not open. Fails
    /// if the namespace has the other kind.
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
        let access = access(of, own, notes);
        let opened = open_store(of, kind, access, own, notes);
        let store = Arc::new(opened.map_err(|error| error.to_string())?);
        self.all.insert(of.clone(), Space::new(store.clone()));
        self.open_data(own, notes);
        Ok(store)
    }

    /// Opens the data directory and the trees' directory as far as the access to the trees in them
    /// requires.
    fn open_data(&self, own: &Own, notes: &mut Notes) {
        let above = Access::above(self.stores().map(|it| it.1.access()));
        let data = &own.config.daemon.data;
        for dir in [data.clone(), spaces_dir(data, Kind::Tree)] {
            if let Err(error) = above.apply(&dir) {
                let shown = dir.display();
                let text = format!("the access to {shown} differs from the settings: {error}");
                notes.add(format!("{text}; check its owner, and chmod it"), own.now());
            }
        }
    }

    /// Takes over the access to trees from the settings; returns all stores, whose access has to be
    /// opened anew.
    pub(super) fn set_access(&self, own: &Own, notes: &mut Notes) -> Vec<NamedStore> {
        let wanted = self.stores().map(|(of, store)| {
            // The change takes a while for many files, and other settings may come meanwhile.
            store.want_access(access(of, own, notes));
            (of.clone(), store.clone())
        });
        wanted.collect()
    }

    /// Takes in a change of access. If it failed, only the owner has access, and a note is added.
    pub(super) fn handle_opened(
        &self,
        of: &Namespace,
        opened: Result<(), tree::error::Error>,
        own: &Own,
        notes: &mut Notes,
    ) {
        if let Err(error) = opened {
            note_closed(of, &error.to_string(), own, notes);
        }
        self.open_data(own, notes);
    }

    pub(super) fn stores(&self) -> impl Iterator<Item = (&Namespace, &Arc<Store>)> {
        self.all.iter().map(|(of, it)| (of, it.store()))
    }

    pub(super) fn store(&self, of: &Namespace) -> Option<&Arc<Store>> {
        self.all.get(of).map(Space::store)
    }

    /// Returns the generation that readers see; none if there is none yet.
    pub(super) fn current(&self, of: &Namespace) -> Option<Arc<Generation>> {
        self.store(of)?.current()
    }

    /// Returns a chunk that has come and is not on disk yet; `None` for any other.
    pub(super) fn fresh(&self, of: &Namespace, hash: &Hash) -> Option<&Bytes> {
        self.all.get(of)?.fresh(hash)
    }

    pub(super) fn fresh_bytes(&self) -> usize {
        self.all.values().map(Space::fresh_bytes).sum()
    }

    /// Takes the versions of listed namespaces that were known before the start, or are held here
    /// and not yet known to the flood (`is_heard`).
    pub(super) fn take_known(
        &mut self,
        is_listed: impl Fn(&Namespace) -> bool,
        is_heard: impl Fn(&Namespace) -> bool,
    ) -> Vec<(Namespace, Vec<u8>)> {
        let mut known: Vec<_> = self.restored.extract_if(.., |of, _| is_listed(of)).collect();
        // A held version needs no file of its own.
        for (of, store) in self.stores() {
            let held = store.current().filter(|_| !is_heard(of) && is_listed(of));
            known.extend(held.map(|it| (of.clone(), it.meta().version.clone())));
        }
        known
    }

    /// Does something with a tree or collection that is open.
    pub(super) fn with(&mut self, of: &Namespace, act: impl FnOnce(&mut Space)) {
        if let Some(space) = self.all.get_mut(of) {
            act(space);
        }
    }

    /// Makes the next work of each space check again which chunks are wanted.
    pub(super) fn look(&mut self) {
        self.all.values_mut().for_each(Space::look);
    }

    /// Returns the work on disk that can be started now.
    pub(super) fn poll_work(&mut self) -> Vec<(Namespace, Work)> {
        let work = self.all.iter_mut().filter_map(|(of, it)| Some((of.clone(), it.next_work()?)));
        work.collect()
    }

    /// Takes in the outcome of work; returns the version's number, the result, and how many bytes
    /// are missing, if known. None if the core need not know it.
    pub(super) fn handle_outcome(
        &mut self,
        of: &Namespace,
        outcome: Outcome,
    ) -> Option<(Number, SpaceEvent, Option<u64>)> {
        let space = self.all.get_mut(of)?;
        let event = space.handle_outcome(outcome);
        let missing = space.missing_bytes();
        event.map(|(number, event)| (number, event, missing))
    }

    /// Returns all stores, in which a crash or readers may have left old generations.
    pub(super) fn named_stores(&self) -> Vec<NamedStore> {
        self.stores().map(|(of, store)| (of.clone(), store.clone())).collect()
    }

    /// Takes in how many old generations are left because readers have leases on them.
    pub(super) fn handle_old(&mut self, of: Namespace, left: usize, now: Duration) {
        if left == 0 {
            self.old.remove(&of);
        } else {
            self.old.insert(of, Old { left, again: now + OLD_AGAIN });
        }
    }

    /// Returns the stores for which the removal of old generations is due again.
    pub(super) fn poll_old(&mut self, now: Duration) -> Vec<NamedStore> {
        let mut due = Vec::new();
        for (of, old) in self.old.iter_mut().filter(|it| it.1.again <= now) {
            old.again = now + OLD_AGAIN;
            due.push(of.clone());
        }
        due.into_iter().filter_map(|it| self.store(&it).cloned().map(|store| (it, store))).collect()
    }

    /// Returns how many old generations of a tree or collection are left; none if all were removed.
    pub(super) fn old(&self, of: &Namespace) -> Option<usize> {
        self.old.get(of).map(|it| it.left)
    }
}

/// Opens the directory of a tree or collection. If the access in the settings cannot be given, only
/// the owner has access, and a note is added.
fn open_store(
    of: &Namespace,
    kind: Kind,
    access: Access,
    own: &Own,
    notes: &mut Notes,
) -> Result<Store, Error> {
    let dir = spaces_dir(&own.config.daemon.data, kind).join(of.to_string());
    match Store::open(&dir, store_options(kind, access)) {
        Err(error) if access != Access::default() => {
            note_closed(of, &error.to_string(), own, notes);
            Ok(Store::open(&dir, store_options(kind, Access::default()))?)
        }
        opened => Ok(opened?),
    }
}
