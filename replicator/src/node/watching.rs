//! How this member notices changes of the trees that it publishes by itself: it hears of them from the system
//! (inotify and the like), or looks for them where that cannot be.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use net::clock;
use net::shutdown::Shutdown;
use tokio::sync::Notify;
use watcher::{ErrorKind, Heard, RecursiveMode, Watcher};

use super::notes::Notes;
use crate::config::TreeConfig;
use crate::status::WatchStatus;
use crate::version::Name;
use crate::watch::{Check, Checked, Deaf, News, Watch};

/// Most directories of a tree that are watched: each takes memory here, for its path twice, and in the system.
pub(super) const DIRECTORIES_MAX: usize = 100_000;
/// What the system says when there are too many watchers.
const TOO_MANY_OPEN: i32 = rustix::io::Errno::MFILE.raw_os_error();
/// Directories that go while they are about to be watched are passed over so often.
const PLACE_TRIES: u32 = 3;
/// File systems that tell of what is changed on this machine alone, by the number that `statfs` says.
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

/// The trees that are published by themselves.
#[derive(Debug)]
pub(super) struct Watching {
    all: BTreeMap<Name, Watched>,
    started: Instant,
    heard: Arc<Notify>,
    stop: Shutdown,
}

/// A tree.
#[derive(Debug)]
struct Watched {
    config: TreeConfig,
    watch: Watch,
    ear: Arc<Ear>,
    /// None while it is being checked, too.
    vigil: Option<Vigil>,
    /// What was wrong the last time, so that it is said once.
    wrong: Option<String>,
}

/// Where a watcher leaves what it hears.
#[derive(Debug)]
struct Ear {
    news: Mutex<News>,
    started: Instant,
    heard: Arc<Notify>,
}

impl Ear {
    fn hear(&self, heard: Heard) {
        let now = clock::monotonic().saturating_duration_since(self.started);
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if *news == News::default() {
            // Whoever knows already comes again by itself.
            self.heard.notify_one();
        }
        match heard {
            Heard::Changed(_) => news.changed = Some((news.changed.map_or(now, |it| it.0), now)),
            Heard::Lost => news.is_lost = true,
            Heard::Failed(error) => news.failure = Some(unwatched(&error)),
        }
    }

