//! Decompression of response bodies.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
    Deflate,
}

pub(super) const ACCEPTED: &str = "gzip, deflate";

impl Coding {
    /// Returns the coding of a `Content-Encoding`; `None` if it was not offered.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Plain),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// A decompressed body, and its problem, if any.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// The decompressed part. If the body is too large, this is one byte more than the limit.
    pub(super) bytes: Vec<u8>,
    pub(super) problem: Option<Problem>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is larger than allowed.
    Size,
    /// It is damaged or truncated.
    Damaged(String),
}

/// Decompresses a body, up to one byte over `bytes_max`. A body without coding stays whole.
pub(super) fn unpack(packed: Vec<u8>, coding: Coding, bytes_max: u64) -> Unpacked {
    match coding {
        Coding::Plain => Unpacked { bytes: packed, problem: None },
        Coding::Gzip => take(MultiGzDecoder::new(&packed[..]), bytes_max),
        // Some servers send the deflate stream without the zlib header.
        Coding::Deflate if is_zlib(&packed) => take(ZlibDecoder::new(&packed[..]), bytes_max),
        Coding::Deflate => take(DeflateDecoder::new(&packed[..]), bytes_max),
    }
}

/// Returns whether bytes have a zlib header (RFC 1950 §2.2: method 8, and divisible by 31).
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
    fn every_coding_is_decompressed() {
        for (coding, bytes) in packed() {
            let expected = Unpacked { bytes: TEXT.to_vec(), problem: None };
            assert_eq!(unpack(bytes, coding, 31), expected, "{coding:?}");
        }
        assert_eq!(Coding::by_name(" GZip"), Some(Coding::Gzip));
        assert_eq!(Coding::by_name("br"), None);
    }

    #[test]
    fn too_large_and_truncated_bodies_are_reported() {
        for (coding, bytes) in packed().into_iter().skip(1) {
            assert_eq!(unpack(bytes.clone(), coding, 30).problem, Some(Problem::Size));
            let cut = unpack(bytes[..bytes.len() / 2].to_vec(), coding, 31);
            assert!(matches!(cut.problem, Some(Problem::Damaged(_))), "{coding:?} {cut:?}");
            assert!(TEXT.starts_with(&cut.bytes));
        }
    }
}
