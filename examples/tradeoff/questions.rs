//! The questions: one sentence from each of many documents.
//!
//! A suitable sentence comes after the text's first paragraph. It has at least [`WORDS_MIN`] words
//! with letters and at most [`WORDS_MAX`] words, and is not in title, description or abstract. Of
//! the documents with such a sentence, [`QUESTIONS`] are drawn, and one sentence of each,
//! uniformly. The draw depends only on [`SEED`] and the URLs.

use std::collections::HashMap;

use collection::{Change, Collection};
use soif::Record;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Number of questions.
const QUESTIONS: usize = 1_200;
/// Fewest words of a sentence.
const WORDS_MIN: usize = 8;
/// Maximum number of words of a sentence: longer ones are tables.
const WORDS_MAX: usize = 40;
/// Seed of the draw.
const SEED: u64 = 0x4573_7365_6e63_6521;

/// A question: the words of a sentence.
pub(crate) struct Question {
    /// Words of the sentence in lower case, in their order.
    pub(crate) words: Vec<String>,
    /// Hash of the text that has the sentence.
    pub(crate) content: u64,
}

/// The questions, with the texts that answer them.
#[derive(Default)]
pub(crate) struct Questions {
    pub(crate) list: Vec<Question>,
    /// Hash of each object's text, by URL.
    pub(crate) contents: HashMap<String, u64>,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }
}

/// Draws questions from a collection of full texts.
pub(crate) fn draw(collection: &Collection) -> Questions {
    let mut contents = HashMap::new();
    let mut drawn = Vec::new();
    for scanned in collection.scan(0).unwrap() {
        let Change::Update(record) = scanned.unwrap().change else { continue };
        let content = content(&record);
        if let Some(words) = sentence(&record) {
            let lot = xxh3_64_with_seed(record.url.as_bytes(), !SEED);
            drawn.push((lot, Question { words, content }));
        }
        contents.insert(record.url, content);
    }
    drawn.sort_by_key(|(lot, _)| *lot);
    let list = drawn.into_iter().take(QUESTIONS).map(|(_, question)| question).collect();
    Questions { list, contents }
}

/// Returns a hash that is the same for objects with the same text.
fn content(record: &Record) -> u64 {
    let text = record.get("Full-Text").filter(|it| !it.is_empty());
    xxh3_64(text.or_else(|| record.get("MD5")).unwrap_or(record.url.as_bytes()))
}

/// Draws one suitable sentence of a document; `None` if it has none.
fn sentence(record: &Record) -> Option<Vec<String>> {
    let text = record.text("Full-Text")?;
    let mut head = String::new();
    for name in ["Title", "Description", "Abstract"] {
        head.push_str(&format!(" {} |", words(&record.text(name).unwrap_or_default()).join(" ")));
    }
    let paragraphs = paragraphs(&text);
    let mut later = paragraphs.iter().skip_while(|it| words(it).len() < WORDS_MIN);
    later.next();
    let mut sentences: Vec<Vec<String>> = Vec::new();
    for paragraph in later {
        for sentence in cut(paragraph) {
            let words = words(sentence);
            let with_letters = words.iter().filter(|it| it.contains(char::is_alphabetic)).count();
            let is_of_head = || head.contains(&format!(" {} ", words.join(" ")));
            if WORDS_MIN <= with_letters && words.len() <= WORDS_MAX && !is_of_head() {
                sentences.push(words);
            }
        }
    }
    let count = u64::try_from(sentences.len()).unwrap();
    let lot = xxh3_64_with_seed(record.url.as_bytes(), SEED).checked_rem(count)?;
    Some(sentences.swap_remove(usize::try_from(lot).unwrap()))
}

/// Cuts a text at its empty lines; without empty lines, every line is a paragraph.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let by_line = !text.contains("\n\n");
    for line in text.lines() {
        if by_line || line.trim().is_empty() {
            paragraphs.push(String::new());
        }
        if let Some(last) = paragraphs.last_mut() {
            last.push_str(line);
            last.push(' ');
        }
    }
    paragraphs
}

/// Cuts a paragraph at white space after a full stop, exclamation or question mark.
fn cut(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in paragraph.match_indices(char::is_whitespace) {
        if paragraph[start..at].ends_with(['.', '!', '?']) {
            sentences.push(&paragraph[start..at]);
            start = at;
        }
    }
    sentences.push(&paragraph[start..]);
    sentences
}

/// Returns the runs of letters and digits, in lower case.
fn words(text: &str) -> Vec<String> {
    let runs = text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    runs.map(str::to_lowercase).collect()
}
