//! Who gets at what a member keeps: modes and groups of its files and folders on the disk.
//!
//! A tree is behind its own folder, `DATA/trees/NAME@ORIGIN`: who may not pass that sees nothing of the tree, and who may
//! sees of it what the modes in its manifest say. What else is kept is the owner's alone. Modes are set as they are
//! to be, whatever the umask. A folder that an admin has put elsewhere, behind a symbolic link, is closed there; of what
//! is in a tree no link is followed.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::Error;

/// The modes of what is the owner's alone: folders, and files.
pub(crate) const FOLDER: u32 = 0o700;
pub(crate) const FILE: u32 = 0o600;

/// Who may pass through to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Of the tree's folder: all for the owner, and r and x for group and others.
    pub mode: u32,
    /// The number of the group to which that folder belongs with all that is in it; none: the one that the process has.
    pub group: Option<u32>,
}

impl Default for Passage {
    fn default() -> Self {
        Self { mode: FOLDER, group: None }
    }
}

impl Passage {
    /// What folders above trees let through, so that each tree can be reached by whom it lets through: anybody may pass
    /// them, though not list them, if that are several groups.
    pub(crate) fn above(trees: impl Iterator<Item = Self>) -> Self {
        let mut above = Self::default();
        for it in trees {
            let is_first = above.mode & 0o010 == 0;
            let group = it.group.unwrap_or_else(own_group);
            if it.mode & 0o010 != 0 && is_first {
                above = Self { mode: above.mode | 0o010, group: Some(group) };
            } else if it.mode & 0o010 != 0 && above.group != Some(group) {
                above.mode |= 0o001;
            }
            above.mode |= it.mode & 0o001;
        }
        above
    }

    /// Has such a folder let through whom it is to let.
    ///
    /// # Errors
    ///
    /// The system's: it is another user's, say.
    pub(crate) fn apply(&self, dir: &Path) -> Result<(), Error> {
        let found = fs::metadata(dir).map_err(Error::io(dir))?;
        if let Some(group) = self.group.filter(|it| *it != found.gid()) {
            set_mode(dir, FOLDER)?;
            chown(dir, None, Some(group)).map_err(Error::io(dir))?;
        }
        set_mode(dir, self.mode)
    }

    /// The group that files are to have, if it is not the one that they get by themselves.
    pub(super) fn other_group(&self) -> Option<u32> {
        self.group.filter(|it| *it != own_group())
    }

    /// Closes the folder of a tree, unless it lets through just whom it is to: [`Passage::open`] may come much later.
    ///
    /// # Errors
    ///
    /// The system's: it is another user's, say.
    pub(crate) fn close_others(&self, dir: &Path) -> Result<(), Error> {
        let found = fs::metadata(dir).map_err(Error::io(dir))?;
        let group = self.group.unwrap_or_else(own_group);
        let is_as_said = (found.mode() & 0o7777, found.gid()) == (self.mode, group);
        if is_as_said { Ok(()) } else { set_mode(dir, FOLDER) }
    }

    /// Lets through to the tree in this folder whom it is to let through. What is in it gets the group first, which
    /// takes a while for many files if that is another one than before.
    ///
    /// # Errors
    ///
    /// The system's: this user may not give files to that group, say. Then nobody gets through but the owner.
    fn open(&self, dir: &Path) -> Result<(), Error> {
        let group = self.group.unwrap_or_else(own_group);
        if fs::metadata(dir).map_err(Error::io(dir))?.gid() != group {
            set_mode(dir, FOLDER)?;
            self.give(&fs::canonicalize(dir).map_err(Error::io(dir))?)?;
        }
        set_mode(dir, self.mode)
    }

    /// Gives a folder with all that is in it to the group.
    pub(super) fn give(&self, dir: &Path) -> Result<(), Error> {
        give(dir, self.group.unwrap_or_else(own_group))
    }
}

/// Who gets at the tree of a store now.
#[derive(Debug, Default)]
pub(super) struct Gate {
    passage: Mutex<Passage>,
    /// Who is to get at it, by the last word.
    wanted: Mutex<Passage>,
    /// One at a time changes it, which may take a while. Who waits for it comes in any order.
    change: Mutex<()>,
}

fn get(passage: &Mutex<Passage>) -> Passage {
    *passage.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(passage: &Mutex<Passage>, to: Passage) {
    *passage.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

impl Gate {
    /// Says who is to get at the tree: [`Gate::open`] does it.
    pub(super) fn want(&self, passage: Passage) {
        set(&self.wanted, passage);
    }

    /// Lets others through to the tree in this folder, or no more, as was said last.
    ///
    /// # Errors
    ///
    /// As for [`Passage::open`]. Nobody but the owner gets at the tree then.
    pub(super) fn open(&self, dir: &Path) -> Result<(), Error> {
        let _changing = self.change.lock().unwrap_or_else(PoisonError::into_inner);
        let passage = get(&self.wanted);
        // What is made from now on has the group already.
        set(&self.passage, passage);
        let opened = passage.open(dir);
        if opened.is_err() {
            set(&self.passage, Passage::default());
            set_mode(dir, FOLDER)?;
        }
        opened
    }

    /// Who gets at the tree.
    pub(super) fn passage(&self) -> Passage {
        get(&self.passage)
    }
}

fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Gives all that is in a folder to a group, and then the folder, so that what was broken off is done anew.
fn give(path: &Path, group: u32) -> Result<(), Error> {
    let found = match fs::symlink_metadata(path) {
        // Something is removed meanwhile.
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

/// Gives a file or a folder a mode, or that to which a symbolic link leads; what is not there is no error.
///
/// # Errors
///
/// The system's: it belongs to another user, say.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(path)(error)),
        Ok(found) if found.mode() & 0o7777 == mode => Ok(()),
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(mode)).map_err(Error::io(path)),
    }
}

/// Makes a folder with those above it that are missing, or takes one that is there; it is the owner's alone then.
///
/// # Errors
///
/// The system's.
pub(crate) fn make_private(dir: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(dir).map_err(Error::io(dir))?;
    set_mode(dir, FOLDER)
}

/// Makes the files of a folder the owner's alone, and with `deep` all that is below it; what is not there is no error.
///
/// # Errors
///
/// The system's.
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
    fn a_folder_behind_a_link_is_closed_and_opened_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let (disk, link) = (dir.path().join("disk"), dir.path().join("link"));
        fs::create_dir(&disk).unwrap();
        fs::set_permissions(&disk, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&disk, &link).unwrap();
        let mode = || fs::metadata(&disk).unwrap().mode() & 0o7777;
        make_private(&link).unwrap();
        assert_eq!(mode(), 0o700);
        let above = Passage { mode: 0o711, group: Some(own_group()) };
        above.apply(&link).unwrap();
        assert_eq!(mode(), 0o711);
        Passage::default().apply(&link).unwrap();
        assert_eq!(mode(), 0o700);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // Of what is in a folder no link is followed.
        fs::write(dir.path().join("file"), "").unwrap();
        fs::set_permissions(dir.path().join("file"), Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(dir.path().join("file"), disk.join("to-file")).unwrap();
        hide(&disk, FILE, true).unwrap();
        assert_eq!(fs::metadata(dir.path().join("file")).unwrap().mode() & 0o777, 0o644);
    }

    #[test]
    fn folders_above_trees_let_through_no_more_than_the_trees_do() {
        let check = |trees: &[(u32, u32)], mode: u32, group: Option<u32>| {
            let trees =
                trees.iter().map(|(mode, group)| Passage { mode: *mode, group: Some(*group) });
            assert_eq!(Passage::above(trees), Passage { mode, group });
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
