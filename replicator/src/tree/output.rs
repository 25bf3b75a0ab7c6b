//! An output file of a tree, written in order, with holes in place of long runs of zeros.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use disk::Disk;

use super::access;

const WRITE_BYTES: usize = 256 << 10;
/// Minimum length of a hole, in bytes: a common block size of file systems.
const HOLE_BYTES_MIN: usize = 4096;

#[derive(Debug)]
pub(super) struct Output {
    file: disk::File,
    path: PathBuf,
    at: u64,
    buffer: Vec<u8>,
}

impl Output {
    /// Makes a new file. Only the owner can read it until it is sealed.
    pub(super) fn create(disk: &Disk, path: &Path) -> io::Result<Self> {
        let file = disk.create_new(path, access::FILE)?;
        Ok(Self { file, path: path.to_owned(), at: 0, buffer: Vec::new() })
    }

    /// Opens a file to write at its end; makes it if it is missing.
    pub(super) fn open(disk: &Disk, path: &Path) -> io::Result<Self> {
        if !path.exists() {
            return Self::create(disk, path);
        }
        let file = disk.open(path)?;
        Ok(Self { at: file.length()?, file, path: path.to_owned(), buffer: Vec::new() })
    }

    /// Returns the file itself, for reading.
    pub(super) fn file(&self) -> &Arc<fs::File> {
        self.file.real()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the position of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.at + self.buffer.len() as u64
    }

    /// Adds bytes; they can be read after a flush.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < WRITE_BYTES { Ok(()) } else { self.flush() }
    }

    /// Adds bytes of a file that may be large and mostly zeros: long runs of zeros take no room on
    /// the disk.
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

    /// Cuts the file to this length, or extends it with zeros, and continues at its end.
    pub(super) fn set_length(&mut self, bytes: u64) -> io::Result<()> {
        self.buffer.clear();
        self.file.set_len(bytes)?;
        self.at = bytes;
        Ok(())
    }

    /// Continues at the start; old bytes stay until they are overwritten.
    pub(super) fn rewind(&mut self) {
        self.buffer.clear();
        self.at = 0;
    }

    /// Shares the blocks of another file (reflink). Returns false if this is not possible. This
    /// file must be empty.
    pub(super) fn share(&mut self, source: &fs::File) -> io::Result<bool> {
        // A simulated disk has to see all writes.
        if !matches!(self.file.disk(), Disk::System)
            || rustix::fs::ioctl_ficlone(self.file.real(), source).is_err()
        {
            return Ok(false);
        }
        self.at = self.file.length()?;
        Ok(true)
    }

    /// Copies another file into this one, which must be empty. Returns the number of bytes.
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

    /// Completes the file: sets its mode, its group, if given, and its modification time in seconds
    /// after 1970.
    pub(super) fn seal(&mut self, mode: u32, group: Option<u32>, modified: i64) -> io::Result<()> {
        self.flush()?;
        self.file.seal(mode, group, time(modified))
    }
}

/// Returns the time that is this many seconds after 1970, or before if negative.
fn time(seconds: i64) -> SystemTime {
    let from_1970 = Duration::from_secs(seconds.unsigned_abs());
    let found = if seconds < 0 {
        UNIX_EPOCH.checked_sub(from_1970)
    } else {
        UNIX_EPOCH.checked_add(from_1970)
    };
    found.unwrap_or(UNIX_EPOCH)
}
