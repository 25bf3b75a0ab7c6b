//! BinHex 4.0, an encoding of Macintosh files for mail: six bits in a character, packed runs.
//!
//! Source: RFC 1741, appendix A.
//!
//! A file's data fork is the member. The resource fork has no use on other machines.

use std::io::{self, BufRead, Read};

use super::budget::{Fault, Metered, Source};
use super::{MemberInfo, Walk, clean_path};
use crate::numbers::be32;
use crate::object::ProblemKind;

/// Mark before the data.
pub(super) const MARK: &[u8] = b"(This file must be converted with BinHex";
/// The characters by their six bits.
const ALPHABET: &[u8; 64] = b"!\"#$%&'()*+,-012345689@ABCDEFGHIJKLMNPQRSTUVXYZ[`abcdefhijklmpqr";
/// The mark of a run: it repeats the byte before it.
const REPEAT: u8 = 0x90;
/// Bytes of a header after the name: a zero, type, creator, flags and the sizes of the forks.
const HEADER_BYTES: usize = 1 + 4 + 4 + 2 + 4 + 4;

pub(super) fn members(walk: &mut Walk<'_, '_>) -> Result<(), Fault> {
    let object = walk.object;
    let mark = memchr::memmem::find(&object.bytes, MARK).unwrap_or_default();
    let rest = object.bytes.get(mark..).unwrap_or_default();
    let line = memchr::memchr(b'\n', rest).or_else(|| memchr::memchr(b'\r', rest));
    let rest = rest.get(line.unwrap_or(rest.len())..).unwrap_or_default();
    let start = memchr::memchr(b':', rest).map_or(rest.len(), |colon| colon + 1);
    let data = rest.get(start..).unwrap_or_default();
    let source = Source::new(data);
    let left = source.left();
    let decoder = Decoder { source, bits: 0, bits_count: 0, last: 0, repeats: 0 };
    let mut reader = Metered::new(decoder, data.len(), left, walk.budget, walk.stop);
    let breaks_off =
        |error: io::Error| (ProblemKind::Broken, format!("BinHex data breaks off: {error}"));
    let mut length = [0];
    reader.read_exact(&mut length).map_err(breaks_off)?;
    let mut header = vec![0; usize::from(length[0]) + HEADER_BYTES];
    reader.read_exact(&mut header).map_err(breaks_off)?;
    let mut sum = [0; 2];
    reader.read_exact(&mut sum).map_err(breaks_off)?;
    if crc16(&[&length, header.as_slice()].concat()) != u16::from_be_bytes(sum) {
        return Err((ProblemKind::Broken, "BinHex header does not match its checksum".to_owned()));
    }
    let (name, header) = header.split_at_checked(usize::from(length[0])).unwrap_or_default();
    let size = u64::from(be32(header, 11).unwrap_or_default());
    let info = MemberInfo { path: clean_path(name).to_vec(), size, modified: None };
    let mut member = walk.read(&info, &mut reader)?;
    if !member.object.truncated {
        let read = reader.read_exact(&mut sum);
        if read.is_err() || crc16(&member.object.bytes) != u16::from_be_bytes(sum) {
            member.add((ProblemKind::Broken, "has another sum than it should".to_owned()));
        }
    }
    walk.visit(member);
    Ok(())
}

/// Returns the CRC-16 with the CCITT polynomial, starting from zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
            if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 }
        })
    })
}

struct Decoder<'b> {
    source: Source<'b>,
    bits: u32,
    bits_count: u32,
    /// The last byte, which the run repeats `repeats` times more.
    last: u8,
    repeats: u8,
}

impl Decoder<'_> {
    /// Returns the next byte before runs are unpacked; `None` at the end.
    fn next_packed(&mut self) -> io::Result<Option<u8>> {
        while self.bits_count < 8 {
            let Some(character) = self.source.fill_buf()?.first().copied() else { return Ok(None) };
            if character == b':' {
                return Ok(None);
            }
            self.source.consume(1);
            if character.is_ascii_whitespace() {
                continue;
            }
            let Some(six) = memchr::memchr(character, ALPHABET) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid character"));
            };
            self.bits = self.bits << 6 | u32::try_from(six).unwrap_or_default();
            self.bits_count += 6;
        }
        self.bits_count -= 8;
        let byte = (self.bits >> self.bits_count).to_le_bytes()[0];
        Ok(Some(byte))
    }

    fn next(&mut self) -> io::Result<Option<u8>> {
        if 0 < self.repeats {
            self.repeats -= 1;
            return Ok(Some(self.last));
        }
        let Some(byte) = self.next_packed()? else { return Ok(None) };
        if byte != REPEAT {
            self.last = byte;
            return Ok(Some(byte));
        }
        match self.next_packed()? {
            None => Ok(None),
            Some(0) => {
                self.last = REPEAT;
                Ok(Some(REPEAT))
            }
            // The byte itself was the first of the run.
            Some(count) => {
                self.repeats = count - 1;
                self.next_of_run()
            }
        }
    }

    fn next_of_run(&mut self) -> io::Result<Option<u8>> {
        if self.repeats == 0 {
            // A run of one adds nothing; only damaged files have them, often many in sequence.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "run of length one"));
        }
        self.repeats -= 1;
        Ok(Some(self.last))
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        for slot in buffer {
            let Some(byte) = self.next()? else { break };
            *slot = byte;
            count += 1;
        }
        Ok(count)
    }
}
