//! Metadata of news agencies in pictures: IPTC records, and Photoshop's resources around them.
//!
//! Source: IPTC-NAA Information Interchange Model 4.2, chapter 6; Adobe Photoshop File Formats
//! Specification, "Image Resources Section".

use super::super::xmp;
use super::tiff;
use crate::cancellable::TimeLimit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, len16, len32, slice, slice_up_to, u8_at};
use crate::text::decode;

/// Reads the useful resources: IPTC records, EXIF, XMP.
pub(super) fn resources(
    bytes: &[u8],
    about: &mut Metadata,
    time: &mut TimeLimit<'_>,
) -> Option<()> {
    let mut at = 0_usize;
    while time.goes_on() {
        if slice(bytes, at, 4)? != b"8BIM" {
            break;
        }
        let id = be16(bytes, at + 4)?;
        // Length and name together are padded to an even number of bytes.
        let name = usize::from(u8_at(bytes, at + 6)?) + 1;
        let data_at = at + 6 + name + name % 2;
        let len = len32(bytes, data_at)?;
        let data = slice_up_to(bytes, data_at + 4, len);
        match id {
            0x0404 => {
                records(data, about, time);
            }
            0x0422 => {
                tiff::read(data, about, time, false);
            }
            0x0424 => xmp::read(data, about, time),
            _ => {}
        }
        at = (data_at + 4).checked_add(len)?.checked_add(len % 2)?;
    }
    Some(())
}

pub(super) fn records(bytes: &[u8], about: &mut Metadata, time: &mut TimeLimit<'_>) -> Option<()> {
    let mut at = 0;
    let mut utf8 = false;
    while time.goes_on() {
        if u8_at(bytes, at)? != 0x1c {
            break;
        }
        let (record, set, len) =
            (u8_at(bytes, at + 1)?, u8_at(bytes, at + 2)?, len16(bytes, at + 3)?);
        let data = slice_up_to(bytes, at + 5, len);
        if (record, set) == (1, 90) {
            utf8 = data == b"\x1b%G";
        }
        if let (2, Some(field)) = (record, field(set)) {
            let value = decode(data, Some(if utf8 { "utf-8" } else { "iso-8859-1" }));
            about.add(field, &value);
        }
        at += 5 + len;
    }
    Some(())
}

fn field(set: u8) -> Option<Field> {
    Some(match set {
        5 | 105 => Field::Title,
        25 => Field::Keyword,
        55 => Field::Date,
        65 => Field::Generator,
        80 => Field::Author,
        90 | 95 | 101 => Field::Location,
        116 => Field::Copyright,
        120 => Field::Description,
        _ => return None,
    })
}
