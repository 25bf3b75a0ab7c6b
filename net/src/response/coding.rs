//! Content codings of answers: gzip, Brotli and Zstandard are undone, one after the other.
//!
//! Source: RFC 9110 §8.4; RFC 7932; RFC 9659 (the window of Zstandard). For those that ask for
//! codings: all others get the bytes as they were sent.

use std::io::{self, Read};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

/// The codings that can be undone, for `Accept-Encoding`.
pub const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip, br, zstd");

/// Maximum number of codings of one body.
const CODINGS_MAX: usize = 3;

/// Size of the decoder's buffer for Brotli, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// Largest window of Zstandard, as a power of two: 8 MiB (RFC 9659 §3).
const WINDOW_LOG_MAX: u32 = 23;

/// A body whose codings are undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// The content, or its front.
    pub bytes: Bytes,
    /// Whether there is more than the limit, or than was received.
    pub is_cut: bool,
}

/// Why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// A coding is not known, by its name.
    #[error("its content coding {0:?} is not known here")]
    Unknown(String),
    /// The body is not of the coding that its head names, or breaks off.
    #[error("it is not whole, or not packed as its head says ({0})")]
    Broken(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Brotli,
    Zstandard,
}

/// Undoes the codings that `headers` name, and returns at most `bytes_max` bytes. `is_cut` says that
/// `body` is only the front of what was sent. May take a while for a long body.
///
/// # Errors
///
/// A coding is not known, there are more than three, or the body is not of them: the content cannot be
/// read.
pub fn decode(
    headers: &HeaderMap,
    body: Bytes,
    is_cut: bool,
    bytes_max: usize,
) -> Result<Decoded, Undecodable> {
    let mut decoded = Decoded { bytes: body, is_cut };
    for coding in codings(headers)?.into_iter().rev() {
        decoded = undo(coding, &decoded, bytes_max)?;
    }
    if bytes_max < decoded.bytes.len() {
        decoded = Decoded { bytes: decoded.bytes.slice(..bytes_max), is_cut: true };
    }
    Ok(decoded)
}

/// Returns the codings in the order in which they were applied.
fn codings(headers: &HeaderMap) -> Result<Vec<Coding>, Undecodable> {
    let mut all = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        let value = String::from_utf8_lossy(value.as_bytes());
        for name in value.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            all.push(match name.to_ascii_lowercase().as_str() {
                "identity" => continue,
                "gzip" | "x-gzip" => Coding::Gzip,
                "br" => Coding::Brotli,
                "zstd" => Coding::Zstandard,
                _ => return Err(Undecodable::Unknown(name.chars().take(40).collect())),
            });
            if CODINGS_MAX < all.len() {
                return Err(Undecodable::Unknown(value.chars().take(40).collect()));
            }
        }
    }
    Ok(all)
}

fn undo(coding: Coding, body: &Decoded, bytes_max: usize) -> Result<Decoded, Undecodable> {
    let (mut bytes, mut is_cut) = (Vec::new(), body.is_cut);
    let read = match coding {
        Coding::Gzip => {
            front(flate2::read::MultiGzDecoder::new(&*body.bytes), bytes_max, &mut bytes)
        }
        Coding::Brotli => {
            let decoder = brotli_decompressor::Decompressor::new(&*body.bytes, BUFFER_BYTES);
            front(decoder, bytes_max, &mut bytes)
        }
        Coding::Zstandard => zstd::Decoder::with_buffer(&*body.bytes).and_then(|mut decoder| {
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            front(decoder, bytes_max, &mut bytes)
        }),
    };
    is_cut |= bytes_max < bytes.len();
    // Of a front, the decoder misses the rest.
    if let Err(error) = read
        && !is_cut
    {
        return Err(Undecodable::Broken(error.to_string()));
    }
    bytes.truncate(bytes_max);
    Ok(Decoded { bytes: bytes.into(), is_cut })
}

/// Reads until the end, or one byte more than the limit.
fn front(decoder: impl Read, bytes_max: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(most).read_to_end(into).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn headers(codings: &[&'static str]) -> HeaderMap {
        let line = |it: &&'static str| (header::CONTENT_ENCODING, HeaderValue::from_static(it));
        codings.iter().map(line).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    fn zstandard(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).unwrap()
    }

    #[track_caller]
    fn check(
        codings: &[&'static str],
        body: Vec<u8>,
        bytes_max: usize,
        expected: &[u8],
        cut: bool,
    ) {
        let decoded = decode(&headers(codings), body.into(), false, bytes_max).unwrap();
        assert_eq!((&*decoded.bytes, decoded.is_cut), (expected, cut), "{codings:?}");
    }

    #[test]
    fn codings_are_undone_in_the_reverse_order() {
        check(&[], b"text".to_vec(), 10, b"text", false);
        check(&["identity"], b"text".to_vec(), 3, b"tex", true);
        check(&["X-GZip"], gzip(b"text"), 4, b"text", false);
        check(&["zstd"], zstandard(b"text"), 4, b"text", false);
        check(&["zstd, gzip"], gzip(&zstandard(b"text")), 100, b"text", false);
        check(&["zstd", "gzip"], gzip(&zstandard(b"text")), 100, b"text", false);
        // "text" in one block that is not compressed.
        check(&["br"], b"\x8b\x01\x80text\x03".to_vec(), 100, b"text", false);
        let front =
            decode(&headers(&["br"]), Bytes::from_static(b"\x8b\x01\x80te"), true, 100).unwrap();
        assert_eq!((&*front.bytes, front.is_cut), (&b"te"[..], true));
        for broken in [&b"<html>"[..], b"", b"\x8b\x01\x80te"] {
            for coding in ["gzip", "br", "zstd"] {
                let decoded = decode(&headers(&[coding]), Bytes::from_static(broken), false, 100);
                assert!(
                    matches!(decoded, Err(Undecodable::Broken(_))) || broken.is_empty(),
                    "{coding}"
                );
            }
        }
        let mut cut = gzip(&b"words and more words ".repeat(50));
        cut.truncate(cut.len() / 2);
        assert!(decode(&headers(&["gzip"]), cut.into(), true, 1 << 20).unwrap().is_cut);
        assert_eq!(
            decode(&headers(&["sdch"]), Bytes::new(), false, 9),
            Err(Undecodable::Unknown("sdch".into()))
        );
        assert!(decode(&headers(&["gzip, gzip, gzip, gzip"]), Bytes::new(), false, 9).is_err());
    }

    #[test]
    fn bombs_end_at_the_limit() {
        let zeros = vec![0; 64 << 20];
        for (coding, body) in [("gzip", gzip(&zeros)), ("zstd", zstandard(&zeros))] {
            check(&[coding], body, 1 << 20, &zeros[..1 << 20], true);
        }
        let twice = gzip(&gzip(&zeros));
        check(&["gzip, gzip"], twice, 1 << 20, &zeros[..1 << 20], true);
    }

    proptest! {
        #[test]
        fn any_bytes_end(body in proptest::collection::vec(any::<u8>(), 0..500), which in 0..3_usize) {
            let coding = ["gzip", "br", "zstd"][which];
            let decoded = decode(&headers(&[coding]), body.into(), false, 1000);
            prop_assert!(decoded.unwrap_or_default().bytes.len() <= 1000);
        }
    }
}
