//! BibTeX bibliographies: authors, titles, years and other fields of the entries.
//!
//! Source: Essence's Bibliographic summarizer (authors, titles). `biblatex` parses BibTeX and BibLaTeX.
//!
//! Entries are parsed one by one, so a broken entry affects no other.
//!
//! # Differences from BibTeX
//!
//! * An undefined abbreviation stands for its own name, so journals that styles define can be found by
//!   their abbreviations.
//! * Entries inherit nothing from the entries in their `crossref` and `xdata`.

use std::borrow::Cow;
use std::collections::HashMap;

use biblatex::{Bibliography, ChunksExt, Entry, Pair, Person, RawBibliography, RawChunk};
use oai::crosswalk;

use crate::catalog::{EntryFields, Reading};
use crate::limit::Limit;

/// Longest text of an abbreviation, in bytes.
const ABBREVIATION_BYTES_MAX: usize = 1024;
/// Abbreviations that are defined everywhere.
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Deepest nesting of braces that is parsed.
const BRACES_MAX: usize = 100;

pub(crate) fn read(text: &str, reading: &mut Reading<'_>) {
    let mut abbreviations = Abbreviations::default();
    for raw in entries(text) {
        if !reading.goes_on() {
            return;
        }
        match kind(raw.text).as_str() {
            "comment" | "preamble" => continue,
            "string" => {
                abbreviations.define(&raw, reading);
                continue;
            }
            _ => {}
        }
        if Limit::Entry.bound() < raw.text.len() {
            if reading.too_long(Limit::Entry, raw.text.as_bytes()) {
                continue;
            }
            return;
        }
        let braced = raw.braced();
        let parsed = if raw.is_sound() { parse(&braced, &abbreviations) } else { None };
        let entry = parsed.as_ref().and_then(|it| it.iter().next());
        let goes_on = match entry {
            Some(entry) => reading.entry(&entry.key, raw.text.as_bytes(), fields(entry)),
            None => reading.broken(raw.text, || format!("in line {}", raw.line)),
        };
        if !goes_on {
            return;
        }
    }
}

/// Parses one entry, without fields that refer to other entries: those entries are not available, and
/// an entry that refers to itself would overflow the parser's stack. Its other keys (`ids`) are left out,
/// too.
fn parse(entry: &str, abbreviations: &Abbreviations) -> Option<Bibliography> {
    let mut raw = RawBibliography::parse(entry).ok()?;
    let mut room = Limit::Entry.bound();
    for entry in &mut raw.entries {
        let omitted = ["crossref", "xdata", "ids"];
        entry.v.fields.retain(|it| !omitted.iter().any(|name| it.key.v.eq_ignore_ascii_case(name)));
        for chunk in entry.v.fields.iter_mut().flat_map(|it| it.value.v.iter_mut()) {
            if let RawChunk::Abbreviation(name) = chunk.v {
                let text = abbreviations.text(name).filter(|it| it.len() <= room);
                room = room.saturating_sub(text.map_or(0, str::len));
                match text {
                    None if MONTHS.iter().any(|it| it.eq_ignore_ascii_case(name)) => {}
                    text => chunk.v = RawChunk::Normal(text.unwrap_or(name)),
                }
            }
        }
    }
    Bibliography::from_raw(raw).ok()
}

/// Attributes, and the fields of an entry that become them, in order of precedence.
const NAMES: &[(&str, &[&str])] = &[
    ("Title", &["title"]),
    ("Source", &["journal", "journaltitle", "booktitle"]),
    ("Series", &["series"]),
    ("Publisher", &["publisher", "school", "institution", "organization"]),
    ("Volume", &["volume"]),
    ("Issue", &["number"]),
    ("Page-Range", &["pages"]),
    ("Edition", &["edition"]),
    ("Language", &["language"]),
    ("URL-References", &["url"]),
    ("Abstract", &["abstract"]),
];

