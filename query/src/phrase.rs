//! Search for a phrase in one pass over a text (Knuth, Morris, Pratt).
//!
//! Sans-I/O.

/// Words that must stand side by side.
#[derive(Clone, Debug)]
pub(crate) struct Phrase {
    words: Vec<String>,
    /// Prefix of one further word.
    beginning: Option<String>,
    /// The failure function: for each word, the number of first words that still match when the
    /// next word does not.
    fallback: Vec<usize>,
}

/// The part of a phrase that the previous words match.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    matched: usize,
    /// Position that the next word must have.
    position: usize,
}

impl Phrase {
    /// Returns the phrase of `words` and, if given, one further word that begins with `beginning`.
    pub(crate) fn new(words: Vec<String>, beginning: Option<String>) -> Self {
        let mut phrase = Self { fallback: Vec::with_capacity(words.len()), words, beginning };
        let mut matched = 0;
        for (at, word) in phrase.words.iter().enumerate() {
            if at != 0 {
                matched = phrase.after(matched, word);
            }
            phrase.fallback.push(matched);
        }
        phrase
    }

    /// Reads the `word` at `position` of a text; returns whether the phrase ends here.
    pub(crate) fn step(&self, progress: &mut Progress, word: &str, position: usize) -> bool {
        if position != progress.position {
            progress.matched = 0;
        }
        progress.position = position + 1;
        let is_whole = |matched: usize| matched == self.words.len();
        let begins = |it: &String| is_whole(progress.matched) && word.starts_with(it.as_str());
        let ends = self.beginning.as_ref().is_some_and(begins);
        progress.matched = self.after(progress.matched, word);
        ends || self.beginning.is_none() && is_whole(progress.matched)
    }

    /// Returns how many words of the phrase match when `word` follows `matched` matching words.
    fn after(&self, mut matched: usize, word: &str) -> usize {
        loop {
            if self.words.get(matched).is_some_and(|it| it == word) {
                return matched + 1;
            }
            let Some(before) = matched.checked_sub(1) else { return 0 };
            matched = self.fallback.get(before).copied().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.chars().map(String::from).collect()
    }

    proptest! {
        #[test]
        fn a_phrase_is_found_at_every_occurrence(phrase in "[ab]{1,5}", text in "[ab]{0,20}") {
            let (whole, mut progress) = (Phrase::new(words(&phrase), None), Progress::default());
            let ends = |(at, word): (usize, String)| whole.step(&mut progress, &word, at);
            let found = words(&text).into_iter().enumerate().map(ends).filter(|it| *it).count();
            let naive = text.as_bytes().windows(phrase.len()).filter(|it| *it == phrase.as_bytes());
            prop_assert_eq!(found, naive.count());
        }

        #[test]
        fn a_phrase_with_a_prefix_ends_in_any_word_with_it(phrase in "[ab]{0,3}", text in "[ab]{0,20}") {
            let beginning = Some("b".to_owned());
            let (begun, mut progress) = (Phrase::new(words(&phrase), beginning), Progress::default());
            let ends = |(at, word): (usize, String)| begun.step(&mut progress, &word, at);
            let found = words(&text).into_iter().enumerate().map(ends).filter(|it| *it).count();
            let whole = format!("{phrase}b");
            let naive = text.as_bytes().windows(whole.len()).filter(|it| *it == whole.as_bytes());
            prop_assert_eq!(found, naive.count());
        }
    }
}
