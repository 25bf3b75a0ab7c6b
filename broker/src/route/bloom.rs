//! A Bloom filter of words: which words a collection has for certain not.
//!
//! Source: B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970; A. Kirsch, M. Mitzenmacher,
//! "Less hashing, same performance", 2006 (two hashes stand for all).
//!
//! Sans-I/O.

use soif::digest::Md5;

/// Bits for each word: one in two thousand other words is taken for one of these.
const BITS_OF_ONE: usize = 16;
/// Number of bits that each word sets.
const HASHES: u64 = 11;
/// Largest filter, in bytes.
pub(crate) const BYTES_MAX: usize = 1 << 20;
/// Smallest filter, in bytes.
const BYTES_MIN: usize = 16;
/// Largest share of the bits that are set, in hundredths; one that is made as ours has half of them.
const FULL_MAX: u64 = 60;

/// A filter. Its bytes are the same on all machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bloom {
    bytes: Vec<u8>,
}

impl Bloom {
    /// Returns an empty filter for so many words.
    pub(crate) fn for_words(words: usize) -> Self {
        let bytes = (words.saturating_mul(BITS_OF_ONE) / 8).clamp(BYTES_MIN, BYTES_MAX);
        Self { bytes: vec![0; bytes] }
    }

    /// Reads a filter of its bytes; one without bytes has no words. One that claims nearly all words tells nothing, and
    /// is taken for one without.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let bytes = bytes.get(..BYTES_MAX).unwrap_or(bytes);
        let bits = bytes.len() as u64 * 8;
        let set: u64 = bytes.iter().map(|it| u64::from(it.count_ones())).sum();
        let is_full = bits * FULL_MAX < set * 100;
        Self { bytes: if is_full { Vec::new() } else { bytes.to_vec() } }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn insert(&mut self, word: &str) {
        for bit in self.bits_of(word) {
            if let Some(byte) = self.bytes.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }

    /// Returns whether it may have a word; if not, it has not.
    pub(crate) fn may_have(&self, word: &str) -> bool {
        !self.bytes.is_empty()
            && self
                .bits_of(word)
                .all(|bit| self.bytes.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
    }

    fn bits_of(&self, word: &str) -> impl Iterator<Item = usize> + use<> {
        let digest = Md5::of(word.as_bytes()).0;
        let half = |at: usize| {
            let half = digest.get(at..at + 8).and_then(|it| <[u8; 8]>::try_from(it).ok());
            u64::from_be_bytes(half.unwrap_or_default())
        };
        let (first, second) = (half(0), half(8) | 1);
        let bits = (self.bytes.len() as u64).saturating_mul(8).max(1);
        (0..HASHES).map(move |n| {
            let bit = first.wrapping_add(n.wrapping_mul(second)) % bits;
            usize::try_from(bit).unwrap_or_default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_what_was_inserted_and_little_else() {
        let words: Vec<String> = (0..10_000).map(|n| format!("word{n}")).collect();
        let mut bloom = Bloom::for_words(words.len());
        words.iter().for_each(|it| bloom.insert(it));
        assert!(words.iter().all(|it| bloom.may_have(it)));
        let wrong = (0..10_000).filter(|n| bloom.may_have(&format!("other{n}"))).count();
        assert!(wrong < 20, "{wrong} of 10,000 other words");
        let again = Bloom::of_bytes(bloom.bytes());
        assert_eq!(again, bloom);
        assert!(!Bloom::default().may_have("word1") && !Bloom::of_bytes(b"").may_have(""));
        assert!(!Bloom::for_words(0).may_have("word1"));
        assert_eq!(Bloom::for_words(usize::MAX).bytes().len(), BYTES_MAX);
        // The same bytes on all machines.
        let mut small = Bloom::for_words(1);
        small.insert("apple");
        assert_eq!(small.bytes().iter().map(|it| it.count_ones()).sum::<u32>(), 11);
    }
}
