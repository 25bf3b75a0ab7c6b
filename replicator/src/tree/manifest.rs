//! The manifest of a tree: a canonical byte stream of its entries in the order of their paths, each
//! file with its chunks.
//!
//! However large the tree is, encoder and decoder hold only one entry without its chunks, and the
//! names that [`Order`] remembers, because the chunks of a file come one by one after its entry.
//!
//! docs/replication.md has the bytes of the two formats. Format 1 has no modes, and lists only
//! empty folders.
//!
//! Sans-I/O.

mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::chunk::{Extent, FILE};
use super::mode::Mode;
use super::order::{Clash, Order};
use super::path::{EntryPath, PATH_BYTES_MAX, PathError};

pub use decoder::Decoder;
pub(super) use decoder::{first_extent, first_path, format_of};
pub use encoder::Encoder;

/// Range of files' modification times, in seconds since 1970 (UTC): the range of ext4.
pub const MODIFIED: RangeInclusive<i64> = -(1 << 31)..=(1 << 34) - (1 << 31) - 1;

/// Number of bytes that a chunk of a file takes in a manifest: its length and its hash.
pub const EXTENT_BYTES: usize = 4 + 32;

/// Maximum length of an entry, in bytes, without the chunks of a file.
pub(super) const ENTRY_BYTES_MAX: usize = 1 + 2 * (2 + PATH_BYTES_MAX) + MODE_BYTES;

const MODE_BYTES: usize = 2;
const END: u8 = 0;
const PLAIN: u8 = 1;
const EXECUTABLE: u8 = 2;
const DIRECTORY: u8 = 3;
const LINK: u8 = 4;

/// The format of a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Everybody may read everything; only empty folders are listed.
    #[default]
    One,
    /// Files and folders have modes, and all folders are listed. The value is the mode of the
    /// tree's own folder.
    Two(Mode),
}

impl Format {
    /// Returns the mode of the tree's own folder.
    pub fn top(self) -> Mode {
        match self {
            Self::One => Mode::EXECUTABLE,
            Self::Two(mode) => mode,
        }
    }

    fn mode_bytes(self) -> usize {
        if self == Self::One { 0 } else { MODE_BYTES }
    }
}

/// A file, a folder or a link of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path from the top of the tree.
    pub path: EntryPath,
    /// The kind of the entry, with its attributes.
    pub kind: EntryKind,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file. Its chunks follow, until they have `bytes` bytes together.
    File {
        /// The mode.
        mode: Mode,
        /// The length in bytes.
        bytes: u64,
        /// The modification time, in seconds since 1970 (UTC); in [`MODIFIED`].
        modified: i64,
    },
    /// A folder; in format 1 an empty one.
    Directory {
        /// The mode.
        mode: Mode,
    },
    /// A symbolic link that stays in the tree; its target need not exist.
    Link {
        /// The target, which [`EntryPath::check_target`] accepts.
        target: Box<str>,
    },
}

impl Entry {
    /// Returns the number of bytes of the entry in a manifest, without the chunks of a file.
    pub(super) fn encoded_bytes(&self, format: Format) -> u64 {
        let rest = match &self.kind {
            EntryKind::File { .. } => format.mode_bytes() + 16,
            EntryKind::Directory { .. } => format.mode_bytes(),
            EntryKind::Link { target } => 2 + target.len(),
        };
        (1 + 2 + self.path.as_str().len() + rest) as u64
    }
}

/// A piece of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The next entry.
    Entry(Entry),
    /// The next chunk of the file that came last.
    Extent(Extent),
}

