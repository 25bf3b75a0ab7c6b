//! The sound of Sun and NeXT: what its maker wrote into the header, and how long it lasts.
//!
//! Source: the man page audio_file(4) of SunOS 4.1 (magic, offset, size, encoding, rate and channels as
//! numbers of 32 bits, the high byte first; then text up to the offset).
//!
//! Sans-I/O.

use crate::about::{About, Field};
use crate::numbers::{be32, slice};
use crate::text::decode;

/// How a sound begins.
pub(super) const MARK: &[u8] = b".snd";
/// Where the text begins, in bytes.
const TEXT: usize = 24;
/// Longest text that is read, in bytes.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Reads a header; nothing where it breaks off. `size` is that of the whole sound.
pub(super) fn read(bytes: &[u8], size: u64, about: &mut About) -> Option<()> {
    let start = be32(bytes, 4)?;
    let (said, encoding) = (be32(bytes, 8)?, be32(bytes, 12)?);
    let (rate, channels) = (be32(bytes, 16)?, be32(bytes, 20)?);
    let length = (start as usize).saturating_sub(TEXT).min(TEXT_BYTES_MAX);
    let text = decode(slice(bytes, TEXT, length)?, None);
    about.add(Field::Description, text.split('\0').next().unwrap_or_default());
    // Where it is not said, or more than there is, it goes on to the end.
    let there = size.saturating_sub(u64::from(start));
    let data = if said == u32::MAX { there } else { there.min(u64::from(said)) };
    if let Some(sample) = sample_bytes(encoding) {
        let rate = u64::from(rate) * u64::from(channels) * sample;
        about.duration(data.saturating_mul(1_000).checked_div(rate).unwrap_or(0));
    }
    Some(())
}

/// Bytes of a sample where all have as many.
fn sample_bytes(encoding: u32) -> Option<u64> {
    Some(match encoding {
        // µ-law, 8 bits, A-law
        1 | 2 | 27 => 1,
        3 => 2,
        4 => 3,
        5 | 6 => 4,
        7 => 8,
        _ => return None,
    })
}
