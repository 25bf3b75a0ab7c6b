//! Fingerprints: digests that are equal in every run if their parts are equal.
//!
//! Sans-I/O.

use soif::digest::{Md5, Md5Writer};

/// Returns the fingerprint of `parts`; each part may contain any bytes.
pub fn fingerprint_of(parts: &[&[u8]]) -> u64 {
    let mut md5 = Md5Writer::new();
    for part in parts {
        md5.update(&(part.len() as u64).to_be_bytes());
        md5.update(part);
    }
    md5_prefix(md5.finish())
}

/// Returns the first 8 bytes of a digest as a number.
pub fn md5_prefix(Md5(digest): Md5) -> u64 {
    digest.first_chunk().map_or(0, |md5_prefix| u64::from_be_bytes(*md5_prefix))
}
