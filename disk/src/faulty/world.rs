//! The files below a directory as values: the start of a test, or the state after a power cut.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, FileTimes, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Content;
use crate::lock;

/// Files and directories by path, relative to the top; a directory comes before its contents.
pub type World = BTreeMap<PathBuf, Item>;

/// The target of a name.
#[derive(Clone, Debug)]
pub enum Item {
    /// A file; names that share it are hard links.
    File(Arc<Content>),
    /// A directory.
    Directory,
    /// A symbolic link to this path.
    Symlink(PathBuf),
}

impl Item {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let kind = fs::symlink_metadata(path)?;
        Ok(if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Symlink(fs::read_link(path)?)
        } else {
            Self::File(Arc::new(Content::read(path)?))
        })
    }
}

/// Reads all files below a directory, except locks and unreadable ones.
#[must_use]
pub fn world(dir: &Path) -> World {
    fn read(dir: &Path, top: &Path, linked: &mut HashMap<u64, Arc<Content>>, world: &mut World) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(found) = entry.metadata().ok().filter(|_| name != lock::NAME) else {
                continue;
            };
            let known = linked.get(&found.ino()).cloned().map(Item::File);
            let Some(item) = known.or_else(|| Item::read(&path).ok()) else { continue };
            match &item {
                Item::File(content) => drop(linked.insert(found.ino(), content.clone())),
                Item::Directory => read(&path, top, linked, world),
                Item::Symlink(_) => {}
            }
            world.insert(path.strip_prefix(top).unwrap_or(&path).to_owned(), item);
        }
    }
    let mut world = World::new();
    read(dir, dir, &mut HashMap::new(), &mut world);
    world
}

/// Writes a world to an existing empty directory.
///
/// # Errors
///
/// The system's.
pub fn restore(world: &World, dir: &Path) -> io::Result<()> {
    let mut made: HashMap<*const Content, PathBuf> = HashMap::new();
    for (path, item) in world {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        match item {
            Item::Directory => fs::create_dir_all(&path)?,
            Item::Symlink(target) => symlink(target, &path)?,
            Item::File(content) => match made.get(&Arc::as_ptr(content)) {
                Some(first) => fs::hard_link(first, &path)?,
                None => {
                    let mut file = fs::File::create_new(&path)?;
                    file.write_all(&content.bytes)?;
                    file.set_times(FileTimes::new().set_modified(content.modified))?;
                    file.set_permissions(Permissions::from_mode(content.mode))?;
                    made.insert(Arc::as_ptr(content), path);
                }
            },
        }
    }
    Ok(())
}
