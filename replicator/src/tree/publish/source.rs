//! Access to the directory to publish: each entry is opened by its name in an open directory.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, openat, readlinkat, statat};

use super::super::error::Error;
use super::super::mode::Mode;
use super::super::order::SIBLINGS_MAX;

/// Length of a stored [`Stamp`], in bytes.
const STAMP_BYTES: usize = 7 * 8 + 1;

/// The reason why an entry is not listed.
pub(super) enum Unlisted {
    /// The entry has vanished meanwhile.
    Gone,
    /// The entry cannot be replicated, for this reason.
    Problem(String),
    Error(Error),
}

impl From<Error> for Unlisted {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// A system error at one entry concerns that entry alone: it has vanished, or cannot be read.
impl From<io::Error> for Unlisted {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Problem(error.to_string()),
        }
    }
}

/// The stamp of a file: the attributes that show whether the file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) bytes: u64,
    pub(super) mode: Mode,
    /// Change of the content: seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, i64),
    /// Change of the content or the attributes, in the same form.
    pub(super) changed: (i64, i64),
}

impl Stamp {
    /// Stored instead of a stamp, so that the file is read again.
    pub(super) const UNKNOWN: [u8; STAMP_BYTES] = [0; STAMP_BYTES];

    /// Returns the stamp of an open file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    fn new(found: &Stat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
            bytes: u64::try_from(found.st_size).unwrap_or(0),
            mode: Mode::of(found.st_mode),
            modified: (found.st_mtime, nanos(found.st_mtime_nsec)),
            changed: (found.st_ctime, nanos(found.st_ctime_nsec)),
        }
    }

    /// Returns whether this file was changed more than `margin_nanos` nanoseconds before the other.
    pub(super) fn is_before(&self, other: &Self, margin_nanos: i64) -> bool {
        let time =
            |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        time(self.changed) + i128::from(margin_nanos) < time(other.changed)
    }

    pub(super) fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let ((modified, modified_nanos), (changed, changed_nanos)) = (self.modified, self.changed);
        let times = [modified, modified_nanos, changed, changed_nanos].map(i64::cast_unsigned);
        let numbers = [self.device, self.inode, self.bytes].into_iter().chain(times);
        // The other mode bits need not be stored: any change of the mode also changes `changed`.
        let is_executable = self.mode.bits() & 0o111 != 0;
        let all = numbers.flat_map(u64::to_le_bytes).chain([u8::from(is_executable)]);
        let mut bytes = Self::UNKNOWN;
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

pub(super) enum FsEntry {
    Directory(Mode),
    /// A symbolic link with its target.
    Link(CString),
    File(Stamp),
    /// An entry of another kind, which the text describes.
    Other(&'static str),
}

pub(super) enum Names {
    All(Vec<CString>),
    /// More names than can be replicated.
    TooMany,
}

pub(super) struct Folder(OwnedFd);

/// Opens the directory to publish, which may be a symbolic link to one.
pub(super) fn open_top(path: &Path) -> io::Result<Folder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Folder(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?))
}

impl Folder {
    pub(super) fn mode(&self) -> io::Result<Mode> {
        Ok(Mode::of(rustix::fs::fstat(&self.0)?.st_mode))
    }

    pub(super) fn names(&self) -> io::Result<Names> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_owned();
            if matches!(name.as_bytes(), b"." | b"..") {
                continue;
            }
            if names.len() == SIBLINGS_MAX {
                return Ok(Names::TooMany);
            }
            names.push(name);
        }
        names.sort_unstable();
        Ok(Names::All(names))
    }

    /// Looks at the entry with this name; `None` if it is gone. If a link vanishes before its
    /// target is read, the error is `NotFound`.
    pub(super) fn find(&self, name: &CStr) -> io::Result<Option<FsEntry>> {
        let found = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            found => found?,
        };
        Ok(Some(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => FsEntry::Directory(Mode::of(found.st_mode)),
            FileType::Symlink => FsEntry::Link(readlinkat(&self.0, name, Vec::new())?),
            FileType::RegularFile => FsEntry::File(Stamp::new(&found)),
            FileType::Fifo => FsEntry::Other("a pipe"),
            FileType::Socket => FsEntry::Other("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => FsEntry::Other("a device"),
            FileType::Unknown => FsEntry::Other("an entry of unknown type"),
        }))
    }

    pub(super) fn open_directory(&self, name: &CStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(&self.0, name, flags, rustix::fs::Mode::empty())?))
    }

    /// Opens a file, without waiting for a pipe that may have replaced it.
    pub(super) fn open_file(&self, name: &CStr) -> Result<(File, Stamp), Unlisted> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(
            openat(&self.0, name, flags, rustix::fs::Mode::empty()).map_err(io::Error::from)?,
        );
        let found = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(Unlisted::Problem("it is no longer a regular file".to_owned()));
        }
        Ok((file, Stamp::new(&found)))
    }
}

fn nanos(found: impl TryInto<i64>) -> i64 {
    found.try_into().unwrap_or(0)
}
