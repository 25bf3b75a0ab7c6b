//! MP4, QuickTime and similar formats: nested boxes.
//!
//! Source: ISO 14496-12 §4.2 (boxes), §8.2.2 (`mvhd`), §8.3.2 (`tkhd`); QuickTime file format, "User
//! data atoms" and "Metadata"; the item list as iTunes writes it; 3GPP TS 26.244 §8.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::rc::Rc;

use super::super::xmp;
use super::Film;
use crate::Input;
use crate::metadata::Field;
use crate::numbers::{be16, be32, be64, len32, slice_up_to, u8_at};
use crate::object::{SeekReader, SeekState};
use crate::text::decode;

/// Deepest nesting of useful boxes.
const DEPTH_MAX: usize = 8;
/// Longest box about a film behind the front of an object, in bytes.
const MOVIE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Seconds from 1904, the epoch of QuickTime, to 1970.
const EPOCH_S: i64 = 2_082_844_800;

pub(super) fn read(input: &Input<'_>, film: &mut Film<'_>) {
    boxes(&input.object.bytes, 0, film, &mut Vec::new());
    if input.object.rest.is_some() {
        // A box that is longer than the front goes on behind it.
        film.cut = false;
        let state = Rc::default();
        behind_front(input, film, &state);
        film.unread = film.unread.take().or_else(|| state.take_fault());
    } else if input.object.truncated && !film.about.has_dimensions() {
        film.cut = true;
    }
}

/// Reads the box about the film if it does not end in the front of the object: many programs write it
/// last.
fn behind_front(input: &Input<'_>, film: &mut Film<'_>, state: &Rc<SeekState>) -> Option<()> {
    let object = input.object;
    let mut reader = SeekReader::new(object, input.cancelled, state);
    let mut at = 0;
    loop {
        film.step()?;
        let mut front = [0; 16];
        reader.seek(SeekFrom::Start(at)).ok()?;
        reader.read_exact(&mut front).ok()?;
        let (head, len) = match be32(&front, 0)? {
            0 => (8, object.size.checked_sub(at)?),
            1 => (16, be64(&front, 8)?),
            len => (8, u64::from(len)),
        };
        let (content, end) = (len.checked_sub(head)?, at.checked_add(len)?);
        let is_behind = (object.bytes.len() as u64) < end;
        if is_behind && front.get(4..8)? == b"moov" {
            if MOVIE_BYTES_MAX < content {
                film.unread = Some(object.cut("the part about the film"));
                return None;
            }
            let mut bytes = Vec::new();
            reader.seek(SeekFrom::Start(at + head)).ok()?;
            reader.take(content).read_to_end(&mut bytes).ok()?;
            return content_of(b"moov", &bytes, 0, film, &mut Vec::new());
        }
        at = end;
    }
}

/// Reads boxes. `names` are the names of numbered items, which an earlier box gives.
fn boxes(bytes: &[u8], depth: usize, film: &mut Film<'_>, names: &mut Vec<String>) -> Option<()> {
    let mut at = 0_usize;
    while at.saturating_add(8) <= bytes.len() {
        film.step()?;
        let name = bytes.get(at + 4..at + 8)?;
        let (head, len) = match len32(bytes, at)? {
            0 => (8, bytes.len() - at),
            1 => (16, usize::try_from(be64(bytes, at + 8)?).unwrap_or(usize::MAX)),
            len => (8, len),
        };
        let end = at.checked_add(len)?;
        if len < head || bytes.len() < end {
            // Four zero bytes end some lists.
            film.cut |= len != 0 && (depth != 0 || name != b"mdat");
            return None;
        }
        let content = bytes.get(at + head..end)?;
        content_of(name, content, depth, film, names);
        at = end;
    }
    Some(())
}

fn content_of(
    name: &[u8],
    content: &[u8],
    depth: usize,
    film: &mut Film<'_>,
    names: &mut Vec<String>,
) -> Option<()> {
    match name {
        b"moov" | b"trak" | b"udta" if depth < DEPTH_MAX => {
            return boxes(content, depth + 1, film, names);
        }
        b"meta" if depth < DEPTH_MAX => {
            // In QuickTime, the box has no version before its boxes.
            let full = content.get(4..8) != Some(b"hdlr");
            let inner = if full { content.get(4..)? } else { content };
            return boxes(inner, depth + 1, film, names);
        }
        b"mvhd" => {
            return movie(content, film);
        }
        b"tkhd" => {
            return track(content, film);
        }
        b"keys" => keys(content, names),
        b"ilst" => return items(content, film, names),
        b"XMP_" => xmp::read(content, &mut film.about, &mut film.time),
        b"uuid"
            if content.starts_with(
                b"\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac",
            ) =>
        {
            xmp::read(content.get(16..)?, &mut film.about, &mut film.time);
        }
        [0xa9, ..] if 0 < depth => {
            // A length and a language, then the text.
            let len = usize::from(be16(content, 0)?);
            text(name, slice_up_to(content, 4, len), film);
        }
        b"titl" | b"auth" | b"perf" | b"cprt" | b"dscp" | b"gnre" if 0 < depth => {
            text(name, content.get(6..)?, film);
        }
        _ => {}
    }
    Some(())
}

