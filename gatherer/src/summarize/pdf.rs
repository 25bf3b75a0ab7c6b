//! PDF: the document's information, and its text in the order in which it is drawn.
//!
//! Source: ISO 32000-1 §14.3.3 (information dictionary). The pages are interpreted by
//! `hayro_interpret` into a device that keeps characters and their places only.
//!
//! A PDF can be made to open to gigabytes or to draw for hours, and the interpreter has no limits of
//! its own. So the compressed streams are measured before it sees them ([`measure`]), and the device
//! stops a page, by unwinding, when the text is enough or the time is up. What was read until then
//! stays. That is the one place besides `essence` that catches a panic: a page that trips the
//! interpreter costs that page.
//!
//! Sans-I/O.

mod measure;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use bytes::Bytes;
use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect, Vec2};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps,
    InterpreterCache, InterpreterSettings, RenderContent, SoftMask, interpret_page,
};
use hayro_syntax::Filter;
use hayro_syntax::object::dict::keys::CONTENTS;
use hayro_syntax::object::{Array, DateTime, Stream};
use hayro_syntax::page::Page;
use hayro_syntax::{LoadPdfError, Pdf};

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::{Body, decode, is_telling};

/// Most pages that are read for text.
const PAGES_MAX: usize = 2_000;
/// Most drawing operations of one document.
const OPERATIONS_MAX: u64 = 5_000_000;
/// Operations between two looks at the clock.
const POLL_OPERATIONS: u64 = 16;
/// What the contents of all pages together may open to, in bytes: the interpreter keeps them.
const CONTENTS_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most parts of one page's contents.
const PARTS_MAX: usize = 10_000;
/// By how much contents in other codes than deflate may swell.
const SWELL_MAX: u64 = 1_400;
/// Glyphs are drawn in a space of this many units to the font's size.
const UNITS_PER_EM: f64 = 1000.0;
/// A gap wider than this share of the font's size parts words.
const WORD_GAP_EM: f64 = 0.17;
/// A step off the line of more than this share of the font's size starts another line.
const LINE_STEP_EM: f64 = 0.4;

/// Summarizes a document.
pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    match measure::measure(&input.object.bytes, measure::Limits::default(), input.cancelled) {
        Ok(()) => read(input, &mut draft),
        Err(measure::Refusal::Time) => {
            draft.problem(ProblemKind::Time, "ran out of time measuring its streams");
        }
        Err(measure::Refusal::Swells(message)) => draft.problem(ProblemKind::Limit, message),
    }
    draft
}

fn read(input: &Input<'_>, draft: &mut Draft<'_>) {
    // The interpreter shares the bytes: no copy of a large document is made.
    let data = Arc::new(Shared(input.object.bytes.clone()));
    let opened = catch_unwind(|| Pdf::new(data));
    let pdf = match opened {
        Ok(Ok(pdf)) => pdf,
        Ok(Err(LoadPdfError::Decryption(_))) => {
            draft.problem(ProblemKind::Locked, "is locked by a password; only its name is known");
            return;
        }
        Ok(Err(LoadPdfError::Invalid)) => {
            let why = if input.object.truncated { "only its front was read" } else { "is damaged" };
            draft.problem(ProblemKind::Broken, format!("cannot be read as PDF: it {why}"));
            return;
        }
        Err(_) => {
            draft.problem(ProblemKind::Broken, "cannot be read as PDF: its structure is damaged");
            return;
        }
    };
    information(&pdf, draft);
    let mut device = TextDevice::new(input.text_bytes_max(), input.cancelled);
    pages(&pdf, &mut device, draft);
    let body = device.body.finish();
    if draft.title.is_empty() {
        // Better than the file's name, and what readers see.
        draft.title = body.lines().find(|line| is_telling(line)).unwrap_or_default().to_owned();
    }
    draft.body = Cow::Owned(body);
}

