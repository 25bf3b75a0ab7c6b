//! The layout of front pages: marks put together to lines, with position, size and face.
//!
//! A line has no wide gap: the two columns of a page, or two authors in one row, are separate lines.

use std::ops::Range;

use super::device::{Face, Mark, WORD_GAP_EM};

/// Maximum number of lines that are kept of one page.
const LINES_MAX: usize = 1_000;
/// Maximum number of sizes and heights that are distinguished in one line.
const SIZES_MAX: usize = 20;
/// Least gap that ends a line, in units of the font's size.
const LINE_GAP_EM: f64 = 1.6;
/// Least vertical step to another row, in units of the font's size.
const ROW_STEP_EM: f64 = 0.55;
/// Largest size of a superscript, as a share of its line's size.
const SUPERSCRIPT_SIZE: f64 = 0.82;
/// Least rise of a superscript, in units of its line's size.
const SUPERSCRIPT_RISE_EM: f64 = 0.15;
/// Largest distance of a centered line's middle from the text's middle, as a share of the page's width.
const CENTER_SHARE: f64 = 0.025;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Ranges of superscripts in the text, in bytes.
    pub(super) superscripts: Vec<Range<usize>>,
    /// Its page, counted from 1.
    pub(super) page: usize,
    pub(super) left: f64,
    pub(super) right: f64,
    /// Its position as a share of the page's height: 0 is the top.
    pub(super) top: f64,
    /// Its baseline, in points from the top.
    pub(super) base: f64,
    /// The size of most of its characters, in points.
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) italic: bool,
    pub(super) centered: bool,
}

impl Line {
    /// Returns the text without its superscripts.
    pub(super) fn plain(&self) -> String {
        let mut plain = String::new();
        let mut at = 0;
        for range in &self.superscripts {
            plain.push_str(self.text.get(at..range.start).unwrap_or_default());
            at = range.end;
        }
        plain.push_str(self.text.get(at..).unwrap_or_default());
        plain
    }
}

/// The layout of a document's front pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The lines of the front pages, page by page and from top to bottom.
    pub(super) lines: Vec<Line>,
    /// The size of most of the text, in points.
    pub(super) body_size: f64,
}

impl Layout {
    pub(super) fn add(&mut self, page: usize, size: (f64, f64), marks: &[Mark], faces: &[Face]) {
        let strings = strings(marks, faces);
        let mut lines = rows(strings);
        lines.truncate(LINES_MAX);
        let (width, height) = size;
        let middle = middle(&lines, width);
        for line in &mut lines {
            line.page = page;
            line.top = line.base / height.max(1.0);
            let off = (f64::midpoint(line.left, line.right) - middle).abs();
            line.centered = off < CENTER_SHARE * width;
        }
        self.lines.extend(lines);
    }

    /// Computes the body's size from the lines of all front pages.
    pub(super) fn finish(&mut self) {
        let mut sizes: Vec<(f64, usize)> = Vec::new();
        for line in &self.lines {
            match sizes.iter_mut().find(|(size, _)| (size - line.size).abs() < 0.25) {
                Some((_, count)) => *count += line.text.len(),
                None => sizes.push((line.size, line.text.len())),
            }
        }
        let most = sizes.iter().max_by_key(|(_, count)| *count);
        self.body_size = most.map_or(10.0, |(size, _)| *size);
    }
}

/// Returns the middle of the text on a page of this `width`: that of the wide lines, which are
/// full; that of the page if fewer than three lines are wide.
fn middle(lines: &[Line], width: f64) -> f64 {
    let wide = || lines.iter().filter(|it| 0.55 * width < it.right - it.left);
    if wide().count() < 3 {
        return width / 2.0;
    }
    let left = wide().map(|it| it.left).fold(f64::INFINITY, f64::min);
    let right = wide().map(|it| it.right).fold(0.0, f64::max);
    f64::midpoint(left, right)
}

/// Consecutive marks on one line.
struct Piece {
    marks: Vec<Mark>,
    size: f64,
    base: f64,
    bold: usize,
    italic: usize,
}

impl Piece {
    fn left(&self) -> f64 {
        self.marks.iter().map(|it| it.start.x).fold(f64::INFINITY, f64::min)
    }

    fn right(&self) -> f64 {
        self.marks.iter().map(|it| it.end.x).fold(0.0, f64::max)
    }
}

