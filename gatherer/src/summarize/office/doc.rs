//! Word documents of before 2007: the text by its table of pieces.
//!
//! Source: Microsoft's \[MS-DOC\] 2.4.1 (retrieving text), 2.5 (the file information block), 2.9.38 (the
//! table of pieces) and 2.8.25 (fields); Word 6 and 95 as their file information block has it.
//!
//! # Differences from the specification
//!
//! * Properties of paragraphs are not read, so there are no headings.
//!
//! Sans-I/O.

use super::compound::{Compound, u16_at, u32_at, usize_at};
use super::{Found, Kind, PARAGRAPH_BYTES_MAX, codepage};
use crate::object::ProblemKind;
use crate::summarize::Input;
use crate::text::Body;

/// What the stream starts with.
const MAGIC: u16 = 0xa5ec;
/// What it starts with in documents of Word 2 and 6.
const MAGICS_OLD: [u16; 2] = [0xa5dc, 0xa5db];
/// The first version with a table of pieces as it is read here.
const VERSION_97: u16 = 0x00c1;
/// Most pieces.
const PIECES_MAX: usize = 256 * 1024;
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
        text.take(&codepage::of_number(1252).decode(bytes.ok_or_else(broken)?).0, found);
        text.end_paragraph(found);
        return Ok(());
    }
    let table = file.stream(if flags & 0x0200 != 0 { "1Table" } else { "0Table" });
    let table = table.ok_or_else(broken)?;
    let pieces = pieces(main, &table).ok_or_else(broken)?;
    for (count, piece) in pieces.iter().enumerate() {
        if count.is_multiple_of(256) && (input.cancelled)() {
            return Err((ProblemKind::Time, "ran out of time on the document".to_owned()));
        }
        if found.body.is_full() {
            break;
        }
        text.take(&piece.text(main), found);
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
    fn text(&self, main: &[u8]) -> String {
        let size = if self.is_narrow { 1 } else { 2 };
        let end = self.start.saturating_add(self.characters.saturating_mul(size)).min(main.len());
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

/// The text, freed of what stands for other things.
struct Text {
    paragraph: Body,
    /// For each field that is open, whether its instruction is being read.
    fields: Vec<bool>,
    instruction: Body,
}

impl Text {
    fn new() -> Self {
        Self {
            paragraph: Body::new(PARAGRAPH_BYTES_MAX),
            fields: Vec::new(),
            instruction: Body::new(INSTRUCTION_BYTES_MAX),
        }
    }

    fn take(&mut self, text: &str, found: &mut Found) {
        let mut rest = text;
        while let Some(at) = rest.find(|it: char| it < ' ') {
            let (before, sign) = rest.split_at(at);
            self.push(before);
            let mut characters = sign.chars();
            match characters.next().unwrap_or_default() {
                '\r' | '\u{c}' | '\u{e}' => self.end_paragraph(found),
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
        }
        self.push(rest);
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
            found.paragraph(self.paragraph.as_str(), Kind::Text);
            self.paragraph = Body::new(PARAGRAPH_BYTES_MAX);
        }
    }
}
