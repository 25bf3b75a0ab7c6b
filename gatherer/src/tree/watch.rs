//! The watch: receives events of changes below the roots from the system (inotify and the like),
//! and keeps their paths until they have been quiet for a moment.
//!
//! A watcher may miss changes. Therefore everything is walked after events were lost, and every
//! root is also walked at regular intervals.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use essence::annotations::is_source;
use net::clock;
use tokio::sync::Notify;
use watcher::event::{CreateKind, EventKind, ModifyKind, RemoveKind};
use watcher::{Error, ErrorKind, RecursiveMode, WatchEvent};

use crate::lock::lock;
use crate::problems::shortened;
use crate::site::Site;
use crate::site::plan::{Plan, trees};
use crate::spec::{self, Symlinks};
use crate::tree::debounce::{Debounce, Touched};

/// Time from an event of an annotation file until annotations are read: longer than the quiet time
/// of such files.
const ANNOTATIONS_WAIT: Duration = Duration::from_millis(1_100);

/// Maximum length of a path's part in a message, in bytes.
const PATH_BYTES_MAX: usize = 200;

/// Events of the watcher, for the loop that acts on them.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    debounce: Mutex<Debounce>,
    news: Notify,
    /// Whether events were lost, or not acted on, since the last pass began.
    lost: AtomicBool,
    /// Time of the first event of an annotation file since annotations were last read.
    annotations_changed: Mutex<Option<Instant>>,
    /// Why some paths cannot be watched, if the present watcher has failed.
    failed: Mutex<Option<String>>,
}

impl Inbox {
    /// Waits until there has been an event since the last call.
    pub(crate) async fn wait(&self) {
        self.news.notified().await;
    }

    /// Returns when there will be paths to look at; `None` if no event waits.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        lock(&self.debounce).poll_timeout()
    }

    /// Returns the paths to look at; `None` if it is not time yet.
    pub(crate) fn poll_touched(&self, now: Instant) -> Option<Touched> {
        lock(&self.debounce).poll_touched(now)
    }

    /// Returns when to read the annotations again; `None` if there is no need.
    pub(crate) fn annotations_due(&self) -> Option<Instant> {
        Some((*lock(&self.annotations_changed))? + ANNOTATIONS_WAIT)
    }

    /// Returns whether to read the annotations again now; true only once for all events until now.
    pub(crate) fn poll_annotations(&self, now: Instant) -> bool {
        let is_due = self.annotations_due().is_some_and(|due| due <= now);
        if is_due {
            *lock(&self.annotations_changed) = None;
        }
        is_due
    }

    fn touch_annotations(&self) {
        lock(&self.annotations_changed).get_or_insert_with(clock::monotonic);
        self.news.notify_one();
    }

    /// Notes that events were lost, so that everything has to be walked.
    pub(crate) fn overflow(&self) {
        self.lost.store(true, Relaxed);
        lock(&self.debounce).handle_overflow(clock::monotonic());
        self.news.notify_one();
    }

    /// Notes that events could not be acted on.
    pub(crate) fn note_lost(&self) {
        self.lost.store(true, Relaxed);
    }

    /// Stores the error of a watcher that cannot watch everything.
    pub(crate) fn fail(&self, error: &Error) {
        *lock(&self.failed) = Some(describe(error));
        self.overflow();
    }

    /// Returns why some paths cannot be watched; `None` if all can be watched.
    pub(crate) fn failure(&self) -> Option<String> {
        lock(&self.failed).clone()
    }

    /// Forgets the failure, because another watcher is started.
    pub(crate) fn renew(&self) {
        *lock(&self.failed) = None;
    }

    /// Adds a changed path. Returns false if there are too many paths.
    fn touch(&self, path: &Path) -> bool {
        let fits = lock(&self.debounce).handle_path(path, clock::monotonic());
        if !fits {
            self.lost.store(true, Relaxed);
        }
        self.news.notify_one();
        fits
    }
}

/// Device and inode of each watched directory, by the root's directory.
pub(crate) type WatchedInodes = BTreeMap<PathBuf, (u64, u64)>;

/// Watch session of a pass: the watched directories when it began, and the lost events.
#[derive(Clone, Debug)]
pub(crate) struct WatchSession {
    inbox: Arc<Inbox>,
    /// Whether events were lost before this pass began.
    lost: bool,
    watched: WatchedInodes,
}

impl WatchSession {
    /// Begins a pass. Events that are lost from now on concern this pass and the next one.
    pub(crate) fn begin(inbox: &Arc<Inbox>, watched: WatchedInodes) -> Self {
        let lost = inbox.lost.swap(false, Relaxed);
        Self { inbox: inbox.clone(), lost, watched }
    }

