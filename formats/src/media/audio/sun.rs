//! Sound of Sun and NeXT: the text in its header, and its duration.
//!
//! Source: the man page audio_file(4) of SunOS 4.1: magic, offset, size, encoding, rate and channels as
//! big-endian numbers of 32 bits; then text up to the offset.

use crate::metadata::{Field, Metadata};
use crate::numbers::{be32, slice};
use crate::text::decode;

/// First bytes of a sound.
pub(super) const MARK: &[u8] = b".snd";
/// Position of the text, in bytes.
const TEXT: usize = 24;

/// Reads a header; `None` if it breaks off. `size` is the size of the whole sound, in bytes.
pub(super) fn read(bytes: &[u8], size: u64, about: &mut Metadata) -> Option<()> {
    let start = be32(bytes, 4)?;
    let (declared, encoding) = (be32(bytes, 8)?, be32(bytes, 12)?);
    let (rate, channels) = (be32(bytes, 16)?, be32(bytes, 20)?);
    let length = (start as usize).saturating_sub(TEXT);
    let text = decode(slice(bytes, TEXT, length)?, None);
    about.add(Field::Description, text.split('\0').next().unwrap_or_default());
    // An undeclared or too large size means the rest of the sound.
    let available = size.saturating_sub(u64::from(start));
    let data = if declared == u32::MAX { available } else { available.min(u64::from(declared)) };
    if let Some(sample) = sample_bytes(encoding) {
        let rate = u64::from(rate) * u64::from(channels) * sample;
        about.duration(data.saturating_mul(1_000).checked_div(rate).unwrap_or(0));
    }
    Some(())
}

/// Returns the bytes per sample, for encodings with samples of equal size.
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
