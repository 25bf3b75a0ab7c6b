//! A generation: a version on disk. It is a directory that is made as a whole, never changed, and
//! finally removed.
//!
//! ```text
//! GENERATION/          SERIAL-EPOCH.SEQUENCE
//!     tree/            the directory that readers see
//!     lease            readers lock it, shared
//!     meta             root, number, sums, the signed version
//!     manifest         the whole manifest
//!     nodes            the chunks that lead to the manifest, with the root
//!     index            the location of each chunk
//!     sources          stamps of the publisher's files; empty at other members
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use collection::replica;

use super::error::Error;
use super::index::{ChunkFile, Index, Location, file_number};
use super::listing::{Extents, Listed, Listing, path_at};
use super::manifest::{EntryKind, Format, Totals, format_of};
use super::mode::Mode;
use super::path::EntryPath;
use crate::version::{Hash, Kind, Number, VERSION_BYTES_MAX, Version};

/// The names in a generation.
pub(super) const TREE: &str = "tree";
pub(super) const LEASE: &str = "lease";
pub(super) const META: &str = "meta";
pub(super) const MANIFEST: &str = "manifest";
pub(super) const NODES: &str = "nodes";
pub(super) const INDEX: &str = "index";
pub(super) const SOURCES: &str = "sources";

/// The private files of a generation, which contain names of files that readers may not see.
pub(super) const PRIVATE: [&str; 5] = [META, MANIFEST, NODES, INDEX, SOURCES];
/// The mode of the file that readers lock.
pub(super) const LEASE_MODE: u32 = 0o444;

/// Maximum number of damaged files that are remembered; if there are more, the whole generation
/// counts as damaged.
const DAMAGED_MAX: usize = 10_000;
const META_FORMAT: u8 = 1;
/// Number of times that a reader tries to lock the newest generation while it is being replaced.
const LEASE_ATTEMPTS: usize = 1000;

/// The version of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The hash of the chunk that leads to all others.
    pub root: Hash,
    /// The version's number.
    pub number: Number,
    /// The totals of the manifest.
    pub totals: Totals,
    /// The version, as its origin signed it.
    pub version: Vec<u8>,
}

impl Meta {
    pub(super) fn new(version: &Version, totals: Totals) -> Self {
        let (root, number) = (version.root, version.number);
        Self { root, number, totals, version: version.to_bytes() }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![META_FORMAT];
        bytes.extend(self.root.0);
        let Totals { entries, bytes: file_bytes } = self.totals;
        for number in [self.number.epoch, self.number.sequence, entries, file_bytes] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(&self.version);
        let check = Hash::of(&bytes);
        bytes.extend(check.0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (rest, check) = bytes.split_last_chunk::<32>()?;
        if Hash::of(rest) != Hash(*check) {
            return None;
        }
        let (&[format], rest) = rest.split_first_chunk()?;
        let (root, rest) = rest.split_first_chunk()?;
        let (numbers, version) = rest.split_first_chunk::<32>()?;
        let (numbers, _) = numbers.as_chunks();
        let &[epoch, sequence, entries, bytes] = numbers else { return None };
        let [epoch, sequence, entries, bytes] =
            [epoch, sequence, entries, bytes].map(u64::from_le_bytes);
        let is_ours = format == META_FORMAT && version.len() <= VERSION_BYTES_MAX;
        is_ours.then(|| Self {
            root: Hash(*root),
            number: Number { epoch, sequence },
            totals: Totals { entries, bytes },
            version: version.to_vec(),
        })
    }
}

/// An open generation.
#[derive(Debug)]
pub struct Generation {
    dir: PathBuf,
    kind: Kind,
    serial: u64,
    meta: Meta,
    format: Format,
    manifest: Arc<File>,
    nodes: File,
    index: Index,
    /// The numbers of damaged files: see [`file_number`].
    damaged: Mutex<BTreeSet<u64>>,
}

#[derive(Debug)]
pub(super) enum ChunkRead {
    Bytes(Vec<u8>),
    /// The generation does not list the chunk.
    Unlisted,
    /// The chunk was in this file, which was changed or is damaged.
    Damaged(PathBuf),
}

/// The file of the last chunk that was read, kept open for the next one.
#[derive(Debug, Default)]
pub struct LastFile(Option<((u64, u64), PathBuf, io::Result<File>)>);

impl Generation {
    /// Opens the generation in `dir`, whose content is of this kind.
    pub(super) fn open(dir: &Path, kind: Kind) -> Result<Self, Error> {
        let path = |name: &str| dir.join(name);
        let open = |name: &str| File::open(path(name)).map_err(Error::io(path(name)));
        let mut bytes = Vec::new();
        open(META)?.read_to_end(&mut bytes).map_err(Error::io(path(META)))?;
        open(LEASE)?;
        let damaged = || Error::Damaged(path(META));
        let manifest = open(MANIFEST)?;
        let mut first = [0; 3];
        // If the manifest is invalid, this is noticed when its entries are read.
        let is_read = manifest.read_exact_at(&mut first, 0).is_ok();
        let format = format_of(&first).filter(|_| is_read).unwrap_or_default();
        Ok(Self {
            kind,
            format,
            serial: dir.file_name().and_then(|it| serial(it.to_str()?)).ok_or_else(damaged)?,
            meta: Meta::from_bytes(&bytes).ok_or_else(damaged)?,
            manifest: Arc::new(manifest),
            nodes: open(NODES)?,
            index: Index::open(&path(INDEX)).map_err(Error::io(path(INDEX)))?,
            damaged: Mutex::default(),
            dir: dir.to_owned(),
        })
    }

