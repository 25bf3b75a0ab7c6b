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
mod annotation;
mod composite;
mod declared;
mod device;
mod extract;
mod layout;
mod measure;
mod template;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use hayro_interpret::kurbo::{Affine, Rect};
use hayro_interpret::{
    Context, InterpreterCache, InterpreterSettings, RenderContent, interpret_page,
};
use hayro_syntax::object::dict::keys::{BASE_STATE, CONTENTS, D, OCPROPERTIES, OFF};
use hayro_syntax::object::{Array, Dict, Name, Stream};
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
/// Share of the drawing operations that hidden layers may take: one in this many.
const HIDDEN_SHARE: usize = 10;
/// A document without pages.
const BARE: &[u8] = b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
    2 0 obj\n<</Type/Pages/Count 0/Kids[]>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n";
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
    let bare = Pdf::new(BARE.to_vec());
    let mut reader = Reader::new(&pdf, bare.as_ref().unwrap_or(&pdf));
    let front = pages(&mut reader, &mut device, draft);
    let extractor = Extractor {
        layout: &front.layout,
        front: &front.text,
        body: device.body.as_str(),
        name: &input.object.name,
        declared,
    };
    extractor.describe(input.settings.templates.all(), draft);
    draft.date(&extractor.declared.created, DateSource::Pdf);
    if draft.title.is_empty() {
        // The first line is a better title than the file's name.
        draft.title = front.line;
    }
    if device.body.as_str().is_empty() {
        // The entries are mostly headings of the pages; of scanned pages they are the only text.
        declared::outline(&pdf, &mut device.body, input.cancelled);
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

/// Reads all pages.
fn pages<'p>(reader: &mut Reader<'p>, device: &mut TextDevice<'_>, draft: &mut Draft<'_>) -> Front {
    let pages = reader.pdf.pages();
    draft.other("Pages", pages.len().to_string());
    let (mut front, mut failed) = (Front::default(), Vec::new());
    for (number, page) in pages.iter().enumerate().take(Limit::Pages.bound()) {
        if device.stop.is_some() || device.is_done() {
            break;
        }
        reader.contents += contents_bytes(page, reader.contents_max + 1);
        if reader.has_room() && !reader.page(number, page, device, &mut front) {
            failed.push((number + 1).to_string());
        }
        if !reader.has_room() {
            let (max, number) = (reader.contents_max, number + 1);
            let message = format!("opens to more than {max} bytes by page {number}; cut");
            draft.problem(Limit::PdfContents.kind(), message);
            break;
        }
    }
    front.layout.finish();
    report(&failed, pages.len(), device, draft);
    if reader.is_hidden_cut {
        draft.cut(Limit::Operations.cut_at(Limit::Operations.bound() / HIDDEN_SHARE));
    }
    front
}

/// What the contents of pages say about their document; text of hidden layers and of annotations does not count.
#[derive(Default)]
struct Front {
    /// The text of the front pages.
    text: String,
    layout: Layout,
    /// The first line of all pages that is telling.
    line: String,
}

/// What all pages are read with.
struct Reader<'p> {
    pdf: &'p Pdf,
    /// A document without layers: by its catalog, nothing is hidden.
    bare: &'p Pdf,
    has_hidden_layers: bool,
    /// Drawing operations that are left for hidden layers, and whether there were more.
    hidden_operations_left: usize,
    is_hidden_cut: bool,
    cache: InterpreterCache<'p>,
    settings: InterpreterSettings,
    /// The bytes to which the contents read so far have inflated.
    contents: u64,
    contents_max: u64,
}

impl<'p> Reader<'p> {
    fn new(pdf: &'p Pdf, bare: &'p Pdf) -> Self {
        let settings = InterpreterSettings {
            cmap_resolver: Arc::new(composite::resolve),
            render_content: RenderContent::PAGE,
            ..Default::default()
        };
        Self {
            pdf,
            bare,
            has_hidden_layers: has_hidden_layers(pdf),
            hidden_operations_left: Limit::Operations.bound() / HIDDEN_SHARE,
            is_hidden_cut: false,
            cache: InterpreterCache::new(),
            settings,
            contents: 0,
            contents_max: Limit::PdfContents.bound() as u64,
        }
    }

