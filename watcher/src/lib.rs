//! The watcher of directories: reports changes by the system's notifications, such as inotify.
//!
//! It reports paths that may have changed (not reads), lost events, and parts that are not watched
//! any more. The caller has to make up for the gaps: it walks everything after lost events, and
//! from time to time.

use std::path::Path;

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{Config, RecommendedWatcher, Watcher as _};
pub use notify::{Error, ErrorKind, RecursiveMode, event};

/// A report of the watcher.
#[derive(Debug)]
pub enum WatchEvent {
    /// Something may have changed.
    Changed(Event),
    /// Events were lost: anything may have changed, and new directories may not be watched.
    Lost,
    /// A part of the directories is not watched.
    Failed(Error),
}

/// The system's watches on some directories; dropping this ends them.
#[derive(Debug)]
pub struct Watcher {
    inner: RecommendedWatcher,
}

impl Watcher {
    /// Starts a watcher without directories. It calls `report` on its own thread, for a moment even
    /// after it is dropped. With `follows_links`, it follows links below watched directories.
    ///
    /// # Errors
    ///
    /// The system has no notifications, or allows no more instances: poll instead.
    pub fn start(
        follows_links: bool,
        mut report: impl FnMut(WatchEvent) + Send + 'static,
    ) -> Result<Self, Error> {
        let config = Config::default().with_follow_symlinks(follows_links);
        let handle = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() => report(WatchEvent::Lost),
            Ok(event) if is_change(event.kind) => report(WatchEvent::Changed(event)),
            Ok(_) => {}
            Err(error) => report(WatchEvent::Failed(error)),
        };
        Ok(Self { inner: RecommendedWatcher::new(handle, config)? })
    }

    /// Watches a directory; in recursive mode also everything below it, now and later. Then it
    /// blocks for a walk through all directories.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MaxFilesWatch`] if the system allows no more watches: poll instead. Other kinds
    /// if the path does not exist or cannot be read.
    pub fn watch(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), Error> {
        self.inner.watch(path, mode)
    }

    /// Ends the watch of a directory.
    ///
    /// # Errors
    ///
    /// The directory was not watched, or is gone.
    pub fn unwatch(&mut self, path: &Path) -> Result<(), Error> {
        self.inner.unwatch(path)
    }
}

/// Returns the reason of an error, without its paths.
#[must_use]
pub fn reason(error: &Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => "the system allows no more watches".to_owned(),
        ErrorKind::PathNotFound => "no such file or directory".to_owned(),
        ErrorKind::WatchNotFound => "the path is not watched".to_owned(),
        ErrorKind::Generic(what) => what.clone(),
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::InvalidConfig(_) => "the watcher cannot be set up".to_owned(),
    }
}

/// Returns whether an event may mean that a file has changed; false for reads.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write))
        | EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
        EventKind::Access(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, ModifyKind};

    use super::*;

    #[test]
    fn a_read_is_not_a_change() {
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(is_change(EventKind::Create(CreateKind::Folder)));
        assert!(is_change(EventKind::Modify(ModifyKind::Any)));
    }
}
