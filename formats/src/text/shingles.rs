//! The print of a text: 64 characters from which anybody can tell how much of two texts is the same.
//!
//! Source: A. Broder, "On the resemblance and containment of documents" (1997), for shingles and the minimum of
//! their hashes; P. Li, A. Owen, C.-H. Zhang, "One Permutation Hashing" (2012), for one hash in many bins;
//! A. Shrivastava, "Optimal Densification for Fast and Accurate Minwise Hashing" (2017), for empty bins;
//! P. Li, A. C. König, "b-Bit Minwise Hashing" (2010), for keeping six bits of each minimum.
//! docs/essence.md defines the print byte by byte.
//!
//! # Differences from the papers
//!
//! * Scripts that write no spaces (Chinese, Thai …) have a word for each character.
//! * Words of one ASCII character are left out: they are mostly numbers of pages and marks of lists, which one
//!   format has as text and another has not.
//! * The hash has no secret key, so that all can compare prints. Who wants may make two texts with one print.

use xxhash_rust::xxh3::xxh3_64;

/// Number of bins, and of characters of a print.
const BINS: usize = 64;
/// Number of words of a shingle.
const SHINGLE_WORDS: usize = 5;
/// Fewest words of a text that has a print.
const WORDS_MIN: usize = 50;
/// Maximum number of words that are read.
const WORDS_MAX: usize = 100_000;
/// Length of the words that are kept before those of the next shingle, in bytes.
const WINDOW_BYTES_MAX: usize = 16 * 1024;
/// The digits: those of base64 for URLs (RFC 4648 §5).
const DIGITS: &[u8; BINS] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The mark of an empty bin.
const EMPTY: u64 = u64::MAX;

/// The print of a text that comes word by word.
#[derive(Debug)]
pub struct TextPrint {
    /// The last words, with a space between them.
    window: String,
    /// The offsets of the words of the newest shingle.
    starts: [usize; SHINGLE_WORDS],
    words: usize,
    /// The least hash of each bin.
    bins: [u64; BINS],
}

impl Default for TextPrint {
    fn default() -> Self {
        let starts = [0; SHINGLE_WORDS];
        Self { window: String::new(), starts, words: 0, bins: [EMPTY; BINS] }
    }
}

impl TextPrint {
    /// Adds a run of letters and digits in lower case.
    pub(crate) fn take(&mut self, run: &str) {
        if run.is_ascii() || !run.chars().any(is_word) {
            return self.push(run);
        }
        let mut start = 0;
        for (at, char) in run.char_indices().filter(|(_, it)| is_word(*it)) {
            let end = at + char.len_utf8();
            self.push(run.get(start..at).unwrap_or_default());
            self.push(run.get(at..end).unwrap_or_default());
            start = end;
        }
        self.push(run.get(start..).unwrap_or_default());
    }

    fn push(&mut self, word: &str) {
        if word.len() < 2 || WORDS_MAX <= self.words {
            return;
        }
        if WINDOW_BYTES_MAX < self.window.len() {
            let [_, kept, ..] = self.starts;
            self.window.drain(..kept);
            self.starts = self.starts.map(|it| it.saturating_sub(kept));
        }
        if !self.window.is_empty() {
            self.window.push(' ');
        }
        let [_, b, c, d, e] = self.starts;
        self.starts = [b, c, d, e, self.window.len()];
        self.window.push_str(word);
        self.words += 1;
        if SHINGLE_WORDS <= self.words {
            let hash = xxh3_64(self.window.as_bytes().get(b..).unwrap_or_default());
            if let Some(least) = self.bins.get_mut(bin_of(hash)) {
                *least = hash.min(*least);
            }
        }
    }

    /// Returns the print; empty for a text of too few words.
    pub fn finish(&self) -> String {
        if self.words < WORDS_MIN {
            return String::new();
        }
        let digit = |hash: u64| {
            let [low, ..] = hash.to_le_bytes();
            DIGITS.get(usize::from(low) % BINS).copied().unwrap_or_default()
        };
        (0_u8..).zip(&self.bins).map(|(bin, _)| char::from(digit(self.least(bin)))).collect()
    }

    /// Returns the least hash of a bin; of an empty one, that of the first full one of a fixed list.
    fn least(&self, bin: u8) -> u64 {
        let of = |bin: usize| self.bins.get(bin).copied().filter(|it| *it != EMPTY);
        let others = (1..=u16::MAX).map(|attempt| {
            let [low, high] = attempt.to_le_bytes();
            bin_of(xxh3_64(&[bin, low, high]))
        });
        std::iter::once(bin.into()).chain(others).find_map(of).unwrap_or_default()
    }
}

