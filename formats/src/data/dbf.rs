//! Tables of dBASE and its kin (`.dbf`): names of columns, number of rows, and the rows as text.
//!
//! Source: "Xbase File Format Description" (E. Bachmann, 1999); Microsoft's "Visual FoxPro Table File
//! Structure" for its versions and code page marks; the dBASE 7 table file format for its longer fields.
//!
//! # Differences from the specification
//!
//! * Memos are in another file: they are left out, with a problem. Deleted rows are left out.
//! * A code page of DOS other than 866 is read as Windows-1252.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32, le64, slice, up_to_zero};
use crate::object::ProblemKind;
use crate::office::codepage;
use crate::text::{Body, HEADINGS_BYTES_MAX, decode};
use crate::{DateSource, Draft, Input};

/// Mark at the end of the list of columns.
const END: u8 = 0x0d;
/// First byte of a deleted row.
const DELETED: u8 = b'*';
/// Day number of 1970-01-01 in Julian days.
const EPOCH_JULIAN_DAYS: i64 = 2_440_588;

struct Column<'a> {
    name: Cow<'a, str>,
    kind: u8,
    bytes: usize,
    decimals: u8,
}

/// The table's header.
struct Table<'a> {
    columns: Vec<Column<'a>>,
    rows_at: usize,
    row_bytes: usize,
    rows: usize,
    /// `None`: to be guessed.
    charset: Option<&'static Encoding>,
}

/// Returns the name of the program's tables if `head` begins one. There is no mark: the version, the
/// date and the lengths must be likely.
pub(super) fn kind(head: &[u8]) -> Option<&'static str> {
    let kind = match head.first()? {
        0x02 | 0xfb => "FoxBASE table",
        0x03 | 0x83 => "dBASE III table",
        0x43 | 0x63 | 0x7b | 0x8b | 0x8e | 0xcb => "dBASE IV table",
        0x04 | 0x8c => "dBASE 7 table",
        0x30..=0x32 => "Visual FoxPro table",
        0xf5 => "FoxPro table",
        _ => return None,
    };
    let (header_bytes, row_bytes) = (usize::from(le16(head, 8)?), usize::from(le16(head, 10)?));
    let is_date = matches!(head.get(1..4)?, [_, 0..=12, 0..=31]);
    let is_long = kind == "dBASE 7 table";
    let fields_at = if is_long { 68 } else { 32 };
    let name = head.get(fields_at..)?.first()?;
    let is_name = name.is_ascii_alphabetic() || *name == b'_' || 0x80 <= *name;
    // All before the rows is the header, the fields and the mark at their end.
    let is_whole = fields_at + 32 < header_bytes && 1 < row_bytes;
    let end = head.get(fields_at..header_bytes.min(head.len()))?;
    let is_ended = head.len() < header_bytes || end.contains(&END);
    (is_date && is_name && is_whole && is_ended && head.get(12..14)? == [0, 0]).then_some(kind)
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let Some(table) = Table::open(bytes) else {
        return Draft::with_problem(ProblemKind::Broken, "has no list of columns that can be read");
    };
    let mut draft = Draft::default();
    draft.date(&date(bytes).unwrap_or_default(), DateSource::Header);
    draft.other("Columns", table.columns.len().to_string());
    let mut headings = Body::new(HEADINGS_BYTES_MAX);
    table.columns.iter().for_each(|it| headings.push_squeezed_line(&it.name));
    draft.other("Headings", headings.as_str().trim());
    let mut body = Body::new(input.text_bytes_max());
    for column in &table.columns {
        body.push_squeezed(&column.name);
        body.space();
    }
    body.line();
    let mut time = TimeLimit::new(input.cancelled);
    let (mut rows, mut at) = (0_usize, table.rows_at);
    for _ in 0..table.rows {
        let Some(row) = slice(bytes, at, table.row_bytes).filter(|_| time.goes_on()) else { break };
        at += table.row_bytes;
        if row.first() == Some(&DELETED) {
            continue;
        }
        rows += 1;
        if !body.is_full() {
            table.row(row, &mut body);
        }
    }
    time.report("the table's rows", &mut draft);
    if !time.is_over() {
        let all = table.rows.saturating_mul(table.row_bytes).saturating_add(table.rows_at);
        if !input.object.truncated {
            draft.other("Rows", rows.to_string());
        }
        if bytes.len() < all {
            super::breaks_off(input, format!("breaks off after {rows} rows"), &mut draft);
        }
    }
    if table.columns.iter().any(|it| matches!(it.kind, b'M' | b'G' | b'P' | b'W')) {
        let message = "has memos in another file (.dbt or .fpt); they are left out";
        draft.problem(Limit::Beside.kind(), message);
    }
    draft.set_body(body);
    draft
}

