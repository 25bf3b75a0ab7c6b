//! Word processing documents of Office Open XML.
//!
//! Source: ECMA-376 part 1 §17 (WordprocessingML).
//!
//! Headings are known by outline level, or by style: the part for styles has their names, which are the same
//! in all languages. Footnotes and endnotes follow the text, and diagrams, charts and comments follow these.

use std::collections::HashMap;

use super::beside::Beside;
use super::package::Package;
use super::xml::{Element, Piece};
use super::{Kind, OfficeDraft};
use crate::limit::Limit;
use crate::text::Body;
use crate::{Draft, Input};

/// Maximum number of styles that are remembered.
const STYLES_MAX: usize = 4 * 1024;
const MAIN: &str = "word/document.xml";
/// Parts with text, in reading order.
const PARTS: [&str; 3] = [MAIN, "word/footnotes.xml", "word/endnotes.xml"];

/// The reader of one part.
struct PartReader<'s> {
    styles: &'s HashMap<String, Kind>,
    paragraph: Body,
    kind: Kind,
    in_text: bool,
    /// Number of open elements, from the outermost whose text is repeated elsewhere.
    skipping: usize,
    instruction: Body,
    in_instruction: bool,
    /// Offsets in the paragraph at which pages begin, in order, and how many begin there.
    pages: Vec<(usize, usize)>,
    /// Whether there was no text since a page break: Word says again that a page begins there.
    is_new_page: bool,
    /// Whether Word has noted where pages begin. Breaks alone do not tell: text flows over to other pages, too.
    has_pages: bool,
}

pub(super) fn summarize<'a>(input: &Input<'a>, package: &mut Package<'_>) -> Draft<'a> {
    let mut document = OfficeDraft::new(input);
    document.properties.read_parts(package, &super::PROPERTIES);
    let styles = styles(package);
    for part in PARTS {
        document.hyperlinks(package, part);
        if part != MAIN {
            document.body.place("notes");
        }
        let mut text = PartReader {
            styles: &styles,
            paragraph: Body::new(Limit::Paragraph.bound()),
            kind: Kind::Text,
            in_text: false,
            skipping: 0,
            instruction: Body::new(Limit::Paragraph.bound()),
            in_instruction: false,
            pages: Vec::new(),
            is_new_page: false,
            has_pages: false,
        };
        package.walk(part, &mut |piece| {
            text.piece(&piece, &mut document);
            !document.body.is_full()
        });
        text.end_paragraph(&mut document);
        if part == MAIN && !text.has_pages {
            document.body.take_places();
        }
    }
    document.body.place("drawings");
    Beside::default().read(package, MAIN, &mut document);
    document.draft()
}

/// Returns the styles of titles and headings, by the id that paragraphs use.
fn styles(package: &mut Package<'_>) -> HashMap<String, Kind> {
    let mut styles = HashMap::new();
    let mut id = String::new();
    package.walk("word/styles.xml", &mut |piece| {
        let Piece::Start(it) = piece else { return true };
        let kind = match it.name {
            "style" => {
                id = it.get("styleId").into_owned();
                None
            }
            "name" => kind_of_style(&it.get("val")),
            "outlineLvl" if is_outline(&it) => Some(Kind::Heading),
            _ => None,
        };
        if let Some(kind) = kind
            && !id.is_empty()
        {
            styles.entry(id.clone()).or_insert(kind);
        }
        styles.len() < STYLES_MAX
    });
    styles
}

fn kind_of_style(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    let is_heading = name
        .strip_prefix("heading")
        .is_some_and(|it| it.trim_start().starts_with(|it: char| it.is_ascii_digit()));
    match name.as_str() {
        "title" => Some(Kind::Title),
        _ if is_heading => Some(Kind::Heading),
        _ => None,
    }
}

/// Returns whether the level is one of an outline: 9 is text.
fn is_outline(element: &Element<'_>) -> bool {
    element.get("val").parse::<u32>().is_ok_and(|it| it < 9)
}

impl PartReader<'_> {
    fn piece(&mut self, piece: &Piece<'_>, document: &mut OfficeDraft) {
        // `Fallback` is the replacement of drawings for older programs.
        match piece {
            Piece::Start(it) if 0 < self.skipping || it.name == "Fallback" => {
                self.skipping += 1;
                return;
            }
            Piece::End(_) if 0 < self.skipping => {
                self.skipping -= 1;
                return;
            }
            _ if 0 < self.skipping => return,
            _ => {}
        }
        match piece {
            Piece::Start(it) => self.start(it, document),
            Piece::End(name) => match *name {
                "p" => self.end_paragraph(document),
                "t" => self.in_text = false,
                "instrText" => self.in_instruction = false,
                _ => {}
            },
            Piece::Text(text) if self.in_text => {
                self.paragraph.push(text);
                self.is_new_page &= text.is_empty();
            }
            Piece::Text(text) if self.in_instruction => self.instruction.push(text),
            Piece::Text(_) => {}
        }
    }

    fn start(&mut self, element: &Element<'_>, document: &mut OfficeDraft) {
        match element.name {
            "p" => self.end_paragraph(document),
            "t" => self.in_text = true,
            "tab" => self.paragraph.space(),
            "br" if element.get("type") == "page" => {
                self.paragraph.line();
                self.is_new_page = true;
                self.begin_page();
            }
            "br" | "cr" => self.paragraph.line(),
            "lastRenderedPageBreak" => {
                self.has_pages = true;
                if !std::mem::take(&mut self.is_new_page) {
                    self.begin_page();
                }
            }
            "noBreakHyphen" => self.paragraph.push("-"),
            "instrText" => self.in_instruction = true,
            "fldChar" => self.field(document),
            "fldSimple" => {
                self.instruction.push(&element.get("instr"));
                self.field(document);
            }
            "pStyle" => {
                let style = element.get("val");
                // Documents without a part for styles have the names in place of ids.
                let kind = self.styles.get(&*style).copied().or_else(|| kind_of_style(&style));
                self.kind = kind.unwrap_or(Kind::Text);
            }
            "outlineLvl" if is_outline(element) => self.kind = Kind::Heading,
            _ => {}
        }
    }

    fn begin_page(&mut self) {
        let at = self.paragraph.as_str().len();
        match self.pages.last_mut() {
            Some((before, count)) if *before == at => *count += 1,
            _ => self.pages.push((at, 1)),
        }
    }

    /// Reads the instruction of a field that is complete.
    fn field(&mut self, document: &mut OfficeDraft) {
        if self.instruction.is_over() {
            document.cuts.insert(Limit::Paragraph);
        }
        document.references.add_field(&self.instruction.take());
    }

    fn end_paragraph(&mut self, document: &mut OfficeDraft) {
        let start = document.body.as_str().len();
        let pages = shown_offsets(self.paragraph.as_str(), std::mem::take(&mut self.pages));
        document.take_paragraph(&mut self.paragraph, std::mem::take(&mut self.kind));
        pages.into_iter().for_each(|(at, count)| document.body.next_page(start + at, count));
    }
}

/// Returns the offsets in the document's text, from the begin of the paragraph, for those in the paragraph. There
/// the words stand with one byte between two of them.
fn shown_offsets(paragraph: &str, mut pages: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    let mut characters = paragraph.char_indices().peekable();
    let (mut shown, mut is_after_white) = (0, false);
    for (at, _) in &mut pages {
        while let Some((_, it)) = characters.next_if(|(start, _)| start < at) {
            if !it.is_whitespace() {
                shown += usize::from(is_after_white && 0 < shown) + it.len_utf8();
            }
            is_after_white = it.is_whitespace();
        }
        *at = shown;
    }
    pages
}
