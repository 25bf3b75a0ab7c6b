//! Documents of other programs than Word, Excel and PowerPoint in compound files: the text of those of
//! Hangul, of Publisher and of WordPerfect; of all others, the properties alone.
//!
//! Source: Hancom's "Hwp Document File Formats 5.0" (revision 1.3), 3.2 and 4.2; for Publisher, whose format
//! nobody has described in full, the notes of Apache POI on `Quill/QuillSub/CONTENTS`.

use std::io::Read;

use flate2::read::DeflateDecoder;

use super::compound::{Compound, ROOT, utf16};
use super::{Kind, OfficeDraft};
use crate::Input;
use crate::cancellable::TimeLimit;
use crate::data::wordperfect;
use crate::limit::Limit;
use crate::numbers::{le_len32, le16, le32, slice, slice_up_to};
use crate::object::ProblemKind;

type Outcome = Result<(), (ProblemKind, String)>;

/// Offset of the flags of a Hangul document, and two of them.
const FLAGS_AT: usize = 36;
const IS_PACKED: u32 = 1;
const IS_LOCKED: u32 = 0b110;
/// The number of a record with a paragraph's text.
const PARAGRAPH: u32 = 67;
/// The size in the header of a record that says: the size follows.
const LONG_RECORD: u32 = 0xfff;
/// Units of UTF-16 of a control.
const CONTROL_UNITS: usize = 8;
/// Offset and size of the entries that say where Publisher keeps what, and their number.
const PLACES_AT: usize = 0x20;
const PLACE_BYTES: usize = 24;
const PLACES: usize = 20;

pub(super) fn read(file: &Compound<'_>, input: &Input<'_>, document: &mut OfficeDraft) -> Outcome {
    if let Some(header) = file.stream("FileHeader").filter(|it| it.starts_with(b"HWP Document")) {
        return hangul(&header, file, input, document);
    }
    let main = file.stream("PerfectOffice_MAIN").filter(|it| it.starts_with(wordperfect::MARK));
    if let Some(main) = main {
        let mut time = TimeLimit::new(input.cancelled);
        let found = wordperfect::text(&main, &mut document.body, &mut time);
        return match found {
            None => Err((ProblemKind::Broken, "has no text where its prefix says".to_owned())),
            Some(()) if time.is_over() => {
                Err((ProblemKind::Time, "ran out of time on the document".to_owned()))
            }
            Some(()) => Ok(()),
        };
    }
    // Hangul's own copy of the beginning.
    if let Some(preview) = file.stream("PrvText") {
        document.body.push_lines(utf16(&preview).trim_end_matches('\0'));
        return Ok(());
    }
    let inner = file.child(ROOT, "Quill").and_then(|it| file.child(it.number, "QuillSub"));
    if let Some(contents) = inner.and_then(|it| file.stream_in(it.number, "CONTENTS")) {
        publisher(&contents, document);
    }
    Ok(())
}

fn hangul(
    header: &[u8],
    file: &Compound<'_>,
    input: &Input<'_>,
    document: &mut OfficeDraft,
) -> Outcome {
    let flags = le32(header, FLAGS_AT).unwrap_or(0);
    if flags & IS_LOCKED != 0 {
        return Err((ProblemKind::Locked, "is locked by a password".to_owned()));
    }
    let Some(sections) = file.child(ROOT, "BodyText") else { return Ok(()) };
    for number in 0.. {
        let name = format!("Section{number}");
        let Some(section) = file.stream_in(sections.number, &name) else { break };
        if number == Limit::Sections.bound() {
            document.cuts.insert(Limit::Sections);
            break;
        }
        let section = if flags & IS_PACKED == 0 { section } else { inflated(&section, document)? };
        paragraphs(&section, input, document)?;
        if document.body.is_full() {
            break;
        }
    }
    Ok(())
}

fn inflated(section: &[u8], document: &mut OfficeDraft) -> Result<Vec<u8>, (ProblemKind, String)> {
    let mut bytes = Vec::new();
    let bytes_max = Limit::Part.bound();
    let most = u64::try_from(bytes_max).map_or(u64::MAX, |it| it.saturating_add(1));
    let outcome = DeflateDecoder::new(section).take(most).read_to_end(&mut bytes);
    if bytes_max < bytes.len() {
        bytes.truncate(bytes_max);
        document.cuts.insert(Limit::Part);
    }
    let broken = |it| (ProblemKind::Broken, format!("has a section that cannot be unpacked: {it}"));
    // What was unpacked before the damage is read.
    if bytes.is_empty() { outcome.map(|_| bytes).map_err(broken) } else { Ok(bytes) }
}

/// Adds the paragraphs of a section: records, each with its number and its size.
fn paragraphs(section: &[u8], input: &Input<'_>, document: &mut OfficeDraft) -> Outcome {
    let mut time = TimeLimit::new(input.cancelled);
    let mut rest = section;
    while let Some(header) = le32(rest, 0) {
        if !time.goes_on() {
            return Err((ProblemKind::Time, "ran out of time on the document".to_owned()));
        }
        let is_long = header >> 20 == LONG_RECORD;
        let size = if is_long { le_len32(rest, 4).unwrap_or(0) } else { (header >> 20) as usize };
        rest = rest.get(if is_long { 8 } else { 4 }..).unwrap_or_default();
        if header & 0x3ff == PARAGRAPH {
            document.paragraph(&hangul_text(slice_up_to(rest, 0, size)), Kind::Text);
        }
        rest = rest.get(size..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the text of a paragraph without controls, some of which are as long as eight characters.
fn hangul_text(bytes: &[u8]) -> String {
    let units: Vec<u16> =
        bytes.as_chunks::<2>().0.iter().map(|it| u16::from_le_bytes(*it)).collect();
    let mut text = Vec::new();
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        at += 1;
        match unit {
            10 | 13 => text.push(u16::from(b'\n')),
            0 | 25..=29 => {}
            24 => text.push(u16::from(b'-')),
            9 | 30 | 31 => text.push(u16::from(b' ')),
            32.. => text.push(*unit),
            _ => {}
        }
        if matches!(unit, 1..=9 | 11 | 12 | 14..=23) {
            at += CONTROL_UNITS - 1;
        }
    }
    String::from_utf16_lossy(&text)
}

/// Adds the text of Publisher, which stands in one place for all pages.
fn publisher(contents: &[u8], document: &mut OfficeDraft) {
    for number in 0..PLACES {
        let at = PLACES_AT + PLACE_BYTES * number;
        let is_used = le16(contents, at) == Some(24);
        if !is_used || slice(contents, at + 12, 4) != Some(b"TEXT") {
            continue;
        }
        let range = le_len32(contents, at + 16).zip(le_len32(contents, at + 20));
        let Some((from, length)) = range else { continue };
        for paragraph in utf16(slice_up_to(contents, from, length)).split(['\r', '\u{c}', '\u{e}'])
        {
            document.paragraph(&paragraph.replace('\u{b}', "\n"), Kind::Text);
        }
        if document.body.is_full() {
            break;
        }
    }
}
