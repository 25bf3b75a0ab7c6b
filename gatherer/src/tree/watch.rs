//! Hears of changes below the roots from the system (inotify and the like), and keeps the paths until
//! they have been quiet for a moment.
//!
//! What a watcher cannot promise is made up for elsewhere: lost events mean that everything is walked,
//! and every root is walked from time to time whatever the watcher says.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use essence::annotations::Sort;
use net::clock;
use tokio::sync::Notify;
use watcher::event::{CreateKind, EventKind, ModifyKind, RemoveKind};
use watcher::{Error, ErrorKind, Heard, RecursiveMode};

use crate::lock::lock;
use crate::problems::shortened;
use crate::site::Site;
use crate::site::plan::{Plan, trees};
use crate::spec::{self, Symlinks};
use crate::tree::debounce::{Debounce, Touched};

/// How long after something has happened to a file of annotations these are read: later than it is quiet, if
/// nothing more happens.
const ANNOTATIONS_WAIT: Duration = Duration::from_millis(1_100);

/// How much of a path a message quotes, in bytes.
const PATH_BYTES_MAX: usize = 200;

/// Where the watcher leaves what it hears, for the one who acts on it.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    debounce: Mutex<Debounce>,
    news: Notify,
    /// Events were lost, or not acted on, since the last pass began.
    lost: AtomicBool,
    /// When something happened to a file of annotations, the first time since that was seen to.
    annotated: Mutex<Option<Instant>>,
    /// Why a part of what is to be watched is not, since the watcher was started.
    failed: Mutex<Option<String>>,
}

impl Inbox {
    /// Waits until something has been heard since the last call.
    pub(crate) async fn heard(&self) {
        self.news.notified().await;
    }

    /// Returns when there will be something to look at.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        lock(&self.debounce).poll_timeout()
    }

    /// Returns what to look at, if its time has come.
    pub(crate) fn poll_touched(&self, now: Instant) -> Option<Touched> {
        lock(&self.debounce).poll_touched(now)
    }

    /// Returns when the annotations are to be read again, if they are.
    pub(crate) fn annotated(&self) -> Option<Instant> {
        Some((*lock(&self.annotated))? + ANNOTATIONS_WAIT)
    }

    /// Returns whether the time has come to read the annotations again; once for all that happened.
    pub(crate) fn poll_annotated(&self, now: Instant) -> bool {
        let is_due = self.annotated().is_some_and(|due| due <= now);
        if is_due {
            *lock(&self.annotated) = None;
        }
        is_due
    }

    fn touch_annotations(&self) {
        lock(&self.annotated).get_or_insert_with(clock::monotonic);
        self.news.notify_one();
    }

    /// Notes that events were lost: everything has to be looked at.
    pub(crate) fn overflow(&self) {
        self.lost.store(true, Relaxed);
        lock(&self.debounce).handle_overflow(clock::monotonic());
        self.news.notify_one();
    }

    /// Notes that events were heard and could not be acted on.
    pub(crate) fn note_lost(&self) {
        self.lost.store(true, Relaxed);
    }

    /// Takes what a watcher says that cannot watch everything.
    pub(crate) fn fail(&self, error: &Error) {
        *lock(&self.failed) = Some(in_words(error));
        self.overflow();
    }

    /// Why a part of what is to be watched is not, if that is so.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failed).clone()
    }

    /// Notes that another watcher is started.
    pub(crate) fn renew(&self) {
        *lock(&self.failed) = None;
    }

    /// Takes a path; returns false when it is one too many.
    fn touch(&self, path: &Path) -> bool {
        let fits = lock(&self.debounce).handle_path(path, clock::monotonic());
        if !fits {
            self.lost.store(true, Relaxed);
        }
        self.news.notify_one();
        fits
    }
}

/// Device and inode of what was watched for each root, by the root's directory.
pub(crate) type Places = BTreeMap<PathBuf, (u64, u64)>;

/// What a pass knows of a watch that has stood since before the pass before it.
#[derive(Clone, Debug)]
pub(crate) struct Vigil {
    inbox: Arc<Inbox>,
    /// Whether events were lost before this pass began.
    lost: bool,
    placed: Places,
}