fn movie(content: &[u8], film: &mut Film<'_>) -> Option<()> {
    let long = u8_at(content, 0)? == 1;
    let (created, scale, duration) = if long {
        (be64(content, 4)?, be32(content, 20)?, be64(content, 24)?)
    } else {
        let duration = be32(content, 16)?;
        // All bits set means unknown.
        let duration = if duration == u32::MAX { 0 } else { u64::from(duration) };
        (u64::from(be32(content, 4)?), be32(content, 12)?, duration)
    };
    let milliseconds = u128::from(duration) * 1_000;
    let milliseconds = milliseconds.checked_div(u128::from(scale)).unwrap_or_default();
    film.about.duration(u64::try_from(milliseconds).unwrap_or_default());
    let created = i64::try_from(created).ok()?.checked_sub(EPOCH_S)?;
    if 0 < created {
        let date = jiff::Timestamp::from_second(created).ok()?.to_string();
        film.about.add(Field::Date, &date);
    }
    Some(())
}

fn track(content: &[u8], film: &mut Film<'_>) -> Option<()> {
    let at = if u8_at(content, 0)? == 1 { 88 } else { 76 };
    // Fixed-point numbers; sound has no size.
    let (width, height) = (be16(content, at)?, be16(content, at + 4)?);
    film.about.dimensions(u64::from(width), u64::from(height));
    Some(())
}

/// Reads the names of numbered items.
fn keys(content: &[u8], names: &mut Vec<String>) {
    let mut at = 8_usize;
    names.clear();
    while let Some(len) = len32(content, at).filter(|it| 8 <= *it) {
        let key = slice_up_to(content, at + 8, len - 8);
        names.push(String::from_utf8_lossy(slice_up_to(key, 0, 256)).into_owned());
        at = at.saturating_add(len);
    }
}

/// Reads items, each with a `data` box in it.
fn items(content: &[u8], film: &mut Film<'_>, names: &[String]) -> Option<()> {
    let mut at = 0_usize;
    loop {
        film.step()?;
        let len = len32(content, at).filter(|it| 24 <= *it)?;
        let item = slice_up_to(content, at, len);
        let name = item.get(4..8)?;
        let data = slice_up_to(item, 24, len32(item, 8)?.checked_sub(16)?);
        let is_text = item.get(12..16)? == b"data" && be32(item, 16)? == 1;
        if is_text {
            let number = be32(name, 0)?.checked_sub(1)? as usize;
            match names.get(number).and_then(|key| key.rsplit('.').next()) {
                Some(key) => text(key.as_bytes(), data, film),
                None => text(name, data, film),
            }
        }
        at = at.checked_add(len)?;
    }
}

fn text(name: &[u8], value: &[u8], film: &mut Film<'_>) {
    let field = match name {
        b"\xa9nam" | b"titl" | b"title" | b"displayname" => Field::Title,
        b"\xa9ART" | b"\xa9aut" | b"\xa9dir" | b"aART" | b"auth" | b"author" | b"artist"
        | b"director" => Field::Author,
        b"perf" | b"\xa9wrt" | b"\xa9prf" | b"\xa9prd" | b"producer" => Field::Contributor,
        b"\xa9cmt" | b"\xa9des" | b"desc" | b"dscp" | b"\xa9inf" | b"description" | b"comment" => {
            Field::Description
        }
        b"ldes" | b"\xa9lyr" => Field::Text,
        b"\xa9day" | b"creationdate" => Field::Date,
        b"\xa9cpy" | b"cprt" | b"copyright" => Field::Copyright,
        b"\xa9alb" | b"album" => Field::Album,
        b"\xa9gen" | b"gnre" | b"genre" => Field::Genre,
        b"\xa9key" | b"keyw" | b"keywords" => Field::Keyword,
        b"\xa9too" | b"\xa9swr" | b"software" => Field::Generator,
        b"\xa9mod" | b"model" => Field::Camera,
        b"\xa9xyz" | b"ISO6709" => Field::Location,
        _ => return,
    };
    let value = decode(value, None);
    film.about.add(field, value.trim_end_matches('\0'));
}
