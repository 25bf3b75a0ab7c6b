//! Tests of spreadsheets: what goes into cells of any format comes out as text.

mod old;

use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::super::super::testing::render;
use super::compound::compound;
use super::{check, zipped, zipped_bytes};
use crate::Type;

/// What a cell holds.
#[derive(Clone, Debug)]
enum Content {
    Number(f64),
    Text(String),
    Truth(bool),
    Day(Date),
}

/// The formats of cells that all books here have: plain, and of dates by a code of their own.
const PLAIN: u8 = 0;
const DATES: u8 = 1;
const DATES_CODE: &str = "d\\.\\ mmmm\\ yyyy";

impl Content {
    fn number(&self) -> Option<(f64, u8)> {
        match self {
            Self::Number(number) => Some((*number, PLAIN)),
            Self::Day(day) => {
                let days = (*day - date(1899, 12, 30)).get_days();
                Some((f64::from(days), DATES))
            }
            Self::Text(_) | Self::Truth(_) => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            // These numbers are short.
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Truth(truth) => truth.to_string().to_uppercase(),
            Self::Day(day) => day.to_string(),
        }
    }
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        (-999_999_999_999_999_i64..=999_999_999_999_999)
            .prop_map(|it| Content::Number(it.to_string().parse().unwrap())),
        any::<i32>().prop_map(|it| Content::Number(f64::from(it) / 100.0)),
        "[a-zäß&<\u{416}]{1,9}( [a-z0-9]{1,5})?".prop_map(Content::Text),
        any::<bool>().prop_map(Content::Truth),
        (61..80_000_i32)
            .prop_map(|it| { Content::Day(date(1899, 12, 30) + jiff::Span::new().days(it)) }),
    ]
}

pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

const XLSX_BOOK: (&str, &str) = (
    "xl/workbook.xml",
    "<workbook><sheets><sheet name=\"Costs\" r:id=\"r1\"/></sheets></workbook>",
);
const XLSX_STYLES: &str = "<styleSheet><numFmts><numFmt numFmtId=\"164\" formatCode=\"CODE\"/></numFmts>\
    <cellStyleXfs><xf numFmtId=\"9\"/></cellStyleXfs>\
    <cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"164\"/><xf numFmtId=\"14\"/><xf numFmtId=\"10\"/></cellXfs>\
    <dxfs><dxf><numFmt numFmtId=\"0\" formatCode=\"yyyy\"/></dxf></dxfs></styleSheet>";

fn xlsx(rows: &[Vec<Content>]) -> Vec<u8> {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let mut sheet = "<worksheet><sheetData>".to_owned();
    for row in rows {
        sheet += "<row>";
        for content in row {
            sheet += &match (content, content.number()) {
                (_, Some((number, format))) => {
                    format!("<c s=\"{format}\"><v>{number:e}</v></c>")
                }
                (Content::Truth(truth), _) => {
                    format!("<c t=\"b\"><v>{}</v></c>", u8::from(*truth))
                }
                _ => format!("<c t=\"str\"><v>{}</v></c>", escaped(&content.shown())),
            };
        }
        sheet += "</row>";
    }
    let styles = XLSX_STYLES.replace("CODE", DATES_CODE);
    zipped(&[XLSX_BOOK, ("xl/styles.xml", &styles), ("xl/worksheets/sheet1.xml", &sheet)])
}

