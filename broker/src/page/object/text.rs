//! The text of an object, one part at a time, with the words of the query marked.
//!
//! Sans-I/O.

use query::Query;
use query::language::Languages;
use serde::Serialize;
use soif::Record;

use crate::highlight::Highlighter;
use crate::page::results::{Piece, pieces};
use crate::snippet::{cut, place};

/// Length of one part, in bytes; a part begins at a line, a word or at least a character.
const PART_BYTES: usize = 16 << 10;
/// How far the border of a part is moved back to a line or a word, in bytes.
const SHIFT_BYTES_MAX: usize = 512;
/// How much of a text is looked through for the words of the query, in bytes.
const SEARCHED_BYTES_MAX: usize = 16 << 20;
/// The same for a query with patterns, each of which may take long for each word.
const SEARCHED_BYTES_MAX_BY_PATTERN: usize = 1 << 20;

/// The attributes with an object's text, the best first.
pub(super) const TEXTS: [&str; 3] = ["Full-Text", "Partial-Text", "Body"];

/// One part of a text.
#[derive(Debug, Serialize)]
pub(super) struct TextShown {
    pieces: Vec<Piece>,
    /// Number of the part, from 1.
    pub(super) part: usize,
    pub(super) parts: usize,
    /// Index of the piece to go to, if the part was chosen because the words of the query stand there.
    found: Option<usize>,
    /// Where in the object the part begins, for people.
    place: Option<String>,
}

impl TextShown {
    /// Returns the part number `part` of `bytes`, the text; without a number, the part in which the
    /// words of the query stand, or else the first.
    pub(super) fn new(
        record: &Record,
        bytes: &[u8],
        part: Option<usize>,
        query: Option<&Query>,
    ) -> Self {
        let languages = Languages::of(record);
        let highlighter = query.map(Highlighter::new).filter(|it| 0 < it.words());
        let parts = bytes.len().div_ceil(PART_BYTES).max(1);
        let found = match part {
            Some(_) => None,
            None => highlighter.as_ref().and_then(|it| first_word((it, languages), bytes)),
        };
        let index = match part {
            Some(part) => part.saturating_sub(1),
            None => found.map_or(0, |at| part_at(bytes, at)),
        };
        let index = index.min(parts - 1);
        let start = border(bytes, index);
        let shown = bytes.get(start..border(bytes, index + 1)).unwrap_or_default();
        let text = String::from_utf8_lossy(shown);
        let marks = highlighter.iter().flat_map(|it| it.marks(&text, languages));
        let marks: Vec<(usize, usize)> = marks.map(|it| (it.start, it.end)).collect();
        let found = found
            .filter(|_| 1 < parts)
            .and_then(|at| marks.iter().position(|(from, _)| at <= start + from));
        let places = record.get(place::TEXT_PLACES).filter(|_| 0 < index);
        let before = || String::from_utf8_lossy(bytes.get(..start).unwrap_or(bytes));
        let pieces = pieces(text.trim_end(), marks);
        let mut marked = pieces.iter().enumerate().filter(|(_, it)| it.marked).map(|it| it.0);
        Self {
            found: found.and_then(|it| marked.nth(it)),
            part: index + 1,
            parts,
            place: places.and_then(|it| place::name(it, &before(), start)),
            pieces,
        }
    }

    /// Returns whether this part of the text has some words, however they are broken into lines.
    pub(super) fn has(&self, words: &str) -> bool {
        let whole: String = self.pieces.iter().map(|it| it.text.as_str()).collect();
        let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        joined(&whole).contains(&joined(words))
    }
}

/// Returns where the words of the query stand, in bytes: the same place as a hit's excerpt shows.
fn first_word((highlighter, languages): (&Highlighter, Languages), bytes: &[u8]) -> Option<usize> {
    let by_pattern = highlighter.has_patterns();
    let bytes_max = if by_pattern { SEARCHED_BYTES_MAX_BY_PATTERN } else { SEARCHED_BYTES_MAX };
    let searched = bytes.get(..bytes_max).unwrap_or(bytes);
    // What is not UTF-8 ends the search, since offsets behind it would be others.
    let text = match str::from_utf8(searched) {
        Ok(text) => text,
        Err(error) => str::from_utf8(searched.get(..error.valid_up_to())?).unwrap_or_default(),
    };
    cut(text, highlighter.marks(text, languages), highlighter.words()).1
}

