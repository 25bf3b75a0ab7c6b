//! Access: the modes and groups of a member's folders, which decide who reaches its trees on disk.
//!
//! A tree is behind its own folder, `DATA/trees/NAME@ORIGIN`. Users that may not pass this folder
//! see nothing of the tree; for all others the modes in the tree's manifest decide. All other files
//! belong to the owner alone. Modes do not depend on the umask. If an administrator has replaced a
//! folder by a symbolic link to it, the mode of the real folder is set. Inside trees no links are
//! followed.
//!
//! An error means that the system refuses an operation, for example because a path is another
//! user's.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::Error;

/// Mode of private folders.
pub(crate) const FOLDER: u32 = 0o700;
/// Mode of private files.
pub(crate) const FILE: u32 = 0o600;

/// The users that may pass through to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The mode of the tree's folder: all rights for the owner, and any of r and x for group and
    /// others.
    pub mode: u32,
    /// The id of the group of that folder and all its content; `None` for the process's own group.
    pub group: Option<u32>,
}

impl Default for Access {
    fn default() -> Self {
        Self { mode: FOLDER, group: None }
    }
}

impl Access {
    /// Returns the access to the folders above these trees, so that the users of each tree can
    /// reach it. If the trees have several groups, everybody may pass these folders, but not list
    /// them.
    pub(crate) fn above(trees: impl Iterator<Item = Self>) -> Self {
        let mut above = Self::default();
        for it in trees {
            let is_first = above.mode & 0o010 == 0;
            let group = it.group();
            if it.mode & 0o010 != 0 && is_first {
                above = Self { mode: above.mode | 0o010, group: Some(group) };
            } else if it.mode & 0o010 != 0 && above.group != Some(group) {
                above.mode |= 0o001;
            }
            above.mode |= it.mode & 0o001;
        }
        above
    }

    pub(crate) fn apply(&self, dir: &Path) -> Result<(), Error> {
        let found = fs::metadata(dir).map_err(Error::io(dir))?;
        if let Some(group) = self.group.filter(|it| *it != found.gid()) {
            set_mode(dir, FOLDER)?;
            chown(dir, None, Some(group)).map_err(Error::io(dir))?;
        }
        set_mode(dir, self.mode)
    }

    fn group(self) -> u32 {
        self.group.unwrap_or_else(own_group)
    }

    /// Returns the group of new files; `None` for the process's own group.
    pub(super) fn other_group(&self) -> Option<u32> {
        self.group.filter(|it| *it != own_group())
    }

    /// If the folder of a tree has another mode or group, lets only the owner pass it until
    /// [`Access::open`] is called, which may be much later.
    pub(crate) fn close_others(&self, dir: &Path) -> Result<(), Error> {
        let found = fs::metadata(dir).map_err(Error::io(dir))?;
        let is_right = (found.mode() & 0o7777, found.gid()) == (self.mode, self.group());
        if is_right { Ok(()) } else { set_mode(dir, FOLDER) }
    }

    /// Opens the folder of a tree. A new group is set on its content first, which takes a while for
    /// many files. If this fails, only the owner can pass.
    fn open(&self, dir: &Path) -> Result<(), Error> {
        if fs::metadata(dir).map_err(Error::io(dir))?.gid() != self.group() {
            set_mode(dir, FOLDER)?;
            self.give(&fs::canonicalize(dir).map_err(Error::io(dir))?)?;
        }
        set_mode(dir, self.mode)
    }

    pub(super) fn give(&self, dir: &Path) -> Result<(), Error> {
        give(dir, self.group())
    }
}

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// The present access, and the wanted one, which was set last.
    access: Mutex<(Access, Access)>,
    /// Locked during a change, which may take a while. Waiting changes get the lock in any order,
    /// so each applies the access that was wanted last.
    change: Mutex<()>,
}

