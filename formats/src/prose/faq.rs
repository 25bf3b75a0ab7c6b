//! Questions and answers: the questions are headings; what the header lines of periodic postings say.
//!
//! Source: "Guidelines for *.answers" (news.answers): the auxiliary header, lines such as `Archive-name`
//! and `Last-modified` at the beginning of the text, below the article's own header if that was kept; RFC
//! 1153 (digests, whose parts begin with `Subject:`); Essence's FAQ summarizer (all words).
//!
//! Sans-I/O.

use std::collections::HashSet;

use super::plain;
use crate::object::ProblemKind;
use crate::text::{Body, is_telling, one_line};
use crate::{Draft, Input};

/// Longest sum of questions, in bytes.
const QUESTIONS_BYTES_MAX: usize = 8 * 1024;
/// Longest question, in bytes and in lines.
const QUESTION_BYTES_MAX: usize = 300;
const QUESTION_LINES_MAX: usize = 4;
/// Most lines of a header.
const HEADER_LINES_MAX: usize = 100;
/// Longest value of a header line, in bytes.
const VALUE_BYTES_MAX: usize = 1024;
/// Lines between two looks at the clock.
const POLL_LINES: usize = 1_000;

/// Lines of headers that become attributes.
const FIELDS: &[(&str, &str)] = &[
    ("archive-name", "Archive-Name"),
    ("last-modified", "Date"),
    ("last-update", "Date"),
    ("last-updated", "Date"),
    ("posting-frequency", "Posting-Frequency"),
    ("version", "Version"),
    ("newsgroups", "Newsgroups"),
    ("organization", "Organization"),
];

/// Summarizes questions and answers.
pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut rest: &str = &text;
    // The article's own header, and the one for archives.
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
    draft.body = text;
    draft
}

/// Takes down what the header lines at the beginning of `text` say, and returns what follows them; `None`
/// where there are none of a posting.
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
    // Who keeps it up says more than who sent it.
    if let Some(who) = field("maintainer").or_else(|| field("from")) {
        if field("maintainer").is_some() {
            draft.authors.clear();
        }
        draft.authors.push(who.to_owned());
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
    for (name, attribute) in FIELDS {
        let known = draft.others.iter().any(|it| it.0 == *attribute);
        if let Some(value) = field(name).filter(|_| !known || *attribute == "Date") {
            // When it was changed says more than when it was sent.
            draft.others.retain(|it| it.0 != *attribute);
            draft.other(attribute, value);
        }
    }
    text.get(bytes..)
}

/// Takes down the questions, each once: a list of them may stand at the beginning.
pub(crate) fn questions(text: &str, cancelled: &dyn Fn() -> bool, draft: &mut Draft<'_>) {
    let mut found = Body::new(QUESTIONS_BYTES_MAX);
    let mut seen = HashSet::new();
    let mut asked: Option<Question> = None;
    let mut is_start = true;
    for (number, line) in text.lines().chain([""]).enumerate() {
        if number.is_multiple_of(POLL_LINES) && cancelled() {
            draft.problem(ProblemKind::Time, "ran out of time on the questions");
            break;
        }
        let line = line.trim();
        let starts = Question::of(line, is_start);
        is_start = !is_telling(line);
        // A question ends where the next begins, and where a line ends that says nothing.
        if (is_start || starts.is_some())
            && let Some(question) = asked.take().and_then(Question::finish)
            && seen.insert(question.to_lowercase())
        {
            found.push(&question);
            found.line();
        }
        match (&mut asked, starts) {
            (_, Some(question)) => asked = Some(question),
            (Some(question), None) => question.go_on(line),
            (None, None) => {}
        }
        if found.is_full() {
            break;
        }
    }
    draft.other("Headings", found.finish());
}

/// What marks a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// `Q:`, or `Subject:` in a digest.
    Said,
    /// A number.
    Number,
    /// Nothing but that a paragraph begins.
    Paragraph,
}

/// Lines that may be a question.
struct Question {
    mark: Mark,
    text: String,
    lines: usize,
    /// Whether the answer has begun.
    is_over: bool,
}

impl Question {
    /// Returns the question that begins in a line.
    fn of(line: &str, is_start: bool) -> Option<Self> {
        let (mark, text) = if let Some(text) = said(line) {
            // `Subject: 1.2. What is it?`
            (Mark::Said, numbered(text).unwrap_or(text))
        } else if let Some(text) = numbered(line) {
            (Mark::Number, said(text).unwrap_or(text))
        } else if is_start && line.starts_with(|it: char| !it.is_lowercase() && it.is_alphabetic())
        {
            (Mark::Paragraph, line)
        } else {
            return None;
        };
        let mut question = Self { mark, text: String::new(), lines: 0, is_over: false };
        question.go_on(text);
        Some(question)
    }

    fn go_on(&mut self, line: &str) {
        if self.is_over {
            // A paragraph that goes on behind the question mark asks by the way.
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

    /// Returns the question, if it is one.
    fn finish(self) -> Option<String> {
        let text = self.text.trim();
        let asks = text.ends_with('?') || self.mark == Mark::Said && self.lines == 1;
        let is_short = text.len() <= QUESTION_BYTES_MAX;
        (asks && is_short && is_telling(text)).then(|| one_line(text, QUESTION_BYTES_MAX))
    }
}

/// Returns what follows `Q:`, `Q12.`, `Q1.2)`, `Question 3:` or `Subject:`.
fn said(line: &str) -> Option<&str> {
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

/// Returns what follows `1.`, `1.2`, `3)`, `(4)` or `[2-1]`.
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
             Newsgroups: comp.editors,news.answers\nArchive-Name: editor-faq/sed\nDate: 10 March 1995\n\
             Posting-Frequency: monthly\nVersion: 015\nHeadings: What is sed? | Why?\n\
             URL-References: http://sed.example/faq.html",
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
    fn what_is_no_header_is_text() {
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
