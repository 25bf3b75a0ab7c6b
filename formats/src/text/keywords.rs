//! Keywords: the unique, case-folded words of texts.
//!
//! Source: reference manual of Harvest 1.x. Telling words: H. P. Luhn, "The automatic creation of literature
//! abstracts" (1958), who measures the significance of a word by its frequency in the text.
//!
//! # Differences from Luhn's
//!
//! * No word is too frequent. Such words depend on the language, and words common to all documents cost next
//!   to nothing where records are packed together. Longer words weigh more instead.
//! * A frequent word stands in the list several times, since ranking uses its count (effect:
//!   docs/measurements.md).
//!
//! Every word of every text passes through this module. So the words lie one after the other in one string,
//! and a table of their positions finds them. A set of strings with the standard library's hash takes four
//! times as long, most of it in allocating.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Longest word that is a keyword, in bytes; longer runs are encoded data.
pub(super) const WORD_BYTES_MAX: usize = 64;
/// Shortest word that is a keyword, in bytes: single Latin letters and digits find nothing.
const WORD_BYTES_MIN: usize = 2;
/// Longest number that is a keyword, in digits: invoices, articles and accounts.
const DIGITS_MAX: usize = 20;
/// Longest fraction that is one, in digits: those of tables of measurements find nothing.
const FRACTION_DIGITS_MAX: usize = 10;
/// A number weighs no more than a year, whatever its length.
const NUMBER_BYTES_MAX: usize = 4;
/// Words weigh more the longer they are, up to this many bytes.
const TELLING_BYTES_MAX: usize = 8;
/// Counts from which a word stands in the list once more.
const REPEATED_FROM: [u32; 4] = [2, 4, 8, 16];

/// The meaning of a byte in words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// ASCII that separates words.
    Between,
    /// A digit or a small ASCII letter.
    Plain,
    /// A capital ASCII letter.
    Capital,
    /// Part of a character that is not ASCII.
    Wide,
}

/// The class of every byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Between; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' => Class::Plain,
            b'A'..=b'Z' => Class::Capital,
            0x80.. => Class::Wide,
            _ => Class::Between,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(Class::Between)
}

/// The position of a word in the string of all words, in bytes, and its count.
#[derive(Clone, Copy, Debug)]
struct WordSpan {
    start: u32,
    end: u32,
    count: u32,
}

impl WordSpan {
    fn of<'t>(&self, words: &'t str) -> &'t str {
        words.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The unique, case-folded words of texts.
#[derive(Debug)]
pub struct Keywords {
    /// The words, one after the other.
    words: String,
    /// Their positions.
    spans: HashTable<WordSpan>,
    /// With a random key: texts cannot be made to collide.
    hash: RandomState,
    /// Bound on the length of all words with a separator after each, in bytes.
    bytes_max: usize,
    /// The lengths so far of words with letters and of numbers. Each may come up to the bound: if both
    /// together are beyond it, numbers are left out in the end.
    text_bytes: usize,
    number_bytes: usize,
    /// A word that is being folded.
    folded: String,
    is_cut: bool,
}

