//! Tests of office documents, made here as the standards have them.

use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::super::testing::render;
use crate::typing::Type;

/// A zip file of these parts.
fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in parts {
        writer.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[track_caller]
fn check(name: &str, bytes: &[u8], expected: &str) {
    assert_eq!(render(name, Type::Word, bytes), expected);
}

const CORE: (&str, &str) = (
    "docProps/core.xml",
    "<cp:coreProperties><dc:title>The title</dc:title><dc:creator>Ann;Bob</dc:creator>\
     <cp:keywords>a1, b2</cp:keywords><dc:subject>Things</dc:subject><dc:description>About &amp;c.</dc:description>\
     <dcterms:created>2024-01-02T03:04:05Z</dcterms:created><dc:language>en-GB</dc:language></cp:coreProperties>",
);

const APP: (&str, &str) = (
    "docProps/app.xml",
    "<Properties><Application>Microsoft Office Word</Application><AppVersion>16.0000</AppVersion>\
     <Pages>3</Pages><Company>Firm</Company></Properties>",
);

/// What the properties above say.
const SAID: &str = "Title: The title\nAuthor: Ann | Bob\nDescription: About &c.\nDate: 2024-01-02T03:04:05Z\n\
                    Subject: Things\nLanguage: en-GB\nPublisher: Firm\n\
                    Generator: Microsoft Office Word 16.0000\nPages: 3\n";

#[test]
fn a_text_of_office_open_xml() {
    let document = "<?xml version=\"1.0\"?><w:document><w:body>\
        <w:p><w:pPr><w:pStyle w:val=\"berschrift1\"/></w:pPr><w:r><w:t>One</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space=\"preserve\">Some </w:t></w:r><w:hyperlink r:id=\"r1\"><w:r><w:t>te</w:t></w:r>\
        <w:r><w:t>xt</w:t><w:tab/><w:t>here</w:t></w:r></w:hyperlink><w:del><w:r><w:delText>no</w:delText></w:r></w:del></w:p>\
        <w:p><w:pPr><w:outlineLvl w:val=\"1\"/></w:pPr><w:r><w:t>Two</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        <w:p><w:r><w:fldChar w:fldCharType=\"begin\"/><w:instrText> HYPERLINK \"http://f.example/\" </w:instrText>\
        <w:fldChar w:fldCharType=\"separate\"/><w:t>field</w:t><w:fldChar w:fldCharType=\"end\"/></w:r>\
        <mc:AlternateContent><mc:Choice><w:t>!</w:t></mc:Choice><mc:Fallback><w:t>no</w:t></mc:Fallback></mc:AlternateContent></w:p>\
        </w:body></w:document>";
    let bytes = zipped(&[
        CORE,
        APP,
        (
            "word/styles.xml",
            "<w:styles><w:style w:styleId=\"berschrift1\"><w:name w:val=\"heading 1\"/></w:style></w:styles>",
        ),
        (
            "word/_rels/document.xml.rels",
            "<Relationships><Relationship Id=\"r1\" Type=\"http://x/relationships/hyperlink\" \
             Target=\"http://w.example/\" TargetMode=\"External\"/></Relationships>",
        ),
        ("word/document.xml", document),
        (
            "word/footnotes.xml",
            "<w:footnotes><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnotes>",
        ),
    ]);
    check(
        "n.docx",
        &bytes,
        &format!(
            "{SAID}Headings: One | Two\nURL-References: http://w.example/ | http://f.example/\n\
             Partial-Text: One | Some text here | Two | a | b | field! | A note"
        ),
    );
}

#[test]
fn a_spreadsheet_of_office_open_xml() {
    let bytes = zipped(&[
        CORE,
        APP,
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"People\" r:id=\"r2\"/><sheet name=\"Rest\" r:id=\"r1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"worksheets/sheet1.xml\"/>\
             <Relationship Id=\"r2\" Type=\"x/worksheet\" Target=\"/xl/worksheets/sheet2.xml\"/></Relationships>",
        ),
        (
            "xl/sharedStrings.xml",
            "<sst count=\"4294967295\"><si><t>Name</t></si><si><r><t>A</t></r><r><t>nn</t></r><rPh><t>no</t></rPh></si></sst>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><row><c t=\"str\"><f>x</f><v>formula</v></c></row></worksheet>",
        ),
        (
            "xl/worksheets/sheet2.xml",
            "<worksheet><dimension ref=\"A1:XFD1048576\"/><row><c t=\"s\"><v>0</v></c><c t=\"inlineStr\"><is><t>Born</t></is></c></row>\
             <row><c t=\"s\"><v>1</v></c><c><v>36526</v></c></row><row><c t=\"s\"><v>99</v></c></row></worksheet>",
        ),
    ]);
    check(
        "n.xlsx",
        &bytes,
        &format!(
            "{SAID}Sheets: People | Rest\nHeadings: Name | Born | formula\n\
             Partial-Text: Name Born | Ann | formula"
        ),
    );
}

