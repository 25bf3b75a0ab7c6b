//! Archives of revisions: the newest text, and the authors, dates and logs of the revisions.
//!
//! Source: rcsfile(5) (grammar of `,v` files); sccsfile(4) (control lines and delta tables).
//! Essence's RCS and SCCS summarizers (revision summary).

use std::fmt::Write as _;

use crate::cancellable::TimeLimit;
use crate::limit::Limit;
use crate::text::{Body, decode, one_line};
use crate::{DateSource, Draft, Input};

/// Maximum number of revisions listed.
const REVISIONS_MAX: usize = 20;
/// Longest log of a revision that is listed, in bytes.
const LOG_BYTES_MAX: usize = 500;

/// One revision: number, date, author, log.
#[derive(Debug, Default)]
struct Revision {
    number: String,
    date: String,
    author: String,
    log: String,
}

/// The newest revisions, newest first, and the count of all.
#[derive(Default)]
struct History {
    listed: Vec<Revision>,
    count: usize,
    authors: Vec<String>,
    /// The logs of all.
    logs: String,
}

impl History {
    fn push(&mut self, revision: Revision) {
        self.count += 1;
        if self.listed.len() < REVISIONS_MAX {
            self.listed.push(revision);
        }
    }

    fn author(&mut self, name: &str) {
        // One more shows that there are more.
        if self.authors.len() <= Limit::Authors.bound() && !self.authors.iter().any(|it| it == name)
        {
            self.authors.push(name.to_owned());
        }
    }

    fn log(&mut self, log: &str) {
        self.logs.push_str(log);
        self.logs.push('\n');
    }

    /// Returns the revision that was added last, if it is listed.
    fn last(&mut self) -> Option<&mut Revision> {
        self.listed.last_mut().filter(|_| self.count <= REVISIONS_MAX)
    }
}

/// A word, or a string between at signs.
enum RcsToken<'a> {
    Word(&'a str),
    Text(&'a str),
}

/// Reads the next token; doubled at signs in a string stay doubled.
fn token<'a>(rest: &mut &'a str) -> Option<RcsToken<'a>> {
    let text = rest.trim_start_matches(|it: char| it.is_whitespace() || it == ';' || it == ':');
    if let Some(inside) = text.strip_prefix('@') {
        let mut from = 0;
        loop {
            let Some(at) = inside.get(from..).and_then(|it| it.find('@')) else {
                *rest = "";
                return Some(RcsToken::Text(inside));
            };
            let end = from + at;
            if inside.get(end + 1..).is_some_and(|it| it.starts_with('@')) {
                from = end + 2;
                continue;
            }
            *rest = inside.get(end + 1..).unwrap_or_default();
            return inside.get(..end).map(RcsToken::Text);
        }
    }
    let end = text.find(|it: char| it.is_whitespace() || ";:@".contains(it)).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    (!word.is_empty()).then_some(RcsToken::Word(word))
}

pub(crate) fn rcs<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let text = decode(input.front(Limit::Revisions, &mut draft), None);
    let (mut head, mut description, mut newest) = (String::new(), "", "");
    let mut history = History::default();
    let (mut rest, mut before, mut number) = (&*text, "", "");
    let mut time = TimeLimit::new(input.cancelled);
    while let Some(token) = token(&mut rest).filter(|_| time.goes_on()) {
        match token {
            RcsToken::Word(word) => {
                match before {
                    "head" if head.is_empty() => word.clone_into(&mut head),
                    "date" if !number.is_empty() => history.push(Revision {
                        number: number.to_owned(),
                        date: rcs_date(word),
                        ..Revision::default()
                    }),
                    "author" => {
                        history.author(word);
                        if let Some(last) = history.last() {
                            word.clone_into(&mut last.author);
                        }
                    }
                    _ => {}
                }
                if word.starts_with(|it: char| it.is_ascii_digit()) && word.contains('.') {
                    // A date is not a revision's number.
                    if before != "date" {
                        number = word;
                    }
                }
                before = word;
            }
            RcsToken::Text(text) => {
                match before {
                    "desc" => description = text,
                    "log" => {
                        history.log(text);
                        let revision = history.listed.iter_mut().find(|it| it.number == number);
                        if let Some(it) = revision {
                            it.log = one_line(&text.replace("@@", "@"), LOG_BYTES_MAX);
                        }
                    }
                    "text" if number == head => newest = text,
                    _ => {}
                }
                before = "";
            }
        }
    }
    time.report("the revisions", &mut draft);
    draft.description = description.replace("@@", "@");
    let mut body = Body::new(input.text_bytes_max());
    body.push(&newest.replace("@@", "@"));
    fill(&mut draft, &input.object.name, head, &history, body);
    draft
}

