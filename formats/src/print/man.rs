//! The summarizer of manual pages and of other troff: text without macros, title and description by `NAME`.
//!
//! Source: man(7) and mdoc(7); Essence's ManPage summarizer.

mod glyphs;
mod strings;

use crate::cancellable::TimeLimit;
use crate::text::Body;
use crate::{DateSource, Draft, Input};
pub(crate) use strings::TroffStrings;

/// Maximum length of all section titles together, in bytes.
const HEADINGS_BYTES_MAX: usize = 4 * 1024;
/// Longest `NAME` section, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// Separators of a page's name and its description.
const DASHES: [&str; 3] = [" - ", " \u{2013} ", " \u{2014} "];

/// Macros whose arguments are text.
const TEXT: &[&str] = &[
    // man(7)
    "B", "I", "BR", "BI", "RB", "IR", "IB", "RI", "SM", "SB", "TP", "IP", "OP", "UR", "MT", "MR",
    // mdoc(7)
    "Ar", "Cm", "Dl", "Dv", "Em", "Er", "Ev", "Fa", "Fl", "Fn", "Ft", "Ic", "It", "Li", "Nd", "Nm",
    "Op", "Pa", "Pq", "Ql", "Dq", "Sq", "Aq", "Qq", "Brq", "Bq", "Sy", "Tn", "Va", "Vt", "Xr",
    "An", "Ad", "Cd", "Lk", "Mt", "In", "No", "D1", "Fd", "Fo", "St", "Ns", "Sx", "%A", "%T", "%B",
    "%J",
];

/// Names of mdoc macros that print no text inside a line.
const CALLABLE: &[&str] = &[
    "Ns", "No", "Ar", "Fl", "Cm", "Op", "Pq", "Ql", "Dq", "Sq", "Sy", "Em", "Pa", "Nm", "Li", "Xr",
    "Va", "Ic", "Dv", "Ev", "Er", "Fa", "Fn", "Oo", "Oc", "Po", "Pc", "Qq", "Aq", "Bq", "Brq",
];

#[derive(Default)]
struct Page {
    body: Body,
    headings: Body,
    /// The text of the section `NAME`, or of the first: the title may be in any language.
    name: Body,
    in_name: bool,
    /// Whether the section of `name` has the title `NAME`.
    is_named: bool,
    /// The text that `.Nm` prints.
    command: String,
    strings: TroffStrings,
    /// Name and section, from `.TH` or `.Dt`.
    heading: String,
    /// From `.TH` or `.Dd`.
    date: String,
    references: Vec<String>,
    line: String,
}

pub(crate) fn summarize<'a>(input: &Input<'a>) -> Draft<'a> {
    let text = input.text();
    let mut page = Page {
        body: Body::new(input.text_bytes_max()),
        headings: Body::new(HEADINGS_BYTES_MAX),
        name: Body::new(NAME_BYTES_MAX),
        ..Page::default()
    };
    // The request that ends a macro definition or hidden text.
    let mut until: Option<String> = None;
    let mut time = TimeLimit::new(input.cancelled);
    for line in text.lines().take_while(|_| time.goes_on()) {
        let Some(end) = &until else {
            until = page.line(line);
            continue;
        };
        let request = line.strip_prefix('.').and_then(|it| it.split_whitespace().next());
        if request == Some(end.as_str()) {
            until = None;
        }
    }
    let mut draft = page.draft();
    time.report("the page", &mut draft);
    input.report_text(&mut draft);
    draft
}

