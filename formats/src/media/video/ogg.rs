//! Ogg with video: Theora's header and its comments.
//!
//! Source: RFC 3533 §6 (pages); Theora specification §6.2 (identification header), §6.3 (comment
//! header).

use memchr::memmem;

use super::Film;
use crate::metadata::Field;
use crate::numbers::{le_len32, len32, slice, slice_up_to};

/// The headers must lie in this many bytes at the film's front.
const HEADERS_BYTES_MAX: usize = 256 * 1024;

/// Reads the headers; returns false if there is no video; it may be sound.
pub(super) fn read(bytes: &[u8], film: &mut Film<'_>) -> bool {
    let head = slice_up_to(bytes, 0, HEADERS_BYTES_MAX);
    let Some(at) = memmem::find(head, b"\x80theora") else { return false };
    identification(bytes, at, film);
    if let Some(at) = memmem::find(head, b"\x81theora") {
        comments(bytes, at + 7, film);
    }
    true
}

fn identification(bytes: &[u8], at: usize, film: &mut Film<'_>) -> Option<()> {
    let header = slice(bytes, at, 42)?;
    let three = |at: usize| Some(len32(header, at)? >> 8);
    film.about.dimensions(three(14)? as u64, three(17)? as u64);
    Some(())
}

fn comments(head: &[u8], at: usize, film: &mut Film<'_>) -> Option<()> {
    let vendor = le_len32(head, at)?;
    let mut at = at.checked_add(4)?.checked_add(vendor)?;
    let count = le_len32(head, at)?;
    at += 4;
    for _ in 0..count {
        film.step()?;
        let len = le_len32(head, at)?;
        let comment = slice(head, at + 4, len)?;
        at = at.checked_add(4)?.checked_add(len)?;
        let comment = String::from_utf8_lossy(comment);
        let Some((name, value)) = comment.split_once('=') else { continue };
        let field = match name.to_ascii_uppercase().as_str() {
            "TITLE" => Field::Title,
            "ARTIST" | "AUTHOR" | "DIRECTOR" => Field::Author,
            "PERFORMER" => Field::Contributor,
            "ORGANIZATION" => Field::Publisher,
            "DESCRIPTION" | "COMMENT" => Field::Description,
            "COPYRIGHT" => Field::Copyright,
            "LICENSE" => Field::License,
            "DATE" => Field::Date,
            "GENRE" => Field::Genre,
            "ALBUM" => Field::Album,
            "LOCATION" => Field::Location,
            "ENCODER" => Field::Generator,
            _ => continue,
        };
        film.about.add(field, value);
    }
    Some(())
}
