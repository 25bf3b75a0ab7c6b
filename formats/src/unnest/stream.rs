//! Compressed streams: gzip, compress, bzip2, xz, lzma, lzip and zstd, each around one content.
//!
//! Sources: RFC 1952; compress 4.0; bzip2; the .xz format 1.1; LZMA-alone; the lzip manual; RFC 8878.
//! A stream may have several members or frames, which form one content.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::{LzipReader, LzmaReader, XzReader};

use super::budget::{Budget, End, Fault, Metered, Source, Stop, read_up_to};
use super::lzw::Lzw;
use crate::HEAD_BYTES;
use crate::limit::Limit;
use crate::object::{Object, Problem, ProblemKind};

/// Memory of a decoder beside its dictionary, in KiB.
const DECODER_KIB: usize = 1024;
/// Maximum number of bytes at the front of a gzip stream that [`peek`] reads.
const PEEK_BYTES: usize = 64 * 1024;
/// Longest file name in a gzip header, in bytes.
const NAME_BYTES_MAX: usize = 4 * 1024;

/// The compression of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// gzip.
    Gzip,
    /// compress.
    Compress,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// lzma without a frame.
    Lzma,
    /// lzip.
    Lzip,
    /// Zstandard.
    Zstd,
}

impl Packing {
    /// All compressions.
    pub const ALL: &[Self] =
        &[Self::Gzip, Self::Compress, Self::Bzip2, Self::Xz, Self::Lzma, Self::Lzip, Self::Zstd];

    /// Returns the compression of the stream that starts with `head`.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        Some(match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x1f, 0x9d, ..] => Self::Compress,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Self::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            [b'L', b'Z', b'I', b'P', 1, ..] => Self::Lzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            head if is_lzma(head) => Self::Lzma,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Compress => "compress",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Lzip => "lzip",
            Self::Zstd => "zstd",
        }
    }

    /// Returns a decoder of the stream in `bytes`.
    fn decoder<'b>(self, bytes: &'b [u8], source: Source<'b>) -> io::Result<Box<dyn Read + 'b>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(source)),
            Self::Compress => Box::new(Lzw::new(source)?),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(source)),
            Self::Xz => Box::new(XzReader::new_mem_limit(source, true, decoder_kib_max())),
            Self::Lzma => Box::new(LzmaReader::new_mem_limit(source, decoder_kib_max(), None)?),
            Self::Lzip if is_large_lzip(bytes) => return Err(io::Error::other(TOO_LARGE)),
            Self::Lzip => Box::new(LzipReader::new(source)),
            Self::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(dictionary_bytes_max().max(1).ilog2())?;
                Box::new(decoder)
            }
        })
    }

    /// Returns a reader of the decompressed content of `source`, which begins with `bytes`, within the
    /// budget.
    pub(super) fn reader<'b>(
        self,
        bytes: &'b [u8],
        source: Source<'b>,
        budget: &'b Budget<'b>,
        stop: &'b Cell<Option<Stop>>,
    ) -> io::Result<Metered<'b, Box<dyn Read + 'b>>> {
        // The dictionaries of the front alone are checked.
        let source = if self.reads_rest() { source } else { Source::new(bytes) };
        let left = source.left();
        let whole = left.get();
        let decoder = self.decoder(bytes, source)?;
        Ok(Metered::new(decoder, whole, left, budget, stop))
    }

    /// Returns whether the stream is read beyond the front of an object.
    pub(super) fn reads_rest(self) -> bool {
        self != Self::Lzip
    }

    /// Returns the fault of a stream that broke off after `kept` good bytes.
    pub(super) fn fault(self, error: &io::Error, kept: usize) -> Fault {
        let message = error.to_string();
        // Messages of xz and lzma, of zstd, and our own.
        let too_large = ["mem_limit", "dict size too large", "too much memory", TOO_LARGE];
        if too_large.into_iter().any(|it| message.contains(it)) {
            return too_large_dictionary();
        }
        let name = self.name();
        let message = format!("{name} data breaks off after {kept} good bytes: {message}");
        (ProblemKind::Broken, message)
    }
}

/// Returns the size of the largest dictionary or window that a stream may ask for, in bytes of memory.
pub(super) fn dictionary_bytes_max() -> u64 {
    Limit::Dictionary.bound() as u64
}

/// Returns the memory that a decoder may take, in KiB.
pub(super) fn decoder_kib_max() -> u32 {
    u32::try_from(Limit::Dictionary.bound() / 1024 + DECODER_KIB).unwrap_or(u32::MAX)
}

pub(super) fn too_large_dictionary() -> Fault {
    let max = dictionary_bytes_max();
    (Limit::Dictionary.kind(), format!("needs a dictionary of more than {max} bytes; not opened"))
}

/// The error of our own check of a dictionary; never shown.
const TOO_LARGE: &str = "the dictionary is too large";

/// Returns whether an lzip member in `bytes` asks for too large a dictionary.
fn is_large_lzip(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"LZIP\x01").any(|at| {
        let coded = bytes.get(at + 5).copied().unwrap_or_default();
        let base = 1_u64 << (coded & 0x1f);
        dictionary_bytes_max() < base - base / 16 * u64::from(coded >> 5)
    })
}

/// Returns whether `head` looks like LZMA-alone. It has no magic number: its properties, dictionary and
/// size must be likely.
fn is_lzma(head: &[u8]) -> bool {
    let Some((&[properties, a, b, c, d], rest)) = head.split_first_chunk::<5>() else {
        return false;
    };
    let Some(size) = rest.first_chunk::<8>() else { return false };
    let (dictionary, size) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(*size));
    let is_round = dictionary == u32::MAX || dictionary.count_ones() <= 2 && 4096 <= dictionary;
    properties < 9 * 5 * 5
        && is_round
        && (size == u64::MAX || size < 1 << 40)
        && rest.get(8) == Some(&0)
}

