//! Typeset text: words and lines from where characters are put on a page, and which of them are the
//! title.
//!
//! Sans-I/O.

use super::tex_fonts::accented;
use crate::text::{Body, is_telling};

/// A gap wider than this share of the font's size parts words. Spaces shrink to 0.22 of it, and the
/// thin space of formulas is 0.17.
const WORD_GAP_EM: f64 = 0.19;
/// A step off the line of more than this share of the font's size starts another line; those to
/// indices and parts of fractions are shorter.
const LINE_STEP_EM: f64 = 0.9;
/// Longest title, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// By how much the title's font is larger than that of the text.
const TITLE_LARGER: f64 = 1.15;

/// A body that accents and hyphens are put right in.
#[derive(Debug)]
pub(crate) struct Typeset {
    body: Body,
    /// An accent that waits for its letter.
    accent: Option<char>,
    /// What stands on the first page in the largest font, and how large that is.
    title: Body,
    title_size: f64,
    /// The smallest size that much was set in.
    text_size: f64,
    size: f64,
    set: usize,
    first_page: bool,
    /// Where the last character ended.
    end: Option<(f64, f64)>,
}

impl Typeset {
    /// Returns an empty text that takes at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            body: Body::new(bytes_max),
            accent: None,
            title: Body::new(TITLE_BYTES_MAX),
            title_size: 0.0,
            text_size: 0.0,
            size: 0.0,
            set: 0,
            first_page: true,
            end: None,
        }
    }

    /// Takes a character that is put at `x`, `y` (downwards) in a font of this `size`, and is about
    /// `width` wide.
    pub(crate) fn put(&mut self, characters: &str, at: (f64, f64), size: f64, width: f64) {
        let (x, y) = at;
        if let Some((end, line)) = self.end {
            let em = size.max(self.size);
            if LINE_STEP_EM * em < (y - line).abs() {
                self.line();
            } else if self.accent.is_none()
                && (WORD_GAP_EM * em.min(size.max(1e-9)) < x - end || x - end < -2.0 * em)
            {
                self.space();
            }
        }
        self.size = size;
        self.larger(size);
        self.push(characters);
        self.end = Some((x + width, y));
    }

    /// Ends the page.
    pub(crate) fn page(&mut self) {
        self.line();
        self.first_page = false;
        self.end = None;
    }

    /// Keeps apart what stands in the largest font.
    fn larger(&mut self, size: f64) {
        self.set += 1;
        if self.first_page && self.title_size * 1.01 < size {
            self.title = Body::new(TITLE_BYTES_MAX);
            self.title_size = size;
        }
        // What comes after the start is the text.
        if self.text_size == 0.0 || 200 < self.set && self.set < 2_000 && size < self.text_size {
            self.text_size = size;
        }
    }

    fn in_title(&self) -> bool {
        self.first_page && self.title_size <= self.size * 1.01
    }

    /// Returns what is likely to be the title: the largest on the first page, or the first line.
    pub(crate) fn title(&self) -> String {
        let large = self.title.as_str();
        if self.text_size * TITLE_LARGER < self.title_size && is_telling(large) {
            return large.to_owned();
        }
        self.body.as_str().lines().find(|it| is_telling(it)).unwrap_or_default().to_owned()
    }

    /// Returns whether no more fits.
    pub(crate) fn is_full(&self) -> bool {
        self.body.is_full()
    }

    /// Adds the characters that one code stands for.
    pub(crate) fn push(&mut self, characters: &str) {
        let mut chars = characters.chars();
        let first = chars.next();
        if let (Some(char), None) = (first, chars.next())
            && ('\u{300}'..='\u{328}').contains(&char)
        {
            self.accent = Some(char);
            return;
        }
        let joined = self.accent.take().zip(first).and_then(|it| accented(it.0, it.1));
        let mut buffer = [0; 4];
        let characters = joined.map_or(characters, |it| it.encode_utf8(&mut buffer));
        self.body.push(characters);
        if self.in_title() {
            self.title.push(characters);
        }
    }

    /// Adds a space between words.
    pub(crate) fn space(&mut self) {
        self.body.space();
        self.title.space();
    }

    /// Ends the line; a word that is hyphenated there goes on.
    pub(crate) fn line(&mut self) {
        if !self.body.join_hyphenated() {
            self.body.line();
        }
        self.title.space();
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.body.finish()
    }
}
