//! The stages that depend on trees: finding and reading files. The other stages know files only by
//! URL.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use essence::select::LeftOut;
use formats::object::Object;
use net::clock;

use super::run::{Candidate, Fetched, Order, Run, TreeAccess, WalkResult};
use crate::known::Top;
use crate::lock::lock;
use crate::note;
use crate::progress::Phase;
use crate::site::plan::TreePlan;
use crate::spec::{self, Map, Symlinks};
use crate::tree::file::{self, Content, Refused};
use crate::tree::selection;
use crate::tree::walk::{Go, Trouble, WalkItem, Walker};
use crate::validator::{Stat, Validator};

/// Maximum number of unreadable paths in one walk; if there are more, the directories above them
/// are noted.
const UNREAD_MAX: usize = 10_000;

impl Run<'_> {
    /// Stage 1: finds files, and passes on the files that may have changed.
    pub(super) fn walk_tree(
        &self,
        tree: &TreeAccess<'_>,
        order: &Order,
        candidates: SyncSender<Candidate>,
    ) -> WalkResult {
        let plan = tree.plan;
        let unread = Mutex::new(BTreeSet::new());
        let (files, unchanged) = (AtomicU64::new(0), AtomicU64::new(0));
        let sender = Mutex::new(candidates);
        let stage = &self.site.metrics.walk;
        let walker = Walker {
            tree: &plan.tree,
            filter: &plan.filter,
            data: &plan.data,
            threads: self.plan.summarizing.workers,
        };
        let handle = |item: WalkItem<'_>| {
            stage.enter(1);
            match item {
                WalkItem::LeftOut(reason) => stage.drop_one(reason),
                WalkItem::Trouble(trouble) => self.handle_trouble(plan, trouble, &unread),
                WalkItem::File { path, stat } => {
                    if let Some(left_out) = tree.leaves_out(path, stat.size) {
                        stage.drop_one(left_out.name());
                        self.site.metrics.left_out.add(left_out.name(), 1);
                        return if self.is_stopped() { Go::Stop } else { Go::On };
                    }
                    files.fetch_add(1, Relaxed);
                    self.site.counts.seen.fetch_add(1, Relaxed);
                    self.consider(plan, (path, stat), &sender, &unchanged);
                }
            }
            if self.is_stopped() { Go::Stop } else { Go::On }
        };
        walker.walk(&order.scopes, &handle);
        stage.drop_many("unchanged", unchanged.into_inner());
        let unread = unread.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A path may end with a slash.
        let url = |path: &PathBuf| spec::file_url(&path.components().collect::<PathBuf>());
        let (scopes, unread) =
            (order.scopes.iter().map(url).collect(), unread.iter().map(url).collect());
        let device = std::fs::metadata(&plan.tree.directory);
        let top = device.map_or(Top::Missing, |metadata| Top::Present {
            device: std::os::unix::fs::MetadataExt::dev(&metadata),
            is_empty: order.whole && files.load(Relaxed) == 0,
        });
        let finished = !self.is_stopped();
        if order.whole {
            self.site.enter(Phase::Gathering);
        }
        let (walk, gone, empty) = (self.walk, None, Vec::new());
        let (frontier, answered_from, alike) = (None, None, None);
        WalkResult {
            walk,
            top,
            scopes,
            unread,
            frontier,
            gone,
            alike,
            empty,
            answered_from,
            finished,
        }
    }

    /// Returns the fingerprint of everything that a file's records depend on besides the file's
    /// content.
    fn basis(&self, maps: &[Map], path: &Path) -> u64 {
        let settings = self.plan.summarizing.settings;
        if self.annotations.is_empty() {
            return settings;
        }
        let url = spec::public_url(maps, path);
        note::basis_fingerprint(settings, self.annotations.fingerprint_of_file(&url))
    }

    /// Decides, by a file's metadata, whether to read it.
    fn consider(
        &self,
        plan: &TreePlan,
        (path, stat): (&Path, Stat),
        sender: &Mutex<SyncSender<Candidate>>,
        unchanged: &AtomicU64,
    ) {
        let (counts, stage) = (&self.site.counts, &self.site.metrics.walk);
        let candidate =
            Candidate { url: spec::file_url(path), validator: Validator::File(stat), got: None };
        let object =
            self.hasher.hash(&candidate.url, &candidate.validator, self.basis(&plan.maps, path));
        let read = lock(&self.root.known).handle_object(object, self.walk) || self.regather;
        if !read {
            counts.unchanged.fetch_add(1, Relaxed);
            counts.done.fetch_add(1, Relaxed);
            // Most files are unchanged: if they were counted in the stage itself, threads would
            // wait for each other.
            unchanged.fetch_add(1, Relaxed);
            return;
        }
        let sender = lock(sender).clone();
        match sender.send(candidate) {
            Ok(()) => stage.leave(1),
            Err(_stopped) => stage.drop_one("stopped"),
        }
    }

    fn handle_trouble(&self, plan: &TreePlan, trouble: Trouble, unread: &Mutex<BTreeSet<PathBuf>>) {
        self.site.metrics.walk.drop_one(trouble.kind);
        let path = trouble.path.unwrap_or_else(|| plan.tree.directory.clone());
        self.site.problem_from_walk(
            self.walk,
            spec::file_url(&path),
            trouble.kind,
            trouble.message,
        );
        if trouble.unseen {
            spare(&mut lock(unread), path, &plan.tree.directory);
        }
    }

    /// Stage 2: reads a file.
    pub(super) fn read_file(
        &self,
        tree: &TreeAccess<'_>,
        candidate: &Candidate,
    ) -> Option<Fetched> {
        let (site, path) = (self.site, spec::file_path(&candidate.url));
        let content = match self.read(tree, &path) {
            Ok(content) => content,
            Err(refused) => {
                site.metrics.fetch.drop_one(self.report_refused(refused, &candidate.url));
                return None;
            }
        };
        let count = content.bytes.len() as u64;
        site.metrics.bytes.fetch_add(count, Relaxed);
        site.counts.bytes.fetch_add(count, Relaxed);
        let name = path.file_name().unwrap_or_default();
        let object = Object {
            url: spec::public_url(&tree.plan.maps, &path),
            name: name.to_string_lossy().into_owned(),
            modified: u64::try_from(content.stat.modified).ok(),
            size: content.stat.size.max(count),
            truncated: content.truncated,
            rest: content.rest(),
            md5: (!content.truncated).then_some(content.md5),
            bytes: content.bytes.clone(),
        };
        let validator = Validator::File(content.stat);
        let Content { md5, sure, file, .. } = content;
        Some(Fetched { object, md5, validator, sure, file })
    }

    fn read(&self, tree: &TreeAccess<'_>, path: &Path) -> Result<Content, Refused> {
        let (now_ms, symlinks) = (clock::now_ms(), tree.plan.tree.symlinks);
        let bounds = (&*tree.real, &*tree.own);
        let (most, follow) = (self.plan.summarizing.read_bytes_max, symlinks == Symlinks::Follow);
        match file::read(path, bounds, most, follow, now_ms, &|| self.is_stopped()) {
            Err(Refused::NotAFile) if symlinks == Symlinks::Record => {
                file::read_link(path, bounds, now_ms)
            }
            read => read,
        }
    }

    /// Returns the kind of reason why the file at `url` was not read. If the reason is a problem,
    /// reports it.
    fn report_refused(&self, refused: Refused, url: &str) -> &'static str {
        let (kind, message) = match refused {
            Refused::NotAFile => return "special",
            Refused::Cancelled => return "stopped",
            Refused::Gone => ("vanished", "the file vanished before it was read".to_owned()),
            Refused::Outside => (
                "link-escape",
                "a link leads out of the root, or to the gatherer's own data".to_owned(),
            ),
            Refused::Unreadable(error) if error.kind() == ErrorKind::PermissionDenied => {
                ("unreadable", "permission denied: grant it, or exclude this file".to_owned())
            }
            Refused::Unreadable(error) => ("unreadable", error.to_string()),
        };
        self.site.problem_from_walk(self.walk, url.to_owned(), kind, message);
        kind
    }
}

