//! PDF: the document's information, and its text in the order in which it is drawn.
//!
//! Source: ISO 32000-1 §14.3.3 (information dictionary). The pages are interpreted by
//! `hayro_interpret` into a device that keeps characters and their places only.
//!
//! A PDF can be made to open to gigabytes or to draw for hours, and the interpreter has no limits of
//! its own. So the compressed streams are measured before it sees them (`measure`), and the device
//! stops a page, by unwinding, when the text is enough or the time is up. What was read until then
//! stays. That is the one place besides `essence` that catches a panic: a page that trips the
//! interpreter costs that page.
//!
//! Sans-I/O.

mod accent;
mod device;
mod extract;
mod layout;
mod measure;
mod template;
mod witness;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, interpret_page,
};
use hayro_syntax::object::dict::keys::CONTENTS;
use hayro_syntax::object::{Array, Stream};
use hayro_syntax::page::Page;
use hayro_syntax::{Filter, LoadPdfError, Pdf};

use self::device::{OPERATIONS_MAX, Stop, TextDevice};
use self::extract::Document;
use self::layout::Layout;
pub use self::template::Templates;
use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::is_telling;

/// Most pages that are read for text.
const PAGES_MAX: usize = 2_000;
/// Pages whose layout is looked at: a cover, what is behind it, and the first page.
const FRONT_PAGES_MAX: usize = 4;
/// What the contents of all pages together may open to, in bytes: the interpreter keeps them.
const CONTENTS_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Most parts of one page's contents.
const PARTS_MAX: usize = 10_000;
/// By how much contents in other codes than deflate may swell.
const SWELL_MAX: u64 = 1_400;
/// Summarizes a document.
pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
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
    let mut device = TextDevice::new(input.text_bytes_max(), input.cancelled);
    let witness = witness::read(&pdf, draft);
    let (front, layout) = pages(&pdf, &mut device, draft);
    let body = device.body.finish();
    let document = Document {
        layout: &layout,
        front: body.get(..front).unwrap_or(&body),
        body: &body,
        name: &input.object.name,
        witness,
    };
    document.describe(input.settings.templates.all(), draft);
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

/// Reads all pages; returns how much of the text is the front pages', and their layout.
fn pages(pdf: &Pdf, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) -> (usize, Layout) {
    let pages = pdf.pages();
    let (mut front, mut layout) = (0, Layout::default());
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
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        device.marks = (number < FRONT_PAGES_MAX).then(Vec::new);
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::new(transform, bounds, &cache, pdf.xref(), settings.clone());
            interpret_page(page, &mut context, device);
        }));
        if outcome.is_err() && device.stop.is_none() {
            failed.push((number + 1).to_string());
        }
        device.end_page();
        if let Some(marks) = device.marks.take() {
            let size = (f64::from(width), f64::from(height));
            layout.add(number + 1, size, &marks, &device.faces);
            front = device.body.as_str().len();
        }
    }
    layout.finish();
    tell(failed, pages.len(), device, draft);
    (front, layout)
}

/// Says what could not be read of so many pages.
fn tell(mut failed: Vec<String>, pages: usize, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) {
    if !failed.is_empty() {
        failed.truncate(20);
        let message = format!("page {} cannot be read to the end", failed.join(", "));
        draft.problem(ProblemKind::Broken, message);
    }
    let whole = device.is_done() || pages <= PAGES_MAX;
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

#[cfg(test)]
mod tests;