    fn take(&self) -> News {
        std::mem::take(&mut self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The system's watches on a tree.
#[derive(Debug)]
struct Vigil {
    _watcher: Watcher,
    /// Device and inode of the directory: another one in its place needs another watch.
    identity: (u64, u64),
}

/// It is to be seen whether a tree is watched.
#[derive(Debug)]
pub(super) struct Checking {
    config: TreeConfig,
    vigil: Option<Vigil>,
    check: Check,
    ear: Arc<Ear>,
    stop: Shutdown,
}

impl Checking {
    /// Whether it takes a while. Otherwise what [`Checking::run`] finds is known already.
    pub(super) fn is_long(&self) -> bool {
        self.check.may_watch
    }

    /// Sees to it that it is, if it may be. Blocks.
    pub(super) fn run(self) -> Found {
        let Self { config, vigil, check, ear, stop } = self;
        if !check.may_watch {
            return Found { config, vigil: None, checked: Checked::Untried };
        }
        let (vigil, checked) = match place(&config.directory, vigil, check, &ear, &stop) {
            Ok((vigil, checked)) => (Some(vigil), checked),
            Err(deaf) => (None, Checked::Deaf(deaf)),
        };
        Found { config, vigil, checked }
    }
}

/// It has been seen whether a tree is watched.
#[derive(Debug)]
pub(super) struct Found {
    config: TreeConfig,
    vigil: Option<Vigil>,
    checked: Checked,
}

impl Watching {
    /// No tree yet; `stop` ends what is done for any.
    pub(super) fn new(started: Instant, stop: Shutdown) -> Self {
        Self { all: BTreeMap::new(), started, heard: Arc::new(Notify::new()), stop }
    }

    /// Takes over which trees there are; all are looked at.
    pub(super) fn set(&mut self, trees: &[TreeConfig], now: Duration) {
        let mut before = std::mem::take(&mut self.all);
        for tree in trees {
            let Some(every) = tree.watch else { continue };
            let known = before.remove(&tree.name).filter(|it| is_watched_alike(&it.config, tree));
            let mut watched = known.unwrap_or_else(|| {
                let (started, heard) = (self.started, self.heard.clone());
                Watched {
                    config: tree.clone(),
                    watch: Watch::new(every, now),
                    ear: Arc::new(Ear { news: Mutex::default(), started, heard }),
                    vigil: None,
                    wrong: None,
                }
            });
            watched.config = tree.clone();
            watched.watch.handle_reload(now);
            self.all.insert(tree.name.clone(), watched);
        }
    }

    /// Is notified once something has been heard.
    pub(super) fn heard(&self) -> Arc<Notify> {
        self.heard.clone()
    }

    pub(super) fn poll_timeout(&self) -> Option<Duration> {
        self.all.values().filter_map(|it| it.watch.poll_timeout()).min()
    }

    /// Takes in what was heard of trees; returns those whose turn it is to be checked.
    pub(super) fn poll(&mut self, now: Duration, notes: &mut Notes) -> Vec<Checking> {
        let mut due = Vec::new();
        for Watched { config, watch, ear, vigil, .. } in self.all.values_mut() {
            if watch.handle_news(ear.take(), now) {
                *vigil = None;
                notes.add(unheard(config, watch), now);
            }
            let Some(check) = watch.poll_check(now) else { continue };
            let (config, vigil) = (config.clone(), vigil.take());
            due.push(Checking { config, vigil, check, ear: ear.clone(), stop: self.stop.clone() });
        }
        due
    }

    /// Takes in what a check has found; returns the tree if it is to be looked at. `is_published`: whether a tree is being
    /// published.
    pub(super) fn handle_checked(
        &mut self,
        found: Found,
        is_published: impl Fn(&Name) -> bool,
        now: Duration,
        notes: &mut Notes,
    ) -> Option<TreeConfig> {
        let Found { config, vigil, checked } = found;
        let watched = self.all.get_mut(&config.name);
        let watched = watched.filter(|it| is_watched_alike(&it.config, &config));
        let Watched { config, watch, vigil: held, .. } = watched?;
        *held = vigil;
        let before = watch.deaf().map(str::to_owned);
        let looks = watch.handle_checked(checked, is_published(&config.name), now);
        match watch.deaf() {
            Some(why) if before.as_deref() != Some(why) => notes.add(unheard(config, watch), now),
            None if before.is_some() => {
                notes.add(format!("changes of {} are heard of again", config.name), now);
            }
            _ => {}
        }
        looks.then(|| config.clone())
    }

    /// A tree has been looked at, and published if it has changed; or something is wrong.
    pub(super) fn handle_looked(
        &mut self,
        name: &Name,
        wrong: Option<String>,
        now: Duration,
        notes: &mut Notes,
    ) {
        let Some(watched) = self.all.get_mut(name) else { return };
        watched.watch.handle_looked(wrong.is_none(), now);
        if let Some(why) = wrong.as_ref().filter(|it| watched.wrong.as_ref() != Some(*it)) {
            notes.add(format!("{name} is not published: {why}"), now);
        }
        watched.wrong = wrong;
    }

    pub(super) fn status(&self, name: &Name) -> Option<WatchStatus> {
        let Watched { config, watch, wrong, .. } = self.all.get(name)?;
        let every = config.watch.unwrap_or_default().as_secs();
        let problem = watch.deaf().map(str::to_owned);
        Some(WatchStatus { every, problem, unpublished: wrong.clone() })
    }
}

/// Whether what watches a tree by some settings does by others: who gets at it, say, does not matter.
fn is_watched_alike(one: &TreeConfig, other: &TreeConfig) -> bool {
    (&one.directory, one.watch) == (&other.directory, other.watch)
}

/// What an administrator is told once.
fn unheard(config: &TreeConfig, watch: &Watch) -> String {
    let every = config.watch.unwrap_or_default().as_secs();
    let (name, why) = (&config.name, watch.deaf().unwrap_or_default());
    format!("changes of {name} are not heard of, it is looked at every {every} s instead: {why}")
}

/// Sees to it that a tree is watched. Blocks.
fn place(
    directory: &Path,
    vigil: Option<Vigil>,
    check: Check,
    ear: &Arc<Ear>,
    stop: &Shutdown,
) -> Result<(Vigil, Checked), Deaf> {
    let gone = |error: std::io::Error| Deaf {
        why: format!("{}: {error}", directory.display()),
        is_lasting: false,
    };
    let top = fs::canonicalize(directory).map_err(gone)?;
    let metadata = fs::metadata(&top).map_err(gone)?;
    let identity = (metadata.dev(), metadata.ino());
    let vigil = vigil.filter(|it| !check.is_anew && it.identity == identity);
    if check.is_before_look || vigil.is_none() {
        survey(&top, DIRECTORIES_MAX, stop)?;
    }
    if let Some(vigil) = vigil {
        return Ok((vigil, Checked::Hearing));
    }
    let mut tries = 1;
    loop {
        let ear = ear.clone();
        let placed = Watcher::start(false, move |heard| ear.hear(heard)).and_then(|mut watcher| {
            watcher.watch(&top, RecursiveMode::Recursive).map(|()| watcher)
        });
        match placed {
            Ok(_watcher) => return Ok((Vigil { _watcher, identity }, Checked::Placed)),
            Err(error) if tries < PLACE_TRIES && matches!(error.kind, ErrorKind::PathNotFound) => {
                tries += 1;
            }
            Err(error) => return Err(unwatched(&error)),
        }
    }
}

/// Why a tree is not watched, and what to do about it.
fn unwatched(error: &watcher::Error) -> Deaf {
    let remedy = match &error.kind {
        ErrorKind::MaxFilesWatch => {
            "raise fs.inotify.max_user_watches with sysctl, then send SIGHUP"
        }
        ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY_OPEN) => {
            "raise fs.inotify.max_user_instances with sysctl, then send SIGHUP"
        }
        _ => "once that is mended, send SIGHUP",
    };
    let at = error.paths.first().map_or_else(String::new, |it| format!("{}: ", it.display()));
    let why = format!("{at}{}; {remedy}", watcher::reason(error));
    Deaf { why, is_lasting: !matches!(error.kind, ErrorKind::PathNotFound) }
}

/// Makes sure that a tree can be watched: no more than so many directories, and none whose changes the system does not
/// hear of. What cannot be read is passed over.
fn survey(top: &Path, most: usize, stop: &Shutdown) -> Result<(), Deaf> {
    let lasting = |why: String| Deaf { why, is_lasting: true };
    let mut known = None;
    let mut found = 1;
    let mut open: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        if stop.is_started() {
            return Err(Deaf { why: "this member is stopping".to_owned(), is_lasting: false });
        }
        let device = fs::symlink_metadata(&dir).map(|it| it.dev()).ok();
        if device != known {
            known = device;
            if let Some(system) = remote(&dir) {
                let what = "its changes on other machines are not told";
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

/// The kind of a file system whose changes are made on other machines as well; `None` for others.
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
        let deaf = survey(dir.path(), 5, &stop).unwrap_err();
        assert!(deaf.is_lasting && deaf.why.contains("more than 5 directories"), "{deaf:?}");
    }

    #[test]
    fn who_gets_at_a_tree_does_not_matter_to_its_watch() {
        let tree = TreeConfig {
            name: Name::new("t").unwrap(),
            directory: "/srv/t".into(),
            watch: Some(Duration::from_secs(10)),
            groups: Default::default(),
            skip_problems: false,
            passage: Default::default(),
        };
        let mut watching = Watching::new(clock::monotonic(), Shutdown::new());
        watching.set(std::slice::from_ref(&tree), Duration::ZERO);
        let ear = |it: &Watching| Arc::as_ptr(&it.all[&tree.name].ear);
        let before = ear(&watching);
        let mut other = tree.clone();
        (other.passage.mode, other.skip_problems) = (0o755, true);
        watching.set(std::slice::from_ref(&other), Duration::ZERO);
        assert_eq!((ear(&watching), &watching.all[&tree.name].config), (before, &other));
        other.directory = "/srv/u".into();
        let kept = watching.all[&tree.name].ear.clone();
        watching.set(&[other], Duration::ZERO);
        assert_ne!(ear(&watching), Arc::as_ptr(&kept));
    }

    #[test]
    fn what_to_do_is_said() {
        let check = |kind, words: &str, is_lasting| {
            let deaf = unwatched(&watcher::Error::new(kind).add_path("/srv/t".into()));
            assert!(deaf.why.starts_with("/srv/t: ") && deaf.why.contains(words), "{deaf:?}");
            assert_eq!(deaf.is_lasting, is_lasting);
        };
        check(ErrorKind::MaxFilesWatch, "max_user_watches", true);
        let full = std::io::Error::from_raw_os_error(TOO_MANY_OPEN);
        check(ErrorKind::Io(full), "max_user_instances", true);
        check(ErrorKind::PathNotFound, "no such file", false);
    }
}