/// Joins marks to pieces, in the order of drawing.
fn strings(marks: &[Mark], faces: &[Face]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Vec<Mark> = Vec::new();
    for mark in marks.iter().filter(|it| it.is_level()) {
        if let Some(last) = open.last() {
            let em = mark.size.max(last.size);
            let (gap, off) = (mark.start.x - last.end.x, (mark.start.y - last.end.y).abs());
            if ROW_STEP_EM * em < off || gap < -0.5 * em || LINE_GAP_EM * em < gap {
                pieces.push(piece(std::mem::take(&mut open), faces));
            }
        }
        open.push(*mark);
    }
    pieces.push(piece(open, faces));
    pieces.retain(|it| it.marks.iter().any(|mark| !mark.char.is_whitespace()));
    pieces
}

fn piece(marks: Vec<Mark>, faces: &[Face]) -> Piece {
    let mut piece = Piece { marks, size: 0.0, base: 0.0, bold: 0, italic: 0 };
    let (size, base) = main(&piece.marks);
    (piece.size, piece.base) = (size, base);
    for face in piece.marks.iter().filter_map(|it| faces.get(usize::from(it.face))) {
        piece.bold += usize::from(face.bold);
        piece.italic += usize::from(face.italic);
    }
    piece
}

/// Returns the size and the baseline of most of the marks.
fn main(marks: &[Mark]) -> (f64, f64) {
    let mut sizes: Vec<(f64, f64, usize)> = Vec::new();
    for mark in marks.iter().filter(|it| !it.char.is_whitespace()) {
        let (size, base) = (mark.size, mark.start.y);
        let same = |it: &&mut (f64, f64, usize)| {
            (it.0 - size).abs() < 0.1 && (it.1 - base).abs() < 0.1 * size
        };
        if let Some((_, _, count)) = sizes.iter_mut().find(same) {
            *count += 1;
        } else if sizes.len() < SIZES_MAX {
            sizes.push((size, base, 1));
        }
    }
    sizes.iter().max_by_key(|it| it.2).map_or((0.0, 0.0), |it| (it.0, it.1))
}

/// Joins neighboring pieces to lines, from top to bottom.
fn rows(mut pieces: Vec<Piece>) -> Vec<Line> {
    pieces.sort_by(|a, b| a.base.total_cmp(&b.base));
    let mut rows: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        let row = rows.iter_mut().rev().take(3).find(|row| {
            row.first().is_some_and(|first| {
                let (off, em) = ((piece.base - first.base).abs(), piece.size.max(first.size));
                let small = piece.size.min(first.size) < SUPERSCRIPT_SIZE * em;
                off < if small { ROW_STEP_EM } else { 0.3 } * em
            })
        });
        match row {
            Some(row) => row.push(piece),
            None => rows.push(vec![piece]),
        }
    }
    let mut lines = Vec::new();
    for mut row in rows {
        row.sort_by(|a, b| a.left().total_cmp(&b.left()));
        let mut open: Vec<Piece> = Vec::new();
        for piece in row {
            if let Some(last) = open.last() {
                let em = piece.size.max(last.size);
                if LINE_GAP_EM * em < piece.left() - last.right() {
                    lines.push(line(std::mem::take(&mut open)));
                }
            }
            open.push(piece);
        }
        lines.push(line(open));
    }
    lines.retain(|it| !it.text.is_empty());
    lines
}

fn line(pieces: Vec<Piece>) -> Line {
    let (bold, italic) = pieces.iter().fold((0, 0), |sum, it| (sum.0 + it.bold, sum.1 + it.italic));
    let marks: Vec<Mark> = pieces.into_iter().flat_map(|it| it.marks).collect();
    let (size, base) = main(&marks);
    let seen = marks.iter().filter(|it| !it.char.is_whitespace());
    let mut line = Line {
        size,
        base,
        left: seen.clone().map(|it| it.start.x).fold(f64::INFINITY, f64::min),
        right: seen.clone().map(|it| it.end.x).fold(0.0, f64::max),
        bold: marks.len() < 2 * bold,
        italic: marks.len() < 2 * italic,
        ..Line::default()
    };
    let mut last: Option<&Mark> = None;
    for mark in &marks {
        let gap = last.map_or(0.0, |it| mark.start.x - it.end.x);
        let space = mark.char.is_whitespace() || WORD_GAP_EM * mark.size.max(0.6 * size) < gap;
        if space && !line.text.is_empty() && !line.text.ends_with(' ') {
            line.text.push(' ');
        }
        last = Some(mark);
        if mark.char.is_whitespace() || mark.char.is_control() {
            continue;
        }
        let from = line.text.len();
        line.text.push(mark.char);
        let raised = SUPERSCRIPT_RISE_EM * size < base - mark.start.y;
        if mark.size < SUPERSCRIPT_SIZE * size && raised {
            match line.superscripts.last_mut().filter(|it| it.end == from) {
                Some(range) => range.end = line.text.len(),
                None => line.superscripts.push(from..line.text.len()),
            }
        }
    }
    let end = line.text.trim_end().len();
    line.text.truncate(end);
    line
}
