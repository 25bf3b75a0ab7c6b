//! The compression of RTF in messages: bytes, and references to the last 4,096 bytes.
//!
//! Source: Microsoft's \[MS-OXRTFCP\] 2.1.3 and 2.2.
//!
//! # Differences from the specification
//!
//! * The checksum is not verified: what can be read of damaged text is read.

use std::borrow::Cow;

use crate::limit::Limit;
use crate::numbers::{be16, le32};

/// The content of the dictionary at the beginning.
const BEGINNING: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \
\\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\
\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";
/// Bytes of the header: two sizes, the kind, the checksum.
const HEADER_BYTES: usize = 16;
/// Bytes of the dictionary.
const DICTIONARY_BYTES: usize = 4096;
/// The kinds of content.
const COMPRESSED: &[u8] = b"LZFu";
const STORED: &[u8] = b"MELA";

/// Returns the text up to its limit, and whether there is more; `None` if this is no compressed text.
pub(super) fn unpack(bytes: &[u8]) -> Option<(Cow<'_, [u8]>, bool)> {
    let most = Limit::OutlookText.bound();
    let raw = usize::try_from(le32(bytes, 4)?).ok()?.min(most.saturating_add(1));
    let content = bytes.get(HEADER_BYTES..)?;
    let mut text: Cow<'_, [u8]> = match bytes.get(8..12)? {
        STORED => content.get(..raw).unwrap_or(content).into(),
        COMPRESSED => decompress(content, raw).into(),
        _ => return None,
    };
    let is_cut = most < text.len();
    if is_cut {
        text.to_mut().truncate(most);
    }
    Some((text, is_cut))
}

/// Unpacks up to the end mark, the end of the bytes, or `bytes_max` bytes.
fn decompress(content: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut out = BEGINNING.to_vec();
    let end = BEGINNING.len().saturating_add(bytes_max);
    let mut rest = content;
    'runs: while let Some((control, after)) = rest.split_first() {
        rest = after;
        for bit in 0..8 {
            if end <= out.len() {
                break 'runs;
            }
            if control >> bit & 1 == 0 {
                let Some((literal, after)) = rest.split_first() else { break 'runs };
                out.push(*literal);
                rest = after;
                continue;
            }
            let Some(reference) = be16(rest, 0) else { break 'runs };
            rest = rest.get(2..).unwrap_or_default();
            // The dictionary is a ring: the place of writing stands for the end.
            let place = usize::from(reference >> 4);
            let distance =
                (out.len() % DICTIONARY_BYTES + DICTIONARY_BYTES - place) % DICTIONARY_BYTES;
            if distance == 0 {
                break 'runs;
            }
            for _ in 0..usize::from(reference & 15) + 2 {
                // What was never written is zero.
                let from = out.len().checked_sub(distance).and_then(|it| out.get(it));
                out.push(from.copied().unwrap_or(0));
            }
        }
    }
    out.truncate(end);
    out.split_off(BEGINNING.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compresses in the plainest way: each place takes the longest reference that there is.
    fn pack(text: &[u8]) -> Vec<u8> {
        let mut all = BEGINNING.to_vec();
        all.extend(text);
        let (mut runs, mut at) = (Vec::new(), BEGINNING.len());
        while at < all.len() {
            let start = at.saturating_sub(DICTIONARY_BYTES - 1);
            let common = |from: usize| {
                (0..17)
                    .take_while(|it| at + it < all.len() && all[from + it] == all[at + it])
                    .count()
            };
            let best = (start..at).map(|from| (common(from), from)).max();
            match best {
                Some((length, from)) if 2 <= length => {
                    let reference = ((from % DICTIONARY_BYTES) << 4) | (length - 2);
                    runs.push(u16::try_from(reference).unwrap().to_be_bytes().to_vec());
                    at += length;
                }
                _ => {
                    runs.push(vec![all[at]]);
                    at += 1;
                }
            }
        }
        let end = (all.len() % DICTIONARY_BYTES) << 4;
        runs.push(u16::try_from(end).unwrap().to_be_bytes().to_vec());
        let mut content = Vec::new();
        for runs in runs.chunks(8) {
            let control = runs.iter().enumerate().filter(|(_, run)| run.len() == 2);
            content.push(control.fold(0, |bits, (at, _)| bits | 1 << at));
            content.extend(runs.concat());
        }
        content
    }

    fn unpack(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        super::unpack(bytes).map(|(text, _)| text)
    }

    fn file(kind: &[u8], raw: u32, content: &[u8]) -> Vec<u8> {
        [&[0; 4][..], &raw.to_le_bytes(), kind, &[0; 4], content].concat()
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(BEGINNING.len(), 207);
        let simple = b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0rcpg125B2\x0a\xf3 hel\x09\0 bw\x05\xb0ld}\x0a\x80\x0f\xa0";
        assert_eq!(
            unpack(simple).unwrap(),
            &b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"[..]
        );
        let repeated = b"\x1a\0\0\0\x1c\0\0\0LZFu\xe2\xd4KQA\0\x04 WXYZ\x0dn}\x01\x0e\xb0";
        assert_eq!(unpack(repeated).unwrap(), &b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"[..]);
        assert_eq!(unpack(&file(STORED, 5, b"{abc}and more")).unwrap(), &b"{abc}"[..]);
        assert_eq!(unpack(b"words that are not packed"), None);
    }

    #[test]
    fn what_lies_is_bounded() {
        // Each reference gives 16 bytes, never at the place of writing, and the size says more.
        let long = [&[0xff][..], &[0x00, 0x0e].repeat(8)].concat().repeat((1 << 18) + 9);
        let bytes_max = Limit::OutlookText.bound();
        assert_eq!(unpack(&file(COMPRESSED, u32::MAX, &long)).unwrap().len(), bytes_max);
        assert_eq!(unpack(&file(COMPRESSED, 3, &long)).unwrap().len(), 3);
        // A place that was never written, and the first one.
        assert_eq!(unpack(&file(COMPRESSED, 9, b"\x01\xff\xf0")).unwrap(), &b"\0{"[..]);
    }

    #[test]
    fn the_dictionary_is_a_ring() {
        let text = (0..1_500).fold(String::new(), |text, it| text + &format!("line {it} "));
        let raw = u32::try_from(text.len()).unwrap();
        let packed = file(COMPRESSED, raw, &pack(text.as_bytes()));
        assert!(packed.len() < text.len());
        assert_eq!(unpack(&packed).unwrap(), text.as_bytes());
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(text in "(\\\\par |[a-e ]|\\PC){0,40}", times in 1..5_usize) {
            let text = text.repeat(times).into_bytes();
            let raw = u32::try_from(text.len()).unwrap();
            prop_assert_eq!(unpack(&file(COMPRESSED, raw, &pack(&text))).unwrap().into_owned(), text);
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(unpack(&file(COMPRESSED, 1000, &bytes)).unwrap().len() <= 1000);
            unpack(&bytes);
        }
    }
}
