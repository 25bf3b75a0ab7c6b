//! The rows of a spreadsheet: all are text, and the first of each sheet names its columns.

use super::OfficeDraft;
use crate::text::{Body, is_telling};

/// Longest row, in bytes.
const ROW_BYTES_MAX: usize = 64 * 1024;

/// The row that is being read.
#[derive(Debug)]
pub(super) struct Cells {
    row: Body,
    /// The same text, each cell on a line.
    names: Body,
    has_header: bool,
}

impl Cells {
    pub(super) fn new() -> Self {
        let names = Body::new(super::HEADINGS_BYTES_MAX);
        Self { row: Body::new(ROW_BYTES_MAX), names, has_header: false }
    }

    pub(super) fn cell(&mut self, text: &str) {
        self.row.space();
        self.row.push_squeezed(text);
        if !self.has_header {
            self.names.push_squeezed_line(text);
        }
    }

    /// Ends the row; the first row with letters or digits is the header.
    pub(super) fn end_row(&mut self, document: &mut OfficeDraft) {
        if self.row.as_str().is_empty() {
            return;
        }
        if !self.has_header && is_telling(self.names.as_str()) {
            self.has_header = true;
            document.headings.push_line(self.names.as_str());
        }
        document.body.push_line(self.row.as_str());
        self.row.take();
        self.names.take();
    }
}
