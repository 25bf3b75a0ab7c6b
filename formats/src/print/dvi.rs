//! The DVI summarizer: text by the encodings of TeX's fonts, and the metadata of hyperref.
//!
//! Source: "The DVI format" (Knuth, in `tex.web` §583–§590); `\special` in hyperref and HyperTeX.
//!
//! The widths of characters are in other files, so they are estimated. The file has every movement between
//! the characters of a word or line. The estimate matters only when TeX goes back to the edge of a box.

use std::collections::BTreeMap;

use super::postscript::{add_link, read_pdfmarks};
use super::tex_fonts::{Encoding, characters, encoding, width};
use super::typeset::Typeset;
use crate::cancellable::TimeLimit;
use crate::limit::{Cut, Limit};
use crate::media::report_end;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, be32, slice, slice_up_to, u8_at};
use crate::{Draft, Input};

/// Offset of the preamble's comment, after its length.
const COMMENT_AT: usize = 15;
/// Deepest nesting of boxes.
const DEPTH_MAX: usize = 2_000;

/// Position of the next character, and the four repeated steps (DVI's registers).
#[derive(Clone, Copy, Default)]
struct DviPosition {
    h: f64,
    v: f64,
    w: f64,
    x: f64,
    y: f64,
    z: f64,
}

struct Font {
    encoding: Encoding,
    /// The size in units of the file.
    size: f64,
}

struct DviReader<'a> {
    bytes: &'a [u8],
    at: usize,
    position: DviPosition,
    stack: Vec<DviPosition>,
    fonts: BTreeMap<u32, Font>,
    font: u32,
    text: Typeset,
    pages: usize,
    metadata: Metadata,
    references: Vec<String>,
    references_max: usize,
    cuts: Vec<Cut>,
    time: TimeLimit<'a>,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = input.object.bytes.as_ref();
    let mut document = DviReader {
        bytes,
        at: 0,
        position: DviPosition::default(),
        stack: Vec::new(),
        fonts: BTreeMap::new(),
        font: 0,
        text: Typeset::new(input.text_bytes_max()),
        pages: 0,
        metadata: Metadata::default(),
        references: Vec::new(),
        references_max: input.settings.references_max,
        cuts: Vec::new(),
        time: TimeLimit::new(input.cancelled),
    };
    let whole = document.read();
    let pages = postamble_pages(bytes).unwrap_or(document.pages).max(document.pages);
    document.metadata.add(Field::Title, &document.text.title());
    document.metadata.add(Field::Date, &made(bytes));
    let mut draft = document.metadata.draft(0);
    if 0 < pages {
        draft.other("Pages", pages.to_string());
    }
    draft.references = document.references;
    draft.set_body(document.text.finish());
    document.cuts.into_iter().for_each(|it| draft.cut(it));
    document.time.report("its pages", &mut draft);
    if !document.time.is_over() && whole.is_none() {
        report_end(input, "is cut off or damaged: a page has no end", &mut draft);
    }
    draft
}

/// Returns the time in the comment of the preamble, which is ` TeX output 1995.03.01:1000`.
fn made(bytes: &[u8]) -> String {
    let len = u8_at(bytes, COMMENT_AT - 1).unwrap_or_default().into();
    let comment = String::from_utf8_lossy(slice_up_to(bytes, COMMENT_AT, len));
    comment.trim_start().strip_prefix("TeX output ").unwrap_or_default().to_owned()
}

/// Returns the page count of the postamble.
fn postamble_pages(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().rposition(|it| *it != 223)?;
    // Before the padding: a pointer to the postamble, and the version.
    let at = be32(bytes, end.checked_sub(4)?)? as usize;
    (u8_at(bytes, at)? == 248).then_some(())?;
    be16(bytes, at.checked_add(27)?).map(usize::from)
}

