//! Watching: finds changes of the trees that this member publishes without a command, by the
//! system's events (inotify and the like), or by regular walks where there are no events.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use watcher::{ErrorKind, RecursiveMode, WatchEvent, Watcher};

use super::notes::Notes;
use crate::config::TreeConfig;
use crate::status::WatchStatus;
use crate::version::Name;
use crate::watch::{Check, Checked, Events, Watch, WatchFailure};

/// Maximum number of directories of a watched tree: each takes memory in the kernel, and in this
/// process for its path twice.
pub(super) const DIRECTORIES_MAX: usize = 100_000;
/// Error of the system when there are too many watchers.
const TOO_MANY_OPEN: i32 = rustix::io::Errno::MFILE.raw_os_error();
/// Maximum number of tries to start a watch while directories vanish.
const START_TRIES: u32 = 3;
/// File systems that report only changes made on this machine, by their numbers in `statfs`.
const REMOTE: &[(rustix::fs::FsWord, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFF53_4D42, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x6573_5546, "FUSE"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
];

#[derive(Debug)]
pub(super) struct Watching {
    all: BTreeMap<Name, Watched>,
    started: Instant,
    notify: Arc<Notify>,
    stop: Shutdown,
}

#[derive(Debug)]
struct Watched {
    config: TreeConfig,
    watch: Watch,
    sink: Arc<Sink>,
    /// The running watch; `None` if there is none, and while a job checks it.
    session: Option<Session>,
    /// The last problem, so that it is reported once.
    wrong: Option<String>,
}

/// Receiver of a watcher's events.
#[derive(Debug)]
struct Sink {
    events: Mutex<Events>,
    started: Instant,
    notify: Arc<Notify>,
}

impl Sink {
    fn record(&self, event: WatchEvent) {
        let now = clock::monotonic().saturating_duration_since(self.started);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if *events == Events::default() {
            // If earlier events are in it, they have already caused a notification.
            self.notify.notify_one();
        }
        match event {
            WatchEvent::Changed(_) => events.changed.get_or_insert((now, now)).1 = now,
            WatchEvent::Lost => events.is_lost = true,
            WatchEvent::Failed(error) => events.failure = Some(watch_failure(&error)),
        }
    }

    fn take(&self) -> Events {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The system's watches on a tree.
#[derive(Debug)]
struct Session {
    _watcher: Watcher,
    /// Device and inode of the directory: if another directory takes its place, a new watch is
    /// needed.
    identity: (u64, u64),
}

/// Job: check whether a tree is watched, and start a watch if it is not.
#[derive(Debug)]
pub(super) struct Checking {
    config: TreeConfig,
    session: Option<Session>,
    check: Check,
    sink: Arc<Sink>,
    stop: Shutdown,
}

impl Checking {
    /// Returns whether the check may take long; otherwise its result is known at once.
    pub(super) fn is_long(&self) -> bool {
        self.check.may_watch
    }

    /// If `check` allows a watch, keeps the present one if it is valid, or starts one. Blocks.
    pub(super) fn run(self) -> CheckResult {
        let Self { config, session, check, sink, stop } = self;
        if !check.may_watch {
            return CheckResult { config, session: None, checked: Checked::Untried };
        }
        let (session, checked) = match start(&config.directory, session, check, &sink, &stop) {
            Ok((session, checked)) => (Some(session), checked),
            Err(failure) => (None, Checked::Failed(failure)),
        };
        CheckResult { config, session, checked }
    }
}

#[derive(Debug)]
pub(super) struct CheckResult {
    config: TreeConfig,
    session: Option<Session>,
    checked: Checked,
}

impl Watching {
    /// Returns an empty set; `stop` ends all its jobs.
    pub(super) fn new(started: Instant, stop: Shutdown) -> Self {
        Self { all: BTreeMap::new(), started, notify: Arc::new(Notify::new()), stop }
    }

    /// Takes over the trees in the settings; a check of each watched one becomes due.
    pub(super) fn set(&mut self, trees: &[TreeConfig], now: Duration) {
        let mut before = std::mem::take(&mut self.all);
        for tree in trees {
            let Some(every) = tree.watch else { continue };
            let known = before.remove(&tree.name).filter(|it| is_watched_alike(&it.config, tree));
            let mut watched = known.unwrap_or_else(|| {
                let (started, notify) = (self.started, self.notify.clone());
                Watched {
                    config: tree.clone(),
                    watch: Watch::new(every, now),
                    sink: Arc::new(Sink { events: Mutex::default(), started, notify }),
                    session: None,
                    wrong: None,
                }
            });
            watched.config = tree.clone();
            watched.watch.handle_reload(now);
            self.all.insert(tree.name.clone(), watched);
        }
    }

    /// Returns the notification that events have come.
    pub(super) fn changes(&self) -> Arc<Notify> {
        self.notify.clone()
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.all.values().filter_map(|it| it.watch.poll_timeout()).min()
    }

    /// Takes in the events of trees; returns the checks that are due.
    pub(super) fn poll(&mut self, now: Duration, notes: &mut Notes) -> Vec<Checking> {
        let mut due = Vec::new();
        for Watched { config, watch, sink, session, .. } in self.all.values_mut() {
            if watch.handle_events(sink.take(), now) {
                *session = None;
                notes.add(warning(config, watch), now);
            }
            let Some(check) = watch.poll_check(now) else { continue };
            let (config, session, sink) = (config.clone(), session.take(), sink.clone());
            due.push(Checking { config, session, check, sink, stop: self.stop.clone() });
        }
        due
    }

    /// Takes in the result of a check; returns the tree if it has to be walked. `is_published`
    /// returns whether a tree is being published.
    pub(super) fn handle_checked(
        &mut self,
        found: CheckResult,
        is_published: impl Fn(&Name) -> bool,
        now: Duration,
        notes: &mut Notes,
    ) -> Option<TreeConfig> {
        let CheckResult { config, session, checked } = found;
        let watched = self.all.get_mut(&config.name);
        let watched = watched.filter(|it| is_watched_alike(&it.config, &config));
        let Watched { config, watch, session: held, .. } = watched?;
        *held = session;
        let before = watch.failure().map(str::to_owned);
        let walks = watch.handle_checked(checked, is_published(&config.name), now);
        match watch.failure() {
            Some(why) if before.as_deref() != Some(why) => notes.add(warning(config, watch), now),
            None if before.is_some() => {
                notes.add(format!("changes of {} are reported again", config.name), now);
            }
            _ => {}
        }
        walks.then(|| config.clone())
    }

    /// Takes in the result of a walk: without `wrong`, the tree is published if it has changed;
    /// `wrong` says why it could not be.
    pub(super) fn handle_walked(
        &mut self,
        name: &Name,
        wrong: Option<String>,
        now: Duration,
        notes: &mut Notes,
    ) {
        let Some(watched) = self.all.get_mut(name) else { return };
        watched.watch.handle_walked(wrong.is_none(), now);
        if let Some(why) = wrong.as_ref().filter(|it| watched.wrong.as_ref() != Some(*it)) {
            notes.add(format!("{name} is not published: {why}"), now);
        }
        watched.wrong = wrong;
    }

    pub(super) fn status(&self, name: &Name) -> Option<WatchStatus> {
        let Watched { config, watch, wrong, .. } = self.all.get(name)?;
        let every = config.watch.unwrap_or_default().as_secs();
        let problem = watch.failure().map(str::to_owned);
        Some(WatchStatus { every, problem, unpublished: wrong.clone() })
    }
}

/// Returns whether a watch under the settings `one` is valid under the settings `other`, too. Only
/// directory and interval matter, not the access to the tree.
fn is_watched_alike(one: &TreeConfig, other: &TreeConfig) -> bool {
    (&one.directory, one.watch) == (&other.directory, other.watch)
}

/// Returns the note which says that the system does not report a tree's changes.
fn warning(config: &TreeConfig, watch: &Watch) -> String {
    let every = config.watch.unwrap_or_default().as_secs();
    let (name, why) = (&config.name, watch.failure().unwrap_or_default());
    format!("changes of {name} are not reported; it is looked at every {every} s instead: {why}")
}

/// Keeps the watch on a tree if it is still valid; otherwise starts a new one. Blocks.
fn start(
    directory: &Path,
    session: Option<Session>,
    check: Check,
    sink: &Arc<Sink>,
    stop: &Shutdown,
) -> Result<(Session, Checked), WatchFailure> {
    let gone = |error: std::io::Error| WatchFailure {
        why: format!("{}: {error}", directory.display()),
        is_lasting: false,
    };
    let top = fs::canonicalize(directory).map_err(gone)?;
    let metadata = fs::metadata(&top).map_err(gone)?;
    let identity = (metadata.dev(), metadata.ino());
    let session = session.filter(|it| !check.is_anew && it.identity == identity);
    if check.is_before_walk || session.is_none() {
        survey(&top, DIRECTORIES_MAX, stop)?;
    }
    if let Some(session) = session {
        return Ok((session, Checked::Watched));
    }
    let mut tries = 1;
    loop {
        let sink = sink.clone();
        let started =
            Watcher::start(false, move |event| sink.record(event)).and_then(|mut watcher| {
                watcher.watch(&top, RecursiveMode::Recursive).map(|()| watcher)
            });
        match started {
            Ok(_watcher) => return Ok((Session { _watcher, identity }, Checked::Started)),
            Err(error) if tries < START_TRIES && matches!(error.kind, ErrorKind::PathNotFound) => {
                tries += 1;
            }
            Err(error) => return Err(watch_failure(&error)),
        }
    }
}

/// Returns the reason why a tree is not watched, with the remedy.
fn watch_failure(error: &watcher::Error) -> WatchFailure {
    let remedy = match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "raise fs.inotify.max_user_watches with sysctl, then send SIGHUP"
        }
        ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY_OPEN) => {
            "raise fs.inotify.max_user_instances with sysctl, then send SIGHUP"
        }
        _ => "repair that, then send SIGHUP",
    };
    let at = error.paths.first().map_or_else(String::new, |it| format!("{}: ", it.display()));
    let why = format!("{at}{}; {remedy}", watcher::reason(error));
    WatchFailure { why, is_lasting: !matches!(error.kind, ErrorKind::PathNotFound) }
}

