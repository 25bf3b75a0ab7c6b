//! What is asked: a sentence of each of many documents.
//!
//! A sentence stands in the text behind its first paragraph, has [`WORDS_MIN`] to [`WORDS_MAX`] words that have
//! letters, and is not in title, description or abstract. Of the documents that have such a sentence,
//! [`QUESTIONS`] are drawn, and of each of them one sentence, all alike likely. What is drawn depends on
//! [`SEED`] and on the addresses alone.

use std::collections::HashMap;

use collection::{Change, Collection};
use soif::Record;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// How many questions are asked.
const QUESTIONS: usize = 1_200;
/// Fewest words of a sentence.
const WORDS_MIN: usize = 8;
/// Most words of a sentence: longer ones are tables.
const WORDS_MAX: usize = 40;
/// What chance begins with.
const SEED: u64 = 0x4573_7365_6e63_6521;

/// A sentence.
pub(crate) struct Question {
    /// Its words in small letters, in their order.
    pub(crate) words: Vec<String>,
    /// The text that it is of.
    pub(crate) content: u64,
}

/// What is asked, and what answers it.
#[derive(Default)]
pub(crate) struct Questions {
    pub(crate) asked: Vec<Question>,
    /// The text of each object, by its address.
    pub(crate) contents: HashMap<String, u64>,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.asked.len()
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
    let asked = drawn.into_iter().take(QUESTIONS).map(|(_, question)| question).collect();
    Questions { asked, contents }
}

/// What objects of the same text have in common.
fn content(record: &Record) -> u64 {
    let text = record.get("Full-Text").filter(|it| !it.is_empty());
    xxh3_64(text.or_else(|| record.get("MD5")).unwrap_or(record.url.as_bytes()))
}

/// Draws a sentence of a document.
fn sentence(record: &Record) -> Option<Vec<String>> {
    let text = record.text("Full-Text")?;
    let mut head = String::new();
    for name in ["Title", "Description", "Abstract"] {
        head.push_str(&format!(" {} |", words(&record.text(name).unwrap_or_default()).join(" ")));
    }
    let paragraphs = paragraphs(&text);
    let mut behind = paragraphs.iter().skip_while(|it| words(it).len() < WORDS_MIN);
    behind.next();
    let mut sentences: Vec<Vec<String>> = Vec::new();
    for paragraph in behind {
        for sentence in cut(paragraph) {
            let words = words(sentence);
            let telling = words.iter().filter(|it| it.contains(char::is_alphabetic)).count();
            let is_of_head = || head.contains(&format!(" {} ", words.join(" ")));
            if WORDS_MIN <= telling && words.len() <= WORDS_MAX && !is_of_head() {
                sentences.push(words);
            }
        }
    }
    let count = u64::try_from(sentences.len()).unwrap();
    let lot = xxh3_64_with_seed(record.url.as_bytes(), SEED).checked_rem(count)?;
    Some(sentences.swap_remove(usize::try_from(lot).unwrap()))
}

/// Cuts a text at its empty lines; where it has none, every line is a paragraph.
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

/// Cuts a paragraph at white space behind a full stop, and the like.
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

/// Runs of letters and digits, in small letters.
fn words(text: &str) -> Vec<String> {
    let runs = text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
    runs.map(str::to_lowercase).collect()
}
