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
        Limit::Faces => {
            // All are the same font, without tables.
            let offset = u8::try_from(12 + 4 * count).ok()?;
            let offsets = [0, 0, 0, offset].repeat(count);
            let head =
                [b"ttcf", [0, 1, 0, 0, 0, 0, 0].as_slice(), &[u8::try_from(count).ok()?]].concat();
            let bytes = [head, offsets, vec![0, 1, 0, 0, 0, 0]].concat();
            (Type::Font, "a.ttc", (count, bytes))
        }
        Limit::FontNames => {
            let value = [0, b'a'];
            let record = [&[0, 3, 0, 1, 4, 9, 0, 4], [0, 2, 0, 0].as_slice()].concat();
            let storage = u8::try_from(6 + count * record.len()).ok()?;
            let counts = [0, 0, 0, u8::try_from(count).ok()?, 0, storage];
            let table = [&counts, record.repeat(count).as_slice(), &value].concat();
            let entry = [b"name", [0; 4].as_slice(), &[0, 0, 0, 28], &[0, 0, 0, storage + 2]];
            let head = [&[0, 1, 0, 0, 0, 1], [0; 6].as_slice()].concat();
            (Type::Font, "a.ttf", (2 * count, [head, entry.concat(), table].concat()))
        }
        _ => return None,
    };
    Some(Sample { r#type, name, bytes, holds, slack: 0 })
}
