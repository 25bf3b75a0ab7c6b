//! Tracker modules: the tune's name, and the names of its samples, which composers use for messages.
//!
//! Source: the layouts of ProTracker (MOD), FastTracker 2 (XM), Scream Tracker 3 (S3M) and Impulse
//! Tracker (IT), from the manuals of these programs.

use crate::metadata::{Field, Metadata};
use crate::numbers::{le_len32, le16, slice, up_to_zero};

/// Reads a module; returns `None` if it is not a module or breaks off.
pub(super) fn read(bytes: &[u8], about: &mut Metadata) -> Option<()> {
    if bytes.starts_with(b"Extended Module: ") {
        about.add(Field::Title, &text(slice(bytes, 17, 20)?));
        about.add(Field::Generator, &text(slice(bytes, 38, 20)?));
        return Some(());
    }
    if bytes.starts_with(b"IMPM") {
        about.add(Field::Title, &text(slice(bytes, 4, 26)?));
        let (orders, instruments, samples) =
            (le16(bytes, 0x20)?, le16(bytes, 0x22)?, le16(bytes, 0x24)?);
        let table = 0xc0 + usize::from(orders) + 4 * usize::from(instruments);
        for number in 0..usize::from(samples) {
            let at = le_len32(bytes, table + 4 * number)?;
            about.add(Field::Text, &text(slice(bytes, at.checked_add(0x14)?, 26)?));
        }
        return Some(());
    }
    if slice(bytes, 0x2c, 4) == Some(b"SCRM") {
        about.add(Field::Title, &text(slice(bytes, 0, 28)?));
        let (orders, samples) = (le16(bytes, 0x20)?, le16(bytes, 0x22)?);
        for number in 0..usize::from(samples) {
            let at = 16 * usize::from(le16(bytes, 0x60 + usize::from(orders) + 2 * number)?);
            about.add(Field::Text, &text(slice(bytes, at + 0x30, 28)?));
        }
        return Some(());
    }
    if matches!(slice(bytes, 1080, 4)?, b"M.K." | b"M!K!" | b"FLT4" | b"4CHN" | b"6CHN" | b"8CHN") {
        about.add(Field::Title, &text(slice(bytes, 0, 20)?));
        for number in 0..31 {
            about.add(Field::Text, &text(slice(bytes, 20 + 30 * number, 22)?));
        }
        return Some(());
    }
    None
}

fn text(bytes: &[u8]) -> String {
    encoding_rs::WINDOWS_1252.decode_without_bom_handling(up_to_zero(bytes)).0.into_owned()
}
