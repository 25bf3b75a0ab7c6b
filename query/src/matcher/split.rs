//! A record whose texts are split into words, to be held against many queries.
//!
//! Sans-I/O.

use std::ops::Range;

use soif::Record;

use crate::field::TextField;
use crate::language::Languages;
use crate::record::{Searched, searched};
use crate::words::Words;

/// The searched items of a record, and their words.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) languages: Languages,
    pub(super) items: Vec<Item>,
    /// All words, one after the other.
    text: String,
    words: Vec<Place>,
}

/// A word's place in all words, and its position in its item. Texts are bounded far below 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    end: u32,
    position: u32,
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) what: ItemKind,
    /// Its words.
    pub(super) words: Range<usize>,
}

#[derive(Debug)]
pub(super) enum ItemKind {
    Name,
    Text(TextField),
    Attribute(String),
}

impl Split {
    pub(crate) fn new(record: &Record) -> Self {
        let languages = Languages::of(record);
        let mut split =
            Self { languages, items: Vec::new(), text: String::new(), words: Vec::new() };
        let mut word = String::new();
        searched(record, &mut |name, what| {
            let start = split.words.len();
            let what = match what {
                Searched::Name => ItemKind::Name,
                Searched::Text(part, text) => {
                    split.add(text, &mut word);
                    ItemKind::Text(part)
                }
                Searched::Attribute(text) => {
                    split.add(text, &mut word);
                    // It may be a number.
                    ItemKind::Attribute(text.to_owned())
                }
            };
            let words = start..split.words.len();
            split.items.push(Item { name: name.to_owned(), what, words });
        });
        split
    }

    fn add(&mut self, text: &str, word: &mut String) {
        let mut words = Words::new(text);
        while let Some(at) = words.next_into(word) {
            let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
            let start = number(self.text.len());
            self.text.push_str(word);
            let (end, position) = (number(self.text.len()), number(at.position));
            self.words.push(Place { start, end, position });
        }
    }

    /// Returns the names of its attributes.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.items.iter().filter(|it| matches!(it.what, ItemKind::Name));
        names.map(|it| it.name.as_str())
    }

    /// Returns all words, each as often as it occurs.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|it| self.word(it))
    }

    /// Returns the words of an item, each with its position.
    pub(super) fn words_of(&self, item: &Item) -> impl Iterator<Item = (&str, usize)> {
        let places = self.words.get(item.words.clone()).into_iter().flatten();
        places.map(|it| (self.word(it), it.position as usize))
    }

    fn word(&self, place: &Place) -> &str {
        self.text.get(place.start as usize..place.end as usize).unwrap_or_default()
    }
}
