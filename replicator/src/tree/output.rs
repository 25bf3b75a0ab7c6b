//! A file of a tree that is written from some place on, with holes where there are only zeros.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use disk::Disk;

use super::passage;

/// What is written at once, in bytes.
const WRITE_BYTES: usize = 256 << 10;
/// So many zeros are left out, in bytes: what file systems can do without.
const HOLE_BYTES_MIN: usize = 4096;

/// A file that is written from some place on.
#[derive(Debug)]
pub(super) struct Output {
    file: disk::File,
    path: PathBuf,
    at: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Makes a file that is not there: the owner's alone until it is sealed.
    pub(super) fn create(disk: &Disk, path: &Path) -> io::Result<Self> {
        let file = disk.create_new(path, passage::FILE)?;
        Ok(Self { file, path: path.to_owned(), at: 0, buffer: Vec::new() })
    }

    /// Opens a file to write on at its end; makes it if it is not there.
    pub(super) fn open(disk: &Disk, path: &Path) -> io::Result<Self> {
        if !path.exists() {
            return Self::create(disk, path);
        }
        let file = disk.open(path)?;
        Ok(Self { at: file.length()?, file, path: path.to_owned(), buffer: Vec::new() })
    }

    /// The file itself, to be read from.
    pub(super) fn file(&self) -> &Arc<fs::File> {
        self.file.real()
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
        if !self.buffer.is_empty() {
            self.file.write_all_at(&self.buffer, self.at)?;
            self.at += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Drops what lies behind so many bytes, or has zeros up to there, and goes on there.
    pub(super) fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.buffer.clear();
        self.file.set_len(bytes)?;
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
        // Whoever stands in for the disk sees all that is written.
        if !matches!(self.file.disk(), Disk::System)
            || rustix::fs::ioctl_ficlone(self.file.real(), source).is_err()
        {
            return Ok(false);
        }
        self.at = self.file.length()?;
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
        self.file.seal(mode, group, time(modified))
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
