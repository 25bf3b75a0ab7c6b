//! Tests of fonts of two bytes a character.

use super::super::super::testing::render;
use super::{document, stream};
use crate::Type;

/// Returns a document of one page with this content in fonts of two bytes a character, `/F1`, `/F2`, …: the
/// entries of the font and those of its descendant. All have the font program `font`, if there is one.
fn composite(content: &[u8], font: Option<&[u8]>, fonts: &[(&str, &str)]) -> Vec<u8> {
    let file = font.map_or("", |_| "/FontFile2 4 0 R");
    let names: Vec<String> =
        (0..fonts.len()).map(|it| format!("/F{} {} 0 R", it + 1, 7 + 2 * it)).collect();
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>".to_vec(),
        format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R/Resources<</Font<<{}>>>>>>",
            names.join(" ")
        )
        .into_bytes(),
        stream("", font.unwrap_or_default()),
        stream("", content),
        format!("<</Type/FontDescriptor/FontName/AAAAAA+Some{file}>>").into_bytes(),
    ];
    for (number, (own, descendant)) in fonts.iter().enumerate() {
        let below = 8 + 2 * number;
        objects.push(
            format!("<</Type/Font/Subtype/Type0/BaseFont/AAAAAA+Some/DescendantFonts[{below} 0 R]{own}>>")
                .into_bytes(),
        );
        objects.push(
            format!("<</Type/Font/Subtype/CIDFontType2/BaseFont/AAAAAA+Some/FontDescriptor 6 0 R{descendant}>>")
                .into_bytes(),
        );
    }
    document(&objects, "")
}

/// Returns a font program without outlines whose glyphs 5 and 6 are these letters.
fn program(letters: [u16; 2]) -> Vec<u8> {
    let [first, second] = letters;
    let words = |words: &[u16]| words.iter().flat_map(|it| it.to_be_bytes()).collect::<Vec<u8>>();
    // One subtable of format 4, in segments of one letter each; the last segment ends the table.
    let delta = |letter: u16, glyph: u16| glyph.wrapping_sub(letter);
    let cmap = words(&[
        0,
        1,
        3,
        1,
        0,
        12,
        4,
        40,
        0,
        6,
        4,
        1,
        2,
        first,
        second,
        0xffff,
        0,
        first,
        second,
        0xffff,
        delta(first, 5),
        delta(second, 6),
        1,
        0,
        0,
        0,
    ]);
    let mut head = words(&[1, 0, 1, 0, 0, 0, 0x5f0f, 0x3cf5, 0, 1000]);
    head.resize(54, 0);
    let maxp = words(&[0, 0x5000, 9]);
    let mut bytes = words(&[1, 0, 3, 32, 1, 16]);
    let mut data = Vec::new();
    for (tag, table) in [(b"cmap", cmap), (b"head", head), (b"maxp", maxp)] {
        bytes.extend(tag);
        let offset = 12 + 3 * 16 + data.len();
        for number in [0, offset, table.len()] {
            bytes.extend(u32::try_from(number).unwrap().to_be_bytes());
        }
        data.extend(table);
        data.resize(data.len().next_multiple_of(4), 0);
    }
    bytes.extend(data);
    bytes
}

/// Checks the text of a page.
fn check_text(pdf: &[u8], expected: &str) {
    let record = render("p.pdf", Type::Pdf, pdf);
    let text = record.split_once("Partial-Text: ").map(|(_, text)| text);
    assert_eq!(text, Some(expected), "{record}");
}

#[test]
fn predefined_cmaps_give_text() {
    let ordering =
        |name: &str| format!("/CIDSystemInfo<</Registry(Adobe)/Ordering({name})/Supplement 2>>");
    for (encoding, collection, codes, expected) in [
        ("UniGB-UCS2-H", "GB1", "4E2D6587", "中文"),
        ("UniGB-UTF16-H", "GB1", "4E2D6587", "中文"),
        ("GBK-EUC-H", "GB1", "D6D0CEC441", "中文A"),
        ("ETen-B5-H", "CNS1", "A4A4A4E5", "中文"),
        ("UniCNS-UCS2-H", "CNS1", "4E2D6587", "中文"),
        ("90ms-RKSJ-H", "Japan1", "93FA967B41", "日本A"),
        ("90ms-RKSJ-V", "Japan1", "93FA967B", "日本"),
        ("EUC-H", "Japan1", "C6FCCBDC", "日本"),
        ("H", "Japan1", "467C4B5C", "日本"),
        ("UniJIS-UCS2-V", "Japan1", "65E5672C", "日本"),
        ("UniJIS2004-UTF16-H", "Japan1", "65E5672C", "日本"),
        ("KSCms-UHC-H", "Korea1", "C7D1B1DB", "한글"),
        ("UniKS-UCS2-H", "Korea1", "D55CAE00", "한글"),
        // Codes are CIDs of the collection.
        ("Identity-H", "Japan1", "0EBE0DD1", "眠敷"),
    ] {
        let content = format!("BT /F1 12 Tf 100 700 Td <{codes}> Tj ET");
        let fonts = [(&*format!("/Encoding/{encoding}"), &*ordering(collection))];
        for font in [Some(program([1, 2])), None] {
            check_text(&composite(content.as_bytes(), font.as_deref(), &fonts), expected);
        }
    }
}

