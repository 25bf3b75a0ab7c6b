//! Fetching of a version: names the missing chunks, and switches to the version once all of them
//! have come.
//!
//! First come the chunks of the manifest, then those of files that differ from the present
//! generation. Files that are equal to those of the present generation are linked, others are
//! assembled from staged chunks and those of any generation.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use super::building::Building;
use super::error::Error;
use super::generation::{Generation, LastFile, Meta};
use super::levels::{LOOK_AHEAD_CHUNKS, NODE_BYTES_MAX, Role, Walk, WalkError, Wanted};
use super::listing::{Extents, Listed, Listing};
use super::manifest::{Decoder, EntryKind, Format, Item, Totals};
use super::path::EntryPath;
use super::store::Store;
use crate::version::{Hash, Kind, Version};

/// Maximum number of chunks that are wanted at once.
pub const WANTED_MAX: usize = LOOK_AHEAD_CHUNKS;

/// A version that is being fetched. A store has one fetch at a time: a new one ends the one before,
/// whose chunks stay.
#[derive(Debug)]
pub struct Fetch {
    store: Arc<Store>,
    version: Version,
    state: FetchState,
    /// Chunks of the manifest that no generation has; only staged chunks are searched for them.
    absent: HashSet<Hash>,
}

#[derive(Debug)]
enum FetchState {
    Root,
    Manifest(Box<Manifest>),
    Content(Box<Content>),
}

#[derive(Debug)]
struct Manifest {
    building: Building,
    walk: Walk,
    decoder: Decoder,
    /// The totals of the entries read so far.
    totals: Totals,
}

#[derive(Debug)]
struct Content {
    building: Building,
    totals: Totals,
    format: Format,
    listing: Listing,
    former: Option<FormerEntries>,
    extents: Option<Extents>,
    missing: Vec<Wanted>,
    /// Bytes of the files that have not been checked yet.
    unseen_bytes: u64,
    is_scanned: bool,
}

impl Fetch {
    /// Begins to fetch a version of a tree. Staged chunks of other versions are kept, unless they
    /// are many more than this version can use.
    pub fn begin(store: &Arc<Store>, version: &Version) -> Result<Self, Error> {
        store.trim_staged(version.bytes)?;
        let (store, version) = (store.clone(), version.clone());
        Ok(Self { store, version, state: FetchState::Root, absent: HashSet::new() })
    }

    /// Returns the version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// Takes in the chunks that came since the last call, and returns the chunks to get now, the
    /// first needed first: at most `max`, and no more than [`WANTED_MAX`]. The length given for the
    /// root is its maximum length. [`Store::put`] takes chunks in any order. The list is empty once
    /// all chunks are here.
    ///
    /// Each call reads on in the manifest, and checks files of the present generation, until it has
    /// found enough missing chunks.
    ///
    /// # Errors
    ///
    /// [`Error::Walk`], [`Error::Manifest`], [`Error::Bounds`], [`Error::OtherVersion`]: the
    /// version cannot be used. [`Error::Full`]: call again later. Fetching then begins anew, but
    /// keeps the chunks that have come.
    pub fn wanted(&mut self, max: usize) -> Result<Vec<Wanted>, Error> {
        let wanted = self.advance(max.clamp(1, WANTED_MAX));
        if wanted.is_err() {
            self.start_again();
        }
        wanted
    }

    /// Returns how many bytes of files may still have to come: the bytes of missing chunks, and of
    /// files that have not been checked yet. `None` until the whole manifest has come.
    pub fn missing_bytes(&self) -> Option<u64> {
        let FetchState::Content(content) = &self.state else { return None };
        let wanted: u64 = content.missing.iter().map(|it| u64::from(it.bytes)).sum();
        Some(wanted + content.unseen_bytes)
    }

    fn start_again(&mut self) {
        let state = std::mem::replace(&mut self.state, FetchState::Root);
        self.absent.clear();
        let building = match &state {
            FetchState::Root => return,
            FetchState::Manifest(it) => &it.building,
            FetchState::Content(it) => &it.building,
        };
        self.store.give_up(building.dir());
    }

    fn advance(&mut self, max: usize) -> Result<Vec<Wanted>, Error> {
        loop {
            match &mut self.state {
                FetchState::Root => {
                    let hash = self.version.root;
                    let Some(root) = self.store.read(&hash)? else {
                        let bytes = u32::try_from(NODE_BYTES_MAX).unwrap_or(u32::MAX);
                        return Ok(vec![Wanted { hash, bytes }]);
                    };
                    let walk = Walk::new(self.store.kind(), &hash, &root)?;
                    let mut building = self.store.begin()?;
                    building.node(&hash, &root)?;
                    let (decoder, totals) = (Decoder::default(), Totals::default());
                    let manifest = Manifest { building, walk, decoder, totals };
                    self.state = FetchState::Manifest(Box::new(manifest));
                }
                FetchState::Manifest(manifest) => {
                    let wanted = manifest.advance(&self.store, &mut self.absent)?;
                    if !wanted.is_empty() {
                        return Ok(wanted.into_iter().take(max).collect());
                    }
                    self.begin_content()?;
                }
                FetchState::Content(content) => {
                    content.advance(&self.store, max)?;
                    return Ok(content.missing.clone());
                }
            }
        }
    }

