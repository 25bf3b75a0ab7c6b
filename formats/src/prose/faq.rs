//! Questions and answers (FAQs): questions as headings, and the header fields of periodic postings.
//!
//! Source: "Guidelines for *.answers" (news.answers): the auxiliary header, with lines such as
//! `Archive-name` and `Last-modified` at the beginning of the text, below the article's own header if the
//! file has it; RFC 1153 (digests, whose parts begin with `Subject:`); Essence's FAQ summarizer (all words).

use std::collections::HashSet;

use super::plain;
use crate::cancellable::TimeLimit;
use crate::draft::read_date;
use crate::names;
use crate::text::{Body, is_telling, one_line};
use crate::{DateSource, Draft, Input};

/// Maximum length of all questions together, in bytes.
const QUESTIONS_BYTES_MAX: usize = 8 * 1024;
/// Longest question, in bytes.
const QUESTION_BYTES_MAX: usize = 300;
/// Longest question, in lines.
const QUESTION_LINES_MAX: usize = 4;
/// Maximum number of lines of a header.
const HEADER_LINES_MAX: usize = 100;
/// Longest value of a header line, in bytes.
const VALUE_BYTES_MAX: usize = 1024;

/// Header fields, and their attributes.
const FIELDS: &str = "archive-name:Archive-Name posting-frequency:Posting-Frequency \
    version:Version newsgroups:Newsgroups organization:Organization";
/// Header fields with the date of the last change.
const CHANGED: &[&str] = &["last-modified", "last-update", "last-updated"];

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut rest: &str = &text;
    // The article's own header, and the auxiliary header.
    for _ in 0..2 {
        rest = header(rest, &mut draft).unwrap_or(rest);
    }
    let (title, description) = plain::headline(rest);
    if draft.title.is_empty() {
        draft.title = title;
    }
    if draft.description.is_empty() {
        draft.description = description;
    }
    questions(rest, input.cancelled, &mut draft);
    input.set_text(text, &mut draft);
    draft
}

/// Adds the header fields at the beginning of `text` to the draft, and returns the text after them; `None`
/// if there is no header of a posting.
pub(crate) fn header<'t>(text: &'t str, draft: &mut Draft<'_>) -> Option<&'t str> {
    let text = text.trim_start_matches(['\n', '\r']);
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut bytes = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES_MAX) {
        bytes += line.len();
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let (Some((_, value)), true) = (fields.last_mut(), line.starts_with([' ', '\t'])) {
            if value.len() < VALUE_BYTES_MAX {
                value.push(' ');
                value.push_str(line.trim());
            }
            continue;
        }
        let (name, value) = line.split_once(':')?;
        if name.is_empty() || !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
            return None;
        }
        fields.push((name.to_ascii_lowercase(), one_line(value, VALUE_BYTES_MAX)));
    }
    let field = |name: &str| fields.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
    let is_posting = ["archive-name", "posting-frequency", "newsgroups", "maintainer"];
    if !is_posting.iter().any(|it| field(it).is_some()) {
        return None;
    }
    if let Some(subject) = field("subject").filter(|_| draft.title.is_empty()) {
        subject.clone_into(&mut draft.title);
    }
    // The maintainer is more important than the sender.
    if let Some(author) = field("maintainer").or_else(|| field("from")) {
        if field("maintainer").is_some() {
            draft.authors.clear();
        }
        draft.authors.push(author.to_owned());
    }
    if let Some(summary) = field("summary") {
        summary.clone_into(&mut draft.description);
    }
    if let Some(words) = field("keywords") {
        draft.other("Subject", words.split(',').map(str::trim).collect::<Vec<_>>().join("\n"));
    }
    if let Some(url) = field("url").filter(|it| it.contains("://")) {
        draft.references.push(url.to_owned());
    }
    // The date of the last change is more important than that of sending.
    let changed = CHANGED.iter().find_map(|it| field(it));
    if changed.is_some_and(|it| read_date(it).is_some()) {
        draft.others.retain(|it| !matches!(it.0.as_str(), "Date" | "Date-Source"));
        draft.date(changed.unwrap_or_default(), DateSource::Header);
    }
    for (name, attribute) in names::pairs(FIELDS) {
        if let Some(value) = field(name).filter(|_| !draft.has(attribute)) {
            draft.other(attribute, value);
        }
    }
    text.get(bytes..)
}

