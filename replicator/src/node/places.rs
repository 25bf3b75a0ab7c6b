//! Where trees and collections are on disk, and what is there when a member starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collection::replica::FILES_MAX;

use super::core::{Core, Done};
use super::kept;
use super::space::Space;
use crate::error::Error;
use crate::tree::passage::{self, Passage};
use crate::tree::store::{Options, Store};
use crate::version::{Kind, Name, Namespace};

/// Where the trees, or the collections, are.
pub(super) fn spaces_dir(data: &Path, kind: Kind) -> PathBuf {
    data.join(match kind {
        Kind::Tree => "trees",
        Kind::Collection => "collections",
    })
}

/// What is allowed in a tree, or in the log of a collection.
fn store_options(kind: Kind, passage: Passage) -> Options {
    let options = Options { kind, passage, ..Options::default() };
    match kind {
        Kind::Tree => options,
        // `CHAIN` besides.
        Kind::Collection => Options { entries_max: FILES_MAX as u64 + 1, ..options },
    }
}

impl Core {
    /// Opens the trees, or the collections, that are on disk. That may take long, and trees that others get at they get
    /// at meanwhile.
    pub(super) fn open_spaces(&mut self, kind: Kind) -> Result<(), Error> {
        let dir = spaces_dir(&self.own.config.data, kind);
        if kind == Kind::Collection || !dir.exists() {
            passage::make_private(&dir)?;
        }
        let failed = |source| Error::io(&dir, source);
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            let Some(namespace) = parse_namespace(name) else { continue };
            let passage = self.passage(&namespace);
            // The settings may have changed since it was opened.
            passage.close_others(&path)?;
            found.push((namespace, passage));
        }
        for (namespace, passage) in found {
            let store = self.open_store(&namespace, kind, passage)?;
            self.spaces.insert(namespace, Space::new(Arc::new(store)));
        }
        Ok(())
    }

    /// Opens the directory of a tree or collection; it is closed to others if it cannot be opened to whom the settings
    /// say.
    fn open_store(&mut self, of: &Namespace, kind: Kind, passage: Passage) -> Result<Store, Error> {
        let dir = spaces_dir(&self.own.config.data, kind).join(of.to_string());
        match Store::open(&dir, store_options(kind, passage)) {
            Err(error) if passage != Passage::default() => {
                self.note_closed(of, &error.to_string());
                Ok(Store::open(&dir, store_options(kind, Passage::default()))?)
            }
            opened => Ok(opened?),
        }
    }

    /// Opens the directory of a tree or collection, unless it is open.
    pub(super) fn open_space(&mut self, of: &Namespace, kind: Kind) -> Result<(), String> {
        if let Some(space) = self.spaces.get(of) {
            let is_it = space.store().kind() == kind;
            let why = "it was something else before, a tree or a collection: take another name";
            return if is_it { Ok(()) } else { Err(why.to_owned()) };
        }
        let passage = self.passage(of);
        let store = self.open_store(of, kind, passage).map_err(|error| error.to_string())?;
        self.spaces.insert(of.clone(), Space::new(store.into()));
        self.open_data();
        Ok(())
    }

    fn note_closed(&mut self, of: &Namespace, why: &str) {
        let said = format!("{of}: nobody but the owner gets at it: {why}");
        self.notes.add(said, self.now());
    }

    /// Who gets at a tree, by the settings; nobody else if they name a group that is not there.
    fn passage(&mut self, of: &Namespace) -> Passage {
        let own = self
            .own
            .config
            .trees
            .iter()
            .filter(|it| it.name == of.name && of.origin == self.own.me);
        let others = self.own.config.replicas.iter();
        let others = others.filter(|it| it.name == of.name && it.writer == of.origin);
        let said = own.map(|it| &it.passage).chain(others.map(|it| &it.passage)).next();
        said.cloned().unwrap_or_default().resolve().unwrap_or_else(|why| {
            self.note_closed(of, &why);
            Passage::default()
        })
    }

    /// Makes the files of the data directory the owner's alone: before, others could read them.
    pub(super) fn close_data(&mut self) {
        if let Err(error) = passage::hide(&self.own.config.data, passage::FILE, false) {
            self.notes.add(format!("others may read it as before: {error}; chmod it"), self.now());
        }
    }

    /// Has the data directory let through those alone who get at a tree in it, by what came of opening the trees.
    pub(super) fn open_data(&mut self) {
        let above = Passage::above(self.spaces.values().map(|it| it.store().passage()));
        for dir in [self.own.config.data.clone(), spaces_dir(&self.own.config.data, Kind::Tree)] {
            if let Err(error) = above.apply(&dir) {
                let shown = dir.display();
                let said = format!("who gets into {shown} is not as the settings say: {error}");
                self.notes.add(format!("{said}; see whose it is, and chmod it"), self.now());
            }
        }
    }

    /// Takes over from other settings who gets at which tree.
    pub(super) fn open_passages(&mut self) {
        let all: Vec<Namespace> = self.spaces.keys().cloned().collect();
        for of in all {
            let passage = self.passage(&of);
            let Some(store) = self.spaces.get(&of).map(|it| it.store().clone()) else { continue };
            // It takes a while for many files, and meanwhile other settings may come.
            store.want_passage(passage);
            self.jobs.spawn_blocking(move || Done::Opened(of, store.open_gate()));
        }
    }

    /// Who gets at a tree is as the settings say, or nobody does.
    pub(super) fn handle_opened(
        &mut self,
        of: &Namespace,
        opened: Result<(), crate::tree::error::Error>,
    ) {
        if let Err(error) = opened {
            self.note_closed(of, &error.to_string());
        }
        self.open_data();
    }

    /// Has the directories of the settings lead to the trees and logs of others.
    pub(super) fn link_replicas(&mut self) {
        for it in self.own.config.replicas.clone() {
            let namespace = Namespace { origin: it.writer, name: it.name.clone() };
            let dir = spaces_dir(&self.own.config.data, it.kind);
            let target = dir.join(namespace.to_string()).join("current");
            if let Err(error) = kept::link(&target, &it.directory) {
                self.notes.add(format!("{namespace} is not linked: {error}"), self.now());
            }
        }
    }
}

/// Reads what [`Namespace`] writes.
pub(super) fn parse_namespace(text: &str) -> Option<Namespace> {
    let (name, origin) = text.rsplit_once('@')?;
    Some(Namespace { origin: origin.parse().ok()?, name: Name::new(name).ok()? })
}
