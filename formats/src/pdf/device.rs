//! The text device: a drawing device for the interpreter that keeps characters and their positions.
//!
//! All pages give text in the order of drawing. The front pages also give marks, from which [`super::layout`]
//! makes lines. Ligatures are expanded, and accents composed with their letters.

use std::panic::resume_unwind;

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::{BfString, WritingMode};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};
use hayro_syntax::Pdf;

use super::accent;
use super::composite::CompositeFonts;
use crate::limit::Limit;
use crate::text::Body;

/// Operations between two checks of the time limit.
const POLL_OPERATIONS: usize = 16;
/// Maximum number of marks that are kept of one page: a page of small print has about ten thousand.
const MARKS_MAX: usize = 20_000;
/// Maximum number of fonts that are distinguished.
const FONTS_MAX: usize = 500;
/// Units of a glyph's space that make one font size.
const UNITS_PER_EM: f64 = 1000.0;
/// Least gap between words, in units of the font's size.
pub(super) const WORD_GAP_EM: f64 = 0.17;
/// Least distance off the line that means another line, in units of the font's size.
const LINE_STEP_EM: f64 = 0.4;

/// The reason for which the device stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Time,
    Operations,
    Enough,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Face {
    /// Its name without the prefix of a subset.
    pub(super) name: String,
    pub(super) bold: bool,
    pub(super) italic: bool,
}

/// One character at its position on the page, in points; the top is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) char: char,
    pub(super) start: Point,
    pub(super) end: Point,
    pub(super) size: f64,
    /// The index of its face.
    pub(super) face: u16,
}

impl Mark {
    fn direction(&self) -> Vec2 {
        let along = self.end - self.start;
        along / along.hypot().max(1e-6)
    }

    /// Returns whether the character runs from left to right.
    pub(super) fn is_level(&self) -> bool {
        let along = self.end - self.start;
        along.y.abs() <= 0.1 * along.x
    }
}

/// A device that keeps the characters that are drawn on it.
pub(super) struct TextDevice<'c> {
    pub(super) body: Body,
    pub(super) stop: Option<Stop>,
    /// The marks of this page, when they are wanted.
    pub(super) marks: Option<Vec<Mark>>,
    pub(super) faces: Vec<Face>,
    face_keys: Vec<u128>,
    pub(super) fonts: CompositeFonts<'c>,
    cancelled: &'c dyn Fn() -> bool,
    pub(super) operations: usize,
    /// The last character, which may still get an accent or be one.
    held: Option<Mark>,
    /// The expected position of the word's next character, and the font's size there.
    expected: Option<(Point, f64)>,
}

impl<'c> TextDevice<'c> {
    pub(super) fn new(pdf: &'c Pdf, bytes_max: usize, cancelled: &'c dyn Fn() -> bool) -> Self {
        Self {
            body: Body::new(bytes_max),
            stop: None,
            marks: None,
            faces: Vec::new(),
            face_keys: Vec::new(),
            fonts: CompositeFonts::new(pdf),
            cancelled,
            operations: 0,
            held: None,
            expected: None,
        }
    }

    pub(super) fn is_done(&mut self) -> bool {
        if self.stop.is_none() && (self.cancelled)() {
            self.stop = Some(Stop::Time);
        }
        if self.stop.is_none() && self.body.is_full() {
            self.stop = Some(Stop::Enough);
        }
        self.stop.is_some()
    }

    /// Counts one operation; unwinds out of the interpreter when it must stop.
    pub(super) fn tick(&mut self) {
        self.operations += 1;
        if Limit::Operations.bound() < self.operations {
            self.stop = Some(Stop::Operations);
        }
        if self.stop.is_some() || self.operations.is_multiple_of(POLL_OPERATIONS) && self.is_done()
        {
            // This is not a panic: no hook runs, and the reader of the page catches it.
            resume_unwind(Box::new(()));
        }
    }

    pub(super) fn end_page(&mut self) {
        if let Some(held) = self.held.take() {
            self.append(held);
        }
        self.body.line();
        self.expected = None;
    }

