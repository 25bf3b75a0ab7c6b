//! Tests of the places of texts: each begins where its slide, cell, page or chapter does.

use super::compound::word;
use super::sheets::{part_record, part_string, record, utf16};
use super::{compound, zipped, zipped_bytes};
use crate::object::Object;
use crate::testing::summarize;
use crate::{Settings, Type};

/// Returns a text long enough to have its place named, which begins with its number.
fn part(number: usize) -> String {
    format!("part{number}{}", " words of it".repeat(200))
}

/// Checks the names of the places; the text at each begins with the number of its part.
#[track_caller]
fn check(r#type: Type, bytes: &[u8], names: &[&str]) {
    let object = Object::whole("http://h.example/n", bytes.to_vec());
    let summary = summarize(&object, r#type, &Settings::default(), &|| false);
    let text = summary.record.text("Partial-Text").unwrap();
    let places = summary.record.text("Text-Places").unwrap_or_default();
    let found: Vec<(&str, &str)> = places
        .lines()
        .map(|line| {
            let (name, offset) = line.rsplit_once(' ').unwrap();
            let at = text[offset.parse().unwrap()..].trim_start();
            (name, at.split_whitespace().next().unwrap())
        })
        .collect();
    let parts: Vec<String> = (1..=names.len()).map(|it| format!("part{it}")).collect();
    let expected: Vec<(&str, &str)> =
        names.iter().zip(&parts).map(|(name, part)| (*name, part.as_str())).collect();
    assert_eq!(found, expected, "{:?}", summary.problems);
}

/// Returns relationships to the parts `1.xml` to `3.xml`.
fn related(kind: &str) -> String {
    let one = |it| format!("<Relationship Id=\"r{it}\" Type=\"x/{kind}\" Target=\"{it}.xml\"/>");
    format!("<Relationships>{}</Relationships>", (1..4).map(one).collect::<String>())
}

#[test]
fn slides() {
    const NAMES: [&str; 3] = ["slide 1", "slide 2", "slide 3"];
    let slide = |it| format!("<p:sld><a:p><a:t>{}</a:t></a:p></p:sld>", part(it));
    let list = "<p:sldId r:id=\"r1\"/><p:sldId r:id=\"r2\"/><p:sldId r:id=\"r3\"/>";
    let parts = [
        ("ppt/presentation.xml", format!("<a>{list}</a>")),
        ("ppt/_rels/presentation.xml.rels", related("slide")),
        ("ppt/1.xml", slide(1)),
        ("ppt/2.xml", slide(2)),
        ("ppt/3.xml", slide(3)),
    ];
    let parts: Vec<(&str, &str)> = parts.iter().map(|(path, it)| (*path, it.as_str())).collect();
    check(Type::PowerPoint, &zipped(&parts), &NAMES);
    let slide = |it| format!("<draw:page><text:p>{}</text:p></draw:page>", part(it));
    let slides: String = (1..4).map(slide).collect();
    let content = format!("<office:presentation>{slides}</office:presentation>");
    check(Type::OpenDocument, &zipped(&[("content.xml", &content)]), &NAMES);
    let record = |head: u16, kind: u16, content: &[u8]| {
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&head.to_le_bytes()[..], &kind.to_le_bytes(), &size, content].concat()
    };
    let slide = |it| [record(3, 1011, &[0; 20]), record(0, 4008, part(it).as_bytes())].concat();
    let slides: Vec<u8> = (1..4).flat_map(slide).collect();
    let notes = record(0, 4008, part(4).as_bytes());
    let drawing = record(0, 4008, part(5).as_bytes());
    let stream = [
        record(0xf, 4080, &slides),
        record(0x2f, 4080, &notes),
        record(0xf, 1006, &drawing),
        record(0xf, 1006, &[]),
    ];
    check(
        Type::PowerPoint,
        &compound(&[("PowerPoint Document", &stream.concat())]),
        &["slide 1", "slide 2", "slide 3", "notes", "slides"],
    );
}

const CELLS: [&str; 4] = ["sheet Costs!A1", "sheet Costs!B7", "sheet Rest!AC3", "sheet Rest"];