fn fields(entry: &Entry) -> EntryFields {
    let plain = |name: &str| entry.get(name).map(ChunksExt::format_verbatim).unwrap_or_default();
    let mut fields = EntryFields::default();
    let persons = entry.author().unwrap_or_default();
    let authors = persons.iter().map(person).filter(|it| it != "others");
    authors.for_each(|it| fields.put("Author", &it));
    let date = [plain("year"), plain("date")].concat();
    let digits: String = date.chars().filter(char::is_ascii_digit).take(4).collect();
    let year = digits.parse().ok().filter(|it: &i32| (1000..3000).contains(it));
    let exact = [plain("date"), format!("{} {}", plain("month"), plain("year"))];
    let exact = exact.iter().filter(|it| 4 < it.trim().len()).find_map(|it| crosswalk::date(it));
    let date = exact.or_else(|| year.map(|it| it.to_string()));
    fields.put("Date", &date.unwrap_or_default());
    for (to, from) in NAMES {
        from.iter().for_each(|it| fields.put(*to, &plain(it)));
    }
    fields.put_all("Subject", &plain("keywords"), &[',', ';']);
    for scheme in ["doi", "isbn", "issn"] {
        fields.put_identifier(scheme, &plain(scheme));
    }
    if plain("archiveprefix").eq_ignore_ascii_case("arxiv") {
        fields.put_identifier("arxiv", &plain("eprint"));
    }
    fields
}

fn person(it: &Person) -> String {
    let words = [&it.given_name, &it.prefix, &it.name, &it.suffix];
    let words: Vec<&str> = words.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
    words.join(" ")
}

/// One entry as written.
struct RawEntry<'t> {
    text: &'t str,
    /// Number of its first line, from 1.
    line: usize,
    depth: usize,
    closed: bool,
}

impl RawEntry<'_> {
    /// Returns the entry with braces in place of parentheses.
    fn braced(&self) -> Cow<'_, str> {
        let (kind, rest) = self.text.split_at(self.text.find(['{', '(']).unwrap_or(0));
        match rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            Some(inner) => Cow::Owned(format!("{kind}{{{inner}}}")),
            None => Cow::Borrowed(self.text),
        }
    }

    /// Returns whether the parser can read it safely.
    fn is_sound(&self) -> bool {
        self.closed && self.depth <= BRACES_MAX && self.text.len() <= Limit::Entry.bound()
    }
}

/// Splits a bibliography into entries, each from its `@` to its closing brace.
fn entries(text: &str) -> impl Iterator<Item = RawEntry<'_>> {
    let mut rest = text;
    let mut line = 1;
    std::iter::from_fn(move || {
        // Text between entries is a comment.
        let at = memchr::memchr_iter(b'@', rest.as_bytes()).find(|at| begins(rest, *at))?;
        let (before, from) = rest.split_at(at);
        line += before.matches('\n').count();
        let (end, depth, closed) = extent(from);
        let (entry, after) = from.split_at(end);
        let raw = RawEntry { text: entry, line, depth, closed };
        line += entry.matches('\n').count();
        rest = after;
        Some(raw)
    })
}

/// Returns whether the `@` at `at` begins an entry: a word and `{` or `(` follow.
fn begins(text: &str, at: usize) -> bool {
    let after = text.get(at + 1..).unwrap_or_default();
    let word = after.trim_start_matches(|it: char| it.is_ascii_alphabetic());
    word.len() < after.len() && word.trim_start().starts_with(['{', '('])
}

/// Returns the end of the entry at the start of `text`, the depth of its braces, and whether they close.
/// An unclosed entry ends before the next one that begins a line.
fn extent(text: &str) -> (usize, usize, bool) {
    let (mut depth, mut deepest) = (0_usize, 0);
    let bytes = text.as_bytes();
    // The first brace or parenthesis decides which sign encloses the entry.
    let (mut open, mut close) = (None, b'}');
    let mut last = b' ';
    let mut begins_line = false;
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
            b'@' if begins_line && begins(text, at) => return (at, deepest, false),
            _ => {}
        }
        begins_line = *byte == b'\n' || begins_line && byte.is_ascii_whitespace();
        last = if last == b'\\' && *byte == b'\\' { b' ' } else { *byte };
    }
    (text.len(), deepest, false)
}

/// Abbreviations: their texts as written, by name in lower case.
#[derive(Default)]
struct Abbreviations {
    texts: HashMap<String, String>,
}

impl Abbreviations {
    /// Adds definitions. Abbreviations in them are replaced at once, so no definition contains itself.
    /// Says if there are too many, or one is too long.
    fn define(&mut self, raw: &RawEntry<'_>, reading: &mut Reading<'_>) {
        if Limit::Entry.bound() < raw.text.len() {
            reading.cut(Limit::Entry.cut());
        }
        let braced = raw.braced();
        let parsed = raw.is_sound().then(|| RawBibliography::parse(&braced));
        let Some(Ok(parsed)) = parsed else { return };
        for it in &parsed.abbreviations {
            match self.joined(it) {
                None => reading.cut(Limit::Value.cut_at(ABBREVIATION_BYTES_MAX)),
                Some(text) if self.texts.len() < Limit::Abbreviations.bound() => {
                    self.texts.insert(it.key.v.to_ascii_lowercase(), text);
                }
                Some(_) => reading.cut(Limit::Abbreviations.cut()),
            }
        }
    }