/// Returns the index of the part in which byte `at` lies.
fn part_at(bytes: &[u8], at: usize) -> usize {
    let index = at / PART_BYTES;
    if border(bytes, index + 1) <= at { index + 1 } else { index }
}

/// Returns where the part with this index begins, in bytes; the text's length behind the last one.
fn border(bytes: &[u8], index: usize) -> usize {
    let at = index.saturating_mul(PART_BYTES);
    if index == 0 || bytes.len() <= at {
        return at.min(bytes.len());
    }
    let from = at - SHIFT_BYTES_MAX;
    let before = bytes.get(from..at).unwrap_or_default();
    let behind = |wanted: u8| before.iter().rposition(|it| *it == wanted).map(|it| from + it + 1);
    let is_inside = |it: &usize| bytes.get(*it).is_some_and(|it| it & 0xC0 == 0x80);
    let character = || (from..=at).rev().find(|it| !is_inside(it)).unwrap_or(at);
    behind(b'\n').or_else(|| behind(b' ')).unwrap_or_else(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, part: Option<usize>, query: &str) -> TextShown {
        let query = query::parse(query).unwrap();
        TextShown::new(&Record::new("FILE", "x:"), text.as_bytes(), part, Some(&query))
    }

    fn written(shown: &TextShown) -> String {
        let piece = |it: &Piece| if it.marked { format!("[{}]", it.text) } else { it.text.clone() };
        shown.pieces.iter().map(piece).collect()
    }

    #[test]
    fn a_short_text_is_one_part_with_its_words_marked() {
        let it = shown("An old oak.\n", None, "oak");
        assert_eq!((written(&it).as_str(), it.part, it.parts), ("An old [oak].", 1, 1));
        assert_eq!(it.found, None, "there is no other part");
        assert!(it.has("old  oak") && !it.has("elm"));
        assert_eq!(shown("", Some(7), "oak").parts, 1);
    }

    #[test]
    fn a_long_text_opens_where_the_words_stand() {
        let text = "filler line\n".repeat(9_000) + "an old oak\n" + &"filler line\n".repeat(9_000);
        let it = shown(&text, None, "oak");
        assert!(
            it.found == Some(1) && it.part == 7 && written(&it).contains("an old [oak]\n"),
            "{it:?}"
        );
        let it = shown(&text, Some(1), "oak");
        assert!(it.found.is_none() && it.part == 1 && written(&it).starts_with("filler line\n"));
        assert_eq!(shown(&text, None, "elm").part, 1);
        assert_eq!(shown(&text, Some(99), "oak").part, it.parts);
        assert!(written(&it).len() <= PART_BYTES);
    }

    #[test]
    fn bytes_that_are_no_text_are_bounded_too() {
        let mut bytes = "an oak ".as_bytes().to_vec();
        bytes.extend([0xff; 3 * PART_BYTES]);
        let query = query::parse("oak").unwrap();
        let it = TextShown::new(&Record::new("FILE", "x:"), &bytes, None, Some(&query));
        assert_eq!((it.part, it.parts), (1, 4));
        assert!(written(&it).starts_with("an [oak] \u{fffd}"));
    }

    proptest! {
        #[test]
        fn the_parts_are_the_text(line in "[a-zé日 \n]{1,40}", times in 1_usize..4_000) {
            let text = line.repeat(times);
            let bytes = text.as_bytes();
            let parts = bytes.len().div_ceil(PART_BYTES);
            let all: Vec<usize> = (0..=parts).map(|it| border(bytes, it)).collect();
            prop_assert!(all.is_sorted_by(|a, b| a < b));
            prop_assert_eq!((all[0], all[parts]), (0, bytes.len()));
            prop_assert!(all.iter().all(|it| text.is_char_boundary(*it)));
            for at in [0, bytes.len() / 2, bytes.len() - 1] {
                let index = part_at(bytes, at);
                prop_assert!(border(bytes, index) <= at && at < border(bytes, index + 1));
            }
        }
    }
}