impl DviReader<'_> {
    /// Reads pages until the text is full; returns `None` if a page has no end.
    fn read(&mut self) -> Option<()> {
        for count in 0_usize.. {
            if !self.time.goes_on() {
                return None;
            }
            let code = u8_at(self.bytes, self.at)?;
            self.at += 1;
            if code == 248 || self.text.is_full() {
                break;
            }
            if Limit::Commands.bound() <= count {
                self.cuts.push(Limit::Commands.cut());
                break;
            }
            self.command(code)?;
        }
        Some(())
    }

    fn command(&mut self, code: u8) -> Option<()> {
        match code {
            0..=127 => self.set(u32::from(code), true),
            128..=131 => {
                let character = self.unsigned(code - 127)?;
                self.set(character, true);
            }
            132 => {
                self.at += 4;
                let width = self.signed(4)?;
                self.position.h += width;
            }
            133..=136 => {
                let character = self.unsigned(code - 132)?;
                self.set(character, false);
            }
            137 => self.at += 8,
            139 => {
                self.at += 44;
                self.pages += 1;
                self.text.page(self.pages);
                self.position = DviPosition::default();
                self.stack.clear();
            }
            141 if self.stack.len() < DEPTH_MAX => self.stack.push(self.position),
            142 => self.position = self.stack.pop()?,
            143..=170 => self.step(code)?,
            171..=234 => self.font = u32::from(code - 171),
            235..=238 => self.font = self.unsigned(code - 234)?,
            239..=242 => {
                let len = self.unsigned(code - 238)? as usize;
                let text = slice(self.bytes, self.at, len)?;
                self.at += len;
                self.special(text);
            }
            243..=246 => self.define(code - 242)?,
            247 => {
                let len = usize::from(u8_at(self.bytes, self.at + 13)?);
                self.at += 14 + len;
            }
            138 | 140 => {}
            _ => return None,
        }
        Some(())
    }

    /// Moves to the right or down. The first code of each of the four registers repeats its step.
    fn step(&mut self, code: u8) -> Option<()> {
        let step = match code {
            143..=146 => self.signed(code - 142)?,
            157..=160 => self.signed(code - 156)?,
            147 => self.position.w,
            152 => self.position.x,
            161 => self.position.y,
            166 => self.position.z,
            // The four codes after the first have lengths of one to four bytes.
            _ => self.signed((code - if code < 157 { 147 } else { 161 }) % 5)?,
        };
        match code {
            147..=151 => self.position.w = step,
            152..=156 => self.position.x = step,
            161..=165 => self.position.y = step,
            166.. => self.position.z = step,
            _ => {}
        }
        if code < 157 {
            self.position.h += step;
        } else {
            self.position.v += step;
        }
        Some(())
    }

    fn unsigned(&mut self, len: u8) -> Option<u32> {
        let bytes = slice(self.bytes, self.at, usize::from(len))?;
        self.at += bytes.len();
        Some(bytes.iter().fold(0, |sum, it| sum << 8 | u32::from(*it)))
    }

    fn signed(&mut self, len: u8) -> Option<f64> {
        let shift = 32 - 8 * u32::from(len);
        let number = self.unsigned(len)?;
        Some(f64::from((number << shift).cast_signed() >> shift))
    }

    /// Sets a character, and moves past it if `moves`.
    fn set(&mut self, code: u32, moves: bool) {
        let Some(font) = self.fonts.get(&self.font) else { return };
        // The codes of Chinese and Japanese fonts are unknown.
        let Ok(code) = u8::try_from(code) else { return };
        let width = width(font.encoding, code) * font.size;
        let characters = characters(font.encoding, code);
        if !characters.is_empty() {
            self.text.put(characters, (self.position.h, self.position.v), font.size, width);
        }
        if moves {
            self.position.h += width;
        }
    }

    fn define(&mut self, len: u8) -> Option<()> {
        let number = self.unsigned(len)?;
        self.at += 4;
        let size = self.signed(4)?;
        self.at += 4;
        let (area, name) = (self.unsigned(1)? as usize, self.unsigned(1)? as usize);
        let name = slice(self.bytes, self.at + area, name)?;
        self.at += area + name.len();
        if Limit::Fonts.bound() <= self.fonts.len() && !self.fonts.contains_key(&number) {
            self.cuts.push(Limit::Fonts.cut());
        } else {
            let encoding = encoding(&String::from_utf8_lossy(name));
            self.fonts.insert(number, Font { encoding, size });
        }
        Some(())
    }

    fn special(&mut self, special: &[u8]) {
        let (references, most) = (&mut self.references, self.references_max);
        let mut reference = |url: &[u8]| add_link(url, references, most);
        if let Some(html) = special.strip_prefix(b"html:<a href=\"") {
            reference(html.split(|it| *it == b'"').next().unwrap_or_default());
        }
        read_pdfmarks(special, &mut self.metadata, &mut reference);
    }
}

#[cfg(test)]
pub(crate) mod tests;
