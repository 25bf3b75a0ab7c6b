//! What one round does: a pass over all roots, or a look at what the watcher has named.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use collection::{Batch, Change, Note, Oid, Stamp};
use net::clock;

use crate::known::LOST_FILES_MAX;
use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::pipeline::{self, Order};
use crate::progress::{Hold, Phase};
use crate::site::Site;
use crate::site::plan::{Plan, TreePlan, trees};
use crate::tree::watch::Vigil;

/// Most deletions of one commit when a removed root is forgotten.
const FORGET_MAX: usize = 4_096;

/// What a pass is made with.
pub(crate) struct Asked {
    /// Roots whose held deletions are released.
    pub(crate) confirmed: BTreeSet<String>,
    /// Files and folders of annotations.
    pub(crate) annotations: Vec<PathBuf>,
    /// The watch, if it has stood since before the pass before.
    pub(crate) vigil: Option<Vigil>,
}

/// Goes over all trees, one after the other. Blocks.
pub(crate) fn pass(
    site: &Site,
    plans: &[Plan],
    asked: &Asked,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    site.read_annotations(&asked.annotations);
    site.annotating.current().forget_met();
    // Repositories have a schedule of their own.
    for plan in trees(plans) {
        if stop() {
            return Ok(());
        }
        let tract = site.tract(&plan.url)?;
        site.enter(Phase::Walking);
        let order = Order {
            scopes: vec![plan.tree.directory.clone()],
            whole: true,
            confirmed: asked.confirmed.contains(&plan.url),
            vigil: asked.vigil.clone(),
        };
        pipeline::run(site, plan, &tract, &order, stop)?;
    }
    site.workers.rest();
    for url in site.known_roots()? {
        if !plans.iter().any(|plan| plan.url() == url) {
            forget_root(site, &url, asked.confirmed.contains(&url), stop)?;
        }
    }
    if !stop() {
        site.match_annotations()?;
        site.passes.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Looks at paths that something has happened to. Blocks.
pub(crate) fn look(
    site: &Site,
    plans: &[Plan],
    paths: &[PathBuf],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    for plan in trees(plans) {
        let top = &plan.tree.directory;
        let scopes = scopes(plan, paths);
        if scopes.is_empty() {
            continue;
        }
        let tract = site.tract(&plan.url)?;
        // Whatever happens to the top itself concerns the whole root, its hold included.
        let whole = scopes.contains(top);
        let scopes = if whole { vec![top.clone()] } else { scopes };
        let order = Order { scopes, whole, confirmed: false, vigil: None };
        pipeline::run(site, plan, &tract, &order, stop)?;
    }
    site.workers.rest();
    Ok(())
}

/// Returns which of `paths` concern a root, in order, none below another, and with them what is made
/// of these: whether that is left out depends on them.
fn scopes(plan: &TreePlan, paths: &[PathBuf]) -> Vec<PathBuf> {
    let select = &plan.making.essence.select;
    let mut scopes = Vec::new();
    for path in paths.iter().filter(|path| path.starts_with(&plan.tree.directory)) {
        let name = path.file_name().unwrap_or_default();
        let made = select.made_of(name.as_bytes()).into_iter().map(OsString::from_vec);
        let made = made.map(|it| path.with_file_name(it));
        scopes.extend(made.filter(|it| std::fs::symlink_metadata(it).is_ok_and(|it| it.is_file())));
        scopes.push(path.clone());
    }
    scopes.sort_unstable();
    scopes.dedup_by(|path, before| path.starts_with(before));
    scopes
}

/// Deletes what is left of a root that is no longer in the settings; much of it only once confirmed.
fn forget_root(
    site: &Site,
    url: &str,
    confirmed: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    let tract = site.tract(url)?;
    let files = lock(&tract.known).len();
    if LOST_FILES_MAX < files && !confirmed {
        let mut note = lock(&tract.note);
        if note.hold != Some(Hold::Removed) {
            (note.hold, note.held) = (Some(Hold::Removed), files);
            site.remember_root(url, &note)?;
        }
        let message = format!(
            "the root is no longer in the settings: its {files} files are kept until it is back or \
             POST /confirm?root={url} says that it is gone"
        );
        site.problem(url.to_owned(), "held", message);
        return Ok(());
    }
    let mut batch = Batch::default();
    for entry in site.collection.notes(&note::objects_prefix(url)) {
        let (key, value) = entry?;
        if let Some(file) = note::from_bytes::<ObjectNote>(&value) {
            let oid = |record: note::Published| Oid::new(&site.id, &record.url);
            batch.changes.extend(file.records.into_iter().map(oid).map(Change::Delete));
        }
        batch.notes.push(Note { key, value: None });
        if FORGET_MAX <= batch.changes.len() {
            site.commit_deletes(std::mem::take(&mut batch))?;
        }
        if stop() {
            break;
        }
    }
    if !stop() {
        batch.notes.push(Note { key: note::root_key(url), value: None });
        site.forget_tract(url);
        lock(&site.problems).cure(url, "held");
    }
    site.commit_deletes(batch)
}

impl Site {
    fn commit_deletes(&self, batch: Batch) -> Result<(), collection::Error> {
        let deleted = batch.changes.len() as u64;
        self.collection.commit(batch, Stamp(clock::now_ms()))?;
        self.metrics.deleted.fetch_add(deleted, Relaxed);
        self.counts.deleted.fetch_add(deleted, Relaxed);
        Ok(())
    }
}
