//! Word documents from before 2007: the text by its piece table.
//!
//! Source: Microsoft's \[MS-DOC\] 2.4.1 (retrieving text), 2.5 (the file information block), 2.9.38 (the
//! piece table), 2.8.25 (fields), 2.8.7 and 2.9.175 (the styles of paragraphs); Word 6 and 95 by their own
//! file information block, as Apache POI's `HWPFOldDocument` and wvWare read it.
//!
//! # Differences from the specification
//!
//! * Headings are paragraphs in one of the nine built-in heading styles. Paragraphs in users' own
//!   styles made from these are text.

use super::compound::Compound;
use super::{Kind, OfficeDraft};
use crate::Input;
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32};
use crate::object::ProblemKind;
use crate::text::Body;

/// First number of the stream.
const MAGIC: u16 = 0xa5ec;
/// First numbers of the stream in Word 2 and 6, and in those of East Asia.
const MAGICS_OLD: [u16; 5] = [0xa5dc, 0xa5db, 0xa697, 0xa698, 0xa699];
/// The first version with a stream of tables.
const VERSION_97: u16 = 0x00c1;
/// Where the place of the piece table is told, in Word 97 and before.
const PIECES_AT: usize = 0x01a2;
const PIECES_OLD_AT: usize = 0x0160;
/// Flags of a document: it has a piece table (others before 97 have none), is locked, has its tables in
/// `1Table`, has characters of two bytes (before 97).
const HAS_PIECES: u16 = 0x0004;
const IS_LOCKED: u16 = 0x0100;
const IN_TABLE_1: u16 = 0x0200;
const IS_WIDE: u16 = 0x1000;
/// Maximum number of paragraphs that are headings.
const RANGES_MAX: usize = 64 * 1024;
/// Bytes of a page of properties.
const PAGE_BYTES: usize = 512;
/// Deepest nesting of fields; deeper ones are text.
const FIELDS_MAX: usize = 16;

/// Reads the document in a storage, whose stream with the text is `main`.
pub(super) fn read(
    main: &[u8],
    file: &Compound<'_>,
    storage: usize,
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Result<(), (ProblemKind, String)> {
    let broken = || (ProblemKind::Broken, "has a text that cannot be found".to_owned());
    let magic = le16(main, 0).ok_or_else(broken)?;
    let version = le16(main, 2).ok_or_else(broken)?;
    let flags = le16(main, 0x0a).ok_or_else(broken)?;
    if magic != MAGIC && !MAGICS_OLD.contains(&magic) {
        return Err(broken());
    }
    if flags & IS_LOCKED != 0 {
        return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
    }
    let mut text = TextReader::new();
    let table;
    let pieces: Box<dyn Iterator<Item = Piece> + '_> = if magic != MAGIC || version < VERSION_97 {
        old_pieces(main, flags).ok_or_else(broken)?
    } else {
        let name = if flags & IN_TABLE_1 != 0 { "1Table" } else { "0Table" };
        table = file.stream_in(storage, name).ok_or_else(broken)?;
        headings(main, &table, &mut text.headings);
        text.headings.sort_unstable();
        Box::new(pieces(main, &table, PIECES_AT, None).ok_or_else(broken)?)
    };
    let mut time = TimeLimit::of_long_steps(input.cancelled);
    for piece in pieces {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time on the document".to_owned()));
        }
        if document.body.is_full() {
            break;
        }
        text.take(&piece.text(main), piece.start, piece.width(), document);
    }
    text.end_paragraph(document);
    Ok(())
}

/// Returns the pieces of a document before Word 97: all of it, or as a table in the same stream says.
fn old_pieces(main: &[u8], flags: u16) -> Option<Box<dyn Iterator<Item = Piece> + '_>> {
    let is_narrow = flags & IS_WIDE == 0;
    if flags & HAS_PIECES != 0
        && let Some(pieces) = pieces(main, main, PIECES_OLD_AT, Some(is_narrow))
    {
        return Some(Box::new(pieces));
    }
    let (start, end) = le_len32(main, 0x18).zip(le_len32(main, 0x1c))?;
    let bytes = end.min(main.len()).checked_sub(start)?;
    let characters = if is_narrow { bytes } else { bytes / 2 };
    Some(Box::new(std::iter::once(Piece { start, characters, is_narrow })))
}

/// A piece of the text: consecutive characters in one encoding.
struct Piece {
    start: usize,
    characters: usize,
    /// Whether each character is one byte, in the Western code page.
    is_narrow: bool,
}

impl Piece {
    /// Bytes of a character.
    fn width(&self) -> usize {
        if self.is_narrow { 1 } else { 2 }
    }

    fn text(&self, main: &[u8]) -> String {
        let bytes = self.characters.saturating_mul(self.width());
        let end = self.start.saturating_add(bytes).min(main.len());
        let bytes = main.get(self.start..end).unwrap_or_default();
        let encoding =
            if self.is_narrow { encoding_rs::WINDOWS_1252 } else { encoding_rs::UTF_16LE };
        encoding.decode_without_bom_handling(bytes).0.into_owned()
    }
}

