//! Access to the disk: a thin layer over the file system, so that tests can replace the disk by one
//! with faults, which drops data that was not made durable, or fails as real disks do.
//!
//! Offsets and lengths are in bytes. Errors are the system's; unless stated otherwise, nothing was
//! done. Without a replacement, a call costs one more comparison.
//!
//! Source: ours; for the possible states after a power cut, Pillai et al., "All file systems are
//! not created equal" (OSDI 2014).

pub mod faulty;
pub mod lock;

use std::fs::{self, DirBuilder, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, symlink,
};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use faulty::Faulty;

/// The default mode of new files; the umask reduces it.
pub const MODE: u32 = 0o666;

/// The disk that files are written to.
#[derive(Clone, Debug, Default)]
pub enum Disk {
    /// The operating system's.
    #[default]
    System,
    /// The operating system's, without waits for durability: for tests without power cuts.
    Hasty,
    /// The operating system's with faults, for tests.
    Faulty(Arc<Faulty>),
}

/// An operation on names or files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'a> {
    Open { path: &'a Path, to_write: bool },
    Create(&'a Path),
    Write { file: &'a File, at: u64, bytes: &'a [u8] },
    SetLength { file: &'a File, bytes: u64 },
    Seal(&'a File),
    MakeDirectory(&'a Path),
    Link { from: &'a Path, to: &'a Path },
    Symlink { target: &'a Path, path: &'a Path },
    Rename { from: &'a Path, to: &'a Path },
    Remove(&'a Path),
    Sync(&'a File),
    SyncAll,
}

impl Disk {
    fn act<T>(&self, act: Act<'_>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self {
            Self::Faulty(faulty) => faulty.act(act, work),
            Self::System | Self::Hasty => work(),
        }
    }

    /// Performs a sync, unless the disk skips or simulates syncs.
    fn sync_by(&self, act: Act<'_>, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::System => work(),
            Self::Hasty => Ok(()),
            Self::Faulty(faulty) => faulty.act(act, || Ok(())),
        }
    }

    fn file(&self, path: &Path, act: Act<'_>, options: &mut OpenOptions) -> io::Result<File> {
        options.read(true);
        let open = || options.open(path);
        let (real, id) = match self {
            Self::Faulty(faulty) => (faulty.act(act, open)?, faulty.id(path)),
            Self::System | Self::Hasty => (open()?, 0),
        };
        Ok(File { real: Arc::new(real), disk: self.clone(), id })
    }

    fn create_with(&self, path: &Path, mode: u32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        self.file(path, Act::Create(path), &mut options)
    }

    /// Makes an empty file, or empties the one that is there, to read and write.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        self.create_with(path, MODE)
    }

    /// Makes a file with this mode, to read and write.
    ///
    /// # Errors
    ///
    /// The name exists, even as a link; the system's.
    pub fn create_new(&self, path: &Path, mode: u32) -> io::Result<File> {
        let options = &mut OpenOptions::new();
        self.file(path, Act::Create(path), options.write(true).create_new(true).mode(mode))
    }

    /// Opens a file to read and write.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let act = Act::Open { path, to_write: true };
        self.file(path, act, OpenOptions::new().write(true))
    }

    /// Opens a file to read, or a directory to sync.
    pub fn open_to_read(&self, path: &Path) -> io::Result<File> {
        self.file(path, Act::Open { path, to_write: false }, &mut OpenOptions::new())
    }

    /// Replaces the file at `path` by one with these bytes, durably. They are first written to
    /// `new`, in the same directory, with this mode less the umask. After a failure `new` may
    /// remain.
    ///
    /// # Errors
    ///
    /// The system's: the file at `path` is unchanged, unless only the last sync failed.
    pub fn replace(&self, path: &Path, new: &Path, mode: u32, bytes: &[u8]) -> io::Result<File> {
        let file = self.create_with(new, mode)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        self.rename(new, path)?;
        self.sync_name(path)?;
        Ok(file)
    }

    /// Makes a directory with this mode, whatever the umask; `None`: with the umask's default.
    pub fn make_directory(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        self.act(Act::MakeDirectory(path), || {
            DirBuilder::new().mode(mode.map_or(0o777, |_| 0o700)).create(path)?;
            mode.map_or(Ok(()), |it| fs::set_permissions(path, Permissions::from_mode(it)))
        })
    }

    /// Makes a directory and its missing parents, durably, each as [`Disk::make_directory`] does.
    /// Existing ones are not changed.
    pub fn make_directories(&self, dir: &Path, mode: Option<u32>) -> io::Result<()> {
        let is_named = |it: &&Path| !it.as_os_str().is_empty() && !it.exists();
        let missing: Vec<&Path> = dir.ancestors().take_while(is_named).collect();
        for path in missing.into_iter().rev() {
            match self.make_directory(path, mode) {
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
                made => made?,
            }
            self.sync_name(path)?;
        }
        Ok(())
    }

    /// Gives a file one more name.
    pub fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(Act::Link { from, to }, || fs::hard_link(from, to))
    }

    /// Makes a symbolic link at `path`.
    pub fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.act(Act::Symlink { target, path }, || symlink(target, path))
    }

    /// Renames a file or directory. An existing file of that name is replaced.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.act(Act::Rename { from, to }, || fs::rename(from, to))
    }

    /// Removes a file.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.act(Act::Remove(path), || fs::remove_file(path))
    }

    /// Removes a file or directory with all that is below it; nothing if it does not exist.
    pub fn remove_tree(&self, path: &Path) -> io::Result<()> {
        self.remove_tree_while(path, &|| true).map(drop)
    }

    /// Removes a tree. Stops when `goes_on`, called before each removal, returns false; returns
    /// whether all is gone. Another process may remove it at the same time.
    ///
    /// # Errors
    ///
    /// The system's: some of it is gone.
    pub fn remove_tree_while(&self, path: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<bool> {
        let removed = self.remove_there(path, goes_on);
        removed.or_else(|it| if it.kind() == io::ErrorKind::NotFound { Ok(true) } else { Err(it) })
    }

    fn remove_there(&self, path: &Path, goes_on: &dyn Fn() -> bool) -> io::Result<bool> {
        let found = fs::symlink_metadata(path)?;
        if !goes_on() {
            return Ok(false);
        }
        if !found.is_dir() {
            return self.remove_file(path).map(|()| true);
        }
        for entry in fs::read_dir(path)? {
            if !self.remove_tree_while(&entry?.path(), goes_on)? {
                return Ok(false);
            }
        }
        self.act(Act::Remove(path), || fs::remove_dir(path)).map(|()| true)
    }

    /// Makes a file durable, or the names in a directory.
    ///
    /// # Errors
    ///
    /// The system's: written bytes may be lost, and no later sync writes them.
    pub fn sync(&self, path: &Path) -> io::Result<()> {
        self.open_to_read(path)?.sync_all()
    }

    /// Makes the names in the directory of `path` durable.
    pub fn sync_name(&self, path: &Path) -> io::Result<()> {
        let above = path.parent().filter(|it| !it.as_os_str().is_empty());
        self.sync(above.unwrap_or_else(|| Path::new(".")))
    }

    /// Makes all changes on the file system of `path` durable.
    pub fn sync_file_system(&self, path: &Path) -> io::Result<()> {
        let any = self.open_to_read(path)?;
        self.sync_by(Act::SyncAll, || Ok(rustix::fs::syncfs(&any.real)?))
    }

    /// Returns the free space on the file system of a file, in bytes.
    pub fn free_bytes(&self, file: &File) -> io::Result<u64> {
        if let Self::Faulty(faulty) = self
            && let Some(bytes) = faulty.free_bytes()
        {
            return Ok(bytes);
        }
        let found = rustix::fs::fstatvfs(&file.real)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// An open file or directory. Clones are the same one.
#[derive(Clone, Debug)]
pub struct File {
    real: Arc<fs::File>,
    disk: Disk,
    /// Its number, for a disk with faults.
    id: usize,
}

impl File {
    /// Returns the system's file, to read without the faults.
    #[must_use]
    pub fn real(&self) -> &Arc<fs::File> {
        &self.real
    }

    /// Returns the disk of the file.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Reads at least one byte, perhaps fewer than fit in `bytes`; returns their number, 0 at the
    /// end of the file.
    ///
    /// # Errors
    ///
    /// The first byte cannot be read.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.disk {
            Disk::Faulty(faulty) => faulty.read(&self.real, bytes, offset),
            Disk::System | Disk::Hasty => self.real.read_at(bytes, offset),
        }
    }

    /// Reads as many of the bytes as possible. Returns their number, and the error that stopped the
    /// reading, unless it stopped at the end of the file.
    pub fn read_up_to(&self, bytes: &mut [u8], offset: u64) -> (usize, Option<io::Error>) {
        let mut read = 0;
        while read < bytes.len() {
            match self.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (read, Some(error)),
            }
        }
        (read, None)
    }

    /// Reads all of the bytes.
    ///
    /// # Errors
    ///
    /// The file ends earlier, or some bytes cannot be read.
    pub fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self.read_up_to(bytes, offset) {
            (_, Some(error)) => Err(error),
            (read, None) if read < bytes.len() => Err(io::ErrorKind::UnexpectedEof.into()),
            (_, None) => Ok(()),
        }
    }

    /// Returns the length of the file, in bytes.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.real.metadata()?.len())
    }

    /// Writes all of the bytes; zeros fill a gap between the end of the file and `at`.
    ///
    /// # Errors
    ///
    /// The system's: some of them may be written.
    pub fn write_all_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let act = Act::Write { file: self, at, bytes };
        self.disk.act(act, || self.real.write_all_at(bytes, at))
    }

    /// Cuts the file to this length, or extends it with zeros.
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.disk.act(Act::SetLength { file: self, bytes }, || self.real.set_len(bytes))
    }

    /// Sets the file's group, if one is given, its mode, and its modification time.
    ///
    /// # Errors
    ///
    /// This user may not give files to that group; the system's.
    pub fn seal(&self, mode: u32, group: Option<u32>, modified: SystemTime) -> io::Result<()> {
        self.disk.act(Act::Seal(self), || {
            if group.is_some() {
                fchown(&self.real, None, group)?;
            }
            self.real.set_permissions(Permissions::from_mode(mode))?;
            self.real.set_times(FileTimes::new().set_modified(modified))
        })
    }

    /// Makes the bytes and the length durable.
    pub fn sync_data(&self) -> io::Result<()> {
        self.disk.sync_by(Act::Sync(self), || self.real.sync_data())
    }

    /// Makes all of the file durable; of a directory, its names.
    pub fn sync_all(&self) -> io::Result<()> {
        self.disk.sync_by(Act::Sync(self), || self.real.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_can_remove_the_same_tree() {
        for _ in 0..50 {
            let top = tempfile::tempdir().unwrap();
            let dir = top.path().join("dir");
            for number in 0..50 {
                let below = dir.join(format!("{}", number % 5));
                fs::create_dir_all(&below).unwrap();
                fs::write(below.join(format!("{number}")), "").unwrap();
            }
            let remove = || Disk::System.remove_tree(&dir).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(remove);
                remove();
            });
            assert!(!dir.exists());
        }
    }
}
