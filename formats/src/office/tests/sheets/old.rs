//! Tests of spreadsheets of Excel 2 to 2003: strings over several records, results, charts and versions.

use super::super::check;
use super::super::compound::compound;
use super::{DATES, PLAIN, book_start, cell, record, sheet_name};

#[test]
fn a_spreadsheet_of_excel() {
    let label = |row: usize, index: u8| cell(0xfd, row, PLAIN, &[index, 0, 0, 0]);
    // Three strings; the last one is continued in the next record, in UTF-16.
    let shared = [
        &[9, 0, 0, 0, 255, 255, 255, 255, 4, 0, 0][..],
        b"Name",
        &[4, 0, 8, 1, 0],
        b"Born",
        &[0; 4],
        &[4, 0, 0],
        b"An",
    ];
    let more = [1, b'n', 0, 0x34, 0x04];
    let book = [
        record(0x809, &[0, 6, 5, 0]),
        sheet_name(b"People"),
        sheet_name(b"Rest"),
        record(0xfc, &shared.concat()),
        record(0x3c, &more),
        record(0x0a, &[]),
        record(0x809, &[0, 6, 16, 0]),
        label(0, 0),
        label(0, 1),
        label(1, 2),
        label(1, 200),
        record(0x207, &[2, 0, 0, b'o', b'k']),
        record(0x0a, &[]),
    ];
    check(
        "n.xls",
        &compound(&[("Workbook", &book.concat())]),
        "Title: n.xls\nSheets: People | Rest\nHeadings: Name | Born\nPartial-Text: Name Born | Annд ok",
    );
    check(
        "n.xls",
        &compound(&[("Workbook", &record(0x2f, &[1]))]),
        "Title: n.xls\n! locked: is locked by a password",
    );
}

#[test]
fn results_texts_and_charts_of_excel() {
    let book = [
        book_start(),
        record(0x15, &[10, 0, 0, b'&', b'L', b'B', b'o', b't', b't', b'o', b'm', b'&', b'P']),
        // Two packed numbers in one record: 4711, and a date.
        record(0xbd, &[0, 0, 0, 0, 0, 0, 0x9e, 0x49, 0, 0, 1, 0, 0xaa, 0xc5, 2, 0, 1, 0]),
        cell(0x06, 0, PLAIN, &2.5_f64.to_le_bytes()),
        cell(0x06, 0, PLAIN, &[1, 0, 1, 0, 0, 0, 255, 255]),
        cell(0x06, 0, PLAIN, &[2, 0, 42, 0, 0, 0, 255, 255]),
        cell(0x06, 1, PLAIN, &[0, 0, 0, 0, 0, 0, 255, 255]),
        record(0x207, &[2, 0, 0, b'o', b'k']),
        cell(0x205, 1, PLAIN, &[42, 1]),
        // A text object in two records, one of UTF-16; its formats follow.
        record(0x1b6, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 16, 0, 0, 0, 0, 0]),
        record(0x3c, &[0, b'b', b'o']),
        record(0x3c, &[1, b'x', 0, b'!', 0]),
        record(0x3c, &[0; 16]),
        record(0x809, &[0, 6, 0x20, 0]),
        cell(0x203, 0, PLAIN, &99.0_f64.to_le_bytes()),
        record(0x100d, &[0, 0, 4, 0, b'R', b'a', b'i', b'n']),
        record(0x0a, &[]),
        cell(0x203, 2, PLAIN, &8.0_f64.to_le_bytes()),
        record(0x0a, &[]),
    ];
    check(
        "n.xls",
        &compound(&[("Workbook", &book.concat())]),
        "Title: n.xls\nSheets: Costs\nHeadings: ok\n\
         Partial-Text: Bottom | 4711 2024-05-06 2.5 TRUE | ok | box! | Rain | 8",
    );
}

#[test]
fn the_oldest_spreadsheets_of_excel() {
    // Version 2: attributes of three bytes, and formats numbered in order.
    let old = |kind: u16, format: u8, value: &[u8]| {
        record(kind, &[&[0, 0, 0, 0, 0, format, 0], value].concat())
    };
    let book = [
        record(0x09, &[2, 0, 0x10, 0]),
        record(0x1e, b"\x07General"),
        record(0x1e, b"\x06yyyy/m"),
        old(0x04, 0, b"\x05Gr\xfc\xdfe"),
        old(0x02, 1, &45_418_u16.to_le_bytes()),
        old(0x03, 0x40, &0.5_f64.to_le_bytes()),
        old(0x05, 0, &[1, 0]),
        old(0x06, 0, &2.5_f64.to_le_bytes()),
        record(0x07, b"\x02ok"),
        record(0x0a, &[]),
    ];
    check("n.xls", &book.concat(), "Title: n.xls\nPartial-Text: Grüße 2024-05-06 0.5 TRUE 2.5 ok");
    // Version 4: strings are narrow, and formats have their numbers by order.
    let book = [
        record(0x409, &[4, 0, 0x10, 0, 0, 0]),
        record(0x41e, b"\0\0\x07General"),
        record(0x41e, b"\0\0\x06yyyy/m"),
        record(0x443, &[0; 12]),
        record(0x443, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        cell(0x204, 0, PLAIN, b"\x05\0Gr\xfc\xdfe"),
        cell(0x203, 0, DATES, &45_418.0_f64.to_le_bytes()),
        record(0x14, b"\x05&CTop"),
        record(0x0a, &[]),
    ];
    check(
        "n.xls",
        &book.concat(),
        "Title: n.xls\nHeadings: Grüße\nPartial-Text: Grüße 2024-05-06 | Top",
    );
    // Version 5, whose text of a note is in the note.
    let book = [
        record(0x809, &[0, 5, 0x10, 0, 0, 0, 0, 0]),
        record(0x41e, b"\xa4\0\x06yyyy/m"),
        record(0xe0, &[0, 0, 0xa4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        cell(0x203, 0, PLAIN, &45_418.0_f64.to_le_bytes()),
        record(0x1c, b"\0\0\0\0\x04\0note"),
    ];
    check("n.xls", &book.concat(), "Title: n.xls\nPartial-Text: 2024-05-06 | note");
}