/// Bytes as the interpreter wants to hold them.
struct Shared(Bytes);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn information(pdf: &Pdf, draft: &mut Draft<'_>) {
    let about = pdf.metadata();
    let text = |value: &Option<Box<[u8]>>| value.as_deref().map(text_string).unwrap_or_default();
    let title = text(&about.title);
    // What word processors put there unasked.
    let lower = title.to_lowercase();
    if !lower.starts_with("untitled") && !lower.starts_with("microsoft word") && is_telling(&title)
    {
        draft.title = title;
    }
    draft.authors.push(text(&about.author));
    draft.description = text(&about.subject);
    draft.keywords = text(&about.keywords);
    draft.other("Subject", draft.description.clone());
    draft.other("Declared-Keywords", draft.keywords.clone());
    draft.other("Creator", text(&about.creator));
    draft.other("Producer", text(&about.producer));
    draft.other("Creation-Date", about.creation_date.as_ref().map(date).unwrap_or_default());
}

/// Decodes a text string: UTF-16 with a byte order mark, UTF-8 with one, or (nearly) Latin-1.
fn text_string(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0xef, 0xbb, 0xbf, ..] => decode(bytes, None),
        _ => decode(bytes, Some("windows-1252")),
    };
    text.chars().filter(|it| !it.is_control()).collect()
}

fn date(it: &DateTime) -> String {
    format!("{:04}-{:02}-{:02}", it.year, it.month, it.day)
}

fn pages(pdf: &Pdf, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) {
    let pages = pdf.pages();
    draft.other("Pages", pages.len().to_string());
    let cache = InterpreterCache::new();
    let settings =
        InterpreterSettings { render_content: RenderContent::PAGE, ..Default::default() };
    let mut failed = Vec::new();
    let mut contents = 0;
    for (number, page) in pages.iter().enumerate().take(PAGES_MAX) {
        if device.stop.is_some() || device.is_done() {
            break;
        }
        contents += contents_bytes(page, CONTENTS_BYTES_MAX);
        if CONTENTS_BYTES_MAX <= contents {
            let max = CONTENTS_BYTES_MAX;
            let message = format!("opens to more than {max} bytes by page {}; cut", number + 1);
            draft.problem(ProblemKind::Limit, message);
            break;
        }
        let (width, height) = page.render_dimensions();
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut context =
                Context::new(Affine::IDENTITY, bounds, &cache, pdf.xref(), settings.clone());
            interpret_page(page, &mut context, device);
        }));
        if outcome.is_err() && device.stop.is_none() {
            failed.push((number + 1).to_string());
        }
        device.end_page();
    }
    if !failed.is_empty() {
        failed.truncate(20);
        let message = format!("page {} cannot be read to the end", failed.join(", "));
        draft.problem(ProblemKind::Broken, message);
    }
    let whole = device.is_done() || pages.len() <= PAGES_MAX;
    match device.stop {
        Some(Stop::Time) => draft.problem(ProblemKind::Time, "ran out of time on its pages"),
        Some(Stop::Operations) => {
            let message = format!("draws more than {OPERATIONS_MAX} times; the rest was left out");
            draft.problem(ProblemKind::Limit, message);
        }
        Some(Stop::Enough) => {}
        None if !whole => {
            let message = format!("has more than {PAGES_MAX} pages; the rest was left out");
            draft.problem(ProblemKind::Limit, message);
        }
        None => {}
    }
}

/// Returns to how many bytes the contents of a page open, counting no further than `allowed`: one
/// stream may be named by many pages, and many times by one.
fn contents_bytes(page: &Page<'_>, allowed: u64) -> u64 {
    let dictionary = page.raw();
    if let Some(stream) = dictionary.get::<Stream<'_>>(CONTENTS) {
        return stream_bytes(&stream, allowed);
    }
    let Some(parts) = dictionary.get::<Array<'_>>(CONTENTS) else { return 0 };
    let mut total = 0;
    for (count, part) in parts.iter::<Stream<'_>>().enumerate() {
        total += stream_bytes(&part, allowed);
        if PARTS_MAX < count || allowed <= total {
            return allowed;
        }
    }
    total
}

