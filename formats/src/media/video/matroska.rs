//! Matroska and WebM: nested elements.
//!
//! Source: RFC 8794 §4 (variable-size integers) and §6; RFC 9559 §5.1 (Segment, Info, Tracks, Tags,
//! Chapters, Attachments).

use super::Film;
use crate::metadata::Field;
use crate::numbers::slice_up_to;

/// Deepest nesting of useful elements.
const DEPTH_MAX: usize = 8;
/// Seconds from 1970 to 2001, the epoch of Matroska.
const EPOCH_S: i64 = 978_307_200;

/// Values of earlier elements that later ones need.
struct Context {
    /// Nanoseconds per unit of time.
    scale: f64,
    duration: f64,
    width: u64,
    tag: String,
}

pub(super) fn read(bytes: &[u8], film: &mut Film<'_>) {
    let mut context = Context { scale: 1e6, duration: 0.0, width: 0, tag: String::new() };
    elements(bytes, 0, film, &mut context);
    let milliseconds = (context.duration * context.scale / 1e6).round();
    if 0.0 < milliseconds && milliseconds < 1e15 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in bounds")]
        film.about.duration(milliseconds as u64);
    }
}

fn elements(bytes: &[u8], depth: usize, film: &mut Film<'_>, context: &mut Context) -> Option<()> {
    let mut at = 0_usize;
    while at < bytes.len() {
        film.step()?;
        let (id, id_bytes) = variable(bytes, at, false)?;
        let (len, len_bytes) = variable(bytes, at + id_bytes, true)?;
        let start = at + id_bytes + len_bytes;
        let rest = bytes.len().checked_sub(start)?;
        // Live streams do not know the lengths of their segment and clusters.
        let unknown = len == (1_u64 << (7 * len_bytes)) - 1;
        let len = if unknown { rest } else { usize::try_from(len).unwrap_or(usize::MAX) };
        // A cut film has lost its last cluster; the elements before it are still good.
        film.cut |= rest < len;
        let content = slice_up_to(bytes, start, len);
        match id {
            // Segment, Info, Tracks, TrackEntry, Video, Tags, Tag, SimpleTag, Chapters, Edition,
            // ChapterAtom, ChapterDisplay.
            0x1853_8067 | 0x1549_a966 | 0x1654_ae6b | 0xae | 0xe0 | 0x1254_c367 | 0x7373
            | 0x67c8 | 0x1043_a770 | 0x45b9 | 0xb6 | 0x80
                if depth < DEPTH_MAX =>
            {
                elements(content, depth + 1, film, context);
            }
            // A cluster of unknown length cannot be skipped.
            0x1f43_b675 if unknown => return None,
            _ => {
                value(id, content, film, context);
            }
        }
        at = start.checked_add(len)?;
    }
    Some(())
}

fn value(id: u64, content: &[u8], film: &mut Film<'_>, context: &mut Context) -> Option<()> {
    let text = || {
        let text = String::from_utf8_lossy(content);
        text.trim_end_matches('\0').to_owned()
    };
    match id {
        // TimestampScale, Duration.
        0x2a_d7b1 => {
            #[allow(clippy::cast_precision_loss, reason = "good to 15 digits")]
            {
                context.scale = number(content)? as f64;
            }
        }
        0x4489 => {
            context.duration = match content.len() {
                4 => f64::from(f32::from_be_bytes(*content.first_chunk()?)),
                _ => f64::from_be_bytes(*content.first_chunk()?),
            };
        }
        // DateUTC: nanoseconds since 2001.
        0x4461 => {
            let since = i64::from_be_bytes(*content.first_chunk()?).div_euclid(1_000_000_000);
            let date = jiff::Timestamp::from_second(since.checked_add(EPOCH_S)?).ok()?;
            film.about.add(Field::Date, &date.to_string());
        }
        0x7ba9 => film.about.add(Field::Title, &text()),
        0x4d80 | 0x5741 => film.about.add(Field::Generator, &text()),
        // PixelWidth comes before PixelHeight.
        0xb0 => context.width = number(content)?,
        0xba => film.about.dimensions(context.width, number(content)?),
        // Track names, chapter names.
        0x536e | 0x85 => film.about.add(Field::Text, &text()),
        0x45a3 => context.tag = text(),
        0x4487 => tag(&context.tag, &text(), film),
        _ => {}
    }
    Some(())
}

fn tag(name: &str, value: &str, film: &mut Film<'_>) {
    let field = match name.to_ascii_uppercase().as_str() {
        "TITLE" => Field::Title,
        "ARTIST" | "DIRECTOR" | "AUTHOR" | "COMPOSER" => Field::Author,
        "PRODUCER" | "ACTOR" | "LEAD_PERFORMER" | "WRITTEN_BY" | "SCREENPLAY_BY" => {
            Field::Contributor
        }
        "PUBLISHER" | "DISTRIBUTED_BY" => Field::Publisher,
        "DESCRIPTION" | "SUMMARY" | "SYNOPSIS" | "COMMENT" => Field::Description,
        "LYRICS" => Field::Text,
        "DATE_RELEASED" | "DATE_RECORDED" | "DATE" => Field::Date,
        "COPYRIGHT" => Field::Copyright,
        "LICENSE" | "TERMS_OF_USE" => Field::License,
        "GENRE" => Field::Genre,
        "KEYWORDS" | "SUBJECT" => {
            film.about.add_list(Field::Keyword, value, &[',', ';']);
            return;
        }
        "RECORDING_LOCATION" => Field::Location,
        _ => return,
    };
    film.about.add(field, value);
}

/// Reads a number of one to eight bytes; its first bits declare the length, and are removed if
/// `strip`. Returns the number and its length.
fn variable(bytes: &[u8], at: usize, strip: bool) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    let len = first.leading_zeros() as usize + 1;
    if 8 < len {
        return None;
    }
    let raw = number(bytes.get(at..at.checked_add(len)?)?)?;
    let mark = 1 << (7 * len);
    Some((if strip { raw & (mark - 1) } else { raw }, len))
}

/// Reads a number of up to eight bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |sum, it| sum << 8 | u64::from(*it)))
}
