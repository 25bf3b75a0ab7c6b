//! Tests of office documents from before 2007, in compound files made here.

use std::io::Write;

use proptest::prelude::*;

use super::super::super::testing::render;
use super::check;
use crate::Type;
use crate::office::compound::ROOT;
use crate::office::compound::tree::Tree;
use crate::office::{Inside, inside};

/// Returns a compound file of these streams, each in big sectors.
pub(crate) fn compound(streams: &[(&str, &[u8])]) -> Vec<u8> {
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
        // Shorter streams would be in small sectors.
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
    header[..8].copy_from_slice(super::super::COMPOUND);
    header[0x1e..0x20].copy_from_slice(&9_u16.to_le_bytes());
    header[0x20..0x22].copy_from_slice(&6_u16.to_le_bytes());
    header[0x30..0x34].copy_from_slice(&directory_first.to_le_bytes());
    for at in [0x3c, 0x44] {
        header[at..at + 4].copy_from_slice(&0xffff_fffe_u32.to_le_bytes());
    }
    header[0x4c..].fill(0xff);
    header[0x4c..0x50].copy_from_slice(&table_first.to_le_bytes());
    [header, sectors].concat()
}

/// Returns a property set with these values, all of kind 30.
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

/// Returns a Word document's stream and table: a wide piece and a narrow one.
pub(super) fn word(wide: &str, narrow: &[u8]) -> (Vec<u8>, Vec<u8>) {
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
    for offset in [wide_at, (narrow_at * 2) | 0x4000_0000] {
        pieces.extend([0, 0]);
        pieces.extend(offset.to_le_bytes());
        pieces.extend([0, 0]);
    }
    // Shared properties come first, and are skipped.
    let mut table = vec![1, 2, 0, 9, 9, 2];
    table.extend(u32::try_from(pieces.len()).unwrap().to_le_bytes());
    table.extend(pieces);
    main[0x1a6..0x1aa].copy_from_slice(&u32::try_from(table.len()).unwrap().to_le_bytes());
    // A page of properties: the first paragraph is a heading, the others are text.
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

/// Returns the stream of a document of Word 6 with these flags, and pieces of its text in this order.
fn old_word(flags: u16, text: &[u8], pieces: &[(u32, u32)]) -> Vec<u8> {
    let mut main = vec![0; 0x300];
    main[..4].copy_from_slice(&[0x99, 0xa6, 0x68, 0]);
    main[0x0a..0x0c].copy_from_slice(&flags.to_le_bytes());
    main.extend(text);
    let end = u32::try_from(main.len()).unwrap();
    main[0x18..0x1c].copy_from_slice(&0x300_u32.to_le_bytes());
    main[0x1c..0x20].copy_from_slice(&end.to_le_bytes());
    let (mut positions, mut places) = (vec![0; 4], Vec::new());
    for (offset, characters) in pieces {
        let last = u32::from_le_bytes(*positions.last_chunk().unwrap());
        positions.extend((last + characters).to_le_bytes());
        places.extend([&[0x60, 0][..], &(0x300 + offset).to_le_bytes(), &[0; 2]].concat());
    }
    let size = u32::try_from(positions.len() + places.len()).unwrap();
    main[0x160..0x164].copy_from_slice(&end.to_le_bytes());
    main[0x164..0x168].copy_from_slice(&(size + 5).to_le_bytes());
    [&main[..], &[2], &size.to_le_bytes(), &positions, &places].concat()
}

#[test]
fn texts_of_word_before_97() {
    let check = |main: &[u8], expected: &str| {
        let expected = format!("Title: n.doc\nPartial-Text: {expected}");
        check("n.doc", &compound(&[("WordDocument", main)]), &expected);
    };
    let wide: Vec<u8> = "tail\rŻ head\r".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(&old_word(0, b"a\x93b\x94\rc", &[]), "a“b” | c");
    check(&old_word(0x1000, &wide, &[]), "tail | Ż head");
    // After "fast save", the text is not in order, and not all of it counts.
    check(&old_word(4, b"two\rold\rone\r", &[(8, 4), (0, 4)]), "one | two");
    check(&old_word(0x1004, &wide, &[(10, 7), (0, 5)]), "Ż head | tail");
    // A table that is lost.
    let mut damaged = old_word(4, b"all of it", &[]);
    damaged[0x164..0x168].fill(0);
    check(&damaged, "all of it");
}

#[test]
fn documents_in_documents() {
    let mut tree = Tree::new();
    let add = |tree: &mut Tree, storage: usize, text: &str| {
        let (main, table) = word(text, b"");
        tree.add(storage, "WordDocument", Some(main));
        tree.add(storage, "1Table", Some(table));
    };
    add(&mut tree, ROOT, "Outside\rtext\r");
    let pool = tree.add(ROOT, "ObjectPool", None);
    let second = tree.add(pool, "_2", None);
    tree.add(second, "WordDocument", Some(vec![0; 40]));
    let first = tree.add(pool, "_1", None);
    add(&mut tree, first, "Head\rinside\r");
    let pool = tree.add(first, "ObjectPool", None);
    let deep = tree.add(pool, "_1", None);
    add(&mut tree, deep, "Deep\rinside\r");
    check(
        "n.doc",
        &tree.into_bytes(),
        "Title: Outside\nHeadings: Outside | Head | Deep\nPartial-Text: Outside | text | Head | inside | \
         Deep | inside\n! broken: has an embedded document that has a text that cannot be found",
    );
}

/// Returns a document of Hangul with these sections.
pub(crate) fn hangul(flags: u8, sections: &[&[u8]]) -> Vec<u8> {
    let mut header = [&b"HWP Document File"[..], &[0; 239]].concat();
    header[36] = flags;
    let mut tree = Tree::new();
    tree.add(ROOT, "FileHeader", Some(header));
    tree.add(ROOT, "\u{5}HwpSummaryInformation", Some(vec![1]));
    let storage = tree.add(ROOT, "BodyText", None);
    for (number, section) in sections.iter().enumerate() {
        tree.add(storage, &format!("Section{number}"), Some(section.to_vec()));
    }
    tree.into_bytes()
}

#[test]
fn a_document_of_hangul() {
    let units = |units: &[u16]| units.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let text = [&[0xc548, 0xb155, 9, 1, 2, 3, 4, 5, 6, 9, u16::from(b'x'), 13][..], &[32; 2_100]];
    let short = units(&[0xc138, 24, 0xacc4]);
    let record = |text: &[u8]| {
        let size = u32::try_from(text.len()).unwrap();
        let (inside, after) =
            if size < 0xfff { (size, vec![]) } else { (0xfff, size.to_le_bytes().to_vec()) };
        [&(67 | inside << 20).to_le_bytes()[..], &after, text].concat()
    };
    let other = [&(66_u32 | 4 << 20).to_le_bytes()[..], b"none"].concat();
    let section = [other, record(&units(&text.concat())), record(&short)].concat();
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&section).unwrap();
    let packed = encoder.finish().unwrap();
    let file = |flags, section: &[u8]| hangul(flags, &[section]);
    let expected = "Title: n.hwp\nKind: Hangul document\nPartial-Text: 안녕 x | 세-계";
    check("n.hwp", &file(1, &packed), expected);
    check("n.hwp", &file(0, &section), expected);
    check(
        "n.hwp",
        &file(3, &packed),
        "Title: n.hwp\nKind: Hangul document\n! locked: is locked by a password",
    );
    let broken = "! broken: has a section that cannot be unpacked: ";
    let rendered = render("n.hwp", Type::Word, &file(1, b"\xff\xff"));
    assert!(rendered.contains(broken), "{rendered}");
    assert!(matches!(inside(&file(0, b"")), Inside::Known(_, "Hangul document")));
}

#[test]
fn a_document_of_publisher() {
    let text: Vec<u8> = "One\rtwo words".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    let place = [&[24, 0][..], b"TEXT", &[0; 6], b"TEXT", &56_u32.to_le_bytes(), &length].concat();
    let contents = [&b"CHNKINK "[..], &[0; 24], &place, &text].concat();
    let mut tree = Tree::new();
    let quill = tree.add(ROOT, "Quill", None);
    let inner = tree.add(quill, "QuillSub", None);
    tree.add(inner, "CONTENTS", Some(contents));
    check(
        "n.pub",
        &tree.into_bytes(),
        "Title: n.pub\nKind: Publisher document\nPartial-Text: One | two words",
    );
}

#[test]
fn compound_files_with_false_numbers_end() {
    let (main, table) = word("words\r", b"more");
    let good = compound(&[("WordDocument", &main), ("1Table", &table)]);
    let rendered = render("n.doc", Type::Word, &good);
    assert!(rendered.ends_with("Partial-Text: words | more"), "{rendered}");
    // Every number that may be an offset or a length, in turn at its maximum and as a loop.
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
}