impl Page {
    /// Handles one line; returns the request up to which the following lines are left out, if any.
    fn line(&mut self, line: &str) -> Option<String> {
        let Some(request) = line.strip_prefix(['.', '\'']) else {
            if line.trim().is_empty() {
                self.body.line();
            } else {
                self.text(line);
            }
            return None;
        };
        let request = request.trim_start();
        let name_end = request.find(|it: char| it.is_whitespace()).unwrap_or(request.len());
        let (name, arguments) = request.split_at(name_end);
        match name {
            "ig" => return Some(words(arguments).next().unwrap_or_else(|| ".".to_owned())),
            "de" | "am" | "de1" | "am1" => {
                return Some(words(arguments).nth(1).unwrap_or_else(|| ".".to_owned()));
            }
            "SH" | "SS" | "Sh" | "Ss" | "H" | "NH" => self.section(arguments),
            "TH" | "Dt" => self.heading(arguments),
            "Dd" => arguments.trim().clone_into(&mut self.date),
            "ds" | "ds1" => self.strings.define(arguments),
            "Nm" => self.command(arguments),
            "so" => self.reference(arguments.trim()),
            "PP" | "P" | "LP" | "Pp" | "br" | "sp" | "RS" | "RE" | "Bl" | "El" | "Bd" | "Ed" => {
                self.body.line();
            }
            "MR" | "Xr" => {
                let mut words = words(arguments);
                if let (Some(name), Some(section)) = (words.next(), words.next()) {
                    self.text(&format!("{name}({section})"));
                }
            }
            "Nd" => self.text(&format!("- {}", arguments.trim())),
            "TP" | "IP" | "It" => {
                self.body.line();
                self.arguments(name, arguments);
            }
            name if TEXT.contains(&name) => self.arguments(name, arguments),
            _ => {}
        }
        None
    }

    fn arguments(&mut self, name: &str, arguments: &str) {
        if matches!(name, "TP") {
            return;
        }
        // Two-letter font macros alternate fonts and join their arguments.
        let joined = matches!(name, "BR" | "BI" | "RB" | "IR" | "IB" | "RI");
        let mut line = String::new();
        for word in words(arguments) {
            if !CALLABLE.contains(&word.as_str()) {
                if !line.is_empty() && !joined {
                    line.push(' ');
                }
                line.push_str(&word);
            }
        }
        self.text(&line);
    }

    fn section(&mut self, arguments: &str) {
        let title: Vec<String> = words(arguments).collect();
        let title = title.join(" ");
        let is_named = title.trim().eq_ignore_ascii_case("name");
        let is_first = self.headings.as_str().is_empty() && !self.heading.is_empty();
        self.in_name = is_named || is_first;
        if is_named && !self.is_named {
            self.name.take();
            self.is_named = true;
        }
        self.body.line();
        self.plain(&title);
        self.body.push(&self.line);
        self.headings.push_line(&self.line);
        self.body.line();
    }

    /// `.Nm name`; later `.Nm` alone.
    fn command(&mut self, arguments: &str) {
        if arguments.trim().is_empty() {
            self.text(&self.command.clone());
            return;
        }
        if self.command.is_empty() {
            self.command = words(arguments).next().unwrap_or_default();
        }
        self.arguments("Nm", arguments);
    }

    fn heading(&mut self, arguments: &str) {
        let mut words = words(arguments);
        let name = words.next().unwrap_or_default();
        if let (false, Some(section)) = (name.is_empty(), words.next()) {
            self.heading = format!("{}({section})", name.to_lowercase());
            // Of `.Dt`, the third word is a machine.
            if self.date.is_empty() {
                self.date = words.next().unwrap_or_default();
            }
        }
    }

    fn reference(&mut self, target: &str) {
        self.text(&format!("see {target}"));
        self.references.push(target.to_owned());
    }

    fn text(&mut self, text: &str) {
        self.plain(text);
        self.body.space();
        self.body.push_squeezed(&self.line);
        if self.in_name {
            self.name.space();
            self.name.push_squeezed(&self.line);
        }
    }

    /// Sets `self.line` to the text that `text` prints.
    fn plain(&mut self, text: &str) {
        self.line.clear();
        unescape(&self.strings.interpolate(text), &mut self.line);
    }

    fn draft<'a>(self) -> Draft<'a> {
        let mut draft = Draft::default();
        self.strings.report(&mut draft);
        let name = self.name.finish();
        let parts = DASHES.iter().find_map(|it| name.split_once(it));
        let name = if self.is_named || parts.is_some() { name.trim() } else { "" };
        draft.description = parts.map_or("", |(_, description)| description.trim()).to_owned();
        draft.title = if name.is_empty() { self.heading.clone() } else { name.to_owned() };
        draft.date(&self.date, DateSource::Header);
        draft.other("Headings", self.headings.finish().trim());
        draft.other("Manual-Page", self.heading);
        draft.other("Related", self.references.join("\n"));
        draft.set_body(self.body);
        draft
    }
}

