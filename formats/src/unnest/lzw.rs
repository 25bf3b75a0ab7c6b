//! The output of `compress` (`.Z`): LZW with codes of 9 to 16 bits.
//!
//! Source: Welch, "A Technique for High-Performance Data Compression", 1984; the file format of compress
//! 4.0. Its codes come in groups of eight, which are padded where the width changes.

use std::io::{self, BufRead, Read};

/// Count of codes for single bytes.
const LITERALS: u16 = 256;
/// The code that clears the table, if the header declares it.
const CLEAR: u16 = 256;
/// Width of the first codes, in bits.
const WIDTH_MIN: usize = 9;
/// Width of the widest codes, in bits.
const WIDTH_MAX: usize = 16;
/// Bytes decoded ahead; one code may add 64 KiB more.
const AHEAD_BYTES: usize = 4 * 1024;
/// Flag in the third byte of a file: the table may be cleared.
const BLOCK_MODE: u8 = 0x80;
/// Bits in the third byte of a file: width of the widest codes.
const WIDTH_MASK: u8 = 0x1f;

#[derive(Debug)]
pub(super) struct Lzw<R> {
    inner: R,
    width_max: usize,
    has_clear: bool,
    width: usize,
    /// Eight codes, or fewer at the end of the file.
    group: [u8; WIDTH_MAX],
    group_bits: usize,
    at_bit: usize,
    /// For each code from 256 on: the code of its string without the last byte, and that byte.
    entries: Vec<(u16, u8)>,
    last: Option<(u16, u8)>,
    out: Vec<u8>,
    taken: usize,
}

impl<R: BufRead> Lzw<R> {
    /// Reads the header of three bytes.
    pub(super) fn new(mut inner: R) -> io::Result<Self> {
        let mut header = [0; 3];
        inner.read_exact(&mut header)?;
        let [_, _, flags] = header;
        let width_max = usize::from(flags & WIDTH_MASK);
        if !(WIDTH_MIN..=WIDTH_MAX).contains(&width_max) {
            return Err(damaged("the header has an unsupported code width"));
        }
        let mut lzw = Self {
            inner,
            width_max,
            has_clear: flags & BLOCK_MODE != 0,
            width: WIDTH_MIN,
            group: [0; WIDTH_MAX],
            group_bits: 0,
            at_bit: 0,
            entries: Vec::new(),
            last: None,
            out: Vec::new(),
            taken: 0,
        };
        lzw.clear();
        Ok(lzw)
    }

    fn clear(&mut self) {
        self.entries.clear();
        if self.has_clear {
            // The code that clears the table takes one entry of it.
            self.entries.push((0, 0));
        }
        self.last = None;
        self.width = WIDTH_MIN;
        self.group_bits = 0;
    }

    /// Returns the next code; `None` at the end.
    fn code(&mut self) -> io::Result<Option<u16>> {
        let next = usize::from(LITERALS) + self.entries.len();
        if self.width < self.width_max && 1 << self.width <= next {
            self.width += 1;
            self.group_bits = 0;
        }
        if self.group_bits < self.at_bit + self.width || self.group_bits == 0 {
            let group = self.group.get_mut(..self.width).unwrap_or_default();
            let mut filled = 0;
            while filled < group.len() {
                match self.inner.read(group.get_mut(filled..).unwrap_or_default())? {
                    0 => break,
                    count => filled += count,
                }
            }
            (self.group_bits, self.at_bit) = (filled * 8, 0);
            if self.group_bits < self.width {
                return Ok(None);
            }
        }
        let byte = |at: usize| u32::from(self.group.get(at).copied().unwrap_or_default());
        let at = self.at_bit / 8;
        let bits = byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16;
        let code = bits >> (self.at_bit % 8) & ((1 << self.width) - 1);
        self.at_bit += self.width;
        Ok(u16::try_from(code).ok())
    }

    /// Decodes more into `out`; returns false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        self.out.clear();
        self.taken = 0;
        while self.out.len() < AHEAD_BYTES {
            let Some(code) = self.code()? else { break };
            if self.has_clear && code == CLEAR {
                self.clear();
                continue;
            }
            self.put(code)?;
        }
        Ok(!self.out.is_empty())
    }

    fn put(&mut self, code: u16) -> io::Result<()> {
        let next = usize::from(LITERALS) + self.entries.len();
        let start = self.out.len();
        let mut at = code;
        if next <= usize::from(code) {
            // The one code that may be used before it is defined: the last string and its first byte.
            let (last, first) =
                self.last.ok_or_else(|| damaged("it does not start with a byte"))?;
            if next < usize::from(code) {
                return Err(damaged("undefined code"));
            }
            self.out.push(first);
            at = last;
        }
        while LITERALS <= at {
            // Each code refers to an earlier code, so the loop ends.
            let entry = self.entries.get(usize::from(at - LITERALS));
            let (before, byte) = *entry.ok_or_else(|| damaged("undefined code"))?;
            self.out.push(byte);
            at = before;
        }
        let first = at.to_le_bytes()[0];
        self.out.push(first);
        if let Some(string) = self.out.get_mut(start..) {
            string.reverse();
        }
        if let Some((last, _)) = self.last
            && next < 1 << self.width_max
        {
            self.entries.push((last, first));
        }
        self.last = Some((code, first));
        Ok(())
    }
}

