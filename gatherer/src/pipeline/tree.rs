//! A tree's own part of the route: finding its files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use essence::select::LeftOut;

use super::run::{Candidate, Order, Run, Seen};
use crate::known::{Stat, Top};
use crate::lock::lock;
use crate::progress::Phase;
use crate::site::path_bytes;
use crate::tree::gathered;
use crate::tree::walk::{Go, Ground, Met, Trouble};
use crate::{note, spec};

/// Most places that could not be looked at in one walk; of more, those above them count instead.
const UNREAD_MAX: usize = 10_000;

impl Run<'_> {
    /// Stage 1: finds files, and passes on those that may have changed.
    pub(super) fn walk(&self, order: &Order, candidates: SyncSender<Candidate>) -> Seen {
        let unread = Mutex::new(BTreeSet::new());
        let (files, unchanged) = (AtomicU64::new(0), AtomicU64::new(0));
        let sender = Mutex::new(candidates);
        let stage = &self.site.metrics.walk;
        let ground = Ground {
            tree: &self.plan.tree,
            filter: &self.plan.filter,
            data: &self.plan.data,
            threads: self.plan.making.workers,
        };
        let meet = |met: Met<'_>| {
            stage.enter(1);
            match met {
                Met::LeftOut(reason) => stage.drop_one(reason),
                Met::Trouble(trouble) => self.handle_trouble(trouble, &unread),
                Met::File { path, stat, linked } => {
                    if let Some(left_out) = self.leaves_out(path, stat.size) {
                        stage.drop_one(left_out.name());
                        self.site.metrics.left_out.add(left_out.name(), 1);
                        return if self.is_stopped() { Go::Stop } else { Go::On };
                    }
                    files.fetch_add(1, Relaxed);
                    self.site.counts.seen.fetch_add(1, Relaxed);
                    self.consider(path, stat, linked, &sender, &unchanged);
                }
            }
            if self.is_stopped() { Go::Stop } else { Go::On }
        };
        ground.walk(&order.scopes, &meet);
        stage.drop_many("unchanged", unchanged.into_inner());
        let unread = unread.into_inner().unwrap_or_else(PoisonError::into_inner);
        let device = std::fs::metadata(&self.plan.tree.directory);
        let top = device.map_or(Top::Missing, |metadata| Top::Present {
            device: std::os::unix::fs::MetadataExt::dev(&metadata),
            is_empty: order.whole && files.load(Relaxed) == 0,
        });
        let finished = !self.is_stopped();
        if order.whole {
            self.site.enter(Phase::Gathering);
        }
        Seen { walk: self.walk, top, unread, finished }
    }

    /// Says why a file is none to summarize, as far as that can be told before it is read.
    fn leaves_out(&self, path: &Path, size: u64) -> Option<LeftOut> {
        let (plan, top) = (self.plan, &self.plan.tree.directory);
        gathered::leaves_out(&plan.making.essence.select, (top, &plan.filter), path, size)
    }

    /// Returns a fingerprint of all that a file's records depend on beside its content.
    fn basis(&self, path: &Path) -> u64 {
        let settings = self.plan.making.settings;
        if self.annotations.is_empty() {
            return settings;
        }
        let url = spec::public_url(&self.plan.maps, path);
        note::basis_print(settings, self.annotations.print_of_file(&url))
    }

    /// Decides by its metadata whether a file is to be read.
    fn consider(
        &self,
        path: &Path,
        stat: Stat,
        linked: bool,
        sender: &Mutex<SyncSender<Candidate>>,
        unchanged: &AtomicU64,
    ) {
        let (counts, stage) = (&self.site.counts, &self.site.metrics.walk);
        let walk = self.walk;
        let found = self.prints.found(path_bytes(path), stat, self.basis(path));
        let read = lock(&self.tract.known).handle_file(found, walk) || self.regather;
        if !read {
            counts.unchanged.fetch_add(1, Relaxed);
            counts.done.fetch_add(1, Relaxed);
            // Most files are: the stage's own count would have the walk's threads wait for each other.
            unchanged.fetch_add(1, Relaxed);
            return;
        }
        let sender = lock(sender).clone();
        match sender.send(Candidate { path: path.to_path_buf(), linked }) {
            Ok(()) => stage.leave(1),
            Err(_stopped) => stage.drop_one("stopped"),
        }
    }

    fn handle_trouble(&self, trouble: Trouble, unread: &Mutex<BTreeSet<PathBuf>>) {
        self.site.metrics.walk.drop_one(trouble.kind);
        let path = trouble.path.unwrap_or_else(|| self.plan.tree.directory.clone());
        self.site.problem_met(self.walk, path.clone(), trouble.kind, trouble.message);
        if trouble.unseen {
            spare(&mut lock(unread), path, &self.plan.tree.directory);
        }
    }
}

/// Notes that `path` could not be looked at, unless what lies above it counts instead already.
fn spare(unread: &mut BTreeSet<PathBuf>, path: PathBuf, top: &Path) {
    if path.ancestors().any(|above| unread.contains(above)) {
        return;
    }
    unread.insert(path);
    if UNREAD_MAX < unread.len() {
        // Down to half, so that it is long until this has to be done again.
        while UNREAD_MAX / 2 < unread.len() {
            coarsen(unread, top);
        }
    }
}

/// Puts what lies above them in the place of the deepest of `unread`, none of which is above `top`:
/// that spares more than could not be looked at, and never less.
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
    fn places_below_one_that_is_spared_already_are_not_noted() {
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
    fn of_too_many_places_the_deepest_are_spared_with_those_around_them() {
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
