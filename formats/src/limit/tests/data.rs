//! Samples for the limits of data.

use super::Sample;
use crate::Type;
use crate::data::palm;
use crate::limit::Limit;

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let (r#type, bytes, holds) = match limit {
        Limit::SchemaPages => (Type::Database, schema(count), count + 1),
        Limit::BookText => (Type::Ebook, book(count, b"ten words "), 10 * count),
        Limit::BookPart => (Type::Ebook, book(1, &b"words ".repeat(count)), 6 * count),
        Limit::Cards => {
            let card = format!("{:<80}", "SIMPLE  =  T").repeat(count);
            (Type::ScientificData, format!("{card}{:<80}", "END").into_bytes(), count + 1)
        }
        Limit::Scan => {
            let bytes =
                [b"\x3f\x5f\x03\0".to_vec(), b"how to tie two ropes ".repeat(count)].concat();
            let holds = bytes.len();
            (Type::Help, bytes, holds)
        }
        _ => return None,
    };
    Some(Sample { r#type, name: "n", bytes, holds, slack: 0 })
}

/// Returns a book of plain text in as many parts.
fn book(parts: usize, text: &[u8]) -> Vec<u8> {
    let mut first = vec![0; 16];
    first[1] = 1;
    first[8..10].copy_from_slice(&u16::try_from(parts).unwrap().to_be_bytes());
    palm(b"TEXtREAd", &[vec![first], vec![text.to_vec(); parts]].concat())
}

/// Returns a database of SQLite whose schema has a page that leads to as many others, which are empty.
fn schema(pages: usize) -> Vec<u8> {
    let mut bytes = vec![0; 512 * (pages + 1)];
    bytes[..16].copy_from_slice(b"SQLite format 3\0");
    (bytes[16], bytes[100]) = (2, 5);
    let be = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
    bytes[104] = u8::try_from(pages - 1).unwrap();
    bytes[108..112].copy_from_slice(&be(pages + 1));
    for page in 1..pages {
        let at = 200 + 5 * page;
        bytes[110 + 2 * page..112 + 2 * page]
            .copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        bytes[at..at + 4].copy_from_slice(&be(page + 1));
    }
    (1..=pages).for_each(|page| bytes[512 * page] = 13);
    bytes
}
