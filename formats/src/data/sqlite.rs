//! SQLite databases: names of tables and their columns, from the schema.
//!
//! Source: "SQLite Database File Format", §1.3 (header), §1.6 (B-trees), §2.1 (records), §2.6 (schema).
//!
//! # Differences from the specification
//!
//! * Rows are not read.

use std::borrow::Cow;

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{be32, len16, slice_up_to, u8_at};
use crate::text::{Body, HEADINGS_BYTES_MAX};
use crate::{Draft, Input};

/// The file's first bytes.
pub(super) const MARK: &[u8] = b"SQLite format 3\0";
/// Bytes of the file's header, before the first page's own.
const HEADER_BYTES: usize = 100;
/// Maximum number of columns of a row of the schema.
const COLUMNS: usize = 5;

/// The reader of the schema.
struct Schema<'a> {
    bytes: &'a [u8],
    page_bytes: usize,
    /// Bytes of a page that are used.
    usable_bytes: usize,
    /// Bytes of overflow pages that may still be read: none belongs to two rows.
    overflow_left: usize,
    /// Whether an overflow page was missing.
    is_broken: bool,
    charset: &'static encoding_rs::Encoding,
    tables: Body,
    body: Body,
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let charset = match be32(bytes, 56) {
        Some(2) => encoding_rs::UTF_16LE,
        Some(3) => encoding_rs::UTF_16BE,
        _ => encoding_rs::UTF_8,
    };
    let page_bytes = match len16(bytes, 16) {
        Some(1) => 65_536,
        other => other.unwrap_or_default(),
    };
    let (tables, body) = (Body::new(HEADINGS_BYTES_MAX), Body::new(input.text_bytes_max()));
    let reserved = u8_at(bytes, 20).map_or(0, usize::from);
    let mut schema = Schema {
        bytes,
        page_bytes,
        usable_bytes: page_bytes.saturating_sub(reserved),
        overflow_left: bytes.len(),
        is_broken: false,
        charset,
        tables,
        body,
    };
    let mut draft = Draft::default();
    let mut time = TimeLimit::of_long_steps(input.cancelled);
    let mut open = vec![1];
    let mut pages = 0;
    while let Some(number) = open.pop() {
        if !time.goes_on() || schema.body.is_full() {
            break;
        }
        pages += 1;
        if Limit::SchemaPages.bound() < pages + open.len() {
            draft.cut(Limit::SchemaPages.cut());
            break;
        }
        if schema.page(number, &mut open).is_none() {
            super::breaks_off(input, format!("page {number} cannot be read"), &mut draft);
            if !input.object.truncated {
                break;
            }
        }
    }
    time.report("the schema", &mut draft);
    if schema.is_broken {
        super::breaks_off(input, "has a statement that breaks off", &mut draft);
    }
    draft.other("Tables", schema.tables.as_str().trim());
    draft.set_body(schema.body);
    draft
}

impl<'a> Schema<'a> {
    /// Reads a page: its cells are rows, or lead to other pages.
    fn page(&mut self, number: usize, open: &mut Vec<usize>) -> Option<()> {
        let start = number.checked_sub(1)?.checked_mul(self.page_bytes)?;
        let page: &'a [u8] = slice_up_to(self.bytes, start, self.page_bytes);
        let at = if number == 1 { HEADER_BYTES } else { 0 };
        let kind = u8_at(page, at)?;
        let count = len16(page, at + 3)?;
        let cells = at + if kind == 5 { 12 } else { 8 };
        let offsets = (0..count).map_while(|it| len16(page, cells + 2 * it));
        match kind {
            5 => {
                let last = be32(page, at + 8)?;
                let children = offsets.map_while(|it| be32(page, it)).chain([last]);
                let mut children: Vec<usize> = children.map(|it| it as usize).collect();
                children.reverse();
                open.append(&mut children);
            }
            13 => offsets.for_each(|it| {
                self.row(page.get(it..).unwrap_or_default());
            }),
            _ => return None,
        }
        Some(())
    }

    /// Returns the record in a cell. What does not fit there is in a chain of overflow pages.
    fn record(&mut self, cell: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let mut at = 0;
        let (size, _row) = (usize::try_from(number(cell, &mut at)?).ok()?, number(cell, &mut at)?);
        let most = self.usable_bytes.checked_sub(35)?;
        if size <= most {
            return Some(Cow::Borrowed(slice_up_to(cell, at, size)));
        }
        let step = self.usable_bytes.checked_sub(4)?;
        let least = ((self.usable_bytes - 12) * 32 / 255).checked_sub(23)?;
        let local = least + (size - least) % step;
        let local = if local <= most { local } else { least };
        let mut record = slice_up_to(cell, at, local).to_vec();
        let mut next = be32(cell, at + local)?;
        while record.len() < size {
            let start =
                (next as usize).checked_sub(1).and_then(|it| it.checked_mul(self.page_bytes));
            let page = start.map_or(&[][..], |it| slice_up_to(self.bytes, it, self.usable_bytes));
            let content = slice_up_to(page, 4, size - record.len());
            if content.is_empty() || self.overflow_left < content.len() {
                self.is_broken = true;
                break;
            }
            self.overflow_left -= content.len();
            record.extend_from_slice(content);
            next = be32(page, 0)?;
        }
        Some(Cow::Owned(record))
    }

    /// Reads a row of the schema: kind, name, table, page and statement.
    fn row(&mut self, cell: &'a [u8]) -> Option<()> {
        let record = self.record(cell)?;
        let mut at = 0;
        let mut value_at = usize::try_from(number(&record, &mut at)?).ok()?;
        let mut values: [&[u8]; COLUMNS] = [b""; COLUMNS];
        for value in &mut values {
            let kind = number(&record, &mut at)?;
            let size = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind,
                5 => 6,
                6 | 7 => 8,
                kind => kind.checked_sub(12)? / 2,
            };
            let size = usize::try_from(size).ok()?;
            *value = slice_up_to(&record, value_at, size);
            value_at = value_at.checked_add(size)?;
        }
        let text = |bytes| self.charset.decode_without_bom_handling(bytes).0;
        let [kind, name, _, _, statement] = values.map(text);
        if matches!(&*kind, "table" | "view") && !name.starts_with("sqlite_") {
            self.tables.push_squeezed_line(&name);
            self.body.push_squeezed_line(&statement);
        }
        Some(())
    }
}

/// Reads a number of one to nine bytes.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for count in 0..9 {
        let byte = u8_at(bytes, *at)?;
        *at += 1;
        if count == 8 {
            return Some(value << 8 | u64::from(byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}
