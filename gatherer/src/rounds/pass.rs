//! The work of one round: a pass over all roots, or a look at changed paths.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use collection::{Batch, Note, Stamp};
use net::clock;

use crate::known::LOST_FILES_MAX;
use crate::lock::lock;
use crate::note::{self, ObjectNote};
use crate::pipeline::{self, Access, Order};
use crate::progress::{Hold, Phase};
use crate::site::Site;
use crate::site::plan::{Plan, TreePlan, trees};
use crate::spec;
use crate::tree::selection;
use crate::tree::walk::{Go, WalkItem, Walker};
use crate::tree::watch::WatchSession;

/// Number of deletions after which a commit is made while a removed root is forgotten.
const FORGET_MAX: usize = 4_096;

pub(crate) struct PassRequest {
    /// Roots whose held deletions are released.
    pub(crate) confirmed: BTreeSet<String>,
    pub(crate) annotations: Vec<PathBuf>,
    /// The watch session, if the previous pass ran under the same watches.
    pub(crate) session: Option<WatchSession>,
}

/// Gathers all trees in order, forgets removed ones, and matches annotations. Blocks.
pub(crate) fn pass(
    site: &Site,
    plans: &[Plan],
    request: &PassRequest,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    site.read_annotations(&request.annotations);
    site.annotating.current().reset_matches();
    let known = trees(plans).map(|plan| Ok(lock(&site.root_state(&plan.root.url)?.known).len()));
    let known = known.collect::<Result<Vec<u64>, collection::Error>>()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| expect(site, plans, &known, &|| is_over.load(Relaxed) || stop()));
        let outcome = gather(site, plans, request, stop);
        is_over.store(true, Relaxed);
        outcome
    })?;
    site.workers.end_idle();
    // Roots elsewhere have their own schedule, which forgets them, too.
    for url in site.known_roots()?.into_iter().filter(|it| !spec::is_remote_url(it)) {
        if !plans.iter().any(|plan| plan.url() == url) {
            forget_root(site, &url, request.confirmed.contains(&url), stop)?;
        }
    }
    if !stop() {
        site.match_annotations()?;
        site.passes.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Sets the number of files that the pass will find. They are counted where none is `known` yet (by
/// tree, in the order of `plans`): counting takes little beside reading. Blocks.
fn expect(site: &Site, plans: &[Plan], known: &[u64], stop: &(dyn Fn() -> bool + Sync)) {
    let mut expected = 0;
    for (plan, known) in trees(plans).zip(known) {
        expected += if 0 < *known { *known } else { count(plan, stop) };
    }
    if !stop() {
        site.counts.expected.store(expected, Relaxed);
    }
}

/// Returns the number of files in a tree that are to be gathered. Blocks.
fn count(plan: &TreePlan, stop: &(dyn Fn() -> bool + Sync)) -> u64 {
    let TreePlan { root, tree, filter, data, .. } = plan;
    let files = AtomicU64::new(0);
    let handle = |item: WalkItem<'_>| {
        let (top, select) = ((tree.directory.as_path(), filter), &root.summarizing.essence.select);
        if let WalkItem::File { path, stat } = item
            && selection::leaves_out(select, top, path, stat.size).is_none()
        {
            files.fetch_add(1, Relaxed);
        }
        if stop() { Go::Stop } else { Go::On }
    };
    Walker { tree, filter, data, threads: 1 }.walk(std::slice::from_ref(&tree.directory), &handle);
    files.into_inner()
}

/// Gathers all trees in order. Blocks.
fn gather(
    site: &Site,
    plans: &[Plan],
    request: &PassRequest,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    // Repositories have their own schedule.
    for plan in trees(plans) {
        if stop() {
            return Ok(());
        }
        let root_state = site.root_state(&plan.root.url)?;
        site.enter(Phase::Walking);
        let order = Order {
            scopes: vec![plan.tree.directory.clone()],
            whole: true,
            confirmed: request.confirmed.contains(&plan.root.url),
            session: request.session.clone(),
        };
        pipeline::run(site, (&plan.root, Access::tree(plan)), &root_state, &order, stop)?;
    }
    Ok(())
}

/// Gathers changed paths. Blocks.
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
        let root_state = site.root_state(&plan.root.url)?;
        // A change of the top itself affects the whole root, including its hold.
        let whole = scopes.contains(top);
        let scopes = if whole { vec![top.clone()] } else { scopes };
        let order = Order { scopes, whole, confirmed: false, session: None };
        pipeline::run(site, (&plan.root, Access::tree(plan)), &root_state, &order, stop)?;
    }
    site.workers.end_idle();
    Ok(())
}

/// Returns those of `paths` that are in a root, with the products of these files, in order, none
/// below another. The products are added since their source decides whether they are left out.
fn scopes(plan: &TreePlan, paths: &[PathBuf]) -> Vec<PathBuf> {
    let select = &plan.root.summarizing.essence.select;
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

/// Deletes the objects of a root that is no longer in the settings; if there are many, only after a
/// confirmation. Blocks.
pub(crate) fn forget_root(
    site: &Site,
    url: &str,
    confirmed: bool,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    let root_state = site.root_state(url)?;
    let files = lock(&root_state.known).len();
    if LOST_FILES_MAX < files && !confirmed {
        let mut note = lock(&root_state.note);
        if note.hold != Some(Hold::Removed) {
            (note.hold, note.held) = (Some(Hold::Removed), files);
            site.remember_root(url, &note)?;
        }
        let message = format!(
            "the root is no longer in the settings: its {files} files are kept until it is back, \
             or `harvest gatherer confirm --root {url}` says that it is gone"
        );
        site.problem(url.to_owned(), "held", message);
        return Ok(());
    }
    let mut batch = Batch::default();
    for entry in site.collection.notes(&note::objects_prefix(url)) {
        let (key, value) = entry?;
        if let Some(file) = note::from_bytes::<ObjectNote>(&value) {
            let object = note::url_of(url, &key).unwrap_or_default();
            site.let_go(url, &object, &file.records, &mut batch)?;
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
        for entry in site.collection.notes(&note::robots_prefix(url)) {
            batch.notes.push(Note { key: entry?.0, value: None });
        }
        batch.notes.push(Note { key: note::root_key(url), value: None });
        site.forget_root_state(url);
        lock(&site.problems).cure(url, "held");
    }
    site.commit_deletes(batch)
}

impl Site {
    fn commit_deletes(&self, batch: Batch) -> Result<(), collection::Error> {
        let deleted = batch.changes.len() as u64;
        self.collection.commit(batch, Stamp(clock::now_ms()))?;
        self.count_changes(0, deleted);
        Ok(())
    }
}