#[test]
fn cells_of_packages() {
    let cell = |name: &str, it| {
        format!("<c r=\"{name}\" t=\"inlineStr\"><is><t>{}</t></is></c>", part(it))
    };
    let first = format!(
        "<a><row r=\"1\">{}</row><row r=\"2\"><c r=\"A2\"/></row><row r=\"7\"><c r=\"A7\"/>{}<c r=\"C7\"><v>1</v></c></row></a>",
        cell("A1", 1),
        cell("B7", 2)
    );
    let second = format!("<a><row r=\"3\">{}</row></a>", cell("AC3", 3));
    let comments = format!("<a><comment><text><t>{}</t></text></comment></a>", part(4));
    let beside = "<a><Relationship Id=\"r\" Type=\"x/comments\" Target=\"3.xml\"/></a>";
    let book = "<a><sheet name=\"Costs\" r:id=\"r1\"/><sheet name=\"Rest\" r:id=\"r2\"/></a>";
    let parts = [
        ("xl/workbook.xml", book),
        ("xl/_rels/workbook.xml.rels", &related("worksheet")),
        ("xl/1.xml", &first),
        ("xl/2.xml", &second),
        ("xl/_rels/2.xml.rels", beside),
        ("xl/3.xml", &comments),
    ];
    check(Type::Excel, &zipped(&parts), &CELLS);
    let cell = |it| format!("<table:table-cell><text:p>{}</text:p></table:table-cell>", part(it));
    let content = format!(
        "<office:spreadsheet><table:table table:name=\"Costs\"><table:table-row>{}</table:table-row>\
         <table:table-row table:number-rows-repeated=\"5\"><table:table-cell table:number-columns-repeated=\"9\"/></table:table-row>\
         <table:table-row><table:covered-table-cell/>{}{}</table:table-row></table:table>\
         <table:table table:name=\"Rest\"><table:table-row table:number-rows-repeated=\"2\"/>\
         <table:table-row><table:table-cell table:number-columns-repeated=\"28\"/>{}</table:table-row></table:table></office:spreadsheet>",
        cell(1),
        cell(2),
        "<table:table-cell><text:p>x</text:p></table:table-cell>",
        cell(3),
    );
    check(Type::OpenDocument, &zipped(&[("content.xml", &content)]), &CELLS[..3]);
    // One name in two says enough of many rows.
    let row = |it| format!("<row><c t=\"str\"><v>part1 of row {it}</v></c></row>");
    let rows: String = (0..900).map(row).collect();
    let sheet = format!("<a>{rows}</a>");
    let bytes = zipped(&[("xl/workbook.xml", "<a/>"), ("xl/worksheets/sheet1.xml", &sheet)]);
    let object = Object::whole("http://h.example/n", bytes);
    let summary = summarize(&object, Type::Excel, &Settings::default(), &|| false);
    let text = summary.record.text("Partial-Text").unwrap();
    let places = summary.record.text("Text-Places").unwrap();
    assert!(5 < places.lines().count(), "{places}");
    for line in places.lines() {
        let [_, cell, offset] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let row: usize = cell.strip_prefix('A').unwrap().parse().unwrap();
        let expected = format!("part1 of row {}\n", row - 1);
        assert!(text[offset.parse().unwrap()..].starts_with(&expected), "{line}");
    }
}