    /// Ends what was drawn last, and takes the text from the offset `at` on off the body.
    pub(super) fn take_from(&mut self, at: usize) -> String {
        self.end_page();
        let text = self.body.split_off(at);
        // There is room again.
        self.stop = self.stop.filter(|it| *it != Stop::Enough);
        text
    }

    fn glyph(&mut self, glyph: &Glyph<'_>, transform: Affine, vertical: bool, face: u16) {
        let origin = transform * Point::ZERO;
        let [a, b, c, d, ..] = transform.as_coeffs();
        let along = Vec2::new(a, b) * UNITS_PER_EM;
        let size = (Vec2::new(c, d) * UNITS_PER_EM).hypot().max(along.hypot()).max(1e-6);
        let advance = match glyph {
            Glyph::Outline(outline) => outline.advance_width(),
            Glyph::Type3(glyph) => glyph.advance_width(),
        };
        let advance = if vertical {
            // Nearly all glyphs of vertical writing are as high as they are wide.
            Vec2::new(-c, -d) * UNITS_PER_EM
        } else {
            along * (f64::from(advance.unwrap_or(500.0)) / UNITS_PER_EM)
        };
        let text = glyph.as_unicode().filter(is_text).or_else(|| match glyph {
            Glyph::Outline(glyph) => self.fonts.text(glyph, vertical, self.cancelled),
            Glyph::Type3(_) => None,
        });
        let mut put = |text: &str| {
            let count = text.chars().count().max(1) as f64;
            for (number, char) in text.chars().enumerate() {
                let start = origin + advance * (number as f64 / count);
                self.hold(Mark { char, start, end: start + advance / count, size, face });
            }
        };
        let mut buffer = [0; 4];
        match text {
            // TeX names the bitmaps of a font a0, a1, …, which are ornaments in other fonts.
            Some(BfString::Char('\u{2701}'..='\u{27be}')) if matches!(glyph, Glyph::Type3(_)) => {
                put(tex_text(glyph.char_code(), &mut buffer));
            }
            Some(BfString::Char(char)) => put(expand_ligature(char, &mut buffer)),
            Some(BfString::String(text)) => {
                text.chars().for_each(|char| put(expand_ligature(char, &mut buffer)));
            }
            None if matches!(glyph, Glyph::Type3(_)) => {
                put(tex_text(glyph.char_code(), &mut buffer));
            }
            None => {}
        }
    }

    /// Takes a character; the one before it is appended when it is complete.
    fn hold(&mut self, mark: Mark) {
        let Some(held) = self.held else {
            self.held = Some(mark);
            return;
        };
        match with_accent(&held, &mark) {
            Some(one) => self.held = Some(one),
            None => {
                self.append(held);
                self.held = Some(mark);
            }
        }
    }

    fn append(&mut self, mark: Mark) {
        if let Some((expected, last_size)) = self.expected {
            let em = mark.size.max(last_size);
            let (step, direction) = (mark.start - expected, mark.direction());
            let (gap, off) = (step.dot(direction), step.cross(direction).abs());
            if LINE_STEP_EM * em < off || gap < -em {
                self.new_line();
            } else if WORD_GAP_EM * em < gap {
                self.body.space();
            }
        }
        match mark.char {
            '\u{ad}' => {}
            it if it.is_whitespace() => self.body.space(),
            it if it.is_control() => {}
            it => self.body.push(it.encode_utf8(&mut [0; 4])),
        }
        self.expected = Some((mark.end, mark.size));
        if let Some(marks) = self.marks.as_mut().filter(|it| it.len() < MARKS_MAX) {
            marks.push(mark);
        }
    }

    /// Ends the line; a word hyphenated there goes on.
    fn new_line(&mut self) {
        if !self.body.join_hyphenated() {
            self.body.line();
        }
    }