/// Checks that a tree can be watched: it has at most `most` directories, and the system reports all
/// their changes. Unreadable directories are skipped.
fn survey(top: &Path, most: usize, stop: &Shutdown) -> Result<(), WatchFailure> {
    let lasting = |why: String| WatchFailure { why, is_lasting: true };
    let mut known = None;
    let mut found = 1;
    let mut open: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        if stop.is_started() {
            let why = "this member is stopping".to_owned();
            return Err(WatchFailure { why, is_lasting: false });
        }
        let device = fs::symlink_metadata(&dir).map(|it| it.dev()).ok();
        if device != known {
            known = device;
            if let Some(system) = remote(&dir) {
                let what = "which does not report changes on other machines";
                let remedy = "publish it where it is stored, or by command";
                let dir = dir.display();
                return Err(lasting(format!("{dir} is on {system}, {what}; {remedy}")));
            }
        }
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries.flatten().filter(|it| it.file_type().is_ok_and(|it| it.is_dir())) {
            found += 1;
            if most < found {
                let remedy = "publish parts of it as trees of their own, or by command";
                return Err(lasting(format!("it has more than {most} directories; {remedy}")));
            }
            open.push(entry.path());
        }
    }
    Ok(())
}

/// Returns the kind of a file system that other machines change as well; `None` for other file
/// systems.
fn remote(dir: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(dir).ok()?.f_type;
    REMOTE.iter().find(|it| it.0 == kind).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_too_many_directories_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        for it in ["a/b/c", "d", "e"] {
            fs::create_dir_all(dir.path().join(it)).unwrap();
        }
        fs::write(dir.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("link")).unwrap();
        let stop = Shutdown::new();
        assert_eq!(survey(dir.path(), 6, &stop), Ok(()));
        let it = survey(dir.path(), 5, &stop).unwrap_err();
        assert!(it.is_lasting && it.why.contains("more than 5 directories"), "{it:?}");
    }

    #[test]
    fn access_to_a_tree_does_not_matter_to_its_watch() {
        let tree = TreeConfig {
            name: Name::new("t").unwrap(),
            directory: "/srv/t".into(),
            watch: Some(Duration::from_secs(10)),
            groups: Default::default(),
            skip_problems: false,
            access: Default::default(),
        };
        let mut watching = Watching::new(clock::monotonic(), Shutdown::new());
        watching.set(std::slice::from_ref(&tree), Duration::ZERO);
        let sink = |it: &Watching| Arc::as_ptr(&it.all[&tree.name].sink);
        let before = sink(&watching);
        let mut other = tree.clone();
        (other.access.mode, other.skip_problems) = (0o755, true);
        watching.set(std::slice::from_ref(&other), Duration::ZERO);
        assert_eq!((sink(&watching), &watching.all[&tree.name].config), (before, &other));
        other.directory = "/srv/u".into();
        let kept = watching.all[&tree.name].sink.clone();
        watching.set(&[other], Duration::ZERO);
        assert_ne!(sink(&watching), Arc::as_ptr(&kept));
    }

    #[test]
    fn failures_name_the_remedy() {
        let check = |kind, words: &str, is_lasting| {
            let it = watch_failure(&watcher::Error::new(kind).add_path("/srv/t".into()));
            assert!(it.why.starts_with("/srv/t: ") && it.why.contains(words), "{it:?}");
            assert_eq!(it.is_lasting, is_lasting);
        };
        check(ErrorKind::MaxFilesWatch, "max_user_watches", true);
        let full = std::io::Error::from_raw_os_error(TOO_MANY_OPEN);
        check(ErrorKind::Io(full), "max_user_instances", true);
        check(ErrorKind::PathNotFound, "no such file", false);
    }
}
