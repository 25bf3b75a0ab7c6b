//! The parts beside a text, a slide or the cells of a sheet: links, comments, text boxes, diagrams and charts.
//!
//! Source: ECMA-376 part 1 §17.13.4, §18.7 and §19.4 (comments), §20.5 (drawings of spreadsheets), §21.1 (text in
//! drawings), §21.2 (charts), §21.4 (diagrams); Microsoft's \[MS-XLSX\] 2.6.205 (`threadedComment`).
//!
//! # Differences from the specification
//!
//! * Comments do not name their authors.

use std::collections::HashSet;

use super::OfficeDraft;
use super::package::Package;
use super::xlsx::binary;
use super::xml::Piece;
use crate::limit::Limit;
use crate::text::Body;

/// The beginning of a comment for programs without threads: the thread is in a part of its own.
const STAND_IN: &str = "[Threaded comment]";

/// The reader of the parts beside others, each of which is read once.
#[derive(Default)]
pub(super) struct Beside {
    seen: HashSet<String>,
    /// Whether the text of charts is in cells, too.
    has_cells: bool,
}

impl Beside {
    /// Returns a reader for a workbook, where the text of charts is in cells, too.
    pub(super) fn with_cells() -> Self {
        Self { has_cells: true, ..Self::default() }
    }

    /// Reads the parts beside the part at `path`.
    pub(super) fn read(
        &mut self,
        package: &mut Package<'_>,
        path: &str,
        document: &mut OfficeDraft,
    ) {
        // A drawing leads to charts.
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            for it in package.relationships(&path) {
                if it.is_external && it.kind == "hyperlink" {
                    document.references.add(&it.target);
                }
                let has_text = matches!(
                    it.kind.as_str(),
                    "comments"
                        | "threadedComment"
                        | "drawing"
                        | "chart"
                        | "chartEx"
                        | "diagramData"
                );
                let is_over = document.body.is_full() || package.is_over();
                if is_over || it.is_external || !has_text || self.seen.contains(&it.target) {
                    continue;
                }
                if self.seen.len() == Limit::SheetParts.bound() {
                    document.cuts.insert(Limit::SheetParts);
                    continue;
                }
                self.seen.insert(it.target.clone());
                if it.target.ends_with(".bin") {
                    binary::comments(package, &it.target, document);
                } else {
                    self.texts(package, &it.target, document);
                }
                if it.kind == "drawing" {
                    open.push(it.target);
                }
            }
        }
    }

    /// Reads the paragraphs of a part.
    fn texts(&self, package: &mut Package<'_>, path: &str, document: &mut OfficeDraft) {
        let mut paragraph = Body::new(Limit::Paragraph.bound());
        let (mut in_text, mut in_fallback, mut in_names) = (false, false, false);
        package.walk(path, &mut |piece| {
            match piece {
                // What programs show that do not know the drawing.
                Piece::Start(it) if it.name == "Fallback" => in_fallback = true,
                Piece::End("Fallback") => in_fallback = false,
                _ if in_fallback => {}
                Piece::Start(it) => match it.name {
                    "t" | "text" => in_text = true,
                    // Names of series and categories; numbers are in another cache.
                    "strCache" | "strLit" => in_names = !self.has_cells,
                    "v" => in_text = in_names,
                    "br" => paragraph.line(),
                    _ => {}
                },
                Piece::Text(text) if in_text => paragraph.push(text),
                Piece::Text(_) => {}
                Piece::End("v") if in_names => {
                    in_text = false;
                    paragraph.space();
                }
                Piece::End("t" | "text") => in_text = false,
                Piece::End(
                    it @ ("p" | "cm" | "comment" | "threadedComment" | "strCache" | "strLit"),
                ) => {
                    in_names &= !it.starts_with("str");
                    if paragraph.is_cut() {
                        document.cuts.insert(Limit::Paragraph);
                    }
                    comment(&paragraph.take(), document);
                }
                Piece::End(_) => {}
            }
            !document.body.is_full()
        });
    }
}

/// Adds a comment or another paragraph.
pub(super) fn comment(text: &str, document: &mut OfficeDraft) {
    if !text.starts_with(STAND_IN) {
        document.body.push_lines(text);
    }
}
