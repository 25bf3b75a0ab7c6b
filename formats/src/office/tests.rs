//! Tests of office documents that are made here after the standards.

mod compound;
mod drawings;
mod places;
mod sheets;
mod slides;
mod zipped;

use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::super::testing::{cut, render, render_object};
use crate::Type;
use crate::object::Object;
pub(crate) use compound::{compound, hangul};
pub(crate) use sheets::record;

/// Returns a zip file of these parts.
pub(crate) fn zipped(parts: &[(&str, &str)]) -> Vec<u8> {
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(path, it)| (*path, it.as_bytes())).collect();
    zipped_bytes(&parts)
}

fn zipped_bytes(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in parts {
        writer.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
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

/// The rendering of the properties above.
const PROPERTIES: &str = "Title: The title\nAuthor: Ann | Bob\nDescription: About &c.\nDate: 2024-01-02T03:04:05Z\nDate-Source: document properties\n\
                    Subject: Things\nLanguage: en-GB\nLanguage-Source: declared\nPublisher: Firm\n\
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
            "{PROPERTIES}Headings: One | Two\nURL-References: http://w.example/ | http://f.example/\n\
             Partial-Text: One | Some text here | Two | a | b | field! | A note"
        ),
    );
}

#[test]
fn long_fields_are_cut() {
    let field = "a".repeat(70_000);
    let document = format!("<w:p><w:instrText>{field}</w:instrText><w:fldChar/></w:p>");
    let rendered = render("n.docx", Type::Word, &zipped(&[("word/document.xml", &document)]));
    assert!(rendered.contains("Truncated: paragraph 65536"), "{rendered}");
}

#[test]
fn only_useful_properties_count() {
    let links = "<vt:variant><vt:lpwstr>http://w.example/</vt:lpwstr></vt:variant>".repeat(1_100);
    let long = "a".repeat(70_000);
    let properties = format!(
        "<Properties><HLinks>{links}</HLinks><Template>{long}</Template><Company>Firm</Company></Properties>"
    );
    let parts = [("docProps/app.xml", &*properties), ("word/document.xml", "<a/>")];
    check("n.docx", &zipped(&parts), "Title: n.docx\nPublisher: Firm");
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
            "{PROPERTIES}Sheets: People | Rest\nHeadings: Name | Born | formula\n\
             Partial-Text: Name Born | Ann 36526 | formula"
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
            "{PROPERTIES}Slides: 2\nHeadings: Hello | Second\nURL-References: http://w.example/\n\
             Partial-Text: Hello | there | Second | Point | Say this"
        ),
    );
}

const META: &str = "<office:document-meta><office:meta><dc:title>The title</dc:title>\
    <meta:initial-creator>Ann</meta:initial-creator><dc:creator>Bob</dc:creator><meta:keyword>a1</meta:keyword>\
    <meta:creation-date>2024-01-02T03:04:05.678</meta:creation-date><dc:language>de</dc:language>\
    <meta:generator>LibreOffice/7.4</meta:generator>\
    <meta:document-statistic meta:page-count=\"2\"/></office:meta></office:document-meta>";

const META_TEXT: &str = "Title: The title\nAuthor: Ann\nDate: 2024-01-02T03:04:05\nDate-Source: document properties\nLanguage: de\nLanguage-Source: declared\n\
                         Generator: LibreOffice/7.4\nPages: 2\n";

#[test]
fn a_text_of_open_document() {
    let content = "<office:text><text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>\
        <text:h text:outline-level=\"1\">One</text:h><text:p>Some<text:s text:c=\"99999999\"/><text:span>te</text:span>xt, \
        <text:a xlink:href=\"http://w.example/\">linked</text:a><text:note><text:note-body><text:p>A note</text:p></text:note-body></text:note> on</text:p>\
        <table:table><table:table-row><table:table-cell table:number-columns-repeated=\"99999999\"><text:p>cell</text:p></table:table-cell></table:table-row></table:table>\
        <office:annotation><text:p>remark</text:p></office:annotation></office:text>";
    let expected = format!(
        "{META_TEXT}Headings: One\nURL-References: http://w.example/\n\
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
        &format!("{META_TEXT}Slides: 2\nHeadings: Hello\nPartial-Text: Hello | there | Say this"),
    );
}

