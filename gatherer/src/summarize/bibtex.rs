//! Bibliographies: authors, titles and years of the entries.
//!
//! Source: Essence's Bibliographic summarizer (authors, titles); BibTeX and BibLaTeX by `biblatex`.
//!
//! Entries are parsed one by one, so that a broken one costs itself only.
//!
//! Sans-I/O.

use std::borrow::Cow;

use biblatex::{Bibliography, ChunksExt, Entry, Person};

use super::{Draft, Input};
use crate::object::ProblemKind;
use crate::text::{Body, one_line};

/// Longest entry that is parsed, in bytes.
const ENTRY_BYTES_MAX: usize = 64 * 1024;
/// Longest sum of abbreviations that are given to every entry, in bytes.
const STRINGS_BYTES_MAX: usize = 8 * 1024;
/// Deepest nesting of braces that is parsed.
const BRACES_MAX: usize = 100;
/// Most authors, and most titles in `Titles`.
const NAMES_MAX: usize = 500;
/// Entries between two looks at the clock.
const POLL_ENTRIES: usize = 64;

/// Summarizes a bibliography.
pub(super) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut draft = Draft::default();
    let mut body = Body::new(input.text_bytes_max());
    let mut titles = Vec::new();
    let (mut count, mut broken) = (0_usize, Vec::new());
    let (mut first_year, mut last_year) = (i32::MAX, i32::MIN);
    let ended = read(&text, input.cancelled, &mut |raw, cited| {
        count += 1;
        let Some(cited) = cited else {
            broken.push(raw.line);
            // Its words can still be found.
            body.push(raw.text);
            body.line();
            return true;
        };
        if titles.len() < NAMES_MAX && !cited.title.is_empty() {
            titles.push(cited.title.clone());
        }
        if let Some(year) = cited.year {
            (first_year, last_year) = (first_year.min(year), last_year.max(year));
        }
        cited.print(&mut body);
        if draft.authors.len() < NAMES_MAX {
            draft.authors.extend(cited.authors);
        }
        true
    });
    if !ended {
        draft.problem(ProblemKind::Time, format!("ran out of time after {count} entries"));
    }
    if let Some(line) = broken.first() {
        let message = format!(
            "{} of {count} entries cannot be parsed, the first in line {line}",
            broken.len()
        );
        draft.problem(ProblemKind::Broken, message);
    }
    let years = if first_year < last_year {
        format!("{first_year}-{last_year}")
    } else if first_year == last_year {
        first_year.to_string()
    } else {
        String::new()
    };
    let span = if years.is_empty() { String::new() } else { format!(" of {years}") };
    let noun = if count == 1 { "entry" } else { "entries" };
    draft.description = format!("Bibliography with {count} {noun}{span}");
    draft.other("Entries", count.to_string());
    draft.other("Years", years);
    draft.other("Titles", titles.join("\n"));
    draft.body = Cow::Owned(body.finish());
    draft
}