#[test]
fn slides_of_office_open_xml() {
    let shape = |kind: &str, text: &str| {
        format!(
            "<p:sp><p:nvSpPr><p:nvPr><p:ph type=\"{kind}\"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        )
    };
    let first =
        format!("<p:sld>{}{}</p:sld>", shape("ctrTitle", "Hello"), shape("subTitle", "there"));
    let second = format!("<p:sld>{}{}</p:sld>", shape("body", "Point"), shape("title", "Second"));
    let notes = format!("<p:notes>{}{}</p:notes>", shape("body", "Say this"), shape("sldNum", "2"));
    let bytes = zipped(&[
        CORE,
        APP,
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"r7\"/><p:sldId id=\"257\" r:id=\"r2\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id=\"r2\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/>\
             <Relationship Id=\"r7\" Type=\"x/slide\" Target=\"slides/slide2.xml\"/></Relationships>",
        ),
        (
            "ppt/slides/_rels/slide1.xml.rels",
            "<Relationships><Relationship Id=\"a\" Type=\"x/notesSlide\" Target=\"../notesSlides/notesSlide1.xml\"/>\
             <Relationship Id=\"b\" Type=\"x/hyperlink\" Target=\"http://w.example/\" TargetMode=\"External\"/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", &second),
        ("ppt/slides/slide2.xml", &first),
        ("ppt/notesSlides/notesSlide1.xml", &notes),
    ]);
    check(
        "n.pptx",
        &bytes,
        &format!(
            "{SAID}Slides: 2\nHeadings: Hello | Second\nURL-References: http://w.example/\n\
             Partial-Text: Hello | there | Second | Point | Say this"
        ),
    );
}

const META: &str = "<office:document-meta><office:meta><dc:title>The title</dc:title>\
    <meta:initial-creator>Ann</meta:initial-creator><dc:creator>Bob</dc:creator><meta:keyword>a1</meta:keyword>\
    <meta:creation-date>2024-01-02T03:04:05.678</meta:creation-date><dc:language>de</dc:language>\
    <meta:generator>LibreOffice/7.4</meta:generator>\
    <meta:document-statistic meta:page-count=\"2\"/></office:meta></office:document-meta>";

const META_SAID: &str = "Title: The title\nAuthor: Ann\nDate: 2024-01-02T03:04:05\nLanguage: de\n\
                         Generator: LibreOffice/7.4\nPages: 2\n";

#[test]
fn a_text_of_open_document() {
    let content = "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>\
        <text:h text:outline-level=\"1\">One</text:h><text:p>Some<text:s text:c=\"99999999\"/><text:span>te</text:span>xt, \
        <text:a xlink:href=\"http://w.example/\">linked</text:a><text:note><text:note-body><text:p>A note</text:p></text:note-body></text:note> on</text:p>\
        <table:table><table:table-row><table:table-cell table:number-columns-repeated=\"99999999\"><text:p>cell</text:p></table:table-cell></table:table-row></table:table>\
        <office:annotation><text:p>remark</text:p></office:annotation></office:text>";
    let expected = format!(
        "{META_SAID}Headings: One\nURL-References: http://w.example/\n\
         Partial-Text: One | Some text, linked A note | on | cell"
    );
    check("n.odt", &zipped(&[("meta.xml", META), ("content.xml", content)]), &expected);
    // The same in one file.
    let meta = META.replace("office:document-meta", "office:x");
    let flat = format!("<?xml version=\"1.0\"?><office:document>{meta}{content}</office:document>");
    check("n.fodt", flat.as_bytes(), &expected);
}

