//! Chunks: content-defined cuts of files, so that an insertion or a deletion changes only the
//! chunks around it.
//!
//! Source: Xia et al., "The Design of Fast Content-Defined Chunking for Data Deduplication Based
//! Storage Systems", IEEE TPDS 2020, as implemented by the crate `fastcdc`. If a release of that
//! crate had other tables, the cuts would change: members would have different chunks, which costs
//! bytes but breaks nothing.
//!
//! Sans-I/O.

use fastcdc::v2020::{Normalization, cut, select_masks};

use crate::version::Hash;

/// Sizes of chunks, in bytes. All of these numbers are even.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Smallest size; only the last chunk may be smaller.
    pub min: usize,
    /// Approximate mean size.
    pub average: usize,
    /// Largest size.
    pub max: usize,
}

/// Sizes for the content of files.
pub const FILE: Sizes = Sizes { min: 4 << 10, average: 16 << 10, max: 64 << 10 };
/// Sizes for manifests, a compromise: a change of one entry sends a whole chunk, but each chunk
/// costs a request and about 50 bytes.
pub const MANIFEST: Sizes = Sizes { min: 1 << 10, average: 4 << 10, max: 16 << 10 };

/// A chunk of a file: its hash and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The hash of its bytes.
    pub hash: Hash,
    /// The length, 1 to [`FILE`]`.max`; only the last chunk of a file is shorter than
    /// [`FILE`]`.min`.
    pub bytes: u32,
}

/// Cuts a stream. Holds at most one chunk besides the bytes fed last.
#[derive(Debug)]
pub struct Chunker {
    sizes: Sizes,
    masks: (u64, u64),
    buffer: Vec<u8>,
    /// Number of bytes at the beginning of the buffer that have been returned.
    done: usize,
}

impl Chunker {
    /// Begins a stream.
    pub fn new(sizes: Sizes) -> Self {
        let masks = select_masks(sizes.average, Normalization::Level1);
        Self { sizes, masks, buffer: Vec::new(), done: 0 }
    }

    /// Adds bytes of the stream, in order.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.done = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next chunk; `None` if more bytes must be fed first.
    pub fn next_chunk(&mut self) -> Option<&[u8]> {
        let rest = self.buffer.len() - self.done;
        if rest < self.sizes.max { None } else { self.cut() }
    }

    /// Ends the stream: returns its last chunks, one in each call, then `None`. After that, another
    /// stream may begin.
    pub fn finish(&mut self) -> Option<&[u8]> {
        self.cut()
    }

    fn cut(&mut self) -> Option<&[u8]> {
        let rest = self.buffer.get(self.done..).filter(|it| !it.is_empty())?;
        let (strict, loose) = self.masks;
        let Sizes { min, average, max } = self.sizes;
        let (_, length) = cut(rest, min, average, max, strict, loose, strict << 1, loose << 1);
        let chunk = rest.get(..length)?;
        self.done += length;
        Some(chunk)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Returns pseudo-random bytes, the same for the same seed.
    pub(crate) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut all = vec![0; bytes];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&seed.to_le_bytes()).finalize_xof().fill(&mut all);
        all
    }

    fn cut_all(sizes: Sizes, bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut chunker = Chunker::new(sizes);
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            chunker.feed(piece);
            while let Some(chunk) = chunker.next_chunk() {
                all.push(chunk.to_vec());
            }
        }
        while let Some(chunk) = chunker.finish() {
            all.push(chunk.to_vec());
        }
        all
    }

    #[test]
    fn chunks_have_the_given_sizes() {
        for (sizes, seed) in [(FILE, 1), (MANIFEST, 2)] {
            let bytes = noise(sizes.average * 300, seed);
            let chunks = cut_all(sizes, &bytes, 10_000);
            let (last, others) = chunks.split_last().unwrap();
            assert!(others.iter().all(|it| (sizes.min..=sizes.max).contains(&it.len())));
            assert!(last.len() <= sizes.max);
            let mean = bytes.len() / chunks.len();
            assert!((sizes.average * 3 / 4..sizes.average * 3 / 2).contains(&mean), "{mean}");
        }
        assert!(cut_all(FILE, &[], 1).is_empty());
        // Equal bytes have no cuts, so chunks have the greatest size.
        assert_eq!(cut_all(FILE, &[0; 200_000], 4096).iter().map(Vec::len).max(), Some(64 << 10));
    }

    /// Checks the cuts, which are part of the format: members with other cuts would have no chunks
    /// in common.
    #[test]
    fn the_cuts_are_those_of_format_1() {
        let lengths: Vec<usize> =
            cut_all(FILE, &noise(200_000, 1), 4096).iter().map(Vec::len).collect();
        assert_eq!(lengths, CUTS);
    }

    const CUTS: [usize; 8] = [27178, 7652, 41830, 6744, 43377, 24969, 39685, 8565];

    /// Checks that an insertion of 1 MB causes at most 1.15 MB to be sent.
    #[test]
    fn an_insert_sends_little_more_than_itself() {
        const MB: usize = 1_000_000;
        for seed in 0..3 {
            let old = noise(10 * MB, seed);
            let mut new = old.clone();
            new.splice(4 * MB..4 * MB + 3, noise(MB, seed + 100));
            let before: HashSet<Hash> =
                cut_all(FILE, &old, 1 << 16).iter().map(|it| Hash::of(it)).collect();
            let after = cut_all(FILE, &new, 1 << 16);
            let sent: usize =
                after.iter().filter(|it| !before.contains(&Hash::of(it))).map(Vec::len).sum();
            assert!((MB..=MB * 115 / 100).contains(&sent), "seed {seed}: {sent}");
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_depend_on_the_pieces_and_no_byte_is_lost(
            bytes in 0usize..100_000, seed in 0u64..8, piece in 1usize..20_000
        ) {
            let bytes = noise(bytes, seed);
            let chunks = cut_all(MANIFEST, &bytes, piece);
            prop_assert_eq!(&chunks, &cut_all(MANIFEST, &bytes, usize::MAX));
            prop_assert_eq!(chunks.concat(), bytes);
        }
    }
}
