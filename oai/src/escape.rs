//! Escapes for text in names that allow only few characters: every other byte becomes a mark and
//! two hex digits.

use std::fmt;

/// Writes `text`; bytes that are not plain become `mark` and two upper-case hex digits. Non-ASCII
/// letters and the mark must not be plain.
pub(crate) fn write(
    out: &mut impl fmt::Write,
    text: &str,
    mark: char,
    is_plain: impl Fn(u8) -> bool,
) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|it| !is_plain(it)) {
        let (plain, odd) = rest.split_at(at);
        out.write_str(plain)?;
        let length = odd.chars().next().map_or(1, char::len_utf8);
        let (letter, after) = odd.split_at(length);
        for byte in letter.bytes() {
            write!(out, "{mark}{byte:02X}")?;
        }
        rest = after;
    }
    out.write_str(rest)
}

/// Reads text that [`write()`] wrote; other spellings of the same text are accepted. `None` if the
/// result is not text.
pub(crate) fn read(text: &str, mark: char) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = if char::from(byte) == mark {
            let digit = |it: Option<u8>| char::from(it?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}