    /// Returns whether the generation's log still has bytes that have been purged from the present
    /// log; true also if that is unknown. Such a generation is removed early.
    pub(super) fn holds_purged(&self, present: &Self) -> bool {
        self.kind == Kind::Collection
            && replica::holds_purged(&self.tree(), &present.tree()).unwrap_or(true)
    }

    /// Returns the version.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the directory that readers see.
    pub fn tree(&self) -> PathBuf {
        self.dir.join(TREE)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the serial of the generation; later generations have greater serials.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn listing(&self) -> Listing {
        Listing::new(&self.dir.join(MANIFEST), self.manifest.clone())
    }

    /// Reads the chunks of one of its files.
    pub(super) fn extents(&self, listed: &Listed) -> Extents {
        Extents::new(&self.dir.join(MANIFEST), &self.manifest, listed)
    }

    /// Opens the stamps of the publisher's files; returns `None` if there are none.
    pub(super) fn stamps(&self) -> Option<File> {
        File::open(self.dir.join(SOURCES)).ok()
    }

    fn damaged(&self) -> std::sync::MutexGuard<'_, BTreeSet<u64>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_damaged(&self, at: u64) -> bool {
        let damaged = self.damaged();
        DAMAGED_MAX <= damaged.len() || damaged.contains(&at)
    }

    pub(super) fn set_damaged(&self, file: ChunkFile) {
        let mut damaged = self.damaged();
        if damaged.len() < DAMAGED_MAX {
            damaged.insert(file_number(file));
        }
    }

    /// Returns whether the file of a chunk is known to be damaged; `None` if the chunk is not
    /// listed.
    pub(super) fn find(&self, hash: &Hash) -> Result<Option<bool>, Error> {
        let found = self.index.find(hash).map_err(Error::io(self.dir.join(INDEX)))?;
        Ok(found.map(|it| self.is_damaged(file_number(it.file))))
    }

    pub(super) fn read(&self, hash: &Hash) -> Result<ChunkRead, Error> {
        self.read_with(hash, &mut LastFile::default())
    }

    /// Reads a chunk as [`Generation::read`] does, but uses the file that was opened last if the
    /// chunk is in the same file.
    pub(super) fn read_with(&self, hash: &Hash, opened: &mut LastFile) -> Result<ChunkRead, Error> {
        let found = self.index.find(hash).map_err(Error::io(self.dir.join(INDEX)))?;
        let Some(location) = found else { return Ok(ChunkRead::Unlisted) };
        let (path, read) = match location.file {
            ChunkFile::Manifest => (self.dir.join(MANIFEST), read(&self.manifest, location)),
            ChunkFile::Nodes => (self.dir.join(NODES), read(&self.nodes, location)),
            ChunkFile::Entry(at) => {
                let key = (self.serial, at);
                if opened.0.as_ref().is_none_or(|it| it.0 != key) {
                    let manifest = self.dir.join(MANIFEST);
                    let path = path_at(&self.manifest, at).map_err(Error::io(&manifest))?;
                    let Some(path) = path else { return Ok(ChunkRead::Damaged(manifest)) };
                    let path = self.path(&path);
                    let file = open_file(&path);
                    opened.0 = Some((key, path, file));
                }
                match &opened.0 {
                    Some((_, path, Ok(file))) => (path.clone(), read(file, location)),
                    Some((_, path, Err(error))) => (path.clone(), Err(again(error))),
                    None => return Ok(ChunkRead::Unlisted),
                }
            }
        };
        match read {
            Ok(bytes) if Hash::of(&bytes) == *hash => return Ok(ChunkRead::Bytes(bytes)),
            Ok(_) => {}
            Err(error) if is_about_content(&error) => {}
            Err(error) => return Err(Error::io(path)(error)),
        }
        self.set_damaged(location.file);
        Ok(ChunkRead::Damaged(path))
    }