impl Keywords {
    /// Returns an empty set that takes words up to `bytes_max` bytes (at most 2 GiB) in all.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            words: String::new(),
            spans: HashTable::new(),
            hash: RandomState::default(),
            bytes_max: bytes_max.min(u32::MAX as usize / 2),
            text_bytes: 0,
            number_bytes: 0,
            folded: String::new(),
            is_cut: false,
        }
    }

    /// Adds the words of `text`: runs of letters and digits.
    pub fn add(&mut self, text: &str) {
        self.add_each(text, |_| {});
    }

    /// Adds the words of `text`, and calls `each` with every run of letters and digits, folded: also with those
    /// that are no keywords.
    pub(crate) fn add_each(&mut self, text: &str, mut each: impl FnMut(&str)) {
        let bytes = text.as_bytes();
        let class_at = |at: usize| bytes.get(at).map_or(Class::Between, |byte| class(*byte));
        let mut at = 0;
        while at < bytes.len() {
            let start = at;
            while class_at(at) == Class::Plain {
                at += 1;
            }
            match class_at(at) {
                Class::Between => {
                    let word = text.get(start..at).unwrap_or_default();
                    each(word);
                    if !is_long_fraction(text, start, word) {
                        self.take(word);
                    }
                    at += 1;
                }
                Class::Capital | Class::Wide => at = self.fold(text, start, &mut each),
                Class::Plain => {}
            }
        }
    }

    /// Adds the word that starts at `start`, folded; returns the end of the separator after it.
    fn fold(&mut self, text: &str, start: usize, each: &mut impl FnMut(&str)) -> usize {
        let mut folded = std::mem::take(&mut self.folded);
        folded.clear();
        let rest = text.get(start..).unwrap_or_default();
        let mut end = rest.len();
        for (at, char) in rest.char_indices() {
            if char.is_ascii_alphanumeric() {
                folded.push(char.to_ascii_lowercase());
            } else if !char.is_ascii() && char.is_alphanumeric() {
                folded.extend(char.to_lowercase());
            } else {
                end = at + char.len_utf8();
                break;
            }
        }
        each(&folded);
        if !is_long_fraction(text, start, &folded) {
            self.take(&folded);
        }
        self.folded = folded;
        start + end
    }

    /// Returns whether words are left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut || self.bytes_max < self.text_bytes + self.number_bytes
    }

    fn take(&mut self, word: &str) {
        let is_number = is_number(word);
        if !(WORD_BYTES_MIN..=WORD_BYTES_MAX).contains(&word.len())
            || is_number && DIGITS_MAX < word.len()
        {
            return;
        }
        let Self { words, spans, hash, bytes_max, text_bytes, number_bytes, .. } = self;
        let key = hash.hash_one(word.as_bytes());
        if let Some(span) = spans.find_mut(key, |span| span.of(words) == word) {
            span.count = span.count.saturating_add(1);
            return;
        }
        let bytes = if is_number { number_bytes } else { text_bytes };
        if *bytes_max <= *bytes + word.len() {
            self.is_cut = true;
            return;
        }
        *bytes += word.len() + 1;
        let start = u32::try_from(words.len()).unwrap_or(u32::MAX);
        words.push_str(word);
        let end = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let span = WordSpan { start, end, count: 1 };
        let again = |span: &WordSpan| hash.hash_one(span.of(words).as_bytes());
        spans.insert_unique(key, span, again);
    }

    /// Returns the `words_max` most telling words, sorted, one a line: those with the largest
    /// `weight`. `REPEATED_FROM` says how often each is repeated.
    pub fn most_telling(mut self, words_max: usize) -> String {
        self.make_room();
        let words = &self.words;
        let mut ranked: Vec<(u64, &str, u32)> = Vec::with_capacity(self.spans.len());
        ranked.extend(self.spans.iter().map(|span| {
            let word = span.of(words);
            (weight(word, span.count), word, span.count)
        }));
        // The result must not depend on the order in the table. Of equal weights, words come first.
        ranked.sort_unstable_by(|a, b| {
            let by_kind = || is_number(a.1).cmp(&is_number(b.1));
            b.0.cmp(&a.0).then_with(by_kind).then_with(|| a.1.cmp(b.1))
        });
        ranked.truncate(words_max);
        ranked.sort_unstable_by_key(|(_, word, _)| *word);
        let mut lines = String::new();
        for (_, word, count) in ranked {
            let times = 1 + REPEATED_FROM.iter().filter(|from| **from <= count).count();
            for _ in 0..times {
                // The bound holds for repeated words as well.
                if self.bytes_max < lines.len() + word.len() + 1 {
                    return lines;
                }
                if !lines.is_empty() {
                    lines.push('\n');
                }
                lines.push_str(word);
            }
        }
        lines
    }

    /// Removes the last numbers for which words leave no room.
    fn make_room(&mut self) {
        let mut excess = (self.text_bytes + self.number_bytes).saturating_sub(self.bytes_max);
        if excess == 0 {
            return;
        }
        let words = &self.words;
        let numbers = self.spans.iter().filter(|it| is_number(it.of(words)));
        let mut starts: Vec<(u32, usize)> =
            numbers.map(|it| (it.start, it.of(words).len() + 1)).collect();
        starts.sort_unstable();
        let mut end = u32::MAX;
        while let Some((start, bytes)) = starts.pop().filter(|_| 0 < excess) {
            excess = excess.saturating_sub(bytes);
            end = start;
        }
        self.spans.retain(|it| it.start < end || !is_number(it.of(words)));
    }

    /// Returns the words, sorted, one a line. If they are too many, numbers are left out first.
    pub fn finish(mut self) -> String {
        self.make_room();
        // The first bytes, as a number, put nearly all in order.
        let front = |word: &str| {
            let mut front = [0; 8];
            word.bytes().zip(&mut front).for_each(|(byte, slot)| *slot = byte);
            u64::from_be_bytes(front)
        };
        let words = &self.words;
        let mut sorted: Vec<(u64, &str)> = Vec::with_capacity(self.spans.len());
        sorted.extend(self.spans.iter().map(|span| span.of(words)).map(|it| (front(it), it)));
        sorted.sort_unstable();
        let mut lines = String::with_capacity(words.len() + sorted.len());
        for (_, word) in sorted {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(word);
        }
        lines
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|it| it.is_ascii_digit())
}

/// Returns whether the word at `start` has the many digits after a decimal point.
fn is_long_fraction(text: &str, start: usize, word: &str) -> bool {
    let before = start.checked_sub(2).and_then(|it| text.as_bytes().get(it..start));
    FRACTION_DIGITS_MAX < word.len()
        && matches!(before, Some([b'0'..=b'9', b'.' | b',']))
        && is_number(word)
}

