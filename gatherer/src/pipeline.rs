//! The route of an object, all stages on one screen: walk → fetch → summarize → commit.
//!
//! Owned values go down; only back-pressure goes up. The two channels are bounded, and stand where
//! concurrency changes: from the walk's threads to the workers, and from these to the one that
//! commits. Every stage counts what it takes in, passes on and drops.
//!
//! One call is one *order*: a whole root, or some paths of it that a watcher has named. Whatever is
//! known and lies within the order, but was not seen, has vanished.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use essence::annotations::Annotations;
use essence::select::LeftOut;

use crate::commit::{Committer, Prepared};
use crate::known::{Prints, Stat, Top, Walk};
use crate::progress::Phase;
use crate::room::Room;
use crate::site::{Plan, Site, Tract, lock, path_bytes};
use crate::walk::{Go, Ground, Met, Trouble};
use crate::watch::Vigil;
use crate::{gathered, note, prepare, spec};

/// Most files found that wait to be read.
const CANDIDATES_MAX: usize = 1_024;

/// Most files read and summarized that wait to be committed.
const PREPARED_MAX: usize = 64;

/// Most bytes of what they hold; a larger file waits alone.
const PREPARED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most places that could not be looked at in one walk; of more, those above them count instead.
const UNREAD_MAX: usize = 10_000;

/// What to look at.
#[derive(Debug)]
pub(crate) struct Order {
    /// The paths to walk, in order; none lies below another.
    pub(crate) scopes: Vec<PathBuf>,
    /// Whether the scope is the whole root, so that the root is confirmed at the end.
    pub(crate) whole: bool,
    /// Whether an administrator has released what is held.
    pub(crate) confirmed: bool,
    /// The watch under which a pass over the whole root is made.
    pub(crate) vigil: Option<Vigil>,
}

/// A file to read.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) linked: bool,
}

/// What a walk has seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) walk: Walk,
    pub(crate) top: Top,
    /// What could not be looked at: nothing at or below these paths counts as vanished.
    pub(crate) unread: BTreeSet<PathBuf>,
    /// Whether the walk came to its end.
    pub(crate) finished: bool,
}

/// One order under way.
pub(crate) struct Run<'a> {
    pub(crate) site: &'a Site,
    pub(crate) plan: &'a Plan,
    pub(crate) tract: &'a Tract,
    pub(crate) walk: Walk,
    /// The root without links.
    pub(crate) real: PathBuf,
    /// The gatherer's own folder without links.
    pub(crate) own: PathBuf,
    /// Room for what waits to be committed.
    pub(crate) room: Room,
    /// Whether every file is to be published again, whatever its note says.
    pub(crate) regather: bool,
    /// What people say of objects.
    pub(crate) annotations: Arc<Annotations>,
    prints: Prints,
    stop: &'a (dyn Fn() -> bool + Sync),
    failed: AtomicBool,
}

/// Carries out an order. Blocks until everything found is committed, or `stop` says so.
///
/// # Errors
///
/// The collection failed: what was committed stays, and the same order may be given again.
pub(crate) fn run(
    site: &Site,
    plan: &Plan,
    tract: &Tract,
    order: &Order,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    let walk = site.next_walk();
    // After the walk has its number: a later one knows no older annotations.
    let annotations = site.annotating.current();
    let (room, failed) = (Room::new(PREPARED_BYTES_MAX), AtomicBool::new(false));
    let real = without_links(&plan.tree.directory);
    let own = without_links(&plan.data);
    let regather = lock(&tract.note).regather;
    let prints = lock(&tract.known).prints();
    let run = Run {
        site,
        plan,
        tract,
        walk,
        real,
        own,
        room,
        regather,
        annotations,
        prints,
        stop,
        failed,
    };
    let (candidates, to_read) = sync_channel::<Candidate>(CANDIDATES_MAX);
    let (prepared, to_commit) = sync_channel::<Prepared>(PREPARED_MAX);
    let to_read = Arc::new(Mutex::new(to_read));
    let mut committer = Committer::new(&run);
    let seen = thread::scope(|scope| {
        let walker = scope.spawn(|| run.walk(order, candidates));
        for _ in 0..plan.workers {
            let (to_read, prepared) = (to_read.clone(), prepared.clone());
            let run = &run;
            scope.spawn(move || run.fetch_and_summarize(&to_read, prepared));
        }
        // The walk must not wait for workers that are no more.
        drop((to_read, prepared));
        let outcome = committer.commit_all(&to_commit);
        run.failed.store(outcome.is_err(), Relaxed);
        // Those who wait to send learn that nobody commits any more.
        drop(to_commit);
        let seen = walker.join();
        // A fault of the walk is one of the whole order.
        let seen = seen.unwrap_or_else(|fault| std::panic::resume_unwind(fault));
        outcome.map(|()| seen)
    })?;
    if seen.finished { committer.finish(order, &seen) } else { Ok(()) }
}