/// Returns the day of `1995.05.01.10.00.00` or `95.05.01.10.00.00` as `1995-05-01`.
fn rcs_date(word: &str) -> String {
    let mut parts = word.splitn(4, '.');
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else {
        return word.to_owned();
    };
    let century = if year.len() == 2 { "19" } else { "" };
    format!("{century}{year}-{month}-{day}")
}

/// Fills the draft from a history.
fn fill(draft: &mut Draft<'_>, name: &str, head: String, history: &History, body: Body) {
    let name = name.trim_end_matches(",v");
    name.strip_prefix("s.").unwrap_or(name).clone_into(&mut draft.title);
    draft.authors.clone_from(&history.authors);
    draft.words.clone_from(&history.logs);
    let mut summary = String::new();
    for Revision { number, date, author, log } in &history.listed {
        let _ = writeln!(summary, "{number} {date} {author}: {log}");
    }
    draft.other("Version", head);
    draft.date(history.listed.first().map_or("", |it| &it.date), DateSource::Revision);
    if 0 < history.count {
        draft.other("Revisions", history.count.to_string());
    }
    draft.other("Revision-Summary", summary);
    draft.set_body(body);
}

/// Summarizes an SCCS file, whose control lines begin with the byte 1.
pub(crate) fn sccs<'a>(input: &Input<'a>) -> Draft<'a> {
    let mut draft = Draft::default();
    let text = decode(input.front(Limit::Revisions, &mut draft), None);
    let mut history = History::default();
    let mut serials = Serials::default();
    let mut body = Body::new(input.text_bytes_max());
    let (mut description, mut in_description) = (String::new(), false);
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines().take_while(|_| time.goes_on()) {
        let Some(control) = line.strip_prefix('\u{1}') else {
            if in_description {
                description.push_str(line);
                description.push('\n');
            } else if serials.is_shown() && !body.is_full() {
                body.push(line);
                body.push("\n");
            }
            continue;
        };
        let mut words = control.split_whitespace();
        match words.next().unwrap_or_default() {
            "d" => delta(words).into_iter().for_each(|it| {
                history.author(&it.author);
                history.push(it);
            }),
            "c" => {
                history.log(control.get(1..).unwrap_or_default());
                if let Some(last) = history.last().filter(|it| it.log.len() < LOG_BYTES_MAX) {
                    last.log
                        .push_str(&one_line(control.get(1..).unwrap_or_default(), LOG_BYTES_MAX));
                }
            }
            "t" => in_description = true,
            "T" => in_description = false,
            "I" => serials.open(words.next(), true),
            "D" => serials.open(words.next(), false),
            "E" => serials.close(words.next()),
            _ => {}
        }
    }
    time.report("the revisions", &mut draft);
    draft.description = description;
    let head = history.listed.first().map(|it| it.number.clone()).unwrap_or_default();
    fill(&mut draft, &input.object.name, head, &history, body);
    draft
}

/// Reads a delta, unless it is removed: `D 1.2 95/05/01 10:00:00 who 2 1`.
fn delta<'t>(mut words: impl Iterator<Item = &'t str>) -> Option<Revision> {
    if words.next()? != "D" {
        return None;
    }
    let (number, date) = (words.next()?.to_owned(), words.next()?);
    // Years of two digits are 1969 to 2068.
    let year = date.split('/').next()?;
    let century = match year.parse::<u8>() {
        Ok(0..=68) if year.len() == 2 => "20",
        Ok(_) if year.len() == 2 => "19",
        _ => "",
    };
    let date = format!("{century}{}", date.replace('/', "-"));
    let author = words.nth(1)?.to_owned();
    Some(Revision { number, date, author, log: String::new() })
}

/// The insertions and deletions around the current line. The newest text of the trunk is all lines that are
/// not deleted.
#[derive(Default)]
struct Serials<'a> {
    deleted: Vec<&'a str>,
    inserted: bool,
}

