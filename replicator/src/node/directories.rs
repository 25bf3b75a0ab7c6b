//! Directories of trees and collections, and the access to them.

use std::path::{Path, PathBuf};

use collection::replica::FILES_MAX;

use super::notes::Notes;
use super::own::Own;
use super::state_files;
use crate::tree::access::{Access, FILE, hide};
use crate::tree::store::Options;
use crate::version::{Kind, Namespace};

/// Returns the directory of all trees, or of all collections.
pub(super) fn spaces_dir(data: &Path, kind: Kind) -> PathBuf {
    data.join(match kind {
        Kind::Tree => "trees",
        Kind::Collection => "collections",
    })
}

/// Returns the options of a store for a tree or for the log of a collection.
pub(super) fn store_options(kind: Kind, access: Access) -> Options {
    let options = Options { kind, access, ..Options::default() };
    match kind {
        Kind::Tree => options,
        // One more than the log's files, for the file `CHAIN`.
        Kind::Collection => Options { entries_max: FILES_MAX as u64 + 1, ..options },
    }
}

/// Returns the access to a tree that the settings grant. If they name a system group that does not
/// exist, only the owner has access, and a note is added.
pub(super) fn access(of: &Namespace, own: &Own, notes: &mut Notes) -> Access {
    let config = &own.config;
    let mine = config.trees.iter().filter(|it| it.name == of.name && of.origin == own.me);
    let others = config.replicas.iter();
    let others = others.filter(|it| it.name == of.name && it.writer == of.origin);
    let found = mine.map(|it| &it.access).chain(others.map(|it| &it.access)).next();
    found.cloned().unwrap_or_default().resolve().unwrap_or_else(|why| {
        note_closed(of, &why, own, notes);
        Access::default()
    })
}

/// Adds a note that others lack the access that they should have.
pub(super) fn note_closed(of: &Namespace, why: &str, own: &Own, notes: &mut Notes) {
    notes.add(format!("{of}: only the owner has access to it: {why}"), own.now());
}

/// Makes the files directly in the data directory private: an older version of this program left
/// them readable. A failure is only noted.
pub(super) fn close_data(own: &Own, notes: &mut Notes) {
    if let Err(error) = hide(&own.config.daemon.data, FILE, false) {
        notes.add(format!("others can still read it: {error}; chmod it"), own.now());
    }
}

/// Makes the links to trees and logs of others that the settings name. A failure is only noted.
pub(super) fn link_replicas(own: &Own, notes: &mut Notes) {
    for it in &own.config.replicas {
        let namespace = Namespace { origin: it.writer, name: it.name.clone() };
        let dir = spaces_dir(&own.config.daemon.data, it.kind);
        let target = dir.join(namespace.to_string()).join("current");
        if let Err(error) = state_files::link(&target, &it.link) {
            notes.add(format!("{namespace} is not linked: {error}"), own.now());
        }
    }
}
