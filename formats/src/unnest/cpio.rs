//! cpio archives, read as streams: the portable formats (`odc`, `newc`, `crc`), and the old binary format in
//! both byte orders.
//!
//! Source: POSIX.1-1988 (odc); cpio(5) of the BSDs and SVR4 (newc, crc, binary).

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::budget::{Fault, read_up_to, skip};
use super::{MemberInfo, Walk, clean_path};
use crate::limit::Limit;
use crate::object::ProblemKind;

/// Name of the entry that ends the archive.
const TRAILER: &[u8] = b"TRAILER!!!";
/// The bits of a mode with the kind of file.
const KIND_MASK: u64 = 0o170_000;
/// A regular file.
const KIND_FILE: u64 = 0o100_000;
/// Longest header after its magic number, in bytes.
const HEADER_BYTES_MAX: usize = 104;

struct Header {
    /// Device and inode of the file, the same for all its names.
    file: (u64, u64),
    mode: u64,
    links: u64,
    modified: u64,
    name_bytes: u64,
    size: u64,
    /// The sum of the content's bytes, if the format has one.
    sum: Option<u32>,
    /// The header with the name, and the content, are each padded to a multiple of this, in bytes.
    align: u64,
    /// Length of the header itself, in bytes.
    bytes: u64,
}

pub(super) fn members(walk: &mut Walk<'_, '_>, reader: &mut dyn Read) -> Result<(), Fault> {
    // Files with several names, each with its last name, or `None` once its content was read.
    let mut linked: BTreeMap<(u64, u64), Option<MemberInfo>> = BTreeMap::new();
    loop {
        let header = Header::read(reader).map_err(|error| breaks_off(&error))?;
        let mut name = Vec::new();
        let name_bytes = header.name_bytes;
        // Longer than a path may be: it ends with a zero, and `./` in front of it does not count.
        let most = 2 * Limit::Path.bound() + TRAILER.len();
        let _ = read_up_to(&mut Read::take(&mut *reader, name_bytes), most, &mut name);
        // `read_up_to` reads one byte more than the limit.
        let read = name_bytes.min(most as u64 + 1);
        let padding = pad(header.bytes + name_bytes, header.align);
        skip(reader, name_bytes - read + padding).map_err(|error| breaks_off(&error))?;
        name.truncate(memchr::memchr(0, &name).unwrap_or(name.len()));
        if name == TRAILER {
            // A file without content under any name is empty.
            for info in linked.values().flatten() {
                let member = walk.read(info, &mut io::empty())?;
                walk.visit(member);
            }
            return Ok(());
        }
        let padding = pad(header.size, header.align);
        let info = MemberInfo {
            path: clean_path(&name).to_vec(),
            size: header.size,
            modified: Some(header.modified),
        };
        // Of a file's names, one has the content: usually the last.
        let is_file = header.mode & KIND_MASK == KIND_FILE;
        let is_linked = is_file && 1 < header.links;
        let has_room = linked.len() < Limit::LinkedFiles.bound();
        if is_linked && !has_room && !linked.contains_key(&header.file) {
            return Err(Limit::LinkedFiles.cut().problem());
        }
        if is_file && (header.links <= 1 || 0 < header.size) {
            if 1 < header.links {
                linked.insert(header.file, None);
            }
            let mut sum = Summed { inner: &mut *reader, sum: 0 };
            let mut member = walk.read(&info, &mut sum)?;
            let kept = member.object.bytes.len() as u64;
            if !member.object.truncated && header.sum.is_some_and(|it| it != sum.sum) {
                member.add((ProblemKind::Broken, "has another sum than it should".to_owned()));
            }
            // As for the name, one byte more was read.
            let read = if kept < header.size { (kept + 1).min(header.size) } else { kept };
            walk.visit(member);
            skip(reader, header.size - read + padding).map_err(|error| breaks_off(&error))?;
        } else {
            if is_file && !matches!(linked.get(&header.file), Some(None)) {
                linked.insert(header.file, Some(info));
            }
            skip(reader, header.size.saturating_add(padding)).map_err(|it| breaks_off(&it))?;
        }
    }
}

fn breaks_off(error: &io::Error) -> Fault {
    (ProblemKind::Broken, format!("cpio data breaks off: {error}"))
}

fn pad(size: u64, align: u64) -> u64 {
    size.wrapping_neg() % align
}

/// A reader that sums up its bytes.
struct Summed<R> {
    inner: R,
    sum: u32,
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        self.sum = read.iter().fold(self.sum, |sum, byte| sum.wrapping_add(u32::from(*byte)));
        Ok(count)
    }
}

impl Header {
    fn read(reader: &mut dyn Read) -> io::Result<Self> {
        let mut magic = [0; 6];
        reader.read_exact(&mut magic)?;
        let mut bytes = [0; HEADER_BYTES_MAX];
        let mut rest = |count: usize| -> io::Result<Vec<u8>> {
            let room = bytes.get_mut(..count).unwrap_or_default();
            reader.read_exact(room)?;
            Ok(room.to_vec())
        };
        match &magic {
            b"070701" => Self::new(&rest(104)?, false),
            b"070702" => Self::new(&rest(104)?, true),
            b"070707" => Self::old(&rest(70)?),
            [0xc7, 0x71, ..] => Self::binary(magic, &rest(20)?, u16::from_le_bytes),
            [0x71, 0xc7, ..] => Self::binary(magic, &rest(20)?, u16::from_be_bytes),
            _ => None,
        }
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no header follows"))
    }

    /// Reads thirteen numbers of eight hexadecimal digits.
    fn new(text: &[u8], has_sum: bool) -> Option<Self> {
        let field = |number: usize| number_at(text, number * 8, 8, 16);
        Some(Self {
            file: (field(7)? << 32 | field(8)?, field(0)?),
            mode: field(1)?,
            links: field(4)?,
            modified: field(5)?,
            size: field(6)?,
            name_bytes: field(11)?,
            sum: if has_sum { u32::try_from(field(12)?).ok() } else { None },
            align: 4,
            bytes: 110,
        })
    }

    /// Reads octal numbers of six or eleven digits.
    fn old(text: &[u8]) -> Option<Self> {
        Some(Self {
            file: (number_at(text, 0, 6, 8)?, number_at(text, 6, 6, 8)?),
            mode: number_at(text, 12, 6, 8)?,
            links: number_at(text, 30, 6, 8)?,
            modified: number_at(text, 42, 11, 8)?,
            name_bytes: number_at(text, 53, 6, 8)?,
            size: number_at(text, 59, 11, 8)?,
            sum: None,
            align: 1,
            bytes: 76,
        })
    }

    /// Reads numbers of two bytes; a number of four bytes has its high half first.
    fn binary(front: [u8; 6], rest: &[u8], word: fn([u8; 2]) -> u16) -> Option<Self> {
        let all = [&front, rest].concat();
        let half = |at: usize| all.get(at * 2..)?.first_chunk::<2>().map(|it| u64::from(word(*it)));
        let both = |at: usize| Some(half(at)? << 16 | half(at + 1)?);
        Some(Self {
            file: (half(1)?, half(2)?),
            mode: half(3)?,
            links: half(6)?,
            modified: both(8)?,
            name_bytes: half(10)?,
            size: both(11)?,
            sum: None,
            align: 2,
            bytes: 26,
        })
    }
}

/// Returns the number in the `count` digits at `at`.
fn number_at(text: &[u8], at: usize, count: usize, radix: u32) -> Option<u64> {
    let digits = text.get(at..at + count)?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), radix).ok()
}