/// The content of a compressed file.
#[derive(Debug)]
pub struct Opened {
    /// The inner file's name: from the header, else the container's name without its extension.
    pub name: String,
    /// The content, or its front.
    pub bytes: Vec<u8>,
    /// Whether `bytes` is only the front.
    pub truncated: bool,
    /// Problems while it was read.
    pub problems: Vec<Problem>,
}

/// Opens a compressed file; its members form one content.
///
/// `wanted` takes the name and the front of the content and returns how many bytes are useful. At most
/// the limit for a member is kept.
pub fn unpack(
    object: &Object,
    packing: Packing,
    budget: &Budget<'_>,
    wanted: &dyn Fn(&str, &[u8]) -> usize,
) -> Opened {
    let stop = Cell::new(None);
    let name = inner_name(object, packing);
    let mut bytes = Vec::new();
    let state = Rc::default();
    let read = |bytes: &mut Vec<u8>, bytes_max| {
        let source = Source::of(object, &object.bytes, budget, &state);
        match packing.reader(&object.bytes, source, budget, &stop) {
            Ok(mut reader) => {
                let end = read_up_to(&mut reader, bytes_max, bytes);
                (end, reader.left())
            }
            Err(error) => (End::Broken(error), object.bytes.len()),
        }
    };
    let (mut end, mut left) = read(&mut bytes, HEAD_BYTES);
    let member_bytes_max = budget.member_bytes_max();
    let bytes_max = wanted(&name, &bytes).min(member_bytes_max);
    if matches!(end, End::Longer) {
        // The head has lost the byte that showed that more follows: read again from the start.
        budget.give_back(bytes.len() + 1);
        bytes.clear();
        (end, left) = read(&mut bytes, bytes_max);
    }
    let mut problems = Vec::new();
    if let End::Broken(error) = &end {
        let rest = object.bytes.get(object.bytes.len().saturating_sub(left)..).unwrap_or_default();
        // Tapes and some programs pad with zeros.
        let is_padding = !bytes.is_empty() && !rest.is_empty() && rest.iter().all(|it| *it == 0);
        if stop.get().is_none() && is_padding {
            end = End::Whole;
        } else {
            let is_cut = object.is_cut() || object.truncated && !packing.reads_rest();
            let fault = stop.get().map(Stop::fault).or_else(|| state.take_fault());
            let fault = fault.or_else(|| is_cut.then(|| object.cut("the rest")));
            let fault = fault.unwrap_or_else(|| packing.fault(error, bytes.len()));
            problems.push(Problem::new(&object.url, fault.0, fault.1));
        }
    } else if matches!(end, End::Longer) && bytes.len() == member_bytes_max {
        let message = format!("opens to more than {member_bytes_max} bytes; cut");
        problems.push(Problem::new(&object.url, Limit::Member.kind_at(member_bytes_max), message));
    }
    Opened { name, bytes, truncated: !matches!(end, End::Whole), problems }
}

/// Returns the inner file's name and the front of its content, from the front of a gzip stream; `None`
/// if that front is too short for the content's head.
pub fn peek(object: &Object) -> Option<(String, Vec<u8>)> {
    let front = object.bytes.get(..object.bytes.len().min(PEEK_BYTES)).unwrap_or_default();
    let mut head = Vec::new();
    // A stream that breaks off still has a head.
    let opened = MultiGzDecoder::new(front).take(HEAD_BYTES as u64).read_to_end(&mut head);
    let (Ok(_) | Err(_)) = opened;
    let is_seen = HEAD_BYTES <= head.len() || front.len() == object.bytes.len();
    is_seen.then(|| (inner_name(object, Packing::Gzip), head))
}

fn inner_name(object: &Object, packing: Packing) -> String {
    let name = (packing == Packing::Gzip).then(|| gzip_name(&object.bytes)).flatten();
    let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
    let name = name.map(|name| name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| stem(&object.name))
}

/// Returns the file name in a gzip header.
fn gzip_name(bytes: &[u8]) -> Option<&[u8]> {
    let flags = *bytes.get(3)?;
    let mut rest = bytes.get(10..)?;
    if flags & 4 != 0 {
        let (length, extra) = rest.split_first_chunk::<2>()?;
        rest = extra.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    let name = rest.get(..rest.len().min(NAME_BYTES_MAX)).filter(|_| flags & 8 != 0)?;
    name.get(..memchr::memchr(0, name)?)
}

/// Returns `name` without its last extension: `ls.1.gz` gives `ls.1`, `a.tgz` gives `a.tar`. A leading dot
/// does not start an extension.
fn stem(name: &str) -> String {
    let at = name.rfind('.').filter(|at| 0 < *at && at + 1 < name.len());
    let (stem, extension) = at.and_then(|at| name.split_at_checked(at)).unwrap_or((name, ""));
    let is_tar = extension.eq_ignore_ascii_case(".tgz") || extension.eq_ignore_ascii_case(".taz");
    if is_tar { format!("{stem}.tar") } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems() {
        assert_eq!(stem("ls.1.gz"), "ls.1");
        assert_eq!(stem("a.tgz"), "a.tar");
        assert_eq!(stem("plain"), "plain");
        assert_eq!(stem(".gz"), ".gz");
    }
}