impl Gate {
    fn with<T>(&self, use_it: impl FnOnce(&mut (Access, Access)) -> T) -> T {
        use_it(&mut self.access.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the wanted access; [`Gate::open`] applies it.
    pub(super) fn want(&self, access: Access) {
        self.with(|it| it.1 = access);
    }

    /// Applies the wanted access to the tree in this folder. If this fails, only the owner can
    /// pass.
    pub(super) fn open(&self, dir: &Path) -> Result<(), Error> {
        let _changing = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        // Files that are made from now on get the new group.
        let access = self.with(|it| {
            it.0 = it.1;
            it.0
        });
        let opened = access.open(dir);
        if opened.is_err() {
            self.with(|it| it.0 = Access::default());
            set_mode(dir, FOLDER)?;
        }
        opened
    }

    pub(super) fn access(&self) -> Access {
        self.with(|it| it.0)
    }
}

fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Gives a folder and its content to a group. The folder comes last: after an interruption it still
/// has the old group, so the change is repeated.
fn give(path: &Path, group: u32) -> Result<(), Error> {
    let found = match fs::symlink_metadata(path) {
        // The path was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(Error::io(path))?,
    };
    if found.is_dir() {
        for entry in fs::read_dir(path).map_err(Error::io(path))? {
            give(&entry.map_err(Error::io(path))?.path(), group)?;
        }
    }
    if found.gid() == group {
        return Ok(());
    }
    match lchown(path, None, Some(group)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        given => given.map_err(Error::io(path)),
    }
}

/// Sets the mode of a file or a folder; for a symbolic link, that of its target. A missing path is
/// not an error.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(path)(error)),
        Ok(found) if found.mode() & 0o7777 == mode => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::io(path)),
    }
}

/// Makes a folder and missing ones above it, or takes an existing one, and makes it private.
pub(crate) fn make_private(dir: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(dir).map_err(Error::io(dir))?;
    set_mode(dir, FOLDER)
}

/// Sets the mode of the files in a folder to `file`; with `deep`, of all files below it, and makes
/// the folders below it private. A missing folder is not an error.
pub(crate) fn hide(dir: &Path, file: u32, deep: bool) -> Result<(), Error> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(Error::io(dir))?,
    };
    for entry in entries {
        let entry = entry.map_err(Error::io(dir))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(Error::io(dir))?);
        if kind.is_file() {
            set_mode(&path, file)?;
        } else if kind.is_dir() && deep {
            set_mode(&path, FOLDER)?;
            hide(&path, file, deep)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_behind_a_link_is_closed_and_opened_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, link) = (dir.path().join("disk"), dir.path().join("link"));
        fs::create_dir(&disk).unwrap();
        fs::set_permissions(&disk, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&disk, &link).unwrap();
        let mode = || fs::metadata(&disk).unwrap().mode() & 0o7777;
        make_private(&link).unwrap();
        assert_eq!(mode(), 0o700);
        let above = Access { mode: 0o711, group: Some(own_group()) };
        above.apply(&link).unwrap();
        assert_eq!(mode(), 0o711);
        Access::default().apply(&link).unwrap();
        assert_eq!(mode(), 0o700);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // Links inside a folder are not followed.
        fs::write(dir.path().join("file"), "").unwrap();
        fs::set_permissions(dir.path().join("file"), Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(dir.path().join("file"), disk.join("to-file")).unwrap();
        hide(&disk, FILE, true).unwrap();
        assert_eq!(fs::metadata(dir.path().join("file")).unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn folders_above_trees_let_only_the_users_of_the_trees_pass() {
        let check = |trees: &[(u32, u32)], mode: u32, group: Option<u32>| {
            let trees =
                trees.iter().map(|(mode, group)| Access { mode: *mode, group: Some(*group) });
            assert_eq!(Access::above(trees), Access { mode, group });
        };
        check(&[], 0o700, None);
        check(&[(0o700, 7)], 0o700, None);
        check(&[(0o740, 7)], 0o700, None);
        check(&[(0o750, 7), (0o700, 8)], 0o710, Some(7));
        check(&[(0o750, 7), (0o750, 7)], 0o710, Some(7));
        check(&[(0o750, 7), (0o710, 8)], 0o711, Some(7));
        check(&[(0o705, 7)], 0o701, None);
        check(&[(0o755, 7)], 0o711, Some(7));
    }
}
