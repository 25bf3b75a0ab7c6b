//! The direct walk: reads directory by directory, and looks up entries by means of the directory's
//! descriptor. With full paths, the system would resolve the whole path again for every file.
//!
//! Each thread has one open descriptor. Directories wait in a stack of paths.

use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use super::{Entry, Go, Next, ResolvedPaths, WalkItem, Walker, link_loop, trouble};
use crate::lock::lock;
use crate::spec::Symlinks;
use crate::validator::Stat;

/// Size of the buffer for the names that are read at once, in bytes; a name takes up to 280.
const NAMES_BYTES: usize = 32 * 1024;

/// Minimum length of paths that cannot be opened, in bytes (`PATH_MAX`).
const PATH_BYTES_END: usize = 4_096;

pub(super) fn walk(
    walker: &Walker<'_>,
    starts: &[PathBuf],
    real: &ResolvedPaths,
    handle: &(dyn Fn(WalkItem<'_>) -> Go + Sync),
) {
    let (queue, follow) = (Queue::default(), walker.tree.symlinks == Symlinks::Follow);
    let walk = Walk { walker, real, handle, queue: &queue, follow };
    for start in starts.iter().rev() {
        if let Some(path) = walker.first_path(start)
            && walk.start(path) == Go::Stop
        {
            return;
        }
    }
    if queue.is_empty() {
        return;
    }
    thread::scope(|scope| {
        for _ in 1..walker.threads {
            scope.spawn(|| walk.work());
        }
        walk.work();
    });
}

struct Walk<'a> {
    walker: &'a Walker<'a>,
    real: &'a ResolvedPaths,
    handle: &'a (dyn Fn(WalkItem<'_>) -> Go + Sync),
    queue: &'a Queue,
    follow: bool,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// Whether the path itself is a link.
    is_link: bool,
}

#[derive(Clone, Copy)]
struct Location<'a> {
    directory: BorrowedFd<'a>,
    name: &'a CStr,
    path: &'a Path,
}

impl Walk<'_> {
    /// Visits the path where the walk begins.
    fn start(&self, path: PathBuf) -> Go {
        let Ok(name) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return Go::On };
        let location = Location { directory: CWD, name: &name, path: &path };
        match self.visit(location, FileType::Unknown, true) {
            (Next::Into, is_link) => {
                self.queue.add(&mut vec![Directory { path, is_link }]);
                Go::On
            }
            (Next::Past, _) => Go::On,
            (Next::Stop, _) => Go::Stop,
        }
    }

    fn work(&self) {
        let mut room = vec![MaybeUninit::uninit(); NAMES_BYTES];
        while let Some(directory) = self.queue.next() {
            let turn = Turn(self.queue);
            if self.read(directory, &mut room) == Go::Stop {
                self.queue.stop();
            }
            drop(turn);
        }
    }

    fn read(&self, directory: Directory, room: &mut [MaybeUninit<u8>]) -> Go {
        let Directory { path, is_link } = directory;
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A link that has replaced the directory meanwhile may lead anywhere.
        flags.set(OFlags::NOFOLLOW, !is_link);
        let opened = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(errno) => return self.fail(&path, errno),
        };
        // Not a `PathBuf`, which would search for the start of a name to remove it.
        let mut at = path.as_os_str().as_bytes().to_vec();
        if at.last() != Some(&b'/') {
            at.push(b'/');
        }
        let name_start = at.len();
        let mut found = Vec::new();
        let mut names = RawDir::new(&opened, room);
        while let Some(entry) = names.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => {
                    if self.fail(&path, errno) == Go::Stop {
                        return Go::Stop;
                    }
                    break;
                }
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            at.truncate(name_start);
            at.extend_from_slice(name.to_bytes());
            let path = Path::new(OsStr::from_bytes(&at));
            let location = Location { directory: opened.as_fd(), name, path };
            match self.visit(location, entry.file_type(), false) {
                (Next::Into, is_link) => found.push(Directory { path: path.into(), is_link }),
                (Next::Past, _) => {}
                (Next::Stop, _) => return Go::Stop,
            }
        }
        self.queue.add(&mut found);
        Go::On
    }

    /// Visits an entry; `kind` is its kind by its directory, perhaps unknown. Returns the next
    /// step, and whether the entry is a link.
    fn visit(&self, location: Location<'_>, kind: FileType, is_start: bool) -> (Next, bool) {
        let look = |flags| rustix::fs::statat(location.directory, location.name, flags);
        let mut kind = kind;
        if kind == FileType::Unknown {
            match look(AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                Err(errno) => return (self.fail(location.path, errno).into(), false),
            }
        }
        let is_link = kind.is_symlink();
        if is_link && self.follow {
            match look(AtFlags::empty()) {
                Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                Err(errno) => return (self.fail(location.path, errno).into(), true),
            }
            if kind.is_dir()
                && let Some(above) = self.leads_above(location)
            {
                let trouble = link_loop(location.path.to_path_buf(), above);
                return (self.walker.report(trouble, self.handle).into(), true);
            }
        }
        let stat = || {
            if PATH_BYTES_END <= location.path.as_os_str().len() {
                return Err(Errno::NAMETOOLONG.into());
            }
            let follow = is_link && self.follow;
            let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
            look(flags).map(|stat| stat_of(&stat)).map_err(io::Error::from)
        };
        let entry = Entry { path: location.path, kind, is_link, is_start, stat: &stat };
        (self.walker.visit(&entry, self.real, self.handle), is_link)
    }

    /// Returns the directory above a link to which the link leads back; `None` if it leads
    /// elsewhere.
    fn leads_above<'p>(&self, location: Location<'p>) -> Option<&'p Path> {
        let target =
            rustix::fs::statat(location.directory, location.name, AtFlags::empty()).ok()?;
        let top = &self.walker.tree.directory;
        location.path.ancestors().skip(1).take_while(|above| above.starts_with(top)).find(|above| {
            rustix::fs::stat(*above)
                .is_ok_and(|it| (it.st_dev, it.st_ino) == (target.st_dev, target.st_ino))
        })
    }

    fn fail(&self, path: &Path, errno: Errno) -> Go {
        let error = io::Error::from(errno);
        match trouble(Some(path.to_path_buf()), Some(&error), &error) {
            Some(trouble) => self.walker.report(trouble, self.handle),
            None => Go::On,
        }
    }
}

fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        modified: stat.st_mtime,
        modified_nanos: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        inode: stat.st_ino,
    }
}

/// Directories that wait to be walked.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: Vec<Directory>,
    /// Number of threads that walk a directory, and may add others.
    at_work: usize,
    stopped: bool,
}

impl Queue {
    fn is_empty(&self) -> bool {
        lock(&self.state).waiting.is_empty()
    }

    /// Returns the next directory, for a [`Turn`]; waits for one while other threads may add some.
    /// Returns `None` at the end of the walk.
    fn next(&self) -> Option<Directory> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            if let Some(directory) = state.waiting.pop() {
                state.at_work += 1;
                return Some(directory);
            }
            if state.at_work == 0 {
                return None;
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, found: &mut Vec<Directory>) {
        if !found.is_empty() {
            lock(&self.state).waiting.append(found);
            self.news.notify_all();
        }
    }

    fn stop(&self) {
        lock(&self.state).stopped = true;
        self.news.notify_all();
    }
}

/// One thread's work on one directory. A panic there ends the walk, since the other threads would
/// wait forever.
struct Turn<'q>(&'q Queue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.at_work -= 1;
        state.stopped |= thread::panicking();
        if state.at_work == 0 || state.stopped {
            self.0.news.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::spec::Tree;
    use crate::tree::filter::Filter;

    #[test]
    fn a_link_is_recognized_without_a_kind_in_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("link")).unwrap();
        let root = Tree { symlinks: Symlinks::Follow, ..Tree::new(folder.path()) };
        let filter = Filter::new(&root).unwrap();
        let walker = Walker { tree: &root, filter: &filter, data: Path::new("/none"), threads: 1 };
        let (real, queue) = (ResolvedPaths::of(&walker), Queue::default());
        let handle = |_: WalkItem<'_>| Go::On;
        let walk =
            Walk { walker: &walker, real: &real, handle: &handle, queue: &queue, follow: true };
        let opened = fs::File::open(folder.path()).unwrap();
        for (name, is_link) in [(c"a", false), (c"link", true)] {
            let path = folder.path().join(name.to_str().unwrap());
            let location = Location { directory: opened.as_fd(), name, path: &path };
            assert_eq!(walk.visit(location, FileType::Unknown, false), (Next::Into, is_link));
        }
    }
}