/// Returns how much of the shingles of two texts is the same, from 0 to 1 (Jaccard), by their prints; `None` if
/// one is no print. The standard error is at most 0.065, and 0.05 at 0.8.
pub fn similarity(one: &str, other: &str) -> Option<f64> {
    if one.len() != BINS || other.len() != BINS {
        return None;
    }
    let equal = one.bytes().zip(other.bytes()).filter(|(a, b)| a == b).count();
    // Two digits are equal by chance once in 64 times.
    Some((equal as f64 - 1.0).max(0.0) / (BINS as f64 - 1.0))
}

/// The upper six bits choose the bin; the lower six are the digit.
fn bin_of(hash: u64) -> usize {
    (hash >> 58) as usize
}

/// Returns whether the character is a word of its own: it is of a script that writes no spaces.
fn is_word(char: char) -> bool {
    matches!(char, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::super::Keywords;
    use super::*;

    fn print(text: &str) -> String {
        let mut print = TextPrint::default();
        Keywords::new(1 << 20).add_each(text, |word| print.take(word));
        print.finish()
    }

    /// Words of a generator (xorshift), the same for the same seed.
    fn words(seed: u64, count: usize) -> Vec<String> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            format!("w{}", state % 5_000)
        };
        (0..count).map(|_| next()).collect()
    }

    fn shingles(words: &[String]) -> HashSet<&[String]> {
        words.windows(SHINGLE_WORDS).collect()
    }

    #[test]
    fn a_print_is_as_defined() {
        // Others compute it from the definition in docs/essence.md: it must not change. Expected values: the program
        // in Python there.
        let text: String = (0..60).map(|it| format!("Word{it} ")).collect();
        assert_eq!(
            print(&text),
            "9yJTm9GynjCm1yZoiYt_TPH1nw9t_nZPjfmpiynZ_yMG9JYsJMdtjJ1BsV9_GGMn"
        );
        let text = "Grüße, ÄÖ; 日本語のテキスト x 7 Δοκιμή. ".repeat(12)
            + &(0..30).map(|it| format!("n{it} ")).collect::<String>();
        assert_eq!(
            print(&text),
            "sRXTCs21TQ001qyamGRoFfh1hRs6dRBrsCC3Ia1ydr2FXZGyZIZdQfmUdTfodBmr"
        );
        assert_eq!(print("forty-nine words are too few"), "");
    }

    #[test]
    fn form_does_not_matter() {
        let text = words(7, 300).join(" ");
        let expected = print(&text);
        assert_eq!(expected.len(), BINS);
        assert_eq!(print(&text.to_uppercase()), expected);
        assert_eq!(print(&text.replace(' ', ",\r\n\t")), expected);
        assert_eq!(print(&text.replace(' ', "\n- 7. ")), expected);
        // No spaces between the words of these scripts.
        let text: String =
            (0..200).map(|it| char::from_u32(0x4e00 + it * 7 % 500).unwrap()).collect();
        let spaced: String = text.chars().flat_map(|it| [it, '\n']).collect();
        assert_eq!(print(&text), print(&spaced));
        assert_eq!(print(&text).len(), BINS);
    }

    #[test]
    fn other_texts_have_other_prints() {
        for seed in 1..40 {
            let (one, other) = (words(seed, 2_000).join(" "), words(seed + 100, 2_000).join(" "));
            assert!(similarity(&print(&one), &print(&other)).unwrap() < 0.1, "{seed}");
        }
        assert_eq!(similarity("", &print("")), None);
        let rounds = "to be or not ".repeat(2_000);
        assert_eq!(similarity(&print(&rounds), &print(&rounds)), Some(1.0));
    }

    #[test]
    fn only_the_first_words_count() {
        let text = words(3, WORDS_MAX);
        let more = [text.clone(), words(4, 500)].concat();
        assert_eq!(print(&text.join(" ")), print(&more.join(" ")));
    }

    proptest! {
        /// Replaces some words; the estimate must be within four standard errors of the truth.
        #[test]
        fn the_similarity_is_that_of_the_shingles(
            seed in 1_u64..1 << 40, count in 60_usize..3_000, every in 2_usize..400,
        ) {
            let text = words(seed, count);
            let mut other = text.clone();
            let new = words(seed ^ 0xffff_0000, count / every + 1);
            other.iter_mut().step_by(every).zip(new).for_each(|(word, new)| *word = new);
            let (a, b) = (shingles(&text), shingles(&other));
            let truth = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
            let found = similarity(&print(&text.join(" ")), &print(&other.join(" "))).unwrap();
            let equal = truth + (1.0 - truth) / BINS as f64;
            // Few shingles leave bins empty, whose copies are not independent.
            let bins = (BINS.min(a.len() / 2)) as f64;
            let error = (equal * (1.0 - equal) / bins).sqrt().max(1.0 / BINS as f64);
            prop_assert!((found - truth).abs() < 4.0 * error + 0.03, "{found} {truth}");
        }

        #[test]
        fn any_text_has_a_print_or_none(text in "\\PC{0,300}") {
            let print = print(&text);
            prop_assert!(print.is_empty() || print.len() == BINS);
        }
    }
}
