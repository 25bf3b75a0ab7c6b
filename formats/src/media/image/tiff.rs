//! TIFF directories: the metadata of TIFF files, and EXIF, a TIFF directory inside another file.
//!
//! Source: TIFF 6.0 §2; EXIF 2.3 (JEITA CP-3451C) §4.6.
//!
//! Only the few useful tags are read, in place: no directory is stored, and each value is read up to a
//! limit, whatever length it declares.

use std::collections::HashSet;

use super::super::xmp;
use super::iptc;
use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::metadata::{Field, Metadata};
use crate::numbers::{be16, le_len32, le16, len32, slice, slice_up_to, up_to_zero};
use crate::text::decode;

/// Values of the directories that must be combined.
#[derive(Default)]
struct TagValues {
    make: String,
    model: String,
    taken: String,
    changed: String,
    /// Offset of `taken` from universal time.
    offset: String,
    width: u64,
    height: u64,
    latitude: Option<f64>,
    longitude: Option<f64>,
    south: bool,
    west: bool,
    /// Other metadata: tag, start and length.
    blocks: Vec<(u16, usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directory {
    Main,
    Exif,
    Gps,
}

struct TiffReader<'b, 'a, 't> {
    bytes: &'b [u8],
    little: bool,
    about: &'a mut Metadata,
    time: &'a mut TimeLimit<'t>,
    /// Number of entries read so far: directories may be read many times over.
    entries: usize,
    /// The different ones: an equal entry has an equal value.
    known: HashSet<&'b [u8]>,
    values: TagValues,
}

/// Reads the first directory of `bytes` and the directories below it. Width and height are the
/// picture's only if `file` says that this is a TIFF file.
pub(super) fn read(
    bytes: &[u8],
    about: &mut Metadata,
    time: &mut TimeLimit<'_>,
    file: bool,
) -> Option<()> {
    let little = match bytes.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let (known, values) = (HashSet::new(), TagValues::default());
    let mut reader = TiffReader { bytes, little, about, time, entries: 0, known, values };
    let start = reader.long(4)?;
    // A cut directory has given some values.
    let whole = reader.directory(start, Directory::Main);
    reader.finish(file);
    whole
}

impl<'b> TiffReader<'b, '_, '_> {
    fn short(&self, at: usize) -> Option<u16> {
        if self.little { le16(self.bytes, at) } else { be16(self.bytes, at) }
    }

    fn long(&self, at: usize) -> Option<usize> {
        if self.little { le_len32(self.bytes, at) } else { len32(self.bytes, at) }
    }

    /// Reads one directory. Only the main one refers to others, so there are no cycles.
    fn directory(&mut self, start: usize, directory: Directory) -> Option<()> {
        let count = usize::from(self.short(start)?);
        for entry in 0..count {
            if !self.time.goes_on() {
                return None;
            }
            if self.entries == Limit::Pieces.bound() {
                self.about.cut(Limit::Pieces);
                break;
            }
            self.entries += 1;
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
                (Directory::Gps, _) => self.gps_entry(tag, at),
                _ => {
                    self.entry(tag, at);
                }
            }
        }
        Some(())
    }

