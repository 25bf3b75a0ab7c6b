//! AVI: the headers of its RIFF file, and the list of information.
//!
//! Source: Microsoft, "AVI RIFF File Reference" (`avih`, `LIST INFO`), OpenDML 1.02.

use super::Film;
use crate::metadata::Field;
use crate::numbers::{le_len32, le32, slice_up_to};
use crate::text::decode;

/// Deepest nesting of useful chunks.
const DEPTH_MAX: usize = 4;

pub(super) fn read(bytes: &[u8], film: &mut Film<'_>) {
    chunks(bytes, 0, film);
}

fn chunks(bytes: &[u8], depth: usize, film: &mut Film<'_>) -> Option<()> {
    let mut at = 0_usize;
    loop {
        let name = bytes.get(at..at.checked_add(4)?)?;
        film.step()?;
        let len = le_len32(bytes, at + 4)?;
        let content = slice_up_to(bytes, at + 8, len);
        film.cut |= content.len() < len;
        match name {
            b"RIFF" | b"LIST" if depth < DEPTH_MAX => {
                // The list of frames is skipped.
                if content.get(..4) != Some(b"movi") {
                    chunks(content.get(4..)?, depth + 1, film);
                }
            }
            b"avih" => {
                header(content, film);
            }
            _ => info(name, content, film),
        }
        at = (at + 8).checked_add(len)?.checked_add(len % 2)?;
    }
}

fn header(content: &[u8], film: &mut Film<'_>) -> Option<()> {
    // Microseconds per frame, and count of frames.
    let (frame, frames) = (le32(content, 0)?, le32(content, 16)?);
    film.about.duration(u64::from(frame) * u64::from(frames) / 1_000);
    film.about.dimensions(u64::from(le32(content, 32)?), u64::from(le32(content, 36)?));
    Some(())
}

fn info(name: &[u8], content: &[u8], film: &mut Film<'_>) {
    let field = match name {
        b"INAM" => Field::Title,
        b"IART" => Field::Author,
        b"ICMT" | b"ISBJ" => Field::Description,
        b"ICOP" => Field::Copyright,
        b"ICRD" | b"IDIT" => Field::Date,
        b"IGNR" => Field::Genre,
        b"IKEY" => Field::Keyword,
        b"ISFT" => Field::Generator,
        b"IPRD" => Field::Album,
        _ => return,
    };
    let text = decode(content, None);
    film.about.add(field, &text);
}
