//! Strings of a workbook that are continued in further records.
//!
//! Source: Microsoft's \[MS-XLS\] 2.4.265 (`SST`), 2.4.329 (`TxO`), 2.5.293 (strings continued in the next
//! record).

use super::super::compound::utf16;
use crate::limit::Limit;

/// Decodes text that has only the low bytes of UTF-16.
pub(super) fn narrow(bytes: &[u8]) -> String {
    bytes.iter().map(|it| char::from(*it)).collect()
}

/// The reader of strings that may be continued in the next record at any byte. If the break is inside the
/// text, the continuation begins with new flags.
pub(super) struct ContinuedReader<'p> {
    parts: &'p [&'p [u8]],
    part: usize,
    at: usize,
}

impl<'p> ContinuedReader<'p> {
    /// Begins at `at` in the first of the records.
    pub(super) fn new(parts: &'p [&'p [u8]], at: usize) -> Self {
        Self { parts, part: 0, at }
    }

    /// Reads the strings that cells share, and returns the limit that they go beyond.
    pub(super) fn shared(mut self) -> (Vec<String>, Option<Limit>) {
        let mut strings = Vec::new();
        let mut bytes_left = Limit::StringBytes.bound();
        while let Some(text) = self.string() {
            if strings.len() == Limit::Strings.bound() {
                return (strings, Some(Limit::Strings));
            }
            let Some(left) = bytes_left.checked_sub(text.len()) else {
                return (strings, Some(Limit::StringBytes));
            };
            bytes_left = left;
            strings.push(text);
        }
        (strings, None)
    }

    /// Reads a text that has nothing but characters in the records after the first.
    pub(super) fn text(mut self, characters: usize) -> String {
        self.characters(characters, 0).unwrap_or_default()
    }

    fn left(&self) -> &[u8] {
        self.parts.get(self.part).and_then(|it| it.get(self.at..)).unwrap_or_default()
    }

    /// Moves to the next record at the end of this one; returns false if there is none.
    fn reach_bytes(&mut self) -> bool {
        while self.left().is_empty() {
            if self.parts.len() <= self.part + 1 {
                return false;
            }
            self.part += 1;
            self.at = 0;
        }
        true
    }

    fn number(&mut self, count: usize) -> Option<usize> {
        let mut number = 0;
        for at in 0..count {
            if !self.reach_bytes() {
                return None;
            }
            number |= usize::from(*self.left().first()?) << (8 * at);
            self.at += 1;
        }
        Some(number)
    }

    fn skip(&mut self, count: usize) {
        let mut left = count;
        while 0 < left && self.reach_bytes() {
            let step = left.min(self.left().len());
            self.at += step;
            left -= step;
        }
    }

    fn string(&mut self) -> Option<String> {
        let characters = self.number(2)?;
        let flags = self.number(1)?;
        let runs = if flags & 8 != 0 { self.number(2)? } else { 0 };
        let reading = if flags & 4 != 0 { self.number(4)? } else { 0 };
        let text = self.characters(characters, flags)?;
        self.skip(4 * runs + reading);
        Some(text)
    }

    /// Reads a text, which has at most 65,535 characters.
    fn characters(&mut self, count: usize, flags: usize) -> Option<String> {
        let (mut characters, mut flags) = (count, flags);
        let mut text = String::new();
        while 0 < characters {
            if self.left().is_empty() {
                if !self.reach_bytes() {
                    break;
                }
                flags = self.number(1)?;
            }
            let width = 1 + (flags & 1);
            let here = (self.left().len() / width).min(characters);
            if here == 0 {
                // Half of a character.
                self.at += 1;
                continue;
            }
            let bytes = self.left().get(..here * width)?;
            text.push_str(&if width == 2 { utf16(bytes) } else { narrow(bytes) });
            self.at += here * width;
            characters -= here;
        }
        Some(text)
    }
}
