//! Notes for the administrator: the last events and problems.
//!
//! Sans-I/O.

use std::collections::VecDeque;
use std::time::Duration;

/// Maximum number of notes that are kept.
const NOTES_MAX: usize = 100;
/// Time after a note within which a repetition of its text is only counted, not added.
const AGAIN: Duration = Duration::from_mins(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) text: String,
    pub(super) first: Duration,
    /// Time of the last repetition; without any, the same as `first`.
    pub(super) last: Duration,
    pub(super) count: u64,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    all: VecDeque<Note>,
    /// How many notes were added since the start, repeated ones included.
    pub(super) total: u64,
}

impl Notes {
    /// Adds and logs a note. If its text was noted within [`AGAIN`], it is only counted.
    pub(super) fn add(&mut self, text: String, now: Duration) {
        self.total += 1;
        let known = self.all.iter().position(|it| it.text == text && now < it.first + AGAIN);
        if let Some(mut note) = known.and_then(|at| self.all.remove(at)) {
            (note.last, note.count) = (now, note.count + 1);
            self.all.push_back(note);
            return;
        }
        tracing::info!("{text}");
        if NOTES_MAX <= self.all.len() {
            self.all.pop_front();
        }
        self.all.push_back(Note { text, first: now, last: now, count: 1 });
    }

    /// Returns the notes, the newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Note> {
        self.all.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_notes_are_counted_and_the_oldest_are_dropped() {
        let mut notes = Notes::default();
        let at = Duration::from_secs;
        notes.add("a".to_owned(), at(0));
        notes.add("b".to_owned(), at(1));
        notes.add("a".to_owned(), at(2));
        let found: Vec<_> = notes.newest().map(|it| (it.text.as_str(), it.count)).collect();
        assert_eq!((found, notes.total), (vec![("a", 2), ("b", 1)], 3));
        notes.add("a".to_owned(), AGAIN);
        assert_eq!(notes.newest().filter(|it| it.text == "a").count(), 2);
        for it in 0..NOTES_MAX {
            notes.add(it.to_string(), at(9));
        }
        assert_eq!(notes.newest().count(), NOTES_MAX);
    }
}