/// Adds the questions as headings, each once: the text may begin with a list of them.
pub(crate) fn questions(text: &str, cancelled: &dyn Fn() -> bool, draft: &mut Draft<'_>) {
    let mut headings = Body::new(QUESTIONS_BYTES_MAX);
    let mut seen = HashSet::new();
    let mut current: Option<Question> = None;
    let mut is_start = true;
    let mut time = TimeLimit::new(cancelled);
    for line in text.lines().chain([""]).take_while(|_| time.goes_on()) {
        let line = line.trim();
        let starts = Question::of(line, is_start);
        is_start = !is_telling(line);
        // A question ends before the next one, and before a line without words.
        if (is_start || starts.is_some())
            && let Some(question) = current.take().and_then(Question::finish)
            && seen.insert(question.to_lowercase())
        {
            headings.push_line(&question);
        }
        match (&mut current, starts) {
            (_, Some(question)) => current = Some(question),
            (Some(question), None) => question.add_line(line),
            (None, None) => {}
        }
        if headings.is_full() {
            break;
        }
    }
    time.report("the questions", draft);
    draft.other("Headings", headings.finish());
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// `Q:`, or `Subject:` in a digest.
    Label,
    Number,
    /// Only the beginning of a paragraph.
    Paragraph,
}

/// Lines that may be a question.
struct Question {
    mark: Mark,
    text: String,
    lines: usize,
    /// Whether the question has ended.
    is_over: bool,
}

impl Question {
    /// Returns the question that begins in a line.
    fn of(line: &str, is_start: bool) -> Option<Self> {
        let (mark, text) = if let Some(text) = labeled(line) {
            // `Subject: 1.2. What is it?`
            (Mark::Label, numbered(text).unwrap_or(text))
        } else if let Some(text) = numbered(line) {
            (Mark::Number, labeled(text).unwrap_or(text))
        } else if is_start && line.starts_with(|it: char| !it.is_lowercase() && it.is_alphabetic())
        {
            (Mark::Paragraph, line)
        } else {
            return None;
        };
        let mut question = Self { mark, text: String::new(), lines: 0, is_over: false };
        question.add_line(text);
        Some(question)
    }

    fn add_line(&mut self, line: &str) {
        if self.is_over {
            // If a paragraph continues after the question mark, its question is not a heading.
            if self.mark == Mark::Paragraph {
                self.text.clear();
            }
            return;
        }
        let is_answer = ["A:", "A.", "A)", "Answer:"].iter().any(|it| line.starts_with(it));
        if is_answer || QUESTION_LINES_MAX <= self.lines {
            self.is_over = true;
            return;
        }
        self.lines += 1;
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line);
        self.is_over = line.ends_with('?') || QUESTION_BYTES_MAX < self.text.len();
    }

    /// Returns the question, if the lines are one.
    fn finish(self) -> Option<String> {
        let text = self.text.trim();
        let asks = text.ends_with('?') || self.mark == Mark::Label && self.lines == 1;
        let is_short = text.len() <= QUESTION_BYTES_MAX;
        (asks && is_short && is_telling(text)).then(|| one_line(text, QUESTION_BYTES_MAX))
    }
}

/// Returns the text after `Q:`, `Q12.`, `Q1.2)`, `Question 3:` or `Subject:`.
fn labeled(line: &str) -> Option<&str> {
    if let Some(text) = line.strip_prefix("Subject:") {
        return Some(text.trim_start());
    }
    let rest = line.strip_prefix("Question").or_else(|| line.strip_prefix('Q'))?;
    let rest = rest.trim_start_matches([' ', '#']);
    let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    let text =
        rest.strip_prefix([':', ')']).or_else(|| Some(rest).filter(|_| number.ends_with('.')));
    text.map(str::trim_start).filter(|it| !it.is_empty())
}

