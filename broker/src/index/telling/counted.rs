//! The words of one record with how often they occur, as far as they say what it is about.
//!
//! Sans-I/O.

use std::collections::HashMap;

use query::stem::stem;
use query::words::Words;
use query::{Node, Query};
use soif::Record;

/// How much of one attribute is read, in bytes.
const TEXT_BYTES_MAX: usize = 32 << 10;
/// Length of the shortest word of letters that have cases, in bytes.
const WORD_BYTES_MIN: usize = 3;
const WORD_BYTES_MAX: usize = 40;
/// Keywords that are more than that say little.
const KEYWORDS_MAX: usize = 50;
/// How often a word of an attribute other than the text counts.
const SAID: u32 = 3;

/// The attributes that are read, and how often a word in them counts.
const READ: [(&str, u32); 7] = [
    ("Title", SAID),
    ("Keywords", SAID),
    ("Description", SAID),
    ("Abstract", SAID),
    ("Full-Text", 1),
    ("Partial-Text", 1),
    ("Body", 1),
];

/// Returns the words of a record with their counts, the most frequent first. Of several forms of a
/// word the most frequent stands for all. Numbers, stop words and very short or long words are left
/// out.
pub(super) fn counted(record: &Record) -> Vec<(String, u32)> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut has_text = false;
    for (name, times) in READ {
        // One text is enough: another one would be a part of it.
        let value = record.get(name).filter(|_| times != 1 || !has_text).unwrap_or_default();
        has_text |= times == 1 && !value.is_empty();
        let value = value.get(..TEXT_BYTES_MAX).unwrap_or(value);
        let value = String::from_utf8_lossy(value);
        // The keywords of a record may be all its words, in the order of the alphabet.
        if name == "Keywords" && KEYWORDS_MAX < value.lines().count() {
            continue;
        }
        let (mut words, mut word) = (Words::new(&value), String::new());
        while words.next_into(&mut word).is_some() {
            if is_telling(&word) {
                *counts.entry(word.clone()).or_default() += times;
            }
        }
    }
    let mut forms: HashMap<String, (String, u32, u32)> = HashMap::new();
    for (word, count) in counts {
        let (best, most, sum) = forms.entry(stem(&word).into_owned()).or_default();
        *sum += count;
        if (*most, &word) < (count, best) || best.is_empty() {
            (*best, *most) = (word, count);
        }
    }
    let mut all: Vec<_> = forms.into_values().map(|(word, _, sum)| (word, sum)).collect();
    // Of equal ones the first in the alphabet, so that all servers choose the same.
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    without_stop_words(all)
}

fn is_telling(word: &str) -> bool {
    let is_long = WORD_BYTES_MIN <= word.len() && word.len() <= WORD_BYTES_MAX;
    is_long && !word.chars().all(|it| it.is_numeric())
}

fn without_stop_words(words: Vec<(String, u32)>) -> Vec<(String, u32)> {
    let nodes: Vec<Node> = words.iter().map(|it| Query::word(&it.0).root).collect();
    let mut kept = Node::without_stop_words(&nodes).into_iter().peekable();
    let is_kept = |node: &Node| kept.next_if(|it| std::ptr::eq(*it, node)).is_some();
    let kept: Vec<bool> = nodes.iter().map(is_kept).collect();
    words.into_iter().zip(kept).filter(|it| it.1).map(|it| it.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_counted_together_and_stop_words_left_out() {
        let mut record = Record::new("FILE", "x:");
        record.push("Title", "The gatherers");
        record.push("Full-Text", "Gathering by a gatherer: the gatherer gathers 1995 oaks of 日本");
        record.push("Partial-Text", "unread");
        let words = counted(&record);
        assert_eq!(words[0], ("gatherers".to_owned(), 7), "{words:?}");
        let has = |word: &str| words.iter().any(|it| it.0 == word);
        assert!(has("oaks") && has("日"), "{words:?}");
        assert!(!has("the") && !has("1995") && !has("unread") && !has("of"), "{words:?}");
    }

    #[test]
    fn a_long_text_is_read_in_part() {
        let mut record = Record::new("FILE", "x:");
        record.push("Full-Text", "oak ".repeat(TEXT_BYTES_MAX) + "elm");
        let words = counted(&record);
        assert_eq!(words, [("oak".to_owned(), u32::try_from(TEXT_BYTES_MAX / 4).unwrap())]);
        record.set("Full-Text", vec![0xff; TEXT_BYTES_MAX]);
        assert_eq!(counted(&record), []);
    }
}
