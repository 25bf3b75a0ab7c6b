//! Compiled HTML help: title, language, and the names of its pages.
//!
//! Source: "Unofficial (Preliminary) HTML Help Specification" (P. Wise, J. Young): ITSF and ITSP headers, PMGL
//! chunks, and the file `#SYSTEM`.
//!
//! # Differences from the specification
//!
//! * The pages are packed by LZX and not read; the directory of their names is.

use crate::cancellable::TimeLimit;
use crate::numbers::{le_len32, le16, le32, le64, slice, slice_up_to, u8_at, up_to_zero};
use crate::text::{Body, decode};
use crate::{Draft, Input};

/// First bytes of the file.
pub(super) const MARK: &[u8] = b"ITSF";
/// Bytes of the directory's header.
const DIRECTORY_BYTES: usize = 0x54;
/// Bytes of a chunk's head.
const CHUNK_HEAD_BYTES: usize = 0x14;
/// Endings of the names of pages.
const PAGES: [&str; 4] = [".htm", ".html", ".txt", ".xhtml"];

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let mut draft = Draft::default();
    let mut body = Body::new(input.text_bytes_max());
    let mut time = TimeLimit::new(input.cancelled);
    let mut system = None;
    let read = directory(bytes, &mut |name, section, offset, size| {
        if name.eq_ignore_ascii_case("/#SYSTEM") && section == 0 {
            system = Some((offset, size));
        }
        let end = name.to_ascii_lowercase();
        if PAGES.iter().any(|it| end.ends_with(it)) {
            body.push_squeezed_line(name.trim_start_matches('/'));
        }
        time.goes_on()
    });
    // Section 0 is not packed.
    let content = || usize::try_from(le64(bytes, 0x58)?).ok();
    if let Some((offset, size)) = system
        && let Some(at) = content().and_then(|it| it.checked_add(offset))
    {
        about(slice_up_to(bytes, at, size), &mut draft);
    }
    time.report("the directory", &mut draft);
    if read.is_none() && !time.is_over() {
        super::breaks_off(input, "has a directory that cannot be read", &mut draft);
    }
    draft.set_body(body);
    draft
}

/// Calls `visit` with name, section, offset and size of every file until it returns false.
fn directory(bytes: &[u8], visit: &mut dyn FnMut(&str, u64, usize, usize) -> bool) -> Option<()> {
    let at = usize::try_from(le64(bytes, 0x48)?).ok()?;
    let header = slice(bytes, at, DIRECTORY_BYTES)?;
    let chunk_bytes = le_len32(header, 0x10)?;
    let count = le_len32(header, 0x2c)?;
    header.starts_with(b"ITSP").then_some(())?;
    let chunks = bytes.get(at + le_len32(header, 8)?..)?;
    if chunk_bytes <= CHUNK_HEAD_BYTES {
        return None;
    }
    for chunk in chunks.chunks(chunk_bytes).take(count).filter(|it| it.starts_with(b"PMGL")) {
        let free = le_len32(chunk, 4)?;
        let end = chunk.len().checked_sub(free)?;
        let mut at = CHUNK_HEAD_BYTES;
        while at < end {
            let name_bytes = usize::try_from(number(chunk, &mut at)?).ok()?;
            let name = decode(slice(chunk, at, name_bytes)?, None);
            at += name_bytes;
            let section = number(chunk, &mut at)?;
            let offset = usize::try_from(number(chunk, &mut at)?).ok()?;
            let size = usize::try_from(number(chunk, &mut at)?).ok()?;
            if !visit(&name, section, offset, size) {
                return None;
            }
        }
    }
    Some(())
}

/// Reads a number of seven bits a byte, the highest first.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0_u64;
    for _ in 0..9 {
        let byte = u8_at(bytes, *at)?;
        *at += 1;
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Reads the file `#SYSTEM`: pairs of a code and a value after its version.
fn about(system: &[u8], draft: &mut Draft<'_>) -> Option<()> {
    let mut at = 4;
    loop {
        let (code, size) = (le16(system, at)?, usize::from(le16(system, at + 2)?));
        let value = slice(system, at + 4, size)?;
        let text = || decode(up_to_zero(value), None).into_owned();
        match code {
            3 => draft.title = text(),
            4 => draft.other("Language", language(le32(value, 0)?)),
            9 => draft.other("Generator", text()),
            _ => {}
        }
        at += 4 + size;
    }
}

/// Returns the language of a locale of Windows, by its primary language.
fn language(locale: u32) -> &'static str {
    match locale & 0x3ff {
        0x04 => "zh",
        0x05 => "cs",
        0x07 => "de",
        0x09 => "en",
        0x0a => "es",
        0x0c => "fr",
        0x10 => "it",
        0x11 => "ja",
        0x12 => "ko",
        0x13 => "nl",
        0x15 => "pl",
        0x16 => "pt",
        0x19 => "ru",
        0x1f => "tr",
        _ => "",
    }
}

#[cfg(test)]
pub(super) fn sample() -> Vec<u8> {
    let entry = |name: &str, offset: u8, size: u8| {
        [&[u8::try_from(name.len()).unwrap()][..], name.as_bytes(), &[0, offset, size]].concat()
    };
    let system = b"\x03\0\0\0\x04\0\x04\0\x09\x04\0\0\x03\0\x06\0Knots\0";
    let entries =
        [entry("/#SYSTEM", 0, u8::try_from(system.len()).unwrap()), entry("/bends.htm", 0, 0)];
    let mut chunk = [&b"PMGL"[..], &[0; 16], &entries.concat()].concat();
    let used = chunk.len();
    chunk.resize(256, 0);
    chunk[4..8].copy_from_slice(&u32::try_from(256 - used).unwrap().to_le_bytes());
    let mut directory = vec![0; DIRECTORY_BYTES];
    directory[..4].copy_from_slice(b"ITSP");
    directory[8] = 0x54;
    directory[0x11] = 1;
    directory[0x2c] = 1;
    let mut header = vec![0; 0x60];
    header[..8].copy_from_slice(b"ITSF\x03\0\0\0");
    header[0x48] = 0x60;
    header[0x58..0x60].copy_from_slice(&(0x60 + 0x54 + 256_u64).to_le_bytes());
    [header, directory, chunk, system.to_vec()].concat()
}
