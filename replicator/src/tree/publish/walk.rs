//! The walk over the directory to publish: its entries go into the manifest and the generation.

use std::ffi::{CStr, OsStr};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::building::{Building, INCOMING, SPOOL};
use super::super::chunk::{Chunker, Extent, FILE};
use super::super::error::Error;
use super::super::generation::LEASE;
use super::super::levels::{Builder, Piece};
use super::super::manifest::{Encoder, Entry, EntryKind, Fault, Format, Totals};
use super::super::mode::Mode;
use super::super::output::Output;
use super::super::path::EntryPath;
use super::super::problems::Problems;
use super::super::store::Store;
use super::look::{PublishedFiles, listed_mode};
use super::source::{Folder, FsEntry, Names, Stamp, Unlisted};
use super::spool::Spool;
use super::{Content, Draft, LOSS_ENTRIES_MIN, Publishing, READS_MAX};

/// Longest tick of the clocks of file systems, in nanoseconds; for most it is four million.
const TICK_NANOS: i64 = 20_000_000;
const READ_BYTES: usize = 256 << 10;
/// Percentage of the entries that have to remain.
const KEPT_PERCENT: u64 = 70;

/// The walk, and the draft that it makes.
pub(super) struct DraftMaker<'a> {
    store: &'a Arc<Store>,
    building: Building,
    directory: &'a Path,
    publishing: Publishing,
    published: Option<PublishedFiles>,
    /// Files changed in this second or later are read again the next time.
    trusted_before: i64,
    encoder: Encoder,
    levels: Builder,
    /// Bytes of the manifest that have not been passed on yet.
    out: Vec<u8>,
    /// Number of bytes of the manifest so far, including those in `out`.
    position: u64,
    totals: Totals,
    spool: Spool,
    buffer: Vec<u8>,
    problems: Problems,
}

struct ReadFile {
    out: Output,
    bytes: u64,
    stamp: Stamp,
}

