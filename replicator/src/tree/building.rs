//! Building of a generation: readers do not see it until it is whole and durable, and it is removed
//! if anything fails.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::Disk;

use super::access::{Access, FILE, FOLDER, set_mode};
use super::chunk::Extent;
use super::error::Error;
use super::generation::{
    Generation, INDEX, LEASE, LEASE_MODE, MANIFEST, META, Meta, NODES, PRIVATE, SOURCES, TREE,
};
use super::index::{ChunkFile, Location, Writer};
use super::mode::Mode;
use super::output::Output;
use super::path::EntryPath;
use crate::version::{Hash, Kind};

/// Prefix of the name of a build's directory. A number follows, which is not reused while a store
/// is open, so that an earlier build cannot write into a later one.
const BUILDING: &str = ".building-";
/// Name of a copied file, before it is known to be valid.
pub(super) const INCOMING: &str = "incoming";
/// Name of the list of a published file's chunks, until it is known that the file did not change
/// while it was read.
pub(super) const SPOOL: &str = "spool";

pub(super) fn building_dir(generations: &Path, number: u64) -> PathBuf {
    generations.join(format!("{BUILDING}{number}"))
}

/// Reads the number in the name of a build's directory; `None` if it is not such a name.
pub(super) fn building_number(name: &str) -> Option<u64> {
    name.strip_prefix(BUILDING)?.parse().ok()
}

#[derive(Debug)]
pub(super) struct Building {
    disk: Disk,
    kind: Kind,
    /// The group of all files of the generation; `None` for the process's own group.
    group: Option<u32>,
    dir: PathBuf,
    manifest: Output,
    nodes: Output,
    sources: Output,
    index: Writer,
    /// Number of bytes of the leaves so far.
    leaf_bytes: u64,
    /// Names of the directories above the last entry, and of that entry if it is a directory.
    open: Vec<String>,
    /// Paths to make durable; `None` if there are so many that the whole file system is synced
    /// instead.
    unsynced: Option<Vec<PathBuf>>,
    syncs_max: usize,
    stop: StopFlag,
}

/// A flag that tells long operations to stop.
#[derive(Clone, Debug, Default)]
pub(super) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(super) fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

impl Building {
    /// Begins a generation in this new directory, which only the owner can enter until the
    /// generation is whole.
    pub(super) fn begin(
        disk: &Disk,
        dir: PathBuf,
        (kind, access): (Kind, Access),
        syncs_max: usize,
        stop: &StopFlag,
    ) -> Result<Self, Error> {
        let tree = dir.join(TREE);
        disk.make_directory(&dir, Some(FOLDER)).map_err(Error::io(&dir))?;
        disk.make_directory(&tree, Some(FOLDER)).map_err(Error::io(&tree))?;
        let create = |name: &str| {
            let path = dir.join(name);
            Output::create(disk, &path).map_err(Error::io(path))
        };
        create(LEASE)?;
        Ok(Self {
            manifest: create(MANIFEST)?,
            nodes: create(NODES)?,
            sources: create(SOURCES)?,
            index: Writer::new(disk, dir.join(INDEX)),
            leaf_bytes: 0,
            open: Vec::new(),
            unsynced: Some(vec![tree]),
            syncs_max,
            stop: stop.clone(),
            disk: disk.clone(),
            kind,
            group: access.other_group(),
            dir,
        })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the group of all files of the generation; `None` for the process's own group.
    pub(super) fn group(&self) -> Option<u32> {
        self.group
    }

    pub(super) fn stream(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.manifest.write(bytes).map_err(Error::io(self.manifest.path()))
    }

    /// Adds the next leaf of the manifest to the index.
    pub(super) fn leaf(&mut self, hash: &Hash, bytes: usize) -> Result<(), Error> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let location = Location { file: ChunkFile::Manifest, offset: self.leaf_bytes, bytes };
        self.leaf_bytes += u64::from(bytes);
        self.index.push(hash, location)
    }

