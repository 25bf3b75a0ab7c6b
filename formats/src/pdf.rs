//! The PDF summarizer: the document's metadata, and its text in the order of drawing.
//!
//! Source: ISO 32000-1 §14.3.3 (information dictionary). `hayro_interpret` interprets the pages, and draws on
//! a device that keeps only characters and their positions.
//!
//! A PDF can be made to inflate to gigabytes or to draw for hours, and the interpreter has no limits of its
//! own. So `measure` measures the compressed streams first. The device stops a page, by unwinding, when the
//! text is long enough or the time is up; the text so far is kept. Besides `essence`, only this module
//! catches panics: a page that makes the interpreter panic costs that page alone.

mod accent;
mod composite;
mod declared;
mod device;
mod extract;
mod layout;
mod measure;
mod template;

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

use self::device::{Stop, TextDevice};
use self::extract::Extractor;
use self::layout::Layout;
pub use self::template::Templates;
use super::{DateSource, Draft, Input};
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::text::is_telling;

/// Length of the front in which a document's mark may stand, in bytes (PDF reference 1.7, appendix H).
const MARK_BYTES_MAX: usize = 1024;
/// Maximum number of pages whose layout is read: a cover, its back, and the first pages.
const FRONT_PAGES_MAX: usize = 4;
/// Maximum number of streams of one page's contents.
const PARTS_MAX: usize = 10_000;
/// Highest expansion ratio of contents in other codes than deflate.
const EXPANSION_MAX: u64 = 1_400;
/// Longest document that is read whole, in bytes; it is in memory beside its front.
const WHOLE_BYTES_MAX: u64 = 96 * 1024 * 1024;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    // The table of a document's objects stands at its end.
    let (bytes, fault) = input.whole_up_to(WHOLE_BYTES_MAX);
    draft.add_problems(fault);
    match measure::measure(&bytes, measure::Limits::default(), input.cancelled) {
        Ok(()) => read(bytes, input, &mut draft),
        Err(measure::Refusal::Time) => {
            draft.problem(ProblemKind::Time, "ran out of time measuring its streams");
        }
        Err(measure::Refusal::Size(bytes_max, message)) => {
            draft.problem(Limit::PdfStreams.kind_at(bytes_max), message);
        }
    }
    draft
}

fn read(bytes: Bytes, input: &Input<'_>, draft: &mut Draft<'_>) {
    // The interpreter shares the bytes, so that a large document is not copied.
    let data = Arc::new(from_mark(&bytes));
    let opened = catch_unwind(|| Pdf::new(data));
    let pdf = match opened {
        Ok(Ok(pdf)) => pdf,
        Ok(Err(LoadPdfError::Decryption(_))) => {
            draft.problem(ProblemKind::Locked, "is locked by a password; only its name is known");
            return;
        }
        // A front without the table of its objects is not damaged, and has its problem already.
        Ok(Err(LoadPdfError::Invalid)) if !draft.problems.is_empty() => return,
        Ok(Err(LoadPdfError::Invalid)) => {
            draft.problem(ProblemKind::Broken, "cannot be read as PDF: it is damaged");
            return;
        }
        Err(_) => {
            draft.problem(ProblemKind::Broken, "cannot be read as PDF: its structure is damaged");
            return;
        }
    };
    let mut device = TextDevice::new(&pdf, input.text_bytes_max(), input.cancelled);
    let declared = declared::read(&pdf, draft);
    let (front, layout) = pages(&pdf, &mut device, draft);
    let body = device.body.as_str();
    let extractor = Extractor {
        layout: &layout,
        front: body.get(..front).unwrap_or(body),
        body,
        name: &input.object.name,
        declared,
    };
    extractor.describe(input.settings.templates.all(), draft);
    draft.date(&extractor.declared.created, DateSource::Pdf);
    if draft.title.is_empty() {
        // The first line is a better title than the file's name.
        draft.title = body.lines().find(|line| is_telling(line)).unwrap_or_default().to_owned();
    }
    draft.set_body(device.body);
    if let Some(fonts) = device.fonts.read_of_more {
        draft.cut(Limit::Fonts.cut_at(fonts));
    }
}

/// Returns the document from its mark on. In most documents with bytes before it, offsets count from the
/// mark; in the others the interpreter does not find the objects there, and searches for them.
fn from_mark(bytes: &Bytes) -> Bytes {
    let front = bytes.get(..bytes.len().min(MARK_BYTES_MAX)).unwrap_or_default();
    bytes.slice(memchr::memmem::find(front, b"%PDF-").unwrap_or(0)..)
}

/// Reads all pages. Returns the length of the front pages' text, and their layout.
fn pages(pdf: &Pdf, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) -> (usize, Layout) {
    let pages = pdf.pages();
    let (mut front, mut layout) = (0, Layout::default());
    draft.other("Pages", pages.len().to_string());
    let cache = InterpreterCache::new();
    let settings = InterpreterSettings {
        cmap_resolver: Arc::new(composite::resolve),
        render_content: RenderContent::PAGE,
        ..Default::default()
    };
    let mut failed = Vec::new();
    let (mut contents, contents_max) = (0, Limit::PdfContents.bound() as u64);
    for (number, page) in pages.iter().enumerate().take(Limit::Pages.bound()) {
        if device.stop.is_some() || device.is_done() {
            break;
        }
        contents += contents_bytes(page, contents_max + 1);
        if contents_max < contents {
            let message =
                format!("opens to more than {contents_max} bytes by page {}; cut", number + 1);
            draft.problem(Limit::PdfContents.kind(), message);
            break;
        }
        let (width, height) = page.render_dimensions();
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        device.body.place(&format!("page {}", number + 1));
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
    report(&failed, pages.len(), device, draft);
    (front, layout)
}

/// Adds the problems with the pages; `pages` is their number.
fn report(failed: &[String], pages: usize, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) {
    if !failed.is_empty() {
        let first = failed.get(..20).unwrap_or(failed);
        let message = format!("page {} cannot be read to the end", first.join(", "));
        draft.problem(ProblemKind::Broken, message);
    }
    let whole = device.is_done() || pages <= Limit::Pages.bound();
    match device.stop {
        Some(Stop::Time) => draft.problem(ProblemKind::Time, "ran out of time on its pages"),
        Some(Stop::Operations) => draft.cut(Limit::Operations.cut()),
        Some(Stop::Enough) => {}
        None if !whole => draft.cut(Limit::Pages.cut()),
        None => {}
    }
}

/// Returns the bytes to which the contents of a page inflate, counted up to `allowed`. Many pages may refer
/// to one stream, and one page to it many times.
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
        _ => EXPANSION_MAX.saturating_mul(data.len() as u64),
    }
}

#[cfg(test)]
pub(crate) mod tests;
