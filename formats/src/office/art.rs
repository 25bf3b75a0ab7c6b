//! Records of Office drawings: each has a header, and those with a certain mark have further records inside.
//! PowerPoint's slides are records of the same form.
//!
//! Source: Microsoft's \[MS-ODRAW\] 2.2.1 (record header), 2.2.9 (`OfficeArtFOPT`) and 2.3.22.2
//! (`gtextUNICODE`).
//!
//! # Differences from the specification
//!
//! * A record that is longer than the one it is in ends with it. So what stands in a container that has
//!   no records, such as a zip file, does not hide what comes after it.
//! * Zeros between records are passed over.

use super::compound::utf16;
use crate::numbers::{le_len32, le16};

/// Bytes of a record's header.
const HEADER_BYTES: usize = 8;
/// The mark of a record with records inside.
const CONTAINER: u16 = 0xf;
/// Bytes of a property.
const PROPERTY_BYTES: usize = 6;
/// The property with the text of WordArt, and the flag of those whose values follow them all.
const WORD_ART: u16 = 0x00c0;
const IS_LONG: u16 = 0x8000;

/// The kind of the record with a shape's properties.
pub(super) const PROPERTIES: u16 = 0xf00b;
/// The kind of the record with a shape.
pub(super) const SHAPE: u16 = 0xf004;

/// The reader of records, which gives each before those inside it.
pub(super) struct ArtRecords<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Where the open records end, from the outermost to the innermost.
    ends: Vec<usize>,
}

pub(super) struct ArtRecord<'b> {
    pub(super) kind: u16,
    pub(super) instance: u16,
    pub(super) content: &'b [u8],
}

impl<'b> ArtRecords<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0, ends: vec![bytes.len()] }
    }

    /// Leaves out the rest of the innermost record that is open.
    pub(super) fn leave(&mut self) {
        self.at = self.ends.pop().unwrap_or(self.bytes.len());
    }

    /// Passes zeros between the outermost records, which stand where a program has aligned the next one. That
    /// begins with its mark, or as a record without records inside with two zeros.
    fn pass_zeros(&mut self, end: usize) {
        let rest = self.bytes.get(self.at..end).unwrap_or_default();
        if self.ends.len() == 1 && rest.starts_with(&[0; HEADER_BYTES]) {
            let zeros = rest.iter().position(|it| *it != 0).unwrap_or(rest.len());
            let is_container = rest.get(zeros).is_some_and(|it| u16::from(it & 0xf) == CONTAINER);
            self.at += if is_container { zeros } else { zeros - 2 };
        }
    }
}

impl<'b> Iterator for ArtRecords<'b> {
    type Item = ArtRecord<'b>;

    fn next(&mut self) -> Option<ArtRecord<'b>> {
        loop {
            let end = *self.ends.last()?;
            self.pass_zeros(end);
            let rest = self.bytes.get(self.at..end).unwrap_or_default();
            let Some(content) = rest.get(HEADER_BYTES..) else {
                self.leave();
                continue;
            };
            let (head, kind, size) = (le16(rest, 0)?, le16(rest, 2)?, le_len32(rest, 4)?);
            let content = content.get(..size).unwrap_or(content);
            self.at += HEADER_BYTES;
            if head & 0xf == CONTAINER {
                self.ends.push(self.at + content.len());
            } else {
                self.at += content.len();
            }
            return Some(ArtRecord { kind, instance: head >> 4, content });
        }
    }
}

/// Returns the text of WordArt in a record of [`PROPERTIES`], whose instance is how many there are.
pub(super) fn word_art(record: &ArtRecord<'_>) -> Option<String> {
    let mut at = PROPERTY_BYTES * usize::from(record.instance);
    for property in record.content.get(..at)?.chunks_exact(PROPERTY_BYTES) {
        let (id, value) = (le16(property, 0)?, le_len32(property, 2)?);
        if id & IS_LONG != 0 {
            if id & 0x3fff == WORD_ART {
                let text = utf16(record.content.get(at..at.checked_add(value)?)?);
                return Some(text.trim_end_matches('\0').to_owned());
            }
            at = at.checked_add(value)?;
        }
    }
    None
}