    fn begin_content(&mut self) -> Result<(), Error> {
        let FetchState::Manifest(manifest) = std::mem::replace(&mut self.state, FetchState::Root)
        else {
            return Ok(());
        };
        self.absent.clear();
        let Manifest { mut building, decoder, .. } = *manifest;
        let format = decoder.format();
        let totals = decoder.finish()?;
        self.store.options().check(totals)?;
        if totals.bytes != self.version.bytes {
            return Err(Error::OtherVersion(self.version.number));
        }
        let (path, file) = building.manifest()?;
        if self.store.kind() == Kind::Collection {
            let staged = self.store.stage_folded(&mut Listing::new(path, file.clone()));
            if let Err(error) = staged {
                tracing::warn!(version = %self.version.number, %error, "a log is not folded here");
            }
        }
        self.state = FetchState::Content(Box::new(Content {
            listing: Listing::new(path, file),
            building,
            totals,
            format,
            former: self.store.current().map(FormerEntries::new),
            extents: None,
            missing: Vec::new(),
            unseen_bytes: totals.bytes,
            is_scanned: false,
        }));
        Ok(())
    }

    /// Builds the generation and switches to it, if all chunks are here. Returns `None` if some are
    /// missing, for example because a damaged file was found: get the [wanted](Self::wanted) ones,
    /// then try again.
    ///
    /// # Errors
    ///
    /// The errors of [`Fetch::wanted`], and [`Error::Log`]. Readers still see what they saw before.
    pub fn switch(&mut self) -> Result<Option<Arc<Generation>>, Error> {
        if !self.wanted(1)?.is_empty() {
            return Ok(None);
        }
        let FetchState::Content(content) = std::mem::replace(&mut self.state, FetchState::Root)
        else {
            return Ok(None);
        };
        let dir = content.building.dir().to_owned();
        let switched = self.assemble(*content);
        if !matches!(switched, Ok(Some(_))) {
            self.store.give_up(&dir);
        }
        switched
    }

    fn assemble(&self, content: Content) -> Result<Option<Arc<Generation>>, Error> {
        let Content { mut building, totals, format, .. } = content;
        building.top(format.top())?;
        let (path, file) = building.manifest()?;
        let path = path.to_owned();
        let mut listing = Listing::new(&path, file.clone());
        let mut former = self.store.current().map(FormerEntries::new);
        while let Some(listed) = listing.next_entry()? {
            let same = former.as_mut().and_then(|it| it.same(&listed));
            let entry = &listed.entry;
            match &entry.kind {
                EntryKind::Directory { mode } => building.directory(&entry.path, *mode)?,
                EntryKind::Link { target } => building.symlink(&entry.path, target)?,
                EntryKind::File { .. } => {
                    let from = same.map(|generation| generation.path(&entry.path));
                    let is_linked = match from {
                        Some(from) => building.link(&entry.path, &from)?,
                        None => false,
                    };
                    if !self.fill(&mut building, (&path, &file), &listed, is_linked)? {
                        return Ok(None);
                    }
                }
            }
        }
        self.store.switch(building, &Meta::new(&self.version, totals)).map(Some)
    }

    /// Indexes the chunks of a file, and writes them unless it is linked. Returns whether all are
    /// here.
    fn fill(
        &self,
        building: &mut Building,
        (path, manifest): (&Path, &Arc<File>),
        listed: &Listed,
        is_linked: bool,
    ) -> Result<bool, Error> {
        let EntryKind::File { mode, modified, .. } = listed.entry.kind else {
            return Ok(true);
        };
        let mut out = if is_linked { None } else { Some(building.file(&listed.entry.path)?) };
        let mut extents = Extents::new(path, manifest, listed);
        let mut offset = 0;
        // Most chunks of a changed file come from the same file of the present generation, and all
        // chunks of a hole are equal.
        let mut opened = LastFile::default();
        let mut last: Option<(Hash, Vec<u8>)> = None;
        while let Some(extent) = extents.next_extent()? {
            building.extent(listed.at, offset, extent)?;
            offset += u64::from(extent.bytes);
            let Some(out) = &mut out else { continue };
            if last.as_ref().is_none_or(|it| it.0 != extent.hash) {
                let chunk = self.store.read_with(&extent.hash, &mut opened)?;
                last = chunk.map(|it| (extent.hash, it));
            }
            let Some((_, chunk)) = &last else { return Ok(false) };
            // A chunk with this hash has this length, unless the manifest lies.
            if chunk.len() as u64 != u64::from(extent.bytes) {
                return Err(WalkError::Node(extent.hash).into());
            }
            out.write_sparse(chunk).map_err(Error::io(out.path()))?;
        }
        out.map_or(Ok(()), |it| building.seal(it, mode, modified))?;
        Ok(true)
    }
}