impl TreeAccess<'_> {
    /// Returns why a file is not summarized, as far as this is known before it is read.
    fn leaves_out(&self, path: &Path, size: u64) -> Option<LeftOut> {
        let (plan, top) = (self.plan, &self.plan.tree.directory);
        let select = &plan.root.summarizing.essence.select;
        selection::leaves_out(select, (top, &plan.filter), path, size)
    }

    /// Returns whether new files make up for vanished ones when losses are counted. They do after
    /// events of a watcher, which sees both ends of a move, and in a pass that makes up for lost
    /// events. Any other pass may have found another tree in the root's place. Blocks.
    pub(super) fn counts_on_balance(&self, order: &Order) -> bool {
        let directory = &self.plan.tree.directory;
        !order.whole || order.session.as_ref().is_some_and(|it| it.has_lost_events(directory))
    }
}

/// Notes that `path` could not be read, unless a directory above it is noted already.
fn spare(unread: &mut BTreeSet<PathBuf>, path: PathBuf, top: &Path) {
    if path.ancestors().any(|above| unread.contains(above)) {
        return;
    }
    unread.insert(path);
    if UNREAD_MAX < unread.len() {
        // Reduces the number to half, so that this is not needed again soon.
        while UNREAD_MAX / 2 < unread.len() {
            coarsen(unread, top);
        }
    }
}

/// Replaces the deepest paths in `unread` with their parent directories, but never goes above
/// `top`. This spares all unreadable paths, and possibly others.
fn coarsen(unread: &mut BTreeSet<PathBuf>, top: &Path) {
    let depth = |path: &PathBuf| path.components().count();
    let deepest = unread.iter().map(depth).max().unwrap_or_default();
    let coarser = |path: PathBuf| match path.parent() {
        Some(above) if depth(&path) == deepest && path != top => above.to_path_buf(),
        Some(_) | None => path,
    };
    *unread = std::mem::take(unread).into_iter().map(coarser).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_spared_one_are_not_noted() {
        let (mut unread, top) = (BTreeSet::new(), Path::new("/r"));
        for number in 0..=UNREAD_MAX {
            spare(&mut unread, format!("/r/a/{number}").into(), top);
        }
        let all = BTreeSet::from([PathBuf::from("/r/a")]);
        assert_eq!(unread, all);
        for number in 0..=UNREAD_MAX {
            spare(&mut unread, format!("/r/a/{number}/below").into(), top);
            assert_eq!(unread, all);
        }
        spare(&mut unread, "/r/b".into(), top);
        assert_eq!(unread.len(), 2);
    }

    #[test]
    fn too_many_paths_are_merged_from_the_deepest_up() {
        let mut unread: BTreeSet<PathBuf> =
            ["/r/a", "/r/b/c/d", "/r/b/c/e", "/r/b/f/g"].map(PathBuf::from).into();
        let mut check = |expected: &[&str]| {
            coarsen(&mut unread, Path::new("/r"));
            assert_eq!(unread, expected.iter().map(PathBuf::from).collect());
        };
        check(&["/r/a", "/r/b/c", "/r/b/f"]);
        check(&["/r/a", "/r/b"]);
        check(&["/r"]);
        check(&["/r"]);
    }
}