#[test]
fn sheets_and_slides_of_open_document() {
    let row = |cells: &str| format!("<table:table-row>{cells}</table:table-row>");
    let cell = |text: &str| format!("<table:table-cell><text:p>{text}</text:p></table:table-cell>");
    let content = format!(
        "<office:spreadsheet><table:table table:name=\"People\">{}{}</table:table><table:table table:name=\"Rest\"/></office:spreadsheet>",
        row(&(cell("Name") + &cell("Born"))),
        row(&(cell("Ann") + &cell("2000-01-01"))),
    );
    check(
        "n.ods",
        &zipped(&[("content.xml", &content)]),
        "Title: n.ods\nSheets: People | Rest\nHeadings: Name | Born\nPartial-Text: Name Born | Ann 2000-01-01",
    );
    let content = "<office:presentation><draw:page><draw:frame presentation:class=\"title\"><draw:text-box><text:p>Hello</text:p></draw:text-box></draw:frame>\
        <draw:frame><text:p>there</text:p></draw:frame><presentation:notes><text:p>Say this</text:p></presentation:notes></draw:page><draw:page/></office:presentation>";
    check(
        "n.odp",
        &zipped(&[("meta.xml", META), ("content.xml", content)]),
        &format!("{META_SAID}Slides: 2\nHeadings: Hello\nPartial-Text: Hello | there | Say this"),
    );
}

#[test]
fn what_is_locked_or_broken_is_said() {
    let manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>";
    check(
        "n.odt",
        &zipped(&[("META-INF/manifest.xml", manifest), ("content.xml", "\u{1}\u{2}")]),
        "Title: n.odt\n! locked: is locked by a password",
    );
    let cut = zipped(&[("word/document.xml", "<w:p><w:t>good</w:t></w:p><w:p")]);
    let said = render("n.docx", Type::Word, &cut);
    let expected =
        "Title: n.docx\nPartial-Text: good\n! broken: word/document.xml is broken at byte 26: ";
    assert!(said.starts_with(expected), "{said}");
    check(
        "n.docx",
        &zipped(&[("x", "")]),
        "Title: n.docx\n! broken: has no part that is an office document",
    );
    check("n.doc", b"\0\0", "Title: n.doc\n! broken: is no office document");
    check("n.doc", b"", "Title: n.doc\n! broken: is no office document");
}

#[test]
fn other_things_go_by_the_names_of_office_documents() {
    check("n.doc", b"{\\rtf1 words}", "Title: words\nDescription: words\nPartial-Text: words");
    check(
        "n.xls",
        b"<html><title>t</title><table><tr><td>a<td>b</table>",
        "Title: t\nPartial-Text: a b",
    );
    check("n.doc", b"words\n", "Title: words\nPartial-Text: words");
    assert_eq!(
        render("n.xls", Type::Excel, b"a\tb\n1\tx\n"),
        "Title: n.xls\nColumns: 2\nHeadings: a | b\nRows: 1\nPartial-Text: a b | 1 x"
    );
}

#[test]
fn bombs_are_cut() {
    // Text without end; and elements nested as deep as the part is long.
    let much = "<w:p><w:t>x</w:t></w:p>".repeat(200_000);
    let deep = "<w:p>".repeat(200_000);
    for content in [much, deep] {
        let said = render("n.docx", Type::Word, &zipped(&[("word/document.xml", &content)]));
        assert!(said.len() < 60_000);
    }
    let laughs =
        "<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><w:p><w:t>&b;.</w:t></w:p>";
    check("n.docx", &zipped(&[("word/document.xml", laughs)]), "Title: n.docx\nPartial-Text: .");
    let attributes = format!("<w:p {}>", "a=\"b\" ".repeat(100_000));
    check("n.docx", &zipped(&[("word/document.xml", &attributes)]), "Title: n.docx");
}

