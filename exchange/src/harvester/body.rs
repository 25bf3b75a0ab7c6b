//! Bodies as they were before they were packed.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// What a body was packed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
    Deflate,
}

/// What we ask for.
pub(super) const ACCEPTED: &str = "gzip, deflate";

impl Coding {
    /// The coding of that name, as a `Content-Encoding` has it; `None` for one that was not asked for.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Plain),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// An unpacked body, and what is wrong with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// As far as it could be unpacked, at most `bytes_max` bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) problem: Option<Problem>,
}

/// What is wrong with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is larger than it may be.
    Size,
    /// It is damaged, or broken off.
    Damaged(String),
}

/// Unpacks a body, up to `bytes_max` bytes.
pub(super) fn unpack(packed: Vec<u8>, coding: Coding, bytes_max: u64) -> Unpacked {
    match coding {
        Coding::Plain => Unpacked { bytes: packed, problem: None },
        Coding::Gzip => take(MultiGzDecoder::new(&packed[..]), bytes_max),
        // Some send the bare stream.
        Coding::Deflate if is_zlib(&packed) => take(ZlibDecoder::new(&packed[..]), bytes_max),
        Coding::Deflate => take(DeflateDecoder::new(&packed[..]), bytes_max),
    }
}

/// Whether bytes begin as RFC 1950 §2.2 says: method 8, and a header that 31 divides.
fn is_zlib(bytes: &[u8]) -> bool {
    let Some([method, flags]) = bytes.first_chunk::<2>() else { return false };
    method & 0x0f == 8 && (u16::from(*method) << 8 | u16::from(*flags)) % 31 == 0
}

fn take(packed: impl Read, bytes_max: u64) -> Unpacked {
    let mut bytes = Vec::new();
    let read = packed.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let problem = match read {
        _ if bytes_max < length => Some(Problem::Size),
        Ok(_) => None,
        Err(error) => Some(Problem::Damaged(format!("its compressed bytes are damaged: {error}"))),
    };
    Unpacked { bytes, problem }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    const TEXT: &[u8] = b"some text, some text, some text";

    fn packed() -> [(Coding, Vec<u8>); 4] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(TEXT).unwrap();
        zlib.write_all(TEXT).unwrap();
        bare.write_all(TEXT).unwrap();
        [
            (Coding::Plain, TEXT.to_vec()),
            (Coding::Gzip, gzip.finish().unwrap()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, bare.finish().unwrap()),
        ]
    }

    #[test]
    fn every_coding_is_unpacked() {
        for (coding, bytes) in packed() {
            let expected = Unpacked { bytes: TEXT.to_vec(), problem: None };
            assert_eq!(unpack(bytes, coding, 31), expected, "{coding:?}");
        }
        assert_eq!(Coding::named(" GZip"), Some(Coding::Gzip));
        assert_eq!(Coding::named("br"), None);
    }

    #[test]
    fn what_unpacks_to_too_much_or_is_cut_is_named() {
        for (coding, bytes) in packed().into_iter().skip(1) {
            assert_eq!(unpack(bytes.clone(), coding, 30).problem, Some(Problem::Size));
            let cut = unpack(bytes[..bytes.len() / 2].to_vec(), coding, 31);
            assert!(matches!(cut.problem, Some(Problem::Damaged(_))), "{coding:?} {cut:?}");
            assert!(TEXT.starts_with(&cut.bytes));
        }
    }
}
