//! TIFF directories: those of TIFF files, and EXIF, which is one inside another file.
//!
//! Source: TIFF 6.0 §2; EXIF 2.3 (JEITA CP-3451C) §4.6.
//!
//! Only the few tags that are of use are read, where they stand: no directory is kept, and a value
//! counts up to a bound whatever length it claims.
//!
//! Sans-I/O.

use super::super::xmp;
use super::iptc;
use crate::about::{About, Field};
use crate::numbers::{be16, be32, le16, le32, slice, slice_up_to};
use crate::text::decode;

/// Most entries of a directory that are looked at.
const ENTRIES_MAX: usize = 1_000;
/// Longest text that is read, in bytes.
const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Most blocks of other metadata.
const BLOCKS_MAX: usize = 4;
/// Longest block of other metadata, in bytes.
const BLOCK_BYTES_MAX: usize = 1024 * 1024;

/// What the directories say, before it is put together.
#[derive(Default)]
struct Found {
    make: String,
    model: String,
    /// When it was taken, or else last changed, with the offset from universal time.
    taken: String,
    changed: String,
    offset: String,
    width: u64,
    height: u64,
    latitude: Option<f64>,
    longitude: Option<f64>,
    south: bool,
    west: bool,
    /// Where other metadata is: its tag, start and length.
    blocks: Vec<(u16, usize, usize)>,
}

/// Which directory is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Directory {
    Main,
    Exif,
    Gps,
}

struct Reader<'b, 'a> {
    bytes: &'b [u8],
    little: bool,
    about: &'a mut About,
    found: Found,
}

/// Reads the first directory of `bytes`, and what it leads to. The size is that of the picture only
/// in a `file` of its own.
pub(super) fn read(bytes: &[u8], about: &mut About, file: bool) -> Option<()> {
    let little = match bytes.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let mut reader = Reader { bytes, little, about, found: Found::default() };
    let start = reader.long(4)?;
    // A cut directory has told something until then.
    let whole = reader.directory(start, Directory::Main);
    reader.finish(file);
    whole
}

impl Reader<'_, '_> {
    fn short(&self, at: usize) -> Option<u16> {
        if self.little { le16(self.bytes, at) } else { be16(self.bytes, at) }
    }

    fn long(&self, at: usize) -> Option<usize> {
        let number = if self.little { le32(self.bytes, at) } else { be32(self.bytes, at) };
        number.map(|it| it as usize)
    }

    /// Reads one directory. Only the main one leads to others: there are no cycles.
    fn directory(&mut self, start: usize, directory: Directory) -> Option<()> {
        let count = usize::from(self.short(start)?);
        for entry in 0..count.min(ENTRIES_MAX) {
            let at = start.checked_add(2 + 12 * entry)?;
            let tag = self.short(at)?;
            match (directory, tag) {
                (Directory::Main, 34665) => {
                    let start = self.long(at + 8)?;
                    self.directory(start, Directory::Exif);
                }
                (Directory::Main, 34853) => {
                    let start = self.long(at + 8)?;
                    self.directory(start, Directory::Gps);
                }
                (Directory::Gps, _) => {
                    self.place(tag, at);
                }
                _ => {
                    self.entry(tag, at);
                }
            }
        }
        Some(())
    }

    /// Returns the bytes of an entry's value, at most `bytes_max`.
    fn value(&self, at: usize, bytes_max: usize) -> Option<&[u8]> {
        let unit = match self.short(at + 2)? {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 => 8,
            _ => return None,
        };
        let len = unit * self.long(at + 4)?;
        if len <= 4 {
            return slice(self.bytes, at + 8, len);
        }
        Some(slice_up_to(self.bytes, self.long(at + 8)?, len.min(bytes_max)))
    }

    fn text(&self, at: usize) -> String {
        let bytes = self.value(at, VALUE_BYTES_MAX).unwrap_or_default();
        let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
        decode(bytes.get(..end).unwrap_or_default(), None).trim().to_owned()
    }

    fn number(&self, at: usize) -> Option<u64> {
        match self.short(at + 2)? {
            3 => self.short(at + 8).map(u64::from),
            _ => self.long(at + 8).map(|it| it as u64),
        }
    }

    fn entry(&mut self, tag: u16, at: usize) -> Option<()> {
        let field = match tag {
            256 => {
                self.found.width = self.number(at)?;
                return None;
            }
            257 => {
                self.found.height = self.number(at)?;
                return None;
            }
            271 => {
                self.found.make = self.text(at);
                return None;
            }
            272 => {
                self.found.model = self.text(at);
                return None;
            }
            306 => {
                self.found.changed = self.text(at);
                return None;
            }
            36867 => {
                self.found.taken = self.text(at);
                return None;
            }
            36881 => {
                self.found.offset = self.text(at);
                return None;
            }
            700 | 33723 => return self.block(tag, at),
            40091..=40095 | 37510 => return self.encoded(tag, at),
            269 => Field::Title,
            270 => Field::Description,
            305 => Field::Generator,
            315 => Field::Author,
            33432 => Field::Copyright,
            _ => return None,
        };
        // What cameras and their programs write where nobody has written anything.
        let text = self.text(at);
        if !text.starts_with("OLYMPUS DIGITAL CAMERA") && !text.starts_with("SONY DSC") {
            self.about.add(field, &text);
        }
        Some(())
    }