/// Hands every entry to `each`, with what it says (`None`: it cannot be parsed), until that says
/// `false`. Returns whether there was time for all that it wanted.
pub(crate) fn read(
    text: &str,
    cancelled: &dyn Fn() -> bool,
    each: &mut dyn FnMut(Raw<'_>, Option<Cited>) -> bool,
) -> bool {
    let mut strings = String::new();
    for (number, raw) in entries(text).enumerate() {
        if number.is_multiple_of(POLL_ENTRIES) && cancelled() {
            return false;
        }
        match kind(raw.text).as_str() {
            "comment" | "preamble" => continue,
            "string" => {
                if strings.len() + raw.text.len() < STRINGS_BYTES_MAX && raw.is_sound() {
                    strings.push_str(raw.text);
                    strings.push('\n');
                }
                continue;
            }
            _ => {}
        }
        let parsed = raw.is_sound().then(|| {
            Bibliography::parse(&format!("{strings}{}", without_references(&raw.braced())))
        });
        let cited = match &parsed {
            Some(Ok(parsed)) => parsed.iter().next().map(Cited::of),
            Some(Err(_)) | None => None,
        };
        if !each(raw, cited) {
            break;
        }
    }
    true
}

/// What is told of one entry.
pub(crate) struct Cited {
    /// What it is cited by.
    pub(crate) key: String,
    pub(crate) title: String,
    pub(crate) authors: Vec<String>,
    pub(crate) year: Option<i32>,
    pub(crate) r#abstract: String,
    pub(crate) keywords: String,
    pub(crate) url: String,
    /// Where it appeared, and what else is worth finding.
    pub(crate) rest: Vec<String>,
}

impl Cited {
    fn of(entry: &Entry) -> Self {
        let plain =
            |name: &str| entry.get(name).map(ChunksExt::format_verbatim).unwrap_or_default();
        let persons = entry.author().unwrap_or_default();
        let authors =
            persons.iter().map(person).filter(|it| !it.is_empty() && it != "others").collect();
        let date = [plain("year"), plain("date")].concat();
        let digits: String = date.chars().filter(char::is_ascii_digit).take(4).collect();
        let year = digits.parse().ok().filter(|it| (1000..3000).contains(it));
        let names = [
            "journal",
            "journaltitle",
            "booktitle",
            "publisher",
            "school",
            "institution",
            "keywords",
            "doi",
            "url",
            "abstract",
        ];
        let rest = names.iter().map(|name| plain(name)).filter(|it| !it.is_empty()).collect();
        Self {
            key: entry.key.clone(),
            title: one_line(&plain("title"), 1000),
            authors,
            year,
            r#abstract: plain("abstract"),
            keywords: plain("keywords"),
            url: plain("url"),
            rest,
        }
    }

    /// Writes it as one line.
    pub(crate) fn print(&self, body: &mut Body) {
        body.push(&self.title);
        if !self.authors.is_empty() {
            body.push(" / ");
            body.push(&self.authors.join("; "));
        }
        if let Some(year) = self.year {
            body.push(&format!(" ({year})"));
        }
        for it in &self.rest {
            body.push(". ");
            body.push_squeezed(it);
        }
        body.line();
    }
}

fn person(it: &Person) -> String {
    let words = [&it.given_name, &it.prefix, &it.name, &it.suffix];
    let words: Vec<&str> = words.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    words.join(" ")
}

/// One entry as it is written.
pub(crate) struct Raw<'t> {
    pub(crate) text: &'t str,
    /// Its first line's number, from 1.
    line: usize,
    depth: usize,
    closed: bool,
}

impl Raw<'_> {
    /// Returns the entry in braces, if it is in parentheses.
    fn braced(&self) -> Cow<'_, str> {
        let (kind, rest) = self.text.split_at(self.text.find(['{', '(']).unwrap_or(0));
        match rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            Some(inner) => Cow::Owned(format!("{kind}{{{inner}}}")),
            None => Cow::Borrowed(self.text),
        }
    }

    /// Whether the parser can take it without harm.
    fn is_sound(&self) -> bool {
        self.closed && self.depth <= BRACES_MAX && self.text.len() <= ENTRY_BYTES_MAX
    }
}

/// Splits a bibliography at the `@`s that begin a line, each up to its closing brace.
fn entries(text: &str) -> impl Iterator<Item = Raw<'_>> {
    let mut rest = text;
    let mut line = 1;
    std::iter::from_fn(move || {
        // What stands between entries is a comment.
        let at = if rest.starts_with('@') { 0 } else { rest.find("\n@")? + 1 };
        let (before, from) = rest.split_at(at);
        line += before.matches('\n').count();
        let (end, depth, closed) = extent(from);
        let (entry, after) = from.split_at(end);
        let raw = Raw { text: entry, line, depth, closed };
        line += entry.matches('\n').count();
        rest = after;
        Some(raw)
    })
}

