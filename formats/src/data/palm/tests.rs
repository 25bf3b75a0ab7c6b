//! Tests of books for Palm and Kindle, made by their definition.

use proptest::prelude::*;

use crate::Type;
use crate::testing::render;

fn be(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_be_bytes()
}

/// Returns a Palm database of these records.
pub(crate) fn palm(kind: &[u8; 8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 78];
    bytes[..8].copy_from_slice(b"On_Knots");
    bytes[60..68].copy_from_slice(kind);
    bytes[76..78].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
    let mut at = 78 + 8 * records.len();
    for record in records {
        bytes.extend(be(at));
        bytes.extend([0; 4]);
        at += record.len();
    }
    [bytes, records.concat()].concat()
}

/// Returns the first record of a book with `parts` parts of text, packed like this.
fn first(packing: u16, parts: u16, fields: &[(u32, &str)]) -> Vec<u8> {
    let mut record = vec![0; 16 + 232];
    record[..2].copy_from_slice(&packing.to_be_bytes());
    record[8..10].copy_from_slice(&parts.to_be_bytes());
    record[16..20].copy_from_slice(b"MOBI");
    record[20..24].copy_from_slice(&be(232));
    record[28..32].copy_from_slice(&be(65001));
    record[128..132].copy_from_slice(&be(0x40));
    let mut list = Vec::new();
    for (number, value) in fields {
        list.extend(number.to_be_bytes());
        list.extend(be(value.len() + 8));
        list.extend(value.as_bytes());
    }
    record.extend(
        [b"EXTH".to_vec(), be(list.len() + 12).to_vec(), be(fields.len()).to_vec(), list].concat(),
    );
    record
}

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(render("k.mobi", Type::Ebook, bytes), expected);
}

const FIELDS: &[(u32, &str)] =
    &[(100, "Ann Other"), (101, "Press"), (104, "9780000000002"), (503, "Knots"), (524, "en")];
const ABOUT: &str = "Title: Knots\nAuthor: Ann Other\nPublisher: Press\nLanguage: en\nLanguage-Source: declared\n\
                     Identifier: isbn:9780000000002\n";

#[test]
fn a_book_of_pages() {
    let first = first(2, 2, FIELDS);
    // "<p>They hold" and a copy of "hold"; a space with a letter; two literals.
    let one = b"<p>They hold\x80\x21\xe4wo \x02\xc3\xa9".to_vec();
    let two = b" ropes</p>".to_vec();
    check(
        &palm(b"BOOKMOBI", &[first, one, two]),
        &format!("{ABOUT}Kind: Mobipocket book\nPartial-Text: They holdhold dwo \u{e9} ropes"),
    );
}

#[test]
fn entries_behind_the_text_are_left_out() {
    let mut record = first(1, 1, &[]);
    record[242..244].copy_from_slice(&3_u16.to_be_bytes());
    // One entry of three bytes, then one byte of an overlapping character and its count.
    let text = b"<p>words\x00ab\x83".to_vec();
    check(
        &palm(b"BOOKMOBI", &[record, text]),
        "Title: On Knots\nKind: Mobipocket book\nPartial-Text: words",
    );
}

#[test]
fn a_book_of_plain_text() {
    let mut record = vec![0; 16];
    record[1] = 1;
    record[9] = 1;
    check(
        &palm(b"TEXtREAd", &[record.clone(), b"They hold.".to_vec()]),
        "Title: On Knots\nKind: PalmDOC book\nPartial-Text: They hold.",
    );
    record[13] = 1;
    check(
        &palm(b"TEXtREAd", &[record.clone(), b"They hold.".to_vec()]),
        "Title: On Knots\nKind: PalmDOC book\n! locked: is locked by copy protection",
    );
    record[13] = 0;
    record[9] = 3;
    check(
        &palm(b"TEXtREAd", &[record, b"They hold.".to_vec()]),
        "Title: On Knots\nKind: PalmDOC book\nPartial-Text: They hold.\n! broken: breaks off at part 2 of 3",
    );
}

/// Returns records with codes of eight bits, each of which stands for one of the phrases.
fn codes(phrases: &[(&[u8], bool)]) -> [Vec<u8>; 2] {
    let mut huff = b"HUFF\0\0\0\x18".to_vec();
    huff.extend([be(24), be(24 + 1024), be(0), be(0)].concat());
    // Any code of eight bits is whole; the largest is 255.
    huff.extend(be(0xff << 8 | 0x80 | 8).repeat(256));
    huff.extend([0; 256]);
    let mut list = Vec::new();
    let mut offsets = Vec::new();
    for (bytes, is_plain) in phrases {
        let at = u16::try_from(2 * phrases.len() + list.len()).unwrap();
        offsets.extend(at.to_be_bytes());
        let flag = if *is_plain { 0x8000 } else { 0 };
        list.extend((u16::try_from(bytes.len()).unwrap() | flag).to_be_bytes());
        list.extend(*bytes);
    }
    let cdic =
        [b"CDIC\0\0\0\x10".to_vec(), be(phrases.len()).to_vec(), be(8).to_vec(), offsets, list];
    [huff, cdic.concat()]
}

fn packed(text: &[u8], phrases: &[(&[u8], bool)]) -> Vec<u8> {
    let mut record = first(17480, 1, &[]);
    record[112..116].copy_from_slice(&be(2));
    record[116..120].copy_from_slice(&be(2));
    let [huff, cdic] = codes(phrases);
    palm(b"BOOKMOBI", &[record, text.to_vec(), huff, cdic])
}

#[test]
fn phrases_hold_phrases() {
    // Code 255 is the first phrase.
    let phrases: &[(&[u8], bool)] = &[(b"<p>", true), (b"rope", true), (b"\xfe\xfe", false)];
    check(
        &packed(b"\xff\xfe\xfd", phrases),
        "Title: On Knots\nKind: Mobipocket book\nPartial-Text: roperoperope",
    );
    check(
        &packed(b"\xff\xfe\x01", phrases),
        "Title: On Knots\nKind: Mobipocket book\nPartial-Text: rope\n! broken: part 1 cannot be unpacked",
    );
    // A phrase within itself, and phrases that double sixteen times.
    render("k.mobi", Type::Ebook, &packed(b"\xff", &[(b"\xff\xff", false)]));
    let codes: Vec<[u8; 64]> = (0..30).map(|it| [254 - it; 64]).collect();
    let mut phrases: Vec<(&[u8], bool)> = codes.iter().map(|it| (&it[..], false)).collect();
    phrases.push((&[b'x'; 4096], true));
    let rendered = render("k.mobi", Type::Ebook, &packed(b"\xff", &phrases));
    assert!(rendered.ends_with("! broken: part 1 cannot be unpacked"), "{rendered}");
}

proptest! {
    #[test]
    fn any_bytes_give_a_record(
        packing in prop_oneof![Just(1_u16), Just(2), Just(17480), any::<u16>()],
        text in proptest::collection::vec(any::<u8>(), 0..200),
        noise in proptest::collection::vec((0..600_usize, any::<u8>()), 0..6),
    ) {
        let [huff, cdic] = codes(&[(b"ab", true), (b"\xff\xfe", false)]);
        let mut record = first(packing, 1, FIELDS);
        record[112..116].copy_from_slice(&be(2));
        record[116..120].copy_from_slice(&be(2));
        let mut bytes = palm(b"BOOKMOBI", &[record, text, huff, cdic]);
        for (at, byte) in noise {
            if let Some(it) = bytes.get_mut(at) {
                *it = byte;
            }
        }
        prop_assert!(render("k.mobi", Type::Ebook, &bytes).starts_with("Title: "));
    }
}