/// Returns the date of the last change.
fn date(bytes: &[u8]) -> Option<String> {
    let [year, month @ 1..=12, day @ 1..=31] = bytes.get(1..4)? else { return None };
    // Some programs count years from 1900, others write two digits.
    let year = u32::from(*year) + if *year < 80 { 2000 } else { 1900 };
    Some(format!("{year}-{month:02}-{day:02}"))
}

impl<'a> Table<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let is_long = bytes.first()? & 7 == 4;
        let (mut at, field_bytes, name_bytes) = if is_long { (68, 48, 32) } else { (32, 32, 11) };
        let (rows_at, row_bytes) = (usize::from(le16(bytes, 8)?), usize::from(le16(bytes, 10)?));
        let charset = code_page(*bytes.get(29)?).map(codepage::of_number);
        let mut columns = Vec::new();
        while at + field_bytes <= rows_at {
            let Some(field) = slice(bytes, at, field_bytes).filter(|it| it.first() != Some(&END))
            else {
                break;
            };
            let name = decode(up_to_zero(field.get(..name_bytes)?), None);
            let (kind, length) = (*field.get(name_bytes)?, if is_long { 33 } else { 16 });
            let (mut bytes, mut decimals) =
                (usize::from(*field.get(length)?), *field.get(length + 1)?);
            if kind == b'C' && !is_long {
                // Long text has the high byte of its length there.
                bytes += usize::from(decimals) << 8;
                decimals = 0;
            }
            columns.push(Column { name, kind, bytes, decimals });
            at += field_bytes;
        }
        let rows = le_len32(bytes, 4)?;
        let is_table = !columns.is_empty() && 0 < row_bytes;
        is_table.then_some(Self { columns, rows_at, row_bytes, rows, charset })
    }

    fn row(&self, row: &[u8], body: &mut Body) {
        let mut at = 1;
        for column in &self.columns {
            let cell = slice(row, at, column.bytes).unwrap_or_default();
            at += column.bytes;
            if let Some(text) = self.cell(column, cell) {
                body.push_squeezed(text.trim());
                body.space();
            }
        }
        body.line();
    }

    fn cell<'c>(&self, column: &Column<'_>, cell: &'c [u8]) -> Option<Cow<'c, str>> {
        let text = || match self.charset {
            Some(charset) => charset.decode_without_bom_handling(cell).0,
            None => decode(cell, None),
        };
        Some(match column.kind {
            b'C' | b'V' | b'N' | b'F' | b'L' => text(),
            b'D' if cell.iter().all(u8::is_ascii_digit) => {
                let (year, rest) = cell.split_at_checked(4)?;
                let (month, day) = rest.split_at_checked(2)?;
                let parts = [year, month, day].map(String::from_utf8_lossy);
                Cow::Owned(parts.join("-"))
            }
            b'I' | b'+' if cell.len() == 4 => Cow::Owned(le32(cell, 0)?.cast_signed().to_string()),
            b'Y' => {
                let value = le64(cell, 0)?.cast_signed();
                let (whole, part) = (value / 10_000, (value % 10_000).abs());
                Cow::Owned(format!("{whole}.{part:04}"))
            }
            b'B' if cell.len() == 8 => {
                let (value, digits) =
                    (f64::from_bits(le64(cell, 0)?), usize::from(column.decimals));
                Cow::Owned(format!("{value:.0$}", digits.min(15)))
            }
            b'T' if cell.len() == 8 => Cow::Owned(time(cell)?),
            _ => return None,
        })
    }
}

/// Returns a time of FoxPro: a Julian day, and milliseconds.
fn time(cell: &[u8]) -> Option<String> {
    let days = i64::from(le32(cell, 0)?).checked_sub(EPOCH_JULIAN_DAYS)?;
    let seconds = days.checked_mul(86_400)?.checked_add(i64::from(le32(cell, 4)? / 1000))?;
    jiff::Timestamp::from_second(seconds).ok().map(|it| it.to_string())
}

/// Returns the code page of a language driver or code page mark.
fn code_page(mark: u8) -> Option<i64> {
    Some(match mark {
        0x01 => 437,
        0x02 => 850,
        0x03 | 0x57..=0x59 => 1252,
        0x04 => 10000,
        0x13 | 0x7b => 932,
        0x26 | 0x65 => 866,
        0x4d | 0x7a => 936,
        0x4e | 0x79 => 949,
        0x4f | 0x78 => 950,
        0x50 | 0x7c => 874,
        0x7d => 1255,
        0x7e => 1256,
        0x96 => 10007,
        0xc8 => 1250,
        0xc9 => 1251,
        0xca => 1254,
        0xcb => 1253,
        0xcc => 1257,
        _ => return None,
    })
}