/// Splits arguments at white space, except between double quotes.
pub(crate) fn words(arguments: &str) -> impl Iterator<Item = String> {
    let mut rest = arguments;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with("\\\"") {
            return None;
        }
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (word, after) = unquoted(quoted);
                rest = after;
                return Some(word);
            }
            None => {
                // A backslash before a space keeps it in the word.
                let mut before = ' ';
                let end = rest.find(|it: char| {
                    let ends = it.is_whitespace() && before != '\\';
                    before = it;
                    ends
                });
                rest.split_at(end.unwrap_or(rest.len()))
            }
        };
        rest = after;
        Some(word.to_owned())
    })
}

/// Returns the text up to the closing quote, with two quotes for one, and the text after it.
fn unquoted(quoted: &str) -> (String, &str) {
    let mut word = String::new();
    let mut rest = quoted;
    while let Some((piece, after)) = rest.split_once('"') {
        word.push_str(piece);
        match after.strip_prefix('"') {
            Some(more) => {
                word.push('"');
                rest = more;
            }
            None => return (word, after),
        }
    }
    word.push_str(rest);
    (word, "")
}

/// Replaces escapes by the text that they print.
pub(crate) fn unescape(text: &str, plain: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, from) = rest.split_at(at);
        plain.push_str(before);
        let mut chars = from.chars();
        chars.next();
        let escape = chars.next();
        rest = chars.as_str();
        match escape {
            Some('f' | 'F' | 'm' | 'M' | 'R' | 'n' | 'k' | 'g' | 'Y' | 'V') => {
                rest = split_name(rest).1;
            }
            Some('s') => rest = skip_size(rest),
            Some('(') => {
                let (name, after) = split_chars(rest, 2);
                glyphs::push(name, plain);
                rest = after;
            }
            Some('[') => {
                let (name, after) = rest.split_once(']').unwrap_or((rest, ""));
                glyphs::push(name, plain);
                rest = after;
            }
            Some('*') => {
                let (name, after) = split_name(rest);
                glyphs::push(name, plain);
                rest = after;
            }
            Some('-') => plain.push('-'),
            Some('e' | '\\') => plain.push('\\'),
            Some(' ' | '~' | '0') => plain.push(' '),
            Some('\'') => plain.push('\''),
            Some('`') => plain.push('`'),
            Some('"' | '#') => return,
            Some('.') => plain.push('.'),
            Some('h' | 'v' | 'w' | 'o' | 'L' | 'l' | 'N' | 'b' | 'C' | 'D' | 'X' | 'Z') => {
                rest = skip_quoted(rest);
            }
            // Thin spaces, break points, line continuation and unknown escapes print nothing.
            _ => {}
        }
    }
    plain.push_str(rest);
}

/// Splits `x`, `(xx` or `[xxx]` into a name and the text after it.
pub(crate) fn split_name(rest: &str) -> (&str, &str) {
    if let Some(long) = rest.strip_prefix('[') {
        return long.split_once(']').unwrap_or((long, ""));
    }
    match rest.strip_prefix('(') {
        Some(two) => split_chars(two, 2),
        None => split_chars(rest, 1),
    }
}

/// Skips `+1`, `-2`, `0`, `(12` or `[12]`.
fn skip_size(rest: &str) -> &str {
    let rest = rest.trim_start_matches(['+', '-']);
    match rest.chars().next() {
        Some('(' | '[') => split_name(rest).1,
        Some('\'') => skip_quoted(rest),
        Some(it) if it.is_ascii_digit() => split_chars(rest, 1).1,
        _ => rest,
    }
}

/// Skips `'anything'`, with any character as the quote.
fn skip_quoted(rest: &str) -> &str {
    let mut chars = rest.chars();
    let Some(quote) = chars.next() else { return rest };
    chars.as_str().split_once(quote).map_or("", |(_, after)| after)
}

