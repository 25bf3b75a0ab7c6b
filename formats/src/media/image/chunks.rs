//! Pictures made of chunks: PNG, GIF and WebP.
//!
//! Source: PNG (W3C, third edition) §11.3 and its registered keywords; GIF89a §24 and §26; RFC 9649
//! §2.7.

use std::io::Read;

use flate2::read::ZlibDecoder;

use super::super::xmp;
use super::{Picture, comment, iptc, tiff};
use crate::limit::Limit;
use crate::metadata::Field;
use crate::numbers::{be32, le_len32, le16, len32, slice_up_to, u8_at};
use crate::text::decode;

/// Prefix of the keyword under which ImageMagick and GIMP store metadata of other formats.
const PROFILE: &str = "Raw profile type ";

impl Picture<'_> {
    pub(super) fn png(&mut self) -> Option<()> {
        let (width, height) = (be32(self.bytes, 16)?, be32(self.bytes, 20)?);
        self.about.dimensions(u64::from(width), u64::from(height));
        let mut at = 8_usize;
        let mut inflated = 0;
        for piece in 0.. {
            if !self.step(piece) {
                break;
            }
            let (Some(len), Some(name)) = (len32(self.bytes, at), self.bytes.get(at + 4..at + 8))
            else {
                return None;
            };
            let data = || slice_up_to(self.bytes, at + 8, len);
            match name {
                b"IEND" => break,
                b"tEXt" | b"zTXt" | b"iTXt" => {
                    inflated += usize::from(name != b"tEXt");
                    if Limit::PackedTexts.bound() < inflated {
                        self.cuts.push(Limit::PackedTexts);
                    } else if let Some((keyword, text, is_cut)) = png_text(name, data()) {
                        self.cuts.extend(is_cut.then_some(Limit::Packet));
                        self.add_text(&keyword, &text);
                    }
                }
                b"eXIf" => {
                    tiff::read(data(), &mut self.about, &mut self.time, false);
                }
                _ => {}
            }
            at = at.checked_add(12)?.checked_add(len)?;
        }
        Some(())
    }

    /// Adds a text under its keyword.
    fn add_text(&mut self, keyword: &str, text: &str) {
        let field = match keyword {
            "Title" => Field::Title,
            "Author" | "Creator" => Field::Author,
            "Description" | "Comment" => {
                comment(text.as_bytes(), &mut self.about);
                return;
            }
            "Copyright" => Field::Copyright,
            "Creation Time" | "date:create" => Field::Date,
            "Software" => Field::Generator,
            "Source" => Field::Camera,
            "XML:com.adobe.xmp" => {
                xmp::read(text.as_bytes(), &mut self.about, &mut self.time);
                return;
            }
            // Data about files: ImageMagick's other dates, and a thumbnail's facts about its
            // original.
            _ if keyword.starts_with("date:") || keyword.starts_with("Thumb::") => return,
            _ if keyword.starts_with(PROFILE) => {
                self.profile(keyword.trim_start_matches(PROFILE), text);
                return;
            }
            "Warning" => return,
            _ => Field::Text,
        };
        self.about.add(field, text);
    }

    /// Reads a raw profile, which has metadata of another format: a line with a name, one with the
    /// length, then hexadecimal digits.
    fn profile(&mut self, name: &str, text: &str) {
        let digits = text.trim_start().splitn(3, '\n').nth(2).unwrap_or_default();
        let mut digits = digits.bytes().filter_map(|it| char::from(it).to_digit(16));
        let mut bytes = Vec::new();
        while let (Some(high), Some(low)) = (digits.next(), digits.next()) {
            bytes.extend(u8::try_from(high * 16 + low));
        }
        match name {
            "exif" | "APP1" if bytes.starts_with(b"http") => {
                let start = bytes.iter().position(|it| *it == 0).unwrap_or_default();
                xmp::read(bytes.get(start..).unwrap_or_default(), &mut self.about, &mut self.time);
            }
            "exif" | "APP1" => {
                let exif = bytes.strip_prefix(b"Exif\0\0").unwrap_or(&bytes);
                tiff::read(exif, &mut self.about, &mut self.time, false);
            }
            "xmp" => xmp::read(&bytes, &mut self.about, &mut self.time),
            "iptc" | "8bim" => {
                iptc::resources(&bytes, &mut self.about, &mut self.time);
            }
            _ => {}
        }
    }

    pub(super) fn gif(&mut self) -> Option<()> {
        let (width, height) = (le16(self.bytes, 6)?, le16(self.bytes, 8)?);
        self.about.dimensions(u64::from(width), u64::from(height));
        let mut at = 13 + color_table(u8_at(self.bytes, 10)?);
        for piece in 0.. {
            if !self.step(piece) {
                break;
            }
            match u8_at(self.bytes, at)? {
                b'!' => at = self.extension(at)?,
                b',' => {
                    let colors = color_table(u8_at(self.bytes, at + 9)?);
                    at = self.skip_blocks(at + 11 + colors)?;
                }
                _ => break,
            }
        }
        Some(())
    }

    /// Reads the extension at `at`; returns its end.
    fn extension(&mut self, at: usize) -> Option<usize> {
        let blocks = at + 2;
        match u8_at(self.bytes, at + 1)? {
            0xfe => {
                let text = self.joined_blocks(blocks);
                comment(&text, &mut self.about);
            }
            0xff if slice_up_to(self.bytes, at + 3, 11) == b"XMP DataXMP" => {
                // The packet is not cut into blocks: it follows the application identifier as it
                // is.
                let rest = self.bytes.get(at + 14..)?;
                let near = slice_up_to(rest, 0, Limit::Packet.bound());
                let end = memchr::memmem::find(near, b"<?xpacket end");
                if end.is_none() && near.len() < rest.len() {
                    self.cuts.push(Limit::Packet);
                }
                let end = end.unwrap_or_default();
                xmp::read(rest.get(..end)?, &mut self.about, &mut self.time);
                return self.skip_blocks(at + 14 + end);
            }
            _ => {}
        }
        self.skip_blocks(blocks)
    }

    fn joined_blocks(&self, mut at: usize) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(len) = u8_at(self.bytes, at).filter(|it| *it != 0) {
            text.extend_from_slice(slice_up_to(self.bytes, at + 1, usize::from(len)));
            at += 1 + usize::from(len);
        }
        text
    }

    fn skip_blocks(&mut self, mut at: usize) -> Option<usize> {
        for piece in 1.. {
            let len = usize::from(u8_at(self.bytes, at)?);
            at += 1 + len;
            if len == 0 || !self.step(piece) {
                break;
            }
        }
        Some(at)
    }

    pub(super) fn webp(&mut self) -> Option<()> {
        let mut at = 12_usize;
        for piece in 0.. {
            if !self.step(piece) {
                break;
            }
            let Some(name) = self.bytes.get(at..at + 4) else { break };
            let len = le_len32(self.bytes, at + 4)?;
            match name {
                b"EXIF" => {
                    let data = slice_up_to(self.bytes, at + 8, len);
                    let data = data.strip_prefix(b"Exif\0\0").unwrap_or(data);
                    tiff::read(data, &mut self.about, &mut self.time, false);
                }
                b"XMP " => {
                    let data = slice_up_to(self.bytes, at + 8, len);
                    xmp::read(data, &mut self.about, &mut self.time);
                }
                _ => {}
            }
            at = at.checked_add(8 + len + len % 2)?;
        }
        Some(())
    }
}