/// A compound file of these streams, each in big sectors.
fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
    const SECTOR: usize = 512;
    let mut sectors: Vec<u8> = Vec::new();
    let mut table: Vec<u32> = Vec::new();
    let mut add = |bytes: &[u8], mark: u32| -> u32 {
        let first = u32::try_from(table.len()).unwrap();
        let count = bytes.len().div_ceil(SECTOR).max(1);
        for number in 0..count {
            let next = first + u32::try_from(number).unwrap() + 1;
            table.push(if number + 1 == count { mark } else { next });
        }
        sectors.extend_from_slice(bytes);
        sectors.resize(table.len() * SECTOR, 0);
        first
    };
    let mut directory = Vec::new();
    let mut entry = |name: &str, kind: u8, right: u32, child: u32, first: u32, size: usize| {
        let mut entry = vec![0; 128];
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry[..units.len()].copy_from_slice(&units);
        entry[64] = u8::try_from(units.len() + 2).unwrap();
        entry[66] = kind;
        entry[68..72].copy_from_slice(&u32::MAX.to_le_bytes());
        entry[72..76].copy_from_slice(&right.to_le_bytes());
        entry[76..80].copy_from_slice(&child.to_le_bytes());
        entry[116..120].copy_from_slice(&first.to_le_bytes());
        entry[120..124].copy_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
        directory.extend_from_slice(&entry);
    };
    entry("Root Entry", 5, u32::MAX, 1, 0xffff_fffe, 0);
    for (number, (name, bytes)) in streams.iter().enumerate() {
        // Small ones would be elsewhere.
        let bytes = [*bytes, &vec![0; 4096_usize.saturating_sub(bytes.len())]].concat();
        let first = add(&bytes, 0xffff_fffe);
        let is_last = number + 1 == streams.len();
        let right = if is_last { u32::MAX } else { u32::try_from(number).unwrap() + 2 };
        entry(name, 2, right, u32::MAX, first, bytes.len());
    }
    let directory_first = add(&directory, 0xffff_fffe);
    let table_first = add(&[0; SECTOR], 0xffff_fffd);
    assert!(table.len() <= SECTOR / 4);
    table.resize(SECTOR / 4, u32::MAX);
    let table: Vec<u8> = table.into_iter().flat_map(u32::to_le_bytes).collect();
    let at = usize::try_from(table_first).unwrap() * SECTOR;
    sectors[at..at + SECTOR].copy_from_slice(&table);
    let mut header = vec![0; SECTOR];
    header[..8].copy_from_slice(super::COMPOUND);
    header[0x1e..0x20].copy_from_slice(&9_u16.to_le_bytes());
    header[0x20..0x22].copy_from_slice(&6_u16.to_le_bytes());
    header[0x30..0x34].copy_from_slice(&directory_first.to_le_bytes());
    for place in [0x3c, 0x44] {
        header[place..place + 4].copy_from_slice(&0xffff_fffe_u32.to_le_bytes());
    }
    header[0x4c..].fill(0xff);
    header[0x4c..0x50].copy_from_slice(&table_first.to_le_bytes());
    [header, sectors].concat()
}

/// A property set that says these, all of kind 30.
fn property_set(properties: &[(u32, &[u8])]) -> Vec<u8> {
    let mut set = vec![0; 44];
    set.extend(48_u32.to_le_bytes());
    let count = u32::try_from(properties.len()).unwrap() + 1;
    let mut section = [0_u32.to_le_bytes(), count.to_le_bytes()].concat();
    let mut values = Vec::new();
    let mut put = |id: u32, value: Vec<u8>| {
        let at = 8 + 8 * count + u32::try_from(values.len()).unwrap();
        section.extend(id.to_le_bytes());
        section.extend(at.to_le_bytes());
        values.extend(value);
        values.resize(values.len().next_multiple_of(4), 0);
    };
    put(1, [2_u32.to_le_bytes(), 1251_u32.to_le_bytes()].concat());
    for (id, text) in properties {
        let size = u32::try_from(text.len() + 1).unwrap().to_le_bytes();
        put(*id, [&30_u32.to_le_bytes()[..], &size, text, b"\0"].concat());
    }
    [set, section, values].concat()
}

