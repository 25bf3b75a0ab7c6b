//! Pictures: their size, and metadata by camera, program and author.
//!
//! Source: JPEG (ITU-T T.81 Annex B, EXIF 2.3, IPTC IIM 4.2), PNG (W3C, third edition, §11), GIF89a,
//! WebP (RFC 9649), TIFF 6.0, PSD; XPM, XBM, PNM and XCF by their own manuals. Of other formats, only the
//! size (`imagesize`) and an EXIF block (`kamadak-exif`) are read.
//!
//! # Differences from the paper
//!
//! * Essence used only a picture's name. Here its metadata is read, but never its pixels.

mod chunks;
mod iptc;
mod metafile;
mod simple;
mod tiff;

use std::io::BufReader;

use super::{report_end, xmp};
use crate::cancellable::{CancellableReader, TimeLimit};
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, len32, slice_up_to};
use crate::text::decode;
use crate::{Draft, Input};

/// Largest container of boxes that is searched for an EXIF block, in bytes.
const BOXED_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The state of reading one picture.
struct Picture<'a> {
    bytes: &'a [u8],
    about: Metadata,
    cancelled: &'a dyn Fn() -> bool,
    time: TimeLimit<'a>,
    /// Limits that the picture goes beyond.
    cuts: Vec<Limit>,
}

impl Picture<'_> {
    /// Returns whether `piece`, counted from 0, may be read.
    fn step(&mut self, piece: usize) -> bool {
        if Limit::Pieces.bound() <= piece {
            self.cuts.push(Limit::Pieces);
        }
        self.time.goes_on() && !self.cuts.contains(&Limit::Pieces)
    }
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let bytes = &input.object.bytes;
    let cancelled = input.cancelled;
    let (about, time) = (Metadata::default(), TimeLimit::of_long_steps(cancelled));
    let mut picture = Picture { bytes, about, cancelled, time, cuts: Vec::new() };
    let whole = picture.read();
    let Picture { time, cuts, mut about, .. } = picture;
    if !about.has_dimensions() && !time.is_over() {
        let mut reader = CancellableReader::new(bytes, input.cancelled);
        if let Ok(size) = imagesize::reader_size(&mut reader) {
            about.dimensions(size.width as u64, size.height as u64);
        }
    }
    let sized = about.has_dimensions();
    let mut draft = about.draft(input.text_bytes_max());
    time.report("the picture's metadata", &mut draft);
    if time.is_over() {
        return draft;
    }
    cuts.iter().for_each(|it| draft.cut(it.cut()));
    if cuts.is_empty() && !whole && (!sized || input.object.truncated) {
        report_end(input, "is not a whole picture: its size cannot be read", &mut draft);
    }
    draft
}

impl Picture<'_> {
    /// Reads the metadata; returns false if the picture is cut off or damaged.
    fn read(&mut self) -> bool {
        let bytes = self.bytes;
        let outcome = match bytes {
            [0xff, 0xd8, ..] => self.jpeg(),
            [0x89, b'P', b'N', b'G', ..] => self.png(),
            [b'G', b'I', b'F', b'8', ..] => self.gif(),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => self.webp(),
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => {
                tiff::read(bytes, &mut self.about, &mut self.time, true)
            }
            [b'8', b'B', b'P', b'S', ..] => self.photoshop(),
            [_, _, _, _, b'f', b't', b'y', b'p', ..] => self.boxes(),
            [b'P', b'1'..=b'6', ..] => simple::pnm(bytes, &mut self.about),
            [b'g', b'i', b'm', b'p', b' ', b'x', b'c', b'f', ..] => {
                simple::xcf(bytes, &mut self.about)
            }
            bytes if metafile::is_metafile(bytes) => metafile::read(self),
            _ => {
                // Any other format may be whole without a size at a known position.
                simple::xpm_or_xbm(bytes, &mut self.about);
                Some(())
            }
        };
        outcome.is_some()
    }

    fn jpeg(&mut self) -> Option<()> {
        let mut at = 2;
        for piece in 0.. {
            if !self.step(piece) {
                break;
            }
            // Markers may be padded by any number of 0xff.
            let from = self.bytes.get(at..)?;
            at += from.iter().position(|it| *it != 0xff)?;
            let marker = *self.bytes.get(at)?;
            at += 1;
            if matches!(marker, 0x01 | 0xd0..=0xd8) {
                continue;
            }
            // Pixels follow the start of the scan.
            if matches!(marker, 0xd9 | 0xda) {
                break;
            }
            let len = usize::from(be16(self.bytes, at)?);
            let segment = slice_up_to(self.bytes, at + 2, len.checked_sub(2)?);
            self.segment(marker, segment);
            at += len;
        }
        Some(())
    }

    fn segment(&mut self, marker: u8, segment: &[u8]) {
        match marker {
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                if let (Some(height), Some(width)) = (be16(segment, 1), be16(segment, 3)) {
                    self.about.dimensions(u64::from(width), u64::from(height));
                }
            }
            0xe1 => {
                if let Some(exif) = segment.strip_prefix(b"Exif\0\0") {
                    tiff::read(exif, &mut self.about, &mut self.time, false);
                } else if let Some(packet) = segment.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0")
                {
                    xmp::read(packet, &mut self.about, &mut self.time);
                }
            }
            0xed => {
                if let Some(resources) = segment.strip_prefix(b"Photoshop 3.0\0") {
                    iptc::resources(resources, &mut self.about, &mut self.time);
                }
            }
            0xfe => comment(segment, &mut self.about),
            _ => {}
        }
    }

    /// Reads PSD: a header, the colors, then the same resources as in JPEG.
    fn photoshop(&mut self) -> Option<()> {
        let (height, width) = (len32(self.bytes, 14)?, len32(self.bytes, 18)?);
        self.about.dimensions(width as u64, height as u64);
        let colors = len32(self.bytes, 26)?;
        let at = colors.checked_add(30)?;
        let len = len32(self.bytes, at)?;
        iptc::resources(slice_up_to(self.bytes, at + 4, len), &mut self.about, &mut self.time);
        Some(())
    }

    /// Reads HEIF and AVIF: boxes, among them an EXIF block.
    fn boxes(&mut self) -> Option<()> {
        if BOXED_BYTES_MAX < self.bytes.len() {
            return None;
        }
        let mut reader = BufReader::new(CancellableReader::new(self.bytes, self.cancelled));
        let exif = exif::Reader::new().read_from_container(&mut reader).ok()?;
        tiff::read(exif.buf(), &mut self.about, &mut self.time, false);
        Some(())
    }
}

/// Adds a comment; some programs write their name there.
fn comment(bytes: &[u8], about: &mut Metadata) {
    let text = decode(bytes, None);
    let text = text.trim_matches(|it: char| it.is_whitespace() || it == '\0');
    let by_program = ["CREATOR:", "Created with", "Software:", "LEAD Technologies", "Optimized by"];
    if by_program.iter().any(|it| text.starts_with(it)) {
        about.add(Field::Generator, text);
    } else {
        about.add(Field::Description, text);
    }
}

#[cfg(test)]
mod tests;
