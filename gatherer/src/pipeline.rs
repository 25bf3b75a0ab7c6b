//! The route of an object, all stages on one screen: walk → fetch → summarize → commit.
//!
//! Owned values go down; only back-pressure goes up. The two channels are bounded, and are placed
//! where concurrency changes: between the walk's threads and the workers, and between the workers
//! and the one thread that commits. Every stage counts the objects that it takes in, passes on and
//! drops.
//!
//! One call carries out one *order*: a whole root, or some of its paths from a watcher. A known
//! object that is within the order, but was not seen, has vanished.

mod commit;
mod prepare;
mod refused;
mod room;
mod run;
mod tree;
mod web;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use self::commit::Committer;
use self::room::Room;
pub(crate) use self::run::{Access, Order};
use self::run::{Candidate, Prepared, Run};
pub(crate) use self::web::{Spool, WebAccess};
use crate::lock::lock;
use crate::site::plan::RootPlan;
use crate::site::{RootState, Site};

/// Maximum number of files that wait to be read.
const CANDIDATES_MAX: usize = 1_024;

/// Maximum number of summarized files that wait to be committed.
const PREPARED_MAX: usize = 64;

/// Maximum memory of summarized files that wait, in bytes; a larger file waits alone.
const PREPARED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum memory of fetched objects that wait to be summarized, in bytes; a larger one waits alone.
const GOT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Carries out an order. Blocks until all its files are committed, or `stop` returns true.
///
/// # Errors
///
/// The collection failed: earlier commits stay, and the same order may be repeated.
pub(crate) fn run(
    site: &Site,
    (plan, access): (&RootPlan, Access<'_>),
    root: &RootState,
    order: &Order,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    let walk = site.next_walk();
    // Taken after the walk has its number, so that no later walk can have older annotations.
    let annotations = site.annotating.current();
    let regather = lock(&root.note).regather;
    let hasher = {
        let mut known = lock(&root.known);
        known.begin(walk);
        known.hasher()
    };
    let run = Run {
        site,
        plan,
        root,
        walk,
        access,
        got_room: Room::new(GOT_BYTES_MAX),
        room: Room::new(PREPARED_BYTES_MAX),
        uncommitted: Room::new(usize::MAX),
        is_awaited: AtomicBool::new(false),
        regather,
        annotations,
        hasher,
        stop,
        failed: AtomicBool::new(false),
    };
    let (candidates, to_read) = sync_channel::<Candidate>(CANDIDATES_MAX);
    let (prepared, to_commit) = sync_channel::<Prepared>(PREPARED_MAX);
    let to_read = Arc::new(Mutex::new(to_read));
    let mut committer = Committer::new(&run);
    let walked = thread::scope(|scope| {
        let walker = scope.spawn(|| run.walk(order, candidates));
        for _ in 0..plan.summarizing.workers {
            let (to_read, prepared) = (to_read.clone(), prepared.clone());
            let run = &run;
            scope.spawn(move || run.fetch_and_summarize(&to_read, prepared));
        }
        // Otherwise the walk would wait for workers that have ended.
        drop((to_read, prepared));
        let outcome = committer.commit_all(&to_commit);
        run.failed.store(outcome.is_err(), Relaxed);
        // Threads that wait to send get an error, since no thread commits any more.
        drop(to_commit);
        let walked = walker.join();
        // A panic of the walk is a panic of the whole order.
        let walked = walked.unwrap_or_else(|fault| std::panic::resume_unwind(fault));
        outcome.map(|()| walked)
    })?;
    if walked.finished { committer.finish(order, &walked) } else { Ok(()) }
}

impl Run<'_> {
    /// Stages 2 and 3: read a file and, if its content is new, type, unnest and summarize it.
    fn fetch_and_summarize(
        &self,
        candidates: &Mutex<Receiver<Candidate>>,
        prepared: SyncSender<Prepared>,
    ) {
        let (fetch, counts) = (&self.site.metrics.fetch, &self.site.counts);
        loop {
            // The lock is held while waiting: the other workers wait for the lock instead.
            let next = lock(candidates).recv();
            let Ok(candidate) = next else { return };
            fetch.enter(1);
            self.uncommitted.enter(1, &|| self.is_stopped());
            let ready = if self.is_stopped() {
                fetch.drop_one("stopped");
                None
            } else {
                self.prepare(&candidate)
            };
            let send = |ready: Prepared| {
                self.room.enter(ready.bytes(), &|| self.is_stopped());
                prepared.send(ready).is_ok()
            };
            match ready.map(send) {
                Some(true) => {}
                // No thread commits any more: count the file as dropped by the commit.
                Some(false) => {
                    self.site.metrics.commit.enter(1);
                    self.site.metrics.commit.drop_one("stopped");
                }
                None => {
                    self.uncommitted.leave(1);
                    counts.done.fetch_add(1, Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::site::plan::Plan;
    use crate::validator::{Stat, Validator};
    use crate::{Config, Server, spec};

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
    async fn a_file_that_an_earlier_walk_commits_meanwhile_leaves_no_old_members() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        let config = Config::for_paths(std::slice::from_ref(&root), &folder.path().join("data"));
        let shared = Server::bind(config).await.unwrap().handle().shared;
        let (site, plans, path) = (&shared.site, shared.plans(), root.join("a.tar"));
        let Plan::Tree(plan) = &plans[0] else { panic!("{plans:?}") };
        let state = site.root_state(&plan.root.url).unwrap();
        let walk = || Run {
            site,
            plan: &plan.root,
            root: &state,
            walk: site.next_walk(),
            access: Access::tree(plan),
            got_room: Room::new(GOT_BYTES_MAX),
            uncommitted: Room::new(usize::MAX),
            is_awaited: AtomicBool::new(false),
            room: Room::new(PREPARED_BYTES_MAX),
            regather: false,
            annotations: Arc::default(),
            hasher: lock(&state.known).hasher(),
            stop: &|| false,
            failed: AtomicBool::new(false),
        };
        let read = |run: &Run<'_>| {
            let validator = Validator::File(Stat::default());
            let candidate = Candidate { url: spec::file_url(&path), validator, got: None };
            prepare::prepare(run, &candidate).unwrap()
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
}