impl Vigil {
    /// Begins a pass: what is lost from here on counts for the next one too.
    pub(crate) fn begin(inbox: &Arc<Inbox>, placed: Places) -> Self {
        let lost = inbox.lost.swap(false, Relaxed);
        Self { inbox: inbox.clone(), lost, placed }
    }

    /// Whether this pass stands in for events that were lost under a watch of this root, which has
    /// not been replaced meanwhile. Blocks.
    pub(crate) fn has_lost_events(&self, root: &Path) -> bool {
        (self.lost || self.inbox.lost.load(Relaxed))
            && self.inbox.failure().is_none()
            && anchor(root).is_some_and(|it| self.placed.get(root) == Some(&it.identity))
    }

    /// Notes that the pass has not come to its end.
    pub(crate) fn give_up(&self) {
        if self.lost {
            self.inbox.note_lost();
        }
    }
}

/// Says what a watcher's error is; its own words show paths as a programmer writes them.
pub(crate) fn in_words(error: &Error) -> String {
    let what = watcher::reason(error);
    match error.paths.first() {
        Some(path) => format!("{}: {what}", shortened(&path.to_string_lossy(), PATH_BYTES_MAX)),
        None => what,
    }
}

/// A root as the watcher's thread needs it.
#[derive(Clone, Debug)]
struct Watched {
    directory: PathBuf,
    /// The gatherer's own folder: if it lies in the root, as what happens in it is named.
    data: PathBuf,
    hidden: bool,
    gitignore: bool,
}

/// Returns the path of `data` as it is reached from `directory`, whatever links either leads through;
/// `data` itself if it does not lie there.
fn as_seen_from(directory: &Path, data: &Path) -> PathBuf {
    let (top, real) = (std::fs::canonicalize(directory), std::fs::canonicalize(data));
    let below =
        top.ok().zip(real.as_ref().ok()).and_then(|(top, real)| real.strip_prefix(top).ok());
    below.map_or_else(|| data.to_path_buf(), |below| directory.join(below))
}

impl Watched {
    /// Returns what is to be looked at when something happens at `path`, if that is of interest: it
    /// lies in the root, and is neither hidden nor the gatherer's own.
    fn place<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        // What says which files count concerns all that lie beside and below it.
        let rules = path.file_name().is_some_and(|it| it == ".gitignore" || it == ".ignore");
        let path = if self.gitignore && rules { path.parent()? } else { path };
        let below = path.strip_prefix(&self.directory).ok()?;
        let is_hidden = |part: Component<'_>| matches!(part, Component::Normal(name) if name.as_bytes().first() == Some(&b'.'));
        let wanted =
            !path.starts_with(&self.data) && (self.hidden || !below.components().any(is_hidden));
        wanted.then_some(path)
    }
}

/// The system's watches on all roots.
pub(crate) struct Watcher {
    inner: watcher::Watcher,
    site: Arc<Site>,
    /// Files and folders of annotations, absolute.
    annotations: Vec<PathBuf>,
    /// The device and inode of each root when its watch was set, by directory.
    placed: Places,
}