impl<'a> DraftMaker<'a> {
    pub(super) fn new(
        store: &'a Arc<Store>,
        building: Building,
        format: Format,
        (directory, publishing): (&'a Path, Publishing),
        trusted_after: i64,
    ) -> Result<Self, Error> {
        building.top(format.top())?;
        let lease = building.dir().join(LEASE);
        let began = fs::metadata(&lease).map_err(Error::io(&lease))?.mtime();
        Ok(Self {
            published: store.current().and_then(|it| PublishedFiles::new(it, format)),
            trusted_before: began - trusted_after,
            encoder: Encoder::new(format),
            levels: Builder::new(store.kind()),
            out: Vec::new(),
            position: 0,
            totals: Totals::default(),
            spool: Spool::new(building.create_anew(SPOOL)?),
            buffer: vec![0; READ_BYTES],
            problems: Problems::default(),
            store,
            building,
            directory,
            publishing,
        })
    }

    pub(super) fn make(mut self, top: &Folder) -> Result<Draft, Error> {
        self.directory(top, None)?;
        if self.is_refused() {
            return Err(Error::Problems(self.problems));
        }
        let totals = self.encoder.finish(&mut self.out)?;
        self.store.options().check(totals)?;
        if let Some(before) = self.store.current().map(|it| it.meta().totals.entries) {
            let is_loss = LOSS_ENTRIES_MIN <= before
                && u128::from(totals.entries) * 100 < u128::from(before) * u128::from(KEPT_PERCENT);
            if is_loss && !self.publishing.accepts_loss {
                let (path, now) = (self.directory.to_owned(), totals.entries);
                return Err(Error::Loss { path, before, now });
            }
        }
        self.levels.feed(&self.out);
        self.building.stream(&self.out)?;
        let (root, pieces) = self.levels.finish()?;
        pieces.iter().try_for_each(|it| add(&mut self.building, it))?;
        let Self { store, building, problems: left_out, .. } = self;
        let content = Content::Made(Box::new(building));
        Ok(Draft { store: store.clone(), content, root, totals, left_out })
    }

    /// Returns whether the draft has to be refused. Then the rest is only searched for more
    /// problems.
    fn is_refused(&self) -> bool {
        !self.publishing.leaves_out && self.problems.count != 0
    }

    fn problem(&mut self, above: Option<&EntryPath>, name: &[u8], reason: impl ToString) {
        let path = match (above, name) {
            (None, []) => PathBuf::from("."),
            (Some(above), []) => PathBuf::from(above.as_str()),
            (above, name) => {
                let above = Path::new(above.map_or("", |it| it.as_str()));
                above.join(OsStr::from_bytes(name))
            }
        };
        self.problems.add(path, reason.to_string());
    }

    fn directory(&mut self, dir: &Folder, path: Option<&EntryPath>) -> Result<(), Error> {
        let names = match dir.names() {
            Ok(Names::All(names)) => names,
            Ok(Names::TooMany) => {
                self.problem(path, b"", "the directory has too many names: split it");
                return Ok(());
            }
            Err(error) => {
                self.problem(path, b"", error);
                return Ok(());
            }
        };
        for name in names {
            self.store.check_stop()?;
            match self.add_entry(dir, path, &name) {
                Ok(()) | Err(Unlisted::Gone) => {}
                Err(Unlisted::Problem(reason)) => self.problem(path, name.as_bytes(), reason),
                Err(Unlisted::Error(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        dir: &Folder,
        above: Option<&EntryPath>,
        name: &CStr,
    ) -> Result<(), Unlisted> {
        // An entry that is gone meanwhile is skipped.
        let Some(found) = dir.find(name)? else { return Ok(()) };
        let text = name
            .to_str()
            .map_err(|_unsaid| Unlisted::Problem("the name is not UTF-8: rename it".to_owned()))?;
        let path = EntryPath::child(above, text).map_err(|it| Unlisted::Problem(it.to_string()))?;
        match found {
            FsEntry::Directory(mode) => {
                let below = dir.open_directory(name)?;
                match self.folder(&path, mode) {
                    // Look for more problems below this entry.
                    Err(Unlisted::Problem(reason)) if !self.publishing.leaves_out => {
                        self.problem(above, name.to_bytes(), reason);
                    }
                    added => added?,
                }
                Ok(self.directory(&below, Some(&path))?)
            }
            FsEntry::Link(target) => {
                let target = target.into_string().map_err(|_unsaid| {
                    Unlisted::Problem("the target of the link is not UTF-8".to_owned())
                })?;
                if self.is_refused() {
                    let checked = path.check_target(&target);
                    return checked.map_err(|it| Unlisted::Problem(it.to_string()));
                }
                let kind = EntryKind::Link { target: target.as_str().into() };
                self.entry(Entry { path: path.clone(), kind })?;
                Ok(self.building.symlink(&path, &target)?)
            }
            FsEntry::File(stamp) => self.file(dir, name, path, &stamp),
            FsEntry::Other(what) => Err(Unlisted::Problem(format!("{what} cannot be replicated"))),
        }
    }

    fn folder(&mut self, path: &EntryPath, found: Mode) -> Result<(), Unlisted> {
        if self.is_refused() {
            return Ok(());
        }
        let mode = listed_mode(self.encoder.format(), found);
        self.entry(Entry { path: path.clone(), kind: EntryKind::Directory { mode } })?;
        Ok(self.building.directory(path, mode)?)
    }

    /// Adds an entry to the manifest. Returns its offset.
    fn entry(&mut self, entry: Entry) -> Result<u64, Unlisted> {
        let before = self.out.len();
        self.encoder
            .entry(&entry, &mut self.out)
            .map_err(|it: Fault| Unlisted::Problem(it.to_string()))?;
        self.position += (self.out.len() - before) as u64;
        self.totals.entries += 1;
        self.store.options().check(self.totals)?;
        self.pass_on()?;
        Ok(self.position - entry.encoded_bytes(self.encoder.format()))
    }

    fn extent(&mut self, at: u64, offset: u64, extent: Extent) -> Result<(), Error> {
        let before = self.out.len();
        self.encoder.extent(extent, &mut self.out)?;
        self.position += (self.out.len() - before) as u64;
        self.building.extent(at, offset, extent)?;
        self.pass_on()
    }

    /// Passes on the bytes of the manifest, if there are enough of them.
    fn pass_on(&mut self) -> Result<(), Error> {
        if self.out.len() < READ_BYTES {
            return Ok(());
        }
        self.levels.feed(&self.out);
        self.building.stream(&self.out)?;
        self.out.clear();
        while let Some(piece) = self.levels.next_piece() {
            add(&mut self.building, &piece)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        dir: &Folder,
        name: &CStr,
        path: EntryPath,
        stamp: &Stamp,
    ) -> Result<(), Unlisted> {
        self.totals.bytes = self.totals.bytes.saturating_add(stamp.bytes);
        self.store.options().check(self.totals)?;
        if self.is_refused() {
            return dir.open_file(name).map(drop);
        }
        if self.reuse(&path, stamp)? {
            return Ok(());
        }
        let ReadFile { out, bytes, stamp } = self.read(dir, name)?;
        let mode = listed_mode(self.encoder.format(), stamp.mode);
        let modified = stamp.modified.0;
        let kind = EntryKind::File { mode, bytes, modified };
        let at = self.entry(Entry { path: path.clone(), kind })?;
        let mut offset = 0;
        self.spool.finish()?;
        while let Some(extent) = self.spool.next_extent()? {
            self.extent(at, offset, extent)?;
            offset += u64::from(extent.bytes);
        }
        self.building.take_in(&path, out, mode, modified)?;
        let is_trusted = stamp.changed.0 < self.trusted_before;
        let record = if is_trusted { stamp.to_bytes() } else { Stamp::UNKNOWN };
        self.building.stamp(&record)?;
        Ok(())
    }

    /// Takes an unchanged file from the present generation. Returns false if the file must be read.
    fn reuse(&mut self, path: &EntryPath, stamp: &Stamp) -> Result<bool, Unlisted> {
        let Some(published) = &mut self.published else { return Ok(false) };
        let generation = published.generation().clone();
        let Some(listed) = published.file(path, stamp) else { return Ok(false) };
        let mut extents = generation.extents(listed);
        let entry = listed.entry.clone();
        let from = generation.path(path);
        let at = self.entry(entry)?;
        let mut offset = 0;
        while let Some(extent) = extents.next_extent()? {
            self.extent(at, offset, extent)?;
            offset += u64::from(extent.bytes);
        }
        if !self.building.link(path, &from)? {
            let mut out = self.building.file(path)?;
            let source = File::open(&from).map_err(Error::io(&from))?;
            out.copy_from(&source).map_err(Error::io(out.path()))?;
            let mode = listed_mode(self.encoder.format(), stamp.mode);
            self.building.seal(out, mode, stamp.modified.0)?;
        }
        self.building.stamp(&stamp.to_bytes())?;
        Ok(true)
    }

    /// Copies a file and cuts it into chunks; if it changed meanwhile, up to [`READS_MAX`] times.
    fn read(&mut self, dir: &Folder, name: &CStr) -> Result<ReadFile, Unlisted> {
        let mut last = None;
        for _ in 0..READS_MAX {
            let (source, before) = dir.open_file(name)?;
            let mut out = self.building.create_anew(INCOMING)?;
            let created = Stamp::of(out.file()).map_err(Error::io(out.path()))?;
            // Another change within the same tick of the clock would not be noticed.
            let is_settled = before.is_before(&created, TICK_NANOS);
            self.spool.clear();
            let is_shared = out.share(&source).map_err(Error::io(out.path()))?;
            let input = if is_shared { out.file().clone() } else { Arc::new(source.try_clone()?) };
            let bytes = self.cut(&input, (!is_shared).then_some(&mut out))?;
            let after = Stamp::of(&source)?;
            let is_same = before == after && bytes == after.bytes;
            let content = self.spool.digest();
            if is_same && (is_settled || last == Some(content)) {
                return Ok(ReadFile { out, bytes, stamp: after });
            }
            last = Some(content);
        }
        Err(Unlisted::Problem(
            "it changes while it is read: publish when nobody writes to it, or from a snapshot"
                .to_owned(),
        ))
    }

    /// Cuts a file into chunks, and writes it to `copy`, if given. Returns its length in bytes.
    fn cut(&mut self, input: &File, mut copy: Option<&mut Output>) -> Result<u64, Unlisted> {
        let mut chunker = Chunker::new(FILE);
        let mut bytes = 0;
        loop {
            self.store.check_stop()?;
            let read = input.read_at(&mut self.buffer, bytes)?;
            let piece = self.buffer.get(..read).unwrap_or_default();
            if piece.is_empty() {
                break;
            }
            bytes += read as u64;
            if let Some(copy) = &mut copy {
                copy.write_sparse(piece).map_err(Error::io(copy.path()))?;
            }
            chunker.feed(piece);
            while let Some(chunk) = chunker.next_chunk() {
                self.spool.push(chunk)?;
            }
        }
        while let Some(chunk) = chunker.finish() {
            self.spool.push(chunk)?;
        }
        Ok(bytes)
    }
}

fn add(building: &mut Building, piece: &Piece) -> Result<(), Error> {
    if piece.is_leaf {
        building.leaf(&piece.hash, piece.bytes.len())
    } else {
        building.node(&piece.hash, &piece.bytes)
    }
}
