//! The writer: it appends records and sections to a buffer of the caller.
//!
//! `parse(write(r)) == r` for every record whose names and URL SOIF can carry, and
//! `write(parse(x)) == x` for every stream that this writer wrote.
//!
//! Source: TR §3 and Figure 3.
//!
//! # Differences from the original
//!
//! * Empty values are written.
//! * White space, control characters and DEL in a URL are percent-encoded. So is `}` or `@` at its
//!   start: after a section's name, a reader would take `}` for the end of the section, and `@` for
//!   its first record.
//!
//! Sans-I/O.

use std::borrow::Cow;

use crate::NO_URL;
use crate::record::Record;
use crate::stream::Section;

/// Appends a record: its header, its attributes in their order, a closing brace and a line feed.
///
/// An empty URL is written as [`NO_URL`].
pub fn write_record(out: &mut Vec<u8>, record: &Record) {
    let values: usize =
        record.attributes().iter().map(|it| it.name.len() + it.value.len() + 16).sum();
    out.reserve(record.template.len() + record.url.len() + values + 8);
    out.push(b'@');
    write_name(out, &record.template);
    out.extend_from_slice(b" { ");
    let url = if record.url.is_empty() { NO_URL } else { &record.url };
    out.extend_from_slice(plain_url(url).as_bytes());
    out.push(b'\n');
    for attribute in record.attributes() {
        write_attribute(out, &attribute.name, &attribute.value);
    }
    out.extend_from_slice(b"}\n");
}

/// Appends one attribute, `name{size}:<TAB>value<LF>`.
pub fn write_attribute(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    write_name(out, name);
    out.push(b'{');
    write_decimal(out, value.len());
    out.extend_from_slice(b"}:\t");
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Opens a section.
pub fn open_section(out: &mut Vec<u8>, section: Section) {
    out.push(b'@');
    out.extend_from_slice(section.name().as_bytes());
    out.extend_from_slice(b" {\n");
}

/// Closes the open section.
pub fn close_section(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}

/// Returns whether a byte may stand in a name or a template type.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    !(byte <= b' ' || byte == b'{' || byte == b'}' || byte == 0x7f)
}

/// Returns whether a byte may stand in a URL.
pub(crate) fn is_url_byte(byte: u8) -> bool {
    !(byte <= b' ' || byte == 0x7f)
}

/// Appends a name; each byte that SOIF cannot carry in it becomes `-`.
fn write_name(out: &mut Vec<u8>, name: &str) {
    let plain = !name.is_empty() && !name.starts_with('@') && name.bytes().all(is_name_byte);
    if plain {
        return out.extend_from_slice(name.as_bytes());
    }
    if name.is_empty() {
        return out.push(b'-');
    }
    for (at, byte) in name.bytes().enumerate() {
        let carried = is_name_byte(byte) && !(at == 0 && byte == b'@');
        out.push(if carried { byte } else { b'-' });
    }
}

/// Returns `url` as it is written: bytes that a template header cannot carry are percent-encoded.
pub fn plain_url(url: &str) -> Cow<'_, str> {
    if url.bytes().all(is_url_byte) && !url.bytes().next().is_some_and(is_no_url_start) {
        return Cow::Borrowed(url);
    }
    let mut out = Vec::with_capacity(url.len() + 8);
    encode_url(&mut out, url.as_bytes(), is_url_byte);
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Returns whether a byte may not start a URL.
pub(crate) fn is_no_url_start(byte: u8) -> bool {
    matches!(byte, b'@' | b'}')
}

/// Appends `url`; percent-encodes bytes that are not `kept`, and a first byte that may not be
/// first.
pub(crate) fn encode_url(out: &mut Vec<u8>, url: &[u8], kept: fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for (at, &byte) in url.iter().enumerate() {
        if kept(byte) && !(at == 0 && is_no_url_start(byte)) {
            out.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'%', HEX[high], HEX[low]]);
        }
    }
}

fn write_decimal(out: &mut Vec<u8>, mut number: usize) {
    let start = out.len();
    loop {
        out.push(b"0123456789"[number % 10]);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(record: &Record, expected: &str) {
        let mut out = Vec::new();
        write_record(&mut out, record);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn a_record_is_written_as_the_report_prints_it() {
        let mut record = Record::new("FILE", "http://a/b c\n");
        record.push("Title", "Hello");
        record.push("Empty", "");
        record.push("a b{", "x\ny");
        check(
            &record,
            "@FILE { http://a/b%20c%0A\nTitle{5}:\tHello\nEmpty{0}:\t\na-b-{3}:\tx\ny\n}\n",
        );
        check(&Record::new("", ""), "@- { -\n}\n");
        check(&Record::new("UPDATE", "}"), "@UPDATE { %7D\n}\n");
    }

    #[test]
    fn a_section_is_written_around_its_records() {
        let mut out = Vec::new();
        open_section(&mut out, Section::Update);
        write_record(&mut out, &Record::new("FILE", "x"));
        close_section(&mut out);
        assert_eq!(out, b"@UPDATE {\n@FILE { x\n}\n}\n");
    }

    #[test]
    fn byte_counts_are_decimal() {
        for number in [0, 9, 10, 1_234_567_890] {
            let mut out = Vec::new();
            write_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
