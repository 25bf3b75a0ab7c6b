//! Reading a text word by word, with the conditions that each word concerns: few of many, so that a word costs about
//! the same however many there are.
//!
//! Sans-I/O.

use std::collections::{HashMap, HashSet};

use super::{Outcome, Test};
use crate::distance::within;
use crate::field::TextField;
use crate::language::Languages;
use crate::phrase::Progress;

/// Reads a word and its position; returns whether more are wanted.
pub(super) type ReadWord<'a> = dyn FnMut(&str, usize) -> bool + 'a;

/// The numbers of the conditions that words concern.
#[derive(Clone, Debug, Default)]
pub(super) struct Concerned {
    /// Plain words, by the letter with which all their forms begin.
    by_letter: HashMap<char, Vec<usize>>,
    /// Phrases, by each of their words.
    by_word: HashMap<String, Vec<usize>>,
    /// Phrases that end with the beginning of a word: each word, wherever it is.
    all: Vec<usize>,
    /// Patterns, and words whose forms begin in any way: each word, but once.
    once: Vec<usize>,
}

impl Concerned {
    /// Adds a condition with a number greater than those before.
    pub(super) fn add(&mut self, number: usize, test: &Test) {
        match test {
            Test::Forms(forms) if forms.begin_alike() => {
                let letter = forms.word().chars().next().unwrap_or_default();
                self.by_letter.entry(letter).or_default().push(number);
            }
            Test::Phrase(phrase) if phrase.beginning().is_some() => self.all.push(number),
            Test::Phrase(phrase) => {
                for word in phrase.words() {
                    self.by_word.entry(word.to_owned()).or_default().push(number);
                }
            }
            Test::Forms(_) | Test::Near(_) | Test::Regex(_) => self.once.push(number),
        }
    }

    /// Returns the conditions that a word concerns, which `is_new` in its text.
    fn by(&self, word: &str, is_new: bool) -> impl Iterator<Item = usize> {
        let letter = word.chars().next();
        let by_letter = letter.and_then(|it| self.by_letter.get(&it)).into_iter().flatten();
        let by_word = self.by_word.get(word).into_iter().flatten();
        let once = is_new.then_some(&self.once).into_iter().flatten();
        by_letter.chain(by_word).chain(&self.all).chain(once).copied()
    }
}

/// The progress of one condition in a text.
pub(super) struct Reading<'a> {
    pub(super) test: &'a Test,
    /// Field of the text; `None` for an attribute's own text.
    pub(super) part: Option<TextField>,
    /// Languages of the record.
    pub(super) languages: Languages,
    pub(super) progress: Progress,
    pub(super) found: &'a mut Outcome,
}

impl Reading<'_> {
    /// Reads the next word of the text of an attribute; returns whether the condition now holds.
    fn step(&mut self, name: &str, word: &str, position: usize) -> bool {
        match self.test {
            Test::Forms(forms) => match self.part.is_some_and(TextField::is_inflected) {
                true => forms.form(word, self.languages).is_some(),
                false => forms.word() == word,
            },
            Test::Phrase(phrase) => phrase.step(&mut self.progress, word, position),
            Test::Near(wanted) => {
                let near = &mut self.found.near;
                let is_near = |(wanted, edits): &(Vec<char>, usize)| within(wanted, word, *edits);
                let hits = wanted.iter().enumerate().filter(|(_, it)| is_near(it));
                let mut hits = hits.map(|(number, _)| (self.part, number)).peekable();
                if hits.peek().is_none() {
                    return false;
                }
                near.extend(hits);
                self.found.names.insert(name.to_owned());
                (0..wanted.len()).all(|number| near.contains(&(self.part, number)))
            }
            Test::Regex(regex) => regex.as_ref().is_some_and(|it| it.is_match(word)),
        }
    }
}

/// Reads the text of an attribute, until each condition of `readings`, by its number, holds.
pub(super) fn read(
    name: &str,
    concerned: &Concerned,
    mut readings: Vec<Option<Reading<'_>>>,
    words: &mut dyn FnMut(&mut ReadWord<'_>),
) {
    let mut open = readings.iter().flatten().count();
    if open == 0 {
        return;
    }
    let mut seen = HashSet::new();
    words(&mut |word, position| {
        let is_new = !concerned.once.is_empty() && !seen.contains(word);
        if is_new {
            seen.insert(word.to_owned());
        }
        for number in concerned.by(word, is_new) {
            let Some(place) = readings.get_mut(number) else { continue };
            if let Some(reading) = place
                && reading.step(name, word, position)
            {
                reading.found.note(name);
                *place = None;
                open -= 1;
            }
        }
        open != 0
    });
}
