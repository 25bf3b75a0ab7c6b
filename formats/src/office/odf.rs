//! OpenDocument: text, spreadsheets, slides and drawings, in a zip file or in one XML file.
//!
//! Source: OASIS OpenDocument 1.3 part 3 (schema) §4 (metadata), §5 (text), §9 (tables), §10
//! (drawings), §16 (presentations); part 2 §3 (packages).
//!
//! # Differences from the specification
//!
//! * Repeated rows and cells are read once.
//! * Deletions recorded by change tracking are left out, and so are annotations.

use super::cells::Cells;
use super::package::Package;
use super::xml::{self, Element, Piece};
use super::{Kind, OfficeDraft};
use crate::limit::Limit;
use crate::object::ProblemKind;
use crate::text::Body;
use crate::{Draft, Input};

/// Elements whose text does not belong to the document.
const SKIPPED: [&str; 7] = [
    "tracked-changes",
    "annotation",
    "binary-data",
    "settings",
    "scripts",
    "index-entry-template",
    "styles",
];

/// The reader of the content.
#[derive(Default)]
struct ContentReader {
    paragraph: Body,
    kind: Kind,
    cells: Option<Cells>,
    /// The open row and cell, and the next ones, from 0 on.
    row: Repeated,
    column: Repeated,
    in_cell: bool,
    /// Whether the open cell's value is a number, a date or a truth value.
    is_number: bool,
    /// The open cell's value, as long as no paragraph shows it.
    value: String,
    in_title: bool,
    in_page: bool,
    in_paragraphs: usize,
    skipping: usize,
    has_sheets: bool,
    has_slides: bool,
}

/// The number of a row or cell. Many that are the same stand as one.
#[derive(Default)]
struct Repeated {
    number: usize,
    next: usize,
}

impl Repeated {
    fn step(&mut self, repeated: &str) {
        self.number = self.next;
        self.next = self.number.saturating_add(repeated.parse().unwrap_or(1));
    }
}

impl ContentReader {
    fn new() -> Self {
        Self { paragraph: Body::new(Limit::Paragraph.bound()), ..Self::default() }
    }
}

pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    let mut is_locked = false;
    package.walk("META-INF/manifest.xml", &mut |piece| {
        is_locked |= matches!(&piece, Piece::Start(it) if it.name == "encryption-data");
        !is_locked
    });
    document.properties.read_parts(package, &["meta.xml"]);
    if is_locked {
        let mut draft = document.draft();
        draft.problem(ProblemKind::Locked, "is locked by a password");
        return draft;
    }
    let mut content = ContentReader::new();
    package.walk("content.xml", &mut |piece| content.piece(&piece, &mut document));
    objects(package, &mut document);
    document.draft()
}

/// Reads the documents in the document: charts, formulas, tables.
fn objects(package: &mut Package<'_>, document: &mut OfficeDraft) {
    let mut objects = package.in_folder("Object", "/content.xml");
    package.cut_list(&mut objects, Limit::SheetParts);
    if !objects.is_empty() {
        document.body.place("drawings");
    }
    for path in objects {
        if document.body.is_full() || package.is_over() {
            break;
        }
        let mut content = ContentReader::new();
        package.walk(&path, &mut |piece| content.piece(&piece, document));
    }
}

/// Summarizes a document that is one XML file.
pub(super) fn in_one_file<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    let mut content = ContentReader::new();
    let mut in_meta = false;
    let text = xml::text(input.head(Limit::Document.bound()));
    let end = xml::walk(&text, input.cancelled, &mut |piece| {
        match &piece {
            Piece::Start(it) if it.name == "meta" => in_meta = true,
            Piece::End("meta") => in_meta = false,
            _ if in_meta => document.properties.piece(&piece),
            _ => return content.piece(&piece, &mut document),
        }
        true
    });
    let mut draft = document.draft();
    draft.add_problems(end.err());
    input.report(Limit::Document, &mut draft);
    draft
}