    /// Adds a node, or the root.
    pub(super) fn node(&mut self, hash: &Hash, bytes: &[u8]) -> Result<(), Error> {
        let offset = self.nodes.position();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.nodes.write(bytes).map_err(Error::io(self.nodes.path()))?;
        self.index.push(hash, Location { file: ChunkFile::Nodes, offset, bytes: length })
    }

    /// Adds to the index a chunk at this offset of the file whose entry begins at `at` in the
    /// manifest.
    pub(super) fn extent(&mut self, at: u64, offset: u64, extent: Extent) -> Result<(), Error> {
        self.stop.check()?;
        let location = Location { file: ChunkFile::Entry(at), offset, bytes: extent.bytes };
        self.index.push(&extent.hash, location)
    }

    pub(super) fn stamp(&mut self, record: &[u8]) -> Result<(), Error> {
        self.sources.write(record).map_err(Error::io(self.sources.path()))
    }

    /// Moves the stamps to a generation with the same manifest, in place of those that it has.
    pub(super) fn hand_over_stamps(&mut self, to: &Generation) -> Result<(), Error> {
        self.sources.flush().map_err(Error::io(self.sources.path()))?;
        let path = to.dir().join(SOURCES);
        self.disk.rename(self.sources.path(), &path).map_err(Error::io(path))
    }

    /// Flushes the manifest. Returns the manifest's path and its open file.
    pub(super) fn manifest(&mut self) -> Result<(&Path, Arc<fs::File>), Error> {
        self.manifest.flush().map_err(Error::io(self.manifest.path()))?;
        Ok((self.manifest.path(), self.manifest.file().clone()))
    }

    /// Makes the directories above an entry. Returns the entry's path on disk.
    fn make_parents(&mut self, path: &EntryPath) -> Result<PathBuf, Error> {
        self.stop.check()?;
        let names: Vec<&str> = path.components().collect();
        let (_, above) = names.split_last().unwrap_or((&"", &[]));
        let common = self.open.iter().zip(above).take_while(|(a, b)| a == *b).count();
        self.open.truncate(common);
        let mut at = self.dir.join(TREE);
        at.extend(&self.open);
        for name in above.iter().skip(common) {
            at.push(name);
            self.make_folder(&at, Mode::EXECUTABLE)?;
            self.open.push((*name).to_owned());
        }
        Ok(self.dir.join(TREE).join(path.as_str()))
    }

    fn make_folder(&mut self, at: &Path, mode: Mode) -> Result<(), Error> {
        let mode = mode.of_folder(self.kind);
        self.disk.make_directory(at, Some(mode)).map_err(Error::io(at))?;
        self.give(at)?;
        self.note_unsynced(at);
        Ok(())
    }

    fn give(&self, path: &Path) -> Result<(), Error> {
        let Some(group) = self.group else { return Ok(()) };
        chown(path, None, Some(group)).map_err(Error::io(path))
    }

    fn note_unsynced(&mut self, path: &Path) {
        let syncs_max = self.syncs_max;
        self.unsynced = self.unsynced.take().filter(|it| it.len() < syncs_max);
        if let Some(unsynced) = &mut self.unsynced {
            unsynced.push(path.to_owned());
        }
    }

    /// Makes a folder, whose entries may follow.
    pub(super) fn directory(&mut self, path: &EntryPath, mode: Mode) -> Result<(), Error> {
        let at = self.make_parents(path)?;
        self.make_folder(&at, mode)?;
        self.open.extend(path.components().last().map(str::to_owned));
        Ok(())
    }

    /// Sets the mode of the tree's own folder.
    pub(super) fn top(&self, mode: Mode) -> Result<(), Error> {
        let tree = self.dir.join(TREE);
        self.give(&tree)?;
        set_mode(&tree, mode.of_folder(self.kind))
    }

    pub(super) fn symlink(&mut self, path: &EntryPath, target: &str) -> Result<(), Error> {
        let at = self.make_parents(path)?;
        self.disk.symlink(Path::new(target), &at).map_err(Error::io(&at))
    }

