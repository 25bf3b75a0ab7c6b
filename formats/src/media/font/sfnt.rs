//! TrueType and OpenType fonts, their collections, and WOFF.
//!
//! Source: OpenType 1.9, "Organization of an OpenType font", "name", "OS/2"; WOFF 1.0 §4, §5.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::Faces;
use crate::limit::Limit;
use crate::metadata::Field;
use crate::numbers::{be16, be32, len16, len32, slice_up_to};

/// The language code of American English in Windows.
const ENGLISH: u16 = 0x409;

/// Scripts by their bits in `OS/2`: a bit, and the scripts of this bit and the following ones.
const SCRIPTS: &[(u32, &str)] = &[
    (0, "Latin"),
    (7, "Greek"),
    (9, "Cyrillic Armenian Hebrew"),
    (13, "Arabic"),
    (15, "Devanagari Bengali Gurmukhi Gujarati Oriya Tamil"),
    (21, "Telugu Kannada Malayalam Thai Lao Georgian"),
    (49, "Hiragana Katakana Bopomofo"),
    (56, "Hangul"),
    (59, "Han"),
    (70, "Tibetan Syriac Thaana Sinhala Myanmar Ethiopic Cherokee"),
    (80, "Khmer Mongolian"),
];

/// Reads a font, or each font of a collection.
pub(super) fn read(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    if !bytes.starts_with(b"ttcf") {
        return face(bytes, 0, faces);
    }
    let count = len32(bytes, 8)?;
    if Limit::Faces.bound() < count {
        faces.about.cut(Limit::Faces);
    }
    for number in 0..count.min(Limit::Faces.bound()) {
        face(bytes, len32(bytes, 12 + 4 * number)?, faces)?;
    }
    Some(())
}

fn face(bytes: &[u8], at: usize, faces: &mut Faces) -> Option<()> {
    let count = len16(bytes, at.checked_add(4)?)?;
    let directory = bytes.get(at.checked_add(12)?..)?.get(..16 * count)?;
    // There is one table of each name.
    for name in [b"name", b"OS/2"] {
        let Some(entry) = directory.chunks(16).find(|it| it.starts_with(name)) else { continue };
        let table = slice_up_to(bytes, len32(entry, 8)?, len32(entry, 12)?);
        if table.is_empty() {
            return None;
        }
        if name == b"name" { names(table, faces)? } else { scripts(table, faces)? }
    }
    faces.count += 1;
    Some(())
}

/// Reads a WOFF file: the same tables, some compressed. Nothing is read of WOFF2.
pub(super) fn woff(bytes: &[u8], faces: &mut Faces) -> Option<()> {
    if bytes.get(3) == Some(&b'2') {
        return Some(());
    }
    let count = len16(bytes, 12)?;
    let directory = bytes.get(44..)?.get(..20 * count)?;
    for name in [b"name", b"OS/2"] {
        let Some(entry) = directory.chunks(20).find(|it| it.starts_with(name)) else { continue };
        let (packed_len, len) = (len32(entry, 8)?, len32(entry, 12)?);
        let mut table = Cow::Borrowed(slice_up_to(bytes, len32(entry, 4)?, packed_len));
        if packed_len < len {
            let mut unpacked = Vec::new();
            let most = Limit::FontNames.bound();
            ZlibDecoder::new(&*table).take(most as u64 + 1).read_to_end(&mut unpacked).ok()?;
            if most < unpacked.len() {
                faces.about.cut(Limit::FontNames);
            }
            table = Cow::Owned(unpacked);
        }
        if name == b"name" { names(&table, faces)? } else { scripts(&table, faces)? }
    }
    faces.count += 1;
    Some(())
}

/// Reads the names of the first rank that has some: American English of Windows; Unicode; other
/// English. Names in other languages are left out.
fn names(table: &[u8], faces: &mut Faces) -> Option<()> {
    let (count, storage) = (len16(table, 2)?, len16(table, 4)?);
    let records = || (0..count).filter_map(|it| table.get(6 + 12 * it..18 + 12 * it));
    let rank = |record: &[u8]| match (be16(record, 0), be16(record, 4)) {
        (Some(3), Some(ENGLISH)) => 0,
        (Some(0), _) => 1,
        (Some(1), Some(0)) => 2,
        (Some(3), Some(language)) if language & 0x3ff == 9 => 2,
        _ => 3,
    };
    let mut typographic = false;
    for wanted in 0..=2 {
        for record in records().filter(|it| rank(it) == wanted) {
            let id = be16(record, 6)?;
            let start = storage.checked_add(len16(record, 10)?)?;
            let (len, left) =
                (len16(record, 8)?, Limit::FontNames.bound().saturating_sub(faces.names_bytes));
            if left < len {
                faces.about.cut(Limit::FontNames);
            }
            // Names may share bytes, so all names together can be far longer than the table.
            let value = slice_up_to(table, start, len.min(left));
            faces.names_bytes += value.len();
            let value = if be16(record, 0)? == 1 {
                encoding_rs::MACINTOSH.decode_without_bom_handling(value).0
            } else {
                encoding_rs::UTF_16BE.decode_without_bom_handling(value).0
            };
            typographic |= id == 16;
            name(id, &value, faces, typographic);
        }
        // Names of the other ranks only repeat these.
        if records().any(|it| rank(it) == wanted) {
            break;
        }
    }
    Some(())
}

fn name(id: u16, value: &str, faces: &mut Faces, typographic: bool) {
    let field = match id {
        0 => Field::Copyright,
        1 if typographic => return,
        1 | 16 => return faces.family(value),
        4 => Field::Title,
        5 => return faces.version(value.trim_start_matches("Version ")),
        8 => Field::Publisher,
        9 => Field::Author,
        10 => Field::Description,
        11 | 12 | 14 => {
            let is_new = !faces.references.iter().any(|it| it == value);
            if value.contains("://") && is_new {
                if faces.references.len() < 3 * Limit::Faces.bound() {
                    faces.references.push(value.trim().to_owned());
                } else {
                    faces.about.cut(Limit::Faces);
                }
            }
            return;
        }
        13 => Field::License,
        7 | 19 => Field::Text,
        _ => return,
    };
    faces.about.add(field, value);
}

fn scripts(table: &[u8], faces: &mut Faces) -> Option<()> {
    let mut bits = 0_u128;
    for word in 0..4 {
        bits |= u128::from(be32(table, 42 + 4 * word)?) << (32 * word);
    }
    let runs = SCRIPTS.iter().flat_map(|(first, names)| (*first..).zip(names.split(' ')));
    for (bit, script) in runs {
        if bits >> bit & 1 == 1 {
            faces.script(script);
        }
    }
    Some(())
}
