//! Books for Palm and Kindle: PalmDOC and Mobipocket (`.pdb`, `.prc`, `.mobi`, `.azw`, `.azw3`).
//!
//! Source: the Palm Database format (Palm OS File Format Specification, 2001); PalmDOC, MOBI and EXTH
//! headers as the MobileRead wiki describes them. A book's text is HTML, which is read as a page;
//! that of PalmDOC is plain text.
//!
//! # Differences from the specification
//!
//! * Of a file with two forms of one book (MOBI and KF8), the first is read.
//! * Pictures, indexes and scripts are not read.

mod huff;

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, be32, len16, len32, slice, slice_up_to, u8_at, up_to_zero};
use crate::object::{Object, ProblemKind};
use crate::office::codepage;
use crate::prose::plain;
use crate::text::Body;
use crate::{Draft, Input, Type, html};
use huff::Huff;

/// Position of the list of records.
const RECORDS_AT: usize = 78;
/// Position of the MOBI header in the first record.
const MOBI_AT: usize = 16;
/// Bytes of the MOBI header from which on it has flags of extra data.
const EXTRA_HEADER_BYTES: usize = 228;

/// Returns whether this is a book whose text can be read.
pub(super) fn is_book(head: &[u8]) -> bool {
    let kind = head.get(60..68);
    [&b"BOOKMOBI"[..], b"TEXtREAd", b"TEXtTlDc"].into_iter().any(|it| kind == Some(it))
}

/// A book that is open.
struct Book<'a> {
    bytes: &'a [u8],
    /// The first record, which describes the others.
    first: &'a [u8],
    /// Length of the MOBI header, in bytes; 0 for PalmDOC.
    mobi_bytes: usize,
}

/// The packing of the text.
enum Packing {
    None,
    Lz77,
    Huff(Box<Huff>),
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let mut about = Metadata::default();
    let Some(book) = Book::open(bytes) else {
        return Draft::with_problem(ProblemKind::Broken, "has no first record that can be read");
    };
    let is_all = book.fields(&mut about);
    let mut draft = about.draft(input.text_bytes_max());
    if is_all == Some(false) {
        draft.cut(Limit::Properties.cut());
    }
    if draft.title.is_empty() {
        draft.title = book.title();
    }
    if be16(book.first, 12).is_some_and(|it| it != 0) {
        draft.problem(ProblemKind::Locked, "is locked by copy protection");
        return draft;
    }
    let text = match book.text(input, &mut draft) {
        Ok(text) => text,
        Err(problem) => {
            draft.add_problems([problem]);
            return draft;
        }
    };
    let (text, _) = book.charset().decode_without_bom_handling(&text);
    // Under a URL with a fragment, relative links, which lead within the book, are left out.
    let url = format!("{}#text", input.object.url);
    let object = Object::whole(url, text.into_owned().into_bytes());
    let inner = Input { object: &object, r#type: Type::Html, ..*input };
    let page = if book.mobi_bytes == 0 { plain::prose(&inner) } else { html::summarize(&inner) };
    let mut body = Body::new(input.text_bytes_max());
    body.push(&page.body);
    draft.set_body(body);
    draft.references = page.references;
    if draft.title.is_empty() {
        draft.title = page.title;
    }
    if draft.description.is_empty() {
        draft.description = page.description;
    }
    draft.add_problems(page.problems);
    draft
}

impl<'a> Book<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let first = record(bytes, 0)?;
        be16(first, 0)?;
        let is_mobi = slice(first, MOBI_AT, 4) == Some(b"MOBI");
        let mobi_bytes = if is_mobi { len32(first, MOBI_AT + 4)? } else { 0 };
        Some(Self { bytes, first, mobi_bytes })
    }

    fn charset(&self) -> &'static encoding_rs::Encoding {
        let number = if self.mobi_bytes == 0 { None } else { be32(self.first, 28) };
        codepage::of_number(number.map_or(1252, i64::from))
    }

    fn decoded(&self, bytes: &[u8]) -> String {
        self.charset().decode_without_bom_handling(bytes).0.into_owned()
    }

    /// Returns the full name in the MOBI header, else that of the database.
    fn title(&self) -> String {
        let full = (self.mobi_bytes != 0)
            .then(|| slice(self.first, len32(self.first, 84)?, len32(self.first, 88)?))
            .flatten()
            .filter(|it| !it.is_empty());
        let name = self.bytes.get(..32).map(up_to_zero).unwrap_or_default();
        match full {
            Some(full) => self.decoded(full),
            // It is as short as a file name was then, with signs in place of spaces.
            None => self.decoded(name).replace('_', " "),
        }
    }

    /// Reads the EXTH header: pairs of a number and a value. Returns whether these were all.
    fn fields(&self, about: &mut Metadata) -> Option<bool> {
        let has_fields = self.mobi_bytes != 0 && be32(self.first, 128)? & 0x40 != 0;
        let header = self.first.get(MOBI_AT.checked_add(self.mobi_bytes)?..)?;
        if !has_fields || !header.starts_with(b"EXTH") {
            return None;
        }
        let mut at = 12;
        for count in 0..len32(header, 8)? {
            if count == Limit::Properties.bound() {
                return Some(false);
            }
            let (number, size) = (be32(header, at)?, len32(header, at + 4)?);
            let value = slice_up_to(header, at + 8, size.checked_sub(8)?);
            let value = self.decoded(value);
            match number {
                100 => about.add(Field::Author, &value),
                101 => about.add(Field::Publisher, &value),
                103 => about.add(Field::Description, &value),
                104 => about.add(Field::Identifier, &format!("isbn:{value}")),
                105 => about.add(Field::Keyword, &value),
                106 => about.add(Field::Date, &value),
                108 => about.add(Field::Contributor, &value),
                109 => about.add(Field::License, &value),
                503 => about.add(Field::Title, &value),
                524 => about.add(Field::Language, &value),
                _ => {}
            }
            at = at.checked_add(size)?;
        }
        Some(true)
    }

    fn packing(&self) -> Option<Packing> {
        Some(match be16(self.first, 0)? {
            1 => Packing::None,
            2 => Packing::Lz77,
            17480 => {
                let (first, count) = (len32(self.first, 112)?, len32(self.first, 116)?);
                let record = |number| record(self.bytes, number);
                Packing::Huff(Box::new(Huff::open(first, count, &record)?))
            }
            _ => return None,
        })
    }

    fn text(
        &self,
        input: &Input<'_>,
        draft: &mut Draft<'_>,
    ) -> Result<Vec<u8>, (ProblemKind, String)> {
        let broken = |message: &str| (ProblemKind::Broken, message.to_owned());
        let mut packing = self.packing().ok_or_else(|| broken("is packed in an unknown way"))?;
        let is_extra = EXTRA_HEADER_BYTES <= self.mobi_bytes;
        let flags = if is_extra { be16(self.first, 242).unwrap_or(0) } else { 0 };
        let mut time = TimeLimit::of_long_steps(input.cancelled);
        let mut text = Vec::new();
        let count = len16(self.first, 8).unwrap_or(0);
        for number in 1..=count {
            if !time.goes_on() {
                break;
            }
            let Some(packed) = record(self.bytes, number) else {
                draft.add_problems([broken(&format!("breaks off at part {number} of {count}"))]);
                break;
            };
            if Limit::BookPart.bound() < packed.len() {
                draft.cut(Limit::BookPart.cut());
            }
            let packed = without_extra(slice_up_to(packed, 0, Limit::BookPart.bound()), flags);
            match &mut packing {
                Packing::None => text.extend_from_slice(packed),
                Packing::Lz77 => lz77(packed, &mut text),
                Packing::Huff(huff) => {
                    if huff.unpack(packed, &mut text).is_none() {
                        draft.add_problems([broken(&format!("part {number} cannot be unpacked"))]);
                        break;
                    }
                }
            }
            if Limit::BookText.bound() < text.len() {
                text.truncate(Limit::BookText.bound());
                draft.cut(Limit::BookText.cut());
                break;
            }
        }
        input.report_front(draft);
        time.report("the book's text", draft);
        Ok(text)
    }
}

