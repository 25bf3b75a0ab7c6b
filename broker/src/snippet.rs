//! Snippets: a snippet is the excerpt of a text that shows the largest number of the query's words.
//!
//! Each candidate window begins a little before a match. The best window is that with the most
//! different words; among these, that with the most words; among these, the first. The search for
//! it ends with the first window that has all of them. White space is folded and rules (`=====`) are
//! left out, so that line ends and tables of a text do not break a page.
//!
//! Sans-I/O.

pub(crate) mod excerpt;
pub(crate) mod place;

use std::collections::{BTreeSet, VecDeque};

use web::templates::escape;

use crate::answer::Snippet;

/// Maximum length of a snippet, in bytes of the text from which it is cut.
pub const SNIPPET_BYTES_MAX: usize = 240;
/// Length of the text before the first highlighted word of a snippet, in bytes.
const LEAD_BYTES: usize = 60;
/// Number of equal characters from which on they are a rule (`=====`) and not shown.
const RULE_CHARS_MIN: usize = 4;
/// Maximum distance by which a cut is moved to a border between words, in bytes.
const SHIFT_BYTES_MAX: usize = 24;

/// A match of one word in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Start, in bytes.
    pub start: usize,
    /// End, in bytes.
    pub end: usize,
    /// Number of the matched word in the query: equal words have equal numbers.
    pub word: u64,
}

/// Cuts a snippet from `text`, whose `marks` are ascending and disjoint and have at most `words`
/// different words. Returns it with the start of its first mark, in bytes of the text.
///
/// Without marks, the snippet is the beginning of the text. Once a window has all words, no more
/// marks are taken.
pub fn cut(
    text: &str,
    marks: impl Iterator<Item = Mark>,
    words: usize,
) -> (Snippet, Option<usize>) {
    let marks = best(marks, words);
    let first = marks.first().map(|it| it.start);
    let window = window(text, first.unwrap_or_default());
    let mut out = Writer::default();
    if text.get(..window.start).is_some_and(|before| !before.trim().is_empty()) {
        out.text.push('…');
    }
    let mut at = window.start;
    for mark in marks.iter().filter(|mark| window.start <= mark.start && mark.end <= window.end) {
        out.plain(text.get(at..mark.start).unwrap_or_default());
        out.mark(text.get(mark.start..mark.end).unwrap_or_default());
        at = mark.end;
    }
    out.plain(text.get(at..window.end).unwrap_or_default());
    let goes_on = text.get(window.end..).is_some_and(|after| !after.trim().is_empty());
    (out.finish(goes_on), first)
}

/// Returns the marks of the best window.
fn best(marks: impl Iterator<Item = Mark>, words: usize) -> Vec<Mark> {
    // The marks of the window that begins with the first of them, as far as they have come.
    let mut open: VecDeque<Mark> = VecDeque::new();
    let (mut best, mut score) = (Vec::new(), (0, 0));
    let mut close = |open: &mut VecDeque<Mark>| {
        let different = open.iter().map(|it| it.word).collect::<BTreeSet<_>>().len();
        if score < (different, open.len()) {
            score = (different, open.len());
            best.clear();
            best.extend(open.iter().copied());
        }
        open.pop_front();
        score.0
    };
    for mark in marks {
        while open.front().is_some_and(|first| end_of(*first) < mark.end) {
            if words <= close(&mut open) {
                return best;
            }
        }
        open.push_back(mark);
    }
    while !open.is_empty() {
        close(&mut open);
    }
    best
}

/// Returns where the window that begins with the mark `first` ends, in bytes.
fn end_of(first: Mark) -> usize {
    first.start.saturating_sub(LEAD_BYTES) + SNIPPET_BYTES_MAX
}

/// Returns the part of `text` to show for a window whose first mark starts at `first`.
fn window(text: &str, first: usize) -> std::ops::Range<usize> {
    let start = between_words(text, first.saturating_sub(LEAD_BYTES), first);
    let end = (start + SNIPPET_BYTES_MAX).min(text.len());
    let end = if end == text.len() { end } else { last_border(text, start, end) };
    start..end.max(start)
}

/// Returns the cut moved forward to the start of a near word, but not past `until`.
fn between_words(text: &str, cut: usize, until: usize) -> usize {
    if cut == 0 {
        return 0;
    }
    let limit = until.min(cut + SHIFT_BYTES_MAX);
    let cut = (cut..=until).find(|at| text.is_char_boundary(*at)).unwrap_or(until);
    text.get(cut..limit.max(cut))
        .and_then(|near| near.find(char::is_whitespace))
        .map_or(cut, |space| cut + space)
}

/// Returns the cut moved backward to the end of a word, if one is near.
fn last_border(text: &str, start: usize, cut: usize) -> usize {
    let cut = (start..=cut).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    let Some(shown) = text.get(start..cut) else { return cut };
    match shown.rfind(char::is_whitespace) {
        Some(space) if shown.len() - space <= SHIFT_BYTES_MAX => start + space,
        _ => cut,
    }
}

/// Writes plain text with white space folded, and notes the highlighted words.
#[derive(Default)]
struct Writer {
    text: String,
    highlights: Vec<(usize, usize)>,
    /// Whether a space belongs before the next character.
    space: bool,
}

