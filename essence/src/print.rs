//! Fingerprints: whether something is what it was, in any run.
//!
//! Sans-I/O.

use soif::digest::{Md5, Md5Writer};

/// Returns a fingerprint of parts, each of any bytes; the same in every run.
pub fn print_of(parts: &[&[u8]]) -> u64 {
    let mut md5 = Md5Writer::new();
    for part in parts {
        md5.update(&(part.len() as u64).to_be_bytes());
        md5.update(part);
    }
    front(md5.finish())
}

/// Returns the front of a digest.
pub fn front(Md5(digest): Md5) -> u64 {
    digest.first_chunk().map_or(0, |front| u64::from_be_bytes(*front))
}
