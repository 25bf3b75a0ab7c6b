//! Tests of DVI: documents made command by command.

use proptest::prelude::*;

use crate::Type;
use crate::testing::render;

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("p.dvi", Type::Dvi, bytes), expected);
}

/// Ten points.
const SIZE: i32 = 655_360;

fn font(number: u8, name: &str, size: i32) -> Vec<u8> {
    let len = u8::try_from(name.len()).unwrap();
    [&[243, number, 0, 0, 0, 0], size.to_be_bytes().as_slice(), &size.to_be_bytes(), &[0, len]]
        .concat()
        .into_iter()
        .chain(name.bytes())
        .collect()
}

fn special(text: &str) -> Vec<u8> {
    [&[239, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

fn right(thousandths: i32) -> Vec<u8> {
    [&[146], (SIZE / 1000 * thousandths).to_be_bytes().as_slice()].concat()
}

fn down(thousandths: i32) -> Vec<u8> {
    [&[160], (SIZE / 1000 * thousandths).to_be_bytes().as_slice()].concat()
}

pub(crate) fn document(pages: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"\xf7\x02\x01\x83\x92\xc0\x1c\x3b\0\0\0\0\x03\xe8\x04 TeX".to_vec();
    bytes.truncate(15);
    bytes[14] = 0;
    for page in pages {
        bytes.extend([&[139], [0; 44].as_slice(), page, &[140]].concat());
    }
    let post = u32::try_from(bytes.len()).unwrap().to_be_bytes();
    bytes.extend([&[248], [0; 26].as_slice()].concat());
    bytes.extend(u16::try_from(pages.len()).unwrap().to_be_bytes());
    bytes.extend([&[249], post.as_slice(), &[2, 223, 223, 223, 223]].concat());
    bytes
}

#[test]
fn words_lines_and_pages() {
    let first = [
        font(0, "cmbx12", SIZE * 3 / 2),
        font(1, "cmr10", SIZE),
        font(2, "cmmi7", SIZE * 7 / 10),
        vec![171],
        b"Knots".to_vec(),
        down(3000),
        // Two words, the first with a kern; then a line that ends in a hyphen.
        vec![172, 141],
        b"T".to_vec(),
        right(-83),
        b"wo".to_vec(),
        right(333),
        b"\x0ces and a".to_vec().into_iter().filter(|it| *it != b' ').collect(),
        right(300),
        b"con-".to_vec(),
        vec![142],
        down(1200),
        vec![141],
        b"nection".to_vec(),
        // An index, and an accent over its letter.
        right(333),
        vec![141],
        b"x".to_vec(),
        down(150),
        vec![173],
        b"i".to_vec(),
        vec![142, 172],
        right(1200),
        vec![0x7f],
        right(-500),
        b"o".to_vec(),
        vec![142],
    ];
    let second = [font(1, "cmr10", SIZE), vec![172], b"End".to_vec()];
    check(
        &document(&[first.concat(), second.concat()]),
        "Title: Knots\nPages: 2\n\
         Partial-Text: Knots | Two fiesanda connection xi ö | End",
    );
}

#[test]
fn hyperref_gives_metadata_and_links() {
    let page = [
        font(0, "ecrm1000", SIZE),
        special(
            "ps:SDict begin [ /Title (On \\344 \\(b\\)) /Author (Ann) /Keywords (a, b) /DOCINFO pdfmark end",
        ),
        special("html:<a href=\"http://o.example/\">"),
        special("ps:SDict begin [ /Action << /Subtype /URI /URI (http://p.example/) >> end"),
        vec![171],
        b"na\x80\xefve".to_vec(),
    ];
    check(
        &document(&[page.concat()]),
        "Title: On ä (b)\nAuthor: Ann\nSubject: a | b\nPages: 1\n\
         URL-References: http://o.example/ | http://p.example/\nPartial-Text: naïve",
    );
}

#[test]
fn hostile_documents_end() {
    let broken = "! broken: is cut off or damaged: a page has no end";
    let pushes = [b"\xf7\x02".as_slice(), &[0; 13], &[141; 1_000_000]].concat();
    check(&pushes, &format!("Title: p.dvi\n{broken}"));
    check(&[b"\xf7\x02".as_slice(), &[0; 13], &[142]].concat(), &format!("Title: p.dvi\n{broken}"));
    let special = [b"\xf7\x02".as_slice(), &[0; 13], &[242, 0xff, 0xff, 0xff, 0xff]].concat();
    check(&special, &format!("Title: p.dvi\n{broken}"));
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(commands in proptest::collection::vec(prop_oneof![
        any::<u8>(), 139..=143_u8, 239..=246_u8, 32..127_u8,
    ], 0..300)) {
        let page = [font(0, "cmr10", SIZE), vec![171], commands];
        render("p.dvi", Type::Dvi, &document(&[page.concat()]));
    }
}
