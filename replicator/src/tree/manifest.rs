//! The manifest of a tree: its entries in the order of their paths, each file with its chunks, as one stream
//! of bytes that has one form alone.
//!
//! Both ends hold one entry without its chunks, and the names that [`Order`] remembers, whatever the tree:
//! the chunks of a file come one by one behind its entry.
//!
//! The bytes, numbers with the least byte first and texts behind their length in two bytes: the format, 1; for
//! each entry 1 (file), 2 (executable file), 3 (empty directory) or 4 (symbolic link) and its path, then of
//! a file its length and its time in eight bytes each, of a link its target; behind a file, for each chunk, its
//! length in four bytes and its hash; at the end 0, the number of entries and the sum of the files' lengths, in
//! eight bytes each.
//!
//! Sans-I/O.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use super::chunk::{Extent, FILE};
use super::order::{Clash, Order};
use super::path::{EntryPath, PATH_BYTES_MAX, PathError};
use crate::version::Hash;

/// When files may have been changed, in seconds since 1970 (UTC): what ext4 can store.
pub const MODIFIED: RangeInclusive<i64> = -(1 << 31)..=(1 << 34) - (1 << 31) - 1;

/// Bytes of a chunk of a file in a manifest: its length and its hash.
pub const EXTENT_BYTES: usize = 4 + 32;

/// Longest entry, in bytes, without the chunks of a file.
pub(super) const ENTRY_BYTES_MAX: usize = 1 + 2 * (2 + PATH_BYTES_MAX);

/// Of the stream.
const FORMAT: u8 = 1;
const END: u8 = 0;
const PLAIN: u8 = 1;
const EXECUTABLE: u8 = 2;
const DIRECTORY: u8 = 3;
const LINK: u8 = 4;

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
        /// Whether it may be run.
        executable: bool,
        /// How long it is.
        bytes: u64,
        /// When it was changed, in seconds since 1970 (UTC); in [`MODIFIED`].
        modified: i64,
    },
    /// A directory with nothing in it. Others are known by what is in them.
    Directory,
    /// A symbolic link that stays in the tree; what it leads to need not be there.
    Link {
        /// As [`EntryPath::check_target`] takes it.
        target: Box<str>,
    },
}

impl Entry {
    /// How many bytes it has in a manifest, without the chunks of a file.
    pub(super) fn encoded_bytes(&self) -> u64 {
        let rest = match &self.kind {
            EntryKind::File { .. } => 16,
            EntryKind::Directory => 0,
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
    #[error("format {0} is unknown, this is {FORMAT}")]
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
            EntryKind::File { bytes, .. } => file_bytes = *bytes,
            EntryKind::Directory => {}
            EntryKind::Link { target } => entry
                .path
                .check_target(target)
                .map_err(|error| Fault::Target { path: entry.path.clone(), error })?,
        }
        let bytes = self.totals.bytes.checked_add(file_bytes).ok_or(Fault::Totals)?;
        self.order.accept(&entry.path)?;
        self.totals = Totals { entries: self.totals.entries + 1, bytes };
        self.left = file_bytes;
        Ok(())
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

/// Writes a manifest, behind what is in the `out` of each call. What is refused leaves it as it was.
#[derive(Debug, Default)]
pub struct Encoder {
    rules: Rules,
    has_begun: bool,
}

impl Encoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if !self.has_begun {
            out.push(FORMAT);
            self.has_begun = true;
        }
    }

    /// Writes an entry; chunks of a file are to follow.
    ///
    /// # Errors
    ///
    /// It cannot stand here: leave it out, or give up.
    pub fn entry(&mut self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.rules.entry(entry)?;
        self.begin(out);
        let tag = match &entry.kind {
            EntryKind::File { executable: false, .. } => PLAIN,
            EntryKind::File { executable: true, .. } => EXECUTABLE,
            EntryKind::Directory => DIRECTORY,
            EntryKind::Link { .. } => LINK,
        };
        out.push(tag);
        put_text(entry.path.as_str(), out);
        match &entry.kind {
            EntryKind::File { bytes, modified, .. } => {
                out.extend(bytes.to_le_bytes());
                out.extend(modified.to_le_bytes());
            }
            EntryKind::Directory => {}
            EntryKind::Link { target } => put_text(target, out),
        }
        Ok(())
    }

    /// Writes the next chunk of the last file.
    ///
    /// # Errors
    ///
    /// It cannot be one of it.
    pub fn extent(&mut self, extent: Extent, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.rules.extent(extent)?;
        out.extend(extent.bytes.to_le_bytes());
        out.extend(extent.hash.0);
        Ok(())
    }

    /// Ends the manifest.
    ///
    /// # Errors
    ///
    /// Chunks of the last file are missing.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Totals, Fault> {
        let totals = self.rules.end()?;
        self.begin(out);
        out.push(END);
        out.extend(totals.entries.to_le_bytes());
        out.extend(totals.bytes.to_le_bytes());
        Ok(totals)
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    // Paths and targets have been checked to be shorter.
    out.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    out.extend(text.as_bytes());
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Entries,
    Ended,
}

/// Reads a manifest: takes what an [`Encoder`] writes, and nothing else.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    done: usize,
    offset: u64,
    rules: Rules,
    state: State,
}

