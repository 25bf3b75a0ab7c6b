//! Metafiles of Windows (WMF, EMF): pictures as lists of drawing commands, with the texts that they draw.
//!
//! Source: \[MS-WMF\] 2.3.2 (headers), 2.3.3.5 and 2.3.3.20 (text); \[MS-EMF\] 2.3.4.2 (header), 2.3.5.7 and
//! 2.3.5.8 (text).

use super::Picture;
use crate::metadata::Field;
use crate::numbers::{le_len32, le16, le32, slice};
use crate::text::Body;

/// Records of EMF: the header, texts of one and of two bytes a character.
const EMF_HEADER: u32 = 1;
const EMF_TEXT: u32 = 83;
const EMF_WIDE_TEXT: u32 = 84;
/// Commands of WMF: a text at a place, and one with more options.
const WMF_TEXT: u16 = 0x0521;
const WMF_EXTENDED_TEXT: u16 = 0x0a32;
/// First bytes of the header of a WMF that tells its place and size.
const PLACEABLE: &[u8] = b"\xd7\xcd\xc6\x9a";

/// Returns whether the picture is a metafile: of WMF, the header with its nine words.
pub(super) fn is_metafile(bytes: &[u8]) -> bool {
    bytes.starts_with(PLACEABLE)
        || is_extended(bytes)
        || matches!(bytes.get(..6), Some([1 | 2, 0, 9, 0, 0, 1 | 3]))
}

fn is_extended(bytes: &[u8]) -> bool {
    bytes.starts_with(&[1, 0, 0, 0]) && bytes.get(40..44) == Some(b" EMF")
}

pub(super) fn read(picture: &mut Picture<'_>) -> Option<()> {
    let mut texts = Body::new(usize::MAX);
    let whole = if is_extended(picture.bytes) {
        extended(picture, &mut texts)
    } else {
        simple(picture, &mut texts)
    };
    picture.about.add(Field::Text, texts.as_str());
    whole
}

fn extended(picture: &mut Picture<'_>, texts: &mut Body) -> Option<()> {
    let bytes = picture.bytes;
    let mut at = 0_usize;
    for piece in 0.. {
        if !picture.step(piece) || bytes.len() <= at {
            break;
        }
        let size = le_len32(bytes, at + 4).filter(|it| 8 <= *it)?;
        let record = slice(bytes, at, size)?;
        match le32(record, 0)? {
            EMF_HEADER => {
                let side = |low: usize, high: usize| {
                    let (low, high) = (le32(record, low)?, le32(record, high)?);
                    u64::try_from(i64::from(high.cast_signed()) - i64::from(low.cast_signed()) + 1)
                        .ok()
                };
                picture.about.dimensions(side(8, 16)?, side(12, 20)?);
                // The program, and the picture's name, which may be empty.
                let about = wide(record, le_len32(record, 64)?, le_len32(record, 60)?);
                let about = about.unwrap_or_default();
                let mut parts = about.split('\0');
                picture.about.add(Field::Generator, parts.next().unwrap_or_default());
                picture.about.add(Field::Title, parts.next().unwrap_or_default());
            }
            EMF_TEXT => {
                let text = slice(record, le_len32(record, 48)?, le_len32(record, 44)?);
                texts.push_squeezed_line(&narrow(text.unwrap_or_default()));
            }
            EMF_WIDE_TEXT => {
                let text = wide(record, le_len32(record, 48)?, le_len32(record, 44)?);
                texts.push_squeezed_line(&text.unwrap_or_default());
            }
            _ => {}
        }
        at += size;
    }
    Some(())
}

fn simple(picture: &mut Picture<'_>, texts: &mut Body) -> Option<()> {
    let bytes = picture.bytes;
    let mut at = 0_usize;
    if bytes.starts_with(PLACEABLE) {
        at = 22;
        let side = |low: usize, high: usize| {
            let (low, high) = (le16(bytes, low)?, le16(bytes, high)?);
            u64::try_from(i32::from(high.cast_signed()) - i32::from(low.cast_signed())).ok()
        };
        picture.about.dimensions(side(6, 10)?, side(8, 12)?);
    }
    at += 18;
    for piece in 0.. {
        if !picture.step(piece) || bytes.len() <= at {
            break;
        }
        // Sizes count words of two bytes.
        let size = le_len32(bytes, at)?.checked_mul(2).filter(|it| 6 <= *it)?;
        let record = slice(bytes, at, size)?;
        let text = match le16(record, 4)? {
            WMF_TEXT => slice(record, 8, usize::from(le16(record, 6)?)),
            WMF_EXTENDED_TEXT => {
                // With a rectangle, if the options say so.
                let place = if le16(record, 12)? & 6 == 0 { 14 } else { 22 };
                slice(record, place, usize::from(le16(record, 10)?))
            }
            _ => None,
        };
        texts.push_squeezed_line(&narrow(text.unwrap_or_default()));
        at += size;
    }
    Some(())
}

fn narrow(text: &[u8]) -> String {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(text).0.into_owned()
}

/// Returns the text of this many characters of two bytes at `at`.
fn wide(record: &[u8], at: usize, count: usize) -> Option<String> {
    let text = slice(record, at, count.checked_mul(2)?)?;
    Some(encoding_rs::UTF_16LE.decode_without_bom_handling(text).0.into_owned())
}