/// Returns the weight of a word in a text that has it `count` times.
fn weight(word: &str, count: u32) -> u64 {
    let bytes_max = if is_number(word) { NUMBER_BYTES_MAX } else { TELLING_BYTES_MAX };
    u64::from(count) * word.len().min(bytes_max) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> String {
        let mut keywords = Keywords::new(1000);
        keywords.add(text);
        keywords.finish().replace('\n', " ")
    }

    #[test]
    fn keywords_are_unique_sorted_and_folded() {
        assert_eq!(words("The cat, the CAT; a b2 Über-größe"), "b2 cat größe the über");
        assert_eq!(
            words("x86_64 iPhone naïve ÄÖ2a, d'Été\u{2014}fin"),
            "64 fin iphone naïve x86 äö2a été"
        );
        assert_eq!(words(&"x".repeat(65)), "");
        assert_eq!(words("日本語 テスト"), "テスト 日本語");
        assert_eq!(words("configured configure configurable"), "configurable configure configured");
    }

    #[test]
    fn numbers_are_keywords_unless_they_are_long_fractions() {
        assert_eq!(words("4711, 12345678901234567890 7"), "12345678901234567890 4711");
        assert_eq!(words("123456789012345678901"), "");
        assert_eq!(words("3.14159265358979 0,333333333333333\u{2014}"), "");
        assert_eq!(
            words("12.5000 x.14159265358979 5.14159265358979a"),
            "12 14159265358979 14159265358979a 5000"
        );
    }

    #[test]
    fn words_win_over_numbers() {
        let text = "1001 1002 1003 1004 one two three";
        for (bytes_max, expected) in [
            (99, "1001 1002 1003 1004 one three two"),
            (30, "1001 1002 1003 one three two"),
            (20, "1001 one three two"),
            (15, "one three two"),
            (9, "one two"),
        ] {
            let mut keywords = Keywords::new(bytes_max);
            keywords.add(text);
            assert_eq!(keywords.finish().replace('\n', " "), expected, "{bytes_max}");
        }
        assert_eq!(most_telling("20241103 20241104 amount of", 1), "amount");
        assert_eq!(most_telling("2024 tree four", 2), "four tree");
    }

    #[test]
    fn keywords_are_bounded() {
        let mut keywords = Keywords::new(20);
        for number in 100..200 {
            keywords.add(&format!("word{number}"));
        }
        assert_eq!(keywords.finish(), "word100\nword101");
    }

    fn most_telling(text: &str, words_max: usize) -> String {
        let mut keywords = Keywords::new(1000);
        keywords.add(text);
        keywords.most_telling(words_max).replace('\n', " ")
    }

    #[test]
    fn the_most_telling_words_are_frequent_and_long() {
        let text = "of of of cat dog harvest harvest gatherer";
        assert_eq!(most_telling(text, 0), "");
        assert_eq!(most_telling(text, 1), "harvest harvest");
        assert_eq!(most_telling(text, 2), "gatherer harvest harvest");
        assert_eq!(most_telling(text, 3), "gatherer harvest harvest of of");
        // Of equal weights, the first in the alphabet wins.
        assert_eq!(most_telling(text, 4), "cat gatherer harvest harvest of of");
        assert_eq!(most_telling("configurable abcdefgh", 1), "abcdefgh");
        for (count, times) in [(1, 1), (2, 2), (3, 2), (4, 3), (8, 4), (16, 5), (1_000, 5)] {
            assert_eq!(most_telling(&"word ".repeat(count), 9), ["word"; 5][..times].join(" "));
        }
    }

    /// The expected words, computed in the plainest way.
    fn expected_words(text: &str) -> Vec<String> {
        let folded = |word: &str| word.chars().flat_map(char::to_lowercase).collect::<String>();
        let mut words: Vec<String> =
            text.split(|it: char| !it.is_alphanumeric()).map(folded).collect();
        words.retain(|it| {
            (2..=64).contains(&it.len())
                && (it.len() <= 20 || !it.bytes().all(|it| it.is_ascii_digit()))
        });
        words.sort();
        words.dedup();
        words
    }

    proptest! {
        #[test]
        fn keywords_are_all_words(text in "([a-zA-Z0-9äßÉ日 .,\u{2028}]{0,12}[ \\PC]{0,3}){0,40}") {
            let mut keywords = Keywords::new(1 << 20);
            keywords.add(&text);
            prop_assert_eq!(keywords.finish(), expected_words(&text).join("\n"));
        }

        #[test]
        fn the_most_telling_of_all_are_all_words(text in "([a-cA-C0-9äß .,]{0,6} ){0,40}") {
            let mut keywords = Keywords::new(1 << 20);
            keywords.add(&text);
            let telling = keywords.most_telling(usize::MAX);
            let mut seen: Vec<&str> = telling.lines().collect();
            seen.dedup();
            prop_assert_eq!(seen, expected_words(&text));
        }

        #[test]
        fn keywords_keep_their_bound(text in "\\PC{0,300}", max in 0..200_usize) {
            let mut keywords = Keywords::new(max);
            keywords.add(&text);
            prop_assert!(keywords.finish().len() <= max);
            let mut keywords = Keywords::new(max);
            keywords.add(&text);
            prop_assert!(keywords.most_telling(max / 4).len() <= max);
        }
    }
}
