//! The file system, as trees are written to it: one thin layer, so that tests can stand in for the disk and
//! drop what was not made durable.
//!
//! Reading goes past it: what was written can be read, durable or not.

#[cfg(test)]
pub(super) mod faulty;

use std::fs::{self, DirBuilder, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, symlink,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::passage;

/// What is written at once, in bytes.
const WRITE_BYTES: usize = 256 << 10;
/// So many zeros are left out, in bytes: what file systems can do without.
const HOLE_BYTES_MIN: usize = 4096;

/// What trees are written to.
#[derive(Clone, Debug, Default)]
pub(super) enum Disk {
    /// The operating system's.
    #[default]
    System,
    /// The same, where nothing has to outlast a power cut.
    #[cfg(test)]
    Hasty,
    /// The same with faults.
    #[cfg(test)]
    Faulty(Arc<faulty::Faulty>),
}

/// Something that is done to names or files.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "who stands in for the disk reads it, in tests alone")
)]
#[derive(Clone, Copy, Debug)]
pub(super) enum Act<'a> {
    Create(&'a Path),
    Write { path: &'a Path, at: u64, bytes: &'a [u8] },
    SetLength { path: &'a Path, bytes: u64 },
    Seal(&'a Path),
    MakeDirectory(&'a Path),
    Link { from: &'a Path, to: &'a Path },
    Symlink { target: &'a Path, path: &'a Path },
    Rename { from: &'a Path, to: &'a Path },
    Remove(&'a Path),
    Sync(&'a Path),
    SyncAll,
}

impl Disk {
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "there are faults in tests alone"))]
    fn act<T>(&self, act: Act<'_>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        #[cfg(test)]
        if let Self::Faulty(faulty) = self {
            return faulty.act(act, work);
        }
        // It says what is done to who stands in for the disk.
        let _ = act;
        work()
    }

    /// Makes a file that is not there, to write: the owner's alone until it is sealed.
    pub(super) fn create(&self, path: &Path) -> io::Result<Output> {
        let file = self.act(Act::Create(path), || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(passage::FILE).open(path)
        })?;
        Ok(Output::new(self, path, file, 0))
    }

    /// Opens a file to write on at its end; makes it if it is not there.
    pub(super) fn open(&self, path: &Path) -> io::Result<Output> {
        if !path.exists() {
            return self.create(path);
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        Ok(Output::new(self, path, file, length))
    }

    /// Makes a folder of this mode, whatever the umask.
    pub(super) fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.act(Act::MakeDirectory(path), || {
            DirBuilder::new().mode(passage::FOLDER).create(path)?;
            fs::set_permissions(path, Permissions::from_mode(mode))
        })
    }

    pub(super) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(Act::Link { from, to }, || fs::hard_link(from, to))
    }

    pub(super) fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.act(Act::Symlink { target, path }, || symlink(target, path))
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(Act::Rename { from, to }, || fs::rename(from, to))
    }

    /// Removes what there is under a name, with all that is below it; nothing if there is nothing.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        self.remove_while(path, &|| true).map(drop)
    }

    /// The same as long as it is to go on, which is asked before each file; returns whether all is gone. Somebody else
    /// may be removing it, too.
    pub(super) fn remove_while(&self, path: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<bool> {
        let removed = self.remove_there(path, goes_on);
        removed.or_else(|it| if it.kind() == io::ErrorKind::NotFound { Ok(true) } else { Err(it) })
    }

    fn remove_there(&self, path: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<bool> {
        let found = fs::symlink_metadata(path)?;
        if !goes_on() {
            return Ok(false);
        }
        if !found.is_dir() {
            return self.act(Act::Remove(path), || fs::remove_file(path)).map(|()| true);
        }
        for entry in fs::read_dir(path)? {
            if !self.remove_while(&entry?.path(), goes_on)? {
                return Ok(false);
            }
        }
        self.act(Act::Remove(path), || fs::remove_dir(path)).map(|()| true)
    }

    /// Whether what is durable is only played.
    fn is_played(&self) -> bool {
        !matches!(self, Self::System)
    }

    /// Makes a file durable, or which names a directory has.
    pub(super) fn sync(&self, path: &Path) -> io::Result<()> {
        self.act(Act::Sync(path), || {
            if self.is_played() { Ok(()) } else { fs::File::open(path)?.sync_all() }
        })
    }

    /// Makes all durable that was done on the file system of `path`.
    pub(super) fn sync_all(&self, path: &Path) -> io::Result<()> {
        self.act(Act::SyncAll, || {
            if self.is_played() { Ok(()) } else { Ok(rustix::fs::syncfs(fs::File::open(path)?)?) }
        })
    }
}

/// A file that is written from some place on.
#[derive(Debug)]
pub(super) struct Output {
    disk: Disk,
    path: PathBuf,
    file: Arc<fs::File>,
    at: u64,
    buffer: Vec<u8>,
}

impl Output {
    fn new(disk: &Disk, path: &Path, file: fs::File, at: u64) -> Self {
        let (disk, path) = (disk.clone(), path.to_owned());
        Self { disk, path, file: Arc::new(file), at, buffer: Vec::new() }
    }

    /// The file itself, to be read from.
    pub(super) fn file(&self) -> &Arc<fs::File> {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next byte goes.
    pub(super) fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Adds bytes; they can be read once they are flushed.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.flush() }
    }

    /// The same for what may be large and mostly empty: zeros take no room on the disk.
    pub(super) fn write_sparse(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() < HOLE_BYTES_MIN || bytes.iter().any(|it| *it != 0) {
            return self.write(bytes);
        }
        self.flush()?;
        self.set_length(self.at + bytes.len() as u64)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let (path, at, bytes) = (&*self.path, self.at, &*self.buffer);
        if bytes.is_empty() {
            return Ok(());
        }
        let write = || self.file.write_all_at(bytes, at);
        self.disk.act(Act::Write { path, at, bytes }, write)?;
        self.at += bytes.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Drops what lies behind so many bytes, or has zeros up to there, and goes on there.
    pub(super) fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.buffer.clear();
        let path = &*self.path;
        self.disk.act(Act::SetLength { path, bytes }, || self.file.set_len(bytes))?;
        self.at = bytes;
        Ok(())
    }

    /// Goes on at the start; what is there stays until it is written over.
    pub(super) fn rewind(&mut self) {
        self.buffer.clear();
        self.at = 0;
    }

    /// Shares all that another file has, as it is now; returns whether the file system can do so. The file is empty.
    pub(super) fn share(&mut self, source: &fs::File) -> io::Result<bool> {
        if !matches!(self.disk, Disk::System)
            || rustix::fs::ioctl_ficlone(&self.file, source).is_err()
        {
            return Ok(false);
        }
        self.at = self.file.metadata()?.len();
        Ok(true)
    }

    /// Fills the file, which is empty, with all that another has.
    pub(super) fn copy_from(&mut self, source: &fs::File) -> io::Result<u64> {
        if self.share(source)? {
            return Ok(self.at);
        }
        let mut bytes = vec![0; WRITE_BYTES];
        let mut read_from = 0;
        loop {
            let read = source.read_at(&mut bytes, read_from)?;
            if read == 0 {
                break;
            }
            read_from += read as u64;
            self.write(bytes.get(..read).unwrap_or_default())?;
        }
        self.flush()?;
        Ok(self.at)
    }

    /// Ends the file: it has this mode and belongs to this group, if any is said, and was changed so many seconds after
    /// 1970.
    pub(super) fn seal(&mut self, mode: u32, group: Option<u32>, modified: i64) -> io::Result<()> {
        self.flush()?;
        let path = &*self.path;
        self.disk.act(Act::Seal(path), || {
            if group.is_some() {
                fchown(&self.file, None, group)?;
            }
            self.file.set_permissions(Permissions::from_mode(mode))?;
            self.file.set_times(FileTimes::new().set_modified(time(modified)))
        })
    }
}

/// The moment so many seconds after 1970, or as many before.
fn time(seconds: i64) -> SystemTime {
    let from_1970 = Duration::from_secs(seconds.unsigned_abs());
    let found = if seconds < 0 {
        UNIX_EPOCH.checked_sub(from_1970)
    } else {
        UNIX_EPOCH.checked_add(from_1970)
    };
    found.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_may_remove_the_same() {
        for _ in 0..50 {
            let top = tempfile::tempdir().unwrap();
            let dir = top.path().join("dir");
            for number in 0..50 {
                let below = dir.join(format!("{}", number % 5));
                fs::create_dir_all(&below).unwrap();
                fs::write(below.join(format!("{number}")), "").unwrap();
            }
            let remove = || Disk::System.remove(&dir).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(remove);
                remove();
            });
            assert!(!dir.exists());
        }
    }
}
