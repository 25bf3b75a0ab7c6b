//! Samples for pictures, sound, films and fonts.

use super::Sample;
use crate::Type;
use crate::limit::Limit;

pub(super) fn sample(limit: Limit, count: usize) -> Option<Sample> {
    let whole = |it: String| (it.len(), it.into_bytes());
    let chunk = |name: &[u8; 4]| [&[0; 4], name.as_slice(), &[0; 4]].concat();
    let header =
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01".as_slice(), &[0; 9]].concat();
    let (r#type, name, (holds, bytes)) = match limit {
        Limit::Drawing => {
            let text = format!("<svg><text>{}</text></svg>", "word ".repeat(count));
            (Type::Svg, "a.svg", whole(text))
        }
        Limit::DrawingDepth => {
            let (open, close) = ("<g>".repeat(count - 1), "</g>".repeat(count - 1));
            (Type::Svg, "a.svg", (count, format!("<svg>{open}{close}</svg>").into_bytes()))
        }
        Limit::Playlist => {
            (Type::Audio, "a.m3u", whole(format!("#EXTM3U\n{}", "a.mp3\n".repeat(count))))
        }
        Limit::Pieces if count.is_multiple_of(2) => {
            (Type::Image, "a.tif", (count, tiff(&vec![[0; 12]; count], &[])))
        }
        Limit::Pieces => {
            let chunks = [chunk(b"IDAT").repeat(count), chunk(b"IEND")].concat();
            // The first piece is the header, the last the end.
            (Type::Image, "a.png", (count + 2, [header, chunks].concat()))
        }
        Limit::PackedTexts => {
            // Of three bytes that are no packed text.
            let text = [b"\0\0\0\x03zTXt", b"a\0\0".as_slice(), &[0; 4]].concat();
            (Type::Image, "a.png", (count, [header, text.repeat(count), chunk(b"IEND")].concat()))
        }
        Limit::Properties if count.is_multiple_of(4) => {
            (Type::Font, "a.pcf", (count, bitmaps(count)))
        }
        // Half of the key words are so many bytes, or a few more.
        Limit::Property if count.is_multiple_of(4) => {
            let words: Vec<u8> = "word;".repeat(count).bytes().flat_map(|it| [it, 0]).collect();
            let entry = [0x0001_9c9e_u32, u32::try_from(words.len()).ok()?, 26];
            let entry = entry.map(u32::to_le_bytes).concat().try_into().ok()?;
            (Type::Image, "a.tif", (words.len() / 2, tiff(&[entry], &words)))
        }
        // Of one font with as many families.
        Limit::Faces if count.is_multiple_of(2) => (Type::Font, "a.ttf", (count, names(count, 1)?)),
        Limit::Faces => {
            // All are the same font, without tables.
            let offset = u8::try_from(12 + 4 * count).ok()?;
            let offsets = [0, 0, 0, offset].repeat(count);
            let head =
                [b"ttcf", [0, 1, 0, 0, 0, 0, 0].as_slice(), &[u8::try_from(count).ok()?]].concat();
            let bytes = [head, offsets, vec![0, 1, 0, 0], vec![0; 8]].concat();
            (Type::Font, "a.ttc", (count, bytes))
        }
        Limit::FontNames => (Type::Font, "a.ttf", (2 * count, names(count, 4)?)),
        _ => return None,
    };
    let slack = if limit == Limit::Property { 4 } else { 0 };
    Some(Sample { r#type, name, bytes, holds, slack })
}

/// Returns a font with as many names of one letter; `id` is what they name.
fn names(count: usize, id: u8) -> Option<Vec<u8>> {
    let letters = u8::try_from(count).ok()?;
    let record = |it| [0, 3, 0, 1, 4, 9, 0, id, 0, 2, 0, 2 * it];
    let records: Vec<u8> = (0..letters).flat_map(record).collect();
    let values: Vec<u8> = (0..letters).flat_map(|it| [0, b'a' + it]).collect();
    let storage = u8::try_from(6 + records.len()).ok()?;
    let table = [&[0, 0, 0, letters, 0, storage], &*records, &values].concat();
    let size = u8::try_from(table.len()).ok()?;
    let entry = [b"name", [0; 4].as_slice(), &[0, 0, 0, 28], &[0, 0, 0, size]].concat();
    Some([&[0, 1, 0, 0, 0, 1], [0; 6].as_slice(), &entry, &table].concat())
}

/// Returns a TIFF file with these entries, and values behind them.
fn tiff(entries: &[[u8; 12]], values: &[u8]) -> Vec<u8> {
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    [b"II*\0\x08\0\0\0", &count[..], &entries.concat(), &[0; 4], values].concat()
}

/// Returns a PCF font with as many properties, which are equal.
fn bitmaps(count: usize) -> Vec<u8> {
    let long = |it: usize| u32::try_from(it).unwrap().to_le_bytes();
    let property = [&long(0)[..], &[1], &long(10)].concat().repeat(count);
    let padding = vec![0; (9 * count + 8).next_multiple_of(4) - 9 * count - 8];
    let strings = [&long(12)[..], b"COPYRIGHT\0A\0"].concat();
    let table = [&long(0)[..], &long(count), &property, &padding, &strings].concat();
    [b"\x01fcp", &long(1)[..], &long(1), &long(0), &long(table.len()), &long(24), &table].concat()
}