/// Returns the size of the color table that `flags` announces, in bytes.
fn color_table(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Returns keyword and text of a text chunk, and whether the text was cut when it was unpacked.
fn png_text(name: &[u8], data: &[u8]) -> Option<(String, String, bool)> {
    let end = data.iter().take(80).position(|it| *it == 0)?;
    let keyword = decode(data.get(..end)?, Some("iso-8859-1")).into_owned();
    let rest = data.get(end + 1..)?;
    let (text, is_cut) = match name {
        b"tEXt" => (latin1_or_utf8(rest), false),
        b"zTXt" => {
            let (text, is_cut) = inflate(rest.get(1..)?);
            (latin1_or_utf8(&text), is_cut)
        }
        _ => {
            let (packed, rest) = (*rest.first()? == 1, rest.get(2..)?);
            // Before the text: the language tag, and the keyword translated to that language.
            let mut parts = rest.splitn(3, |it| *it == 0);
            let text = parts.nth(2)?;
            let (text, is_cut) = if packed { inflate(text) } else { (text.to_vec(), false) };
            (String::from_utf8_lossy(&text).into_owned(), is_cut)
        }
    };
    Some((keyword, text, is_cut))
}

/// Decodes UTF-8, which some programs write, or else Latin-1, as in the standard.
fn latin1_or_utf8(bytes: &[u8]) -> String {
    decode(bytes, Some("iso-8859-1")).into_owned()
}

/// Inflates at most [`Limit::Packet`], and returns whether there is more.
fn inflate(bytes: &[u8]) -> (Vec<u8>, bool) {
    let (mut text, most) = (Vec::new(), Limit::Packet.bound());
    // The text before an error is kept.
    let _ = ZlibDecoder::new(bytes).take(most as u64 + 1).read_to_end(&mut text);
    let is_cut = most < text.len();
    text.truncate(most);
    (text, is_cut)
}
