//! The text of PostScript pages, painted by the names of their operators.
//!
//! Source: dvips' `tex.pro` and `texc.pro` (its operators of one letter), groff's `prologue.ps`.
//! The operators of other programs are guessed: an operator after a string shows the string, if its
//! name has `show` in it or is short.

use std::collections::BTreeMap;

use super::super::tex_fonts::{Encoding, characters, encoding, width};
use super::super::typeset::Typeset;
use super::tokens::PsToken;
use crate::limit::Limit;
use crate::text::Body;

/// Maximum number of operands that wait for their operator; more are a table, and no text.
const OPERANDS_MAX: usize = 64 * 1024;
/// The size of a font that declares none.
const SIZE: f64 = 10.0;
/// The gap in a `TJ` line that separates words, in thousandths of the font's size.
const GAP_THOUSANDTHS: f64 = -190.0;

/// Short names of the language's own operators that take strings and show none.
const NOT_SHOWING: &[&[u8]] = &[
    b"def", b"put", b"run", b"eq", b"ne", b"and", b"not", b"cvn", b"cvx", b"cvs", b"cvi", b"cvr",
    b"dup", b"pop", b"get", b"=", b"==",
];

/// The program that made the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Dvips,
    Groff,
    General,
}

#[derive(Clone, Copy)]
struct Font {
    encoding: Encoding,
    size: f64,
}

enum Operand {
    Number(f64),
    /// A number in an array.
    Kern(f64),
    String(Vec<u8>),
    Literal(Vec<u8>),
}

/// The painted text of the pages.
pub(super) struct PaintedText {
    pub(super) title: String,
    pub(super) body: Body,
    pub(super) pages: usize,
    pub(super) has_more_fonts: bool,
}

pub(super) struct Painter {
    dialect: Dialect,
    text: Typeset,
    operands: Vec<Operand>,
    in_array: bool,
    fonts: BTreeMap<Vec<u8>, Font>,
    has_more_fonts: bool,
    /// A font that a comment names, until it is defined.
    pending_font: Option<(Vec<u8>, Font)>,
    font: Font,
    x: f64,
    y: f64,
    /// groff's addition to the width of each character.
    spread: f64,
    /// dvips' movement after a string.
    delta: f64,
    pages: usize,
    dots_an_inch: f64,
}

