//! Bitmap fonts of X: BDF and PCF, which have the same properties.
//!
//! Source: Glyph Bitmap Distribution Format 2.1; the layout of PCF in `libXfont`.

use super::type1::up_to;
use super::{Faces, set_property};
use crate::limit::Limit;
use crate::metadata::Field;
use crate::numbers::{le_len32, le32, len32, slice_up_to, u8_at, up_to_zero};
use crate::text::decode;

/// Type of the table of properties.
const PROPERTIES: u32 = 1;
/// Flag of a table with big-endian numbers.
const BIG_ENDIAN: u32 = 4;

/// Properties that together make the title and the charset.
#[derive(Default)]
struct FontProperties {
    family: String,
    weight: String,
    slant: String,
    size: String,
    registry: String,
    encoding: String,
}

impl FontProperties {
    fn property(&mut self, name: &str, value: &str, faces: &mut Faces) {
        match name {
            "FAMILY_NAME" => value.clone_into(&mut self.family),
            "WEIGHT_NAME" => value.clone_into(&mut self.weight),
            "SLANT" => value.clone_into(&mut self.slant),
            "PIXEL_SIZE" => value.clone_into(&mut self.size),
            "CHARSET_REGISTRY" => value.clone_into(&mut self.registry),
            "CHARSET_ENCODING" => value.clone_into(&mut self.encoding),
            _ => {}
        }
        set_property(faces, name, value);
    }

    fn finish(self, faces: &mut Faces) {
        let slant = match self.slant.to_ascii_uppercase().as_str() {
            "I" => "Italic",
            "O" => "Oblique",
            _ => "",
        };
        let mut title = self.family;
        for word in [self.weight.as_str(), slant, &self.size] {
            if !title.is_empty() && !word.is_empty() {
                title = format!("{title} {word}");
            }
        }
        faces.about.add(Field::Title, &title);
        if !self.registry.is_empty() {
            let charset = format!("{}-{}", self.registry, self.encoding);
            faces.about.add(Field::Keyword, &charset);
        }
        faces.count = 1;
    }
}

pub(super) fn bdf(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    // The properties stand before the characters.
    let text = decode(up_to(bytes, b"\nCHARS "), Some("iso-8859-1"));
    let mut properties = FontProperties::default();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "COMMENT" => set_property(faces, "Comment", value.trim().trim_matches('"')),
            _ => properties.property(name, value.trim().trim_matches('"'), faces),
        }
    }
    properties.finish(faces);
    Some(())
}

pub(super) fn pcf(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    let count = le_len32(bytes, 4)?;
    let mut entries = bytes.get(8..)?.chunks_exact(16).take(count);
    let entry = entries.find(|it| le32(it, 0) == Some(PROPERTIES))?;
    let table = slice_up_to(bytes, le_len32(entry, 12)?, le_len32(entry, 8)?);
    let big = le32(table, 0)? & BIG_ENDIAN != 0;
    let long = |at| if big { len32(table, at) } else { le_len32(table, at) };
    let count = long(4)?;
    // Nine bytes each, then padding, and the length of the strings that follow.
    let strings_at = count.checked_mul(9)?.checked_add(8)?.checked_next_multiple_of(4)? + 4;
    let strings = table.get(strings_at..)?;
    let string = |at: usize| {
        // One byte more than is kept shows that there is more.
        let string = up_to_zero(slice_up_to(strings, at, Limit::Property.bound() + 1));
        decode(string, Some("iso-8859-1")).into_owned()
    };
    let mut properties = FontProperties::default();
    if Limit::Properties.bound() < count {
        faces.about.cut(Limit::Properties);
    }
    for number in 0..count.min(Limit::Properties.bound()) {
        let at = 8 + 9 * number;
        let (name, value) = (string(long(at)?), long(at + 5)?);
        if u8_at(table, at + 4)? != 0 {
            properties.property(&name, &string(value), faces);
        } else if name == "PIXEL_SIZE" {
            properties.property(&name, &value.to_string(), faces);
        }
    }
    properties.finish(faces);
    Some(())
}
