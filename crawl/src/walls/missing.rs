//! Soft "not found": pages with status 200 for objects that a host does not have.
//!
//! A host is asked once for a name that nobody gave to anything. If it answers with success, what
//! resembles that answer is no object either.
//!
//! Source: Bar-Yossef, Broder, Kumar and Tomkins, "Sic transit gloria telae" (2004), who compare
//! with the answer to a random name; Broder, "On the resemblance and containment of documents"
//! (1997), for the sketches.
//!
//! Sans-I/O.

use std::collections::BTreeSet;

use super::BODY_BYTES_MAX;

/// Maximum number of hashes of a sketch.
const HASHES_MAX: usize = 128;

/// Words of a shingle.
const WORDS: usize = 3;

/// The resemblance in percent from which on two pages are the same page.
const SAME_PERCENT: usize = 90;

/// A sketch of the page by which a host says "not found".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The smallest hashes of all shingles.
    hashes: BTreeSet<u64>,
}

/// Returns a name that no object has. The caller draws the number.
pub fn made_up_name(number: u64) -> String {
    format!("harvest-asks-for-nothing-{number:016x}")
}

impl Sample {
    /// Takes the answer to a made-up name. `None`: its status says that there is nothing, as it
    /// should, so the host needs no comparison. The requested URL may occur in the body.
    pub fn new(status: u16, url: &str, body: &[u8]) -> Option<Self> {
        (200..300).contains(&status).then(|| Self { hashes: sketch(url, body) })
    }

    /// Returns whether the answer to another URL is the same page.
    pub fn resembles(&self, url: &str, body: &[u8]) -> bool {
        let other = sketch(url, body);
        // The smallest hashes of both together are a random choice of their shingles.
        let both: Vec<&u64> = self.hashes.union(&other).take(HASHES_MAX).collect();
        let shared = both.iter().filter(|it| self.hashes.contains(it) && other.contains(it));
        both.len() * SAME_PERCENT <= shared.count() * 100
    }
}

fn sketch(url: &str, body: &[u8]) -> BTreeSet<u64> {
    let start = body.get(..BODY_BYTES_MAX).unwrap_or(body);
    let mut text = String::from_utf8_lossy(start).to_ascii_lowercase();
    // Pages repeat what was asked for.
    let url = url.to_ascii_lowercase();
    let name = url.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    for asked in [url.as_str(), name].into_iter().filter(|it| 3 < it.len()) {
        text = text.replace(asked, "");
    }
    // Numbers are times, tokens and addresses.
    let is_letter = |it: char| it.is_alphabetic();
    let words: Vec<&str> = text.split(|it| !is_letter(it)).filter(|it| !it.is_empty()).collect();
    let mut hashes = BTreeSet::new();
    for shingle in words.windows(WORDS.min(words.len().max(1))) {
        hashes.insert(hash(shingle));
        if HASHES_MAX < hashes.len() {
            hashes.pop_last();
        }
    }
    hashes
}

/// FNV-1a, with a mix at its end that spreads it over all bits.
fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|it| it.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
