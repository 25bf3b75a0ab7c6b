//! The loop of a gatherer's work on trees: passes over all roots, looks at changed paths, requests.
//!
//! One pass and one look may be under way at once, so that a file saved during a long pass is
//! published within a second or two.

mod pass;
mod reading;
mod tidying;
mod watching;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use tokio::task::{self, JoinError, JoinSet};

pub(crate) use self::pass::forget_root;
use self::pass::{PassRequest, look, pass};
use self::tidying::{HEAL_PAUSE_MIN, TIDY_EVERY};
use crate::config::{POLL, Watch};
use crate::error::Error;
use crate::heal::TidyOutcome;
use crate::lock::lock;
use crate::progress::Phase;
use crate::shared::{Shared, retry_wait};
use crate::tree::debounce::Touched;
use crate::tree::watch::{Inbox, WatchSession, WatchedInodes, Watcher};

/// Time between two checks of whether watched roots were replaced.
const ROOT_CHECK: Duration = Duration::from_secs(10);

/// Wait after a failed commit. It doubles after each further failure in a row, since each try costs
/// a walk over the roots.
const RETRY: Duration = Duration::from_secs(10);

/// Maximum wait before the next try. A request for a pass causes a try immediately.
const RETRY_MAX: Duration = Duration::from_secs(300);

/// Kind of the problem that the collection does not accept changes.
const NOT_ACCEPTING: &str = "not-accepting";

/// Time between two updates of the progress.
const PUBLISH: Duration = Duration::from_millis(100);

/// Maximum time that the shutdown waits for walks and files under way.
const STOP_WAIT: Duration = Duration::from_millis(900);

/// Added to the due time during a pass: the end, or a request, sets the real due time.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 24 * 3_600);