    /// Notes other metadata that stands in an entry: the camera's own counts first.
    fn block(&mut self, tag: u16, at: usize) -> Option<()> {
        let unit = if matches!(self.short(at + 2)?, 4 | 13) { 4 } else { 1 };
        let len = (unit * self.long(at + 4)?).min(BLOCK_BYTES_MAX);
        let start = self.long(at + 8)?;
        if self.found.blocks.len() < BLOCKS_MAX {
            self.found.blocks.push((tag, start, len));
        }
        Some(())
    }

    /// Reads texts that say in which charset they are.
    fn encoded(&mut self, tag: u16, at: usize) -> Option<()> {
        let bytes = self.value(at, VALUE_BYTES_MAX)?;
        let utf16 = if self.little { "utf-16le" } else { "utf-16be" };
        let (field, bytes, charset) = match tag {
            40091 => (Field::Title, bytes, Some("utf-16le")),
            40092 => (Field::Description, bytes, Some("utf-16le")),
            40093 => (Field::Author, bytes, Some("utf-16le")),
            40094 => (Field::Keyword, bytes, Some("utf-16le")),
            40095 => (Field::Description, bytes, Some("utf-16le")),
            _ => match bytes.split_at_checked(8)? {
                (b"UNICODE\0", text) => (Field::Description, text, Some(utf16)),
                (b"ASCII\0\0\0" | [0, ..], text) => (Field::Description, text, None),
                _ => return None,
            },
        };
        let text = match charset {
            Some("utf-16le") => encoding_rs::UTF_16LE.decode_without_bom_handling(bytes).0,
            Some(_) => encoding_rs::UTF_16BE.decode_without_bom_handling(bytes).0,
            None => decode(bytes, None),
        };
        let text = text.trim_end_matches('\0').to_owned();
        if field == Field::Keyword {
            self.about.add_list(field, &text, &[';']);
        } else {
            self.about.add(field, &text);
        }
        Some(())
    }

    fn place(&mut self, tag: u16, at: usize) -> Option<()> {
        match tag {
            1 => self.found.south = self.text(at).starts_with('S'),
            2 => self.found.latitude = self.degrees(at),
            3 => self.found.west = self.text(at).starts_with('W'),
            4 => self.found.longitude = self.degrees(at),
            _ => {}
        }
        Some(())
    }

    /// Degrees, minutes and seconds, each a fraction.
    fn degrees(&self, at: usize) -> Option<f64> {
        if self.short(at + 2)? != 5 || self.long(at + 4)? != 3 {
            return None;
        }
        let start = self.long(at + 8)?;
        let mut degrees = 0.0;
        for (part, unit) in [(0, 1.0), (8, 60.0), (16, 3600.0)] {
            let above = u32::try_from(self.long(start.checked_add(part)?)?).ok()?;
            let below = u32::try_from(self.long(start + part + 4)?).ok()?;
            if below != 0 {
                degrees += f64::from(above) / f64::from(below) / unit;
            }
        }
        Some(degrees)
    }

    fn finish(self, file: bool) {
        let Self { bytes, about, found, .. } = self;
        if file {
            about.dimensions(found.width, found.height);
        }
        // The model often repeats who made it.
        let first = found.make.split(' ').next().unwrap_or_default();
        if !first.is_empty() && found.model.to_lowercase().starts_with(&first.to_lowercase()) {
            about.add(Field::Camera, &found.model);
        } else {
            about.add(Field::Camera, &format!("{} {}", found.make, found.model));
        }
        let date = iso_date(&found.taken);
        if date.is_empty() {
            about.add(Field::Date, &iso_date(&found.changed));
        } else {
            about.add(Field::Date, &format!("{date}{}", found.offset));
        }
        if let (Some(latitude), Some(longitude)) = (found.latitude, found.longitude)
            && latitude <= 90.0
            && longitude <= 180.0
            && (latitude != 0.0 || longitude != 0.0)
        {
            let latitude = if found.south { -latitude } else { latitude };
            let longitude = if found.west { -longitude } else { longitude };
            about.add(Field::Location, &format!("{latitude:.6}, {longitude:.6}"));
        }
        for (tag, start, len) in found.blocks {
            let block = slice_up_to(bytes, start, len);
            if tag == 700 {
                xmp::read(block, about);
            } else {
                iptc::records(block, about);
            }
        }
    }
}

/// `2020:01:02 03:04:05` to `2020-01-02T03:04:05`; empty when it is no date.
fn iso_date(date: &str) -> String {
    let Some((day, time)) = date.split_once(' ') else { return String::new() };
    let day = day.replace(':', "-");
    let shaped = day.len() == 10 && time.len() == 8 && !day.starts_with("0000");
    let digits = |it: &str| it.chars().all(|it| it.is_ascii_digit() || matches!(it, '-' | ':'));
    if shaped && digits(&day) && digits(time) { format!("{day}T{time}") } else { String::new() }
}