impl Run<'_> {
    /// Whether to give up.
    pub(crate) fn is_stopped(&self) -> bool {
        self.failed.load(Relaxed) || (self.stop)()
    }

    /// Stage 1: finds files, and passes on those that may have changed.
    fn walk(&self, order: &Order, candidates: SyncSender<Candidate>) -> Seen {
        let unread = Mutex::new(BTreeSet::new());
        let (files, unchanged) = (AtomicU64::new(0), AtomicU64::new(0));
        let sender = Mutex::new(candidates);
        let stage = &self.site.metrics.walk;
        let ground = Ground {
            tree: &self.plan.tree,
            filter: &self.plan.filter,
            data: &self.plan.data,
            threads: self.plan.workers,
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
        gathered::leaves_out(&plan.essence.select, (top, &plan.filter), path, size)
    }

    /// Returns a fingerprint of all that a file's records depend on beside its content.
    fn basis(&self, path: &Path) -> u64 {
        let settings = self.plan.settings;
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

    /// Stages 2 and 3: read a file and, if its content is new, type, unnest and summarize it.
    fn fetch_and_summarize(
        &self,
        candidates: &Mutex<Receiver<Candidate>>,
        prepared: SyncSender<Prepared>,
    ) {
        let (fetch, counts) = (&self.site.metrics.fetch, &self.site.counts);
        loop {
            // The lock is held while waiting: the others wait for the lock instead.
            let next = lock(candidates).recv();
            let Ok(candidate) = next else { return };
            fetch.enter(1);
            let ready = if self.is_stopped() {
                fetch.drop_one("stopped");
                None
            } else {
                prepare::prepare(self, candidate)
            };
            let send = |ready: Prepared| {
                self.room.enter(ready.bytes(), &|| self.is_stopped());
                prepared.send(ready).is_ok()
            };
            match ready.map(send) {
                Some(true) => {}
                // Nobody commits any more: what was summarized is dropped there.
                Some(false) => {
                    self.site.metrics.commit.enter(1);
                    self.site.metrics.commit.drop_one("stopped");
                }
                None => {
                    counts.done.fetch_add(1, Relaxed);
                }
            }
        }
    }
}

/// Returns the path without links; as it is if nothing is there.
fn without_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_gone| path.to_path_buf())
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
    use crate::{Config, Server};

    /// Writes a tar file with these members.
    fn archive(path: &Path, members: &[(&str, &str)]) {
        let mut builder = tar::Builder::new(std::fs::File::create(path).unwrap());
        for (name, content) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            builder.append_data(&mut header, name, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap();
    }

    fn commit(run: &Run<'_>, prepared: Prepared) {
        let (sender, receiver) = sync_channel(1);
        sender.send(prepared).unwrap();
        drop(sender);
        Committer::new(run).commit_all(&receiver).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_an_earlier_walk_commits_meanwhile_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        let config = Config::for_paths(std::slice::from_ref(&root), &folder.path().join("data"));
        let shared = Server::bind(config).await.unwrap().handle().shared;
        let (site, plans, path) = (&shared.site, shared.plans(), root.join("a.tar"));
        let tract = site.tract(&plans[0].url).unwrap();
        let walk = || Run {
            site,
            plan: &plans[0],
            tract: &tract,
            walk: site.next_walk(),
            real: root.clone(),
            own: without_links(&plans[0].data),
            room: Room::new(PREPARED_BYTES_MAX),
            regather: false,
            annotations: Arc::default(),
            prints: lock(&tract.known).prints(),
            stop: &|| false,
            failed: AtomicBool::new(false),
        };
        let read = |run: &Run<'_>| {
            let candidate = Candidate { path: path.clone(), linked: false };
            prepare::prepare(run, candidate).unwrap()
        };
        let [first, pass, look] = [walk(), walk(), walk()];
        archive(&path, &[("a", "one")]);
        commit(&first, read(&first));
        assert_eq!(site.collection.len(), 2);
        archive(&path, &[("a", "two"), ("b", "two")]);
        let older = read(&pass);
        archive(&path, &[("a", "one"), ("c", "three")]);
        let newer = read(&look);
        commit(&pass, older);
        assert_eq!(site.collection.len(), 3);
        commit(&look, newer);
        let live = |member: &str| {
            let url = format!("file://{}#{member}", path.display());
            let stored = site.collection.get(&collection::Oid::new(&site.id, &url)).unwrap();
            stored.and_then(|it| Some(it.record.text("Partial-Text")?.into_owned()))
        };
        assert_eq!(["a", "b", "c"].map(live), [Some("one".into()), None, Some("three".into())]);
        assert_eq!(site.collection.len(), 3);
    }

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
