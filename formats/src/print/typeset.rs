//! Typeset text: words, lines and the title, from the positions of characters on a page.

use super::tex_fonts::accented;
use crate::text::{Body, is_telling};

/// Least gap between words, in units of the font's size. Spaces shrink to 0.22, and the thin space of
/// formulas is 0.17.
const WORD_GAP_EM: f64 = 0.19;
/// Least vertical step to another line, in units of the font's size. Steps to indices and to parts of
/// fractions are shorter.
const LINE_STEP_EM: f64 = 0.9;
/// Longest title, in bytes.
const TITLE_BYTES_MAX: usize = 300;
/// Least ratio of the title's font size to that of the text.
const TITLE_LARGER: f64 = 1.15;

/// A body with accents and hyphenated words put together.
#[derive(Debug, Default)]
pub(crate) struct Typeset {
    body: Body,
    /// An accent whose letter has not come yet.
    accent: Option<char>,
    /// The text in the largest font of the first page, whose size is `title_size`.
    title: Body,
    title_size: f64,
    /// The size of the text: the smallest from the 200th to the 2,000th character.
    text_size: f64,
    size: f64,
    set: usize,
    first_page: bool,
    /// End of the last character.
    end: Option<(f64, f64)>,
}

impl Typeset {
    /// Returns an empty text that takes at most `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (body, title) = (Body::new(bytes_max), Body::new(TITLE_BYTES_MAX));
        Self { body, title, first_page: true, ..Self::default() }
    }

    /// Adds a character at `x`, `y` (downwards) in a font of this `size`, about `width` wide.
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
        self.update_sizes(size);
        self.push(characters);
        self.end = Some((x + width, y));
    }

    /// Begins the page of this number, from 1.
    pub(crate) fn page(&mut self, number: usize) {
        if 1 < number {
            self.line();
            self.first_page = false;
            self.end = None;
        }
        self.body.place(&format!("page {number}"));
    }

    /// Keeps the text in the largest font for the title.
    fn update_sizes(&mut self, size: f64) {
        self.set += 1;
        if self.first_page && self.title_size * 1.01 < size {
            self.title.take();
            self.title_size = size;
        }
        // After the start, the smallest size is taken for that of the text.
        if self.text_size == 0.0 || 200 < self.set && self.set < 2_000 && size < self.text_size {
            self.text_size = size;
        }
    }

    fn in_title(&self) -> bool {
        self.first_page && self.title_size <= self.size * 1.01
    }

    /// Returns the likely title: the largest text on the first page, or the first line.
    pub(crate) fn title(&self) -> String {
        let large = self.title.as_str();
        if self.text_size * TITLE_LARGER < self.title_size && is_telling(large) {
            return large.to_owned();
        }
        self.body.as_str().lines().find(|it| is_telling(it)).unwrap_or_default().to_owned()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.body.is_full()
    }

    /// Adds the characters of one code.
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

    pub(crate) fn space(&mut self) {
        self.body.space();
        self.title.space();
    }

    /// Ends the line; a word hyphenated there goes on.
    pub(crate) fn line(&mut self) {
        if !self.body.join_hyphenated() {
            self.body.line();
        }
        self.title.space();
    }

    pub(crate) fn finish(self) -> Body {
        self.body
    }
}