/// A text for Word: a wide piece and a narrow one.
fn word(wide: &str, narrow: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let units: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut main = vec![0; 0x400];
    main[..4].copy_from_slice(&[0xec, 0xa5, 0xc1, 0]);
    main[0x0b] = 2;
    let (wide_at, narrow_at) = (0x400_u32, 0x400 + u32::try_from(units.len()).unwrap());
    main.extend(&units);
    main.extend(narrow);
    let first = u32::try_from(units.len() / 2).unwrap();
    let second = first + u32::try_from(narrow.len()).unwrap();
    let mut pieces = Vec::new();
    for position in [0, first, second] {
        pieces.extend(position.to_le_bytes());
    }
    for place in [wide_at, (narrow_at * 2) | 0x4000_0000] {
        pieces.extend([0, 0]);
        pieces.extend(place.to_le_bytes());
        pieces.extend([0, 0]);
    }
    // Shared properties first, to be passed over.
    let mut table = vec![1, 2, 0, 9, 9, 2];
    table.extend(u32::try_from(pieces.len()).unwrap().to_le_bytes());
    table.extend(pieces);
    main[0x1a6..0x1aa].copy_from_slice(&u32::try_from(table.len()).unwrap().to_le_bytes());
    // A page of properties: the first paragraph is a heading, what follows is text.
    main.resize(main.len().next_multiple_of(512), 0);
    let page_at = u32::try_from(main.len() / 512).unwrap();
    let first_bytes = wide.split('\r').next().unwrap().encode_utf16().count() * 2 + 2;
    let first_end = 0x400 + u32::try_from(first_bytes).unwrap();
    let mut page = vec![0; 512];
    for (number, position) in [0x400, first_end, 0x1000].into_iter().enumerate() {
        page[4 * number..4 * number + 4].copy_from_slice(&position.to_le_bytes());
    }
    (page[12], page[25], page[511]) = (100, 110, 2);
    page[200..203].copy_from_slice(&[2, 1, 0]);
    page[220..224].copy_from_slice(&[0, 1, 0, 0]);
    main.extend(page);
    main[0x102..0x106].copy_from_slice(&u32::try_from(table.len()).unwrap().to_le_bytes());
    main[0x106..0x10a].copy_from_slice(&12_u32.to_le_bytes());
    for number in [0x400, 0x1000, page_at] {
        table.extend(number.to_le_bytes());
    }
    (main, table)
}

#[test]
fn a_text_of_word() {
    let wide = "First Ünit\r\u{13} HYPERLINK \"http://w.example/\" \u{14}a link\u{15} it is.\r";
    let (main, table) = word(wide, b"a\x07b\x07\x07\x93q\x94");
    let set = property_set(&[(2, b"\xc4\xe0"), (4, b"Ann"), (5, b"a1 b2")]);
    let bytes =
        compound(&[("\u{5}SummaryInformation", &set), ("WordDocument", &main), ("1Table", &table)]);
    check(
        "n.doc",
        &bytes,
        "Title: Да\nAuthor: Ann\nHeadings: First Ünit\nURL-References: http://w.example/\n\
         Partial-Text: First Ünit | a link it is. | a b “q”",
    );
    let mut locked = main.clone();
    locked[0x0b] = 3;
    check(
        "n.doc",
        &compound(&[("WordDocument", &locked), ("1Table", &table)]),
        "Title: n.doc\n! locked: is locked by a password",
    );
    check(
        "n.doc",
        &compound(&[("EncryptedPackage", b"")]),
        "Title: n.doc\n! locked: is locked by a password",
    );
}

fn record(kind: u16, content: &[u8]) -> Vec<u8> {
    let size = u16::try_from(content.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &size, content].concat()
}