impl Manifest {
    /// Takes in the chunks that are here. Returns the missing ones.
    fn advance(&mut self, store: &Store, absent: &mut HashSet<Hash>) -> Result<Vec<Wanted>, Error> {
        loop {
            let mut missing = Vec::new();
            let mut has_come = false;
            for wanted in self.walk.wanted().collect::<Vec<_>>() {
                let hash = wanted.hash;
                let is_absent = absent.contains(&hash);
                let found = if is_absent { store.read_staged(&hash) } else { store.read(&hash)? };
                let Some(bytes) = found else {
                    absent.insert(hash);
                    missing.push(wanted);
                    continue;
                };
                absent.remove(&hash);
                has_come = true;
                if self.walk.take(&hash, &bytes)? == Some(Role::Node) {
                    self.building.node(&hash, &bytes)?;
                }
            }
            while let Some(bytes) = self.walk.next_bytes() {
                self.building.leaf(&Hash::of(&bytes), bytes.len())?;
                self.building.stream(&bytes)?;
                self.decoder.feed(&bytes);
                while let Some(item) = self.decoder.next_item()? {
                    self.count(&item);
                }
                // The signer may lie, and send a manifest without end.
                store.options().check(self.totals)?;
            }
            if !has_come || self.walk.is_done() {
                return Ok(missing);
            }
        }
    }

    fn count(&mut self, item: &Item) {
        let Item::Entry(entry) = item else { return };
        self.totals.entries += 1;
        if let EntryKind::File { bytes, .. } = entry.kind {
            self.totals.bytes = self.totals.bytes.saturating_add(bytes);
        }
    }
}

impl Content {
    /// Removes the chunks that have come from the list of missing ones, and finds further missing
    /// ones, up to `max`.
    fn advance(&mut self, store: &Store, max: usize) -> Result<(), Error> {
        self.missing.retain(|it| !store.is_staged(&it.hash));
        while self.missing.len() < max && !self.is_scanned {
            let extent = match &mut self.extents {
                Some(extents) => extents.next_extent()?,
                None => None,
            };
            let Some(extent) = extent else {
                self.next_file(store)?;
                continue;
            };
            self.unseen_bytes = self.unseen_bytes.saturating_sub(u64::from(extent.bytes));
            let wanted = Wanted { hash: extent.hash, bytes: extent.bytes };
            let is_known = self.missing.iter().any(|it| it.hash == wanted.hash);
            if !is_known && !store.has(&wanted.hash)? {
                self.missing.push(wanted);
            }
        }
        Ok(())
    }

    /// Continues with the next file, and skips its chunks if it is unchanged.
    fn next_file(&mut self, store: &Store) -> Result<(), Error> {
        store.check_stop()?;
        self.extents = None;
        let Some(listed) = self.listing.next_entry()? else {
            self.is_scanned = true;
            return Ok(());
        };
        let is_same = self.former.as_mut().is_some_and(|it| it.same(&listed).is_some());
        if is_same {
            self.unseen_bytes = self.unseen_bytes.saturating_sub(listed.bytes());
        } else {
            let (path, file) = self.building.manifest()?;
            self.extents = Some(Extents::new(path, &file, &listed));
        }
        Ok(())
    }
}

/// A generation whose entries are looked up in the order of their paths.
#[derive(Debug)]
pub(super) struct FormerEntries {
    generation: Arc<Generation>,
    listing: Listing,
    next: Option<Listed>,
    /// Number of files before `next`.
    ordinal: u64,
    has_ended: bool,
}

impl FormerEntries {
    pub(super) fn new(generation: Arc<Generation>) -> Self {
        let listing = generation.listing();
        Self { generation, listing, next: None, ordinal: 0, has_ended: false }
    }

    pub(super) fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Finds an entry, and the number of files before it. Call it with paths in ascending order. If
    /// the manifest cannot be read any further, no more entries are found.
    pub(super) fn find(&mut self, path: &EntryPath) -> Option<(&Listed, u64)> {
        while !self.has_ended && self.next.as_ref().is_none_or(|it| it.entry.path < *path) {
            self.ordinal = self.listing.files();
            self.next = self.listing.next_entry().ok().flatten();
            self.has_ended = self.next.is_none();
        }
        let ordinal = self.ordinal;
        self.next.as_ref().filter(|it| it.entry.path == *path).map(|it| (it, ordinal))
    }

    /// Returns the generation if it has the same file, undamaged; `None` otherwise.
    fn same(&mut self, listed: &Listed) -> Option<Arc<Generation>> {
        let generation = self.generation.clone();
        let (found, _) = self.find(&listed.entry.path)?;
        let is_same = found.entry == listed.entry && found.digest == listed.digest;
        (is_same && generation.is_untouched(found)).then_some(generation)
    }
}