/// Returns where the entry at the start of `text` ends, how deep its braces nest, and whether they
/// close. An unclosed entry ends before the next one.
fn extent(text: &str) -> (usize, usize, bool) {
    let (mut depth, mut deepest) = (0_usize, 0);
    let bytes = text.as_bytes();
    // Which sign it is enclosed in shows at the first one.
    let (mut open, mut close) = (None, b'}');
    let mut last = b' ';
    for (at, byte) in bytes.iter().enumerate() {
        if open.is_none() && matches!(byte, b'{' | b'(') {
            open = Some(*byte);
            close = if *byte == b'(' { b')' } else { b'}' };
        }
        match *byte {
            _ if last == b'\\' => {}
            it if Some(it) == open => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            it if it == close && 0 < depth => {
                depth -= 1;
                if depth == 0 {
                    return (at + 1, deepest, true);
                }
            }
            b'@' if last == b'\n' && 0 < at => return (at, deepest, false),
            _ => {}
        }
        last = if last == b'\\' && *byte == b'\\' { b' ' } else { *byte };
    }
    (text.len(), deepest, false)
}

/// Renames the fields that name other entries: those are not at hand, and the parser follows an entry
/// that names itself until the stack is gone.
fn without_references(entry: &str) -> Cow<'_, str> {
    let lower = entry.to_ascii_lowercase();
    let mut renamed = Cow::Borrowed(entry);
    for name in ["crossref", "xdata"] {
        for (at, _) in lower.match_indices(name) {
            renamed.to_mut().replace_range(at..at + name.len(), &"_".repeat(name.len()));
        }
    }
    renamed
}

/// Returns the word after `@`, lower-case.
fn kind(entry: &str) -> String {
    let word = entry.get(1..).unwrap_or_default();
    let end = word.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(word.len());
    word.get(..end).unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::testing::render;
    use crate::typing::Type;
    use proptest::prelude::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(render("r.bib", Type::BibTeX, text.as_bytes()), expected);
    }

    #[test]
    fn entries_with_abbreviations() {
        check(
            "A comment.\n@string{cn = {Computer Networks}}\n@comment{no}\n\
             @article{bowman95,\n author = {C. Mic Bowman and Peter B. Danzig},\n\
             title = {The {Harvest} Information\n Discovery}, journal = cn, year = 1995}\n\
             @book(knuth, title = \"T{\\\"e}x\", author = {Knuth, Donald E.}, year = {1984})\n",
            "Title: r.bib\n\
             Author: C. Mic Bowman | Peter B. Danzig | Donald E. Knuth\n\
             Description: Bibliography with 2 entries of 1984-1995\n\
             Entries: 2\n\
             Years: 1984-1995\n\
             Titles: The Harvest Information Discovery | Tëx\n\
             Partial-Text: The Harvest Information Discovery / C. Mic Bowman; Peter B. Danzig (1995). \
             Computer Networks | Tëx / Donald E. Knuth (1984)",
        );
    }

    #[test]
    fn a_broken_entry_costs_itself() {
        check(
            "@misc{a, title = {Unclosed\n@misc{b, title = {Good}}\n",
            "Title: r.bib\n\
             Description: Bibliography with 2 entries\n\
             Entries: 2\n\
             Titles: Good\n\
             Partial-Text: @misc{a, title = {Unclosed | Good\n\
             ! broken: 1 of 2 entries cannot be parsed, the first in line 1",
        );
    }

    #[test]
    fn hostile_bibliographies_end() {
        for text in [
            format!("@misc{{a, title = {}}}", "{".repeat(300_000)),
            "@misc{a, title = {x}}\n".repeat(30_000),
            "@".repeat(300_000),
            "@\n".repeat(500_000),
            "@misc\n".repeat(150_000),
            format!("@misc{{a, note = {{{}}}}}", "crossref xdata ".repeat(4_000)),
            "@misc{a,crossref={b}}\n@misc{b,crossref={a}}\n".to_owned(),
            "@misc{a,crossref={a},xdata={a}}\n".to_owned(),
        ] {
            render("r.bib", Type::BibTeX, text.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn any_bibliography_ends(text in "(@(misc|string)\\{[a-z{}=,\"\\\\\n @#]{0,60}){0,5}") {
            render("r.bib", Type::BibTeX, text.as_bytes());
        }
    }
}
