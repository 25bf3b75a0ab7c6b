//! Word documents of before 2007: the text by its table of pieces.
//!
//! Source: Microsoft's \[MS-DOC\] 2.4.1 (retrieving text), 2.5 (the file information block), 2.9.38 (the
//! table of pieces), 2.8.25 (fields), 2.8.7 and 2.9.175 (the styles of paragraphs); Word 6 and 95 as
//! their file information block has it.
//!
//! # Differences from the specification
//!
//! * A heading is what has one of the nine styles that all documents have for them; styles of users
//!   that are made of these are text.
//!
//! Sans-I/O.

use super::compound::{Compound, u16_at, u32_at, usize_at};
use super::{Found, Kind, PARAGRAPH_BYTES_MAX, codepage};
use crate::Input;
use crate::object::ProblemKind;
use crate::text::Body;

/// What the stream starts with.
const MAGIC: u16 = 0xa5ec;
/// What it starts with in documents of Word 2 and 6.
const MAGICS_OLD: [u16; 2] = [0xa5dc, 0xa5db];
/// The first version with a table of pieces as it is read here.
const VERSION_97: u16 = 0x00c1;
/// Most pieces.
const PIECES_MAX: usize = 256 * 1024;
/// Most paragraphs that are headings.
const RANGES_MAX: usize = 64 * 1024;
/// Bytes of a page of properties.
const PAGE_BYTES: usize = 512;
/// Deepest nesting of fields; what is deeper is text.
const FIELDS_MAX: usize = 16;
/// Longest instruction of a field, in bytes.
const INSTRUCTION_BYTES_MAX: usize = 2 * 1024;

/// Reads the text in the stream `main`.
pub(super) fn read(
    main: &[u8],
    file: &Compound<'_>,
    input: &Input<'_>,
    found: &mut Found,
) -> Result<(), (ProblemKind, String)> {
    let broken = || (ProblemKind::Broken, "has a text that cannot be found".to_owned());
    let magic = u16_at(main, 0).ok_or_else(broken)?;
    let version = u16_at(main, 2).ok_or_else(broken)?;
    let flags = u16_at(main, 0x0a).ok_or_else(broken)?;
    if magic != MAGIC && !MAGICS_OLD.contains(&magic) {
        return Err(broken());
    }
    if flags & 0x0100 != 0 {
        return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
    }
    let mut text = Text::new();
    if magic != MAGIC || version < VERSION_97 {
        let range = usize_at(main, 0x18).zip(usize_at(main, 0x1c));
        let bytes = range.and_then(|(start, end)| main.get(start..end.min(main.len())));
        let whole = codepage::of_number(1252).decode(bytes.ok_or_else(broken)?).0;
        text.take(&whole, 0, 1, found);
        text.end_paragraph(found);
        return Ok(());
    }
    let table = file.stream(if flags & 0x0200 != 0 { "1Table" } else { "0Table" });
    let table = table.ok_or_else(broken)?;
    let pieces = pieces(main, &table).ok_or_else(broken)?;
    headings(main, &table, &mut text.headings);
    text.headings.sort_unstable();
    for (count, piece) in pieces.iter().enumerate() {
        if count.is_multiple_of(256) && (input.cancelled)() {
            return Err((ProblemKind::Time, "ran out of time on the document".to_owned()));
        }
        if found.body.is_full() {
            break;
        }
        text.take(&piece.text(main), piece.start, piece.width(), found);
    }
    text.end_paragraph(found);
    Ok(())
}

/// A stretch of text.
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

/// Reads the table of pieces: character positions, then for each piece where it is.
fn pieces(main: &[u8], table: &[u8]) -> Option<Vec<Piece>> {
    let start = usize_at(main, 0x01a2)?;
    let end = start.checked_add(usize_at(main, 0x01a6)?)?;
    let mut rest = table.get(start..end.min(table.len()))?;
    // Properties that pieces share come first.
    while let Some((1, after)) = rest.split_first().map(|(kind, after)| (*kind, after)) {
        rest = after.get(2 + usize::from(u16_at(after, 0)?)..)?;
    }
    let (kind, after) = rest.split_first()?;
    let bytes = after.get(4..).filter(|_| *kind == 2)?;
    let bytes = bytes.get(..usize_at(after, 0)?).unwrap_or(bytes);
    let count = (bytes.len().checked_sub(4)? / 12).min(PIECES_MAX);
    let mut pieces = Vec::new();
    // Pieces that overlap would be a way to make much of little.
    let mut left = main.len();
    for number in 0..count {
        let from = usize_at(bytes, 4 * number)?;
        let to = usize_at(bytes, 4 * number + 4)?;
        let place = u32_at(bytes, 4 * (count + 1) + 8 * number + 2)?;
        let is_narrow = place & 0x4000_0000 != 0;
        let place = usize::try_from(place & 0x3fff_ffff).ok()?;
        let characters = to.saturating_sub(from).min(left);
        left -= characters;
        let start = if is_narrow { place / 2 } else { place };
        pieces.push(Piece { start, characters, is_narrow });
    }
    Some(pieces)
}