    fn has_room(&self) -> bool {
        self.contents <= self.contents_max
    }

    /// Reads a page: its contents, the lines of hidden layers, and its annotations. Returns whether all were
    /// read, or the device has stopped.
    fn page(
        &mut self,
        number: usize,
        page: &Page<'p>,
        device: &mut TextDevice<'_>,
        front: &mut Front,
    ) -> bool {
        let from = device.body.as_str().len();
        device.body.place(&format!("page {}", number + 1));
        device.marks = (number < FRONT_PAGES_MAX).then(Vec::new);
        let pdf = self.pdf;
        let mut whole = self.draw(page, pdf, device);
        device.end_page();
        let text = device.body.as_str().get(from..).unwrap_or_default();
        if front.line.is_empty() {
            front.line = text.lines().find(|it| is_telling(it)).unwrap_or_default().to_owned();
        }
        if let Some(marks) = device.marks.take() {
            front.text.push_str(text);
            let (width, height) = page.render_dimensions();
            let size = (f64::from(width), f64::from(height));
            front.layout.add(number + 1, size, &marks, &device.faces);
        }
        if self.has_hidden_layers && !self.is_hidden_cut && device.stop.is_none() {
            self.hidden_lines(page, from, device);
        }
        if device.stop.is_none() {
            whole &= self.annotations(page, device);
        }
        whole || device.stop.is_some()
    }

    /// Draws a page with those layers that are visible in `layers`. Returns whether it was drawn to the end.
    fn draw(&self, page: &Page<'p>, layers: &'p Pdf, device: &mut TextDevice<'_>) -> bool {
        let (width, height) = page.render_dimensions();
        let transform = Affine::new(page.initial_transform(true).as_coeffs());
        let bounds = Rect::new(0.0, 0.0, f64::from(width), f64::from(height));
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (xref, settings) = (layers.xref(), self.settings.clone());
            let mut context = Context::new(transform, bounds, &self.cache, xref, settings);
            interpret_page(page, &mut context, device);
        }));
        outcome.is_ok()
    }

    /// Adds the lines that a page has only with all its layers, which readers switch on; its text begins at
    /// `from`. Its operations count apart, so that no later page is lost for them.
    fn hidden_lines(&mut self, page: &Page<'p>, from: usize, device: &mut TextDevice<'_>) {
        let bound = Limit::Operations.bound();
        let (at, before) = (device.body.as_str().len(), device.operations);
        let start = bound.saturating_sub(self.hidden_operations_left);
        device.operations = start;
        self.draw(page, self.bare, device);
        let all = device.take_from(at);
        self.hidden_operations_left -= (device.operations - start).min(self.hidden_operations_left);
        device.operations = before;
        let is_cut = device.stop == Some(Stop::Operations);
        device.stop = device.stop.filter(|_| !is_cut);
        self.is_hidden_cut |= is_cut;
        let visible = device.body.as_str().get(from..).unwrap_or_default();
        let visible: HashSet<&str> = visible.lines().collect();
        // The last line may be part of a visible one.
        let count = all.lines().count() - usize::from(is_cut && !all.is_empty());
        let hidden = all.lines().take(count).filter(|it| !visible.contains(it));
        let hidden: Vec<&str> = hidden.collect();
        hidden.iter().for_each(|it| device.body.push_line(it));
    }
}

/// Returns whether a document has layers that are hidden at first.
fn has_hidden_layers(pdf: &Pdf) -> bool {
    let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
    let properties = catalog.and_then(|it| it.get::<Dict<'_>>(OCPROPERTIES));
    let Some(first) = properties.and_then(|it| it.get::<Dict<'_>>(D)) else { return false };
    first.get::<Name<'_>>(BASE_STATE).is_some_and(|it| it.as_ref() == OFF)
        || first.get::<Array<'_>>(OFF).is_some_and(|it| it.raw_iter().next().is_some())
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
