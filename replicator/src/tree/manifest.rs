//! The manifest of a tree: its entries in the order of their paths, each file with its chunks, as one stream
//! of bytes that has one form alone.
//!
//! Both ends hold one entry without its chunks, and the names that [`Order`] remembers, whatever the tree:
//! the chunks of a file come one by one behind its entry.
//!
//! The bytes, numbers with the least byte first and texts behind their length in two bytes: the format, 2, and the mode
//! of the tree's own folder in two bytes; for each entry 1 (file), 3 (folder) or 4 (symbolic link) and its path, then
//! the mode of a file or a folder in two bytes, of a file its length and its time in eight bytes each, of a link its
//! target; behind a file, for each chunk, its length in four bytes and its hash; at the end 0, the number of entries and
//! the sum of the files' lengths, in eight bytes each. A folder comes before what is in it.
//!
//! Format 1 has no modes: 2 is a file that may be run, 3 a folder with nothing in it, and other folders are known by
//! what is in them.
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

/// When files may have been changed, in seconds since 1970 (UTC): what ext4 can store.
pub const MODIFIED: RangeInclusive<i64> = -(1 << 31)..=(1 << 34) - (1 << 31) - 1;

/// Bytes of a chunk of a file in a manifest: its length and its hash.
pub const EXTENT_BYTES: usize = 4 + 32;

/// Longest entry, in bytes, without the chunks of a file.
pub(super) const ENTRY_BYTES_MAX: usize = 1 + 2 * (2 + PATH_BYTES_MAX) + MODE_BYTES;

const MODE_BYTES: usize = 2;
const END: u8 = 0;
const PLAIN: u8 = 1;
const EXECUTABLE: u8 = 2;
const DIRECTORY: u8 = 3;
const LINK: u8 = 4;

/// How a manifest is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Everybody may read all of it; of folders those are listed in which nothing is.
    #[default]
    One,
    /// Files and folders have modes, all folders are listed, and this is the mode of the tree's own.
    Two(Mode),
}

impl Format {
    /// The mode of the tree's own folder.
    #[must_use]
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

/// Something in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub path: EntryPath,
    /// What.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file. Its chunks follow it, until they have `bytes` together.
    File {
        /// Who may read and run it.
        mode: Mode,
        /// How long it is.
        bytes: u64,
        /// When it was changed, in seconds since 1970 (UTC); in [`MODIFIED`].
        modified: i64,
    },
    /// A folder; in format 1 one with nothing in it.
    Directory {
        /// Who may list it and pass through it.
        mode: Mode,
    },
    /// A symbolic link that stays in the tree; what it leads to need not be there.
    Link {
        /// As [`EntryPath::check_target`] takes it.
        target: Box<str>,
    },
}

impl Entry {
    /// How many bytes it has in a manifest, without the chunks of a file.
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

/// What a manifest lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Its entries.
    pub entries: u64,
    /// The bytes of all files.
    pub bytes: u64,
}

/// Why something cannot stand in a manifest at this place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The first byte says another format.
    #[error("format {0} is unknown: take a newer version of this program")]
    Format(u8),
    /// Nothing begins with this byte.
    #[error("no entry begins with {0}")]
    Tag(u8),
    /// The path is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path cannot stand behind those before it.
    #[error(transparent)]
    Clash(#[from] Clash),
    /// A symbolic link does not stay in the tree.
    #[error("{path:?}: {error}")]
    Target {
        /// The link.
        path: EntryPath,
        /// What is wrong with it.
        error: PathError,
    },
    /// A mode has other bits than r and x of owner, group and others, or in format 1 differs between these.
    #[error("mode {0:o} cannot stand in a manifest of this format")]
    Mode(u16),
    /// A time is outside of [`MODIFIED`].
    #[error("a file was changed {0} s after 1970, which file systems cannot store")]
    Modified(i64),
    /// A chunk is too long for its file or for any, or too short for one that is not the last.
    #[error("a chunk has {bytes} bytes where {left} are left of its file")]
    Extent {
        /// Of the chunk.
        bytes: u32,
        /// Of the file, from the chunk on.
        left: u64,
    },
    /// Something follows a file before all of its chunks.
    #[error("chunks of {0} bytes are missing behind a file")]
    Missing(u64),
    /// The sums at the end are not those of the entries, or above what 64 bits hold.
    #[error("the entries do not have the sums that are said of them")]
    Totals,
    /// The stream ends before its end mark.
    #[error("the manifest ends too early")]
    Truncated,
    /// Something follows the end mark.
    #[error("something follows the end of the manifest")]
    Trailing,
}

/// Bytes that are no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no manifest, at byte {offset}: {fault}")]
pub struct ParseError {
    /// Where the piece begins that cannot be, in bytes from the start of the stream.
    pub offset: u64,
    /// Why it cannot.
    pub fault: Fault,
}

/// What both ends hold a manifest to.
#[derive(Debug, Default)]
struct Rules {
    format: Format,
    order: Order,
    totals: Totals,
    /// Bytes of the last file whose chunks have not come.
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
                .map_err(|error| Fault::Target { path: entry.path.clone(), error })?,
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

    /// Refuses a mode that format 1 cannot have.
    fn check(&self, mode: Mode, in_format_1: Mode) -> Result<(), Fault> {
        let can_be = self.format != Format::One || mode == in_format_1;
        if can_be { Ok(()) } else { Err(Fault::Mode(mode.bits())) }
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