/// Notes where the paragraphs are that have the style of a heading, from and to which byte.
fn headings(main: &[u8], table: &[u8], found: &mut Vec<(usize, usize)>) -> Option<()> {
    let start = usize_at(main, 0x0102)?;
    let end = start.checked_add(usize_at(main, 0x0106)?)?;
    let list = table.get(start..end.min(table.len()))?;
    let count = list.len().checked_sub(4)? / 8;
    for number in 0..count.min(RANGES_MAX) {
        let page = usize_at(list, 4 * (count + 1) + 4 * number)? & 0x003f_ffff;
        let page = main.get(page.checked_mul(PAGE_BYTES)?..)?.get(..PAGE_BYTES)?;
        let runs = usize::from(*page.last()?);
        for run in 0..runs {
            // Thirteen bytes each, of which the first says where the properties are.
            let at = 2 * usize::from(*page.get(4 * (runs + 1) + 13 * run)?);
            let style = at + if page.get(at) == Some(&0) { 2 } else { 1 };
            let is_heading = u16_at(page, style).is_some_and(|it| (1..=9).contains(&it));
            // Without properties of its own a paragraph has the common style.
            if is_heading && 0 < at {
                found.push((usize_at(page, 4 * run)?, usize_at(page, 4 * run + 4)?));
            }
        }
        if RANGES_MAX < found.len() {
            break;
        }
    }
    Some(())
}

/// The text, freed of what stands for other things.
struct Text {
    /// Where headings are, in order.
    headings: Vec<(usize, usize)>,
    paragraph: Body,
    kind: Kind,
    /// For each field that is open, whether its instruction is being read.
    fields: Vec<bool>,
    instruction: Body,
}

impl Text {
    fn new() -> Self {
        Self {
            headings: Vec::new(),
            paragraph: Body::new(PARAGRAPH_BYTES_MAX),
            kind: Kind::Text,
            fields: Vec::new(),
            instruction: Body::new(INSTRUCTION_BYTES_MAX),
        }
    }

    /// Takes `text`, which is at `start` and has characters of `width` bytes.
    fn take(&mut self, text: &str, start: usize, width: usize, found: &mut Found) {
        let mut rest = text;
        let mut place = start;
        while let Some(at) = rest.find(|it: char| it < ' ') {
            let (before, sign) = rest.split_at(at);
            self.push(before);
            let units: usize = before.chars().map(char::len_utf16).sum();
            place += units * width;
            let mut characters = sign.chars();
            match characters.next().unwrap_or_default() {
                '\r' | '\u{c}' | '\u{e}' => {
                    self.kind = self.kind_at(place);
                    self.end_paragraph(found);
                }
                '\u{7}' | '\t' => self.paragraph.space(),
                '\u{b}' => self.paragraph.line(),
                '\u{1e}' => self.push("-"),
                '\u{13}' if self.fields.len() < FIELDS_MAX => self.fields.push(true),
                '\u{14}' => {
                    if let Some(in_instruction) = self.fields.last_mut() {
                        *in_instruction = false;
                    }
                    self.end_instruction(found);
                }
                '\u{15}' => {
                    self.fields.pop();
                    self.end_instruction(found);
                }
                // Pictures, notes, optional hyphens.
                _ => {}
            }
            rest = characters.as_str();
            place += width;
        }
        self.push(rest);
    }

    /// Returns what the paragraph is whose end is at `place`.
    fn kind_at(&self, place: usize) -> Kind {
        let after = self.headings.partition_point(|(start, _)| *start <= place);
        let before = after.checked_sub(1).and_then(|at| self.headings.get(at));
        if before.is_some_and(|(_, end)| place < *end) { Kind::Heading } else { Kind::Text }
    }

    fn push(&mut self, text: &str) {
        if self.fields.contains(&true) {
            self.instruction.push(text);
        } else {
            self.paragraph.push(text);
        }
    }

    fn end_instruction(&mut self, found: &mut Found) {
        let instruction = Body::new(INSTRUCTION_BYTES_MAX);
        let instruction = std::mem::replace(&mut self.instruction, instruction);
        found.references.add_field(instruction.as_str());
    }

    fn end_paragraph(&mut self, found: &mut Found) {
        if !self.paragraph.as_str().is_empty() {
            found.paragraph(self.paragraph.as_str(), self.kind);
            self.kind = Kind::Text;
            self.paragraph = Body::new(PARAGRAPH_BYTES_MAX);
        }
    }
}