    /// Returns whether this pass makes up for lost events of a watch on this root: events were
    /// lost, the watch works, and the root's directory is still the same. Blocks.
    pub(crate) fn has_lost_events(&self, root: &Path) -> bool {
        (self.lost || self.inbox.lost.load(Relaxed))
            && self.inbox.failure().is_none()
            && anchor(root).is_some_and(|it| self.watched.get(root) == Some(&it.identity))
    }

    /// Notes that the pass did not finish, so that the next one makes up for the lost events.
    pub(crate) fn give_up(&self) {
        if self.lost {
            self.inbox.note_lost();
        }
    }
}

/// Describes a watcher's error, whose own text shows paths with escapes.
pub(crate) fn describe(error: &Error) -> String {
    let what = watcher::reason(error);
    match error.paths.first() {
        Some(path) => format!("{}: {what}", shortened(&path.to_string_lossy(), PATH_BYTES_MAX)),
        None => what,
    }
}

/// Settings of a root that the watcher's thread uses.
#[derive(Clone, Debug)]
struct WatchedRoot {
    directory: PathBuf,
    /// The gatherer's own folder; if it lies in the root, by the path that events have.
    data: PathBuf,
    hidden: bool,
    gitignore: bool,
}

/// Returns the path of `data` below `directory`, even if either path contains links; returns `data`
/// itself if it does not lie there.
fn as_seen_from(directory: &Path, data: &Path) -> PathBuf {
    let (top, real) = (std::fs::canonicalize(directory), std::fs::canonicalize(data));
    let below =
        top.ok().zip(real.as_ref().ok()).and_then(|(top, real)| real.strip_prefix(top).ok());
    below.map_or_else(|| data.to_path_buf(), |below| directory.join(below))
}

impl WatchedRoot {
    /// Returns the path to look at after an event at `path`; `None` if `path` is outside the root,
    /// hidden, or in the gatherer's own folder.
    fn relevant_path<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        // A file of rules affects all files in its folder and below.
        let rules = path.file_name().is_some_and(|it| it == ".gitignore" || it == ".ignore");
        let path = if self.gitignore && rules { path.parent()? } else { path };
        let below = path.strip_prefix(&self.directory).ok()?;
        let is_hidden = |part: Component<'_>| matches!(part, Component::Normal(name) if name.as_bytes().first() == Some(&b'.'));
        let wanted =
            !path.starts_with(&self.data) && (self.hidden || !below.components().any(is_hidden));
        wanted.then_some(path)
    }
}

pub(crate) struct Watcher {
    inner: watcher::Watcher,
    site: Arc<Site>,
    /// Files and folders of annotations, absolute.
    annotations: Vec<PathBuf>,
    /// Device and inode of each root at the time when its watch was set, by directory.
    pub(crate) inodes: WatchedInodes,
}

impl Watcher {
    /// Starts a watcher without watches; [`Watcher::update`] sets them. Blocks.
    ///
    /// # Errors
    ///
    /// The system has no notifications, or allows no more instances: poll instead.
    pub(crate) fn start(
        site: Arc<Site>,
        plans: &[Plan],
        annotations: Vec<PathBuf>,
        inbox: Arc<Inbox>,
    ) -> Result<Self, Error> {
        let absolute = |it: PathBuf| std::path::absolute(&it).unwrap_or(it);
        let annotations: Vec<PathBuf> = annotations.into_iter().map(absolute).collect();
        let annotation_paths = annotations.clone();
        let roots: Vec<WatchedRoot> = trees(plans)
            .map(|plan| WatchedRoot {
                directory: plan.tree.directory.clone(),
                data: as_seen_from(&plan.tree.directory, &plan.data),
                hidden: plan.tree.hidden,
                gitignore: plan.tree.gitignore,
            })
            .collect();
        let follow = trees(plans).any(|plan| plan.tree.symlinks == Symlinks::Follow);
        // The watcher's thread may outlive the watcher for a moment: it must not keep the
        // collection open.
        let counters = Arc::downgrade(&site);
        let count = move || {
            if let Some(site) = counters.upgrade() {
                site.metrics.overflows.fetch_add(1, Relaxed);
            }
        };
        let handle = move |event: WatchEvent| match event {
            WatchEvent::Lost => {
                count();
                inbox.overflow();
            }
            WatchEvent::Changed(event) => {
                for path in &event.paths {
                    let is_own = roots.iter().any(|it| path.starts_with(&it.data));
                    if !is_own && concerns_annotations(&annotation_paths, event.kind, path) {
                        inbox.touch_annotations();
                    }
                    let relevant = roots.iter().find_map(|root| root.relevant_path(path));
                    if relevant.is_some_and(|path| !inbox.touch(path)) {
                        count();
                    }
                }
            }
            WatchEvent::Failed(error) => {
                tracing::warn!(%error, "the watcher failed; everything is walked");
                inbox.fail(&error);
            }
        };
        let inner = watcher::Watcher::start(follow, handle)?;
        Ok(Self { inner, site, annotations, inodes: BTreeMap::new() })
    }