impl ContentReader {
    fn piece(&mut self, piece: &Piece<'_>, document: &mut OfficeDraft) -> bool {
        match piece {
            Piece::Start(it) if 0 < self.skipping || SKIPPED.contains(&it.name) => {
                self.skipping += 1;
            }
            Piece::End(_) if 0 < self.skipping => self.skipping -= 1,
            _ if 0 < self.skipping => {}
            Piece::Start(it) => self.start(it, document),
            Piece::End(name) => self.end(name, document),
            Piece::Text(text) if 0 < self.in_paragraphs => self.paragraph.push_squeezed(text),
            Piece::Text(_) => {}
        }
        !document.body.is_full()
    }

    fn start(&mut self, element: &Element<'_>, document: &mut OfficeDraft) {
        match element.name {
            "h" | "p" => {
                self.in_paragraphs += 1;
                self.kind = if element.name == "h" { Kind::Heading } else { self.kind };
                // Only the standard's own style is known; users' styles may have any name.
                if element.get("style-name") == "Title" {
                    self.kind = Kind::Title;
                }
            }
            "s" | "tab" => self.paragraph.space(),
            "line-break" => self.paragraph.line(),
            "a" => document.references.add(&element.get("href")),
            "note-body" => self.paragraph.space(),
            "spreadsheet" => self.has_sheets = true,
            "presentation" => self.has_slides = true,
            "table" if self.has_sheets => {
                document.sheet(&element.get("name"));
                self.cells = Some(Cells::new(&element.get("name")));
                self.row = Repeated::default();
            }
            "table-row" if self.cells.is_some() => {
                self.row.step(&element.get("number-rows-repeated"));
                self.column = Repeated::default();
            }
            "table-cell" => self.cell(element),
            "covered-table-cell" => self.next_cell(element),
            "page" => {
                self.in_page = true;
                if self.has_slides {
                    document.slide();
                }
            }
            "frame" | "custom-shape" => {
                self.in_title =
                    self.in_page && element.get_prefixed("presentation:class") == "title";
            }
            "notes" => self.in_title = false,
            _ => {}
        }
    }

    /// Begins a cell. Office programs write a number as it is shown, too, but not all others do.
    fn cell(&mut self, element: &Element<'_>) {
        self.in_cell = true;
        self.next_cell(element);
        if self.cells.is_none() {
            return;
        }
        let name = match &*element.get("value-type") {
            "float" | "percentage" | "currency" => "value",
            "date" => "date-value",
            "time" => "time-value",
            "boolean" => "boolean-value",
            _ => "string-value",
        };
        self.is_number = name != "string-value";
        self.value = element.get(name).into_owned();
    }

    /// Steps to a cell; in a row that has content, it does not matter where it is.
    fn next_cell(&mut self, element: &Element<'_>) {
        if let Some(cells) = self.cells.as_mut().filter(|it| it.is_row_empty()) {
            self.column.step(&element.get("number-columns-repeated"));
            cells.at(self.row.number, self.column.number);
        }
    }

    fn end(&mut self, name: &str, document: &mut OfficeDraft) {
        match name {
            "h" | "p" => {
                self.in_paragraphs = self.in_paragraphs.saturating_sub(1);
                self.end_paragraph(document);
            }
            "table-cell" => {
                let value = std::mem::take(&mut self.value);
                match &mut self.cells {
                    _ if value.is_empty() => {}
                    Some(cells) if self.is_number => cells.number(&value),
                    Some(cells) => cells.cell(&value),
                    None => {}
                }
                self.in_cell = false;
            }
            "table-row" => {
                if let Some(cells) = &mut self.cells {
                    cells.end_row(document);
                }
            }
            "table" => self.cells = None,
            "frame" | "custom-shape" => self.in_title = false,
            _ => {}
        }
    }

    fn end_paragraph(&mut self, document: &mut OfficeDraft) {
        if self.paragraph.is_cut() {
            document.cuts.insert(Limit::Paragraph);
        }
        let (kind, paragraph) = (std::mem::take(&mut self.kind), self.paragraph.take());
        match &mut self.cells {
            _ if paragraph.is_empty() => {}
            Some(cells) if self.in_cell => {
                self.value.clear();
                if self.is_number {
                    cells.number(&paragraph);
                } else {
                    cells.cell(&paragraph);
                }
            }
            _ if self.in_title => document.paragraph(&paragraph, Kind::Heading),
            _ => document.paragraph(&paragraph, kind),
        }
    }
}
