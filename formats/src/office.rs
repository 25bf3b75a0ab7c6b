//! Office documents: word processing, spreadsheets and slides of all makes, told apart by their bytes.
//!
//! Source: ECMA-376 (Office Open XML), OASIS OpenDocument 1.3, and Microsoft's \[MS-CFB\], \[MS-DOC\],
//! \[MS-XLS\] and \[MS-PPT\] for documents from before 2007. Each format has one module; this one has the
//! common parts.

mod art;
mod beside;
mod cells;
pub(crate) mod codepage;
mod compound;
mod doc;
mod docx;
pub(crate) mod epub;
mod odf;
mod ole;
mod others;
pub(crate) mod outlook;
pub(crate) mod package;
mod ppt;
mod pptx;
mod properties;
pub(crate) mod rtf;
pub(crate) mod table;
mod xls;
mod xlsx;
pub(crate) mod xml;
mod zipped;

pub use compound::programs::{Inside, inside};
use package::Package;
use properties::Properties;

use std::collections::BTreeSet;

use super::{Draft, Input, html};
use crate::Type;
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::prose::plain;
use crate::prose::references::References;
use crate::text::{Body, HEADINGS_BYTES_MAX, is_telling};

/// The parts of Office Open XML that hold core and extended properties.
const PROPERTIES: [&str; 2] = ["docProps/core.xml", "docProps/app.xml"];
/// Shortest paragraph that can be a description, in bytes.
const DESCRIPTION_BYTES_MIN: usize = 40;
/// First bytes of every compound file.
pub const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
/// Length of the front in which the root element of an XML document is looked for, in bytes.
const ROOT_BYTES_MAX: usize = 4 * 1024;

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let front = input.head(ROOT_BYTES_MAX);
    let has = |mark: &[u8]| memchr::memmem::find(front, mark).is_some();
    if bytes.starts_with(b"PK") {
        return packaged(input);
    }
    if bytes.starts_with(COMPOUND) {
        return ole::summarize(input);
    }
    if xls::is_book(bytes) {
        return xls::summarize(input);
    }
    // Office programs read all of these formats under any of their file names.
    if front.trim_ascii_start().starts_with(rtf::START) {
        return rtf::summarize(input);
    }
    if has(b"<office:document") {
        return odf::in_one_file(input);
    }
    if has(b"<html") || has(b"<HTML") {
        return html::summarize(input);
    }
    if has(b"<?xml") {
        return html::markup(input);
    }
    if !front.is_empty() && !front.contains(&0) {
        return match input.r#type {
            Type::Excel => table::summarize(input),
            _ => plain::prose(input),
        };
    }
    Draft::with_problem(ProblemKind::Broken, "is no office document")
}

fn packaged<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut repaired = None;
    let mut package = match Package::open(input, &mut repaired) {
        Ok(package) => package,
        Err((kind, message)) => return Draft::with_problem(kind, message),
    };
    // Of a package without an end, the part that lists the others may be lost.
    let has_some =
        |folder: &str| package.is_repaired() && !package.in_folder(folder, ".xml").is_empty();
    let (has_sheets, has_slides) = (has_some("xl/worksheets/"), has_some("ppt/slides/"));
    let mut draft = if package.has("word/document.xml") {
        docx::summarize(input, &mut package)
    } else if package.has("xl/workbook.xml") || package.has("xl/workbook.bin") || has_sheets {
        xlsx::summarize(input, &mut package)
    } else if package.has("ppt/presentation.xml") || has_slides {
        pptx::summarize(input, &mut package)
    } else if package.has("content.xml") {
        odf::summarize(input, &mut package)
    } else if let Some(draft) = zipped::summarize(input, &mut package) {
        draft
    } else if package.is_repaired() {
        Draft::default()
    } else {
        Draft::with_problem(ProblemKind::Broken, "has no part that is an office document")
    };
    draft.add_problems(package.problems());
    draft
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Heading,
    /// The title of the whole document.
    Title,
}

/// The contents of a document, as far as they are read.
#[derive(Default)]
struct OfficeDraft {
    body: Body,
    headings: Body,
    title: String,
    description: String,
    sheets: Body,
    /// Whether its headings are the names of columns.
    has_columns: bool,
    slides: usize,
    references: References,
    properties: Properties,
    /// Limits that it goes beyond.
    cuts: BTreeSet<Limit>,
}

impl OfficeDraft {
    fn new(input: &Input<'_>) -> Self {
        Self {
            body: Body::new(input.text_bytes_max()),
            headings: Body::new(HEADINGS_BYTES_MAX),
            // The attribute has its own limit.
            sheets: Body::new(usize::MAX),
            references: References::of(input),
            ..Self::default()
        }
    }

    fn paragraph(&mut self, text: &str, kind: Kind) {
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match kind {
            Kind::Title if self.title.is_empty() => text.clone_into(&mut self.title),
            Kind::Title => {}
            Kind::Heading => {
                self.headings.push_squeezed_line(text);
            }
            Kind::Text => {
                let long = DESCRIPTION_BYTES_MIN <= text.len();
                if long && self.description.is_empty() && is_telling(text) {
                    text.clone_into(&mut self.description);
                }
            }
        }
        self.body.push_lines(text);
    }

    /// Adds the paragraph that was collected in `piece`, which is empty then.
    fn take_paragraph(&mut self, piece: &mut Body, kind: Kind) {
        if piece.is_cut() {
            self.cuts.insert(Limit::Paragraph);
        }
        self.paragraph(&piece.take(), kind);
    }

    /// Begins the next slide.
    fn slide(&mut self) {
        self.slides += 1;
        self.body.place(&format!("slide {}", self.slides));
    }

    fn sheet(&mut self, name: &str) {
        self.sheets.push_squeezed_line(name);
    }

    /// Adds the hyperlinks of the part at `path`.
    fn hyperlinks(&mut self, package: &mut Package<'_>, path: &str) {
        for it in package.relationships(path) {
            if it.is_external && it.kind == "hyperlink" {
                self.references.add(&it.target);
            }
        }
    }

    fn draft<'a>(self) -> Draft<'a> {
        let mut draft = Draft::default();
        self.properties.write_to(&mut draft);
        if draft.title.trim().is_empty() {
            let first = self.headings.as_str().lines().next().filter(|_| !self.has_columns);
            draft.title = match self.title {
                title if title.is_empty() => first.unwrap_or_default().to_owned(),
                title => title,
            };
        }
        if draft.description.trim().is_empty() {
            draft.description = self.description;
        }
        if 0 < self.slides {
            draft.other("Slides", self.slides.to_string());
        }
        draft.other("Sheets", self.sheets.as_str().trim());
        draft.other("Headings", self.headings.as_str().trim());
        draft.references = self.references.finish();
        self.cuts.into_iter().for_each(|it| draft.cut(it.cut()));
        draft.set_body(self.body);
        draft
    }
}

#[cfg(test)]
pub(crate) mod tests;