impl Decoder {
    /// Adds bytes of the stream, in order.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.done = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Where the next piece begins, in bytes from the start of the stream.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next piece, or none until more is fed, and at the end.
    ///
    /// # Errors
    ///
    /// The stream is no manifest: nothing of it is to be believed.
    pub fn next_item(&mut self) -> Result<Option<Item>, ParseError> {
        loop {
            let rest = self.buffer.get(self.done..).unwrap_or_default();
            let mut input = Input { rest };
            let before = rest.len();
            let taken = take(&mut input, &mut self.rules, &mut self.state);
            let used = before - input.rest.len();
            match taken.map_err(|fault| ParseError { offset: self.offset, fault })? {
                Taken::Short => return Ok(None),
                taken => {
                    self.done += used;
                    self.offset += used as u64;
                    if let Taken::Item(item) = taken {
                        return Ok(Some(item));
                    }
                }
            }
        }
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// It ends before the manifest does.
    pub fn finish(mut self) -> Result<Totals, ParseError> {
        let (offset, state) = (self.offset, self.state);
        let has_rest = self.next_item()?.is_some() || self.state != State::Ended;
        if has_rest || state != State::Ended {
            return Err(ParseError { offset, fault: Fault::Truncated });
        }
        Ok(self.rules.totals)
    }
}

/// Reads the entry that these bytes of a sound manifest begin with.
pub(super) fn first_entry(bytes: &[u8]) -> Option<Entry> {
    let mut input = Input { rest: bytes };
    let [tag] = input.array()?;
    input.entry(tag).ok().flatten()
}

/// Reads the chunk of a file that these bytes of a sound manifest begin with.
pub(super) fn first_extent(bytes: &[u8]) -> Option<Extent> {
    Input { rest: bytes }.extent()
}

enum Taken {
    Item(Item),
    /// A mark that stands for itself.
    Mark,
    /// More bytes are needed; nothing has changed.
    Short,
}

fn take(input: &mut Input<'_>, rules: &mut Rules, state: &mut State) -> Result<Taken, Fault> {
    match state {
        State::Start => {
            let Some([format]) = input.array() else { return Ok(Taken::Short) };
            if format != FORMAT {
                return Err(Fault::Format(format));
            }
            *state = State::Entries;
            Ok(Taken::Mark)
        }
        State::Entries if rules.left != 0 => {
            let Some(extent) = input.extent() else { return Ok(Taken::Short) };
            rules.extent(extent)?;
            Ok(Taken::Item(Item::Extent(extent)))
        }
        State::Entries => {
            let Some([tag]) = input.array() else { return Ok(Taken::Short) };
            if tag == END {
                let Some(said) = input.totals() else { return Ok(Taken::Short) };
                *state = State::Ended;
                return if said == rules.end()? { Ok(Taken::Mark) } else { Err(Fault::Totals) };
            }
            let Some(entry) = input.entry(tag)? else { return Ok(Taken::Short) };
            rules.entry(&entry)?;
            Ok(Taken::Item(Item::Entry(entry)))
        }
        State::Ended if input.rest.is_empty() => Ok(Taken::Short),
        State::Ended => Err(Fault::Trailing),
    }
}

/// What is left to read. Where a method returns none, more bytes are needed.
struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*found)
    }

    fn text(&mut self) -> Result<Option<&'a str>, PathError> {
        let Some(length) = self.array().map(|it| usize::from(u16::from_le_bytes(it))) else {
            return Ok(None);
        };
        if length == 0 || PATH_BYTES_MAX < length {
            return Err(PathError::Length(length));
        }
        let Some((text, rest)) = self.rest.split_at_checked(length) else { return Ok(None) };
        self.rest = rest;
        let shown = |_: std::str::Utf8Error| PathError::Utf8(text.escape_ascii().to_string());
        std::str::from_utf8(text).map(Some).map_err(shown)
    }

    fn entry(&mut self, tag: u8) -> Result<Option<Entry>, Fault> {
        if !(PLAIN..=LINK).contains(&tag) {
            return Err(Fault::Tag(tag));
        }
        let Some(path) = self.text()? else { return Ok(None) };
        let path = EntryPath::new(path)?;
        let kind = match tag {
            DIRECTORY => EntryKind::Directory,
            LINK => {
                let Some(target) = self.text()? else { return Ok(None) };
                EntryKind::Link { target: target.into() }
            }
            _ => {
                let Some([bytes, modified]) = self.numbers() else { return Ok(None) };
                let executable = tag == EXECUTABLE;
                EntryKind::File { executable, bytes, modified: modified.cast_signed() }
            }
        };
        Ok(Some(Entry { path, kind }))
    }

    fn extent(&mut self) -> Option<Extent> {
        let bytes = u32::from_le_bytes(self.array()?);
        Some(Extent { bytes, hash: Hash(self.array()?) })
    }

    fn numbers(&mut self) -> Option<[u64; 2]> {
        Some([u64::from_le_bytes(self.array()?), u64::from_le_bytes(self.array()?)])
    }

    fn totals(&mut self) -> Option<Totals> {
        let [entries, bytes] = self.numbers()?;
        Some(Totals { entries, bytes })
    }
}