impl Watcher {
    /// Starts watching; the watches are placed by [`Watcher::place`]. Blocks.
    ///
    /// # Errors
    ///
    /// The system has no notifications, or no more of them: poll instead.
    pub(crate) fn start(
        site: Arc<Site>,
        plans: &[Plan],
        annotations: Vec<PathBuf>,
        inbox: Arc<Inbox>,
    ) -> Result<Self, Error> {
        let absolute = |it: PathBuf| std::path::absolute(&it).unwrap_or(it);
        let annotations: Vec<PathBuf> = annotations.into_iter().map(absolute).collect();
        let annotated = annotations.clone();
        let watched: Vec<Watched> = trees(plans)
            .map(|plan| Watched {
                directory: plan.tree.directory.clone(),
                data: as_seen_from(&plan.tree.directory, &plan.data),
                hidden: plan.tree.hidden,
                gitignore: plan.tree.gitignore,
            })
            .collect();
        let follow = trees(plans).any(|plan| plan.tree.symlinks == Symlinks::Follow);
        // The watcher's thread may outlive the watcher by a moment: it must not keep the collection
        // open.
        let counters = Arc::downgrade(&site);
        let count = move || {
            if let Some(site) = counters.upgrade() {
                site.metrics.overflows.fetch_add(1, Relaxed);
            }
        };
        let hear = move |heard: Heard| match heard {
            Heard::Lost => {
                count();
                inbox.overflow();
            }
            Heard::Changed(event) => {
                for path in &event.paths {
                    let is_own = watched.iter().any(|it| path.starts_with(&it.data));
                    if !is_own && concerns_annotations(&annotated, event.kind, path) {
                        inbox.touch_annotations();
                    }
                    let place = watched.iter().find_map(|root| root.place(path));
                    if place.is_some_and(|place| !inbox.touch(place)) {
                        count();
                    }
                }
            }
            Heard::Failed(error) => {
                tracing::warn!(%error, "the watcher failed; everything is walked");
                inbox.fail(&error);
            }
        };
        let inner = watcher::Watcher::start(follow, hear)?;
        Ok(Self { inner, site, annotations, placed: BTreeMap::new() })
    }

    /// Places a watch on every root that has none, or that another directory has taken the place of.
    /// Blocks for as long as it takes to go through all directories. A root that is not there gets
    /// its watch when it is back.
    ///
    /// # Errors
    ///
    /// The system has no room for more watches: poll instead.
    pub(crate) fn place(&mut self, plans: &[Plan]) -> Result<(), Error> {
        for (directory, url) in self.watched(plans) {
            let anchor = anchor(&directory);
            if anchor.as_ref().map(|it| it.identity) == self.placed.get(&directory).copied() {
                continue;
            }
            self.placed.remove(&directory);
            let Some(anchor) = anchor else { continue };
            // The old watch is of a directory that is gone: there may be nothing to remove.
            drop(self.inner.unwatch(&anchor.path));
            match self.inner.watch(&anchor.path, anchor.mode) {
                Ok(()) => {
                    self.placed.insert(directory, anchor.identity);
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                    return Err(error);
                }
                Err(error) => {
                    self.site.problem(url, "unwatched", in_words(&error));
                }
            }
        }
        Ok(())
    }

    /// Returns what is to be watched, each with its URL: the roots, and annotations that lie in none.
    fn watched(&self, plans: &[Plan]) -> Vec<(PathBuf, String)> {
        let is_in = |path: &Path| trees(plans).any(|it| path.starts_with(&it.tree.directory));
        let annotations = self.annotations.iter().filter(|it| !is_in(it));
        let annotations = annotations.map(|it| (it.clone(), spec::file_url(it)));
        let roots = trees(plans).map(|it| (it.tree.directory.clone(), it.url.clone()));
        roots.chain(annotations).collect()
    }

    /// Returns what is watched for each root.
    pub(crate) fn places(&self) -> &Places {
        &self.placed
    }

    /// Whether a root has gone, come back, or been replaced since its watch was placed. Blocks.
    pub(crate) fn is_misplaced(&self, plans: &[Plan]) -> bool {
        self.watched(plans).iter().any(|(directory, _)| {
            anchor(directory).map(|it| it.identity) != self.placed.get(directory).copied()
        })
    }
}

/// Whether what has happened at `path` may concern annotations: it happened to a file of them, or to a folder
/// below theirs, of whose files nothing need be heard when it is moved, or made with some in it.
fn concerns_annotations(annotated: &[PathBuf], kind: EventKind, path: &Path) -> bool {
    let of_folder = match kind {
        EventKind::Create(CreateKind::Folder) | EventKind::Remove(RemoveKind::Folder) => true,
        // Nobody says what was moved. What begins with a dot is an editor's, or left out.
        EventKind::Modify(ModifyKind::Name(_)) => {
            let name = path.file_name().unwrap_or_default();
            !name.as_bytes().starts_with(b".") && !path.is_file()
        }
        _ => false,
    };
    let below = of_folder || Sort::of(path).is_some();
    annotated.iter().any(|it| path == it || below && path.starts_with(it))
}