#[test]
fn a_spreadsheet_of_excel() {
    let sheet = |name: &[u8]| {
        let size = u8::try_from(name.len()).unwrap();
        record(0x85, &[&[0, 0, 0, 0, 0, 0, size, 0], name].concat())
    };
    let label =
        |row: u8, column: u8, index: u8| record(0xfd, &[row, 0, column, 0, 0, 0, index, 0, 0, 0]);
    // Three strings, the last of which goes on in the next record, there with sixteen bits.
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
        sheet(b"People"),
        sheet(b"Rest"),
        record(0xfc, &shared.concat()),
        record(0x3c, &more),
        record(0x0a, &[]),
        record(0x809, &[0, 6, 16, 0]),
        label(0, 0, 0),
        label(0, 1, 1),
        label(1, 0, 2),
        label(1, 1, 200),
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
fn slides_of_powerpoint() {
    let record = |head: u16, kind: u16, content: &[u8]| {
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&head.to_le_bytes()[..], &kind.to_le_bytes(), &size, content].concat()
    };
    let header = |kind: u8| record(0, 3999, &[kind, 0, 0, 0]);
    let wide = |text: &str| {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        record(0, 4000, &units)
    };
    let narrow = |text: &[u8]| record(0, 4008, text);
    let slides = [
        record(3, 1011, &[0; 20]),
        header(0),
        wide("Hello\u{b}you"),
        header(1),
        narrow(b"one\rtw\xf6"),
        record(3, 1011, &[0; 20]),
        header(6),
        narrow(b"Second"),
    ];
    let master = [record(3, 1011, &[0; 20]), header(0), narrow(b"Click to edit")];
    let document = [
        record(0x1f, 4080, &master.concat()),
        record(0xf, 4080, &slides.concat()),
        record(0x2f, 4080, &record(3, 1011, &[0; 20])),
    ];
    let stream = [
        record(0xf, 1016, &narrow(b"Click to edit")),
        record(0xf, 1000, &document.concat()),
        record(0xf, 1006, &[header(4), narrow(b"in a box"), header(4), narrow(b"*")].concat()),
    ];
    check(
        "n.ppt",
        &compound(&[("PowerPoint Document", &stream.concat())]),
        "Title: Hello you\nSlides: 2\nHeadings: Hello you | Second\n\
         Partial-Text: Hello you | one | twö | Second | in a box",
    );
}

#[test]
fn compound_files_that_lie_end() {
    let (main, table) = word("words\r", b"more");
    let good = compound(&[("WordDocument", &main), ("1Table", &table)]);
    let said = render("n.doc", Type::Word, &good);
    assert!(said.ends_with("Partial-Text: words | more"), "{said}");
    // Every number that may be a place or a length, in turn at its most and as a loop.
    for at in (0..0x200).chain(good.len() - 2048..good.len()).step_by(4) {
        for value in [u32::MAX, 0, 1, 0x7fff_ffff] {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert!(render("n.doc", Type::Word, &bytes).starts_with("Title: "));
        }
    }
}

proptest! {
    #[test]
    fn any_compound_file_gives_a_record(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..40),
        cut in any::<proptest::sample::Index>(),
        stream in proptest::sample::select(vec!["WordDocument", "Workbook", "PowerPoint Document"]),
        content in proptest::collection::vec(prop_oneof![any::<u8>(), 0..4_u8, Just(0xfc)], 0..300),
    ) {
        let (main, table) = word("words\r", b"more");
        let set = property_set(&[(2, b"title")]);
        let main = if stream == "WordDocument" { main } else { content };
        let mut bytes = compound(&[("\u{5}SummaryInformation", &set), (stream, &main), ("1Table", &table)]);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(1 + cut.index(bytes.len()).max(bytes.len() / 2));
        prop_assert!(render("n.doc", Type::Word, &bytes).starts_with("Title: "));
    }

    #[test]
    fn any_part_gives_a_record(
        part in proptest::sample::select(vec![
            "word/document.xml", "word/styles.xml", "xl/workbook.xml", "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml",
            "ppt/presentation.xml", "ppt/slides/slide1.xml", "content.xml", "meta.xml", "docProps/core.xml",
        ]),
        content in "(<|</|/>|>|w:p|w:t|row|c t=\"s\"|v|text:h|text:p|draw:page|table:table|si|&amp;|&#99;|&x;| |\\PC){0,80}",
    ) {
        let others = ["word/document.xml", "xl/workbook.xml", "ppt/presentation.xml", "content.xml"];
        for main in others {
            let mut parts = vec![(part, content.as_str())];
            if main != part {
                parts.push((main, "<x/>"));
            }
            prop_assert!(render("n", Type::Word, &zipped(&parts)).starts_with("Title: "));
        }
    }
}