impl Writer {
    fn plain(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let same = rest.trim_start_matches(c);
            let is_long = RULE_CHARS_MIN * c.len_utf8() <= rest.len() - same.len();
            let is_rule = is_long && !c.is_alphanumeric();
            if is_rule || c.is_whitespace() || c.is_control() {
                self.space = !self.text.is_empty();
                rest = same;
            } else {
                self.flush_space();
                self.text.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }

    fn mark(&mut self, word: &str) {
        self.flush_space();
        let start = self.text.len();
        self.plain(word);
        self.highlights.push((start, self.text.len()));
    }

    fn flush_space(&mut self) {
        if std::mem::take(&mut self.space) {
            self.text.push(' ');
        }
    }

    fn finish(mut self, goes_on: bool) -> Snippet {
        if goes_on {
            self.text.push('…');
        }
        let html = html(&self.text, &self.highlights);
        Snippet { text: self.text, html, highlights: self.highlights, place: None }
    }
}

impl Snippet {
    /// Returns the excerpt of another broker, with HTML of our own and those highlights that fit, in at most `bytes_max`
    /// bytes.
    #[must_use]
    pub(crate) fn of_another(mut self, bytes_max: usize) -> Self {
        self.text.truncate(self.text.floor_char_boundary(bytes_max));
        let mut at = 0;
        self.highlights.retain(|(start, end)| {
            let fits = at <= *start && self.text.get(*start..*end).is_some();
            at = if fits { *end } else { at };
            fits
        });
        self.html = html(&self.text, &self.highlights);
        self
    }
}

/// Returns `text` as HTML, with the highlighted words in `<mark>`.
fn html(text: &str, highlights: &[(usize, usize)]) -> String {
    let escaped = |from: usize, to: usize| escape(text.get(from..to).unwrap_or_default());
    let (mut html, mut at) = (String::with_capacity(2 * text.len()), 0);
    for (start, end) in highlights {
        html += &format!("{}<mark>{}</mark>", escaped(at, *start), escaped(*start, *end));
        at = *end;
    }
    html + &escaped(at, text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_excerpt_of_another_broker_is_written_anew() {
        let foreign = Snippet {
            text: "an <b>old</b> öak".to_owned(),
            html: "<img src=x onerror=alert(1)>".to_owned(),
            highlights: vec![(0, 2), (1, 4), (6, 9), (14, 16), (usize::MAX, 1), (90, 99)],
            place: None,
        };
        let ours = foreign.of_another(15);
        assert_eq!(ours.text, "an <b>old</b> ");
        assert_eq!(ours.html, "<mark>an</mark> &lt;b&gt;<mark>old</mark>&lt;/b&gt; ");
        assert_eq!(ours.highlights, [(0, 2), (6, 9)]);
    }

    fn marks(text: &str, words: &[&str]) -> Vec<Mark> {
        let mut marks: Vec<Mark> = (0..)
            .zip(words)
            .flat_map(|(word, looked_for)| {
                text.match_indices(looked_for).map(move |(start, it)| Mark {
                    start,
                    end: start + it.len(),
                    word,
                })
            })
            .collect();
        marks.sort_by_key(|mark| mark.start);
        marks
    }

    fn check(text: &str, words: &[&str], expected: &str) {
        let marks = marks(text, words);
        let (snippet, first) = cut(text, marks.iter().copied(), words.len());
        assert_eq!(first, marks.first().map(|it| it.start), "{text}");
        assert_eq!(snippet.html, expected);
        for (start, end) in snippet.highlights {
            assert!(words.contains(&&snippet.text[start..end]));
        }
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        check("change log", &["log"], "change <mark>log</mark>");
        check(" a\n\n\tb  c ", &["b"], "a <mark>b</mark> c");
        check("Log\n====\n\nold log 😀... ----", &["log"], "Log old <mark>log</mark> 😀...");
        check("", &[], "");
    }

    #[test]
    fn html_is_escaped_and_marks_are_not() {
        check("<b>log & 'x'", &["log"], "&lt;b&gt;<mark>log</mark> &amp; &#39;x&#39;");
    }

    #[test]
    fn the_window_with_the_most_words_is_shown() {
        let filler = "filler ".repeat(60);
        let text = format!("one {filler}one two {filler}");
        let (snippet, first) = cut(&text, marks(&text, &["one", "two"]).into_iter(), 2);
        assert_eq!(first, text.find("one two"));
        assert!(snippet.html.contains("<mark>one</mark> <mark>two</mark>"), "{}", snippet.html);
        assert!(snippet.text.starts_with("… filler"), "{}", snippet.text);
        assert!(snippet.text.ends_with("filler…"), "{}", snippet.text);
        assert!(snippet.text.len() <= SNIPPET_BYTES_MAX + 2 * '…'.len_utf8());
    }

    #[test]
    fn without_marks_the_beginning_is_shown() {
        let text = "filler ".repeat(60);
        let (snippet, first) = cut(&text, std::iter::empty(), 0);
        assert_eq!(first, None);
        assert!(snippet.text.starts_with("filler filler") && snippet.text.ends_with('…'));
    }

    proptest! {
        #[test]
        fn any_text_is_cut_between_characters(text in ".{0,600}", word in "[a-cé日 ]{1,2}") {
            let marks = marks(&text, &[&word]);
            let (snippet, _) = cut(&text, marks.into_iter(), 1);
            prop_assert!(snippet.text.len() <= SNIPPET_BYTES_MAX + 8);
            for (start, end) in snippet.highlights {
                prop_assert!(snippet.text.get(start..end).is_some());
            }
        }
    }
}