/// Returns the text after `1.`, `1.2`, `3)`, `(4)` or `[2-1]`.
fn numbered(line: &str) -> Option<&str> {
    let from = line.trim_start_matches(['(', '[']);
    let end = from.find(|it: char| !it.is_ascii_digit() && !matches!(it, '.' | '-'))?;
    let (number, rest) = from.split_at(end);
    let marked = number.contains(['.', '-']) || rest.starts_with([')', ']', ':']);
    let text = rest.trim_start_matches([')', ']', ':', '.']);
    let is_number = number.starts_with(|it: char| it.is_ascii_digit());
    (is_number && marked && text.starts_with([' ', '\t'])).then(|| text.trim_start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(faq: &str, expected: &str) {
        let seen = render("x-faq", Type::Faq, faq.as_bytes());
        assert_eq!(seen.split("\nPartial-Text: ").next().unwrap(), expected);
    }

    #[test]
    fn a_periodic_posting() {
        check(
            "From: ann@a.example (Ann)\nNewsgroups: comp.editors,news.answers\n\
             Subject: comp.editors FAQ\nDate: 1 Mar 1995 10:00:00 GMT\nSummary: Questions\n about it.\n\n\
             Archive-name: editor-faq/sed\nPosting-Frequency: monthly\nLast-modified: 10 March 1995\n\
             Version: 015\nURL: http://sed.example/faq.html\nMaintainer: Eric P. <e@a.example>\n\n\
             \u{20}               THE SED FAQ\n\n1.1. What is sed?\n1.2. Why?\n\n\
             ------------------------------\n\nSubject: 1.1. What is sed?\n\nAn editor.\n\n\
             1.2. Why?\n\nIs it not so? It is.\n",
            "Title: comp.editors FAQ\nAuthor: Eric P. <e@a.example>\nDescription: Questions about it.\n\
             Newsgroups: comp.editors,news.answers\nDate: 1995-03-10\nDate-Source: header\nArchive-Name: editor-faq/sed\n\
             Posting-Frequency: monthly\nVersion: 015\nHeadings: What is sed? | Why?\n\
             Language: en\nLanguage-Source: detected\nURL-References: http://sed.example/faq.html",
        );
    }

    #[test]
    fn questions_in_many_forms() {
        for (text, expected) in [
            ("Q: What do the letters\n   mean?\n\nA: Nothing?\n", "What do the letters mean?"),
            ("Q. How? And\nwhere?\nA. Here.\n", "How? And where?"),
            ("Q12) Compile errors\nA: None.\n", "Compile errors"),
            ("Question 3: Why?\n", "Why?"),
            (" 1. Is zlib Y2K-compliant?\n\n    Yes.\n", "Is zlib Y2K-compliant?"),
            ("[2-1] Where is it?\n    There.\n", "Where is it?"),
            ("1.1. How is it said? \nLike this.\n", "How is it said?"),
            ("Why does it?\n============\n\nBecause.\n", "Why does it?"),
            ("Why does it?\n\n\tBecause.\n", "Why does it?"),
            ("Is it so? It is,\nis it not?\nYes.\n", ""),
            ("Words.\nIs it?\nYes.\n", ""),
            ("1. Introduction\n\n10 apples?\n", ""),
            ("Q: one\n\nQ: One\n", "one"),
            ("Quick questions?\n", "Quick questions?"),
        ] {
            let mut draft = super::Draft::default();
            super::questions(text, &|| false, &mut draft);
            let seen = draft.others.first().map_or("", |it| it.1.trim_end());
            assert_eq!(seen.replace('\n', " | "), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_a_header_is_read_whole() {
        check("Note: read this.\n\nMore.\n", "Title: Note: read this.\nDescription: More.");
        check("", "Title: x-faq");
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "((Q:|1\\.|Archive-name:|Subject:| |A:)[a-zé? ]{0,12}\n{0,2}){0,10}") {
            render("faq", Type::Faq, &bytes);
            render("faq", Type::Faq, text.as_bytes());
        }
    }
}