impl<'a> Serials<'a> {
    /// Maximum number of nested deletions; a file with more is broken.
    const DELETED_MAX: usize = 100;

    fn open(&mut self, serial: Option<&'a str>, inserts: bool) {
        self.inserted |= inserts;
        if !inserts && self.deleted.len() < Self::DELETED_MAX {
            self.deleted.extend(serial);
        }
    }

    fn close(&mut self, serial: Option<&str>) {
        self.deleted.retain(|it| Some(*it) != serial);
    }

    fn is_shown(&self) -> bool {
        self.inserted && self.deleted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    #[test]
    fn an_rcs_file() {
        let file = "head\t1.2;\naccess;\nsymbols;\nlocks; strict;\ncomment\t@ * @;\n\n\
                    1.2\ndate\t95.05.02.10.00.00;\tauthor bea;\tstate Exp;\nbranches;\nnext\t1.1;\n\n\
                    1.1\ndate\t95.05.01.10.00.00;\tauthor al;\tstate Exp;\nbranches;\nnext\t;\n\n\
                    desc\n@Sorts.\n@\n\n1.2\nlog\n@faster\n@\ntext\n@int x; /* a@@b */\n@\n\n\
                    1.1\nlog\n@first\n@\ntext\n@d1 1\n@\n";
        assert_eq!(
            render("sort.c,v", Type::Rcs, file.as_bytes()),
            "Title: sort.c\nAuthor: bea | al\nDescription: Sorts.\nVersion: 1.2\n\
             Date: 1995-05-02\nDate-Source: revision\nRevisions: 2\n\
             Revision-Summary: 1.2 1995-05-02 bea: faster | 1.1 1995-05-01 al: first\n\
             Partial-Text: int x; /* a@b */"
        );
    }

    #[test]
    fn an_sccs_file() {
        let file = "\u{1}h12345\n\u{1}s 00001/00001/00001\n\u{1}d D 1.2 95/05/02 10:00:00 bea 2 1\n\
                    \u{1}c faster\n\u{1}e\n\u{1}d D 1.1 95/05/01 10:00:00 al 1 0\n\u{1}c first\n\
                    \u{1}e\n\u{1}u\n\u{1}U\n\u{1}t\nSorts.\n\u{1}T\n\u{1}I 1\nkept\n\u{1}D 2\nold\n\
                    \u{1}E 2\n\u{1}I 2\nnew\n\u{1}E 2\n\u{1}E 1\n";
        assert_eq!(
            render("s.sort.c", Type::Sccs, file.as_bytes()),
            "Title: sort.c\nAuthor: bea | al\nDescription: Sorts.\nVersion: 1.2\n\
             Date: 1995-05-02\nDate-Source: revision\nRevisions: 2\n\
             Revision-Summary: 1.2 1995-05-02 bea: faster | 1.1 1995-05-01 al: first\n\
             Partial-Text: kept | new"
        );
    }

    #[test]
    fn revisions_beyond_the_listed_ones_are_counted() {
        let mut rcs = String::from("head 1.100;\n");
        let mut sccs = String::new();
        for number in (1..=100).rev() {
            rcs.push_str(&format!("1.{number} date 95.05.01.10.00.00; author a{number};\n"));
            sccs.push_str(&format!("\u{1}d D 1.{number} 95/05/01 10:00:00 a{number} 2 1\n"));
        }
        for (name, r#type, file) in [("x,v", Type::Rcs, rcs), ("s.x", Type::Sccs, sccs)] {
            let seen = render(name, r#type, file.as_bytes());
            assert!(seen.contains("\nRevisions: 100\n"), "{seen}");
            assert!(seen.contains("1.81 1995-05-01 a81:") && !seen.contains("1.80 "), "{seen}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_record(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            render("x,v", Type::Rcs, &bytes);
            render("s.x", Type::Sccs, &bytes);
        }

        #[test]
        fn any_history_gives_a_record(text in "([@;: \n]|head|date|log|text|1\\.1|\u{1}[dIDEc] ){0,80}") {
            render("x,v", Type::Rcs, text.as_bytes());
            render("s.x", Type::Sccs, text.as_bytes());
        }
    }
}