    /// Returns the index of a run's face; 0 means unknown.
    fn face(&mut self, run: &GlyphRun<'_, '_>) -> u16 {
        if self.faces.is_empty() {
            self.faces.push(Face::default());
            self.face_keys.push(0);
        }
        let Some(Glyph::Outline(glyph)) = run.glyphs().first().map(|it| &**it) else { return 0 };
        let Some(data) = glyph.font_data() else { return 0 };
        let known = self.face_keys.iter().position(|it| *it == data.cache_key);
        let at = known.unwrap_or_else(|| {
            let name = data.postscript_name.unwrap_or_default();
            let name = match name.split_once('+') {
                Some((tag, rest)) if tag.len() == 6 => rest.to_owned(),
                _ => name,
            };
            let bold = is_bold(&name) || data.weight.is_some_and(|it| 600 <= it);
            if FONTS_MAX <= self.faces.len() {
                return 0;
            }
            self.faces.push(Face { name, bold, italic: data.is_italic });
            self.face_keys.push(data.cache_key);
            self.faces.len() - 1
        });
        u16::try_from(at).unwrap_or_default()
    }
}

/// Returns whether a font's name means bold; TeX's fonts (`CMBX12`, `SFSX1000`) have special names.
fn is_bold(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let words = ["bold", "black", "heavy", "demi", "-medi", "-bd"];
    let tex = ["cmbx", "cmssbx", "cmb1", "sfbx", "sfsx", "sfrb", "ecbx", "ecsx", "lmbx"];
    words.iter().any(|it| lower.contains(it)) || tex.iter().any(|it| lower.starts_with(it))
}

/// Returns whether a font's text for a glyph is text; some fonts write one of these for "unknown".
fn is_text(text: &BfString) -> bool {
    !matches!(text, BfString::Char('\0' | '\u{fffd}'..='\u{ffff}'))
}

/// Expands ligatures, which would hide words from a search.
fn expand_ligature(char: char, buffer: &mut [u8; 4]) -> &str {
    match char {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        it => it.encode_utf8(buffer),
    }
}

/// Returns the text of a code in a bitmap font whose glyphs have no names, such as TeX's in the encodings OT1
/// or T1. Where these differ, the commoner letter is taken.
fn tex_text(code: u32, buffer: &mut [u8; 4]) -> &str {
    match code {
        11 | 27 => "ff",
        12 | 28 => "fi",
        13 | 29 => "fl",
        14 | 30 => "ffi",
        15 | 31 => "ffl",
        16 => "ı",
        18 => "`",
        19 => "´",
        20 => "ˇ",
        21 => "˘",
        22 => "¯",
        23 => "˚",
        24 => "¸",
        25 => "ß",
        34 | 17 => "”",
        39 => "’",
        92 => "“",
        94 => "ˆ",
        96 => "‘",
        123 => "–",
        124 => "—",
        126 => "˜",
        127 | 4 => "¨",
        33..=122 | 0xc0..=0xfe => char::from_u32(code).map_or("", |it| it.encode_utf8(buffer)),
        0xff => "ß",
        _ => "",
    }
}

/// Returns the accented letter for two characters that are drawn at one position.
fn with_accent(first: &Mark, second: &Mark) -> Option<Mark> {
    let (accent, letter) = if accent::is_accent(first.char) {
        (first, second)
    } else if accent::is_accent(second.char) {
        (second, first)
    } else {
        return None;
    };
    let combining = ('\u{300}'..='\u{36f}').contains(&accent.char);
    let middle = accent.start.midpoint(accent.end) - letter.start;
    let width = (letter.end - letter.start).hypot();
    let along = middle.dot(letter.direction());
    let over =
        (0.0..=width).contains(&along) && middle.cross(letter.direction()).abs() < letter.size;
    if !over && !combining {
        return None;
    }
    let char = accent::compose(letter.char, accent.char)?;
    Some(Mark { char, ..*letter })
}

impl<'a> Device<'a> for TextDevice<'_> {
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {
        self.tick();
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.tick();
    }

    fn push_clip_rect(&mut self, _: &Rect) {
        self.tick();
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.tick();
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        let face = if self.marks.is_some() { self.face(run) } else { 0 };
        let vertical = run.writing_mode() == WritingMode::Vertical;
        for glyph in run.glyphs() {
            self.tick();
            self.glyph(glyph, props.transform * glyph.transform(), vertical, face);
        }
    }

    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {
        self.tick();
    }

    fn draw_rect(&mut self, _: &Rect, _: DrawProps<'a>, _: &DrawMode) {
        self.tick();
    }

    fn pop_clip(&mut self) {}

    fn pop_transparency_group(&mut self) {}
}
