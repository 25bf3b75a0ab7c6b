//! A listing: reads the entries of a manifest on disk in order, and the chunks of any of them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::Extent;
use super::error::Error;
use super::manifest::{
    Decoder, ENTRY_BYTES_MAX, EXTENT_BYTES, Entry, EntryKind, Format, Item, first_extent,
    first_path,
};
use super::path::EntryPath;
use crate::version::Hash;

const READ_BYTES: usize = 64 << 10;
/// Bytes of the first read for a path; a longer entry takes a second read.
const USUAL_ENTRY_BYTES: usize = 512;

/// An entry with the position and the digest of its chunks.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    pub(super) entry: Entry,
    /// The offset of the entry in the manifest.
    pub(super) at: u64,
    /// The offset of its chunks.
    pub(super) extents_at: u64,
    /// The only chunk of a file, if the file has just one. Most files are small, and then need no
    /// second read of the manifest.
    only: Option<Extent>,
    /// The digest of its chunks: files with equal digests have the same content.
    pub(super) digest: Hash,
}

impl Listed {
    /// Returns the length of the file in bytes; 0 for other entries.
    pub(super) fn bytes(&self) -> u64 {
        entry_bytes(&self.entry)
    }
}

fn entry_bytes(entry: &Entry) -> u64 {
    if let EntryKind::File { bytes, .. } = entry.kind { bytes } else { 0 }
}

#[derive(Debug)]
pub(super) struct Listing {
    path: PathBuf,
    file: Arc<File>,
    read: u64,
    decoder: Decoder,
    /// Whether the whole manifest has been fed to the decoder.
    is_fed: bool,
    /// Number of files so far.
    files: u64,
    is_done: bool,
}

impl Listing {
    pub(super) fn new(path: &Path, file: Arc<File>) -> Self {
        let (path, decoder) = (path.to_owned(), Decoder::default());
        Self { path, file, read: 0, decoder, is_fed: false, files: 0, is_done: false }
    }

    /// Returns the number of files before the next entry.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Returns the format of the manifest; known once the first entry has come.
    pub(super) fn format(&self) -> Format {
        self.decoder.format()
    }

    fn damaged(&self) -> Error {
        Error::Damaged(self.path.clone())
    }

    /// Returns the next item and its offset; `None` at the end.
    fn next_item(&mut self) -> Result<Option<(Item, u64)>, Error> {
        loop {
            // The format may come before an item, so the item's offset is computed after it has
            // been read. The manifest was valid when it was written, so an error means damage.
            let item = self.decoder.next_item().map_err(|_unsaid| self.damaged())?;
            if let Some(item) = item {
                let length = match &item {
                    Item::Extent(_) => EXTENT_BYTES as u64,
                    Item::Entry(entry) => entry.encoded_bytes(self.format()),
                };
                return Ok(Some((item, self.decoder.offset() - length)));
            }
            if self.is_fed {
                return Ok(None);
            }
            let mut bytes = vec![0; READ_BYTES];
            let read = self.file.read_at(&mut bytes, self.read).map_err(Error::io(&self.path))?;
            self.read += read as u64;
            self.is_fed = read == 0;
            self.decoder.feed(bytes.get(..read).unwrap_or_default());
        }
    }

    /// Returns the next entry, and skips its chunks; `None` at the end.
    pub(super) fn next_entry(&mut self) -> Result<Option<Listed>, Error> {
        // Chunks are read with their entry, so the next item is an entry or the end.
        let Some((Item::Entry(entry), at)) = self.next_item()? else {
            if !std::mem::replace(&mut self.is_done, true) {
                let ended = std::mem::take(&mut self.decoder).finish();
                ended.map_err(|_unsaid| self.damaged())?;
            }
            return Ok(None);
        };
        let extents_at = at + entry.encoded_bytes(self.format());
        let mut hasher = blake3::Hasher::new();
        let mut only = None;
        let mut left = entry_bytes(&entry);
        self.files += u64::from(matches!(entry.kind, EntryKind::File { .. }));
        while left != 0 {
            let Some((Item::Extent(extent), _)) = self.next_item()? else { break };
            hasher.update(&extent.hash.0).update(&extent.bytes.to_le_bytes());
            only = Some(extent).filter(|it| u64::from(it.bytes) == entry_bytes(&entry));
            left = left.saturating_sub(u64::from(extent.bytes));
        }
        let digest = Hash(*hasher.finalize().as_bytes());
        Ok(Some(Listed { entry, at, extents_at, only, digest }))
    }
}

#[derive(Debug)]
pub(super) struct Extents {
    path: PathBuf,
    file: Arc<File>,
    at: u64,
    /// Bytes of the file that remain, from the next chunk on.
    left: u64,
    only: Option<Extent>,
    buffer: Vec<u8>,
    used: usize,
}

impl Extents {
    pub(super) fn new(path: &Path, file: &Arc<File>, listed: &Listed) -> Self {
        let (path, file) = (path.to_owned(), file.clone());
        let (at, left, only) = (listed.extents_at, listed.bytes(), listed.only);
        Self { path, file, at, left, only, buffer: Vec::new(), used: 0 }
    }

    pub(super) fn next_extent(&mut self) -> Result<Option<Extent>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Some(only) = self.only {
            self.left = 0;
            return Ok(Some(only));
        }
        if self.used == self.buffer.len() {
            let count = (READ_BYTES / EXTENT_BYTES) as u64;
            let most = count.min(self.left) * EXTENT_BYTES as u64;
            self.buffer.clear();
            self.used = 0;
            let mut window = Window { file: &self.file, at: self.at };
            let read = (&mut window).take(most).read_to_end(&mut self.buffer);
            read.map_err(Error::io(&self.path))?;
            self.buffer.truncate(self.buffer.len() / EXTENT_BYTES * EXTENT_BYTES);
            self.at += self.buffer.len() as u64;
        }
        let extent = self.buffer.get(self.used..).and_then(first_extent);
        let extent = extent.ok_or_else(|| Error::Damaged(self.path.clone()))?;
        self.used += EXTENT_BYTES;
        self.left = self.left.saturating_sub(u64::from(extent.bytes));
        Ok(Some(extent))
    }
}

struct Window<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for Window<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Reads the path of the entry at this offset of a manifest.
pub(super) fn path_at(file: &File, at: u64) -> io::Result<Option<EntryPath>> {
    for most in [USUAL_ENTRY_BYTES, ENTRY_BYTES_MAX] {
        let mut bytes = Vec::with_capacity(most);
        Window { file, at }.take(most as u64).read_to_end(&mut bytes)?;
        if let Some(path) = first_path(&bytes) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::manifest::Encoder;
    use crate::tree::mode::Mode;

    #[test]
    fn paths_of_any_length_are_read_at_their_offset() {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::default();
        let long = format!("{}/x", ["d".repeat(200).as_str(); 20].join("/"));
        let mut entries = Vec::new();
        for path in ["a", long.as_str(), "e"] {
            let path = EntryPath::new(path).unwrap();
            let entry = Entry { path, kind: EntryKind::Directory { mode: Mode::EXECUTABLE } };
            encoder.entry(&entry, &mut bytes).unwrap();
            let at = bytes.len() as u64 - entry.encoded_bytes(Format::One);
            entries.push((at, entry.path));
        }
        encoder.finish(&mut bytes).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("manifest"), &bytes).unwrap();
        let file = File::open(dir.path().join("manifest")).unwrap();
        for (at, path) in entries {
            assert_eq!(path_at(&file, at).unwrap(), Some(path));
        }
        assert_eq!(path_at(&file, bytes.len() as u64).unwrap(), None);
    }
}
