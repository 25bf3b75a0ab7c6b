//! The parts beside the cells of a sheet: links, comments, text boxes, and the titles of charts.
//!
//! Source: ECMA-376 part 1 §18.7 (comments), §20.5 (drawings of spreadsheets), §21.1 (text in drawings),
//! §21.2 (charts); Microsoft's \[MS-XLSX\] 2.6.205 (`threadedComment`).
//!
//! # Differences from the specification
//!
//! * Comments do not name their authors.

use std::collections::HashSet;

use super::super::OfficeDraft;
use super::super::package::Package;
use super::super::xml::Piece;
use super::binary;
use crate::limit::Limit;
use crate::text::Body;

/// The beginning of a comment for programs without threads: the thread is in a part of its own.
const STAND_IN: &str = "[Threaded comment]";

/// Reads the parts beside the sheet at `path` that are not `seen` yet.
pub(super) fn read(
    package: &mut Package<'_>,
    path: &str,
    document: &mut OfficeDraft,
    seen: &mut HashSet<String>,
) {
    // A drawing leads to charts.
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        for it in package.relationships(&path) {
            if document.body.is_full() || package.is_over() {
                return;
            }
            if it.is_external && it.kind == "hyperlink" {
                document.references.add(&it.target);
            }
            let has_text = matches!(
                it.kind.as_str(),
                "comments" | "threadedComment" | "drawing" | "chart" | "chartEx" | "diagramData"
            );
            if it.is_external || !has_text || seen.contains(&it.target) {
                continue;
            }
            if seen.len() == Limit::SheetParts.bound() {
                document.cuts.insert(Limit::SheetParts);
                continue;
            }
            seen.insert(it.target.clone());
            if it.target.ends_with(".bin") {
                binary::comments(package, &it.target, document);
            } else {
                texts(package, &it.target, document);
            }
            if it.kind == "drawing" {
                open.push(it.target);
            }
        }
    }
}

/// Reads the paragraphs of a part.
fn texts(package: &mut Package<'_>, path: &str, document: &mut OfficeDraft) {
    let mut paragraph = Body::new(Limit::Paragraph.bound());
    let (mut in_text, mut in_fallback) = (false, false);
    package.walk(path, &mut |piece| {
        match piece {
            // What programs show that do not know the drawing.
            Piece::Start(it) if it.name == "Fallback" => in_fallback = true,
            Piece::End("Fallback") => in_fallback = false,
            _ if in_fallback => {}
            Piece::Start(it) => match it.name {
                "t" | "text" => in_text = true,
                "br" => paragraph.line(),
                _ => {}
            },
            Piece::Text(text) if in_text => paragraph.push(text),
            Piece::Text(_) => {}
            Piece::End("t" | "text") => in_text = false,
            Piece::End("p" | "comment" | "threadedComment") => {
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

/// Adds a comment or another paragraph.
pub(super) fn comment(text: &str, document: &mut OfficeDraft) {
    if !text.starts_with(STAND_IN) {
        document.body.push_lines(text);
    }
}