impl Painter {
    pub(super) fn new(dialect: Dialect, text_bytes_max: usize) -> Self {
        Self {
            dialect,
            text: Typeset::new(text_bytes_max),
            operands: Vec::new(),
            in_array: false,
            fonts: BTreeMap::new(),
            has_more_fonts: false,
            pending_font: None,
            font: Font { encoding: Encoding::Base, size: SIZE },
            x: 0.0,
            y: 0.0,
            spread: 0.0,
            delta: 0.0,
            pages: 0,
            dots_an_inch: 600.0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.is_full()
    }

    pub(super) fn page(&mut self) {
        self.pages += 1;
        self.text.page(self.pages);
        self.operands.clear();
        self.in_array = false;
    }

    pub(super) fn finish(self) -> PaintedText {
        let title = self.text.title();
        let Self { text, pages, has_more_fonts, .. } = self;
        PaintedText { title, body: text.finish(), pages, has_more_fonts }
    }

    /// Reads the comments in which dvips names its bitmap fonts: `%DVIPSBitmapFont: Fa cmr10 10 58`.
    pub(super) fn comment(&mut self, comment: &[u8]) {
        let text = String::from_utf8_lossy(comment);
        if let Some((_, resolution)) = text.split_once("dpi=") {
            let digits: String = resolution.chars().take_while(char::is_ascii_digit).collect();
            self.dots_an_inch = digits.parse().unwrap_or(self.dots_an_inch);
        }
        let Some(font) = text.strip_prefix("%DVIPSBitmapFont:") else { return };
        let mut words = font.split_whitespace();
        if let (Some(short), Some(name), Some(points)) = (words.next(), words.next(), words.next())
        {
            let points = points.parse().unwrap_or(SIZE);
            let size = points * self.dots_an_inch / 72.27;
            let font = Font { encoding: encoding(name), size };
            self.pending_font = Some((short.as_bytes().to_vec(), font));
        }
    }

    /// Handles a token outside procedures; strings are kept only on pages.
    pub(super) fn token(&mut self, token: &PsToken<'_>, on_page: bool) {
        let operand = match token {
            PsToken::Number(number) if self.in_array => Operand::Kern(*number),
            PsToken::Number(number) => Operand::Number(*number),
            PsToken::String(text) if on_page => Operand::String(text.clone()),
            PsToken::Literal(name) => Operand::Literal(name.to_vec()),
            PsToken::OpenArray | PsToken::CloseArray => {
                // dvips opens arrays that its own operators close.
                let arrays = self.dialect != Dialect::Dvips;
                self.in_array = arrays && *token == PsToken::OpenArray;
                return;
            }
            PsToken::Name(name) => {
                if !self.in_array {
                    self.operator(name);
                    self.operands.clear();
                }
                return;
            }
            _ => return,
        };
        if OPERANDS_MAX <= self.operands.len() {
            self.operands.clear();
        }
        self.operands.push(operand);
    }

    fn operator(&mut self, name: &[u8]) {
        match self.dialect {
            Dialect::Dvips => self.dvips(name),
            Dialect::Groff => self.groff(name),
            Dialect::General => self.general(name),
        }
    }

    /// Returns the number that is the `back`th operand from the end, if it is a number.
    fn number(&self, back: usize) -> Option<f64> {
        match self.operands.get(self.operands.len().checked_sub(back)?)? {
            Operand::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn literal(&self, at: usize) -> Option<&[u8]> {
        match self.operands.get(at)? {
            Operand::Literal(name) => Some(name),
            _ => None,
        }
    }

    /// Shows the strings among the operands, and moves past them.
    fn show(&mut self) {
        for operand in std::mem::take(&mut self.operands) {
            match operand {
                Operand::String(text) => self.string(&text),
                Operand::Kern(kern) if kern < GAP_THOUSANDTHS => self.text.space(),
                _ => {}
            }
        }
    }

    fn string(&mut self, text: &[u8]) {
        for (at, code) in text.iter().enumerate() {
            let width = width(self.font.encoding, *code) * self.font.size;
            if matches!(code, b' ' | b'\t') && self.dialect != Dialect::Dvips {
                self.text.space();
                self.x += width;
                continue;
            }
            let beside = |it: Option<&u8>| it.is_none_or(u8::is_ascii_alphabetic);
            let in_word =
                beside(at.checked_sub(1).and_then(|it| text.get(it))) && beside(text.get(at + 1));
            let shown = match (self.dialect, code) {
                (Dialect::Groff, 0x8c) => "fi",
                (Dialect::Groff, 0x8d) => "fl",
                (Dialect::General, 0xae) if in_word => "fi",
                (Dialect::General, 0xaf) if in_word => "fl",
                _ => characters(self.font.encoding, *code),
            };
            if !shown.is_empty() {
                self.text.put(shown, (self.x, self.y), self.font.size, width);
            }
            self.x += width + self.spread;
        }
    }

    /// Adds `change` to `delta`, and moves past the shown text by it.
    fn tail(&mut self, change: f64) {
        self.delta += change;
        self.x += self.delta;
    }

    fn dvips(&mut self, name: &[u8]) {
        let last = self.number(1);
        match name {
            b"rf" | b"df" => self.define(name == b"rf"),
            b"bop" => (self.x, self.y, self.delta) = (0.0, 0.0, 0.0),
            b"p" => self.show(),
            b"a" => self.move_to(),
            b"b" => {
                self.show();
                self.delta = last.unwrap_or_default();
                self.tail(0.0);
            }
            b"w" => self.x += last.unwrap_or_default(),
            b"x" => self.y += last.unwrap_or_default(),
            b"y" => {
                let position = self.number(2).zip(last);
                self.show();
                (self.x, self.y) = position.unwrap_or((self.x, self.y));
            }
            [letter @ b'c'..=b'k'] => {
                self.show();
                self.tail(f64::from(*letter) - f64::from(b'g'));
            }
            [letter @ (b'l'..=b'o' | b'q'..=b't')] => {
                self.show();
                self.x += f64::from(*letter) - f64::from(b'p');
            }
            _ => {
                if let Some(font) = self.fonts.get(name) {
                    self.font = *font;
                }
            }
        }
    }

    fn move_to(&mut self) {
        if let Some((x, y)) = self.number(2).zip(self.number(1)) {
            (self.x, self.y) = (x, y);
        }
    }

    /// Defines a font: `/Fa 134[…] 99.6 /CMBX12 rf`, or a bitmap font that a comment names.
    fn define(&mut self, outlines: bool) {
        let Some(short) = self.literal(0).map(<[u8]>::to_vec) else { return };
        if Limit::Fonts.bound() <= self.fonts.len() && !self.fonts.contains_key(&short) {
            self.has_more_fonts = true;
            return;
        }
        let font = if outlines {
            let name = self.operands.len().checked_sub(1).and_then(|it| self.literal(it));
            let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
            // Outline fonts have the encoding of the font that they replace, or are re-encoded.
            Font { encoding: encoding(&name), size: self.number(2).unwrap_or(SIZE) }
        } else {
            match self.pending_font.take() {
                Some((name, font)) if name == short => font,
                _ => Font { encoding: Encoding::Ot1, size: SIZE * self.dots_an_inch / 72.27 },
            }
        };
        self.fonts.insert(short, font);
    }

    /// `(text) x y Q`, `(text) dx E` and so on: five ways to move, each with four ways to show.
    fn groff(&mut self, name: &[u8]) {
        let last = self.number(1).unwrap_or_default();
        match name {
            b"SF" => {
                self.font.size = self.number(2).unwrap_or(self.font.size);
            }
            b"BP" => (self.x, self.y) = (0.0, 0.0),
            [b'A'..=b'D'] => {}
            [b'E'..=b'H'] => self.x += last,
            [b'I'..=b'L'] => self.y += last,
            [b'M'..=b'P'] => {
                self.x += self.number(2).unwrap_or_default();
                self.y += last;
            }
            [b'Q'..=b'T'] => self.move_to(),
            _ => return,
        }
        // The third of the four spreads all characters by the number before the string.
        self.spread = match (name, self.operands.first()) {
            (b"C" | b"G" | b"K" | b"O" | b"S", Some(Operand::Number(spread))) => *spread,
            _ => 0.0,
        };
        self.show();
        self.spread = 0.0;
    }

    fn general(&mut self, name: &[u8]) {
        let shows = name.windows(4).any(|it| it == b"show")
            || name.len() <= 3 && !NOT_SHOWING.contains(&name);
        let strings = self.operands.iter().filter(|it| matches!(it, Operand::String(_))).count();
        let numbers = self.operands.iter().filter(|it| matches!(it, Operand::Number(_))).count();
        if 0 < strings {
            if shows {
                // Numbers beside a string are its position, or its stretching.
                if numbers == 2 && !name.ends_with(b"show") {
                    let mut sides = self.operands.iter().filter_map(|it| match it {
                        Operand::Number(number) => Some(*number),
                        _ => None,
                    });
                    let position = sides.next().zip(sides.next());
                    (self.x, self.y) = position.unwrap_or((self.x, self.y));
                }
                self.show();
            }
            return;
        }
        match name {
            b"scalefont" | b"selectfont" | b"Tf" => {
                self.font.size = self.number(1).filter(|it| 0.0 < *it).unwrap_or(self.font.size);
            }
            b"rmoveto" | b"Td" | b"TD" | b"rm" => {
                self.x += self.number(2).unwrap_or_default();
                self.y += self.number(1).unwrap_or_default();
            }
            // `n` is the next line of a2ps.
            b"T*" | b"n" => self.text.line(),
            b"Tm" => self.move_to(),
            _ if numbers == 2 && (name.len() <= 2 || name == b"moveto") => self.move_to(),
            _ => {}
        }
    }
}
