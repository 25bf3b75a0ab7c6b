//! State files of groups and of versions: small files, each replaced as a whole.
//!
//! ```text
//! DATA/groups/GROUP              the saved state of a group's state machine
//! DATA/groups/GROUP.invitation   see `invitations`
//! DATA/versions/NAME@ORIGIN      the newest known version
//! ```
//!
//! All functions block; call them on a thread that may block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use disk::Disk;

use crate::error::Error;
use crate::id::GroupId;
use crate::tree::access;
use crate::version::Namespace;

const GROUPS: &str = "groups";
const VERSIONS: &str = "versions";
const LOGS: &str = "logs";
/// Maximum length of a state file, in bytes; the longest is a group's state with its charter.
const BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(super) struct StateFiles {
    data: PathBuf,
}

impl StateFiles {
    /// Opens the directories of state files, or creates them; only the owner has access.
    pub(super) fn open(data: &Path) -> Result<Self, Error> {
        for dir in [GROUPS, VERSIONS, LOGS] {
            let dir = data.join(dir);
            access::make_private(&dir)?;
            // An older version of this program left its files readable.
            access::hide(&dir, access::FILE, false)?;
        }
        Ok(Self { data: data.to_owned() })
    }

    /// Returns the saved state of a group; none if there is none.
    pub(super) fn group(&self, group: GroupId) -> Result<Option<Vec<u8>>, Error> {
        read(&self.group_path(group))
    }

    /// Saves the state of a group. If that fails, the state saved before is unchanged.
    pub(super) fn put_group(&self, group: GroupId, bytes: &[u8]) -> Result<(), Error> {
        replace(&self.group_path(group), bytes)
    }

    fn group_path(&self, group: GroupId) -> PathBuf {
        self.data.join(GROUPS).join(group.to_string())
    }

    /// Returns all saved versions; their signatures are not checked.
    pub(super) fn versions(&self) -> Result<Vec<Vec<u8>>, Error> {
        let dir = self.data.join(VERSIONS);
        let failed = |source| Error::io(&dir, source);
        let mut versions = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_unfinished = path.extension().is_some_and(|it| it == NEW);
            if !is_unfinished {
                versions.extend(read(&path)?);
            }
        }
        Ok(versions)
    }

    /// Saves the newest version of a namespace. If that fails, the one saved before is unchanged.
    pub(super) fn put_version(&self, of: &Namespace, bytes: &[u8]) -> Result<(), Error> {
        replace(&self.data.join(VERSIONS).join(of.to_string()), bytes)
    }
}

/// Extension of files that are still being written.
const NEW: &str = "new~";

fn new_path(path: &Path) -> PathBuf {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{NEW}"));
    new.into()
}

pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let read = fs::metadata(path).and_then(|it| {
        let is_ours = it.is_file() && it.len() <= BYTES_MAX;
        if is_ours { fs::read(path) } else { Err(io::ErrorKind::InvalidData.into()) }
    });
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(path, source)),
    }
}

/// Replaces a file's content by these bytes, which are on disk when the function returns.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let new = new_path(path);
    let replaced = Disk::System.replace(path, &new, access::FILE, bytes);
    replaced.map(drop).map_err(|source| {
        // Remove the incomplete file: the disk may be full.
        let _ = fs::remove_file(&new);
        Error::io(path, source)
    })
}

/// Makes `link` a symbolic link to `target`. A link to another target is replaced; anything else is
/// left alone, and is an error.
pub(super) fn link(target: &Path, link: &Path) -> Result<(), Error> {
    let failed = |source| Error::io(link, source);
    let target = std::path::absolute(target).map_err(failed)?;
    match fs::read_link(link) {
        Ok(known) if known == target => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Something that is no link is there.
        Err(_) => return Err(failed(io::ErrorKind::AlreadyExists.into())),
    }
    let new = new_path(link);
    let _ = fs::remove_file(&new);
    let made = std::os::unix::fs::symlink(&target, &new).and_then(|()| fs::rename(&new, link));
    made.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::MemberId;
    use crate::version::Name;

    #[test]
    fn saved_files_are_read_again_and_incomplete_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::open(dir.path()).unwrap();
        let namespace = Namespace { origin: MemberId(7), name: Name::new("a").unwrap() };
        assert_eq!(files.group(GroupId(1)).unwrap(), None);
        files.put_group(GroupId(1), b"one").unwrap();
        files.put_group(GroupId(1), b"two").unwrap();
        files.put_version(&namespace, b"three").unwrap();
        fs::write(dir.path().join("versions/b@0.new~"), b"thr").unwrap();
        let files = StateFiles::open(dir.path()).unwrap();
        assert_eq!(files.group(GroupId(1)).unwrap(), Some(b"two".to_vec()));
        assert_eq!(files.versions().unwrap(), [b"three".to_vec()]);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let files = StateFiles::open(dir.path()).unwrap();
        files.put_group(GroupId(1), b"one").unwrap();
        // A directory in place of the new file.
        fs::create_dir(dir.path().join("groups/0000000000000001.new~")).unwrap();
        let error = files.put_group(GroupId(1), b"two").unwrap_err();
        assert!(error.to_string().contains("groups/0000000000000001"), "{error}");
        assert_eq!(files.group(GroupId(1)).unwrap(), Some(b"one".to_vec()));
    }
}
