//! The directory that is published: everything in it is opened by its name in what is open already.

use std::ffi::{CStr, CString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, readlinkat, statat};

use super::super::error::Error;
use super::super::mode::Mode;
use super::super::order::SIBLINGS_MAX;

/// Bytes of a [`Stamp`].
const STAMP_BYTES: usize = 7 * 8 + 1;

/// Why something is not listed.
pub(super) enum Stop {
    /// It is not there any more.
    Gone,
    /// It cannot be.
    Problem(String),
    /// Nothing more can be.
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What the system says of something in the directory is a problem of that alone.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Problem(error.to_string()),
        }
    }
}

/// By what a file is known to be as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) bytes: u64,
    pub(super) mode: Mode,
    /// Seconds since 1970, and nanoseconds.
    pub(super) modified: (i64, i64),
    /// The same, of the last change of the file or of what is known of it.
    pub(super) changed: (i64, i64),
}

impl Stamp {
    /// The record of a file that is to be read again.
    pub(super) const UNKNOWN: [u8; STAMP_BYTES] = [0; STAMP_BYTES];

    pub(super) fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            mode: Mode::of(found.mode()),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// Whether this was changed so many nanoseconds before the other.
    pub(super) fn is_before(&self, other: &Self, nanos: i64) -> bool {
        let time =
            |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        time(self.changed) + i128::from(nanos) < time(other.changed)
    }

    pub(super) fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let ((modified, modified_nanos), (changed, changed_nanos)) = (self.modified, self.changed);
        let times = [modified, modified_nanos, changed, changed_nanos].map(i64::cast_unsigned);
        let numbers = [self.device, self.inode, self.bytes].into_iter().chain(times);
        // Whether it may be run is enough: with any other change of its mode the last time is another.
        let is_executable = self.mode.bits() & 0o111 != 0;
        let all = numbers.flat_map(u64::to_le_bytes).chain([u8::from(is_executable)]);
        let mut bytes = Self::UNKNOWN;
        bytes.iter_mut().zip(all).for_each(|(to, from)| *to = from);
        bytes
    }
}

/// What there is under a name.
pub(super) enum Found {
    Directory(Mode),
    /// What it leads to.
    Link(CString),
    File(Stamp),
    /// What it is.
    Other(&'static str),
}

/// The names in a directory.
pub(super) enum Names {
    /// In order.
    All(Vec<CString>),
    /// More than can be replicated.
    TooMany,
}

/// An open directory.
pub(super) struct Source(OwnedFd);

/// Opens the directory that is published.
pub(super) fn open_top(path: &Path) -> io::Result<Source> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Source(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?))
}

impl Source {
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

    /// Looks at what has this name; none if nothing has.
    pub(super) fn find(&self, name: &CStr) -> io::Result<Option<Found>> {
        let found = match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            found => found?,
        };
        Ok(Some(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Found::Directory(Mode::of(found.st_mode)),
            FileType::Symlink => Found::Link(readlinkat(&self.0, name, Vec::new())?),
            FileType::RegularFile => Found::File(Stamp {
                device: found.st_dev,
                inode: found.st_ino,
                bytes: u64::try_from(found.st_size).unwrap_or(0),
                mode: Mode::of(found.st_mode),
                modified: (found.st_mtime, nanos(found.st_mtime_nsec)),
                changed: (found.st_ctime, nanos(found.st_ctime_nsec)),
            }),
            FileType::Fifo => Found::Other("a pipe"),
            FileType::Socket => Found::Other("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => Found::Other("a device"),
            FileType::Unknown => Found::Other("what is no file"),
        }))
    }

    pub(super) fn open_directory(&self, name: &CStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(&self.0, name, flags, rustix::fs::Mode::empty())?))
    }

    /// Opens a file; what else may have come in its place is not waited for.
    pub(super) fn open_file(&self, name: &CStr) -> Result<(File, Stamp), Stop> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(
            openat(&self.0, name, flags, rustix::fs::Mode::empty()).map_err(io::Error::from)?,
        );
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(Stop::Problem("it is no file any more".to_owned()));
        }
        Ok((file, Stamp::of(&found)))
    }
}

fn nanos(found: impl TryInto<i64>) -> i64 {
    found.try_into().unwrap_or(0)
}
