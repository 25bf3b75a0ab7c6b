//! Where trees and collections are on disk, and what is there when a member starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use collection::replica::FILES_MAX;

use super::core::Core;
use super::kept;
use super::space::Space;
use crate::error::Error;
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
pub(super) fn store_options(kind: Kind) -> Options {
    let options = Options { kind, ..Options::default() };
    match kind {
        Kind::Tree => options,
        // `CHAIN` besides.
        Kind::Collection => Options { entries_max: FILES_MAX as u64 + 1, ..options },
    }
}

impl Core {
    /// Opens the trees, or the collections, that are on disk.
    pub(super) fn open_spaces(&mut self, kind: Kind) -> Result<(), Error> {
        let dir = spaces_dir(&self.config.data, kind);
        fs::create_dir_all(&dir).map_err(|source| Error::io(&dir, source))?;
        let failed = |source| Error::io(&dir, source);
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            let Some(namespace) = parse_namespace(name) else { continue };
            let store = Store::open(&path, store_options(kind))?;
            self.spaces.insert(namespace, Space::new(Arc::new(store)));
        }
        Ok(())
    }

    /// Has the directories of the settings lead to the trees and logs of others.
    pub(super) fn link_replicas(&mut self) {
        for it in self.config.replicas.clone() {
            let namespace = Namespace { origin: it.writer, name: it.name.clone() };
            let dir = spaces_dir(&self.config.data, it.kind);
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