#[test]
fn locked_and_broken_documents_are_reported() {
    let manifest = "<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>";
    check(
        "n.odt",
        &zipped(&[("META-INF/manifest.xml", manifest), ("content.xml", "\u{1}\u{2}")]),
        "Title: n.odt\n! locked: is locked by a password",
    );
    let cut = zipped(&[("word/document.xml", "<w:p><w:t>good</w:t></w:p><w:p")]);
    let rendered = render("n.docx", Type::Word, &cut);
    let expected =
        "Title: n.docx\nPartial-Text: good\n! broken: word/document.xml is broken at byte 26: ";
    assert!(rendered.starts_with(expected), "{rendered}");
    check(
        "n.docx",
        &zipped(&[("x", "")]),
        "Title: n.docx\n! broken: has no part that is an office document",
    );
    check("n.doc", b"\0\0", "Title: n.doc\n! broken: is no office document");
    check("n.doc", b"", "Title: n.doc\n! broken: is no office document");
}

#[test]
fn other_formats_may_have_names_of_office_documents() {
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
    // Endless text, and elements nested to the end of the part.
    let much = "<w:p><w:t>x</w:t></w:p>".repeat(200_000);
    let deep = "<w:p>".repeat(200_000);
    for content in [much, deep] {
        let rendered = render("n.docx", Type::Word, &zipped(&[("word/document.xml", &content)]));
        assert!(rendered.len() < 60_000);
    }
    let laughs =
        "<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;\">]><w:p><w:t>&b;.</w:t></w:p>";
    check("n.docx", &zipped(&[("word/document.xml", laughs)]), "Title: n.docx\nPartial-Text: .");
    let attributes = format!("<w:p {}>", "a=\"b\" ".repeat(100_000));
    check("n.docx", &zipped(&[("word/document.xml", &attributes)]), "Title: n.docx");
}

proptest! {
    #[test]
    fn any_part_gives_a_record(
        part in proptest::sample::select(vec![
            "word/document.xml", "word/styles.xml", "xl/workbook.xml", "xl/sharedStrings.xml", "xl/worksheets/sheet1.xml",
            "xl/styles.xml",
            "ppt/presentation.xml", "ppt/slides/slide1.xml", "content.xml", "meta.xml", "docProps/core.xml",
        ]),
        content in "(<|</|/>|>|w:p|w:t|row|c t=\"s\"|c s=\"1\"|v|cellXfs|xf numFmtId=\"14\"|oddHeader|text:h|text:p|draw:page|table:table|si|&amp;|&#99;|&x;| |\\PC){0,80}",
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

#[test]
fn a_long_document_is_the_same_as_a_short_one() {
    let text = "Some words that stand here. ".repeat(100);
    let document =
        format!("<w:document><w:body><w:p><w:t>{text}</w:t></w:p></w:body></w:document>");
    let bytes = zipped(&[CORE, APP, ("word/document.xml", &document)]);
    let whole = Object::whole("http://h.example/d/a.docx", bytes);
    let expected = render_object(&whole, Type::Word);
    assert!(expected.contains("The title") && !expected.contains('!'), "{expected}");
    for front in (8..whole.bytes.len()).step_by(97) {
        assert_eq!(render_object(&cut(&whole, front), Type::Word), expected, "{front}");
    }
    let front = Object { rest: None, ..cut(&whole, 200) };
    let expected = "Title: a.docx\nTruncated: read 200\n! limit: only its first 200 bytes were read, not its directory, \
                    which stands at its end; raise `read_max` to read all of it";
    assert_eq!(render_object(&front, Type::Word), expected);
}
