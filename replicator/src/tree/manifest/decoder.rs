//! The decoder of manifests.
//!
//! Sans-I/O.

use super::super::chunk::Extent;
use super::super::mode::Mode;
use super::super::path::{EntryPath, PATH_BYTES_MAX, PathError};
use super::{
    DIRECTORY, END, EXECUTABLE, Entry, EntryKind, Fault, Format, Item, LINK, PLAIN, ParseError,
    Rules, Totals,
};
use crate::version::Hash;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Start,
    Entries,
    Ended,
}

/// Reads exactly the manifests that an [`Encoder`](super::Encoder) writes.
#[derive(Debug, Default)]
pub struct Decoder {
    pub(super) buffer: Vec<u8>,
    done: usize,
    offset: u64,
    pub(super) rules: Rules,
    state: Stage,
}

impl Decoder {
    /// Adds bytes of the stream, in order.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.done = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the format, which is known once the first item or the end has been read.
    pub fn format(&self) -> Format {
        self.rules.format
    }

    /// Returns the position of the next item, in bytes from the start of the stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next item; `None` if more bytes must be fed first, and at the end.
    ///
    /// # Errors
    ///
    /// The stream is not a manifest: do not use any item of it.
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
    pub fn finish(mut self) -> Result<Totals, ParseError> {
        let (offset, state) = (self.offset, self.state);
        let has_rest = self.next_item()?.is_some() || self.state != Stage::Ended;
        if has_rest || state != Stage::Ended {
            return Err(ParseError { offset, fault: Fault::Truncated });
        }
        Ok(self.rules.totals)
    }
}

/// Reads the format from the first bytes of a valid manifest; `None` if there are too few bytes.
pub(in super::super) fn format_of(bytes: &[u8]) -> Option<Format> {
    Input { rest: bytes }.format().ok()?
}

/// Reads the path of the entry with which these bytes of a valid manifest begin; `None` if there
/// are too few bytes.
pub(in super::super) fn first_path(bytes: &[u8]) -> Option<EntryPath> {
    let mut input = Input { rest: bytes };
    let [_tag] = input.array()?;
    EntryPath::new(input.text().ok()??).ok()
}

/// Reads the chunk of a file with which these bytes of a valid manifest begin; `None` if there are
/// too few bytes.
pub(in super::super) fn first_extent(bytes: &[u8]) -> Option<Extent> {
    Input { rest: bytes }.extent()
}

enum Taken {
    Item(Item),
    /// The format or the end mark.
    Mark,
    /// More bytes are needed; nothing has changed.
    Short,
}

fn take(input: &mut Input<'_>, rules: &mut Rules, state: &mut Stage) -> Result<Taken, Fault> {
    match state {
        Stage::Start => {
            let Some(format) = input.format()? else { return Ok(Taken::Short) };
            rules.format = format;
            *state = Stage::Entries;
            Ok(Taken::Mark)
        }
        Stage::Entries if rules.left != 0 => {
            let Some(extent) = input.extent() else { return Ok(Taken::Short) };
            rules.extent(extent)?;
            Ok(Taken::Item(Item::Extent(extent)))
        }
        Stage::Entries => {
            let Some([tag]) = input.array() else { return Ok(Taken::Short) };
            if tag == END {
                let Some(sums) = input.totals() else { return Ok(Taken::Short) };
                *state = Stage::Ended;
                return if sums == rules.end()? { Ok(Taken::Mark) } else { Err(Fault::Totals) };
            }
            let Some(entry) = input.entry(tag, rules.format)? else { return Ok(Taken::Short) };
            rules.entry(&entry)?;
            Ok(Taken::Item(Item::Entry(entry)))
        }
        Stage::Ended if input.rest.is_empty() => Ok(Taken::Short),
        Stage::Ended => Err(Fault::Trailing),
    }
}

/// The bytes left to read. A method returns `None` if it needs more bytes.
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

    fn format(&mut self) -> Result<Option<Format>, Fault> {
        match self.array() {
            None => Ok(None),
            Some([1]) => Ok(Some(Format::One)),
            Some([2]) => Ok(self.mode()?.map(Format::Two)),
            Some([other]) => Err(Fault::Format(other)),
        }
    }

    fn mode(&mut self) -> Result<Option<Mode>, Fault> {
        let Some(bits) = self.array().map(u16::from_le_bytes) else { return Ok(None) };
        Mode::from_bits(bits).map(Some).ok_or(Fault::Mode(bits))
    }

    fn entry(&mut self, tag: u8, format: Format) -> Result<Option<Entry>, Fault> {
        let is_one = format == Format::One;
        if !(PLAIN..=LINK).contains(&tag) || (tag == EXECUTABLE && !is_one) {
            return Err(Fault::Tag(tag));
        }
        let Some(path) = self.text()? else { return Ok(None) };
        let path = EntryPath::new(path)?;
        let mode = match tag {
            PLAIN if is_one => Mode::PLAIN,
            DIRECTORY | EXECUTABLE if is_one => Mode::EXECUTABLE,
            // Links have no mode.
            LINK => Mode::EXECUTABLE,
            _ => {
                let Some(mode) = self.mode()? else { return Ok(None) };
                mode
            }
        };
        let kind = match tag {
            DIRECTORY => EntryKind::Directory { mode },
            LINK => {
                let Some(target) = self.text()? else { return Ok(None) };
                EntryKind::Link { target: target.into() }
            }
            _ => {
                let Some([bytes, modified]) = self.numbers() else { return Ok(None) };
                EntryKind::File { mode, bytes, modified: modified.cast_signed() }
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