fn stream_bytes(stream: &Stream<'_>, allowed: u64) -> u64 {
    let data = stream.raw_data();
    match stream.filters().as_slice() {
        [] => data.len() as u64,
        [Filter::FlateDecode] => measure::inflated_bytes(&data, allowed),
        _ => SWELL_MAX.saturating_mul(data.len() as u64),
    }
}

/// Why the device wants no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Time,
    Operations,
    Enough,
}

/// A device that keeps the characters drawn on it.
struct TextDevice<'c> {
    body: Body,
    cancelled: &'c dyn Fn() -> bool,
    operations: u64,
    stop: Option<Stop>,
    /// Where the next character of the word is expected, and the font's size there.
    expected: Option<(Point, f64)>,
}

impl<'c> TextDevice<'c> {
    fn new(bytes_max: usize, cancelled: &'c dyn Fn() -> bool) -> Self {
        let body = Body::new(bytes_max);
        Self { body, cancelled, operations: 0, stop: None, expected: None }
    }

    fn is_done(&mut self) -> bool {
        if self.stop.is_none() && (self.cancelled)() {
            self.stop = Some(Stop::Time);
        }
        if self.stop.is_none() && self.body.is_full() {
            self.stop = Some(Stop::Enough);
        }
        self.stop.is_some()
    }

    /// Counts one operation; unwinds out of the interpreter when there are to be no more.
    fn tick(&mut self) {
        self.operations += 1;
        if OPERATIONS_MAX < self.operations {
            self.stop = Some(Stop::Operations);
        }
        if self.stop.is_some() || self.operations.is_multiple_of(POLL_OPERATIONS) && self.is_done()
        {
            // Not a panic: no hook runs, and `pages` catches it.
            resume_unwind(Box::new(()));
        }
    }

    fn end_page(&mut self) {
        self.body.line();
        self.expected = None;
    }

    fn glyph(&mut self, glyph: &Glyph<'_>, transform: Affine) {
        let origin = transform * Point::ZERO;
        let [a, b, c, d, ..] = transform.as_coeffs();
        let along = Vec2::new(a, b) * UNITS_PER_EM;
        let size = (Vec2::new(c, d) * UNITS_PER_EM).hypot().max(along.hypot()).max(1e-6);
        if let Some((expected, last_size)) = self.expected {
            let em = size.max(last_size);
            let step = origin - expected;
            let direction = along / along.hypot().max(1e-6);
            let (gap, off) = (step.dot(direction), step.cross(direction).abs());
            if LINE_STEP_EM * em < off || gap < -em {
                self.new_line();
            } else if WORD_GAP_EM * em < gap {
                self.body.space();
            }
        }
        match glyph.as_unicode() {
            Some(BfString::Char(char)) => self.push(char),
            Some(BfString::String(text)) => text.chars().for_each(|char| self.push(char)),
            None => {}
        }
        let advance = match glyph {
            Glyph::Outline(outline) => outline.advance_width(),
            Glyph::Type3(glyph) => glyph.advance_width(),
        };
        let advance = f64::from(advance.unwrap_or(500.0)) / UNITS_PER_EM;
        self.expected = Some((origin + along * advance, size));
    }

    fn push(&mut self, char: char) {
        let mut buffer = [0; 4];
        match char {
            // Ligatures would hide the words from a search.
            '\u{fb00}' => self.body.push("ff"),
            '\u{fb01}' => self.body.push("fi"),
            '\u{fb02}' => self.body.push("fl"),
            '\u{fb03}' => self.body.push("ffi"),
            '\u{fb04}' => self.body.push("ffl"),
            '\u{ad}' => {}
            it if it.is_whitespace() => self.body.space(),
            it if it.is_control() => {}
            it => self.body.push(it.encode_utf8(&mut buffer)),
        }
    }

    /// Ends the line; a word that is hyphenated there goes on.
    fn new_line(&mut self) {
        if !self.body.join_hyphenated() {
            self.body.line();
        }
    }
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
        for glyph in run.glyphs() {
            self.tick();
            self.glyph(glyph, props.transform * glyph.transform());
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

#[cfg(test)]
mod tests;
