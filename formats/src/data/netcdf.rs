//! NetCDF in the classic format: attributes of the data set, its variables and dimensions.
//!
//! Source: "The NetCDF Classic Format Specification" (NetCDF User's Guide, appendix B), and the attributes of
//! the CF conventions and of ACDD. NetCDF-4 is HDF5, of which only names and sentences are read.

use std::borrow::Cow;

use crate::cancellable::TimeLimit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be32, be64, slice_up_to, u8_at};
use crate::text::{Body, HEADINGS_BYTES_MAX, decode};
use crate::{Draft, Input};

/// The reader of the header.
struct HeaderReader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Bytes of a length: 4, or 8 in version 5.
    length_bytes: usize,
    /// Bytes of an offset.
    offset_bytes: usize,
    about: Metadata,
    body: Body,
    time: TimeLimit<'a>,
}

pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &*input.object.bytes;
    let version = u8_at(bytes, 3).unwrap_or(0);
    let mut header = HeaderReader {
        bytes,
        at: 4,
        length_bytes: if version == 5 { 8 } else { 4 },
        offset_bytes: if version == 1 { 4 } else { 8 },
        about: Metadata::default(),
        body: Body::new(input.text_bytes_max()),
        time: TimeLimit::new(input.cancelled),
    };
    let mut variables = Body::new(HEADINGS_BYTES_MAX);
    let is_whole = header.read(&mut variables).is_some();
    let HeaderReader { about, body, time, .. } = header;
    let mut draft = about.draft(input.text_bytes_max());
    draft.other("Headings", variables.as_str().trim());
    draft.set_body(body);
    time.report("the header", &mut draft);
    if !is_whole && !time.is_over() {
        super::breaks_off(input, "has a header that cannot be read to its end", &mut draft);
    }
    draft
}

impl<'a> HeaderReader<'a> {
    fn read(&mut self, variables: &mut Body) -> Option<()> {
        let _records = self.length()?;
        for _ in 0..self.list()? {
            let name = self.name()?;
            let length = self.length()?;
            self.body.push_squeezed_line(&format!("{name} {length}"));
        }
        for _ in 0..self.list()? {
            self.attribute(true)?;
        }
        for _ in 0..self.list()? {
            let name = self.name()?;
            variables.push_squeezed_line(&name);
            self.body.push_squeezed_line(&name);
            let dimensions = self.length()?;
            self.skip(dimensions.checked_mul(self.length_bytes)?)?;
            for _ in 0..self.list()? {
                self.attribute(false)?;
            }
            self.skip(4 + self.length_bytes + self.offset_bytes)?;
        }
        Some(())
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes).filter(|it| *it <= self.bytes.len())?;
        Some(())
    }

    fn number(&mut self) -> Option<u32> {
        let value = be32(self.bytes, self.at)?;
        self.at += 4;
        Some(value)
    }

    fn length(&mut self) -> Option<usize> {
        if self.length_bytes == 4 {
            return self.number().map(|it| it as usize);
        }
        let value = be64(self.bytes, self.at)?;
        self.at += 8;
        usize::try_from(value).ok()
    }

    /// Reads the tag and the number of elements of a list.
    fn list(&mut self) -> Option<usize> {
        let _tag = self.number()?;
        self.length()
    }

    /// Reads as many bytes, and the zeros up to the next multiple of four.
    fn padded(&mut self, count: usize) -> Option<&'a [u8]> {
        let bytes = slice_up_to(self.bytes, self.at, count);
        self.skip(count.checked_next_multiple_of(4)?)?;
        Some(bytes)
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        let count = self.length()?;
        self.time.goes_on().then_some(())?;
        self.padded(count).map(|it| decode(it, None))
    }

    /// Reads an attribute, of the data set or of a variable.
    fn attribute(&mut self, is_global: bool) -> Option<()> {
        let name = self.name()?;
        let kind = self.number()?;
        let count = self.length()?;
        let size = match kind {
            1 | 2 | 7 => 1,
            3 | 8 => 2,
            4 | 5 | 9 => 4,
            6 | 10 | 11 => 8,
            _ => return None,
        };
        let bytes = self.padded(count.checked_mul(size)?)?;
        // Type 2 is text.
        if kind != 2 || bytes.is_empty() {
            return Some(());
        }
        let value = decode(bytes, None);
        let value = value.trim_matches('\0');
        self.body.push_squeezed_line(&format!("{name}: {value}"));
        if is_global {
            self.describe(&name.to_ascii_lowercase(), value);
        }
        Some(())
    }

    fn describe(&mut self, name: &str, value: &str) {
        let field = match name {
            "title" => Field::Title,
            "creator_name" | "author" | "authors" => Field::Author,
            "contributor_name" => Field::Contributor,
            "institution" | "publisher_name" => Field::Publisher,
            "summary" | "comment" | "description" => Field::Description,
            "keywords" => Field::Keyword,
            "license" => Field::License,
            "date_created" | "date" | "creation_date" => Field::Date,
            "id" => Field::Identifier,
            "source" => Field::Generator,
            _ => return,
        };
        self.about.add(field, value);
    }
}

#[cfg(test)]
pub(super) fn sample() -> Vec<u8> {
    let text = |it: &str| {
        let mut bytes = u32::try_from(it.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(it.bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let number = |it: u32| it.to_be_bytes().to_vec();
    let attribute = |name: &str, value: &str| [text(name), number(2), text(value)].concat();
    [
        b"CDF\x01".to_vec(),
        number(0),
        [number(10), number(1), text("lat"), number(9)].concat(),
        [number(12), number(2)].concat(),
        attribute("title", "Sea ice"),
        attribute("institution", "Ice House"),
        [number(11), number(1), text("ice"), number(1), number(0)].concat(),
        [number(12), number(2), attribute("units", "metres")].concat(),
        [text("valid"), number(6), number(1), vec![0; 8]].concat(),
        [number(6), number(8), number(0)].concat(),
    ]
    .concat()
}
