//! The inflated size of a PDF's streams, measured before they are decoded.
//!
//! The interpreter decodes each stream whole. Here every stream of the file is inflated and
//! counted, and nothing is kept; a file with a stream that inflates too far is refused. A stream
//! that cannot be measured (encrypted, in a text encoding, or LZW) must be short; one in several
//! layers of compression is refused.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, ZlibDecoder};
use memchr::memmem;

/// Longest stream that is accepted without measurement, in bytes.
const OPAQUE_BYTES_MAX: usize = 256 * 1024;
/// Length of the part before a stream that is taken for its dictionary, in bytes.
const DICTIONARY_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of all small streams together that are accepted without measurement, in bytes.
const SMALL_STREAMS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bounds on inflated streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest inflated stream, in bytes.
    pub(super) stream_bytes_max: u64,
    /// Streams with fewer packed bytes are accepted without measurement: deflate's ratio is at most
    /// 1032.
    pub(super) small_bytes: usize,
    /// Maximum length of all inflated streams together, without images, in bytes.
    pub(super) streams_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stream_bytes_max: 64 * 1024 * 1024,
            small_bytes: 16 * 1024,
            streams_bytes_max: 512 * 1024 * 1024,
        }
    }
}

/// The reason for which a file is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Time,
    /// A stream inflates to more than this many bytes, or might; with the message.
    Size(u64, String),
}

/// Measures every stream of a file. A file that is refused must not be given to the interpreter.
pub(super) fn measure(
    bytes: &[u8],
    limits: Limits,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Refusal> {
    let encrypted = memmem::find(bytes, b"/Encrypt").is_some();
    let mut total = 0;
    let mut small = 0_u64;
    let mut last_end = 0;
    for at in memmem::find_iter(bytes, b"stream") {
        let before = bytes.get(..at).unwrap_or_default();
        if before.ends_with(b"end") {
            last_end = at;
            continue;
        }
        let from = at.saturating_sub(DICTIONARY_BYTES_MAX).max(last_end);
        let dictionary = bytes.get(from..at).unwrap_or_default();
        let dictionary = match memmem::rfind(dictionary, b" obj") {
            Some(start) => dictionary.get(start..).unwrap_or_default(),
            None => dictionary,
        };
        let data = bytes.get(at + 6..).unwrap_or_default();
        let data = data.strip_prefix(b"\r").unwrap_or(data);
        let data = data.strip_prefix(b"\n").unwrap_or(data);
        let length = memmem::find(data.get(..OPAQUE_BYTES_MAX + 16).unwrap_or(data), b"endstream");
        if length.is_some_and(|it| it < limits.small_bytes) && layers(dictionary) < 2 {
            small += length.unwrap_or_default() as u64;
            if small < SMALL_STREAMS_BYTES_MAX {
                continue;
            }
        }
        if cancelled() {
            return Err(Refusal::Time);
        }
        // The dictionary may mislead on purpose: whatever inflates is measured.
        if encrypted || 1 < layers(dictionary) || is_coded(dictionary) {
            if 1 < layers(dictionary) || length.is_none() {
                let message =
                    "has a stream whose size cannot be told before it is opened; not read";
                return Err(Refusal::Size(limits.stream_bytes_max, message.to_owned()));
            }
            continue;
        }
        let Limits { stream_bytes_max, streams_bytes_max, .. } = limits;
        let opened = inflated_bytes(data, stream_bytes_max);
        if !is_image(dictionary) {
            total += opened;
        }
        if stream_bytes_max <= opened || streams_bytes_max <= total {
            let max = if stream_bytes_max <= opened { stream_bytes_max } else { streams_bytes_max };
            let message = format!("has a stream that opens to more than {max} bytes; not read");
            return Err(Refusal::Size(max, message));
        }
    }
    Ok(())
}

/// Returns the number of compression layers in the dictionary; 2 for a filter in another object.
fn layers(dictionary: &[u8]) -> usize {
    let names: [&[u8]; 5] = [b"/FlateDecode", b"/Fl ", b"/Fl]", b"/Fl/", b"/LZW"];
    let count: usize = names.iter().map(|it| memmem::find_iter(dictionary, it).count()).sum();
    let elsewhere = memmem::find(dictionary, b"/Filter").is_some_and(|at| {
        let value = dictionary.get(at + 7..).unwrap_or_default().trim_ascii_start();
        value.first().is_some_and(u8::is_ascii_digit)
    });
    if elsewhere { 2 } else { count }
}

/// Returns whether the bytes have an additional text encoding, or are compressed by LZW.
fn is_coded(dictionary: &[u8]) -> bool {
    let names: [&[u8]; 5] = [b"/ASCII85", b"/A85", b"/ASCIIHex", b"/AHx", b"/LZW"];
    names.iter().any(|it| memmem::find(dictionary, it).is_some())
}

/// Returns whether the stream is an image; images are not decoded, as nothing is drawn.
fn is_image(dictionary: &[u8]) -> bool {
    memmem::find_iter(dictionary, b"/Subtype").any(|at| {
        let value = dictionary.get(at + 8..).unwrap_or_default().trim_ascii_start();
        value.starts_with(b"/Image")
    })
}

/// Returns the bytes to which `data` inflates, counted up to `allowed`.
pub(super) fn inflated_bytes(data: &[u8], allowed: u64) -> u64 {
    let zlib = count(ZlibDecoder::new(data), allowed);
    // The interpreter also accepts data without a header.
    if zlib == 0 { count(DeflateDecoder::new(data), allowed) } else { zlib }
}

fn count(mut reader: impl Read, allowed: u64) -> u64 {
    let mut buffer = [0; 16 * 1024];
    let mut total = 0;
    while total < allowed {
        match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => total += count as u64,
        }
    }
    total
}
