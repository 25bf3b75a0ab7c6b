//! ASF (WMV, WMA): the objects of its header.
//!
//! Source: Advanced Systems Format (ASF) Specification 01.20.05, §3.2, §3.3, §3.10, §3.11.

use super::Film;
use crate::metadata::Field;
use crate::numbers::{le16, le32, le64, slice, slice_up_to};

/// Position of the header's first object, in bytes.
const HEADER_BYTES: usize = 30;
/// First bytes of the names of the useful objects.
const FILE_PROPERTIES: &[u8] = &[0xa1, 0xdc, 0xab, 0x8c, 0x47, 0xa9, 0xcf, 0x11];
const STREAM_PROPERTIES: &[u8] = &[0x91, 0x07, 0xdc, 0xb7, 0xb7, 0xa9, 0xcf, 0x11];
const DESCRIPTION: &[u8] = &[0x33, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11];
const VIDEO: &[u8] = &[0xc0, 0xef, 0x19, 0xbc, 0x4d, 0x5b, 0xcf, 0x11];

pub(super) fn read(bytes: &[u8], film: &mut Film<'_>) {
    let header = bytes.get(..long(bytes, 16).unwrap_or_default().min(bytes.len()));
    objects(header.unwrap_or_default(), film);
}

fn objects(header: &[u8], film: &mut Film<'_>) -> Option<()> {
    let mut at = HEADER_BYTES;
    loop {
        let name = slice(header, at, 8)?;
        film.step()?;
        let len = long(header, at + 16).filter(|it| 24 <= *it)?;
        let content = slice_up_to(header, at + 24, len - 24);
        if name == FILE_PROPERTIES {
            properties(content, film);
        } else if name == STREAM_PROPERTIES && content.starts_with(VIDEO) {
            let (width, height) = (le32(content, 54)?, le32(content, 58)?);
            film.about.dimensions(u64::from(width), u64::from(height));
        } else if name == DESCRIPTION {
            description(content, film);
        }
        at = at.checked_add(len)?;
    }
}

/// Reads the duration, in units of 100 ns, less the preroll in it, in milliseconds.
fn properties(content: &[u8], film: &mut Film<'_>) -> Option<()> {
    let (duration, preroll) = (long(content, 40)? / 10_000, long(content, 56)?);
    film.about.duration(duration.saturating_sub(preroll) as u64);
    Some(())
}

/// Reads the first four of five texts in UTF-16, after the lengths of all.
fn description(content: &[u8], film: &mut Film<'_>) -> Option<()> {
    let mut at = 10;
    let fields = [Field::Title, Field::Author, Field::Copyright, Field::Description];
    for (number, field) in fields.into_iter().enumerate() {
        let len = usize::from(le16(content, 2 * number)?);
        let text = slice_up_to(content, at, len);
        film.about.add(field, &encoding_rs::UTF_16LE.decode_without_bom_handling(text).0);
        at += len;
    }
    Some(())
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(le64(bytes, at)?).ok()
}