/// What to watch for a root.
struct Anchor {
    path: PathBuf,
    mode: RecursiveMode,
    /// Device and inode: another directory in this one's place needs another watch.
    identity: (u64, u64),
}

fn anchor(root: &Path) -> Option<Anchor> {
    let (path, mode) = if std::fs::metadata(root).ok()?.is_dir() {
        (root, RecursiveMode::Recursive)
    } else {
        // A file is replaced when it is saved, and its watch with it: watch its name.
        (root.parent()?, RecursiveMode::NonRecursive)
    };
    let metadata = std::fs::metadata(path).ok()?;
    Some(Anchor { path: path.to_path_buf(), mode, identity: (metadata.dev(), metadata.ino()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_own_paths_are_of_no_interest() {
        let mut root = Watched {
            directory: "/.r".into(),
            data: "/.r/data".into(),
            hidden: false,
            gitignore: false,
        };
        for (path, expected) in [
            ("/.r/a", true),
            ("/.r", true),
            ("/.r/.git/index", false),
            ("/.r/a/.b", false),
            ("/.r/data/x", false),
            ("/other", false),
            ("/.r/a/.gitignore", false),
        ] {
            let path = Path::new(path);
            assert_eq!(root.place(path), expected.then_some(path), "{}", path.display());
        }
        root.gitignore = true;
        let place = |root: &Watched, path| root.place(Path::new(path)).map(Path::to_path_buf);
        assert_eq!(place(&root, "/.r/a/.gitignore"), Some("/.r/a".into()));
        assert_eq!(place(&root, "/.r/.ignore"), Some("/.r".into()));
        assert_eq!(place(&root, "/.r/.git/.ignore"), None);
        root.hidden = true;
        assert!(place(&root, "/.r/.git/index").is_some());
    }

    #[test]
    fn our_own_folder_is_known_by_the_name_that_events_have() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("home/data")).unwrap();
        std::os::unix::fs::symlink("home", at("nfs")).unwrap();
        let check = |directory: &str, data: &str, expected: &str| {
            assert_eq!(as_seen_from(&at(directory), &at(data)), at(expected));
        };
        check("home", "home/data", "home/data");
        check("nfs", "home/data", "nfs/data");
        check("home", "nfs/data", "home/data");
        check("home/data", "home", "home");
        check("none", "nfs/data", "nfs/data");
    }

    #[test]
    fn an_error_is_told_in_words() {
        let path = PathBuf::from(format!("/srv/{}/end", "x".repeat(4_000)));
        let said = in_words(&Error::new(ErrorKind::MaxFilesWatch).add_path(path));
        assert!(said.starts_with("/srv/xxx") && said.contains("…"), "{said}");
        assert!(said.ends_with("/end: the system allows no more watches"), "{said}");
        assert_eq!(in_words(&Error::generic("a \"b\"")), "a \"b\"");
    }

    #[test]
    fn folders_that_come_and_go_concern_annotations() {
        use watcher::event::{DataChange, RenameMode};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("notes/sub")).unwrap();
        std::fs::write(at("notes/x.txt"), "x").unwrap();
        let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let gone = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        let written = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        for (kind, name, expected) in [
            (written, "notes/a.soif", true),
            (written, "notes/a.txt", false),
            (written, "notes", true),
            (renamed, "notes/sub", true),
            (gone, "notes/moved", true),
            (renamed, "notes/x.txt", false),
            (gone, "notes/.x.swp", false),
            (renamed, "elsewhere", false),
            (EventKind::Create(CreateKind::Folder), "notes/new", true),
            (EventKind::Create(CreateKind::File), "notes/new", false),
            (EventKind::Remove(RemoveKind::Folder), "notes/old", true),
        ] {
            let concerns = concerns_annotations(&[at("notes")], kind, &at(name));
            assert_eq!(concerns, expected, "{kind:?} {name}");
        }
    }
}
