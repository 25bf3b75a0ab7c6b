//! Where trees and collections are on disk, and who gets at them.

use std::path::{Path, PathBuf};

use collection::replica::FILES_MAX;

use super::kept;
use super::notes::Notes;
use super::own::Own;
use crate::tree::passage::{FILE, Passage, hide};
use crate::tree::store::Options;
use crate::version::{Kind, Namespace};

/// Where the trees, or the collections, are.
pub(super) fn spaces_dir(data: &Path, kind: Kind) -> PathBuf {
    data.join(match kind {
        Kind::Tree => "trees",
        Kind::Collection => "collections",
    })
}

/// What is allowed in a tree, or in the log of a collection.
pub(super) fn store_options(kind: Kind, passage: Passage) -> Options {
    let options = Options { kind, passage, ..Options::default() };
    match kind {
        Kind::Tree => options,
        // `CHAIN` besides.
        Kind::Collection => Options { entries_max: FILES_MAX as u64 + 1, ..options },
    }
}

/// Who gets at a tree, by the settings; nobody else if they name a group that is not there.
pub(super) fn passage(of: &Namespace, own: &Own, notes: &mut Notes) -> Passage {
    let config = &own.config;
    let mine = config.trees.iter().filter(|it| it.name == of.name && of.origin == own.me);
    let others = config.replicas.iter();
    let others = others.filter(|it| it.name == of.name && it.writer == of.origin);
    let said = mine.map(|it| &it.passage).chain(others.map(|it| &it.passage)).next();
    said.cloned().unwrap_or_default().resolve().unwrap_or_else(|why| {
        note_closed(of, &why, own, notes);
        Passage::default()
    })
}

/// Notes that others do not get at a tree who should.
pub(super) fn note_closed(of: &Namespace, why: &str, own: &Own, notes: &mut Notes) {
    notes.add(format!("{of}: nobody but the owner gets at it: {why}"), own.now());
}

/// Makes the files of the data directory the owner's alone: before, others could read them.
pub(super) fn close_data(own: &Own, notes: &mut Notes) {
    if let Err(error) = hide(&own.config.daemon.data, FILE, false) {
        notes.add(format!("others may read it as before: {error}; chmod it"), own.now());
    }
}

/// Has the directories of the settings lead to the trees and logs of others.
pub(super) fn link_replicas(own: &Own, notes: &mut Notes) {
    for it in &own.config.replicas {
        let namespace = Namespace { origin: it.writer, name: it.name.clone() };
        let dir = spaces_dir(&own.config.daemon.data, it.kind);
        let target = dir.join(namespace.to_string()).join("current");
        if let Err(error) = kept::link(&target, &it.directory) {
            notes.add(format!("{namespace} is not linked: {error}"), own.now());
        }
    }
}
