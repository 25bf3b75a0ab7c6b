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

#[test]
fn packages_without_an_end() {
    let document = |text: &str| format!("<w:document><w:p><w:t>{text}</w:t></w:p></w:document>");
    let (document, long) = (document("kept"), "no text ".repeat(1_000));
    let whole = zipped(&[("word/document.xml", &document), ("word/media/x", &long)]);
    let end = memchr::memmem::find(&whole, b"PK\x01\x02").unwrap();
    let fault = "! broken: zip directory cannot be read: ";
    let expected = format!("Title: n.docx\nPartial-Text: kept\n{fault}");
    for cut in [whole.len() - 5, end, end - 20] {
        let rendered = render("n.docx", Type::Word, &whole[..cut]);
        assert!(rendered.starts_with(&expected), "{cut}: {rendered}");
    }
    let slides = zipped(&[("ppt/slides/slide1.xml", "<p:sld><a:p><a:t>on it</a:t></a:p></p:sld>")]);
    let rendered = render("n.pptx", Type::PowerPoint, &slides[..slides.len() - 9]);
    assert!(rendered.starts_with("Title: n.pptx\nSlides: 1\nPartial-Text: on it\n"), "{rendered}");
    // A program that cannot go back writes the sizes behind the content.
    let name = b"word/document.xml";
    let mut entry = [&b"PK\x03\x04\x14\0\x08\0\0\0"[..], &[0; 16], &[17, 0, 0, 0], name].concat();
    entry.extend([document.as_bytes(), b"PK\x07\x08"].concat());
    let size = u32::try_from(document.len()).unwrap().to_le_bytes();
    entry.extend([crc(document.as_bytes()).to_le_bytes(), size, size].concat());
    let rendered = render("n.docx", Type::Word, &entry);
    assert!(rendered.starts_with(&expected) && !rendered.contains("word/"), "{rendered}");
    // Without them the content is all that there is.
    let rendered = render("n.docx", Type::Word, &entry[..entry.len() - 16]);
    assert!(rendered.starts_with(&expected) && rendered.contains("word/"), "{rendered}");
    for cut in 0..entry.len() {
        assert!(render("n.docx", Type::Word, &entry[..cut]).starts_with("Title: n.docx"), "{cut}");
    }
}

/// Returns the checksum of zip.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
