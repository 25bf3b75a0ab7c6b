//! Words side by side, found in one pass over a text (Knuth, Morris, Pratt).
//!
//! Sans-I/O.

/// Words that have to stand side by side.
#[derive(Clone, Debug)]
pub(crate) struct Phrase {
    /// As they are.
    words: Vec<String>,
    /// What a further word begins with.
    beginning: Option<String>,
    /// For each word: how many first words end with it too, when a text went on otherwise.
    fallback: Vec<usize>,
}

/// How much of a phrase the words before have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    matched: usize,
    /// Where the next word has to stand.
    position: usize,
}

impl Phrase {
    /// `words`, and after them one that begins with `beginning`; not empty together.
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

    /// Goes on with the `word` at `position` of a text; returns whether the phrase ends here.
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

    /// How many first words a text ends with that ended with `matched` and goes on with `word`.
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
        fn a_phrase_is_found_where_its_words_stand(phrase in "[ab]{1,5}", text in "[ab]{0,20}") {
            let (whole, mut progress) = (Phrase::new(words(&phrase), None), Progress::default());
            let ends = |(at, word): (usize, String)| whole.step(&mut progress, &word, at);
            let found = words(&text).into_iter().enumerate().map(ends).filter(|it| *it).count();
            let naive = text.as_bytes().windows(phrase.len()).filter(|it| *it == phrase.as_bytes());
            prop_assert_eq!(found, naive.count());
        }

        #[test]
        fn a_phrase_ends_in_any_word_that_begins_so(phrase in "[ab]{0,3}", text in "[ab]{0,20}") {
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