/// Returns the record of this number.
fn record(bytes: &[u8], number: usize) -> Option<&[u8]> {
    let count = len16(bytes, 76)?;
    if count <= number {
        return None;
    }
    let at = RECORDS_AT + 8 * number;
    let start = len32(bytes, at)?;
    let end = if number + 1 == count { bytes.len() } else { len32(bytes, at + 8)? };
    bytes.get(start..end.min(bytes.len()))
}

/// Returns a record without the entries at its end, of which `flags` name the kinds.
fn without_extra(record: &[u8], flags: u16) -> &[u8] {
    let mut rest = record;
    for _ in 0..(flags >> 1).count_ones() {
        rest = rest.get(..rest.len().saturating_sub(entry_bytes(rest))).unwrap_or_default();
    }
    if flags & 1 != 0 {
        let overlap = rest.last().map_or(0, |it| usize::from(it & 3) + 1);
        rest = rest.get(..rest.len().saturating_sub(overlap)).unwrap_or_default();
    }
    rest
}

/// Returns the length of the entry that ends with `rest`. Its last bytes are that number, seven bits
/// each; the first of them has the highest bit.
fn entry_bytes(rest: &[u8]) -> usize {
    let last = rest.get(rest.len().saturating_sub(4)..).unwrap_or_default();
    last.iter().fold(0, |size, byte| {
        let size = if byte & 0x80 == 0 { size } else { 0 };
        size << 7 | usize::from(byte & 0x7f)
    })
}

/// Unpacks PalmDOC: literals, spaces with a letter, and copies of up to ten bytes.
fn lz77(packed: &[u8], text: &mut Vec<u8>) {
    let start = text.len();
    let mut at = 0;
    while let Some(byte) = u8_at(packed, at) {
        at += 1;
        match byte {
            1..=8 => {
                text.extend_from_slice(slice_up_to(packed, at, usize::from(byte)));
                at += usize::from(byte);
            }
            0 | 9..=0x7f => text.push(byte),
            0x80..=0xbf => {
                let pair = u16::from(byte) << 8 | u16::from(u8_at(packed, at).unwrap_or(0));
                at += 1;
                let (distance, count) = (usize::from(pair >> 3 & 0x7ff), usize::from(pair & 7) + 3);
                for _ in 0..count {
                    let from = text.len().checked_sub(distance).filter(|it| start <= *it);
                    let Some(byte) = from.and_then(|it| u8_at(text, it)) else { break };
                    text.push(byte);
                }
            }
            0xc0..=0xff => text.extend([b' ', byte ^ 0x80]),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
