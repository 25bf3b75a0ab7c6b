//! Hears of changes below directories from the system (inotify and the like).
//!
//! It is told what may have changed, without our own reading; that events were lost; and that not everything is watched
//! any more. What a watcher cannot promise is made up for by who uses it: lost events mean that everything is
//! walked, and all is walked from time to time whatever the watcher says.

use std::path::Path;

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{Config, RecommendedWatcher, Watcher as _};
pub use notify::{Error, ErrorKind, RecursiveMode, event};

/// What is heard.
#[derive(Debug)]
pub enum Heard {
    /// Something may have changed.
    Changed(Event),
    /// Events were lost: anything may have changed, and directories that are new may not be watched.
    Lost,
    /// A part of what is to be watched is not.
    Failed(Error),
}

/// The system's watches on some directories, as long as this lives.
#[derive(Debug)]
pub struct Watcher {
    inner: RecommendedWatcher,
}

impl Watcher {
    /// Starts watching, nothing as yet; `hear` is called on a thread of the watcher's own, and may be for a moment
    /// after the watcher is gone. `follows_links`: below what is watched, too.
    ///
    /// # Errors
    ///
    /// The system has no notifications, or no more of them: poll instead.
    pub fn start(
        follows_links: bool,
        mut hear: impl FnMut(Heard) + Send + 'static,
    ) -> Result<Self, Error> {
        let config = Config::default().with_follow_symlinks(follows_links);
        let hear = move |event: notify::Result<Event>| match event {
            Ok(event) if event.need_rescan() => hear(Heard::Lost),
            Ok(event) if is_change(event.kind) => hear(Heard::Changed(event)),
            Ok(_) => {}
            Err(error) => hear(Heard::Failed(error)),
        };
        Ok(Self { inner: RecommendedWatcher::new(hear, config)? })
    }

    /// Watches a directory; if that is recursive, what is below it too, now and later. Blocks for as long as it takes
    /// to go through all directories.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MaxFilesWatch`]: the system has no room for more watches: poll instead. Others: the path is not
    /// there, or not to be read.
    pub fn watch(&mut self, path: &Path, mode: RecursiveMode) -> Result<(), Error> {
        self.inner.watch(path, mode)
    }

    /// Watches a directory no more.
    ///
    /// # Errors
    ///
    /// It was not watched, or is gone.
    pub fn unwatch(&mut self, path: &Path) -> Result<(), Error> {
        self.inner.unwatch(path)
    }
}

/// Says what is wrong, but for the paths; the error's own words show these as a programmer writes them.
#[must_use]
pub fn reason(error: &Error) -> String {
    match &error.kind {
        ErrorKind::MaxFilesWatch => "the system allows no more watches".to_owned(),
        ErrorKind::PathNotFound => "no such file or directory".to_owned(),
        ErrorKind::WatchNotFound => "there is no such watch".to_owned(),
        ErrorKind::Generic(what) => what.clone(),
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::InvalidConfig(_) => "the watcher cannot be set up".to_owned(),
    }
}

/// Whether an event may mean that a file has changed. Reading, our own included, does not.
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
    fn reading_is_no_change() {
        assert!(!is_change(EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(is_change(EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(is_change(EventKind::Create(CreateKind::Folder)));
        assert!(is_change(EventKind::Modify(ModifyKind::Any)));
    }
}
