//! Hostile spreadsheets: cells, formats, strings and drawings that promise much or lead in circles.

use crate::made::office::{cell_record, compound};
use crate::made::zip;
use crate::{Case, case};

const MIB: usize = 1 << 20;
const BOOK: (&str, &[u8]) =
    ("xl/workbook.xml", b"<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>");

pub(crate) const CASES: &[Case] = &[
    case("numbers.xlsx", "", || {
        let formats = "<numFmt numFmtId=\"164\" formatCode=\"[[[h\"/>".repeat(100_000);
        let styles = format!("<numFmts>{formats}</numFmts><cellXfs>{}", "<xf/>".repeat(100_000));
        let row = b"<row><c s=\"18446744073709551616\"><v>1e308</v></c><c s=\"7\"><v>-0.1e-999</v></c><c><v>nan</v></c></row>";
        zip(&[
            BOOK,
            ("xl/styles.xml", styles.as_bytes()),
            ("xl/worksheets/sheet1.xml", &row.repeat(100_000)),
        ])
    }),
    case("circle.xlsx", "", || {
        let related = |targets: &[&str]| {
            let one = |it: &&str| {
                format!(
                    "<Relationship Id=\"a\" Type=\"x/drawing\" Target=\"../drawings/{it}.xml\"/>"
                )
            };
            let all: String = targets.iter().map(one).collect();
            format!("<Relationships>{}</Relationships>", all.repeat(20_000))
        };
        zip(&[
            BOOK,
            ("xl/worksheets/sheet1.xml", b"<row><c><v>7</v></c></row>"),
            ("xl/worksheets/_rels/sheet1.xml.rels", related(&["one", "two"]).as_bytes()),
            ("xl/drawings/one.xml", b"<a:p><a:t>words</a:t></a:p>"),
            ("xl/drawings/_rels/one.xml.rels", related(&["one", "two"]).as_bytes()),
            ("xl/drawings/_rels/two.xml.rels", related(&["one", "three"]).as_bytes()),
        ])
    }),
    case("sizes.xlsb", "broken", || {
        let records = [&[0, 0, 6, 12, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 9]].concat();
        zip(&[
            ("xl/workbook.bin", &[0x9c, 0x01, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff]),
            ("xl/worksheets/sheet1.bin", &records),
        ])
    }),
    case("strings.xlsb", "limit", || {
        let item = [19, 5, 0, 0, 0, 0, 0];
        let start = [0x9f, 0x01, 8, 255, 255, 255, 255, 255, 255, 255, 255];
        let cell = [7, 12, 0, 0, 0, 0, 255, 255, 255, 0, 255, 255, 255, 255];
        zip(&[
            ("xl/workbook.bin", b""),
            ("xl/sharedStrings.bin", &[&start[..], &item.repeat(4 * MIB)].concat()),
            ("xl/worksheets/sheet1.bin", &[&[0, 0][..], &cell].concat().repeat(MIB)),
        ])
    }),
    case("charts.xls", "", || {
        let book = [
            cell_record(0x809, &[0, 6, 5, 0]),
            cell_record(0x41e, &[255; 40]).repeat(200),
            cell_record(0x809, &[0, 6, 0x20, 0]).repeat(2_000),
            cell_record(0xbd, &[1; 2_000]).repeat(10),
        ];
        compound(&[("Workbook", &book.concat())])
    }),
    case("numbers.xls", "", || {
        let number = [&[0; 6][..], &f64::MAX.to_le_bytes()].concat();
        [&[0x09, 0x04, 6, 0, 0, 4, 0x10, 0, 0, 0][..], &cell_record(0x203, &number).repeat(MIB)]
            .concat()
    }),
];