/// Returns a record of a binary part.
pub(super) fn part_record(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    for number in [usize::from(kind), content.len()] {
        let mut rest = number;
        while 0x7f < rest {
            record.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        record.push(u8::try_from(rest).unwrap());
    }
    record.extend(content);
    record
}

/// Returns a string of a binary part.
pub(super) fn part_string(text: &str) -> Vec<u8> {
    let size = u32::try_from(text.encode_utf16().count()).unwrap();
    [&size.to_le_bytes()[..], &utf16(text)].concat()
}

/// Returns a record of a cell in a binary part.
fn part_cell(kind: u16, format: u8, value: &[u8]) -> Vec<u8> {
    part_record(kind, &[&[0, 0, 0, 0, format, 0, 0, 0], value].concat())
}

fn xlsb_of(sheet: &[u8], strings: &[u8], others: &[(&str, &[u8])]) -> Vec<u8> {
    let named = [&[0; 8][..], &part_string("rId1"), &part_string("Costs")].concat();
    let book = [part_record(153, &[0; 8]), part_record(156, &named)].concat();
    let code = [&[164, 0][..], &part_string(DATES_CODE)].concat();
    let styles = [
        part_record(615, &[1, 0, 0, 0]),
        part_record(44, &code),
        part_record(626, &[]),
        part_record(47, &[0xff, 0xff, 9, 0]),
        part_record(617, &[2, 0, 0, 0]),
        part_record(47, &[0, 0, 0, 0]),
        part_record(47, &[0, 0, 164, 0]),
        part_record(618, &[]),
        part_record(47, &[0, 0, 14, 0]),
    ];
    let mut parts: Vec<(&str, &[u8])> = vec![("xl/workbook.bin", &book)];
    let styles = styles.concat();
    parts.extend([
        ("xl/_rels/workbook.bin.rels", &b"<Relationships><Relationship Id=\"rId1\" Type=\"x/worksheet\" Target=\"worksheets/sheet1.bin\"/></Relationships>"[..]),
        ("xl/styles.bin", &styles),
        ("xl/sharedStrings.bin", strings),
        ("xl/worksheets/sheet1.bin", sheet),
    ]);
    parts.extend(others);
    zipped_bytes(&parts)
}

fn xlsb(rows: &[Vec<Content>]) -> Vec<u8> {
    let (mut sheet, mut strings, mut count) = (part_record(145, &[]), Vec::new(), 0_u32);
    for row in rows {
        sheet.extend(part_record(0, &[0; 17]));
        for content in row {
            sheet.extend(match (content, content.number()) {
                (_, Some((number, format))) if (0.0..999.0).contains(&number) => {
                    let packed =
                        (format!("{:.0}", number * 100.0).parse::<u32>().unwrap() << 2) | 3;
                    part_cell(2, format, &packed.to_le_bytes())
                }
                (_, Some((number, format))) => part_cell(5, format, &number.to_le_bytes()),
                (Content::Truth(truth), _) => part_cell(4, PLAIN, &[u8::from(*truth)]),
                // Odd strings are shared.
                _ if content.shown().len() % 2 == 0 => {
                    part_cell(6, PLAIN, &part_string(&content.shown()))
                }
                _ => {
                    strings.extend(part_record(
                        19,
                        &[&[0], &part_string(&content.shown())[..]].concat(),
                    ));
                    count += 1;
                    part_cell(7, PLAIN, &(count - 1).to_le_bytes())
                }
            });
        }
    }
    sheet.extend(part_record(146, &[]));
    xlsb_of(&sheet, &strings, &[])
}

/// Returns a record of an old workbook.
pub(crate) fn record(kind: u16, content: &[u8]) -> Vec<u8> {
    let size = u16::try_from(content.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &size, content].concat()
}

/// Returns a record of a cell in an old workbook.
fn cell(kind: u16, row: usize, format: u8, value: &[u8]) -> Vec<u8> {
    let row = u16::try_from(row).unwrap().to_le_bytes();
    record(kind, &[&row[..], &[0, 0, format, 0], value].concat())
}

fn sheet_name(name: &[u8]) -> Vec<u8> {
    let size = u8::try_from(name.len()).unwrap();
    record(0x85, &[&[0, 0, 0, 0, 0, 0, size, 0], name].concat())
}

/// Returns the records before those of the first sheet.
fn book_start() -> Vec<u8> {
    let code =
        [&[164, 0][..], &[u8::try_from(DATES_CODE.len()).unwrap(), 0, 0], DATES_CODE.as_bytes()];
    [
        record(0x809, &[0, 6, 5, 0]),
        record(0x41e, &code.concat()),
        record(0xe0, &[0; 20]),
        record(0xe0, &[&[0, 0, 164, 0], &[0; 16][..]].concat()),
        sheet_name(b"Costs"),
        record(0x0a, &[]),
        record(0x809, &[0, 6, 16, 0]),
    ]
    .concat()
}

fn xls(rows: &[Vec<Content>]) -> Vec<u8> {
    let mut book = book_start();
    for (at, row) in rows.iter().enumerate() {
        for content in row {
            book.extend(match (content, content.number()) {
                (_, Some((number, format))) if (0.0..999.0).contains(&number) => {
                    let packed =
                        (format!("{:.0}", number * 100.0).parse::<u32>().unwrap() << 2) | 3;
                    cell(0x27e, at, format, &packed.to_le_bytes())
                }
                (_, Some((number, format))) => cell(0x203, at, format, &number.to_le_bytes()),
                (Content::Truth(truth), _) => cell(0x205, at, PLAIN, &[u8::from(*truth), 0]),
                _ => {
                    let text = content.shown();
                    let size = u16::try_from(text.encode_utf16().count()).unwrap().to_le_bytes();
                    cell(0x204, at, PLAIN, &[&size[..], &[1], &utf16(&text)].concat())
                }
            });
        }
    }
    book.extend(record(0x0a, &[]));
    compound(&[("Workbook", &book)])
}

fn ods(rows: &[Vec<Content>]) -> Vec<u8> {
    let mut sheet = "<office:spreadsheet><table:table table:name=\"Costs\">".to_owned();
    for row in rows {
        sheet += "<table:table-row>";
        for content in row {
            let shown = content.shown();
            sheet += &match content {
                Content::Number(_) => {
                    format!(
                        "<table:table-cell office:value-type=\"float\" office:value=\"{shown}\"/>"
                    )
                }
                Content::Day(_) => format!(
                    "<table:table-cell office:value-type=\"date\" office:date-value=\"{shown}\"><text:p>{shown}</text:p></table:table-cell>"
                ),
                Content::Truth(_) => format!(
                    "<table:table-cell office:value-type=\"boolean\" office:boolean-value=\"x\"><text:p>{shown}</text:p></table:table-cell>"
                ),
                Content::Text(_) => format!(
                    "<table:table-cell office:value-type=\"string\"><text:p>{}</text:p></table:table-cell>",
                    shown.replace('&', "&amp;").replace('<', "&lt;")
                ),
            };
        }
        sheet += "</table:table-row>";
    }
    zipped(&[("content.xml", &sheet)])
}

fn table() -> Vec<Vec<Content>> {
    let text = |it: &str| Content::Text(it.to_owned());
    vec![
        vec![Content::Number(2024.0), Content::Day(date(2024, 5, 6))],
        vec![text("Invoice"), text("Paid"), text("Sum")],
        vec![Content::Number(471_112_345_678.0), Content::Truth(true), Content::Number(-12.5)],
    ]
}

const TABLE: &str = "Sheets: Costs\nHeadings: Invoice | Paid | Sum\n\
    Partial-Text: 2024 2024-05-06 | Invoice Paid Sum | 471112345678 TRUE -12.5";

#[test]
fn numbers_are_text_in_all_formats() {
    for (name, bytes) in [
        ("n.xlsx", xlsx(&table())),
        ("n.xlsb", xlsb(&table())),
        ("n.xls", xls(&table())),
        ("n.ods", ods(&table())),
    ] {
        check(name, &bytes, &format!("Title: {name}\n{TABLE}"));
    }
    check(
        "n.xlsx",
        &xlsx(&[vec![Content::Number(0.1 + 0.2)], vec![Content::Number(7.0)]]),
        "Title: n.xlsx\nSheets: Costs\nPartial-Text: 0.3 | 7",
    );
    // A row of data is no header, and no later row is.
    let mut rows = table();
    rows[1] = rows.swap_remove(2);
    rows[1][1] = Content::Text("yes".to_owned());
    rows.push(vec![Content::Text("Source".to_owned())]);
    check(
        "n.xlsb",
        &xlsb(&rows),
        "Title: n.xlsb\nSheets: Costs\nPartial-Text: 2024 2024-05-06 | 471112345678 yes -12.5 | Source",
    );
}

#[test]
fn cells_of_office_open_xml() {
    let sheet = "<worksheet><row><c s=\"2\"><f>TODAY()</f><v>45418.5</v></c><c s=\"3\"><v>0.075</v></c>\
        <c t=\"e\"><v>#N/A</v></c><c t=\"d\"><v>2024-05-06T13:30:00</v></c><c><v>1.50</v></c><c><v> none </v></c>\
        <c t=\"inlineStr\"><is><t>東京</t><rPh><t>no</t></rPh></is></c><c s=\"9\"/><c t=\"n\" s=\"99\"><v>1e3</v></c></row>\
        <headerFooter><oddHeader>&amp;L&amp;\"Arial,Bold\"Top &amp;&amp; more</oddHeader></headerFooter></worksheet>";
    let book = "<workbook><workbookPr date1904=\"1\"/><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>";
    check(
        "n.xlsx",
        &zipped(&[
            ("xl/workbook.xml", book),
            ("xl/styles.xml", XLSX_STYLES),
            ("xl/worksheets/sheet1.xml", sheet),
        ]),
        "Title: n.xlsx\nSheets: a\n\
         Partial-Text: 2028-05-07 12:00:00 7.5% 2024-05-06 13:30:00 1.50 none 東京 1000 | Top & more",
    );
}

#[test]
fn names_of_parts_may_have_backslashes_and_capitals() {
    let relationships = "<Relationships><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"WorkSheets\\sheet7.xml\"/>\
        <Relationship Id=\"r2\" Type=\"x/sharedStrings\" Target=\"/xl/strings.xml\"/></Relationships>";
    let sheet = "<worksheet><row><c t=\"s\"><v>0</v></c></row></worksheet>";
    let expected = "Title: n.xlsx\nSheets: Costs\nHeadings: found\nPartial-Text: found";
    for (folder, slash) in [("xl", "\\"), ("XL", "/"), ("/xl", "/"), ("\\Xl", "\\")] {
        let path = |it: &str| format!("{folder}{slash}{}", it.replace('/', slash));
        check(
            "n.xlsx",
            &zipped(&[
                (&path("Workbook.xml"), XLSX_BOOK.1),
                (&path("_rels/workbook.xml.rels"), relationships),
                (&path("Strings.xml"), "<sst><si><t>found</t></si></sst>"),
                (&path("worksheets/sheet7.xml"), sheet),
            ]),
            expected,
        );
    }
}

#[test]
fn comments_drawings_and_charts_follow_the_cells() {
    let relationship = |kind: &str, target: &str| {
        format!("<Relationship Id=\"{kind}\" Type=\"x/{kind}\" Target=\"{target}\"/>")
    };
    let of_sheet = [
        relationship("comments", "../comments1.xml"),
        relationship("threadedComment", "../threadedComments/threadedComment1.xml"),
        relationship("drawing", "../drawings/drawing1.xml"),
        relationship("drawing", "../drawings/drawing1.xml"),
    ];
    let of_sheet = format!("<Relationships>{}</Relationships>", of_sheet.concat());
    let of_drawing = [
        relationship("chart", "../charts/chart1.xml"),
        relationship("drawing", "../drawings/drawing1.xml"),
    ];
    let of_drawing = format!("<Relationships>{}</Relationships>", of_drawing.concat());
    let parts = [
        ("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.as_str()),
        (
            "xl/comments1.xml",
            "<comments><authors><author>Ann</author></authors><comment><text><r><t>A </t></r><r><t>note</t></r></text></comment>\
             <comment><text><t>[Threaded comment] to be read elsewhere</t></text></comment></comments>",
        ),
        (
            "xl/threadedComments/threadedComment1.xml",
            "<ThreadedComments><threadedComment><text>Is it so?</text></threadedComment></ThreadedComments>",
        ),
        ("xl/drawings/_rels/drawing1.xml.rels", of_drawing.as_str()),
        (
            "xl/drawings/drawing1.xml",
            "<xdr:wsDr><xdr:sp><a:p><a:r><a:t>In a</a:t></a:r><a:r><a:t> box</a:t></a:r></a:p></xdr:sp>\
             <mc:Fallback><a:p><a:t>no</a:t></a:p></mc:Fallback></xdr:wsDr>",
        ),
        (
            "xl/charts/chart1.xml",
            "<c:chart><c:title><a:p><a:t>Rain</a:t></a:p></c:title><c:v>7</c:v></c:chart>",
        ),
    ];
    let sheet = "<worksheet><row><c><v>7</v></c></row></worksheet>";
    let text = "7 | A note | Is it so? | In a box | Rain";
    check(
        "n.xlsx",
        &zipped(&[&[XLSX_BOOK, ("xl/worksheets/sheet1.xml", sheet)][..], &parts].concat()),
        &format!("Title: n.xlsx\nSheets: Costs\nPartial-Text: {text}"),
    );
}

#[test]
fn cells_of_binary_parts() {
    let number = |it: f64| it.to_le_bytes();
    let rich = [&[1][..], &part_string("rich"), &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let page =
        [&[0, 0][..], &part_string("&LTop"), &u32::MAX.to_le_bytes(), &part_string("&P")].concat();
    let sheet = [
        part_record(0, &[0; 17]),
        part_cell(9, PLAIN, &number(-2.5)),
        part_cell(8, PLAIN, &part_string("result")),
        part_cell(10, PLAIN, &[0]),
        part_cell(11, PLAIN, &[0x2a]),
        part_cell(3, PLAIN, &[0x2a]),
        part_cell(62, PLAIN, &rich),
        // Short ones have no column.
        part_record(13, &[DATES, 0, 0, 0, 0xaa, 0xc5, 2, 0]),
        part_record(17, &[&[0; 4], &part_string("short")[..]].concat()),
        part_cell(7, PLAIN, &[0xff; 4]),
        part_record(146, &[]),
        part_record(479, &page),
    ];
    let comments = part_record(637, &[&[0], &part_string("A note")[..]].concat());
    let related = b"<Relationships><Relationship Id=\"r\" Type=\"x/comments\" Target=\"../comments1.bin\"/></Relationships>";
    let others: [(&str, &[u8]); 2] =
        [("xl/worksheets/_rels/sheet1.bin.rels", related), ("xl/comments1.bin", &comments)];
    check(
        "n.xlsb",
        &xlsb_of(&sheet.concat(), &[], &others),
        "Title: n.xlsb\nSheets: Costs\nHeadings: result | rich | short\n\
         Partial-Text: -2.5 result FALSE rich 2024-05-06 short | Top | A note",
    );
}

#[test]
fn binary_parts_with_false_sizes_end() {
    let start = [part_record(0, &[0; 17]), part_cell(6, PLAIN, &[0xff; 8])].concat();
    for tail in [&[2, 0xff, 0xff, 0xff, 0xff][..], &[0xff], &[0x80, 0x80, 0x80]] {
        let rendered = render("n.xlsb", Type::Excel, &xlsb_of(&[&start, tail].concat(), tail, &[]));
        assert!(rendered.contains("sheet1.bin breaks off in the record at byte 37"), "{rendered}");
        assert!(
            rendered.contains("sharedStrings.bin breaks off in the record at byte 0"),
            "{rendered}"
        );
    }
}

/// Returns the lines of the text, as far as cells may stand in them.
fn lines(rows: &[Vec<Content>]) -> String {
    let line = |row: &Vec<Content>| row.iter().map(Content::shown).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = rows.iter().map(line).filter(|it| !it.is_empty()).collect();
    lines.join(" | ")
}

proptest! {
    #[test]
    fn cells_come_out_as_they_went_in(
        rows in proptest::collection::vec(proptest::collection::vec(content(), 0..6), 0..12),
    ) {
        for (name, bytes) in
            [("n.xlsx", xlsx(&rows)), ("n.xlsb", xlsb(&rows)), ("n.xls", xls(&rows)), ("n.ods", ods(&rows))]
        {
            let rendered = render(name, Type::Excel, &bytes);
            let text = rendered.lines().find_map(|it| it.strip_prefix("Partial-Text: "));
            prop_assert_eq!(text.unwrap_or_default(), lines(&rows), "{}", name);
            prop_assert!(!rendered.contains("\n! "), "{}", rendered);
        }
    }

    #[test]
    fn any_records_give_a_record(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0..20_u8, Just(0x3c), Just(0xfd)], 0..300),
    ) {
        let parts: [(&str, &[u8]); 2] = [("xl/styles.bin", &bytes), ("xl/comments1.bin", &bytes)];
        render("n.xlsb", Type::Excel, &xlsb_of(&bytes, &bytes, &[]));
        render("n.xlsb", Type::Excel, &zipped_bytes(&[&[("xl/workbook.bin", &bytes[..])][..], &parts].concat()));
        for start in [&[0x09, 0, 4, 0, 2, 0, 0x10, 0][..], &[9, 4, 6, 0, 0, 4, 0x10, 0, 0, 0], &[9, 8, 4, 0, 0, 6, 0x10, 0]] {
            let rendered = render("n.xls", Type::Excel, &[start, &bytes].concat());
            prop_assert!(rendered.starts_with("Title: "));
        }
    }
}