    /// Sets a watch on every root that has none, or whose directory was replaced. Blocks while it
    /// goes through all directories. A missing root gets its watch when it is back.
    ///
    /// # Errors
    ///
    /// The system allows no more watches: poll instead.
    pub(crate) fn update(&mut self, plans: &[Plan]) -> Result<(), Error> {
        for (directory, url) in self.watched(plans) {
            let anchor = anchor(&directory);
            if anchor.as_ref().map(|it| it.identity) == self.inodes.get(&directory).copied() {
                continue;
            }
            self.inodes.remove(&directory);
            let Some(anchor) = anchor else { continue };
            // The old watch was on a directory that is gone: perhaps there is nothing to remove.
            drop(self.inner.unwatch(&anchor.path));
            match self.inner.watch(&anchor.path, anchor.mode) {
                Ok(()) => {
                    self.inodes.insert(directory, anchor.identity);
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => {
                    return Err(error);
                }
                Err(error) => {
                    self.site.problem(url, "unwatched", describe(&error));
                }
            }
        }
        Ok(())
    }

    /// Returns the paths to watch, each with its URL: the roots, and annotation files and folders
    /// outside of all roots.
    fn watched(&self, plans: &[Plan]) -> Vec<(PathBuf, String)> {
        let is_in = |path: &Path| trees(plans).any(|it| path.starts_with(&it.tree.directory));
        let annotations = self.annotations.iter().filter(|it| !is_in(it));
        let annotations = annotations.map(|it| (it.clone(), spec::file_url(it)));
        let roots = trees(plans).map(|it| (it.tree.directory.clone(), it.root.url.clone()));
        roots.chain(annotations).collect()
    }

    /// Returns whether a root has gone, come back, or been replaced since its watch was set.
    /// Blocks.
    pub(crate) fn is_outdated(&self, plans: &[Plan]) -> bool {
        self.watched(plans).iter().any(|(directory, _)| {
            anchor(directory).map(|it| it.identity) != self.inodes.get(directory).copied()
        })
    }
}

/// Returns whether an event at `path` may concern annotations: `path` is an annotation file, or a
/// folder below those of annotations. If a folder is moved, or made with files in it, there may be
/// no events for the files.
fn concerns_annotations(annotations: &[PathBuf], kind: EventKind, path: &Path) -> bool {
    let of_folder = match kind {
        EventKind::Create(CreateKind::Folder) | EventKind::Remove(RemoveKind::Folder) => true,
        // The event does not say what was moved. Names with a dot belong to an editor, or are left
        // out.
        EventKind::Modify(ModifyKind::Name(_)) => {
            let name = path.file_name().unwrap_or_default();
            !name.as_bytes().starts_with(b".") && !path.is_file()
        }
        _ => false,
    };
    let below = of_folder || is_source(path);
    annotations.iter().any(|it| path == it || below && path.starts_with(it))
}

/// Path to watch for a root.
struct Anchor {
    path: PathBuf,
    mode: RecursiveMode,
    /// Device and inode of the path: a directory that replaces it needs another watch.
    identity: (u64, u64),
}

fn anchor(root: &Path) -> Option<Anchor> {
    let (path, mode) = if std::fs::metadata(root).ok()?.is_dir() {
        (root, RecursiveMode::Recursive)
    } else {
        // Saving replaces a file, and so ends its watch: watch its folder instead.
        (root.parent()?, RecursiveMode::NonRecursive)
    };
    let metadata = std::fs::metadata(path).ok()?;
    Some(Anchor { path: path.to_path_buf(), mode, identity: (metadata.dev(), metadata.ino()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_own_paths_are_ignored() {
        let mut root = WatchedRoot {
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
            assert_eq!(root.relevant_path(path), expected.then_some(path), "{}", path.display());
        }
        root.gitignore = true;
        let relevant =
            |root: &WatchedRoot, path| root.relevant_path(Path::new(path)).map(Path::to_path_buf);
        assert_eq!(relevant(&root, "/.r/a/.gitignore"), Some("/.r/a".into()));
        assert_eq!(relevant(&root, "/.r/.ignore"), Some("/.r".into()));
        assert_eq!(relevant(&root, "/.r/.git/.ignore"), None);
        root.hidden = true;
        assert!(relevant(&root, "/.r/.git/index").is_some());
    }

    #[test]
    fn the_own_folder_has_the_path_that_events_have() {
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
    fn errors_are_described_in_words() {
        let path = PathBuf::from(format!("/srv/{}/end", "x".repeat(4_000)));
        let text = describe(&Error::new(ErrorKind::MaxFilesWatch).add_path(path));
        assert!(text.starts_with("/srv/xxx") && text.contains("…"), "{text}");
        assert!(text.ends_with("/end: the system allows no more watches"), "{text}");
        assert_eq!(describe(&Error::generic("a \"b\"")), "a \"b\"");
    }

    #[test]
    fn new_and_removed_folders_concern_annotations() {
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
