//! Mobipocket's second packing: Huffman codes of phrases (HUFF and CDIC records).
//!
//! Source: the MobileRead wiki, and the description in KindleUnpack's documentation.
//!
//! # Differences from the specification
//!
//! * Phrases that hold phrases are opened to a depth, and up to a length, so that none grows without
//!   bound.

use crate::numbers::{be32, be64, len16, len32, slice};

/// Maximum depth of phrases within phrases.
const DEPTH_MAX: usize = 16;
/// Maximum number of phrases.
const PHRASES_MAX: usize = 1 << 20;
/// Maximum number of records with phrases.
const RECORDS_MAX: usize = 1_024;
/// Longest part of the text when unpacked, in bytes.
const PART_BYTES_MAX: usize = 1024 * 1024;
/// Longest phrase when opened, in bytes.
const PHRASE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of bytes of all opened phrases together.
const OPENED_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The codes and phrases of a book.
#[derive(Debug, Default)]
pub(super) struct Huff {
    /// By the first eight bits of a code: its length, whether that is all, and the largest code.
    short: Vec<(u32, bool, u32)>,
    /// By length: the least and the largest code.
    long: Vec<(u32, u32)>,
    phrases: Vec<Phrase>,
    opened_bytes: usize,
}

#[derive(Debug, Clone)]
struct Phrase {
    bytes: Vec<u8>,
    /// Whether the bytes are text, and not codes.
    is_plain: bool,
}

impl Huff {
    /// Reads the codes in record `first`, and the phrases in those after it, `count` in all.
    pub(super) fn open<'a>(
        first: usize,
        count: usize,
        record: &dyn Fn(usize) -> Option<&'a [u8]>,
    ) -> Option<Self> {
        let mut huff = Self::default();
        huff.codes(record(first)?)?;
        for number in 1..count.min(RECORDS_MAX) {
            huff.add_phrases(record(first.checked_add(number)?)?)?;
        }
        Some(huff)
    }

    fn codes(&mut self, record: &[u8]) -> Option<()> {
        let (short, long) = (len32(record, 8)?, len32(record, 12)?);
        record.starts_with(b"HUFF").then_some(())?;
        for index in 0..256 {
            let value = be32(record, short.checked_add(4 * index)?)?;
            let (bits, is_whole, max) = (value & 0x1f, value & 0x80 != 0, value >> 8);
            self.short.push((bits, is_whole, aligned(max.wrapping_add(1), bits).wrapping_sub(1)));
        }
        self.long.push((0, 0));
        for index in 0..32_u32 {
            let at = long.checked_add(8 * index as usize)?;
            let (min, max) = (be32(record, at)?, be32(record, at + 4)?);
            let bits = index + 1;
            let max = aligned(max.wrapping_add(1), bits).wrapping_sub(1);
            self.long.push((aligned(min, bits), max));
        }
        Some(())
    }

    fn add_phrases(&mut self, record: &[u8]) -> Option<()> {
        record.starts_with(b"CDIC").then_some(())?;
        let (all, bits) = (len32(record, 8)?, be32(record, 12)?);
        let left = all.min(PHRASES_MAX).saturating_sub(self.phrases.len());
        for index in 0..left.min(1_usize.checked_shl(bits.min(20))?) {
            let at = len16(record, 16 + 2 * index)?.checked_add(16)?;
            let head = len16(record, at)?;
            let bytes = slice(record, at + 2, head & 0x7fff)?.to_vec();
            self.phrases.push(Phrase { bytes, is_plain: head & 0x8000 != 0 });
        }
        Some(())
    }

    /// Unpacks a record; `None` if it has a code without a phrase, or phrases too deep or too long.
    pub(super) fn unpack(&mut self, packed: &[u8], text: &mut Vec<u8>) -> Option<()> {
        let bytes_max = text.len() + PART_BYTES_MAX;
        self.unpack_within(packed, DEPTH_MAX, bytes_max, text)
    }

    fn unpack_within(
        &mut self,
        packed: &[u8],
        depth: usize,
        bytes_max: usize,
        text: &mut Vec<u8>,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let bits_all = packed.len().checked_mul(8)?;
        let padded = [packed, &[0; 16]].concat();
        let mut at = 0;
        loop {
            let window = be64(&padded, at / 8)?;
            let shift = 32_u32.checked_sub(u32::try_from(at % 8).ok()?)?;
            let code = u32::try_from(window >> shift & 0xffff_ffff).ok()?;
            let (mut bits, is_whole, mut max) = *self.short.get((code >> 24) as usize)?;
            if !is_whole {
                while code < self.long.get(bits as usize)?.0 {
                    bits += 1;
                }
                max = self.long.get(bits as usize)?.1;
            }
            if bits == 0 {
                return None;
            }
            at += bits as usize;
            if bits_all < at {
                return Some(());
            }
            if bytes_max <= text.len() {
                return None;
            }
            let index = max.wrapping_sub(code).checked_shr(32 - bits)? as usize;
            self.open_phrase(index, depth)?;
            text.extend_from_slice(&self.phrases.get(index)?.bytes);
        }
    }

    /// Replaces the codes of a phrase by their text.
    fn open_phrase(&mut self, index: usize, depth: usize) -> Option<()> {
        let phrase = self.phrases.get_mut(index)?;
        if phrase.is_plain {
            return Some(());
        }
        // A phrase within itself is empty.
        let codes = std::mem::take(&mut phrase.bytes);
        phrase.is_plain = true;
        let mut text = Vec::new();
        self.unpack_within(&codes, depth, PHRASE_BYTES_MAX, &mut text)?;
        self.opened_bytes += text.len();
        (self.opened_bytes <= OPENED_BYTES_MAX).then_some(())?;
        self.phrases.get_mut(index)?.bytes = text;
        Some(())
    }
}

/// Returns a code of this many bits at the high end of 32.
fn aligned(code: u32, bits: u32) -> u32 {
    code.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0)
}
