//! What a gatherer does when: passes over all roots, looks at what the watcher names, requests.
//!
//! Two things may be under way at once, one of each kind: a pass, and a look at touched paths, so that
//! a file saved during a long pass is published within a second or two all the same.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use collection::{Batch, Change, Compacted, Note, Oid, Stamp};
use net::clock;
use net::shutdown::Shutdown;
use tokio::task::{JoinError, JoinSet};

use crate::config::{POLL, Watch};
use crate::debounce::Touched;
use crate::error::Error;
use crate::frontier::LOST_FILES_MAX;
use crate::note::{self, FileNote};
use crate::pipeline::{self, Order};
use crate::progress::{Hold, Phase};
use crate::server::Shared;
use crate::site::{Plan, Site, lock};
use crate::watch::{Inbox, Watcher};

/// How long after a failed commit the same is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// How often it is looked whether the roots are still those that are watched.
const ROOT_CHECK: Duration = Duration::from_secs(10);

/// How often those who watch the progress hear of it.
const PUBLISH: Duration = Duration::from_millis(100);

/// How long walks and files under way are waited for at the end.
const STOP_WAIT: Duration = Duration::from_millis(900);

/// Longer than any pass takes: when the next one is due is set at its end, unless it is asked for.
const UNASKED: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Most deletions of one commit when a removed root is forgotten.
const FORGET_MAX: usize = 4_096;

/// What has been asked for and is still to be done.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// A pass over all roots.
    pub(crate) gather: bool,
    /// Roots whose held deletions are released.
    pub(crate) confirm: BTreeSet<String>,
    /// New settings are in force.
    pub(crate) reload: bool,
}

/// What has come to its end.
enum Done {
    Pass(Result<(), collection::Error>),
    Look(Result<(), collection::Error>),
    /// A new watcher, or why there is none; with the number of the settings it is for.
    Placed(Result<Watcher, notify::Error>, u64),
    /// The watcher after a check, and whether a root has gone, come back or been replaced.
    Checked(Result<Watcher, notify::Error>, bool, u64),
}

/// The loop's state.
struct Rounds {
    shared: Arc<Shared>,
    shutdown: Shutdown,
    inbox: Arc<Inbox>,
    /// `None` while it is placed or checked, and when there is none.
    watcher: Option<Watcher>,
    /// Counts the settings: a watcher for others than the present ones is dropped.
    settings: u64,
    tasks: JoinSet<Done>,
    /// Compaction, one at a time.
    tidying: JoinSet<Result<Option<Compacted>, collection::Error>>,
    passing: bool,
    looking: bool,
    /// Watches are being placed: no pass begins before, or it would miss what happens meanwhile.
    placing: bool,
    checking: bool,
    /// When the next pass is due; while one is under way: when one has to follow it.
    pass_due: Instant,
    check_due: Instant,
    /// Something could not be committed, and is to be tried again.
    missed: bool,
}