    /// Returns the text of a definition, unless it is too long.
    fn joined(&self, definition: &Pair<'_>) -> Option<String> {
        let mut joined = String::new();
        for chunk in &definition.value.v {
            let text = match chunk.v {
                RawChunk::Normal(text) => text,
                RawChunk::Abbreviation(name) => self.text(name).unwrap_or(name),
            };
            if ABBREVIATION_BYTES_MAX < joined.len() + text.len() {
                return None;
            }
            joined.push_str(text);
        }
        Some(joined)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(&name.to_ascii_lowercase()).map(String::as_str)
    }
}

/// Returns the word after `@`, lower-case.
fn kind(entry: &str) -> String {
    let word = entry.get(1..).unwrap_or_default();
    let end = word.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(word.len());
    word.get(..end).unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

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
    fn abbreviations_of_abbreviations() {
        check(
            "@string{a = {Acta}}\n@string{b = a # \" Botanica\"}\n@misc{k, title = b # {!}}\n",
            "Title: r.bib\nDescription: Bibliography with 1 entry\nEntries: 1\n\
             Titles: Acta Botanica!\nPartial-Text: Acta Botanica!",
        );
        let entry = "@misc{x, title = a # s60}\n@misc{y, title = {Good}}\n";
        let doubling: String =
            (0..60).map(|it| format!("@string{{s{} = s{it} # s{it}}}\n", it + 1)).collect();
        for strings in [
            "@string{a = a}\n@string{s60 = {}}\n".to_owned(),
            "@string{a = b}\n@string{b = a}\n@string{s60 = b}\n".to_owned(),
            "@string{a = {}}\n@string{b = a}\n@string{a = b}\n".to_owned(),
            "@string{a = b, b = a}\n".to_owned(),
            format!("@string{{s0 = {{}}}}\n{doubling}"),
        ] {
            let seen = render("r.bib", Type::BibTeX, format!("{strings}{entry}").as_bytes());
            let titles = seen.lines().find(|it| it.starts_with("Titles: "));
            assert!(titles.is_some_and(|it| it.ends_with("Good")), "{seen}");
        }
    }

    #[test]
    fn references_to_other_entries_are_ignored() {
        check(
            "@article{a, title = {The Crossref API}, journal = IEEE_J, crossref = {b}, month = FEB,\n\
             xdata={a}, url = {http://api.crossref.org/}, year = 2020}\n",
            "Title: r.bib\nDescription: Bibliography with 1 entry of 2020\nEntries: 1\nYears: 2020\n\
             Titles: The Crossref API\n\
             Partial-Text: The Crossref API (2020). IEEE_J. http://api.crossref.org/",
        );
    }

    #[test]
    fn abbreviations_are_many_and_of_any_case() {
        let define = |it: usize| format!("@string{{J{it} = {{Journal of many words {it}}}}}\n");
        let strings: String = (0..1_000).map(define).collect();
        let seen = render(
            "r.bib",
            Type::BibTeX,
            format!("{strings}@string(k = j999 # {{, new}})\n@misc{{x, title = K}}\n").as_bytes(),
        );
        assert!(seen.contains("Titles: Journal of many words 999, new\n"), "{seen}");
    }

    #[test]
    fn an_abbreviation_that_is_too_long_is_said() {
        let text =
            format!("@string{{a = {{{}}}, b = {{B}}}}\n@misc{{x, title = b}}\n", "a".repeat(1025));
        check(
            &text,
            "Title: r.bib\nDescription: Bibliography with 1 entry\nEntries: 1\nTitles: B\n\
             Partial-Text: B\nTruncated: value 1024\n\
             ! limit: has more than 1024 bytes in one attribute; the rest was left out",
        );
    }

    #[test]
    fn entries_begin_anywhere() {
        let text = "mail a@b.example {\n  @misc{a, title={Indented}}\n@misc{b, title={A \"b\" @ c\n@home}}\n\
                    @misc{c, title={C}}@misc{d, title={D}}";
        let seen = render("r.bib", Type::BibTeX, text.as_bytes());
        assert!(seen.contains("Titles: Indented | A \"b\" @ c @home | C | D\n"), "{seen}");
        assert!(!seen.contains('!'), "{seen}");
    }

    #[test]
    fn a_broken_entry_affects_no_other() {
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