enum Done {
    Pass(Result<(), collection::Error>),
    Look(Result<(), collection::Error>),
    /// Annotations were read; true if they have changed.
    Read(bool),
    /// A new watcher, or why there is none, with the number of the settings that it is for.
    Started(Result<Watcher, watcher::Error>, u64),
    /// The watcher after a check; true if a root has gone, come back or been replaced.
    Checked(Result<Watcher, watcher::Error>, bool, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Pass,
    Look,
    Read,
    StartWatch,
    Check,
}

struct Rounds {
    shared: Arc<Shared>,
    shutdown: Shutdown,
    inbox: Arc<Inbox>,
    /// The watcher; `None` while it is started or checked, and if there is none.
    watcher: Option<Watcher>,
    /// Number of the present settings: a watcher for earlier settings is dropped.
    settings: u64,
    tasks: JoinSet<Done>,
    jobs: HashMap<task::Id, Job>,
    /// Repair and compaction; at most one task at a time.
    tidying: JoinSet<TidyOutcome>,
    tidy_due: Instant,
    /// Pause before the next repair while there is damage.
    heal_pause: Duration,
    passing: bool,
    looking: bool,
    /// Whether annotations are being read. No pass begins meanwhile: it would use outdated ones.
    reading: bool,
    /// Time at which annotations are read outside of a pass.
    read_due: Option<Instant>,
    /// Whether watches are being set. No pass begins meanwhile: it would miss changes.
    starting_watch: bool,
    checking: bool,
    /// Watched device and inode of each root; `None` if nothing is watched.
    watched: Option<WatchedInodes>,
    session: Option<WatchSession>,
    /// Whether the last finished pass ran under the present watches.
    steady: bool,
    /// Roots whose held deletions are released until a pass has finished.
    releases: BTreeSet<String>,
    /// Whether a look with earlier settings is under way. No pass begins meanwhile: the look could
    /// bring back objects that the pass deletes.
    outdated: bool,
    /// Due time of the next pass; while a pass is under way, of the pass after it.
    pass_due: Instant,
    check_due: Instant,
    /// Whether a commit has failed, and has to be tried again.
    missed: bool,
    /// Number of passes in a row that failed because of a refused commit or a panic.
    refusals: u32,
}

/// Gathers until the shutdown starts.
///
/// # Errors
///
/// The collection has failed and must be opened again: stop, then start the gatherer anew.
pub(crate) async fn run(shared: Arc<Shared>, shutdown: Shutdown) -> Result<(), Error> {
    let mut rounds = Rounds::new(shared, shutdown.clone(), clock::monotonic());
    rounds.start_watching();
    let outcome = rounds.run_loop().await;
    // Tasks under way notice the shutdown and stop by themselves. A slow file must not delay the
    // stop: cutting it off is no worse than a kill.
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
            jobs: HashMap::new(),
            tidying: JoinSet::new(),
            tidy_due: now + TIDY_EVERY,
            heal_pause: HEAL_PAUSE_MIN,
            passing: false,
            looking: false,
            reading: false,
            read_due: None,
            starting_watch: false,
            checking: false,
            watched: None,
            session: None,
            steady: false,
            releases: BTreeSet::new(),
            outdated: false,
            pass_due: now,
            check_due: now + ROOT_CHECK,
            missed: false,
            refusals: 0,
        }
    }

    async fn run_loop(&mut self) -> Result<(), Error> {
        loop {
            self.start_what_is_due();
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = self.shutdown.started() => return Ok(()),
                Some(done) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    let done = done.map(|(id, done)| {
                        self.jobs.remove(&id);
                        done
                    });
                    self.handle_done(done)?;
                }
                Some(tidied) = self.tidying.join_next(), if !self.tidying.is_empty() => {
                    self.handle_tidied(tidied, clock::monotonic());
                }
                () = self.shared.requested.notified() => {}
                () = self.inbox.wait() => {}
                () = tokio::time::sleep_until(wake.into()) => self.shared.site.publish(),
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let now = clock::monotonic();
        let mut wake = self.check_due.min(self.tidy_due).max(now);
        if !self.passing && !self.starting_watch && !self.outdated && !self.reading {
            wake = wake.min(self.pass_due);
        }
        if let Some(touched) = self.inbox.poll_timeout().filter(|_| !self.looking) {
            wake = wake.min(touched);
        }
        let annotations = [self.inbox.annotations_due(), self.reading_due()];
        wake = annotations.into_iter().flatten().fold(wake, Instant::min);
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
            self.outdated = self.looking;
            self.start_watching();
        }
        if !self.passing && !self.starting_watch && !self.outdated && !self.reading {
            let mut requests = lock(&self.shared.requests);
            let is_requested = std::mem::take(&mut requests.gather) || !requests.confirm.is_empty();
            if is_requested || self.pass_due <= now {
                let confirmed = std::mem::take(&mut requests.confirm);
                drop(requests);
                self.start_pass(confirmed);
            }
        }
        if !self.looking
            && let Some(touched) = self.inbox.poll_touched(now)
        {
            self.handle_failure();
            match touched {
                Touched::Everything => self.pass_due = now,
                Touched::Paths(paths) => self.start_look(paths),
            }
        }
        self.start_reading(now);
        if self.tidy_due <= now {
            self.tidy_due = now + TIDY_EVERY;
            self.start_tidying();
        }
        if self.check_due <= now && !self.checking {
            self.check_due = now + ROOT_CHECK;
            self.start_check();
        }
    }

    fn start_watching(&mut self) {
        self.watcher = None;
        self.forget_watch();
        self.inbox.renew();
        self.settings += 1;
        let config = self.shared.config();
        *lock(&self.shared.watching) = Some(config.watch).filter(|it| *it != Watch::Notify);
        if config.watch == Watch::Notify {
            self.starting_watch = true;
            let (site, inbox) = (self.shared.site.clone(), self.inbox.clone());
            let (plans, settings) = (self.shared.plans(), self.settings);
            let annotations = config.essence.annotations.clone();
            self.spawn(Job::StartWatch, move || {
                let started = Watcher::start(site, &plans, annotations, inbox)
                    .and_then(|mut watcher| watcher.update(&plans).map(|()| watcher));
                Done::Started(started, settings)
            });
        }
    }

    /// Returns the time between the end of a pass and the next pass.
    fn interval(&self) -> Duration {
        let config = self.shared.config();
        match config.watch {
            Watch::Poll(interval) => interval.min(config.rewalk),
            Watch::Notify
                if self.watcher.is_none() && !self.checking || self.inbox.failure().is_some() =>
            {
                POLL.min(config.rewalk)
            }
            Watch::Notify | Watch::Off => config.rewalk,
        }
    }

    fn start_pass(&mut self, confirmed: BTreeSet<String>) {
        (self.passing, self.read_due) = (true, None);
        self.releases.extend(confirmed);
        // This pass does not serve later requests.
        self.pass_due = clock::monotonic() + self.interval() + FAR_FUTURE;
        self.missed = false;
        self.session = self.watched.clone().map(|it| WatchSession::begin(&self.inbox, it));
        let session = self.session.clone().filter(|_| self.steady);
        let (site, plans) = (self.shared.site.clone(), self.shared.plans());
        let shutdown = self.shutdown.clone();
        site.counts.clear();
        site.enter(Phase::Walking);
        let annotations = self.shared.config().essence.annotations.clone();
        let request = PassRequest { confirmed: self.releases.clone(), annotations, session };
        self.spawn(Job::Pass, move || {
            Done::Pass(pass(&site, &plans, &request, &|| shutdown.is_started()))
        });
    }

    fn spawn(&mut self, job: Job, work: impl FnOnce() -> Done + Send + 'static) {
        let id = self.tasks.spawn_blocking(work).id();
        self.jobs.insert(id, job);
    }

    fn start_look(&mut self, paths: Vec<PathBuf>) {
        self.looking = true;
        let (site, plans) = (self.shared.site.clone(), self.shared.plans());
        let shutdown = self.shutdown.clone();
        self.spawn(Job::Look, move || {
            Done::Look(look(&site, &plans, &paths, &|| shutdown.is_started()))
        });
    }

    fn start_check(&mut self) {
        let Some(mut watcher) = self.watcher.take() else { return };
        self.checking = true;
        let (plans, settings) = (self.shared.plans(), self.settings);
        self.spawn(Job::Check, move || {
            if !watcher.is_outdated(&plans) {
                return Done::Checked(Ok(watcher), false, settings);
            }
            let updated = watcher.update(&plans).map(|()| watcher);
            Done::Checked(updated, true, settings)
        });
    }

    fn handle_done(&mut self, done: Result<Done, JoinError>) -> Result<(), Error> {
        let now = clock::monotonic();
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                self.handle_fault(&error, now);
                return Ok(());
            }
        };
        match done {
            Done::Pass(outcome) => {
                self.passing = false;
                self.pass_due = self.pass_due.min(now + self.interval());
                match (&outcome, self.session.take()) {
                    (Ok(()), session) => {
                        self.steady = session.is_some();
                        self.releases.clear();
                    }
                    (Err(_), session) => session.iter().for_each(WatchSession::give_up),
                }
                self.wait_for_quiet(now);
                let is_refused = outcome.is_err();
                self.handle_outcome(outcome)?;
                self.refusals = if is_refused { self.refusals.saturating_add(1) } else { 0 };
                if self.missed {
                    self.pass_due =
                        self.pass_due.min(now + retry_wait(self.refusals, RETRY, RETRY_MAX));
                }
                self.start_tidying();
            }
            Done::Look(outcome) => {
                (self.looking, self.outdated) = (false, false);
                self.handle_outcome(outcome)?;
                if self.missed {
                    self.inbox.note_lost();
                    self.pass_due =
                        self.pass_due.min(now + retry_wait(self.refusals, RETRY, RETRY_MAX));
                }
            }
            Done::Read(is_new) => self.handle_read(is_new, now),
            Done::Started(started, settings) => {
                self.starting_watch &= settings != self.settings;
                self.handle_watcher(started, settings);
            }
            Done::Checked(checked, was_outdated, settings) => {
                self.checking = false;
                if was_outdated && settings == self.settings {
                    self.forget_watch();
                    self.pass_due = now;
                }
                self.handle_watcher(checked, settings);
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

    /// Handles a panic of a task: the run goes on, and everything is walked again.
    fn handle_fault(&mut self, error: &JoinError, now: Instant) {
        tracing::error!(%error, "a walk failed");
        self.shared.site.problem("-".to_owned(), "fault", error.to_string());
        match self.jobs.remove(&error.id()) {
            Some(Job::Pass) => {
                self.passing = false;
                self.refusals = self.refusals.saturating_add(1);
                self.session.take().iter().for_each(WatchSession::give_up);
            }
            Some(Job::Look) => {
                (self.looking, self.outdated) = (false, false);
                self.inbox.note_lost();
            }
            Some(Job::Read) => self.reading = false,
            Some(Job::StartWatch) => self.starting_watch = false,
            Some(Job::Check) => {
                self.checking = false;
                self.forget_watch();
            }
            None => {}
        }
        self.pass_due = now + retry_wait(self.refusals, RETRY, RETRY_MAX);
    }

    /// Handles the outcome of a pass or a look. After a temporary failure, such as a full disk,
    /// waits if the settings say so; after any other failure the collection must be opened again.
    fn handle_outcome(&mut self, outcome: Result<(), collection::Error>) -> Result<(), Error> {
        match outcome {
            Ok(()) => {
                // A look without a commit says nothing about the state of the collection.
                if self.shared.site.collection.health().refusing.is_none() {
                    lock(&self.shared.site.problems).cure("-", NOT_ACCEPTING);
                }
                Ok(())
            }
            Err(error) if error.may_pass() && self.shared.config().wait_for_space => {
                tracing::error!(%error, "cannot commit; trying again");
                self.shared.site.problem("-".to_owned(), NOT_ACCEPTING, error.to_string());
                self.missed = true;
                Ok(())
            }
            Err(error) => Err(Error::collection(&self.shared.config().daemon.data, &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Server;
    use crate::config::Config;
    use crate::progress::Hold;

    async fn rounds(folder: &tempfile::TempDir) -> Rounds {
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let config = Config::for_paths(&[root], &folder.path().join("data"));
        let server = Server::bind(config).await.unwrap();
        Rounds::new(server.handle().shared, Shutdown::new(), clock::monotonic())
    }

    #[tokio::test]
    async fn roots_that_cannot_be_watched_are_polled() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        rounds.handle_watcher(Err(watcher::Error::new(watcher::ErrorKind::MaxFilesWatch)), 0);
        assert_eq!(rounds.shared.watching(), "poll 60");
        assert_eq!(rounds.interval(), POLL);
        assert_eq!(lock(&rounds.shared.site.problems).by_kind()["unwatched"], 1);
        // A watcher that works, but cannot watch new folders.
        *lock(&rounds.shared.watching) = Some(Watch::Notify);
        rounds.inbox.fail(&watcher::Error::new(watcher::ErrorKind::MaxFilesWatch));
        rounds.handle_failure();
        assert_eq!(rounds.shared.watching(), "poll 60");
        assert_eq!(rounds.interval(), POLL);
        // A watcher for earlier settings changes nothing.
        rounds.settings = 1;
        *lock(&rounds.shared.watching) = None;
        rounds.handle_watcher(Err(watcher::Error::generic("late")), 0);
        assert_eq!(rounds.shared.watching(), "starting");
    }

    /// Handles finished tasks until `is_over`.
    async fn run_until(rounds: &mut Rounds, is_over: impl Fn(&Rounds) -> bool) {
        while !is_over(rounds) {
            let done = rounds.tasks.join_next_with_id().await.unwrap();
            rounds.handle_done(done.map(|(_, done)| done)).unwrap();
        }
    }

    async fn make_pass(rounds: &mut Rounds) -> Option<Hold> {
        rounds.start_pass(BTreeSet::new());
        run_until(rounds, |it| !it.passing).await;
        let plan = &rounds.shared.plans()[0];
        let root_state = rounds.shared.site.root_state(plan.url()).unwrap();
        lock(&root_state.note).hold.clone()
    }

    /// Replaces all files of a watched root, calls `before`, and makes a pass. The watcher's events
    /// are not handled.
    async fn replace_files(before: impl Fn(&mut Rounds, &std::path::Path)) -> Option<Hold> {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        let root = folder.path().join("root");
        let write = |round: u32| {
            for n in 0..300 {
                std::fs::write(root.join(format!("{round}-{n}.txt")), "words").unwrap();
            }
        };
        write(1);
        rounds.start_watching();
        run_until(&mut rounds, |it| !it.starting_watch).await;
        assert_eq!(make_pass(&mut rounds).await, None);
        for n in 0..300 {
            std::fs::remove_file(root.join(format!("1-{n}.txt"))).unwrap();
        }
        write(2);
        before(&mut rounds, &root);
        make_pass(&mut rounds).await
    }

    #[tokio::test]
    async fn a_pass_that_replaces_lost_events_counts_the_balance() {
        assert_eq!(replace_files(|rounds, _| rounds.inbox.overflow()).await, None);
    }

    #[tokio::test]
    async fn any_other_pass_counts_all_files_gone() {
        let all = Some(Hold::Lost { lost: 300, of: 300 });
        assert_eq!(replace_files(|_, _| ()).await, all);
        // The root's directory was replaced.
        let swapped = replace_files(|rounds, root| {
            let aside = root.with_file_name("aside");
            std::fs::create_dir(&aside).unwrap();
            for entry in std::fs::read_dir(root).unwrap().map(Result::unwrap) {
                std::fs::rename(entry.path(), aside.join(entry.file_name())).unwrap();
            }
            std::fs::remove_dir(root).unwrap();
            std::fs::rename(aside, root).unwrap();
            rounds.inbox.overflow();
        });
        assert_eq!(swapped.await, all);
        // Not all of the root was watched.
        let failed = replace_files(|rounds, _| {
            rounds.inbox.fail(&watcher::Error::new(watcher::ErrorKind::MaxFilesWatch));
        });
        assert_eq!(failed.await, all);
        // The watch session began after the previous pass.
        let anew = replace_files(|rounds, _| {
            rounds.start_watching();
            rounds.inbox.overflow();
        });
        assert_eq!(anew.await, all);
    }

    #[tokio::test]
    async fn replaced_files_are_no_loss_after_a_full_disk() {
        let kept = replace_files(|rounds, _| {
            rounds.inbox.overflow();
            rounds.session =
                rounds.watched.clone().map(|it| WatchSession::begin(&rounds.inbox, it));
            rounds.handle_done(Ok(Done::Pass(Err(full())))).unwrap();
            assert!(rounds.session.is_none());
        });
        assert_eq!(kept.await, None);
    }

    fn full() -> collection::Error {
        let source = std::io::ErrorKind::StorageFull.into();
        collection::Error::Full { path: "x".into(), source }
    }

    #[tokio::test]
    async fn requests_during_a_pass_are_served_after_it() {
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
    async fn unchanged_annotations_cause_no_walk() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes.soif");
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut config = Config::for_paths(&[root], &folder.path().join("data"));
        config.essence.annotations = vec![notes.clone()];
        let server = Server::bind(config).await.unwrap();
        let mut rounds = Rounds::new(server.handle().shared, Shutdown::new(), clock::monotonic());
        let write = |text: &str| {
            std::fs::write(&notes, text).unwrap();
            let file = std::fs::File::options().write(true).open(&notes).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        };
        for (text, is_walked) in [
            ("@FILE { http://h/a\nTitle{1}:\tT\n}\n", true),
            ("@FILE { http://h/a\nTitle{1}:\tT\n}\n", false),
            ("@FILE { http://h/a", false),
            ("@FILE { http://h/a\nTitle{2}:\tTU\n}\n", true),
        ] {
            write(text);
            let now = clock::monotonic();
            rounds.pass_due = now + FAR_FUTURE;
            rounds.read_due = Some(now);
            rounds.start_what_is_due();
            assert!(rounds.reading && !rounds.passing);
            run_until(&mut rounds, |it| !it.reading).await;
            assert_eq!(rounds.pass_due <= clock::monotonic(), is_walked, "{text}");
        }
    }

    #[tokio::test]
    async fn a_panic_in_a_look_ends_only_that_look() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        (rounds.passing, rounds.looking) = (true, true);
        rounds.spawn(Job::Look, || std::panic::resume_unwind(Box::new("a fault")));
        run_until(&mut rounds, |it| !it.looking).await;
        assert!(rounds.passing && rounds.jobs.is_empty(), "the pass goes on");
        assert_eq!(lock(&rounds.shared.site.problems).by_kind()["fault"], 1);
    }

    #[tokio::test]
    async fn passes_that_panic_are_repeated_after_longer_waits() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        for waited in [RETRY, 2 * RETRY, 4 * RETRY] {
            rounds.passing = true;
            rounds.spawn(Job::Pass, || std::panic::resume_unwind(Box::new("a fault")));
            run_until(&mut rounds, |it| !it.passing).await;
            let wait = rounds.pass_due.duration_since(clock::monotonic());
            assert!(waited / 2 < wait && wait <= waited, "{wait:?}");
        }
        rounds.handle_done(Ok(Done::Pass(Ok(())))).unwrap();
        assert_eq!(rounds.refusals, 0);
    }

    #[tokio::test]
    async fn a_release_lasts_until_a_pass_has_finished() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        rounds.start_pass(BTreeSet::from(["file:///a".to_owned()]));
        rounds.handle_done(Ok(Done::Pass(Err(full())))).unwrap();
        assert_eq!(rounds.releases.len(), 1);
        rounds.handle_done(Ok(Done::Pass(Ok(())))).unwrap();
        assert!(rounds.releases.is_empty());
    }

    #[tokio::test]
    async fn a_pass_with_new_settings_waits_for_a_look_with_the_old_ones() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        rounds.looking = true;
        lock(&rounds.shared.requests).reload = true;
        rounds.start_what_is_due();
        run_until(&mut rounds, |it| !it.starting_watch).await;
        rounds.start_what_is_due();
        assert!(!rounds.passing);
        rounds.handle_done(Ok(Done::Look(Ok(())))).unwrap();
        rounds.start_what_is_due();
        assert!(rounds.passing);
    }

    #[tokio::test]
    async fn a_full_disk_is_waited_for_and_a_failed_one_ends_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut rounds = rounds(&folder).await;
        rounds.passing = true;
        rounds.handle_done(Ok(Done::Pass(Err(full())))).unwrap();
        let wait = rounds.pass_due.duration_since(clock::monotonic());
        assert!(wait <= RETRY, "{wait:?}");
        assert_eq!(lock(&rounds.shared.site.problems).by_kind()[NOT_ACCEPTING], 1);
        rounds.pass_due += FAR_FUTURE;
        rounds.handle_done(Ok(Done::Pass(Err(full())))).unwrap();
        let wait = rounds.pass_due.duration_since(clock::monotonic());
        assert!(RETRY < wait && wait <= 2 * RETRY, "{wait:?}");
        let failed = collection::Error::Stopped { dir: "x".into() };
        let text = rounds.handle_done(Ok(Done::Look(Err(failed)))).unwrap_err().to_string();
        assert!(text.contains("open it again"), "{text}");
    }
}