/// Gathers until the shutdown starts.
///
/// # Errors
///
/// The collection has failed and must be opened again: stop, and start anew.
pub(crate) async fn run(shared: Arc<Shared>, shutdown: Shutdown) -> Result<(), Error> {
    let mut rounds = Rounds::new(shared, shutdown.clone(), clock::monotonic());
    rounds.start_watching();
    let outcome = rounds.turn().await;
    // What is under way sees the shutdown and stops by itself. A file that takes its time over that
    // must not hold up the stop: being cut off there is no worse than a kill.
    shutdown.start();
    rounds.shared.site.collection.begin_close();
    let stopped = async { while rounds.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(STOP_WAIT, stopped).await.is_err() {
        tracing::warn!("a file is still being summarized; not waiting for it");
    }
    rounds.shared.site.enter(Phase::Stopped);
    outcome
}

impl Rounds {
    fn new(shared: Arc<Shared>, shutdown: Shutdown, now: Instant) -> Self {
        Self {
            shared,
            shutdown,
            inbox: Arc::default(),
            watcher: None,
            settings: 0,
            tasks: JoinSet::new(),
            tidying: JoinSet::new(),
            passing: false,
            looking: false,
            placing: false,
            checking: false,
            pass_due: now,
            check_due: now + ROOT_CHECK,
            missed: false,
        }
    }

    async fn turn(&mut self) -> Result<(), Error> {
        loop {
            self.start_what_is_due();
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = self.shutdown.started() => return Ok(()),
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    self.handle_done(done)?;
                }
                Some(tidied) = self.tidying.join_next(), if !self.tidying.is_empty() => {
                    report_tidied(tidied);
                }
                () = self.shared.asked.notified() => {}
                () = self.inbox.heard() => {}
                () = tokio::time::sleep_until(wake.into()) => self.shared.site.publish(),
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let now = clock::monotonic();
        let mut wake = self.check_due.max(now);
        if !self.passing && !self.placing {
            wake = wake.min(self.pass_due);
        }
        if let Some(touched) = self.inbox.poll_timeout().filter(|_| !self.looking) {
            wake = wake.min(touched);
        }
        if self.passing || self.looking {
            wake = wake.min(now + PUBLISH);
        }
        wake
    }

    fn start_what_is_due(&mut self) {
        let now = clock::monotonic();
        let reload = std::mem::take(&mut lock(&self.shared.requests).reload);
        if reload {
            self.pass_due = now;
            self.start_watching();
        }
        if !self.passing && !self.placing {
            let mut requests = lock(&self.shared.requests);
            let asked = std::mem::take(&mut requests.gather) || !requests.confirm.is_empty();
            if asked || self.pass_due <= now {
                let confirmed = std::mem::take(&mut requests.confirm);
                drop(requests);
                self.start_pass(confirmed);
            }
        }
        if !self.looking
            && let Some(touched) = self.inbox.poll_touched(now)
        {
            match touched {
                Touched::Everything => self.pass_due = now,
                Touched::Paths(paths) => self.start_look(paths),
            }
        }
        if self.check_due <= now && !self.checking {
            self.check_due = now + ROOT_CHECK;
            self.start_check();
        }
    }

    /// Starts a watcher for the roots as they are now.
    fn start_watching(&mut self) {
        self.watcher = None;
        self.settings += 1;
        let said = match self.shared.config().watch {
            Watch::Off => "off".to_owned(),
            Watch::Poll(interval) => format!("poll {}", interval.as_secs()),
            Watch::Notify => {
                self.placing = true;
                let (site, inbox) = (self.shared.site.clone(), self.inbox.clone());
                let (plans, settings) = (self.shared.plans(), self.settings);
                self.tasks.spawn_blocking(move || {
                    let placed = Watcher::start(site, &plans, inbox)
                        .and_then(|mut watcher| watcher.place(&plans).map(|()| watcher));
                    Done::Placed(placed, settings)
                });
                "starting".to_owned()
            }
        };
        *lock(&self.shared.watching) = said;
    }

    /// Takes a watcher that was placed or checked.
    fn handle_watcher(&mut self, placed: Result<Watcher, notify::Error>, settings: u64) {
        if settings != self.settings {
            return;
        }
        let said = match placed {
            Ok(watcher) => {
                self.watcher = Some(watcher);
                "notify".to_owned()
            }
            Err(error) => self.fall_back(&error.to_string()),
        };
        *lock(&self.shared.watching) = said;
    }

    fn fall_back(&self, error: &str) -> String {
        let message = format!(
            "changes cannot be watched ({error}); every root is walked every {} s instead; raise \
             fs.inotify.max_user_watches, or set watch = \"poll\"",
            POLL.as_secs()
        );
        tracing::warn!("{message}");
        self.shared.site.problem("-".to_owned(), "unwatched", message);
        format!("poll {}", POLL.as_secs())
    }

    /// Returns how long after a pass the next one is due.
    fn interval(&self) -> Duration {
        let config = self.shared.config();
        match config.watch {
            Watch::Poll(interval) => interval.min(config.rewalk),
            Watch::Notify if self.watcher.is_none() && !self.checking => POLL.min(config.rewalk),
            Watch::Notify | Watch::Off => config.rewalk,
        }
    }

    fn start_pass(&mut self, confirmed: BTreeSet<String>) {
        self.passing = true;
        // Whatever asks for a pass from here on is not served by this one.
        self.pass_due = clock::monotonic() + self.interval() + UNASKED;
        self.missed = false;
        let (site, plans) = (self.shared.site.clone(), self.shared.plans());
        let shutdown = self.shutdown.clone();
        site.counts.clear();
        site.enter(Phase::Walking);
        self.tasks.spawn_blocking(move || {
            Done::Pass(pass(&site, &plans, &confirmed, &|| shutdown.is_started()))
        });
    }

    fn start_look(&mut self, paths: Vec<PathBuf>) {
        self.looking = true;
        let (site, plans) = (self.shared.site.clone(), self.shared.plans());
        let shutdown = self.shutdown.clone();
        self.tasks.spawn_blocking(move || {
            Done::Look(look(&site, &plans, &paths, &|| shutdown.is_started()))
        });
    }

    fn start_check(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        self.checking = true;
        let (plans, settings) = (self.shared.plans(), self.settings);
        self.tasks.spawn_blocking(move || {
            if !watcher.is_misplaced(&plans) {
                return Done::Checked(Ok(watcher), false, settings);
            }
            let placed = watcher.place(&plans).map(|()| watcher);
            Done::Checked(placed, true, settings)
        });
    }

    /// Rewrites the collection without what is superseded, if that is worth it.
    fn start_tidying(&mut self) {
        if self.tidying.is_empty() {
            let collection = self.shared.site.collection.clone();
            self.tidying.spawn_blocking(move || collection.compact_if_due(Stamp(clock::now_ms())));
        }
    }

    fn handle_done(&mut self, done: Result<Done, JoinError>) -> Result<(), Error> {
        let now = clock::monotonic();
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                // A fault of ours: the run goes on, and looks at everything again.
                tracing::error!(%error, "a walk failed");
                self.shared.site.problem("-".to_owned(), "fault", error.to_string());
                self.passing = false;
                self.looking = false;
                self.placing = false;
                self.checking = false;
                self.pass_due = now + RETRY;
                return Ok(());
            }
        };
        match done {
            Done::Pass(outcome) => {
                self.passing = false;
                self.pass_due = self.pass_due.min(now + self.interval());
                self.handle_outcome(outcome)?;
                if self.missed {
                    self.pass_due = self.pass_due.min(now + RETRY);
                }
                self.start_tidying();
            }
            Done::Look(outcome) => {
                self.looking = false;
                self.handle_outcome(outcome)?;
                if self.missed {
                    self.pass_due = self.pass_due.min(now + RETRY);
                }
            }
            Done::Placed(placed, settings) => {
                self.placing &= settings != self.settings;
                self.handle_watcher(placed, settings);
            }
            Done::Checked(checked, misplaced, settings) => {
                self.checking = false;
                self.handle_watcher(checked, settings);
                if misplaced {
                    self.pass_due = now;
                }
            }
        }
        if !self.passing && !self.looking {
            self.shared.site.handle_quiet();
        }
        let begun = self.shared.site.progress.borrow().phase != Phase::Starting;
        if begun && !self.passing {
            self.shared.site.enter(Phase::Idle);
        } else {
            self.shared.site.publish();
        }
        Ok(())
    }

    /// A full disk is waited for; after any other failure the collection must be opened again.
    fn handle_outcome(&mut self, outcome: Result<(), collection::Error>) -> Result<(), Error> {
        match outcome {
            Ok(()) => Ok(()),
            Err(error @ collection::Error::Full { .. }) => {
                tracing::error!(%error, "cannot commit; trying again");
                self.shared.site.problem("-".to_owned(), "disk-full", error.to_string());
                self.missed = true;
                Ok(())
            }
            Err(error) => Err(Error::Collection {
                path: self.shared.config().data.join("collection"),
                message: error.to_string(),
            }),
        }
    }
}