fn split_chars(text: &str, count: usize) -> (&str, &str) {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Type;
    use crate::testing::render;

    fn check(page: &str, expected: &str) {
        assert_eq!(render("x.1", Type::ManPage, page.as_bytes()), expected);
    }

    #[test]
    fn a_man_page() {
        check(
            ".\\\" comment\n.TH LS \"1\" \"May 2024\"\n.SH NAME\nls \\- list \\fIdirectory\\fR contents\n\
             .SH SYNOPSIS\n.B ls\n[\\fI\\,OPTION\\/\\fR]...\n.de XX\nnot shown\n..\n.PP\n\
             .BR mv (1),\n\\(lqquoted\\(rq \\s-1SMALL\\s0 a\\ b\n",
            "Title: ls - list directory contents\n\
             Description: list directory contents\n\
             Date: 2024-05\nDate-Source: header\n\
             Headings: NAME | SYNOPSIS\n\
             Manual-Page: ls(1)\n\
             Partial-Text: NAME | ls - list directory contents | SYNOPSIS | ls [OPTION]... | \
             mv(1), \"quoted\" SMALL a b",
        );
    }

    #[test]
    fn hidden_text_ends_at_its_request() {
        check(
            ".ig\nno\n.. \\\" end\none\n.ig XX\nno\n..\n. XX\ntwo\n.de A B\nno\n..\n.B\nthree\n\
             .am A\nno\n..\nfour\n.de A \\\" B\nno\n..\nfive\n.ig E\nno\n.EE\n",
            "Title: x.1\nPartial-Text: one two three four five",
        );
    }

    #[test]
    fn an_mdoc_page() {
        check(
            ".Dd May 1, 2024\n.Dt CAT 1\n.Os\n.Sh NAME\n.Nm cat\n.Nd concatenate files\n\
             .Sh SEE ALSO\n.Xr head 1 ,\n.Nm\n.Op Fl benstuv\n",
            "Title: cat - concatenate files\n\
             Description: concatenate files\n\
             Date: 2024-05-01\nDate-Source: header\n\
             Headings: NAME | SEE ALSO\n\
             Manual-Page: cat(1)\n\
             Partial-Text: NAME | cat - concatenate files | SEE ALSO | head(1) cat benstuv",
        );
    }

    #[test]
    fn special_characters_and_strings() {
        check(
            ".TH GIT 1\n.ds C+ C\\s-2++\\s0\n.SH NAME\ngit \\- don\\*(Aqt\n.SH X\n\
             Andr\\['a]s \\('Ecole \\(:Ara Malm\\(/o \\[u00F6]\\[u0065_0301] \\*(C+ \\*(-- \\(*a\\(*W\n\
             .B \"a \"\"b\"\" c\" \"\" d\n",
            "Title: git - don't\nDescription: don't\nHeadings: NAME | X\nManual-Page: git(1)\n\
             Partial-Text: NAME | git - don't | X | András École Ära Malmø öé C++ - αΩ a \"b\" c d",
        );
    }

    #[test]
    fn the_name_is_the_first_section_in_any_language() {
        check(
            ".TH LS 1\n.SH NOM\nls \\- Afficher le contenu\n.SH SYNOPSIS\n.B ls\n",
            "Title: ls - Afficher le contenu\nDescription: Afficher le contenu\n\
             Headings: NOM | SYNOPSIS\nManual-Page: ls(1)\n\
             Partial-Text: NOM | ls - Afficher le contenu | SYNOPSIS | ls",
        );
        check(
            ".TH LS 1\n.SH SYNOPSIS\nls\n",
            "Title: ls(1)\nHeadings: SYNOPSIS\nManual-Page: ls(1)\nPartial-Text: SYNOPSIS | ls",
        );
        check(
            ".TH LS 1\n.SH USE\nls - x\n.SH NAME\nls\n",
            "Title: ls\nHeadings: USE | NAME\nManual-Page: ls(1)\n\
             Partial-Text: USE | ls - x | NAME | ls",
        );
    }

    #[test]
    fn a_page_may_refer_to_another() {
        check(
            ".so man3/printf.3\n",
            "Title: x.1\nRelated: man3/printf.3\nPartial-Text: see man3/printf.3",
        );
    }

    proptest! {
        #[test]
        fn any_troff_ends(text in "[.'\\\\\\[(*fsA-Za-z0-9\" \n-]{0,300}") {
            render("x.1", Type::ManPage, text.as_bytes());
        }
    }
}
