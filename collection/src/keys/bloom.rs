//! A Bloom filter: recognizes, without reading a run, most keys that are not in it.
//!
//! With ten bits and seven probes a key, one absent key in a hundred is not recognized.
//!
//! Sans-I/O.
//!
//! Source: Bloom, "Space/time trade-offs in hash coding with allowable errors" (1970); double
//! hashing as in Kirsch and Mitzenmacher (2006).

use xxhash_rust::xxh3::xxh3_64;

const BITS_PER_KEY: u64 = 10;
const PROBES: u64 = 7;

/// A set of keys with false positives, and without false negatives.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bloom {
    words: Vec<u64>,
}

impl Bloom {
    /// Makes a filter for at most `keys_max` keys.
    pub(super) fn new(keys_max: u64) -> Self {
        let words = (keys_max.saturating_mul(BITS_PER_KEY) / 64 + 1).min(1 << 32);
        Self { words: vec![0; usize::try_from(words).unwrap_or(1)] }
    }

    pub(super) fn insert(&mut self, key: &[u8]) {
        for bit in self.bits(key) {
            if let Some(word) = self.words.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        self.bits(key)
            .all(|bit| self.words.get(bit / 64).is_some_and(|it| it >> (bit % 64) & 1 != 0))
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.words.iter().flat_map(|it| it.to_le_bytes()));
    }

    /// Reads the bytes of [`encode`](Self::encode); `None` if they are malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: Vec<u64> = words.iter().map(|it| u64::from_le_bytes(*it)).collect();
        (!words.is_empty()).then_some(Self { words })
    }

    fn bits(&self, key: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let hash = xxh3_64(key);
        let step = hash.rotate_left(32) | 1;
        let bits = self.words.len() as u128 * 64;
        (0..PROBES).map(move |probe| {
            let hash = hash.wrapping_add(probe.wrapping_mul(step));
            // The high half of the product is distributed evenly over the numbers below `bits`.
            usize::try_from((u128::from(hash) * bits) >> 64).unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_its_keys_pass_and_few_others() {
        let mut bloom = Bloom::new(10_000);
        let key = |n: u32| n.to_be_bytes();
        (0..10_000).for_each(|n| bloom.insert(&key(n)));
        let mut bytes = Vec::new();
        bloom.encode(&mut bytes);
        let read = Bloom::decode(&bytes).unwrap();
        assert_eq!(read, bloom);
        assert!((0..10_000).all(|n| read.may_have(&key(n))));
        let wrong = (10_000..110_000).filter(|n| read.may_have(&key(*n))).count();
        assert!(wrong < 2_000, "{wrong} of 100,000 absent keys pass");
    }
}