fn report_tidied(tidied: Result<Result<Option<Compacted>, collection::Error>, JoinError>) {
    match tidied {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(done))) => {
            let (before, after) = done.bytes;
            tracing::info!(before, after, dropped = done.dropped, "collection compacted");
        }
        // The log is as it was; the next pass tries again.
        Ok(Err(error)) => tracing::warn!(%error, "the collection cannot be compacted"),
        Err(error) => tracing::error!(%error, "a compaction failed"),
    }
}

/// Goes over all roots, one after the other. Blocks.
fn pass(
    site: &Site,
    plans: &[Plan],
    confirmed: &BTreeSet<String>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    for plan in plans {
        if stop() {
            return Ok(());
        }
        let tract = site.tract(&plan.url)?;
        site.enter(Phase::Walking);
        let order = Order {
            scopes: vec![plan.root.directory.clone()],
            whole: true,
            confirmed: confirmed.contains(&plan.url),
        };
        pipeline::run(site, plan, &tract, &order, stop)?;
    }
    for url in site.known_roots()? {
        if !plans.iter().any(|plan| plan.url == url) {
            forget_root(site, &url, confirmed.contains(&url), stop)?;
        }
    }
    if !stop() {
        site.passes.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Looks at paths that something has happened to. Blocks.
fn look(
    site: &Site,
    plans: &[Plan],
    paths: &[PathBuf],
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<(), collection::Error> {
    for plan in plans {
        let top = &plan.root.directory;
        let scopes: Vec<PathBuf> =
            paths.iter().filter(|path| path.starts_with(top)).cloned().collect();
        if scopes.is_empty() {
            continue;
        }
        let tract = site.tract(&plan.url)?;
        // Whatever happens to the top itself concerns the whole root, its hold included.
        let whole = scopes.contains(top);
        let scopes = if whole { vec![top.clone()] } else { scopes };
        pipeline::run(site, plan, &tract, &Order { scopes, whole, confirmed: false }, stop)?;
    }
    Ok(())
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
    for entry in site.collection.notes(&note::files_prefix(url)) {
        let (key, value) = entry?;
        if let Some(file) = note::from_bytes::<FileNote>(&value) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use crate::config::Config;

    async fn rounds(folder: &tempfile::TempDir) -> Rounds {
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let config = Config::for_paths(&[root], &folder.path().join("data"));
        let server = Server::bind(config).await.unwrap();
        Rounds::new(server.handle().shared, Shutdown::new(), clock::monotonic())
    }

    #[tokio::test]
    async fn what_cannot_be_watched_is_polled() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        rounds.handle_watcher(Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch)), 0);
        assert_eq!(*lock(&rounds.shared.watching), "poll 60");
        assert_eq!(rounds.interval(), POLL);
        assert_eq!(lock(&rounds.shared.site.problems).by_kind()["unwatched"], 1);
        // Word of earlier settings changes nothing.
        rounds.settings = 1;
        *lock(&rounds.shared.watching) = "starting".to_owned();
        rounds.handle_watcher(Err(notify::Error::generic("late")), 0);
        assert_eq!(*lock(&rounds.shared.watching), "starting");
    }

    #[tokio::test]
    async fn what_is_asked_during_a_pass_is_done_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        let due_after = |rounds: &mut Rounds| {
            rounds.handle_done(Ok(Done::Pass(Ok(())))).unwrap();
            rounds.pass_due.saturating_duration_since(clock::monotonic())
        };
        rounds.start_pass(BTreeSet::new());
        let quiet = due_after(&mut rounds);
        assert!(quiet <= rounds.interval() && RETRY < quiet, "{quiet:?}");
        rounds.start_pass(BTreeSet::new());
        lock(&rounds.shared.requests).reload = true;
        rounds.start_what_is_due();
        assert!(rounds.passing, "one pass at a time");
        assert_eq!(due_after(&mut rounds), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_full_disk_is_waited_for_and_a_failed_one_ends_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        let full = collection::Error::Full {
            path: "x".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        rounds.passing = true;
        rounds.handle_done(Ok(Done::Pass(Err(full)))).unwrap();
        let wait = rounds.pass_due.duration_since(clock::monotonic());
        assert!(wait <= RETRY, "{wait:?}");
        assert_eq!(lock(&rounds.shared.site.problems).by_kind()["disk-full"], 1);
        let failed = collection::Error::Stopped { dir: "x".into() };
        let said = rounds.handle_done(Ok(Done::Look(Err(failed)))).unwrap_err().to_string();
        assert!(said.contains("open it again"), "{said}");
    }
}
