//! Tests of the documents of other programs, in zip and compound files.

use super::super::super::testing::render;
use super::compound::compound;
use super::{CORE, zipped};
use crate::Type;

#[track_caller]
fn check(r#type: Type, bytes: &[u8], expected: &str) {
    assert_eq!(render("n", r#type, bytes), expected);
}

#[test]
fn documents_of_other_programs_in_zip_files() {
    let page = "<PageContents><Shapes><Shape><Text><cp IX=\"0\"/>Two <b/>ropes\n</Text></Shape><Shape><Text>hold</Text></Shape></Shapes></PageContents>";
    check(
        Type::Drawing,
        &zipped(&[
            CORE,
            ("visio/document.xml", "<a/>"),
            ("visio/pages/pages.xml", "<a>no</a>"),
            ("visio/pages/page1.xml", page),
        ]),
        "Title: The title\nAuthor: Ann | Bob\nDescription: About &c.\nDate: 2024-01-02T03:04:05Z\nDate-Source: document properties\nSubject: Things\n\
         Language: en-GB\nLanguage-Source: declared\nKind: Visio drawing\nPartial-Text: Two ropes | hold",
    );
    let page = "<FixedPage><Glyphs UnicodeString=\"Two ropes\"/><Path/><Glyphs UnicodeString=\"hold &amp; more\"/></FixedPage>";
    check(
        Type::PageLayout,
        &zipped(&[("FixedDocSeq.fdseq", "<a/>"), ("Documents/1/Pages/1.fpage", page)]),
        "Title: n\nKind: XPS document\nPartial-Text: Two ropes | hold & more",
    );
    let story = "<Story><ParagraphStyleRange><CharacterStyleRange><Content>Two</Content><Content> ropes</Content><Br/><Content>hold</Content></CharacterStyleRange></ParagraphStyleRange></Story>";
    check(
        Type::PageLayout,
        &zipped(&[("designmap.xml", "<a/>"), ("Stories/Story_u1.xml", story)]),
        "Title: n\nKind: InDesign document (IDML)\nPartial-Text: Two ropes | hold",
    );
    check(
        Type::WordProcessor,
        &zipped(&[(
            "Contents/section0.xml",
            "<hs:sec><hp:p><hp:run><hp:t>Two ropes</hp:t></hp:run></hp:p><hp:p><hp:t>hold</hp:t></hp:p></hs:sec>",
        )]),
        "Title: n\nKind: Hangul document\nPartial-Text: Two ropes | hold",
    );
    check(
        Type::Presentation,
        &zipped(&[(
            "index.apxl",
            "<key:presentation><sf:p>Two <sf:span>ropes</sf:span></sf:p></key:presentation>",
        )]),
        "Title: n\nKind: Keynote slides\nPartial-Text: Two ropes",
    );
    check(
        Type::Spreadsheet,
        &zipped(&[("index.xml", "<ls:document><sf:t><sf:ct sfa:s=\"Ulm\"/></sf:t></ls:document>")]),
        "Title: n\nKind: iWork document\nPartial-Text: Ulm",
    );
    check(
        Type::WordProcessor,
        &zipped(&[("Index/Document.iwa", "x")]),
        "Title: n\nKind: iWork document (2013 or later)",
    );
    check(
        Type::Drawing,
        &zipped(&[("a.txt", "x")]),
        "Title: n\n! broken: has no part that is an office document",
    );
}

#[test]
fn documents_of_other_programs_in_compound_files() {
    let text: Vec<u8> = "Two ropes hold".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(
        Type::WordProcessor,
        &compound(&[("PrvText", &text)]),
        "Title: n\nKind: Hangul document\nPartial-Text: Two ropes hold",
    );
    let letter = [&b"\xffWPC\x10\0\0\0\x01\x0a\x02\x01\0\0\0\0"[..], b"Two\x80ropes"].concat();
    check(
        Type::WordProcessor,
        &compound(&[("PerfectOffice_MAIN", &letter)]),
        "Title: n\nKind: WordPerfect document\nPartial-Text: Two ropes",
    );
    let found = render("n", Type::PageLayout, &compound(&[("Quill", &text)]));
    assert!(found.contains("Two ropes hold"), "{found}");
}