/// The sums of a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of entries.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// The reason why an item cannot follow in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The first byte names an unknown format.
    #[error("format {0} is unknown: take a newer version of this program")]
    Format(u8),
    /// No entry begins with this byte.
    #[error("no entry begins with {0}")]
    Tag(u8),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path cannot follow those before it.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// A symbolic link does not stay in the tree.
    #[error("{0:?}: {1}")]
    Target(EntryPath, #[source] PathError),
    /// A mode has bits other than r and x of owner, group and others, or is not one of format 1.
    #[error("mode {0:o} cannot stand in a manifest of this format")]
    Mode(u16),
    /// A modification time is outside of [`MODIFIED`].
    #[error("a file was changed {0} s after 1970, which file systems cannot store")]
    Modified(i64),
    /// A chunk is longer than the rest of its file or than any chunk may be, or too short although
    /// it is not the last one.
    #[error("a chunk has {bytes} bytes where {left} are left of its file")]
    Extent {
        /// Bytes of the chunk.
        bytes: u32,
        /// Bytes of the file, from the chunk on.
        left: u64,
    },
    /// Chunks of a file are missing.
    #[error("chunks of {0} bytes are missing after a file")]
    Missing(u64),
    /// The sums at the end are not those of the entries, or do not fit into 64 bits.
    #[error("the sums at the end do not match the entries")]
    Totals,
    /// The stream ends before its end mark.
    #[error("the manifest ends too early")]
    Truncated,
    /// Bytes follow the end mark.
    #[error("there are bytes after the end of the manifest")]
    Trailing,
}

/// Bytes that are not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid manifest, at byte {offset}: {fault}")]
pub struct ParseError {
    /// Position of the invalid item, in bytes from the start of the stream.
    pub offset: u64,
    /// The fault.
    pub fault: Fault,
}

/// The rules of a manifest, for encoder and decoder.
#[derive(Debug, Default)]
struct Rules {
    format: Format,
    order: Order,
    totals: Totals,
    /// Bytes of the last file for which no chunks have come yet.
    left: u64,
}

impl Rules {
    fn entry(&mut self, entry: &Entry) -> Result<(), Fault> {
        if self.left != 0 {
            return Err(Fault::Missing(self.left));
        }
        let mut file_bytes = 0;
        match &entry.kind {
            EntryKind::File { modified, .. } if !MODIFIED.contains(modified) => {
                return Err(Fault::Modified(*modified));
            }
            EntryKind::File { mode, bytes, .. } => {
                self.check(*mode, mode.in_format_1())?;
                file_bytes = *bytes;
            }
            EntryKind::Directory { mode } => self.check(*mode, Mode::EXECUTABLE)?,
            EntryKind::Link { target } => entry
                .path
                .check_target(target)
                .map_err(|error| Fault::Target(entry.path.clone(), error))?,
        }
        let bytes = self.totals.bytes.checked_add(file_bytes).ok_or(Fault::Totals)?;
        match self.format {
            Format::One => self.order.accept(&entry.path)?,
            Format::Two(_) => {
                let is_folder = matches!(entry.kind, EntryKind::Directory { .. });
                self.order.accept_listed(&entry.path, is_folder)?;
            }
        }
        self.totals = Totals { entries: self.totals.entries + 1, bytes };
        self.left = file_bytes;
        Ok(())
    }

    /// In format 1, refuses any mode but `in_format_1`.
    fn check(&self, mode: Mode, in_format_1: Mode) -> Result<(), Fault> {
        let is_valid = self.format != Format::One || mode == in_format_1;
        if is_valid { Ok(()) } else { Err(Fault::Mode(mode.bits())) }
    }

    fn extent(&mut self, extent: Extent) -> Result<(), Fault> {
        let (bytes, left) = (u64::from(extent.bytes), self.left);
        let fits = (1..=FILE.max as u64).contains(&bytes) && bytes <= left;
        if !fits || (bytes < FILE.min as u64 && bytes != left) {
            return Err(Fault::Extent { bytes: extent.bytes, left });
        }
        self.left -= bytes;
        Ok(())
    }

    fn end(&self) -> Result<Totals, Fault> {
        if self.left == 0 { Ok(self.totals) } else { Err(Fault::Missing(self.left)) }
    }
}