#[test]
fn cells_of_records() {
    let number = |it: u32| it.to_le_bytes();
    let row = |it| part_record(0, &number(it));
    let cell = |column, it| {
        part_record(6, &[&number(column)[..], &[0; 4], &part_string(&part(it))].concat())
    };
    let name = |id: &str, name: &str| {
        part_record(156, &[&[0; 8][..], &part_string(id), &part_string(name)].concat())
    };
    let book = [name("r1", "Costs"), name("r2", "Rest")].concat();
    let first =
        [row(0), cell(0, 1), row(6), part_record(1, &[0; 8]), cell(1, 2), cell(2, 0)].concat();
    let second = [row(2), cell(28, 3)].concat();
    let related = related("worksheet");
    let parts: [(&str, &[u8]); 4] = [
        ("xl/workbook.bin", &book),
        ("xl/_rels/workbook.bin.rels", related.as_bytes()),
        ("xl/1.xml", &first),
        ("xl/2.xml", &second),
    ];
    check(Type::Excel, &zipped_bytes(&parts), &CELLS[..3]);
    let cell = |row: u8, column: u8, it| {
        let text = part(it);
        let size = u16::try_from(text.len()).unwrap().to_le_bytes();
        let at = [row, 0, column, 0, 0, 0];
        record(0x204, &[&at[..], &size, &[1], &utf16(&text)].concat())
    };
    let start = |kind| record(0x809, &[0, 6, kind, 0]);
    let sheets = [
        [start(16), cell(0, 0, 1), cell(6, 1, 2), record(0x0a, &[])].concat(),
        [start(16), cell(2, 28, 3), record(0x0a, &[])].concat(),
    ];
    let book = |at: usize| {
        let name = |at: usize, name: &[u8]| {
            let at = u32::try_from(at).unwrap().to_le_bytes();
            let size = u8::try_from(name.len()).unwrap();
            record(0x85, &[&at[..], &[0, 0, size, 0], name].concat())
        };
        let second = at + sheets[0].len();
        [start(5), name(second, b"Rest"), name(at, b"Costs"), record(0x0a, &[])].concat()
    };
    let stream = [book(book(0).len()), sheets.concat()].concat();
    check(Type::Excel, &compound(&[("Workbook", &stream)]), &CELLS[..3]);
}

#[test]
fn pages() {
    const NAMES: [&str; 4] = ["page 1", "page 2", "page 3", "page 4"];
    let text = |it| format!("<w:t>{}</w:t>", part(it));
    let document = format!(
        "<w:p><w:r>{}</w:r></w:p><w:p><w:r><w:br w:type=\"page\"/></w:r></w:p>\
         <w:p><w:r><w:lastRenderedPageBreak/>{}</w:r><w:r><w:br/><w:t> 2  more </w:t><w:lastRenderedPageBreak/>{}</w:r></w:p>\
         <w:p><w:r><w:lastRenderedPageBreak/>{}</w:r></w:p>",
        text(1),
        text(2),
        text(3),
        text(4),
    );
    let note = format!("<w:p><w:r>{}</w:r></w:p>", text(5));
    check(
        Type::Word,
        &zipped(&[("word/document.xml", &document), ("word/footnotes.xml", &note)]),
        &[&NAMES[..], &["notes"]].concat(),
    );
    // Breaks alone do not tell on which page a text stands.
    let document = document.replace("<w:lastRenderedPageBreak/>", "");
    check(Type::Word, &zipped(&[("word/document.xml", &document)]), &[]);
    let pages: Vec<String> = (1..5).map(part).collect();
    let rtf = format!("{{\\rtf1 {}\\par}}", pages.join("\\page "));
    check(Type::Rtf, rtf.as_bytes(), &[]);
    let (main, table) = word(&format!("{}\r", pages.join("\u{c}")), b"");
    check(Type::Word, &compound(&[("WordDocument", &main), ("1Table", &table)]), &[]);
}

#[test]
fn many_pages_begin_at_one_offset() {
    let breaks = "<w:lastRenderedPageBreak/>".repeat(100_000);
    let words = " words of it".repeat(1_000);
    let document =
        format!("<w:p><w:t>{}{words}</w:t>{breaks}<w:t>{}</w:t></w:p>", part(1), part(2));
    check(Type::Word, &zipped(&[("word/document.xml", &document)]), &["page 1", "page 100001"]);
}

#[test]
fn chapters() {
    let items: String = (1..4).map(|it| format!("<item id=\"{it}\" href=\"{it}\"/>")).collect();
    let order =
        "<itemref idref=\"1\"/><itemref idref=\"0\"/><itemref idref=\"2\"/><itemref idref=\"3\"/>";
    let pages: Vec<String> = (1..4).map(|it| format!("<p>{}</p>", part(it))).collect();
    let parts = [
        ("b.opf", &*format!("<a>{items}{order}</a>")),
        ("1", &pages[0]),
        ("2", &pages[1]),
        ("3", &pages[2]),
    ];
    check(Type::Epub, &zipped(&parts), &["chapter 1", "chapter 3", "chapter 4"]);
}