    /// Links a file of another generation. Returns false if the file must be copied instead.
    pub(super) fn link(&mut self, path: &EntryPath, from: &Path) -> Result<bool, Error> {
        let at = self.make_parents(path)?;
        match self.disk.link(from, &at) {
            Ok(()) => Ok(true),
            // The file is gone, or has as many links as the file system allows.
            Err(error) if may_be_copied(&error) => Ok(false),
            Err(error) => Err(Error::io(at)(error)),
        }
    }

    /// Makes a file, to be filled and then [sealed](Building::seal).
    pub(super) fn file(&mut self, path: &EntryPath) -> Result<Output, Error> {
        let at = self.make_parents(path)?;
        Output::create(&self.disk, &at).map_err(Error::io(at))
    }

    pub(super) fn seal(
        &mut self,
        mut file: Output,
        mode: Mode,
        modified: i64,
    ) -> Result<(), Error> {
        let mode = mode.of_file(self.kind);
        file.seal(mode, self.group, modified).map_err(Error::io(file.path()))?;
        self.note_unsynced(file.path());
        Ok(())
    }

    /// Seals the file [`INCOMING`] and moves it to its path in the tree.
    pub(super) fn take_in(
        &mut self,
        path: &EntryPath,
        mut file: Output,
        mode: Mode,
        modified: i64,
    ) -> Result<(), Error> {
        let mode = mode.of_file(self.kind);
        file.seal(mode, self.group, modified).map_err(Error::io(file.path()))?;
        let at = self.make_parents(path)?;
        self.disk.rename(file.path(), &at).map_err(Error::io(&at))?;
        self.note_unsynced(&at);
        Ok(())
    }

    /// Makes a file outside of the tree, [`INCOMING`] or [`SPOOL`], in place of an earlier one.
    /// [`Building::finish`] removes it.
    pub(super) fn create_anew(&self, name: &str) -> Result<Output, Error> {
        let path = self.dir.join(name);
        self.disk.remove_tree(&path).map_err(Error::io(&path))?;
        Output::create(&self.disk, &path).map_err(Error::io(path))
    }

    /// Completes the generation, makes it durable and gives it its final name. Returns its
    /// directory.
    pub(super) fn finish(mut self, meta: &Meta, name: &str) -> Result<PathBuf, Error> {
        for out in [&mut self.manifest, &mut self.nodes, &mut self.sources] {
            out.flush().map_err(Error::io(out.path()))?;
        }
        self.index.finish()?;
        let (disk, dir) = (self.disk, self.dir);
        for name in [INCOMING, SPOOL] {
            let path = dir.join(name);
            disk.remove_tree(&path).map_err(Error::io(path))?;
        }
        let path = dir.join(META);
        let mut out = Output::create(&disk, &path).map_err(Error::io(&path))?;
        out.write(&meta.to_bytes()).and_then(|()| out.flush()).map_err(Error::io(&path))?;
        admit(&dir, self.kind)?;
        let sync = |path: &Path| disk.sync(path).map_err(Error::io(path));
        if let Some(unsynced) = &self.unsynced {
            unsynced.iter().try_for_each(|it| sync(it))?;
            let names = [LEASE, META, MANIFEST, NODES, INDEX, SOURCES];
            names.iter().try_for_each(|it| sync(&dir.join(it)))?;
            sync(&dir)?;
        } else {
            disk.sync_file_system(&dir).map_err(Error::io(&dir))?;
        }
        let to = dir.with_file_name(name);
        disk.rename(&dir, &to).map_err(Error::io(&to))?;
        sync(to.parent().unwrap_or(&to))?;
        Ok(to)
    }
}

/// Sets the modes of a generation so that readers reach its tree and nothing else. The generation
/// of a collection stays private.
pub(super) fn admit(dir: &Path, kind: Kind) -> Result<(), Error> {
    PRIVATE.iter().try_for_each(|it| set_mode(&dir.join(it), FILE))?;
    set_mode(&dir.join(LEASE), LEASE_MODE)?;
    set_mode(dir, Mode::EXECUTABLE.of_folder(kind))
}

fn may_be_copied(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, TooManyLinks};
    matches!(error.kind(), NotFound | TooManyLinks | PermissionDenied)
}