impl<R: BufRead> Read for Lzw<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.out.len() && !self.fill()? {
            return Ok(0);
        }
        let mut rest = self.out.get(self.taken..).unwrap_or_default();
        let count = rest.read(buffer)?;
        self.taken += count;
        Ok(count)
    }
}

fn damaged(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Writes codes as `compress -b width_max` does: in groups of eight, padded where the width changes.
    pub(crate) fn write_codes(codes: &[usize], width_max: usize) -> Vec<u8> {
        let mut packed = vec![0x1f, 0x9d, BLOCK_MODE | u8::try_from(width_max).unwrap()];
        let mut put = |group: &mut Vec<usize>, width: usize, whole: bool| {
            let count = if whole && !group.is_empty() { 8 } else { group.len() };
            let mut bytes = vec![0; (count * width).div_ceil(8)];
            for (number, code) in group.drain(..).enumerate() {
                for bit in (0..width).filter(|bit| code >> bit & 1 == 1) {
                    let at = number * width + bit;
                    bytes[at / 8] |= 1 << (at % 8);
                }
            }
            packed.extend(bytes);
        };
        // Count of codes that the reader has defined; it adds none for the first.
        let (mut defined, mut width, mut is_first) = (257, WIDTH_MIN, true);
        let mut group = Vec::new();
        for code in codes.iter().copied() {
            if width < width_max && 1 << width <= defined {
                put(&mut group, width, true);
                width += 1;
            }
            group.push(code);
            if group.len() == 8 || code == 256 {
                put(&mut group, width, true);
            }
            if code == 256 {
                (defined, width, is_first) = (257, WIDTH_MIN, true);
            } else if is_first {
                is_first = false;
            } else if defined < 1 << width_max {
                defined += 1;
            }
        }
        put(&mut group, width, false);
        packed
    }

    /// Packs as `compress` does, but clears the table whenever it is full.
    pub(crate) fn compress(bytes: &[u8], width_max: usize) -> Vec<u8> {
        let (mut codes, mut string) = (Vec::new(), Vec::new());
        let mut table: HashMap<Vec<u8>, usize> = HashMap::new();
        let code_of = |table: &HashMap<Vec<u8>, usize>, string: &[u8]| match string {
            [byte] => usize::from(*byte),
            string => table[string],
        };
        for byte in bytes {
            string.push(*byte);
            if string.len() == 1 || table.contains_key(&string) {
                continue;
            }
            codes.push(code_of(&table, &string[..string.len() - 1]));
            let next = 257 + table.len();
            if next < 1 << width_max {
                table.insert(string, next);
            } else {
                codes.push(256);
                table.clear();
            }
            string = vec![*byte];
        }
        if !string.is_empty() {
            codes.push(code_of(&table, &string));
        }
        write_codes(&codes, width_max)
    }

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Lzw::new(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn output_of_compress_is_unpacked() {
        // Codes of 9 bits, the lowest bit first: a, b, ab, aba.
        let codes: [u64; 4] = [97, 98, 257, 259];
        let bits = codes.iter().rev().fold(0_u64, |bits, code| bits << 9 | code);
        let packed = [&[0x1f, 0x9d, 0x90], &bits.to_le_bytes()[..5]].concat();
        assert_eq!(unpack(&packed).unwrap(), b"abababa");
        assert_eq!(unpack(&[0x1f, 0x9d, 0x90]).unwrap(), b"");
        assert!(unpack(&[0x1f, 0x9d, 0x91]).is_err());
        assert!(unpack(&[0x1f, 0x9d, 0x90, 0xff, 0xff]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn unpacking_reverses_packing(
            bytes in proptest::collection::vec(0..5_u8, 0..6000),
            width_max in 10..=16_usize,
        ) {
            prop_assert_eq!(unpack(&compress(&bytes, width_max)).unwrap(), bytes);
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..600), flags in 0x89..=0x90_u8) {
            let _ = unpack(&[&[0x1f, 0x9d, flags], bytes.as_slice()].concat());
        }
    }
}
