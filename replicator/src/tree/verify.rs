//! Verification: reads and hashes all of the present generation.
//!
//! Damaged files are recorded, so that their chunks count as missing and no new generation links to
//! them. Fetching the same version once more, or publishing it, makes a whole generation.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::chunk::FILE;
use super::error::Error;
use super::generation::{ChunkRead, Generation, INDEX, is_about_content, open_file};
use super::index::ChunkFile;
use super::levels::Walk;
use super::listing::Listed;
use super::manifest::{Entry, EntryKind};
use super::store::{DAMAGED_MAX, Store};
use crate::version::{Hash, Kind};

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Number of checked entries.
    pub entries: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Damaged paths, at most 100 of them.
    pub damaged: Vec<PathBuf>,
    /// Number of all damaged paths, listed or not.
    pub damaged_count: u64,
}

impl Verified {
    fn add(&mut self, store: &Store, path: PathBuf) {
        store.note_damaged(path.clone());
        self.damaged_count += 1;
        if self.damaged.len() < DAMAGED_MAX {
            self.damaged.push(path);
        }
    }
}

impl Store {
    /// Reads all of the present generation, which takes as long as the disk needs to read it.
    /// Additional files in its directory count as damage too, because readers see them.
    ///
    /// # Errors
    ///
    /// The system refuses a read for a reason other than damage of the file.
    pub fn verify(&self) -> Result<Verified, Error> {
        let mut verified = Verified::default();
        let Some(generation) = self.current() else { return Ok(verified) };
        if let Some(path) = check_manifest(&generation, self.kind())? {
            // With a damaged manifest the entries are unknown.
            verified.add(self, path);
            return Ok(verified);
        }
        let mut names = Names::new(generation.tree());
        let top = generation.format().top();
        if !generation.is_open_as_made(&generation.tree(), top) {
            verified.add(self, generation.tree());
        }
        let mut listing = generation.listing();
        while let Some(listed) = listing.next_entry()? {
            verified.entries += 1;
            verified.bytes += listed.bytes();
            names.expect(&listed.entry, &mut |path| verified.add(self, path))?;
            let path = generation.path(&listed.entry.path);
            if !check_entry(self, &generation, &listed, &path)? {
                generation.set_damaged(ChunkFile::Entry(listed.at));
                verified.add(self, path);
            }
        }
        names.close(0, &mut |path| verified.add(self, path))?;
        Ok(verified)
    }
}

/// The expected names in the directories that lead to the last entry. Others need not be kept,
/// because all entries below a directory come together. There are at most
/// [`SIBLINGS_MAX`](super::order::SIBLINGS_MAX) names.
struct Names {
    open: Vec<(PathBuf, HashSet<OsString>)>,
}

impl Names {
    fn new(top: PathBuf) -> Self {
        Self { open: vec![(top, HashSet::new())] }
    }

    /// Expects the next entry. Passes unexpected paths in finished directories to `extra`.
    fn expect(&mut self, entry: &Entry, extra: &mut impl FnMut(PathBuf)) -> Result<(), Error> {
        let names: Vec<&str> = entry.path.components().collect();
        let open = self.open.iter().skip(1).map(|it| it.0.file_name());
        let is_same = |(open, name): &(Option<&OsStr>, &&str)| *open == Some(OsStr::new(name));
        let common = open.zip(&names).take_while(is_same).count();
        self.close(common + 1, extra)?;
        let is_directory = matches!(entry.kind, EntryKind::Directory { .. });
        for (depth, name) in names.iter().enumerate().skip(common) {
            let Some((dir, known)) = self.open.last_mut() else { break };
            let below = dir.join(name);
            known.insert((*name).into());
            if is_directory || depth + 1 < names.len() {
                self.open.push((below, HashSet::new()));
            }
        }
        Ok(())
    }

    /// Checks and closes the open directories below the first `keep`.
    fn close(&mut self, keep: usize, extra: &mut impl FnMut(PathBuf)) -> Result<(), Error> {
        while keep < self.open.len() {
            let Some((dir, known)) = self.open.pop() else { break };
            let entries = match fs::read_dir(&dir) {
                // The missing folder or its missing entries are reported elsewhere.
                Err(error) if is_about_content(&error) => continue,
                entries => entries.map_err(Error::io(&dir))?,
            };
            for entry in entries {
                let name = entry.map_err(Error::io(&dir))?.file_name();
                if !known.contains(&name) {
                    extra(dir.join(name));
                }
            }
        }
        Ok(())
    }
}

/// Reads the chunks of the manifest. Returns the file that contains a damaged one; `None` if all
/// are undamaged.
fn check_manifest(generation: &Generation, kind: Kind) -> Result<Option<PathBuf>, Error> {
    let root = generation.meta().root;
    let mut walk: Option<Walk> = None;
    loop {
        let wanted = match &walk {
            None => root,
            Some(walk) if walk.is_done() => return Ok(None),
            Some(walk) => walk.wanted().next().map_or(root, |it| it.hash),
        };
        let bytes = match generation.read(&wanted)? {
            ChunkRead::Bytes(bytes) => bytes,
            ChunkRead::Unlisted => return Ok(Some(generation.dir().join(INDEX))),
            ChunkRead::Damaged(path) => return Ok(Some(path)),
        };
        match &mut walk {
            None => walk = Some(Walk::new(kind, &root, &bytes)?),
            Some(walk) => drop(walk.take(&wanted, &bytes)?),
        }
        while walk.as_mut().is_some_and(|it| it.next_bytes().is_some()) {}
    }
}

fn check_entry(
    store: &Store,
    generation: &Generation,
    listed: &Listed,
    path: &Path,
) -> Result<bool, Error> {
    match &listed.entry.kind {
        EntryKind::Directory { mode } => Ok(generation.is_open_as_made(path, *mode)),
        EntryKind::Link { target } => {
            Ok(fs::read_link(path).is_ok_and(|it| it.to_str() == Some(target)))
        }
        EntryKind::File { .. } => {
            Ok(generation.is_untouched(listed) && check_file(store, generation, listed, path)?)
        }
    }
}

fn check_file(
    store: &Store,
    generation: &Generation,
    listed: &Listed,
    path: &Path,
) -> Result<bool, Error> {
    let file = match open_file(path) {
        Err(error) if is_about_content(&error) => return Ok(false),
        file => file.map_err(Error::io(path))?,
    };
    let mut extents = generation.extents(listed);
    let mut buffer = vec![0; FILE.max];
    let mut offset = 0;
    while let Some(extent) = extents.next_extent()? {
        store.check_stop()?;
        let length = usize::try_from(extent.bytes).unwrap_or(0);
        let Some(bytes) = buffer.get_mut(..length) else { return Ok(false) };
        match file.read_exact_at(bytes, offset) {
            Err(error) if is_about_content(&error) => return Ok(false),
            read => read.map_err(Error::io(path))?,
        }
        if Hash::of(bytes) != extent.hash {
            return Ok(false);
        }
        offset += u64::from(extent.bytes);
    }
    Ok(true)
}