#[test]
fn fonts_without_a_collection_are_read_by_their_own_letters() {
    let identity = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>";
    let content = b"BT /F1 12 Tf 100 700 Td <000500060005> Tj ET";
    let font = program([u16::from(b'x'), 0x3b1]);
    for encoding in ["/Encoding/Identity-H", "/Encoding/Identity-V"] {
        check_text(&composite(content, Some(&font), &[(encoding, identity)]), "xαx");
    }
    // Nothing is known of a font that is not embedded.
    let without = render(
        "p.pdf",
        Type::Pdf,
        &composite(content, None, &[("/Encoding/Identity-H", identity)]),
    );
    assert!(!without.contains("Partial-Text"), "{without}");
    // Codes that are said to be Unicode.
    let codes = [("/Encoding/Identity-H/ToUnicode/Identity-H", identity)];
    check_text(&composite(b"BT /F1 12 Tf <00480069> Tj ET", Some(&font), &codes), "Hi");
    // A broken font program, and letters without end.
    for broken in [&b"\0\x01\0\0"[..], &font[..60], &font[..90]] {
        render(
            "p.pdf",
            Type::Pdf,
            &composite(content, Some(broken), &[("/Encoding/Identity-H", identity)]),
        );
    }
}

#[test]
fn namesakes_are_told_apart_by_writing_mode() {
    let japan = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>";
    let fonts = [("/Encoding/UniJIS-UCS2-H", japan), ("/Encoding/90ms-RKSJ-V", japan)];
    let content =
        b"BT /F1 12 Tf 100 700 Td <65E5672C> Tj ET BT /F2 12 Tf 500 700 Td <93FA967B> Tj ET";
    check_text(&composite(content, Some(&program([1, 2])), &fonts), "日本 | 日本");
}

#[test]
fn columns_of_vertical_writing_are_lines() {
    let japan = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>";
    let content = b"BT /F1 12 Tf 500 700 Td <65E5672C> Tj ET BT /F1 12 Tf 480 700 Td <672C65E5> Tj 0 -48 Td <65E5> Tj ET";
    let pdf = composite(content, Some(&program([1, 2])), &[("/Encoding/UniJIS-UCS2-V", japan)]);
    check_text(&pdf, "日本 | 本日 日");
}

#[test]
fn a_damaged_table_tells_what_its_sound_sections_tell() {
    let map = b"/CIDSystemInfo <</Ordering (UC>) >> def /CMapName /UC> def \
        1 beginbfchar <0005> <0048> endbfchar 1 beginbfchar <0007> oops endbfchar \
        1 beginbfrange <0006> <0006> <0069> endbfrange";
    let identity = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>";
    let content = b"BT /F1 12 Tf <000500060007> Tj ET";
    let pdf = |map: &[u8]| {
        // The table is the object behind the font's two.
        let fonts = [("/Encoding/Identity-H/ToUnicode 4 0 R", identity)];
        composite(content, Some(map), &fonts)
    };
    check_text(&pdf(map), "Hi");
    assert!(!render("p.pdf", Type::Pdf, &pdf(b"<<")).contains("Partial-Text"));
}

#[test]
fn common_fonts_that_are_left_out_have_known_glyphs() {
    let content = b"BT /F1 12 Tf <002a0055008100890048> Tj 70 0 Td <00e2010c011c0124> Tj ET";
    let identity = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>";
    let plain = composite(content, None, &[("/Encoding/Identity-H", identity)]);
    let named = |name: &str| {
        let text = String::from_utf8_lossy(&plain).replace("/BaseFont/AAAAAA+Some", name);
        render("p.pdf", Type::Pdf, text.as_bytes())
    };
    for name in ["/BaseFont/Times#20New#20Roman,Bold", "/BaseFont/ArialMT"] {
        let record = named(name);
        assert!(record.ends_with("Partial-Text: Grüße Šěřů"), "{record}");
    }
    // Of this one, only the order of ASCII is known.
    assert!(named("/BaseFont/Verdana").contains("Partial-Text: Gr e"));
    assert!(!named("/BaseFont/Calibri").contains("Partial-Text"));
}

#[test]
fn marks_of_unknown_letters_are_no_text() {
    let map = b"3 beginbfchar <0005> <FFFF> <0006> <FFFD> <0007> <0000> endbfchar";
    let identity = "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>";
    let fonts = [("/Encoding/Identity-H/ToUnicode 4 0 R", identity)];
    let pdf = composite(b"BT /F1 12 Tf <000500060007> Tj ET", Some(map), &fonts);
    assert!(!render("p.pdf", Type::Pdf, &pdf).contains("Partial-Text"));
}