/// Reads the piece table, whose place is told at `at`: character positions, then the offset of each piece.
/// Before Word 97, all pieces are as `are_narrow` says.
fn pieces<'t>(
    main: &[u8],
    table: &'t [u8],
    at: usize,
    are_narrow: Option<bool>,
) -> Option<impl Iterator<Item = Piece> + use<'t>> {
    let start = le_len32(main, at)?;
    let end = start.checked_add(le_len32(main, at + 4)?)?;
    let mut rest = table.get(start..end.min(table.len()))?;
    // Properties shared by pieces come first.
    while let Some((1, after)) = rest.split_first().map(|(kind, after)| (*kind, after)) {
        rest = after.get(2 + usize::from(le16(after, 0)?)..)?;
    }
    let (kind, after) = rest.split_first()?;
    let bytes = after.get(4..).filter(|_| *kind == 2)?;
    let bytes = bytes.get(..le_len32(after, 0)?).unwrap_or(bytes);
    let count = bytes.len().checked_sub(4)? / 12;
    // Overlapping pieces could make a long text of a short file.
    let mut left = main.len();
    Some((0..count).map_while(move |number| {
        let from = le_len32(bytes, 4 * number)?;
        let to = le_len32(bytes, 4 * number + 4)?;
        let offset = le32(bytes, 4 * (count + 1) + 8 * number + 2)?;
        let is_narrow = are_narrow.unwrap_or(offset & 0x4000_0000 != 0);
        let is_halved = is_narrow && are_narrow.is_none();
        let offset = usize::try_from(offset & 0x3fff_ffff).ok()?;
        let characters = to.saturating_sub(from).min(left);
        left -= characters;
        let start = if is_halved { offset / 2 } else { offset };
        Some(Piece { start, characters, is_narrow })
    }))
}

/// Adds the ranges of the paragraphs that have the style of a heading, in bytes.
fn headings(main: &[u8], table: &[u8], ranges: &mut Vec<(usize, usize)>) -> Option<()> {
    let start = le_len32(main, 0x0102)?;
    let end = start.checked_add(le_len32(main, 0x0106)?)?;
    let list = table.get(start..end.min(table.len()))?;
    let count = list.len().checked_sub(4)? / 8;
    for number in 0..count.min(RANGES_MAX) {
        let page = le_len32(list, 4 * (count + 1) + 4 * number)? & 0x003f_ffff;
        let page = main.get(page.checked_mul(PAGE_BYTES)?..)?.get(..PAGE_BYTES)?;
        let runs = usize::from(*page.last()?);
        for run in 0..runs {
            // Each run has thirteen bytes; the first is the offset of its properties.
            let at = 2 * usize::from(*page.get(4 * (runs + 1) + 13 * run)?);
            let style = at + if page.get(at) == Some(&0) { 2 } else { 1 };
            let is_heading = le16(page, style).is_some_and(|it| (1..=9).contains(&it));
            // A paragraph without properties of its own has the default style.
            if is_heading && 0 < at {
                ranges.push((le_len32(page, 4 * run)?, le_len32(page, 4 * run + 4)?));
            }
        }
        if RANGES_MAX < ranges.len() {
            break;
        }
    }
    Some(())
}

/// The reader of text, which removes control characters.
#[derive(Default)]
struct TextReader {
    /// The ranges of headings, in order.
    headings: Vec<(usize, usize)>,
    paragraph: Body,
    kind: Kind,
    /// For each field that is open, whether its instruction is being read.
    fields: Vec<bool>,
    instruction: Body,
}

impl TextReader {
    fn new() -> Self {
        let [paragraph, instruction] = [(); 2].map(|()| Body::new(Limit::Paragraph.bound()));
        Self { paragraph, instruction, ..Self::default() }
    }

    /// Adds `text`, which is at the offset `start` and has characters of `width` bytes.
    fn take(&mut self, text: &str, start: usize, width: usize, document: &mut OfficeDraft) {
        let mut rest = text;
        let mut offset = start;
        while let Some(at) = rest.find(|it: char| it < ' ') {
            let (before, sign) = rest.split_at(at);
            self.push(before);
            let units: usize = before.chars().map(char::len_utf16).sum();
            offset += units * width;
            let mut characters = sign.chars();
            match characters.next().unwrap_or_default() {
                '\r' | '\u{c}' | '\u{e}' => {
                    self.kind = self.kind_at(offset);
                    self.end_paragraph(document);
                }
                '\u{7}' | '\t' => self.paragraph.space(),
                '\u{b}' => self.paragraph.line(),
                '\u{1e}' => self.push("-"),
                '\u{13}' if self.fields.len() < FIELDS_MAX => self.fields.push(true),
                '\u{14}' => {
                    if let Some(in_instruction) = self.fields.last_mut() {
                        *in_instruction = false;
                    }
                    self.end_instruction(document);
                }
                '\u{15}' => {
                    self.fields.pop();
                    self.end_instruction(document);
                }
                // Pictures, notes, optional hyphens.
                _ => {}
            }
            rest = characters.as_str();
            offset += width;
        }
        self.push(rest);
    }

    /// Returns the kind of the paragraph that ends at `offset`.
    fn kind_at(&self, offset: usize) -> Kind {
        let after = self.headings.partition_point(|(start, _)| *start <= offset);
        let before = after.checked_sub(1).and_then(|at| self.headings.get(at));
        if before.is_some_and(|(_, end)| offset < *end) { Kind::Heading } else { Kind::Text }
    }

    fn push(&mut self, text: &str) {
        if self.fields.contains(&true) {
            self.instruction.push(text);
        } else {
            self.paragraph.push(text);
        }
    }

    fn end_instruction(&mut self, document: &mut OfficeDraft) {
        document.references.add_field(&self.instruction.take());
    }

    fn end_paragraph(&mut self, document: &mut OfficeDraft) {
        if !self.paragraph.as_str().is_empty() {
            document.take_paragraph(&mut self.paragraph, std::mem::take(&mut self.kind));
        }
    }
}