    pub(super) fn path(&self, path: &EntryPath) -> PathBuf {
        self.tree().join(path.as_str())
    }

    /// Returns whether a file has the listed size, time and mode, and is not known to be damaged.
    /// Does not read the file.
    pub(super) fn is_untouched(&self, listed: &Listed) -> bool {
        let EntryKind::File { mode, bytes, modified } = listed.entry.kind else {
            return false;
        };
        let found = fs::symlink_metadata(self.path(&listed.entry.path));
        !self.is_damaged(listed.at)
            && found.is_ok_and(|it| {
                it.is_file()
                    && it.len() == bytes
                    && (it.mtime(), it.mtime_nsec()) == (modified, 0)
                    && it.mode() & 0o7777 == mode.of_file(self.kind)
            })
    }

    /// Returns whether a path is a folder with this listed mode. In format 1, which lists no modes,
    /// the folder may have any mode.
    pub(super) fn is_open_as_made(&self, path: &Path, mode: Mode) -> bool {
        let is_it = |found: fs::Metadata| {
            let mode = mode.of_folder(self.kind);
            found.is_dir() && (self.format == Format::One || found.mode() & 0o7777 == mode)
        };
        fs::symlink_metadata(path).is_ok_and(is_it)
    }
}

/// Opens a regular file, without following a symbolic link, and without waiting if the path is a
/// pipe.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

fn read(file: &File, location: Location) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(location.bytes).unwrap_or(0)];
    file.read_exact_at(&mut bytes, location.offset)?;
    Ok(bytes)
}

/// Returns whether an error is about a file's content rather than about the system.
pub(super) fn is_about_content(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, PermissionDenied, UnexpectedEof};
    // 5 (EIO): the disk cannot read the file; 40 (ELOOP): a symbolic link is in its place.
    matches!(error.raw_os_error(), Some(5 | 40))
        || matches!(
            error.kind(),
            NotFound | IsADirectory | NotADirectory | PermissionDenied | UnexpectedEof
        )
}

/// Returns the name of a generation's directory.
pub(super) fn dir_name(serial: u64, number: Number) -> String {
    format!("{serial:06}-{number}")
}

/// Reads the serial in the name of a generation's directory; `None` if it is not such a name.
pub(super) fn serial(name: &str) -> Option<u64> {
    let (serial, number) = name.split_once('-')?;
    let (epoch, sequence) = number.split_once('.')?;
    let number = Number { epoch: epoch.parse().ok()?, sequence: sequence.parse().ok()? };
    let serial = serial.parse().ok()?;
    (name == dir_name(serial, number)).then_some(serial)
}

/// A reader's lease on a tree: the tree is not removed while the lease exists.
#[derive(Debug)]
pub struct Lease {
    tree: PathBuf,
    _locked: File,
}

impl Lease {
    /// Takes a lease on the tree that `current` leads to now. All files below [`Lease::tree`] are
    /// of one version, even if others are published meanwhile.
    ///
    /// # Errors
    ///
    /// There is no tree yet, or it cannot be read.
    pub fn take(current: &Path) -> Result<Self, Error> {
        for _ in 0..LEASE_ATTEMPTS {
            let target = match fs::read_link(current) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                target => target.map_err(Error::io(current))?,
            };
            let tree = current.parent().unwrap_or_else(|| Path::new("")).join(target);
            let path = tree.with_file_name(LEASE);
            // If opening fails, the generation was removed after `current` was read.
            if let Ok(locked) = File::open(&path)
                && locked.try_lock_shared().is_ok()
                && path.exists()
            {
                return Ok(Self { tree, _locked: locked });
            }
        }
        Err(Error::NoTree(current.to_owned()))
    }

    /// Returns the directory to read.
    pub fn tree(&self) -> &Path {
        &self.tree
    }
}

/// Locks a generation against new readers; returns `None` if a reader has a lease. The lock ends
/// when the file is closed.
pub(super) fn lock_out(dir: &Path) -> Result<Option<File>, Error> {
    let path = dir.join(LEASE);
    let file = File::open(&path).map_err(Error::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(Error::io(path)(error)),
    }
}