    /// Returns the bytes of an entry's value: at most as many as may be kept of a text in UTF-16 with a charset.
    fn value(&mut self, at: usize) -> Option<&'b [u8]> {
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
        let value = slice_up_to(self.bytes, self.long(at + 8)?, len);
        let front = value.get(..2 * Limit::Property.bound() + 8);
        if front.is_some_and(|it| it.len() < value.len()) {
            self.about.cut(Limit::Property);
        }
        front.or(Some(value))
    }

    fn text(&mut self, at: usize) -> String {
        let bytes = self.value(at).unwrap_or_default();
        decode(up_to_zero(bytes), None).trim().to_owned()
    }

    fn number(&self, at: usize) -> Option<u64> {
        match self.short(at + 2)? {
            3 => self.short(at + 8).map(u64::from),
            _ => self.long(at + 8).map(|it| it as u64),
        }
    }

    fn entry(&mut self, tag: u16, at: usize) -> Option<()> {
        if !self.known.insert(slice(self.bytes, at, 12)?) {
            return None;
        }
        match tag {
            256 => self.values.width = self.number(at)?,
            257 => self.values.height = self.number(at)?,
            271 => self.values.make = self.text(at),
            272 => self.values.model = self.text(at),
            306 => self.values.changed = self.text(at),
            36867 => self.values.taken = self.text(at),
            36881 => self.values.offset = self.text(at),
            700 | 33723 => self.block(tag, at)?,
            40091..=40095 | 37510 => self.encoded(tag, at)?,
            269 => self.add(Field::Title, at),
            270 => self.add(Field::Description, at),
            305 => self.add(Field::Generator, at),
            315 => self.add(Field::Author, at),
            33432 => self.add(Field::Copyright, at),
            _ => {}
        }
        Some(())
    }

    fn add(&mut self, field: Field, at: usize) {
        // Cameras write these by default.
        let text = self.text(at);
        if !text.starts_with("OLYMPUS DIGITAL CAMERA") && !text.starts_with("SONY DSC") {
            self.about.add(field, &text);
        }
    }

    /// Stores the position of other metadata; it is read last, so that the camera's own metadata
    /// wins.
    fn block(&mut self, tag: u16, at: usize) -> Option<()> {
        let unit = if matches!(self.short(at + 2)?, 4 | 13) { 4 } else { 1 };
        let len = unit * self.long(at + 4)?;
        let start = self.long(at + 8)?;
        self.values.blocks.push((tag, start, len));
        Some(())
    }

    /// Reads texts in UTF-16, or in the charset that their first eight bytes declare.
    fn encoded(&mut self, tag: u16, at: usize) -> Option<()> {
        let bytes = self.value(at)?;
        let utf16 = if self.little { encoding_rs::UTF_16LE } else { encoding_rs::UTF_16BE };
        let (field, bytes, charset) = match tag {
            40091 => (Field::Title, bytes, Some(encoding_rs::UTF_16LE)),
            40092 | 40095 => (Field::Description, bytes, Some(encoding_rs::UTF_16LE)),
            40093 => (Field::Author, bytes, Some(encoding_rs::UTF_16LE)),
            40094 => (Field::Keyword, bytes, Some(encoding_rs::UTF_16LE)),
            _ => match bytes.split_at_checked(8)? {
                (b"UNICODE\0", text) => (Field::Description, text, Some(utf16)),
                (b"ASCII\0\0\0" | [0, ..], text) => (Field::Description, text, None),
                _ => return None,
            },
        };
        let text = match charset {
            Some(charset) => charset.decode_without_bom_handling(bytes).0,
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

    fn gps_entry(&mut self, tag: u16, at: usize) {
        match tag {
            1 => self.values.south = self.text(at).starts_with('S'),
            2 => self.values.latitude = self.degrees(at),
            3 => self.values.west = self.text(at).starts_with('W'),
            4 => self.values.longitude = self.degrees(at),
            _ => {}
        }
    }

    /// Reads degrees, minutes and seconds, each a fraction; returns degrees.
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
        let Self { bytes, about, time, values, .. } = self;
        if file {
            about.dimensions(values.width, values.height);
        }
        // The model often repeats the maker.
        let first = values.make.split(' ').next().unwrap_or_default();
        if !first.is_empty() && values.model.to_lowercase().starts_with(&first.to_lowercase()) {
            about.add(Field::Camera, &values.model);
        } else {
            about.add(Field::Camera, &format!("{} {}", values.make, values.model));
        }
        about.add(Field::Date, &format!("{}{}", values.taken, values.offset));
        about.add(Field::Date, &values.changed);
        if let (Some(latitude), Some(longitude)) = (values.latitude, values.longitude)
            && latitude <= 90.0
            && longitude <= 180.0
            && (latitude != 0.0 || longitude != 0.0)
        {
            let latitude = if values.south { -latitude } else { latitude };
            let longitude = if values.west { -longitude } else { longitude };
            about.add(Field::Location, &format!("{latitude:.6}, {longitude:.6}"));
        }
        for (tag, start, len) in values.blocks {
            let block = slice_up_to(bytes, start, len);
            if tag == 700 {
                xmp::read(block, about, time);
            } else {
                iptc::records(block, about, time);
            }
        }
    }
}
