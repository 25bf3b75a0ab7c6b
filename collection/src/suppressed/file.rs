//! The file of the takedown list, as bytes: appended to or rewritten, with a copy against damage.
//!
//! Source: ours.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use disk::{Disk, File};

use crate::error::Error;
use crate::member::{get, put};

/// A state of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of times that the file was rewritten.
    pub(crate) writing: u64,
    /// Its length, in bytes.
    pub(crate) end: u64,
}

impl Mark {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.end);
        put(&mut out, self.writing);
        out
    }

    /// Reads the bytes of [`encode`](Self::encode); `None` if they are malformed.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(Self { end: get(rest)?, writing: get(rest)? })
    }

    /// Returns the offset from which a file in the state `now` has changed since this state: 0 if
    /// it was rewritten or restored.
    pub(crate) fn before(self, now: Self) -> u64 {
        if self.writing == now.writing && self.end <= now.end { self.end } else { 0 }
    }
}

#[derive(Debug)]
pub(crate) struct ListFile {
    disk: Disk,
    pub(crate) path: PathBuf,
    /// Opened at the first write.
    file: Option<File>,
    pub(crate) mark: Mark,
    /// Whether the file may end within a record.
    pub(crate) is_torn: bool,
    /// Whether the file is to be rewritten, because the copy had its damaged parts.
    pub(crate) is_to_rewrite: bool,
}

/// Bytes to be written to the file.
#[derive(Debug)]
pub(crate) struct Writing {
    disk: Disk,
    path: PathBuf,
    /// The file; `None` if it is still to be opened or made.
    file: Option<File>,
    is_anew: bool,
    /// Offset of the first record of the bytes.
    pub(crate) at: u64,
    bytes: Vec<u8>,
    /// The state after the write.
    mark: Mark,
}

impl ListFile {
    pub(crate) fn new(disk: &Disk, path: PathBuf) -> Self {
        Self {
            disk: disk.clone(),
            path,
            file: None,
            mark: Mark::default(),
            is_torn: false,
            is_to_rewrite: false,
        }
    }

    /// Prepares to append `bytes`, which are whole records.
    pub(crate) fn append(&self, bytes: Vec<u8>) -> Writing {
        // After an incomplete record the next one begins on a new line.
        let at = self.mark.end + u64::from(self.is_torn);
        let bytes = if self.is_torn { [b"\n", &bytes[..]].concat() } else { bytes };
        let mark = Mark { end: self.mark.end + bytes.len() as u64, ..self.mark };
        self.writing(false, at, bytes, mark)
    }

    /// Prepares to replace the file by `bytes`.
    pub(crate) fn replace(&self, bytes: Vec<u8>) -> Writing {
        let mark = Mark { writing: self.mark.writing + 1, end: bytes.len() as u64 };
        self.writing(true, 0, bytes, mark)
    }

    fn writing(&self, is_anew: bool, at: u64, bytes: Vec<u8>, mark: Mark) -> Writing {
        let (disk, path, file) = (self.disk.clone(), self.path.clone(), self.file.clone());
        Writing { disk, path, file, is_anew, at, bytes, mark }
    }

    /// Takes over the state after `writing` was done on `file`.
    pub(crate) fn written(&mut self, writing: &Writing, file: File) {
        self.file = Some(file);
        self.mark = writing.mark;
        self.is_torn = false;
        self.is_to_rewrite &= !writing.is_anew;
    }

    /// Reads the file, or its copy; `None` if there is none.
    pub(crate) fn read(&self, is_copy: bool) -> Result<Option<Vec<u8>>, Error> {
        let path = if is_copy { copy_of(&self.path) } else { self.path.clone() };
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot read", &path, error)),
        }
    }

    /// Makes a copy of the file, if there is none.
    pub(crate) fn copy_if_missing(&self) {
        if self.mark.end != 0 && !copy_of(&self.path).exists() {
            let Writing { disk, path, mark, .. } = self.append(Vec::new());
            let all = Writing { disk, path, file: None, is_anew: true, at: 0, bytes: vec![], mark };
            all.copy();
        }
    }
}

/// Returns whether there is a list at `path`, or a copy from which it can be restored.
#[must_use]
pub fn has_list(path: &Path) -> bool {
    path.is_file() || copy_of(path).is_file()
}

fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("soif.copy")
}

impl Writing {
    /// Writes the bytes, durably; returns the file. After an error the file is unchanged. Blocks.
    pub(crate) fn run(&self) -> Result<File, Error> {
        let done = if self.is_anew { self.replace() } else { self.append() };
        let done = done.map_err(|error| Error::io("cannot write", &self.path, error))?;
        self.copy();
        Ok(done)
    }

    /// Writes the same bytes to the copy. After an error the next write repeats this.
    fn copy(&self) {
        let path = copy_of(&self.path);
        let before = self.mark.end - self.bytes.len() as u64;
        let goes_on = !self.is_anew && fs::metadata(&path).is_ok_and(|it| it.len() == before);
        let copied = if goes_on {
            let file = self.disk.open(&path);
            file.and_then(|it| it.write_all_at(&self.bytes, before).and_then(|()| it.sync_data()))
        } else {
            fs::read(&self.path).and_then(|all| self.put(&path, &all)).map(drop)
        };
        if let Err(error) = copied {
            tracing::warn!(path = %path.display(), %error, "the takedown list has no copy");
        }
    }

    fn append(&self) -> io::Result<File> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => match self.disk.open(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let made = self.disk.create(&self.path)?;
                    self.disk.sync_name(&self.path)?;
                    made
                }
                other => other?,
            },
        };
        let before = self.mark.end - self.bytes.len() as u64;
        let written = file.write_all_at(&self.bytes, before).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // The incomplete rest would be skipped, and reported as damage.
            let _ = file.set_len(before);
            return Err(error);
        }
        Ok(file)
    }

    fn replace(&self) -> io::Result<File> {
        self.put(&self.path, &self.bytes)
    }

    /// Replaces the file at `path` by one with these bytes.
    fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<File> {
        let new = self.path.with_extension("soif.new");
        self.disk.replace(path, &new, disk::MODE, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_after_a_state_are_known_while_the_file_only_grows() {
        let mark = |writing, end| Mark { writing, end };
        for (before, now, expected) in [
            (mark(0, 0), mark(0, 9), 0),
            (mark(0, 5), mark(0, 9), 5),
            (mark(0, 9), mark(0, 5), 0),
            (mark(0, 5), mark(1, 9), 0),
            (mark(1, 5), mark(0, 9), 0),
        ] {
            assert_eq!(before.before(now), expected, "{before:?} {now:?}");
            assert_eq!(Mark::decode(&before.encode()), Some(before));
        }
        assert_eq!(Mark::decode(&[5]), None, "one number is missing");
    }
}
